//! `soft-404`: error pages for missing documents with a success status.
//!
//! A page is recognised by its title, or by its first heading if it has little text. Sites build titles from parts
//! (`Page not found | Example`). One part must equal one of the phrases: `How to fix "page not found"` is an article. The
//! filter makes no requests.

use std::collections::HashSet;

use opilio_plugin::prelude::*;

use crate::{Then, page};

/// Longest page to examine, in bytes.
const PAGE_BYTES_MAX: u64 = 512 * 1024;

/// Number of bytes searched for title and heading.
const SEARCHED_BYTES_MAX: usize = 64 * 1024;

/// Settings of `soft-404`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Effect on such a page: `annotate` only, `reject`, or `retry`.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Then,
    /// Wait before the fetch is repeated, with `retry`.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub retry_after: Period,
    /// Phrases in addition to the built-in ones; case is ignored. A phrase must be a whole title or heading, or a whole part of
    /// it.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub phrases: Vec<String>,
    /// Most bytes of text on a page that is recognised only by its heading, or by a short phrase such as `404`.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub text_max: u32,
    /// `true` if redirects from deep in a site to its front page count too. They often mean that the page was removed, and
    /// sometimes that the site moved.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub redirects_home: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            then: Then::Annotate,
            retry_after: Period::seconds(24 * 60 * 60),
            phrases: Vec::new(),
            text_max: 1_500,
            redirects_home: false,
        }
    }
}

/// Phrases of error pages for missing documents, in lower case, without surrounding punctuation.
const PHRASES: &[&str] = &[
    // English
    "page not found",
    "page cannot be found",
    "page can't be found",
    "page could not be found",
    "page does not exist",
    "page doesn't exist",
    "page no longer exists",
    "the page you requested was not found",
    "the page you requested could not be found",
    "the page you are looking for could not be found",
    "the page you were looking for could not be found",
    "the page you were looking for doesn't exist",
    "the page cannot be found",
    "the page could not be found",
    "this page could not be found",
    "this page does not exist",
    "this page doesn't exist",
    "this page isn't available",
    "document not found",
    "file not found",
    "article not found",
    "404 not found",
    "404 page not found",
    "404 error",
    "404 file not found",
    "error 404",
    "error 404 not found",
    "error 404 page not found",
    "http 404",
    "http error 404",
    // German
    "seite nicht gefunden",
    "die seite wurde nicht gefunden",
    "diese seite wurde nicht gefunden",
    "die angeforderte seite wurde nicht gefunden",
    "die gewünschte seite wurde nicht gefunden",
    "seite existiert nicht",
    "diese seite existiert nicht",
    "fehler 404",
    "404 fehler",
    // French
    "page non trouvée",
    "page introuvable",
    "page inexistante",
    "cette page n'existe pas",
    "cette page n'existe plus",
    "la page demandée n'existe pas",
    "la page demandée est introuvable",
    "erreur 404",
    // Spanish
    "página no encontrada",
    "pagina no encontrada",
    "la página no existe",
    "esta página no existe",
    // Portuguese
    "página não encontrada",
    "pagina não encontrada",
    "esta página não existe",
    "erro 404",
    // Italian
    "pagina non trovata",
    "pagina inesistente",
    "la pagina non esiste",
    "errore 404",
    // Catalan, Galician, Basque
    "pàgina no trobada",
    "no s'ha trobat la pàgina",
    "páxina non atopada",
    "ez da orria aurkitu",
    // Dutch
    "pagina niet gevonden",
    "deze pagina bestaat niet",
    // Danish, Norwegian, Swedish
    "siden findes ikke",
    "siden blev ikke fundet",
    "siden kunne ikke findes",
    "siden ble ikke funnet",
    "siden finnes ikke",
    "fant ikke siden",
    "sidan hittades inte",
    "sidan kunde inte hittas",
    "sidan finns inte",
    // Icelandic, Faroese, Finnish
    "síða fannst ekki",
    "síðan fannst ekki",
    "síðan finnst ekki",
    "síða finnst ekki",
    "síðan er ekki til",
    "síðan varð ikki funnin",
    "sivua ei löytynyt",
    "sivua ei löydy",
    // Polish, Czech, Slovak, Slovenian, Croatian, Serbian
    "nie znaleziono strony",
    "strona nie została znaleziona",
    "strona nie istnieje",
    "stránka nenalezena",
    "stránka nebyla nalezena",
    "stránka neexistuje",
    "stránka sa nenašla",
    "stránka nebola nájdená",
    "stran ni najdena",
    "strani ni mogoče najti",
    "stranica nije pronađena",
    "stranica ne postoji",
    "страница није пронађена",
    // Hungarian, Romanian, Bulgarian, Greek, Turkish
    "az oldal nem található",
    "a keresett oldal nem található",
    "pagina nu a fost găsită",
    "pagina nu există",
    "страницата не е намерена",
    "η σελίδα δεν βρέθηκε",
    "sayfa bulunamadı",
    // Estonian, Latvian, Lithuanian
    "lehte ei leitud",
    "lapa nav atrasta",
    "puslapis nerastas",
    // Russian, Ukrainian
    "страница не найдена",
    "страница не существует",
    "ошибка 404",
    "сторінку не знайдено",
    "сторінка не знайдена",
    // Chinese, Japanese, Korean
    "页面不存在",
    "找不到页面",
    "页面未找到",
    "找不到網頁",
    "找不到頁面",
    "頁面不存在",
    "ページが見つかりません",
    "お探しのページは見つかりません",
    "お探しのページは見つかりませんでした",
    "ページが見つかりませんでした",
    "페이지를 찾을 수 없습니다",
    // Arabic, Hebrew, Persian
    "الصفحة غير موجودة",
    "لم يتم العثور على الصفحة",
    "הדף לא נמצא",
    "העמוד לא נמצא",
    "صفحه یافت نشد",
    // Indonesian, Vietnamese, Thai
    "halaman tidak ditemukan",
    "không tìm thấy trang",
    "ไม่พบหน้า",
];

/// Phrases that count only on a page with little text, because they have other meanings.
const PHRASES_OF_SHORT_PAGES: &[&str] = &[
    "404",
    "not found",
    "nicht gefunden",
    "introuvable",
    "no encontrado",
    "não encontrado",
    "non trovato",
    "niet gevonden",
    "не найдено",
];

/// The configured plugin.
pub struct Soft404 {
    settings: Settings,
    phrases: HashSet<String>,
}

impl Plugin for Soft404 {
    const NAME: &'static str = "soft-404";
    const SUMMARY: &'static str =
        "Recognises error pages sent with a success status, and annotates them: soft404";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut faults = Vec::new();
        let mut phrases: HashSet<String> = PHRASES.iter().map(|one| (*one).to_owned()).collect();
        for (at, phrase) in settings.phrases.iter().enumerate() {
            let phrase = trim_punctuation(&phrase.to_lowercase()).to_owned();
            if phrase.is_empty() {
                faults.push(SettingsFault::new(
                    format!("/phrases/{at}"),
                    "the phrase contains no letter; write one with letters",
                ));
            }
            phrases.insert(phrase);
        }
        none_or(faults, Self { settings, phrases })
    }

    fn handles() -> Handles {
        // Redirects often have no media type.
        Handles::media_types(&[
            "text/html",
            "application/xhtml+xml",
            "application/octet-stream",
        ])
    }
}

impl Filter for Soft404 {
    fn judge_candidate(&self, _: &Stage, _: CandidateView<'_>) -> Ruling {
        Ruling::pass()
    }

    fn judge_document(&self, stage: &Stage, document: &Document, _: &Visit) -> Ruling {
        let reason = match document.status() {
            200 | 203 if document.media_type() != "application/octet-stream" => {
                self.reason_of_page(document)
            }
            301 | 302 | 303 | 307 | 308 if self.settings.redirects_home => {
                reason_of_redirect(document)
            }
            _ => None,
        };
        let Some(reason) = reason else {
            return Ruling::pass();
        };
        document.annotate("soft404");
        document.set_note("soft404", &reason);
        count("soft-404", 1);
        self.settings
            .then
            .ruling(stage, self.settings.retry_after, reason)
    }
}

impl Soft404 {
    /// Returns the reason why the page counts as missing.
    fn reason_of_page(&self, document: &Document) -> Option<String> {
        // The front page exists, whatever its text is.
        if document.length() > PAGE_BYTES_MAX || is_front_page(path_of(&document.uri())) {
            return None;
        }
        let start = start_of(document);
        let title = page::element_text(&start, "title").unwrap_or_default();
        let mut is_short = None;
        let mut is_short = || {
            let max = self.settings.text_max as usize;
            *is_short.get_or_insert_with(|| page::text_length(&document.text(), max + 1) <= max)
        };
        let is_short_page_phrase = |part: &str| PHRASES_OF_SHORT_PAGES.contains(&part);
        for part in title_parts(&title) {
            if self.phrases.contains(part) || is_short_page_phrase(part) && is_short() {
                return Some(format!("the title says `{part}`"));
            }
        }
        let heading = page::element_text(&start, "h1").unwrap_or_default();
        let phrase = title_parts(&heading)
            .find(|part| self.phrases.contains(*part) || is_short_page_phrase(part))?;
        is_short().then(|| format!("the heading says `{phrase}`"))
    }
}

/// Returns the part of a page that is searched. Only this part of a UTF-8 page is read; other charsets are decoded whole by the
/// host.
fn start_of(document: &Document) -> String {
    let is_utf8 = document.charset().is_none_or(|charset| charset == "utf-8");
    if is_utf8 {
        let bytes = document.read(0, SEARCHED_BYTES_MAX as u32);
        return String::from_utf8(bytes)
            .unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned());
    }
    let mut text = document.text();
    text.truncate(text.floor_char_boundary(SEARCHED_BYTES_MAX));
    text
}

/// Returns a title or heading, and each of its parts, without surrounding punctuation.
fn title_parts(title: &str) -> impl Iterator<Item = &str> {
    let whole = std::iter::once(title);
    let parts = title.split(['|', '–', '—', '·', '•', '»', '«', '›', '‹', ':', '｜']);
    // A hyphen separates parts only between spaces.
    let parts = parts.flat_map(|part| part.split(" - "));
    // `Oops! Page not found`
    let sentences = title.split(['!', '.', '?', '¡', '¿']);
    whole
        .chain(parts)
        .chain(sentences)
        .map(trim_punctuation)
        .filter(|part| !part.is_empty())
}

/// Removes surrounding punctuation: `« page not found! »` becomes `page not found`.
fn trim_punctuation(text: &str) -> &str {
    text.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Returns the reason if a redirect leads from deep in a site to its front page.
fn reason_of_redirect(document: &Document) -> Option<String> {
    let uri = document.uri();
    let target = document.header("location").into_iter().next()?;
    let target = target.trim();
    let from = path_of(&uri);
    // A page one folder down may be a front page itself.
    if from.trim_matches('/').split('/').count() < 2 || from.contains('?') {
        return None;
    }
    let is_same_host = match target.split_once("://") {
        Some((_, rest)) => {
            host_of(rest) == uri.split_once("://").map_or("", |(_, rest)| host_of(rest))
        }
        None => target.starts_with('/') && !target.starts_with("//"),
    };
    let path = if target.contains("://") {
        path_of(target)
    } else {
        target
    };
    (is_same_host && is_front_page(path)).then(|| "redirects to the front page".to_owned())
}

fn host_of(rest: &str) -> &str {
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    host.strip_prefix("www.").unwrap_or(host)
}

/// Returns path and query of an absolute URI.
fn path_of(uri: &str) -> &str {
    let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    rest.find(['/', '?', '#']).map_or("", |at| &rest[at..])
}

fn is_front_page(path: &str) -> bool {
    matches!(path, "" | "/" | "/index.html" | "/index.htm" | "/index.php")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use opilio_plugin::testing::{VisitFacts, document, visit};

    use super::*;

    fn judge(settings: Settings, page: &Document) -> Ruling {
        let plugin = Soft404::new(settings).unwrap();
        plugin.judge_document(&Stage::PostFetch, page, &visit(VisitFacts::default()))
    }

    #[track_caller]
    fn check(html: &str, expected: bool) {
        let page = document("http://e.org/a")
            .media_type("text/html")
            .text(html);
        assert_eq!(judge(Settings::default(), &page), Ruling::pass());
        assert_eq!(!page.annotations().is_empty(), expected, "{html}");
    }

    fn long(title: &str, heading: &str) -> String {
        format!(
            "<title>{title}</title><h1>{heading}</h1>{}",
            "<p>text ".repeat(1_000)
        )
    }

    #[test]
    fn titles_of_error_pages_are_recognised_in_many_languages() {
        for title in [
            "Page Not Found",
            "404 - Page not found | Example",
            "Example » Seite nicht gefunden",
            "Erreur 404 – Le Site",
            "Oops! Page not found.",
            "P&aacute;gina no encontrada",
            "Siden findes ikke - Avisen",
            "Síða fannst ekki",
            "Страница не найдена",
            "ページが見つかりません｜例",
        ] {
            check(&long(title, ""), true);
        }
    }

    #[test]
    fn titles_of_articles_are_not_recognised() {
        for title in [
            "How to fix \"page not found\" errors",
            "HTTP 404 explained",
            "Room 404",
            "Lost and not found",
            "404",
            "Not found",
            "The page not found in the book",
        ] {
            check(&long(title, "Page not found"), false);
        }
    }

    #[test]
    fn headings_count_only_on_short_pages() {
        check(
            "<title>Example</title><h1>Page not found</h1><p>Try the search.",
            true,
        );
        check("<title>404</title><p>nothing", true);
        check("<title>Example</title><h1>Welcome</h1>", false);
        check(&long("Example", "Page not found"), false);
    }

    #[test]
    fn other_statuses_and_front_pages_are_ignored() {
        let html = "<title>Page not found</title>";
        for (uri, status) in [
            ("http://e.org/a", 404),
            ("http://e.org/", 200),
            ("http://e.org", 200),
        ] {
            let page = document(uri)
                .status(status)
                .media_type("text/html")
                .text(html);
            judge(Settings::default(), &page);
            assert_eq!(page.annotations(), [""; 0], "{uri} {status}");
        }
    }

    #[test]
    fn redirects_to_the_front_page_count_if_the_settings_say_so() {
        let redirect = |from: &str, to: &str| {
            let page = document(from).status(302).header("Location", to).text("");
            let settings = Settings {
                redirects_home: true,
                ..Settings::default()
            };
            judge(settings, &page);
            judge(Settings::default(), &page);
            page.annotations().len()
        };
        assert_eq!(redirect("http://e.org/a/b.html", "/"), 1);
        assert_eq!(redirect("http://e.org/a/b.html", "https://www.e.org/"), 1);
        assert_eq!(redirect("http://e.org/a/b.html", "https://other.org/"), 0);
        assert_eq!(redirect("http://e.org/index.php", "/"), 0);
        assert_eq!(redirect("http://e.org/a/b.html", "/a/"), 0);
        assert_eq!(redirect("http://e.org/a/b.html", "//other.org/"), 0);
    }

    #[test]
    fn settings_add_phrases_and_choose_the_effect() {
        let page = |html: &str| {
            document("http://e.org/a")
                .media_type("text/html")
                .text(html)
        };
        let with = |then| Settings {
            then,
            phrases: vec!["Gone Fishing!".to_owned()],
            ..Settings::default()
        };
        let fishing = page("<title>gone fishing | Example</title>");
        assert_eq!(judge(with(Then::Reject), &fishing).verdict, Verdict::Reject);
        assert_eq!(
            judge(with(Then::Retry), &fishing).verdict,
            Verdict::Retry(86_400_000)
        );
        let blank = Settings {
            phrases: vec!["–".to_owned()],
            ..Settings::default()
        };
        assert_eq!(Soft404::new(blank).err().unwrap()[0].pointer, "/phrases/0");
    }
}

//! Filters pages by language, for collections by language rather than by domain, such as pages in Danish on any host. In
//! `pre-extract`, links of pages in other languages are not followed. In `archive`, such pages are not stored.
//!
//! The most frequent words of a language identify it on pages of a few dozen words. The declared language counts only on
//! shorter pages, because it often comes from a template.

use std::collections::HashMap;

use opilio_plugin::prelude::*;

mod words;

use words::LANGUAGES;

const HTML: [&str; 2] = ["text/html", "application/xhtml+xml"];

/// At least one word in this many must be a frequent word of the language. Other pages are lists, tables or names.
const WORDS_PER_MATCH_MAX: usize = 12;

/// Maximum words that are read of a page.
const WORDS_MAX: usize = 5_000;

/// Elements whose content is not text of the page.
const SKIPPED_ELEMENTS: [&str; 4] = ["script", "style", "template", "noscript"];

/// Settings in the profile.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Codes of the wanted languages: cs, da, de, en, es, fi, fr, it, nl, no, pl, pt, sk, sv. If the list is empty, no page is
    /// rejected, and pages are only annotated.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub languages: Vec<String>,
    /// Minimum number of words for detection by words. On shorter pages, the declared language counts.
    #[schemars(range(min = 1), extend("x-opilio-overridable" = true))]
    pub words_min: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            languages: Vec::new(),
            words_min: 30,
        }
    }
}

/// The configured plugin.
pub struct PageLanguage {
    wanted: Vec<String>,
    words_min: usize,
    /// Languages of each word, as indexes into [`LANGUAGES`].
    words: HashMap<&'static str, Vec<usize>>,
}

impl Plugin for PageLanguage {
    const NAME: &'static str = "page-language";
    const SUMMARY: &'static str = "Rejects pages in other languages than the wanted ones.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let known = |code: &String| LANGUAGES.iter().any(|(known, _)| known == code);
        let faults = settings
            .languages
            .iter()
            .enumerate()
            .filter(|(_, code)| !known(code))
            .map(|(n, code)| {
                let problem = format!("{code:?} is not a supported language code");
                SettingsFault::new(format!("/languages/{n}"), problem)
            })
            .collect();
        let mut words = HashMap::<_, Vec<usize>>::new();
        for (at, (_, list)) in LANGUAGES.iter().enumerate() {
            for word in list.split_whitespace() {
                words.entry(word).or_default().push(at);
            }
        }
        let plugin = Self {
            wanted: settings.languages,
            words_min: settings.words_min,
            words,
        };
        none_or(faults, plugin)
    }
}

impl Filter for PageLanguage {
    fn judge_document(&self, _stage: &Stage, document: &Document, _visit: &Visit) -> Ruling {
        let media_type = document.media_type();
        if document.fragment().is_some() || !HTML.contains(&media_type.as_str()) {
            return Ruling::pass();
        }
        let page = document.text();
        let Some(found) = self.detect(&page) else {
            return Ruling::pass();
        };
        document.annotate(&format!("language:{found}"));
        count(&format!("pages-{found}"), 1);
        match self.wanted.is_empty() || self.wanted.iter().any(|wanted| wanted == found) {
            true => Ruling::pass(),
            false => Ruling::reject(format!("written in {found}")),
        }
    }
}

impl PageLanguage {
    /// Detects the language of a page. Returns `None` if neither its words nor its declaration identify a known language.
    fn detect(&self, page: &str) -> Option<&'static str> {
        let (mut length, mut counts) = (0, [0; LANGUAGES.len()]);
        let texts = Texts(page);
        let words = texts.flat_map(|text| text.split(|c: char| !c.is_alphabetic()));
        for word in words.filter(|word| !word.is_empty()).take(WORDS_MAX) {
            length += 1;
            let languages = self.words.get(word.to_lowercase().as_str());
            for &language in languages.into_iter().flatten() {
                counts[language] += 1;
            }
        }
        if length < self.words_min {
            return declared_language(page);
        }
        let (best, _) = counts.iter().enumerate().max_by_key(|(_, count)| **count)?;
        let is_unique = counts
            .iter()
            .filter(|count| **count == counts[best])
            .count()
            == 1;
        (is_unique && counts[best] * WORDS_PER_MATCH_MAX >= length).then(|| LANGUAGES[best].0)
    }
}

/// Returns the language that the `html` tag declares: `<html lang="da-DK">`.
fn declared_language(page: &str) -> Option<&'static str> {
    let page = page.get(..2_048).unwrap_or(page).to_ascii_lowercase();
    let (_, rest) = page.split_once("<html")?;
    let (tag, _) = rest.split_once('>')?;
    let (_, value) = tag.split_once("lang=")?;
    let value = value.trim_start_matches(['"', '\'']);
    let code = value.split(|c: char| !c.is_ascii_alphabetic()).next()?;
    // Both written forms of Norwegian count as one language.
    let code = match code {
        "nb" | "nn" => "no",
        code => code,
    };
    LANGUAGES
        .iter()
        .find(|(known, _)| *known == code)
        .map(|known| known.0)
}

/// The texts of a page between its tags.
struct Texts<'p>(&'p str);

impl<'p> Iterator for Texts<'p> {
    type Item = &'p str;

    fn next(&mut self) -> Option<&'p str> {
        if self.0.is_empty() {
            return None;
        }
        let (text, tag) = match self.0.split_once('<') {
            Some((text, tag)) => (text, tag),
            None => (self.0, ""),
        };
        self.0 = after_tag(tag);
        Some(text)
    }
}

/// Returns the text after a tag or a comment, or after the end of a skipped element.
fn after_tag(tag: &str) -> &str {
    if let Some(comment) = tag.strip_prefix("!--") {
        return comment.split_once("-->").map_or("", |(_, rest)| rest);
    }
    let rest = tag.split_once('>').map_or("", |(_, rest)| rest);
    let skipped = SKIPPED_ELEMENTS.into_iter().find(|name| {
        let start = tag.get(..name.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(name))
    });
    let Some(name) = skipped else { return rest };
    let mut ends = rest.match_indices("</").map(|(at, _)| &rest[at + 2..]);
    let end = ends.find(|end| {
        let start = end.get(..name.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(name))
    });
    end.and_then(|end| end.split_once('>'))
        .map_or("", |(_, rest)| rest)
}

opilio_plugin::export!(filters: [PageLanguage]);

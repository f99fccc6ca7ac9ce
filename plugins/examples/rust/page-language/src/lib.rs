//! The language of a page, for collections by language rather than by domain: pages in Danish on any host. In `pre-extract`, links
//! of pages in other languages are not followed; in `archive`, such pages are not stored.
//!
//! The words that people write most tell languages apart well enough from some dozens of words on. What a page declares
//! counts only where it is too short for that, since pages declare what their templates do.

use std::collections::HashMap;

use opilio_plugin::prelude::*;

mod words;

use words::LANGUAGES;

const HTML: [&str; 2] = ["text/html", "application/xhtml+xml"];

/// Pages with less of a language's own words than one in this many are lists, tables or names: no language is found.
const ONE_OF: usize = 12;

/// More of a page says nothing new.
const WORDS_MAX: usize = 5_000;

/// Elements whose content is no text of the page.
const NOT_READ: [&str; 4] = ["script", "style", "template", "noscript"];

/// Settings of a profile.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Languages whose pages are wanted, by their codes: cs, da, de, en, es, fi, fr, it, nl, no, pl, pt, sk, sv. With none
    /// nothing is rejected, and the annotation is all.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub languages: Vec<String>,
    /// Words below which a page is too short to be judged by them.
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
    /// Of each word the languages that have it, by their places in [`LANGUAGES`].
    words: HashMap<&'static str, Vec<usize>>,
}

impl Plugin for PageLanguage {
    const NAME: &'static str = "page-language";
    const SUMMARY: &'static str =
        "Rejects pages that are written in other languages than those wanted.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let known = |code: &String| LANGUAGES.iter().any(|(known, _)| known == code);
        let faults = settings
            .languages
            .iter()
            .enumerate()
            .filter(|(_, code)| !known(code))
            .map(|(n, code)| {
                let problem = format!("{code:?} is not the code of a language that is known here");
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
        let Some(found) = self.read(&page) else {
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
    /// The language of a page; none where neither its words nor its first tag say one that is known.
    fn read(&self, page: &str) -> Option<&'static str> {
        let (mut seen, mut counts) = (0, [0; LANGUAGES.len()]);
        let texts = Texts(page);
        let words = texts.flat_map(|text| text.split(|c: char| !c.is_alphabetic()));
        for word in words.filter(|word| !word.is_empty()).take(WORDS_MAX) {
            seen += 1;
            let languages = self.words.get(word.to_lowercase().as_str());
            for &language in languages.into_iter().flatten() {
                counts[language] += 1;
            }
        }
        if seen < self.words_min {
            return declared(page);
        }
        let (best, _) = counts.iter().enumerate().max_by_key(|(_, count)| **count)?;
        let is_one = counts
            .iter()
            .filter(|count| **count == counts[best])
            .count()
            == 1;
        (is_one && counts[best] * ONE_OF >= seen).then(|| LANGUAGES[best].0)
    }
}

/// The language that the first tag with one declares: `<html lang="da-DK">`.
fn declared(page: &str) -> Option<&'static str> {
    let page = page.get(..2_048).unwrap_or(page).to_ascii_lowercase();
    let (_, behind) = page.split_once("<html")?;
    let (tag, _) = behind.split_once('>')?;
    let (_, value) = tag.split_once("lang=")?;
    let value = value.trim_start_matches(['"', '\'']);
    let code = value.split(|c: char| !c.is_ascii_alphabetic()).next()?;
    // Both ways to write Norwegian are one here.
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
        self.0 = behind(tag);
        Some(text)
    }
}

/// The text behind a tag or comment, or behind the end of an element that is not read.
fn behind(tag: &str) -> &str {
    if let Some(comment) = tag.strip_prefix("!--") {
        return comment.split_once("-->").map_or("", |(_, rest)| rest);
    }
    let rest = tag.split_once('>').map_or("", |(_, rest)| rest);
    let skipped = NOT_READ.into_iter().find(|name| {
        let begin = tag.get(..name.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(name))
    });
    let Some(name) = skipped else { return rest };
    let mut ends = rest.match_indices("</").map(|(at, _)| &rest[at + 2..]);
    let end = ends.find(|end| {
        let begin = end.get(..name.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(name))
    });
    end.and_then(|end| end.split_once('>'))
        .map_or("", |(_, rest)| rest)
}

opilio_plugin::export!(filters: [PageLanguage]);

//! `keyword-precedence`: ranks links from pages about a subject first. A focused crawl follows the fetched content this way, as
//! described in the notes on precedence of Heritrix.

use memchr::memmem::Finder;
use opilio_plugin::prelude::*;

use crate::words::Words;

/// Media types besides `text/*` whose text is searched.
const TEXTS: [&str; 5] = [
    "application/xhtml+xml",
    "application/xml",
    "application/json",
    "application/rss+xml",
    "application/atom+xml",
];

/// Ranks links by keywords.
pub struct KeywordPrecedence {
    settings: Settings,
    /// Keywords to find in the text of pages.
    on_pages: Vec<Finder<'static>>,
    /// Keywords to find in URIs.
    in_addresses: Vec<Finder<'static>>,
}

/// Settings of `keyword-precedence`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Words and phrases of the subject. Case is ignored. Empty: nothing is ranked.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub keywords: Vec<String>,
    /// Precedence of links with a keyword in their URI.
    #[schemars(range(min = 1, max = 255), extend("x-opilio-overridable" = true))]
    pub in_address: u8,
    /// Precedence of links found on a page that has enough keywords.
    #[schemars(range(min = 1, max = 255), extend("x-opilio-overridable" = true))]
    pub on_page: u8,
    /// Precedence of all other links; 0 leaves them to the next plugin of the stack and to the profile.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: u8,
    /// Smallest number of keyword occurrences on a page about the subject.
    #[schemars(range(min = 1), extend("x-opilio-overridable" = true))]
    pub enough: u32,
    /// Whether keywords must be whole words. Languages that do not separate words need `false`.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub whole_words: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            keywords: Vec::new(),
            in_address: 1,
            on_page: 2,
            otherwise: 5,
            enough: 1,
            whole_words: true,
        }
    }
}

impl Plugin for KeywordPrecedence {
    const NAME: &'static str = "keyword-precedence";
    const SUMMARY: &'static str = "Ranks links by keywords on their page and in their URI.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut faults = Vec::new();
        let (mut on_pages, mut in_addresses) = (Vec::new(), Vec::new());
        for (index, keyword) in settings.keywords.iter().enumerate() {
            let phrase = normalise(Words::of(keyword, false));
            let bare = phrase.trim();
            if bare.is_empty() {
                faults.push(SettingsFault::new(
                    format!("/keywords/{index}"),
                    "no letter or digit in it; write a word or a phrase",
                ));
                continue;
            }
            let finder = |phrase: &str| {
                let needle = match settings.whole_words {
                    true => format!(" {phrase} "),
                    false => phrase.to_owned(),
                };
                Finder::new(needle.as_bytes()).into_owned()
            };
            on_pages.push(finder(bare));
            in_addresses.push(finder(bare));
            // URIs often contain phrases as one word.
            let joined = bare.replace(' ', "");
            if joined != bare {
                in_addresses.push(finder(&joined));
            }
        }
        match faults.is_empty() {
            true => Ok(Self {
                settings,
                on_pages,
                in_addresses,
            }),
            false => Err(faults),
        }
    }
}

impl Precedence for KeywordPrecedence {
    fn rank_candidates(
        &self,
        candidates: &Candidates<'_>,
        document: Option<&Document>,
    ) -> Vec<Option<u8>> {
        let settings = &self.settings;
        let otherwise = Some(settings.otherwise).filter(|rank| *rank > 0);
        let by_page = match document {
            _ if settings.keywords.is_empty() => return vec![None; candidates.len()],
            // Seeds have no page. Only their URI ranks them.
            None => None,
            Some(page) if self.is_about(page) => {
                count("pages", 1);
                page.annotate("keywords");
                Some(settings.on_page)
            }
            Some(_) => otherwise,
        };
        let rank = |candidate: CandidateView<'_>| {
            let address = normalise(Words::of(&percent_decode(candidate.uri()), false));
            let has_one = |finder: &Finder<'_>| finder.find(address.as_bytes()).is_some();
            match self.in_addresses.iter().any(has_one) {
                true => Some(settings.in_address.min(by_page.unwrap_or(u8::MAX))),
                false => by_page,
            }
        };
        candidates.iter().map(rank).collect()
    }
}

impl KeywordPrecedence {
    /// Returns `true` if the page has enough keywords.
    fn is_about(&self, page: &Document) -> bool {
        let media_type = page.media_type();
        if !media_type.starts_with("text/") && !TEXTS.contains(&media_type.as_str()) {
            return false;
        }
        let is_markup = media_type == "text/html" || media_type.ends_with("xml");
        let text = normalise(Words::of(&page.text(), is_markup));
        let mut found = 0;
        for finder in &self.on_pages {
            let mut at = 0;
            while let Some(place) = finder.find(&text.as_bytes()[at..]) {
                found += 1;
                if found >= self.settings.enough {
                    return true;
                }
                // The blank after a word is also the blank before the next one.
                at += place + (finder.needle().len() - 1).max(1);
            }
        }
        false
    }
}

/// Joins words in lower case, with a blank before and after each.
fn normalise<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let mut text = String::from(" ");
    for word in words {
        text.extend(word.chars().flat_map(char::to_lowercase));
        text.push(' ');
    }
    text
}

/// A URI with its percent-escapes decoded. Invalid UTF-8 becomes U+FFFD.
fn percent_decode(uri: &str) -> String {
    let bytes = uri.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = uri
            .get(at + 1..at + 3)
            .filter(|digits| byte == b'%' && digits.bytes().all(|c| c.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(escaped) => {
                plain.push(escaped);
                at += 3;
            }
            None => {
                plain.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_percent_escapes_are_decoded() {
        for (uri, expected) in [
            ("http://a.org/folk%20dance", "http://a.org/folk dance"),
            ("http://a.org/%C3%BEj%C3%B3%C3%B0", "http://a.org/þjóð"),
            ("http://a.org/100%", "http://a.org/100%"),
            ("http://a.org/%zz%4", "http://a.org/%zz%4"),
            ("http://a.org/%+1", "http://a.org/%+1"),
        ] {
            assert_eq!(percent_decode(uri), expected);
        }
    }
}

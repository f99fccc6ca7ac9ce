//! `marked-sections`: removes sections that publishers have marked as not part of a page's content, between two comments or in
//! an element. For example, a site may show the story of the day on all pages of its archive. If the site marks that box, the
//! archive pages stay unchanged (Sigurðsson 2005, chapter 8, mentions publishers who offered such marks).

use opilio_plugin::prelude::*;

use crate::html_strip::selectors;
use crate::page::{self, Event, Names};
use crate::selector::Selector;

/// Largest number of pairs of comments.
const PAIRS_MAX: usize = 64;

/// Removes marked sections.
pub struct MarkedSections {
    settings: Settings,
    selectors: Vec<Selector>,
    names: Names,
}

/// Settings of `marked-sections`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Pairs of comments. The text from the first to the second is ignored, both included. Case and surrounding blanks of the
    /// comments are ignored.
    #[schemars(length(max = 64), extend("x-opilio-overridable" = true))]
    pub pairs: Vec<Pair>,
    /// CSS selectors, as in html-strip, of elements to ignore.
    #[schemars(length(max = 256), extend("x-opilio-overridable" = true))]
    pub selectors: Vec<String>,
    /// Largest document to examine, in bytes. The payload digest decides on larger ones.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub max_size: u64,
}

/// Two comments that enclose a section.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pair {
    /// Text of the comment that begins a section.
    pub begin: String,
    /// Text of the comment that ends a section.
    pub end: String,
}

impl Default for Settings {
    /// Marks for archives, and marks with which publishers keep boxes and menus out of search indexes: those of ht://Dig,
    /// mnoGoSearch, Google's appliance, Yandex and Yahoo.
    fn default() -> Self {
        let pair = |(begin, end): (&str, &str)| Pair {
            begin: begin.to_owned(),
            end: end.to_owned(),
        };
        Self {
            pairs: [
                ("noarchive-start", "noarchive-end"),
                ("noarchive", "/noarchive"),
                ("noindex", "/noindex"),
                ("googleoff: all", "googleon: all"),
                ("googleoff: index", "googleon: index"),
                ("htdig_noindex", "/htdig_noindex"),
                ("UdmComment", "/UdmComment"),
            ]
            .map(pair)
            .into(),
            selectors: ["[data-noarchive]", ".robots-nocontent", "noindex"]
                .map(str::to_owned)
                .into(),
            max_size: 1024 * 1024,
        }
    }
}

impl Plugin for MarkedSections {
    const NAME: &'static str = "marked-sections";
    const SUMMARY: &'static str = "Leaves out of the digest sections that publishers have marked as not part of a page's content.";
    type Settings = Settings;

    fn new(mut settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut faults = Vec::new();
        if settings.pairs.len() > PAIRS_MAX {
            let problem = format!("more than {PAIRS_MAX} pairs");
            faults.push(SettingsFault::new("/pairs", problem));
        }
        for (at, pair) in settings.pairs.iter_mut().enumerate() {
            for (key, mark) in [("begin", &mut pair.begin), ("end", &mut pair.end)] {
                *mark = mark.trim().to_lowercase();
                if mark.is_empty() {
                    let problem =
                        "an empty comment marks nothing; write the text between `<!--` and `-->`";
                    faults.push(SettingsFault::new(format!("/pairs/{at}/{key}"), problem));
                } else if mark.contains("-->") || mark.starts_with("<!--") {
                    let problem = "write the text between `<!--` and `-->`, without these";
                    faults.push(SettingsFault::new(format!("/pairs/{at}/{key}"), problem));
                }
            }
            if pair.begin == pair.end && !pair.begin.is_empty() {
                let problem = "the same comment as `begin`; write another one";
                faults.push(SettingsFault::new(format!("/pairs/{at}/end"), problem));
            }
        }
        let selectors = selectors(&settings.selectors, &mut faults);
        let names = Names::of(selectors.iter());
        none_or(
            faults,
            Self {
                settings,
                selectors,
                names,
            },
        )
    }

    fn handles() -> Handles {
        Handles::media_types(&["text/html", "application/xhtml+xml"])
    }
}

impl DigestStripper for MarkedSections {
    fn strip(&self, document: &Document) -> Result<Vec<Span>, StripProblem> {
        let length = document.length();
        if length > self.settings.max_size {
            return Err(StripProblem::TooLarge(length));
        }
        let Some(text) = page::text_of(document) else {
            count("unreadable-encoding", 1);
            return Ok(Vec::new());
        };
        let pairs = &self.settings.pairs;
        // Start of the open section of each pair, if one is open. Sections of one pair do not nest.
        let mut section_starts: Vec<Option<usize>> = vec![None; pairs.len()];
        let mut sections = Vec::new();
        let elements = page::walk(&text, &self.names, |event| match event {
            Event::Start { open, .. } => {
                self.selectors.iter().any(|selector| selector.matches(open))
            }
            Event::Comment { text, span } => {
                let mark = text.trim().to_lowercase();
                for (pair, section_start) in pairs.iter().zip(&mut section_starts) {
                    if mark == pair.begin {
                        section_start.get_or_insert(span.0);
                    } else if mark == pair.end
                        && let Some(start) = section_start.take()
                    {
                        sections.push((start, span.1));
                    }
                }
                false
            }
        });
        // A section without an end would remove the rest of the page. It counts as content, because it is probably a mistake.
        let unended = section_starts.iter().flatten().count();
        if unended > 0 {
            count("unended", unended as u64);
        }
        let spans = sections.into_iter().chain(elements);
        Ok(spans
            .filter(|(start, end)| start < end)
            .map(|(start, end)| Span::from(start..end))
            .collect())
    }
}

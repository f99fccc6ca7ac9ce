//! `marked-sections`: what publishers have marked as no part of a page's content: between two comments, or in an element
//! that says so. A site whose archive pages all carry the story of the day can mark that box, and its archive stays
//! unchanged (Sigurðsson 2005, chapter 8, tells of publishers who offered to).

use opilio_plugin::prelude::*;

use crate::html_strip::selectors;
use crate::page::{self, Event, Names};
use crate::selector::Selector;

/// Most pairs of comments.
const PAIRS_MAX: usize = 64;

/// Takes marked sections out.
pub struct MarkedSections {
    settings: Settings,
    selectors: Vec<Selector>,
    names: Names,
}

/// Settings of `marked-sections`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Comments between which nothing counts, themselves included: what stands in them, without case and blanks around.
    #[schemars(length(max = 64), extend("x-opilio-overridable" = true))]
    pub pairs: Vec<Pair>,
    /// CSS selectors, as html-strip reads them, of elements that do not count.
    #[schemars(length(max = 256), extend("x-opilio-overridable" = true))]
    pub selectors: Vec<String>,
    /// Largest document, in bytes, that is looked at; nothing is said about larger ones, so their content state is unknown.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub max_size: u64,
}

/// Two comments.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pair {
    /// Begins a section.
    pub begin: String,
    /// Ends it.
    pub end: String,
}

impl Default for Settings {
    /// Marks made for archives, and those with which publishers have long kept boxes and menus out of search engines'
    /// indexes: ht://Dig's, mnoGoSearch's, Google's appliance's, Yandex's, Yahoo's.
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
    const SUMMARY: &'static str =
        "Leaves out of the digest what publishers have marked as no part of a page's content.";
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
                    let problem = "an empty comment marks nothing; write what stands between `<!--` and `-->`";
                    faults.push(SettingsFault::new(format!("/pairs/{at}/{key}"), problem));
                } else if mark.contains("-->") || mark.starts_with("<!--") {
                    let problem = "write what stands between `<!--` and `-->`, without these";
                    faults.push(SettingsFault::new(format!("/pairs/{at}/{key}"), problem));
                }
            }
            if pair.begin == pair.end && !pair.begin.is_empty() {
                let problem = "the same as the begin; write another comment";
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
        // Where a section of each pair began; sections of one pair do not nest.
        let mut begun: Vec<Option<usize>> = vec![None; pairs.len()];
        let mut sections = Vec::new();
        let elements = page::walk(&text, &self.names, |event| match event {
            Event::Start { open, .. } => {
                self.selectors.iter().any(|selector| selector.matches(open))
            }
            Event::Comment { text, span } => {
                let mark = text.trim().to_lowercase();
                for (pair, begun) in pairs.iter().zip(&mut begun) {
                    if mark == pair.begin {
                        begun.get_or_insert(span.0);
                    } else if mark == pair.end
                        && let Some(start) = begun.take()
                    {
                        sections.push((start, span.1));
                    }
                }
                false
            }
        });
        // A section that is never ended would hide the rest of the page: it is taken for a mistake, and counts.
        let unended = begun.iter().flatten().count();
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

//! `content-regex`: judged by what a document says.
//!
//! As it stands by default it is for crawls about a subject: in the stack `pre-extract` pages that speak of none of the keywords
//! are archived, and their links are not followed.

use std::borrow::Cow;

use opilio_plugin::prelude::*;

use crate::byte_size::ByteSize;
use crate::decision::{Decision, Decisions, Finding};
use crate::list;
use crate::patterns::Patterns;

/// Decides on documents in which one of its keywords or expressions is found.
pub struct ContentRegex {
    /// Lower-case.
    keywords: Vec<String>,
    patterns: Patterns,
    tables: Vec<String>,
    size_max: u64,
    decisions: Decisions,
}

/// Settings of `content-regex`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Words and phrases, one of which stands in the text; case does not count, in any language. They are found in words
    /// as well: `island` in `islands`.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub keywords: Vec<String>,
    /// Regular expressions to be found in the text, mark-up included: `(?i)\bcod wars?\b`.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub patterns: Vec<String>,
    /// Names of the profile's tables of regular expressions that count too: the host looks for all of them at once.
    #[schemars(extend("x-opilio-overridable" = true, "x-opilio-table" = true))]
    pub tables: Vec<String>,
    /// On larger documents nothing is decided.
    #[schemars(extend("x-opilio-overridable" = true, "x-opilio-expert" = true))]
    pub size_max: ByteSize,
    /// What is decided on documents in which something is found.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// What is decided on text in which nothing is found. On what is not text, or has no content (yet), nothing is.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: Decision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            keywords: Vec::new(),
            patterns: Vec::new(),
            tables: Vec::new(),
            // Text, lower-case text and what the host makes of it stay below the 64 MiB of a plugin.
            size_max: ByteSize(8 << 20),
            then: Decision::Pass,
            otherwise: Decision::Reject,
        }
    }
}

impl Plugin for ContentRegex {
    const NAME: &'static str = "content-regex";
    const SUMMARY: &'static str = "Rejects documents in which no keyword or expression is found, or accepts those in which one is.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let keyword = |text: &str| match text.trim() {
            "" => Err("an empty keyword stands in every text"),
            keyword => Ok(keyword.to_lowercase()),
        };
        let (keywords, patterns) = list::both(
            list::each("keywords", &settings.keywords, keyword),
            Patterns::new("patterns", &settings.patterns),
        )?;
        Ok(Self {
            keywords,
            patterns,
            tables: settings.tables,
            size_max: settings.size_max.0,
            decisions: Decisions {
                then: settings.then,
                otherwise: settings.otherwise,
            },
        })
    }
}

impl Filter for ContentRegex {
    fn judge_document(&self, _: &Stage, document: &Document, _: &Visit) -> Ruling {
        let nothing_listed =
            self.keywords.is_empty() && self.patterns.is_empty() && self.tables.is_empty();
        let length = document.length();
        if nothing_listed || length == 0 || length > self.size_max || document.charset().is_none() {
            return Ruling::pass();
        }
        self.decisions
            .rule(Finding::by(self.found_in(&document.text()), "no keyword"))
    }
}

impl ContentRegex {
    /// What was found first, and in what.
    fn found_in(&self, text: &str) -> Option<String> {
        if !self.keywords.is_empty() {
            let text = lower(text);
            let mut keywords = self.keywords.iter();
            let found = keywords.find(|keyword| {
                memchr::memmem::find(text.as_bytes(), keyword.as_bytes()).is_some()
            });
            if let Some(keyword) = found {
                return Some(["keyword ", keyword].concat());
            }
        }
        if let Some(pattern) = self.patterns.first_in(text) {
            return Some(["matches ", pattern].concat());
        }
        let mut tables = self.tables.iter();
        let row = tables.find_map(|name| table(name).find(text))?;
        Some(["matches ", &row.key].concat())
    }
}

/// Text without its capitals. That of ASCII alone, which is most, is a tenth of the work.
fn lower(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Owned(text.to_lowercase())
    }
}

//! `content-regex`: decides by the text of a document.
//!
//! The defaults are for crawls of one subject. In the stack `pre-extract`, pages without any of the keywords are archived, but
//! their links are not followed.

use std::borrow::Cow;

use opilio_plugin::prelude::*;

use crate::byte_size::ByteSize;
use crate::decision::{Decision, Decisions, Finding};
use crate::list;
use crate::patterns::Patterns;

/// Decides on documents that contain one of its keywords or match one of its expressions.
pub struct ContentRegex {
    /// Keywords in lower case.
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
    /// Words and phrases to find in the text. Case is ignored, in any language. Parts of words match too: `island` in
    /// `islands`.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub keywords: Vec<String>,
    /// Regular expressions to find in the text, mark-up included: `(?i)\bcod wars?\b`.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub patterns: Vec<String>,
    /// Names of tables of regular expressions in the profile that also count. The host looks for all of them at once.
    #[schemars(extend("x-opilio-overridable" = true, "x-opilio-table" = true))]
    pub tables: Vec<String>,
    /// Largest document to read. Larger documents get no decision.
    #[schemars(extend("x-opilio-overridable" = true, "x-opilio-expert" = true))]
    pub size_max: ByteSize,
    /// The decision on documents with a match.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// The decision on text without a match. Documents that are not text, or have no content (yet), get no decision.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: Decision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            keywords: Vec::new(),
            patterns: Vec::new(),
            tables: Vec::new(),
            // The text, its lower-case copy and the host's copy stay below the 64 MiB of a plugin.
            size_max: ByteSize(8 << 20),
            then: Decision::Pass,
            otherwise: Decision::Reject,
        }
    }
}

impl Plugin for ContentRegex {
    const NAME: &'static str = "content-regex";
    const SUMMARY: &'static str =
        "Rejects documents without a listed keyword or expression, or accepts those with one.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let keyword = |text: &str| match text.trim() {
            "" => Err("an empty keyword matches every text"),
            keyword => Ok(keyword.to_lowercase()),
        };
        let (keywords, patterns) = list::both(
            list::parse_each("keywords", &settings.keywords, keyword),
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
        let is_unset =
            self.keywords.is_empty() && self.patterns.is_empty() && self.tables.is_empty();
        let length = document.length();
        if is_unset || length == 0 || length > self.size_max || document.charset().is_none() {
            return Ruling::pass();
        }
        self.decisions.rule(Finding::from_match(
            self.find(&document.text()),
            "no keyword",
        ))
    }
}

impl ContentRegex {
    /// Returns the first match, as the reason of the ruling.
    fn find(&self, text: &str) -> Option<String> {
        if !self.keywords.is_empty() {
            let text = lower_case(text);
            let mut keywords = self.keywords.iter();
            let found = keywords.find(|keyword| {
                memchr::memmem::find(text.as_bytes(), keyword.as_bytes()).is_some()
            });
            if let Some(keyword) = found {
                return Some(["keyword ", keyword].concat());
            }
        }
        if let Some(pattern) = self.patterns.first_match(text) {
            return Some(["matches ", pattern].concat());
        }
        let mut tables = self.tables.iter();
        let row = tables.find_map(|name| table(name).find(text))?;
        Some(["matches ", &row.key].concat())
    }
}

/// Returns the text in lower case. ASCII text, the common case, takes a tenth of the time.
fn lower_case(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Owned(text.to_lowercase())
    }
}

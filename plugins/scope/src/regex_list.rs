//! `regex-list`: decides by regular expressions on the URI.

use opilio_plugin::prelude::*;

use crate::decision::{Decision, Decisions, Finding};
use crate::patterns::Patterns;

/// Decides on URIs that match any, or all, of its expressions.
pub struct RegexList {
    patterns: Patterns,
    tables: Vec<String>,
    all: bool,
    decisions: Decisions,
}

/// Settings of `regex-list`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Regular expressions to find anywhere in the URI; `^` and `$` are its ends. For more than a few, use a table.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub patterns: Vec<String>,
    /// Names of tables of regular expressions in the profile that also count. The host looks for all of them at once, and
    /// re-reads them while the crawl runs.
    #[schemars(extend("x-opilio-overridable" = true, "x-opilio-table" = true))]
    pub tables: Vec<String>,
    /// `true` if every expression, and one of each table, must match. Otherwise one is enough.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub all: bool,
    /// The decision on URIs that match.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// The decision on other URIs.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: Decision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            patterns: Vec::new(),
            tables: Vec::new(),
            all: false,
            then: Decision::Accept,
            otherwise: Decision::Pass,
        }
    }
}

impl Plugin for RegexList {
    const NAME: &'static str = "regex-list";
    const SUMMARY: &'static str = "Accepts or rejects URIs that match regular expressions.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self {
            patterns: Patterns::new("patterns", &settings.patterns)?,
            tables: settings.tables,
            all: settings.all,
            decisions: Decisions {
                then: settings.then,
                otherwise: settings.otherwise,
            },
        })
    }
}

impl Filter for RegexList {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        self.decisions.rule(self.find(candidate))
    }
}

impl RegexList {
    fn find(&self, candidate: CandidateView<'_>) -> Finding {
        if self.patterns.is_empty() && self.tables.is_empty() {
            return Finding::Unknown;
        }
        let uri = candidate.uri();
        let mut tables = self.tables.iter();
        if self.all {
            let found = self.patterns.first_mismatch(uri).is_none()
                && tables.all(|name| candidate.is_in_table(name));
            return match found {
                true => Finding::matching("matches every expression"),
                false => Finding::not_matching("does not match every expression"),
            };
        }
        if let Some(pattern) = self.patterns.first_match(uri) {
            return Finding::matching(["matches ", pattern].concat());
        }
        let name = tables.find(|name| candidate.is_in_table(name));
        Finding::from_match(
            name.map(|name| ["in table ", name].concat()),
            "matches no expression",
        )
    }
}

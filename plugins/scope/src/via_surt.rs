//! `via-surt`: decides by the page that a URI was found on.

use opilio_plugin::prelude::*;

use crate::decision::{Decision, Decisions, Finding};
use crate::list;
use crate::prefixes::{Prefixes, parse_prefix};

/// Decides on URIs found on a page under one of its SURT prefixes.
pub struct ViaSurt {
    prefixes: Prefixes,
    tables: Vec<String>,
    decisions: Decisions,
}

/// Settings of `via-surt`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// SURT prefixes of pages, or URIs, which imply a prefix as in `surt-scope`.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub prefixes: Vec<String>,
    /// Names of tables of SURT prefixes in the profile that also count.
    #[schemars(extend("x-opilio-overridable" = true, "x-opilio-table" = true))]
    pub tables: Vec<String>,
    /// The decision on URIs found on such pages.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// The decision on URIs found on other pages. Seeds get no decision.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: Decision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            prefixes: Vec::new(),
            tables: Vec::new(),
            then: Decision::Accept,
            otherwise: Decision::Pass,
        }
    }
}

impl Plugin for ViaSurt {
    const NAME: &'static str = "via-surt";
    const SUMMARY: &'static str =
        "Accepts or rejects URIs that were found on pages under listed SURT prefixes.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let prefixes = list::parse_each("prefixes", &settings.prefixes, parse_prefix)?;
        Ok(Self {
            prefixes: prefixes.into_iter().collect(),
            tables: settings.tables,
            decisions: Decisions {
                then: settings.then,
                otherwise: settings.otherwise,
            },
        })
    }
}

impl Filter for ViaSurt {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        self.decisions.rule(self.find(candidate.via_surt()))
    }
}

impl ViaSurt {
    fn find(&self, via: Option<&str>) -> Finding {
        let Some(via) = via else {
            return Finding::Unknown;
        };
        if self.prefixes.is_empty() && self.tables.is_empty() {
            return Finding::Unknown;
        }
        if let Some(prefix) = self.prefixes.prefix_of(via) {
            return Finding::matching(["found under ", prefix].concat());
        }
        let mut tables = self.tables.iter();
        let name = tables.find(|name| table(name).find(via).is_some());
        Finding::from_match(
            name.map(|name| ["found on a page in table ", name].concat()),
            "found on none of the pages",
        )
    }
}

//! `surt-scope`: the sites, and parts of sites, of the crawl.

use opilio_plugin::prelude::*;

use crate::decision::{Decision, Decisions, Finding};
use crate::list;
use crate::prefixes::{Prefixes, parse_prefix};

/// Decides on URIs under one of its SURT prefixes.
pub struct SurtScope {
    prefixes: Prefixes,
    tables: Vec<String>,
    also_check_via: bool,
    decisions: Decisions,
}

/// Settings of `surt-scope`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// SURT prefixes such as `http://(org,example,`, or URIs, which imply a prefix: `http://example.org` covers the domain
    /// and its subdomains, `http://example.org/` covers only that host.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub prefixes: Vec<String>,
    /// Names of tables of SURT prefixes in the profile that also count, for lists that are long or change while the crawl runs.
    #[schemars(extend("x-opilio-overridable" = true, "x-opilio-table" = true))]
    pub tables: Vec<String>,
    /// `true` if the prefixes that the seeds imply count too.
    pub from_seeds: bool,
    /// Prefixes implied by the job's seeds. The crawl fills them in and keeps them current if `from-seeds` is set.
    #[schemars(extend("x-opilio-expert" = true))]
    pub seed_prefixes: Vec<String>,
    /// `true` if a URI also matches when the page it was found on is under a prefix.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub also_check_via: bool,
    /// The decision on URIs under a prefix.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// The decision on other URIs.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: Decision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            prefixes: Vec::new(),
            tables: Vec::new(),
            from_seeds: true,
            seed_prefixes: Vec::new(),
            also_check_via: false,
            then: Decision::Accept,
            otherwise: Decision::Pass,
        }
    }
}

impl Plugin for SurtScope {
    const NAME: &'static str = "surt-scope";
    const SUMMARY: &'static str =
        "Accepts or rejects URIs under the seeds or under listed SURT prefixes.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let seeds = match settings.from_seeds {
            true => settings.seed_prefixes.as_slice(),
            false => &[],
        };
        let (listed, seeds) = list::both(
            list::parse_each("prefixes", &settings.prefixes, parse_prefix),
            list::parse_each("seed-prefixes", seeds, parse_prefix),
        )?;
        Ok(Self {
            prefixes: listed.into_iter().chain(seeds).collect(),
            tables: settings.tables,
            also_check_via: settings.also_check_via,
            decisions: Decisions {
                then: settings.then,
                otherwise: settings.otherwise,
            },
        })
    }
}

impl Filter for SurtScope {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        self.decisions.rule(Finding::from_match(
            self.match_of(candidate),
            "under none of the prefixes",
        ))
    }
}

impl SurtScope {
    /// Returns the reason why the candidate matches: its own URI first, then its page.
    fn match_of(&self, candidate: CandidateView<'_>) -> Option<String> {
        if let Some(prefix) = self.prefixes.prefix_of(candidate.surt()) {
            // Every link of a site takes this path; `format!` takes five times as long.
            return Some(["under ", prefix].concat());
        }
        let mut tables = self.tables.iter();
        if let Some(name) = tables.find(|name| candidate.is_in_table(name)) {
            return Some(format!("in table {name}"));
        }
        if !self.also_check_via {
            return None;
        }
        let via = candidate.via_surt()?;
        if let Some(prefix) = self.prefixes.prefix_of(via) {
            return Some(format!("found under {prefix}"));
        }
        let mut tables = self.tables.iter();
        let name = tables.find(|name| table(name).find(via).is_some())?;
        Some(format!("found on a page in table {name}"))
    }
}

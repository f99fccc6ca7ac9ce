//! `path`: folders of hosts, by default those of the seeds.

use opilio_plugin::prelude::*;

use crate::decision::{Decision, Decisions, Finding};
use crate::list;
use crate::prefixes::{Prefixes, parse_prefix};

/// Decides on URIs in one of its folders.
pub struct Folders {
    folders: Prefixes,
    decisions: Decisions,
}

/// Settings of `path`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// URIs whose folders count, up to their last slash. `http://example.org/a/b` stands for all URIs in
    /// `http://example.org/a/`, on that host only, under http and https.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub paths: Vec<String>,
    /// `true` if the folders of the seeds count too.
    pub from_seeds: bool,
    /// Prefixes implied by the job's seeds. The crawl fills them in and keeps them current if `from-seeds` is set.
    #[schemars(extend("x-opilio-expert" = true))]
    pub seed_prefixes: Vec<String>,
    /// The decision on URIs in these folders.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// The decision on other URIs.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: Decision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            paths: Vec::new(),
            from_seeds: true,
            seed_prefixes: Vec::new(),
            then: Decision::Accept,
            otherwise: Decision::Pass,
        }
    }
}

impl Plugin for Folders {
    const NAME: &'static str = "path";
    const SUMMARY: &'static str =
        "Accepts or rejects URIs in the folders of the seeds or in listed folders.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut prefixes = list::parse_each("paths", &settings.paths, parse_prefix)?;
        if settings.from_seeds {
            prefixes.extend(settings.seed_prefixes);
        }
        Ok(Self {
            folders: prefixes.into_iter().map(on_one_host).collect(),
            decisions: Decisions {
                then: settings.then,
                otherwise: settings.otherwise,
            },
        })
    }
}

/// Closes the authority of a prefix that covers a whole domain, so that it covers one host.
fn on_one_host(mut prefix: String) -> String {
    if !prefix.contains(')') {
        prefix.push(')');
    }
    prefix
}

impl Filter for Folders {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        if self.folders.is_empty() {
            return Ruling::pass();
        }
        let folder = self.folders.prefix_of(candidate.surt());
        self.decisions.rule(Finding::from_match(
            folder.map(|folder| ["under ", folder].concat()),
            "in none of the folders",
        ))
    }
}

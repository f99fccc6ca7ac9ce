//! `domain`: whole domains, those of the seeds unless said otherwise.

use std::borrow::Cow;

use opilio_plugin::prelude::*;

use crate::decision::{Decision, Decisions, Finding};
use crate::list;
use crate::parts::SurtServer;
use crate::prefixes::{Prefixes, host_from};

/// Decides on what lies in one of its domains, subdomains included.
pub struct Domain {
    domains: Prefixes,
    decisions: Decisions,
}

/// Settings of `domain`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Domains such as `example.org`, which stand for themselves and all below them, at any port.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub domains: Vec<String>,
    /// Whether the domains of the seeds count too: their hosts without a leading `www`.
    pub from_seeds: bool,
    /// Prefixes that the job's seeds imply: filled in and kept current by the crawl where `from-seeds` is set.
    #[schemars(extend("x-opilio-expert" = true))]
    pub seed_prefixes: Vec<String>,
    /// What is decided on URIs in these domains.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// What is decided on others.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: Decision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            domains: Vec::new(),
            from_seeds: true,
            seed_prefixes: Vec::new(),
            then: Decision::Accept,
            otherwise: Decision::Pass,
        }
    }
}

impl Plugin for Domain {
    const NAME: &'static str = "domain";
    const SUMMARY: &'static str =
        "Accepts, or rejects, URIs in the domains of the seeds or in listed domains.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut domains = list::each("domains", &settings.domains, domain_from)?;
        if settings.from_seeds {
            let seeds = settings.seed_prefixes.iter();
            let hosts = seeds.filter_map(|prefix| SurtServer::of(prefix));
            domains.extend(hosts.map(|server| key_of(without_www(server.host)).into_owned()));
        }
        Ok(Self {
            domains: domains.into_iter().collect(),
            decisions: Decisions {
                then: settings.then,
                otherwise: settings.otherwise,
            },
        })
    }
}

/// What a domain of the settings is looked up by.
fn domain_from(text: &str) -> Result<String, String> {
    let host = host_from(text)?;
    match host.port.is_empty() {
        true => Ok(key_of(&host.labels).into_owned()),
        false => Err(format!(
            "`{text}` has a port; a domain counts at every port, `host` knows ports"
        )),
    }
}

/// `org,example,www,` without its last label, where there is more than a top-level domain before it.
fn without_www(host: &str) -> &str {
    match host.strip_suffix("www,") {
        Some(domain) if domain.matches(',').count() > 1 => domain,
        _ => host,
    }
}

/// What a host is looked up by. An address ends like a label, so that 10.0.0.1 is no domain of 10.0.0.12.
fn key_of(host: &str) -> Cow<'_, str> {
    match host.ends_with(',') {
        true => Cow::Borrowed(host),
        false => Cow::Owned([host, ","].concat()),
    }
}

impl Filter for Domain {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        self.decisions.rule(self.find(candidate.surt()))
    }
}

impl Domain {
    fn find(&self, surt: &str) -> Finding {
        if self.domains.is_empty() {
            return Finding::Unknown;
        }
        let Some(server) = SurtServer::of(surt) else {
            return Finding::is_not("on no server");
        };
        let key = key_of(server.host);
        let domain = self.domains.of(&key);
        let named = |host| SurtServer { host, port: "" }.name();
        Finding::by(
            domain.map(|domain| ["in ", &named(domain)].concat()),
            "in none of the domains",
        )
    }
}

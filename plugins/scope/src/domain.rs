//! `domain`: whole domains, by default those of the seeds.

use std::borrow::Cow;

use opilio_plugin::prelude::*;

use crate::decision::{Decision, Decisions, Finding};
use crate::list;
use crate::parts::SurtServer;
use crate::prefixes::{Prefixes, parse_host};

/// Decides on URIs in one of its domains, subdomains included.
pub struct Domain {
    domains: Prefixes,
    decisions: Decisions,
}

/// Settings of `domain`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Domains such as `example.org`. Each includes its subdomains, at any port.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub domains: Vec<String>,
    /// `true` if the domains of the seeds count too: their hosts without a leading `www`.
    pub from_seeds: bool,
    /// Prefixes implied by the job's seeds. The crawl fills them in and keeps them current if `from-seeds` is set.
    #[schemars(extend("x-opilio-expert" = true))]
    pub seed_prefixes: Vec<String>,
    /// The decision on URIs in these domains.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// The decision on other URIs.
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
        "Accepts or rejects URIs in the domains of the seeds or in listed domains.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut domains = list::parse_each("domains", &settings.domains, parse_domain)?;
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

/// Parses a domain of the settings. Returns its look-up key.
fn parse_domain(text: &str) -> Result<String, String> {
    let host = parse_host(text)?;
    match host.port.is_empty() {
        true => Ok(key_of(&host.labels).into_owned()),
        false => Err(format!(
            "`{text}` has a port; a domain matches every port; use the filter `host` for one port"
        )),
    }
}

/// Removes the last label `www` from `org,example,www,`, unless only a top-level domain would remain.
fn without_www(host: &str) -> &str {
    match host.strip_suffix("www,") {
        Some(domain) if domain.matches(',').count() > 1 => domain,
        _ => host,
    }
}

/// Returns the look-up key of a host. It ends with a comma even for an address, so 10.0.0.1 does not match 10.0.0.12.
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
            return Finding::not_matching("no server in the URI");
        };
        let key = key_of(server.host);
        let domain = self.domains.prefix_of(&key);
        let named = |host| SurtServer { host, port: "" }.name();
        Finding::from_match(
            domain.map(|domain| ["in ", &named(domain)].concat()),
            "in none of the domains",
        )
    }
}

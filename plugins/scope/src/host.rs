//! `host`: single hosts, by default those of the seeds.

use opilio_plugin::prelude::*;

use crate::decision::{Decision, Decisions, Finding};
use crate::list;
use crate::parts::SurtServer;
use crate::prefixes::{Host, parse_host};

/// Decides on URIs on one of its hosts.
pub struct Hosts {
    /// Hosts, sorted for a binary search by labels.
    hosts: Vec<Host>,
    decisions: Decisions,
}

/// Settings of `host`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Hosts such as `www.example.org`, `127.0.0.1` or `[::1]`. With a port (`example.org:8080`) only that port matches;
    /// without one, any port.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub hosts: Vec<String>,
    /// `true` if the hosts of the seeds count too.
    pub from_seeds: bool,
    /// Prefixes implied by the job's seeds. The crawl fills them in and keeps them current if `from-seeds` is set.
    #[schemars(extend("x-opilio-expert" = true))]
    pub seed_prefixes: Vec<String>,
    /// The decision on URIs on these hosts.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// The decision on other URIs.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: Decision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            from_seeds: true,
            seed_prefixes: Vec::new(),
            then: Decision::Accept,
            otherwise: Decision::Pass,
        }
    }
}

impl Plugin for Hosts {
    const NAME: &'static str = "host";
    const SUMMARY: &'static str =
        "Accepts or rejects URIs on the hosts of the seeds or on listed hosts.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut hosts = list::parse_each("hosts", &settings.hosts, parse_host)?;
        if settings.from_seeds {
            let seeds = settings.seed_prefixes.iter();
            let servers = seeds.filter_map(|prefix| SurtServer::of(prefix));
            hosts.extend(servers.map(Host::from));
        }
        hosts.sort_unstable();
        Ok(Self {
            hosts,
            decisions: Decisions {
                then: settings.then,
                otherwise: settings.otherwise,
            },
        })
    }
}

impl Filter for Hosts {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        self.decisions.rule(self.find(candidate.surt()))
    }
}

impl Hosts {
    fn find(&self, surt: &str) -> Finding {
        if self.hosts.is_empty() {
            return Finding::Unknown;
        }
        let Some(server) = SurtServer::of(surt) else {
            return Finding::not_matching("no server in the URI");
        };
        let first = self
            .hosts
            .partition_point(|host| host.labels.as_str() < server.host);
        let mut same = self.hosts[first..]
            .iter()
            .take_while(|host| host.labels == server.host);
        let found = same.find(|host| host.port.is_empty() || host.port == server.port);
        Finding::from_match(
            found.map(|_| ["on ", &server.name()].concat()),
            "on none of the hosts",
        )
    }
}

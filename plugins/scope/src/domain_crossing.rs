//! `domain-crossing`: links that leave the domain of their page.
//!
//! The domain is the registrable one: a public suffix (publicsuffix.org) and one more label. So `a.example.co.uk` and
//! `b.example.co.uk` share a domain. An address is a domain of its own.

use opilio_plugin::prelude::*;
use public_suffix::{DEFAULT_PROVIDER, EffectiveTLDProvider};

use crate::decision::{Decision, Decisions, Finding};
use crate::parts::SurtServer;

/// Decides on links from one domain to another.
pub struct DomainCrossing {
    decisions: Decisions,
}

/// Settings of `domain-crossing`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// The decision on URIs found in another domain.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// The decision on URIs found in their own domain. Seeds get no decision.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: Decision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            then: Decision::Reject,
            otherwise: Decision::Pass,
        }
    }
}

impl Plugin for DomainCrossing {
    const NAME: &'static str = "domain-crossing";
    const SUMMARY: &'static str =
        "Rejects or accepts URIs found on a page of another registered domain.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self {
            decisions: Decisions {
                then: settings.then,
                otherwise: settings.otherwise,
            },
        })
    }
}

impl Filter for DomainCrossing {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        let via = candidate.via_surt().and_then(SurtServer::of);
        let (Some(to), Some(from)) = (SurtServer::of(candidate.surt()), via) else {
            return Ruling::pass();
        };
        self.decisions.rule(find(&from, &to))
    }
}

fn find(from: &SurtServer<'_>, to: &SurtServer<'_>) -> Finding {
    if from.host == to.host {
        return Finding::not_matching("in the same domain");
    }
    let (from, to) = (from.name(), to.name());
    let (from, to) = (registered_domain(&from), registered_domain(&to));
    if from == to {
        Finding::not_matching("in the same domain")
    } else {
        Finding::matching(["from ", from, " to ", to].concat())
    }
}

/// Returns the registrable domain. For an address or a public suffix, returns the host itself.
fn registered_domain(host: &str) -> &str {
    let is_address = host.starts_with('[')
        || host
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_address {
        return host;
    }
    DEFAULT_PROVIDER
        .effective_tld_plus_one(host)
        .unwrap_or(host)
}

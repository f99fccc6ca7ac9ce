//! `session-trap`: sites that give every page a new session.
//!
//! The crawler keeps no session, so every page puts a new session into its links, and each link is a new URI. The canonical
//! form removes the usual session parameters. This filter finds the others: a link whose session differs from its page's, and
//! a link with two sessions.

use opilio_plugin::prelude::*;

use crate::decision::{Decision, Decisions, Finding};
use crate::parts::{Parts, SurtServer};

/// Decides on links with a new session.
pub struct SessionTrap {
    /// Keys in lower case.
    keys: Vec<String>,
    length_min: usize,
    decisions: Decisions,
}

/// Settings of `session-trap`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Names of session parameters, in the query (`sid=…`) or after a semicolon of the path (`;jsessionid=…`). Case is ignored.
    /// A star at the end matches anything. ASP.NET's `/(S(…))/` always counts.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub keys: Vec<String>,
    /// Length of the shortest value that counts as a session. Shorter values often identify something else.
    #[schemars(extend("x-opilio-overridable" = true, "x-opilio-expert" = true))]
    pub length_min: u32,
    /// The decision on links that have two sessions, or whose session differs from their page's.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub then: Decision,
    /// The decision on links with their page's session. Links without a session get no decision.
    #[schemars(extend("x-opilio-overridable" = true))]
    pub otherwise: Decision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            keys: [
                "jsessionid",
                "phpsessid",
                "aspsessionid*",
                "sessionid",
                "session_id",
                "session-id",
                "session",
                "sessid",
                "sess",
                "sid",
                "oscsid",
                "zenid",
                "cftoken",
                "s",
            ]
            .map(str::to_owned)
            .to_vec(),
            length_min: 16,
            then: Decision::Reject,
            otherwise: Decision::Pass,
        }
    }
}

impl Plugin for SessionTrap {
    const NAME: &'static str = "session-trap";
    const SUMMARY: &'static str = "Rejects links whose session differs from their page's, on sites that begin a session with every page.";
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, Vec<SettingsFault>> {
        let mut faults = Vec::new();
        for (at, key) in settings.keys.iter().enumerate() {
            let stem = key.strip_suffix('*').unwrap_or(key);
            if stem.is_empty() || stem.contains(['=', '&', ';', '*']) {
                faults.push(SettingsFault::new(
                    format!("/keys/{at}"),
                    format!("`{key}` is not a name; write it like `sid` or `aspsessionid*`"),
                ));
            }
        }
        if settings.length_min == 0 {
            faults.push(SettingsFault::new("/length-min", "the minimum is 1"));
        }
        let keys = settings.keys.iter().map(|key| key.to_ascii_lowercase());
        none_or(
            faults,
            Self {
                keys: keys.collect(),
                length_min: usize::try_from(settings.length_min).unwrap_or(usize::MAX),
                decisions: Decisions {
                    then: settings.then,
                    otherwise: settings.otherwise,
                },
            },
        )
    }
}

impl Filter for SessionTrap {
    fn judge_candidate(&self, _: &Stage, candidate: CandidateView<'_>) -> Ruling {
        let sessions = self.sessions(candidate.uri());
        let Some((name, value)) = sessions.first() else {
            return Ruling::pass();
        };
        let has_two_sessions = || {
            sessions
                .iter()
                .any(|(other, differs)| name.eq_ignore_ascii_case(other) && differs != value)
        };
        if has_two_sessions() {
            return self
                .decisions
                .rule(Finding::matching(format!("two sessions in {name}")));
        }
        let same_host =
            candidate.via_surt().and_then(SurtServer::of) == SurtServer::of(candidate.surt());
        let Some(via) = candidate.via().filter(|_| same_host) else {
            return Ruling::pass();
        };
        let page_sessions = self.sessions(via);
        let finding = sessions.iter().find_map(|(name, value)| {
            let (_, before) = page_sessions
                .iter()
                .find(|(other, _)| name.eq_ignore_ascii_case(other))?;
            Some(match before == value {
                true => Finding::not_matching("the page's session"),
                false => Finding::matching(format!("a new session in {name}")),
            })
        });
        self.decisions.rule(finding.unwrap_or(Finding::Unknown))
    }
}

impl SessionTrap {
    /// Returns the names and values of the sessions in a URI.
    fn sessions<'a>(&self, uri: &'a str) -> Vec<(&'a str, &'a str)> {
        // Most URIs return here.
        if !uri.contains(['?', ';', '(']) {
            return Vec::new();
        }
        let parts = Parts::of(uri);
        let in_path = parts.path.split(['/', ';']).filter_map(|part| {
            let in_brackets = || {
                Some((
                    "(S)",
                    part.strip_prefix("(S(")
                        .or_else(|| part.strip_prefix("(s("))?
                        .strip_suffix("))")?,
                ))
            };
            part.split_once('=')
                .filter(|(name, _)| self.is_key(name))
                .or_else(in_brackets)
        });
        let in_query = parts.pairs().filter(|(name, _)| self.is_key(name));
        in_path
            .chain(in_query)
            .filter(|(_, value)| self.is_session(value))
            .collect()
    }

    fn is_key(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        self.keys.iter().any(|key| match key.strip_suffix('*') {
            Some(stem) => name.starts_with(stem),
            None => name == *key,
        })
    }

    /// Returns true if the value is long and has letters and digits, like generated values.
    fn is_session(&self, value: &str) -> bool {
        let bytes = value.as_bytes();
        bytes.len() >= self.length_min
            && bytes
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.,!:~+%".contains(byte))
            && bytes.iter().any(u8::is_ascii_digit)
            && bytes.iter().any(u8::is_ascii_alphabetic)
    }
}

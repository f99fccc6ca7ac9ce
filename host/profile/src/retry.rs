//! Retry settings: the failures that are retried, the number of retries, and the delays.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Part;
use crate::duration::DurationWritten;

/// Failures that are retried, number of retries, and delays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RetryFile {
    /// HTTP statuses that ask for a retry later. Default `[429, 503]`: too many requests, and service unavailable (RFC 6585 §4,
    /// RFC 9110 §15.6.4).
    #[schemars(inner(range(min = 100, max = 599)))]
    pub statuses: Vec<u16>,

    /// Failures that are retried; others are final at once. Default `["dns", "connect", "timeout", "disconnect"]`: they are
    /// temporary, while invalid certificates and TLS versions stay the same for days.
    pub errors: Vec<ErrorClass>,

    /// Retries of a URI before it counts as failed. Default `30`: with the default delays that is more than four days.
    #[schemars(range(max = 1000))]
    pub max_retries: u32,

    /// Wait of a URI after its first failed attempt, or of a queue after its first failure in a row, unless the server names
    /// one. It doubles with each further failure. A queue's wait starts here again after a success. Default `"15m"`: long
    /// enough for a restart of the server.
    pub delay: DurationWritten,

    /// Upper limit of the doubling. Default `"4h"`: 16 times the first wait; a server that is down for a day gets about nine
    /// requests.
    pub delay_max: DurationWritten,

    /// Different URIs of a queue that may fail in a row before the whole queue waits. Until then each URI waits alone. 1: the
    /// queue waits for each. The queue waits at once after status 429 or `Retry-After`, or if the server cannot be found or
    /// connected to. Default `3`: one bad page and its embeds do not hold back a site. Three different failures without a
    /// success are probably the server's, and cost it only two useless requests.
    #[schemars(range(min = 1, max = 100))]
    pub queue_after: u32,
}

/// A kind of failure: no response, or an incomplete one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    /// The name servers did not answer, or a name that had an address before has none now; status -1. For a new name, the
    /// absence of an address is final.
    Dns,
    /// No address accepted the connection; status -2.
    Connect,
    /// No TLS session could be set up; status -9.
    Tls,
    /// The server was silent for too long; status -4.
    Timeout,
    /// The connection ended too soon, or the response was invalid; statuses -3 and -404.
    Disconnect,
}

impl ErrorClass {
    /// The class of a fetch status; `None` for a status that no setting retries.
    pub fn of_status(status: i32) -> Option<Self> {
        Some(match status {
            -1 => Self::Dns,
            -2 => Self::Connect,
            -9 => Self::Tls,
            -4 => Self::Timeout,
            -3 | -404 => Self::Disconnect,
            _ => return None,
        })
    }
}

/// Failures that are retried, number of retries, and delays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// HTTP statuses with the meaning: come back later.
    pub statuses: Vec<u16>,
    /// Failures that may pass.
    pub errors: Vec<ErrorClass>,
    /// Retries after the first attempt; at most 1,000.
    pub max_retries: u32,
    /// Wait after the first failure in a row, unless the server names one; it doubles with each further failure.
    pub delay: Duration,
    /// Upper limit of the doubling; not less than `delay`.
    pub delay_max: Duration,
    /// Different URIs that fail in a row before the whole queue waits; 1 to 100.
    pub queue_after: u32,
}

impl Default for RetryFile {
    fn default() -> Self {
        Self {
            statuses: vec![429, 503],
            errors: vec![
                ErrorClass::Dns,
                ErrorClass::Connect,
                ErrorClass::Timeout,
                ErrorClass::Disconnect,
            ],
            max_retries: 30,
            delay: "15m".into(),
            delay_max: "4h".into(),
            queue_after: 3,
        }
    }
}

impl RetryFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Retry {
        Retry {
            statuses: self.statuses.clone(),
            errors: self.errors.clone(),
            max_retries: self.max_retries,
            delay: part.duration("delay", &self.delay),
            delay_max: part.duration("delay-max", &self.delay_max),
            queue_after: self.queue_after,
        }
    }
}

impl Retry {
    /// Returns `true` if a failure of this status is retried.
    pub fn has_error(&self, status: i32) -> bool {
        ErrorClass::of_status(status).is_some_and(|class| self.errors.contains(&class))
    }
}

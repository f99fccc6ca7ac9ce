//! What is tried again, how often and after how long.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Part;
use crate::duration::DurationWritten;

/// What is tried again, how often and after how long. Failures to connect are always tried again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RetryFile {
    /// HTTP statuses that are no answer yet but a request to come back. Default `[429, 503]`: too many requests, and
    /// service unavailable (RFC 6585 §4, RFC 9110 §15.6.4).
    #[schemars(inner(range(min = 100, max = 599)))]
    pub statuses: Vec<u16>,

    /// How often a URI is tried again before it counts as failed. Default `30`: with the default delays
    /// that is more than four days.
    #[schemars(range(max = 1000))]
    pub max_retries: u32,

    /// How long a queue waits after its first failure in a row, unless the server says; the wait doubles with each further
    /// failure and is back here after a success. Default `"15m"`: long enough for a restart of the server.
    pub delay: DurationWritten,

    /// Where the doubling ends. Default `"4h"`: 16 times the first wait; a server that is down for a day is asked some
    /// nine times.
    pub delay_max: DurationWritten,
}

/// What is tried again, how often and after how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// HTTP statuses that mean: come back later.
    pub statuses: Vec<u16>,
    /// Tries after the first; at most 1,000.
    pub max_retries: u32,
    /// Wait after a queue's first failure in a row, unless the server says; it doubles with each further one.
    pub delay: Duration,
    /// Where the doubling ends; not less than `delay`.
    pub delay_max: Duration,
}

impl Default for RetryFile {
    fn default() -> Self {
        Self {
            statuses: vec![429, 503],
            max_retries: 30,
            delay: "15m".into(),
            delay_max: "4h".into(),
        }
    }
}

impl RetryFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Retry {
        Retry {
            statuses: self.statuses.clone(),
            max_retries: self.max_retries,
            delay: part.duration("delay", &self.delay),
            delay_max: part.duration("delay-max", &self.delay_max),
        }
    }
}

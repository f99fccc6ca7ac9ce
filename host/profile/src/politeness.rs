//! How long a queue rests between two fetches.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::byte_size::{ByteSize, SizeWritten};
use crate::check::Part;
use crate::duration::DurationWritten;

/// How long a queue rests between two fetches: the time the last fetch took, times `delay-factor`, kept between
/// `min-delay` and `max-delay`. What a server asks for comes on top, up to the two limits below. Nothing that a
/// plugin answers makes it shorter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PolitenessFile {
    /// How many times as long as the last fetch took the queue rests after it. Default `5.0`: a server then spends
    /// at most a sixth of its time on us, and a slow server rests longer.
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub delay_factor: f64,

    /// The least a queue rests. Default `"2s"`: also the fastest server sees no more than a request every two seconds.
    pub min_delay: DurationWritten,

    /// The most a queue rests of our own accord. Default `"5s"`: one slow document does not hold up a site for minutes.
    pub max_delay: DurationWritten,

    /// A Crawl-delay in robots.txt is followed up to here; a longer one counts as this much. Default `"300s"`:
    /// beyond five minutes a site of some size can no longer be archived at all.
    pub crawl_delay_max: DurationWritten,

    /// A Retry-After header is followed up to here; a longer one counts as this much. Default `"24h"`: a server that
    /// asks for more is asked again once a day.
    pub retry_after_max: DurationWritten,

    /// The most that is taken from a queue's servers in a second; a queue that has taken more rests until the average is
    /// kept again. What is in flight is finished. Default `"none"`: one connection at a time is limit enough.
    pub bandwidth: SizeWritten,
}

/// How long a queue rests between two fetches.
#[derive(Debug, Clone, PartialEq)]
pub struct Politeness {
    /// Rest, in units of the last fetch's duration. At least 0.
    pub delay_factor: f64,
    /// The least it rests.
    pub min_delay: Duration,
    /// The most it rests of our own accord; not less than `min_delay`.
    pub max_delay: Duration,
    /// A longer Crawl-delay counts as this.
    pub crawl_delay_max: Duration,
    /// A longer Retry-After counts as this.
    pub retry_after_max: Duration,
    /// Bytes a second; none: no limit.
    pub bandwidth: Option<ByteSize>,
}

impl Default for PolitenessFile {
    fn default() -> Self {
        Self {
            delay_factor: 5.0,
            min_delay: "2s".into(),
            max_delay: "5s".into(),
            crawl_delay_max: "300s".into(),
            retry_after_max: "24h".into(),
            bandwidth: "none".into(),
        }
    }
}

impl PolitenessFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Politeness {
        Politeness {
            delay_factor: self.delay_factor,
            min_delay: part.duration("min-delay", &self.min_delay),
            max_delay: part.duration("max-delay", &self.max_delay),
            crawl_delay_max: part.duration("crawl-delay-max", &self.crawl_delay_max),
            retry_after_max: part.duration("retry-after-max", &self.retry_after_max),
            bandwidth: part.size_limit("bandwidth", &self.bandwidth),
        }
    }
}

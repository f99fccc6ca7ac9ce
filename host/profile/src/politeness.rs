//! Politeness settings: the delay of a queue between two fetches.

use opilio_model::Politeness;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::byte_size::{ByteSize, SizeWritten};
use crate::check::Part;
use crate::duration::DurationWritten;

/// Politeness delay of a queue between two fetches: the duration of the last fetch, times `delay-factor`, kept between
/// `min-delay` and `max-delay`. Requests of the server for a longer delay come on top, up to the two limits below. No answer of a
/// plugin makes the delay shorter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PolitenessFile {
    /// Factor of the last fetch's duration for the politeness delay. Default `5.0`: a server then spends at most a sixth of its
    /// time on us, and a slow server rests longer.
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub delay_factor: f64,

    /// Shortest delay of a queue. Default `"2s"`: also the fastest server sees no more than a request every two seconds.
    pub min_delay: DurationWritten,

    /// Longest delay of a queue that `delay-factor` can cause. Default `"5s"`: one slow document does not hold up a site for
    /// minutes.
    pub max_delay: DurationWritten,

    /// Longest Crawl-delay of robots.txt that is respected; a longer one counts as this much. Default `"300s"`: beyond five
    /// minutes a site of some size can no longer be archived at all.
    pub crawl_delay_max: DurationWritten,

    /// Longest Retry-After header that is respected; a longer one counts as this much. Default `"24h"`: a server that asks for
    /// more is asked again once a day.
    pub retry_after_max: DurationWritten,

    /// Most bytes that are received from a queue's servers in a second. A queue that has received more waits until the average is
    /// met again. Fetches in flight are finished. Default `"none"`: one connection at a time is limit enough.
    pub bandwidth: SizeWritten,
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
    /// Checks the settings. Returns the bandwidth, in bytes a second, next to the delays.
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> (Politeness, Option<u64>) {
        let bandwidth = part.size_limit("bandwidth", &self.bandwidth);
        let politeness = Politeness {
            delay_factor: self.delay_factor,
            min_delay: part.duration("min-delay", &self.min_delay),
            max_delay: part.duration("max-delay", &self.max_delay),
            crawl_delay_max: part.duration("crawl-delay-max", &self.crawl_delay_max),
            retry_after_max: part.duration("retry-after-max", &self.retry_after_max),
        };
        (politeness, bandwidth.map(ByteSize::bytes))
    }
}

//! Politeness settings: the delay of a queue between two fetches.

use opilio_model::Politeness;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::byte_size::{ByteSize, SizeWritten};
use crate::check::Part;
use crate::duration::DurationWritten;

/// Politeness delay of a queue between two fetches: the duration of the last fetch, times `delay-factor`, kept between
/// `min-delay` and `max-delay`. A longer delay that the server requests applies instead, up to the two limits below. No answer
/// of a plugin makes the delay shorter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PolitenessFile {
    /// Factor of the last fetch's duration for the politeness delay. Default `5.0`: the crawler takes at most a sixth of a
    /// server's time, and slow servers get longer delays.
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub delay_factor: f64,

    /// Shortest delay of a queue. Default `"2s"`: even the fastest server gets at most one request every two seconds.
    pub min_delay: DurationWritten,

    /// Longest delay of a queue that `delay-factor` can cause. Default `"5s"`: one slow document does not delay a site for
    /// minutes.
    pub max_delay: DurationWritten,

    /// Longest Crawl-delay of robots.txt that is respected; a longer one counts as this much. Default `"300s"`: with longer
    /// delays a site of some size cannot be archived at all.
    pub crawl_delay_max: DurationWritten,

    /// Longest Retry-After header that is respected; a longer one counts as this much. Default `"24h"`: such a server is asked
    /// once a day.
    pub retry_after_max: DurationWritten,

    /// Most bytes that are received from a queue's servers in a second. A queue that has received more waits until the average
    /// is met again. Fetches in flight are finished. Default `"none"`: a queue has only one connection at a time.
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

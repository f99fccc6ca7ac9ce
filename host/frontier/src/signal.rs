//! Signals: news of a document between two visits, from a feed or a sitemap that gives a date after its last visit. The record of
//! the URI has them until the next visit.

use jiff::Timestamp;
use opilio_uri::Hop;
use serde::{Deserialize, Serialize};

use crate::{Candidate, instant};

/// News of a document: a date of change after its last visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// Time at which the news was read.
    #[serde(with = "instant::serialised")]
    pub at: Timestamp,
    /// Source of the news.
    pub source: SignalSource,
    /// The date of change.
    #[serde(with = "instant::serialised")]
    pub modified: Timestamp,
}

impl Signal {
    /// The news that a candidate brings at `now`; `None` if it gives no date of change.
    pub(crate) fn of(candidate: &Candidate, now: Timestamp) -> Option<Signal> {
        let source = match candidate.hop_path.last() {
            Some(Hop::Manifest) => SignalSource::Sitemap,
            _ => SignalSource::Feed,
        };
        Some(Signal {
            at: now,
            source,
            // As precise as the stored signals with which it is compared.
            modified: instant::timestamp(instant::floor(candidate.modified?)),
        })
    }
}

/// Source of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignalSource {
    /// A list made for crawlers.
    Sitemap,
    /// Any other page that dates its links.
    Feed,
}

impl SignalSource {
    /// Its name in the plugin contract and in exports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sitemap => "sitemap",
            Self::Feed => "feed",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use opilio_uri::{HopPath, Uri};

    use super::*;
    use crate::{Frontier, FrontierConfig, Next, Outcome, ScheduleResult, Strategy, Success};

    #[test]
    fn a_signal_more_precise_than_the_record_is_added_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut frontier = Frontier::open(dir.path(), FrontierConfig::default()).unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = at("2026-11-24T12:00:00Z");
        let uri = Uri::parse("http://a.org/").unwrap();
        let hops = HopPath::parse("").unwrap();
        let page = Candidate::new(uri.clone(), hops, Strategy::Revisit);
        frontier.schedule(vec![page.clone()], now).unwrap();
        let Next::Issue(issue) = frontier.next(now).unwrap() else {
            panic!("nothing is issued");
        };
        let success = Success {
            wait: Some(Duration::from_secs(500)),
            ..Success::default()
        };
        let outcome = Outcome::Succeeded(Box::new(success));
        frontier.finished(issue.ticket, outcome, now).unwrap();
        let news = Candidate {
            modified: Some(at("2026-11-24T12:00:01.0005Z")),
            min_wait: Duration::from_secs(100),
            ..page
        };
        let later = at("2026-11-24T12:00:02Z");
        let first = frontier.schedule(vec![news.clone()], later).unwrap();
        assert!(
            matches!(first[..], [ScheduleResult::Raised(_)]),
            "{first:?}"
        );
        frontier.schedule(vec![news], later).unwrap();
        let record = frontier.record(&uri).unwrap().unwrap();
        let signal = Signal {
            at: later,
            source: SignalSource::Feed,
            modified: at("2026-11-24T12:00:01Z"),
        };
        assert_eq!(record.signals, [signal]);
    }
}

//! Helpers of the tests: candidates, outcomes, and a frontier in a temporary folder.

use std::time::Duration;

use jiff::Timestamp;
use opilio_frontier::{
    Candidate, ContentState, FinishResult, Frontier, FrontierConfig, Issue, Next, Outcome,
    Politeness, QueueSettings, ScheduleResult, Strategy, Success, Transfer, VisitUpdate,
    WaitLimits,
};
use opilio_uri::{HopPath, Uri};

/// A configuration with round numbers for politeness and waits.
pub(crate) fn config() -> FrontierConfig {
    FrontierConfig {
        queue: QueueSettings {
            politeness: Politeness {
                delay_factor: 2.0,
                min_delay: secs(2),
                max_delay: secs(10),
                crawl_delay_max: secs(60),
                retry_after_max: secs(300),
            },
            max_retries: 3,
            retry_delay: secs(20),
            retry_delay_max: secs(60),
            ..QueueSettings::default()
        },
        max_deferrals: 4,
        waits: WaitLimits {
            min: secs(30),
            max: secs(1_000),
        },
        history_length: 3,
        ..FrontierConfig::default()
    }
}

/// The same with changed settings of all queues.
pub(crate) fn with_queue(set: impl FnOnce(&mut QueueSettings)) -> FrontierConfig {
    let mut config = config();
    set(&mut config.queue);
    config
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

pub(crate) fn uri(text: &str) -> Uri {
    Uri::parse(text).unwrap()
}

/// A candidate under snapshot. Its canonical form is its URI without the query.
pub(crate) fn candidate(text: &str, hops: &str) -> Candidate {
    let uri = uri(text);
    let canonical = uri
        .as_str()
        .split('?')
        .next()
        .unwrap_or_default()
        .to_owned();
    let candidate = Candidate::new(uri, HopPath::parse(hops).unwrap(), Strategy::Snapshot);
    Candidate {
        canonical,
        ..candidate
    }
}

pub(crate) fn revisited(text: &str, hops: &str) -> Candidate {
    Candidate {
        strategy: Strategy::Revisit,
        ..candidate(text, hops)
    }
}

pub(crate) fn success(
    fetch: Duration,
    wait: Option<Duration>,
    outlinks: Vec<Candidate>,
) -> Outcome {
    let visit = VisitUpdate {
        status: 200,
        state: ContentState::New,
        size: Some(100),
        ..VisitUpdate::default()
    };
    Outcome::Succeeded(Box::new(Success {
        visit,
        wait,
        outlinks,
        transfer: took(fetch),
        ..Success::default()
    }))
}

/// A request of this duration that received a hundred bytes.
pub(crate) fn took(duration: Duration) -> Transfer {
    Transfer {
        duration,
        bytes: 100,
    }
}

/// A frontier in a temporary folder.
pub(crate) struct Site {
    pub(crate) frontier: Option<Frontier>,
    config: FrontierConfig,
    dir: tempfile::TempDir,
}

impl Site {
    pub(crate) fn new(config: FrontierConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let frontier = Some(Frontier::open(dir.path(), config.clone()).unwrap());
        Self {
            frontier,
            config,
            dir,
        }
    }

    pub(crate) fn frontier(&mut self) -> &mut Frontier {
        self.frontier.as_mut().unwrap()
    }

    pub(crate) fn reopen(&mut self) {
        self.frontier = None;
        self.frontier = Some(Frontier::open(self.dir.path(), self.config.clone()).unwrap());
    }

    pub(crate) fn reopen_with(&mut self, config: FrontierConfig) {
        self.config = config;
        self.reopen();
    }

    pub(crate) fn schedule(
        &mut self,
        candidates: Vec<Candidate>,
        seconds: i64,
    ) -> Vec<ScheduleResult> {
        self.frontier().schedule(candidates, at(seconds)).unwrap()
    }

    pub(crate) fn next(&mut self, seconds: i64) -> Next {
        self.frontier().next(at(seconds)).unwrap()
    }

    #[track_caller]
    pub(crate) fn issue(&mut self, seconds: i64, expected: &str) -> Issue {
        match self.next(seconds) {
            Next::Issue(issue) => {
                assert_eq!(issue.uri.as_str(), expected);
                assert_eq!(issue.record.uri, expected);
                *issue
            }
            other => panic!("{expected} should have been issued, not {other:?}"),
        }
    }

    /// Asserts that nothing is issued before `until`.
    #[track_caller]
    pub(crate) fn waits(&mut self, seconds: i64, until: i64) {
        let next = self.next(seconds);
        assert!(
            matches!(next, Next::WaitUntil(time) if time == at(until)),
            "{next:?}, not {until}"
        );
    }

    /// The time in seconds until which overlong waits keep all queues from issuing.
    pub(crate) fn overlong_until(&mut self, seconds: i64) -> Option<i64> {
        let until = self.frontier().overlong_until(at(seconds)).unwrap();
        until.map(|until| until.as_second() - at(0).as_second())
    }

    #[track_caller]
    pub(crate) fn is_empty(&mut self, seconds: i64) {
        let next = self.next(seconds);
        assert!(matches!(next, Next::Empty), "{next:?}");
    }

    pub(crate) fn finish(&mut self, issue: &Issue, outcome: Outcome, seconds: i64) -> FinishResult {
        self.frontier()
            .finished(issue.ticket, outcome, at(seconds))
            .unwrap()
    }

    /// Issues this URI and finishes it at once, as a success without outlinks.
    #[track_caller]
    pub(crate) fn visit(&mut self, seconds: i64, expected: &str) -> FinishResult {
        let issue = self.issue(seconds, expected);
        self.finish(&issue, success(Duration::ZERO, None, vec![]), seconds)
    }
}

//! Outcomes of a job's seeds: how many were fetched, and why the others were not. The end of a crawl counts them, and lists of
//! seeds show them later.

use std::collections::HashMap;
use std::fmt;

use opilio_frontier::{
    Frontier, FrontierError, UriRecord, is_fetched, status_remedy, status_words,
};
use opilio_uri::Uri;
use serde::{Deserialize, Serialize};

/// Maximum of seeds that are listed with the reason why they were not fetched.
pub const LISTED_MAX: usize = 10;

/// Maximum of failed seeds whose errors are stored when a process ends. Other failed seeds are described by their status.
pub const KEPT_MAX: usize = 1_000;

/// Name of the value in the frontier with the seeds that were not fetched, as JSON.
const FAILURES: &str = "seed-failures";

/// Outcomes of all seeds of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SeedOutcomes {
    /// Number of seeds.
    pub all: usize,
    /// Number of seeds whose last visit had a response below status 400, at the end of their redirects.
    pub fetched: usize,
    /// Number of seeds that have not been visited yet.
    pub unvisited: usize,
    /// The other seeds; at most [`LISTED_MAX`].
    pub failed: Vec<SeedFailure>,
}

/// Outcome of a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeedOutcome {
    /// The seed had a response below status 400, at the end of its redirects.
    Fetched,
    /// The seed was not visited yet.
    Unvisited,
    /// The seed could not be fetched.
    Failed(SeedFailure),
}

/// Seed that could not be fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeedFailure {
    /// The seed.
    pub uri: String,
    /// Last URI of its redirects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect: Option<String>,
    /// Fetch status of the last visit, at the end of the redirects.
    pub status: i32,
    /// Error of the last attempt, or the decision that refused the seed; empty if neither is known.
    pub error: String,
}

/// Failures of seeds that earlier processes of the job have stored. Later processes do not visit these seeds again, so they and the
/// lists of seeds read the errors here.
#[derive(Debug, Default)]
pub struct KeptFailures(HashMap<String, SeedFailure>);

impl KeptFailures {
    /// Reads the failures from the job's frontier.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn read(frontier: &Frontier) -> Result<KeptFailures, FrontierError> {
        let kept = frontier.caller_value(FAILURES)?;
        let kept: Vec<SeedFailure> = kept
            .and_then(|json| serde_json::from_slice(&json).ok())
            .unwrap_or_default();
        Ok(KeptFailures::of(kept))
    }

    fn of(kept: Vec<SeedFailure>) -> KeptFailures {
        let by_uri = kept.into_iter().map(|kept| (kept.uri.clone(), kept));
        KeptFailures(by_uri.collect())
    }

    /// Adds the kept error of the same failure.
    pub fn recall(&self, failure: &mut SeedFailure) {
        let before = self.0.get(&failure.uri).filter(|before| {
            (&before.redirect, before.status) == (&failure.redirect, failure.status)
        });
        if let Some(before) = before.filter(|before| before.error.starts_with(&failure.error)) {
            failure.error.clone_from(&before.error);
        }
    }
}

/// Stores failures of seeds in the job's frontier, in place of those stored before.
///
/// # Errors
/// Fails if the store fails.
pub fn keep_failures(
    frontier: &mut Frontier,
    failures: &[SeedFailure],
) -> Result<(), FrontierError> {
    let json = serde_json::to_vec(failures).unwrap_or_default();
    frontier.put_caller_value(FAILURES, &json)
}

impl SeedOutcome {
    /// Returns the outcome of a seed. `end` is the last URI of its redirects at its last visit, with its record if there is one.
    /// `last_error` returns the decision against a URI or the error of its last attempt; empty if neither is known.
    pub fn of(
        seed: &str,
        record: Option<&UriRecord>,
        end: Option<&(Uri, Option<UriRecord>)>,
        last_error: impl Fn(&UriRecord) -> String,
    ) -> SeedOutcome {
        let Some(record) = record.filter(|record| record.status != 0) else {
            return SeedOutcome::Unvisited;
        };
        let failed = |status, redirect: Option<&Uri>, error| {
            SeedOutcome::Failed(SeedFailure {
                uri: seed.to_owned(),
                redirect: redirect.map(|uri| uri.as_str().to_owned()),
                status,
                error,
            })
        };
        match end {
            None if is_fetched(record.status) => SeedOutcome::Fetched,
            None => failed(record.status, None, last_error(record)),
            Some((_, Some(end))) if end.status == 0 => SeedOutcome::Unvisited,
            Some((_, Some(end))) if is_fetched(end.status) => SeedOutcome::Fetched,
            Some((uri, Some(end))) => failed(end.status, Some(uri), last_error(end)),
            Some((uri, None)) => {
                let error = "the target was not fetched; `opilio frontier why JOB URI` explains it";
                failed(record.status, Some(uri), error.to_owned())
            }
        }
    }
}

impl SeedOutcomes {
    /// Counts a seed.
    pub fn count(&mut self, outcome: SeedOutcome) {
        self.all += 1;
        match outcome {
            SeedOutcome::Unvisited => self.unvisited += 1,
            SeedOutcome::Fetched => self.fetched += 1,
            SeedOutcome::Failed(failure) if self.failed.len() < LISTED_MAX => {
                self.failed.push(failure);
            }
            SeedOutcome::Failed(_) => {}
        }
    }

    /// Returns `true` if the job has seeds, all of them were visited, and none was fetched.
    pub fn is_total_failure(&self) -> bool {
        self.all > 0 && self.fetched == 0 && self.unvisited == 0
    }

    /// Describes the failure of all seeds: the reason for the first, or the only one.
    pub fn failure_words(&self) -> String {
        let first = self.failed.first();
        let first = first.map(|failure| format!("{}: {failure}", failure.uri));
        let first = first.unwrap_or_default();
        match self.all {
            1 => format!("the seed could not be fetched: {first}"),
            all => format!("none of the {all} seeds could be fetched; the first: {first}"),
        }
    }

    /// Returns the number of seeds that were visited and not fetched.
    pub fn failures(&self) -> usize {
        self.all - self.fetched - self.unvisited
    }
}

/// Formats the reason and the remedy: `no connection to the server: cannot connect to 127.0.0.1 port 9; check …`.
impl fmt::Display for SeedFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(redirect) = &self.redirect {
            write!(f, "redirects to {redirect}: ")?;
        }
        f.write_str(&status_words(self.status))?;
        if !self.error.is_empty() {
            write!(f, ": {}", self.error)?;
        }
        match status_remedy(self.status) {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use opilio_frontier::{Candidate, Strategy};
    use opilio_uri::HopPath;

    use super::*;

    fn failure(status: i32, error: &str) -> SeedFailure {
        SeedFailure {
            uri: "http://a.example/".to_owned(),
            redirect: None,
            status,
            error: error.to_owned(),
        }
    }

    #[track_caller]
    fn check(seeds: &[SeedOutcome], is_total_failure: bool) {
        let mut outcomes = SeedOutcomes::default();
        for seed in seeds {
            outcomes.count(seed.clone());
        }
        assert_eq!(outcomes.is_total_failure(), is_total_failure, "{seeds:?}");
    }

    #[test]
    fn a_crawl_has_failed_if_every_seed_was_visited_and_none_was_fetched() {
        let failed = |status| SeedOutcome::Failed(failure(status, ""));
        check(&[failed(-2), failed(404)], true);
        check(&[failed(-2), SeedOutcome::Fetched], false);
        check(&[failed(-2), SeedOutcome::Unvisited], false);
        check(&[], false);
    }

    #[test]
    fn many_failures_are_counted_and_the_first_are_listed() {
        let mut outcomes = SeedOutcomes::default();
        for _ in 0..2 * LISTED_MAX {
            outcomes.count(SeedOutcome::Failed(failure(-2, "")));
        }
        assert_eq!(outcomes.failures(), 2 * LISTED_MAX);
        assert_eq!(outcomes.failed.len(), LISTED_MAX);
    }

    #[test]
    fn a_later_process_reads_the_kept_error_of_a_failed_seed() {
        let kept = KeptFailures::of(vec![failure(-2, "robots.txt: cannot connect")]);
        for (mut failed, error) in [
            (failure(-2, ""), "robots.txt: cannot connect"),
            (failure(-2, "robots.txt"), "robots.txt: cannot connect"),
            (failure(-2, "another"), "another"),
            (failure(-3, ""), ""),
        ] {
            kept.recall(&mut failed);
            assert_eq!(failed.error, error, "{}", failed.status);
        }
    }

    fn record(uri: &str, status: i32) -> UriRecord {
        let uri: Uri = uri.parse().unwrap();
        let candidate = Candidate::new(uri, HopPath::new(), Strategy::Snapshot);
        let mut record = UriRecord::of(candidate, Timestamp::UNIX_EPOCH);
        record.status = status;
        record
    }

    #[test]
    fn the_end_of_the_redirects_decides_about_a_seed() {
        let seed = "http://a.example/";
        let target = "http://b.example/";
        let failed = |redirect: Option<&str>, status| {
            SeedOutcome::Failed(SeedFailure {
                redirect: redirect.map(str::to_owned),
                ..failure(status, &format!("error {status}"))
            })
        };
        for (status, end, expected) in [
            (0, None, SeedOutcome::Unvisited),
            (200, None, SeedOutcome::Fetched),
            (-2, None, failed(None, -2)),
            (302, Some(0), SeedOutcome::Unvisited),
            (302, Some(200), SeedOutcome::Fetched),
            (302, Some(404), failed(Some(target), 404)),
        ] {
            let end = end.map(|status| {
                let uri: Uri = target.parse().unwrap();
                (uri, Some(record(target, status)))
            });
            let last_error = |record: &UriRecord| format!("error {}", record.status);
            let outcome =
                SeedOutcome::of(seed, Some(&record(seed, status)), end.as_ref(), last_error);
            assert_eq!(outcome, expected, "{status} {end:?}");
        }
    }

    #[test]
    fn a_seed_failure_shows_status_error_and_remedy() {
        let text = failure(-2, "cannot connect to 127.0.0.1 port 9").to_string();
        assert_eq!(
            text,
            "no connection to the server: cannot connect to 127.0.0.1 port 9; check the server, the network, and fetch.proxy"
        );
        assert_eq!(failure(451, "").to_string(), "status 451");
    }
}

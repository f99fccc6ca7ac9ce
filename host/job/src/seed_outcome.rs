//! Outcomes of a job's seeds, for the end of a crawl: how many were fetched, and why the others were not.

use std::fmt;

use opilio_frontier::{status_remedy, status_words};
use serde::{Deserialize, Serialize};

/// Most seeds that are listed with the reason why they were not fetched.
pub const LISTED_MAX: usize = 10;

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
    /// It had a response below status 400, at the end of its redirects.
    Fetched,
    /// It was not visited yet.
    Unvisited,
    /// It could not be fetched.
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

impl SeedFailure {
    /// Adds the error of the same failure from those that an earlier process has kept.
    pub fn recall(&mut self, kept: &[SeedFailure]) {
        let is_same = |before: &&SeedFailure| {
            (&before.uri, &before.redirect, before.status)
                == (&self.uri, &self.redirect, self.status)
        };
        let before = kept.iter().find(is_same);
        if let Some(before) = before.filter(|before| before.error.starts_with(&self.error)) {
            self.error.clone_from(&before.error);
        }
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
    fn a_later_process_knows_the_error_of_the_same_failure() {
        let kept = [failure(-4, "no answer"), failure(-2, "cannot connect")];
        for (mut failed, error) in [
            (failure(-2, ""), "cannot connect"),
            (failure(-4, "another"), "another"),
            (failure(-3, ""), ""),
        ] {
            failed.recall(&kept);
            assert_eq!(failed.error, error, "{}", failed.status);
        }
    }

    #[test]
    fn a_failure_has_words_an_error_and_a_remedy() {
        let text = failure(-2, "cannot connect to 127.0.0.1 port 9").to_string();
        assert_eq!(
            text,
            "no connection to the server: cannot connect to 127.0.0.1 port 9; check the server, the network, and fetch.proxy"
        );
        assert_eq!(failure(451, "").to_string(), "status 451");
    }
}

//! Requests that a visit makes beside its own, such as those of a rendered page. No URI is issued for them. They count in the
//! tallies of their host, domain and source.

use std::time::Duration;

use jiff::Timestamp;

use crate::{Frontier, FrontierError, Tally, TallyKind, keys};

/// A request that was made in passing, with its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestInPassing {
    /// Bytes of content.
    pub bytes: u64,
    /// `true` if the content is stored for the first time.
    pub is_novel: bool,
    /// Time that it took.
    pub duration: Duration,
}

impl Frontier {
    /// Counts a request in these tallies, and in that of the crawl.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn count_in_passing(
        &mut self,
        tallies: &[(TallyKind, &str)],
        request: RequestInPassing,
        now: Timestamp,
    ) -> Result<(), FrontierError> {
        let count = |tally: &mut Tally| {
            tally.succeed(false, request.is_novel, request.bytes);
            tally.run_time = tally.run_time.saturating_add(request.duration);
        };
        self.attempt(|frontier| {
            frontier.applied(now, |change| {
                count(&mut change.counters.statistics.tally);
                for (kind, name) in tallies {
                    count(change.tally(&keys::tally(*kind, name))?);
                }
                Ok(())
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FrontierConfig;

    #[test]
    fn requests_in_passing_count_for_their_host_and_for_the_crawl() {
        let home = tempfile::tempdir().unwrap();
        let mut frontier = Frontier::open(home.path(), FrontierConfig::default()).unwrap();
        let request = RequestInPassing {
            bytes: 100,
            is_novel: true,
            duration: Duration::from_millis(20),
        };
        let now = Timestamp::from_second(1_000_000).unwrap();
        let tallies = [(TallyKind::Host, "a.org"), (TallyKind::Domain, "a.org")];
        frontier.count_in_passing(&tallies, request, now).unwrap();
        let again = RequestInPassing {
            is_novel: false,
            ..request
        };
        frontier.count_in_passing(&tallies, again, now).unwrap();
        let expected = Tally {
            fetched: 2,
            succeeded: 0,
            novel: 1,
            bytes: 200,
            novel_bytes: 100,
            run_time: Duration::from_millis(40),
        };
        drop(frontier);
        let frontier = Frontier::open(home.path(), FrontierConfig::default()).unwrap();
        for (kind, name) in tallies {
            assert_eq!(frontier.tally(kind, name).unwrap(), expected);
        }
        assert_eq!(
            frontier.tally(TallyKind::Host, "b.org").unwrap(),
            Tally::default()
        );
        assert_eq!(frontier.statistics().tally, expected);
    }
}

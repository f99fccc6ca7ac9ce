//! Requests that a visit makes besides its own, such as those of a rendered page. No URI is issued for them. They count in the
//! tallies of their host, domain and source, and in the bandwidth of their queue and of the crawl.

use jiff::Timestamp;

use crate::{Frontier, FrontierError, Tally, TallyKind, Transfer, change, keys};

/// A request that was made in passing, with its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestInPassing {
    /// Bytes of content.
    pub bytes: u64,
    /// `true` if the content is stored for the first time.
    pub is_novel: bool,
    /// Time that it took, and bytes received.
    pub transfer: Transfer,
}

impl Frontier {
    /// Counts a request in these tallies and in that of the crawl. Its bytes use the bandwidth of the crawl, and of this queue if
    /// it exists. Until the bandwidth is met again, no further URI is issued. The politeness delay of the queue stays as it is.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn count_in_passing(
        &mut self,
        queue: &str,
        tallies: &[(TallyKind, &str)],
        request: RequestInPassing,
        now: Timestamp,
    ) -> Result<(), FrontierError> {
        let count = |tally: &mut Tally| {
            tally.succeed(false, request.is_novel, request.bytes);
            tally.run_time = tally.run_time.saturating_add(request.transfer.duration);
        };
        self.attempt(|frontier| {
            let record = change::read_queue(&frontier.store, queue)?;
            let is_limited =
                record.is_some_and(|it| it.settings(&frontier.config).bandwidth.is_some());
            frontier.write_change(now, |change| {
                change.charge_bandwidth(request.transfer);
                if is_limited {
                    change.charge_queue_bandwidth(queue, request.transfer)?;
                    change.revise(queue)?;
                }
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
    use std::time::Duration;

    use super::*;
    use crate::FrontierConfig;

    #[test]
    fn requests_in_passing_count_for_their_host_and_for_the_crawl() {
        let home = tempfile::tempdir().unwrap();
        let mut frontier = Frontier::open(home.path(), FrontierConfig::default()).unwrap();
        let request = RequestInPassing {
            bytes: 100,
            is_novel: true,
            transfer: Transfer {
                duration: Duration::from_millis(20),
                bytes: 150,
            },
        };
        let now = Timestamp::from_second(1_000_000).unwrap();
        let tallies = [(TallyKind::Host, "a.org"), (TallyKind::Domain, "a.org")];
        frontier
            .count_in_passing("org,a,", &tallies, request, now)
            .unwrap();
        let again = RequestInPassing {
            is_novel: false,
            ..request
        };
        frontier
            .count_in_passing("org,a,", &tallies, again, now)
            .unwrap();
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

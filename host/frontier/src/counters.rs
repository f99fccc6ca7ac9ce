//! Counters: the statistics, and other numbers that outlive a process. Each change writes them in its batch.

use serde::{Deserialize, Serialize};

use crate::{FrontierError, Statistics, instant::Millis, store::decode};

/// Numbers that outlive a process.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Counters {
    /// Statistics. Here `queued` includes the URIs in process.
    pub(crate) statistics: Statistics,
    /// Last arrival number. Each entry of an order gets one.
    pub(crate) arrivals: u64,
    /// Number of times that the store has been opened. Tickets of one opening are invalid in the next.
    pub(crate) openings: u32,
    /// Time until which the crawl's bandwidth is used up.
    pub(crate) paid_until: Millis,
    /// Refused URIs that are remembered.
    pub(crate) refusals: u64,
    /// Canonical forms that have been taken out of the index. While this is 0, a URI whose canonical form is unknown has no
    /// record either.
    pub(crate) withdrawn: u64,
}

impl Counters {
    /// Decodes the counters of a store. Early stores lack their first number, the answered prerequisites.
    pub(crate) fn stored(bytes: &[u8]) -> Result<Counters, FrontierError> {
        decode("the counters", b"counters", bytes).or_else(|problem| {
            let Some((encoding, numbers)) = bytes.split_first() else {
                return Err(problem);
            };
            let with_first = [&[*encoding, 0], numbers].concat();
            decode("the counters", b"counters", &with_first).map_err(|_| problem)
        })
    }

    pub(crate) fn arrival(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }
}

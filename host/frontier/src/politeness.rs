//! Pace of a queue, and its use of bandwidth. [`Politeness`](crate::Politeness) computes the delays.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    Frontier, FrontierError, Transfer,
    change::{self, Change},
    instant::{self, Millis},
};

/// Longest bandwidth debt that is plausible: it would be 8 GB at 100 kB a second. A longer debt comes from a clock that was
/// ahead.
pub(crate) const OWED_MAX: Duration = Duration::from_secs(24 * 3600);

impl Frontier {
    /// Shortest time between two requests to the server of a queue if a request takes this long; `None` if the queue does not
    /// exist.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn pace(&self, queue: &str, took: Duration) -> Result<Option<Duration>, FrontierError> {
        let of_store;
        let record = match self.memory.queues.get(queue) {
            Some(record) => record,
            None => match change::read_queue(&self.store, queue)? {
                Some(record) => {
                    of_store = record;
                    &of_store
                }
                None => return Ok(None),
            },
        };
        let settings = record.settings(&self.config);
        let delay = settings.politeness.delay_after(took, record.crawl_delay);
        let slots = u32::from(settings.valence.max(1));
        Ok(Some(delay.saturating_add(took) / slots))
    }
}

impl Change<'_> {
    /// Charges received bytes to the bandwidth of the crawl.
    pub(crate) fn pay_bandwidth(&mut self, transfer: Transfer) {
        let (rate, before) = (self.config.bandwidth, self.counters.paid_until);
        self.counters.paid_until = paid_until(rate, before, transfer, self.now);
    }

    /// Charges received bytes to the bandwidth of a queue.
    pub(crate) fn pay_bandwidth_of(
        &mut self,
        queue: &str,
        transfer: Transfer,
    ) -> Result<(), FrontierError> {
        let (config, now) = (self.config, self.now);
        let record = self.queue(queue)?;
        let rate = record.settings(config).bandwidth;
        record.paid_until = paid_until(rate, record.paid_until, transfer, now);
        Ok(())
    }
}

/// Time until which a bandwidth is used up, after a fetch that ends now. It is computed as if the bytes had come at the allowed
/// rate, from the beginning of the fetch.
fn paid_until(rate: Option<u64>, before: Millis, transfer: Transfer, now: Timestamp) -> Millis {
    let Some(rate) = rate else {
        return Millis::MIN;
    };
    let began = instant::floor(now).saturating_sub(instant::millis(transfer.duration));
    before
        .max(began)
        .saturating_add(time_for(transfer.bytes, rate))
}

/// Time that `bytes` take at `rate` bytes a second; the longest time if the rate is 0.
pub(crate) fn time_for(bytes: u64, rate: u64) -> Millis {
    let millis = u128::from(bytes) * 1000;
    let millis = millis.checked_div(rate.into()).unwrap_or(u128::MAX);
    Millis::try_from(millis).unwrap_or(Millis::MAX)
}

/// Returns `true` if a fetch asks no web server, and so costs a queue no politeness delay.
pub(crate) fn is_free(uri: &str) -> bool {
    uri.starts_with("dns:")
}

//! The bandwidth of a queue and of the crawl: received bytes use it up for a time.

use jiff::Timestamp;

use crate::{
    FrontierError, Transfer,
    change::WriteBatch,
    instant::{self, Millis},
};

impl WriteBatch<'_> {
    /// Charges received bytes to the bandwidth of the crawl.
    pub(crate) fn charge_bandwidth(&mut self, transfer: Transfer) {
        let (rate, before) = (self.config.bandwidth, self.counters.paid_until);
        self.counters.paid_until = paid_until(rate, before, transfer, self.now);
    }

    /// Charges received bytes to the bandwidth of a queue.
    pub(crate) fn charge_queue_bandwidth(
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
fn time_for(bytes: u64, rate: u64) -> Millis {
    let millis = u128::from(bytes) * 1000;
    let millis = millis.checked_div(rate.into()).unwrap_or(u128::MAX);
    Millis::try_from(millis).unwrap_or(Millis::MAX)
}

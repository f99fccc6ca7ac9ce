//! A frontier that replaces another one, such as a copy of it on another machine. The last requests of the other one are unknown
//! here, so every queue waits for a whole politeness delay before its first URI.

use jiff::Timestamp;

use crate::{
    Frontier, FrontierError,
    change::WriteBatch,
    instant::{self, Millis},
    memory::TAKEOVER,
    queue::QueueRecord,
    store::encode,
};

impl Frontier {
    /// Makes every queue wait as after a request at `now`, also queues that come later. It writes one value: a queue gets its wait
    /// when it is about to issue a URI.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn wait_everywhere(&mut self, now: Timestamp) -> Result<(), FrontierError> {
        self.attempt(|frontier| {
            // Rounded up, so that no wait is shorter.
            let at = instant::after(now, std::time::Duration::ZERO);
            frontier.store.meta.insert(TAKEOVER, encode(&at)?)?;
            frontier.memory.taken_over = Some(at);
            Ok(())
        })
    }

    /// Number of changes since the store was opened. A [checkpoint](crate::FrontierCheckpoint::changes) with the same number has
    /// all of them. Values that the caller keeps, and the outbox, do not count.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.memory.changes
    }

    /// Time before which a queue issues nothing because of a takeover.
    pub(crate) fn taken_over_until(&self, record: &QueueRecord) -> Millis {
        let Some(at) = self.memory.taken_over else {
            return Millis::MIN;
        };
        let politeness = &record.settings(&self.config).politeness;
        let mut delay = politeness.longest_delay(record.crawl_delay);
        if record.group(&self.config).is_some() {
            delay = delay.max(self.config.group.min_delay);
        }
        instant::after(instant::timestamp(at), delay)
    }
}

impl WriteBatch<'_> {
    /// Makes a queue wait until then, and gives it its place in the queue order.
    pub(crate) fn wait_until(&mut self, queue: &str, until: Millis) -> Result<(), FrontierError> {
        let config = self.config;
        self.queue(queue)?.delay_slots(until, config);
        self.take_new_place(queue)
    }
}

//! The outbox of a frontier that has a part of a crawl: candidates that belong to other parts.
//!
//! A candidate goes into the outbox in the batch that would otherwise put it into a queue. So a page and its links to other parts
//! are recorded together, whenever the process dies. The caller sends the candidates to the frontiers of their parts. It removes
//! them once those frontiers, or a durable store on the way, have them.

use crate::{
    Candidate, Frontier, FrontierError, keys,
    store::{decode, encode},
};

/// Entries that are removed at a time: the frontier answers nothing else meanwhile.
const REMOVED_MAX: usize = 10_000;

/// A candidate in the outbox.
#[derive(Debug, Clone)]
pub struct OutboxEntry {
    /// Its number. Later entries have greater ones.
    pub number: u64,
    /// The candidate.
    pub candidate: Candidate,
}

impl Candidate {
    /// The candidate as bytes, for another frontier.
    ///
    /// # Errors
    /// Fails if the candidate cannot be encoded, for which no case is known.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FrontierError> {
        encode(self)
    }

    /// Reads the bytes of [`Candidate::to_bytes`].
    ///
    /// # Errors
    /// The bytes are not a candidate.
    pub fn from_bytes(bytes: &[u8]) -> Result<Candidate, FrontierError> {
        decode("a candidate of another frontier", &[], bytes)
    }
}

impl Frontier {
    /// Up to `max` entries of the outbox, in their order, from the first after number `after` on.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn outbox(&self, after: u64, max: usize) -> Result<Vec<OutboxEntry>, FrontierError> {
        let after = keys::outbox(after.max(self.outbox_removed));
        let values = self.caller_values_after(keys::OUTBOX, Some(&after), max)?;
        let entries = values.into_iter().map(|(name, value)| {
            Ok(OutboxEntry {
                number: keys::outbox_number(&name),
                candidate: decode("an entry of the outbox", name.as_bytes(), &value)?,
            })
        });
        entries.collect()
    }

    /// A number that no entry of the outbox exceeds now. Later entries have greater ones.
    #[must_use]
    pub fn outbox_end(&self) -> u64 {
        self.memory.counters.arrivals
    }

    /// Removes the entries of the outbox up to this number, which is not above that of the last entry. Returns the number up to which
    /// they are removed: a smaller one if there are many. Then call it again.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn remove_sent(&mut self, through: u64) -> Result<u64, FrontierError> {
        self.attempt(|frontier| {
            let store = &frontier.store;
            let mut batch = store.database.batch();
            let first = keys::outbox(frontier.outbox_removed);
            let (mut count, mut last) = (0, through);
            let entries = store.caller_values.range(first..=keys::outbox(through));
            for guard in entries.take(REMOVED_MAX) {
                let key = guard.key()?;
                count += 1;
                last = std::str::from_utf8(&key).map_or(through, keys::outbox_number);
                batch.remove(&store.caller_values, &*key);
            }
            batch.commit()?;
            let removed = match count < REMOVED_MAX {
                true => through,
                false => last,
            };
            frontier.outbox_removed = frontier.outbox_removed.max(removed);
            Ok(removed)
        })
    }
}

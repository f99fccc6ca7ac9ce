//! A frontier that has a part of a crawl, and its outbox: candidates that belong to other parts.
//!
//! A candidate goes into the outbox in the batch that would otherwise put it into a queue. So a page and its links to other parts
//! are recorded together, whenever the process dies. The caller sends the candidates to the frontiers of their parts, and removes
//! them when these have them, or somebody who keeps them.

use std::{fmt, sync::Arc};

use opilio_uri::Uri;

use crate::{
    Candidate, Frontier, FrontierError,
    change::Change,
    store::{decode, encode},
};

/// Prefix of the outbox among the caller's values.
const PREFIX: &str = "outbox/";

/// Entries that are removed at a time: the frontier answers nothing else meanwhile.
const REMOVED_MAX: usize = 10_000;

/// The part of a crawl that a frontier has.
#[derive(Clone)]
pub struct CrawlPart(Arc<HasQueue>);

type HasQueue = dyn Fn(&str, &Uri) -> bool + Send + Sync;

impl CrawlPart {
    /// Makes a part from a function that says whether a queue, with a URI of it, belongs to the part. The answer must be the same
    /// for all URIs of a queue, and must never change.
    pub fn new(has_queue: impl Fn(&str, &Uri) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(has_queue))
    }

    /// Returns `true` if the part has the queue of a candidate.
    #[must_use]
    pub fn has(&self, candidate: &Candidate) -> bool {
        (self.0)(&candidate.queue, &candidate.uri)
    }
}

impl fmt::Debug for CrawlPart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CrawlPart")
    }
}

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
    /// None that is known.
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

impl Change<'_> {
    /// Puts a candidate of another part into the outbox.
    pub(crate) fn send(&mut self, candidate: &Candidate) -> Result<(), FrontierError> {
        let name = name(self.counters.arrival());
        self.outbox
            .insert(name.into_bytes(), Some(encode(candidate)?));
        Ok(())
    }
}

impl Frontier {
    /// Up to `max` entries of the outbox, in their order, from the first after number `after` on.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn outbox(&self, after: u64, max: usize) -> Result<Vec<OutboxEntry>, FrontierError> {
        let after = name(after.max(self.outbox_removed));
        let values = self.caller_values_after(PREFIX, Some(&after), max)?;
        let entries = values.into_iter().map(|(name, value)| {
            Ok(OutboxEntry {
                number: number(&name),
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
            let first = name(frontier.outbox_removed);
            let (mut count, mut last) = (0, through);
            let entries = store.caller_values.range(first..=name(through));
            for guard in entries.take(REMOVED_MAX) {
                let key = guard.key()?;
                count += 1;
                last = std::str::from_utf8(&key).map_or(through, number);
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

/// Name of an entry. Twenty digits hold every number, and sort as the numbers do.
fn name(number: u64) -> String {
    format!("{PREFIX}{number:020}")
}

fn number(name: &str) -> u64 {
    let digits = name.strip_prefix(PREFIX).unwrap_or_default();
    digits.parse().unwrap_or(0)
}

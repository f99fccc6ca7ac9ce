//! Cached state: active queues and the heads of queues soon due. A missing value is read from the store. So any of it may be
//! dropped at any time without changing an answer.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};

use crate::{
    UriRecord,
    counters::Counters,
    groups::{GroupSlots, Groups},
    in_process::{Busy, BusyQueue, Issued},
    instant::Millis,
    keys::{self, Finder, OrderKey},
    queue::QueueRecord,
    queue_order::QueueOrder,
    record::CanonicalKey,
    store::{Entries, Entry, FrontierError, Store, decode, encode, read},
    window::Window,
};

/// Queues whose records are held; some 50 MB.
const QUEUES_HELD_MAX: usize = 128 * 1024;

/// Queues whose next URIs are held; at most some 200 MB.
const HEADS_HELD_MAX: usize = 128 * 1024;

/// Key of the time of a takeover among the facts about the store.
pub(crate) const TAKEOVER: &str = "takeover";

/// URIs read ahead from a queue.
const HEAD_READ: usize = 8;

pub(crate) struct Memory {
    pub(crate) counters: Counters,
    pub(crate) order: QueueOrder,
    pub(crate) queues: HashMap<Arc<str>, QueueRecord>,
    pub(crate) heads: HashMap<Arc<str>, Window>,
    pub(crate) seen: CanonicalCache,
    /// URIs in process, by ticket.
    pub(crate) busy: HashMap<u64, Busy>,
    pub(crate) busy_queues: BusyQueues,
    /// Queues that are reserved for a request of another queue, each with its ticket in the store.
    pub(crate) borrowed: HashMap<String, u64>,
    /// Records of URIs in process as they were when issued; `None` once they have been written since.
    busy_records: HashMap<String, Option<Box<UriRecord>>>,
    pub(crate) groups: Groups,
    /// Documents in process, by key of the tally in which they will count.
    reserved: HashMap<Vec<u8>, u64>,
    /// URIs that were in process when an earlier process ended. The first call that gets the time puts them back.
    pub(crate) recovered: Vec<(u64, Issued)>,
    pub(crate) next_ticket: u64,
    /// Time of the last [`Frontier::wait_everywhere`](crate::Frontier::wait_everywhere).
    pub(crate) taken_over: Option<Millis>,
    /// Changes since the store was opened.
    pub(crate) changes: u64,
}

pub(crate) type BusyQueues = HashMap<Arc<str>, BusyQueue>;

impl Memory {
    pub(crate) fn open(store: &Store) -> Result<Self, FrontierError> {
        let mut counters = match store.meta.get("counters")? {
            Some(bytes) => Counters::stored(&bytes)?,
            None => Counters::default(),
        };
        counters.openings = counters.openings.wrapping_add(1);
        store.meta.insert("counters", encode(&counters)?)?;
        let mut recovered = Vec::new();
        for guard in store.in_process.iter() {
            let (key, value) = guard.into_inner()?;
            let ticket = key[..]
                .try_into()
                .map(u64::from_be_bytes)
                .unwrap_or_default();
            recovered.push((ticket, decode("a URI in process", &key, &value)?));
        }
        Ok(Self {
            counters,
            order: QueueOrder::open(store)?,
            queues: HashMap::new(),
            heads: HashMap::new(),
            seen: CanonicalCache::default(),
            busy: HashMap::new(),
            busy_queues: BusyQueues::new(),
            borrowed: HashMap::new(),
            busy_records: HashMap::new(),
            groups: Groups::default(),
            reserved: HashMap::new(),
            next_ticket: u64::from(counters.openings) << 32,
            recovered,
            taken_over: match store.meta.get(TAKEOVER)? {
                Some(bytes) => Some(decode(
                    "the time of a takeover",
                    TAKEOVER.as_bytes(),
                    &bytes,
                )?),
                None => None,
            },
            changes: 0,
        })
    }

    pub(crate) fn is_record_busy(&self, record_key: &str) -> bool {
        self.busy_records.contains_key(record_key)
    }

    /// The record of a URI in process, if it is unchanged since it was issued.
    pub(crate) fn busy_record(&self, record_key: &str) -> Option<&UriRecord> {
        self.busy_records.get(record_key)?.as_deref()
    }

    /// The first ready URI of a queue: key in `ready`, record key.
    pub(crate) fn head(
        &mut self,
        store: &Store,
        queue: &Arc<str>,
    ) -> Result<Option<Entry>, FrontierError> {
        if self.heads.len() >= HEADS_HELD_MAX && !self.heads.contains_key(queue) {
            halve(&mut self.heads);
        }
        let window = self
            .heads
            .entry(queue.clone())
            .or_insert_with(|| Window::new(keys::queue_start(queue)));
        let end = keys::queue_end(queue);
        loop {
            let head = window.head(|from| read(&store.ready, from, &end, HEAD_READ))?;
            let Some((key, value)) = head else {
                return Ok(None);
            };
            let head = (key.to_vec(), value.to_vec());
            let is_busy = std::str::from_utf8(&head.1)
                .is_ok_and(|record_key| self.busy_records.contains_key(record_key));
            if !is_busy {
                return Ok(Some(head));
            }
            // It is put back here when it is finished. Until then it stays in the store.
            window.remove(&head.0);
        }
    }

    /// The URIs of a queue in process.
    pub(crate) fn busy_queue(&self, queue: &str) -> BusyQueue {
        self.busy_queues.get(queue).cloned().unwrap_or_default()
    }

    /// The same, once `busy` is issued.
    pub(crate) fn busy_with(&self, busy: &Busy) -> BusyQueue {
        let mut queue = self.busy_queue(&busy.queue);
        queue.add(busy);
        queue
    }

    /// The same, once `busy` is finished.
    pub(crate) fn busy_without(&self, busy: &Busy) -> BusyQueue {
        let mut queue = self.busy_queue(&busy.queue);
        queue.remove(busy);
        queue
    }

    /// Documents in process that will count in the tally under this key.
    pub(crate) fn reserved(&self, tally: &[u8]) -> u64 {
        self.reserved.get(tally).copied().unwrap_or(0)
    }

    /// Records that a URI is in process.
    pub(crate) fn issue(&mut self, ticket: u64, busy: Busy, record: UriRecord, queue: BusyQueue) {
        self.busy_queues.insert(busy.queue.clone(), queue);
        let record = Some(Box::new(record));
        self.busy_records.insert(busy.record_key.clone(), record);
        for tally in &busy.tallies {
            *self.reserved.entry(tally.clone()).or_default() += 1;
        }
        if let Some((group, slot)) = &busy.group {
            self.groups.issue(group, *slot);
        }
        self.busy.insert(ticket, busy);
    }

    /// Records that a URI is not in process any more. [`Memory::follow`] must follow.
    pub(crate) fn release(&mut self, ticket: u64) {
        let Some(busy) = self.busy.remove(&ticket) else {
            return;
        };
        self.busy_records.remove(&busy.record_key);
        for tally in &busy.tallies {
            if let Some(reserved) = self.reserved.get_mut(tally) {
                *reserved -= 1;
                if *reserved == 0 {
                    self.reserved.remove(tally);
                }
            }
        }
        if let Some(window) = self.heads.get_mut(&busy.queue) {
            window.insert(busy.ready_key, busy.record_key.into_bytes());
        }
    }

    /// Updates memory after a batch has been written.
    pub(crate) fn update(&mut self, written: WrittenBatch) {
        self.changes += 1;
        self.counters = written.counters;
        self.groups.update(written.groups);
        for key in written.busy_records {
            if let Some(record) = self.busy_records.get_mut(&key) {
                *record = None;
            }
        }
        for queue in &written.queues {
            // The ready URIs of this change are all that the queue has, so its head need not be read.
            if queue.had_none_ready
                && !queue.record.ready.is_empty()
                && self.heads.len() < HEADS_HELD_MAX
            {
                self.heads
                    .entry(queue.name.clone())
                    .or_insert_with(Window::empty);
            }
        }
        for (key, value) in written.ready {
            let name = key.split(|&byte| byte == 0).next().unwrap_or_default();
            let Some(window) = std::str::from_utf8(name)
                .ok()
                .and_then(|name| self.heads.get_mut(name))
            else {
                continue;
            };
            match value {
                Some(value) => window.insert(key, value),
                None => window.remove(&key),
            }
            window.shrink(HEAD_READ);
        }
        for (key, finder) in written.seen {
            self.seen.insert(key, finder);
        }
        for (key, value) in written.canonicals {
            match value {
                Some(value) => self.seen.insert(key, keys::finder_of(&value)),
                None => self.seen.remove(&key),
            }
        }
        if self.queues.len() >= QUEUES_HELD_MAX {
            halve(&mut self.queues);
        }
        for WrittenQueue {
            name,
            record,
            place_before,
            busy,
            had_none_ready: _,
        } in written.queues
        {
            if busy.slots.is_empty() {
                self.busy_queues.remove(&name);
            } else {
                self.busy_queues.insert(name.clone(), busy);
            }
            let place = record
                .order_key
                .map(|order_key| (record.precedence, order_key));
            // A queue that stood back for its group enters the order again: it may have another group now, or none.
            let stood_back = place_before.is_some_and(|(precedence, order_key)| {
                self.groups
                    .unpark(&keys::queue_order(precedence, order_key, &name))
            });
            if place != place_before || stood_back {
                if let Some((precedence, order_key)) = place_before {
                    self.order.remove(precedence, order_key, &name);
                }
                if let Some((precedence, order_key)) = place {
                    self.order.insert(precedence, order_key, &name);
                }
            }
            self.queues.insert(name, record);
        }
    }

    /// The waiting URIs of a queue that are due by `now`, at most `entries_max`, and the due time of the first one after them.
    pub(crate) fn due(
        store: &Store,
        queue: &str,
        from: Millis,
        now: Millis,
        entries_max: usize,
    ) -> Result<(Vec<Entry>, Millis), FrontierError> {
        let start = keys::waiting(queue, from, 0);
        let end = keys::queue_end(queue);
        let mut due = Vec::new();
        for guard in store.waiting.range::<Vec<u8>, _>(start..end) {
            let (key, value) = guard.into_inner()?;
            let (at, _) = keys::due(&key)
                .ok_or_else(|| crate::store::damaged("a malformed due time", &key))?;
            if at > now || due.len() == entries_max {
                return Ok((due, at));
            }
            due.push((key.to_vec(), value.to_vec()));
        }
        Ok((due, Millis::MAX))
    }
}

/// The written batch, from which memory is updated.
pub(crate) struct WrittenBatch {
    pub(crate) counters: Counters,
    pub(crate) seen: Vec<(CanonicalKey, Finder)>,
    pub(crate) ready: Entries,
    pub(crate) canonicals: HashMap<CanonicalKey, Option<Vec<u8>>>,
    pub(crate) queues: Vec<WrittenQueue>,
    pub(crate) groups: GroupSlots,
    pub(crate) site_values: Entries,
    pub(crate) site_figures: Entries,
    /// Records of URIs in process.
    pub(crate) busy_records: Vec<String>,
}

/// A queue whose record has been written.
pub(crate) struct WrittenQueue {
    pub(crate) name: Arc<str>,
    pub(crate) record: QueueRecord,
    /// `true` if it had no ready URI before.
    pub(crate) had_none_ready: bool,
    /// Its place in the queue order before.
    pub(crate) place_before: Option<(u8, OrderKey)>,
    /// Its URIs in process.
    pub(crate) busy: BusyQueue,
}

/// Drops every other entry. In a cache that is used in rotation, dropping the oldest entries would leave none that is asked for
/// again.
fn halve<K, V>(cache: &mut HashMap<K, V>) {
    let mut is_kept = false;
    cache.retain(|_, _| {
        is_kept = !is_kept;
        is_kept
    });
}

/// Canonical forms seen lately: most links of a site are the same few. If a key is not here, the store is asked.
///
/// A table with one slot for each hash. It doubles while its slots fill up, so that a small crawl does not touch the memory of a
/// large one.
#[derive(Debug)]
pub(crate) struct CanonicalCache {
    keys: Vec<CanonicalKey>,
    finders: Vec<Finder>,
    /// Slots in use.
    used: usize,
}

/// Slots at first.
const SEEN_SLOTS_MIN: usize = 1 << 12;

/// Most slots: 80 MB.
const SEEN_SLOTS_MAX: usize = 1 << 22;

impl Default for CanonicalCache {
    fn default() -> Self {
        Self::with_slots(SEEN_SLOTS_MIN)
    }
}

impl CanonicalCache {
    fn with_slots(slots: usize) -> Self {
        Self {
            keys: vec![CanonicalKey::default(); slots],
            finders: vec![0; slots],
            used: 0,
        }
    }

    /// The finder of a canonical form, if it is here.
    pub(crate) fn finder(&self, key: &CanonicalKey) -> Option<Finder> {
        let slot = self.slot(key);
        (self.keys[slot] == *key).then(|| self.finders[slot])
    }

    pub(crate) fn insert(&mut self, key: CanonicalKey, finder: Finder) {
        if self.used > self.keys.len() / 2 && self.keys.len() < SEEN_SLOTS_MAX {
            self.double();
        }
        let slot = self.slot(&key);
        self.used += usize::from(self.keys[slot] == CanonicalKey::default());
        self.keys[slot] = key;
        self.finders[slot] = finder;
    }

    pub(crate) fn remove(&mut self, key: &CanonicalKey) {
        if self.finder(key).is_some() {
            let slot = self.slot(key);
            self.keys[slot] = CanonicalKey::default();
            self.used -= 1;
        }
    }

    fn double(&mut self) {
        let mut larger = Self::with_slots(2 * self.keys.len());
        for (key, finder) in self.keys.iter().zip(&self.finders) {
            if *key != CanonicalKey::default() {
                larger.insert(*key, *finder);
            }
        }
        *self = larger;
    }

    fn slot(&self, key: &CanonicalKey) -> usize {
        let hash = usize::from(key[13]) << 16 | usize::from(key[14]) << 8 | usize::from(key[15]);
        hash % self.keys.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> CanonicalKey {
        let mut key = CanonicalKey::default();
        key[12..].copy_from_slice(&number.to_be_bytes());
        key
    }

    #[test]
    fn forms_seen_are_found_while_the_table_grows() {
        let mut seen = CanonicalCache::default();
        // One after another: each has a slot of its own.
        let keys: Vec<_> = (1..=3 * SEEN_SLOTS_MIN as u32).map(key).collect();
        for (finder, key) in (1..).zip(&keys) {
            seen.insert(*key, finder);
        }
        assert!(seen.keys.len() > 2 * SEEN_SLOTS_MIN);
        assert_eq!(seen.used, keys.len());
        for (finder, key) in (1..).zip(&keys) {
            assert_eq!(seen.finder(key), Some(finder));
        }
        seen.remove(&keys[7]);
        seen.insert(keys[8], 1_000);
        assert_eq!(
            (seen.finder(&keys[7]), seen.finder(&keys[8])),
            (None, Some(1_000))
        );
        assert_eq!(seen.used, keys.len() - 1);
    }
}

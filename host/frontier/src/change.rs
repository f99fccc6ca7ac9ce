//! The change that one call makes in the store. It reads through to the store, gathers its writes in memory, and writes them as
//! one atomic batch. Memory is updated only after the batch has been written.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use foldhash::{HashMap, HashMapExt as _};

use jiff::Timestamp;

use crate::{
    Directive, FrontierConfig, LastOutcome, Strategy, Tally, UriRecord, UriState,
    counters::Counters,
    groups::GroupSlots,
    in_process::{Busy, BusyQueue},
    instant::{self, Millis},
    keys::{self, Finder, OrderKey, Rank},
    memory::{Memory, WrittenBatch, WrittenQueue},
    queue::QueueRecord,
    record::CanonicalKey,
    store::{Entries, Entry, FrontierError, Store, damaged, decode, encode, read},
};

/// The reads and writes of one call. A read sees the writes gathered so far; [`WriteBatch::write`] stores them as one batch.
pub(crate) struct WriteBatch<'f> {
    pub(crate) store: &'f Store,
    pub(crate) config: &'f FrontierConfig,
    pub(crate) memory: &'f Memory,
    pub(crate) now: Timestamp,
    pub(crate) counters: Counters,
    pub(crate) issued: Entries,
    /// Canonical forms found in the store, with their first finders.
    pub(crate) seen: Vec<(CanonicalKey, Finder)>,
    records: HashMap<String, Slot>,
    canonicals: HashMap<CanonicalKey, Option<Vec<u8>>>,
    /// In the order in which they were touched. Queues enter the queue order in this order.
    queues: Vec<TouchedQueue>,
    queue_positions: HashMap<Arc<str>, usize>,
    ready: Entries,
    waiting: Entries,
    /// The URIs of a queue that are in process once this change is written.
    busy_after: Option<(Arc<str>, BusyQueue)>,
    groups: GroupSlots,
    tallies: HashMap<Vec<u8>, Tally>,
    pub(crate) embeds: Entries,
    pub(crate) shown: Entries,
    pub(crate) refused: Entries,
    pub(crate) site_values: Entries,
    pub(crate) site_figures: Entries,
    pub(crate) outbox: Entries,
    /// Sites that had a URI forgotten, by their range in `uris`, `site_values` and `site_figures`.
    pub(crate) left_sites: BTreeSet<(Vec<u8>, Vec<u8>)>,
}

/// A record that was read or changed.
struct Slot {
    record: Option<Box<UriRecord>>,
    is_changed: bool,
}

struct TouchedQueue {
    name: Arc<str>,
    record: QueueRecord,
    busy: BusyQueue,
    /// `true` if the store has no ready URI of it.
    had_none_ready: bool,
    /// Its place in the queue order, as stored.
    place_before: Option<(u8, OrderKey)>,
    place_change: PlaceChange,
    /// `true` if the first waiting URI was taken away, so that the due time of the next must be read.
    has_lost_first: bool,
}

/// Whether a touched queue gets a new place in the queue order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlaceChange {
    /// The queue stays where it is.
    Stay,
    /// The queue keeps its place if that is still right, since its ready URIs have changed.
    Revise,
    /// The queue gives up its place and gets a new one.
    Again,
}

impl<'f> WriteBatch<'f> {
    pub(crate) fn new(
        store: &'f Store,
        config: &'f FrontierConfig,
        memory: &'f Memory,
        now: Timestamp,
    ) -> Self {
        Self {
            store,
            config,
            memory,
            now,
            counters: memory.counters,
            issued: Entries::new(),
            seen: Vec::new(),
            records: HashMap::new(),
            canonicals: HashMap::new(),
            queues: Vec::new(),
            queue_positions: HashMap::new(),
            ready: Entries::new(),
            waiting: Entries::new(),
            busy_after: None,
            groups: GroupSlots::new(),
            tallies: HashMap::new(),
            embeds: Entries::new(),
            shown: Entries::new(),
            refused: Entries::new(),
            site_values: Entries::new(),
            site_figures: Entries::new(),
            outbox: Entries::new(),
            left_sites: BTreeSet::new(),
        }
    }

    /// Records that a URI is being issued.
    pub(crate) fn issues(&mut self, busy: &Busy) {
        self.busy_after = Some((busy.queue.clone(), self.memory.busy_with(busy)));
    }

    /// Records that a URI is finished.
    pub(crate) fn finishes(&mut self, busy: &Busy) {
        self.busy_after = Some((busy.queue.clone(), self.memory.busy_without(busy)));
    }

    /// Reserves room for this many new URIs.
    pub(crate) fn reserve(&mut self, candidates: usize) {
        self.records.reserve(candidates);
        self.canonicals.reserve(candidates);
    }

    /// A copy of the record under a key. To change it, put it back with [`WriteBatch::put`].
    pub(crate) fn record(&mut self, key: &str) -> Result<Option<UriRecord>, FrontierError> {
        if let Some(slot) = self.records.get(key) {
            return Ok(slot.record.as_deref().cloned());
        }
        if let Some(record) = self.memory.busy_record(key) {
            return Ok(Some(record.clone()));
        }
        let Some(bytes) = self.store.uris.get(key)? else {
            return Ok(None);
        };
        Ok(Some(decode("a record of a URI", key.as_bytes(), &bytes)?))
    }

    pub(crate) fn has_record(&self, key: &str) -> Result<bool, FrontierError> {
        match self.records.get(key) {
            Some(slot) => Ok(slot.record.is_some()),
            None => Ok(self.store.uris.contains_key(key)?),
        }
    }

    /// The record of a queued URI, which must exist.
    pub(crate) fn known_record(&mut self, key: &str) -> Result<UriRecord, FrontierError> {
        self.record(key)?
            .ok_or_else(|| damaged("a queued URI without a record", key.as_bytes()))
    }

    pub(crate) fn put(&mut self, key: &str, record: UriRecord) {
        self.records.insert(
            key.to_owned(),
            Slot {
                record: Some(Box::new(record)),
                is_changed: true,
            },
        );
    }

    /// Removes a record, and its canonical form if the index leads to the record.
    pub(crate) fn remove(&mut self, key: &str, record: &UriRecord) {
        self.records.insert(
            key.to_owned(),
            Slot {
                record: None,
                is_changed: true,
            },
        );
        if record.owns_canonical {
            self.remove_canonical(record.canonical);
        }
    }

    /// The index entry of a canonical form.
    pub(crate) fn canonical(&self, key: &CanonicalKey) -> Result<Option<Vec<u8>>, FrontierError> {
        match self.canonicals.get(key) {
            Some(value) => Ok(value.clone()),
            None => Ok(self
                .store
                .canonical_forms
                .get(key)?
                .map(|value| value.to_vec())),
        }
    }

    /// The finder of a canonical form that this change puts into the index.
    pub(crate) fn finder_put(&self, key: &CanonicalKey) -> Option<Finder> {
        let value = self.canonicals.get(key)?.as_ref()?;
        Some(keys::finder_of(value))
    }

    /// Records that a further source has found this canonical form.
    pub(crate) fn share(&mut self, key: CanonicalKey) -> Result<(), FrontierError> {
        if let Some(value) = self.canonical(&key)? {
            self.put_canonical(key, keys::shared(&value));
        }
        Ok(())
    }

    /// Removes a canonical form from the index, so that it counts as unknown.
    pub(crate) fn remove_canonical(&mut self, key: CanonicalKey) {
        self.counters.withdrawn += 1;
        self.canonicals.insert(key, None);
    }

    pub(crate) fn put_canonical(&mut self, key: CanonicalKey, value: Vec<u8>) {
        self.canonicals.insert(key, Some(value));
    }

    pub(crate) fn queue(&mut self, name: &str) -> Result<&mut QueueRecord, FrontierError> {
        Ok(&mut self.touch(name)?.record)
    }

    fn touch(&mut self, name: &str) -> Result<&mut TouchedQueue, FrontierError> {
        let position = match self.queue_positions.get(name) {
            Some(&position) => position,
            None => {
                let (name, mut record) = match self.memory.queues.get_key_value(name) {
                    Some((name, record)) => (name.clone(), record.clone()),
                    None => (
                        Arc::from(name),
                        read_queue(self.store, name)?
                            .unwrap_or_else(|| QueueRecord::new(name, self.config)),
                    ),
                };
                let had_none_ready = record.ready.is_empty();
                let place_before = record
                    .order_key
                    .map(|order_key| (record.precedence, order_key));
                let mut place_change = PlaceChange::Stay;
                if record.settings_hash != self.config.settings_hash {
                    record.resolve(&name, self.config);
                    place_change = PlaceChange::Revise;
                }
                self.queue_positions.insert(name.clone(), self.queues.len());
                self.queues.push(TouchedQueue {
                    name,
                    record,
                    busy: BusyQueue::default(),
                    had_none_ready,
                    place_before,
                    place_change,
                    has_lost_first: false,
                });
                self.queues.len() - 1
            }
        };
        Ok(&mut self.queues[position])
    }

    /// Makes the queue give up its place and take a new one: after a fetch, or because it had nothing to issue.
    pub(crate) fn take_new_place(&mut self, name: &str) -> Result<(), FrontierError> {
        self.touch(name)?.place_change = PlaceChange::Again;
        Ok(())
    }

    /// Adds a ready URI.
    pub(crate) fn put_ready(
        &mut self,
        queue: &str,
        rank: Rank,
        record_key: &str,
    ) -> Result<(), FrontierError> {
        let touched = self.touch(queue)?;
        touched.record.add_ready(rank.precedence);
        touched.place_change = touched.place_change.or_revise();
        self.ready.insert(
            keys::ready(queue, rank),
            Some(record_key.as_bytes().to_vec()),
        );
        Ok(())
    }

    /// Makes the queue take another place if its state has changed.
    pub(crate) fn revise(&mut self, name: &str) -> Result<(), FrontierError> {
        let touched = self.touch(name)?;
        touched.place_change = touched.place_change.or_revise();
        Ok(())
    }

    /// Adds a URI to the ready ones, or to the waiting ones if it is not yet due.
    pub(crate) fn put_queued(
        &mut self,
        queue: &str,
        rank: Rank,
        record_key: &str,
    ) -> Result<(), FrontierError> {
        if rank.due > instant::floor(self.now) {
            self.put_waiting(queue, rank, record_key)
        } else {
            self.put_ready(queue, rank, record_key)
        }
    }

    /// Takes a URI in process out of the ready ones, where it stays while it is in process.
    pub(crate) fn take_busy(&mut self, queue: &str, rank: Rank) -> Result<(), FrontierError> {
        let touched = self.touch(queue)?;
        touched.record.remove_ready(rank.precedence);
        touched.place_change = touched.place_change.or_revise();
        self.ready.insert(keys::ready(queue, rank), None);
        Ok(())
    }

    /// Takes a URI out of the ready ones, if it is one of them.
    pub(crate) fn take_ready(&mut self, queue: &str, rank: Rank) -> Result<bool, FrontierError> {
        if !self.is_ready(queue, rank)? {
            return Ok(false);
        }
        self.take_busy(queue, rank)?;
        Ok(true)
    }

    /// Adds a waiting URI.
    pub(crate) fn put_waiting(
        &mut self,
        queue: &str,
        rank: Rank,
        record_key: &str,
    ) -> Result<(), FrontierError> {
        let touched = self.touch(queue)?;
        touched.record.waiting += 1;
        touched.record.first_due = touched.record.first_due.min(rank.due);
        touched.place_change = touched.place_change.or_revise();
        let value = keys::waiting_value(rank.directive, rank.precedence, record_key.as_bytes());
        self.waiting
            .insert(keys::waiting(queue, rank.due, rank.arrival), Some(value));
        Ok(())
    }

    /// Takes a URI out of the waiting ones, if it is one of them.
    pub(crate) fn take_waiting(&mut self, queue: &str, rank: Rank) -> Result<bool, FrontierError> {
        let key = keys::waiting(queue, rank.due, rank.arrival);
        if !self.is_in(&self.waiting, &self.store.waiting, &key)? {
            return Ok(false);
        }
        let touched = self.touch(queue)?;
        touched.record.waiting = touched.record.waiting.saturating_sub(1);
        touched.has_lost_first |= rank.due <= touched.record.first_due;
        touched.place_change = touched.place_change.or_revise();
        self.waiting.insert(key, None);
        Ok(true)
    }

    /// Whether a queued URI is among the ready ones.
    pub(crate) fn is_ready(&self, queue: &str, rank: Rank) -> Result<bool, FrontierError> {
        self.is_in(&self.ready, &self.store.ready, &keys::ready(queue, rank))
    }

    /// Takes a queued URI out of its queue, ready or waiting.
    pub(crate) fn take_queued(&mut self, record: &UriRecord) -> Result<(), FrontierError> {
        if let Some(rank) = rank(record) {
            let is_taken =
                self.take_ready(&record.queue, rank)? || self.take_waiting(&record.queue, rank)?;
            if !is_taken {
                return Err(damaged(
                    "a queued URI in none of the orders",
                    record.queue.as_bytes(),
                ));
            }
        }
        Ok(())
    }

    /// Moves a queue's URIs that are due by `now` to the ready ones: `entries`, as read from `waiting`. The first of those left
    /// behind is due at `next_due`.
    pub(crate) fn move_due(
        &mut self,
        queue: &str,
        entries: Vec<Entry>,
        next_due: Millis,
    ) -> Result<(), FrontierError> {
        let moved = entries.len() as u64;
        let mut precedences = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let (due, arrival) =
                keys::due(&key).ok_or_else(|| damaged("a malformed due time", &key))?;
            let (directive, precedence, record_key) = keys::from_waiting_value(&value)
                .ok_or_else(|| damaged("a malformed waiting URI", &key))?;
            precedences.push(precedence);
            self.ready.insert(
                keys::ready(
                    queue,
                    Rank {
                        directive,
                        precedence,
                        due,
                        arrival,
                    },
                ),
                Some(record_key.to_vec()),
            );
            self.waiting.insert(key, None);
        }
        let touched = self.touch(queue)?;
        // The best of them may give the queue another precedence.
        touched.place_change = touched.place_change.or_revise();
        let record = &mut touched.record;
        for precedence in precedences {
            record.add_ready(precedence);
        }
        record.waiting = record.waiting.saturating_sub(moved);
        record.first_due = next_due;
        Ok(())
    }

    /// Moves a URI from the count of its last outcome to the count of this one.
    pub(crate) fn set_last_outcome(&mut self, record: &mut UriRecord, outcome: LastOutcome) {
        for (counted, change) in [(record.last_outcome, -1), (outcome, 1)] {
            let statistics = &mut self.counters.statistics;
            let count = match counted {
                LastOutcome::Open => continue,
                LastOutcome::Succeeded => &mut statistics.succeeded,
                LastOutcome::Failed => &mut statistics.failed,
                LastOutcome::Disregarded => &mut statistics.disregarded,
                LastOutcome::Prerequisite => &mut statistics.prerequisites,
            };
            *count = count.saturating_add_signed(change);
        }
        record.last_outcome = outcome;
    }

    /// Subtracts a URI from the queued ones.
    pub(crate) fn count_dequeued(&mut self) {
        let queued = &mut self.counters.statistics.queued;
        *queued = queued.saturating_sub(1);
    }

    /// Makes a slot of the queue wait at least this long from now on.
    pub(crate) fn delay_slot(
        &mut self,
        queue: &str,
        slot: u16,
        delay: Duration,
    ) -> Result<(), FrontierError> {
        let until = instant::after(self.now, delay);
        self.queue(queue)?.delay_slot(slot, until);
        Ok(())
    }

    /// Makes all slots of the queue wait at least this long from now on.
    pub(crate) fn delay_queue(
        &mut self,
        queue: &str,
        delay: Duration,
    ) -> Result<(), FrontierError> {
        let until = instant::after(self.now, delay);
        let config = self.config;
        self.queue(queue)?.delay_slots(until, config);
        Ok(())
    }

    /// Makes a slot of a server group wait at least until then.
    pub(crate) fn delay_group(
        &mut self,
        group: &str,
        slot: u16,
        until: Millis,
    ) -> Result<(), FrontierError> {
        let slots =
            self.memory
                .groups
                .with_delayed_slot(self.store, &self.groups, group, slot, until)?;
        self.groups.insert(group.to_owned(), slots);
        Ok(())
    }

    /// Shortens the waits of a server group's slots to `longest` from now on. Returns `true` if one was longer.
    pub(crate) fn shorten_group(
        &mut self,
        group: &str,
        longest: Duration,
    ) -> Result<bool, FrontierError> {
        let until = instant::after(self.now, longest);
        let groups = &self.memory.groups;
        let slots = groups.shortened(self.store, &self.groups, group, until)?;
        let is_long = slots.is_some();
        if let Some(slots) = slots {
            self.groups.insert(group.to_owned(), slots);
        }
        Ok(is_long)
    }

    /// The tally under a key.
    pub(crate) fn tally(&mut self, key: &[u8]) -> Result<&mut Tally, FrontierError> {
        if !self.tallies.contains_key(key) {
            let tally = read_tally(self.store, key)?;
            self.tallies.insert(key.to_vec(), tally);
        }
        // The entry exists: it was inserted above.
        Ok(self.tallies.entry(key.to_vec()).or_default())
    }

    /// The politeness delay after a request that took this long.
    pub(crate) fn politeness_delay(
        &mut self,
        queue: &str,
        fetch_duration: Duration,
    ) -> Result<Duration, FrontierError> {
        let config = self.config;
        let record = self.queue(queue)?;
        let politeness = &record.settings(config).politeness;
        Ok(politeness.delay_after(fetch_duration, record.crawl_delay))
    }

    fn is_in(
        &self,
        changed: &Entries,
        keyspace: &fjall::Keyspace,
        key: &[u8],
    ) -> Result<bool, FrontierError> {
        match changed.get(key) {
            Some(value) => Ok(value.is_some()),
            None => Ok(keyspace.contains_key(key)?),
        }
    }

    /// Writes all changes in one batch and hands them to the operating system.
    pub(crate) fn write(mut self) -> Result<WrittenBatch, FrontierError> {
        self.remove_empty_sites()?;
        let mut queue_order = Entries::new();
        // A queue that has just issued a URI gets its place behind the queues that it woke.
        let (again, others): (Vec<_>, Vec<_>) = (0..self.queues.len())
            .partition(|&position| self.queues[position].place_change == PlaceChange::Again);
        for position in others.into_iter().chain(again) {
            self.take_place(position)?;
            let queue = &self.queues[position];
            let place = queue
                .record
                .order_key
                .map(|order_key| (queue.record.precedence, order_key));
            if place != queue.place_before {
                for (place, value) in [(queue.place_before, None), (place, Some(Vec::new()))] {
                    if let Some((precedence, order_key)) = place {
                        queue_order
                            .insert(keys::queue_order(precedence, order_key, &queue.name), value);
                    }
                }
            }
        }

        let mut batch = self.store.database.batch();
        let mut records: Vec<_> = self
            .records
            .into_iter()
            .filter(|(_, slot)| slot.is_changed)
            .collect();
        records.sort_unstable_by(|(key, _), (other, _)| key.cmp(other));
        let mut busy_records = Vec::new();
        // Each record is dropped as it is encoded: a bulk has hundreds of thousands.
        for (key, slot) in records {
            match slot.record {
                Some(record) => {
                    batch.insert(&self.store.uris, key.as_bytes(), encode(record.as_ref())?);
                }
                None => batch.remove(&self.store.uris, key.as_bytes()),
            }
            if self.memory.is_record_busy(&key) {
                busy_records.push(key);
            }
        }
        let mut canonicals: Vec<_> = self.canonicals.iter().collect();
        canonicals.sort_unstable_by_key(|(key, _)| *key);
        for (key, value) in canonicals {
            match value {
                Some(value) => {
                    batch.insert(&self.store.canonical_forms, &key[..], value.as_slice())
                }
                None => batch.remove(&self.store.canonical_forms, &key[..]),
            }
        }
        for (keyspace, entries) in [
            (&self.store.ready, &self.ready),
            (&self.store.waiting, &self.waiting),
            (&self.store.in_process, &self.issued),
            (&self.store.queue_order, &queue_order),
            (&self.store.embeds_by_page, &self.embeds),
            (&self.store.pages_by_embed, &self.shown),
            (&self.store.refused_uris, &self.refused),
            (&self.store.site_values, &self.site_values),
            (&self.store.site_figures, &self.site_figures),
            (&self.store.caller_values, &self.outbox),
        ] {
            for (key, value) in entries {
                match value {
                    Some(value) => batch.insert(keyspace, key.as_slice(), value.as_slice()),
                    None => batch.remove(keyspace, key.as_slice()),
                }
            }
        }
        for (name, slots) in &self.groups {
            batch.insert(&self.store.server_groups, name.as_bytes(), encode(slots)?);
        }
        for (key, tally) in &self.tallies {
            batch.insert(&self.store.tallies, key.as_slice(), encode(tally)?);
        }
        for queue in &self.queues {
            batch.insert(
                &self.store.queues,
                queue.name.as_bytes(),
                encode(&queue.record)?,
            );
        }
        if !batch.is_empty() {
            batch.insert(&self.store.meta, "counters", encode(&self.counters)?);
            batch.commit()?;
        }

        Ok(WrittenBatch {
            counters: self.counters,
            seen: self.seen,
            ready: self.ready,
            canonicals: self.canonicals,
            queues: self
                .queues
                .into_iter()
                .map(|queue| WrittenQueue {
                    name: queue.name,
                    record: queue.record,
                    had_none_ready: queue.had_none_ready,
                    place_before: queue.place_before,
                    busy: queue.busy,
                })
                .collect(),
            groups: self.groups,
            site_values: self.site_values,
            site_figures: self.site_figures,
            busy_records,
        })
    }

    /// Removes the state kept for a site together with the last known URI of the site.
    fn remove_empty_sites(&mut self) -> Result<(), FrontierError> {
        for (start, end) in std::mem::take(&mut self.left_sites) {
            let (values, _) = read(&self.store.site_values, &start, &end, usize::MAX)?;
            let (figures, _) = read(&self.store.site_figures, &start, &end, usize::MAX)?;
            if values.is_empty() && figures.is_empty() || self.has_records(&start, &end)? {
                continue;
            }
            let removed = |(key, _)| (key, None);
            self.site_values.extend(values.into_iter().map(removed));
            self.site_figures.extend(figures.into_iter().map(removed));
        }
        Ok(())
    }

    /// Whether a record exists from `start` up to but not including `end`, once this change is written.
    fn has_records(&self, start: &[u8], end: &[u8]) -> Result<bool, FrontierError> {
        let is_put = self
            .records
            .iter()
            .any(|(key, slot)| slot.record.is_some() && (start..end).contains(&key.as_bytes()));
        if is_put {
            return Ok(true);
        }
        for guard in self.store.uris.range(start..end) {
            let key = guard.key()?;
            let is_removed =
                std::str::from_utf8(&key).is_ok_and(|key| self.records.contains_key(key));
            if !is_removed {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives a touched queue its place in the queue order.
    fn take_place(&mut self, position: usize) -> Result<(), FrontierError> {
        if self.queues[position].has_lost_first {
            self.queues[position].record.first_due = self.read_first_due(position)?;
        }
        let busy_after = match &self.busy_after {
            Some((name, busy)) if *name == self.queues[position].name => busy.clone(),
            _ => self.memory.busy_queue(&self.queues[position].name),
        };
        let config = self.config;
        let now = instant::floor(self.now);
        let touched = &mut self.queues[position];
        let record = &mut touched.record;
        touched.busy = busy_after;
        touched.busy.fill(record, config);
        record.precedence = record.computed_precedence(config);

        let in_process = touched.busy.slots.len() as u64;
        let is_ready = record.ready_count() > in_process;
        let is_inactive = config.session_budget.is_some() && record.balance <= 0;
        let earliest = record
            .free_slot(&touched.busy.slots, config)
            .map(|(_, at)| at.max(if is_ready { now } else { record.first_due }));
        record.order_key = match (touched.place_change, record.order_key, earliest) {
            _ if record.hold(config).is_some() => None,
            // The queue keeps its place until the URI that it issued is finished.
            (PlaceChange::Stay | PlaceChange::Revise, order_key, _) if touched.busy.is_full => {
                order_key
            }
            (PlaceChange::Stay, order_key, _) => order_key,
            _ if !is_ready && record.waiting == 0 => None,
            (_, order_key, None) => order_key,
            // A queue that has been ready for long does not fall back because it gets more URIs. If its settings let it issue
            // only later, its place is later too.
            (PlaceChange::Revise, Some(order_key), Some(earliest))
                if order_key.is_inactive == is_inactive
                    && (order_key.wake == earliest
                        || is_ready && order_key.wake <= earliest && earliest <= now) =>
            {
                Some(order_key)
            }
            (_, _, Some(earliest)) => Some(OrderKey {
                is_inactive,
                wake: earliest,
                arrival: self.counters.arrival(),
            }),
        };
        Ok(())
    }

    /// The due time of the first waiting URI in a queue, this change included.
    fn read_first_due(&self, position: usize) -> Result<Millis, FrontierError> {
        let queue = &self.queues[position];
        if queue.record.waiting == 0 {
            return Ok(Millis::MAX);
        }
        let range =
            keys::waiting(&queue.name, queue.record.first_due, 0)..keys::queue_end(&queue.name);
        let mut first = self
            .waiting
            .range(range.clone())
            .find(|(_, value)| value.is_some())
            .map(|(key, _)| key.clone());
        for guard in self.store.waiting.range(range) {
            let key = guard.key()?;
            if !self.waiting.contains_key(&key[..]) {
                first = Some(first.map_or_else(|| key.to_vec(), |first| first.min(key.to_vec())));
                break;
            }
        }
        Ok(first
            .and_then(|key| keys::due(&key))
            .map_or(Millis::MAX, |(due, _)| due))
    }
}

impl PlaceChange {
    fn or_revise(self) -> Self {
        if self == Self::Stay {
            Self::Revise
        } else {
            self
        }
    }
}

/// The rank of a queued URI; `None` if it is not queued.
pub(crate) fn rank(record: &UriRecord) -> Option<Rank> {
    match record.state {
        UriState::Queued {
            directive,
            due,
            arrival,
        } => Some(Rank {
            directive,
            precedence: record.precedence,
            due: instant::floor(due),
            arrival,
        }),
        UriState::Done | UriState::Deleted | UriState::Faded => None,
    }
}

/// The state that a rank describes.
pub(crate) fn state_of(rank: Rank) -> UriState {
    UriState::Queued {
        directive: rank.directive,
        due: instant::timestamp(rank.due),
        arrival: rank.arrival,
    }
}

pub(crate) fn read_tally(store: &Store, key: &[u8]) -> Result<Tally, FrontierError> {
    match store.tallies.get(key)? {
        Some(bytes) => decode("a tally", key, &bytes),
        None => Ok(Tally::default()),
    }
}

pub(crate) fn read_queue(store: &Store, name: &str) -> Result<Option<QueueRecord>, FrontierError> {
    match store.queues.get(name)? {
        Some(bytes) => Ok(Some(decode("a queue's record", name.as_bytes(), &bytes)?)),
        None => Ok(None),
    }
}

/// The directive of a new or raised URI, from the directive of its candidate and its hop path.
pub(crate) fn directive(
    given: Directive,
    hop_path: &opilio_uri::HopPath,
    strategy: Strategy,
    config: &FrontierConfig,
) -> Directive {
    use opilio_uri::Hop;
    let trailing = hop_path.trailing();
    let embed_preference_hops = if strategy.revisits() {
        config.embed_preference_hops_of_revisits
    } else {
        config.embed_preference_hops
    };
    let found = match hop_path.last() {
        Some(Hop::Redirect) => Directive::Medium,
        Some(_) if (1..=embed_preference_hops).contains(&trailing.embeds) => Directive::Medium,
        _ => Directive::Normal,
    };
    match given {
        Directive::Highest if hop_path.last() != Some(Hop::Prerequisite) => Directive::High,
        given => given.max(found),
    }
}

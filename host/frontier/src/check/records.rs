//! Check of the URI records, and of the queue places that follow from them.

use fjall::Keyspace;
use xxhash_rust::xxh3::xxh3_64;

use super::{Check, InconsistencyKind};
use crate::{
    FrontierError, LastOutcome, UriRecord, candidate::is_queue_name, change::rank,
    frontier::uri_of, keys, record::CanonicalKey, store::decode,
};

/// Results of the pass over the records, for later passes.
pub(super) struct RecordTotals {
    /// URIs that are in their order as they should be, or will be once repairs are written.
    pub(super) in_order: u64,
    pub(super) canonicals: CanonicalSet,
    /// A checksum that is constant while each URI counts the pages that embed it. It is the sum over all URIs of that count times
    /// the hash of the record key.
    pub(super) referrers: u64,
}

/// Canonical keys in a Bloom filter of fixed size. A key that the filter does not contain was certainly not put.
pub(super) struct CanonicalSet {
    words: Vec<u64>,
}

/// 64 MiB. With 10 million keys, 3 in 100,000 absent keys seem present; with 100 million, 9 in 100.
const SET_WORDS: usize = 8 * 1024 * 1024;

/// Bits set for each key.
const SET_HASHES: u64 = 4;

impl CanonicalSet {
    fn new() -> Self {
        Self {
            words: vec![0; SET_WORDS],
        }
    }

    fn put(&mut self, key: &[u8]) {
        for (word, bit) in Self::bits(key) {
            self.words[word] |= bit;
        }
    }

    pub(super) fn may_hold(&self, key: &[u8]) -> bool {
        Self::bits(key).all(|(word, bit)| self.words[word] & bit != 0)
    }

    fn bits(key: &[u8]) -> impl Iterator<Item = (usize, u64)> {
        let hash = xxh3_64(key);
        let step = hash.rotate_left(32) | 1;
        (0..SET_HASHES).map(move |round| {
            let at = hash.wrapping_add(step.wrapping_mul(round)) % (SET_WORDS as u64 * 64);
            (usize::try_from(at / 64).unwrap_or(0), 1 << (at % 64))
        })
    }
}

impl Check<'_> {
    /// Reads every record, and checks its entry in the orders.
    pub(super) fn records(&mut self) -> Result<RecordTotals, FrontierError> {
        let mut seen = RecordTotals {
            in_order: 0,
            canonicals: CanonicalSet::new(),
            referrers: 0,
        };
        for guard in self.store.uris.iter() {
            let (key, bytes) = guard.into_inner()?;
            let record = decode::<UriRecord>("a record of a URI", &key, &bytes)
                .and_then(|record| uri_of(&key).map(|_| record))
                .ok()
                .filter(|record| is_queue_name(&record.queue));
            match record {
                Some(record) => self.record(&key, &record, &mut seen)?,
                None => {
                    self.report(InconsistencyKind::Malformed("uris"), &key);
                    self.put_repair("uris", &key, None)?;
                }
            }
        }
        self.write()?;
        Ok(seen)
    }

    fn record(
        &mut self,
        key: &[u8],
        record: &UriRecord,
        seen: &mut RecordTotals,
    ) -> Result<(), FrontierError> {
        self.summary.uris += 1;
        self.counted.discovered += 1;
        match record.last_outcome {
            LastOutcome::Open => {}
            LastOutcome::Succeeded => self.counted.succeeded += 1,
            LastOutcome::Failed => self.counted.failed += 1,
            LastOutcome::Disregarded => self.counted.disregarded += 1,
            LastOutcome::Prerequisite => self.counted.prerequisites += 1,
        }
        if record.owns_canonical {
            self.canonical(key, record.canonical)?;
        }
        seen.canonicals.put(&record.canonical);
        seen.referrers = seen
            .referrers
            .wrapping_add(xxh3_64(key).wrapping_mul(record.referrers.into()));

        let Some(rank) = rank(record) else {
            return Ok(());
        };
        self.summary.queued += 1;
        self.counted.queued += 1;
        self.arrived(rank.arrival);
        let ready_key = keys::ready(&record.queue, rank);
        let waiting_key = keys::waiting(&record.queue, rank.due, rank.arrival);
        let waiting_value = keys::waiting_value(rank.directive, rank.precedence, key);
        let is_ready = holds(&self.store.ready, &ready_key, key)?;
        let is_waiting = holds(&self.store.waiting, &waiting_key, &waiting_value)?;
        match (is_ready, is_waiting) {
            (true, false) | (false, true) => seen.in_order += 1,
            (false, false) => {
                self.report(InconsistencyKind::NotInQueue, key);
                // Not among the ready ones, which are fetched whatever their due time.
                self.put_repair("waiting", &waiting_key, Some(waiting_value))?;
                seen.in_order += u64::from(self.repairs);
            }
            (true, true) => {
                self.report(InconsistencyKind::InBothOrders, key);
                self.put_repair("ready", &ready_key, None)?;
                seen.in_order += 1;
            }
        }
        Ok(())
    }

    fn canonical(&mut self, key: &[u8], canonical: CanonicalKey) -> Result<(), FrontierError> {
        if !self.store.canonical_forms.contains_key(canonical)? {
            self.report(InconsistencyKind::NoCanonical, key);
            self.put_repair(
                "canonical_forms",
                &canonical,
                Some(keys::whole_canonical_value(key)),
            )?;
        }
        Ok(())
    }

    /// Reports entries of the orders without a record, if there are more entries than queued records.
    pub(super) fn stray_entries(&mut self, in_order: u64) -> Result<(), FrontierError> {
        if self.store.ready.len()? as u64 + self.store.waiting.len()? as u64 == in_order {
            return Ok(());
        }
        for guard in self.store.ready.iter() {
            let (key, value) = guard.into_inner()?;
            let stands = self.queued(&value)?.is_some_and(|record| {
                rank(&record).is_some_and(|rank| keys::ready(&record.queue, rank) == *key)
            });
            if !stands {
                self.report(InconsistencyKind::Stray, &value);
                self.put_repair("ready", &key, None)?;
            }
        }
        for guard in self.store.waiting.iter() {
            let (key, value) = guard.into_inner()?;
            let record_key = keys::from_waiting_value(&value).map_or(&value[..], |(.., key)| key);
            let stands = self.queued(record_key)?.is_some_and(|record| {
                rank(&record).is_some_and(|rank| {
                    keys::waiting(&record.queue, rank.due, rank.arrival) == *key
                        && keys::waiting_value(rank.directive, rank.precedence, record_key)
                            == *value
                })
            });
            if !stands {
                self.report(InconsistencyKind::Stray, record_key);
                self.put_repair("waiting", &key, None)?;
            }
        }
        self.write()
    }

    /// The record under a key, if it can be read and is queued.
    pub(super) fn queued(&self, key: &[u8]) -> Result<Option<UriRecord>, FrontierError> {
        if key.is_empty() || key.len() > usize::from(u16::MAX) {
            return Ok(None);
        }
        let Some(bytes) = self.store.uris.get(key)? else {
            return Ok(None);
        };
        let record = decode::<UriRecord>("a record of a URI", key, &bytes).ok();
        Ok(record.filter(|record| rank(record).is_some()))
    }
}

fn holds(keyspace: &Keyspace, key: &[u8], value: &[u8]) -> Result<bool, FrontierError> {
    Ok(keyspace.get(key)?.is_some_and(|found| *found == *value))
}

//! Links to other partitions, which are collected into messages. The batcher leaves out known links, and keeps track of links that
//! are due, stored by NATS, and acknowledged by the owners of their partitions. No I/O and no clock.

use std::collections::BTreeMap;
use std::time::Duration;

use quick_cache::unsync::Cache;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::partition::Partition;

/// Number of sent links that the sender remembers. Each takes about 40 bytes.
pub const SENT_LINKS_MAX: usize = 1_000_000;

/// Bytes of links to a partition at which they become a message. The size is below the limit of NATS (1 MiB), and larger messages
/// would hardly be compressed better.
const BATCH_BYTES: usize = 256 * 1024;

/// Maximum bytes of all waiting links. At the limit, [`LinkBatcher::add`] refuses more, and the crawl waits.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// Time for which links wait for other links to the same partition. URIs of other sites are not urgent.
const BATCH_AGE_MAX: Duration = Duration::from_secs(5);

/// Links that are being sent to other partitions.
#[derive(Debug)]
pub struct LinkBatcher {
    sent: Cache<u128, ()>,
    open: BTreeMap<Partition, OpenBatch>,
    /// Batches that were taken and that NATS has not stored yet.
    taken: BTreeMap<u64, FirstEntries>,
    /// Messages that NATS has stored and that their owners may not have acknowledged, by number.
    stored: BTreeMap<Partition, BTreeMap<u64, StoredBatch>>,
    /// The last entry that was added, by the partitions of its target and of its page.
    added: BTreeMap<(Partition, Partition), u64>,
    /// Number of times that links to a partition had to be added again.
    repeats: BTreeMap<Partition, u32>,
    /// The first entries of each outbox whose links must be added again.
    lost: FirstEntries,
    /// Number of the entry of each outbox up to which an earlier process has sent all links.
    resumed: BTreeMap<Partition, u64>,
    next_id: u64,
    waiting_bytes: usize,
}

/// A message with links in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentMessage {
    /// Number of the message in the stream.
    pub sequence: u64,
    /// Hash of its content. Together with the number it identifies the message, even after NATS has lost messages.
    pub digest: u128,
}

/// Links of one partition that become a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkBatch {
    /// Number of the batch, for [`LinkBatcher::store`].
    pub id: u64,
    /// The partition that the links lead to.
    pub partition: Partition,
    /// The links, as the crawl encodes them.
    pub links: Vec<Vec<u8>>,
}

/// The place of a link in the outbox of its page's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkSource {
    /// The partition of the page.
    pub partition: Partition,
    /// Number of the entry in the outbox that has the link.
    pub entry: u64,
}

/// The first entry in the outbox of each partition that has links in a batch.
type FirstEntries = BTreeMap<Partition, u64>;

/// Result of adding a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkAdmission {
    /// The link waits until its message is due.
    Queued,
    /// The same link to the same partition was sent already, or waits.
    Known,
    /// Too many links wait. Send some, then add the link again.
    Full,
}

/// Links of an outbox that NATS has stored.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredLinks {
    /// NATS has stored the links of all entries up to this one.
    through: u64,
    /// The newest message to each partition that the owner of the partition may not have received.
    newest: Vec<NewestMessage>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct NewestMessage {
    to: Partition,
    sequence: u64,
    digest: u128,
    /// The first entry whose link to this partition the owner of the partition may not have received.
    first: u64,
}

#[derive(Debug)]
struct StoredBatch {
    digest: u128,
    sources: FirstEntries,
}

#[derive(Debug)]
struct OpenBatch {
    links: Vec<Vec<u8>>,
    bytes: usize,
    since: Duration,
    sources: FirstEntries,
}

impl Default for LinkBatcher {
    fn default() -> Self {
        Self::new(SENT_LINKS_MAX)
    }
}

impl LinkBatcher {
    /// Creates a batcher that remembers this number of links.
    #[must_use]
    pub fn new(sent_links_max: usize) -> Self {
        Self {
            sent: Cache::new(sent_links_max),
            open: BTreeMap::new(),
            taken: BTreeMap::new(),
            stored: BTreeMap::new(),
            added: BTreeMap::new(),
            repeats: BTreeMap::new(),
            lost: FirstEntries::new(),
            resumed: BTreeMap::new(),
            next_id: 1,
            waiting_bytes: 0,
        }
    }

    /// Adds a link to a partition. Add the links of an outbox in its order.
    pub fn add(
        &mut self,
        partition: Partition,
        link: Vec<u8>,
        source: LinkSource,
        now: Duration,
    ) -> LinkAdmission {
        let resumed = self.resumed.get(&source.partition);
        let first = resumed.map_or(0, |through| through + 1);
        let added = self.added.entry((partition, source.partition));
        let added = added.or_insert(first);
        if source.entry < *added {
            // The outbox is read again because of a loss in another partition.
            return LinkAdmission::Known;
        }
        // 128 bits, because a collision would lose a link.
        let repeats = self.repeats.get(&partition).copied().unwrap_or(0);
        let target = u128::from(partition.number()) | (u128::from(repeats) << 16);
        let hash = xxh3_128(&link) ^ target;
        if self.sent.get(&hash).is_some() {
            *added = source.entry;
            return LinkAdmission::Known;
        }
        if self.waiting_bytes + link.len() > WAITING_BYTES_MAX {
            return LinkAdmission::Full;
        }
        *added = source.entry;
        self.sent.insert(hash, ());
        self.waiting_bytes += link.len();
        let batch = self.open.entry(partition).or_insert_with(|| OpenBatch {
            links: Vec::new(),
            bytes: 0,
            since: now,
            sources: FirstEntries::new(),
        });
        batch.bytes += link.len();
        let first = batch
            .sources
            .entry(source.partition)
            .or_insert(source.entry);
        *first = source.entry.min(*first);
        batch.links.push(link);
        LinkAdmission::Queued
    }

    /// Takes the batches that are large or old enough.
    pub fn take_due(&mut self, now: Duration) -> Vec<LinkBatch> {
        self.take(|batch| {
            batch.bytes >= BATCH_BYTES || now.saturating_sub(batch.since) >= BATCH_AGE_MAX
        })
    }

    /// Takes all batches, for instance before a process ends.
    pub fn take_all(&mut self) -> Vec<LinkBatch> {
        self.take(|_| true)
    }

    /// Records that NATS has stored a batch as this message.
    pub fn store(&mut self, batch: &LinkBatch, message: SentMessage) {
        let Some(mut sources) = self.taken.remove(&batch.id) else {
            return;
        };
        let bytes: usize = batch.links.iter().map(Vec::len).sum();
        self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes);
        let stored = self.stored.entry(batch.partition).or_default();
        if let Some(before) = stored.remove(&message.sequence) {
            // NATS has lost the earlier message with this number. Its links must stay in the outbox until they are sent again.
            for (partition, entry) in before.sources {
                let first = sources.entry(partition).or_insert(entry);
                *first = entry.min(*first);
            }
        }
        let digest = message.digest;
        stored.insert(message.sequence, StoredBatch { digest, sources });
    }

    /// Records that the owners of some partitions have received all messages below this number.
    pub fn confirm(&mut self, is_owned: impl Fn(Partition) -> bool, below: u64) {
        self.stored.retain(|partition, messages| {
            if is_owned(*partition) {
                *messages = messages.split_off(&below);
            }
            !messages.is_empty()
        });
    }

    /// Returns the newest message to each partition that the owner of the partition may not have received.
    #[must_use]
    pub fn newest(&self) -> Vec<(Partition, SentMessage)> {
        let newest = self.stored.iter().filter_map(|(partition, messages)| {
            let (sequence, batch) = messages.last_key_value()?;
            let message = SentMessage {
                sequence: *sequence,
                digest: batch.digest,
            };
            Some((*partition, message))
        });
        newest.collect()
    }

    /// Forgets the messages to a partition that its owner may not have received, because NATS may have lost some. Their links must
    /// be added again ([`Self::repeat_after`]). Links to other partitions, and links that the owner has received, stay known.
    pub fn repeat(&mut self, partition: Partition) {
        let stored = self.stored.remove(&partition).unwrap_or_default();
        *self.repeats.entry(partition).or_insert(0) += 1;
        for (source, entry) in stored.values().flat_map(|batch| &batch.sources) {
            let added = self.added.entry((partition, *source)).or_insert(*entry);
            *added = (*entry).min(*added);
            let lost = self.lost.entry(*source).or_insert(*entry);
            *lost = (*entry).min(*lost);
        }
    }

    /// Returns the number of the entry in the outbox of `source` behind which all links must be added again. This is `last`, the
    /// number of the last entry that was added, unless [`Self::repeat`] was called since the last call.
    pub fn repeat_after(&mut self, source: Partition, last: u64) -> u64 {
        match self.lost.remove(&source) {
            Some(first) => last.min(first.saturating_sub(1)),
            None => last,
        }
    }

    /// Returns the number of the entry in the outbox of `source` up to which NATS has stored all links. `last` is the number of the
    /// last entry that was added.
    #[must_use]
    pub fn sent_through(&self, source: Partition, last: u64) -> u64 {
        through(self.unsent(), source, last)
    }

    /// Returns the number of the entry in the outbox of `source` up to which the owners have received all links. After a takeover
    /// or a loss in NATS, the links of later entries are sent again. `last` is the number of the last entry that was added.
    #[must_use]
    pub fn received_through(&self, source: Partition, last: u64) -> u64 {
        let stored = self.stored.values().flat_map(BTreeMap::values);
        let stored = stored.map(|batch| &batch.sources);
        through(self.unsent().chain(stored), source, last)
    }

    /// Returns the links of an outbox that NATS has stored, for the next process. `last` is the number of the last entry that was
    /// added.
    #[must_use]
    pub(crate) fn stored_links(&self, source: Partition, last: u64) -> StoredLinks {
        let newest = self.stored.iter().filter_map(|(to, messages)| {
            let (sequence, batch) = messages.last_key_value()?;
            let firsts = messages.values().filter_map(|it| it.sources.get(&source));
            Some(NewestMessage {
                to: *to,
                sequence: *sequence,
                digest: batch.digest,
                first: *firsts.min()?,
            })
        });
        StoredLinks {
            through: self.sent_through(source, last),
            newest: newest.collect(),
        }
    }

    /// Resumes with the links that an earlier process has sent. Returns the number of the entry behind which links must be added.
    pub(crate) fn resume(&mut self, source: Partition, known: StoredLinks) -> u64 {
        self.resumed.insert(source, known.through);
        for message in known.newest {
            let batch = StoredBatch {
                digest: message.digest,
                sources: FirstEntries::from([(source, message.first)]),
            };
            let stored = self.stored.entry(message.to).or_default();
            stored.insert(message.sequence, batch);
        }
        known.through
    }

    fn unsent(&self) -> impl Iterator<Item = &FirstEntries> {
        let open = self.open.values().map(|batch| &batch.sources);
        open.chain(self.taken.values()).chain([&self.lost])
    }

    fn take(&mut self, is_due: impl Fn(&OpenBatch) -> bool) -> Vec<LinkBatch> {
        let (taken, next_id) = (&mut self.taken, &mut self.next_id);
        let due = self.open.extract_if(.., |_, batch| is_due(batch));
        let batches = due.flat_map(|(partition, batch)| {
            let mut messages = Vec::new();
            for links in split_into_messages(batch.links) {
                let id = *next_id;
                *next_id += 1;
                taken.insert(id, batch.sources.clone());
                messages.push(LinkBatch {
                    id,
                    partition,
                    links,
                });
            }
            messages
        });
        batches.collect()
    }
}

/// Returns the number of the entry in the outbox of `source` before the first of these entries, or `last` without entries.
fn through<'f>(
    entries: impl Iterator<Item = &'f FirstEntries>,
    source: Partition,
    last: u64,
) -> u64 {
    let waiting = entries.filter_map(|sources| sources.get(&source));
    waiting
        .min()
        .map_or(last, |entry| last.min(entry.saturating_sub(1)))
}

/// Splits links into messages of at most [`BATCH_BYTES`], or of one link.
fn split_into_messages(links: Vec<Vec<u8>>) -> Vec<Vec<Vec<u8>>> {
    let mut messages: Vec<Vec<Vec<u8>>> = Vec::new();
    let mut bytes = 0;
    for link in links {
        match messages.last_mut() {
            Some(message) if bytes + link.len() <= BATCH_BYTES => {
                bytes += link.len();
                message.push(link);
            }
            _ => {
                bytes = link.len();
                messages.push(vec![link]);
            }
        }
    }
    messages
}

#[cfg(test)]
mod tests;

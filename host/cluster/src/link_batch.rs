//! Links to other partitions, collected until they are worth a message: which are new, which are due, which have been stored, and
//! which their owners have. No I/O and no clock.

use std::collections::BTreeMap;
use std::time::Duration;

use quick_cache::unsync::Cache;
use xxhash_rust::xxh3::xxh3_128;

use crate::partition::Partition;

/// Links that the sender remembers. Each takes about 40 bytes.
pub const SENT_LINKS_MAX: usize = 1_000_000;

/// Size at which the links of a partition become a message. It is below what NATS accepts (1 MiB), and compression gains little
/// beyond.
const BATCH_BYTES: usize = 256 * 1024;

/// Size of all links that wait. At the limit [`LinkBatcher::add`] refuses more, and the crawl waits.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// Time for which links wait for others of their partition. A URI of another site is not urgent.
const BATCH_AGE_MAX: Duration = Duration::from_secs(5);

/// Links that are on their way to other partitions.
#[derive(Debug)]
pub struct LinkBatcher {
    sent: Cache<u128, ()>,
    open: BTreeMap<Partition, OpenBatch>,
    /// Batches that were taken and are not stored.
    taken: BTreeMap<u64, FirstEntries>,
    /// Messages that NATS has stored and that their owners may not have acknowledged, by number.
    stored: BTreeMap<Partition, BTreeMap<u64, StoredBatch>>,
    /// Number of times that the links to a partition were sent from the beginning of the outbox.
    repeats: BTreeMap<Partition, u32>,
    next_id: u64,
    waiting_bytes: usize,
}

/// A message with links in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentMessage {
    /// Its number in the stream.
    pub sequence: u64,
    /// Hash of its content. Together with the number it names the message, also after NATS has lost messages.
    pub digest: u128,
}

/// Links of one partition that become a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkBatch {
    /// Its number, for [`LinkBatcher::store`].
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
    /// It waits for its message.
    Queued,
    /// The same link to the same partition was sent, or waits.
    Known,
    /// Too many links wait. Send some, then add it again.
    Full,
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
    /// A batcher that remembers so many links.
    #[must_use]
    pub fn new(sent_links_max: usize) -> Self {
        Self {
            sent: Cache::new(sent_links_max),
            open: BTreeMap::new(),
            taken: BTreeMap::new(),
            stored: BTreeMap::new(),
            repeats: BTreeMap::new(),
            next_id: 1,
            waiting_bytes: 0,
        }
    }

    /// Adds a link to a partition.
    pub fn add(
        &mut self,
        partition: Partition,
        link: Vec<u8>,
        source: LinkSource,
        now: Duration,
    ) -> LinkAdmission {
        // 128 bits: a collision would lose a link for ever.
        let repeats = self.repeats.get(&partition).copied().unwrap_or(0);
        let target = u128::from(partition.number()) | (u128::from(repeats) << 16);
        let hash = xxh3_128(&link) ^ target;
        if self.sent.get(&hash).is_some() {
            return LinkAdmission::Known;
        }
        if self.waiting_bytes + link.len() > WAITING_BYTES_MAX {
            return LinkAdmission::Full;
        }
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

    /// Takes all batches, such as before a process ends.
    pub fn take_all(&mut self) -> Vec<LinkBatch> {
        self.take(|_| true)
    }

    /// Takes note that NATS has stored a batch as this message.
    pub fn store(&mut self, batch: &LinkBatch, message: SentMessage) {
        let Some(mut sources) = self.taken.remove(&batch.id) else {
            return;
        };
        let bytes: usize = batch.links.iter().map(Vec::len).sum();
        self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes);
        let stored = self.stored.entry(batch.partition).or_default();
        if let Some(before) = stored.remove(&message.sequence) {
            // The message before with this number is lost: its links must not leave the outbox with those of this one.
            for (partition, entry) in before.sources {
                let first = sources.entry(partition).or_insert(entry);
                *first = entry.min(*first);
            }
        }
        let digest = message.digest;
        stored.insert(message.sequence, StoredBatch { digest, sources });
    }

    /// Takes note that the owners of some partitions have all messages below this number.
    pub fn confirm(&mut self, is_owned: impl Fn(Partition) -> bool, below: u64) {
        self.stored.retain(|partition, messages| {
            if is_owned(*partition) {
                *messages = messages.split_off(&below);
            }
            !messages.is_empty()
        });
    }

    /// The newest message of each partition that its owner may not have.
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

    /// Forgets the messages and the links that were sent to a partition: NATS may have lost some. Add the outbox again from its first
    /// entry.
    pub fn repeat(&mut self, partition: Partition) {
        self.stored.remove(&partition);
        *self.repeats.entry(partition).or_insert(0) += 1;
    }

    /// Number of the entry in the outbox of `source` up to which NATS has stored all links. `last` is the number of the last entry that
    /// was added.
    #[must_use]
    pub fn sent_through(&self, source: Partition, last: u64) -> u64 {
        through(self.unsent(), source, last)
    }

    /// Number of the entry in the outbox of `source` up to which the owners have all links. A takeover, and a loss in NATS, repeats the
    /// links of later entries. `last` is the number of the last entry that was added.
    #[must_use]
    pub fn received_through(&self, source: Partition, last: u64) -> u64 {
        let stored = self.stored.values().flat_map(BTreeMap::values);
        let stored = stored.map(|batch| &batch.sources);
        through(self.unsent().chain(stored), source, last)
    }

    fn unsent(&self) -> impl Iterator<Item = &FirstEntries> {
        let open = self.open.values().map(|batch| &batch.sources);
        open.chain(self.taken.values())
    }

    fn take(&mut self, is_due: impl Fn(&OpenBatch) -> bool) -> Vec<LinkBatch> {
        let (taken, next_id) = (&mut self.taken, &mut self.next_id);
        let due = self.open.extract_if(.., |_, batch| is_due(batch));
        let batches = due.flat_map(|(partition, batch)| {
            let mut messages = Vec::new();
            for links in split(batch.links) {
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

/// Number of the entry in the outbox of `source` before the first of these.
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

/// Cuts links into messages of at most [`BATCH_BYTES`], or of one link.
fn split(links: Vec<Vec<u8>>) -> Vec<Vec<Vec<u8>>> {
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
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::partition::PartitionCount;

    const SECOND: Duration = Duration::from_secs(1);

    fn partition(number: u16) -> Partition {
        PartitionCount::default().partition(number).unwrap()
    }

    fn message(sequence: u64) -> SentMessage {
        SentMessage {
            sequence,
            digest: u128::from(sequence),
        }
    }

    fn source(number: u16, entry: u64) -> LinkSource {
        LinkSource {
            partition: partition(number),
            entry,
        }
    }

    #[test]
    fn links_wait_for_company_and_are_sent_once() {
        let mut batcher = LinkBatcher::new(100);
        let add = |batcher: &mut LinkBatcher, number, link: &str, at: u32| {
            batcher.add(
                partition(number),
                link.as_bytes().to_vec(),
                source(0, 7),
                at * SECOND,
            )
        };
        assert_eq!(add(&mut batcher, 1, "a", 0), LinkAdmission::Queued);
        assert_eq!(add(&mut batcher, 1, "b", 4), LinkAdmission::Queued);
        assert_eq!(add(&mut batcher, 1, "a", 4), LinkAdmission::Known);
        assert_eq!(add(&mut batcher, 2, "a", 4), LinkAdmission::Queued);
        assert_eq!(batcher.take_due(4 * SECOND), []);
        let due = batcher.take_due(5 * SECOND);
        let links = vec![b"a".to_vec(), b"b".to_vec()];
        assert_eq!(
            due,
            [LinkBatch {
                id: 1,
                partition: partition(1),
                links
            }]
        );
        assert_eq!(add(&mut batcher, 1, "a", 5), LinkAdmission::Known);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut batcher = LinkBatcher::new(1_000);
        let mebibyte = |number: u8| vec![number; 1 << 20];
        let mut added = 0;
        while batcher.add(partition(0), mebibyte(added), source(0, 1), SECOND)
            == LinkAdmission::Queued
        {
            added += 1;
        }
        assert_eq!(usize::from(added) << 20, WAITING_BYTES_MAX);
        let batches = batcher.take_all();
        assert_eq!(batches.len(), 64, "each of these is a message by itself");
        assert_eq!(
            batcher.add(partition(0), mebibyte(200), source(0, 1), SECOND),
            LinkAdmission::Full
        );
        batcher.store(&batches[0], message(1));
        assert_eq!(
            batcher.add(partition(0), mebibyte(200), source(0, 1), SECOND),
            LinkAdmission::Queued
        );
    }

    #[test]
    fn links_stay_in_the_outbox_until_their_owner_has_them() {
        let mut batcher = LinkBatcher::new(100);
        let add = |batcher: &mut LinkBatcher, number, link: &str, entry| {
            let link = link.as_bytes().to_vec();
            batcher.add(partition(number), link, source(0, entry), SECOND)
        };
        for (entry, number) in [(1, 1), (2, 2), (3, 1)] {
            add(&mut batcher, number, &format!("{entry}"), entry);
            for batch in batcher.take_all() {
                batcher.store(&batch, message(10 + entry));
            }
        }
        let through = |batcher: &LinkBatcher| {
            let own = partition(0);
            (
                batcher.sent_through(own, 3),
                batcher.received_through(own, 3),
            )
        };
        assert_eq!(through(&batcher), (3, 0));
        let newest = [(partition(1), message(13)), (partition(2), message(12))];
        assert_eq!(batcher.newest(), newest);
        batcher.confirm(|_| true, 12);
        assert_eq!(through(&batcher), (3, 1));

        // NATS has lost the messages to one partition: those links are sent again, and no others.
        assert_eq!(add(&mut batcher, 1, "3", 3), LinkAdmission::Known);
        batcher.repeat(partition(1));
        assert_eq!(add(&mut batcher, 2, "2", 2), LinkAdmission::Known);
        assert_eq!(add(&mut batcher, 1, "3", 3), LinkAdmission::Queued);
        assert_eq!(through(&batcher), (2, 1));
        let again = batcher.take_all();
        batcher.store(&again[0], message(12));
        batcher.confirm(|to| to == partition(2), u64::MAX);
        assert_eq!(through(&batcher), (3, 2));
        batcher.confirm(|_| true, 13);
        assert_eq!(through(&batcher), (3, 3));
    }

    proptest! {
        /// In any order of adding, taking, storing and receiving, no link before `sent_through` waits for NATS, and none before
        /// `received_through` waits for its owner. Every link is in one batch.
        #[test]
        fn a_takeover_repeats_every_link_that_was_not_received(
            steps in prop::collection::vec((0u16..3, 0u16..4, 0u8..200, 0u8..4, prop::bool::ANY, prop::bool::ANY), 1..200),
        ) {
            let mut batcher = LinkBatcher::new(10_000);
            let mut waiting: BTreeMap<(Partition, Vec<u8>), LinkSource> = BTreeMap::new();
            let mut stored: BTreeMap<u64, Vec<LinkSource>> = BTreeMap::new();
            let mut taken: Vec<LinkBatch> = Vec::new();
            for (index, (page, number, link, received, takes, stores)) in (1_u64..).zip(steps) {
                let (partition, link) = (partition(number), vec![link]);
                let page = source(page, index);
                if batcher.add(partition, link.clone(), page, SECOND) == LinkAdmission::Queued {
                    waiting.insert((partition, link), page);
                }
                if takes {
                    taken.extend(batcher.take_all());
                }
                if stores && !taken.is_empty() {
                    let batch = taken.remove(taken.len() / 2);
                    batcher.store(&batch, message(index));
                    for link in batch.links {
                        let source = waiting.remove(&(batch.partition, link));
                        prop_assert!(source.is_some());
                        stored.entry(index).or_default().extend(source);
                    }
                }
                if received == 0 {
                    let below = index / 2;
                    batcher.confirm(|_| true, below);
                    stored = stored.split_off(&below);
                }
                let sent = batcher.sent_through(page.partition, index);
                let through = batcher.received_through(page.partition, index);
                prop_assert!(through <= sent);
                let is_own = |at: &&LinkSource| at.partition == page.partition;
                let mut own = waiting.values().filter(is_own);
                let is_all = own.clone().next().is_none();
                prop_assert!(own.all(|at| at.entry > sent), "{sent}: {waiting:?}");
                let mut in_nats = stored.values().flatten().filter(is_own);
                let is_received = is_all && in_nats.clone().next().is_none();
                prop_assert!(in_nats.all(|at| at.entry > through), "{through}: {stored:?}");
                if is_all {
                    prop_assert_eq!(sent, index);
                }
                if is_received {
                    prop_assert_eq!(through, index);
                }
            }
        }
    }
}

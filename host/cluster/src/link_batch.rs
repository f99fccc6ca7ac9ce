//! Links to other partitions, collected until they are worth a message: which are new, which are due, and which have been stored.
//! No I/O and no clock.

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
    next_id: u64,
    waiting_bytes: usize,
}

/// Links of one partition that become a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkBatch {
    /// Its number, for [`LinkBatcher::finish`].
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
        let hash = xxh3_128(&link) ^ u128::from(partition.number());
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

    /// Takes note that NATS has stored a batch.
    pub fn finish(&mut self, batch: &LinkBatch) {
        if self.taken.remove(&batch.id).is_some() {
            let bytes: usize = batch.links.iter().map(Vec::len).sum();
            self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes);
        }
    }

    /// Number of the entry in the outbox of `source` up to which all links have been stored. A takeover has to send links of later
    /// entries again. `last` is the number of the last entry.
    #[must_use]
    pub fn sent_through(&self, source: Partition, last: u64) -> u64 {
        let open = self.open.values().map(|batch| &batch.sources);
        let waiting = open
            .chain(self.taken.values())
            .filter_map(|sources| sources.get(&source));
        waiting
            .min()
            .map_or(last, |entry| last.min(entry.saturating_sub(1)))
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
        batcher.finish(&batches[0]);
        assert_eq!(
            batcher.add(partition(0), mebibyte(200), source(0, 1), SECOND),
            LinkAdmission::Queued
        );
    }

    proptest! {
        /// In any order of adding, taking and storing, no link before `sent_through` waits, and every link is in one batch.
        #[test]
        fn a_takeover_repeats_every_link_that_was_not_stored(
            steps in prop::collection::vec((0u16..3, 0u16..4, 0u8..200, prop::bool::ANY, prop::bool::ANY), 1..200),
        ) {
            let mut batcher = LinkBatcher::new(10_000);
            let mut waiting: BTreeMap<(Partition, Vec<u8>), LinkSource> = BTreeMap::new();
            let mut taken: Vec<LinkBatch> = Vec::new();
            for (index, (page, number, link, takes, stores)) in (1_u64..).zip(steps) {
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
                    batcher.finish(&batch);
                    for link in batch.links {
                        prop_assert!(waiting.remove(&(batch.partition, link)).is_some());
                    }
                }
                let through = batcher.sent_through(page.partition, index);
                let mut own = waiting.values().filter(|at| at.partition == page.partition);
                let is_all = own.clone().next().is_none();
                prop_assert!(own.all(|at| at.entry > through), "{through}: {waiting:?}");
                if is_all {
                    prop_assert_eq!(through, index);
                }
            }
        }
    }
}

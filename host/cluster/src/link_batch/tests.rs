//! Links that are sent, stored, received and lost.

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
fn links_are_collected_and_sent_once() {
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
fn waiting_links_are_limited() {
    let mut batcher = LinkBatcher::new(1_000);
    let mebibyte = |number: u8| vec![number; 1 << 20];
    let mut added = 0;
    while batcher.add(partition(0), mebibyte(added), source(0, 1), SECOND) == LinkAdmission::Queued
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
fn links_stay_in_the_outbox_until_their_owner_has_received_them() {
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

    // NATS has lost the messages to one partition. Only links to this partition are sent again.
    assert_eq!(add(&mut batcher, 1, "3", 3), LinkAdmission::Known);
    batcher.repeat(partition(1));
    assert_eq!(through(&batcher), (2, 1));
    assert_eq!(batcher.repeat_after(partition(0), 3), 2);
    assert_eq!(batcher.repeat_after(partition(0), 3), 3);
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

#[test]
fn a_loss_repeats_only_links_that_may_be_lost() {
    // The batcher remembers hardly any link.
    let mut batcher = LinkBatcher::new(1);
    let targets = [1, 2, 1, 2, 1];
    let add = |batcher: &mut LinkBatcher, entry: u64, number| {
        let link = entry.to_string().into_bytes();
        batcher.add(partition(number), link, source(0, entry), SECOND)
    };
    for (entry, number) in (1..).zip(targets) {
        add(&mut batcher, entry, number);
        for batch in batcher.take_all() {
            batcher.store(&batch, message(entry));
        }
    }
    batcher.confirm(|to| to == partition(1), 3);
    batcher.repeat(partition(1));
    assert_eq!(batcher.repeat_after(partition(0), 5), 2);
    let mut again = (1..)
        .zip(targets)
        .filter(|(entry, number)| add(&mut batcher, *entry, *number) == LinkAdmission::Queued);
    assert_eq!(again.next(), Some((3, 1)));
    // The last entry to each partition may be added twice.
    assert!(again.all(|(entry, _)| entry >= 4));
}

#[test]
fn the_next_process_sends_only_links_that_are_not_stored() {
    let mut before = LinkBatcher::new(100);
    let add = |batcher: &mut LinkBatcher, entry: u64, number| {
        let link = entry.to_string().into_bytes();
        batcher.add(partition(number), link, source(0, entry), SECOND)
    };
    for (entry, number) in [(1, 1), (2, 2), (3, 1), (4, 2)] {
        add(&mut before, entry, number);
        for batch in before.take_all() {
            before.store(&batch, message(entry));
        }
    }
    add(&mut before, 5, 3);
    before.confirm(|to| to == partition(1), 3);
    let mut next = LinkBatcher::new(100);
    assert_eq!(
        next.resume(partition(0), before.stored_links(partition(0), 5)),
        4
    );
    assert_eq!(next.newest(), before.newest());
    assert_eq!(next.received_through(partition(0), 4), 1);

    // A loss of messages to one partition does not affect other partitions, nor links that were received.
    next.repeat(partition(1));
    assert_eq!(next.repeat_after(partition(0), 4), 2);
    let entries = [(1, 1), (2, 2), (3, 1), (4, 2), (5, 3)];
    let again = entries
        .into_iter()
        .filter(|(entry, number)| add(&mut next, *entry, *number) == LinkAdmission::Queued);
    let again: Vec<u64> = again.map(|(entry, _)| entry).collect();
    assert_eq!(again, [3, 5]);
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

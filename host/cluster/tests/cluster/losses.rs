//! Messages that NATS has stored and then lost in a power failure: the tests reset the store of the server to an earlier state.

use std::time::Duration;

use opilio_cluster::partition::{Partition, PartitionCount};
use opilio_cluster::{
    LinkAdmission, LinkLosses, LinkReader, LinkSender, LinkSource, Member, PlaceState,
};

use crate::server::{NatsServer, ServerMembers as _, job_of_one_stream, retry};

fn partition(number: u16) -> Partition {
    PartitionCount::default().partition(number).unwrap()
}

/// The partition of the targets of all links.
fn target() -> Partition {
    partition(0)
}

fn add(sender: &LinkSender, link: &str, entry: u64) -> LinkAdmission {
    let source = LinkSource {
        partition: partition(1),
        entry,
    };
    sender.add(target(), link.into(), source, Duration::ZERO)
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_links_are_sent_again_and_links_with_reused_numbers_stay() {
    let Some(mut server) = NatsServer::start() else {
        return;
    };
    let job = job_of_one_stream(&server.cluster("first").await).await;
    let sender = LinkSender::new(&job);
    add(&sender, "a", 1);
    sender.send_all().await.unwrap();
    server.save_store();

    // An interruption without a loss repeats nothing.
    retry(async || sender.check().await).await;
    assert_eq!(sender.take_losses(), LinkLosses::default());
    add(&sender, "b", 2);
    retry(async || sender.send_all().await).await;
    let through = || {
        let own = partition(1);
        (sender.sent_through(own, 2), sender.received_through(own, 2))
    };
    assert_eq!(through(), (2, 0));
    let mut reader = LinkReader::open(&job, target()).await.unwrap();
    reader.next().await.unwrap();
    let taken = reader.next().await.unwrap().place;
    let state = job.check_link(target(), taken).await.unwrap();
    assert_eq!(state, PlaceState::Kept);

    server.restore_store();
    // Another node gets the number of the lost message.
    let other = LinkSender::new(&job);
    add(&other, "c", 1);
    retry(async || other.send_all().await).await;
    let state = job.check_link(target(), taken).await.unwrap();
    assert_eq!(state, PlaceState::Lost);
    job.acknowledge_links(target(), taken).await.unwrap();
    assert_eq!(job.inbox_messages(target()).await.unwrap(), 2);

    retry(async || sender.check().await).await;
    let losses = LinkLosses {
        must_repeat: true,
        is_certain: true,
    };
    assert_eq!(sender.take_losses(), losses);
    assert_eq!(sender.repeat_after(partition(1), 2), 0);
    assert_eq!(add(&sender, "a", 1), LinkAdmission::Queued);
    assert_eq!(add(&sender, "b", 2), LinkAdmission::Queued);
    retry(async || sender.send_all().await).await;
    let mut reader = LinkReader::open(&job, target()).await.unwrap();
    let mut arrived = Vec::new();
    let mut last = taken;
    while !arrived.contains(&b"b".to_vec()) {
        let delivery = reader.next().await.unwrap();
        arrived.extend(delivery.links);
        last = delivery.place;
    }
    assert!(arrived.contains(&b"c".to_vec()), "{arrived:?}");
    sender.check().await.unwrap();
    assert_eq!(through(), (2, 0));
    let next = LinkSender::new(&job);
    let state = sender.stored_links(partition(1), 2);
    assert_eq!(next.resume(partition(1), &state), 2);
    next.check().await.unwrap();
    assert_eq!(next.take_losses(), LinkLosses::default());
    assert_eq!(next.received_through(partition(1), 2), 0);
    reader.acknowledge(last).await.unwrap();
    let state = job.check_link(target(), last).await.unwrap();
    assert_eq!(state, PlaceState::Removed);
    sender.check().await.unwrap();
    assert_eq!(through(), (2, 2));
    next.check().await.unwrap();
    assert_eq!(next.received_through(partition(1), 2), 2);
    assert_eq!(sender.take_losses(), LinkLosses::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_stays_a_member_after_nats_has_lost_its_renewals() {
    let Some(mut server) = NatsServer::start() else {
        return;
    };
    let cluster = server.cluster("a").await;
    let (member, _events) = Member::join(&cluster, "1.0.0").await.unwrap();
    server.save_store();
    let renewed = async || {
        let nodes = retry(async || cluster.nodes().await).await;
        nodes[0].renewed_ms
    };
    let before = renewed().await;
    // The server will lose this renewal.
    while renewed().await == before {}
    server.restore_store();
    let restored = renewed().await;
    while renewed().await == restored {}
    assert!(member.time_left().is_some());
}

//! Parts of a job that other nodes can take over.

use std::time::Duration;

use opilio_cluster::{
    ClusterError, ClusterJob, JobInputs, JobProgress, JobStorage, LinkReader, LinkSender,
    LinkSource, OwnPart, PublishedSnapshot,
};

use crate::server::{NatsServer, ServerMembers as _};

/// Opens the job as the process of part `a` on a machine.
async fn job(server: &NatsServer) -> ClusterJob {
    let cluster = server.cluster("a").await;
    let inputs = JobInputs::default();
    ClusterJob::create_or_open(&cluster, "news", inputs, JobStorage::default())
        .await
        .unwrap()
}

fn snapshot(number: u64) -> PublishedSnapshot {
    PublishedSnapshot {
        number,
        manifest: format!("news/a-1/snapshots/{number}/manifest.json"),
        bytes: 10,
        sha256: "00".to_owned(),
        covered: 7,
        uris: 3,
        made_ms: 0,
    }
}

#[track_caller]
fn is_taken<T: std::fmt::Debug>(result: Result<T, ClusterError>, by: &str) {
    match result {
        Err(ClusterError::PartTaken { node, epoch: 2, .. }) => assert_eq!(node, by),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_previous_owner_of_a_part_cannot_write_about_it() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let (dead, next) = (job(&server).await, job(&server).await);
    let of = |epoch| OwnPart { name: "a", epoch };
    assert_eq!(dead.part("a").await.unwrap(), None);
    assert_eq!(dead.claim_part("a", 0, "one").await.unwrap(), 1);
    let mut removed = Vec::new();
    for (number, replaced) in [(1, &[][..]), (2, &[1]), (3, &[1, 2]), (4, &[3])] {
        let published = dead.publish_snapshot(of(1), snapshot(number), &removed);
        let replaced = replaced.iter().map(|number| snapshot(*number).manifest);
        let replaced: Vec<String> = replaced.collect();
        assert_eq!(published.await.unwrap(), replaced);
        // The process removes no snapshot after the first one, and both replaced snapshots after the third one.
        removed = if number == 3 { replaced } else { Vec::new() };
    }
    dead.set_rest(true, 1).await.unwrap();

    // A takeover keeps the snapshot.
    assert_eq!(next.claim_part("a", 1, "two").await.unwrap(), 2);
    next.set_rest(false, 2).await.unwrap();
    is_taken(dead.claim_part("a", 1, "one").await, "two");
    is_taken(dead.check_part(of(1)).await, "two");
    let published = dead.publish_snapshot(of(1), snapshot(5), &[]).await;
    is_taken(published, "two");
    is_taken(dead.set_rest(true, 1).await, "two");
    let parts = ["a".to_owned()];
    assert_eq!(
        next.progress(&parts).await.unwrap(),
        JobProgress::NodesAtWork(parts.to_vec())
    );
    next.check_part(of(2)).await.unwrap();
    let record = next.part("a").await.unwrap().unwrap();
    assert_eq!((&*record.node, record.epoch), ("two", 2));
    assert_eq!(record.snapshot, Some(snapshot(4)));
    assert_eq!(record.replaced, [snapshot(3).manifest]);
}

#[tokio::test]
async fn takeovers_are_listed_until_one_succeeds() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let job = job(&server).await;
    let known = async || {
        let record = job.part("a").await.unwrap();
        let takeover = job.takeover("a", record.as_ref()).await.unwrap();
        let takeover = takeover.unwrap_or_default();
        let attempt = takeover.attempt.map(|attempt| attempt.node);
        let failure = takeover.failure;
        (
            attempt.unwrap_or_default(),
            failure.map_or(String::new(), |it| format!("{}: {}", it.node, it.problem)),
        )
    };
    let expected = |attempt: &str, failure: &str| (attempt.to_owned(), failure.to_owned());
    job.claim_part("a", 0, "one").await.unwrap();
    assert_eq!(known().await, expected("", ""));
    job.begin_takeover("a", 1, "two").await.unwrap();
    assert_eq!(known().await, expected("two", ""));
    job.fail_takeover("a", 1, "two", "no disk").await.unwrap();
    assert_eq!(known().await, expected("", "two: no disk"));
    // The failure stays listed while another node tries the takeover, until a third node fails meanwhile.
    job.begin_takeover("a", 1, "three").await.unwrap();
    assert_eq!(known().await, expected("three", "two: no disk"));
    job.fail_takeover("a", 1, "four", "no file").await.unwrap();
    assert_eq!(known().await, expected("three", "four: no file"));
    job.claim_part("a", 1, "three").await.unwrap();
    assert_eq!(known().await, expected("three", ""));
    job.end_takeover("a", 1).await.unwrap();
    assert_eq!(known().await, expected("", ""));
    // A late report does not change the record of the next takeover.
    job.begin_takeover("a", 2, "one").await.unwrap();
    job.fail_takeover("a", 1, "four", "too late").await.unwrap();
    assert_eq!(known().await, expected("one", ""));
}

#[tokio::test]
async fn an_inbox_is_read_again_until_it_is_acknowledged() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let job = job(&server).await;
    let partitions = server.config("a").partitions;
    let inboxes = [1, 2].map(|number| partitions.partition(number).unwrap());
    let sender = LinkSender::new(&job);
    let send = async |inbox, link: &str| {
        let source = LinkSource {
            partition: inbox,
            entry: 1,
        };
        sender.add(inbox, link.into(), source, Duration::ZERO);
        sender.send_all().await.unwrap();
    };
    assert_eq!(job.inbox_messages(inboxes[0]).await.unwrap(), 0);
    send(inboxes[0], "one").await;
    send(inboxes[0], "two").await;
    send(inboxes[1], "other").await;
    let first = async || {
        let mut reader = LinkReader::open(&job, inboxes[0]).await.unwrap();
        reader.next().await.unwrap()
    };
    let one = first().await;
    assert_eq!(first().await, one);
    assert_eq!(job.inbox_messages(inboxes[0]).await.unwrap(), 2);
    job.acknowledge_links(inboxes[0], one.place).await.unwrap();
    assert_eq!(first().await.links, [b"two"]);
    assert_eq!(job.inbox_messages(inboxes[0]).await.unwrap(), 1);
    assert_eq!(job.inbox_messages(inboxes[1]).await.unwrap(), 1);
}

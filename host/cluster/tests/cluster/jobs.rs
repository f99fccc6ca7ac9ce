//! Jobs over a real server: links, files, commands, budgets.

use std::io::Cursor;
use std::time::Duration;

use opilio_cluster::partition::{Partition, PartitionCount};
use opilio_cluster::{
    ClusterError, ClusterJob, CommandReader, JobInputs, JobStorage, LinkAdmission, LinkReader,
    LinkSender, LinkSource,
};

use crate::server::{NatsServer, ServerMembers as _};

/// Lists that are read while a key is written again and again. Without the names of the keys, some of them lack it.
const LISTS: usize = 500;

/// The partition that all links lead to and come from.
fn target() -> Partition {
    PartitionCount::default().partition(0).unwrap()
}

/// A job whose node is called `first`.
async fn job(server: &NatsServer, storage: JobStorage) -> ClusterJob {
    let cluster = server.cluster("first").await;
    ClusterJob::create(&cluster, "job", &[], storage)
        .await
        .unwrap()
}

fn entries(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn links_arrive_until_they_are_acknowledged() {
    let Some(mut server) = NatsServer::start() else {
        return;
    };
    let job = job(&server, JobStorage::default()).await;
    let sender = LinkSender::new(&job);
    let add = |link: &str, entry| {
        let source = LinkSource {
            partition: target(),
            entry,
        };
        sender.add(target(), link.into(), source, Duration::ZERO)
    };
    assert_eq!(add("a", 1), LinkAdmission::Queued);
    assert_eq!(add("b", 2), LinkAdmission::Queued);
    assert_eq!(add("a", 3), LinkAdmission::Known);
    assert_eq!(sender.sent_through(target(), 3), 0);
    sender.send_all().await.unwrap();
    assert_eq!(sender.sent_through(target(), 3), 3);

    let mut reader = LinkReader::open(&job, target()).await.unwrap();
    let delivery = reader.next().await.unwrap();
    assert_eq!(
        (delivery.links, delivery.node.as_str()),
        (entries(&["a", "b"]), "first")
    );
    // Nothing was acknowledged: the next reader gets them again, also from a server that was killed.
    server.kill();
    server.begin();
    let mut again = loop {
        match LinkReader::open(&job, target()).await {
            Ok(reader) => break reader,
            Err(error) => assert!(error.is_temporary(), "{error}"),
        }
    };
    let delivery = again.next().await.unwrap();
    assert_eq!(delivery.links, entries(&["a", "b"]));
    let behind = |taken| job.links_behind(target(), taken);
    assert_eq!(behind(0).await.unwrap(), Some(delivery.place.sequence));
    assert_eq!(behind(delivery.place.sequence).await.unwrap(), None);
    let storage = job.cluster().connection().storage().await.unwrap();
    assert!(storage.used > 0, "{storage:?}");
    again.acknowledge(delivery.place).await.unwrap();
    assert_eq!(behind(0).await.unwrap(), None);
    add("c", 4);
    sender.send_all().await.unwrap();
    let mut last = LinkReader::open(&job, target()).await.unwrap();
    assert_eq!(last.next().await.unwrap().links, entries(&["c"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn links_without_an_answer_are_kept_until_nats_has_them() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let job = job(&server, JobStorage::default()).await;
    let sender = LinkSender::new(&job);
    let add = |link: &str, entry| {
        let source = LinkSource {
            partition: target(),
            entry,
        };
        sender.add(target(), link.into(), source, Duration::ZERO)
    };
    add("a", 1);
    server.signal("-STOP");
    let error = sender.send_all().await.unwrap_err();
    assert!(error.is_temporary(), "{error}");
    assert_eq!(sender.sent_through(target(), 1), 0);
    server.signal("-CONT");
    while let Err(error) = sender.send_all().await {
        assert!(error.is_temporary(), "{error}");
    }
    assert_eq!(sender.sent_through(target(), 1), 1);
    add("b", 2);
    sender.send_all().await.unwrap();
    // The server may also have read the first attempt: then the same link comes again.
    let mut reader = LinkReader::open(&job, target()).await.unwrap();
    let mut arrived: Vec<Vec<u8>> = Vec::new();
    while arrived.last() != Some(&b"b".to_vec()) {
        arrived.extend(reader.next().await.unwrap().links);
    }
    arrived.dedup();
    assert_eq!(arrived, entries(&["a", "b"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn links_that_nats_refuses_are_sent_later() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let storage = JobStorage {
        streams: 1,
        link_bytes_max: Some(300),
    };
    let job = job(&server, storage).await;
    let sender = LinkSender::new(&job);
    let source = LinkSource {
        partition: target(),
        entry: 5,
    };
    let noise = |seed: u32| -> Vec<u8> {
        (0..180_u32)
            .map(|number| ((number + seed).wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect()
    };
    sender.add(target(), noise(0), source, Duration::ZERO);
    sender.send_all().await.unwrap();
    sender.add(target(), noise(1_000), source, Duration::ZERO);
    let error = sender.send_all().await.unwrap_err();
    assert!(
        matches!(error, ClusterError::Full { .. }) && error.is_temporary(),
        "{error}"
    );
    assert!(error.to_string().contains("no room for links"), "{error}");
    assert_eq!(sender.sent_through(target(), 9), 4);
    let mut reader = LinkReader::open(&job, target()).await.unwrap();
    let delivery = reader.next().await.unwrap();
    assert_eq!(delivery.links, [noise(0)], "nothing was thrown away");
    reader.acknowledge(delivery.place).await.unwrap();
    sender.send_all().await.unwrap();
    assert_eq!(sender.sent_through(target(), 9), 9);
    assert_eq!(reader.next().await.unwrap().links, [noise(1_000)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_stored_by_digest_and_checked_when_read() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let cluster = server.cluster("a").await;
    let large: Vec<u8> = (0..3_000_000_u32)
        .map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let files: [(&str, &[u8]); 4] = [
        ("profile.toml", b"x = 1"),
        ("seeds.txt", b""),
        ("a.wasm", &large),
        ("b.wasm", &large),
    ];
    ClusterJob::create(&cluster, "job", &files, JobStorage::default())
        .await
        .unwrap();
    let job = ClusterJob::open(&server.cluster("b").await, "job")
        .await
        .unwrap();
    for (name, content) in files {
        assert_eq!(job.read_file(name).await.unwrap(), content, "{name}");
    }
    let digest = &job.manifest().files["profile.toml"].sha256;
    assert_eq!(
        job.manifest().files["a.wasm"],
        job.manifest().files["b.wasm"]
    );
    // Another content under this digest.
    let client = async_nats::connect(format!("127.0.0.1:{}", server.port))
        .await
        .unwrap();
    let store = async_nats::jetstream::new(client)
        .get_object_store("opilio_files")
        .await
        .unwrap();
    store
        .put(digest.as_str(), &mut Cursor::new(b"x = 2".to_vec()))
        .await
        .unwrap();
    let error = job.read_file("profile.toml").await.unwrap_err();
    assert!(matches!(error, ClusterError::Damaged { .. }), "{error}");
    // A longer one that begins alike.
    store
        .put(
            digest.as_str(),
            &mut Cursor::new(b"x = 1 and more".to_vec()),
        )
        .await
        .unwrap();
    let error = job.read_file("profile.toml").await.unwrap_err();
    assert!(matches!(error, ClusterError::Damaged { .. }), "{error}");

    // A node that has the files stores them again.
    let inputs = JobInputs {
        same: &files[..1],
        more: &files[1..],
    };
    let again = || ClusterJob::create_or_open(&cluster, "job", inputs, JobStorage::default());
    again().await.unwrap();
    assert_eq!(job.read_file("profile.toml").await.unwrap(), b"x = 1");
    store.delete(digest.as_str()).await.unwrap();
    let error = job.read_file("profile.toml").await.unwrap_err();
    assert!(matches!(error, ClusterError::FileMissing { .. }), "{error}");
    again().await.unwrap();
    assert_eq!(job.read_file("profile.toml").await.unwrap(), b"x = 1");
    let names = ClusterJob::names(cluster.connection()).await.unwrap();
    assert_eq!(names, ["job"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_the_key_that_is_written_at_that_moment() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let (a, b) = (server.cluster("a").await, server.cluster("b").await);
    let job = ClusterJob::create(&a, "job", &[], JobStorage::default());
    let job = job.await.unwrap();
    assert_eq!(job.applied_commands().await.unwrap(), []);
    job.note_applied(1).await.unwrap();
    let writer = ClusterJob::open(&b, "job").await.unwrap();
    writer.note_applied(1).await.unwrap();
    let writes = tokio::spawn(async move {
        for sequence in 2.. {
            writer.note_applied(sequence).await.unwrap();
        }
    });
    for _ in 0..LISTS {
        let applied = job.applied_commands().await.unwrap();
        let nodes: Vec<&str> = applied.iter().map(|(node, _)| node.as_str()).collect();
        assert_eq!(nodes, ["a", "b"]);
    }
    writes.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_reach_each_node_once_and_in_order() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let cluster = server.cluster("a").await;
    let job = ClusterJob::create(&cluster, "job", &[], JobStorage::default())
        .await
        .unwrap();
    job.send_command(b"one").await.unwrap();
    let mut reader = CommandReader::open(&job, 0).await.unwrap();
    let one = reader.next().await.unwrap();
    assert_eq!(one.command, b"one");
    job.send_command(b"two").await.unwrap();
    let two = reader.next().await.unwrap();
    job.note_applied(two.sequence).await.unwrap();
    job.note_applied(one.sequence).await.unwrap();
    assert_eq!(
        job.applied_commands().await.unwrap(),
        [("a".to_owned(), two.sequence)]
    );
    assert_eq!(job.applied_command("a").await.unwrap(), two.sequence);
    assert_eq!(job.applied_command("b").await.unwrap(), 0);

    // After a restart the node continues after what it has applied; a new node begins with the first.
    job.send_command(b"three").await.unwrap();
    let mut again = CommandReader::open(&job, two.sequence).await.unwrap();
    assert_eq!(again.next().await.unwrap().command, b"three");
    let other = ClusterJob::open(&server.cluster("b").await, "job")
        .await
        .unwrap();
    let mut reader = CommandReader::open(&other, 0).await.unwrap();
    for expected in ["one", "two", "three"] {
        assert_eq!(reader.next().await.unwrap().command, expected.as_bytes());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_take_from_a_budget_at_the_same_time_get_no_more_than_there_is() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let cluster = server.cluster("a").await;
    let job = ClusterJob::create(&cluster, "job", &[], JobStorage::default())
        .await
        .unwrap();
    let nodes = (0..8).map(|node| {
        let job = job.clone();
        tokio::spawn(async move {
            let holder = format!("node-{node}");
            let mut taken = 0;
            loop {
                let change = job.change_budget("documents", 500, |account| {
                    Ok(account.take(&holder, taken, 1_000, 8))
                });
                let (_, sum) = change.await.unwrap();
                if sum == taken {
                    return taken;
                }
                taken = sum;
                job.change_budget("documents", 500, |account| account.spend(&holder, taken))
                    .await
                    .unwrap();
            }
        })
    });
    let mut sum = 0;
    for node in nodes.collect::<Vec<_>>() {
        sum += node.await.unwrap();
    }
    let account = job.budget("documents", 500).await.unwrap();
    assert_eq!(
        (sum, account.spent(), account.open(), account.left()),
        (500, 500, 0, 0)
    );
}

//! Jobs over a real server: logs, links, files, commands, budgets.

use std::io::Cursor;
use std::time::Duration;

use opilio_cluster::partition::{Partition, PartitionCount};
use opilio_cluster::{
    ClusterConfig, ClusterError, ClusterJob, CommandReader, JobInputs, JobStorage, LeaseGuard,
    LinkAdmission, LinkReader, LinkSender, LinkSource, LogPosition, Member, MemberEvent,
    MemberEvents, PartitionLog,
};

use crate::server::{NatsServer, ServerMembers as _};

/// A member with one partition, whose lease can be handed to another member.
struct Owner {
    job: ClusterJob,
    member: Member,
    events: MemberEvents,
    guard: LeaseGuard,
}

const ONLY: u16 = 0;

fn only() -> Partition {
    PartitionCount::default().partition(ONLY).unwrap()
}

fn config(server: &NatsServer, node: &str) -> ClusterConfig {
    ClusterConfig {
        partitions: PartitionCount::new(1).unwrap(),
        ..server.config(node)
    }
}

impl Owner {
    /// The first node, and the job.
    async fn first(server: &NatsServer) -> Self {
        Self::first_with(server, JobStorage::default()).await
    }

    async fn first_with(server: &NatsServer, storage: JobStorage) -> Self {
        let cluster = crate::server::open(config(server, "first")).await.unwrap();
        let job = ClusterJob::create(&cluster, "job", &[], storage)
            .await
            .unwrap();
        Self::join(job).await
    }

    /// The next node, which takes over when the one before has left.
    async fn next(server: &NatsServer, name: &str, before: &mut Self) -> Self {
        before.member.leave().await;
        while let Some(event) = before.events.recv().await {
            match event {
                MemberEvent::Release(guard) => before.member.release(guard.partition()).await,
                MemberEvent::Left => break,
                _ => {}
            }
        }
        let cluster = crate::server::open(config(server, name)).await.unwrap();
        Self::join(ClusterJob::open(&cluster, "job").await.unwrap()).await
    }

    async fn join(job: ClusterJob) -> Self {
        let (member, mut events) = Member::join(job.cluster(), "test").await.unwrap();
        let guard = loop {
            if let MemberEvent::Claimed(guard) = events.recv().await.unwrap() {
                break guard;
            }
        };
        member.set_ready(guard.partition()).await;
        Self {
            job,
            member,
            events,
            guard,
        }
    }

    async fn claim(&self, snapshot: Option<LogPosition>) -> PartitionLog {
        PartitionLog::claim(&self.job, &self.guard, snapshot)
            .await
            .unwrap()
    }
}

fn entries(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

async fn replayed(log: &PartitionLog) -> Result<Vec<String>, ClusterError> {
    let mut texts = Vec::new();
    log.replay(|_, entries| {
        texts.extend(
            entries
                .into_iter()
                .map(|entry| String::from_utf8(entry).unwrap()),
        );
        Ok::<(), ClusterError>(())
    })
    .await?;
    Ok(texts)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_owner_gets_what_was_appended_behind_its_snapshot_and_the_old_one_is_fenced() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let mut first = Owner::first(&server).await;
    let mut log = first.claim(None).await;
    assert_eq!(replayed(&log).await.unwrap(), [""; 0]);
    log.append(&entries(&["a", "b"])).await.unwrap();
    let position = log.append(&entries(&["c"])).await.unwrap();
    assert_eq!(position.index, 3);
    // A snapshot has everything up to here.
    log.trim(position).await.unwrap();
    log.append(&entries(&["d", "e"])).await.unwrap();

    let second = Owner::next(&server, "second", &mut first).await;
    assert!(second.guard.epoch() > first.guard.epoch());
    let mut taken = second.claim(Some(position)).await;
    assert_eq!(replayed(&taken).await.unwrap(), ["d", "e"]);

    // The first node does not know yet.
    let error = log.append(&entries(&["late"])).await.unwrap_err();
    assert!(
        matches!(error, ClusterError::Fenced { epoch, .. } if epoch == second.guard.epoch()),
        "{error}"
    );
    taken.append(&entries(&["f"])).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_entries_survive_a_killed_server_and_are_stored_once() {
    let Some(mut server) = NatsServer::start() else {
        return;
    };
    let first = Owner::first(&server).await;
    let mut log = first.claim(None).await;
    log.append(&entries(&["a"])).await.unwrap();
    server.kill();
    server.begin();
    // The append may meet the old connection: then its entries are kept.
    if let Err(error) = log.append(&entries(&["b"])).await {
        assert!(error.is_temporary(), "{error}");
        while let Err(error) = log.flush().await {
            assert!(error.is_temporary(), "{error}");
        }
    }
    log.append(&entries(&["c"])).await.unwrap();
    let again = first.claim(None).await;
    assert_eq!(replayed(&again).await.unwrap(), ["a", "b", "c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_without_an_answer_is_kept_and_stored_once() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let first = Owner::first(&server).await;
    let mut log = first.claim(None).await;
    server.signal("-STOP");
    let error = log.append(&entries(&["a"])).await.unwrap_err();
    assert!(error.is_temporary(), "{error}");
    server.signal("-CONT");
    // The server reads the first attempt now, and the second one after it.
    while let Err(error) = log.flush().await {
        assert!(error.is_temporary(), "{error}");
    }
    log.append(&entries(&["b"])).await.unwrap();
    let again = first.claim(None).await;
    assert_eq!(replayed(&again).await.unwrap(), ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_suffix_of_the_log_is_noticed_and_mended_by_a_snapshot() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let mut first = Owner::first(&server).await;
    let mut log = first.claim(None).await;
    log.append(&entries(&["a"])).await.unwrap();
    let lost = [
        log.append(&entries(&["b"])).await.unwrap(),
        log.append(&entries(&["c"])).await.unwrap(),
    ];
    // As if JetStream had lost what it acknowledged.
    let client = async_nats::connect(format!("127.0.0.1:{}", server.port))
        .await
        .unwrap();
    let stream = async_nats::jetstream::new(client)
        .get_stream("opilio_job_log_0")
        .await
        .unwrap();
    for position in lost {
        stream.delete_message(position.sequence).await.unwrap();
    }
    let error = log.append(&entries(&["d"])).await.unwrap_err();
    let is_behind = matches!(
        error,
        ClusterError::LogBehind {
            found: 2,
            expected: 4,
            ..
        }
    );
    assert!(is_behind, "{error}");
    let place = LogPosition {
        index: log.last().index,
        sequence: 0,
    };
    log.claim_again(place).await.unwrap();
    log.flush().await.unwrap();

    let second = Owner::next(&server, "second", &mut first).await;
    let taken = second.claim(Some(place)).await;
    assert_eq!(replayed(&taken).await.unwrap(), ["d"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_in_a_log_is_an_error_and_not_a_shorter_history() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let first = Owner::first(&server).await;
    let mut log = first.claim(None).await;
    let middle = log.append(&entries(&["a"])).await.unwrap();
    log.append(&entries(&["b"])).await.unwrap();
    let client = async_nats::connect(format!("127.0.0.1:{}", server.port))
        .await
        .unwrap();
    let stream = async_nats::jetstream::new(client)
        .get_stream("opilio_job_log_0")
        .await
        .unwrap();
    stream.delete_message(middle.sequence).await.unwrap();
    let again = first.claim(None).await;
    let error = replayed(&again).await.unwrap_err();
    assert!(
        matches!(error, ClusterError::LogGap { from: 2, to: 2, .. }),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_stream_refuses_and_throws_nothing_away() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let storage = JobStorage {
        streams: 1,
        log_bytes_max: Some(4_096),
        ..JobStorage::default()
    };
    let first = Owner::first_with(&server, storage).await;
    let mut log = first.claim(None).await;
    let noise: Vec<u8> = (0..1_000_u32)
        .map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let mut stored = 0;
    let error = loop {
        match log.append(std::slice::from_ref(&noise)).await {
            Ok(_) => {
                stored += 1;
                assert!(stored < 100, "nothing is refused");
            }
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error, ClusterError::Full { .. }) && error.is_temporary(),
        "{error}"
    );
    assert!(
        error.to_string().contains("no room for an append"),
        "{error}"
    );
    assert!(stored >= 2);
    // A snapshot makes room, and the kept entry is stored.
    let saved = log.last();
    log.trim(saved).await.unwrap();
    log.flush().await.unwrap();
    let again = first.claim(Some(saved)).await;
    let mut count = 0;
    again
        .replay(|_, entries| {
            count += entries.len();
            Ok::<(), ClusterError>(())
        })
        .await
        .unwrap();
    assert_eq!(count, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_arrive_until_they_are_acknowledged() {
    let Some(mut server) = NatsServer::start() else {
        return;
    };
    let first = Owner::first(&server).await;
    let sender = LinkSender::new(&first.job);
    let source = |log_index| LinkSource {
        partition: only(),
        log_index,
    };
    let add = |link: &str, log_index| {
        sender.add(
            only(),
            link.as_bytes().to_vec(),
            source(log_index),
            Duration::ZERO,
        )
    };
    assert_eq!(add("a", 1), LinkAdmission::Queued);
    assert_eq!(add("b", 2), LinkAdmission::Queued);
    assert_eq!(add("a", 3), LinkAdmission::Known);
    assert_eq!(sender.sent_through(only(), 3), 0);
    sender.send_all().await.unwrap();
    assert_eq!(sender.sent_through(only(), 3), 3);

    let mut reader = LinkReader::open(&first.job, only()).await.unwrap();
    let delivery = reader.next().await.unwrap();
    assert_eq!(
        (delivery.links, delivery.node.as_str()),
        (entries(&["a", "b"]), "first")
    );
    // Nothing was acknowledged: the next reader gets them again, also from a server that was killed.
    server.kill();
    server.begin();
    let mut again = loop {
        match LinkReader::open(&first.job, only()).await {
            Ok(reader) => break reader,
            Err(error) => assert!(error.is_temporary(), "{error}"),
        }
    };
    let delivery = again.next().await.unwrap();
    assert_eq!(delivery.links, entries(&["a", "b"]));
    let behind = |taken| first.job.links_behind(only(), taken);
    assert!(behind(0).await.unwrap().is_some_and(|stored| stored > 0));
    assert_eq!(behind(delivery.sequence).await.unwrap(), None);
    let storage = first.job.cluster().connection().storage().await.unwrap();
    assert!(storage.used > 0, "{storage:?}");
    again.acknowledge(delivery.sequence).await.unwrap();
    assert_eq!(behind(0).await.unwrap(), None);
    add("c", 4);
    sender.send_all().await.unwrap();
    let mut last = LinkReader::open(&first.job, only()).await.unwrap();
    assert_eq!(last.next().await.unwrap().links, entries(&["c"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn links_that_nats_refuses_are_sent_later() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let storage = JobStorage {
        streams: 1,
        link_bytes_max: Some(300),
        ..JobStorage::default()
    };
    let first = Owner::first_with(&server, storage).await;
    let sender = LinkSender::new(&first.job);
    let source = LinkSource {
        partition: only(),
        log_index: 5,
    };
    let noise = |seed: u32| -> Vec<u8> {
        (0..180_u32)
            .map(|number| ((number + seed).wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect()
    };
    sender.add(only(), noise(0), source, Duration::ZERO);
    sender.send_all().await.unwrap();
    sender.add(only(), noise(1_000), source, Duration::ZERO);
    let error = sender.send_all().await.unwrap_err();
    assert!(matches!(error, ClusterError::Full { .. }), "{error}");
    assert_eq!(sender.sent_through(only(), 9), 4);
    let mut reader = LinkReader::open(&first.job, only()).await.unwrap();
    let delivery = reader.next().await.unwrap();
    reader.acknowledge(delivery.sequence).await.unwrap();
    sender.send_all().await.unwrap();
    assert_eq!(sender.sent_through(only(), 9), 9);
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

    // After a restart the node goes on behind what it has applied; a new node begins with the first.
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

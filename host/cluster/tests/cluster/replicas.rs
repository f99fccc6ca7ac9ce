//! Three NATS servers with three replicas of everything, of which each is killed in turn.

use std::collections::BTreeSet;

use opilio_cluster::{
    ClusterConfig, ClusterConnection, ClusterError, ClusterJob, JobStorage, LeaseGuard, Member,
    MemberEvent, PartitionLog,
};

use crate::server::{NatsServer, ServerMembers as _, open};

/// Appends after each death.
const APPENDS: usize = 15;

#[tokio::test(flavor = "multi_thread")]
async fn no_acknowledged_entry_is_lost_or_stored_twice_while_servers_die() {
    let Some(mut servers) = NatsServer::start_cluster(3) else {
        return;
    };
    let config = ClusterConfig {
        servers: servers
            .iter()
            .map(|server| format!("127.0.0.1:{}", server.port))
            .collect(),
        replicas: 3,
        partitions: opilio_cluster::partition::PartitionCount::new(1).unwrap(),
        // A leader of streams is elected within seconds: no lease must lapse meanwhile.
        time_to_live: std::time::Duration::from_secs(60),
        ..servers[0].config("a")
    };
    // JetStream elects a leader of its own first.
    while ClusterConnection::open(config.clone()).await.is_err() {}
    let cluster = loop {
        match open(config.clone()).await {
            Ok(cluster) => break cluster,
            Err(error) => assert!(
                error.is_temporary() || matches!(error, ClusterError::Replicas { .. }),
                "{error}"
            ),
        }
    };
    let storage = JobStorage {
        streams: 1,
        ..JobStorage::default()
    };
    let job = ClusterJob::create(&cluster, "job", &[], storage)
        .await
        .unwrap();
    let (member, mut events) = Member::join(&cluster, "test").await.unwrap();
    let guard = loop {
        if let MemberEvent::Claimed(guard) = events.recv().await.unwrap() {
            break guard;
        }
    };
    member.set_ready(guard.partition()).await;
    let mut log = PartitionLog::claim(&job, &guard, None).await.unwrap();
    let mut written = Vec::new();
    for (death, server) in servers.iter_mut().enumerate() {
        server.kill();
        for number in 0..APPENDS {
            let entry = format!("{death}-{number}");
            let mut result = log.append(&[entry.clone().into_bytes()]).await;
            while let Err(error) = result {
                assert!(error.is_temporary(), "{error}");
                result = log.flush().await;
            }
            written.push(entry);
        }
        server.begin();
    }
    let read = loop {
        match read(&job, &guard).await {
            Ok(read) => break read,
            Err(error) => assert!(error.is_temporary(), "{error}"),
        }
    };
    let distinct: BTreeSet<_> = read.iter().collect();
    assert_eq!(distinct.len(), read.len(), "an entry was stored twice");
    assert_eq!(read, written);
}

async fn read(job: &ClusterJob, guard: &LeaseGuard) -> Result<Vec<String>, ClusterError> {
    let log = PartitionLog::claim(job, guard, None).await?;
    let mut read = Vec::new();
    log.replay(|_, entries| {
        read.extend(
            entries
                .into_iter()
                .map(|entry| String::from_utf8(entry).unwrap()),
        );
        Ok::<(), ClusterError>(())
    })
    .await?;
    Ok(read)
}

//! Three NATS servers with three replicas of everything. Each server is killed in turn.

use std::collections::BTreeMap;
use std::time::Duration;

use opilio_cluster::partition::Partition;
use opilio_cluster::{
    ClusterConfig, ClusterConnection, ClusterError, ClusterJob, CommandReader, LinkAdmission,
    LinkReader, LinkSender, LinkSource,
};

use crate::server::{NatsServer, ServerMembers as _, job_of_one_stream, open, retry};

/// Links and commands that are sent after each death.
const SENT: usize = 15;

#[tokio::test(flavor = "multi_thread")]
async fn no_acknowledged_link_and_no_acknowledged_command_is_lost_while_servers_die() {
    let Some(mut servers) = NatsServer::start_cluster(3) else {
        return;
    };
    let config = ClusterConfig {
        servers: servers
            .iter()
            .map(|server| format!("127.0.0.1:{}", server.port))
            .collect(),
        replicas: 3,
        // The client pings its server five times within the time to live, and must not treat a busy server as dead.
        time_to_live: Duration::from_secs(60),
        ..servers[0].config("a")
    };
    // JetStream must first elect a leader of its own.
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
    let job = job_of_one_stream(&cluster).await;
    let inbox = config.partitions.partition(0).unwrap();
    let sender = LinkSender::new(&job);
    let mut links = Vec::new();
    let mut commands = BTreeMap::new();
    for (death, server) in servers.iter_mut().enumerate() {
        server.kill();
        for number in 0..SENT {
            let text = format!("{death}-{number}");
            let entry = links.len() as u64 + 1;
            let source = LinkSource {
                partition: inbox,
                entry,
            };
            let added = sender.add(inbox, text.clone().into_bytes(), source, Duration::ZERO);
            assert_eq!(added, LinkAdmission::Queued);
            retry(async || sender.send_all().await).await;
            assert_eq!(sender.sent_through(inbox, entry), entry);
            links.push(text.clone());
            let sequence = retry(async || job.send_command(text.as_bytes()).await).await;
            commands.insert(sequence, text);
        }
        server.begin();
    }

    let read = retry(async || read_links(&job, inbox, links.len()).await).await;
    assert_eq!(read, links);
    // A command whose answer was lost was sent again, so other commands may be between these.
    let mut read = retry(async || read_commands(&job, &commands).await).await;
    read.retain(|sequence, _| commands.contains_key(sequence));
    assert_eq!(read, commands);
}

/// Reads links until there are `count` different ones, in the order of their first arrivals.
async fn read_links(
    job: &ClusterJob,
    inbox: Partition,
    count: usize,
) -> Result<Vec<String>, ClusterError> {
    let mut reader = LinkReader::open(job, inbox).await?;
    let mut read: Vec<String> = Vec::new();
    while read.len() < count {
        for link in reader.next().await?.links {
            let link = String::from_utf8(link).unwrap();
            if !read.contains(&link) {
                read.push(link);
            }
        }
    }
    Ok(read)
}

/// Reads the commands up to the last acknowledged one.
async fn read_commands(
    job: &ClusterJob,
    acknowledged: &BTreeMap<u64, String>,
) -> Result<BTreeMap<u64, String>, ClusterError> {
    let last = acknowledged.keys().copied().max().unwrap();
    let mut reader = CommandReader::open(job, 0).await?;
    let mut read = BTreeMap::new();
    loop {
        let command = reader.next().await?;
        let text = String::from_utf8(command.command).unwrap();
        read.insert(command.sequence, text);
        if command.sequence >= last {
            return Ok(read);
        }
    }
}

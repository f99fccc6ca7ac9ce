//! The end of a job whose nodes work independently.

use std::time::Duration;

use opilio_cluster::{
    ClusterError, ClusterJob, JobInputs, JobProgress, JobStorage, LinkReader, LinkSender,
    LinkSource,
};

use crate::server::{NatsServer, ServerMembers as _};

async fn job(server: &NatsServer, node: &str, profile: &[u8]) -> Result<ClusterJob, ClusterError> {
    let cluster = server.cluster(node).await;
    let files = [("profile.toml", profile)];
    let inputs = JobInputs {
        same: &files,
        more: &[],
    };
    ClusterJob::create_or_open(&cluster, "news", inputs, JobStorage::default()).await
}

#[tokio::test]
async fn a_job_is_finished_when_all_nodes_are_at_rest_and_no_link_waits() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let a = job(&server, "a", b"p").await.unwrap();
    let b = job(&server, "b", b"p").await.unwrap();
    let nodes = ["a".to_owned(), "b".to_owned()];
    let progress = async || a.progress(&nodes).await.unwrap();
    let at_work = |nodes: &[&str]| {
        JobProgress::NodesAtWork(nodes.iter().map(|node| (*node).to_owned()).collect())
    };
    a.set_rest(true, 0).await.unwrap();
    assert_eq!(
        progress().await,
        at_work(&["b"]),
        "b has not reported anything"
    );
    b.set_rest(false, 0).await.unwrap();
    assert_eq!(progress().await, at_work(&["b"]));
    b.set_rest(true, 0).await.unwrap();
    assert_eq!(progress().await, JobProgress::Finished);

    let to_b = server.config("a").partitions.partition(1).unwrap();
    let source = LinkSource {
        partition: to_b,
        entry: 1,
    };
    let sender = LinkSender::new(&a);
    sender.add(to_b, b"link".to_vec(), source, Duration::ZERO);
    sender.send_all().await.unwrap();
    assert_eq!(progress().await, JobProgress::LinksWait(1));
    let mut reader = LinkReader::open(&b, to_b).await.unwrap();
    let delivery = reader.next().await.unwrap();
    b.set_rest(false, 0).await.unwrap();
    reader.acknowledge(delivery.place).await.unwrap();
    assert_eq!(progress().await, at_work(&["b"]));
    b.set_rest(true, 0).await.unwrap();
    assert_eq!(progress().await, JobProgress::Finished);
}

#[tokio::test]
async fn a_job_of_this_name_with_other_files_is_refused() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    job(&server, "a", b"p").await.unwrap();
    let error = job(&server, "b", b"q").await.unwrap_err().to_string();
    assert!(error.contains("has another profile.toml"), "{error}");
}

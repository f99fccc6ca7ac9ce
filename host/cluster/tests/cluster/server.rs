//! Members over `nats-server` processes on loopback.

use std::time::Duration;

use opilio_cluster::partition::PartitionCount;
use opilio_cluster::{
    Cluster, ClusterConfig, ClusterConnection, ClusterError, ClusterJob, JobStorage, MemberScope,
};

pub(crate) use opilio_test_nats::{NatsServer, free_port, signal_process};

/// Longest time for which a request is repeated.
const RETRY_TIME_MAX: Duration = Duration::from_secs(120);

/// Settings and members of a server's cluster.
pub(crate) trait ServerMembers {
    /// Settings of a node: 16 partitions, and a short time to live.
    fn config(&self, node: &str) -> ClusterConfig;

    /// Opens the members of a job for a node.
    async fn cluster(&self, node: &str) -> Cluster;
}

impl ServerMembers for NatsServer {
    fn config(&self, node: &str) -> ClusterConfig {
        let mut config = ClusterConfig::new(node, vec![format!("127.0.0.1:{}", self.port)]);
        config.time_to_live = Duration::from_secs(2);
        config.partitions = PartitionCount::new(16).unwrap();
        config
    }

    async fn cluster(&self, node: &str) -> Cluster {
        open(self.config(node)).await.unwrap()
    }
}

/// Opens the members of a job.
pub(crate) async fn open(config: ClusterConfig) -> Result<Cluster, ClusterError> {
    let scope = MemberScope::Job("test".to_owned());
    Cluster::open(ClusterConnection::open(config).await?, &scope).await
}

/// Creates a job without files. One stream has the links to all partitions.
pub(crate) async fn job_of_one_stream(cluster: &Cluster) -> ClusterJob {
    let storage = JobStorage {
        streams: 1,
        ..JobStorage::default()
    };
    ClusterJob::create(cluster, "job", &[], storage)
        .await
        .unwrap()
}

/// Repeats a request until NATS answers: servers start again, or elect a leader.
pub(crate) async fn retry<T>(request: impl AsyncFn() -> Result<T, ClusterError>) -> T {
    let answer = async {
        loop {
            match request().await {
                Ok(answer) => break answer,
                Err(error) => assert!(error.is_temporary(), "{error}"),
            }
        }
    };
    tokio::time::timeout(RETRY_TIME_MAX, answer).await.unwrap()
}

//! Members over `nats-server` processes on loopback.

use std::time::Duration;

use opilio_cluster::partition::PartitionCount;
use opilio_cluster::{Cluster, ClusterConfig, ClusterConnection, ClusterError, MemberScope};

pub(crate) use opilio_test_nats::{NatsServer, free_port, signal_process};

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

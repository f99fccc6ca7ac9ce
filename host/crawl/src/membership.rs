//! The membership of a process in a job that several nodes share: the part of the crawl that it has, whether it may fetch, and whether
//! it and the others have something left to do. `crawl/links_between_nodes.rs` has the tasks.
//!
//! The process issues URIs only while its session in the cluster holds. So two processes with the name of one node never crawl at the
//! same time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use opilio_cluster::partition::Partition;
use opilio_cluster::{
    Cluster, ClusterConfig, ClusterConnection, ClusterError, ClusterJob, JobStorage, Member,
    MemberScope,
};
use opilio_frontier::Candidate;
use opilio_profile::Profile;
use tokio::sync::Mutex;

use crate::job_nodes::{ForcedQueues, JobNodes};

/// The membership of a process in its job.
pub struct JobMembership {
    nodes: JobNodes,
    forced: ForcedQueues,
    pub(crate) job: ClusterJob,
    pub(crate) member: Member,
    /// Number of deliveries that the frontier has.
    delivered: AtomicU64,
    /// `delivered` + 1 when the dispatcher last found nothing left to do; 0 while there is something.
    rested: AtomicU64,
    is_finished: AtomicBool,
    /// Whether the cluster knows this node as at rest; `None` if that is unknown. Whoever takes links holds the lock meanwhile.
    pub(crate) known_rest: Mutex<Option<bool>>,
}

impl JobMembership {
    /// Joins a job that this node has not worked on. The job is created if there is none of its name. `seeds` are all seeds, as lines.
    ///
    /// # Errors
    /// The node is not one of the job, the job has another profile, another process has the node's name, or NATS fails.
    pub async fn join(
        config: ClusterConfig,
        nodes: JobNodes,
        profile: &Profile,
        seeds: &[String],
    ) -> Result<JobMembership, ClusterError> {
        let cluster = open(config, &nodes).await?;
        let (seeds, names) = (seeds.join("\n"), nodes.nodes.join("\n"));
        let files = [
            ("profile", profile.source_text().as_bytes()),
            ("list of seeds", seeds.as_bytes()),
            ("list of nodes", names.as_bytes()),
        ];
        let storage = JobStorage::default();
        let job = ClusterJob::create_or_open(&cluster, &nodes.job, &files, storage).await?;
        Self::enter(job, nodes, profile).await
    }

    /// Joins a job that this node has worked on. Its seeds may have changed since then.
    ///
    /// # Errors
    /// The cluster has no such job, or as [`Self::join`].
    pub async fn resume(
        config: ClusterConfig,
        nodes: JobNodes,
        profile: &Profile,
    ) -> Result<JobMembership, ClusterError> {
        let cluster = open(config, &nodes).await?;
        let job = ClusterJob::open(&cluster, &nodes.job).await?;
        Self::enter(job, nodes, profile).await
    }

    async fn enter(
        job: ClusterJob,
        nodes: JobNodes,
        profile: &Profile,
    ) -> Result<JobMembership, ClusterError> {
        // Its events are about other nodes, which the daemon's log has.
        let (member, _) = Member::join(job.cluster(), env!("CARGO_PKG_VERSION")).await?;
        Ok(JobMembership {
            forced: ForcedQueues::of(profile),
            nodes,
            job,
            member,
            delivered: AtomicU64::new(0),
            rested: AtomicU64::new(0),
            is_finished: AtomicBool::new(false),
            known_rest: Mutex::new(None),
        })
    }

    /// The nodes of the job.
    #[must_use]
    pub fn nodes(&self) -> &JobNodes {
        &self.nodes
    }

    /// Whether a URI may be issued now.
    pub(crate) fn may_issue(&self) -> bool {
        self.member.time_left().is_some()
    }

    /// Number of deliveries that the frontier has. Read it before the frontier is asked.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Acquire)
    }

    /// Notes that the frontier had nothing left after so many deliveries.
    pub(crate) fn rest(&self, delivered: u64) {
        self.rested.store(delivered + 1, Ordering::Release);
    }

    /// Notes that the frontier has something to do.
    pub(crate) fn work(&self) {
        self.rested.store(0, Ordering::Release);
    }

    /// Whether all nodes have finished.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_finished.load(Ordering::Acquire)
    }

    /// Notes that all nodes have finished.
    pub(crate) fn finish(&self) {
        self.is_finished.store(true, Ordering::Release);
    }

    /// Notes that the frontier has a delivery.
    pub(crate) fn deliver(&self) {
        self.delivered.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether the dispatcher has found nothing left since the last delivery.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.rested.load(Ordering::Acquire) == self.delivered() + 1
    }

    /// Tells the cluster whether this node is at rest, if it does not know. `known_rest` is that of this membership.
    pub(crate) async fn tell(
        &self,
        known_rest: &mut Option<bool>,
        is_at_rest: bool,
    ) -> Result<(), ClusterError> {
        if *known_rest == Some(is_at_rest) {
            return Ok(());
        }
        *known_rest = None;
        self.job.set_rest(is_at_rest).await?;
        *known_rest = Some(is_at_rest);
        Ok(())
    }

    /// The subject of the links to this process.
    pub(crate) fn own_subject(&self) -> Partition {
        self.subject(self.nodes.own())
    }

    /// The subject of the links to a node.
    fn subject(&self, node: u16) -> Partition {
        let partitions = self.nodes.partitions;
        // There are at most as many nodes as partitions.
        let subject = partitions.partition(node);
        subject.unwrap_or_else(|| partitions.partition_of(""))
    }

    /// The subject of the links to the node that crawls a candidate.
    pub(crate) fn subject_of(&self, candidate: &Candidate) -> Partition {
        let owner = self
            .nodes
            .owner(&self.forced, &candidate.queue, &candidate.uri);
        self.subject(owner)
    }
}

/// Checks the nodes, and opens their cluster.
async fn open(config: ClusterConfig, nodes: &JobNodes) -> Result<Cluster, ClusterError> {
    check(nodes)?;
    let connection = ClusterConnection::open(config).await?;
    let scope = MemberScope::FixedJob(nodes.job.clone());
    Cluster::open(connection, &scope).await
}

fn check(nodes: &JobNodes) -> Result<(), ClusterError> {
    let list = nodes.nodes.join(", ");
    if !nodes.nodes.contains(&nodes.node) {
        return Err(ClusterError::Config(format!(
            "node {:?} (cluster.node) is not one of the job's nodes ({list}): name it in --nodes, or start the job on one of them",
            nodes.node
        )));
    }
    let (count, max) = (nodes.nodes.len(), nodes.partitions.get());
    if count > usize::from(max) {
        return Err(ClusterError::Config(format!(
            "{count} nodes cannot share {max} partitions (cluster.partitions): name fewer nodes"
        )));
    }
    Ok(())
}

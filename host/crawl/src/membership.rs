//! The membership of a process in a job that several nodes share: the process's part of the crawl, whether it may fetch, and
//! whether it and the other nodes have something left to do. `crawl/links_between_nodes.rs` has the tasks.
//!
//! The process is a member under the name of its part, and issues URIs only while its session in the cluster is live. So two
//! processes of one part never crawl at the same time. If another node can take the part over, there is a second condition: after
//! each lost session, the process must confirm that its directory still has the part.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex as StdMutex, PoisonError};
use std::time::Duration;

use opilio_cluster::control::{SessionEnd, SessionState};
use opilio_cluster::partition::Partition;
use opilio_cluster::{
    Availability, Cluster, ClusterConfig, ClusterConnection, ClusterError, ClusterJob, Member,
    MemberScope, MessagePlace, PartRecord, check_name,
};
use opilio_frontier::Candidate;
use opilio_job::part_status::PartStatus;
use opilio_profile::Profile;
use tokio::sync::{Mutex, Notify};

use crate::job_part::{ForcedQueues, JobPart};
use crate::shared_files::SharedFiles;
use crate::shared_limits::SharedLimits;

/// Maximum time for leaving. Without a reply the session ends by itself later.
const LEAVE_TIME_MAX: Duration = Duration::from_secs(5);

/// Interval at which a fetch that may not begin checks the session.
const SESSION_PAUSE: Duration = Duration::from_millis(100);

/// Value of `confirmed` before a session was confirmed.
const UNCONFIRMED: u64 = u64::MAX;

/// The membership of a process in its job.
pub struct JobMembership {
    part: JobPart,
    /// Name of this machine in the cluster.
    node: String,
    forced: ForcedQueues,
    job: ClusterJob,
    /// Position in the job's command log of the last command from before this process joined; 0 without such a command.
    commands_before: u64,
    /// `true` if the previous process of the part has died.
    replaces_dead: bool,
    pub(crate) member: Member,
    /// Number of lost sessions when the cluster last confirmed that this directory has the part.
    confirmed: AtomicU64,
    /// Number of deliveries of links that the frontier has received.
    delivered: AtomicU64,
    /// The last message of the inbox that the frontier has received.
    taken: StdMutex<MessagePlace>,
    /// Wakes the reader of the inbox after NATS has lost messages.
    pub(crate) reread: Notify,
    /// Number of the last entry of the outbox up to which NATS has stored all links.
    sent: AtomicU64,
    /// `delivered` + 1 at the time when the dispatcher last found nothing left to do; 0 while there is something to do.
    rested: AtomicU64,
    is_finished: AtomicBool,
    /// This process's shares of the crawl's limits.
    pub(crate) limits: SharedLimits,
    /// The last observed state of the part.
    status: StdMutex<Option<PartStatus>>,
    /// The newest snapshot that this process has published.
    published: StdMutex<Option<PublishedState>>,
    /// `true` if this node is at rest according to the cluster; `None` if that is unknown. Locked while links are received.
    pub(crate) known_rest: Mutex<Option<bool>>,
}

/// The state of the frontier in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishedState {
    /// Number of changes, as [`Frontier::changes`](opilio_frontier::Frontier::changes) counts them in this process.
    pub changes: u64,
    /// The last message of the inbox that the snapshot covers.
    pub covered: MessagePlace,
    /// Number of the snapshot.
    pub number: u64,
}

impl JobMembership {
    /// Joins a job whose part this machine has not worked on. If there is no job of this name, it is created, unless the profile
    /// was fetched from the cluster.
    ///
    /// # Errors
    /// The job has no such part or has another profile, another process has the part, another directory has begun the part, or NATS
    /// fails.
    pub async fn join(
        config: ClusterConfig,
        part: JobPart,
        profile: &Profile,
        files: &SharedFiles,
    ) -> Result<JobMembership, ClusterError> {
        let node = config.node.clone();
        let cluster = open(config, &part).await?;
        let job = files.open(&cluster, &part.job).await?;
        let can_move = profile.checkpoint.publish_every.is_some();
        if can_move && let Some(record) = job.part(&part.part).await? {
            return Err(ClusterError::PartBegun {
                part: part.part,
                node: record.node,
            });
        }
        let mut membership = Self::join_as_member(job, part, node, profile).await?;
        if can_move {
            membership.claim(None).await?;
        }
        Ok(membership)
    }

    /// Joins a job whose part this directory has. The seeds of the job may have changed since it was made.
    ///
    /// # Errors
    /// The cluster has no such job, another directory has got the part, or as [`Self::join`].
    pub async fn resume(
        config: ClusterConfig,
        part: JobPart,
        profile: &Profile,
    ) -> Result<JobMembership, ClusterError> {
        let node = config.node.clone();
        let cluster = open(config, &part).await?;
        let job = ClusterJob::open(&cluster, &part.job).await?;
        if part.can_move() {
            // This is checked before the process joins, because another directory may have got the part and its name.
            job.check_part(part.own()).await?;
        }
        let membership = Self::join_as_member(job, part, node, profile).await?;
        membership.confirm().await?;
        Ok(membership)
    }

    /// Joins a job in place of the node that had a part, as soon as that node's session has ended. Also returns the record of the
    /// part; `None` if no node has begun the part. Nothing changes for other nodes before [`Self::claim`].
    ///
    /// # Errors
    /// The cluster has no such job, the node's session is live, or as [`Self::join`].
    pub async fn take_over(
        config: ClusterConfig,
        part: JobPart,
        profile: &Profile,
        files: &SharedFiles,
    ) -> Result<(JobMembership, Option<PartRecord>), ClusterError> {
        let node = config.node.clone();
        let cluster = open(config, &part).await?;
        let job = ClusterJob::open(&cluster, &part.job).await?;
        files.check(&job).await?;
        let sessions = cluster.nodes().await?;
        let before = sessions.iter().find(|session| session.name == part.part);
        // While the session seems to be live, the process cannot join. The session may still end because it is not renewed.
        let has_died = before.is_some_and(|session| session.state != SessionState::Left);
        let mut membership = Self::join_as_member(job, part, node, profile).await?;
        membership.replaces_dead = has_died;
        let record = membership.job.part(&membership.part.part).await?;
        Ok((membership, record))
    }

    /// Assigns the part to a new directory. `known` is the record of the part.
    ///
    /// # Errors
    /// Another directory has got the part meanwhile, or NATS fails.
    pub async fn claim(&mut self, known: Option<&PartRecord>) -> Result<(), ClusterError> {
        let (known, sessions) = (known.map_or(0, |it| it.epoch), self.member.sessions_lost());
        let claimed = self.job.claim_part(&self.part.part, known, &self.node);
        self.part.epoch = claimed.await?;
        // The previous node may have been at rest.
        self.job.set_rest(false, self.part.epoch).await?;
        self.confirmed.store(sessions, Ordering::Release);
        Ok(())
    }

    async fn join_as_member(
        job: ClusterJob,
        part: JobPart,
        node: String,
        profile: &Profile,
    ) -> Result<JobMembership, ClusterError> {
        // This is read first. A command that is given while the process waits for an older session to end must be carried out by
        // this process.
        let commands_before = job.last_command().await?;
        // The events of the cluster are about other nodes; the daemon's log has them.
        let joined = Member::join(job.cluster(), env!("CARGO_PKG_VERSION")).await;
        let (member, _) = joined.map_err(|error| match error {
            ClusterError::NameInUse { node } => ClusterError::PartInUse { part: node },
            other => other,
        })?;
        Ok(JobMembership {
            forced: ForcedQueues::of(profile),
            part,
            node,
            job,
            commands_before,
            replaces_dead: false,
            member,
            confirmed: AtomicU64::new(UNCONFIRMED),
            delivered: AtomicU64::new(0),
            taken: StdMutex::default(),
            reread: Notify::new(),
            sent: AtomicU64::new(0),
            rested: AtomicU64::new(0),
            is_finished: AtomicBool::new(false),
            limits: SharedLimits::default(),
            status: StdMutex::default(),
            published: StdMutex::default(),
            known_rest: Mutex::new(None),
        })
    }

    /// Returns the part of the process.
    #[must_use]
    pub fn part(&self) -> &JobPart {
        &self.part
    }

    /// Name of this machine in the cluster.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Returns the job in the cluster.
    #[must_use]
    pub fn job(&self) -> &ClusterJob {
        &self.job
    }

    /// Returns the position in the job's command log of the last command from before this process joined the job; 0 if there was no
    /// command.
    #[must_use]
    pub fn commands_before(&self) -> u64 {
        self.commands_before
    }

    /// Returns `true` if this process has taken the part over from a process that has not ended normally.
    #[must_use]
    pub fn replaces_dead(&self) -> bool {
        self.replaces_dead
    }

    /// Returns `true` if the process has the part now. Then it may issue URIs, send links, and write to the store.
    #[must_use]
    pub fn has_part(&self) -> bool {
        self.member.time_left().is_some() && self.is_confirmed()
    }

    fn is_confirmed(&self) -> bool {
        !self.part.can_move()
            || self.confirmed.load(Ordering::Acquire) == self.member.sessions_lost()
    }

    /// Waits until the process has the part.
    pub(crate) async fn until_has_part(&self) {
        while !self.has_part() {
            tokio::time::sleep(SESSION_PAUSE).await;
        }
    }

    /// Checks in the cluster whether this directory still has the part, if a session was lost since the last check.
    ///
    /// # Errors
    /// [`ClusterError::PartTaken`] if another directory has it, or NATS fails.
    pub(crate) async fn confirm(&self) -> Result<(), ClusterError> {
        if self.is_confirmed() {
            return Ok(());
        }
        // As long as this session is live, no other directory can get the part.
        let sessions = self.member.sessions_lost();
        let is_member = self.member.time_left().is_some();
        self.job.check_part(self.part.own()).await?;
        if is_member {
            self.confirmed.store(sessions, Ordering::Release);
        }
        Ok(())
    }

    /// Leaves the job, so that the part is free at once, in the state "stopped". If another directory may have got the part, the
    /// part's state is not changed, because that directory's process has not stopped.
    pub async fn leave(&self) {
        self.leave_as(SessionEnd::Left).await;
    }

    /// Leaves the job as [`Self::leave`] does, because the system terminates the process, for instance at a shutdown. No operator
    /// has stopped the part, so it is in the state of a part whose process has died: if this machine stays off, another node takes
    /// the part over.
    pub async fn leave_terminated(&self) {
        self.leave_as(SessionEnd::Expired).await;
    }

    async fn leave_as(&self, end: SessionEnd) {
        // A session may have been lost since the part was last confirmed. After an error, the part counts as unconfirmed.
        let confirming = tokio::time::timeout(LEAVE_TIME_MAX, self.confirm());
        confirming.await.ok();
        let end = match self.is_confirmed() {
            true => end,
            false => SessionEnd::AsBefore,
        };
        self.end_session(end).await;
    }

    /// Leaves the job after [`Self::claim`], for another process of this machine that will work on the part. Until that process
    /// joins, the part is in the state of a part whose process has died, so another node takes it over if this machine is lost.
    pub async fn hand_over(&self) {
        self.end_session(SessionEnd::Expired).await;
    }

    /// Leaves the job without having got the part. The state of the part is not changed.
    pub async fn withdraw(&self) {
        self.end_session(SessionEnd::AsBefore).await;
    }

    async fn end_session(&self, end: SessionEnd) {
        self.member.leave(end).await;
        let mut status = self.member.status();
        let left = status.wait_for(|status| status.availability == Availability::Outside);
        if tokio::time::timeout(LEAVE_TIME_MAX, left).await.is_err() {
            tracing::warn!("NATS does not answer: the node leaves the job when its session ends");
        }
    }

    /// Returns the number of deliveries that the frontier has received. Read it before querying the frontier.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Acquire)
    }

    /// Records that the frontier had nothing left to do after this many deliveries.
    pub(crate) fn record_rest(&self, delivered: u64) {
        self.rested.store(delivered + 1, Ordering::Release);
    }

    /// Records that the frontier has something to do.
    pub(crate) fn record_work(&self) {
        self.rested.store(0, Ordering::Release);
    }

    /// Returns `true` if all nodes have finished.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_finished.load(Ordering::Acquire)
    }

    /// Records that all nodes have finished.
    pub(crate) fn finish(&self) {
        self.is_finished.store(true, Ordering::Release);
    }

    /// Records that the frontier has received a delivery that ends with this message of the inbox.
    pub(crate) fn deliver(&self, place: MessagePlace) {
        {
            let mut taken = self.lock_taken();
            if place.sequence > taken.sequence {
                *taken = place;
            }
        }
        self.delivered.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the last message of the inbox that the frontier has received; number 0 before the first message. Read it before a
    /// snapshot of the frontier is taken.
    #[must_use]
    pub fn taken(&self) -> MessagePlace {
        *self.lock_taken()
    }

    /// Forgets the last received message, because NATS may give its number to another message. Messages that are still in the inbox
    /// are received again, which changes nothing.
    pub(crate) fn forget_taken(&self) {
        *self.lock_taken() = MessagePlace::default();
    }

    fn lock_taken(&self) -> std::sync::MutexGuard<'_, MessagePlace> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of the last entry of the outbox up to which NATS has stored all links.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Acquire)
    }

    /// Records that NATS has stored the links of the outbox up to this entry.
    pub(crate) fn set_sent(&self, entry: u64) {
        self.sent.store(entry, Ordering::Release);
    }

    /// Returns the last observed state of the part; `None` before the first request to NATS.
    #[must_use]
    pub fn status(&self) -> Option<PartStatus> {
        self.lock_status().clone()
    }

    /// Records the state of the part.
    pub(crate) fn set_status(&self, status: PartStatus) {
        *self.lock_status() = Some(status);
    }

    fn lock_status(&self) -> std::sync::MutexGuard<'_, Option<PartStatus>> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a published snapshot.
    pub fn set_published(&self, state: PublishedState) {
        *self.lock_published() = Some(state);
    }

    /// Forgets the newest snapshot, because NATS has lost its record. Another snapshot is published.
    pub(crate) fn forget_published(&self) {
        *self.lock_published() = None;
    }

    /// The newest snapshot that this process has published.
    #[must_use]
    pub fn published(&self) -> Option<PublishedState> {
        *self.lock_published()
    }

    /// Returns `true` if a published snapshot contains this number of changes of the frontier, and covers the inbox as far as it
    /// was read.
    #[must_use]
    pub fn is_published(&self, changes: u64) -> bool {
        let taken = self.taken();
        let is_covered = |covered| taken.sequence == 0 || taken == covered;
        self.published()
            .is_some_and(|it| it.changes == changes && is_covered(it.covered))
    }

    fn lock_published(&self) -> std::sync::MutexGuard<'_, Option<PublishedState>> {
        self.published
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if the dispatcher has found nothing left to do since the last delivery.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.rested.load(Ordering::Acquire) == self.delivered() + 1
    }

    /// Reports to the cluster whether this node is at rest, if the cluster has another value. `known_rest` is the locked field of
    /// this membership.
    pub(crate) async fn report_rest(
        &self,
        known_rest: &mut Option<bool>,
        is_at_rest: bool,
    ) -> Result<(), ClusterError> {
        if *known_rest == Some(is_at_rest) {
            return Ok(());
        }
        *known_rest = None;
        self.job.set_rest(is_at_rest, self.part.epoch).await?;
        *known_rest = Some(is_at_rest);
        Ok(())
    }

    /// Returns the NATS subject of the links to this process.
    #[must_use]
    pub fn inbox(&self) -> Partition {
        self.subject(self.part.number())
    }

    /// Returns the NATS subject of the links to a part.
    fn subject(&self, part: u16) -> Partition {
        self.part.inbox(part)
    }

    /// Returns the NATS subject of the links to the part to which a candidate belongs.
    pub(crate) fn subject_of(&self, candidate: &Candidate) -> Partition {
        let owner = self
            .part
            .owner(&self.forced, &candidate.queue, &candidate.uri);
        self.subject(owner)
    }
}

/// Checks the part, and opens the cluster of its job. The process has the part's name in this cluster.
async fn open(config: ClusterConfig, part: &JobPart) -> Result<Cluster, ClusterError> {
    check(&config, part)?;
    let config = ClusterConfig {
        node: part.part.clone(),
        ..config
    };
    let connection = ClusterConnection::open(config).await?;
    let scope = MemberScope::Job(part.job.clone());
    Cluster::open(connection, &scope).await
}

fn check(config: &ClusterConfig, part: &JobPart) -> Result<(), ClusterError> {
    for name in &part.parts {
        check_name("name of a node or part", name)?;
    }
    let list = part.parts.join(", ");
    if !part.parts.contains(&part.part) {
        return Err(ClusterError::Config(match config.node == part.part {
            true => format!(
                "node {:?} (cluster.node) is not one of the job's nodes ({list}): name it in --nodes, start the job on one of them, or take a part over with --take-over PART",
                config.node
            ),
            false => format!(
                "the job has no part {:?}: name one of its parts ({list})",
                part.part
            ),
        }));
    }
    let (count, max) = (part.parts.len(), part.partitions.get());
    if count > usize::from(max) {
        return Err(ClusterError::Config(format!(
            "{count} parts cannot share {max} partitions (cluster.partitions): name fewer nodes or parts"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use opilio_cluster::partition::PartitionCount;

    use super::*;

    #[track_caller]
    fn check_parts(parts: &[&str], expected: &str) {
        let config = ClusterConfig::new("a", vec!["127.0.0.1".to_owned()]);
        let part = JobPart {
            job: "news".to_owned(),
            parts: parts.iter().map(|part| (*part).to_owned()).collect(),
            part: "a".to_owned(),
            partitions: PartitionCount::default(),
            config: "/etc/opilio.toml".into(),
            epoch: 0,
        };
        let problem = check(&config, &part).err();
        let problem = problem.map_or(String::new(), |problem| problem.to_string());
        assert!(problem.starts_with(expected), "{parts:?}: {problem}");
        assert_eq!(problem.is_empty(), expected.is_empty(), "{problem}");
    }

    #[test]
    fn invalid_part_names_are_refused_before_nats_is_contacted() {
        check_parts(&["a", "part-1"], "");
        check_parts(&["a", " b"], "invalid name of a node or part \" b\"");
        check_parts(&["b"], "node \"a\" (cluster.node) is not one of");
    }
}

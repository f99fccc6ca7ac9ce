//! The membership of a process in a job that several nodes share: the part of the crawl that it has, whether it may fetch, and whether
//! it and the others have something left to do. `crawl/links_between_nodes.rs` has the tasks.
//!
//! The process is a member under the name of its part, and issues URIs only while its session in the cluster holds. So two processes
//! of one part never crawl at the same time. Where another node can take the part over, the process must also have found, since its
//! last session was lost, that its directory still has the part.

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

/// Time for leaving. After it the session ends by itself.
const LEAVE_TIME_MAX: Duration = Duration::from_secs(5);

/// Pause between two looks at the session by a fetch that may not begin.
const SESSION_PAUSE: Duration = Duration::from_millis(100);

/// No session was confirmed.
const UNCONFIRMED: u64 = u64::MAX;

/// The membership of a process in its job.
pub struct JobMembership {
    part: JobPart,
    /// Name of this machine in the cluster.
    node: String,
    forced: ForcedQueues,
    job: ClusterJob,
    /// Place of the last command of the job's log that was given before this process joined; 0 for none.
    commands_before: u64,
    /// `true` if the process that had the part before has died.
    replaces_dead: bool,
    pub(crate) member: Member,
    /// Number of lost sessions when the cluster last confirmed that this directory has the part.
    confirmed: AtomicU64,
    /// Number of deliveries that the frontier has.
    delivered: AtomicU64,
    /// The last message of the inbox that the frontier has.
    taken: StdMutex<MessagePlace>,
    /// Wakes the reader of the inbox after a loss in NATS.
    pub(crate) reread: Notify,
    /// Number of the last entry of the outbox up to which NATS has stored all links.
    sent: AtomicU64,
    /// `delivered` + 1 when the dispatcher last found nothing left to do; 0 while there is something.
    rested: AtomicU64,
    is_finished: AtomicBool,
    /// The parts of the crawl's limits that this process may use.
    pub(crate) limits: SharedLimits,
    /// The state of the part as it was last seen.
    status: StdMutex<Option<PartStatus>>,
    /// The newest snapshot that this process has published.
    published: StdMutex<Option<PublishedState>>,
    /// `true` if the cluster knows this node as at rest; `None` if that is unknown. The lock is held while links are received.
    pub(crate) known_rest: Mutex<Option<bool>>,
}

/// The state of the frontier that a snapshot has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishedState {
    /// Number of changes, as [`Frontier::changes`](opilio_frontier::Frontier::changes) counts them in this process.
    pub changes: u64,
    /// The last message of the inbox that it covers.
    pub covered: MessagePlace,
    /// Number of the snapshot.
    pub number: u64,
}

impl JobMembership {
    /// Joins a job whose part this machine has not worked on. The job is created if there is none of its name, unless the profile was
    /// fetched from the cluster.
    ///
    /// # Errors
    /// The part is not one of the job, the job has another profile, another process has the part, another directory has begun it, or
    /// NATS fails.
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
        let mut membership = Self::enter(job, part, node, profile).await?;
        if can_move {
            membership.claim(None).await?;
        }
        Ok(membership)
    }

    /// Joins a job whose part this directory has. Its seeds may have changed since it was made.
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
            // Before it joins: its name may be another directory's.
            job.check_part(part.own()).await?;
        }
        let membership = Self::enter(job, part, node, profile).await?;
        membership.confirm().await?;
        Ok(membership)
    }

    /// Joins a job in the place of the node that had a part, as soon as that node's session has ended. Returns the record of the part
    /// too; `None` if no node has begun it. Nothing has changed for others before [`Self::claim`].
    ///
    /// # Errors
    /// The cluster has no such job, the node is alive, or as [`Self::join`].
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
        // A session that seems to be live keeps the process from joining, unless it ends without a word.
        let has_died = before.is_some_and(|session| session.state != SessionState::Left);
        let mut membership = Self::enter(job, part, node, profile).await?;
        membership.replaces_dead = has_died;
        let record = membership.job.part(&membership.part.part).await?;
        Ok((membership, record))
    }

    /// Gives the part to a new directory. `known` is its record.
    ///
    /// # Errors
    /// Another directory has got the part meanwhile, or NATS fails.
    pub async fn claim(&mut self, known: Option<&PartRecord>) -> Result<(), ClusterError> {
        let (known, sessions) = (known.map_or(0, |it| it.epoch), self.member.sessions_lost());
        let claimed = self.job.claim_part(&self.part.part, known, &self.node);
        self.part.epoch = claimed.await?;
        // The node before may have been at rest.
        self.job.set_rest(false, self.part.epoch).await?;
        self.confirmed.store(sessions, Ordering::Release);
        Ok(())
    }

    async fn enter(
        job: ClusterJob,
        part: JobPart,
        node: String,
        profile: &Profile,
    ) -> Result<JobMembership, ClusterError> {
        // Read first: a command that is given while the process waits for an older session to end is meant for it.
        let commands_before = job.last_command().await?;
        // Its events are about other nodes, which the daemon's log has.
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

    /// The part of the process.
    #[must_use]
    pub fn part(&self) -> &JobPart {
        &self.part
    }

    /// Name of this machine in the cluster.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The job in the cluster.
    #[must_use]
    pub fn job(&self) -> &ClusterJob {
        &self.job
    }

    /// Place of the last command in the job's log of commands that was given before this process joined the job; 0 if there was none.
    #[must_use]
    pub fn commands_before(&self) -> u64 {
        self.commands_before
    }

    /// Returns `true` if this process has taken the part over from a process that has not ended in good order.
    #[must_use]
    pub fn replaces_dead(&self) -> bool {
        self.replaces_dead
    }

    /// Returns `true` if the process has the part now: it may issue URIs, send links, and write to the store.
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

    /// Asks the cluster whether this directory still has the part, if a session was lost since it was last asked.
    ///
    /// # Errors
    /// [`ClusterError::PartTaken`] if another directory has it, or NATS fails.
    pub(crate) async fn confirm(&self) -> Result<(), ClusterError> {
        if self.is_confirmed() {
            return Ok(());
        }
        // As long as this session holds, no other directory can get the part.
        let sessions = self.member.sessions_lost();
        let is_member = self.member.time_left().is_some();
        self.job.check_part(self.part.own()).await?;
        if is_member {
            self.confirmed.store(sessions, Ordering::Release);
        }
        Ok(())
    }

    /// Leaves the job, so that the part is free at once. It is stopped then. If another directory may have got the part, it is in the state
    /// as before this process joined: nobody has stopped the process of that directory.
    pub async fn leave(&self) {
        self.leave_as(SessionEnd::Left).await;
    }

    /// Leaves the job as [`Self::leave`] does, because the system terminates the process, for instance with its machine. Nobody has
    /// stopped the part, so it is in the state of one whose process has died: if the machine does not come back, another node takes it
    /// over.
    pub async fn leave_terminated(&self) {
        self.leave_as(SessionEnd::Expired).await;
    }

    async fn leave_as(&self, end: SessionEnd) {
        // A session may have been lost since the part was last confirmed. After an error the part stays unconfirmed.
        let confirming = tokio::time::timeout(LEAVE_TIME_MAX, self.confirm());
        confirming.await.ok();
        let end = match self.is_confirmed() {
            true => end,
            false => SessionEnd::AsBefore,
        };
        self.end_session(end).await;
    }

    /// Leaves the job after [`Self::claim`], for another process of this machine that is to work on the part. Until that process joins,
    /// the part is in the state of one whose process has died: another node takes it over if this machine is lost.
    pub async fn hand_over(&self) {
        self.end_session(SessionEnd::Expired).await;
    }

    /// Leaves the job without having got the part, which is in the state as before this process joined.
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

    /// Number of deliveries that the frontier has. Read it before the frontier is asked.
    #[must_use]
    pub fn delivered(&self) -> u64 {
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

    /// Returns `true` if all nodes have finished.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_finished.load(Ordering::Acquire)
    }

    /// Notes that all nodes have finished.
    pub(crate) fn finish(&self) {
        self.is_finished.store(true, Ordering::Release);
    }

    /// Notes that the frontier has a delivery, with this message of the inbox.
    pub(crate) fn deliver(&self, place: MessagePlace) {
        {
            let mut taken = self.lock_taken();
            if place.sequence > taken.sequence {
                *taken = place;
            }
        }
        self.delivered.fetch_add(1, Ordering::AcqRel);
    }

    /// The last message of the inbox that the frontier has; number 0 for none. Read it before a snapshot of the frontier is taken.
    #[must_use]
    pub fn taken(&self) -> MessagePlace {
        *self.lock_taken()
    }

    /// Forgets the last message that the frontier has, because NATS may give its number to another one. Messages that are still in the
    /// inbox are taken again, which changes nothing.
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

    /// Notes that NATS has stored the links of the outbox up to this entry.
    pub(crate) fn set_sent(&self, entry: u64) {
        self.sent.store(entry, Ordering::Release);
    }

    /// The state of the part as it was last seen; `None` before NATS has first been asked.
    #[must_use]
    pub fn status(&self) -> Option<PartStatus> {
        self.lock_status().clone()
    }

    /// Notes the state of the part.
    pub(crate) fn set_status(&self, status: PartStatus) {
        *self.lock_status() = Some(status);
    }

    fn lock_status(&self) -> std::sync::MutexGuard<'_, Option<PartStatus>> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a snapshot that was published.
    pub fn set_published(&self, state: PublishedState) {
        *self.lock_published() = Some(state);
    }

    /// Forgets the newest snapshot, because NATS has lost its record: another one is published.
    pub(crate) fn forget_published(&self) {
        *self.lock_published() = None;
    }

    /// The newest snapshot that this process has published.
    #[must_use]
    pub fn published(&self) -> Option<PublishedState> {
        *self.lock_published()
    }

    /// Returns `true` if a published snapshot has all changes of the frontier, of which there are so many, and covers the inbox as
    /// far as it was read.
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

    /// Returns `true` if the dispatcher has found nothing left since the last delivery.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
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
        self.job.set_rest(is_at_rest, self.part.epoch).await?;
        *known_rest = Some(is_at_rest);
        Ok(())
    }

    /// The subject of the links to this process.
    #[must_use]
    pub fn inbox(&self) -> Partition {
        self.subject(self.part.number())
    }

    /// The subject of the links to a part.
    fn subject(&self, part: u16) -> Partition {
        self.part.inbox(part)
    }

    /// The subject of the links to the part that has a candidate.
    pub(crate) fn subject_of(&self, candidate: &Candidate) -> Partition {
        let owner = self
            .part
            .owner(&self.forced, &candidate.queue, &candidate.uri);
        self.subject(owner)
    }
}

/// Checks the part, and opens the cluster of its job, in which the process has the part's name.
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
    fn wrong_names_of_parts_are_refused_before_nats_is_asked() {
        check_parts(&["a", "part-1"], "");
        check_parts(&["a", " b"], "invalid name of a node or part \" b\"");
        check_parts(&["b"], "node \"a\" (cluster.node) is not one of");
    }
}

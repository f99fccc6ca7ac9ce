//! This node as a member of the cluster: drives [`NodeMachine`] over NATS.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Interval, MissedTickBehavior};

use crate::bucket::{Bucket, BucketEntry, BucketError};
use crate::clock::{SessionClock, wall_clock_ms};
use crate::control::{
    ClusterKey, ClusterRecord, ControlAction, KeyWrite, MemberEvent, NodeMachine, SessionEnd,
    WriteResult,
};
use crate::error::ClusterError;
use crate::guard::SessionGuard;
use crate::nodes::Cluster;

/// Inputs that wait for the machine.
const INPUTS_MAX: usize = 1_024;

/// Pause before a watch that failed is opened again.
const WATCH_PAUSE: Duration = Duration::from_millis(200);

/// Times to live within which a node must have joined. A session of the same name that died holds it up for one.
const JOIN_TIMES_TO_LIVE: u32 = 4;

/// The membership of this node. Dropping it ends the renewals: another process can have its name when the session has ended.
#[derive(Debug)]
pub struct Member {
    inputs: mpsc::Sender<Input>,
    status: watch::Receiver<MemberStatus>,
    clock: Arc<SessionClock>,
    guard: Arc<SessionGuard>,
    task: JoinHandle<()>,
}

/// Events for the daemon, in order.
pub type MemberEvents = mpsc::UnboundedReceiver<MemberEvent>;

/// State of the membership.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStatus {
    /// Ability of the node to work.
    pub availability: Availability,
    /// `true` if another process renews a session under the name of this node. This one is not a member until the other is silent.
    pub has_rival: bool,
    /// `true` if it leads.
    pub is_leading: bool,
    /// `true` if an operator drains it.
    pub is_drained: bool,
    /// Time that the last renewal took; `None` before the first.
    pub renewal_took: Option<Duration>,
}

/// Availability of the cluster for this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// Not a member yet, or not any more.
    Outside,
    /// Everything works.
    Working,
    /// NATS answers slowly: renewals take longer than a third of the time between two. Work continues.
    Slow,
    /// NATS does not answer. Work continues until the session ends.
    Riding,
    /// NATS has not answered for so long that the session may have ended. Work continues when NATS answers, in the same session
    /// if no other node could reach NATS meanwhile.
    Paused,
    /// JetStream has no room: as [`Availability::Riding`], later as [`Availability::Paused`], until an operator makes room.
    Full,
}

enum Input {
    Entry(Source, BucketEntry),
    Interrupted,
    Written(KeyWrite, Result<u64, BucketError>, Duration),
    Read(ClusterKey, Option<BucketEntry>),
    Leave(SessionEnd),
}

/// The watch that an entry comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Base,
    Leader,
    Roster,
}

impl Member {
    /// Joins the cluster, and waits until the node is a member.
    ///
    /// # Errors
    /// Another process has the name, or NATS fails.
    pub async fn join(
        cluster: &Cluster,
        version: &str,
    ) -> Result<(Self, MemberEvents), ClusterError> {
        let config = cluster.config();
        let timings = config.timings();
        let sessions = cluster.session_bucket().await?;
        let clock = Arc::new(SessionClock::default());
        let guard = Arc::new(SessionGuard::default());
        let seed = uuid::Uuid::new_v4().simple().to_string();
        let machine = NodeMachine::new(&config.node, version, &seed, timings);
        let (inputs, received) = mpsc::channel(INPUTS_MAX);
        let (events, mut receiver) = mpsc::unbounded_channel();
        let (status, status_receiver) = watch::channel(MemberStatus {
            availability: Availability::Outside,
            has_rival: false,
            is_leading: false,
            is_drained: false,
            renewal_took: None,
        });
        let node = config.node.clone();
        // The watch is current after the keys that exist. The format always does.
        let keys = ["format", "leader"].map(str::to_owned);
        let own = [
            ClusterKey::Drain(node.clone()),
            ClusterKey::Node(node.clone()),
        ];
        let keys: Vec<String> = keys
            .into_iter()
            .chain(own.map(|key| key.to_string()))
            .collect();
        let mut driver = Driver {
            cluster: cluster.clone(),
            sessions,
            machine,
            clock: clock.clone(),
            guard: guard.clone(),
            inputs: inputs.clone(),
            events,
            status,
            leader_watch: None,
            roster_watch: None,
            base_watch: None,
            base_keys: Vec::new(),
            refused: BTreeMap::new(),
            renewed: None,
            renewal_took: None,
            is_full: false,
            has_rival: false,
        };
        driver.base_keys.clone_from(&keys);
        driver.base_watch = Some(driver.watch(Source::Base, keys));
        let interval = tokio::time::interval(driver.machine.tick_interval());
        let task = tokio::spawn(driver.run(received, interval));
        let member = Self {
            inputs,
            status: status_receiver,
            clock,
            guard,
            task,
        };
        let waited = timings.time_to_live * JOIN_TIMES_TO_LIVE;
        let mut status = member.status.clone();
        let joined = tokio::time::timeout(waited, async {
            loop {
                tokio::select! {
                    joined = status.wait_for(|status| status.availability != Availability::Outside) => {
                        return joined.is_ok();
                    }
                    event = receiver.recv() => match event {
                        Some(MemberEvent::NameInUse) | None => return false,
                        Some(_) => {}
                    },
                }
            }
        });
        match joined.await {
            Ok(true) => Ok((member, receiver)),
            Ok(false) => Err(ClusterError::NameInUse { node }),
            Err(_) => {
                let bucket = cluster.bucket_name.clone();
                Err(ClusterError::JoinTimeout {
                    node,
                    waited,
                    bucket,
                })
            }
        }
    }

    /// The state of the membership, and its changes.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<MemberStatus> {
        self.status.clone()
    }

    /// Time for which the node may work as a member; `None` if it may not. It takes no lock, and counts by the clock of this machine:
    /// a process that was stopped for too long gets `None` at once.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        self.guard.time_left(self.clock.now())
    }

    /// Number of sessions that others have ended. As long as it stays the same, no other process was a member under this name.
    #[must_use]
    pub fn sessions_lost(&self) -> u64 {
        self.guard.lost()
    }

    /// Asks the node to leave, and to end its session in this state. [`MemberEvent::Left`] follows when it has.
    pub async fn leave(&self, end: SessionEnd) {
        // The task ends with this value, or after a panic that it has reported.
        self.inputs.send(Input::Leave(end)).await.ok();
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Driver {
    cluster: Cluster,
    sessions: Bucket,
    machine: NodeMachine,
    clock: Arc<SessionClock>,
    guard: Arc<SessionGuard>,
    inputs: mpsc::Sender<Input>,
    events: mpsc::UnboundedSender<MemberEvent>,
    status: watch::Sender<MemberStatus>,
    base_watch: Option<WatchTask>,
    /// Keys that it reads.
    base_keys: Vec<String>,
    /// Revisions that keys had, and with which NATS has refused to write them.
    refused: BTreeMap<ClusterKey, u64>,
    leader_watch: Option<(String, WatchTask)>,
    roster_watch: Option<WatchTask>,
    /// Last time that NATS stored a renewal.
    renewed: Option<Duration>,
    renewal_took: Option<Duration>,
    is_full: bool,
    has_rival: bool,
}

/// A task that reads a watch. It ends with this value.
struct WatchTask(AbortHandle);

impl Drop for WatchTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Driver {
    async fn run(mut self, mut inputs: mpsc::Receiver<Input>, mut interval: Interval) {
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut link = self.cluster.connection.link();
        loop {
            let actions = tokio::select! {
                // Renewals come first: nothing that others send may hold them up.
                biased;
                _ = interval.tick() => self.machine.tick(self.clock.now(), wall_clock_ms()),
                changed = link.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    self.machine.reset_liveness(self.clock.now());
                    Vec::new()
                }
                Some(input) = inputs.recv() => self.take(input),
            };
            self.publish_guard();
            self.perform(actions);
            self.publish_status();
        }
    }

    fn take(&mut self, input: Input) -> Vec<ControlAction> {
        let now = self.clock.now();
        match input {
            Input::Entry(source, entry) => self.observe(source, entry, now),
            Input::Interrupted => {
                self.machine.reset_liveness(now);
                Vec::new()
            }
            Input::Written(write, result, took) => self.finish_write(write, result, took, now),
            Input::Read(key, entry) => {
                let revision = entry.as_ref().map_or(0, |entry| entry.revision);
                let known = self.refused.remove(&key);
                if known.is_some_and(|known| revision < known) {
                    self.begin_again(now);
                }
                match entry {
                    Some(entry) => self.observe_key(&key, entry, now),
                    None => self.machine.observe(&key, None, 0, None, now),
                }
            }
            Input::Leave(end) => {
                self.machine.leave(end);
                Vec::new()
            }
        }
    }

    fn observe(&mut self, source: Source, entry: BucketEntry, now: Duration) -> Vec<ControlAction> {
        let is_current = entry.is_current;
        let actions = match ClusterKey::parse(&entry.key) {
            Some(key) => self.observe_key(&key, entry, now),
            None => Vec::new(),
        };
        match source {
            Source::Base if is_current => self.machine.set_synced(now),
            Source::Roster if is_current => self.machine.set_roster(now),
            _ => {}
        }
        let leader = self.machine.leader().map(|leader| leader.node.clone());
        let own = &self.cluster.config().node;
        let watched = self.leader_watch.as_ref().map(|(node, _)| node.clone());
        if leader.is_some() && leader != watched && leader.as_ref() != Some(own) {
            let node = leader.unwrap_or_default();
            let watch = self.watch(Source::Leader, vec![format!("nodes.{node}")]);
            self.leader_watch = Some((node, watch));
        }
        actions
    }

    fn observe_key(
        &mut self,
        key: &ClusterKey,
        entry: BucketEntry,
        now: Duration,
    ) -> Vec<ControlAction> {
        if let ClusterKey::Node(node) = key
            && !self.machine.observes(node)
        {
            return Vec::new();
        }
        let record = match entry.value.map(|value| ClusterRecord::parse(key, &value)) {
            None => None,
            Some(Ok(record)) => Some(record),
            Some(Err(error)) => {
                tracing::error!(%key, %error, bucket = self.cluster.bucket_name, "cluster: malformed record");
                return Vec::new();
            }
        };
        self.machine
            .observe(key, record, entry.revision, Some(entry.stored_ms), now)
    }

    fn finish_write(
        &mut self,
        write: KeyWrite,
        result: Result<u64, BucketError>,
        took: Duration,
        now: Duration,
    ) -> Vec<ControlAction> {
        let is_renewal =
            matches!(&write.key, ClusterKey::Node(node) if *node == self.cluster.config().node);
        let result = match result {
            Ok(revision) => {
                self.is_full = false;
                if is_renewal {
                    self.renewed = Some(now);
                    self.renewal_took = Some(took);
                }
                WriteResult::Accepted(revision)
            }
            Err(BucketError::Conflict) => {
                self.refused.insert(write.key.clone(), write.expected);
                WriteResult::Conflict
            }
            Err(BucketError::Failed(error)) => {
                self.is_full = matches!(error, ClusterError::Full { .. });
                tracing::warn!(key = %write.key, %error, "cluster: a key was not written");
                WriteResult::Unknown
            }
        };
        self.machine.finish_write(write, result, now)
    }

    /// Reads all keys again, because NATS has lost their last revisions. The watches would pass over those that it gives again.
    fn begin_again(&mut self, now: Duration) {
        let bucket = &self.cluster.bucket_name;
        tracing::warn!(
            "NATS has lost the last records of bucket {bucket}, which it had acknowledged: set sync_interval: always in nats.conf, or run the servers where they do not lose power together"
        );
        self.machine.forget_revisions(now);
        self.base_watch = Some(self.watch(Source::Base, self.base_keys.clone()));
        self.leader_watch = None;
        if self.roster_watch.is_some() {
            self.roster_watch = Some(self.watch(Source::Roster, vec!["nodes.*".to_owned()]));
        }
    }

    fn perform(&mut self, actions: Vec<ControlAction>) {
        for action in actions {
            match action {
                ControlAction::Write(write) => self.write(write),
                ControlAction::Read(key) => self.read(key),
                ControlAction::Report(event) => self.report(event),
            }
        }
    }

    fn write(&self, write: KeyWrite) {
        let (bucket, inputs, clock) = (
            self.sessions.clone(),
            self.inputs.clone(),
            self.clock.clone(),
        );
        tokio::spawn(async move {
            let began = clock.now();
            let key = write.key.to_string();
            let result = bucket
                .write(&key, write.record.to_json(), write.expected)
                .await;
            let took = clock.now() - began;
            inputs.send(Input::Written(write, result, took)).await.ok();
        });
    }

    fn read(&self, key: ClusterKey) {
        let (bucket, inputs) = (self.sessions.clone(), self.inputs.clone());
        tokio::spawn(async move {
            // After a failure the machine asks again, when the next write has failed.
            if let Ok(entry) = bucket.read(&key.to_string()).await {
                inputs.send(Input::Read(key, entry)).await.ok();
            }
        });
    }

    fn report(&mut self, event: MemberEvent) {
        match &event {
            MemberEvent::SessionLost => self.guard.lose(),
            MemberEvent::NameInUse => self.has_rival = true,
            MemberEvent::Leading(is_leading) => {
                let keys = vec!["nodes.*".to_owned()];
                self.roster_watch = is_leading.then(|| self.watch(Source::Roster, keys));
            }
            MemberEvent::Left | MemberEvent::NodeGone(_) | MemberEvent::ClockSkew { .. } => {}
        }
        self.events.send(event).ok();
    }

    /// Reads a watch, and opens it again when it fails.
    fn watch(&self, source: Source, keys: Vec<String>) -> WatchTask {
        let (bucket, inputs) = (self.sessions.clone(), self.inputs.clone());
        let task = tokio::spawn(async move {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            loop {
                if let Ok(mut watch) = bucket.watch(&keys).await {
                    while let Ok(entry) = watch.next().await {
                        if inputs.send(Input::Entry(source, entry)).await.is_err() {
                            return;
                        }
                    }
                }
                if inputs.send(Input::Interrupted).await.is_err() {
                    return;
                }
                tokio::time::sleep(WATCH_PAUSE).await;
            }
        });
        WatchTask(task.abort_handle())
    }

    fn publish_guard(&self) {
        self.guard.set(self.machine.member_until());
    }

    fn publish_status(&mut self) {
        let now = self.clock.now();
        self.has_rival &= self.machine.member_until().is_none();
        let renewal = self.cluster.config().timings().renewal;
        let since_renewal = self.renewed.map(|at| now.saturating_sub(at));
        let is_silent = since_renewal.is_none_or(|since| since > 2 * renewal);
        let is_slow = self.renewal_took.is_some_and(|took| took > renewal / 3);
        let availability = match self.machine.member_until() {
            None => Availability::Outside,
            Some(_) if self.is_full => Availability::Full,
            Some(until) if now >= until => Availability::Paused,
            Some(_) if is_silent => Availability::Riding,
            Some(_) if is_slow => Availability::Slow,
            Some(_) => Availability::Working,
        };
        let status = MemberStatus {
            availability,
            has_rival: self.has_rival,
            is_leading: self.machine.is_leading(),
            is_drained: self.machine.is_drained(),
            renewal_took: self.renewal_took,
        };
        self.status.send_if_modified(|known| {
            let is_new = *known != status;
            *known = status;
            is_new
        });
    }
}

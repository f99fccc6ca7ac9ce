//! Nodes and a bucket in virtual time: messages take time, get lost and arrive late; processes stop and go on; NATS goes away.
//! The example and the property tests use it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

use opilio_cluster::control::{
    ClusterKey, ClusterRecord, ControlAction, ControlEvent, KeyWrite, LeaseTimings, NodeMachine,
    WriteResult,
};
use opilio_cluster::partition::{Partition, PartitionCount};

/// Time after which a client stops to wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// SplitMix64: the same numbers for the same seed on every machine.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn between(&mut self, from: Duration, to: Duration) -> Duration {
        let span = (to - from).as_micros() as u64;
        from + Duration::from_micros(self.below(span + 1))
    }
}

/// A node with a clock of its own.
pub(crate) struct SimulatedNode {
    pub(crate) machine: NodeMachine,
    /// Speed of its clock in millionths of the true one.
    rate: u64,
    offset: Duration,
    stopped_until: Duration,
    is_dead: bool,
    /// The roster watch: `None` if closed.
    has_roster_watch: bool,
}

/// Messages that the simulation counts.
#[derive(Default, Debug, Clone)]
pub(crate) struct Traffic {
    pub(crate) writes: u64,
    pub(crate) conflicts: u64,
    pub(crate) deliveries: u64,
    pub(crate) written_bytes: u64,
    pub(crate) claims: u64,
}

enum Event {
    Tick(usize),
    Arrive(usize, KeyWrite),
    Answer(usize, KeyWrite, WriteResult),
    Deliver(usize, ClusterKey, Option<ClusterRecord>, u64, i64),
    Fetched(usize, ClusterKey),
    Connected(usize),
    Synced(usize),
    Roster(usize),
    Loaded(usize, Partition),
    Stopped(usize, Partition),
}

pub(crate) struct Network {
    pub(crate) now: Duration,
    pub(crate) nodes: Vec<SimulatedNode>,
    pub(crate) traffic: Traffic,
    pub(crate) random: Random,
    /// Percentage of answers that get lost.
    pub(crate) losses: u64,
    pub(crate) latency: (Duration, Duration),
    /// Time to load and to stop a partition.
    pub(crate) load_time: Duration,
    outage_until: Duration,
    /// `true` if a partition's record is handed only to nodes that it concerns. All others ignore it; the messages count.
    pub(crate) skips_bystanders: bool,
    pub(crate) events: Vec<(Duration, usize, ControlEvent)>,
    names: Vec<(String, usize)>,
    count: PartitionCount,
    timings: LeaseTimings,
    bucket: BTreeMap<ClusterKey, (u64, ClusterRecord, i64)>,
    revision: u64,
    queue: BinaryHeap<Reverse<(Duration, u64)>>,
    scheduled: BTreeMap<u64, Event>,
    /// Deliveries to one node keep their order.
    last_delivery: Vec<Duration>,
    number: u64,
}

impl Network {
    pub(crate) fn new(count: PartitionCount, timings: LeaseTimings, seed: u64) -> Self {
        Self {
            now: Duration::ZERO,
            nodes: Vec::new(),
            traffic: Traffic::default(),
            random: Random(seed),
            losses: 0,
            latency: (Duration::from_micros(200), Duration::from_millis(2)),
            load_time: Duration::from_secs(2),
            outage_until: Duration::ZERO,
            skips_bystanders: false,
            events: Vec::new(),
            names: Vec::new(),
            count,
            timings,
            bucket: BTreeMap::new(),
            revision: 0,
            queue: BinaryHeap::new(),
            scheduled: BTreeMap::new(),
            last_delivery: Vec::new(),
            number: 0,
        }
    }

    /// Starts a node, whose clock may be 5 % too fast or slow.
    pub(crate) fn start(&mut self, name: &str) -> usize {
        let node = self.nodes.len();
        let seed = format!("{name}/{node}");
        self.nodes.push(SimulatedNode {
            machine: NodeMachine::new(name, "simulated", &seed, self.count, self.timings),
            rate: 950_000 + self.random.below(100_000),
            offset: Duration::from_secs(self.random.below(1_000)),
            stopped_until: Duration::ZERO,
            is_dead: false,
            has_roster_watch: false,
        });
        self.last_delivery.push(self.now);
        self.names.push((name.to_owned(), node));
        for (key, (revision, record, stored)) in self.bucket.clone() {
            let is_skipped = match &key {
                ClusterKey::Node(other) => other != name,
                ClusterKey::Partition(_) => self.skips_bystanders,
                _ => false,
            };
            if is_skipped {
                self.traffic.deliveries += u64::from(matches!(key, ClusterKey::Partition(_)));
            } else {
                self.deliver(node, key, Some(record), revision, stored);
            }
        }
        let synced = self.last_delivery[node] + Duration::from_millis(1);
        self.at(synced, Event::Synced(node));
        let first = self
            .random
            .between(Duration::ZERO, self.timings.renewal / 10);
        self.at(self.now + first, Event::Tick(node));
        node
    }

    pub(crate) fn kill(&mut self, node: usize) {
        self.nodes[node].is_dead = true;
    }

    /// Stops a process for a while, as SIGSTOP and SIGCONT do. Its clock goes on.
    pub(crate) fn stop(&mut self, node: usize, time: Duration) {
        let until = self.now + time;
        let node = &mut self.nodes[node];
        node.stopped_until = node.stopped_until.max(until);
    }

    /// Takes NATS away for a while. Nodes notice that the connection was interrupted.
    pub(crate) fn interrupt(&mut self, time: Duration) {
        self.outage_until = self.outage_until.max(self.now + time);
        for node in 0..self.nodes.len() {
            let back = self.outage_until + self.delay();
            self.at(back, Event::Connected(node));
        }
    }

    /// Asks a node to leave.
    pub(crate) fn leave(&mut self, node: usize) {
        let actions = self.nodes[node].machine.leave();
        self.perform(node, actions);
    }

    pub(crate) fn set_drained(&mut self, name: &str, is_drained: bool) {
        self.revision += 1;
        let key = ClusterKey::Drain(name.to_owned());
        let record = is_drained.then_some(ClusterRecord::Drain);
        let revision = self.revision;
        match &record {
            Some(record) => self
                .bucket
                .insert(key.clone(), (revision, record.clone(), 0)),
            None => self.bucket.remove(&key),
        };
        for node in 0..self.nodes.len() {
            self.deliver(node, key.clone(), record.clone(), revision, 0);
        }
    }

    pub(crate) fn is_dead(&self, node: usize) -> bool {
        self.nodes[node].is_dead
    }

    /// The nodes that would issue URIs of each partition now, by their own clocks. A stopped process counts: it may be waked
    /// between looking at its clock and fetching only if its guard still holds.
    pub(crate) fn issuers(&self) -> BTreeMap<Partition, BTreeSet<usize>> {
        let mut issuers: BTreeMap<Partition, BTreeSet<usize>> = BTreeMap::new();
        for (node, simulated) in self.nodes.iter().enumerate() {
            if simulated.is_dead {
                continue;
            }
            let now = self.clock(node);
            for (partition, _) in simulated.machine.held() {
                if simulated
                    .machine
                    .issue_until(partition)
                    .is_some_and(|until| now < until)
                {
                    issuers.entry(partition).or_default().insert(node);
                }
            }
        }
        issuers
    }

    /// Runs until `end`, and calls `check` after every step.
    pub(crate) fn run_until(&mut self, end: Duration, mut check: impl FnMut(&Self)) {
        while let Some(Reverse((at, number))) = self.queue.peek().copied() {
            if at > end {
                break;
            }
            self.queue.pop();
            self.now = at;
            let Some(event) = self.scheduled.remove(&number) else {
                continue;
            };
            self.step(event);
            check(self);
        }
        self.now = end;
    }

    fn clock(&self, node: usize) -> Duration {
        let node = &self.nodes[node];
        let micros = self.now.as_micros() as u64;
        node.offset
            + Duration::from_micros(
                micros / 1_000_000 * node.rate + micros % 1_000_000 * node.rate / 1_000_000,
            )
    }

    fn at(&mut self, time: Duration, event: Event) {
        self.number += 1;
        self.queue.push(Reverse((time, self.number)));
        self.scheduled.insert(self.number, event);
    }

    fn delay(&mut self) -> Duration {
        let (from, to) = self.latency;
        self.random.between(from, to)
    }

    fn deliver(
        &mut self,
        node: usize,
        key: ClusterKey,
        record: Option<ClusterRecord>,
        revision: u64,
        stored: i64,
    ) {
        let at = (self.now + self.delay())
            .max(self.last_delivery[node])
            .max(self.outage_until);
        self.last_delivery[node] = at;
        self.traffic.deliveries += 1;
        self.at(at, Event::Deliver(node, key, record, revision, stored));
    }

    fn step(&mut self, event: Event) {
        let node = match &event {
            Event::Arrive(..) => None,
            Event::Tick(node)
            | Event::Answer(node, ..)
            | Event::Deliver(node, ..)
            | Event::Fetched(node, _)
            | Event::Connected(node)
            | Event::Synced(node)
            | Event::Roster(node)
            | Event::Loaded(node, _)
            | Event::Stopped(node, _) => Some(*node),
        };
        if let Some(node) = node {
            if self.nodes[node].is_dead {
                return;
            }
            let until = self.nodes[node].stopped_until;
            if until > self.now {
                // A stopped process finds everything when it goes on, in order.
                self.at(until, event);
                return;
            }
        }
        let now = node.map_or(self.now, |node| self.clock(node));
        let clock_ms = self.now.as_millis() as i64;
        let actions = match event {
            Event::Tick(node) => {
                let machine = &mut self.nodes[node].machine;
                let interval = machine.tick_interval();
                let actions = machine.tick(now, clock_ms);
                self.at(self.now + interval, Event::Tick(node));
                actions
            }
            Event::Arrive(node, write) => {
                self.store(node, write);
                return;
            }
            Event::Answer(node, write, result) => {
                self.nodes[node].machine.finish_write(write, result, now)
            }
            Event::Deliver(node, key, record, revision, stored) => {
                if let ClusterKey::Node(other) = &key
                    && !self.nodes[node].machine.observes(other)
                {
                    return;
                }
                self.nodes[node]
                    .machine
                    .observe(&key, record, revision, Some(stored), now)
            }
            Event::Fetched(node, key) => {
                let known = self.bucket.get(&key).cloned();
                let (revision, record, stored) = match known {
                    Some((revision, record, stored)) => (revision, Some(record), stored),
                    None => (0, None, 0),
                };
                self.nodes[node]
                    .machine
                    .observe(&key, record, revision, Some(stored), now)
            }
            Event::Connected(node) => {
                self.nodes[node].machine.reset_liveness(now);
                Vec::new()
            }
            Event::Synced(node) => {
                self.nodes[node].machine.set_synced(now);
                Vec::new()
            }
            Event::Roster(node) => {
                self.nodes[node].machine.set_roster(now);
                Vec::new()
            }
            Event::Loaded(node, partition) => self.nodes[node].machine.set_ready(partition),
            Event::Stopped(node, partition) => self.nodes[node].machine.release(partition),
        };
        if let Some(node) = node {
            self.perform(node, actions);
        }
    }

    fn perform(&mut self, node: usize, actions: Vec<ControlAction>) {
        for action in actions {
            match action {
                ControlAction::Write(write) => {
                    self.traffic.writes += 1;
                    self.traffic.written_bytes += write.record.to_json().len() as u64;
                    let arrives = self.now + self.delay();
                    if arrives < self.outage_until {
                        self.answer(node, write.clone(), WriteResult::Unknown, ANSWER_MAX);
                        // A client sends what it has buffered when the server is back, although nobody waits any more.
                        if self.random.chance(50) {
                            let late = self.outage_until + self.delay();
                            self.at(late, Event::Arrive(node, write));
                        }
                    } else {
                        self.at(arrives, Event::Arrive(node, write));
                    }
                }
                ControlAction::Read(key) => {
                    let at = (self.now + self.delay()).max(self.outage_until);
                    self.at(at, Event::Fetched(node, key));
                }
                ControlAction::Report(event) => self.report(node, event),
            }
        }
    }

    fn report(&mut self, node: usize, event: ControlEvent) {
        match &event {
            ControlEvent::Claimed(partition, _) => {
                self.traffic.claims += 1;
                self.at(self.now + self.load_time, Event::Loaded(node, *partition));
            }
            ControlEvent::Release(partition, _) => {
                self.at(self.now + self.load_time, Event::Stopped(node, *partition));
            }
            ControlEvent::Leading(is_leading) => {
                self.nodes[node].has_roster_watch = *is_leading;
                if *is_leading {
                    for (key, (revision, record, stored)) in self.bucket.clone() {
                        let is_unknown =
                            self.skips_bystanders && matches!(key, ClusterKey::Partition(_));
                        if is_unknown {
                            // It has been delivered, and counted, when it was written.
                            self.traffic.deliveries -= 1;
                        }
                        if is_unknown || matches!(key, ClusterKey::Node(_)) {
                            self.deliver(node, key, Some(record), revision, stored);
                        }
                    }
                    let at = self.last_delivery[node] + Duration::from_millis(1);
                    self.at(at, Event::Roster(node));
                }
            }
            _ => {}
        }
        self.events.push((self.now, node, event));
    }

    fn answer(&mut self, node: usize, write: KeyWrite, result: WriteResult, after: Duration) {
        self.at(self.now + after, Event::Answer(node, write, result));
    }

    fn store(&mut self, node: usize, write: KeyWrite) {
        let last = self
            .bucket
            .get(&write.key)
            .map_or(0, |(revision, ..)| *revision);
        let result = if last == write.expected {
            self.revision += 1;
            let stored = self.now.as_millis() as i64;
            let (key, record, revision) = (write.key.clone(), write.record.clone(), self.revision);
            let before = self
                .bucket
                .insert(key.clone(), (revision, record.clone(), stored));
            let before = before.map(|(_, record, _)| record);
            self.publish(&key, before.as_ref(), &record, revision, stored);
            WriteResult::Accepted(revision)
        } else {
            self.traffic.conflicts += 1;
            WriteResult::Conflict
        };
        match self.random.chance(self.losses) {
            true => self.answer(node, write, WriteResult::Unknown, ANSWER_MAX),
            false => {
                let delay = self.delay();
                self.answer(node, write, result, delay);
            }
        }
    }

    fn publish(
        &mut self,
        key: &ClusterKey,
        before: Option<&ClusterRecord>,
        record: &ClusterRecord,
        revision: u64,
        stored: i64,
    ) {
        let concerned = |name: &str| {
            [before, Some(record)]
                .into_iter()
                .flatten()
                .any(|record| match record {
                    ClusterRecord::Partition(record) => {
                        let owner = record.owner.as_ref();
                        owner.is_some_and(|owner| owner.node == name)
                            || record.target.as_deref() == Some(name)
                    }
                    _ => true,
                })
        };
        let mut watchers = Vec::new();
        for (name, node) in &self.names {
            let simulated = &self.nodes[*node];
            let is_watched = match key {
                ClusterKey::Node(other) => {
                    simulated.has_roster_watch || simulated.machine.observes(other)
                }
                _ => true,
            };
            if simulated.is_dead || !is_watched {
                continue;
            }
            let is_skipped =
                self.skips_bystanders && !simulated.machine.is_leading() && !concerned(name);
            match is_skipped {
                true => self.traffic.deliveries += 1,
                false => watchers.push(*node),
            }
        }
        for watcher in watchers {
            self.deliver(watcher, key.clone(), Some(record.clone()), revision, stored);
        }
    }
}

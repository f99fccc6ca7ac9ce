//! Members and their buckets in virtual time: messages are delayed and lost, processes stop and resume, NATS is not available for
//! all or for one of them. The example and the property tests use it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

use opilio_cluster::control::{
    ClusterKey, ClusterRecord, ControlAction, KeyWrite, MemberEvent, NodeMachine, NodeRecord,
    SessionEnd, SessionTimings, WriteResult,
};

/// Time after which a client no longer waits for an answer.
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

/// The members of one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// One member for each daemon.
    Nodes,
    /// The processes of a job.
    Job,
}

/// A member with a clock of its own.
struct SimulatedMember {
    scope: Scope,
    name: String,
    machine: NodeMachine,
    /// Speed of the member's clock, in millionths of the true speed.
    rate: u64,
    offset: Duration,
    stopped_until: Duration,
    cut_until: Duration,
    has_ended: bool,
    has_roster_watch: bool,
    sessions_lost: u64,
    /// Time of the last delivery, because deliveries keep their order.
    last_delivery: Duration,
}

/// Messages that the simulation counts.
#[derive(Default, Debug, Clone)]
pub(crate) struct Traffic {
    pub(crate) writes: u64,
    pub(crate) conflicts: u64,
    pub(crate) deliveries: u64,
    pub(crate) written_bytes: u64,
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
}

pub(crate) struct Network {
    pub(crate) now: Duration,
    pub(crate) traffic: Traffic,
    pub(crate) random: Random,
    /// Percentage of lost answers.
    pub(crate) losses: u64,
    pub(crate) latency: (Duration, Duration),
    pub(crate) events: Vec<(Duration, usize, MemberEvent)>,
    members: Vec<SimulatedMember>,
    outage_until: Duration,
    timings: SessionTimings,
    bucket: BTreeMap<(Scope, ClusterKey), (u64, ClusterRecord, i64)>,
    revision: u64,
    queue: BinaryHeap<Reverse<(Duration, u64)>>,
    scheduled: BTreeMap<u64, Event>,
    number: u64,
}

impl Network {
    pub(crate) fn new(timings: SessionTimings, seed: u64) -> Self {
        Self {
            now: Duration::ZERO,
            traffic: Traffic::default(),
            random: Random(seed),
            losses: 0,
            latency: (Duration::from_micros(200), Duration::from_millis(2)),
            events: Vec::new(),
            members: Vec::new(),
            outage_until: Duration::ZERO,
            timings,
            bucket: BTreeMap::new(),
            revision: 0,
            queue: BinaryHeap::new(),
            scheduled: BTreeMap::new(),
            number: 0,
        }
    }

    /// Starts a member. Its clock may be up to 5 % too fast or too slow.
    pub(crate) fn start(&mut self, scope: Scope, name: &str) -> usize {
        let member = self.members.len();
        let seed = format!("{name}/{member}");
        self.members.push(SimulatedMember {
            scope,
            name: name.to_owned(),
            machine: NodeMachine::new(name, "simulated", &seed, self.timings),
            rate: 950_000 + self.random.below(100_000),
            offset: Duration::from_secs(self.random.below(1_000)),
            stopped_until: Duration::ZERO,
            cut_until: Duration::ZERO,
            has_ended: false,
            has_roster_watch: false,
            sessions_lost: 0,
            last_delivery: self.now,
        });
        let own = [
            ClusterKey::Leader,
            ClusterKey::Drain(name.to_owned()),
            ClusterKey::Node(name.to_owned()),
        ];
        for key in own {
            let known = self.bucket.get(&(scope, key.clone())).cloned();
            if let Some((revision, record, stored)) = known {
                self.deliver(member, key, Some(record), revision, stored);
            }
        }
        let synced = self.members[member].last_delivery + Duration::from_millis(1);
        self.at(synced, Event::Synced(member));
        let first = self
            .random
            .between(Duration::ZERO, self.timings.renewal / 10);
        self.at(self.now + first, Event::Tick(member));
        member
    }

    /// Kills a process.
    pub(crate) fn kill(&mut self, member: usize) {
        self.members[member].has_ended = true;
    }

    /// Stops a process for a while, as by SIGSTOP and SIGCONT. Its clock continues.
    pub(crate) fn stop(&mut self, member: usize, time: Duration) {
        let until = self.now + time;
        let member = &mut self.members[member];
        member.stopped_until = member.stopped_until.max(until);
    }

    /// Interrupts the connection of a process to NATS for a while. The process notices the interruption.
    pub(crate) fn cut(&mut self, member: usize, time: Duration) {
        let until = self.now + time;
        let cut = &mut self.members[member].cut_until;
        *cut = until.max(*cut);
        let back = *cut + self.delay();
        self.at(back, Event::Connected(member));
    }

    /// Interrupts the connections of all processes to NATS for a while.
    pub(crate) fn interrupt(&mut self, time: Duration) {
        self.outage_until = self.outage_until.max(self.now + time);
        for member in 0..self.members.len() {
            let back = self.outage_until + self.delay();
            self.at(back, Event::Connected(member));
        }
    }

    /// Makes a member leave. Its process ends afterwards.
    pub(crate) fn leave(&mut self, member: usize, end: SessionEnd) {
        self.members[member].machine.leave(end);
    }

    /// Drains a node, as an operator does.
    pub(crate) fn set_drained(&mut self, name: &str, is_drained: bool) {
        self.revision += 1;
        let key = ClusterKey::Drain(name.to_owned());
        let record = is_drained.then_some(ClusterRecord::Drain);
        let revision = self.revision;
        let place = (Scope::Nodes, key.clone());
        match &record {
            Some(record) => self.bucket.insert(place, (revision, record.clone(), 0)),
            None => self.bucket.remove(&place),
        };
        for member in self.watchers(Scope::Nodes, &key) {
            self.deliver(member, key.clone(), record.clone(), revision, 0);
        }
    }

    /// Returns `true` if the process has ended.
    pub(crate) fn has_ended(&self, member: usize) -> bool {
        self.members[member].has_ended
    }

    /// Returns `true` if the process runs and can reach NATS.
    pub(crate) fn is_connected(&self, member: usize) -> bool {
        let simulated = &self.members[member];
        let is_stopped = simulated.stopped_until > self.now;
        !simulated.has_ended && !is_stopped && self.away_until(member) <= self.now
    }

    /// Returns `true` if the member would work now, by its own clock. A stopped process counts too, because it may resume between
    /// the check of its clock and the fetch.
    pub(crate) fn may_work(&self, member: usize) -> bool {
        let simulated = &self.members[member];
        let until = simulated.machine.member_until();
        !simulated.has_ended && until.is_some_and(|until| self.clock(member) < until)
    }

    /// Returns the number of sessions of a process that others have ended.
    pub(crate) fn sessions_lost(&self, member: usize) -> u64 {
        self.members[member].sessions_lost
    }

    /// Returns `true` if a node knows that it is drained.
    pub(crate) fn is_drained(&self, member: usize) -> bool {
        self.members[member].machine.is_drained()
    }

    /// Returns the leaders that would work now.
    pub(crate) fn leaders(&self, scope: Scope) -> Vec<usize> {
        let members = 0..self.members.len();
        let leads = |member: &usize| {
            let simulated = &self.members[*member];
            simulated.scope == scope && simulated.machine.is_leading() && self.may_work(*member)
        };
        members.filter(leads).collect()
    }

    /// Returns the members of each name that would work now.
    pub(crate) fn workers(&self, scope: Scope) -> BTreeMap<&str, BTreeSet<usize>> {
        let mut workers: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        for (member, simulated) in self.members.iter().enumerate() {
            if simulated.scope == scope && self.may_work(member) {
                workers.entry(&simulated.name).or_default().insert(member);
            }
        }
        workers
    }

    /// Returns the records of all sessions, the time of their last renewal in milliseconds, and whether the node is drained.
    pub(crate) fn sessions(
        &self,
        scope: Scope,
    ) -> impl Iterator<Item = (&NodeRecord, &str, i64, bool)> {
        let entries = self.bucket.iter();
        entries.filter_map(
            move |((of, key), (_, record, stored))| match (key, record) {
                (ClusterKey::Node(name), ClusterRecord::Node(record)) if *of == scope => {
                    let drain = (scope, ClusterKey::Drain(name.clone()));
                    let is_drained = self.bucket.contains_key(&drain);
                    Some((record, name.as_str(), *stored, is_drained))
                }
                _ => None,
            },
        )
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

    fn clock(&self, member: usize) -> Duration {
        let member = &self.members[member];
        let micros = self.now.as_micros() as u64;
        member.offset
            + Duration::from_micros(
                micros / 1_000_000 * member.rate + micros % 1_000_000 * member.rate / 1_000_000,
            )
    }

    /// Returns the time until which a member cannot reach NATS.
    fn away_until(&self, member: usize) -> Duration {
        self.outage_until.max(self.members[member].cut_until)
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
        member: usize,
        key: ClusterKey,
        record: Option<ClusterRecord>,
        revision: u64,
        stored: i64,
    ) {
        let at = (self.now + self.delay())
            .max(self.members[member].last_delivery)
            .max(self.away_until(member));
        self.members[member].last_delivery = at;
        self.traffic.deliveries += 1;
        self.at(at, Event::Deliver(member, key, record, revision, stored));
    }

    fn step(&mut self, event: Event) {
        let member = match &event {
            Event::Arrive(member, write) => {
                let (member, write) = (*member, write.clone());
                return self.store(member, write);
            }
            Event::Tick(member)
            | Event::Answer(member, ..)
            | Event::Deliver(member, ..)
            | Event::Fetched(member, _)
            | Event::Connected(member)
            | Event::Synced(member)
            | Event::Roster(member) => *member,
        };
        if self.members[member].has_ended {
            return;
        }
        let until = self.members[member].stopped_until;
        if until > self.now {
            // A stopped process receives all messages when it resumes, in order.
            self.at(until, event);
            return;
        }
        let now = self.clock(member);
        let clock_ms = self.now.as_millis() as i64;
        let scope = self.members[member].scope;
        let machine = &mut self.members[member].machine;
        let actions = match event {
            Event::Arrive(..) => Vec::new(),
            Event::Tick(_) => {
                let interval = machine.tick_interval();
                let actions = machine.tick(now, clock_ms);
                self.at(self.now + interval, Event::Tick(member));
                actions
            }
            Event::Answer(_, write, result) => machine.finish_write(write, result, now),
            Event::Deliver(_, ClusterKey::Node(node), ..) if !machine.observes(&node) => Vec::new(),
            Event::Deliver(_, key, record, revision, stored) => {
                machine.observe(&key, record, revision, Some(stored), now)
            }
            Event::Fetched(_, key) => {
                let known = self.bucket.get(&(scope, key.clone())).cloned();
                let (revision, record, stored) = match known {
                    Some((revision, record, stored)) => (revision, Some(record), stored),
                    None => (0, None, 0),
                };
                machine.observe(&key, record, revision, Some(stored), now)
            }
            Event::Connected(_) => {
                machine.reset_liveness(now);
                Vec::new()
            }
            Event::Synced(_) => {
                machine.set_synced(now);
                Vec::new()
            }
            Event::Roster(_) => {
                machine.set_roster(now);
                Vec::new()
            }
        };
        self.perform(member, actions);
    }

    fn perform(&mut self, member: usize, actions: Vec<ControlAction>) {
        let away_until = self.away_until(member);
        for action in actions {
            match action {
                ControlAction::Write(write) => {
                    self.traffic.writes += 1;
                    self.traffic.written_bytes += write.record.to_json().len() as u64;
                    let arrives = self.now + self.delay();
                    if arrives < away_until {
                        self.answer(member, write.clone(), WriteResult::Unknown, ANSWER_MAX);
                        // After an outage a client sends its buffered messages, even if their senders no longer wait.
                        if self.random.chance(50) {
                            let late = away_until + self.delay();
                            self.at(late, Event::Arrive(member, write));
                        }
                    } else {
                        self.at(arrives, Event::Arrive(member, write));
                    }
                }
                ControlAction::Read(key) => {
                    let at = (self.now + self.delay()).max(away_until);
                    self.at(at, Event::Fetched(member, key));
                }
                ControlAction::Report(event) => self.report(member, event),
            }
        }
    }

    fn report(&mut self, member: usize, event: MemberEvent) {
        match &event {
            MemberEvent::SessionLost => self.members[member].sessions_lost += 1,
            MemberEvent::Left => self.members[member].has_ended = true,
            MemberEvent::Leading(is_leading) => {
                self.members[member].has_roster_watch = *is_leading;
                if *is_leading {
                    self.deliver_roster(member);
                }
            }
            _ => {}
        }
        self.events.push((self.now, member, event));
    }

    /// Delivers the sessions of all members to a new leader.
    fn deliver_roster(&mut self, member: usize) {
        let scope = self.members[member].scope;
        let mut roster = Vec::new();
        for ((of, key), entry) in &self.bucket {
            if *of == scope && matches!(key, ClusterKey::Node(_)) {
                roster.push((key.clone(), entry.clone()));
            }
        }
        for (key, (revision, record, stored)) in roster {
            self.deliver(member, key, Some(record), revision, stored);
        }
        let at = self.members[member].last_delivery + Duration::from_millis(1);
        self.at(at, Event::Roster(member));
    }

    fn answer(&mut self, member: usize, write: KeyWrite, result: WriteResult, after: Duration) {
        self.at(self.now + after, Event::Answer(member, write, result));
    }

    /// Carries out a write in the bucket.
    fn store(&mut self, member: usize, write: KeyWrite) {
        let scope = self.members[member].scope;
        let place = (scope, write.key.clone());
        let last = self
            .bucket
            .get(&place)
            .map_or(0, |(revision, ..)| *revision);
        let result = if last == write.expected {
            self.revision += 1;
            let (revision, stored) = (self.revision, self.now.as_millis() as i64);
            let entry = (revision, write.record.clone(), stored);
            self.bucket.insert(place, entry);
            for watcher in self.watchers(scope, &write.key) {
                let record = Some(write.record.clone());
                self.deliver(watcher, write.key.clone(), record, revision, stored);
            }
            WriteResult::Accepted(revision)
        } else {
            self.traffic.conflicts += 1;
            WriteResult::Conflict
        };
        let is_lost = self.random.chance(self.losses) || self.away_until(member) > self.now;
        match is_lost {
            true => self.answer(member, write, WriteResult::Unknown, ANSWER_MAX),
            false => {
                let delay = self.delay();
                self.answer(member, write, result, delay);
            }
        }
    }

    /// Returns the members that watch a key.
    fn watchers(&self, scope: Scope, key: &ClusterKey) -> Vec<usize> {
        let watches = |simulated: &SimulatedMember| match key {
            ClusterKey::Node(name) => {
                simulated.has_roster_watch || simulated.machine.observes(name)
            }
            ClusterKey::Drain(name) => simulated.name == *name,
            ClusterKey::Leader => true,
        };
        let members = self.members.iter().enumerate();
        let watchers = members.filter(|(_, simulated)| {
            simulated.scope == scope && !simulated.has_ended && watches(simulated)
        });
        watchers.map(|(member, _)| member).collect()
    }
}

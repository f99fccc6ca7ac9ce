//! The parts of a shared crawl in virtual time. Each machine has a daemon, which takes over parts, and processes that work on
//! parts. Sessions and the choice of parts use the code of the real daemon. The steps of a takeover and of a process are modelled
//! after `host/control/src/takeover.rs` and `host/crawl/src/membership.rs`. The example and the property tests use this module.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use opilio_cluster::control::{
    ChosenPart, JobParts, NodeOverview, PartOverview, PartTakeovers, SessionEnd, SessionState,
    SessionTimings,
};

use crate::network::{Network, Scope};

/// Name of the job.
const JOB: &str = "job";

/// Pause between two steps of daemons and processes.
const STEP: Duration = Duration::from_millis(100);

/// Time that it takes to load a snapshot.
const LOAD_TIME: Duration = Duration::from_secs(2);

/// Time until a daemon has started the process of a job.
const BEGIN_TIME: Duration = Duration::from_secs(2);

/// Interval at which a working process checks whether its directory still has the part, as it does for snapshots.
const PUBLISH_PAUSE: Duration = Duration::from_secs(10);

/// Time limit for leaving the job, as in `JobMembership::hand_over`.
const LEAVE_TIME_MAX: Duration = Duration::from_secs(5);

/// Time limit for joining, in times to live, as in `Member::join`.
const JOIN_TIMES_TO_LIVE: u32 = 4;

/// Machines, and the processes of the parts of a job.
pub(crate) struct Crawl {
    pub(crate) network: Network,
    pub(crate) machines: Vec<Machine>,
    /// Number of takeovers.
    pub(crate) takeovers: u64,
    /// Machine of the last takeover.
    pub(crate) taker: Option<usize>,
    /// Longest time for which a part had no process, since this was last set to zero.
    pub(crate) gap_max: Duration,
    processes: Vec<Process>,
    parts: BTreeMap<String, Part>,
    time_to_live: Duration,
    take_over_after: Duration,
}

/// A machine of a cluster.
pub(crate) struct Machine {
    pub(crate) name: String,
    /// The member of the machine's daemon.
    pub(crate) daemon: usize,
    takeovers: PartTakeovers,
    next_look: Duration,
    /// The part that the daemon is taking over, and the process of the takeover.
    taking: Option<(ChosenPart, usize)>,
}

/// A part of the job.
#[derive(Default)]
struct Part {
    /// The record in NATS: the epoch, and the node that has the part.
    epoch: u64,
    node: Option<String>,
    /// Greatest epoch of a process that has worked on the part.
    worked: u64,
    /// Time since which no process works on the part.
    idle_since: Duration,
}

/// A process, or a takeover by a daemon, that is a member of the job under the name of a part.
struct Process {
    machine: usize,
    part: String,
    member: usize,
    step: Step,
}

/// The step of a process. Each reads or writes NATS at most once.
#[derive(Clone, Copy)]
enum Step {
    /// A takeover waits until it is a member. `known` is the epoch for which the part was chosen.
    Joining {
        known: u64,
        until: Duration,
    },
    /// A member loads the snapshot. `lost` is the number of sessions that others had ended before.
    Loading {
        known: u64,
        lost: u64,
        until: Duration,
    },
    /// A daemon leaves the job, so that the process of the new directory can join.
    Leaving {
        epoch: u64,
        until: Duration,
    },
    /// The process of a directory is about to start.
    Beginning {
        epoch: u64,
        at: Duration,
    },
    /// The process of a directory waits until it is a member.
    Entering {
        epoch: u64,
        until: Duration,
    },
    /// The process checks whether its directory still has the part.
    Confirming {
        epoch: u64,
        lost: u64,
    },
    /// The process works while no session is lost.
    Working {
        epoch: u64,
        lost: u64,
        asks_at: Duration,
    },
    Ended,
}

impl Crawl {
    pub(crate) fn new(timings: SessionTimings, take_over_after: Duration, seed: u64) -> Self {
        Self {
            network: Network::new(timings, seed),
            machines: Vec::new(),
            takeovers: 0,
            taker: None,
            gap_max: Duration::ZERO,
            processes: Vec::new(),
            parts: BTreeMap::new(),
            time_to_live: timings.time_to_live,
            take_over_after,
        }
    }

    /// Starts a machine with a daemon.
    pub(crate) fn add_machine(&mut self, name: &str) -> usize {
        let daemon = self.network.start(Scope::Nodes, name);
        self.machines.push(Machine {
            name: name.to_owned(),
            daemon,
            takeovers: PartTakeovers::new(name, self.take_over_after),
            next_look: self.network.now + self.take_over_after / 5,
            taking: None,
        });
        self.machines.len() - 1
    }

    /// Starts the part with the name of a machine on this machine, as an operator does.
    pub(crate) fn begin_part(&mut self, machine: usize) {
        let name = self.machines[machine].name.clone();
        let part = Part {
            idle_since: self.network.now,
            ..Part::default()
        };
        self.parts.insert(name.clone(), part);
        self.start_process(machine, name, 0);
    }

    /// Removes a machine for good.
    pub(crate) fn lose_machine(&mut self, machine: usize) {
        for member in self.members(machine) {
            self.network.kill(member);
        }
    }

    /// Stops all processes of a machine for a while, as during a suspension.
    pub(crate) fn stop_machine(&mut self, machine: usize, time: Duration) {
        for member in self.members(machine) {
            self.network.stop(member, time);
        }
    }

    /// Interrupts a machine's connection to NATS for a while.
    pub(crate) fn cut_machine(&mut self, machine: usize, time: Duration) {
        for member in self.members(machine) {
            self.network.cut(member, time);
        }
    }

    /// Returns `true` if the machine was not lost.
    pub(crate) fn is_alive(&self, machine: usize) -> bool {
        !self.network.has_ended(self.machines[machine].daemon)
    }

    /// Returns the machine of a member of the job.
    pub(crate) fn machine_of(&self, member: usize) -> Option<usize> {
        let process = self.processes.iter().find(|it| it.member == member)?;
        Some(process.machine)
    }

    /// Returns `true` if a process works on each part, all living daemons are members, and both buckets have one leader.
    pub(crate) fn is_settled(&self) -> bool {
        let mut machines = (0..self.machines.len()).filter(|machine| self.is_alive(*machine));
        let network = &self.network;
        let has_leader = |scope| network.leaders(scope).len() == 1;
        let working = self.processes.iter().filter(|it| it.has_part(network));
        working.count() == self.parts.len()
            && machines.all(|machine| network.may_work(self.machines[machine].daemon))
            && has_leader(Scope::Nodes)
            && (self.parts.is_empty() || has_leader(Scope::Job))
    }

    /// Runs until `end`. Fails if two processes work on one part, or if a process of an earlier directory works after a process of
    /// a later one. This is checked after every message with `is_thorough`, otherwise after every step of the processes.
    #[track_caller]
    pub(crate) fn run_until(&mut self, end: Duration, is_thorough: bool) {
        while self.network.now < end {
            let next = end.min(self.network.now + STEP);
            let processes = &self.processes;
            self.network.run_until(next, |network| {
                if is_thorough {
                    check_exclusive(network, processes);
                }
            });
            check_exclusive(&self.network, &self.processes);
            self.watch_parts();
            self.advance();
        }
    }

    /// Returns all processes of a machine, and its daemon.
    fn members(&self, machine: usize) -> Vec<usize> {
        let of_machine = self.processes.iter().filter(|it| it.machine == machine);
        let members = of_machine.map(|process| process.member);
        members.chain([self.machines[machine].daemon]).collect()
    }

    /// Records which parts have a process.
    fn watch_parts(&mut self) {
        let now = self.network.now;
        for process in &self.processes {
            let Step::Working { epoch, .. } = process.step else {
                continue;
            };
            if !process.has_part(&self.network) {
                continue;
            }
            let Some(part) = self.parts.get_mut(&process.part) else {
                continue;
            };
            assert!(
                epoch >= part.worked,
                "at {now:?} a directory of epoch {epoch} works on {:?} after one of {}",
                process.part,
                part.worked
            );
            part.worked = epoch;
            self.gap_max = self.gap_max.max(now.saturating_sub(part.idle_since));
            part.idle_since = now;
        }
    }

    fn advance(&mut self) {
        for process in 0..self.processes.len() {
            let member = self.processes[process].member;
            if self.network.is_connected(member) || self.has_no_process(process) {
                self.processes[process].step = self.next_step(process);
            }
        }
        // All daemons that decide at this time get the same lists.
        let mut lists = None;
        for machine in 0..self.machines.len() {
            let daemon = self.machines[machine].daemon;
            if !self.network.is_connected(daemon) {
                continue;
            }
            self.finish_taking(machine);
            let is_due = self.machines[machine].next_look <= self.network.now;
            if !is_due || self.machines[machine].taking.is_some() {
                continue;
            }
            self.machines[machine].next_look = self.network.now + self.take_over_after / 5;
            if self.network.is_drained(daemon) {
                self.give_up_parts(machine);
            } else if self.network.may_work(daemon) {
                let (parts, nodes) = lists.get_or_insert_with(|| (self.list_parts(), self.nodes()));
                let (now, clock_ms) = (self.network.now, self.network.now.as_millis() as i64);
                let takeovers = &mut self.machines[machine].takeovers;
                let chosen = takeovers.choose(parts, nodes, now, clock_ms);
                if let Some(chosen) = chosen.into_iter().next() {
                    let process = self.start_process(machine, chosen.part.clone(), chosen.epoch);
                    self.machines[machine].taking = Some((chosen, process));
                }
            }
        }
    }

    /// Returns `true` if a daemon has left the job after a takeover, and has yet to start the process of the directory.
    fn has_no_process(&self, process: usize) -> bool {
        let process = &self.processes[process];
        let daemon = self.machines[process.machine].daemon;
        let has_none = matches!(process.step, Step::Leaving { .. } | Step::Beginning { .. });
        has_none && self.network.has_ended(process.member) && self.network.is_connected(daemon)
    }

    /// Starts a process under the name of a part, to get the part, whose epoch is `known`.
    fn start_process(&mut self, machine: usize, part: String, known: u64) -> usize {
        let member = self.network.start(Scope::Job, &part);
        let until = self.join_end();
        self.processes.push(Process {
            machine,
            part,
            member,
            step: Step::Joining { known, until },
        });
        self.processes.len() - 1
    }

    fn join_end(&self) -> Duration {
        self.network.now + JOIN_TIMES_TO_LIVE * self.time_to_live
    }

    fn next_step(&mut self, process: usize) -> Step {
        let now = self.network.now;
        let Process { member, step, .. } = self.processes[process];
        let is_member = self.network.may_work(member);
        let lost_now = self.network.sessions_lost(member);
        let current = self.part(process).epoch;
        let asks_at = now + PUBLISH_PAUSE;
        match step {
            Step::Joining { known, .. } if is_member && current == known => Step::Loading {
                known,
                lost: lost_now,
                until: now + LOAD_TIME,
            },
            Step::Joining { until, .. } if is_member || now >= until => self.end(process),
            Step::Joining { .. } => step,

            Step::Loading { until, .. } if now < until => step,
            Step::Loading { known, .. } if current != known => self.end(process),
            Step::Loading { known, lost, .. } => self.claim(process, known, lost),

            Step::Leaving { epoch, until } | Step::Entering { epoch, until }
                if now >= until || self.network.has_ended(member) =>
            {
                self.network.kill(member);
                let at = now + BEGIN_TIME;
                Step::Beginning { epoch, at }
            }
            Step::Beginning { epoch, at } if now >= at => self.enter(process, epoch),
            Step::Entering { epoch, .. } if is_member => Step::Confirming {
                epoch,
                lost: lost_now,
            },
            Step::Leaving { .. } | Step::Beginning { .. } | Step::Entering { .. } => step,

            Step::Confirming { epoch, .. } if current != epoch => self.end(process),
            Step::Confirming { epoch, lost } => Step::Working {
                epoch,
                lost,
                asks_at,
            },

            Step::Working { epoch, lost, .. } if lost != lost_now && is_member => {
                Step::Confirming {
                    epoch,
                    lost: lost_now,
                }
            }
            Step::Working { asks_at, .. } if now < asks_at => step,
            Step::Working { epoch, .. } if current != epoch => self.end(process),
            Step::Working { epoch, lost, .. } => Step::Working {
                epoch,
                lost,
                asks_at,
            },

            Step::Ended => {
                if !is_member {
                    self.network.kill(member);
                }
                step
            }
        }
    }

    /// Claims a part for the machine of a process. `known` is the epoch that the process has read.
    fn claim(&mut self, process: usize, known: u64, lost: u64) -> Step {
        let now = self.network.now;
        let Process {
            machine, member, ..
        } = self.processes[process];
        let node = self.machines[machine].name.clone();
        let epoch = known + 1;
        let part = self.part(process);
        (part.epoch, part.node) = (epoch, Some(node));
        if known == 0 {
            // The process that starts a part also works on it.
            return Step::Working {
                epoch,
                lost,
                asks_at: now + PUBLISH_PAUSE,
            };
        }
        self.takeovers += 1;
        self.taker = Some(machine);
        self.network.leave(member, SessionEnd::Expired);
        let until = now + LEAVE_TIME_MAX;
        Step::Leaving { epoch, until }
    }

    /// The process of a directory joins, if the directory still has the part.
    fn enter(&mut self, process: usize, epoch: u64) -> Step {
        if self.part(process).epoch != epoch {
            return Step::Ended;
        }
        let part = self.processes[process].part.clone();
        self.processes[process].member = self.network.start(Scope::Job, &part);
        let until = self.join_end();
        Step::Entering { epoch, until }
    }

    /// A process leaves the job, as in `JobMembership::leave` and `JobMembership::withdraw`.
    fn end(&mut self, process: usize) -> Step {
        let Process { member, step, .. } = self.processes[process];
        let lost_now = self.network.sessions_lost(member);
        let is_confirmed = matches!(step, Step::Working { lost, .. } if lost == lost_now);
        let end = match is_confirmed {
            true => SessionEnd::Left,
            false => SessionEnd::AsBefore,
        };
        self.network.leave(member, end);
        Step::Ended
    }

    fn part(&mut self, process: usize) -> &mut Part {
        let part = self.processes[process].part.clone();
        self.parts.entry(part).or_default()
    }

    /// Records the end of a takeover.
    fn finish_taking(&mut self, machine: usize) {
        let now = self.network.now;
        let machine = &mut self.machines[machine];
        let Some((chosen, process)) = machine.taking.take() else {
            return;
        };
        match self.processes[process].step {
            Step::Joining { .. } | Step::Loading { .. } | Step::Leaving { .. } => {
                machine.taking = Some((chosen, process));
            }
            Step::Ended => machine.takeovers.fail(chosen, now),
            Step::Beginning { .. }
            | Step::Entering { .. }
            | Step::Confirming { .. }
            | Step::Working { .. } => {
                machine.takeovers.finish(chosen);
            }
        }
    }

    /// Stops the processes of a drained machine.
    fn give_up_parts(&mut self, machine: usize) {
        for process in 0..self.processes.len() {
            let it = &self.processes[process];
            if it.machine == machine && matches!(it.step, Step::Working { .. }) {
                self.processes[process].step = self.end(process);
            }
        }
    }

    /// Returns the parts as daemons list them.
    fn list_parts(&self) -> Vec<JobParts> {
        let sessions = self.network.sessions(Scope::Job);
        let sessions: BTreeMap<&str, SessionState> = sessions
            .map(|(record, name, ..)| (name, record.state))
            .collect();
        let parts = self.parts.iter().map(|(name, part)| {
            let session = sessions.get(name.as_str()).copied();
            PartOverview {
                name: name.clone(),
                // A part that no directory has had has the name of its node.
                node: part.node.clone().or_else(|| session.map(|_| name.clone())),
                session,
                epoch: part.epoch,
                has_work: true,
                commands: 0,
            }
        });
        vec![JobParts {
            job: JOB.to_owned(),
            parts: parts.collect(),
            declined_by: BTreeSet::new(),
        }]
    }

    /// Returns the nodes as daemons list them.
    fn nodes(&self) -> Vec<NodeOverview> {
        let sessions = self.network.sessions(Scope::Nodes);
        let nodes = sessions.map(|(record, name, stored_ms, is_drained)| NodeOverview {
            name: name.to_owned(),
            state: record.state,
            is_drained,
            is_leader: false,
            version: record.version.clone(),
            since_ms: record.since_ms,
            renewed_ms: stored_ms,
            clock_skew_ms: 0,
        });
        nodes.collect()
    }
}

impl Process {
    /// Returns `true` if the process would fetch now, by its own clock. A process of a lost machine fetches nothing.
    fn has_part(&self, network: &Network) -> bool {
        match self.step {
            Step::Working { lost, .. } => {
                lost == network.sessions_lost(self.member) && network.may_work(self.member)
            }
            _ => false,
        }
    }
}

#[track_caller]
fn check_exclusive(network: &Network, processes: &[Process]) {
    let mut working: BTreeMap<&str, usize> = BTreeMap::new();
    for process in processes.iter().filter(|it| it.has_part(network)) {
        let other = working.insert(&process.part, process.machine);
        assert!(
            other.is_none(),
            "at {:?} machines {other:?} and {} both work on part {:?}",
            network.now,
            process.machine,
            process.part
        );
    }
}

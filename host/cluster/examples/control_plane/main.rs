//! The control plane of a large cluster in virtual time, with the real state machines, and the messages and sizes of a crawl of ten
//! billion URIs. Prints the tables of `docs/PERFORMANCE.md`, and fails if two processes ever work on one part.
//!
//! `cargo run --release -p opilio-cluster --example control_plane [NODES]`

#![expect(clippy::print_stdout, reason = "an example prints its result")]

mod data;
#[expect(dead_code, reason = "the property tests use the rest")]
mod network;
mod takeovers;

use std::time::{Duration, Instant};

use opilio_cluster::control::SessionTimings;

use network::{Scope, Traffic};
use takeovers::Crawl;

const SECOND: Duration = Duration::from_secs(1);

/// Time without a renewal after which other nodes take over the parts of a node. Operators would set minutes.
const TAKE_OVER_AFTER: Duration = Duration::from_secs(60);

/// Time for which machines are away, long enough for their parts to be taken over.
const AWAY: Duration = Duration::from_secs(180);

/// Time limit of a phase.
const PHASE_MAX: Duration = Duration::from_secs(3_600);

fn main() {
    let nodes = std::env::args().nth(1).map(|number| number.parse::<u16>());
    let nodes = match nodes {
        None => 1_000,
        Some(Ok(nodes @ 2..=32_768)) => nodes,
        Some(_) => {
            println!("the number of nodes must be between 2 and 32768");
            return;
        }
    };
    let mut simulation = Simulation::new();
    println!(
        "| {nodes} nodes with a part each | virtual time | writes | refused | deliveries | takeovers | longest time of a part without a process |"
    );
    println!("|---|---|---|---|---|---|---|");
    simulation.phase("start of all machines at once", Duration::ZERO, |crawl| {
        for node in 0..nodes {
            let machine = crawl.add_machine(&format!("node-{node}"));
            crawl.begin_part(machine);
        }
    });
    let quiet = simulation.for_a_minute("a minute without events");
    let some = usize::from(nodes / 100).max(1);
    let lost = simulation.living(some);
    let name = format!("loss of {}", machines(lost.len()));
    simulation.phase(&name, Duration::ZERO, |crawl| {
        for machine in &lost {
            crawl.lose_machine(*machine);
        }
    });
    for (scope, name) in [
        (Scope::Nodes, "loss of the machine that leads the nodes"),
        (Scope::Job, "loss of the machine that leads the crawl"),
    ] {
        if simulation.living(3).len() == 3 {
            simulation.phase(name, Duration::ZERO, |crawl| lose_leader(crawl, scope));
        }
    }
    let name = format!("addition of {}", machines(some));
    simulation.phase(&name, Duration::ZERO, |crawl| {
        for number in 0..some {
            crawl.add_machine(&format!("new-{number}"));
        }
    });
    let cut = simulation.group(1, some);
    let seconds = AWAY.as_secs();
    let name = format!("cut of {} from NATS for {seconds} s", machines(cut.len()));
    simulation.phase(&name, AWAY, |crawl| {
        for machine in &cut {
            crawl.cut_machine(*machine, AWAY);
        }
    });
    let suspended = simulation.group(2, some);
    let name = format!(
        "suspension of {} for {seconds} s",
        machines(suspended.len())
    );
    simulation.phase(&name, AWAY, |crawl| {
        for machine in &suspended {
            crawl.stop_machine(*machine, AWAY);
        }
    });
    simulation.phase("outage of NATS for 30 s", 30 * SECOND, |crawl| {
        crawl.network.interrupt(30 * SECOND);
    });
    let drained = simulation.group(3, some);
    let name = format!("draining of {}", machines(drained.len()));
    simulation.phase(&name, TAKE_OVER_AFTER, |crawl| {
        for machine in &drained {
            let name = crawl.machines[*machine].name.clone();
            crawl.network.set_drained(&name, true);
        }
    });
    println!();
    println!(
        "Renewals: {:.0} writes a second of {:.0} bytes.",
        per_second(quiet.writes, SECOND * 60),
        quiet.written_bytes as f64 / quiet.writes as f64
    );
    println!();
    data::print(nodes);
}

/// Removes the machine of the leader.
fn lose_leader(crawl: &mut Crawl, scope: Scope) {
    let leaders = crawl.network.leaders(scope);
    let machine = leaders.first().and_then(|leader| match scope {
        Scope::Nodes => {
            let mut machines = crawl.machines.iter();
            machines.position(|machine| machine.daemon == *leader)
        }
        Scope::Job => crawl.machine_of(*leader),
    });
    if let Some(machine) = machine {
        crawl.lose_machine(machine);
    }
}

fn machines(count: usize) -> String {
    match count {
        1 => "1 machine".to_owned(),
        _ => format!("{count} machines"),
    }
}

struct Simulation {
    crawl: Crawl,
}

impl Simulation {
    fn new() -> Self {
        let crawl = Crawl::new(SessionTimings::default(), TAKE_OVER_AFTER, 1);
        Self { crawl }
    }

    /// Returns the first living machines, at most `count`.
    fn living(&self, count: usize) -> Vec<usize> {
        let all = 0..self.crawl.machines.len();
        let living = all.filter(|machine| self.crawl.is_alive(*machine));
        living.take(count).collect()
    }

    /// Returns a group of living machines by its number, counted from 1, or the last machines if there are fewer.
    fn group(&self, number: usize, size: usize) -> Vec<usize> {
        let living = self.living(number * size).into_iter();
        living.rev().take(size).collect()
    }

    /// Carries out a change, and runs for at least `least` until a process works on each part and both buckets have a leader.
    fn phase(&mut self, name: &str, least: Duration, change: impl FnOnce(&mut Crawl)) {
        let began = Instant::now();
        let (start, before) = self.begin();
        change(&mut self.crawl);
        while self.crawl.network.now < start + least || !self.crawl.is_settled() {
            let next = self.crawl.network.now + SECOND;
            self.crawl.run_until(next, false);
            if self.crawl.network.now > start + PHASE_MAX {
                println!("| {name} | not settled after an hour | | | | | |");
                return;
            }
        }
        self.print(name, start, &before);
        eprint_progress(name, began);
    }

    fn for_a_minute(&mut self, name: &str) -> Traffic {
        let (start, before) = self.begin();
        self.crawl.run_until(start + 60 * SECOND, false);
        self.print(name, start, &before);
        difference(&self.crawl.network.traffic, &before)
    }

    /// Returns the time and the messages until now.
    fn begin(&mut self) -> (Duration, Traffic) {
        self.crawl.gap_max = Duration::ZERO;
        self.crawl.takeovers = 0;
        let network = &self.crawl.network;
        (network.now, network.traffic.clone())
    }

    fn print(&self, name: &str, start: Duration, before: &Traffic) {
        let traffic = difference(&self.crawl.network.traffic, before);
        println!(
            "| {name} | {} s | {} | {} | {} | {} | {:.0} s |",
            (self.crawl.network.now - start).as_secs(),
            traffic.writes,
            traffic.conflicts,
            traffic.deliveries,
            self.crawl.takeovers,
            self.crawl.gap_max.as_secs_f64(),
        );
    }
}

#[expect(clippy::print_stderr, reason = "a phase takes minutes")]
fn eprint_progress(name: &str, began: Instant) {
    eprintln!("{name}: {:?} of this machine", began.elapsed());
}

fn difference(now: &Traffic, before: &Traffic) -> Traffic {
    Traffic {
        writes: now.writes - before.writes,
        conflicts: now.conflicts - before.conflicts,
        deliveries: now.deliveries - before.deliveries,
        written_bytes: now.written_bytes - before.written_bytes,
    }
}

fn per_second(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

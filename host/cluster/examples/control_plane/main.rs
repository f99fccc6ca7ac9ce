//! The control plane of a large cluster in virtual time, with the state machines of the real one, and the messages and sizes that a
//! crawl of ten billion URIs would bring. It prints the tables of `docs/PERFORMANCE.md`.
//!
//! `cargo run --release -p opilio-cluster --example control_plane [NODES [PARTITIONS]]`

#![expect(clippy::print_stdout, reason = "an example prints its result")]

mod data;
#[expect(dead_code, reason = "the property tests use the rest")]
mod network;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use opilio_cluster::control::LeaseTimings;
use opilio_cluster::partition::PartitionCount;

use network::{Network, Traffic};

const SECOND: Duration = Duration::from_secs(1);

/// Longest time that a phase may take.
const PHASE_MAX: Duration = Duration::from_secs(3_600);

fn main() {
    let mut arguments = std::env::args().skip(1).map(|number| number.parse::<u16>());
    let nodes = arguments
        .next()
        .map_or(1_000, |number| number.unwrap_or(1_000));
    let partitions = arguments
        .next()
        .map_or(16_384, |number| number.unwrap_or(16_384));
    let Ok(count) = PartitionCount::new(partitions) else {
        println!("the number of partitions must be a power of two, at most 32768");
        return;
    };
    let mut simulation = Simulation::new(count);
    println!(
        "| {nodes} nodes, {partitions} partitions | virtual time | writes | refused | deliveries | takeovers |"
    );
    println!("|---|---|---|---|---|---|");
    simulation.phase("all nodes start at once", |network| {
        for node in 0..nodes {
            network.start(&format!("node-{node}"));
        }
    });
    let quiet = simulation.for_a_minute("a minute without events");
    let failing = usize::from(nodes / 100).max(1);
    simulation.phase(&format!("{failing} nodes die"), |network| {
        for node in 0..failing {
            network.kill(node + 1);
        }
    });
    simulation.phase("the leader dies", |network| {
        let leader =
            (0..network.nodes.len()).find(|node| network.nodes[*node].machine.is_leading());
        network.kill(leader.unwrap_or_default());
    });
    simulation.phase(&format!("{failing} nodes join"), |network| {
        for node in 0..failing {
            network.start(&format!("new-{node}"));
        }
    });
    simulation.phase("NATS is away for 30 s", |network| {
        network.interrupt(30 * SECOND)
    });
    println!();
    println!(
        "Renewals: {:.0} writes a second; with a key for each lease they would be {:.0}.",
        per_second(quiet.writes, SECOND * 60),
        f64::from(partitions) / LeaseTimings::default().renewal.as_secs_f64(),
    );
    println!(
        "Size of a record: {:.0} bytes.",
        quiet.written_bytes as f64 / quiet.writes as f64
    );
    println!();
    data::print(nodes.into(), count);
}

struct Simulation {
    network: Network,
    partitions: usize,
}

impl Simulation {
    fn new(count: PartitionCount) -> Self {
        let mut network = Network::new(count, LeaseTimings::default(), 1);
        network.skips_bystanders = true;
        let partitions = count.get().into();
        Self {
            network,
            partitions,
        }
    }

    /// Carries out a change, and runs until the partitions are shared evenly and all are at work.
    fn phase(&mut self, name: &str, change: impl FnOnce(&mut Network)) {
        let began = Instant::now();
        let (start, before) = (self.network.now, self.network.traffic.clone());
        change(&mut self.network);
        // Renewals of dead nodes are missed only after a while.
        let earliest = start + LeaseTimings::default().time_to_live;
        while self.network.now < earliest || !self.is_settled() {
            let next = self.network.now + SECOND;
            self.network.run_until(next, |_| {});
            if self.network.now > start + PHASE_MAX {
                println!("| {name} | not settled after an hour | | | | |");
                return;
            }
        }
        let time = self.network.now - start;
        self.print(name, time, &before);
        eprint_progress(name, began);
    }

    fn for_a_minute(&mut self, name: &str) -> Traffic {
        let before = self.network.traffic.clone();
        let end = self.network.now + 60 * SECOND;
        self.network.run_until(end, |_| {});
        self.print(name, 60 * SECOND, &before);
        difference(&self.network.traffic, &before)
    }

    fn print(&self, name: &str, time: Duration, before: &Traffic) {
        let traffic = difference(&self.network.traffic, before);
        println!(
            "| {name} | {} s | {} | {} | {} | {} |",
            time.as_secs(),
            traffic.writes,
            traffic.conflicts,
            traffic.deliveries,
            traffic.claims,
        );
    }

    fn is_settled(&self) -> bool {
        let issuers = self.network.issuers();
        if issuers.len() < self.partitions {
            return false;
        }
        let mut loads: BTreeMap<usize, usize> = (0..self.network.nodes.len())
            .filter(|node| !self.network.is_dead(*node))
            .map(|node| (node, 0))
            .collect();
        for node in issuers.values().flatten() {
            *loads.entry(*node).or_default() += 1;
        }
        let (least, most) = (loads.values().min(), loads.values().max());
        least
            .zip(most)
            .is_some_and(|(least, most)| most - least <= 1)
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
        claims: now.claims - before.claims,
    }
}

fn per_second(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

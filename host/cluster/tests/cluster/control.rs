//! Random histories of clusters: nodes die, stop and go on, messages get lost, NATS goes away. No two nodes ever issue URIs of
//! one partition, and afterwards every partition is at work on a living node.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use opilio_cluster::control::{
    ClusterKey, ClusterRecord, ControlAction, ControlEvent, LeaseTimings, NodeMachine, NodeRecord,
    SessionState, WriteResult,
};
use opilio_cluster::partition::{Partition, PartitionCount};
use proptest::prelude::*;

use crate::network::Network;

const SECOND: Duration = Duration::from_secs(1);

fn timings() -> LeaseTimings {
    LeaseTimings::of(15 * SECOND)
}

/// Fails if two nodes would issue URIs of one partition.
#[track_caller]
fn check_exclusive(network: &Network) {
    for (partition, nodes) in network.issuers() {
        assert!(
            nodes.len() == 1,
            "at {:?} nodes {nodes:?} both issue URIs of {partition}",
            network.now
        );
    }
}

/// Fails unless the living nodes that are not drained have all partitions, as evenly as possible.
#[track_caller]
fn check_settled(network: &Network, count: u16, nodes: &BTreeSet<usize>) {
    let issuers = network.issuers();
    let mut loads: BTreeMap<usize, usize> = nodes.iter().map(|node| (*node, 0)).collect();
    for node in issuers.values().flatten() {
        *loads.entry(*node).or_default() += 1;
    }
    let missing = usize::from(count) - issuers.len();
    assert_eq!(missing, 0, "partitions at rest; loads: {loads:?}");
    assert_eq!(loads.len(), nodes.len(), "loads: {loads:?}");
    let (least, most) = (loads.values().min().unwrap(), loads.values().max().unwrap());
    assert!(most - least <= 1, "loads: {loads:?}");
}

fn cluster(count: u16, nodes: usize, seed: u64) -> Network {
    let mut network = Network::new(PartitionCount::new(count).unwrap(), timings(), seed);
    for node in 0..nodes {
        network.start(&format!("node-{node}"));
    }
    network
}

#[test]
fn three_nodes_share_all_partitions() {
    let mut network = cluster(64, 3, 1);
    network.run_until(120 * SECOND, check_exclusive);
    check_settled(&network, 64, &BTreeSet::from([0, 1, 2]));
}

#[test]
fn the_partitions_of_a_dead_node_are_at_work_elsewhere_soon() {
    let mut network = cluster(64, 3, 2);
    network.run_until(120 * SECOND, check_exclusive);
    network.kill(1);
    // Time to live, stagger, and eleven partitions for each of the others, four at a time.
    network.run_until(120 * SECOND + 35 * SECOND, check_exclusive);
    check_settled(&network, 64, &BTreeSet::from([0, 2]));
}

#[test]
fn a_new_node_gets_its_share_one_partition_at_a_time() {
    let mut network = cluster(64, 3, 3);
    network.run_until(120 * SECOND, check_exclusive);
    let claims = network.traffic.claims;
    network.start("node-new");
    let mut loading_max = 0;
    network.run_until(300 * SECOND, |network| {
        check_exclusive(network);
        let machine = &network.nodes[3].machine;
        let loading = machine
            .held()
            .filter(|(partition, _)| machine.issue_until(*partition).is_none());
        loading_max = loading_max.max(loading.count());
    });
    check_settled(&network, 64, &BTreeSet::from([0, 1, 2, 3]));
    assert_eq!((network.traffic.claims - claims, loading_max), (16, 1));
}

#[test]
fn a_drained_node_ends_up_with_nothing_and_comes_back() {
    let mut network = cluster(32, 3, 4);
    network.run_until(60 * SECOND, check_exclusive);
    network.set_drained("node-2", true);
    network.run_until(200 * SECOND, check_exclusive);
    check_settled(&network, 32, &BTreeSet::from([0, 1]));
    assert_eq!(network.nodes[2].machine.held().count(), 0);
    network.set_drained("node-2", false);
    network.run_until(400 * SECOND, check_exclusive);
    check_settled(&network, 32, &BTreeSet::from([0, 1, 2]));
}

#[test]
fn a_stopped_process_neither_issues_when_it_goes_on_nor_keeps_its_partitions() {
    let mut network = cluster(32, 3, 5);
    network.run_until(60 * SECOND, check_exclusive);
    network.stop(0, 60 * SECOND);
    // It is stopped: others have its partitions.
    network.run_until(115 * SECOND, check_exclusive);
    assert_eq!(network.issuers().len(), 32);
    network.run_until(400 * SECOND, check_exclusive);
    let lost = network
        .events
        .iter()
        .any(|(_, node, event)| *node == 0 && *event == ControlEvent::SessionLost);
    assert!(lost);
    check_settled(&network, 32, &BTreeSet::from([0, 1, 2]));
}

#[test]
fn an_outage_of_nats_pauses_everything_and_moves_nothing() {
    let mut network = cluster(32, 3, 6);
    network.run_until(60 * SECOND, check_exclusive);
    let claims = network.traffic.claims;
    network.interrupt(60 * SECOND);
    network.run_until(70 * SECOND, check_exclusive);
    assert_eq!(network.issuers().len(), 32, "leases last for a while");
    network.run_until(80 * SECOND, check_exclusive);
    assert_eq!(network.issuers().len(), 0, "and no longer");
    network.run_until(140 * SECOND, check_exclusive);
    check_settled(&network, 32, &BTreeSet::from([0, 1, 2]));
    assert_eq!(network.traffic.claims, claims);
}

#[test]
fn of_two_nodes_of_one_name_the_second_is_told_and_gets_nothing() {
    let mut network = cluster(8, 2, 7);
    network.run_until(30 * SECOND, check_exclusive);
    let second = network.start("node-1");
    network.run_until(60 * SECOND, check_exclusive);
    let told = network
        .events
        .iter()
        .any(|(_, node, event)| *node == second && *event == ControlEvent::NameInUse);
    assert!(told);
    assert_eq!(network.nodes[second].machine.member_until(), None);
}

#[test]
fn a_node_that_leaves_gives_up_its_partitions_at_once() {
    let mut network = cluster(32, 3, 8);
    network.run_until(60 * SECOND, check_exclusive);
    network.leave(1);
    network.run_until(75 * SECOND, check_exclusive);
    check_settled(&network, 32, &BTreeSet::from([0, 2]));
    let left = network
        .events
        .iter()
        .any(|(_, node, event)| *node == 1 && *event == ControlEvent::Left);
    assert!(left);
}

#[test]
fn epochs_only_rise() {
    let mut network = cluster(16, 4, 9);
    network.losses = 20;
    network.run_until(60 * SECOND, check_exclusive);
    network.kill(0);
    network.stop(1, 40 * SECOND);
    network.run_until(300 * SECOND, check_exclusive);
    let mut epochs: BTreeMap<Partition, u64> = BTreeMap::new();
    for (_, _, event) in &network.events {
        if let ControlEvent::Claimed(partition, epoch) = event {
            let before = epochs.insert(*partition, *epoch).unwrap_or_default();
            assert!(*epoch > before, "{partition}: {epoch} after {before}");
        }
    }
}

#[test]
fn a_move_that_was_refused_is_planned_again() {
    // The leader's write meets that of the owner; both take up to 615 ms.
    let mut network = cluster(16, 2, 16_901_758_557_084_889_575);
    network.load_time = Duration::ZERO;
    network.start("node-2");
    network.latency.1 = Duration::from_millis(615);
    network.run_until(30 * SECOND, check_exclusive);
    network.stop(0, 32 * SECOND);
    network.run_until(65 * SECOND, check_exclusive);
    network.set_drained("node-0", true);
    network.run_until(300 * SECOND, check_exclusive);
    check_settled(&network, 16, &BTreeSet::from([1, 2]));
}

/// A leader with one other node, of which it knows one renewal.
fn leader() -> NodeMachine {
    let count = PartitionCount::new(1).unwrap();
    let mut machine = NodeMachine::new("a", "1", "s", count, timings());
    machine.set_synced(Duration::ZERO);
    run(&mut machine, Duration::ZERO, 4 * SECOND);
    assert!(machine.is_leading());
    let other = ClusterRecord::Node(NodeRecord {
        session: "other".to_owned(),
        state: SessionState::Live,
        version: String::new(),
        beat: 1,
        clock_ms: 0,
        since_ms: 0,
    });
    machine.observe(&other_key(), Some(other), 1_000, Some(0), 4 * SECOND);
    machine.set_roster(4 * SECOND);
    machine
}

fn other_key() -> ClusterKey {
    ClusterKey::Node("b".to_owned())
}

/// Ticks every second, with a bucket that accepts everything at once, and returns whether the other node's session was ended.
fn run(machine: &mut NodeMachine, from: Duration, to: Duration) -> bool {
    let mut has_ended = false;
    let mut revision = 2_000 + 100 * from.as_secs();
    let mut now = from;
    while now <= to {
        let mut actions = machine.tick(now, 0);
        while let Some(action) = actions.pop() {
            if let ControlAction::Write(write) = action {
                has_ended |= write.key == other_key();
                revision += 1;
                actions.extend(machine.finish_write(write, WriteResult::Accepted(revision), now));
            }
        }
        now += SECOND;
    }
    has_ended
}

#[test]
fn silence_is_counted_from_the_end_of_an_interruption() {
    let mut machine = leader();
    assert!(!run(&mut machine, 5 * SECOND, 18 * SECOND));
    machine.reset_liveness(18 * SECOND);
    assert!(!run(&mut machine, 19 * SECOND, 32 * SECOND));
    assert!(run(&mut machine, 33 * SECOND, 38 * SECOND));
}

#[test]
fn a_process_that_was_stopped_ends_no_session_because_of_its_own_silence() {
    let mut machine = leader();
    assert!(!run(&mut machine, 5 * SECOND, 10 * SECOND));
    // It stops for ten seconds, and with it the reading of renewals.
    assert!(!run(&mut machine, 20 * SECOND, 34 * SECOND));
    assert!(run(&mut machine, 35 * SECOND, 40 * SECOND));
}

#[test]
fn a_clock_that_differs_is_reported_once_and_ends_no_session() {
    let mut machine = leader();
    let mut renewals = 0;
    let mut renew = |machine: &mut NodeMachine, skew_ms: i64, now: Duration| {
        renewals += 1;
        let stored_ms = 5_000_000;
        let record = ClusterRecord::Node(NodeRecord {
            session: "other".to_owned(),
            state: SessionState::Live,
            version: String::new(),
            beat: 1 + renewals,
            clock_ms: stored_ms + skew_ms,
            since_ms: 0,
        });
        let revision = 1_000 + renewals;
        let actions = machine.observe(&other_key(), Some(record), revision, Some(stored_ms), now);
        let reports = actions.into_iter().filter_map(|action| match action {
            ControlAction::Report(event) => Some(event),
            _ => None,
        });
        reports.collect::<Vec<ControlEvent>>()
    };
    let skew = |skew_ms| vec![ControlEvent::ClockSkew("b".to_owned(), skew_ms)];
    assert_eq!(renew(&mut machine, 3_600_000, 5 * SECOND), skew(3_600_000));
    assert!(renew(&mut machine, 3_601_000, 6 * SECOND).is_empty());
    assert!(!run(&mut machine, 7 * SECOND, 18 * SECOND));
    // The clock was set right, and is set back.
    assert!(renew(&mut machine, 1_000, 18 * SECOND).is_empty());
    assert_eq!(renew(&mut machine, -9_000, 19 * SECOND), skew(-9_000));
    assert!(!run(&mut machine, 20 * SECOND, 31 * SECOND));
}

/// An accident of a random history.
#[derive(Debug, Clone)]
enum Accident {
    Kill(usize),
    Stop(usize, u64),
    Outage(u64),
    Losses(u64),
    Slow(u64),
    Drain(usize),
    Start,
    Wait,
}

fn accident() -> impl Strategy<Value = Accident> {
    prop_oneof![
        1 => (0usize..8).prop_map(Accident::Kill),
        3 => (0usize..8, 1u64..60).prop_map(|(node, seconds)| Accident::Stop(node, seconds)),
        2 => (1u64..60).prop_map(Accident::Outage),
        2 => (0u64..40).prop_map(Accident::Losses),
        2 => (1u64..4_000).prop_map(Accident::Slow),
        1 => (0usize..8).prop_map(Accident::Drain),
        2 => Just(Accident::Start),
        3 => Just(Accident::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_no_partition_is_issued_twice_and_all_are_at_work_in_the_end(
        seed: u64, nodes in 2usize..6, accidents in prop::collection::vec((accident(), 0u64..40), 1..12),
    ) {
        let mut network = cluster(16, nodes, seed);
        // Takeovers cost no time, so that nothing but the margin of leases keeps two owners apart.
        network.load_time = Duration::ZERO;
        let mut drained = BTreeSet::new();
        for (accident, seconds) in accidents {
            let number = network.nodes.len();
            match accident {
                Accident::Kill(node) => {
                    let alive = (0..number).filter(|node| !network.is_dead(*node)).count();
                    if alive > 2 {
                        network.kill(node % number);
                    }
                }
                Accident::Stop(node, seconds) => network.stop(node % number, seconds as u32 * SECOND),
                Accident::Outage(seconds) => network.interrupt(seconds as u32 * SECOND),
                Accident::Losses(percent) => network.losses = percent,
                Accident::Slow(millis) => network.latency.1 = Duration::from_millis(millis),
                Accident::Drain(node) => {
                    if drained.is_empty() {
                        drained.insert(node % number);
                        network.set_drained(&format!("node-{}", node % number), true);
                    }
                }
                Accident::Start => {
                    network.start(&format!("node-{number}"));
                }
                Accident::Wait => {}
            }
            let until = network.now + seconds as u32 * SECOND;
            network.run_until(until, check_exclusive);
        }
        network.losses = 0;
        network.latency.1 = Duration::from_millis(2);
        let end = network.now + 600 * SECOND;
        network.run_until(end, check_exclusive);
        let living: BTreeSet<usize> = (0..network.nodes.len())
            .filter(|node| !network.is_dead(*node) && !drained.contains(node))
            .collect();
        prop_assume!(!living.is_empty());
        check_settled(&network, 16, &living);
    }
}

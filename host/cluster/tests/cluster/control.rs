//! Random histories of members: members die, stop and resume, messages are lost, NATS is not available for all or for one of them.
//! No two processes ever work under one name. Afterwards each living member works, and one is the leader.

use std::time::Duration;

use opilio_cluster::control::{
    ClusterKey, ClusterRecord, ControlAction, MemberEvent, NodeMachine, NodeRecord, SessionEnd,
    SessionState, SessionTimings, WriteResult,
};
use proptest::prelude::*;

use crate::disturbances::{Disturbance, disturbance, end_disturbances};
use crate::network::{Network, Scope};

const SECOND: Duration = Duration::from_secs(1);

fn timings() -> SessionTimings {
    SessionTimings::of(15 * SECOND)
}

/// Fails if two processes would work under one name.
#[track_caller]
fn check_exclusive(network: &Network) {
    for (name, members) in network.workers(Scope::Nodes) {
        assert!(
            members.len() == 1,
            "at {:?} members {members:?} both work under the name {name:?}",
            network.now
        );
    }
}

/// Fails unless one process works under each of these names, and one of them is the leader.
#[track_caller]
fn check_settled(network: &Network, names: &[&str]) {
    let workers = network.workers(Scope::Nodes);
    let working: Vec<&str> = workers.keys().copied().collect();
    assert_eq!(working, names);
    let leaders = network.leaders(Scope::Nodes);
    assert_eq!(leaders.len(), 1, "{leaders:?}");
}

fn cluster(nodes: usize, seed: u64) -> Network {
    let mut network = Network::new(timings(), seed);
    for node in 0..nodes {
        network.start(Scope::Nodes, &format!("node-{node}"));
    }
    network
}

/// Returns the time of the first such event of a member after `from`.
fn first_event(
    network: &Network,
    from: Duration,
    matches: impl Fn(usize, &MemberEvent) -> bool,
) -> Option<Duration> {
    let mut events = network.events.iter();
    let found = events.find(|(at, member, event)| *at >= from && matches(*member, event));
    found.map(|(at, ..)| *at)
}

#[test]
fn all_nodes_start_to_work_and_one_is_leader() {
    let mut network = cluster(3, 1);
    network.run_until(5 * SECOND, check_exclusive);
    check_settled(&network, &["node-0", "node-1", "node-2"]);
}

#[test]
fn a_dead_node_is_gone_and_a_dead_leader_is_replaced_soon() {
    let mut network = cluster(3, 2);
    network.run_until(60 * SECOND, check_exclusive);
    let leader = network.leaders(Scope::Nodes)[0];
    network.kill(leader);
    // The time includes the time to live, two pauses that differ from node to node, and differences of the clocks.
    network.run_until(60 * SECOND + 25 * SECOND, check_exclusive);
    let others: Vec<String> = (0..3)
        .filter(|node| *node != leader)
        .map(|node| format!("node-{node}"))
        .collect();
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    check_settled(&network, &others);
    let gone = MemberEvent::NodeGone(format!("node-{leader}"));
    let gone = first_event(&network, 60 * SECOND, |_, event| *event == gone);
    assert!(gone.is_some_and(|at| at > 70 * SECOND), "{gone:?}");
}

#[test]
fn a_node_knows_that_it_is_drained_and_stays_a_member() {
    let mut network = cluster(3, 4);
    network.run_until(30 * SECOND, check_exclusive);
    network.set_drained("node-2", true);
    network.run_until(31 * SECOND, check_exclusive);
    let drained = [0, 1, 2].map(|node| network.is_drained(node));
    assert_eq!(drained, [false, false, true]);
    check_settled(&network, &["node-0", "node-1", "node-2"]);
    // The node restarts.
    network.leave(2, SessionEnd::Left);
    network.run_until(40 * SECOND, check_exclusive);
    let again = network.start(Scope::Nodes, "node-2");
    network.run_until(45 * SECOND, check_exclusive);
    assert!(network.is_drained(again) && network.may_work(again));
    network.set_drained("node-2", false);
    network.run_until(46 * SECOND, check_exclusive);
    assert!(!network.is_drained(again));
}

#[test]
fn a_stopped_process_does_not_work_before_it_has_joined_again() {
    let mut network = cluster(3, 5);
    network.run_until(60 * SECOND, check_exclusive);
    network.stop(0, 60 * SECOND);
    network.run_until(120 * SECOND, |network| {
        check_exclusive(network);
        let is_over = network.now > 74 * SECOND && network.now < 120 * SECOND;
        assert!(!is_over || !network.may_work(0), "at {:?}", network.now);
    });
    network.run_until(150 * SECOND, check_exclusive);
    assert_eq!(network.sessions_lost(0), 1);
    check_settled(&network, &["node-0", "node-1", "node-2"]);
}

#[test]
fn an_outage_of_nats_pauses_all_and_ends_no_session() {
    let mut network = cluster(3, 6);
    network.run_until(60 * SECOND, check_exclusive);
    network.interrupt(60 * SECOND);
    network.run_until(68 * SECOND, check_exclusive);
    assert_eq!(
        network.workers(Scope::Nodes).len(),
        3,
        "sessions last for a while"
    );
    network.run_until(80 * SECOND, check_exclusive);
    assert_eq!(network.workers(Scope::Nodes).len(), 0, "and no longer");
    network.run_until(140 * SECOND, check_exclusive);
    check_settled(&network, &["node-0", "node-1", "node-2"]);
    assert_eq!([0, 1, 2].map(|node| network.sessions_lost(node)), [0; 3]);
}

#[test]
fn the_second_process_of_one_name_is_reported_and_never_works() {
    let mut network = cluster(2, 7);
    network.run_until(30 * SECOND, check_exclusive);
    let second = network.start(Scope::Nodes, "node-1");
    network.run_until(90 * SECOND, |network| {
        check_exclusive(network);
        assert!(!network.may_work(second));
    });
    let reported = first_event(&network, Duration::ZERO, |member, event| {
        member == second && *event == MemberEvent::NameInUse
    });
    assert!(reported.is_some());
}

#[test]
fn the_name_of_a_node_that_leaves_is_free_at_once() {
    let mut network = cluster(3, 8);
    network.run_until(60 * SECOND, check_exclusive);
    network.leave(1, SessionEnd::Left);
    network.run_until(61 * SECOND, check_exclusive);
    let left = first_event(&network, 60 * SECOND, |member, event| {
        member == 1 && *event == MemberEvent::Left
    });
    assert!(left.is_some());
    let next = network.start(Scope::Nodes, "node-1");
    network.run_until(63 * SECOND, check_exclusive);
    assert!(network.may_work(next));
}

/// A leader that has observed one renewal of one other node.
fn leader() -> NodeMachine {
    let mut machine = NodeMachine::new("a", "1", "s", timings());
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

/// Ticks every second, with a bucket that accepts all writes at once. Returns `true` if the other node's session was ended.
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
    // The process stops for ten seconds and reads no renewals meanwhile.
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
        reports.collect::<Vec<MemberEvent>>()
    };
    let skew = |milliseconds| {
        let node = "b".to_owned();
        vec![MemberEvent::ClockSkew { node, milliseconds }]
    };
    assert_eq!(renew(&mut machine, 3_600_000, 5 * SECOND), skew(3_600_000));
    assert!(renew(&mut machine, 3_601_000, 6 * SECOND).is_empty());
    assert!(!run(&mut machine, 7 * SECOND, 18 * SECOND));
    // The clock was corrected, and is set back again.
    assert!(renew(&mut machine, 1_000, 18 * SECOND).is_empty());
    assert_eq!(renew(&mut machine, -9_000, 19 * SECOND), skew(-9_000));
    assert!(!run(&mut machine, 20 * SECOND, 31 * SECOND));
}

/// A random event of a history.
#[derive(Debug, Clone)]
enum Accident {
    Kill(usize),
    Stop(usize, u32),
    Cut(usize, u32),
    Disturb(Disturbance),
    /// Another process starts under the name of a node.
    Rival(usize),
    Start,
    Wait,
}

fn accident() -> impl Strategy<Value = Accident> {
    prop_oneof![
        1 => (0usize..8).prop_map(Accident::Kill),
        3 => (0usize..8, 1u32..60).prop_map(|(node, seconds)| Accident::Stop(node, seconds)),
        3 => (0usize..8, 1u32..60).prop_map(|(node, seconds)| Accident::Cut(node, seconds)),
        6 => disturbance().prop_map(Accident::Disturb),
        2 => (0usize..8).prop_map(Accident::Rival),
        2 => Just(Accident::Start),
        3 => Just(Accident::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn in_random_histories_no_name_has_two_working_processes_and_all_work_in_the_end(
        seed: u64, nodes in 2usize..6, accidents in prop::collection::vec((accident(), 0u32..40), 1..12),
    ) {
        let mut network = cluster(nodes, seed);
        let mut names: Vec<String> = (0..nodes).map(|node| format!("node-{node}")).collect();
        for (accident, seconds) in accidents {
            let number = names.len();
            match accident {
                Accident::Kill(node) => {
                    let alive = (0..number).filter(|member| !network.has_ended(*member)).count();
                    if alive > 2 {
                        network.kill(node % number);
                    }
                }
                Accident::Stop(node, seconds) => network.stop(node % number, seconds * SECOND),
                Accident::Cut(node, seconds) => network.cut(node % number, seconds * SECOND),
                Accident::Disturb(disturbance) => disturbance.begin(&mut network),
                Accident::Rival(node) => {
                    let name = names[node % number].clone();
                    network.start(Scope::Nodes, &name);
                    names.push(name);
                }
                Accident::Start => {
                    let name = format!("node-{number}");
                    network.start(Scope::Nodes, &name);
                    names.push(name);
                }
                Accident::Wait => {}
            }
            let until = network.now + seconds * SECOND;
            network.run_until(until, check_exclusive);
        }
        end_disturbances(&mut network);
        let end = network.now + 600 * SECOND;
        network.run_until(end, check_exclusive);
        let living = names.iter().enumerate().filter(|(member, _)| !network.has_ended(*member));
        let mut living: Vec<&str> = living.map(|(_, name)| name.as_str()).collect();
        living.sort_unstable();
        living.dedup();
        check_settled(&network, &living);
    }
}

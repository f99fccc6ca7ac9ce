//! Parts of a crawl whose machines die, are cut off, stop and come back. No two processes ever work on one part, and no earlier
//! directory works after a later one. Afterwards a process works on each part, unless all machines with processes are lost.

use std::time::Duration;

use opilio_cluster::control::SessionTimings;
use proptest::prelude::*;

use crate::disturbances::{Disturbance, disturbance, end_disturbances};
use crate::network::Scope;
use crate::takeovers::Crawl;

const SECOND: Duration = Duration::from_secs(1);

/// Time without a renewal after which parts are taken over.
const AFTER: Duration = Duration::from_secs(60);

/// A running crawl on this number of machines, each with a part.
fn crawl(machines: usize, seed: u64) -> Crawl {
    let mut crawl = Crawl::new(SessionTimings::of(15 * SECOND), AFTER, seed);
    for number in 0..machines {
        let machine = crawl.add_machine(&format!("node-{number}"));
        crawl.begin_part(machine);
    }
    crawl.run_until(30 * SECOND, true);
    assert!(crawl.is_settled());
    crawl.gap_max = Duration::ZERO;
    crawl
}

/// Runs for this number of seconds.
#[track_caller]
fn run(crawl: &mut Crawl, seconds: u32) {
    let end = crawl.network.now + seconds * SECOND;
    crawl.run_until(end, true);
}

#[test]
fn the_part_of_a_lost_machine_is_taken_over_once_and_soon() {
    let mut crawl = crawl(4, 1);
    crawl.lose_machine(1);
    run(&mut crawl, 150);
    assert!(crawl.is_settled());
    assert_eq!(crawl.takeovers, 1);
    // The time includes the end of the daemon's session, the wait, the interval of checks, loading, and the start of the process.
    let expected = AFTER - 5 * SECOND..AFTER + 40 * SECOND;
    assert!(expected.contains(&crawl.gap_max), "{:?}", crawl.gap_max);
}

/// Runs until a machine has taken over a part, for at most `seconds`. Returns the machine.
#[track_caller]
fn until_takeover(crawl: &mut Crawl, seconds: u32) -> Option<usize> {
    let (before, end) = (crawl.takeovers, crawl.network.now + seconds * SECOND);
    while crawl.takeovers == before && crawl.network.now < end {
        let next = crawl.network.now + SECOND / 10;
        crawl.run_until(next, true);
    }
    crawl.taker.filter(|_| crawl.takeovers > before)
}

/// Loses the machine that takes over a part at different times: after it has got the part, after its daemon has left the job,
/// before and after its process joins. Other machines take over both of its parts.
#[track_caller]
fn check_loss_of_the_next_machine(away: impl Fn(&mut Crawl)) {
    for half_seconds in 0u32..12 {
        let mut crawl = crawl(4, u64::from(half_seconds));
        away(&mut crawl);
        let taker = until_takeover(&mut crawl, 150).unwrap();
        let end = crawl.network.now + half_seconds * SECOND / 2;
        crawl.run_until(end, true);
        crawl.lose_machine(taker);
        run(&mut crawl, 240);
        assert!(crawl.is_settled(), "lost after {half_seconds} half seconds");
        assert_eq!(crawl.takeovers, 3);
    }
}

#[test]
fn parts_of_a_machine_that_is_lost_during_or_after_a_takeover_are_taken_over() {
    check_loss_of_the_next_machine(|crawl| crawl.lose_machine(1));
}

#[test]
fn parts_of_a_machine_that_is_lost_while_it_takes_over_from_a_drained_one_are_taken_over() {
    check_loss_of_the_next_machine(|crawl| crawl.network.set_drained("node-1", true));
}

#[test]
fn a_process_that_comes_back_does_not_stop_the_new_owner_of_its_part() {
    // The machine that has taken over the part is lost before the first one comes back, and the others wait for a minute.
    for seconds in [110u32, 120, 130, 140, 150] {
        let mut crawl = crawl(4, u64::from(seconds));
        crawl.cut_machine(0, seconds * SECOND);
        let taker = until_takeover(&mut crawl, 109).unwrap();
        run(&mut crawl, 5);
        crawl.lose_machine(taker);
        run(&mut crawl, 300);
        assert!(crawl.is_settled(), "cut for {seconds} s");
    }
}

#[test]
fn the_part_of_the_leader_is_taken_over() {
    let mut crawl = crawl(4, 2);
    let leader = crawl.network.leaders(Scope::Job)[0];
    let machine = crawl.machine_of(leader).unwrap();
    crawl.lose_machine(machine);
    run(&mut crawl, 150);
    assert!(crawl.is_settled() && !crawl.is_alive(machine));
    assert_eq!(crawl.takeovers, 1);
}

#[test]
fn a_machine_that_comes_back_does_not_work_on_a_part_that_was_taken_over() {
    for seed in 0..4 {
        let mut cut = crawl(3, seed);
        cut.cut_machine(0, 180 * SECOND);
        run(&mut cut, 300);
        assert!(cut.is_settled());
        assert_eq!(cut.takeovers, 1);
        let mut suspended = crawl(3, seed);
        suspended.stop_machine(0, 180 * SECOND);
        run(&mut suspended, 300);
        assert!(suspended.is_settled());
        assert_eq!(suspended.takeovers, 1);
    }
}

#[test]
fn a_machine_that_is_away_for_a_short_time_keeps_its_part() {
    let mut crawl = crawl(3, 3);
    crawl.cut_machine(0, 30 * SECOND);
    run(&mut crawl, 120);
    crawl.network.interrupt(30 * SECOND);
    run(&mut crawl, 120);
    assert!(crawl.is_settled());
    assert_eq!(crawl.takeovers, 0);
}

#[test]
fn the_part_of_a_drained_machine_moves_at_once() {
    let mut crawl = crawl(3, 4);
    crawl.network.set_drained("node-2", true);
    run(&mut crawl, 60);
    assert!(crawl.is_settled());
    assert_eq!(crawl.takeovers, 1);
    assert!(crawl.gap_max < AFTER, "{:?}", crawl.gap_max);
}

/// A random event of a history.
#[derive(Debug, Clone)]
enum Accident {
    Lose(usize),
    /// The machine that takes over the next part is lost this number of milliseconds after it has got the part.
    LoseTaker(u64),
    Stop(usize, u32),
    Cut(usize, u32),
    Disturb(Disturbance),
    Drain(usize),
    Add,
    Wait,
}

fn accident() -> impl Strategy<Value = Accident> {
    prop_oneof![
        2 => (0usize..8).prop_map(Accident::Lose),
        2 => (0u64..6_000).prop_map(Accident::LoseTaker),
        3 => (0usize..8, 1u32..200).prop_map(|(machine, seconds)| Accident::Stop(machine, seconds)),
        3 => (0usize..8, 1u32..200).prop_map(|(machine, seconds)| Accident::Cut(machine, seconds)),
        4 => disturbance().prop_map(Accident::Disturb),
        1 => (0usize..8).prop_map(Accident::Drain),
        2 => Just(Accident::Add),
        3 => Just(Accident::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn in_random_histories_a_part_has_at_most_one_working_process(
        seed: u64, machines in 2usize..5, accidents in prop::collection::vec((accident(), 0u32..120), 1..10),
    ) {
        let mut crawl = crawl(machines, seed);
        let is_drained = accidents.iter().any(|(accident, _)| matches!(accident, Accident::Drain(_)));
        let is_lost = |accident: &Accident| matches!(accident, Accident::Lose(_) | Accident::LoseTaker(_));
        let do_all_stay = !is_drained && !accidents.iter().any(|(accident, _)| is_lost(accident));
        for (accident, seconds) in accidents {
            let number = crawl.machines.len();
            match accident {
                Accident::Lose(machine) => crawl.lose_machine(machine % number),
                Accident::LoseTaker(millis) => {
                    let taker = until_takeover(&mut crawl, 120);
                    let lost = crawl.network.now + Duration::from_millis(millis);
                    crawl.run_until(lost, true);
                    if let Some(machine) = taker {
                        crawl.lose_machine(machine);
                    }
                }
                Accident::Stop(machine, seconds) => crawl.stop_machine(machine % number, seconds * SECOND),
                Accident::Cut(machine, seconds) => crawl.cut_machine(machine % number, seconds * SECOND),
                Accident::Disturb(disturbance) => disturbance.begin(&mut crawl.network),
                Accident::Drain(machine) => {
                    let name = crawl.machines[machine % number].name.clone();
                    crawl.network.set_drained(&name, true);
                }
                Accident::Add => {
                    crawl.add_machine(&format!("new-{number}"));
                }
                Accident::Wait => {}
            }
            run(&mut crawl, seconds);
        }
        end_disturbances(&mut crawl.network);
        run(&mut crawl, 600);
        // Parts of lost machines are taken over while a process works on the crawl. For parts of drained machines, no machine may
        // be left.
        let is_under_way = !crawl.network.workers(Scope::Job).is_empty();
        prop_assert!(!do_all_stay || is_under_way);
        prop_assert!(is_drained || !is_under_way || crawl.is_settled());
    }
}

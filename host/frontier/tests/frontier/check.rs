//! Consistency checks after random histories, and the errors of checks.

use opilio_frontier::{
    Candidate, Directive, Frontier, FrontierConfig, FrontierError, Issue, Next, Outcome, Strategy,
    SweepAction,
};
use proptest::{prelude::*, strategy::Strategy as _};

use crate::site::{at, candidate, config, secs, success, took, uri, with_queue};

const URIS: [&str; 8] = [
    "http://a.org/1",
    "http://a.org/2",
    "http://a.org/3",
    "dns:a.org",
    "http://b.org/1",
    "http://b.org/2",
    "http://cdn.net/1",
    "http://cdn.net/2",
];
const HOPS: [&str; 6] = ["", "L", "LE", "E", "LR", "P"];

#[derive(Debug, Clone)]
struct Link {
    uri: usize,
    hops: usize,
    flags: u8,
}

#[derive(Debug, Clone)]
enum Step {
    Schedule(Vec<Link>),
    Next,
    Finish(usize, u8, Vec<Link>),
    Pass(i64),
    Reopen,
    Delete(usize),
    Precedence(usize, u8),
    Hand(usize, u8),
    Sweep,
}

fn links() -> BoxedStrategy<Vec<Link>> {
    let link = (0..URIS.len(), 0..HOPS.len(), any::<u8>()).prop_map(|(uri, hops, flags)| Link {
        uri,
        hops,
        flags,
    });
    prop::collection::vec(link, 0..4).boxed()
}

fn step() -> BoxedStrategy<Step> {
    prop_oneof![
        4 => links().prop_map(Step::Schedule),
        8 => Just(Step::Next),
        8 => (any::<usize>(), any::<u8>(), links())
            .prop_map(|(which, ending, links)| Step::Finish(which, ending, links)),
        6 => prop_oneof![4 => 0i64..4, 2 => 4i64..70, 1 => 70i64..2_000].prop_map(Step::Pass),
        1 => Just(Step::Reopen),
        1 => (0..URIS.len()).prop_map(Step::Delete),
        1 => (0..URIS.len(), 0u8..4).prop_map(|(which, precedence)| Step::Precedence(which, precedence)),
        1 => (0..3usize, 0u8..6).prop_map(|(queue, what)| Step::Hand(queue, what)),
        1 => Just(Step::Sweep),
    ]
    .boxed()
}

fn candidates(links: &[Link]) -> Vec<Candidate> {
    let directives = [Directive::Normal, Directive::Medium, Directive::High];
    let candidate = |link: &Link| Candidate {
        directive: directives[usize::from(link.flags % 3)],
        precedence: link.flags / 3 % 3,
        force: link.flags.is_multiple_of(8),
        seed: link.flags % 8 == 1,
        strategy: [Strategy::Revisit, Strategy::Snapshot][usize::from(link.flags > 200)],
        ..candidate(URIS[link.uri], HOPS[link.hops])
    };
    links.iter().map(candidate).collect()
}

fn outcome(ending: u8, links: &[Link]) -> Outcome {
    let transfer = ending.is_multiple_of(2).then(|| took(secs(1)));
    match ending % 8 {
        0..=3 => {
            let wait = (ending > 60).then(|| secs(ending.into()));
            let mut outcome = success(secs(1), wait, candidates(links));
            if let Outcome::Succeeded(success) = &mut outcome {
                success.visit.outlinks = (!ending.is_multiple_of(5)).then_some(links.len() as u64);
                success.refresh_embeds = ending.is_multiple_of(3);
            }
            outcome
        }
        4 => Outcome::Deferred {
            prerequisites: candidates(links),
        },
        5 => Outcome::Retry {
            status: 503,
            queue_after: 1 + u32::from(ending / 8 % 3),
            after: None,
            transfer,
        },
        6 => Outcome::Disregarded {
            reason: "filter".to_owned(),
            status: -9998,
            wait: (ending > 60).then(|| secs(ending.into())),
            transfer,
        },
        _ => Outcome::Failed {
            status: -1,
            transfer,
        },
    }
}

fn act(frontier: &mut Frontier, busy: &mut Vec<Issue>, now: &mut i64, step: Step) {
    let queues = ["org,a,", "org,b,", "net,cdn,"];
    match step {
        Step::Schedule(links) => {
            frontier.schedule(candidates(&links), at(*now)).unwrap();
        }
        Step::Next => {
            if let Next::Issue(issue) = frontier.next(at(*now)).unwrap() {
                busy.push(*issue);
            }
        }
        Step::Finish(which, ending, links) => {
            if !busy.is_empty() {
                let issue = busy.remove(which % busy.len());
                let outcome = outcome(ending, &links);
                frontier.finished(issue.ticket, outcome, at(*now)).unwrap();
            }
        }
        Step::Pass(seconds) => *now += seconds,
        // The caller opens the store again.
        Step::Reopen => busy.clear(),
        Step::Delete(which) => {
            frontier.delete(&uri(URIS[which]), at(*now)).unwrap();
        }
        Step::Precedence(which, precedence) => {
            frontier
                .set_precedence(&uri(URIS[which]), precedence, at(*now))
                .unwrap();
        }
        Step::Hand(queue, what) => {
            let queue = queues[queue];
            let now = at(*now);
            match what {
                0 => frontier.retire(queue, true, now),
                1 => frontier.retire(queue, false, now),
                2 => frontier.freeze(queue, true, now),
                3 => frontier.freeze(queue, false, now),
                4 => frontier.wake(queue, now),
                _ => frontier.set_queue_precedence(queue, Some(1), now),
            }
            .unwrap();
        }
        Step::Sweep => {
            frontier
                .sweep(
                    SweepAction::Delete,
                    "org,b,",
                    None,
                    100,
                    &|_| true,
                    at(*now),
                )
                .unwrap();
        }
    }
}

/// Findings of a check after a history.
fn after(config: &FrontierConfig, steps: Vec<Step>) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let open = || Frontier::open(dir.path(), config.clone()).unwrap();
    let mut frontier = open();
    let (mut busy, mut now) = (Vec::new(), 0);
    for step in steps {
        if matches!(step, Step::Reopen) {
            drop(frontier);
            frontier = open();
        }
        act(&mut frontier, &mut busy, &mut now, step);
    }
    drop(frontier);
    let mut findings = Vec::new();
    Frontier::check(dir.path(), config, &mut |finding| {
        findings.push(finding.to_string());
    })
    .unwrap();
    findings
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_check_after_any_history_has_no_findings(steps in prop::collection::vec(step(), 1..120)) {
        prop_assert_eq!(after(&config(), steps), Vec::<String>::new());
    }

    #[test]
    fn a_check_has_no_findings_with_slots_budgets_groups_and_quotas(steps in prop::collection::vec(step(), 1..120)) {
        let mut config = with_queue(|queue| {
            queue.valence = 2;
            queue.budget = Some(20);
            queue.group = Some("group".to_owned());
            queue.host_quota.fetched = Some(5);
            queue.precedence_policy = opilio_frontier::PrecedencePolicy::HighestUri;
        });
        config.session_budget = Some(3);
        config.group.valence = 3;
        config.fade_after = 1;
        prop_assert_eq!(after(&config, steps), Vec::<String>::new());
    }
}

#[test]
fn a_store_in_use_is_not_checked() {
    let dir = tempfile::tempdir().unwrap();
    let _holder = Frontier::open(dir.path(), config()).unwrap();
    for check in [Frontier::check, Frontier::repair] {
        let error = check(dir.path(), &config(), &mut |_| {}).unwrap_err();
        assert!(matches!(error, FrontierError::InUse { .. }), "{error:?}");
    }
}

#[test]
fn a_check_without_a_store_creates_none() {
    let dir = tempfile::tempdir().unwrap();
    for check in [Frontier::check, Frontier::repair] {
        let error = check(dir.path(), &config(), &mut |_| {}).unwrap_err();
        assert!(matches!(error, FrontierError::NoStore { .. }), "{error:?}");
        assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none());
    }
}

#[test]
fn a_check_counts_uris_and_queues() {
    let dir = tempfile::tempdir().unwrap();
    let mut frontier = Frontier::open(dir.path(), config()).unwrap();
    let all = URIS.iter().map(|text| candidate(text, "L")).collect();
    frontier.schedule(all, at(0)).unwrap();
    let Next::Issue(issue) = frontier.next(at(0)).unwrap() else {
        panic!("all are ready");
    };
    let outcome = success(secs(0), None, vec![]);
    frontier.finished(issue.ticket, outcome, at(0)).unwrap();
    drop(frontier);
    let summary = Frontier::check(dir.path(), &config(), &mut |_| {}).unwrap();
    assert_eq!((summary.uris, summary.queued, summary.queues), (8, 7, 3));
    assert_eq!((summary.findings, summary.repaired), (0, 0));
}

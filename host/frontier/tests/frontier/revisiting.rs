//! Guarantees of revisits: strategies by URI, embeds that fade and are refreshed, signals, changes of scope.

use std::time::Duration;

use opilio_frontier::{
    Candidate, ContentState, Digests, Directive, Disposition, FrontierConfig, Next, Outcome,
    ScheduleResult, SignalSource, Strategy, Success, UriState, VisitUpdate,
};

use crate::site::{Site, at, candidate, config, revisited, secs, success, took, uri};

const ZERO: Duration = Duration::ZERO;
const EMBED: &str = "http://cdn.net/logo";

#[test]
fn a_revisited_page_and_a_snapshot_page_share_a_queue() {
    let mut site = Site::new(config());
    site.schedule(
        vec![
            revisited("http://a.org/", ""),
            candidate("http://a.org/archive", "L"),
        ],
        0,
    );
    let front = site.issue(0, "http://a.org/");
    site.finish(&front, success(ZERO, Some(secs(100)), vec![]), 0);
    site.visit(2, "http://a.org/archive");
    for visit in 1..4 {
        let front = site.issue(visit * 100, "http://a.org/");
        site.finish(&front, success(ZERO, Some(secs(100)), vec![]), visit * 100);
    }
    // An override changes its strategy to snapshot.
    let front = site.issue(400, "http://a.org/");
    let once = Success {
        strategy: Some(Strategy::Snapshot),
        transfer: took(ZERO),
        ..Success::default()
    };
    site.finish(&front, Outcome::Succeeded(Box::new(once)), 400);
    let record = site.frontier().record(&uri("http://a.org/")).unwrap();
    assert_eq!(record.unwrap().strategy, Strategy::Snapshot);
    site.is_empty(10_000);
}

/// Visits the page, which shows these embeds.
fn show(site: &mut Site, seconds: i64, embeds: &[&str]) -> Vec<ScheduleResult> {
    let page = site.issue(seconds, "http://a.org/");
    let outlinks = embeds.iter().map(|text| revisited(text, "E")).collect();
    let success = Success {
        visit: VisitUpdate {
            status: 200,
            outlinks: Some(embeds.len() as u64),
            ..VisitUpdate::default()
        },
        wait: Some(secs(100)),
        outlinks,
        refresh_embeds: true,
        ..Success::default()
    };
    let outcome = Outcome::Succeeded(Box::new(success));
    site.finish(&page, outcome, seconds).scheduled
}

#[test]
fn an_embed_of_another_site_fades_and_is_queued_again_when_it_is_linked() {
    let mut site = Site::new(config());
    site.schedule(vec![revisited("http://a.org/", "")], 0);
    show(&mut site, 0, &[EMBED, "http://www.a.org/own"]);
    for text in [EMBED, "http://www.a.org/own"] {
        let embed = site.issue(1, text);
        site.finish(&embed, success(ZERO, Some(secs(100_000)), vec![]), 1);
    }
    let state_of = |site: &mut Site, text| {
        let record = site.frontier().record(&uri(text)).unwrap();
        record.unwrap().state
    };
    // A visit that finds the embed restarts the count.
    for (round, embeds) in [&[][..], &[], &[EMBED], &[], &[]].into_iter().enumerate() {
        let second = 100 * (i64::try_from(round).unwrap() + 1);
        show(&mut site, second, embeds);
        if !embeds.is_empty() {
            // The embed is refreshed with its page: due now.
            let embed = site.issue(second, EMBED);
            site.finish(&embed, success(ZERO, Some(secs(100_000)), vec![]), second);
        }
        assert_ne!(state_of(&mut site, EMBED), UriState::Faded, "{second}");
    }
    show(&mut site, 600, &[]);
    assert_eq!(state_of(&mut site, EMBED), UriState::Faded);
    assert_eq!(site.frontier().statistics().faded, 1);
    // Embeds of the same site do not fade.
    assert_ne!(state_of(&mut site, "http://www.a.org/own"), UriState::Faded);
    // One link on any page is enough.
    let scheduled = site.schedule(vec![revisited(EMBED, "L")], 650);
    assert!(
        matches!(scheduled[..], [ScheduleResult::Raised(_)]),
        "{scheduled:?}"
    );
    site.issue(650, EMBED);
}

#[test]
fn a_faded_embed_that_is_deleted_stays_known() {
    let mut site = Site::new(config());
    site.schedule(vec![revisited("http://a.org/", "")], 0);
    show(&mut site, 0, &[EMBED]);
    let embed = site.issue(1, EMBED);
    site.finish(&embed, success(ZERO, Some(secs(100_000)), vec![]), 1);
    for second in [100, 200, 300] {
        show(&mut site, second, &[]);
    }
    let state_of = |site: &mut Site| {
        let record = site.frontier().record(&uri(EMBED)).unwrap();
        record.unwrap().state
    };
    assert_eq!(state_of(&mut site), UriState::Faded);
    assert!(site.frontier().delete(&uri(EMBED), at(310)).unwrap());
    assert_eq!(state_of(&mut site), UriState::Deleted);
    let equal = format!("{EMBED}?sid=5");
    let scheduled = site.schedule(vec![revisited(EMBED, "L"), revisited(&equal, "L")], 320);
    assert_eq!(scheduled, [ScheduleResult::Known, ScheduleResult::Known]);
}

#[test]
fn an_embed_that_is_in_process_when_it_would_fade_fades_with_the_next_visit() {
    let mut site = Site::new(config());
    site.schedule(vec![revisited("http://a.org/", "")], 0);
    show(&mut site, 0, &[EMBED]);
    let embed = site.issue(0, EMBED);
    site.finish(&embed, success(ZERO, Some(secs(290)), vec![]), 0);
    show(&mut site, 100, &[]);
    show(&mut site, 200, &[]);
    let embed = site.issue(300, EMBED);
    show(&mut site, 300, &[]);
    site.finish(&embed, success(ZERO, Some(secs(10_000)), vec![]), 301);
    show(&mut site, 400, &[]);
    let record = site.frontier().record(&uri(EMBED)).unwrap().unwrap();
    assert_eq!(record.state, UriState::Faded);
}

#[test]
fn the_due_time_of_a_candidate_shortens_a_wait_and_never_lengthens_it() {
    let mut site = Site::new(config());
    let text = "http://a.org/";
    let due = |second| Candidate {
        due: Some(at(second)),
        ..revisited(text, "L")
    };
    // A new URI is not issued before its due time.
    site.schedule(vec![due(50)], 0);
    site.waits(0, 50);
    let page = site.issue(50, text);
    site.finish(&page, success(ZERO, Some(secs(1_000)), vec![]), 50);
    assert_eq!(site.schedule(vec![due(2_000)], 60), [ScheduleResult::Known]);
    site.waits(60, 1_050);
    site.schedule(vec![due(500)], 60);
    site.waits(60, 500);
    site.schedule(vec![due(0)], 70);
    let page = site.issue(75, text);
    assert_eq!(page.overdue, secs(5));
}

#[test]
fn a_uri_out_of_scope_is_forgotten_unless_it_is_a_seed() {
    let mut site = Site::new(config());
    let seed = Candidate {
        seed: true,
        ..revisited("http://a.org/", "")
    };
    site.schedule(vec![seed, revisited("http://a.org/link", "L")], 0);
    let out = || Outcome::OutOfScope {
        status: -5_000,
        reason: "hops:21".to_owned(),
    };
    let page = site.issue(0, "http://a.org/");
    let finished = site.finish(&page, out(), 0);
    assert_eq!(finished.disposition, Disposition::Waiting(at(1_000)));
    let link = site.issue(0, "http://a.org/link");
    let finished = site.finish(&link, out(), 0);
    assert_eq!(finished.disposition, Disposition::Forgotten);
    let statistics = site.frontier().statistics();
    assert_eq!((statistics.discovered, statistics.disregarded), (1, 1));
    let again = site.schedule(vec![revisited("http://a.org/link", "L")], 1);
    assert_eq!(again, [ScheduleResult::New]);
    assert!(matches!(site.next(1), Next::Issue(_)));
}

#[test]
fn a_signal_after_the_last_visit_makes_a_uri_due_and_an_older_one_does_not() {
    let mut site = Site::new(config());
    site.schedule(vec![revisited("http://a.org/1", "L")], 0);
    let page = site.issue(0, "http://a.org/1");
    site.finish(&page, success(ZERO, Some(secs(500)), vec![]), 10);
    let news = |modified| Candidate {
        modified: Some(at(modified)),
        ..revisited("http://a.org/1", "LL")
    };
    for old in [0, 10] {
        assert_eq!(site.schedule(vec![news(old)], 100), [ScheduleResult::Known]);
        site.waits(100, 510);
    }
    let raised = [ScheduleResult::Raised(Directive::Normal)];
    assert_eq!(site.schedule(vec![news(60)], 100), raised);
    let page = site.issue(100, "http://a.org/1");
    site.finish(&page, success(ZERO, Some(secs(500)), vec![]), 100);
    // A date in the future counts as now.
    assert_eq!(
        site.schedule(vec![news(9_000)], 100),
        [ScheduleResult::Known]
    );
    assert_eq!(site.schedule(vec![news(9_000)], 200), raised);
    let page = site.issue(200, "http://a.org/1");
    site.finish(&page, success(ZERO, Some(secs(500)), vec![]), 200);
    let signals = |site: &mut Site| {
        let record = site.frontier().record(&uri("http://a.org/1"));
        record.unwrap().unwrap().signals
    };
    assert_eq!(signals(&mut site), [], "removed by the visit");
    // The shortest wait applies. The record has the signal once.
    let with_min_wait = |modified| Candidate {
        min_wait: secs(50),
        ..news(modified)
    };
    for _ in 0..2 {
        site.schedule(vec![with_min_wait(210)], 220);
        site.waits(220, 250);
    }
    let stored = signals(&mut site);
    let [signal] = &stored[..] else {
        panic!("{stored:?}");
    };
    assert_eq!((signal.at, signal.modified), (at(220), at(210)));
    assert_eq!(signal.source, SignalSource::Feed);
    let page = site.issue(250, "http://a.org/1");
    site.finish(&page, success(ZERO, Some(secs(500)), vec![]), 250);
    // A date that is further ahead is an announcement and not a change.
    let next_week = 300 + 7 * 86_400;
    assert_eq!(
        site.schedule(vec![news(next_week)], 300),
        [ScheduleResult::Known]
    );
}

/// Visits the page. Its wait is 1,000 seconds, and its reconsideration is due after 100.
fn long_wait(site: &mut Site) {
    site.schedule(vec![revisited("http://a.org/", "")], 0);
    let page = site.issue(0, "http://a.org/");
    assert_eq!(page.visit_after, None);
    let success = Success {
        visit: VisitUpdate {
            status: 200,
            ..VisitUpdate::default()
        },
        wait: Some(secs(1_000)),
        ask_again: Some(secs(100)),
        ..Success::default()
    };
    site.finish(&page, Outcome::Succeeded(Box::new(success)), 0);
    site.waits(0, 100);
}

fn considered(wait: Option<u64>, ask_again: Option<u64>) -> Outcome {
    Outcome::Considered {
        wait: wait.map(secs),
        ask_again: ask_again.map(secs),
    }
}

#[test]
fn a_long_wait_is_reconsidered_and_no_visit_is_counted() {
    let mut site = Site::new(config());
    long_wait(&mut site);
    site.reopen();
    let page = site.issue(100, "http://a.org/");
    assert_eq!(page.visit_after, Some(at(1_000)));
    assert_eq!(page.overdue, ZERO);
    // The evaluator keeps the planned wait.
    site.finish(&page, considered(None, Some(200)), 100);
    let page = site.issue(300, "http://a.org/");
    assert_eq!(page.visit_after, Some(at(1_000)));
    // The evaluator shortens the wait.
    let finished = site.finish(&page, considered(Some(50), None), 300);
    assert_eq!(finished.disposition, Disposition::Waiting(at(350)));
    let record = site.frontier().record(&uri("http://a.org/")).unwrap();
    assert_eq!(record.unwrap().wait, Some(secs(350)));
    let page = site.issue(360, "http://a.org/");
    assert_eq!((page.visit_after, page.overdue), (None, secs(10)));
    assert_eq!(page.record.visits, 1);
    assert_eq!(site.frontier().statistics().visits, 1);
}

/// One of three pages has been due for long. Signals from lists make the two others due for reconsideration.
#[test]
fn uris_with_signals_are_reconsidered_and_visited_before_uris_that_are_merely_due() {
    let mut site = Site::new(config());
    long_wait(&mut site);
    let pages = ["http://a.org/due", "http://a.org/idly"];
    site.schedule(pages.map(|page| revisited(page, "")).to_vec(), 0);
    let visited = |wait, ask_again: Option<u64>| {
        Outcome::Succeeded(Box::new(Success {
            visit: VisitUpdate {
                status: 200,
                ..VisitUpdate::default()
            },
            wait: Some(secs(wait)),
            ask_again: ask_again.map(secs),
            ..Success::default()
        }))
    };
    let page = site.issue(10, pages[0]);
    site.finish(&page, visited(10, None), 10);
    let page = site.issue(20, pages[1]);
    site.finish(&page, visited(1_000, Some(100)), 20);
    let news = |page| Candidate {
        modified: Some(at(40)),
        ..revisited(page, "L")
    };
    let raised = site.schedule(vec![news("http://a.org/"), news(pages[1])], 50);
    assert_eq!(raised, [ScheduleResult::Raised(Directive::Medium); 2]);
    let page = site.issue(50, "http://a.org/");
    assert_eq!(page.visit_after, Some(at(1_000)));
    site.finish(&page, considered(Some(0), Some(100)), 50);
    let page = site.issue(50, pages[1]);
    assert_eq!(page.visit_after, Some(at(1_020)));
    // The evaluator ignores the signal: the page is due later, with a normal directive.
    site.finish(&page, considered(Some(5), None), 50);
    let page = site.issue(60, "http://a.org/");
    assert_eq!(page.visit_after, None);
    site.finish(&page, visited(1_000, None), 60);
    let page = site.issue(70, pages[0]);
    site.finish(&page, visited(1_000, None), 70);
    site.issue(80, pages[1]);
}

#[test]
fn each_past_visit_has_its_digest_and_the_wait_after_it() {
    let mut site = Site::new(FrontierConfig {
        history_length: 4,
        ..config()
    });
    site.schedule(vec![revisited("http://a.org/", "")], 0);
    let visit = |state, payload: Option<u8>, wait: Duration, ask_again: Option<u64>| {
        let digests = payload.map(|byte| Digests {
            payload: Some([byte; 20]),
            stripped: None,
        });
        Outcome::Succeeded(Box::new(Success {
            visit: VisitUpdate {
                status: 200,
                state,
                digests,
                ..VisitUpdate::default()
            },
            wait: Some(wait),
            ask_again: ask_again.map(secs),
            ..Success::default()
        }))
    };
    let visits = [
        (0, visit(ContentState::New, Some(7), secs(100), None)),
        (
            100,
            visit(
                ContentState::Unchanged,
                None,
                Duration::from_millis(150_500),
                None,
            ),
        ),
        (
            300,
            Outcome::Failed {
                status: -2,
                transfer: None,
            },
        ),
    ];
    for (seconds, outcome) in visits {
        let page = site.issue(seconds, "http://a.org/");
        site.finish(&page, outcome, seconds);
    }
    let probe = 2 * config().waits.min;
    let again = 300 + i64::try_from(probe.as_secs()).unwrap();
    let page = site.issue(again, "http://a.org/");
    let changed = visit(ContentState::Changed, Some(8), secs(1_000), Some(100));
    site.finish(&page, changed, again);
    // The reconsideration replaces the last wait in the history: 100 s so far and 50 s more.
    let page = site.issue(again + 100, "http://a.org/");
    site.finish(&page, considered(Some(50), None), again + 100);
    site.reopen();
    let record = site.frontier().record(&uri("http://a.org/")).unwrap();
    let past_visits: Vec<_> = record
        .unwrap()
        .history
        .iter()
        .map(|past| (past.status, past.digest, past.wait))
        .collect();
    assert_eq!(
        past_visits,
        [
            (200, Some([8; 5]), Some(secs(150))),
            (-2, None, Some(probe)),
            (200, None, Some(secs(151))),
            (200, Some([7; 5]), Some(secs(100))),
        ]
    );
}

#[test]
fn a_uri_that_is_overdue_or_forced_is_visited_and_not_reconsidered() {
    let mut site = Site::new(config());
    long_wait(&mut site);
    let page = site.issue(1_200, "http://a.org/");
    assert_eq!((page.visit_after, page.overdue), (None, secs(200)));

    let mut site = Site::new(config());
    long_wait(&mut site);
    let forced = Candidate {
        force: true,
        ..revisited("http://a.org/", "")
    };
    site.schedule(vec![forced], 10);
    let page = site.issue(10, "http://a.org/");
    assert_eq!(page.visit_after, None);
}

#[test]
fn a_signal_causes_one_reconsideration() {
    let mut site = Site::new(config());
    long_wait(&mut site);
    let news = |modified| Candidate {
        modified: Some(at(modified)),
        ..revisited("http://a.org/", "L")
    };
    let raised = [ScheduleResult::Raised(Directive::Medium)];
    assert_eq!(site.schedule(vec![news(10)], 20), raised);
    let page = site.issue(20, "http://a.org/");
    assert_eq!(page.visit_after, Some(at(1_000)));
    assert_eq!(page.record.signals.len(), 1);
    // The evaluator ignores the signal: the page still waits, and the same signal has no further effect.
    site.finish(&page, considered(None, Some(5_000)), 20);
    site.waits(20, 1_000);
    assert_eq!(site.schedule(vec![news(10)], 30), [ScheduleResult::Known]);
    site.reopen();
    assert_eq!(site.schedule(vec![news(25)], 40), raised);
    let page = site.issue(40, "http://a.org/");
    assert_eq!(page.visit_after, Some(at(1_000)));
    assert_eq!(page.record.signals.len(), 2);
    // The evaluator makes the page due now.
    site.finish(&page, considered(Some(0), Some(0)), 40);
    let page = site.issue(40, "http://a.org/");
    assert_eq!((page.visit_after, page.overdue), (None, ZERO));
}

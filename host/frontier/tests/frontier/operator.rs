//! Operator commands and queries: `why`, precedence, retiring and freezing, sweeps, import of URIs from other crawls.

use std::time::Duration;

use opilio_frontier::{
    Candidate, ImportedUri, LastOutcome, Next, OutOfScopeLink, Outcome, QueueState, Resolver,
    ScheduleResult, Success, SweepAction, UriState,
};

use crate::site::{Site, at, candidate, config, revisited, secs, success, uri, with_queue};

const ZERO: Duration = Duration::ZERO;

fn why(site: &mut Site, text: &str, seconds: i64) -> String {
    let canonical = candidate(text, "").canonical;
    let why = site.frontier().explain(&uri(text), &canonical, at(seconds));
    why.unwrap().to_string()
}

#[test]
fn why_names_the_filter_the_limit_or_the_state() {
    let mut site = Site::new(with_queue(|queue| queue.budget = Some(2)));
    site.schedule(
        vec![
            candidate("http://a.org/1", ""),
            candidate("http://a.org/2", "L"),
            candidate("http://a.org/3", "L"),
        ],
        0,
    );
    let check = |site: &mut Site, text: &str, seconds, part: &str| {
        let why = why(site, text, seconds);
        assert!(why.contains(part), "{text}: {why:?}, not {part:?}");
    };
    check(&mut site, "http://a.org/2", 0, "is ready to issue it");
    check(&mut site, "http://b.org/", 0, "not known");
    let page = site.issue(0, "http://a.org/1");
    check(&mut site, "http://a.org/1", 0, "being fetched");
    let refused = OutOfScopeLink {
        uri: uri("http://b.org/"),
        reason: "surt-scope: no prefix matches".to_owned(),
    };
    let success = Success {
        refused: vec![refused],
        ..Success::default()
    };
    site.finish(&page, Outcome::Succeeded(Box::new(success)), 0);
    check(
        &mut site,
        "http://b.org/",
        1,
        "surt-scope: no prefix matches",
    );
    check(&mut site, "http://b.org/", 1, "http://a.org/1");
    check(&mut site, "http://a.org/1", 1, "done since");
    check(
        &mut site,
        "http://a.org/1?sid=5",
        1,
        "counts as http://a.org/1",
    );
    check(&mut site, "http://a.org/2", 1, "waits until");
    site.frontier().freeze("org,a,", true, at(1)).unwrap();
    check(&mut site, "http://a.org/2", 5, "frozen");
    site.frontier().freeze("org,a,", false, at(5)).unwrap();
    let down = Outcome::Retry {
        status: -2,
        queue_after: 1,
        after: None,
        transfer: None,
    };
    let page = site.issue(5, "http://a.org/2");
    site.finish(&page, down, 5);
    check(
        &mut site,
        "http://a.org/2",
        6,
        "(1 back-off in a row; last failure: no connection to the server)",
    );
    site.visit(25, "http://a.org/3");
    check(&mut site, "http://a.org/2", 26, "retired by budget");
    site.frontier().set_precedence_floor(Some(3));
    site.frontier()
        .delete(&uri("http://a.org/2"), at(27))
        .unwrap();
    check(&mut site, "http://a.org/2", 27, "deleted by an operator");
}

#[test]
fn the_precedence_of_a_waiting_uri_can_be_changed() {
    let mut site = Site::new(config());
    site.schedule(
        vec![
            revisited("http://a.org/1", ""),
            candidate("http://a.org/2", "L"),
            candidate("http://b.org/1", "L"),
        ],
        0,
    );
    assert!(
        site.frontier()
            .set_precedence(&uri("http://a.org/2"), 0, at(0))
            .unwrap()
    );
    assert!(
        site.frontier()
            .set_queue_precedence("org,b,", Some(1), at(0))
            .unwrap()
    );
    site.reopen();
    site.visit(0, "http://b.org/1");
    site.visit(0, "http://a.org/2");
    let page = site.issue(2, "http://a.org/1");
    site.finish(&page, success(ZERO, Some(secs(100)), vec![]), 2);
    // Its due time stays as it is.
    assert!(
        site.frontier()
            .set_precedence(&uri("http://a.org/1"), 9, at(5))
            .unwrap()
    );
    site.waits(5, 102);
    let page = site.issue(102, "http://a.org/1");
    assert_eq!(page.record.precedence, 9);
    assert!(
        !site
            .frontier()
            .set_precedence(&uri("http://a.org/1"), 1, at(5))
            .unwrap()
    );
}

#[test]
fn a_frozen_or_retired_queue_takes_uris_and_issues_none_until_it_is_released() {
    let mut site = Site::new(config());
    site.schedule(vec![candidate("http://a.org/1", "")], 0);
    assert!(site.frontier().freeze("org,a,", true, at(0)).unwrap());
    assert!(site.frontier().retire("org,a,", true, at(0)).unwrap());
    assert!(!site.frontier().retire("org,b,", true, at(0)).unwrap());
    site.reopen();
    let added = site.schedule(vec![candidate("http://a.org/2", "")], 0);
    assert_eq!(added, [ScheduleResult::New]);
    for (state, is_frozen) in [(QueueState::Frozen, true), (QueueState::Retired, false)] {
        site.frontier().freeze("org,a,", is_frozen, at(0)).unwrap();
        let report = site.frontier().queue("org,a,", at(0)).unwrap().unwrap();
        assert_eq!((report.state, report.ready), (state, 2));
        assert_eq!(site.frontier().has_frozen().unwrap(), is_frozen);
        assert!(matches!(site.next(0), Next::Empty));
    }
    site.frontier().retire("org,a,", false, at(0)).unwrap();
    site.issue(0, "http://a.org/1");
}

#[test]
fn waking_a_queue_ends_its_back_off() {
    let mut site = Site::new(config());
    site.schedule(vec![candidate("http://a.org/1", "")], 0);
    let page = site.issue(0, "http://a.org/1");
    let down = Outcome::Retry {
        status: -2,
        queue_after: 1,
        after: Some(secs(300)),
        transfer: None,
    };
    site.finish(&page, down.clone(), 0);
    site.waits(1, 300);
    assert!(site.frontier().wake("org,a,", at(1)).unwrap());
    let page = site.issue(1, "http://a.org/1");
    // Its next failure counts as its first.
    site.finish(&page, down, 1);
    let report = site.frontier().queue("org,a,", at(1)).unwrap().unwrap();
    assert_eq!(report.failures, 1);
}

#[test]
fn overlong_waits_after_a_clock_was_ahead_are_shortened_and_other_waits_stay() {
    const YEAR: i64 = 365 * 86_400;
    let mut config = with_queue(|queue| queue.bandwidth = Some(100));
    config.bandwidth = Some(100);
    config.resolver = Some(Resolver::new(|queue| {
        let mut settings = with_queue(|queue| queue.bandwidth = Some(100)).queue;
        settings.group = (queue == "org,c,").then(|| "servers".to_owned());
        settings
    }));
    config.group.min_delay = secs(7);
    let mut site = Site::new(config);
    let uris = |of: &str| {
        let text = |page| format!("http://{of}.org/{page}");
        vec![candidate(&text(1), ""), candidate(&text(2), "")]
    };
    site.schedule(uris("b"), 0);
    let b = site.issue(0, "http://b.org/1");
    let down = Outcome::Retry {
        status: -2,
        queue_after: 1,
        after: Some(secs(250)),
        transfer: None,
    };
    site.finish(&b, down, 0);
    for queue in ["a", "c", "d"] {
        site.schedule(uris(queue), 0);
    }
    // The clock is a year ahead.
    for (second, page) in [(YEAR, "http://a.org/1"), (YEAR + 1, "http://c.org/1")] {
        let issue = site.issue(second, page);
        site.finish(&issue, success(ZERO, None, vec![]), second);
    }
    // The clock is right again. The bandwidth of the whole crawl is used up for a year.
    site.waits(10, YEAR + 2);
    assert_eq!(site.overlong_until(10), Some(YEAR + 2));
    let mut after = None;
    let mut woken = Vec::new();
    loop {
        let frontier = site.frontier();
        let part = frontier.wake_overlong(after.as_deref(), 1, at(10)).unwrap();
        woken.push((part.examined, part.woken));
        after = part.after;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(woken, [(1, 1), (1, 0), (1, 1), (1, 0), (0, 0)]);
    site.issue(10, "http://d.org/1");
    // The longest wait after one request applies, and the `Retry-After` of the server.
    site.waits(10, 20);
    site.issue(20, "http://a.org/2");
    site.issue(20, "http://c.org/2");
    site.waits(20, 250);
    site.issue(250, "http://b.org/2");
    let again = site.frontier().wake_overlong(None, 9, at(250)).unwrap();
    assert_eq!(again.woken, 0);
}

#[test]
fn only_waits_without_a_plausible_cause_count_as_overlong() {
    const YEAR: i64 = 365 * 86_400;
    let mut config = config();
    config.resolver = Some(Resolver::new(|queue| {
        let mut settings = crate::site::config().queue;
        settings.group = (queue == "org,c,").then(|| "servers".to_owned());
        settings
    }));
    config.group.min_delay = secs(7);
    let mut site = Site::new(config);
    assert_eq!(site.overlong_until(0), None, "empty store");

    let visit = |site: &mut Site, second, uri, wait| {
        let issue = site.issue(second, uri);
        assert_eq!(site.overlong_until(second), None, "URI in process");
        site.finish(&issue, success(secs(1), wait, vec![]), second);
    };
    // Due in a year by its wait.
    site.schedule(vec![revisited("http://a.org/1", "")], 0);
    visit(&mut site, 0, "http://a.org/1", Some(secs(YEAR as u64)));
    assert_eq!(site.overlong_until(1), None, "URI not due");
    // A back-off of minutes, as servers may request it.
    site.schedule(vec![candidate("http://b.org/1", "")], 1);
    let b = site.issue(1, "http://b.org/1");
    let down = Outcome::Retry {
        status: -2,
        queue_after: 1,
        after: Some(secs(290)),
        transfer: None,
    };
    site.finish(&b, down, 1);
    assert_eq!(site.overlong_until(2), None, "queue backs off");
    // The same with a clock that was a day ahead.
    site.schedule(vec![candidate("http://b.org/2", "")], 2);
    visit(&mut site, 86_400, "http://b.org/1", None);
    assert_eq!(site.overlong_until(2), Some(86_402));
    assert_eq!(
        site.overlong_until(86_400),
        None,
        "politeness delay at that time"
    );
    visit(&mut site, 86_402, "http://b.org/2", None);
    // A server group that waits since the clock was ahead, although its queue may issue.
    let pages = ["http://c.org/1", "http://c.org/2"];
    site.schedule(pages.map(|page| candidate(page, "")).to_vec(), 2);
    visit(&mut site, 86_500, "http://c.org/1", None);
    site.frontier().wake("org,c,", at(3)).unwrap();
    site.waits(3, 86_507);
    assert_eq!(site.overlong_until(3), Some(86_507));
    assert_eq!(site.overlong_until(86_501), None);
}

#[test]
fn a_sweep_examines_a_site_in_parts_and_leaves_uris_in_process() {
    let mut site = Site::new(config());
    let texts = [
        "http://a.org/1",
        "http://a.org/2",
        "http://www.a.org/3",
        "http://b.org/1",
    ];
    site.schedule(texts.map(|text| candidate(text, "L")).to_vec(), 0);
    site.issue(0, "http://a.org/1");
    let mut after = None;
    let mut counts = (0, 0);
    loop {
        let swept = site
            .frontier()
            .sweep(
                SweepAction::Forget,
                "org,a,",
                after.as_deref(),
                1,
                &|_| true,
                at(0),
            )
            .unwrap();
        counts = (counts.0 + swept.meant, counts.1 + swept.in_process);
        after = swept.after;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(counts, (2, 1));
    assert_eq!(site.frontier().statistics().discovered, 2);
    let again = site.schedule(vec![candidate("http://a.org/2", "L")], 1);
    assert_eq!(again, [ScheduleResult::New]);
}

#[test]
fn imported_uris_are_not_fetched_again_and_do_not_change_known_uris() {
    let mut site = Site::new(config());
    site.schedule(
        vec![
            candidate("http://b.org/1", "L"),
            candidate("http://b.org/2", "L"),
        ],
        0,
    );
    let known = |candidate| ImportedUri {
        candidate,
        last_outcome: LastOutcome::Succeeded,
        status: 200,
        at: at(-400),
        media_type: "text/html".to_owned(),
        payload_digest: Some([7; 20]),
        size: Some(5),
    };
    let answers = site.frontier().include(
        vec![
            known(candidate("http://a.org/once", "L")),
            known(revisited("http://a.org/again", "L")),
            // Known in this crawl, and not raised although it is an embed in the other one.
            known(candidate("http://b.org/2", "LE")),
            ImportedUri {
                last_outcome: LastOutcome::Failed,
                status: -2,
                at: at(-10),
                ..known(revisited("http://c.org/", "L"))
            },
        ],
        at(0),
    );
    let new = ScheduleResult::New;
    assert_eq!(answers.unwrap(), [new, new, ScheduleResult::Known, new]);
    let record = site.frontier().record(&uri("http://a.org/once")).unwrap();
    let record = record.unwrap();
    assert_eq!((record.state, record.status), (UriState::Done, 200));
    assert_eq!(record.digests.payload, Some([7; 20]));
    site.visit(0, "http://b.org/1");
    site.visit(2, "http://b.org/2");
    // The shortest wait after the failure, and the longest wait after the last visit.
    site.waits(3, 20);
    site.visit(20, "http://c.org/");
    site.waits(21, 600);
}

#[test]
fn forget_sole_removes_only_uris_that_no_other_seed_has_found() {
    let mut site = Site::new(config());
    let from = |seed: &str, text: &str| Candidate {
        source: Some(seed.to_owned()),
        ..candidate(text, "L")
    };
    let (one, other) = ("http://one.org/", "http://other.org/");
    site.schedule(
        vec![
            from(one, "http://a.org/sole"),
            from(one, "http://a.org/shared"),
            from(one, "http://a.org/later"),
        ],
        0,
    );
    // Found by the other seed in another batch, and after the store was closed.
    site.schedule(vec![from(other, "http://a.org/shared")], 0);
    site.reopen();
    site.schedule(vec![from(other, "http://a.org/later?form=2")], 0);
    site.schedule(vec![from(one, "http://a.org/sole")], 0);
    let swept = site
        .frontier()
        .sweep(
            SweepAction::ForgetSole,
            "",
            None,
            100,
            &|record| record.source.as_deref() == Some(one),
            at(0),
        )
        .unwrap();
    assert_eq!((swept.meant, swept.shared), (1, 2));
    let is_known = |site: &mut Site, text| site.frontier().record(&uri(text)).unwrap().is_some();
    assert!(!is_known(&mut site, "http://a.org/sole"));
    assert!(is_known(&mut site, "http://a.org/shared"));
    assert!(is_known(&mut site, "http://a.org/later"));
}

#[test]
fn forgetting_one_of_two_uris_of_a_canonical_form_keeps_the_other() {
    let mut site = Site::new(config());
    site.schedule(vec![candidate("http://a.org/1", "L")], 0);
    let forced = Candidate {
        force: true,
        ..candidate("http://a.org/1?form=2", "L")
    };
    assert_eq!(site.schedule(vec![forced], 0), [ScheduleResult::Forced]);
    let form = uri("http://a.org/1?form=2");
    assert!(site.frontier().forget(&form, at(0)).unwrap());
    let again = candidate("http://a.org/1?form=3", "L");
    assert_eq!(site.schedule(vec![again], 0), [ScheduleResult::Known]);
}

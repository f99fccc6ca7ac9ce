//! URIs that fail: their retries and probes, and the URIs that they delay.

use std::time::Duration;

use opilio_frontier::{
    Disposition, FinishResult, FrontierConfig, Next, Outcome, PREREQUISITE_FAILED,
    PREREQUISITE_UNSCHEDULABLE, QueueState, UNTIL_CHANGED, WaitLimits, WaitResolver,
};

use crate::site::{Site, at, candidate, config, revisited, secs, success, took, uri, with_queue};

const ZERO: Duration = Duration::ZERO;
const PAGE: &str = "http://a.org/1";
const OTHER: &str = "http://a.org/2";
const THIRD: &str = "http://a.org/3";

fn failed(status: i32) -> Outcome {
    Outcome::Failed {
        status,
        transfer: None,
    }
}

/// Not fetched, for a reason of unknown duration.
fn postponed(status: i32) -> Outcome {
    Outcome::Disregarded {
        status,
        reason: "quota".to_owned(),
        wait: None,
        transfer: None,
    }
}

/// A failure that may concern only the URI. After three different URIs in a row it counts as one of the server.
fn retry(status: i32) -> Outcome {
    Outcome::Retry {
        status,
        queue_after: 3,
        after: None,
        transfer: Some(took(ZERO)),
    }
}

/// Seconds until its next visit.
fn wait(finished: &FinishResult, now: i64) -> i64 {
    let again = match finished.disposition {
        Disposition::Waiting(again) => again,
        Disposition::GivenUp {
            again: Some(again), ..
        } => again,
        other => panic!("{other:?} is not a wait"),
    };
    again.as_second() - at(now).as_second()
}

/// Checks the waits after repeated failures of a page that has never been visited.
#[track_caller]
fn check_probes(mut fail: impl FnMut(&mut Site, i64) -> FinishResult) {
    let mut site = Site::new(config());
    site.schedule(vec![revisited(PAGE, "")], 0);
    let mut now = 0;
    for expected in [30, 60, 120, 240, 480, 960, 1_000, 1_000] {
        let waited = wait(&fail(&mut site, now), now);
        assert_eq!(waited, expected);
        now += waited;
        site.reopen();
    }
}

#[test]
fn an_unvisited_page_is_probed_soon_and_then_less_and_less_often_for_every_status() {
    for status in [-1, -2, -4, -6, -7, -9, -61, -62, -404, -7000] {
        check_probes(|site, now| {
            let page = site.issue(now, PAGE);
            site.finish(&page, failed(status), now)
        });
    }
    for status in [-5, -5003] {
        check_probes(|site, now| {
            let page = site.issue(now, PAGE);
            site.finish(&page, postponed(status), now)
        });
    }
}

#[test]
fn a_page_whose_attempts_are_used_up_is_probed_soon() {
    let config = with_queue(|queue| queue.max_retries = 0);
    let mut site = Site::new(config);
    site.schedule(vec![revisited(PAGE, "")], 0);
    let page = site.issue(0, PAGE);
    let finished = site.finish(&page, retry(-2), 0);
    assert!(matches!(
        finished.disposition,
        Disposition::GivenUp { tries: 1, .. }
    ));
    assert_eq!(wait(&finished, 0), 30);
}

#[test]
fn a_page_whose_prerequisites_always_fail_is_probed_soon() {
    let mut site = Site::new(config());
    site.schedule(vec![revisited(PAGE, "")], 0);
    let deferred = || Outcome::Deferred {
        prerequisites: vec![],
    };
    for _ in 0..4 {
        let page = site.issue(0, PAGE);
        site.finish(&page, deferred(), 0);
    }
    let page = site.issue(0, PAGE);
    let finished = site.finish(&page, deferred(), 0);
    assert!(matches!(
        finished.disposition,
        Disposition::GivenUp {
            status: PREREQUISITE_FAILED,
            ..
        }
    ));
    assert_eq!(wait(&finished, 0), 30);
}

#[test]
fn a_visited_page_is_probed_later_than_an_unvisited_one_and_once_at_its_usual_wait() {
    let mut site = Site::new(config());
    site.schedule(vec![revisited(PAGE, "")], 0);
    let page = site.issue(0, PAGE);
    site.finish(&page, success(ZERO, Some(secs(200)), vec![]), 0);
    let mut now = 200;
    for expected in [60, 120, 200, 400, 800, 1_000] {
        let page = site.issue(now, PAGE);
        let waited = wait(&site.finish(&page, failed(-6), now), now);
        assert_eq!(waited, expected);
        now += waited;
    }
    // The waits between probes do not replace its usual wait. A successful visit resets the probes.
    let page = site.issue(now, PAGE);
    assert_eq!(page.record.wait, Some(secs(200)));
    site.finish(&page, success(ZERO, Some(secs(40)), vec![]), now);
    let page = site.issue(now + 40, PAGE);
    let finished = site.finish(&page, failed(-6), now + 40);
    assert_eq!(wait(&finished, now + 40), 40);
}

#[test]
fn a_refused_uri_is_considered_after_the_longest_wait() {
    let mut site = Site::new(config());
    site.schedule(vec![revisited(PAGE, "")], 0);
    let page = site.issue(0, PAGE);
    let refused = Outcome::Disregarded {
        status: -5001,
        reason: "a filter".to_owned(),
        wait: Some(UNTIL_CHANGED),
        transfer: None,
    };
    assert_eq!(wait(&site.finish(&page, refused, 0), 0), 1_000);
}

#[test]
fn each_uri_may_have_waits_of_its_own() {
    let resolver = WaitResolver::new(|uri, record| WaitLimits {
        min: secs(if uri.as_str() == PAGE { 5 } else { 7 }),
        max: secs(if record.seed { 8 } else { 600 }),
    });
    let mut site = Site::new(FrontierConfig {
        wait_resolver: Some(resolver),
        ..config()
    });
    let mut seed = revisited(PAGE, "");
    seed.seed = true;
    site.schedule(vec![seed, revisited(OTHER, "")], 0);
    let mut fail = |uri, now| {
        let page = site.issue(now, uri);
        wait(&site.finish(&page, failed(-6), now), now)
    };
    assert_eq!((fail(PAGE, 0), fail(OTHER, 0)), (5, 7));
    assert_eq!((fail(PAGE, 5), fail(OTHER, 7)), (8, 14));
}

#[test]
fn a_failing_uri_does_not_delay_the_others_of_its_queue() {
    let mut site = Site::new(config());
    let uris = [PAGE, OTHER, THIRD].map(|text| candidate(text, ""));
    site.schedule(uris.to_vec(), 0);
    let page = site.issue(0, PAGE);
    let finished = site.finish(&page, retry(503), 0);
    assert_eq!(
        (finished.disposition, finished.queue_ready),
        (Disposition::Retrying { attempts: 1 }, at(2))
    );
    // Only this URI waits for the retry delay, which doubles with each attempt. The other URIs wait as after any request.
    let why = site.frontier().explain(&uri(PAGE), PAGE, at(1)).unwrap();
    let why = why.to_string();
    assert!(why.starts_with("retry at 2023-11-14T22:13:40Z"), "{why}");
    assert!(
        why.contains("last visit: status 503 after 1 attempt"),
        "{why}"
    );
    site.visit(2, OTHER);
    site.visit(4, THIRD);
    site.waits(6, 20);
    site.reopen();
    site.waits(6, 20);
    let page = site.issue(20, PAGE);
    assert_eq!((page.record.attempts, page.record.status), (1, 503));
    site.finish(&page, retry(503), 20);
    site.waits(22, 60);
    let page = site.issue(60, PAGE);
    let finished = site.finish(&page, retry(503), 60);
    assert_eq!(finished.disposition, Disposition::Retrying { attempts: 3 });
    let page = site.issue(120, PAGE);
    let finished = site.finish(&page, retry(503), 120);
    assert!(matches!(
        finished.disposition,
        Disposition::GivenUp { tries: 4, .. }
    ));
}

fn state(site: &mut Site, now: i64) -> (QueueState, u32) {
    let report = site.frontier().queue("org,a,", at(now)).unwrap().unwrap();
    (report.state, report.failures)
}

#[test]
fn different_uris_that_fail_in_a_row_make_their_queue_back_off() {
    let mut site = Site::new(config());
    let uris = ["1", "2", "3", "4", "5"].map(|page| format!("http://a.org/{page}"));
    site.schedule(uris.iter().map(|uri| candidate(uri, "")).collect(), 0);
    for (now, uri) in [(0, &uris[0]), (2, &uris[1])] {
        let page = site.issue(now, uri);
        site.finish(&page, retry(503), now);
    }
    // The row of failures is stored.
    site.reopen();
    let page = site.issue(4, &uris[2]);
    let finished = site.finish(&page, retry(-4), 4);
    assert_eq!(finished.queue_ready, at(24));
    assert_eq!(state(&mut site, 5), (QueueState::Snoozed, 1));
    // From now on each failure counts as one of the server, until a success.
    let page = site.issue(24, &uris[3]);
    let finished = site.finish(&page, retry(503), 24);
    assert_eq!(finished.queue_ready, at(64));
    site.visit(64, &uris[4]);
    let page = site.issue(66, &uris[2]);
    let finished = site.finish(&page, retry(503), 66);
    assert_eq!(finished.queue_ready, at(68));
    assert_eq!(state(&mut site, 68), (QueueState::Ready, 0));
}

#[test]
fn a_uri_counts_once_in_a_row_of_failures_and_a_success_ends_the_row() {
    let mut site = Site::new(config());
    let uris = [PAGE, OTHER, THIRD].map(|text| candidate(text, ""));
    site.schedule(uris[..1].to_vec(), 0);
    for now in [0, 20, 60] {
        let page = site.issue(now, PAGE);
        site.finish(&page, retry(503), now);
        assert_eq!(state(&mut site, now).1, 0);
    }
    site.schedule(uris[1..].to_vec(), 60);
    let page = site.issue(62, OTHER);
    site.finish(&page, retry(503), 62);
    site.visit(64, THIRD);
    let page = site.issue(82, OTHER);
    site.finish(&page, retry(503), 82);
    assert_eq!(state(&mut site, 83).1, 0, "two in a row since the success");
    // Waking the queue ends the row, too.
    assert!(site.frontier().wake("org,a,", at(83)).unwrap());
}

#[test]
fn a_failing_prerequisite_makes_its_queue_back_off() {
    let mut site = Site::new(config());
    site.schedule(vec![candidate(PAGE, ""), candidate(OTHER, "")], 0);
    let page = site.issue(0, PAGE);
    let prerequisites = vec![candidate("http://a.org/robots.txt", "P")];
    site.finish(&page, Outcome::Deferred { prerequisites }, 0);
    let robots = site.issue(0, "http://a.org/robots.txt");
    let finished = site.finish(&robots, retry(503), 0);
    assert_eq!(finished.queue_ready, at(20));
    site.issue(20, "http://a.org/robots.txt");
}

#[test]
fn a_reserved_queue_waits_after_its_release_and_after_a_sudden_death() {
    let robots = uri("http://a.org/robots.txt");
    let take = |site: &mut Site, now| site.frontier().reserve_queue("org,a,", &robots, at(now));
    let mut site = Site::new(config());
    // The queue has held no URI yet.
    assert_eq!(take(&mut site, 0).unwrap(), None);
    site.schedule(vec![candidate(PAGE, ""), candidate(OTHER, "")], 0);
    assert!(!matches!(site.next(0), Next::Issue(_)));
    site.frontier()
        .release_queue("org,a,", secs(1), at(1))
        .unwrap();
    site.waits(1, 3);
    site.visit(3, PAGE);
    assert_eq!(take(&mut site, 4).unwrap(), Some(at(5)));
    assert_eq!(take(&mut site, 5).unwrap(), None);
    // After a sudden death the duration of the request is unknown, so the longest delay applies.
    site.reopen();
    site.waits(6, 16);
    assert_eq!(take(&mut site, 7).unwrap(), Some(at(16)));
    site.reopen();
    site.waits(8, 16);
    site.visit(16, OTHER);
}

#[test]
fn a_page_whose_prerequisite_cannot_be_stored_fails_at_once() {
    let mut site = Site::new(config());
    site.schedule(vec![revisited(PAGE, "")], 0);
    let page = site.issue(0, PAGE);
    let login = format!("http://a.org/{}", "x".repeat(62_000));
    let deferred = Outcome::Deferred {
        prerequisites: vec![candidate(&login, "P")],
    };
    let finished = site.finish(&page, deferred, 0);
    assert!(
        matches!(
            finished.disposition,
            Disposition::GivenUp {
                status: PREREQUISITE_UNSCHEDULABLE,
                tries: 1,
                ..
            }
        ),
        "{finished:?}"
    );
}

//! Stories: each test plays one situation of a crawl.

use std::time::Duration;

use opilio_frontier::{
    Candidate, ContentState, Digests, Directive, Disposition, FinishResult, FrontierConfig,
    FrontierError, LastOutcome, Next, Outcome, PREREQUISITE_FAILED, QueueSettings, QueueState,
    Refusal, ScheduleResult, Success, UNTIL_CHANGED, UriState, Validators, VisitUpdate,
};

use crate::site::{Site, at, candidate, config, revisited, secs, success, took, uri, with_queue};

const ZERO: Duration = Duration::ZERO;

fn retry(status: i32, after: Option<Duration>) -> Outcome {
    Outcome::Retry {
        status,
        queue_after: 1,
        after,
        transfer: Some(took(ZERO)),
    }
}

#[test]
fn a_new_store_is_empty() {
    let mut site = Site::new(config());
    site.is_empty(0);
    assert_eq!(
        site.frontier().statistics(),
        opilio_frontier::Statistics::default()
    );
}

#[test]
fn a_uri_is_scheduled_once_and_issued_once() {
    let mut site = Site::new(config());
    let twice = vec![
        candidate("http://a.org/1", ""),
        candidate("http://a.org/1", "L"),
    ];
    assert_eq!(
        site.schedule(twice, 0),
        [ScheduleResult::New, ScheduleResult::Known]
    );
    assert_eq!(
        site.schedule(vec![candidate("http://a.org/1", "L")], 1),
        [ScheduleResult::Known]
    );
    site.visit(1, "http://a.org/1");
    assert_eq!(
        site.schedule(vec![candidate("http://a.org/1", "L")], 9),
        [ScheduleResult::Known]
    );
    site.is_empty(100);
}

#[test]
fn equal_canonical_forms_are_one_document() {
    let mut site = Site::new(config());
    let equal = vec![
        candidate("http://a.org/1?sid=1", ""),
        candidate("http://a.org/1?sid=2", "L"),
        candidate("http://a.org/1", "L"),
    ];
    assert_eq!(
        site.schedule(equal, 0),
        [
            ScheduleResult::New,
            ScheduleResult::Known,
            ScheduleResult::Known
        ]
    );
    site.visit(1, "http://a.org/1?sid=1");
    site.is_empty(100);
}

#[test]
fn a_redirect_to_a_uri_of_the_same_canonical_form_is_followed() {
    let mut site = Site::new(config());
    site.schedule(vec![candidate("http://a.org/", "")], 0);
    let issue = site.issue(0, "http://a.org/");
    let target = candidate("http://a.org/?lang=en", "R");
    let finished = site.finish(
        &issue,
        success(
            ZERO,
            None,
            vec![target, candidate("http://a.org/?sid=5", "L")],
        ),
        0,
    );
    assert_eq!(
        finished.scheduled,
        [ScheduleResult::New, ScheduleResult::Known]
    );
    let mut issue = site.issue(2, "http://a.org/?lang=en");
    // Redirects to ever new sessions are followed a limited number of times.
    let mut hops = "RR".to_owned();
    for session in 0.. {
        let target = candidate(&format!("http://a.org/?sid={session}"), &hops);
        let text = target.uri.to_string();
        let finished = site.finish(&issue, success(ZERO, None, vec![target]), 10 + session);
        if finished.scheduled == [ScheduleResult::Known] {
            assert_eq!(session, 4);
            break;
        }
        issue = site.issue(20 + session, &text);
        hops.push('R');
    }
}

#[test]
fn a_queue_has_one_uri_in_process_and_waits_after_it() {
    let mut site = Site::new(config());
    site.schedule(
        vec![
            candidate("http://a.org/1", ""),
            candidate("http://a.org/2", ""),
        ],
        0,
    );
    let issue = site.issue(0, "http://a.org/1");
    assert!(matches!(site.next(5), Next::InProcess));
    // Twice the three seconds of the fetch.
    let finished = site.finish(&issue, success(secs(3), None, vec![]), 5);
    assert_eq!(finished.queue_ready, at(11));
    site.waits(6, 11);
    site.visit(11, "http://a.org/2");
    site.is_empty(11);
}

#[test]
fn the_queue_that_has_been_ready_longest_goes_first() {
    let mut site = Site::new(config());
    for (second, text) in [
        "http://c.org/1",
        "http://b.org/1",
        "http://a.org/1",
        "http://c.org/2",
    ]
    .iter()
    .enumerate()
    {
        site.schedule(vec![candidate(text, "")], second.try_into().unwrap());
    }
    let c = site.issue(10, "http://c.org/1");
    let b = site.issue(10, "http://b.org/1");
    site.finish(
        &b,
        success(ZERO, None, vec![candidate("http://b.org/2", "L")]),
        10,
    );
    site.finish(&c, success(ZERO, None, vec![]), 11);
    site.issue(20, "http://a.org/1");
    site.issue(20, "http://b.org/2");
    site.issue(20, "http://c.org/2");
}

#[test]
fn within_a_queue_directive_precedence_and_arrival_decide() {
    let mut site = Site::new(with_queue(|queue| queue.politeness.min_delay = ZERO));
    let with = |text, hops, directive, precedence| Candidate {
        directive,
        precedence,
        ..candidate(text, hops)
    };
    site.schedule(
        vec![
            with("http://a.org/normal5", "L", Directive::Normal, 5),
            with("http://a.org/normal200", "L", Directive::Normal, 200),
            with("http://a.org/normal5b", "L", Directive::Normal, 5),
            with("http://a.org/redirect", "LR", Directive::Normal, 9),
            with("http://a.org/embed", "LE", Directive::Normal, 1),
            with("http://a.org/embedded-deeply", "LEE", Directive::Normal, 1),
            with("http://a.org/high", "L", Directive::High, 200),
            // Highest is for prerequisites only: a link with it counts as high.
            with("http://a.org/pretender", "L", Directive::Highest, 201),
            with("http://a.org/robots.txt", "P", Directive::Highest, 250),
        ],
        0,
    );
    for text in [
        "robots.txt",
        "high",
        "pretender",
        "embed",
        "redirect",
        "embedded-deeply",
        "normal5",
        "normal5b",
        "normal200",
    ] {
        site.visit(1, &format!("http://a.org/{text}"));
    }
}

#[test]
fn a_link_found_again_as_an_embed_is_raised() {
    let mut site = Site::new(config());
    site.schedule(
        vec![
            candidate("http://a.org/1", "L"),
            candidate("http://a.org/2", "L"),
        ],
        0,
    );
    assert_eq!(
        site.schedule(vec![candidate("http://a.org/2?x", "LE")], 1),
        [ScheduleResult::Raised(Directive::Medium)]
    );
    assert_eq!(
        site.schedule(vec![candidate("http://a.org/2", "LE")], 1),
        [ScheduleResult::Known]
    );
    site.visit(1, "http://a.org/2");
}

#[test]
fn a_found_uri_keeps_its_due_time_unless_it_is_forced_or_high() {
    let mut site = Site::new(config());
    let text = "http://a.org/1";
    site.schedule(vec![revisited(text, "")], 0);
    let issue = site.issue(0, text);
    let finished = site.finish(&issue, success(ZERO, Some(secs(100)), vec![]), 0);
    assert_eq!(finished.disposition, Disposition::Waiting(at(100)));
    for hops in ["", "L", "LE", "LR"] {
        assert_eq!(
            site.schedule(vec![revisited(text, hops)], 1),
            [ScheduleResult::Known]
        );
        site.waits(10, 100);
    }
    let high = Candidate {
        directive: Directive::High,
        ..revisited(text, "L")
    };
    assert_eq!(
        site.schedule(vec![high], 20),
        [ScheduleResult::Raised(Directive::High)]
    );
    let issue = site.issue(20, text);
    assert_eq!((issue.due, issue.overdue), (at(20), ZERO));
    site.finish(&issue, success(ZERO, Some(secs(100)), vec![]), 20);
    site.waits(21, 120);
    let forced = Candidate {
        force: true,
        ..revisited(text, "L")
    };
    assert_eq!(site.schedule(vec![forced], 30), [ScheduleResult::Forced]);
    let issue = site.issue(35, text);
    assert_eq!(issue.overdue, secs(5));
    // The directive was for one fetch.
    assert!(
        matches!(
            issue.record.state,
            UriState::Queued {
                directive: Directive::Normal,
                ..
            }
        ),
        "{:?}",
        issue.record.state
    );
}

#[test]
fn force_queues_a_uri_that_is_done() {
    let mut site = Site::new(config());
    site.schedule(vec![candidate("http://a.org/1", "")], 0);
    site.visit(0, "http://a.org/1");
    let forced = |text| Candidate {
        force: true,
        ..candidate(text, "L")
    };
    assert_eq!(
        site.schedule(vec![forced("http://a.org/1")], 5),
        [ScheduleResult::Forced]
    );
    site.visit(5, "http://a.org/1");
    // Another URI of a known canonical form is fetched as it was given.
    assert_eq!(
        site.schedule(vec![forced("http://a.org/1?form=2")], 10),
        [ScheduleResult::Forced]
    );
    site.visit(10, "http://a.org/1?form=2");
    site.is_empty(10);
}

#[test]
fn revisits_are_issued_when_due_with_their_history() {
    let mut site = Site::new(config());
    let text = "http://a.org/1";
    site.schedule(vec![revisited(text, "")], 0);
    let states = [
        ContentState::New,
        ContentState::Changed,
        ContentState::Unchanged,
        ContentState::Unknown,
        ContentState::Unchanged,
    ];
    let mut due = 0;
    for (visits, state) in (0u64..).zip(states) {
        let issue = site.issue(due + 7, text);
        assert_eq!((issue.due, issue.overdue), (at(due), secs(7)));
        assert_eq!(issue.record.visits, visits);
        assert_eq!(issue.record.wait, (visits > 0).then_some(secs(50)));
        let visit = VisitUpdate {
            status: if visits == 4 { 304 } else { 200 },
            state,
            size: Some(10),
            digests: (visits == 0).then_some(Digests {
                payload: Some([7; 20]),
                stripped: None,
            }),
            validators: (visits == 1).then(|| Validators {
                etag: Some("\"x\"".to_owned()),
                last_modified: None,
            }),
            ..VisitUpdate::default()
        };
        let success = Success {
            visit,
            wait: Some(secs(50)),
            outlinks: vec![],
            transfer: took(ZERO),
            ..Success::default()
        };
        site.finish(&issue, Outcome::Succeeded(Box::new(success)), due + 8);
        due += 58;
        site.waits(due - 1, due);
    }
    let record = site.frontier().record(&uri(text)).unwrap().unwrap();
    assert_eq!(
        (record.visits, record.versions, record.history.len()),
        (5, 2, 3)
    );
    assert_eq!(
        (record.history[0].status, record.history[2].state),
        (304, ContentState::Unchanged)
    );
    assert_eq!(record.digests.payload, Some([7; 20]));
    assert_eq!(record.validators.etag.as_deref(), Some("\"x\""));
    let statistics = site.frontier().statistics();
    assert_eq!(
        (
            statistics.succeeded,
            statistics.visits,
            statistics.finished()
        ),
        (1, 5, 1)
    );
    let revisits = statistics.revisits;
    assert_eq!(
        (
            revisits.changed,
            revisits.unchanged,
            revisits.not_modified,
            revisits.unknown
        ),
        (1, 1, 1, 1)
    );
    assert_eq!(
        (
            statistics.bytes.novel,
            statistics.bytes.unchanged,
            statistics.bytes.unknown
        ),
        (20, 20, 10)
    );
}

#[test]
fn an_urgent_uri_due_later_does_not_hide_an_ordinary_one_due_now() {
    let mut site = Site::new(config());
    let urgent = Candidate {
        precedence: 0,
        ..revisited("http://a.org/urgent", "")
    };
    site.schedule(
        vec![
            urgent,
            Candidate {
                precedence: 9,
                ..revisited("http://a.org/ordinary", "")
            },
        ],
        0,
    );
    let issue = site.issue(0, "http://a.org/urgent");
    site.finish(&issue, success(ZERO, Some(secs(1000)), vec![]), 0);
    let issue = site.issue(10, "http://a.org/ordinary");
    site.finish(&issue, success(ZERO, Some(secs(500)), vec![]), 10);
    site.waits(11, 510);
    // Once both are due, precedence decides.
    let issue = site.issue(2000, "http://a.org/urgent");
    assert_eq!(issue.overdue, secs(1000));
}

#[test]
fn prerequisites_go_first_and_cost_no_delay_without_a_web_request() {
    let mut site = Site::new(config());
    site.schedule(
        vec![
            candidate("http://a.org/1", ""),
            candidate("http://a.org/2", ""),
        ],
        0,
    );
    let issue = site.issue(0, "http://a.org/1");
    let prerequisites = vec![candidate("http://a.org/robots.txt", "P")];
    let finished = site.finish(&issue, Outcome::Deferred { prerequisites }, 0);
    assert_eq!(
        (finished.disposition, finished.queue_ready),
        (Disposition::Deferred, at(0))
    );
    assert_eq!(finished.scheduled, [ScheduleResult::New]);
    // The prerequisite has one of its own, which goes before it.
    let robots = site.issue(0, "http://a.org/robots.txt");
    site.finish(
        &robots,
        Outcome::Deferred {
            prerequisites: vec![candidate("dns:a.org", "PP")],
        },
        0,
    );
    let dns = site.issue(0, "dns:a.org");
    site.finish(&dns, success(secs(4), None, vec![]), 1);
    let robots = site.issue(1, "http://a.org/robots.txt");
    site.finish(&robots, success(ZERO, None, vec![]), 1);
    site.waits(1, 3);
    let issue = site.issue(3, "http://a.org/1");
    assert_eq!(issue.record.deferrals, 1);
}

#[test]
fn an_expired_prerequisite_is_fetched_again() {
    let mut site = Site::new(config());
    site.schedule(
        vec![
            candidate("http://a.org/robots.txt", "P"),
            candidate("http://a.org/1", ""),
        ],
        0,
    );
    site.visit(0, "http://a.org/robots.txt");
    let issue = site.issue(5, "http://a.org/1");
    let prerequisites = vec![candidate("http://a.org/robots.txt", "P")];
    let finished = site.finish(&issue, Outcome::Deferred { prerequisites }, 5);
    assert_eq!(
        finished.scheduled,
        [ScheduleResult::Raised(Directive::Highest)]
    );
    site.visit(5, "http://a.org/robots.txt");
    site.visit(7, "http://a.org/1");
    site.is_empty(9);
}

#[test]
fn a_prerequisite_goes_into_the_queue_that_needs_it() {
    let mut site = Site::new(config());
    let elsewhere = Candidate {
        queue: "elsewhere".to_owned(),
        ..candidate("dns:a.org", "P")
    };
    site.schedule(vec![elsewhere.clone(), candidate("http://a.org/1", "")], 0);
    // The prerequisite is in process in another queue, so the queue that depends on it waits for a moment.
    let dns = site.issue(0, "dns:a.org");
    let issue = site.issue(0, "http://a.org/1");
    let finished = site.finish(
        &issue,
        Outcome::Deferred {
            prerequisites: vec![elsewhere.clone()],
        },
        0,
    );
    assert_eq!(
        (finished.scheduled, finished.queue_ready),
        (vec![ScheduleResult::Known], at(1))
    );
    site.finish(&dns, success(ZERO, None, vec![]), 0);
    let issue = site.issue(1, "http://a.org/1");
    site.finish(
        &issue,
        Outcome::Deferred {
            prerequisites: vec![elsewhere],
        },
        1,
    );
    let dns = site.issue(1, "dns:a.org");
    assert_eq!(dns.queue, "org,a,");
}

#[test]
fn a_loop_of_prerequisites_ends_with_a_failure() {
    let mut site = Site::new(config());
    site.schedule(vec![candidate("http://a.org/1", "")], 0);
    for round in 1..=5 {
        let issue = site.issue(round, "http://a.org/1");
        let FinishResult { disposition, .. } = site.finish(
            &issue,
            Outcome::Deferred {
                prerequisites: vec![],
            },
            round,
        );
        if round <= 4 {
            assert_eq!(disposition, Disposition::Deferred);
        } else {
            assert_eq!(
                disposition,
                Disposition::GivenUp {
                    status: PREREQUISITE_FAILED,
                    tries: 5,
                    again: None
                }
            );
        }
    }
    site.is_empty(10);
    assert_eq!(site.frontier().statistics().failed, 1);
}

#[test]
fn the_queue_of_a_host_that_is_down_backs_off_and_makes_one_request_at_a_time() {
    let mut site = Site::new(config());
    site.schedule(
        vec![
            candidate("http://a.org/1", ""),
            candidate("http://a.org/2", ""),
            candidate("http://b.org/1", ""),
        ],
        0,
    );
    let a1 = site.issue(0, "http://a.org/1");
    let finished = site.finish(&a1, retry(-2, None), 0);
    assert_eq!(
        (finished.disposition, finished.queue_ready),
        (Disposition::Retrying { attempts: 1 }, at(20))
    );
    site.visit(1, "http://b.org/1");
    site.waits(1, 20);
    // The other URIs of the queue go before the retry. The back-off doubles.
    let a2 = site.issue(20, "http://a.org/2");
    assert_eq!(site.finish(&a2, retry(-2, None), 20).queue_ready, at(60));
    let a1 = site.issue(60, "http://a.org/1");
    assert_eq!((a1.record.attempts, a1.record.status), (1, -2));
    assert_eq!(site.finish(&a1, retry(-2, None), 60).queue_ready, at(120));
    // A success ends the back-off.
    site.visit(120, "http://a.org/2");
    let a1 = site.issue(122, "http://a.org/1");
    assert_eq!(site.finish(&a1, retry(-2, None), 122).queue_ready, at(142));
    let a1 = site.issue(142, "http://a.org/1");
    let finished = site.finish(&a1, retry(503, None), 142);
    assert_eq!(
        finished.disposition,
        Disposition::GivenUp {
            status: 503,
            tries: 4,
            again: None
        }
    );
    assert_eq!(finished.queue_ready, at(182));
    let record = site
        .frontier()
        .record(&uri("http://a.org/1"))
        .unwrap()
        .unwrap();
    assert_eq!(
        (record.last_outcome, record.status, record.state),
        (LastOutcome::Failed, 503, UriState::Done)
    );
    site.is_empty(200);
}

#[test]
fn retry_after_is_respected_up_to_its_cap() {
    let mut site = Site::new(config());
    site.schedule(vec![candidate("http://a.org/1", "")], 0);
    let issue = site.issue(0, "http://a.org/1");
    assert_eq!(
        site.finish(&issue, retry(429, Some(secs(200))), 0)
            .queue_ready,
        at(200)
    );
    let issue = site.issue(200, "http://a.org/1");
    assert_eq!(
        site.finish(&issue, retry(429, Some(secs(86_400))), 200)
            .queue_ready,
        at(500)
    );
}

#[test]
fn a_crawl_delay_is_kept_with_its_queue() {
    let mut site = Site::new(config());
    site.schedule(
        vec![
            candidate("http://a.org/1", ""),
            candidate("http://a.org/2", ""),
        ],
        0,
    );
    let issue = site.issue(0, "http://a.org/1");
    site.frontier()
        .set_crawl_delay("org,a,", Some(secs(30)), at(0))
        .unwrap();
    assert_eq!(
        site.finish(&issue, success(ZERO, None, vec![]), 0)
            .queue_ready,
        at(30)
    );
    site.reopen();
    site.waits(1, 30);
    assert_eq!(site.visit(30, "http://a.org/2").queue_ready, at(60));
}

#[test]
fn failed_and_disregarded_uris_are_probed_under_revisit_only() {
    let mut site = Site::new(config());
    let failed = |status| Outcome::Failed {
        status,
        transfer: None,
    };
    site.schedule(
        vec![
            revisited("http://a.org/1", ""),
            revisited("http://a.org/2", ""),
            candidate("http://a.org/3", ""),
        ],
        0,
    );
    let issue = site.issue(0, "http://a.org/1");
    let finished = site.finish(&issue, failed(-1), 0);
    assert_eq!(
        (finished.disposition, finished.queue_ready),
        (Disposition::Waiting(at(30)), at(0))
    );
    let issue = site.issue(0, "http://a.org/2");
    let disregarded = Outcome::Disregarded {
        reason: "a filter".to_owned(),
        status: -5001,
        wait: Some(UNTIL_CHANGED),
        transfer: None,
    };
    assert_eq!(
        site.finish(&issue, disregarded, 0).disposition,
        Disposition::Waiting(at(1_000))
    );
    let issue = site.issue(0, "http://a.org/3");
    assert_eq!(
        site.finish(&issue, failed(-1), 0).disposition,
        Disposition::Done
    );
    let statistics = site.frontier().statistics();
    assert_eq!(
        (statistics.failed, statistics.disregarded, statistics.queued),
        (2, 1, 2)
    );
    site.waits(1, 30);
    // A probe that succeeds is not a failure any more.
    let issue = site.issue(30, "http://a.org/1");
    site.finish(&issue, success(ZERO, Some(secs(9)), vec![]), 30);
    let statistics = site.frontier().statistics();
    assert_eq!(
        (
            statistics.succeeded,
            statistics.failed,
            statistics.finished()
        ),
        (1, 1, 3)
    );
}

#[test]
fn a_uri_disregarded_until_a_known_time_is_due_then_or_after_the_longest_wait() {
    let mut site = Site::new(config());
    let uris = ["http://a.org/1", "http://a.org/2", "http://a.org/3"];
    let snapshot = candidate(uris[2], "");
    site.schedule(
        vec![revisited(uris[0], ""), revisited(uris[1], ""), snapshot],
        0,
    );
    let mut disregard = |uri, wait| {
        let outcome = Outcome::Disregarded {
            reason: "robots".to_owned(),
            status: -9998,
            wait: Some(secs(wait)),
            transfer: None,
        };
        let issue = site.issue(0, uri);
        site.finish(&issue, outcome, 0).disposition
    };
    assert_eq!(disregard(uris[0], 60), Disposition::Waiting(at(60)));
    // The longest wait applies, however long the robots.txt is valid.
    assert_eq!(disregard(uris[1], 9_999), Disposition::Waiting(at(1_000)));
    assert_eq!(disregard(uris[2], 60), Disposition::Done);
    site.issue(60, uris[0]);
}

#[test]
fn after_reopening_a_uri_in_process_is_queued_again_and_its_queue_waits() {
    let mut site = Site::new(config());
    site.schedule(
        vec![
            candidate("http://a.org/1", ""),
            candidate("http://b.org/1", ""),
        ],
        0,
    );
    let lost = site.issue(0, "http://a.org/1");
    site.reopen();
    assert_eq!(
        (
            site.frontier().statistics().in_process,
            site.frontier().statistics().queued
        ),
        (0, 2)
    );
    let error = site
        .frontier()
        .finished(lost.ticket, success(ZERO, None, vec![]), at(1))
        .unwrap_err();
    assert!(
        matches!(error, FrontierError::UnknownTicket(_)),
        "{error:?}"
    );
    site.visit(50, "http://b.org/1");
    // The end of its request is unknown, so the longest delay counts from the first call with a time.
    site.waits(50, 60);
    site.reopen();
    site.waits(51, 60);
    let again = site.issue(60, "http://a.org/1");
    assert_ne!(again.ticket, lost.ticket);
    assert_eq!(again.due, at(0));
}

#[test]
fn a_politeness_delay_survives_reopening() {
    let mut site = Site::new(config());
    site.schedule(
        vec![
            candidate("http://a.org/1", ""),
            candidate("http://a.org/2", ""),
        ],
        0,
    );
    let issue = site.issue(0, "http://a.org/1");
    site.finish(&issue, retry(503, Some(secs(250))), 0);
    site.reopen();
    site.waits(0, 250);
}

#[test]
fn queues_of_lower_precedence_go_first() {
    let mut site = Site::new(config());
    site.schedule(vec![candidate("http://a.org/1", "")], 0);
    // A queue keeps its precedence until it changes. The new configuration applies to queues that change from now on.
    site.reopen_with(FrontierConfig {
        queue: QueueSettings {
            precedence: 1,
            ..config().queue
        },
        ..config()
    });
    site.schedule(vec![candidate("http://b.org/1", "")], 5);
    let precedences: Vec<_> = site
        .frontier()
        .queues(None, 10, at(5))
        .unwrap()
        .into_iter()
        .map(|report| report.precedence)
        .collect();
    assert_eq!(precedences, [3, 1]);
    site.reopen();
    site.issue(5, "http://b.org/1");
    site.issue(5, "http://a.org/1");
}

#[test]
fn invalid_names_are_refused_and_change_nothing() {
    let mut site = Site::new(config());
    for name in ["", &"n".repeat(70_000)] {
        let error = site
            .frontier()
            .put_caller_value(name, b"value")
            .unwrap_err();
        assert!(
            matches!(error, FrontierError::Name { bytes } if bytes == name.len()),
            "{error:?}"
        );
        let error = site
            .frontier()
            .set_crawl_delay(name, None, at(0))
            .unwrap_err();
        assert!(matches!(error, FrontierError::Name { .. }), "{error:?}");
        assert_eq!(site.frontier().caller_value(name).unwrap(), None);
    }
    let long = format!("http://a.org/{}", "x".repeat(62_000));
    assert_eq!(
        site.schedule(vec![candidate(&long, "")], 0),
        [ScheduleResult::Refused(Refusal::UriTooLong)]
    );
    assert!(site.frontier().record(&uri(&long)).unwrap().is_none());
    assert!(!site.frontier().forget(&uri(&long), at(0)).unwrap());
    site.is_empty(0);
}

#[test]
fn reports_show_the_states_of_queues() {
    let mut site = Site::new(config());
    let mut seeds: Vec<_> = ["a", "b", "c", "d"]
        .iter()
        .map(|host| candidate(&format!("http://{host}.org/"), ""))
        .collect();
    seeds.push(candidate("http://d.org/2", ""));
    site.schedule(seeds, 0);
    site.visit(0, "http://a.org/");
    let b = site.issue(0, "http://b.org/");
    let c = site.issue(0, "http://c.org/");
    site.finish(&c, success(ZERO, Some(secs(500)), vec![]), 0);
    let states: Vec<_> = site
        .frontier()
        .queues(None, 10, at(1))
        .unwrap()
        .into_iter()
        .map(|report| report.state)
        .collect();
    assert_eq!(
        states,
        [
            QueueState::Exhausted,
            QueueState::InProcess,
            QueueState::Snoozed,
            QueueState::Ready
        ]
    );
    let page = site.frontier().queues(Some("org,b,"), 1, at(1)).unwrap();
    assert_eq!(
        (page[0].queue.as_str(), page[0].waiting, page[0].wake),
        ("org,c,", 1, Some(at(500)))
    );
    let _ = b;
}

#[test]
fn records_are_listed_by_site() {
    let mut site = Site::new(config());
    let texts = [
        "http://b.org/",
        "http://www.a.org/x",
        "https://a.org/",
        "http://a.org/",
    ];
    site.schedule(texts.iter().map(|text| candidate(text, "")).collect(), 0);
    let listed: Vec<_> = site
        .frontier()
        .records("org,a,")
        .map(|record| record.unwrap().uri)
        .collect();
    assert_eq!(
        listed,
        ["http://a.org/", "https://a.org/", "http://www.a.org/x"]
    );
}

#[test]
fn a_forgotten_uri_can_be_found_again_and_a_deleted_one_cannot() {
    let mut site = Site::new(config());
    let text = "http://a.org/1?x";
    site.schedule(vec![candidate(text, "")], 0);
    assert!(site.frontier().forget(&uri(text), at(1)).unwrap());
    assert!(!site.frontier().forget(&uri(text), at(1)).unwrap());
    assert_eq!(
        site.frontier().statistics(),
        opilio_frontier::Statistics::default()
    );
    site.is_empty(1);
    assert_eq!(
        site.schedule(vec![candidate(text, "")], 2),
        [ScheduleResult::New]
    );
    assert!(site.frontier().delete(&uri(text), at(2)).unwrap());
    site.is_empty(2);
    assert_eq!(
        site.schedule(vec![candidate(text, "E")], 3),
        [ScheduleResult::Known]
    );
    site.is_empty(3);
    assert_eq!(
        site.schedule(
            vec![Candidate {
                force: true,
                ..candidate(text, "")
            }],
            4
        ),
        [ScheduleResult::Forced]
    );
    let issue = site.issue(4, text);
    assert!(
        !site.frontier().forget(&uri(text), at(4)).unwrap(),
        "a URI in process"
    );
    site.finish(&issue, success(ZERO, None, vec![]), 4);
    assert!(site.frontier().forget(&uri(text), at(4)).unwrap());
    assert_eq!(site.frontier().statistics().finished(), 0);
}

#[test]
fn forgetting_the_first_waiting_uri_lets_the_queue_sleep_longer() {
    let mut site = Site::new(config());
    site.schedule(
        vec![
            revisited("http://a.org/1", ""),
            revisited("http://a.org/2", ""),
        ],
        0,
    );
    for (second, text, wait) in [(0, "http://a.org/1", 100), (10, "http://a.org/2", 200)] {
        let issue = site.issue(second, text);
        site.finish(&issue, success(ZERO, Some(secs(wait)), vec![]), second);
    }
    site.waits(20, 100);
    site.frontier()
        .forget(&uri("http://a.org/1"), at(20))
        .unwrap();
    site.waits(20, 210);
    site.reopen();
    site.waits(20, 210);
}

#[test]
fn candidates_with_invalid_queue_names_are_refused_with_the_reason() {
    let mut site = Site::new(config());
    for queue in ["", "a\0b", &"q".repeat(2_000)] {
        let malformed = Candidate {
            queue: queue.to_owned(),
            ..candidate("http://a.org/1", "")
        };
        assert_eq!(
            site.schedule(vec![malformed], 0),
            [ScheduleResult::Refused(Refusal::QueueName)]
        );
    }
    site.is_empty(0);
}

#[test]
fn a_long_context_is_cut_between_characters() {
    let mut site = Site::new(config());
    site.schedule(
        vec![Candidate {
            context: "ä".repeat(300),
            ..candidate("http://a.org/1", "")
        }],
        0,
    );
    let issue = site.issue(0, "http://a.org/1");
    assert_eq!(issue.record.context, "ä".repeat(100));
}

#[test]
fn caller_values_are_kept_under_their_names() {
    let mut site = Site::new(config());
    assert_eq!(
        site.frontier().caller_value("robots:http://a.org").unwrap(),
        None
    );
    site.frontier()
        .put_caller_value("robots:http://a.org", b"User-agent: *")
        .unwrap();
    assert_eq!(site.frontier().identity().unwrap(), None);
    site.frontier().set_identity(b"job 7").unwrap();
    site.reopen();
    assert_eq!(
        site.frontier()
            .caller_value("robots:http://a.org")
            .unwrap()
            .unwrap(),
        b"User-agent: *"
    );
    assert_eq!(site.frontier().identity().unwrap().unwrap(), b"job 7");
}

#[test]
fn a_finished_ticket_is_unknown_and_changes_nothing() {
    let mut site = Site::new(config());
    site.schedule(
        vec![
            candidate("http://a.org/1", ""),
            candidate("http://a.org/2", ""),
        ],
        0,
    );
    let issue = site.issue(0, "http://a.org/1");
    site.finish(&issue, success(ZERO, None, vec![]), 0);
    let error = site
        .frontier()
        .finished(issue.ticket, success(ZERO, None, vec![]), at(0))
        .unwrap_err();
    assert!(
        matches!(error, FrontierError::UnknownTicket(_)),
        "{error:?}"
    );
    site.visit(2, "http://a.org/2");
}

#[test]
fn outlinks_make_their_queues_ready() {
    let mut site = Site::new(config());
    site.schedule(vec![candidate("http://a.org/1", "")], 0);
    let issue = site.issue(0, "http://a.org/1");
    let outlinks = vec![
        candidate("http://b.org/1", "L"),
        candidate("http://a.org/2", "L"),
        candidate("http://a.org/1", "L"),
    ];
    let finished = site.finish(&issue, success(ZERO, None, outlinks), 1);
    assert_eq!(
        finished.scheduled,
        [
            ScheduleResult::New,
            ScheduleResult::New,
            ScheduleResult::Known
        ]
    );
    site.visit(1, "http://b.org/1");
    site.waits(1, 3);
    site.visit(3, "http://a.org/2");
    let statistics = site.frontier().statistics();
    assert_eq!(
        (
            statistics.discovered,
            statistics.succeeded,
            statistics.queued,
            statistics.in_process
        ),
        (3, 3, 0, 0)
    );
}

//! Guarantees of queues: slots, server groups, bandwidth, precedence, budgets, quotas.

use std::time::Duration;

use opilio_frontier::{
    Candidate, FrontierConfig, GroupSettings, Next, Outcome, PrecedencePolicy, QueueSettings,
    QueueState, Quota, RequestInPassing, Resolver, RetiredBy, TallyKind, Transfer,
};

use crate::site::{Site, at, candidate, config, secs, success, took, with_queue};

const ZERO: Duration = Duration::ZERO;

fn pages(host: &str, count: usize) -> Vec<Candidate> {
    (1..=count)
        .map(|page| candidate(&format!("http://{host}/{page}"), "L"))
        .collect()
}

fn down() -> Outcome {
    Outcome::Retry {
        status: -2,
        queue_after: 1,
        after: None,
        transfer: Some(took(ZERO)),
    }
}

#[test]
fn each_slot_waits_after_its_own_fetch() {
    let mut site = Site::new(with_queue(|queue| queue.valence = 2));
    site.schedule(pages("a.org", 4), 0);
    let first = site.issue(0, "http://a.org/1");
    let second = site.issue(0, "http://a.org/2");
    assert!(matches!(site.next(0), Next::InProcess));
    site.finish(&first, success(secs(2), None, vec![]), 2);
    site.waits(2, 6);
    // The second fetch ends halfway through that wait, and does not change it.
    site.finish(&second, success(secs(4), None, vec![]), 4);
    site.waits(4, 6);
    site.issue(6, "http://a.org/3");
    site.waits(6, 12);
    site.issue(12, "http://a.org/4");
}

#[test]
fn a_host_that_is_down_gets_one_request_at_a_time_even_with_valence_3() {
    let mut site = Site::new(with_queue(|queue| queue.valence = 3));
    site.schedule(pages("a.org", 5), 0);
    let first = site.issue(0, "http://a.org/1");
    let second = site.issue(0, "http://a.org/2");
    site.finish(&first, down(), 0);
    // Even after the back-off, nothing is issued beside the URI that is still in process.
    assert!(matches!(site.next(30), Next::InProcess));
    site.finish(&second, down(), 30);
    let probe = site.issue(70, "http://a.org/3");
    assert!(matches!(site.next(70), Next::InProcess));
    // The host answers again, so all slots are usable again.
    site.finish(&probe, success(ZERO, None, vec![]), 70);
    site.issue(72, "http://a.org/4");
    site.issue(72, "http://a.org/5");
    site.issue(72, "http://a.org/1");
}

#[test]
fn nothing_is_issued_beside_a_prerequisite() {
    let mut site = Site::new(with_queue(|queue| queue.valence = 3));
    site.schedule(pages("a.org", 2), 0);
    let page = site.issue(0, "http://a.org/1");
    let prerequisites = vec![candidate("http://a.org/robots.txt", "P")];
    site.finish(&page, Outcome::Deferred { prerequisites }, 0);
    let robots = site.issue(0, "http://a.org/robots.txt");
    assert!(matches!(site.next(0), Next::InProcess));
    site.finish(&robots, success(ZERO, None, vec![]), 0);
    site.issue(0, "http://a.org/1");
}

#[test]
fn a_lowered_valence_shortens_no_wait() {
    let mut site = Site::new(with_queue(|queue| queue.valence = 2));
    site.schedule(pages("a.org", 3), 0);
    let first = site.issue(0, "http://a.org/1");
    let second = site.issue(0, "http://a.org/2");
    site.finish(&first, success(ZERO, None, vec![]), 0);
    site.finish(&second, success(secs(5), None, vec![]), 5);
    site.reopen_with(config());
    site.frontier().resolve_queues(None, 10, at(6)).unwrap();
    site.waits(6, 15);
}

#[test]
fn two_hosts_on_one_address_share_its_politeness_delay() {
    let mut site = Site::new(FrontierConfig {
        group: GroupSettings {
            valence: 1,
            min_delay: secs(5),
        },
        ..config()
    });
    for queue in ["org,a,", "org,b,"] {
        let frontier = site.frontier();
        frontier
            .set_address_group(queue, Some("192.0.2.1"), at(0))
            .unwrap();
    }
    site.schedule(pages("a.org", 1), 0);
    site.schedule(pages("b.org", 1), 0);
    site.schedule(pages("c.org", 1), 0);
    let a = site.issue(0, "http://a.org/1");
    assert_eq!(a.group.as_deref(), Some("192.0.2.1"));
    site.visit(0, "http://c.org/1");
    assert!(matches!(site.next(0), Next::InProcess));
    site.finish(&a, success(ZERO, None, vec![]), 1);
    site.waits(1, 6);
    site.reopen();
    site.waits(2, 6);
    site.issue(6, "http://b.org/1");
}

#[test]
fn a_queue_that_leaves_its_group_no_longer_waits_for_it() {
    let mut site = Site::new(with_queue(|queue| queue.group = None));
    for queue in ["org,a,", "org,b,"] {
        let frontier = site.frontier();
        frontier
            .set_address_group(queue, Some("192.0.2.1"), at(0))
            .unwrap();
    }
    site.schedule(pages("a.org", 1), 0);
    site.schedule(pages("b.org", 1), 0);
    site.issue(0, "http://a.org/1");
    assert!(matches!(site.next(0), Next::InProcess));
    site.frontier()
        .set_address_group("org,b,", None, at(1))
        .unwrap();
    site.issue(1, "http://b.org/1");
}

#[test]
fn bandwidth_is_exceeded_by_the_bytes_in_flight_at_most() {
    let sent = |bytes| {
        let transfer = Transfer {
            duration: secs(1),
            bytes,
        };
        Outcome::Failed {
            status: -1,
            transfer: Some(transfer),
        }
    };
    let mut site = Site::new(FrontierConfig {
        bandwidth: Some(100),
        ..config()
    });
    for host in ["a.org", "b.org", "c.org"] {
        site.schedule(pages(host, 1), 0);
    }
    let a = site.issue(0, "http://a.org/1");
    let b = site.issue(0, "http://b.org/1");
    // A thousand bytes since 0 use up the bandwidth until 10, and the other five hundred until 15.
    site.finish(&a, sent(1_000), 1);
    site.waits(1, 10);
    site.finish(&b, sent(500), 1);
    site.waits(1, 15);
    site.reopen();
    site.waits(2, 15);
    site.issue(15, "http://c.org/1");
}

#[test]
fn a_queue_has_a_bandwidth_of_its_own() {
    let mut site = Site::new(with_queue(|queue| queue.bandwidth = Some(10)));
    site.schedule(pages("a.org", 2), 0);
    site.schedule(pages("b.org", 1), 0);
    let a = site.issue(0, "http://a.org/1");
    site.finish(&a, success(ZERO, None, vec![]), 0);
    site.visit(0, "http://b.org/1");
    site.waits(0, 10);
}

#[test]
fn requests_in_passing_use_the_bandwidth_of_the_crawl_and_of_their_queue() {
    let request = |bytes| RequestInPassing {
        bytes,
        is_novel: true,
        transfer: Transfer {
            duration: secs(1),
            bytes,
        },
    };
    let mut site = Site::new(FrontierConfig {
        bandwidth: Some(100),
        ..config()
    });
    site.schedule(pages("a.org", 1), 0);
    // No queue has this name. A thousand bytes since 0 use up the bandwidth until 10, and a hundred more until 11.
    for bytes in [1_000, 100] {
        let frontier = site.frontier();
        frontier
            .count_in_passing(
                "org,cdn,",
                &[(TallyKind::Host, "cdn.org")],
                request(bytes),
                at(1),
            )
            .unwrap();
    }
    site.waits(1, 11);
    site.reopen();
    site.waits(2, 11);
    site.issue(11, "http://a.org/1");

    let limits = |name: &str| QueueSettings {
        bandwidth: (name == "org,a,").then_some(100),
        ..config().queue
    };
    let mut site = Site::new(FrontierConfig {
        resolver: Some(Resolver::new(limits)),
        ..config()
    });
    site.schedule(pages("a.org", 1), 0);
    site.schedule(pages("b.org", 1), 0);
    site.frontier()
        .count_in_passing("org,a,", &[], request(1_000), at(1))
        .unwrap();
    // The other queue has no limit.
    let b = site.issue(1, "http://b.org/1");
    site.finish(&b, success(ZERO, None, vec![]), 1);
    site.waits(2, 10);
    site.issue(10, "http://a.org/1");
}

#[test]
fn low_precedence_does_not_starve() {
    let issued_at = |high, ageing| {
        let by_name = move |name: &str| QueueSettings {
            precedence: if name == "org,low," { 5 } else { high },
            ..with_queue(|queue| queue.politeness.min_delay = ZERO).queue
        };
        let mut site = Site::new(FrontierConfig {
            resolver: Some(Resolver::new(by_name)),
            ageing,
            ..config()
        });
        site.schedule(pages("low.org", 1), 0);
        site.schedule(pages("high.org", 100), 0);
        (0..100).find(|&second| {
            let Next::Issue(issue) = site.next(second) else {
                panic!("nothing at {second}")
            };
            site.finish(&issue, success(ZERO, None, vec![]), second);
            issue.queue == "org,low,"
        })
    };
    assert_eq!(issued_at(3, None), None);
    // Ageing makes up the difference of two precedences in twenty seconds. Then the queue has been ready longer.
    assert_eq!(issued_at(3, Some(secs(10))), Some(30));
    // The same against a queue of the best precedence.
    assert_eq!(issued_at(0, Some(secs(10))), Some(60));
}

#[test]
fn a_queue_past_the_floor_takes_uris_and_issues_none() {
    let mut site = Site::new(config());
    site.schedule(pages("a.org", 1), 0);
    site.frontier().set_precedence_floor(Some(3));
    assert!(matches!(site.next(0), Next::Empty));
    let report = site.frontier().queue("org,a,", at(0)).unwrap().unwrap();
    assert_eq!(report.state, QueueState::Ineligible);
    // With a usual floor of 3 it would issue nothing either.
    for (usual, is_passed_over) in [(None, true), (Some(4), true), (Some(3), false)] {
        let found = site.frontier().has_below_floor(usual).unwrap();
        assert_eq!(found, is_passed_over, "{usual:?}");
    }
    site.frontier().retire("org,a,", true, at(0)).unwrap();
    assert!(!site.frontier().has_below_floor(None).unwrap());
    site.frontier().retire("org,a,", false, at(0)).unwrap();
    site.frontier().set_precedence_floor(Some(4));
    assert!(!site.frontier().has_below_floor(None).unwrap());
    site.issue(0, "http://a.org/1");
}

#[test]
fn a_spent_session_lets_inactive_queues_go_first() {
    let mut site = Site::new(FrontierConfig {
        session_budget: Some(2),
        ..with_queue(|queue| queue.politeness.min_delay = ZERO)
    });
    site.schedule(pages("a.org", 5), 0);
    site.schedule(pages("b.org", 5), 0);
    // Each queue issues two URIs in a row, not one in turn.
    for text in ["a.org/1", "a.org/2", "b.org/1", "b.org/2", "a.org/3"] {
        site.visit(1, &format!("http://{text}"));
    }
    let report = site.frontier().queue("org,b,", at(1)).unwrap().unwrap();
    assert_eq!(report.state, QueueState::Inactive);
}

#[test]
fn a_retired_queue_resumes_when_its_budget_is_raised() {
    let costly = |page: usize| Candidate {
        cost: 2,
        ..candidate(&format!("http://a.org/{page}"), "L")
    };
    let settings = |budget| FrontierConfig {
        error_penalty: 5,
        ..with_queue(|queue| queue.budget = Some(budget))
    };
    let mut site = Site::new(settings(8));
    site.schedule((1..=3).map(costly).collect(), 0);
    site.visit(0, "http://a.org/1");
    let issue = site.issue(2, "http://a.org/2");
    let failed = Outcome::Failed {
        status: -1,
        transfer: None,
    };
    site.finish(&issue, failed, 2);
    assert!(matches!(site.next(10), Next::Empty));
    let report = site.frontier().queue("org,a,", at(10)).unwrap().unwrap();
    assert_eq!(
        (report.state, report.retired_by, report.spent),
        (QueueState::Retired, Some(RetiredBy::Budget), 9)
    );
    site.reopen_with(settings(20));
    site.frontier().resolve_queues(None, 10, at(10)).unwrap();
    site.visit(10, "http://a.org/3");
}

#[test]
fn a_quota_of_ten_documents_is_never_exceeded_with_five_in_process() {
    let mut site = Site::new(with_queue(|queue| {
        queue.valence = 5;
        queue.politeness.min_delay = ZERO;
        queue.quota.fetched = Some(10);
    }));
    site.schedule(pages("a.org", 30), 0);
    let (mut busy, mut fetched, mut most) = (Vec::new(), 0, 0);
    for second in 0..60 {
        while let Next::Issue(issue) = site.next(second) {
            busy.push(issue);
        }
        most = most.max(busy.len());
        assert!(fetched + busy.len() <= 10, "{fetched} and {}", busy.len());
        if !busy.is_empty() {
            site.finish(&busy.remove(0), success(ZERO, None, vec![]), second);
            fetched += 1;
        }
    }
    assert_eq!((fetched, most), (10, 5));
    let report = site.frontier().queue("org,a,", at(60)).unwrap().unwrap();
    assert_eq!(report.retired_by, Some(RetiredBy::Quota("fetched")));
}

#[test]
fn a_uri_over_the_quota_of_its_host_domain_or_source_is_issued_with_the_reason() {
    let two = Quota {
        fetched: Some(1),
        ..Quota::default()
    };
    let of_source = |text| Candidate {
        source: Some("http://seed.org/".to_owned()),
        ..candidate(text, "L")
    };
    let mut site = Site::new(FrontierConfig {
        source_quota: two,
        ..with_queue(|queue| {
            queue.domain_quota = two;
            queue.politeness.min_delay = ZERO;
        })
    });
    site.schedule(
        vec![
            candidate("http://www.a.org/1", "L"),
            candidate("http://ftp.a.org/1", "L"),
            of_source("http://b.org/1"),
            of_source("http://c.org/1"),
        ],
        0,
    );
    let www = site.issue(0, "http://www.a.org/1");
    let b = site.issue(0, "http://b.org/1");
    // The other URIs may exceed a quota, depending on these two: their queues wait for a moment.
    site.waits(0, 1);
    site.finish(&www, success(ZERO, None, vec![]), 0);
    site.finish(&b, success(ZERO, None, vec![]), 0);
    for (text, kind, name) in [
        ("http://ftp.a.org/1", TallyKind::Domain, "a.org"),
        ("http://c.org/1", TallyKind::Source, "http://seed.org/"),
    ] {
        let over = site.issue(1, text).over_quota.unwrap();
        assert_eq!(
            (over.kind, over.name.as_str(), over.limit),
            (kind, name, "fetched")
        );
    }
}

#[test]
fn first_successes_worsen_precedence_and_revisits_do_not() {
    let mut site = Site::new(with_queue(|queue| {
        queue.precedence_policy = PrecedencePolicy::SuccessCounts(vec![1, 2]);
    }));
    site.schedule(pages("a.org", 3), 0);
    let precedence = |site: &mut Site| {
        let report = site.frontier().queue("org,a,", at(0)).unwrap();
        report.unwrap().precedence
    };
    assert_eq!(precedence(&mut site), 3);
    for (second, text, expected) in [
        (0, "http://a.org/1", 4),
        (2, "http://a.org/2", 4),
        (4, "http://a.org/3", 5),
    ] {
        site.visit(second, text);
        assert_eq!(precedence(&mut site), expected);
    }
    let again = Candidate {
        force: true,
        ..candidate("http://a.org/1", "L")
    };
    for second in [10, 20, 30, 40] {
        site.schedule(vec![again.clone()], second);
        site.visit(second, "http://a.org/1");
    }
    assert_eq!(precedence(&mut site), 5);
}

#[test]
fn settings_of_queues_survive_a_restart_without_the_resolver() {
    let by_name = |name: &str| QueueSettings {
        valence: if name == "org,a," { 2 } else { 1 },
        ..config().queue
    };
    let mut site = Site::new(FrontierConfig {
        resolver: Some(Resolver::new(by_name)),
        settings_hash: 7,
        ..config()
    });
    site.schedule(pages("a.org", 2), 0);
    // The hash is the same, so the resolver is not called.
    let uncalled = |name: &str| -> QueueSettings { panic!("resolved {name}") };
    site.reopen_with(FrontierConfig {
        resolver: Some(Resolver::new(uncalled)),
        settings_hash: 7,
        ..config()
    });
    site.issue(0, "http://a.org/1");
    site.issue(0, "http://a.org/2");
    // With another hash, the settings are resolved at the next change.
    site.reopen_with(FrontierConfig {
        settings_hash: 8,
        ..config()
    });
    site.schedule(pages("a.org", 3), 0);
    let report = site.frontier().queue("org,a,", at(0)).unwrap().unwrap();
    assert_eq!(report.settings.valence, 1);
}

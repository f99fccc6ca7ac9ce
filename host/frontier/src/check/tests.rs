//! Tests that break every invariant on purpose: it is reported, repaired, and then no longer reported.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::{path::Path, time::Duration};

use jiff::Timestamp;
use opilio_uri::{HopPath, Uri};

use super::{Inconsistency, InconsistencyKind};
use crate::{
    Candidate, Frontier, FrontierConfig, GroupFigures, KeptValue, Next, OutOfScopeLink, Outcome,
    QueueSettings, Strategy, Success, Transfer, UriRecord, UriState, VisitUpdate,
    change::read_queue,
    counters::Counters,
    in_process::Issued,
    keys::{self, OrderKey},
    queue::QueueRecord,
    store::{Store, decode, encode},
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn uri(text: &str) -> Uri {
    Uri::parse(text).unwrap()
}

fn candidate(text: &str, hops: &str) -> Candidate {
    Candidate::new(uri(text), HopPath::parse(hops).unwrap(), Strategy::Revisit)
}

const READY: &str = "http://a.org/ready";
const WAITING: &str = "http://a.org/";
const IN_PROCESS: &str = "http://b.org/";
const EMBED: &str = "http://cdn.net/image.png";

fn key(text: &str) -> String {
    uri(text).key()
}

/// Makes a store with a URI in each place: ready, waiting, in process, an embed of another site. It also has a refusal, a tally
/// and a group.
fn store(config: &FrontierConfig) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut frontier = Frontier::open(dir.path(), config.clone()).unwrap();
    frontier
        .schedule(
            vec![candidate(WAITING, ""), candidate(IN_PROCESS, "")],
            at(0),
        )
        .unwrap();
    let mut visited = 0;
    while let Next::Issue(issue) = frontier.next(at(1)).unwrap() {
        if issue.uri.as_str() != WAITING {
            continue;
        }
        visited += 1;
        let success = Success {
            visit: VisitUpdate {
                status: 200,
                outlinks: Some(2),
                ..VisitUpdate::default()
            },
            wait: Some(Duration::from_secs(3600)),
            outlinks: vec![candidate(READY, "L"), candidate(EMBED, "E")],
            refused: vec![OutOfScopeLink {
                uri: uri("http://far.org/"),
                reason: "far".to_owned(),
            }],
            transfer: Transfer::default(),
            ..Success::default()
        };
        let outcome = Outcome::Succeeded(Box::new(success));
        frontier.finished(issue.ticket, outcome, at(1)).unwrap();
    }
    assert_eq!(visited, 1);
    dir
}

fn config() -> FrontierConfig {
    let mut config = FrontierConfig::default();
    config.queue.host_quota.fetched = Some(1_000);
    config.queue.group = Some("group".to_owned());
    config.group.valence = 10;
    config.cache_bytes = 1024 * 1024;
    config
}

fn findings(dir: &Path, repairs: bool) -> Vec<Inconsistency> {
    let mut findings = Vec::new();
    let mut report = |finding| findings.push(finding);
    let summary = if repairs {
        Frontier::repair(dir, &config(), &mut report)
    } else {
        Frontier::check(dir, &config(), &mut report)
    };
    let summary = summary.unwrap();
    assert_eq!(summary.findings, findings.len() as u64);
    findings
}

/// Breaks a store. Asserts that exactly these inconsistencies are found, with these keys, and that a check changes nothing.
/// Asserts that a repair leaves nothing to find, and that the crawl resumes: every queued URI is issued.
#[track_caller]
fn check(break_it: impl FnOnce(&Store), expected: &[(InconsistencyKind, &str)]) {
    let dir = store(&config());
    let before = findings(dir.path(), false);
    assert_eq!(before, [], "a consistent store");

    let store = Store::open(dir.path(), &config()).unwrap();
    break_it(&store);
    drop(store);
    let found = findings(dir.path(), false);
    let mut faults: Vec<_> = found
        .iter()
        .map(|finding| (finding.fault, finding.key.as_str()))
        .collect();
    faults.sort_unstable();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(faults, expected);
    assert_eq!(
        findings(dir.path(), false),
        found,
        "the check has changed the store"
    );
    assert!(found.iter().all(|finding| !finding.is_repaired));

    let repaired = findings(dir.path(), true);
    assert!(repaired.iter().all(|finding| finding.is_repaired));
    assert_eq!(findings(dir.path(), false), [], "after the repair");
    drain(dir.path());
}

/// Asserts that every queued URI is issued in the end, and that nothing fails.
fn drain(dir: &Path) {
    let mut frontier = Frontier::open(dir, config()).unwrap();
    let mut queued = frontier.statistics().queued + frontier.statistics().in_process;
    let mut now = 100;
    for _ in 0..50 {
        match frontier.next(at(now)).unwrap() {
            Next::Issue(issue) => {
                let outcome = Outcome::Succeeded(Box::default());
                frontier.finished(issue.ticket, outcome, at(now)).unwrap();
                queued -= 1;
            }
            Next::WaitUntil(until) => now = until.as_second() - at(0).as_second(),
            Next::Empty => break,
            Next::InProcess => panic!("nothing is in process"),
        }
    }
    assert_eq!(queued, 0, "URIs that are never issued");
}

fn record(store: &Store, text: &str) -> UriRecord {
    let key = key(text);
    decode("", b"", &store.uris.get(&key).unwrap().unwrap()).unwrap()
}

fn ready_key(store: &Store, text: &str) -> Vec<u8> {
    let record = record(store, text);
    keys::ready(&record.queue, crate::change::rank(&record).unwrap())
}

fn waiting_entry(store: &Store, text: &str) -> (Vec<u8>, Vec<u8>) {
    let record = record(store, text);
    let rank = crate::change::rank(&record).unwrap();
    (
        keys::waiting(&record.queue, rank.due, rank.arrival),
        keys::waiting_value(rank.directive, rank.precedence, key(text).as_bytes()),
    )
}

fn alter_queue(store: &Store, name: &str, alter: impl FnOnce(&mut QueueRecord)) {
    let mut record = read_queue(store, name).unwrap().unwrap();
    alter(&mut record);
    store.queues.insert(name, encode(&record).unwrap()).unwrap();
}

fn alter_counters(store: &Store, alter: impl FnOnce(&mut Counters)) {
    let bytes = store.meta.get("counters").unwrap().unwrap();
    let mut counters = decode("", b"", &bytes).unwrap();
    alter(&mut counters);
    let counters = encode(&counters).unwrap();
    store.meta.insert("counters", counters).unwrap();
}

#[test]
fn a_consistent_store_has_no_findings() {
    check(|_| {}, &[]);
}

#[test]
fn a_queued_uri_in_neither_order() {
    check(
        |store| store.ready.remove(ready_key(store, READY)).unwrap(),
        &[
            (InconsistencyKind::NotInQueue, &key(READY)),
            (InconsistencyKind::WrongQueueCounts, "org,a,"),
        ],
    );
    check(
        |store| {
            let (key, _) = waiting_entry(store, WAITING);
            store.waiting.remove(key).unwrap();
        },
        &[
            (InconsistencyKind::NotInQueue, &key(WAITING)),
            (InconsistencyKind::WrongQueueCounts, "org,a,"),
        ],
    );
}

#[test]
fn a_uri_in_both_orders() {
    check(
        |store| {
            let (key, value) = waiting_entry(store, READY);
            store.waiting.insert(key, value).unwrap();
        },
        &[
            (InconsistencyKind::InBothOrders, &key(READY)),
            (InconsistencyKind::WrongQueueCounts, "org,a,"),
        ],
    );
}

#[test]
fn an_entry_of_another_uri() {
    check(
        |store| {
            let key = ready_key(store, READY);
            store.ready.insert(key, "org,nowhere,)/#http").unwrap();
        },
        &[
            (InconsistencyKind::NotInQueue, &key(READY)),
            (InconsistencyKind::Stray, "org,nowhere,)/#http"),
        ],
    );
}

#[test]
fn queue_entries_without_a_record() {
    check(
        |store| {
            let (mut key, value) = waiting_entry(store, WAITING);
            *key.last_mut().unwrap() ^= 1;
            store.waiting.insert(key, value).unwrap();
        },
        &[
            (InconsistencyKind::Stray, &key(WAITING)),
            (InconsistencyKind::WrongQueueCounts, "org,a,"),
        ],
    );
    check(
        |store| {
            let mut key = ready_key(store, READY);
            *key.last_mut().unwrap() ^= 1;
            store.ready.insert(key, "org,gone,)/#http").unwrap();
        },
        &[
            (InconsistencyKind::Stray, "org,gone,)/#http"),
            (InconsistencyKind::WrongQueueCounts, "org,a,"),
        ],
    );
    check(
        |store| store.ready.insert("no-queue-at-all", "x").unwrap(),
        &[
            (InconsistencyKind::Stray, "x"),
            (InconsistencyKind::NoQueue, "no-queue-at-all"),
        ],
    );
}

#[test]
fn a_record_that_cannot_be_read() {
    check(
        |store| store.uris.insert(key(READY), [9, 9, 9]).unwrap(),
        &[
            (InconsistencyKind::Malformed("uris"), &key(READY)),
            (InconsistencyKind::Stray, &key(READY)),
            (
                InconsistencyKind::StrayCanonical,
                &super::readable(&keys::canonical(READY)),
            ),
            (InconsistencyKind::WrongStatistics, "discovered"),
            (InconsistencyKind::WrongStatistics, "queued"),
        ],
    );
}

#[test]
fn a_queue_without_a_record_or_with_one_that_cannot_be_read() {
    for value in [None, Some([7, 7])] {
        check(
            |store| match value {
                Some(value) => store.queues.insert("org,a,", value).unwrap(),
                None => store.queues.remove("org,a,").unwrap(),
            },
            &[
                (
                    if value.is_some() {
                        InconsistencyKind::Malformed("queues")
                    } else {
                        InconsistencyKind::NoQueue
                    },
                    "org,a,",
                ),
                (InconsistencyKind::StrayTurn, "org,a,"),
            ],
        );
    }
}

#[test]
fn wrong_queue_counts() {
    check(
        |store| alter_queue(store, "org,a,", |queue| queue.ready = vec![(1, 5)]),
        &[(InconsistencyKind::WrongQueueCounts, "org,a,")],
    );
    check(
        |store| alter_queue(store, "org,a,", |queue| queue.waiting = 0),
        &[(InconsistencyKind::WrongQueueCounts, "org,a,")],
    );
    check(
        |store| alter_queue(store, "org,a,", |queue| queue.first_due += 1),
        &[(InconsistencyKind::WrongQueueCounts, "org,a,")],
    );
}

#[test]
fn a_queue_missing_in_the_queue_order() {
    check(
        |store| {
            let queue = read_queue(store, "org,a,").unwrap().unwrap();
            let key = keys::queue_order(queue.precedence, queue.order_key.unwrap(), "org,a,");
            store.queue_order.remove(key).unwrap();
        },
        &[(InconsistencyKind::NotInLine, "org,a,")],
    );
    check(
        |store| alter_queue(store, "org,a,", |queue| queue.order_key = None),
        &[
            (InconsistencyKind::NotInLine, "org,a,"),
            (InconsistencyKind::StrayTurn, "org,a,"),
        ],
    );
}

#[test]
fn an_empty_queue_in_the_queue_order() {
    check(
        |store| {
            let order_key = OrderKey {
                is_inactive: false,
                wake: 0,
                arrival: 1,
            };
            let mut queue = QueueRecord::new("org,empty,", &config());
            queue.order_key = Some(order_key);
            let key = keys::queue_order(queue.precedence, order_key, "org,empty,");
            store.queue_order.insert(key, "").unwrap();
            let queue = encode(&queue).unwrap();
            store.queues.insert("org,empty,", queue).unwrap();
        },
        &[(InconsistencyKind::NeedlessTurn, "org,empty,")],
    );
}

#[test]
fn stray_places_in_the_queue_order() {
    check(
        |store| {
            let order_key = OrderKey {
                is_inactive: false,
                wake: 0,
                arrival: 1,
            };
            for name in ["org,a,", "org,gone,"] {
                store
                    .queue_order
                    .insert(keys::queue_order(1, order_key, name), "")
                    .unwrap();
            }
            store.queue_order.insert("x", "").unwrap();
        },
        &[
            (InconsistencyKind::StrayTurn, "org,a,"),
            (InconsistencyKind::StrayTurn, "org,gone,"),
            (InconsistencyKind::StrayTurn, "x"),
        ],
    );
}

#[test]
fn malformed_entries_of_uris_in_process() {
    check(
        |store| {
            let issued = Issued {
                record_key: "no URI".to_owned(),
                queue: "org,a,".to_owned(),
                slot: 0,
                group: None,
                at: 0,
            };
            let issued = encode(&issued).unwrap();
            store.in_process.insert(7u64.to_be_bytes(), issued).unwrap();
            store.in_process.insert("short", "").unwrap();
        },
        &[
            (
                InconsistencyKind::Malformed("in_process"),
                "0000000000000007",
            ),
            (InconsistencyKind::Malformed("in_process"), "short"),
        ],
    );
}

#[test]
fn missing_and_stray_canonical_forms() {
    check(
        |store| {
            store
                .canonical_forms
                .remove(keys::canonical(READY))
                .unwrap()
        },
        &[(InconsistencyKind::NoCanonical, &key(READY))],
    );
    let stray = keys::canonical("http://stray.org/");
    check(
        |store| store.canonical_forms.insert(stray, "").unwrap(),
        &[(InconsistencyKind::StrayCanonical, &super::readable(&stray))],
    );
}

#[test]
fn a_faded_uri_needs_no_canonical_form() {
    check(
        |store| {
            let faded = UriRecord {
                state: UriState::Faded,
                owns_canonical: false,
                ..record(store, READY)
            };
            let ready = ready_key(store, READY);
            store.ready.remove(ready).unwrap();
            store
                .uris
                .insert(key(READY), encode(&faded).unwrap())
                .unwrap();
            store
                .canonical_forms
                .remove(keys::canonical(READY))
                .unwrap();
            alter_queue(store, "org,a,", |queue| queue.remove_ready(1));
            alter_counters(store, |counters| counters.statistics.queued -= 1);
        },
        &[],
    );
}

#[test]
fn wrong_entries_and_counts_of_embeds() {
    let page = keys::page(&key(WAITING));
    check(
        |store| {
            store
                .embeds_by_page
                .remove(keys::embed(&page, &key(EMBED)))
                .unwrap();
        },
        &[
            (InconsistencyKind::WrongReferrers, &key(EMBED)),
            (InconsistencyKind::OneSidedEmbed, &key(EMBED)),
        ],
    );
    check(
        |store| {
            let entry = keys::embed(&page, "net,gone,)/#http");
            store.embeds_by_page.insert(entry, [0; 4]).unwrap();
            store.embeds_by_page.insert("short", [0; 4]).unwrap();
        },
        &[
            (InconsistencyKind::StrayEmbed, "net,gone,)/#http"),
            (InconsistencyKind::OneSidedEmbed, "net,gone,)/#http"),
            (InconsistencyKind::Malformed("embeds_by_page"), "short"),
        ],
    );
    check(
        |store| {
            store
                .pages_by_embed
                .remove(keys::page_of_embed(&key(EMBED), &page))
                .unwrap();
            store.pages_by_embed.insert("short", []).unwrap();
        },
        &[
            (InconsistencyKind::OneSidedEmbed, &key(EMBED)),
            (InconsistencyKind::Malformed("pages_by_embed"), "short"),
        ],
    );
}

#[test]
fn values_and_figures_of_unknown_sites() {
    let kept = encode(&KeptValue {
        version: 1,
        value: "value".to_owned(),
    });
    let kept = kept.unwrap();
    check(
        |store| {
            let known = keys::site_value(&key(WAITING), "plugin", "name");
            store.site_values.insert(known, kept.as_slice()).unwrap();
            let unreadable = keys::site_value(&key(WAITING), "plugin", "other");
            store.site_values.insert(unreadable, "").unwrap();
            let stray = keys::site_value("org,gone,)/#http", "plugin", "name");
            store.site_values.insert(stray, kept.as_slice()).unwrap();
            let figures = encode(&GroupFigures::default()).unwrap();
            let known = keys::site_figures(&key(WAITING), "host");
            store
                .site_figures
                .insert(known, figures.as_slice())
                .unwrap();
            let unreadable = keys::site_figures(&key(WAITING), "x");
            store
                .site_figures
                .insert(unreadable, &figures[..3])
                .unwrap();
            let stray = keys::site_figures("org,gone,)/#http", "host");
            store
                .site_figures
                .insert(stray, figures.as_slice())
                .unwrap();
        },
        &[
            (
                InconsistencyKind::Malformed("site_values"),
                "6f72672c612c29706c7567696e006f74686572",
            ),
            (
                InconsistencyKind::StraySite,
                "6f72672c676f6e652c29706c7567696e006e616d65",
            ),
            (InconsistencyKind::Malformed("site_figures"), "org,a,)x"),
            (InconsistencyKind::StraySite, "org,gone,)host"),
        ],
    );
}

#[test]
fn malformed_values_without_relations() {
    check(
        |store| {
            let name = keys::tally(crate::TallyKind::Host, "a.org");
            assert!(store.tallies.contains_key(&name).unwrap());
            store.tallies.insert(&name, "").unwrap();
            assert!(store.server_groups.contains_key("group").unwrap());
            store.server_groups.insert("group", "").unwrap();
            let refused = keys::canonical("http://far.org/");
            assert!(store.refused_uris.contains_key(refused).unwrap());
            store.refused_uris.insert(refused, "").unwrap();
        },
        &[
            (
                InconsistencyKind::Malformed("tallies"),
                "686f737400612e6f7267",
            ),
            (InconsistencyKind::Malformed("server_groups"), "group"),
            (
                InconsistencyKind::Malformed("refused_uris"),
                &super::readable(&keys::canonical("http://far.org/")),
            ),
            (InconsistencyKind::WrongStatistics, "refusals"),
        ],
    );
}

#[test]
fn wrong_statistics() {
    check(
        |store| {
            alter_counters(store, |counters| {
                counters.statistics.discovered += 1;
                counters.statistics.queued += 1;
                counters.statistics.succeeded += 1;
                counters.statistics.failed += 1;
                counters.statistics.disregarded += 1;
                counters.statistics.prerequisites += 1;
                counters.refusals += 1;
                counters.arrivals = 1;
            });
        },
        &[
            (InconsistencyKind::WrongStatistics, "arrivals"),
            (InconsistencyKind::WrongStatistics, "discovered"),
            (InconsistencyKind::WrongStatistics, "queued"),
            (InconsistencyKind::WrongStatistics, "succeeded"),
            (InconsistencyKind::WrongStatistics, "failed"),
            (InconsistencyKind::WrongStatistics, "disregarded"),
            (InconsistencyKind::WrongStatistics, "prerequisites"),
            (InconsistencyKind::WrongStatistics, "refusals"),
        ],
    );
    check(
        |store| store.meta.insert("counters", "").unwrap(),
        &[
            (InconsistencyKind::Malformed("meta"), "counters"),
            (InconsistencyKind::WrongStatistics, "arrivals"),
            (InconsistencyKind::WrongStatistics, "discovered"),
            (InconsistencyKind::WrongStatistics, "queued"),
            (InconsistencyKind::WrongStatistics, "succeeded"),
            (InconsistencyKind::WrongStatistics, "refusals"),
        ],
    );
}

#[test]
fn findings_are_sentences() {
    for (fault, is_repaired, expected) in [
        (
            InconsistencyKind::NotInQueue,
            false,
            "k is queued, but not listed in its queue",
        ),
        (
            InconsistencyKind::Malformed("tallies"),
            true,
            "tallies: k cannot be read: removed",
        ),
    ] {
        let finding = Inconsistency {
            fault,
            key: "k".to_owned(),
            is_repaired,
        };
        assert_eq!(finding.to_string(), expected);
    }
}

#[test]
fn a_retired_queue_needs_no_place_in_the_queue_order() {
    let dir = store(&config());
    let mut frontier = Frontier::open(dir.path(), config()).unwrap();
    assert!(frontier.retire("org,a,", true, at(2)).unwrap());
    drop(frontier);
    assert_eq!(findings(dir.path(), false), []);
}

#[test]
fn queues_with_several_slots_are_consistent_with_any_uris_in_process() {
    let config = FrontierConfig {
        queue: QueueSettings {
            valence: 3,
            ..config().queue
        },
        session_budget: Some(1),
        ..config()
    };
    let dir = tempfile::tempdir().unwrap();
    let mut frontier = Frontier::open(dir.path(), config.clone()).unwrap();
    let all = [READY, WAITING, "http://a.org/3", "http://a.org/4"];
    let all = all.map(|text| candidate(text, "L")).to_vec();
    frontier.schedule(all, at(0)).unwrap();
    for issued in 0..4 {
        let mut found = Vec::new();
        drop(frontier);
        Frontier::check(dir.path(), &config, &mut |finding| found.push(finding)).unwrap();
        assert_eq!(found, [], "{issued}");
        frontier = Frontier::open(dir.path(), config.clone()).unwrap();
        for _ in 0..issued {
            frontier.next(at(10_000 * issued)).unwrap();
        }
    }
}

#[test]
fn a_queue_with_all_uris_in_process_needs_no_place_in_the_queue_order() {
    let mut config = config();
    config.queue.valence = 3;
    let dir = tempfile::tempdir().unwrap();
    let mut frontier = Frontier::open(dir.path(), config.clone()).unwrap();
    frontier
        .schedule(vec![candidate(READY, "L")], at(0))
        .unwrap();
    assert!(matches!(frontier.next(at(0)).unwrap(), Next::Issue(_)));
    drop(frontier);
    let store = Store::open_existing(dir.path(), &config).unwrap();
    let queue = read_queue(&store, "org,a,").unwrap().unwrap();
    assert_eq!((queue.order_key, queue.ready_count()), (None, 1));
    drop(store);
    let mut found = Vec::new();
    Frontier::check(dir.path(), &config, &mut |finding| found.push(finding)).unwrap();
    assert_eq!(found, []);
}

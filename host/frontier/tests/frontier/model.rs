//! Random histories: the frontier and its naive double must answer alike, whatever is asked, and whenever the store is
//! closed and opened again. Beside that, what no history may break is checked without the double.

use std::collections::BTreeMap;

use opilio_frontier::{
    Candidate, Config, Directive, Disposition, Issue, Next, Outcome, Place as RealPlace, Standing,
    Strategy,
};
use proptest::{prelude::*, strategy::Strategy as _};

use crate::{
    naive::{Naive, NaiveDisposition, NaiveNext, NaiveOutcome, Place},
    site::{Site, at, candidate, config, secs, success, took, uri},
};

const URIS: [&str; 12] = [
    "http://a.org/1",
    "http://a.org/2",
    "http://a.org/2?x",
    "http://a.org/3?y",
    "http://a.org/3",
    "http://a.org/robots.txt",
    "dns:a.org",
    "http://b.org/1",
    "http://b.org/1?x",
    "http://b.org/2",
    "dns:b.org",
    "https://c.org/",
];
const HOPS: [&str; 9] = ["", "L", "L", "L", "LE", "LR", "P", "LEE", "RRRRRR"];
const DIRECTIVES: [Directive; 6] = [
    Directive::Normal,
    Directive::Normal,
    Directive::Normal,
    Directive::Medium,
    Directive::High,
    Directive::Highest,
];

#[derive(Debug, Clone)]
struct Link {
    uri: usize,
    hops: usize,
    directive: usize,
    precedence: u8,
    flags: u8,
}

#[derive(Debug, Clone)]
enum Step {
    Schedule(Vec<Link>),
    Next,
    Finish { which: usize, outcome: Ending },
    Pass(i64),
    Reopen,
    Forget(usize),
    Delete(usize),
    CrawlDelay { queue: usize, seconds: u64 },
}

#[derive(Debug, Clone)]
enum Ending {
    Success {
        wait: Option<u64>,
        outlinks: Vec<Link>,
        fetch: u64,
    },
    Deferred(Vec<Link>),
    Retry {
        after: Option<u64>,
        fetch: Option<u64>,
    },
    Disregarded(Option<u64>),
    Failed(Option<u64>),
}

fn link() -> BoxedStrategy<Link> {
    (
        0..URIS.len(),
        0..HOPS.len(),
        0..DIRECTIVES.len(),
        0u8..3,
        any::<u8>(),
    )
        .prop_map(|(uri, hops, directive, precedence, flags)| Link {
            uri,
            hops,
            directive,
            precedence,
            flags,
        })
        .boxed()
}

fn links() -> BoxedStrategy<Vec<Link>> {
    prop::collection::vec(link(), 0..4).boxed()
}

fn ending() -> BoxedStrategy<Ending> {
    let fetch = || prop::option::of(0u64..8);
    prop_oneof![
        4 => (prop::option::of(0u64..60), links(), 0u64..8)
            .prop_map(|(wait, outlinks, fetch)| Ending::Success { wait, outlinks, fetch }),
        2 => links().prop_map(Ending::Deferred),
        2 => (prop::option::of(0u64..400), fetch()).prop_map(|(after, fetch)| Ending::Retry { after, fetch }),
        1 => fetch().prop_map(Ending::Disregarded),
        1 => fetch().prop_map(Ending::Failed),
    ]
    .boxed()
}

fn step() -> BoxedStrategy<Step> {
    prop_oneof![
        4 => links().prop_map(Step::Schedule),
        8 => Just(Step::Next),
        8 => (any::<usize>(), ending()).prop_map(|(which, outcome)| Step::Finish { which, outcome }),
        6 => prop_oneof![4 => 0i64..4, 2 => 4i64..70, 1 => 70i64..2_000].prop_map(Step::Pass),
        1 => Just(Step::Reopen),
        1 => (0..URIS.len()).prop_map(Step::Forget),
        1 => (0..URIS.len()).prop_map(Step::Delete),
        1 => (0..3usize, 0u64..100).prop_map(|(queue, seconds)| Step::CrawlDelay { queue, seconds }),
    ]
    .boxed()
}

fn candidates(links: &[Link]) -> Vec<Candidate> {
    let candidate = |link: &Link| Candidate {
        directive: DIRECTIVES[link.directive],
        precedence: link.precedence,
        force: link.flags.is_multiple_of(8),
        seed: link.flags % 8 == 1,
        strategy: if link.flags & 64 == 0 {
            Strategy::Snapshot
        } else {
            Strategy::Revisit
        },
        queue: if (link.flags / 8).is_multiple_of(8) {
            "together".to_owned()
        } else {
            uri(URIS[link.uri]).surt_authority()
        },
        ..candidate(URIS[link.uri], HOPS[link.hops])
    };
    links.iter().map(candidate).collect()
}

struct Pair {
    site: Site,
    naive: Naive,
    config: Config,
    busy: Vec<Issue>,
    now: i64,
    /// When the last request to each queue ended.
    last_request: BTreeMap<String, i64>,
    /// The queues that had a URI in process, in the order of issue, when the store was opened again.
    reopened: Vec<String>,
}

impl Pair {
    fn new() -> Self {
        Self {
            site: Site::new(config()),
            naive: Naive::default(),
            config: config(),
            busy: Vec::new(),
            now: 0,
            last_request: BTreeMap::new(),
            reopened: Vec::new(),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Schedule(links) => {
                let candidates = candidates(&links);
                let expected = self
                    .naive
                    .schedule(&self.config, &candidates, self.now, None, None);
                assert_eq!(self.site.schedule(candidates, self.now), expected);
            }
            Step::Next => self.next(),
            Step::Finish { which, outcome } => self.finish(which, outcome),
            Step::Pass(seconds) => self.now += seconds,
            Step::Reopen => {
                self.site.reopen();
                for issue in self.busy.drain(..) {
                    self.reopened.push(issue.queue.clone());
                    if issue.uri.scheme() != "dns" {
                        self.last_request.insert(issue.queue, self.now);
                    }
                }
                // What comes back does so with the next `next`, which knows the time.
                self.next();
            }
            Step::Forget(which) => {
                let expected = self.naive.withdraw(URIS[which], false, self.now);
                assert_eq!(
                    self.site
                        .frontier()
                        .forget(&uri(URIS[which]), at(self.now))
                        .unwrap(),
                    expected
                );
            }
            Step::Delete(which) => {
                let expected = self.naive.withdraw(URIS[which], true, self.now);
                assert_eq!(
                    self.site
                        .frontier()
                        .delete(&uri(URIS[which]), at(self.now))
                        .unwrap(),
                    expected
                );
            }
            Step::CrawlDelay { queue, seconds } => {
                let queue = ["org,a,", "org,b,", "together"][queue];
                self.naive
                    .queues
                    .entry(queue.to_owned())
                    .or_default()
                    .crawl_delay = seconds;
                self.site
                    .frontier()
                    .set_crawl_delay(queue, Some(secs(seconds)), at(self.now))
                    .unwrap();
            }
        }
        self.compare();
    }

    fn next(&mut self) {
        self.naive
            .reopened(&std::mem::take(&mut self.reopened), self.now);
        let expected = self.naive.next(self.now);
        let answer = match self.site.next(self.now) {
            Next::Issue(issue) => {
                if issue.uri.scheme() != "dns"
                    && let Some(last) = self.last_request.get(&issue.queue)
                {
                    assert!(
                        self.now - last >= 2,
                        "{} after {last} at {}",
                        issue.uri,
                        self.now
                    );
                }
                assert!(
                    self.busy.iter().all(|busy| busy.queue != issue.queue),
                    "two of {} in process",
                    issue.queue
                );
                let answer = NaiveNext::Issue {
                    uri: issue.uri.to_string(),
                    queue: issue.queue.clone(),
                    due: issue.due.as_second() - at(0).as_second(),
                    overdue: issue.overdue.as_secs(),
                    attempts: issue.record.attempts,
                    visits: issue.record.visits,
                };
                self.busy.push(*issue);
                answer
            }
            Next::WaitUntil(time) => NaiveNext::WaitUntil(time.as_second() - at(0).as_second()),
            Next::InProcess => NaiveNext::InProcess,
            Next::Empty => NaiveNext::Empty,
        };
        assert_eq!(answer, expected);
    }

    fn finish(&mut self, which: usize, ending: Ending) {
        if self.busy.is_empty() {
            return;
        }
        let issue = self.busy.remove(which % self.busy.len());
        let duration = |fetch: Option<u64>| fetch.map(secs);
        let has_requested = match &ending {
            Ending::Success { .. } => true,
            Ending::Deferred(_) => false,
            Ending::Retry { fetch, .. } | Ending::Disregarded(fetch) | Ending::Failed(fetch) => {
                fetch.is_some()
            }
        };
        if has_requested && issue.uri.scheme() != "dns" {
            self.last_request.insert(issue.queue.clone(), self.now);
        }
        let (real, naive) = match ending {
            Ending::Success {
                wait,
                outlinks,
                fetch,
            } => {
                let outlinks = candidates(&outlinks);
                let real = success(secs(fetch), wait.map(secs), outlinks.clone());
                (
                    real,
                    NaiveOutcome::Succeeded {
                        wait,
                        outlinks,
                        fetch,
                    },
                )
            }
            Ending::Deferred(links) => {
                let prerequisites = candidates(&links);
                (
                    Outcome::Deferred {
                        prerequisites: prerequisites.clone(),
                    },
                    NaiveOutcome::Deferred(prerequisites),
                )
            }
            Ending::Retry { after, fetch } => {
                let real = Outcome::Retry {
                    status: 503,
                    after: after.map(secs),
                    transfer: duration(fetch).map(took),
                };
                (real, NaiveOutcome::Retry { after, fetch })
            }
            Ending::Disregarded(fetch) => {
                let real = Outcome::Disregarded {
                    status: -9998,
                    transfer: duration(fetch).map(took),
                };
                (real, NaiveOutcome::Disregarded { fetch })
            }
            Ending::Failed(fetch) => {
                let real = Outcome::Failed {
                    status: -1,
                    transfer: duration(fetch).map(took),
                };
                (real, NaiveOutcome::Failed { fetch })
            }
        };
        let expected = self
            .naive
            .finished(&self.config, issue.uri.as_str(), naive, self.now);
        let finished = self.site.finish(&issue, real, self.now);
        let second = |time: jiff::Timestamp| time.as_second() - at(0).as_second();
        let disposition = match finished.disposition {
            Disposition::Done => NaiveDisposition::Done,
            Disposition::Waiting(time) => NaiveDisposition::Waiting(second(time)),
            Disposition::Forgotten => NaiveDisposition::Forgotten,
            Disposition::Deferred => NaiveDisposition::Deferred,
            Disposition::Retrying { attempts } => NaiveDisposition::Retrying(attempts),
            Disposition::GivenUp { tries, again, .. } => {
                NaiveDisposition::GivenUp(tries, again.map(second))
            }
        };
        assert_eq!(
            (
                disposition,
                finished.scheduled,
                second(finished.queue_ready)
            ),
            expected
        );
    }

    /// Statistics and records against the double.
    fn compare(&mut self) {
        let busy = self.busy.len() as u64;
        let uris = self.naive.uris.values();
        let standing = |name| {
            uris.clone()
                .filter(|uri| uri.standing == Some(name))
                .count() as u64
        };
        let queued = uris
            .clone()
            .filter(|uri| matches!(uri.place, Place::Ready(_) | Place::Waiting(_)))
            .count() as u64;
        let statistics = self.site.frontier().statistics();
        assert_eq!(statistics.discovered, self.naive.uris.len() as u64);
        assert_eq!(
            (statistics.queued, statistics.in_process),
            (queued - busy, busy)
        );
        assert_eq!(
            (
                statistics.succeeded,
                statistics.failed,
                statistics.disregarded
            ),
            (
                standing("succeeded"),
                standing("failed"),
                standing("disregarded")
            )
        );
    }

    fn compare_records(&mut self) {
        for text in URIS {
            let record = self.site.frontier().record(&uri(text)).unwrap();
            let Some(known) = self.naive.uris.get(text) else {
                assert!(record.is_none(), "{text}");
                continue;
            };
            let record = record.unwrap();
            let standing = match record.standing {
                Standing::Open => None,
                Standing::Succeeded => Some("succeeded"),
                Standing::Failed => Some("failed"),
                Standing::Disregarded => Some("disregarded"),
            };
            assert_eq!(
                (
                    record.queue,
                    record.seed,
                    record.attempts,
                    record.deferrals,
                    record.visits,
                    standing
                ),
                (
                    known.queue.clone(),
                    known.seed,
                    known.attempts,
                    known.deferrals,
                    known.visits,
                    known.standing
                ),
                "{text}"
            );
            match (record.place, known.place) {
                (
                    RealPlace::Queued { directive, due, .. },
                    Place::Ready(rank) | Place::Waiting(rank),
                ) => {
                    assert_eq!((directive, due), (rank.directive, at(rank.due)), "{text}");
                }
                (RealPlace::Done, Place::Done) | (RealPlace::Deleted, Place::Deleted) => {}
                places => panic!("{text}: {places:?}"),
            }
        }
        for report in self
            .site
            .frontier()
            .queues(None, 100, at(self.now))
            .unwrap()
        {
            let counts = self
                .naive
                .uris
                .values()
                .filter(|uri| uri.queue == report.queue);
            let ready = counts
                .clone()
                .filter(|uri| matches!(uri.place, Place::Ready(_)))
                .count() as u64;
            let waiting = counts
                .filter(|uri| matches!(uri.place, Place::Waiting(_)))
                .count() as u64;
            assert_eq!(
                (report.ready, report.waiting),
                (ready, waiting),
                "{}",
                report.queue
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_is_answered_as_the_naive_double_does(steps in prop::collection::vec(step(), 1..120)) {
        let mut pair = Pair::new();
        for step in steps {
            pair.step(step);
        }
        pair.compare_records();
        // And to the end: everything that is ready is issued in the same order.
        for _ in 0..40 {
            pair.now += 3;
            pair.next();
            pair.finish(0, Ending::Success { wait: None, outlinks: vec![], fetch: 0 });
        }
        pair.compare_records();
    }
}

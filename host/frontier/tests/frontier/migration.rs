//! Stores of older formats, kept as they were written, opened by this code.

use std::{fs, path::Path};

use flate2::read::GzDecoder;
use opilio_frontier::{
    Candidate, Config, ContentState, Directive, Error, FORMAT_VERSION, Finding, Frontier, Next,
    PastVisit, Place, Quota, Scheduled, Standing, Strategy, TallyKind, UriRecord, Why,
};

use crate::{
    opening::content,
    site::{at, candidate, revisited, secs, success, uri},
};

/// A store of an older format: what the frontier wrote when a process of it died with a URI in process.
pub(crate) struct Old {
    _dir: tempfile::TempDir,
    pub(crate) store: std::path::PathBuf,
}

/// Older formats, and how many URIs the store of each has.
pub(crate) const OLDER: [(u32, usize); 2] = [(1, URIS.len()), (2, URIS_OF_2.len())];

pub(crate) fn old(format: u32) -> Old {
    let dir = tempfile::tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let packed = fs::File::open(fixtures.join(format!("format-{format}.tar.gz")));
    tar::Archive::new(GzDecoder::new(packed.unwrap()))
        .unpack(dir.path())
        .unwrap();
    let store = dir.path().join(format!("format-{format}"));
    Old { _dir: dir, store }
}

fn open(dir: &Path) -> Frontier {
    Frontier::open(dir, Config::default()).unwrap()
}

/// Makes the store look as a migration leaves it that was cut short, and opens it.
#[track_caller]
fn check_cut_short((format, uris): (u32, usize), cut: impl FnOnce(&Path)) {
    let old = old(format);
    cut(&old.store);
    let frontier = open(&old.store);
    assert_eq!(frontier.records("").count(), uris);
    drop(frontier);
    assert_eq!(names(&old.store), ["format", "lock", "store"]);
    assert_eq!(fs::read_to_string(old.store.join("format")).unwrap(), "3\n");
    assert_eq!(findings(&old.store), []);
}

fn findings(dir: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    Frontier::check(dir, &Config::default(), &mut |finding| {
        findings.push(finding);
    })
    .unwrap();
    findings
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Every URI of the store and where it stands: due at this second, or nowhere.
const URIS: [(&str, Standing, Option<i64>); 10] = [
    ("http://www.a.org/", Standing::Succeeded, Some(3601)),
    ("http://www.a.org/page", Standing::Open, Some(1)),
    ("http://b.org/gone", Standing::Failed, Some(2_419_201)),
    (
        "http://c.org/robots",
        Standing::Disregarded,
        Some(2_419_201),
    ),
    ("http://cdn.org/image.png", Standing::Succeeded, Some(61)),
    ("http://d.org/once", Standing::Succeeded, None),
    ("http://e.org/deleted", Standing::Open, None),
    ("http://f.org/in-process", Standing::Open, Some(0)),
    ("http://g.org/waits/1", Standing::Open, Some(0)),
    ("http://g.org/waits/2", Standing::Open, Some(1)),
];

#[test]
fn every_record_of_format_1_is_there() {
    let old = old(1);
    let frontier = open(&old.store);
    let records: Vec<UriRecord> = frontier.records("").map(Result::unwrap).collect();
    let found: Vec<_> = records
        .iter()
        .map(|record| {
            let due = match record.place {
                Place::Queued { due, .. } => Some(due.as_second() - at(0).as_second()),
                _ => None,
            };
            (record.uri.as_str(), record.standing, due)
        })
        .collect();
    assert_eq!(found, URIS);
    assert_eq!(records[5].place, Place::Done);
    assert_eq!(records[6].place, Place::Deleted);
    for record in &records {
        assert_eq!(record.seed, record.uri == URIS[0].0, "{}", record.uri);
        assert_eq!(
            (record.cost, record.referrers, record.precedence),
            (1, 0, 1)
        );
        assert_eq!(record.context, "a/@href");
        assert_eq!(record.source.as_deref(), Some("http://www.a.org/"));
        let is_once = record.uri == "http://d.org/once";
        let strategy = [Strategy::Revisit, Strategy::Snapshot][usize::from(is_once)];
        assert_eq!(record.strategy, strategy, "{}", record.uri);
    }
    assert_eq!(records[9].attempts, 1);
    assert_eq!(records[9].hop_path.to_string(), "E");
    assert_eq!(findings(&old_closed(frontier, &old)), []);
}

fn old_closed(frontier: Frontier, old: &Old) -> std::path::PathBuf {
    drop(frontier);
    old.store.clone()
}

#[test]
fn a_visit_of_format_1_is_there_in_full() {
    let old = old(1);
    let record = open(&old.store).record(&uri(URIS[0].0)).unwrap().unwrap();
    assert_eq!(
        record.history,
        [PastVisit {
            at: at(1),
            status: 200,
            state: ContentState::New,
            size: Some(1234),
            digest: None,
            wait: None,
        }]
    );
    assert_eq!((record.visits, record.versions), (1, 1));
    assert_eq!(record.wait, Some(secs(3600)));
    assert_eq!(record.digests.payload, Some([7; 20]));
    let stripped = record.digests.stripped.unwrap();
    assert_eq!((stripped.digest, stripped.stripper), ([8; 20], 9));
    assert_eq!(record.validators.etag.as_deref(), Some("\"x\""));
    assert_eq!(record.validators.last_modified, None);
    let archived = record.archived.unwrap();
    assert_eq!(
        (archived.file.as_str(), archived.offset, archived.date),
        ("WEB-1.warc.gz", 1024, at(1))
    );
    assert_eq!(archived.record_id, "urn:uuid:0");
    assert_eq!((record.extractor, record.outlinks), (Some(5), 2));
    assert_eq!(record.media_type, "text/html");
    let kept = record.kept.get("plugin", "value").unwrap();
    assert_eq!((kept.version, kept.value.as_str()), (0, "value"));
    assert_eq!(record.fingerprint, None);
}

#[test]
fn queues_statistics_and_the_rest_of_format_1_are_there() {
    let old = old(1);
    let frontier = open(&old.store);
    let queues: Vec<_> = frontier
        .queues(None, 100, at(10))
        .unwrap()
        .into_iter()
        .map(|queue| {
            let next_ready = queue.next_ready.map(|at| at.as_second() - 1_700_000_000);
            (queue.queue, queue.ready, queue.waiting, next_ready)
        })
        .collect();
    let queue = |name: &str, ready, waiting, rest| (name.to_owned(), ready, waiting, rest);
    assert_eq!(
        queues,
        [
            queue("org,a,www,", 1, 1, Some(3)),
            queue("org,b,", 0, 1, None),
            queue("org,c,", 0, 1, None),
            queue("org,cdn,", 0, 1, Some(3)),
            queue("org,d,", 0, 0, Some(3)),
            queue("org,e,", 0, 0, None),
            queue("org,f,", 1, 0, None),
            queue("org,g,", 2, 0, Some(31)),
        ]
    );
    let g = frontier.queue("org,g,", at(10)).unwrap().unwrap();
    assert_eq!((g.crawl_delay, g.failures), (Some(secs(7)), 1));
    let a = frontier.queue("org,a,www,", at(10)).unwrap().unwrap();
    assert_eq!((a.finished, a.spent), (1, 1));
    assert_eq!(
        (a.tally.fetched, a.tally.succeeded, a.tally.novel),
        (1, 1, 1)
    );
    assert_eq!((a.tally.bytes, a.tally.novel_bytes), (1234, 1234));

    let statistics = frontier.statistics();
    assert_eq!(
        (statistics.discovered, statistics.queued, statistics.visits),
        (10, 8, 3)
    );
    assert_eq!(
        (
            statistics.succeeded,
            statistics.failed,
            statistics.disregarded
        ),
        (3, 1, 1)
    );
    assert_eq!((statistics.retries, statistics.bytes.novel), (1, 1343));
    assert_eq!(frontier.identity().unwrap().unwrap(), b"the job");
    let server = frontier.server("dns:a.org").unwrap();
    assert_eq!(server.unwrap(), b"127.0.0.1");
}

#[test]
fn the_crawl_of_format_1_goes_on() {
    let old = old(1);
    let mut frontier = open(&old.store);
    let mut issued = Vec::new();
    let mut now = 10;
    while issued.len() < 4 {
        match frontier.next(at(now)).unwrap() {
            Next::Issue(issue) => {
                issued.push((now, issue.uri.to_string()));
                let outcome = success(secs(0), None, vec![]);
                frontier.finished(issue.ticket, outcome, at(now)).unwrap();
            }
            Next::WaitUntil(until) => now = until.as_second() - at(0).as_second(),
            other => panic!("{other:?}"),
        }
    }
    // What was in process rests first, as if its fetch had ended now; the crawl-delay and the back-off hold.
    let expected = [
        (10, "http://www.a.org/page"),
        (15, "http://f.org/in-process"),
        (31, "http://g.org/waits/2"),
        (38, "http://g.org/waits/1"),
    ];
    let issued: Vec<_> = issued
        .iter()
        .map(|(now, text)| (*now, text.as_str()))
        .collect();
    assert_eq!(issued, expected);
}

#[test]
fn what_format_1_knows_is_found_again_by_its_canonical_form() {
    let old = old(1);
    let mut frontier = open(&old.store);
    let again = |directive| Candidate {
        directive,
        ..revisited("http://a.org/", "L")
    };
    let scheduled = |frontier: &mut Frontier, candidate| {
        frontier.schedule(vec![candidate], at(100)).unwrap()[0]
    };
    assert_eq!(
        scheduled(&mut frontier, again(Directive::Normal)),
        Scheduled::Known
    );
    // Its record, which has another URI, is found and moved.
    assert_eq!(
        scheduled(&mut frontier, again(Directive::High)),
        Scheduled::Raised(Directive::High)
    );
    let record = frontier.record(&uri(URIS[0].0)).unwrap().unwrap();
    assert!(
        matches!(record.place, Place::Queued { due, .. } if due == at(100)),
        "{:?}",
        record.place
    );
    assert_eq!(
        scheduled(&mut frontier, candidate("http://e.org/deleted", "L")),
        Scheduled::Known
    );
    assert_eq!(
        scheduled(&mut frontier, candidate("http://new.org/", "L")),
        Scheduled::New
    );
}

#[test]
fn a_migrated_store_is_opened_again_as_any_other() {
    for (format, uris) in OLDER {
        let old = old(format);
        drop(open(&old.store));
        assert_eq!(names(&old.store), ["format", "lock", "store"]);
        let frontier = open(&old.store);
        assert_eq!(frontier.records("").count(), uris);
    }
}

#[test]
fn a_migration_cut_short_before_the_format_file_is_begun_anew() {
    for older in OLDER {
        check_cut_short(older, |dir| {
            for file in ["store.new/version", "store.new/keyspaces/1/x"] {
                let file = dir.join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, "torn").unwrap();
            }
        });
    }
}

#[test]
fn a_migration_cut_short_after_the_format_file_is_gone_on_with() {
    /// Takes the files of a store from before and after, and puts them together.
    #[track_caller]
    fn check(older: (u32, usize), store: Option<bool>, new: bool, old_one: Option<&str>) {
        let migrated = old(older.0);
        drop(open(&migrated.store));
        check_cut_short(older, |dir| {
            fs::write(dir.join("format"), "3\n").unwrap();
            match store {
                Some(true) => {
                    fs::remove_dir_all(dir.join("store")).unwrap();
                    fs::rename(migrated.store.join("store"), dir.join("store")).unwrap();
                }
                Some(false) => {}
                None => fs::rename(dir.join("store"), dir.join("store.old")).unwrap(),
            }
            if new {
                fs::rename(migrated.store.join("store"), dir.join("store.new")).unwrap();
            }
            if let Some(file) = old_one {
                let file = dir.join("store.old").join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, "half removed").unwrap();
            }
        });
    }
    for older in OLDER {
        check(older, Some(false), true, None);
        check(older, None, true, None);
        check(older, Some(true), false, Some("0.jnl"));
        check(older, Some(true), false, None);
    }
}

#[test]
fn a_torn_store_of_an_older_format_is_not_touched() {
    for (format, file, bytes) in [
        (1, "store/version", &b"FJL\x09"[..]),
        (1, "store/keyspaces/0/current", b""),
        (1, "store/keyspaces/3/v0", b"x"),
        (2, "store/version", b"FJL\x09"),
        (2, "store/keyspaces/0/current", b""),
        (2, "store/keyspaces/13/v0", b"x"),
    ] {
        let old = old(format);
        let lock = old.store.join("lock");
        fs::write(&lock, "").unwrap();
        fs::write(old.store.join("store/lock"), "").unwrap();
        fs::write(old.store.join(file), bytes).unwrap();
        let before = content(&old.store);
        let error = Frontier::open(&old.store, Config::default())
            .map(drop)
            .unwrap_err();
        assert!(
            matches!(error, Error::Torn { .. } | Error::Unopenable { .. }),
            "{file}: {error:?}"
        );
        assert!(content(&old.store) == before, "{file}: a file has changed");
    }
}

#[test]
fn a_check_does_not_rewrite_a_store_of_an_older_format() {
    for (format, _) in OLDER {
        let old = old(format);
        let before = content(&old.store);
        let error = Frontier::check(&old.store, &Config::default(), &mut |_| {}).unwrap_err();
        assert!(
            matches!(&error, Error::OtherVersion { written, .. } if *written == format.to_string()),
            "{error:?}"
        );
        assert!(content(&old.store) == before, "a file has changed");
    }
    let formats = OLDER.len() as u32;
    assert_eq!(
        FORMAT_VERSION,
        formats + 1,
        "keep a store of each format, see above"
    );
}

/// Every URI of the store of format 2 and where it stands, as above.
const URIS_OF_2: [(&str, Standing, Option<i64>); 7] = [
    ("http://www.a.org/", Standing::Succeeded, Some(11_221)),
    ("http://www.a.org/page", Standing::Failed, Some(2_423_210)),
    (
        "http://cdn.org/image.png",
        Standing::Succeeded,
        Some(60_020),
    ),
    ("http://d.org/once", Standing::Succeeded, None),
    ("http://e.org/deleted", Standing::Succeeded, None),
    ("http://f.org/in-process", Standing::Failed, Some(4030)),
    ("http://old.org/image.png", Standing::Succeeded, None),
];

#[test]
fn every_record_of_format_2_is_there() {
    let old = old(2);
    let frontier = open(&old.store);
    let records: Vec<UriRecord> = frontier.records("").map(Result::unwrap).collect();
    let found: Vec<_> = records
        .iter()
        .map(|record| {
            let due = match record.place {
                Place::Queued { due, .. } => Some(due.as_second() - at(0).as_second()),
                _ => None,
            };
            (record.uri.as_str(), record.standing, due)
        })
        .collect();
    assert_eq!(found, URIS_OF_2);
    assert_eq!(
        [3, 4, 6].map(|index| records[index].place),
        [Place::Done, Place::Deleted, Place::Faded]
    );
    assert_eq!(records[2].referrers, 1);
    let page = &records[0];
    assert_eq!((page.visits, page.versions, page.history.len()), (2, 2, 2));
    assert_eq!(page.digests.payload, Some([7; 20]));
    assert_eq!(page.archived.as_ref().unwrap().offset, 1024);
    let kept = page.kept.get("plugin", "value").unwrap();
    assert_eq!((kept.version, kept.value.as_str()), (0, "value"));
    assert_eq!(page.fingerprint, None);
    assert_eq!(findings(&old_closed(frontier, &old)), []);
}

#[test]
fn queues_statistics_and_the_rest_of_format_2_are_there() {
    let old = old(2);
    let frontier = open(&old.store);
    let a = frontier.queue("org,a,www,", at(4040)).unwrap().unwrap();
    assert_eq!((a.ready, a.waiting, a.finished, a.spent), (0, 2, 3, 103));
    assert_eq!(a.group.as_deref(), Some("servers"));
    assert_eq!((a.tally.fetched, a.tally.bytes), (2, 2534));
    assert_eq!(a.tally.run_time, secs(0));
    let host = frontier.tally(TallyKind::Host, "www.a.org").unwrap();
    assert_eq!((host.fetched, host.novel_bytes), (2, 2534));
    let settings = &a.settings;
    assert_eq!((settings.valence, settings.bandwidth), (2, Some(1_000_000)));
    let quota = |count| Quota {
        fetched: Some(count),
        succeeded: Some(count + 1),
        novel: Some(count + 2),
        bytes: Some(count + 3_000_000),
        novel_bytes: Some(count + 4_000_000),
        run_time: None,
    };
    assert_eq!(
        (settings.quota, settings.host_quota, settings.domain_quota),
        (quota(100), quota(200), quota(300))
    );

    let statistics = frontier.statistics();
    assert_eq!(
        (statistics.discovered, statistics.queued, statistics.visits),
        (7, 4, 6)
    );
    assert_eq!((statistics.succeeded, statistics.failed), (5, 2));
    assert_eq!((statistics.refused, statistics.faded), (1, 1));
    assert_eq!(
        (statistics.run_time, statistics.tally.bytes),
        (secs(77), 2841)
    );
    assert_eq!(frontier.identity().unwrap().unwrap(), b"the job");
    let server = frontier.server("dns:a.org").unwrap();
    assert_eq!(server.unwrap(), b"127.0.0.1");
    let far = uri("http://far.org/");
    let why = frontier.why(&far, far.as_str(), at(4040)).unwrap();
    assert!(
        matches!(&why, Why::Refused(refused) if refused.reason == "hops"),
        "{why:?}"
    );
}

#[test]
fn the_crawl_of_format_2_goes_on() {
    let old = old(2);
    let mut frontier = Frontier::open(
        &old.store,
        Config {
            settings_hash: 5,
            ..Config::default()
        },
    )
    .unwrap();
    let mut issued = Vec::new();
    let mut now = 4200;
    while issued.len() < 2 {
        match frontier.next(at(now)).unwrap() {
            Next::Issue(issue) => {
                issued.push((now, issue.uri.to_string()));
                let outcome = success(secs(0), None, vec![]);
                frontier.finished(issue.ticket, outcome, at(now)).unwrap();
            }
            Next::WaitUntil(until) => now = until.as_second() - at(0).as_second(),
            other => panic!("{other:?}"),
        }
    }
    // What was in process rests first.
    let expected = [
        (4205, "http://f.org/in-process"),
        (11_221, "http://www.a.org/"),
    ];
    let issued: Vec<_> = issued
        .iter()
        .map(|(now, text)| (*now, text.as_str()))
        .collect();
    assert_eq!(issued, expected);
    // What has faded is back when it is found again.
    let again = frontier
        .schedule(vec![revisited("http://old.org/image.png", "E")], at(now))
        .unwrap();
    assert_eq!(again, [Scheduled::Raised(Directive::Normal)]);
}

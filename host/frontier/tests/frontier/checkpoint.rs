//! Checkpoints: copies of a frontier that are taken while it is used.

use std::fs;

use opilio_frontier::{
    Frontier, FrontierConfig, FrontierError, Next, QueueReport, Statistics, Strategy, UriRecord,
};

use crate::site::{at, candidate, config, revisited, secs, success};

/// All records, queues, statistics and a caller value of a frontier.
type Contents = (
    Vec<UriRecord>,
    Vec<QueueReport>,
    Statistics,
    Option<Vec<u8>>,
);

fn contents(frontier: &Frontier) -> Contents {
    let records = frontier.records("").map(Result::unwrap).collect();
    let mut queues = frontier.queues(None, usize::MAX, at(0)).unwrap();
    for queue in &mut queues {
        // The next call with a time puts back the URIs that were in process.
        queue.in_process = 0;
    }
    let mut statistics = frontier.statistics();
    statistics.queued += std::mem::take(&mut statistics.in_process);
    (
        records,
        queues,
        statistics,
        frontier.caller_value("dns:a.org").unwrap(),
    )
}

/// Runs some steps, one a second: schedules, fetches, finishes, and leaves some URIs in process.
fn crawl(frontier: &mut Frontier, seconds: std::ops::Range<i64>) {
    for second in seconds {
        let text = format!("http://host{}.org/{second}", second % 7);
        let strategy = [Strategy::Snapshot, Strategy::Revisit][usize::from(second % 2 == 0)];
        let found = opilio_frontier::Candidate {
            strategy,
            ..candidate(&text, "L")
        };
        frontier.schedule(vec![found], at(second)).unwrap();
        let Next::Issue(issue) = frontier.next(at(second)).unwrap() else {
            continue;
        };
        if second % 50 == 0 {
            continue;
        }
        let outlinks = vec![
            revisited(&format!("{text}/outlink"), "LL"),
            revisited(&format!("http://cdn{}.net/", second % 5), "LE"),
        ];
        let outcome = success(secs(1), Some(secs(100)), outlinks);
        frontier
            .finished(issue.ticket, outcome, at(second))
            .unwrap();
    }
}

fn open(dir: &std::path::Path) -> Frontier {
    Frontier::open(dir, config()).unwrap()
}

#[test]
fn a_checkpoint_has_the_state_of_its_moment_while_the_crawl_continues() {
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("copy");
    let mut frontier = open(&dir.path().join("frontier"));
    frontier.put_caller_value("dns:a.org", b"then").unwrap();
    crawl(&mut frontier, 0..400);

    let then = contents(&frontier);
    let checkpoint = frontier.checkpoint();
    frontier.put_caller_value("dns:a.org", b"later").unwrap();
    crawl(&mut frontier, 400..500);
    let writer = std::thread::spawn({
        let copy = copy.clone();
        move || checkpoint.write(&copy).unwrap()
    });
    crawl(&mut frontier, 500..800);
    let summary = writer.join().unwrap();
    assert_ne!(contents(&frontier), then);

    let mut restored = open(&copy);
    let now = contents(&restored);
    assert_eq!(summary.uris, now.0.len() as u64);
    assert_eq!(now.0, then.0);
    for (now, then) in now.1.iter().zip(&then.1) {
        // The state of a queue that had a URI in process may differ.
        assert_eq!(
            QueueReport {
                state: then.state,
                ..now.clone()
            },
            *then
        );
    }
    assert_eq!(now.1.len(), then.1.len());
    assert_eq!((now.2, now.3), (then.2, then.3));
    crawl(&mut restored, 10_000..10_400);
    drop((restored, frontier));
    for store in ["copy", "frontier"] {
        let dir = dir.path().join(store);
        Frontier::check(&dir, &config(), &mut |finding| panic!("{store}: {finding}")).unwrap();
    }
}

#[test]
fn frontier_and_checkpoint_continue_alike() {
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("copy");
    let mut frontier = open(&dir.path().join("frontier"));
    // No URI is in process at the end.
    crawl(&mut frontier, 1..49);
    frontier.checkpoint().write(&copy).unwrap();
    let mut restored = open(&copy);
    for second in 50..400 {
        let [one, other] = [&mut frontier, &mut restored].map(|frontier| {
            match frontier.next(at(second)).unwrap() {
                Next::Issue(issue) => {
                    let outcome = success(secs(1), Some(secs(100)), vec![]);
                    frontier
                        .finished(issue.ticket, outcome, at(second))
                        .unwrap();
                    issue.uri.to_string()
                }
                other => format!("{other:?}"),
            }
        });
        assert_eq!(one, other, "{second}");
    }
}

#[test]
fn a_uri_in_process_is_queued_in_the_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("copy");
    let mut frontier = open(&dir.path().join("frontier"));
    frontier
        .schedule(vec![candidate("http://a.org/", "")], at(0))
        .unwrap();
    let Next::Issue(issue) = frontier.next(at(0)).unwrap() else {
        panic!("it is ready");
    };
    frontier.checkpoint().write(&copy).unwrap();
    frontier
        .finished(issue.ticket, success(secs(0), None, vec![]), at(1))
        .unwrap();
    let mut restored = open(&copy);
    // As after a crash, its queue waits first.
    assert!(matches!(restored.next(at(5)).unwrap(), Next::WaitUntil(until) if until == at(15)));
    assert!(matches!(restored.next(at(15)).unwrap(), Next::Issue(_)));
}

#[test]
fn a_checkpoint_overwrites_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let frontier = open(&dir.path().join("frontier"));
    for existing in ["folder", "frontier"] {
        let path = dir.path().join(existing);
        fs::create_dir_all(&path).unwrap();
        let error = frontier.checkpoint().write(&path).unwrap_err();
        assert!(matches!(error, FrontierError::Exists { .. }), "{error:?}");
    }
    assert!(
        fs::read_dir(dir.path().join("folder"))
            .unwrap()
            .next()
            .is_none()
    );
}

#[test]
fn an_interrupted_checkpoint_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let (copy, new) = (dir.path().join("copy"), dir.path().join("copy.new"));
    let frontier = open(&dir.path().join("frontier"));
    fs::create_dir_all(new.join("store/keyspaces/7")).unwrap();
    fs::write(new.join("store/version"), "half").unwrap();
    frontier.checkpoint().write(&copy).unwrap();
    assert!(!new.exists());
    open(&copy);
}

#[test]
fn a_checkpoint_in_progress_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let new = dir.path().join("copy.new");
    let frontier = open(&dir.path().join("frontier"));
    let other_writer = open(&new);
    let error = frontier
        .checkpoint()
        .write(&dir.path().join("copy"))
        .unwrap_err();
    assert!(matches!(error, FrontierError::InUse { .. }), "{error:?}");
    drop(other_writer);
    assert!(new.join("format").exists());
}

#[test]
fn a_checkpoint_outlives_its_frontier() {
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("copy");
    let mut frontier = open(&dir.path().join("frontier"));
    crawl(&mut frontier, 0..20);
    let then = contents(&frontier).0;
    let checkpoint = frontier.checkpoint();
    drop(frontier);
    checkpoint.write(&copy).unwrap();
    assert_eq!(contents(&open(&copy)).0, then);
}

#[test]
fn a_checkpoint_can_be_opened_with_other_settings() {
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("copy");
    open(&dir.path().join("frontier"))
        .checkpoint()
        .write(&copy)
        .unwrap();
    Frontier::open(&copy, FrontierConfig::default())
        .map(drop)
        .unwrap();
}

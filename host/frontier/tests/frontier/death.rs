//! Sudden deaths. A child process schedules, fetches and finishes URIs, and reports what has been acknowledged. It is killed at
//! arbitrary moments, several times on one store. Nothing that was acknowledged may be missing, and the crawl must continue to its
//! end. Other children die while they write a checkpoint.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use opilio_frontier::{Frontier, FrontierConfig, LastOutcome, Next, UriState};

use crate::site::{at, candidate, success, with_queue};

/// Environment variables for the child: the folder to work in, and the number of the round.
const DIR: &str = "OPILIO_TEST_DEATH_DIR";
const ROUND: &str = "OPILIO_TEST_DEATH_ROUND";

/// Settings without politeness delays, so that the child makes progress before it is killed.
fn without_delays() -> FrontierConfig {
    with_queue(|queue| {
        queue.politeness.min_delay = Duration::ZERO;
        queue.politeness.max_delay = Duration::ZERO;
    })
}

/// The process that is killed; not a test by itself.
#[test]
#[ignore = "run by acknowledged_changes_survive_sudden_death alone"]
fn child() {
    let (Ok(dir), Ok(round)) = (std::env::var(DIR), std::env::var(ROUND)) else {
        return;
    };
    let mut frontier = Frontier::open(Path::new(&dir), without_delays()).unwrap();
    let mut out = std::io::stdout().lock();
    let start = round.parse::<i64>().unwrap() * 1_000_000;
    for step in 0i64.. {
        let now = at(start + step);
        let text = format!("http://host{}.org/{round}/{step}", step % 7);
        frontier.schedule(vec![candidate(&text, "")], now).unwrap();
        writeln!(out, "\nscheduled {text}").unwrap();
        let Next::Issue(issue) = frontier.next(now).unwrap() else {
            continue;
        };
        let outlink = format!("{text}/outlink");
        frontier
            .finished(
                issue.ticket,
                success(Duration::ZERO, None, vec![candidate(&outlink, "L")]),
                now,
            )
            .unwrap();
        writeln!(out, "\nscheduled {outlink}\nfinished {}", issue.uri).unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn acknowledged_changes_survive_sudden_death() {
    let dir = tempfile::tempdir().unwrap();
    let mut scheduled = BTreeSet::new();
    let mut finished = BTreeSet::new();
    for (round, lines_until_death) in [1, 2, 50, 301, 1_000].into_iter().enumerate() {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "death::child", "--ignored", "--nocapture"])
            .envs([
                (DIR, dir.path().as_os_str()),
                (ROUND, round.to_string().as_ref()),
            ])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acknowledged = 0;
        for line in lines {
            let line = line.unwrap();
            if let Some(text) = line.strip_prefix("scheduled ") {
                scheduled.insert(text.to_owned());
                acknowledged += 1;
            } else if let Some(text) = line.strip_prefix("finished ") {
                finished.insert(text.to_owned());
                acknowledged += 1;
            }
            if acknowledged == lines_until_death {
                // SIGKILL, at an arbitrary moment. Lines printed before it are still read.
                child.kill().unwrap();
            }
        }
        assert!(
            acknowledged >= lines_until_death,
            "the child ended by itself"
        );
        child.wait().unwrap();
        check(dir.path(), &scheduled, &finished);
    }
    drain(dir.path(), &scheduled);
}

/// Checks that everything acknowledged is there, and that the store is consistent.
fn check(dir: &Path, scheduled: &BTreeSet<String>, finished: &BTreeSet<String>) {
    Frontier::check(dir, &without_delays(), &mut |finding| panic!("{finding}")).unwrap();
    let frontier = Frontier::open(dir, without_delays()).unwrap();
    let records: BTreeMap<_, _> = frontier
        .records("")
        .map(|record| record.map(|record| (record.uri.clone(), record)).unwrap())
        .collect();
    for text in scheduled {
        assert!(records.contains_key(text), "{text} is missing");
    }
    for text in finished {
        assert_eq!(
            (records[text].visits, records[text].state),
            (1, UriState::Done),
            "{text}"
        );
    }
    let statistics = frontier.statistics();
    let queued = records
        .values()
        .filter(|record| record.state != UriState::Done)
        .count();
    let succeeded = records
        .values()
        .filter(|record| record.last_outcome == LastOutcome::Succeeded)
        .count();
    assert_eq!(statistics.discovered, records.len() as u64);
    assert_eq!(
        (statistics.queued, statistics.succeeded),
        (queued as u64, succeeded as u64)
    );
    let reports = frontier.queues(None, usize::MAX, at(0)).unwrap();
    assert_eq!(
        reports.iter().map(|report| report.ready).sum::<u64>(),
        queued as u64
    );
}

/// Finishes the crawl: every URI that is not done is issued, once.
fn drain(dir: &Path, scheduled: &BTreeSet<String>) {
    let mut frontier = Frontier::open(dir, without_delays()).unwrap();
    let mut now = 100_000_000;
    loop {
        now += 1;
        match frontier.next(at(now)).unwrap() {
            Next::Issue(issue) => {
                assert_eq!(issue.record.visits, 0, "{} again", issue.uri);
                frontier
                    .finished(issue.ticket, success(Duration::ZERO, None, vec![]), at(now))
                    .unwrap();
            }
            Next::Empty => break,
            Next::WaitUntil(_) | Next::InProcess => panic!("no queue should wait"),
        }
    }
    let visited = frontier
        .records("")
        .map(Result::unwrap)
        .filter(|record| record.visits == 1)
        .count();
    assert!(visited >= scheduled.len());
    assert_eq!(frontier.statistics().succeeded, visited as u64);
}

/// The process that is killed while it writes a checkpoint; not a test by itself.
#[test]
#[ignore = "run by a_checkpoint_killed_at_any_moment_is_whole_or_absent alone"]
fn checkpointing_child() {
    let Ok(dir) = std::env::var(DIR) else {
        return;
    };
    let frontier = Frontier::open(Path::new(&dir), without_delays()).unwrap();
    let checkpoint = Path::new(&dir).with_file_name("checkpoint");
    frontier.checkpoint().write(&checkpoint).unwrap();
}

/// Starts a child that writes a checkpoint of the store in `dir`, and kills it as soon as `file` exists. Returns false if it
/// ended before.
fn killed_at(dir: &Path, file: &Path) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "death::checkpointing_child", "--ignored"])
        .env(DIR, dir)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let is_killed = loop {
        if file.exists() {
            child.kill().unwrap();
            break true;
        }
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            break false;
        }
    };
    child.wait().unwrap();
    is_killed
}

#[test]
fn a_checkpoint_killed_at_any_moment_is_whole_or_absent() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let mut frontier = Frontier::open(&store, without_delays()).unwrap();
    let candidates = (0..5_000).map(|number| candidate(&format!("http://a.org/{number}"), ""));
    let candidates: Vec<_> = candidates.collect();
    let uris = candidates.len();
    frontier.schedule(candidates, at(0)).unwrap();
    drop(frontier);

    let checkpoint = dir.path().join("checkpoint");
    let mut killed = 0;
    for file in [
        "checkpoint.new/lock",
        "checkpoint.new/store/keyspaces/2",
        "checkpoint.new/store/keyspaces/1/tables/0",
        "checkpoint.new/format",
        "checkpoint",
    ] {
        killed += u32::from(killed_at(&store, &dir.path().join(file)));
        for (path, is_there) in [(&store, true), (&checkpoint, checkpoint.exists())] {
            if is_there {
                Frontier::check(path, &without_delays(), &mut |finding| panic!("{finding}"))
                    .unwrap();
                let frontier = Frontier::open(path, without_delays()).unwrap();
                assert_eq!(frontier.records("").count(), uris, "{file}");
            }
        }
        let _ = std::fs::remove_dir_all(&checkpoint);
    }
    assert!(killed > 0, "no child was killed");
}

//! `opilio job verify`: comparison of archive, indexes, log and frontier of a job, and repair.

use std::fs;
use std::path::{Path, PathBuf};

use opilio_archive::Reader;
use opilio_stories::{asked, html, lines, site, sound};
use opilio_test_web::Web;
use serde_json::Value;

use crate::command::{Home, WWW};

/// Serves a site of three pages.
async fn web() -> Web {
    site(WWW)
        .page("/", html("<a href='/a.html'>a</a>"))
        .page("/a.html", html("<a href='/b.html'>b</a>"))
        .page("/b.html", html("the last"))
        .serve()
        .await
}

/// Crawls the site to the end.
fn crawl(home: &Home, web: &Web) {
    home.profile("name = 'three'\nworkers = 1");
    let seed = web.url(WWW, "/");
    home.run(&["crawl", "p.toml", "--seed", &seed, "--job", "job"])
        .code(0);
}

/// Returns the kinds of all discrepancies and whether they were repaired, sorted.
fn verify(home: &Home, repair: bool, code: i32) -> Vec<String> {
    let verify: &[&str] = match repair {
        true => &["job", "verify", "job", "--json", "--repair"],
        false => &["job", "verify", "job", "--json"],
    };
    let ended = home.run(verify).code(code);
    let findings = ended.out.lines().map(|line| line.parse::<Value>().unwrap());
    let mut kinds: Vec<String> = findings
        .filter_map(|found| {
            let repaired = match found["is_repaired"].as_bool() {
                Some(true) => " repaired",
                _ => "",
            };
            Some(format!("{}{repaired}", found["kind"].as_str()?))
        })
        .collect();
    kinds.sort();
    kinds
}

/// Returns the only file of the archive of a job.
fn warc(job: &Path) -> PathBuf {
    let files = fs::read_dir(job.join("warcs")).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    files
        .find(|file| file.extension().is_some_and(|it| it == "gz"))
        .unwrap()
}

/// Deletes the line about a URI from the log.
fn without_line(job: &Path, uri: &str) {
    let log = job.join("logs/crawl.log");
    let text = fs::read_to_string(&log).unwrap();
    let left: String = text
        .lines()
        .filter(|line| line.split_ascii_whitespace().nth(3) != Some(uri))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_ne!(left, text);
    fs::write(log, left).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn discrepancies_are_reported_and_repaired() {
    let (home, web) = (Home::new(), web().await);
    let none = home.run(&["job", "verify", "job"]).code(2);
    assert!(none.err.contains("job job not found"), "{none:?}");
    crawl(&home, &web);
    assert_eq!(verify(&home, false, 0), [""; 0]);

    let warc = warc(&home.job());
    let index = opilio_archive::index_path(&warc);
    let listed = fs::read(&index).unwrap();
    fs::remove_file(&index).unwrap();
    fs::write(index.with_extension("cdxj.open"), "left").unwrap();
    let page = web.url(WWW, "/b.html");
    let before = lines(&home.job());
    without_line(&home.job(), &page);
    let expected = ["index-left", "index-missing", "line-missing"];
    assert_eq!(verify(&home, false, 1), expected);
    assert_eq!(verify(&home, false, 1), expected, "nothing was changed");
    let repaired = expected.map(|kind| format!("{kind} repaired"));
    assert_eq!(verify(&home, true, 0), repaired);
    assert_eq!(verify(&home, false, 0), [""; 0]);
    assert_eq!(fs::read(&index).unwrap(), listed);
    let line = |lines: &[opilio_stories::LoggedUri]| {
        let line = lines.iter().find(|line| line.uri == page);
        line.unwrap().clone()
    };
    let (then, now) = (line(&before), line(&lines(&home.job())));
    assert_eq!(
        (
            now.status, now.size, now.hops, now.via, now.digest, now.took
        ),
        (
            then.status,
            then.size,
            then.hops,
            then.via,
            then.digest,
            then.took
        )
    );
    assert_eq!(now.annotations, ["recovered"]);

    // The counts include the line again, like the log.
    let report = home.run(&["job", "breakdown", "job", "--json"]).code(0);
    assert!(report.out.contains("200"), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn captures_that_the_archive_has_lost_are_fetched_again() {
    let (home, web) = (Home::new(), web().await);
    crawl(&home, &web);
    let (page, warc) = (web.url(WWW, "/b.html"), warc(&home.job()));
    let mut reader = Reader::open(&warc).unwrap();
    let mut cut = None;
    while let Some(record) = reader.next_record().unwrap() {
        if record.headers().target_uri() == Some(&page) {
            cut.get_or_insert(record.offset());
        }
        record.finish().unwrap();
    }
    let file = fs::OpenOptions::new().write(true).open(&warc).unwrap();
    file.set_len(cut.unwrap()).unwrap();

    let found = ["capture-missing", "index-wrong", "record-missing"];
    assert_eq!(verify(&home, false, 1), found);
    let repaired = [
        "capture-missing repaired",
        "index-wrong repaired",
        "record-missing",
    ];
    assert_eq!(verify(&home, true, 1), repaired);
    home.run(&["crawl", "p.toml", "--job", "job"]).code(0);
    let requests = asked(&web);
    let times = requests.iter().filter(|it| it.ends_with("/b.html")).count();
    assert_eq!(times, 2, "{requests:?}");
    sound(&home.job());
    // The log line of the lost capture remains.
    assert_eq!(verify(&home, false, 1), ["record-missing"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_start_writes_lines_that_a_kill_has_lost_and_no_line_twice() {
    let (home, web) = (Home::new(), web().await);
    crawl(&home, &web);
    let page = web.url(WWW, "/a.html");
    let again = ["crawl", "p.toml", "--job", "job"];
    // A job that ended gracefully is not checked at its next start.
    without_line(&home.job(), &page);
    home.run(&again).code(0);
    assert_eq!(verify(&home, false, 1), ["line-missing"]);
    // Makes the job look as if its process had been killed.
    let file = home.job().join("process.json");
    let process_record = fs::read_to_string(&file).unwrap();
    let mut process_record: Value = process_record.parse().unwrap();
    process_record["ended"] = Value::Null;
    for _ in 0..2 {
        fs::write(&file, process_record.to_string()).unwrap();
        home.run(&again).code(0);
        assert_eq!(verify(&home, false, 0), [""; 0]);
    }
    let of_page = |line: &opilio_stories::LoggedUri| line.uri == page;
    let lines = lines(&home.job());
    assert_eq!(lines.iter().filter(|line| of_page(line)).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_job_is_not_verified() {
    let (home, gate) = (Home::new(), crate::job::Gate::serve(&[("/", "held")]));
    let mut running = crate::job::waiting(&home, &gate, "").await;
    let refused = home.run(&["job", "verify", "job"]).code(1);
    assert!(refused.err.contains("stop it first"), "{refused:?}");
    gate.open();
    assert_eq!(running.wait(), 0);
    assert_eq!(verify(&home, false, 0), [""; 0]);
}

//! Logs, reports, metrics and alerts of a job; help, manual pages and completions of the command line.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdout, Stdio};

use opilio_stories::{asked, until};
use opilio_test_web::Gate;
use serde_json::{Value, json};

use crate::command::{Home, WWW, held_tree, tree};

const PAGES: usize = 40;

/// Crawls a tree of pages in a job.
async fn crawled(home: &Home) {
    let web = tree(PAGES, 0).await;
    home.profile("name = 'tree'\nworkers = 2");
    let seed = web.url(WWW, "/");
    home.run(&[
        "crawl", "p.toml", "--seed", &seed, "--job", "job", "--quiet",
    ])
    .code(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_are_selected_by_number_time_and_content() {
    let home = Home::new();
    crawled(&home).await;
    let list = home.run(&["job", "logs", "job"]).code(0).out;
    assert!(
        list.lines().any(|line| line.ends_with(" crawl.log")),
        "{list}"
    );
    let all = std::fs::read_to_string(home.job().join("logs/crawl.log")).unwrap();
    let lines: Vec<&str> = all.lines().collect();
    let objects = home.run(&["job", "logs", "job", "--json"]).code(0).out;
    let mut objects = objects
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let object = objects.find(|object| object["name"] == "crawl.log");
    assert_eq!(object.unwrap()["size"], all.len());
    let table = [
        "job",
        "logs",
        "job",
        "crawl",
        "--parquet",
        "t.parquet",
        "--json",
    ];
    let table = home.run(&table).code(0).out;
    let table: Value = serde_json::from_str(&table).unwrap();
    assert_eq!(
        table,
        json!({ "answer": "written", "file": "t.parquet", "rows": lines.len() })
    );
    let refused = home.run(&["job", "logs", "job", "crawl", "--json"]).code(2);
    assert!(refused.err.contains("crawl.jsonl"), "{refused:?}");

    let of = |arguments: &[&str]| {
        let arguments = [&["job", "logs", "job", "crawl"], arguments].concat();
        let out = home.run(&arguments).code(0).out;
        out.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(of(&[]), lines[lines.len() - 20..]);
    assert_eq!(of(&["--tail", "3"]), lines[lines.len() - 3..]);
    assert_eq!(of(&["--since", "1h"]), lines);
    let time = lines[10].split(' ').next().unwrap();
    let from = lines
        .iter()
        .position(|line| line.starts_with(time))
        .unwrap();
    assert_eq!(of(&["--since", time]), lines[from..]);
    let found = of(&["--grep", "/1[0-9]\\.html L", "--tail", "100"]);
    assert_eq!(found.len(), 10, "{found:?}");

    let wrong = home.run(&["job", "logs", "job", "nonsense"]).code(2).err;
    assert!(wrong.contains("log \"nonsense\" not found"), "{wrong}");
    let wrong = home
        .run(&["job", "logs", "job", "crawl", "--grep", "("])
        .code(2)
        .err;
    assert!(wrong.contains("--grep"), "{wrong}");
    let wrong = home
        .run(&["job", "logs", "job", "crawl", "--since", "noon"])
        .code(2)
        .err;
    assert!(wrong.contains("invalid time \"noon\""), "{wrong}");
    let wrong = home.run(&["job", "logs", "job", "../job.json"]).code(2).err;
    assert!(wrong.contains("not found"), "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_and_metrics_are_available_during_and_after_the_crawl() {
    let gate = Gate::closed();
    let (home, web) = (Home::new(), held_tree(300, 0, &[(30, &gate)]).await);
    home.profile("name = 'tree'\nworkers = 2");
    let seed = web.url(WWW, "/");
    let mut running = home.start(&["crawl", "p.toml", "--seed", &seed, "--job", "job"]);
    until("twenty pages are requested", || asked(&web).len() >= 20).await;
    home.run(&["job", "pause", "job"]).code(0);
    gate.open();
    let report = home.run(&["job", "report", "job"]).code(0).out;
    assert!(report.contains("crawl name: job\n"), "{report}");
    assert!(report.contains("\nprofile: tree\n"), "{report}");
    let figures = home.run(&["job", "metrics", "job"]).code(0).out;
    assert!(
        figures.contains("opilio_job_up{job_name=\"job\"} 1\n"),
        "{figures}"
    );
    let rotated = home.run(&["job", "logs", "job", "--rotate", "--json"]);
    let rotated: Value = serde_json::from_str(&rotated.code(0).out).unwrap();
    assert_eq!(rotated["answer"], "done", "{rotated}");
    home.run(&["job", "resume", "job"]).code(0);
    assert_eq!(running.wait(), 0);

    let rows = home
        .run(&["job", "report", "job", "responsecode", "--json"])
        .code(0)
        .out;
    let rows: Vec<Value> = rows
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    let fetched = rows.iter().find(|row| row["status"] == 200).unwrap();
    assert_eq!(fetched["uris"], 299, "{rows:?}");
    let figures = home.run(&["job", "metrics", "job"]).code(0).out;
    let counted = "opilio_visits_finished_by_status_total{job_name=\"job\",status=\"200\"} 299\n";
    assert!(figures.contains(counted), "{figures}");
    assert!(
        figures.contains("opilio_job_up{job_name=\"job\"} 0\n"),
        "{figures}"
    );
    let alerts = home.run(&["job", "alerts", "job"]).code(0).out;
    assert!(alerts.contains("no active alerts"), "{alerts}");
    let refused = home.run(&["job", "logs", "job", "--rotate"]).code(1).err;
    assert!(refused.contains("no process runs job"), "{refused}");
}

#[test]
fn completions_and_manual_pages_are_printed() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = home.run(&["completions", shell]).code(0).out;
        assert!(
            script.contains("opilio") && script.contains("checkpoint"),
            "{shell}"
        );
    }
    home.run(&["completions", "tcsh"]).code(2);
    let page = home.run(&["man"]).code(0).out;
    let foot = concat!("opilio ", env!("CARGO_PKG_VERSION"));
    assert!(page.contains(".TH OPILIO 1"), "{page}");
    assert!(page.contains(foot), "{page}");
    home.run(&["man", "--dir", "man"]).code(0);
    let page = std::fs::read_to_string(home.path().join("man/opilio-job-logs.1")).unwrap();
    assert!(page.contains("\\-\\-follow"), "{page}");
}

#[cfg(unix)]
#[test]
fn the_daemon_serves_metrics_of_running_and_stopped_jobs() {
    let home = Home::new();
    home.run(&[
        "job",
        "new",
        "--profile",
        "demo",
        "--seed",
        "http://127.0.0.1:9/",
        "jobs/quiet",
    ])
    .code(0);
    let daemon = crate::serve::Daemon::start(&home, &["--no-auth"]);
    let answer = daemon.call("GET", "/metrics", None, "");
    let kind = "content-type: text/plain; version=0.0.4; charset=utf-8";
    assert!(answer.head.contains(kind), "{}", answer.head);
    let figure = "opilio_jobs{state=\"new\"} 1\n";
    assert!(answer.body.contains(figure), "{}", answer.body);
    assert!(!answer.body.contains("opilio_job_up"), "{}", answer.body);
}

/// A running `opilio job logs --follow`.
struct Followed {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Followed {
    fn start(home: &Home) -> Followed {
        let arguments = ["job", "logs", "job", "crawl", "--follow", "--tail", "1"];
        let mut command = home.opilio(&arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Followed { child, lines }
    }

    fn next(&mut self) -> String {
        self.lines.next().unwrap().unwrap() + "\n"
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_log_is_read_and_followed_over_its_rotations() {
    let home = Home::new();
    home.profile("");
    let new = ["job", "new", "./job", "--profile", "p.toml"];
    home.run(&[&new[..], &["--seed", "http://localhost/"]].concat())
        .code(0);
    let (log, line) = (home.job().join("logs/crawl.log"), |second: u8| {
        format!("2026-11-20T12:00:{second:02}.000Z 200 line {second}\n")
    });
    let write = |seconds: std::ops::Range<u8>| {
        let mut options = std::fs::File::options();
        let mut file = options.create(true).append(true).open(&log).unwrap();
        file.write_all(seconds.map(line).collect::<String>().as_bytes())
            .unwrap();
    };
    let rotate = |stamp: &str| {
        std::fs::rename(&log, log.with_file_name(format!("crawl.log.{stamp}"))).unwrap();
    };
    write(0..3);
    rotate("20261120120002500");
    write(3..5);
    std::fs::write(log.with_file_name("crawl.log.old"), line(59)).unwrap();

    let read = |arguments: &[&str]| {
        let all = [&["job", "logs", "job", "crawl"], arguments].concat();
        home.run(&all).code(0).out
    };
    let lines = |seconds: std::ops::Range<u8>| seconds.map(line).collect::<String>();
    assert_eq!(read(&[]), lines(0..5));
    assert_eq!(read(&["--tail", "3"]), lines(2..5));
    assert_eq!(read(&["--since", "2026-11-20T12:00:01Z"]), lines(1..5));
    assert_eq!(read(&["--grep", "line [03]"]), lines(0..1) + &lines(3..4));
    let arguments = ["--since", "2026-11-20T12:00:01Z", "--tail", "9"];
    assert_eq!(read(&arguments), lines(1..5));

    let mut followed = Followed::start(&home);
    assert_eq!(followed.next(), line(4));
    // Rotates the log twice between two checks, which a small logs.rotate-size can cause.
    write(5..7);
    rotate("20261120120006500");
    write(7..8);
    rotate("20261120120007500");
    write(8..20);
    for second in 5..20 {
        assert_eq!(followed.next(), line(second));
    }
}

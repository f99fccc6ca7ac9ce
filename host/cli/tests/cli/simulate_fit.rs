//! `opilio simulate fit`: rotated and compressed logs of crawls, and input that is not a log.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::command::{Ended, Home};

/// Returns log lines of thirty pages of a host, visited daily for twenty days: ten change daily, ten every fourth day, ten never.
fn lines() -> Vec<String> {
    let mut lines = Vec::new();
    for day in 1..=20 {
        for page in 0..30 {
            let version = match page / 10 {
                0 => day,
                1 => (day + page) / 4,
                _ => 0,
            };
            let mut line = String::new();
            let _ = writeln!(
                line,
                "2026-01-{day:02}T12:00:{page:02}.000Z   200       5000 http://www.example.org/news/{page} L \
                 http://www.example.org/ text/html #001 202601{day:02}1200{page:02}000+80 sha1:{page}-{version} - -"
            );
            lines.push(line);
        }
    }
    lines
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn fit(home: &Home, arguments: &[&str]) -> Ended {
    home.run(&[&["simulate", "fit"], arguments].concat())
}

/// Runs `opilio simulate fit` with this input on standard input.
fn fit_from(home: &Home, input: &[u8], arguments: &[&str]) -> Ended {
    let mut child = home
        .opilio(&[&["simulate", "fit"], arguments].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    Ended::of(&child.wait_with_output().unwrap())
}

#[test]
fn rotated_logs_in_any_order_are_one_log() {
    let home = Home::new();
    let lines = lines();
    home.file("whole.log", lines.concat());
    let expected = fit(&home, &["whole.log"]).code(0);
    let summary = "30 pages, 30 of them visited again, 570 intervals";
    assert!(expected.err.contains(summary), "{expected:#?}");

    let backwards: Vec<&str> = lines[..200].iter().rev().map(String::as_str).collect();
    home.file("crawl.log.1", backwards.concat());
    let members = [
        gzip(&lines[200..300].concat()),
        gzip(&lines[300..400].concat()),
    ];
    home.file("crawl.log.2.gz", members.concat());
    let last = lines[400..].concat();
    home.file("crawl.log", &last);
    for logs in [
        ["crawl.log.1", "crawl.log.2.gz", "crawl.log"],
        ["crawl.log", "crawl.log.2.gz", "crawl.log.1"],
        ["crawl.log.2.gz", "crawl.log", "crawl.log.1"],
    ] {
        let ended = fit(&home, &logs).code(0);
        assert_eq!(ended.out, expected.out, "{logs:?}");
        assert_eq!(ended.err, expected.err, "{logs:?}");
    }

    let rest = ["crawl.log.2.gz", "-", "crawl.log.1"];
    let ended = fit_from(&home, last.as_bytes(), &rest).code(0);
    assert_eq!(ended.out, expected.out);
    let whole = gzip(&lines.concat());
    assert_eq!(fit_from(&home, &whole, &["-"]).code(0).out, expected.out);
}

#[test]
fn a_fitted_scenario_can_be_simulated() {
    let home = Home::new();
    home.file("crawl.log", lines().concat());
    home.file(
        "daily.toml",
        "strategy = \"fixed\"\nrevisit.fixed-wait = \"24h\"\n",
    );
    let made = fit(&home, &["crawl.log", "--output", "web.toml"]).code(0);
    assert_eq!(made.out, "");
    let made = fit(&home, &["crawl.log", "--output", "again.toml", "--json"]).code(0);
    assert_eq!(made.err, "");
    let made: Value = serde_json::from_str(&made.out).unwrap();
    let expected = json!({
        "answer": "created", "file": "again.toml", "pages": 30, "revisited": 30, "intervals": 570,
    });
    assert_eq!(made, expected);
    let refused = fit(&home, &["crawl.log", "--json"]).code(2);
    assert!(refused.err.contains("--output"), "{refused:?}");
    let days = ["--days", "6", "--warm-up", "2", "--json"];
    let arguments = ["simulate", "web.toml", "--profile", "daily.toml"];
    let report = home.run(&[&arguments[..], &days].concat()).code(0).out;
    let report: Value = serde_json::from_str(&report).unwrap();
    // All thirty pages on each of four days.
    assert_eq!(report["visits"]["pages"], 120, "{report:#}");
    assert_eq!(report["starved"], 0, "{report:#}");
    for found in ["changed", "unchanged"] {
        assert!(report["visits"][found].as_u64() > Some(30), "{report:#}");
    }
}

/// Nothing is written if a line is invalid, the input is not text, or a time is impossible for a crawl.
#[test]
fn input_that_is_not_a_log_is_reported_once_with_its_position() {
    let home = Home::new();
    let lines = lines();
    let good = home.file("good.log", lines.concat());
    let whole = gzip(&lines.concat());
    home.file("cut.log.gz", &whole[..whole.len() / 2]);
    home.file("line.log", format!("{}nonsense\n", lines[0]));
    let mut state = 1_u32;
    let mut noise = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let garbage: Vec<u8> = (0..60_000).map(&mut noise).collect();
    home.file("image.jpg", &garbage);
    let late = |year: &str| lines[0].replace(" 2026", &format!(" {year}"));
    home.file("late.log", late("9999"));
    home.file("span.log", late("2326"));
    let before = home.names();
    for (log, expected) in [
        (
            "line.log",
            "line.log:2:1: 1 columns where a crawl log has 11 or more (take the line out",
        ),
        (
            "image.jpg",
            "image.jpg: neither text nor compressed with gzip (give a crawl.log",
        ),
        (
            "late.log",
            "late.log:1:114: \"99990101120000000\" is not in the years from 1970 to 8999 (take the line out",
        ),
        (
            "span.log",
            "span.log:1: 109572 days after good.log:1, and a scenario lasts for a hundred years at most (take out",
        ),
        (
            "cut.log.gz",
            "opilio: the compressed data of cut.log.gz is damaged behind line ",
        ),
        ("none.log", "opilio: cannot read none.log: "),
    ] {
        let arguments = ["good.log", log, "--output", "web.toml"];
        let ended = fit(&home, &arguments).code(2);
        assert!(ended.err.starts_with(expected), "{ended:#?}");
        // The error and the line that it refers to.
        assert!(ended.err.lines().count() <= 3, "{ended:#?}");
        assert_eq!(ended.out, "");
        assert_eq!(home.names(), before, "{log}");
    }
    let once: String = lines[..30].concat();
    let ended = fit_from(&home, once.as_bytes(), &["-"]).code(2);
    let expected = "no page that was visited twice in standard input";
    assert!(ended.err.contains(expected), "{ended:#?}");
    assert_eq!(std::fs::read_to_string(good).unwrap(), lines.concat());
}

#[test]
fn an_existing_file_is_not_overwritten() {
    let home = Home::new();
    let log = home.file("crawl.log", lines().concat());
    let mine = home.file("web.toml", "mine");
    for (output, path, content) in [
        ("crawl.log", log, lines().concat()),
        ("web.toml", mine, "mine".to_owned()),
    ] {
        let ended = fit(&home, &["crawl.log", "--output", output]).code(2);
        let expected = format!("opilio: {output} already exists; choose another file\n");
        assert_eq!(ended.err, expected);
        assert_eq!(ended.out, "");
        assert_eq!(std::fs::read_to_string(path).unwrap(), content);
    }
}

//! `opilio profile check`, `explain` and `new`: errors of a profile, and its effect on a URI.

use serde_json::{Value, json};

use crate::command::Home;

const SITES: &str = "\
strategy = 'revisit'
[[override]]
match.domain = ['a.org']
politeness.min-delay = '3s'
[[override]]
match = { surt = ['http://(org,a,)/old/'], source = ['https://seed.org/'] }
strategy = 'snapshot'
[[override]]
match = { domain = ['a.org'], time = '22:00-06:00' }
politeness.min-delay = '1s'
";

#[test]
fn every_value_is_shown_with_its_line() {
    let home = Home::new();
    home.file("p.toml", SITES);
    let ended = home
        .run(&[
            "profile",
            "explain",
            "a.org/old/x",
            "--profile",
            "p.toml",
            "--at",
            "2026-07-01T12:00:00Z",
        ])
        .code(0);
    let lines: Vec<Vec<&str>> = ended
        .out
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines[0], ["http://a.org/old/x"]);
    assert_eq!(lines[1], ["canonical", "http://a.org/old/x"]);
    assert_eq!(lines[2], ["queue", "org,a,"]);
    for expected in [
        ["strategy", "\"revisit\"", "p.toml:1"],
        ["politeness.min-delay", "\"3s\"", "p.toml:4"],
        ["politeness.max-delay", "\"5s\"", "default"],
    ] {
        assert!(lines.iter().any(|line| *line == expected), "{}", ended.out);
    }
    assert!(
        ended.out.contains("\n  robots.txt not fetched here; "),
        "{}",
        ended.out
    );
    assert!(
        ended.out.contains("\nwait after a first visit: "),
        "{}",
        ended.out
    );
    let extract = lines.iter().find(|line| line.first() == Some(&"extract"));
    assert_eq!(extract.unwrap()[1], "http", "{}", ended.out);
    let ended = home
        .run(&[
            "profile",
            "explain",
            "http://a.org/old/x",
            "--profile",
            "p.toml",
            "--json",
            "--source",
            "https://seed.org",
            "--at",
            "2026-07-01T23:00:00Z",
        ])
        .code(0);
    let explained: Value = serde_json::from_str(&ended.out).unwrap();
    let of = |key: &str| {
        let settings = explained["settings"].as_array().unwrap();
        let found = settings.iter().find(|one| one["key"] == key).unwrap();
        (found["value"].clone(), found["line"].as_u64())
    };
    assert_eq!(explained["queue"], "org,a,");
    let robots = explained["robots"].as_str().unwrap();
    assert!(robots.starts_with("not fetched here"), "{robots}");
    assert!(
        explained["waits"].as_array().unwrap().is_empty(),
        "{explained}"
    );
    assert_eq!(of("strategy"), ("snapshot".into(), Some(7)));
    assert_eq!(of("politeness.min-delay"), ("1s".into(), Some(10)));
    assert_eq!(of("workers"), (25.into(), None));
    assert_eq!(home.names(), ["p.toml"]);
}

#[test]
fn a_valid_profile_has_no_errors() {
    let home = Home::new();
    let ended = home.run(&["profile", "check", "snapshot"]).code(0);
    assert_eq!(ended.out, "snapshot has no errors\n");
    let ended = home.run(&["profile", "check", "demo", "--json"]).code(0);
    assert_eq!(ended.out, "");
    assert!(home.names().is_empty());
}

#[test]
fn a_profile_that_needs_a_missing_browser_is_valid_with_a_note() {
    let home = Home::new();
    home.file(
        "p.toml",
        "browser.executable = '/nonexistent/chromium'\n[[override]]\nmatch.host = ['a.org']\nbrowser.render = 'always'\n",
    );
    let ended = home.run(&["profile", "check", "p.toml", "--json"]).code(0);
    let note: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((&note["level"], &note["line"]), (&"info".into(), &4.into()));
    let problem = note["problem"].as_str().unwrap();
    assert!(problem.contains("/nonexistent/chromium"), "{note}");
    let remedy = note["suggestion"].as_str().unwrap();
    assert!(remedy.contains("install Chromium"), "{note}");
}

#[test]
fn errors_in_plugin_settings_are_found() {
    let home = Home::new();
    home.file(
        "p.toml",
        "[plugins.hops]\ncomponent = 'builtin:hops'\nsettings = { max = 'far' }\n",
    );
    let ended = home.run(&["profile", "check", "p.toml", "--json"]).code(2);
    let error: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(
        (error["line"].as_u64(), error["column"].as_u64()),
        (Some(3), Some(20))
    );
    assert_eq!(error["setting"], "/plugins/hops/settings/max");
    home.file("q.toml", "workers = 0\n");
    let ended = home.run(&["profile", "check", "q.toml"]).code(2);
    assert!(
        ended
            .out
            .starts_with("q.toml:1:11: must be at least 1 and at most 10000: the number 0"),
        "{}",
        ended.out
    );
    let ended = home
        .run(&["profile", "explain", "a.org", "--profile", "q.toml"])
        .code(2);
    assert!(ended.err.starts_with("q.toml:1:11: "), "{}", ended.err);
    home.run(&["profile", "explain", "mailto:a@b"]).code(2);
}

#[test]
fn a_profile_that_extends_another_has_its_seeds() {
    let home = Home::new();
    home.file("mine.toml", "seeds = ['http://localhost/mine']\n");
    let new = [
        "profile",
        "new",
        "more.toml",
        "--extends",
        "mine.toml",
        "--json",
    ];
    let created = home.run(&new).code(0);
    let created: Value = serde_json::from_str(&created.out).unwrap();
    assert_eq!(created, json!({ "answer": "created", "file": "more.toml" }));
    home.run(&["job", "new", "./job", "--profile", "more.toml"])
        .code(0);
    let seeds = std::fs::read_to_string(home.job().join("seeds.txt")).unwrap();
    assert_eq!(seeds, "http://localhost/mine\n");
}

//! `opilio robots`: decisions of a robots.txt file, with the deciding lines.

use serde_json::{Value, json};

use crate::command::Home;

const FILE: &str = "User-agent: *\nCrawl-delay: 2\nDisallow: /private # all of it\nAllow: /private/open\n\nUser-agent: big\nDisallow:\n";

#[test]
fn each_decision_has_its_line() {
    let home = Home::new();
    let file = home.file("robots.txt", FILE);
    let file = file.to_str().unwrap();
    let uris = [
        "https://www.example.org/private/a",
        "/private/open/",
        "/else?x",
    ];
    let ended = home.run(&[&["robots", file, "--agent", "mybot/1"], &uris[..]].concat());
    let ended = ended.code(1);
    assert_eq!(
        ended.out,
        "\
agent mybot: no group of its own, crawl-delay 2 s
https://www.example.org/private/a  refused: line 3, Disallow: /private
/private/open/  allowed: line 4, Allow: /private/open
/else?x  allowed: no rule matches
"
    );
    let ended = home
        .run(&["robots", file, "--agent", "big", "/private/"])
        .code(0);
    assert!(
        ended
            .out
            .starts_with("agent big: a group of its own, no crawl-delay\n"),
        "{}",
        ended.out
    );
}

#[test]
fn json_has_the_same_decisions() {
    let home = Home::new();
    let file = home.file("robots.txt", FILE);
    let file = file.to_str().unwrap();
    let ended = home
        .run(&["robots", file, "--json", "/private", "http://"])
        .code(1);
    let lines: Vec<Value> = ended
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        lines[0],
        json!({
            "uri": "/private", "agent": "opilio", "allowed": false, "reason": "line 3, Disallow: /private",
            "line": 3, "rule": "Disallow: /private", "crawl_delay_s": 2.0,
        })
    );
    assert_eq!(lines[1]["uri"], "http://");
    assert!(lines[1]["problem"].is_string(), "{}", lines[1]);
}

#[test]
fn unreadable_input_is_reported() {
    let home = Home::new();
    let ended = home.run(&["robots", "absent.txt", "/"]).code(2);
    assert!(
        ended.err.contains("cannot read absent.txt"),
        "{}",
        ended.err
    );
    let ended = home.run(&["robots", "-", "-"]).code(2);
    assert!(ended.err.contains("standard input"), "{}", ended.err);
}

//! `opilio doctor` on the machine of the test. Only findings that the test itself causes are compared.

use std::net::TcpListener;

use serde_json::Value;

use crate::command::{Ended, Home};
use crate::serve::Daemon;

/// Parses the findings.
#[track_caller]
fn findings(ended: &Ended) -> Vec<Value> {
    let lines = ended.out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[track_caller]
fn finding(ended: &Ended, check: &str) -> Value {
    let mut all = findings(ended).into_iter();
    all.find(|finding| finding["check"] == check)
        .unwrap_or_else(|| panic!("{ended:?}"))
}

#[test]
fn doctor_checks_the_machine_and_leaves_no_files() {
    let home = Home::new();
    let ended = home.run(&[
        "doctor",
        "--json",
        "--resolve",
        "www.story.localhost",
        "--jobs",
        "jobs",
    ]);
    let names: Vec<_> = findings(&ended)
        .iter()
        .map(|it| it["check"].as_str().unwrap().to_owned())
        .collect();
    let expected = [
        "open-files",
        "processes",
        "address-space",
        "file-size",
        "memory",
        "jobs-folder",
        "cache-folder",
        "dns",
        "clock",
        "certificates",
        "chromium",
        "daemon",
    ];
    assert_eq!(names, expected);
    let dns = finding(&ended, "dns");
    assert_eq!(dns["state"], "ok", "{dns}");
    let folder = finding(&ended, "jobs-folder");
    let path = std::fs::canonicalize(home.path()).unwrap().join("jobs");
    assert!(
        folder["finding"]
            .as_str()
            .unwrap()
            .contains(&*path.to_string_lossy()),
        "{folder}"
    );
    assert!(home.names().is_empty(), "{:?}", home.names());
    let has_error = findings(&ended).iter().any(|it| it["state"] == "error");
    ended.code(i32::from(has_error));
}

#[test]
fn limits_of_the_shell_are_reported_with_a_remedy() {
    let home = Home::new();
    let mut command = home.opilio_after(
        "ulimit -n 64",
        &["doctor", "--json", "--resolve", "localhost"],
    );
    let ended = Ended::of(&command.output().unwrap());
    let files = finding(&ended, "open-files");
    assert_eq!(files["state"], "error", "{files}");
    assert!(
        files["finding"]
            .as_str()
            .unwrap()
            .starts_with("64 open files"),
        "{files}"
    );
    ended.code(1);
    let ended = home.run(&["doctor", "--profile", "nothing.toml"]);
    assert!(ended.err.contains("nothing.toml"), "{ended:?}");
    ended.code(2);
}

#[test]
fn the_daemon_is_checked_before_it_starts_and_while_it_runs() {
    let home = Home::new();
    let doctor = |more: &[&str]| {
        let arguments = ["doctor", "--json", "--running", "--config", "opilio.toml"];
        home.run(&[&arguments, more].concat())
    };
    home.file("opilio.toml", "jobs = \"jobs\"\nlisten = \"0.0.0.0:1\"\n");
    let ended = doctor(&[]);
    let problem = finding(&ended, "daemon");
    assert!(
        problem["finding"]
            .as_str()
            .unwrap()
            .contains("tls-proxy = true"),
        "{problem}"
    );
    ended.code(1);

    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    home.file(
        "opilio.toml",
        format!("jobs = \"jobs\"\nlisten = \"{address}\"\n"),
    );
    // The other server closes the connection of the health check without an answer.
    let other = std::thread::spawn(move || drop(other.accept()));
    let refused = doctor(&[]);
    assert_eq!(finding(&refused, "daemon")["state"], "error", "{refused:?}");
    other.join().unwrap();
    home.run(&["token", "new", "lena", "--config", "opilio.toml"])
        .code(0);
    let ended = doctor(&[]);
    let stopped = finding(&ended, "daemon");
    assert!(
        stopped["finding"]
            .as_str()
            .unwrap()
            .starts_with("not running"),
        "{stopped}"
    );
    ended.code(1);

    let daemon = Daemon::start(&home, &[]);
    home.file(
        "opilio.toml",
        format!("jobs = \"jobs\"\nlisten = \"{}\"\n", daemon.address),
    );
    let ended = doctor(&[]);
    let running = finding(&ended, "daemon");
    assert!(
        running["finding"]
            .as_str()
            .unwrap()
            .starts_with("running and ready"),
        "{running}"
    );
    // Other checks may fail on this machine.
    let has_error = findings(&ended).iter().any(|it| it["state"] == "error");
    ended.code(i32::from(has_error));
}

//! A house check: a job's log shows commands as they are typed on the command line, without the program and the job.

use clap::Parser as _;
use opilio_control::{
    Command, DoneElsewhere, OverrideChange, QueueAction, StateSelector, UriSelection,
};
use opilio_crawl::AlertKind;
use serde_json::json;

use crate::Cli;

/// Splits a line into words. Words in quotes must not contain quotes.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let split = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"'),
            None => rest.split_once(' '),
        };
        let (word, more) = split.unwrap_or((rest, ""));
        words.push(word);
        rest = more.trim_start();
    }
    words
}

/// Checks that the program accepts the command's line in the log. `path` is the command of the program, of which the line has the
/// last `named` words.
#[track_caller]
fn check(path: &[&str], named: usize, command: Command) {
    let line = command.log_line().unwrap();
    let words = words(&line);
    assert_eq!(words[..named], path[path.len() - named..], "{line}");
    let job: [&[&str]; 4] = [&["opilio"], path, &["JOB"], &words[named..]];
    if let Err(problem) = Cli::try_parse_from(job.concat()) {
        panic!("{line}: {problem}");
    }
}

fn text(text: &str) -> String {
    text.to_owned()
}

// These lines are not command lines:
// - `terminate`, which only supervisors send
// - `seeds --add (3 lines)`, because there may be thousands of seeds
// - `set` with conditions, which are shown as in a profile
// - `set --override 3` with `--unset`, because only the API changes and removes settings in one command
#[test]
fn commands_of_a_job_are_logged_as_they_are_typed() {
    let set = || vec![text("workers=3")];
    let reason = || Some(text("asked by mail"));
    let change = |change: OverrideChange| Command::ChangeOverride {
        id: 3,
        change,
        reason: reason(),
        only_check: false,
    };
    for (name, command) in [
        ("pause", Command::Pause),
        ("resume", Command::Resume),
        ("stop", Command::Stop),
        ("checkpoint", Command::Checkpoint { to: None }),
        (
            "checkpoint",
            Command::Checkpoint {
                to: Some("/a b".into()),
            },
        ),
        ("logs", Command::RotateLogs),
        ("tables", Command::Tables { reload: true }),
        (
            "alerts",
            Command::Acknowledge {
                kind: AlertKind::DiskLow,
                subject: Some(text("/")),
            },
        ),
        (
            "set",
            Command::Set {
                set: set(),
                matching: None,
                only_check: false,
                reason: reason(),
            },
        ),
        (
            "set",
            change(OverrideChange::Edit {
                set: set(),
                unset: Vec::new(),
                matching: None,
            }),
        ),
        (
            "unset",
            change(OverrideChange::Edit {
                set: Vec::new(),
                unset: set(),
                matching: None,
            }),
        ),
        ("unset", change(OverrideChange::Remove)),
        (
            "overrides",
            change(OverrideChange::Move { before: Some(2) }),
        ),
        ("overrides", change(OverrideChange::Move { before: None })),
    ] {
        check(&["job", name], 1, command);
    }
    for settings in [None, Some(json!({"a": 1}))] {
        let command = Command::ReplacePlugin {
            plugin: text("html"),
            component: text("/a b.wasm"),
            sha256: settings.as_ref().map(|_| text("00")),
            settings,
        };
        check(&["plugin", "replace"], 2, command);
    }
}

#[test]
fn commands_of_a_frontier_are_logged_as_they_are_typed() {
    let uri = || text("http://example.org/");
    let queue = || text("org,example,");
    let which = || UriSelection {
        surt: Some(text("http://(org,example,")),
        regex: Some(text("a b")),
        host: Some(text("example.org")),
        status: Some(text("-2")),
        state: Some(StateSelector::ALL[0]),
        media_type: Some(text("text/html")),
    };
    let import = |done| Command::Import {
        files: vec!["/a b.gz".into(), "/c.log".into()],
        done,
    };
    for (name, command) in [
        ("delete", Command::Delete { which: which() }),
        ("forget", Command::Forget { which: which() }),
        ("remove-seed", Command::RemoveSeed { uri: uri() }),
        ("wake", Command::WakeOverlong),
        ("cancel", Command::Cancel { uri: uri() }),
        ("force", Command::Force { uri: uri() }),
        (
            "precedence",
            Command::UriPrecedence {
                uri: uri(),
                precedence: 3,
            },
        ),
        (
            "precedence",
            Command::QueuePrecedence {
                queue: queue(),
                precedence: Some(3),
            },
        ),
        (
            "precedence",
            Command::QueuePrecedence {
                queue: queue(),
                precedence: None,
            },
        ),
        ("floor", Command::Floor { floor: Some(3) }),
        ("floor", Command::Floor { floor: None }),
        ("import", import(DoneElsewhere::Known)),
        ("import", import(DoneElsewhere::Fetched)),
        ("import", import(DoneElsewhere::LeftOut)),
        ("check", Command::Check { repair: true }),
    ] {
        check(&["frontier", name], 1, command);
    }
    for action in [
        QueueAction::Retire,
        QueueAction::Unretire,
        QueueAction::Freeze,
        QueueAction::Thaw,
        QueueAction::Wake,
    ] {
        let command = Command::ChangeQueue {
            queue: queue(),
            action,
        };
        check(&["frontier", action.name()], 1, command);
    }
}

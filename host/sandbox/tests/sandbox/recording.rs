//! Recordings: a recorded call can be repeated from its file alone.

use std::path::PathBuf;

use jiff::Timestamp;
use opilio_sandbox::{
    Call, CallOutcome, CallResult, Candidate, Candidates, Component, Document, FaultKind, Plugin,
    PluginConfig, Recording, Replay, Stage, Table, Tables, looking_up,
};
use serde_json::json;

use crate::builtin::components;
use crate::guest::Guest;
use crate::support::{candidate, config, config_of, document, limits, load};

fn at() -> Timestamp {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

/// Records a call, makes it, writes the recording to a file, and reads it back.
#[track_caller]
fn recorded<A>(
    plugin: &Plugin,
    call: Call,
    make: impl FnOnce() -> Result<A, opilio_sandbox::Fault>,
    answer: impl FnOnce(&A) -> CallResult,
) -> Recording {
    let (made, tables) = looking_up(make);
    let outcome = made.as_ref().map(answer);
    let recording = Recording::new(plugin, at(), call, tables, outcome);
    let folder = tempfile::tempdir().unwrap();
    let path = recording.write(folder.path()).unwrap();
    Recording::read(&path).unwrap()
}

fn scope() -> &'static Component {
    &components()["scope"]
}

fn recorded_ruling(settings: serde_json::Value) -> Recording {
    let plugin = scope()
        .configure(config_of("hops", settings, limits()))
        .unwrap();
    let found = Candidate {
        hop_path: "L".to_owned(),
        ..candidate("http://example.org/found")
    };
    let candidates = Candidates::new(vec![found]);
    recorded(
        &plugin,
        Call::judge_candidates(&Stage::Scope, &candidates),
        || plugin.judge_candidates(Stage::Scope, &candidates),
        |rulings| CallResult::rulings(rulings),
    )
}

#[test]
fn the_same_component_repeats_its_recorded_answer() {
    let recording = recorded_ruling(json!({"max": 20}));
    let replay = recording.replay(scope()).unwrap();
    assert!(
        matches!(replay, Replay::Same(CallOutcome::Answer(_))),
        "{replay:?}"
    );
    assert_eq!(recording.component_sha256, scope().sha256());
    assert_eq!(recording.at, at());
}

#[test]
fn a_changed_answer_is_shown_with_the_recorded_one() {
    let mut recording = recorded_ruling(json!({"max": 20}));
    // A version of the plugin for which this depth would be too large.
    recording.settings = json!({"max": 0});
    let replay = recording.replay(scope()).unwrap();
    let Replay::Differs(difference) = replay else {
        panic!("{replay:?}");
    };
    assert_eq!(difference.expected[0]["verdict"], "pass");
    assert_eq!(difference.answered[0]["verdict"], "reject");
}

#[test]
fn a_recorded_trap_has_its_frames_and_can_be_repeated() {
    let component = load(Guest::extractor("(unreachable)"));
    let plugin = component.configure(config(json!({}), limits())).unwrap();
    let page = document("<p>");
    let recording = recorded(
        &plugin,
        Call::extract(&plugin, std::slice::from_ref(&page)),
        || plugin.extract(vec![page.clone()]),
        |extractions| CallResult::extractions(extractions),
    );
    let CallOutcome::Fault(fault) = &recording.outcome else {
        panic!("{:?}", recording.outcome);
    };
    assert_eq!(fault.kind, FaultKind::Trap);
    assert!(!fault.backtrace.is_empty());
    let replay = recording.replay(&component).unwrap();
    assert!(
        matches!(&replay, Replay::Same(CallOutcome::Fault(again)) if again.kind == FaultKind::Trap),
        "{replay:?}"
    );
}

#[test]
fn a_recording_with_binary_content_becomes_a_case_with_a_file() {
    let html = &components()["html"];
    let plugin = html
        .configure(config_of("html", json!({}), limits()))
        .unwrap();
    let record = |page: &Document| {
        recorded(
            &plugin,
            Call::extract(&plugin, std::slice::from_ref(page)),
            || plugin.extract(vec![page.clone()]),
            |extractions| CallResult::extractions(extractions),
        )
    };
    let recording = record(&document("<a href=x>"));
    let CallOutcome::Answer(answer) = recording.repeat_call(html).unwrap() else {
        panic!("{recording:?}");
    };
    let (case, contents) = recording.case("one", answer);
    assert_eq!(contents, []);
    let written = serde_json::to_value(&case).unwrap();
    assert_eq!(
        written["expected"],
        json!([{"links": [{"uri": "x", "context": "a/@href"}], "finished": true}]),
        "nothing that only the host knows"
    );
    let written = &written["call"]["extract"]["documents"][0];
    assert_eq!(written["text"], "<a href=x>");

    let binary = crate::support::document_of(bytes::Bytes::from_static(b"<a href=x>\xff"));
    let recording = record(&binary);
    let CallOutcome::Answer(answer) = recording.outcome.clone() else {
        panic!("{recording:?}");
    };
    let (case, contents) = recording.case("two", answer);
    assert_eq!(
        contents,
        [(PathBuf::from("two.bin"), b"<a href=x>\xff".to_vec())]
    );
    let written = serde_json::to_value(&case).unwrap();
    let written = &written["call"]["extract"]["documents"][0];
    assert_eq!(written["file"], "two.bin");
    assert_eq!(written.get("text"), None);
}

#[test]
fn a_file_that_is_not_a_recording_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json");
    for text in ["", "{}", r#"{"format": "opilio-recording-9"}"#] {
        std::fs::write(&path, text).unwrap();
        let problem = Recording::read(&path).unwrap_err().to_string();
        assert!(problem.contains("x.json is not a recording"), "{problem}");
    }
}

#[test]
fn a_recording_holds_the_calls_table_lookups() {
    let tables = Tables::default();
    let rows = ["http://(org,example,", "http://(net,example,"];
    tables.set("sites", Table::surt_prefixes(rows).unwrap());
    let plugin = scope()
        .configure(PluginConfig {
            tables: tables.clone(),
            ..config_of("surt-scope", json!({"tables": ["sites"]}), limits())
        })
        .unwrap();
    let at = |surt: &str| Candidate {
        surt: surt.to_owned(),
        ..candidate("http://example.org/")
    };
    let candidates = Candidates::new(vec![
        at("http://(org,example,www,)/"),
        at("http://(com,example,)/"),
    ]);
    let recording = recorded(
        &plugin,
        Call::judge_candidates(&Stage::Scope, &candidates),
        || plugin.judge_candidates(Stage::Scope, &candidates),
        |rulings| CallResult::rulings(rulings),
    );
    tables.remove("sites");
    let CallOutcome::Answer(answer) = &recording.outcome else {
        panic!("{recording:?}");
    };
    assert_eq!(answer.value()[0]["verdict"], "accept");
    let written = serde_json::to_value(&recording.tables).unwrap();
    assert_eq!(
        written,
        json!({"sites": {"kind": "surt-prefixes", "rows": [{"key": "http://(org,example,"}]}}),
        "no more than was found"
    );
    let replay = recording.replay(scope()).unwrap();
    assert!(matches!(replay, Replay::Same(_)), "{replay:?}");
    assert!(recorded_ruling(json!({})).tables.is_empty());
}

//! Values that a guest reads through its imports, and values that it leaves.

use std::sync::{Arc, Mutex};

use opilio_sandbox::{Engine, EngineConfig, Limits, LogLine, Stage};
use serde_json::json;

use crate::guest::Guest;
use crate::support::{candidates, config, document, limits, load, plugin, visit};

const DOCUMENTS: &str = r#"
    (import "opilio:plugin/documents@0.3.0" "[method]document.length" (func $length (param i32) (result i64)))
    (import "opilio:plugin/documents@0.3.0" "[method]document.read" (func $read (param i32 i64 i32 i32)))
    (import "opilio:plugin/documents@0.3.0" "[method]document.text" (func $text (param i32 i32)))
    (import "opilio:plugin/documents@0.3.0" "[method]document.header" (func $header (param i32 i32 i32 i32)))
    (import "opilio:plugin/documents@0.3.0" "[method]document.charset" (func $charset (param i32 i32)))
    (import "opilio:plugin/documents@0.3.0" "[method]document.set-note" (func $set-note (param i32 i32 i32 i32 i32)))
    (import "opilio:plugin/documents@0.3.0" "[method]document.annotate" (func $annotate (param i32 i32 i32)))
    (import "opilio:plugin/documents@0.3.0" "[method]visit.now" (func $now (param i32) (result i64)))"#;

const LOG_AND_COUNTERS: &str = r#"
    (import "opilio:plugin/log@0.3.0" "write" (func $write (param i32 i32 i32)))
    (import "opilio:plugin/counters@0.3.0" "count" (func $count (param i32 i32 i64)))"#;

/// Checks the reason of a document filter. `read` leaves its address and length at address 80.
#[track_caller]
fn check(read: &str, content: &str, expected: &str) {
    // The ruling is at address 72: its verdict at 72, its reason at 88.
    let body = format!(
        "(i32.store8 (i32.const 72) (i32.const 2)) {read}
        (i32.store (i32.const 88) (i32.load (i32.const 80))) (i32.store (i32.const 92) (i32.load (i32.const 84)))
        (i32.const 72)"
    );
    let guest = Guest {
        imports: DOCUMENTS,
        ..with_texts(|texts| Guest::document_filter(&texts(&body)))
    };
    let ruling = plugin(guest)
        .judge_document(Stage::PostFetch, &document(content), &visit())
        .unwrap();
    assert_eq!(ruling.reason, expected);
}

/// Replaces `'text'` by the address and length of that text in the guest's data.
fn with_texts(make: impl FnOnce(&mut dyn FnMut(&str) -> String) -> Guest) -> Guest {
    let mut data = crate::guest::Data::default();
    let guest = make(&mut |body| {
        let parts = body.split('\'').enumerate().map(|(i, part)| {
            if i % 2 == 0 {
                return part.to_owned();
            }
            let [at, length] = data.text(part);
            format!("(i32.const {at}) (i32.const {length})")
        });
        parts.collect()
    });
    Guest { data, ..guest }
}

#[test]
fn documents_are_read() {
    check("(call $text (local.get 3) (i32.const 80))", "grün", "grün");
    check(
        "(call $read (local.get 3) (i64.const 1) (i32.const 3) (i32.const 80))",
        "0123456789",
        "123",
    );
    check(
        "(call $read (local.get 3) (i64.const 8) (i32.const -1) (i32.const 80))",
        "0123456789",
        "89",
    );
    check(
        "(call $read (local.get 3) (i64.const -1) (i32.const -1) (i32.const 80))",
        "0123456789",
        "",
    );
    check(
        "(call $header (local.get 3) 'content-TYPE' (i32.const 100))
        (i32.store (i32.const 80) (i32.load (i32.load (i32.const 100))))
        (i32.store (i32.const 84) (i32.load (i32.add (i32.load (i32.const 100)) (i32.const 4))))",
        "",
        "text/html",
    );
    check(
        "(call $charset (local.get 3) (i32.const 100))
        (i32.store (i32.const 80) (i32.load (i32.const 104))) (i32.store (i32.const 84) (i32.load (i32.const 108)))",
        "",
        "utf-8",
    );
    check(
        "(if (i64.ne (call $length (local.get 3)) (i64.const 5)) (then (unreachable)))
        (if (i64.ne (call $now (local.get 4)) (i64.const 1000000)) (then (unreachable)))",
        "grün",
        "",
    );
}

#[test]
fn notes_and_annotations_stay_with_the_visit() {
    let guest = with_texts(|texts| {
        Guest::document_filter(&texts(
            "(call $set-note (local.get 3) 'language' 'nl')
            (call $annotate (local.get 3) 'bot block') (i32.const 72)",
        ))
    });
    let document = document("");
    let guest = Guest {
        imports: DOCUMENTS,
        ..guest
    };
    plugin(guest)
        .judge_document(Stage::PostFetch, &document, &visit())
        .unwrap();
    assert_eq!(document.notes().get("language").as_deref(), Some("nl"));
    let annotations = document.notes().annotations();
    let texts: Vec<&str> = annotations.iter().map(|it| &*it.text).collect();
    assert_eq!(texts, ["bot_block"]);
}

#[test]
fn counters_add_up_over_calls() {
    let guest = with_texts(|texts| {
        Guest::filter(&texts(
            "(call $count 'pages' (i64.const 2)) (call $count 'pages' (i64.const 3)) (call $count 'Bad' (i64.const 1))
            (call $rulings (local.get 4) (i32.const 2))",
        ))
    });
    let plugin = plugin(Guest {
        imports: LOG_AND_COUNTERS,
        ..guest
    });
    for _ in 0..3 {
        plugin
            .judge_candidates(Stage::Scope, &candidates(1))
            .unwrap();
    }
    let counters: Vec<_> = plugin.statistics().counters.into_iter().collect();
    assert_eq!(
        counters,
        [("other".to_owned(), 3), ("pages".to_owned(), 15)]
    );
}

#[test]
fn lines_go_to_the_sink_with_plugin_and_uri() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = {
        let lines = lines.clone();
        Arc::new(move |line: &LogLine| lines.lock().unwrap().push(line.to_string()))
    };
    let engine = Engine::new(EngineConfig {
        instances_max: 1,
        log_sink: sink,
        ..EngineConfig::default()
    })
    .unwrap();
    let guest = with_texts(|texts| {
        Guest::filter(&texts(
            "(call $write (i32.const 1) 'seen') (call $rulings (local.get 4) (i32.const 2))",
        ))
    });
    let component = engine
        .load(
            &Guest {
                imports: LOG_AND_COUNTERS,
                ..guest
            }
            .build(),
            "x",
        )
        .unwrap();
    let plugin = component.configure(config(json!({}), limits())).unwrap();
    plugin
        .judge_candidates(Stage::Scope, &candidates(1))
        .unwrap();
    assert_eq!(
        *lines.lock().unwrap(),
        ["info guest http://example.org/0: seen"]
    );
}

#[test]
fn warnings_of_a_failed_call_are_in_its_error_and_not_in_the_sink() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = {
        let lines = lines.clone();
        Arc::new(move |line: &LogLine| lines.lock().unwrap().push(line.to_string()))
    };
    let engine = Engine::new(EngineConfig {
        instances_max: 1,
        log_sink: sink,
        ..EngineConfig::default()
    })
    .unwrap();
    let guest = with_texts(|texts| {
        Guest::filter(&texts(
            "(call $write (i32.const 1) 'info') (call $write (i32.const 2) 'warning') (unreachable)",
        ))
    });
    let guest = Guest {
        imports: LOG_AND_COUNTERS,
        ..guest
    };
    let component = engine.load(&guest.build(), "x").unwrap();
    let plugin = component.configure(config(json!({}), limits())).unwrap();
    let fault = plugin
        .judge_candidates(Stage::Scope, &candidates(1))
        .unwrap_err();
    assert_eq!(
        *lines.lock().unwrap(),
        ["info guest http://example.org/0: info"]
    );
    assert_eq!(fault.log.len(), 2);
    assert!(fault.message.starts_with("warning ("), "{}", fault.message);
}

#[test]
fn log_lines_past_the_limit_are_dropped_and_counted() {
    let guest = with_texts(|texts| {
        Guest::filter(&texts(
            "(local $i i32)
            (loop $l
                (call $write (i32.const 1) '0123456789')
                (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100))))
            (loop $l
                (call $write (i32.const 1) (i32.const 0) (i32.const 0))
                (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 200))))
            (unreachable)",
        ))
    });
    let limits = Limits {
        log_bytes: 25,
        ..limits()
    };
    let plugin = load(Guest {
        imports: LOG_AND_COUNTERS,
        ..guest
    })
    .configure(config(json!({}), limits))
    .unwrap();
    let fault = plugin
        .judge_candidates(Stage::Scope, &candidates(1))
        .unwrap_err();
    let messages: Vec<_> = fault.log.iter().map(|line| line.message.as_str()).collect();
    assert_eq!(messages, ["0123456789", "0123456789", "01234"]);
    assert_eq!(plugin.statistics().log_bytes_dropped, 975);
}

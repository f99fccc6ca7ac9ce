//! Guests that break the contract. Each call ends with a plugin error of the expected kind, is counted, and does not affect others.

use opilio_sandbox::{Fault, FaultKind, Plugin, Stage};
use serde_json::json;

use crate::guest::Guest;
use crate::support::{candidates, config, document, limits, load, plugin};

#[track_caller]
fn fault(plugin: &Plugin) -> Fault {
    plugin
        .judge_candidates(Stage::Scope, &candidates(2))
        .unwrap_err()
}

#[track_caller]
fn check(guest: Guest, kind: FaultKind, message: &str) -> Fault {
    let plugin = plugin(guest);
    let fault = fault(&plugin);
    assert_eq!(fault.kind, kind, "{fault:?}");
    assert!(
        fault.message.contains(message) && !fault.message.contains('\n'),
        "{fault:?}"
    );
    assert_eq!(
        (&*fault.plugin, fault.described.as_deref(), &*fault.uri),
        ("guest", Some("guest 1.0.0"), "http://example.org/0")
    );
    assert_eq!(
        plugin.statistics().faults.into_iter().collect::<Vec<_>>(),
        [(kind, 1)]
    );
    fault
}

#[test]
fn unreachable_code_is_a_trap_with_the_frames() {
    let guest = Guest {
        fields: "(func $inner (unreachable)) (func $outer (call $inner))".to_owned(),
        ..Guest::filter("(call $outer) (i32.const 0)")
    };
    let fault = check(guest, FaultKind::Trap, "unreachable");
    let frames: Vec<_> = fault
        .backtrace
        .iter()
        .map(|frame| frame.split(' ').next().unwrap())
        .collect();
    assert!(frames.starts_with(&["inner", "outer"]), "{fault:?}");
}

#[test]
fn a_wild_access_is_a_trap() {
    check(
        Guest::filter("(i32.load (i32.const -4))"),
        FaultKind::Trap,
        "out of bounds memory access",
    );
    check(
        Guest::filter("(i32.div_u (i32.const 1) (i32.const 0))"),
        FaultKind::Trap,
        "divide by zero",
    );
}

#[test]
fn an_initial_memory_over_the_limit_is_an_error() {
    let guest = Guest {
        fields: "(memory $more 65)".to_owned(),
        ..Guest::filter("(i32.const 0)")
    };
    let error = load(guest)
        .configure(config(json!({}), limits()))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("memory: asked for 4325376 bytes of memory, 4194304 are allowed"),
        "{error}"
    );
}

#[test]
fn a_verdict_of_another_stage_is_a_nonsense_error() {
    let guest = Guest::filter("(call $rulings (local.get 4) (i32.const 3))");
    check(
        guest,
        FaultKind::Nonsense,
        "`unchanged`, which belongs to mid-fetch",
    );
}

#[test]
fn an_answer_outside_memory_is_a_nonsense_error() {
    check(Guest::filter("(i32.const -4)"), FaultKind::Nonsense, "");
    let mut guest = Guest::filter("");
    let answer = guest.data.words(&[0xffff_0000, 2]);
    let guest = Guest {
        data: guest.data,
        ..Guest::filter(&format!("(i32.const {answer})"))
    };
    check(guest, FaultKind::Nonsense, "out of bounds");
}

#[test]
fn an_unknown_verdict_is_a_nonsense_error() {
    check(
        Guest::filter("(call $rulings (local.get 4) (i32.const 77))"),
        FaultKind::Nonsense,
        "",
    );
}

#[test]
fn a_trap_reports_the_log_lines_before_it() {
    let mut guest = Guest::filter("");
    let [at, length] = guest.data.text("about to fall\u{7}");
    let guest = Guest {
        imports: r#"(import "opilio:plugin/log@0.3.0" "write" (func $write (param i32 i32 i32)))"#,
        data: guest.data,
        ..Guest::filter(&format!(
            "(call $write (i32.const 2) (i32.const {at}) (i32.const {length})) (unreachable)"
        ))
    };
    let fault = check(guest, FaultKind::Trap, "unreachable");
    let lines: Vec<_> = fault.log.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        ["warn guest http://example.org/0: about to fall\u{fffd}"]
    );
}

#[test]
fn a_trap_reports_the_guests_panic_message() {
    let mut guest = Guest::filter("");
    // A guest in Go also logs its stack.
    let [at, length] = guest
        .data
        .text("panicked at src/lib.rs:3:1:\nno title\ngoroutine 1 [running]:\nmain.main()");
    let guest = Guest {
        imports: r#"(import "opilio:plugin/log@0.3.0" "write" (func $write (param i32 i32 i32)))"#,
        data: guest.data,
        ..Guest::filter(&format!(
            "(call $write (i32.const 3) (i32.const {at}) (i32.const {length})) (unreachable)"
        ))
    };
    let fault = check(guest, FaultKind::Trap, "unreachable");
    assert_eq!(
        fault.message,
        "panicked at src/lib.rs:3:1: no title (wasm `unreachable` instruction executed)"
    );
}

#[test]
fn an_unknown_handle_is_a_trap() {
    let guest = Guest {
        imports: r#"(import "opilio:plugin/documents@0.3.0" "[method]document.status" (func $status (param i32) (result i32)))"#,
        ..Guest::filter("(call $status (i32.const 99))")
    };
    check(guest, FaultKind::Trap, "handle");
}

#[test]
fn calling_a_kind_that_is_not_exported_is_an_error() {
    let plugin = plugin(Guest::filter("(i32.const 0)"));
    let fault = plugin.strip(&document("")).unwrap_err();
    assert_eq!(
        fault.message,
        "its component does not export digest-stripper"
    );
    assert_eq!(plugin.statistics().calls, 0);
}

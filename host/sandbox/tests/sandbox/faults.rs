//! Guests that do what they must not. Each ends as a fault of the right kind, is counted, and harms nobody.

use std::time::{Duration, Instant};

use opilio_sandbox::{Fault, FaultKind, Limits, Plugin, Stage, spawn_lane};
use serde_json::json;

use crate::guest::Guest;
use crate::support::{URI, candidates, config, document, limits, load, plugin};

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
        (&*fault.plugin, &*fault.uri),
        ("guest", "http://example.org/0")
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
fn an_endless_loop_is_stopped_in_time() {
    let limits = Limits {
        time: Duration::from_millis(50),
        ..limits()
    };
    let plugin = load(Guest::filter("(loop $l (br $l)) (i32.const 0)"))
        .configure(config(json!({}), limits))
        .unwrap();
    let began = Instant::now();
    assert_eq!(fault(&plugin).kind, FaultKind::Timeout);
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(50), "{took:?}");
    assert!(plugin.statistics().times.max() >= Duration::from_millis(50));
}

#[test]
fn a_slow_call_that_ends_in_time_is_none() {
    let plugin = plugin(Guest::filter(
        "(local $i i32)
        (loop $l (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 50000000))))
        (call $rulings (local.get 4) (i32.const 2))",
    ));
    assert_eq!(
        plugin
            .judge_candidates(Stage::Scope, &candidates(2))
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn endless_allocation_is_stopped_at_the_limit() {
    let guest = Guest::filter("(loop $l (drop (memory.grow (i32.const 1))) (br $l)) (i32.const 0)");
    check(
        guest,
        FaultKind::Memory,
        "asked for 4259840 bytes of memory, 4194304 are allowed",
    );
}

#[test]
fn a_memory_that_is_too_large_from_the_start_is_no_instance() {
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
fn deep_recursion_is_a_trap() {
    let guest = Guest {
        fields:
            "(func $f (param i32) (result i32) (i32.add (call $f (local.get 0)) (i32.const 1)))"
                .to_owned(),
        ..Guest::filter("(call $f (i32.const 1))")
    };
    let plugin = plugin(guest);
    let lane = spawn_lane("lane", move || fault(&plugin)).unwrap();
    let fault = lane.join().unwrap();
    assert_eq!(fault.kind, FaultKind::Trap, "{fault:?}");
    assert!(fault.message.contains("call stack exhausted"), "{fault:?}");
    assert!(fault.backtrace.len() <= 64, "{}", fault.backtrace.len());
}

#[test]
fn a_trap_every_other_call_spoils_no_other() {
    // Traps when there are two candidates.
    let plugin = plugin(Guest::filter(
        "(if (i32.eq (local.get 4) (i32.const 2)) (then (unreachable)))
        (call $rulings (local.get 4) (i32.const 2))",
    ));
    for n in [1, 2, 3, 2, 1, 2] {
        let rulings = plugin.judge_candidates(Stage::Scope, &candidates(n));
        assert_eq!(rulings.is_ok(), n != 2, "{rulings:?}");
    }
    let statistics = plugin.statistics();
    assert_eq!((statistics.calls, statistics.faults_all()), (6, 3));
}

#[test]
fn lists_that_do_not_align_are_nonsense() {
    let guest = Guest::filter("(call $rulings (i32.const 3) (i32.const 2))");
    check(
        guest,
        FaultKind::Nonsense,
        "answered 3 times to 2 questions",
    );
    let plugin = plugin(Guest::extractor("(i32.const 0)"));
    let fault = plugin.extract(vec![document("")]).unwrap_err();
    assert_eq!(
        (fault.kind, &*fault.uri),
        (FaultKind::Nonsense, URI),
        "{fault:?}"
    );
}

#[test]
fn verdicts_of_another_stage_are_nonsense() {
    let guest = Guest::filter("(call $rulings (local.get 4) (i32.const 3))");
    check(
        guest,
        FaultKind::Nonsense,
        "`unchanged`, which belongs to mid-fetch",
    );
}

#[test]
fn answers_outside_of_memory_are_nonsense() {
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
fn text_that_is_no_utf_8_is_nonsense() {
    let mut guest = Guest::filter("");
    let [at, length] = guest.data.bytes(b"\xff\xfe");
    let list = guest
        .data
        .words(&[2, 0, 0, 0, at, length, 2, 0, 0, 0, at, length]);
    let answer = guest.data.words(&[list, 2]);
    let guest = Guest {
        data: guest.data,
        ..Guest::filter(&format!("(i32.const {answer})"))
    };
    check(guest, FaultKind::Nonsense, "utf-8");
}

#[test]
fn verdicts_that_do_not_exist_are_nonsense() {
    check(
        Guest::filter("(call $rulings (local.get 4) (i32.const 77))"),
        FaultKind::Nonsense,
        "",
    );
}

#[test]
fn a_huge_answer_is_stopped_before_it_is_read() {
    // Links by the million: one and a half million rulings, all within the memory that it may have.
    let limits = Limits {
        memory: 64 << 20,
        output_bytes: 1 << 20,
        ..limits()
    };
    let guest = Guest::filter("(call $rulings (i32.const 1500000) (i32.const 2))");
    let plugin = load(guest).configure(config(json!({}), limits)).unwrap();
    let fault = fault(&plugin);
    assert_eq!(fault.kind, FaultKind::Output, "{fault:?}");
    assert_eq!(
        fault.message,
        "handed the host more than 1048576 bytes at once"
    );
}

#[test]
fn a_huge_argument_of_an_import_is_stopped() {
    let limits = Limits {
        output_bytes: 32 << 10,
        ..limits()
    };
    let guest = Guest {
        imports: r#"(import "opilio:plugin/log@0.2.0" "write" (func $write (param i32 i32 i32)))"#,
        ..Guest::filter("(call $write (i32.const 1) (i32.const 0) (i32.const 65536)) (i32.const 0)")
    };
    let fault = fault(&load(guest).configure(config(json!({}), limits)).unwrap());
    assert_eq!(fault.kind, FaultKind::Output, "{fault:?}");
}

#[test]
fn a_trap_tells_what_was_logged_before_it() {
    let mut guest = Guest::filter("");
    let [at, length] = guest.data.text("about to fall\u{7}");
    let guest = Guest {
        imports: r#"(import "opilio:plugin/log@0.2.0" "write" (func $write (param i32 i32 i32)))"#,
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
fn a_handle_of_nothing_is_a_trap() {
    let guest = Guest {
        imports: r#"(import "opilio:plugin/documents@0.2.0" "[method]document.status" (func $status (param i32) (result i32)))"#,
        ..Guest::filter("(call $status (i32.const 99))")
    };
    check(guest, FaultKind::Trap, "handle");
}

#[test]
fn a_kind_that_the_component_has_not_is_an_error() {
    let plugin = plugin(Guest::filter("(i32.const 0)"));
    let fault = plugin.strip(&document("")).unwrap_err();
    assert_eq!(
        fault.message,
        "its component does not export digest-stripper"
    );
    assert_eq!(plugin.statistics().calls, 0);
}

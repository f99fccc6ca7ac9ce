//! Hostile plugins, one test each. They misbehave only if they get two candidates or events, or a document that is not empty. Each
//! test calls its plugin three times: the second call fails with the expected plugin error and is counted, and the first and third
//! calls succeed.
//!
//! Dropped links, lines, notes and values cost only the plugin itself and are not plugin errors. Those tests are at the end.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use bytes::Bytes;
use jiff::Timestamp;
use opilio_sandbox::{
    ConfigureError, ContentState, Engine, EngineConfig, Fault, FaultKind, Finished, Limits, Plugin,
    Queue, Stage, spawn_lane,
};
use serde_json::json;

use crate::guest::{Data, Described, Guest};
use crate::support::{
    candidates, config, document, document_of, engine, limits, load, plugin, visit,
};

/// A call of a plugin: an ordinary one (false), or one at which it misbehaves (true).
type Question = fn(&Plugin, bool) -> Result<(), Fault>;

fn judge(plugin: &Plugin, hostile: bool) -> Result<(), Fault> {
    plugin
        .judge_candidates(Stage::Scope, &candidates(1 + usize::from(hostile)))
        .map(drop)
}

fn extract(plugin: &Plugin, hostile: bool) -> Result<(), Fault> {
    plugin
        .extract(vec![document(if hostile { "0123456789" } else { "" })])
        .map(drop)
}

fn strip(plugin: &Plugin, hostile: bool) -> Result<(), Fault> {
    plugin
        .strip(&document(if hostile { "0123456789" } else { "" }))
        .map(drop)
}

fn compare(plugin: &Plugin, hostile: bool) -> Result<(), Fault> {
    plugin
        .compare(
            &document(if hostile { "0123456789" } else { "" }),
            &visit(),
            None,
        )
        .map(drop)
}

fn rank(plugin: &Plugin, hostile: bool) -> Result<(), Fault> {
    plugin
        .rank_candidates(&candidates(1 + usize::from(hostile)), None)
        .map(drop)
}

fn rank_queue(plugin: &Plugin, hostile: bool) -> Result<(), Fault> {
    plugin.rank_queue(&queue(hostile.into())).map(drop)
}

fn observe(plugin: &Plugin, hostile: bool) -> Result<(), Fault> {
    let events = vec![finished(); 1 + usize::from(hostile)];
    plugin.observe(&[], &events).map(drop)
}

fn report(plugin: &Plugin, hostile: bool) -> Result<(), Fault> {
    let memory: &[u8] = if hostile { &[1] } else { &[] };
    plugin.report(memory, Timestamp::UNIX_EPOCH).map(drop)
}

fn queue(queued: u64) -> Queue {
    Queue {
        name: "org,example,".to_owned(),
        queued,
        succeeded: 0,
        failed: 0,
        bytes: 0,
        best: None,
        base: 1,
        now: Timestamp::UNIX_EPOCH,
    }
}

fn finished() -> Finished {
    Finished {
        at: 0,
        uri: "http://example.org/0".to_owned(),
        status: 200,
        media_type: "text/html".to_owned(),
        size: None,
        took: None,
        state: ContentState::New.into(),
        hop_path: String::new(),
        via: None,
        source: None,
        queue: String::new(),
        digest: None,
        annotations: Vec::new(),
        attributes: Vec::new(),
    }
}

const DOCUMENTS: &str = r#"
    (import "opilio:plugin/documents@0.3.0" "[method]document.length" (func $length (param i32) (result i64)))
    (import "opilio:plugin/documents@0.3.0" "[method]document.set-note" (func $set-note (param i32 i32 i32 i32 i32)))
    (import "opilio:plugin/documents@0.3.0" "[method]document.annotate" (func $annotate (param i32 i32 i32)))
    (import "opilio:plugin/documents@0.3.0" "[method]document.set-attribute" (func $set-attribute (param i32 i32 i32 i32 i32)))
    (import "opilio:plugin/documents@0.3.0" "[method]queue.queued" (func $queued (param i32) (result i64)))
    (import "opilio:plugin/log@0.3.0" "write" (func $write (param i32 i32 i32)))
    (import "opilio:plugin/counters@0.3.0" "count" (func $count (param i32 i32 i64)))"#;

fn with_host_imports(guest: Guest) -> Guest {
    Guest {
        imports: DOCUMENTS,
        ..guest
    }
}

/// A filter that runs `hostile` if it gets two candidates, and passes any other number. If `hostile` leaves an answer, it must
/// return.
fn filter(hostile: &str) -> Guest {
    with_host_imports(Guest::filter(&format!(
        "(local $i i32) (local $at i32)
        (if (i32.eq (local.get 4) (i32.const 2)) (then {hostile}))
        (call $rulings (local.get 4) (i32.const 2))"
    )))
}

/// An extractor that runs `hostile` on a document that is not empty, and finds nothing in an empty one.
fn extractor(hostile: &str) -> Guest {
    with_host_imports(Guest {
        // The answer is one extraction of zeroes: no links, no fragments.
        ..Guest::extractor(&format!(
            "(local $i i32) (local $at i32)
            (i32.store (i32.const 64) (i32.const 128)) (i32.store (i32.const 68) (i32.const 1))
            (if (i64.ne (call $length (i32.load (local.get 0))) (i64.const 0)) (then {hostile}))
            (i32.const 64)"
        ))
    })
}

fn stripper(hostile: &str) -> Guest {
    with_host_imports(Guest::stripper(&format!(
        "(if (i64.ne (call $length (local.get 0)) (i64.const 0)) (then {hostile})) (i32.const 64)"
    )))
}

fn change_evaluator(hostile: &str) -> Guest {
    with_host_imports(Guest::change_evaluator(&format!(
        "(if (i64.ne (call $length (local.get 0)) (i64.const 0)) (then {hostile})) (i32.const 64)"
    )))
}

/// A precedence plugin: it ranks a single candidate 7 and runs `candidates` for two. It ranks a queue 7, and first runs `queue` if
/// the queue has one URI.
fn precedence(candidates: &str, queue: &str) -> Guest {
    with_host_imports(Guest::precedence(
        &format!(
            "(i32.store (i32.const 64) (i32.const 72)) (i32.store (i32.const 68) (i32.const 1))
            (i32.store (i32.const 72) (i32.const 0x0701))
            (if (i32.eq (local.get 3) (i32.const 2)) (then {candidates}))
            (i32.const 64)"
        ),
        &format!(
            "(if (i64.eq (call $queued (local.get 0)) (i64.const 1)) (then {queue}))
            (i32.store (i32.const 72) (i32.const 0x0701)) (i32.const 72)"
        ),
    ))
}

/// An observer that runs `observe` if it gets two events, and `report` if its memory is not empty.
fn observer(observe: &str, report: &str) -> Guest {
    with_host_imports(Guest::observer(
        &format!("(if (i32.eq (local.get 3) (i32.const 2)) (then {observe})) (i32.const 64)"),
        &format!("(if (local.get 1) (then {report})) (i32.const 64)"),
    ))
}

#[track_caller]
fn check(guest: Guest, question: Question, kind: FaultKind, message: &str) -> Fault {
    check_within(limits(), guest, question, kind, message)
}

#[track_caller]
fn check_within(
    limits: Limits,
    guest: Guest,
    question: Question,
    kind: FaultKind,
    message: &str,
) -> Fault {
    let plugin = load(guest).configure(config(json!({}), limits)).unwrap();
    let fault = check_plugin(&plugin, question, kind, message);
    assert_eq!(plugin.statistics().calls, 3);
    fault
}

#[track_caller]
fn check_plugin(plugin: &Plugin, question: Question, kind: FaultKind, message: &str) -> Fault {
    let before = question(plugin, false);
    assert!(before.is_ok(), "before: {before:?}");
    let fault = question(plugin, true).unwrap_err();
    assert_eq!(fault.kind, kind, "{fault:?}");
    assert!(
        fault.message.contains(message) && !fault.message.contains('\n'),
        "{fault:?}"
    );
    assert!(fault.message.len() <= 1_000, "{}", fault.message.len());
    let after = question(plugin, false);
    assert!(after.is_ok(), "after: {after:?}");
    let faults: Vec<_> = plugin.statistics().faults.into_iter().collect();
    assert_eq!(faults, [(kind, 1)]);
    fault
}

/// Limits with a short time: an endless call ends soon, and a call that ends has enough time on a busy machine.
fn short() -> Limits {
    Limits {
        time: Duration::from_millis(500),
        ..limits()
    }
}

fn roomy() -> Limits {
    Limits {
        memory: 256 << 20,
        time: Duration::from_secs(30),
        ..limits()
    }
}

#[test]
fn an_endless_loop_is_stopped_in_time() {
    let began = Instant::now();
    check_within(
        short(),
        filter("(loop $l (br $l))"),
        judge,
        FaultKind::Timeout,
        "stopped after its time of 500ms",
    );
    assert!(began.elapsed() >= Duration::from_millis(500));
}

#[test]
fn an_endless_loop_of_calls_to_the_host_is_stopped_in_time() {
    check_within(
        short(),
        extractor("(loop $l (drop (call $length (i32.load (local.get 0)))) (br $l))"),
        extract,
        FaultKind::Timeout,
        "stopped after its time of 500ms",
    );
}

#[test]
fn endless_allocation_is_stopped_at_the_limit() {
    check(
        filter("(loop $l (drop (memory.grow (i32.const 1))) (br $l))"),
        judge,
        FaultKind::Memory,
        "asked for 4259840 bytes of memory, 4194304 are allowed",
    );
}

#[test]
fn a_growing_table_stops_at_the_limit() {
    // A table that cannot grow returns -1. That is an error only if the guest makes it one.
    let guest = Guest {
        fields: "(table $t 1 funcref)".to_owned(),
        ..filter(
            "(loop $l
                (br_if $l (i32.ne (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1))))
            (unreachable)",
        )
    };
    check(guest, judge, FaultKind::Trap, "unreachable");
}

#[test]
fn deep_recursion_is_a_trap() {
    let guest = Guest {
        fields:
            "(func $f (param i32) (result i32) (i32.add (call $f (local.get 0)) (i32.const 1)))"
                .to_owned(),
        ..filter("(drop (call $f (i32.const 1)))")
    };
    let lane = spawn_lane("lane", move || {
        check(guest, judge, FaultKind::Trap, "call stack exhausted")
    });
    let fault = lane.unwrap().join().unwrap();
    assert!(fault.backtrace.len() <= 64, "{}", fault.backtrace.len());
}

#[test]
fn a_huge_answer_is_stopped_before_it_is_read() {
    // One answer with two reasons of 20 MiB each.
    let reasons = "
        (drop (memory.grow (i32.const 400)))
        (i32.store (i32.const 64) (i32.const 72)) (i32.store (i32.const 68) (i32.const 2))
        (i32.store (i32.const 88) (i32.const 65536)) (i32.store (i32.const 92) (i32.const 20971520))
        (i32.store (i32.const 112) (i32.const 65536)) (i32.store (i32.const 116) (i32.const 20971520))
        (return (i32.const 64))";
    check_within(
        roomy(),
        filter(reasons),
        judge,
        FaultKind::Output,
        "handed the host more than 33554432 bytes at once",
    );
}

#[test]
fn millions_of_links_are_an_output_error() {
    // A link takes 128 bytes. Zeroes are a link without a URI.
    let links = "
        (drop (memory.grow (i32.const 2000)))
        (i32.store (i32.const 128) (i32.const 65536)) (i32.store (i32.const 132) (i32.const 1000000))";
    check_within(
        roomy(),
        extractor(links),
        extract,
        FaultKind::Output,
        "handed the host more than 33554432 bytes at once",
    );
}

#[test]
fn millions_of_fragments_are_an_output_error() {
    let fragments = "
        (drop (memory.grow (i32.const 1000)))
        (i32.store (i32.const 136) (i32.const 65536)) (i32.store (i32.const 140) (i32.const 1000000))";
    check_within(
        roomy(),
        extractor(fragments),
        extract,
        FaultKind::Output,
        "handed the host more than 33554432 bytes at once",
    );
}

#[test]
fn millions_of_spans_are_an_output_error() {
    // The same span again and again costs the host as much as different ones.
    let spans = "
        (drop (memory.grow (i32.const 800)))
        (i32.store (i32.const 72) (i32.const 65536)) (i32.store (i32.const 76) (i32.const 3000000))";
    check_within(
        roomy(),
        stripper(spans),
        strip,
        FaultKind::Output,
        "handed the host more than 33554432 bytes at once",
    );
}

#[test]
fn a_text_shared_by_all_links_counts_for_each_link() {
    // 4 MiB in the guest would become 8 GiB in the host if a shared text were counted only once.
    let links = "
        (drop (memory.grow (i32.const 200)))
        (local.set $at (i32.const 65536))
        (loop $next
            (i32.store (local.get $at) (i32.const 1048576))
            (i32.store offset=4 (local.get $at) (i32.const 4194304))
            (local.set $at (i32.add (local.get $at) (i32.const 128)))
            (br_if $next (i32.lt_u (local.get $at) (i32.const 327680))))
        (i32.store (i32.const 128) (i32.const 65536)) (i32.store (i32.const 132) (i32.const 2048))";
    check_within(
        roomy(),
        extractor(links),
        extract,
        FaultKind::Output,
        "handed the host more than 33554432 bytes at once",
    );
}

#[test]
fn a_huge_argument_of_an_import_is_stopped() {
    let limits = Limits {
        output_bytes: 1 << 20,
        ..roomy()
    };
    check_within(
        limits,
        filter(
            "(drop (memory.grow (i32.const 100)))
            (call $write (i32.const 1) (i32.const 65536) (i32.const 2097152))",
        ),
        judge,
        FaultKind::Output,
        "handed the host more than 1048576 bytes at once",
    );
}

#[test]
fn invalid_utf_8_is_an_error() {
    let guest = |hostile: fn([u32; 2]) -> String| {
        let mut data = Data::default();
        let hostile = hostile(data.bytes(b"\xff\xfe"));
        Guest {
            data,
            ..filter(&hostile)
        }
    };
    let log = guest(|[at, length]| {
        format!("(call $write (i32.const 1) (i32.const {at}) (i32.const {length}))")
    });
    check(log, judge, FaultKind::Trap, "utf-8");
    let reason = guest(|[at, length]| {
        format!(
            "(i32.store (i32.const 64) (i32.const 72)) (i32.store (i32.const 68) (i32.const 2))
            (i32.store (i32.const 88) (i32.const {at})) (i32.store (i32.const 92) (i32.const {length}))
            (return (i32.const 64))"
        )
    });
    check(reason, judge, FaultKind::Nonsense, "utf-8");
}

#[test]
fn spans_past_the_end_are_a_nonsense_error() {
    // First a span of eleven bytes in a document of ten, then spans whose end exceeds the largest number.
    let span = |offset: i64, length: i64| {
        stripper(&format!(
            "(i32.store (i32.const 72) (i32.const 80)) (i32.store (i32.const 76) (i32.const 1))
            (i64.store (i32.const 80) (i64.const {offset})) (i64.store (i32.const 88) (i64.const {length}))"
        ))
    };
    let past = "reaches past the document's 10 bytes";
    check(span(0, 11), strip, FaultKind::Nonsense, past);
    check(span(10, 1), strip, FaultKind::Nonsense, past);
    check(span(5, -1), strip, FaultKind::Nonsense, past);
}

#[test]
fn fragments_out_of_range_or_within_a_character_are_nonsense_errors() {
    let fragment = |case: u32, offset: u32, length: u32| {
        let mut data = Data::default();
        let body = data.with_texts(&format!(
            "(i32.store (i32.const 136) (i32.const 256)) (i32.store (i32.const 140) (i32.const 1))
            (call $store-text (i32.const 256) 'text/css')
            (i32.store8 (i32.const 264) (i32.const {case}))
            (i64.store (i32.const 272) (i64.const {offset})) (i64.store (i32.const 280) (i64.const {length}))"
        ));
        Guest {
            data,
            fields: "(func $store-text (param i32 i32 i32)
                (i32.store (local.get 0) (local.get 1)) (i32.store offset=4 (local.get 0) (local.get 2)))"
                .to_owned(),
            ..extractor(&body)
        }
    };
    check(fragment(0, 4, 7), extract, FaultKind::Nonsense, "");
    check(fragment(1, 11, 1), extract, FaultKind::Nonsense, "");
    let plugin = plugin(fragment(1, 1, 1));
    let umlauts = document_of(Bytes::from_static("ää".as_bytes()));
    let fault = plugin.extract(vec![umlauts]).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Nonsense, "{fault:?}");
}

#[test]
fn traps_do_not_affect_other_calls() {
    let plugin = plugin(filter("(unreachable)"));
    for i in 0..300 {
        let answer = judge(&plugin, i % 3 == 2);
        assert_eq!(answer.is_err(), i % 3 == 2, "{i}: {answer:?}");
    }
    let statistics = plugin.statistics();
    assert_eq!((statistics.calls, statistics.faults_all()), (300, 100));
}

#[test]
fn a_slow_call_within_its_limits_succeeds() {
    let plugin = plugin(filter(
        "(loop $l
            (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 50000000))))",
    ));
    for hostile in [false, true, false] {
        judge(&plugin, hostile).unwrap();
    }
    assert_eq!(plugin.statistics().faults_all(), 0);
}

#[test]
fn unaligned_lists_are_a_nonsense_error() {
    check(
        filter("(return (call $rulings (i32.const 3) (i32.const 2)))"),
        judge,
        FaultKind::Nonsense,
        "answered 3 times to 2 questions",
    );
    check(
        extractor("(i32.store (i32.const 68) (i32.const 0))"),
        extract,
        FaultKind::Nonsense,
        "answered 0 times to 1 questions",
    );
    check(
        precedence("", "(unreachable)"),
        rank,
        FaultKind::Nonsense,
        "answered 1 times to 2 questions",
    );
}

#[test]
fn reasons_of_ten_megabytes_are_cut() {
    // The reasons are within the limit of an answer, so they are not an error. They are cut to their own limit.
    let reasons = "
        (drop (memory.grow (i32.const 200)))
        (memory.fill (i32.const 65536) (i32.const 120) (i32.const 10485760))
        (i32.store (i32.const 64) (i32.const 72)) (i32.store (i32.const 68) (i32.const 2))
        (i32.store (i32.const 88) (i32.const 65536)) (i32.store (i32.const 92) (i32.const 10485760))
        (return (i32.const 64))";
    let plugin = load(filter(reasons))
        .configure(config(json!({}), roomy()))
        .unwrap();
    let rulings = plugin
        .judge_candidates(Stage::Scope, &candidates(2))
        .unwrap();
    assert_eq!(rulings[0].reason, "x".repeat(500));
}

#[test]
fn precedence_0_is_a_nonsense_error() {
    let zeroes = "
        (i32.store (i32.const 68) (i32.const 2))
        (i32.store (i32.const 72) (i32.const 0x00010001))";
    let message = "ranked 0; precedences go from 1, the highest, to 255";
    check(precedence(zeroes, ""), rank, FaultKind::Nonsense, message);
    let zero = "(i32.store (i32.const 72) (i32.const 1)) (return (i32.const 72))";
    check(
        precedence("", zero),
        rank_queue,
        FaultKind::Nonsense,
        message,
    );
}

#[test]
fn a_fingerprint_over_the_limit_is_an_output_error() {
    check(
        change_evaluator(
            "(i32.store (i32.const 68) (i32.const 1))
            (i32.store (i32.const 72) (i32.const 1024)) (i32.store (i32.const 76) (i32.const 4097))",
        ),
        compare,
        FaultKind::Output,
        "made a fingerprint of 4097 bytes; 4096 are allowed",
    );
}

#[test]
fn an_unknown_difference_is_a_nonsense_error() {
    check(
        change_evaluator("(i32.store (i32.const 64) (i32.const 0x0901))"),
        compare,
        FaultKind::Nonsense,
        "",
    );
}

#[test]
fn an_observer_memory_over_the_limit_is_an_output_error() {
    check(
        observer(
            "(drop (memory.grow (i32.const 20)))
            (i32.store (i32.const 64) (i32.const 65536)) (i32.store (i32.const 68) (i32.const 1048577))",
            "",
        ),
        observe,
        FaultKind::Output,
        "wants 1048577 bytes remembered; 1048576 are allowed",
    );
}

/// An observer that writes a line to this file and reports under the same name.
fn writing_to(file: &str) -> Guest {
    let mut data = Data::default();
    let [at, length] = data.text(file);
    let entry = |list: u32| {
        format!(
            "(i32.store (i32.const {list}) (i32.const 80)) (i32.store (i32.const {}) (i32.const 1))
            (i32.store (i32.const 80) (i32.const {at})) (i32.store (i32.const 84) (i32.const {length}))",
            list + 4
        )
    };
    Guest {
        data,
        ..observer(&entry(72), &entry(64))
    }
}

#[test]
fn file_names_outside_the_directory_are_nonsense_errors() {
    for file in [
        "a/b.csv",
        "../../etc/passwd",
        "/etc/cron.d/x",
        "c:\\x.txt",
        "..",
        "",
        ".csv",
        "nul\0.csv",
        "Titles.csv",
        "titles",
    ] {
        let message = "names are lower-case words joined by hyphens, with an ending such as `.csv`";
        check(writing_to(file), observe, FaultKind::Nonsense, message);
        check(writing_to(file), report, FaultKind::Nonsense, message);
    }
    let plugin = plugin(writing_to("titles.csv"));
    assert!(observe(&plugin, true).is_ok() && report(&plugin, true).is_ok());
}

#[test]
fn a_trap_in_configure_is_refused() {
    let guest = Guest {
        configure: "(unreachable)".to_owned(),
        ..filter("")
    };
    let Err(ConfigureError::Fault(fault)) = load(guest).configure(config(json!({}), limits()))
    else {
        panic!("it is configured")
    };
    assert_eq!(fault.kind, FaultKind::Trap, "{fault:?}");
}

#[test]
fn an_endless_configure_is_refused() {
    let guest = Guest {
        configure: "(loop $l (br $l)) (i32.const 0)".to_owned(),
        ..filter("")
    };
    let limits = Limits {
        time: Duration::from_millis(100),
        ..limits()
    };
    let Err(ConfigureError::Fault(fault)) = load(guest).configure(config(json!({}), limits)) else {
        panic!("it is configured")
    };
    assert_eq!(fault.kind, FaultKind::Timeout, "{fault:?}");
}

#[test]
fn an_endless_describe_is_refused() {
    let guest = Guest {
        describe: Some("(loop $l (br $l)) (i32.const 0)"),
        ..filter("")
    };
    let refused = engine().load(&guest.build(), "x").unwrap_err().to_string();
    assert_eq!(
        refused,
        "x cannot describe its plugins: timeout: stopped after its time of 10s"
    );
}

#[test]
fn endless_start_code_is_refused() {
    // Core modules may run code when they are instantiated, before any function is called.
    let guest = Guest {
        fields: "(func $begin (loop $l (br $l))) (start $begin)".to_owned(),
        ..filter("")
    };
    let refused = engine().load(&guest.build(), "x").unwrap_err().to_string();
    assert_eq!(
        refused,
        "x cannot describe its plugins: timeout: stopped after its time of 10s"
    );
}

#[test]
fn log_lines_over_the_limit_are_dropped_and_counted() {
    let plugin = plugin(filter(
        "(loop $l
            (call $write (i32.const 1) (i32.const 0) (i32.const 1000))
            (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100000))))
        (unreachable)",
    ));
    let fault = check_plugin(&plugin, judge, FaultKind::Trap, "unreachable");
    let logged: usize = fault
        .log
        .iter()
        .map(|line| line.message.chars().count())
        .sum();
    assert_eq!(logged, 16 << 10);
    let dropped = plugin.statistics().log_bytes_dropped;
    assert_eq!(dropped, 100_000_000 - (16 << 10));
}

#[test]
fn links_past_the_limit_are_dropped_and_counted() {
    let plugin = load(extractor(
        "(drop (memory.grow (i32.const 200)))
        (i32.store (i32.const 128) (i32.const 65536)) (i32.store (i32.const 132) (i32.const 50000))",
    ))
    .configure(config(json!({}), roomy()))
    .unwrap();
    let found = plugin.extract(vec![document("0123456789")]).unwrap();
    assert_eq!(
        (found[0].links.len(), found[0].links_dropped),
        (6_000, 44_000)
    );
    assert_eq!(plugin.statistics().outputs["links"], 6_000);
}

#[test]
fn control_characters_in_plugin_messages_are_replaced() {
    let mut data = Data::default();
    let [at, length] = data.text("none\n2026-11-21 all is well\u{1b}[2J");
    let words = format!("(i32.const {at}) (i32.const {length})");
    let guest = Guest {
        data,
        // One settings error without a pointer.
        configure: format!(
            "(i32.store8 (i32.const 64) (i32.const 1))
            (i32.store (i32.const 68) (i32.const 80)) (i32.store (i32.const 72) (i32.const 1))
            (i32.store (i32.const 88) (i32.const {at})) (i32.store (i32.const 92) (i32.const {length}))
            (i32.mul (i32.const 64) (i32.eq (local.get 3) (i32.const 7)))"
        ),
        ..filter(&format!(
            "(call $write (i32.const 1) {words})
            (i32.store (i32.const 64) (i32.const 72)) (i32.store (i32.const 68) (i32.const 2))
            (i32.store (i32.const 88) (i32.const {at})) (i32.store (i32.const 92) (i32.const {length}))
            (return (i32.const 64))"
        ))
    };
    let component = load(guest);
    let plugin = component.configure(config(json!({}), limits())).unwrap();
    let rulings = plugin
        .judge_candidates(Stage::Scope, &candidates(2))
        .unwrap();
    assert_eq!(rulings[0].reason, "none 2026-11-21 all is well [2J");
    let refused = component.configure(config(json!({"a": 1}), limits()));
    assert_eq!(
        refused.unwrap_err().to_string(),
        "guest 1.0.0 refuses its settings: none 2026-11-21 all is well [2J"
    );
}

/// A loop of `n` rounds around `body`. A text of 8 digits at address 256 is counted up in each round.
fn rounds(n: u32, body: &str) -> String {
    format!(
        "(local $i i32) (local $n i32) (local $d i32)
        (loop $l
            (local.set $n (local.get $i)) (local.set $d (i32.const 8))
            (loop $digits
                (local.set $d (i32.sub (local.get $d) (i32.const 1)))
                (i32.store8 (i32.add (i32.const 256) (local.get $d))
                    (i32.add (i32.const 97) (i32.rem_u (local.get $n) (i32.const 10))))
                (local.set $n (i32.div_u (local.get $n) (i32.const 10)))
                (br_if $digits (local.get $d)))
            {body}
            (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const {n}))))
        (i32.const 72)"
    )
}

/// A name of eight letters that differs in every round.
const NAME: &str = "(i32.const 256) (i32.const 8)";

#[test]
fn counters_past_the_limit_are_counted_together() {
    let plugin = plugin(with_host_imports(Guest::document_filter(&rounds(
        10_000,
        &format!("(call $count {NAME} (i64.const 1))"),
    ))));
    for _ in 0..2 {
        plugin
            .judge_document(Stage::PostFetch, &document(""), &visit())
            .unwrap();
    }
    let counters = plugin.statistics().counters;
    assert_eq!(counters.len(), 65);
    assert_eq!(counters.values().sum::<u64>(), 20_000);
}

#[test]
fn notes_and_annotations_past_the_limit_are_dropped_and_counted() {
    let plugin = plugin(with_host_imports(Guest::document_filter(&rounds(
        1_000,
        &format!(
            "(call $set-note (local.get 3) {NAME} {NAME}) (call $annotate (local.get 3) {NAME})
            (call $set-note (local.get 3) {NAME} (i32.const 0) (i32.const 5000))"
        ),
    ))));
    let document = document("");
    plugin
        .judge_document(Stage::PostFetch, &document, &visit())
        .unwrap();
    let notes = document.notes();
    assert_eq!((notes.all().len(), notes.annotations().len()), (64, 32));
    assert_eq!(notes.dropped(), 936 + 1_000 + 968);
}

#[test]
fn values_past_the_limit_are_not_kept_and_counted() {
    // The plugin declares two names. It sets a thousand names, and values that are too large.
    let guest = Guest {
        described: vec![Described {
            keeps: &[("aaaaaaaa", 0), ("aaaaaaab", 0)],
            ..Described::default()
        }],
        ..with_host_imports(Guest::document_filter(&rounds(
            1_000,
            &format!(
                "(call $set-attribute (local.get 3) {NAME} {NAME})
                (call $set-attribute (local.get 3) {NAME} (i32.const 0) (i32.const 1025))"
            ),
        )))
    };
    let plugin = plugin(guest);
    let document = document("");
    plugin
        .judge_document(Stage::PostFetch, &document, &visit())
        .unwrap();
    let changes = document.kept().changes();
    let kept: Vec<_> = changes
        .uri
        .iter()
        .map(|change| {
            (
                change.name.as_str(),
                change.value.as_ref().map(|kept| kept.value.as_str()),
            )
        })
        .collect();
    assert_eq!(
        kept,
        [
            ("aaaaaaaa", Some("aaaaaaaa")),
            ("aaaaaaab", Some("aaaaaaab"))
        ]
    );
    assert_eq!(plugin.statistics().kept_dropped, 998 + 1_000);
}

#[test]
fn hanging_calls_do_not_block_other_plugins() {
    // More endless calls than there are instances, and one call that waits for an instance.
    let engine = Engine::new(EngineConfig {
        instances_max: 2,
        ..EngineConfig::default()
    })
    .unwrap();
    let configured = |guest: Guest, limits: Limits| {
        engine
            .load(&guest.build(), "guest")
            .unwrap()
            .configure(config(json!({}), limits))
            .unwrap()
    };
    let hanging = configured(filter("(loop $l (br $l))"), short());
    let well_behaved = configured(filter(""), limits());
    let ended = Mutex::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let fault = judge(&hanging, true).unwrap_err();
                assert_eq!(fault.kind, FaultKind::Timeout, "{fault:?}");
                *ended.lock().unwrap() += 1;
            });
        }
        judge(&well_behaved, true).unwrap();
    });
    assert_eq!(*ended.lock().unwrap(), 4);
}

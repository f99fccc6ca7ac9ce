//! Kinds of plugins of contracts 0.2.0 and 0.3.0: change evaluators, precedence, observers and page behaviours. Also their imports:
//! columns of candidates, tables, kept values.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use jiff::Timestamp;
use opilio_sandbox::{
    BehaviorAction, Candidate, Candidates, ContentState, Difference, Engine, EngineConfig,
    FaultKind, Finished, KeptChange, KeptValue, KeptValues, Limits, Line, LoadedPage, Observation,
    Plugin, PluginConfig, Queue, Report, SharedKeptValues, Stage, StepPlan, Table, Tables, Visit,
};

use crate::guest::{Data, Described, FILTER, Guest};
use crate::support::{
    URI, candidate, candidates, document, document_keeping, limits, load, plugin, visit,
};

#[test]
fn a_change_evaluator_gets_its_last_fingerprint() {
    // The comparison is at address 64. If there is a last version: unchanged, with its fingerprint from the second byte on.
    // Otherwise: no opinion, and the fingerprint `first`.
    let mut data = Data::default();
    let body = data.with_texts(
        "(local $first i32) (local $length i32)
        (i32.store (i32.const 68) (i32.const 1))
        'first' (local.set $length) (local.set $first)
        (if (local.get 2)
            (then
                (i32.store8 (i32.const 64) (i32.const 1)) (i32.store8 (i32.const 65) (i32.const 1))
                (i32.store (i32.const 72) (i32.add (local.get 3) (i32.const 1)))
                (i32.store (i32.const 76) (i32.sub (local.get 4) (i32.const 1)))
                (i32.store (i32.const 80) (local.get 3)) (i32.store (i32.const 84) (local.get 4)))
            (else
                (i32.store (i32.const 72) (local.get $first)) (i32.store (i32.const 76) (local.get $length))))
        (i32.const 64)",
    );
    let plugin = plugin(Guest {
        data,
        ..Guest::change_evaluator(&body)
    });
    let first = plugin.compare(&document("a"), &visit(), None).unwrap();
    assert_eq!(first.difference, None);
    assert_eq!(first.fingerprint.as_deref(), Some(&b"first"[..]));
    let second = plugin
        .compare(&document("b"), &visit(), first.fingerprint.as_deref())
        .unwrap();
    assert_eq!(second.difference, Some(Difference::Unchanged));
    assert_eq!(second.fingerprint.as_deref(), Some(&b"irst"[..]));
    assert_eq!(second.reason, "first");
    let outputs = plugin.statistics().outputs;
    assert_eq!(outputs, BTreeMap::from([("pass", 1), ("unchanged", 1)]));
}

#[test]
fn candidates_and_queues_are_ranked() {
    // As many answers as candidates, from address 8192: none for the first, then 1, 2, …; without a document, an empty list. A
    // queue's precedence is that of its best URI.
    let candidates_body = "(local $i i32)
        (block $done (loop $next
            (br_if $done (i32.ge_u (local.get $i) (local.get 3)))
            (i32.store8 (i32.add (i32.const 8192) (i32.shl (local.get $i) (i32.const 1)))
                (i32.and (local.get 1) (i32.ne (local.get $i) (i32.const 0))))
            (i32.store8 (i32.add (i32.const 8193) (i32.shl (local.get $i) (i32.const 1))) (local.get $i))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br $next)))
        (i32.store (i32.const 64) (i32.const 8192)) (i32.store (i32.const 68) (local.get 3))
        (i32.const 64)";
    let queue_body = "(call $best (local.get 0) (i32.const 72)) (i32.const 72)";
    let plugin = plugin(Guest {
        imports: r#"(import "opilio:plugin/documents@0.3.0" "[method]queue.best" (func $best (param i32 i32)))"#,
        ..Guest::precedence(candidates_body, queue_body)
    });
    let page = document("");
    let ranked = |document| plugin.rank_candidates(&candidates(3), document).unwrap();
    assert_eq!(ranked(Some(&page)), [None, Some(1), Some(2)]);
    assert_eq!(ranked(None), [None, None, None]);
    assert_eq!(plugin.rank_candidates(&candidates(0), None).unwrap(), []);
    let queue = |best| Queue {
        name: "org,example,".to_owned(),
        queued: 1,
        succeeded: 0,
        failed: 0,
        bytes: 0,
        best,
        base: 3,
        now: Timestamp::UNIX_EPOCH,
    };
    assert_eq!(plugin.rank_queue(&queue(Some(7))).unwrap(), Some(7));
    assert_eq!(plugin.rank_queue(&queue(None)).unwrap(), None);
    let statistics = plugin.statistics();
    assert_eq!(
        statistics.outputs,
        BTreeMap::from([("pass", 5), ("ranks", 3)])
    );
    // No call is made for an empty list of candidates.
    assert_eq!((statistics.calls, statistics.times.count()), (4, 4));
}

fn finished(uri: &str) -> Finished {
    Finished {
        at: 0,
        uri: uri.to_owned(),
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

#[test]
fn an_observer_gets_its_memory_back() {
    // `observe` stores the URI of the first event and writes its memory as a line. `report` reports its memory.
    let mut data = Data::default();
    let [file, file_length] = data.text("seen.txt");
    let observe = format!(
        "(i32.store (i32.const 64) (i32.load (i32.add (local.get 2) (i32.const 8))))
        (i32.store (i32.const 68) (i32.load (i32.add (local.get 2) (i32.const 12))))
        (i32.store (i32.const 72) (i32.const 96)) (i32.store (i32.const 76) (i32.const 1))
        (i32.store (i32.const 96) (i32.const {file})) (i32.store (i32.const 100) (i32.const {file_length}))
        (i32.store (i32.const 104) (local.get 0)) (i32.store (i32.const 108) (local.get 1))
        (i32.const 64)"
    );
    let report = format!(
        "(i32.store (i32.const 64) (i32.const 96)) (i32.store (i32.const 68) (i32.const 1))
        (i32.store (i32.const 96) (i32.const {file})) (i32.store (i32.const 100) (i32.const {file_length}))
        (i32.store (i32.const 104) (local.get 0)) (i32.store (i32.const 108) (local.get 1))
        (i32.const 64)"
    );
    let plugin = plugin(Guest {
        data,
        ..Guest::observer(&observe, &report)
    });
    let line = |text: &str| Line {
        file: "seen.txt".to_owned(),
        text: text.to_owned(),
    };
    let first = plugin.observe(&[], &[finished("http://a/")]).unwrap();
    assert_eq!(
        first,
        Observation {
            memory: b"http://a/".to_vec(),
            lines: vec![line("")],
        }
    );
    let second = plugin
        .observe(
            &first.memory,
            &[finished("http://b/"), finished("http://c/")],
        )
        .unwrap();
    assert_eq!(
        second,
        Observation {
            memory: b"http://b/".to_vec(),
            lines: vec![line("http://a/")],
        }
    );
    // Without events, the memory stays as it is and no call is made.
    let none = plugin.observe(&second.memory, &[]).unwrap();
    assert_eq!((none.memory, none.lines), (second.memory.clone(), vec![]));
    let reports = plugin
        .report(&second.memory, Timestamp::UNIX_EPOCH)
        .unwrap();
    assert_eq!(
        reports,
        [Report {
            file: "seen.txt".to_owned(),
            content: "http://b/".to_owned(),
        }]
    );
    assert_eq!(plugin.statistics().calls, 3);
}

const PAGES: &str = r#"
    (import "opilio:plugin/documents@0.3.0" "[resource-drop]page" (func $drop-page (param i32)))
    (import "opilio:plugin/documents@0.3.0" "[method]page.title" (func $title (param i32 i32)))
    (import "opilio:plugin/documents@0.3.0" "[method]page.step" (func $number (param i32) (result i32)))"#;

#[test]
fn a_page_behaviour_gets_page_and_memory() {
    // Evaluates the title of the page, stores the given memory without its first byte, and finishes at step 1.
    let guest = Guest {
        imports: PAGES,
        ..Guest::page_behavior(
            "(i32.store (i32.const 64) (i32.const 128)) (i32.store (i32.const 68) (i32.const 1))
            (i32.store8 (i32.const 128) (i32.const 5)) (call $title (local.get 0) (i32.const 136))
            (if (local.get 3) (then
                (i32.store (i32.const 80) (i32.add (local.get 2) (i32.const 1)))
                (i32.store (i32.const 84) (i32.sub (local.get 3) (i32.const 1)))))
            (i32.store8 (i32.const 88) (call $number (local.get 0)))
            (i32.const 64)",
        )
    };
    let plugin = plugin(guest);
    let page = |step: u32| LoadedPage {
        title: format!("title {step}"),
        step,
        ..LoadedPage::default()
    };
    let plan = |step: u32, memory: &[u8]| plugin.step(&page(step), &visit(), memory).unwrap();
    let expected = |script: &str, memory: &[u8], finished: bool| StepPlan {
        actions: vec![BehaviorAction::Evaluate(script.to_owned())],
        count: Vec::new(),
        memory: memory.to_vec(),
        finished,
    };
    assert_eq!(plan(0, b""), expected("title 0", b"", false));
    assert_eq!(plan(1, b"abc"), expected("title 1", b"bc", true));
    let outputs = plugin.statistics().outputs;
    assert_eq!(outputs, BTreeMap::from([("actions", 2), ("finished", 1)]));
}

#[test]
fn a_plan_over_the_limit_is_an_output_error() {
    let many = Guest::page_behavior(
        "(i32.store (i32.const 72) (i32.const 8192)) (i32.store (i32.const 76) (i32.const 101)) (i32.const 64)",
    );
    let page = LoadedPage::default();
    let fault = plugin(many).step(&page, &visit(), b"").unwrap_err();
    assert_eq!(
        (fault.kind, &*fault.message),
        (
            FaultKind::Output,
            "answered 101 selectors to count; 100 are allowed"
        )
    );
}

/// A filter that passes every candidate. Its first reason is the text whose address and length `read` leaves at address 80. In it,
/// line feeds are shown as `|` and bytes 0 and 1 as digits, because a reason cannot contain control characters.
fn reading(imports: &'static str, data: Data, read: &str) -> Guest {
    Guest {
        imports,
        data,
        fields: "(func $show (param $at i32) (param $length i32)
            (local $byte i32) (local $end i32)
            (local.set $end (i32.add (local.get $at) (local.get $length)))
            (block $done (loop $next
                (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
                (local.set $byte (i32.load8_u (local.get $at)))
                (if (i32.eq (local.get $byte) (i32.const 10))
                    (then (i32.store8 (local.get $at) (i32.const 124))))
                (if (i32.lt_u (local.get $byte) (i32.const 2))
                    (then (i32.store8 (local.get $at) (i32.add (local.get $byte) (i32.const 48)))))
                (local.set $at (i32.add (local.get $at) (i32.const 1)))
                (br $next))))"
            .to_owned(),
        ..Guest::filter(&format!(
            "(local $rulings i32) {read}
            (call $show (i32.load (i32.const 80)) (i32.load (i32.const 84)))
            (local.set $rulings (call $rulings (local.get 4) (i32.const 2)))
            (i32.store (i32.add (i32.load (local.get $rulings)) (i32.const 16)) (i32.load (i32.const 80)))
            (i32.store (i32.add (i32.load (local.get $rulings)) (i32.const 20)) (i32.load (i32.const 84)))
            (local.get $rulings)"
        ))
    }
}

#[test]
fn candidates_are_read_by_column() {
    #[track_caller]
    fn check(column: &str, expected: &str) {
        let import = format!(
            r#"(import "opilio:plugin/documents@0.3.0" "[method]candidates.{column}" (func $column (param i32 i32)))"#
        );
        let guest = reading(
            Box::leak(import.into_boxed_str()),
            Data::default(),
            "(call $column (local.get 3) (i32.const 80))",
        );
        let list: Candidates = (1..=2)
            .map(|n| Candidate {
                surt: format!("surt {n}"),
                hop_path: "L".repeat(n),
                context: format!("context\n{n}"),
                via: (n == 2).then(|| "via".to_owned()),
                via_surt: (n == 2).then(|| "via surt".to_owned()),
                source: (n == 1).then(|| "source".to_owned()),
                address: (n == 1).then(|| "::1".to_owned()),
                ..candidate(&format!("uri {n}"))
            })
            .collect();
        let rulings = plugin(guest).judge_candidates(Stage::Scope, &list).unwrap();
        assert_eq!(rulings[0].reason, expected);
    }
    check("uris", "uri 1|uri 2|");
    check("surts", "surt 1|surt 2|");
    check("hop-paths", "L|LL|");
    check("contexts", "context 1|context 2|");
    check("vias", "|via|");
    check("via-surts", "|via surt|");
    check("sources", "source||");
    check("addresses", "::1||");
    // A list of bytes, 1 for a seed. All candidates of the tests are seeds.
    check("seeds", "11");
}

#[test]
fn an_index_past_the_last_candidate_is_a_trap_with_a_message() {
    let guest = reading(
        r#"(import "opilio:plugin/documents@0.3.0" "[method]candidates.get" (func $get (param i32 i32 i32)))"#,
        Data::default(),
        "(call $get (local.get 3) (i32.const 2) (i32.const 128))
        (i32.store (i32.const 80) (i32.load (i32.const 128))) (i32.store (i32.const 84) (i32.load (i32.const 132)))",
    );
    let plugin = plugin(guest);
    let third = plugin
        .judge_candidates(Stage::Scope, &candidates(3))
        .unwrap();
    assert_eq!(third[0].reason, format!("{URI}2"));
    let fault = plugin
        .judge_candidates(Stage::Scope, &candidates(2))
        .unwrap_err();
    assert_eq!(fault.message, "requested candidate 2 of 2, counted from 0");
}

const TABLES: &str = r#"
    (import "opilio:plugin/tables@0.3.0" "find" (func $find (param i32 i32 i32 i32 i32)))
    (import "opilio:plugin/tables@0.3.0" "find-candidates" (func $find-candidates (param i32 i32 i32 i32)))"#;

fn with_tables(guest: Guest, tables: &Tables) -> Plugin {
    let config = PluginConfig {
        limits: limits(),
        tables: tables.clone(),
        ..PluginConfig::default()
    };
    load(guest).configure(config).unwrap()
}

fn first_reason(plugin: &Plugin) -> String {
    let rulings = plugin.judge_candidates(Stage::Scope, &candidates(2));
    rulings.unwrap()[0].reason.clone()
}

#[test]
fn a_table_that_is_reloaded_is_seen_by_the_next_call() {
    // The row's value follows the row's key and the case of the option.
    let mut data = Data::default();
    let find = data.with_texts(
        "(call $find 'names' 'key' (i32.const 128))
        (if (i32.load8_u (i32.const 128)) (then
            (i32.store (i32.const 80) (i32.load (i32.const 140)))
            (i32.store (i32.const 84) (i32.load (i32.const 144)))))",
    );
    let tables = Tables::default();
    let plugin = with_tables(reading(TABLES, data, &find), &tables);
    assert_eq!(first_reason(&plugin), "", "there is no such table");
    for value in ["one", "two"] {
        tables.set("names", Table::key_values([("key", value)]).unwrap());
        assert_eq!(first_reason(&plugin), value);
    }
    tables.set("names", Table::key_values([("other", "three")]).unwrap());
    assert_eq!(first_reason(&plugin), "");
    tables.remove("names");
    assert_eq!(first_reason(&plugin), "");
}

#[test]
fn all_candidates_are_looked_up_in_one_call() {
    let mut data = Data::default();
    let find = data.with_texts("(call $find-candidates 'sites' (local.get 3) (i32.const 80))");
    let tables = Tables::default();
    let plugin = with_tables(reading(TABLES, data, &find), &tables);
    let found = |expected: &str| assert_eq!(first_reason(&plugin), expected);
    found("00");
    tables.set("sites", Table::regexes(["/1$"]).unwrap());
    found("01");
    let uri = format!("{URI}0");
    tables.set("sites", Table::key_values([uri.as_str()]).unwrap());
    found("10");
}

#[test]
fn configure_sees_no_tables() {
    // The plugin would refuse its settings if it found the row.
    let mut data = Data::default();
    let configure = data.with_texts(
        "(call $find 'names' 'key' (i32.const 128))
        (if (i32.load8_u (i32.const 128)) (then (unreachable)))
        (i32.const 0)",
    );
    let tables = Tables::default();
    tables.set("names", Table::key_values(["key"]).unwrap());
    let guest = Guest {
        imports: TABLES,
        data,
        configure,
        ..Guest::filter("(call $rulings (local.get 4) (i32.const 2))")
    };
    assert_eq!(first_reason(&with_tables(guest, &tables)), "");
}

#[test]
fn kept_values_belong_to_the_plugins_name_in_the_profile() {
    // The filter returns the kept value as its reason, then keeps another value.
    let mut data = Data::default();
    let body = data.with_texts(
        "(call $attribute (local.get 3) 'rate' (i32.const 128))
        (i32.store8 (i32.const 72) (i32.const 2))
        (i32.store (i32.const 88) (i32.load (i32.const 136)))
        (i32.store (i32.const 92) (i32.load (i32.const 140)))
        (call $set-attribute (local.get 3) 'rate' 'new')
        (i32.const 72)",
    );
    let guest = Guest {
        imports: r#"
            (import "opilio:plugin/documents@0.3.0" "[method]document.attribute" (func $attribute (param i32 i32 i32 i32)))
            (import "opilio:plugin/documents@0.3.0" "[method]document.set-attribute"
                (func $set-attribute (param i32 i32 i32 i32 i32)))"#,
        described: vec![Described {
            kinds: &[FILTER],
            keeps: &[("rate", 0)],
            ..Described::default()
        }],
        data,
        ..Guest::document_filter(&body)
    };
    let component = load(guest);
    let value = |version, value: &str| KeptValue {
        version,
        value: value.to_owned(),
    };
    let kept = SharedKeptValues::new(
        KeptValues::of_plugin(
            "one",
            BTreeMap::from([("rate".to_owned(), value(1, "old"))]),
        ),
        KeptValues::default(),
    );
    let reason_of = |instance: &str| {
        let config = PluginConfig {
            instance: Some(instance.to_owned()),
            limits: limits(),
            ..PluginConfig::default()
        };
        let plugin = component.configure(config).unwrap();
        let page = document_keeping(kept.clone());
        let visit = Visit {
            kept: kept.clone(),
            ..visit()
        };
        let ruling = plugin.judge_document(Stage::Archive, &page, &visit);
        ruling.unwrap().reason
    };
    assert_eq!(reason_of("one"), "old");
    assert_eq!(reason_of("one"), "new", "within the visit");
    assert_eq!(reason_of("other"), "");
    let change = |plugin: &str| KeptChange {
        plugin: plugin.to_owned(),
        name: "rate".to_owned(),
        value: Some(value(1, "new")),
    };
    assert_eq!(kept.changes().uri, [change("one"), change("other")]);
    assert_eq!(kept.changes().site, []);
}

#[test]
fn concurrent_calls_of_a_plugin_stay_within_its_limit() {
    // Each call writes a line at its start and another at its end. The sink holds the first call until a second call would have
    // started.
    let running = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let order = Arc::new(Mutex::new(Vec::new()));
    let engine = Engine::new(EngineConfig {
        instances_max: 4,
        log_sink: {
            let (running, order) = (running.clone(), order.clone());
            Arc::new(move |line| {
                let (now, most) = &*running;
                if line.message == "in" {
                    let now = now.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    std::thread::yield_now();
                } else {
                    now.fetch_sub(1, Ordering::SeqCst);
                }
                order.lock().unwrap().push(line.message.clone());
            })
        },
        ..EngineConfig::default()
    })
    .unwrap();
    let mut data = Data::default();
    let body = data.with_texts(
        "(call $write (i32.const 1) 'in') (call $write (i32.const 1) 'out')
        (call $rulings (local.get 4) (i32.const 2))",
    );
    let guest = Guest {
        imports: r#"(import "opilio:plugin/log@0.3.0" "write" (func $write (param i32 i32 i32)))"#,
        data,
        ..Guest::filter(&body)
    };
    let component = engine.load(&guest.build(), "guest").unwrap();
    let config = PluginConfig {
        limits: Limits {
            instances: 1,
            ..limits()
        },
        ..PluginConfig::default()
    };
    let plugin = component.configure(config).unwrap();
    let start = Barrier::new(3);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                start.wait();
                for _ in 0..50 {
                    let rulings = plugin.judge_candidates(Stage::Scope, &candidates(1));
                    assert_eq!(rulings.unwrap().len(), 1);
                }
            });
        }
    });
    assert_eq!(running.1.load(Ordering::SeqCst), 1);
    let order = order.lock().unwrap();
    assert_eq!(order.len(), 300);
    assert!(order.chunks(2).all(|pair| pair == ["in", "out"]));
}

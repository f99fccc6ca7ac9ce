//! Tests of isolation. A guest with every kind of plugin tries to store state between calls in every possible way. Built-in plugins
//! get the same calls again after a thousand others, and must give the same answers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_sandbox::{
    Candidates, ContentState, Document, DocumentParts, Finished, Kind, Limits, LoadedPage, Notes,
    Plugin, Queue, SharedKeptValues, Stage, Start, spawn_lane,
};
use serde_json::{Value, json};

use crate::builtin::components;
use crate::guest::{
    CHANGE, Described, EXTRACTOR, FILTER, Guest, OBSERVER, PAGE_BEHAVIOR, PRECEDENCE, STRIPPER,
    WAIT,
};
use crate::support::{URI, candidate, config, config_of, engine, limits, visit};

/// A world with every kind of plugin. A component may export several of their interfaces.
const WORLD: &str = "package opilio:plugin@0.3.0;
    world every-kind {
        include extractor-plugin;
        include filter-plugin;
        include digest-stripper-plugin;
        include change-evaluator-plugin;
        include wait-evaluator-plugin;
        include precedence-plugin;
        include observer-plugin;
        include page-behavior-plugin;
    }";

/// Counts `fresh` if no trace of an earlier call is visible. Then it leaves a mark everywhere a guest can: in memory, in memory
/// that it grows, in a global, in a table, in a passive segment that it drops.
const REMEMBER: &str = r#"
    (global $mark (mut i32) (i32.const 0))
    (table $marks 1 10 funcref)
    (elem declare func $remember)
    (data $once "once")
    (func $remember
        (if (i32.eqz (i32.or
                (i32.or (i32.load (i32.const 512)) (global.get $mark))
                (i32.or
                    (i32.ne (memory.size) (i32.const 1))
                    (i32.or
                        (i32.ne (table.size $marks) (i32.const 1))
                        (i32.eqz (ref.is_null (table.get $marks (i32.const 0))))))))
            (then (call $count (i32.const 520) (i32.const 5) (i64.const 1))))
        ;; Traps where the segment is gone already.
        (memory.init $once (i32.const 528) (i32.const 0) (i32.const 4))
        (data.drop $once)
        (i32.store (i32.const 512) (i32.const 1))
        (global.set $mark (i32.const 1))
        (drop (memory.grow (i32.const 3)))
        (i32.store (i32.const 131072) (i32.const 1))
        (table.set $marks (i32.const 0) (ref.func $remember))
        (drop (table.grow $marks (ref.null func) (i32.const 2))))
    (data (i32.const 520) "fresh")"#;

fn remembering() -> Guest {
    let mut guest = remembering_0_2();
    let behavior = Guest::page_behavior("(call $remember) (i32.const 64)");
    guest.functions += &behavior.functions;
    guest.described[0].kinds = &[
        EXTRACTOR,
        FILTER,
        STRIPPER,
        CHANGE,
        WAIT,
        PRECEDENCE,
        OBSERVER,
        PAGE_BEHAVIOR,
    ];
    guest.imports = r#"
        (import "opilio:plugin/counters@0.3.0" "count" (func $count (param i32 i32 i64)))
        (import "opilio:plugin/documents@0.3.0" "[resource-drop]page" (func $drop-page (param i32)))"#;
    guest
}

/// The same guest with the kinds of contract 0.2.0.
fn remembering_0_2() -> Guest {
    let all = [
        Guest::extractor(
            "(call $remember) (i32.store (i32.const 64) (i32.const 128)) (i32.store (i32.const 68) (i32.const 1))
            (i32.const 64)",
        ),
        Guest::filter("(call $remember) (call $rulings (local.get 4) (i32.const 2))"),
        Guest::stripper("(call $remember) (i32.const 64)"),
        Guest::change_evaluator("(call $remember) (i32.const 64)"),
        Guest::wait_evaluator("(call $remember) (i32.const 64)"),
        Guest::precedence(
            "(call $remember) (i32.store (i32.const 64) (i32.const 72)) (i32.store (i32.const 68) (i32.const 1))
            (i32.const 64)",
            "(call $remember) (i32.const 64)",
        ),
        Guest::observer(
            "(call $remember) (i32.const 64)",
            "(call $remember) (i32.const 64)",
        ),
    ];
    Guest {
        world: "every-kind",
        described: vec![Described {
            kinds: &[
                EXTRACTOR, FILTER, STRIPPER, CHANGE, WAIT, PRECEDENCE, OBSERVER,
            ],
            ..Described::default()
        }],
        imports: r#"(import "opilio:plugin/counters@0.3.0" "count" (func $count (param i32 i32 i64)))"#,
        functions: all.map(|guest| guest.functions).concat(),
        fields: REMEMBER.to_owned(),
        ..Guest::default()
    }
}

/// Calls every function that a plugin exports.
fn call_every_function(plugin: &Plugin) {
    call_every_function_of_0_2(plugin);
    plugin.step(&loaded_page(), &visit(), &[]).unwrap();
}

/// Calls every function that a plugin of contract 0.2.0 exports.
fn call_every_function_of_0_2(plugin: &Plugin) {
    let document = page(URI, "text/html", "<p>");
    let candidates = [candidate(URI)].into_iter().collect::<Candidates>();
    let now = Timestamp::UNIX_EPOCH;
    plugin.extract(vec![document.clone()]).unwrap();
    plugin.judge_candidates(Stage::Scope, &candidates).unwrap();
    plugin.strip(&document).unwrap().unwrap();
    plugin.compare(&document, &visit(), None).unwrap();
    plugin.evaluate(&visit()).unwrap();
    plugin
        .rank_candidates(&candidates, Some(&document))
        .unwrap();
    plugin.rank_queue(&queue()).unwrap();
    plugin.observe(&[], &[finished()]).unwrap();
    plugin.report(&[], now).unwrap();
}

fn queue() -> Queue {
    Queue {
        name: "org,example,".to_owned(),
        queued: 1,
        succeeded: 1,
        failed: 0,
        bytes: 1,
        best: None,
        base: 1,
        now: Timestamp::UNIX_EPOCH,
    }
}

fn loaded_page() -> LoadedPage {
    LoadedPage {
        uri: URI.to_owned(),
        scroll_height: 5_000,
        window_height: 800,
        time_left: Duration::from_secs(60),
        steps_left: 50,
        ..LoadedPage::default()
    }
}

fn finished() -> Finished {
    Finished {
        at: 0,
        uri: URI.to_owned(),
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

fn page(uri: &str, media_type: &str, content: &str) -> Document {
    Document::new(DocumentParts {
        uri: uri.to_owned(),
        base: uri.to_owned(),
        status: 200,
        headers: Arc::new([]),
        media_type: media_type.to_owned(),
        charset: Some(encoding_rs::UTF_8),
        fragment: None,
        content: Bytes::copy_from_slice(content.as_bytes()),
        notes: Notes::new(),
        kept: SharedKeptValues::default(),
    })
}

#[track_caller]
fn check_forgets(plugin: &Plugin) {
    for _ in 0..100 {
        call_every_function(plugin);
    }
    let statistics = plugin.statistics();
    assert_eq!((statistics.calls, statistics.faults_all()), (1000, 0));
    assert_eq!(statistics.counters["fresh"], 1000);
}

#[test]
fn no_call_sees_state_of_another_kind_of_call() {
    let component = remembering().build_with_contract(str::to_owned, WORLD);
    let component = engine().load(&component, "guest").unwrap();
    // The table and the passive segment prevent a snapshot, so each call configures its instance.
    let plugin = component.configure(config(json!({}), limits())).unwrap();
    assert!(matches!(plugin.start(), Start::EachCall { .. }));
    check_forgets(&plugin);
}

#[test]
fn every_kind_of_contract_0_2_0_is_called() {
    let world = WORLD
        .replace("@0.3.0", "@0.2.0")
        .replace("include page-behavior-plugin;", "");
    let component = remembering_0_2().build_published("0.2.0", &world);
    let component = engine().load(&component, "guest").unwrap();
    let plugin = component.configure(config(json!({}), limits())).unwrap();
    assert_eq!(plugin.contract(), "0.2.0");
    call_every_function_of_0_2(&plugin);
    let statistics = plugin.statistics();
    assert_eq!((statistics.calls, statistics.faults_all()), (9, 0));
    assert_eq!(statistics.counters["fresh"], 9);
    let fault = plugin.step(&loaded_page(), &visit(), &[]).unwrap_err();
    assert_eq!(fault.message, "its component does not export page-behavior");
}

#[test]
fn the_guest_detects_marks_within_one_call() {
    // Within one call a mark is visible. So the two other tests look for something that can be found.
    let mut guest = remembering();
    guest.fields = guest.fields.replace("(data.drop $once)", "");
    guest.functions = guest
        .functions
        .replace("(call $remember)", "(call $remember) (call $remember)");
    let component = guest.build_with_contract(str::to_owned, WORLD);
    let component = engine().load(&component, "guest").unwrap();
    let plugin = component.configure(config(json!({}), limits())).unwrap();
    call_every_function(&plugin);
    assert_eq!(plugin.statistics().counters["fresh"], 10);
}

#[test]
fn no_call_from_a_snapshot_sees_state_of_another() {
    let mut guest = remembering();
    // Only what a snapshot can hold remains: memory and globals.
    for unfit in [
        "(data.drop $once)",
        "(table.set $marks (i32.const 0) (ref.func $remember))",
        "(drop (table.grow $marks (ref.null func) (i32.const 2)))",
    ] {
        assert!(guest.fields.contains(unfit), "{unfit}");
        guest.fields = guest.fields.replace(unfit, "");
    }
    let component = guest.build_with_contract(str::to_owned, WORLD);
    let component = engine().load(&component, "guest").unwrap();
    let plugin = component.configure(config(json!({}), limits())).unwrap();
    assert!(plugin.snapshotted(), "{:?}", plugin.start());
    check_forgets(&plugin);
}

const PAGES: [&str; 4] = [
    "<a href=a>one</a><base href=/b/><img src=c><script>location='/d.html'</script>",
    "<p>1999-12-31 23:59:59 session=0123456789abcdef",
    "a { background: url(x.png) } @import 'y.css';",
    "",
];

/// The answers of all functions of a plugin for one page.
fn answers(plugin: &Plugin, page: &str) -> String {
    let uris = [
        "http://example.org/",
        "http://example.org/a/a/a/a/a/a/",
        "https://other.example/very/deep/path/indeed/it/is/not/true",
        "mailto:nobody@example.org",
    ];
    let candidates: Candidates = uris.iter().map(|uri| candidate(uri)).collect();
    let media_types = &plugin.description().handles.media_types;
    let media_type = media_types.first().map_or("text/html", String::as_str);
    let document = self::page(URI, &media_type.replace('*', "html"), page);
    let answer = |kind: &Kind| match kind {
        Kind::Extractor => format!("{:?}", plugin.extract(vec![document.clone()])),
        Kind::Filter => format!(
            "{:?} {:?}",
            plugin.judge_candidates(Stage::Scope, &candidates),
            plugin.judge_document(Stage::PostFetch, &document, &visit()),
        ),
        Kind::DigestStripper => format!("{:?}", plugin.strip(&document)),
        Kind::ChangeEvaluator => format!("{:?}", plugin.compare(&document, &visit(), None)),
        Kind::WaitEvaluator => format!("{:?}", plugin.evaluate(&visit())),
        Kind::Precedence => format!("{:?}", plugin.rank_candidates(&candidates, Some(&document))),
        Kind::Observer => format!("{:?}", plugin.observe(&[], &[finished()])),
        Kind::PageBehavior => format!("{:?}", plugin.step(&loaded_page(), &visit(), &[])),
        Kind::Other(_) => String::new(),
    };
    plugin.description().kinds.iter().map(answer).collect()
}

/// Settings of the plugins that have required settings.
fn settings(plugin: &str) -> Value {
    match plugin {
        "regex-strip" => json!({"patterns": ["[0-9]{4}-[0-9]{2}-[0-9]{2}"]}),
        _ => json!({}),
    }
}

#[test]
fn builtin_plugins_answer_the_same_after_a_thousand_other_calls() {
    for component in components().values() {
        for description in component.plugins() {
            let name = description.name.as_str();
            let config = config_of(name, settings(name), Limits::default());
            let plugin = component.configure(config.clone()).unwrap();
            let first = PAGES.map(|page| answers(&plugin, page));
            // Two threads call at once, each in its own order.
            let lanes = [1, 3].map(|stride| {
                let (plugin, first) = (plugin.clone(), first.clone());
                spawn_lane("lane", move || {
                    let mut at = 0;
                    while plugin.statistics().calls < 1_000 {
                        at = (at + stride) % PAGES.len();
                        assert_eq!(answers(&plugin, PAGES[at]), first[at]);
                    }
                })
                .unwrap()
            });
            for lane in lanes {
                lane.join().unwrap();
            }
            assert_eq!(PAGES.map(|page| answers(&plugin, page)), first, "{name}");
            let each_call = component.configure_each_call(config).unwrap();
            let configured_anew = PAGES.map(|page| answers(&each_call, page));
            assert_eq!(configured_anew, first, "{name}");
        }
    }
}

#[test]
fn builtin_plugins_import_only_the_contract() {
    for (name, component) in components() {
        let bytes = opilio_builtin::all()
            .find(|builtin| builtin.name == *name)
            .unwrap()
            .component;
        assert_eq!(component.origin(), *name);
        let imports = imports(bytes);
        assert!(!imports.is_empty(), "{name}");
        for import in imports {
            assert!(
                import.starts_with("opilio:plugin/"),
                "{name} imports {import}"
            );
        }
    }
}

fn imports(component: &[u8]) -> Vec<String> {
    let decoded = wit_component::decode(component).unwrap();
    let wit_component::DecodedWasm::Component(resolve, world) = decoded else {
        panic!("a package");
    };
    let keys = resolve.worlds[world].imports.keys();
    keys.map(|key| resolve.name_world_key(key)).collect()
}

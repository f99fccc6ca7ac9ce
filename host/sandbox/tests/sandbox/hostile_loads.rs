//! Hostile or broken component files. Each load ends within the time limit, with a component or a one-line error. Nothing panics.

use std::collections::BTreeSet;
use std::panic;
use std::sync::{Mutex, Once, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;

use opilio_sandbox::{COMPONENT_BYTES_MAX, Component, Limits, LoadError, Stage, spawn_lane};
use proptest::prelude::*;
use serde_json::json;

use crate::guest::{Described, Guest};
use crate::support::{candidates, config_of, document, engine};

/// Longest time that a load may take on a busy machine. It includes `describe` with its limit of 10 s.
const LOAD_MAX: Duration = Duration::from_secs(180);

/// The largest built-in component that still compiles within a second.
fn scope() -> &'static [u8] {
    opilio_builtin::find("surt-scope").unwrap().component
}

/// Threads of loads that panicked, even if the panic was caught: its message on stderr would still reach the operator.
static PANICKED: Mutex<Vec<ThreadId>> = Mutex::new(Vec::new());
const LANE: &str = "load";

fn watch() {
    static WATCHING: Once = Once::new();
    WATCHING.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panicked| {
            let thread = thread::current();
            if thread.name() == Some(LANE) {
                PANICKED.lock().unwrap().push(thread.id());
            }
            before(panicked);
        }));
    });
}

/// Configures and calls everything that a loaded component exports. Each step ends with an answer or an error.
fn configure_and_call(component: &Component) {
    let limits = Limits {
        time: Duration::from_secs(1),
        ..Limits::default()
    };
    for description in component.plugins() {
        let config = config_of(&description.name, json!({}), limits.clone());
        if let Ok(plugin) = component.configure(config) {
            let _ = plugin.judge_candidates(Stage::Scope, &candidates(3));
            let _ = plugin.extract(vec![document("<a href=b>")]);
        }
    }
}

/// The error of a load, or `None` if it loads. Fails the test if the load takes too long or panics.
#[track_caller]
fn load(bytes: Vec<u8>) -> Option<LoadError> {
    watch();
    let (outcome_sender, outcome_receiver) = mpsc::channel();
    let lane = spawn_lane(LANE, move || {
        // Sending fails only if the test has already failed.
        let _ = outcome_sender.send(
            engine()
                .load(&bytes, "plugins/x.wasm")
                .map(|component| configure_and_call(&component))
                .err(),
        );
    });
    let refused = match outcome_receiver.recv_timeout(LOAD_MAX) {
        Ok(refused) => refused,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it takes longer than {LOAD_MAX:?}"),
        Err(mpsc::RecvTimeoutError::Disconnected) => panic!("it panics"),
    };
    let lane = lane.unwrap();
    let thread = lane.thread().id();
    assert!(lane.join().is_ok());
    assert!(!PANICKED.lock().unwrap().contains(&thread), "it panicked");
    if let Some(refused) = &refused {
        let message = refused.to_string();
        assert!(
            message.starts_with("plugins/x.wasm ")
                && message.len() < 2_000
                && !message.contains('\n'),
            "{message}"
        );
    }
    refused
}

#[track_caller]
fn check_refused(bytes: Vec<u8>, expected: &str) {
    let message = load(bytes).unwrap().to_string();
    assert!(message.contains(expected), "{message}");
}

#[test]
fn each_sort_of_wrong_file_is_refused_with_advice() {
    let module = Guest::filter("(i32.const 0)").module("0.3.0");
    check_refused(
        module,
        "is a core module, not a component: make one of it with `wasm-tools component new`",
    );
    check_refused(b"PK\x03\x04".to_vec(), "is not a WebAssembly component");
    // A component of another world: it imports nothing and exports something else.
    let other = "(component
        (core module $m (func (export \"run\")))
        (core instance $i (instantiate $m))
        (func (export \"run\") (canon lift (core func $i \"run\"))))";
    check_refused(
        wat::parse_str(other).unwrap(),
        "is not a plugin: it does not export opilio:plugin/setup",
    );
    let of = |version: &str| {
        let edit = |file: &str| file.replace("@0.3.0", &format!("@{version}"));
        Guest::filter("(i32.const 0)").build_with_contract(edit, "")
    };
    check_refused(of("0.9.0"), "0.9.0");
    check_refused(of("1.0.0"), "1.0.0");
    check_refused(
        vec![0; COMPONENT_BYTES_MAX + 1],
        "67108865 bytes; components may have 67108864",
    );
}

#[test]
fn unsupported_wasm_features_are_refused_by_name() {
    #[track_caller]
    fn check(fields: &str, expected: &str) {
        let guest = Guest {
            fields: fields.to_owned(),
            ..Guest::filter("(i32.const 0)")
        };
        let refused = load(guest.build());
        assert!(
            matches!(refused, Some(LoadError::Demanding { .. })),
            "{refused:?}"
        );
        let message = refused.unwrap().to_string();
        assert!(
            message.starts_with("plugins/x.wasm exceeds what plugins may use of WebAssembly: ")
                && message.contains(expected),
            "{message}"
        );
    }
    check(
        "(memory $a 1) (memory $b 1) (memory $c 1) (memory $d 1)",
        "memories",
    );
    check("(table $t 40000 funcref)", "minimum element size of 40000");
    check("(memory $m 1 1 shared)", "shared memories");
    check("(tag $e)", "exceptions");
    check("(type $s (struct (field i32)))", "gc types");
}

#[test]
fn a_component_that_begins_with_too_much_memory_is_refused() {
    let guest = Guest {
        fields: "(memory $m 65536)".to_owned(),
        ..Guest::filter("(i32.const 0)")
    };
    let refused = load(guest.build()).unwrap().to_string();
    assert!(
        refused.contains("asked for 4295032832 bytes of memory, 134217728 are allowed"),
        "{refused}"
    );
}

#[test]
fn a_memory_of_64_bits_is_taken_without_a_snapshot() {
    let guest = Guest {
        fields: "(memory $m i64 1)".to_owned(),
        ..Guest::filter("(call $rulings (local.get 4) (i32.const 2))")
    };
    assert!(load(guest.build()).is_none());
}

#[test]
fn control_characters_in_a_components_names_are_replaced() {
    for (described, expected) in [
        (
            Described {
                name: "a\nb\u{1b}[2J",
                ..Described::default()
            },
            "names a plugin `a b [2J`",
        ),
        (
            Described {
                version: "1\r\n",
                ..Described::default()
            },
            "the version `1  `",
        ),
        (
            Described {
                media_types: &["text/html\n"],
                ..Described::default()
            },
            "`text/html ` is not a media type pattern",
        ),
    ] {
        let guest = Guest {
            described: vec![described],
            ..Guest::filter("(i32.const 0)")
        };
        check_refused(guest.build(), expected);
    }
}

#[test]
fn a_component_truncated_anywhere_is_refused() {
    let whole = Guest::filter("(i32.const 0)").build();
    for end in 0..whole.len() {
        // Without only its last section, a component may still be valid.
        if let Some(refused) = load(whole[..end].to_vec()) {
            assert!(
                matches!(
                    refused,
                    LoadError::NotWasm { .. }
                        | LoadError::Malformed { .. }
                        | LoadError::NoPlugin { .. }
                ),
                "cut at {end}: {refused:?}"
            );
        }
    }
    let whole = scope();
    for end in (0..whole.len()).step_by(997) {
        let refused = load(whole[..end].to_vec());
        assert!(refused.is_some(), "cut at {end}");
    }
}

#[test]
fn a_module_that_claims_to_be_longer_than_its_component_is_refused_without_a_panic() {
    // Extends the length of the first core module, which is the first section with that number, past the end of the file.
    let mut bytes = Guest::filter("(i32.const 0)").build();
    let module = bytes
        .windows(8)
        .position(|window| window == b"\0asm\x01\0\0\0")
        .unwrap();
    // The length precedes it as LEB128: 7 bits in each byte, and the eighth bit is clear in the last.
    bytes[module - 1] = 0x7f;
    check_refused(bytes, "is truncated, damaged or not a valid component");
}

/// A filter with these fields beside its functions.
#[track_caller]
fn check_loads(fields: String) {
    let guest = Guest {
        fields,
        ..Guest::filter("(call $rulings (local.get 4) (i32.const 2))")
    };
    assert!(load(guest.build()).is_none());
}

#[test]
fn code_that_is_hard_to_compile_compiles_within_the_limit() {
    // Deeply nested blocks, one function of a million instructions, and ten thousand functions.
    check_loads(format!(
        "(func {} {})",
        "(block ".repeat(10_000),
        ")".repeat(10_000)
    ));
    check_loads(format!(
        "(func (param i32) (result i32) (local.get 0) {})",
        "(i32.mul (local.get 0)) (i32.const 3) (i32.add)".repeat(100_000)
    ));
    check_loads("(func (param i32) (result i32) (local.get 0))".repeat(10_000));
}

/// A guest with a function of so many variables, each used within so many nested loops.
fn looping(variables: usize, loops: usize) -> Guest {
    let locals = "i32 ".repeat(variables);
    let uses: String = (0..variables)
        .map(|n| format!("(local.set {n} (i32.add (local.get {n}) (i32.const 1)))"))
        .collect();
    let begin = "(loop ".repeat(loops);
    let end = "(br_if 0 (local.get 0)))".repeat(loops);
    Guest {
        fields: format!("(func (export \"dear\") (local {locals}) {begin} {uses} {end})"),
        ..Guest::filter("(i32.const 0)")
    }
}

#[test]
fn a_function_that_needs_gigabytes_to_compile_is_refused_by_name() {
    assert!(load(looping(300, 40).build()).is_none());
    let costly = looping(50_000, 800).build();
    assert!(costly.len() < 600_000, "{}", costly.len());
    check_refused(
        costly,
        "plugins/x.wasm is too costly to compile: function 8 has 50000 local variables and 800 loops; \
         their product may be 500000",
    );
    let long = Guest {
        fields: format!("(func (export \"long\") {})", "nop ".repeat(1 << 20)),
        ..Guest::filter("(i32.const 0)")
    };
    check_refused(long.build(), "1048576 are allowed");
}

#[test]
fn a_schema_over_the_size_limit_is_refused() {
    let named = (0..40).map(|n| {
        let next = json!({"$ref": format!("#/$defs/a{}", n + 1)});
        (format!("a{n}"), json!({"allOf": [next, next]}))
    });
    let mut defs: serde_json::Map<_, _> = named.collect();
    defs.insert("a40".to_owned(), json!({}));
    let schema = json!({"type": "object", "$ref": "#/$defs/a0", "$defs": defs}).to_string();
    let guest = Guest {
        described: vec![Described {
            schema: schema.leak(),
            ..Described::default()
        }],
        ..Guest::filter("(i32.const 0)")
    };
    check_refused(
        guest.build(),
        "gives plugin `guest` a settings schema that cannot be used: it nests deeper than 64 schemas",
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_builtin_component_with_changed_bytes_loads_or_is_refused(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
    ) {
        let mut bytes = scope().to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        load(bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_small_component_with_changed_bytes_loads_or_is_refused(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in proptest::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let mut bytes = Guest::filter("(call $rulings (local.get 4) (i32.const 2))").build();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        load(bytes);
    }
}

#[test]
fn changed_bytes_reach_more_than_one_check() {
    // Sets each byte of a small component to zero in turn, to show that the property tests above get past the first bytes.
    let whole = Guest::filter("(i32.const 0)").build();
    let mut ends = BTreeSet::new();
    for at in (0..whole.len()).step_by(3) {
        let mut bytes = whole.clone();
        bytes[at] = 0;
        ends.insert(match load(bytes) {
            None => "loaded",
            Some(LoadError::NotWasm { .. }) => "no wasm",
            Some(LoadError::Malformed { .. }) => "malformed",
            Some(LoadError::Demanding { .. }) => "demanding",
            Some(LoadError::Costly { .. }) => "costly",
            Some(LoadError::Import { .. }) => "import",
            Some(LoadError::Contract { .. }) => "contract",
            Some(LoadError::NoPlugin { .. }) => "no plugin",
            Some(LoadError::Description { .. }) => "description",
            Some(LoadError::Describe { .. }) => "describe",
            Some(refused) => panic!("{refused:?}"),
        });
    }
    assert!(ends.len() >= 5 && ends.contains("loaded"), "{ends:?}");
}

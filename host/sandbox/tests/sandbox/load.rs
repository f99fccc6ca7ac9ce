//! Components that load, and components that are refused with an error message.

use opilio_sandbox::{COMPONENT_BYTES_MAX, LoadError};

use crate::guest::{Described, EXTRACTOR, FILTER, Guest, OBSERVER};
use crate::support::{engine, load};

#[track_caller]
fn check_refused(component: &[u8], expected: &str) {
    let error = engine()
        .load(component, "plugins/x.wasm")
        .map(drop)
        .unwrap_err();
    let message = error.to_string();
    assert!(message.contains(expected), "{message}");
    assert!(
        message.starts_with("plugins/x.wasm ") && !message.contains('\n'),
        "{message}"
    );
}

#[test]
fn a_component_lists_its_plugins() {
    let bytes = Guest {
        described: vec![
            Described {
                name: "one",
                version: "1.2.3",
                media_types: &["text/html"],
                ..Described::default()
            },
            Described {
                name: "another",
                schema: r#"{"type":"object"}"#,
                ..Described::default()
            },
        ],
        ..Guest::filter("(i32.const 0)")
    }
    .build();
    let component = engine().load(&bytes, "here").unwrap();
    assert_eq!(component.origin(), "here");
    assert_eq!(component.sha256().len(), 64);
    let names: Vec<_> = component
        .plugins()
        .iter()
        .map(|plugin| plugin.name.as_str())
        .collect();
    assert_eq!(names, ["one", "another"]);
    assert_eq!(component.plugins()[0].version, "1.2.3");
    assert_eq!(component.plugins()[0].handles.media_types, ["text/html"]);
    assert_eq!(
        component.plugins()[1].settings_schema,
        r#"{"type":"object"}"#
    );
}

#[test]
fn a_core_module_is_refused() {
    check_refused(
        &Guest::filter("(i32.const 0)").module("0.3.0"),
        "is a core module, not a component",
    );
}

#[test]
fn a_file_that_is_not_wasm_is_refused() {
    check_refused(b"#!/bin/sh", "is not a WebAssembly component");
    check_refused(b"", "is not a WebAssembly component");
}

#[test]
fn a_truncated_component_is_refused_wherever_it_ends() {
    let whole = Guest::filter("(i32.const 0)").build();
    for end in [4, 8, 9, 100, whole.len() / 2, whole.len() - 1] {
        let error = engine().load(&whole[..end], "x").map(drop).unwrap_err();
        // An empty component is valid, and a component without its last section may be.
        assert!(
            matches!(
                error,
                LoadError::Malformed { .. } | LoadError::NoPlugin { .. }
            ),
            "cut at {end}: {error:?}"
        );
    }
    check_refused(
        &whole[..whole.len() / 2],
        "is truncated, damaged or not a valid component",
    );
}

#[test]
fn an_oversized_component_is_refused_before_it_is_read() {
    check_refused(
        &vec![0; COMPONENT_BYTES_MAX + 1],
        "67108865 bytes; components may have 67108864",
    );
}

#[test]
fn an_interface_of_a_later_contract_is_refused_by_name() {
    let guest = Guest {
        world: "with-clock",
        imports: r#"(import "opilio:plugin/clock@0.3.0" "count" (func $count (result i64)))"#,
        ..Guest::filter("(drop (call $count)) (i32.const 0)")
    };
    let clock = "package opilio:plugin@0.3.0;
        interface clock { count: func() -> u64; }
        world with-clock { include filter-plugin; import clock; }";
    let component = guest.build_with_contract(str::to_owned, clock);
    check_refused(&component, "`opilio:plugin/clock@0.3.0`");
    check_refused(&component, "a newer version of opilio may have it");
}

#[test]
fn a_function_that_an_interface_does_not_have_is_refused_by_name() {
    let guest = Guest {
        imports: r#"(import "opilio:plugin/log@0.3.0" "flush" (func $flush))"#,
        ..Guest::filter("(call $flush) (i32.const 0)")
    };
    let edit = |file: &str| file.replace("interface log {", "interface log { flush: func();");
    check_refused(
        &guest.build_with_contract(edit, ""),
        "imports `flush` of `opilio:plugin/log@0.3.0`, which is not available to plugins",
    );
}

#[test]
fn a_plugin_for_another_contract_is_refused_with_both_versions() {
    let component = Guest::filter("(i32.const 0)")
        .build_with_contract(|file| file.replace("@0.3.0", "@0.4.0"), "");
    check_refused(
        &component,
        "made for contract 0.4.0, this version of opilio speaks 0.3.0, 0.2.0 and 0.1.0",
    );
    check_refused(
        &wat::parse_str(
            r#"(component (instance $nothing) (export "opilio:plugin/setup@0.4.0" (instance $nothing)))"#,
        )
        .unwrap(),
        "made for contract 0.4.0, this version of opilio speaks 0.3.0, 0.2.0 and 0.1.0",
    );
}

#[test]
fn functions_of_a_later_contract_are_refused_with_the_version_to_build_for() {
    let as_0_1 = |file: &str| file.replace("@0.3.0", "@0.1.0");
    check_refused(
        &Guest::filter("(i32.const 0)").build_with_contract(as_0_1, ""),
        "imports `candidates` of `opilio:plugin/documents@0.1.0`, which is not available to plugins: \
         contract 0.1.0 does not have it; build for 0.3.0",
    );
    let guest = Guest {
        imports: r#"(import "opilio:plugin/tables@0.3.0" "kind-of" (func $kind-of (param i32 i32 i32)))"#,
        ..Guest::filter("(call $kind-of (i32.const 0) (i32.const 0) (i32.const 0)) (i32.const 0)")
    };
    check_refused(
        &guest.build_with_contract(as_0_1, ""),
        "imports `opilio:plugin/tables@0.1.0`, which is not available to plugins: \
         contract 0.1.0 does not have it; build for 0.3.0",
    );
    let as_0_2 = |file: &str| file.replace("@0.3.0", "@0.2.0");
    check_refused(
        &Guest::page_behavior("(i32.const 64)").build_with_contract(as_0_2, ""),
        "imports `page` of `opilio:plugin/documents@0.2.0`, which is not available to plugins: \
         contract 0.2.0 does not have it; build for 0.3.0",
    );
}

#[test]
fn a_plugin_for_another_patch_version_is_accepted() {
    let guest = Guest {
        imports: r#"(import "opilio:plugin/counters@0.3.0" "count" (func $count (param i32 i32 i64)))"#,
        ..Guest::filter("(call $count (i32.const 0) (i32.const 0) (i64.const 1)) (i32.const 0)")
    };
    let edit = |file: &str| file.replace("@0.3.0", "@0.3.7");
    let component = engine()
        .load(&guest.build_with_contract(edit, ""), "x")
        .unwrap();
    assert_eq!(component.plugins().len(), 1);
}

#[test]
fn a_component_without_plugins_is_refused() {
    check_refused(&wat::parse_str("(component)").unwrap(), "is not a plugin");
}

#[test]
fn an_interface_with_other_types_is_refused() {
    let guest = Guest {
        functions: r#"
            (func (export "opilio:plugin/filter@0.3.0#judge-candidates") (param i32) (result i32) (i32.const 0))
            (func (export "opilio:plugin/filter@0.3.0#judge-document") (param i32 i32) (result i32) (i32.const 0))"#
            .to_owned(),
        ..Guest::default()
    };
    let edit = |file: &str| {
        file.replace(
            "judge-candidates: func(stage: stage, candidates: borrow<candidates>)",
            "judge-candidates: func(candidates: borrow<candidates>)",
        )
        .replace(
            "judge-document: func(stage: stage, document: borrow<document>, visit: borrow<visit>)",
            "judge-document: func(document: borrow<document>, visit: borrow<visit>)",
        )
    };
    check_refused(
        &guest.build_with_contract(edit, ""),
        "does not fit the plugin contract",
    );
}

#[test]
fn kinds_must_agree_with_exports() {
    let described = |kinds| Guest {
        described: vec![Described {
            kinds,
            ..Described::default()
        }],
        ..Guest::filter("(i32.const 0)")
    };
    check_refused(
        &described(&[EXTRACTOR]).build(),
        "does not export the interface opilio:plugin/extractor",
    );
    check_refused(
        &described(&[OBSERVER]).build(),
        "does not export the interface opilio:plugin/observer",
    );
    check_refused(&described(&[]).build(), "without any kind");
    assert_eq!(load(described(&[FILTER])).plugins().len(), 1);
}

#[test]
fn a_describe_that_traps_is_refused() {
    let guest = Guest {
        describe: Some("(unreachable)"),
        ..Guest::filter("(i32.const 0)")
    };
    check_refused(&guest.build(), "cannot describe its plugins: trap: ");
}

#[test]
fn an_invalid_description_is_refused() {
    let guest = Guest {
        describe: Some("(i32.const -8)"),
        ..Guest::filter("(i32.const 0)")
    };
    check_refused(&guest.build(), "cannot describe its plugins: ");
}

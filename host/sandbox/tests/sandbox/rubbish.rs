//! Answers made of arbitrary bytes: the host accepts them or reports nonsense, and never panics.

use std::sync::OnceLock;

use bytes::Bytes;
use opilio_sandbox::{FaultKind, Limits, Plugin, Stage};
use proptest::prelude::*;
use serde_json::json;

use crate::guest::Guest;
use crate::support::{config, document, document_of, limits, load, visit};

const READ: &str = r#"
    (import "opilio:plugin/documents@0.3.0" "[method]document.read" (func $read (param i32 i64 i32 i32)))"#;

/// A plugin whose answer is the document: the answer's memory holds the document's bytes.
fn parroting(guest: fn(&str) -> Guest, handle: &str) -> Plugin {
    let body = format!(
        "(call $read {handle} (i64.const 0) (i32.const -1) (i32.const 80)) (i32.load (i32.const 80))"
    );
    let limits = Limits {
        output_bytes: 1 << 20,
        ..limits()
    };
    load(Guest {
        imports: READ,
        ..guest(&body)
    })
    .configure(config(json!({}), limits))
    .unwrap()
}

/// Words that are sometimes an address, a length or the number of a case.
fn words() -> impl Strategy<Value = Bytes> {
    let word = prop_oneof![
        4 => 0_u32..6,
        3 => (4096_u32..8300).prop_map(|n| n * 8),
        1 => any::<u32>(),
    ];
    proptest::collection::vec(word, 2..60)
        .prop_map(|words| words.into_iter().flat_map(u32::to_le_bytes).collect())
}

#[track_caller]
fn check_kind(kind: FaultKind) {
    let expected = [FaultKind::Nonsense, FaultKind::Output, FaultKind::Trap];
    assert!(expected.contains(&kind), "{kind}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn extractions_are_accepted_or_nonsense_errors(content in words()) {
        static PLUGIN: OnceLock<Plugin> = OnceLock::new();
        let plugin = PLUGIN.get_or_init(|| parroting(Guest::extractor, "(i32.load (local.get 0))"));
        let document = document_of(content);
        match plugin.extract(vec![document.clone()]) {
            Ok(found) => {
                prop_assert_eq!(found.len(), 1);
                for fragment in &found[0].fragments {
                    prop_assert!(document.fragment_of(fragment).is_ok());
                }
            }
            Err(fault) => check_kind(fault.kind),
        }
    }

    #[test]
    fn spans_are_accepted_or_nonsense_errors(content in words()) {
        static PLUGIN: OnceLock<Plugin> = OnceLock::new();
        let plugin = PLUGIN.get_or_init(|| parroting(Guest::stripper, "(local.get 0)"));
        let document = document_of(content);
        match plugin.strip(&document) {
            Ok(Ok(spans)) => {
                let mut end = 0;
                for span in spans {
                    prop_assert!(span.offset >= end && span.length > 0);
                    end = span.offset + span.length;
                }
                prop_assert!(end <= document.content().len() as u64);
            }
            Ok(Err(_)) => {}
            Err(fault) => check_kind(fault.kind),
        }
    }

    #[test]
    fn rulings_are_accepted_or_nonsense_errors(content in words()) {
        static PLUGIN: OnceLock<Plugin> = OnceLock::new();
        let plugin = PLUGIN.get_or_init(|| parroting(Guest::document_filter, "(local.get 3)"));
        match plugin.judge_document(Stage::Archive, &document_of(content), &visit()) {
            Ok(ruling) => prop_assert!(ruling.reason.len() <= 500),
            Err(fault) => check_kind(fault.kind),
        }
    }
}

#[test]
fn a_valid_answer_in_the_document_is_accepted() {
    // Shows that the property tests above do not only cover refusals: this answer accepts, without a reason.
    let plugin = parroting(Guest::document_filter, "(local.get 3)");
    assert!(
        plugin
            .judge_document(Stage::Archive, &document(&"\0".repeat(24)), &visit())
            .is_ok()
    );
}

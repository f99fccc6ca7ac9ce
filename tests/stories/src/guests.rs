//! Plugins for stories: faulty ones, which trap or never return, and ones with a simple function.

// The tests of the sandbox build their guests with the same module.
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the sandbox's tests use more of this module than stories do"
)]
#[path = "../../../host/sandbox/tests/sandbox/guest.rs"]
mod guest;

use guest::{Data, Described, Guest};

/// The error of a plugin in every call.
#[derive(Clone, Copy, Debug)]
pub enum Misdeed {
    /// Traps at an `unreachable` instruction.
    Traps,
    /// Never returns.
    Loops,
}

impl Misdeed {
    /// Returns WAT instructions that leave an address on the stack.
    fn body(self) -> &'static str {
        match self {
            Misdeed::Traps => "(unreachable)",
            Misdeed::Loops => "(loop $l (br $l)) (i32.const 0)",
        }
    }
}

/// An extractor with this error on every document.
pub fn extractor(misdeed: Misdeed) -> Vec<u8> {
    Guest::extractor(misdeed.body()).build()
}

/// The same extractor under the name `html`, that of the shipped HTML extractor.
pub fn html_extractor(misdeed: Misdeed) -> Vec<u8> {
    let guest = Guest::extractor(misdeed.body());
    let described = guest.described.iter().map(|it| Described {
        name: "html",
        ..*it
    });
    let described = described.collect();
    Guest { described, ..guest }.build()
}

/// A scope filter with this error in every call.
pub fn scope_filter(misdeed: Misdeed) -> Vec<u8> {
    Guest::filter(misdeed.body()).build()
}

/// A digest stripper with this error on every document.
pub fn stripper(misdeed: Misdeed) -> Vec<u8> {
    Guest::stripper(misdeed.body()).build()
}

/// A wait evaluator with this error after every visit.
pub fn wait_evaluator(misdeed: Misdeed) -> Vec<u8> {
    Guest::wait_evaluator(misdeed.body()).build()
}

/// A page behaviour with this error at its first step.
pub fn page_behavior(misdeed: Misdeed) -> Vec<u8> {
    Guest::page_behavior(misdeed.body()).build()
}

/// A page behaviour that scrolls to the top at every step and never finishes.
pub fn restless_behavior() -> Vec<u8> {
    let scroll = "(i32.store (i32.const 64) (i32.const 128)) (i32.store (i32.const 68) (i32.const 1)) (i32.const 64)";
    Guest::page_behavior(scroll).build()
}

/// A filter that imports the HTTP client of WASI, which plugins may not use.
pub fn asks_for_the_network() -> Vec<u8> {
    let guest = Guest {
        world: "with-network",
        imports: r#"(import "wasi:http/outgoing-handler@0.2.0" "handle" (func $handle (result i64)))"#,
        ..Guest::filter("(drop (call $handle)) (i32.const 0)")
    };
    let contract = include_str!("../../../wit/types.wit");
    let package = contract.lines().next().unwrap_or_default();
    let wasi = format!(
        "{package}
        world with-network {{ include filter-plugin; import wasi:http/outgoing-handler@0.2.0; }}
        package wasi:http@0.2.0 {{ interface outgoing-handler {{ handle: func() -> u64; }} }}"
    );
    guest.build_with_contract(str::to_owned, &wasi)
}

/// A change evaluator with this error on every document.
pub fn change_evaluator(misdeed: Misdeed) -> Vec<u8> {
    Guest::change_evaluator(misdeed.body()).build()
}

/// A precedence plugin with this error in every call about links or queues.
pub fn precedence(misdeed: Misdeed) -> Vec<u8> {
    Guest::precedence(misdeed.body(), misdeed.body()).build()
}

/// An observer with this error on every batch.
pub fn observer(misdeed: Misdeed) -> Vec<u8> {
    Guest::observer(misdeed.body(), misdeed.body()).build()
}

/// A change evaluator that makes a fingerprint of every document, and calls every document with a fingerprint unchanged.
pub fn never_changes() -> Vec<u8> {
    let mut data = Data::default();
    let [reason, reason_length] = data.text("alike");
    let [print, print_length] = data.text("print");
    // The first answer: a fingerprint and no verdict. Later answers: unchanged, a fingerprint and a reason.
    let first = data.words(&[0, 1, print, print_length, reason, 0]);
    let later = data.words(&[0x0101, 1, print, print_length, reason, reason_length]);
    Guest {
        data,
        ..Guest::change_evaluator(&format!(
            "(select (i32.const {later}) (i32.const {first}) (local.get 2))"
        ))
    }
    .build()
}

/// A precedence plugin that ranks the last link of a page first, and queues in reverse alphabetical order of the first letter of
/// their host (`X` in `X.localhost`).
pub fn last_goes_first() -> Vec<u8> {
    let rank =
        "(i32.or (i32.const 1) (i32.shl (i32.sub (local.get 3) (local.get $i)) (i32.const 8)))";
    precedence_of_queues(rank, "").build()
}

/// A precedence plugin that ranks queues as [`last_goes_first`] does, and no links.
pub fn ranks_queues() -> Vec<u8> {
    precedence_of_queues(NO_RANK, "").build()
}

/// The same, but it traps if it is called for a queue in which 5 to 39 URIs wait.
pub fn ranks_extreme_queues() -> Vec<u8> {
    let check = "(if (i64.lt_u (i64.sub (call $queued (local.get 0)) (i64.const 5)) (i64.const 35)) (then (unreachable)))";
    precedence_of_queues(NO_RANK, check).build()
}

/// An answer without a rank.
const NO_RANK: &str = "(i32.const 0)";

/// A precedence plugin for queues. `rank` is the answer for link `$i` of the links, whose number is in local 3; `check` is run
/// before a queue is ranked.
fn precedence_of_queues(rank: &str, check: &str) -> Guest {
    let links = format!(
        r"
        (local $list i32) (local $i i32)
        (local.set $list (call $realloc (i32.const 0) (i32.const 0) (i32.const 8)
            (i32.add (i32.const 8) (i32.shl (local.get 3) (i32.const 1)))))
        (i32.store (local.get $list) (i32.add (local.get $list) (i32.const 8)))
        (i32.store offset=4 (local.get $list) (local.get 3))
        (block $done (loop $next
            (br_if $done (i32.ge_u (local.get $i) (local.get 3)))
            (i32.store16 offset=8
                (i32.add (local.get $list) (i32.shl (local.get $i) (i32.const 1)))
                {rank})
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br $next)))
        (local.get $list)"
    );
    // The letter is the eleventh character of `localhost,X,`.
    let queue = format!(
        r"
        (local $name i32)
        {check}
        (local.set $name (call $realloc (i32.const 0) (i32.const 0) (i32.const 8) (i32.const 8)))
        (call $queue-name (local.get 0) (local.get $name))
        (i32.store16 (local.get $name) (i32.or (i32.const 1) (i32.shl
            (i32.sub (i32.const 0x7b) (i32.load8_u offset=10 (i32.load (local.get $name))))
            (i32.const 8))))
        (local.get $name)"
    );
    Guest {
        imports: r#"(import "opilio:plugin/documents@0.3.0" "[method]queue.name"
                (func $queue-name (param i32 i32)))
            (import "opilio:plugin/documents@0.3.0" "[method]queue.queued"
                (func $queued (param i32) (result i64)))"#,
        ..Guest::precedence(&links, &queue)
    }
}

/// A wait evaluator that requests the next visit at once.
pub fn never_waits() -> Vec<u8> {
    let mut data = Data::default();
    // An answer with a wait of 0 and no reconsideration. Times have eight bytes.
    let at_once = data.words(&[1, 0, 0, 0, 0, 0, 0, 0]);
    Guest {
        data,
        ..Guest::wait_evaluator(&format!("(i32.const {at_once})"))
    }
    .build()
}

/// A filter that answers every document with a retry at once.
pub fn never_content() -> Vec<u8> {
    let mut data = Data::default();
    let again = data.words(&[4, 0, 0, 0, 0, 0]);
    Guest {
        data,
        ..Guest::document_filter(&format!("(i32.const {again})"))
    }
    .build()
}

/// An observer that counts up to 99 events, writes a line for each batch, and reports the count.
pub fn counter() -> Vec<u8> {
    let mut data = Data::default();
    let [file, file_length] = data.text("batches.txt");
    let [text, text_length] = data.text("a batch");
    let [report, report_length] = data.text("count.txt");
    let line = data.words(&[file, file_length, text, text_length]);
    // An observation: memory and lines. The bytes of the memory follow it.
    let observation = data.words(&[0, 1, line, 1, 0]);
    let entry = data.words(&[report, report_length, 0, 2]);
    let reports = data.words(&[entry, 1, 0]);
    Guest {
        data,
        ..Guest::observer(
            &format!(
                r"(i32.store (i32.const {observation}) (i32.add (i32.const {observation}) (i32.const 16)))
                (i32.store8 offset=16 (i32.const {observation}) (i32.add (local.get 3)
                    (if (result i32) (local.get 1)
                        (then (i32.load8_u (local.get 0))) (else (i32.const 0)))))
                (i32.const {observation})"
            ),
            &format!(
                r"(local $count i32)
                (local.set $count (if (result i32) (local.get 1)
                    (then (i32.load8_u (local.get 0))) (else (i32.const 0))))
                (i32.store8 offset=8 (i32.const {reports})
                    (i32.add (i32.const 48) (i32.div_u (local.get $count) (i32.const 10))))
                (i32.store8 offset=9 (i32.const {reports})
                    (i32.add (i32.const 48) (i32.rem_u (local.get $count) (i32.const 10))))
                (i32.store offset=8 (i32.const {entry}) (i32.add (i32.const {reports}) (i32.const 8)))
                (i32.const {reports})"
            ),
        )
    }
    .build()
}

/// A filter of documents that adds an `x` to its kept values for the URI and for the site at each visit, and annotates the visit
/// with both values: `uri-xx`, `site-xxx`.
pub fn keeper() -> Vec<u8> {
    let mut data = Data::default();
    let [name, name_length] = data.text("seen");
    let ruling = data.words(&[2, 0, 0, 0, 0, 0]);
    let mut body = "(local $at i32) (local $text i32) (local $length i32)".to_owned();
    for (get, set, beginning) in [
        ("$attribute", "$set-attribute", "uri-"),
        ("$site-value", "$set-site-value", "site-"),
    ] {
        let [prefix, prefix_length] = data.text(beginning);
        body.push_str(&format!(
            r"(local.set $at (call $realloc (i32.const 0) (i32.const 0) (i32.const 8) (i32.const 24)))
            (call {get} (local.get 3) (i32.const {name}) (i32.const {name_length}) (local.get $at))
            (local.set $length (if (result i32) (i32.load8_u (local.get $at))
                (then (i32.load offset=12 (local.get $at))) (else (i32.const 0))))
            (local.set $text (call $realloc (i32.const 0) (i32.const 0) (i32.const 8) (i32.const 256)))
            (memory.copy (local.get $text) (i32.const {prefix}) (i32.const {prefix_length}))
            (local.set $length (i32.add (local.get $length) (i32.const 1)))
            (memory.fill (i32.add (local.get $text) (i32.const {prefix_length})) (i32.const 0x78) (local.get $length))
            (call {set} (local.get 3) (i32.const {name}) (i32.const {name_length})
                (i32.add (local.get $text) (i32.const {prefix_length})) (local.get $length))
            (call $annotate (local.get 3) (local.get $text)
                (i32.add (i32.const {prefix_length}) (local.get $length)))"
        ));
    }
    body.push_str(&format!("(i32.const {ruling})"));
    Guest {
        data,
        described: vec![Described {
            keeps: &[("seen", 0), ("seen", 1)],
            ..Described::default()
        }],
        imports: r#"
            (import "opilio:plugin/documents@0.3.0" "[method]document.attribute"
                (func $attribute (param i32 i32 i32 i32)))
            (import "opilio:plugin/documents@0.3.0" "[method]document.set-attribute"
                (func $set-attribute (param i32 i32 i32 i32 i32)))
            (import "opilio:plugin/documents@0.3.0" "[method]document.site-value"
                (func $site-value (param i32 i32 i32 i32)))
            (import "opilio:plugin/documents@0.3.0" "[method]document.set-site-value"
                (func $set-site-value (param i32 i32 i32 i32 i32)))
            (import "opilio:plugin/documents@0.3.0" "[method]document.annotate"
                (func $annotate (param i32 i32 i32)))"#,
        ..Guest::document_filter(&body)
    }
    .build()
}

/// A filter that rejects every document and candidate.
pub fn refuser() -> Vec<u8> {
    let mut data = Data::default();
    let ruling = data.words(&[1, 0, 0, 0, 0, 0]);
    let documents = Guest::document_filter(&format!("(i32.const {ruling})")).functions;
    let passes = "(call $rulings (local.get 4) (i32.const 0))";
    let refuses = "(call $rulings (local.get 4) (i32.const 1))";
    Guest {
        data,
        functions: documents.replace(passes, refuses),
        ..Guest::default()
    }
    .build()
}

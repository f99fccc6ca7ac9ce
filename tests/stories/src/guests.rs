//! Plugins that misbehave, each in one way, and some that do one simple thing well.

// The sandbox's own tests make their guests of the same clay.
#[allow(
    dead_code,
    unreachable_pub,
    reason = "what the sandbox's tests need and stories do not"
)]
#[path = "../../../host/sandbox/tests/sandbox/guest.rs"]
mod guest;

use guest::{Described, Guest};

/// Numbers of kinds that the sandbox's guests do not name.
const CHANGE: u32 = 3;
const PRECEDENCE: u32 = 5;
const OBSERVER: u32 = 6;

/// What a plugin does wherever it is called.
#[derive(Clone, Copy, Debug)]
pub enum Misdeed {
    /// Runs into `unreachable`.
    Traps,
    /// Never comes back.
    Loops,
}

impl Misdeed {
    /// As WAT instructions that leave an address.
    fn body(self) -> &'static str {
        match self {
            Misdeed::Traps => "(unreachable)",
            Misdeed::Loops => "(loop $l (br $l)) (i32.const 0)",
        }
    }
}

/// An extractor that does this on every document.
pub fn extractor(misdeed: Misdeed) -> Vec<u8> {
    Guest::extractor(misdeed.body()).build()
}

/// A filter that does this when asked about outlinks.
pub fn scope_filter(misdeed: Misdeed) -> Vec<u8> {
    Guest::filter(misdeed.body()).build()
}

/// A digest stripper that does this on every document.
pub fn stripper(misdeed: Misdeed) -> Vec<u8> {
    Guest::stripper(misdeed.body()).build()
}

/// A wait evaluator that does this after every visit.
pub fn wait_evaluator(misdeed: Misdeed) -> Vec<u8> {
    Guest::wait_evaluator(misdeed.body()).build()
}

/// A filter that wants to know the time, which plugins are not told.
pub fn asks_for_the_clock() -> Vec<u8> {
    let guest = Guest {
        world: "with-clock",
        imports: r#"(import "wasi:clocks/monotonic-clock@0.2.0" "now" (func $now (result i64)))"#,
        ..Guest::filter("(drop (call $now)) (i32.const 0)")
    };
    let wasi = "package opilio:plugin@0.1.0;
        world with-clock { include filter-plugin; import wasi:clocks/monotonic-clock@0.2.0; }
        package wasi:clocks@0.2.0 { interface monotonic-clock { now: func() -> u64; } }";
    guest.build_with_contract(str::to_owned, wasi)
}

/// A change evaluator that does this on every document.
pub fn change_evaluator(misdeed: Misdeed) -> Vec<u8> {
    comparing(misdeed.body()).build()
}

/// A precedence plugin that does this when asked about links and queues.
pub fn precedence(misdeed: Misdeed) -> Vec<u8> {
    ranking(misdeed.body(), misdeed.body()).build()
}

/// An observer that does this on every batch.
pub fn observer(misdeed: Misdeed) -> Vec<u8> {
    observing(misdeed.body(), misdeed.body()).build()
}

/// A change evaluator that takes whatever it has a fingerprint of for unchanged, and makes one of everything.
pub fn never_changes() -> Vec<u8> {
    let mut guest = comparing("");
    let [reason, reason_length] = guest.data.text("alike");
    let [print, print_length] = guest.data.text("print");
    // No answer with a fingerprint; unchanged with one and a reason.
    let first = guest.data.words(&[0, 1, print, print_length, reason, 0]);
    let later = guest
        .data
        .words(&[0x0101, 1, print, print_length, reason, reason_length]);
    Guest {
        functions: compare(&format!(
            "(select (i32.const {later}) (i32.const {first}) (local.get 2))"
        )),
        ..guest
    }
    .build()
}

/// A precedence plugin by which the last link of a page goes first, and queues go against the alphabet, as far as the
/// first letter of `X.localhost` goes.
pub fn last_goes_first() -> Vec<u8> {
    let links = r"
        (local $n i32) (local $list i32) (local $i i32)
        (local.set $n (call $candidates-length (local.get 0)))
        (local.set $list (call $realloc (i32.const 0) (i32.const 0) (i32.const 8)
            (i32.add (i32.const 8) (i32.shl (local.get $n) (i32.const 1)))))
        (i32.store (local.get $list) (i32.add (local.get $list) (i32.const 8)))
        (i32.store offset=4 (local.get $list) (local.get $n))
        (block $done (loop $next
            (br_if $done (i32.ge_u (local.get $i) (local.get $n)))
            (i32.store16 offset=8
                (i32.add (local.get $list) (i32.shl (local.get $i) (i32.const 1)))
                (i32.or (i32.const 1)
                    (i32.shl (i32.sub (local.get $n) (local.get $i)) (i32.const 8))))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br $next)))
        (local.get $list)";
    // `localhost,X,`: the letter is the eleventh.
    let queue = r"
        (local $name i32)
        (local.set $name (call $realloc (i32.const 0) (i32.const 0) (i32.const 8) (i32.const 8)))
        (call $queue-name (local.get 0) (local.get $name))
        (i32.store16 (local.get $name) (i32.or (i32.const 1) (i32.shl
            (i32.sub (i32.const 0x7b) (i32.load8_u offset=10 (i32.load (local.get $name))))
            (i32.const 8))))
        (local.get $name)";
    let guest = ranking(links, queue);
    Guest {
        imports: r#"(import "opilio:plugin/documents@0.2.0" "[method]queue.name"
                (func $queue-name (param i32 i32)))
            (import "opilio:plugin/documents@0.2.0" "[resource-drop]queue"
                (func $drop-queue (param i32)))"#,
        ..guest
    }
    .build()
}

/// An observer that counts up to 99 events, writes a line for each batch, and reports how many there have been.
pub fn counter() -> Vec<u8> {
    let mut guest = observing("", "");
    let [file, file_length] = guest.data.text("batches.txt");
    let [text, text_length] = guest.data.text("a batch");
    let [report, report_length] = guest.data.text("count.txt");
    let line = guest.data.words(&[file, file_length, text, text_length]);
    // Memory, lines; and behind them the memory itself.
    let observation = guest.data.words(&[0, 1, line, 1, 0]);
    let entry = guest.data.words(&[report, report_length, 0, 2]);
    let reports = guest.data.words(&[entry, 1, 0]);
    Guest {
        functions: observe(
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
        ),
        ..guest
    }
    .build()
}

/// A filter of documents that keeps an `x` more with the URI at each visit, and an `x` more for the site, and annotates
/// both: `uri-xx`, `site-xxx`.
pub fn keeper() -> Vec<u8> {
    let mut guest = Guest::document_filter("");
    let [name, name_length] = guest.data.text("seen");
    let ruling = guest.data.words(&[2, 0, 0, 0, 0, 0]);
    let mut body = "(local $at i32) (local $text i32) (local $length i32)".to_owned();
    for (get, set, beginning) in [
        ("$attribute", "$set-attribute", "uri-"),
        ("$site-value", "$set-site-value", "site-"),
    ] {
        let [said, said_length] = guest.data.text(beginning);
        body.push_str(&format!(
            r"(local.set $at (call $realloc (i32.const 0) (i32.const 0) (i32.const 8) (i32.const 24)))
            (call {get} (local.get 3) (i32.const {name}) (i32.const {name_length}) (local.get $at))
            (local.set $length (if (result i32) (i32.load8_u (local.get $at))
                (then (i32.load offset=12 (local.get $at))) (else (i32.const 0))))
            (local.set $text (call $realloc (i32.const 0) (i32.const 0) (i32.const 8) (i32.const 256)))
            (memory.copy (local.get $text) (i32.const {said}) (i32.const {said_length}))
            (local.set $length (i32.add (local.get $length) (i32.const 1)))
            (memory.fill (i32.add (local.get $text) (i32.const {said_length})) (i32.const 0x78) (local.get $length))
            (call {set} (local.get 3) (i32.const {name}) (i32.const {name_length})
                (i32.add (local.get $text) (i32.const {said_length})) (local.get $length))
            (call $annotate (local.get 3) (local.get $text)
                (i32.add (i32.const {said_length}) (local.get $length)))"
        ));
    }
    body.push_str(&format!("(i32.const {ruling})"));
    let Guest { data, .. } = guest;
    Guest {
        data,
        described: vec![Described {
            keeps: &[("seen", 0), ("seen", 1)],
            ..Described::default()
        }],
        imports: r#"
            (import "opilio:plugin/documents@0.2.0" "[method]document.attribute"
                (func $attribute (param i32 i32 i32 i32)))
            (import "opilio:plugin/documents@0.2.0" "[method]document.set-attribute"
                (func $set-attribute (param i32 i32 i32 i32 i32)))
            (import "opilio:plugin/documents@0.2.0" "[method]document.site-value"
                (func $site-value (param i32 i32 i32 i32)))
            (import "opilio:plugin/documents@0.2.0" "[method]document.set-site-value"
                (func $set-site-value (param i32 i32 i32 i32 i32)))
            (import "opilio:plugin/documents@0.2.0" "[method]document.annotate"
                (func $annotate (param i32 i32 i32)))"#,
        ..Guest::document_filter(&body)
    }
    .build()
}

/// A filter that rejects every document and candidate it is asked about.
pub fn refuser() -> Vec<u8> {
    let mut guest = Guest::document_filter("");
    let ruling = guest.data.words(&[1, 0, 0, 0, 0, 0]);
    let refusing = Guest::filter("(call $rulings (local.get 4) (i32.const 1))");
    let functions = Guest::document_filter(&format!("(i32.const {ruling})")).functions;
    Guest {
        // Both of its functions refuse.
        functions: functions.replace(
            "(call $rulings (local.get 4) (i32.const 0))",
            "(call $rulings (local.get 4) (i32.const 1))",
        ),
        data: guest.data,
        ..refusing
    }
    .build()
}

fn comparing(body: &str) -> Guest {
    Guest {
        world: "change-evaluator-plugin",
        described: described(&[CHANGE]),
        functions: compare(body),
        ..Guest::default()
    }
}

fn compare(body: &str) -> String {
    format!(
        r#"(func $compare (param i32 i32 i32 i32 i32) (result i32) {body})
        (func (export "opilio:plugin/change-evaluator@0.2.0#compare")
            (param i32 i32 i32 i32 i32) (result i32)
            (call $compare (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4))
            (call $drop-document (local.get 0)) (call $drop-visit (local.get 1)))"#
    )
}

fn ranking(links: &str, queue: &str) -> Guest {
    Guest {
        world: "precedence-plugin",
        described: described(&[PRECEDENCE]),
        imports: r#"(import "opilio:plugin/documents@0.2.0" "[resource-drop]queue"
            (func $drop-queue (param i32)))"#,
        functions: format!(
            r#"(func $links (param i32 i32 i32) (result i32) {links})
            (func (export "opilio:plugin/precedence@0.2.0#rank-candidates") (param i32 i32 i32) (result i32)
                (call $links (local.get 0) (local.get 1) (local.get 2))
                (call $drop-candidates (local.get 0))
                (if (local.get 1) (then (call $drop-document (local.get 2)))))
            (func $queue (param i32) (result i32) {queue})
            (func (export "opilio:plugin/precedence@0.2.0#rank-queue") (param i32) (result i32)
                (call $queue (local.get 0))
                (call $drop-queue (local.get 0)))"#
        ),
        ..Guest::default()
    }
}

fn observing(batch: &str, report: &str) -> Guest {
    Guest {
        world: "observer-plugin",
        described: described(&[OBSERVER]),
        functions: observe(batch, report),
        ..Guest::default()
    }
}

fn observe(batch: &str, report: &str) -> String {
    format!(
        r#"(func (export "opilio:plugin/observer@0.2.0#observe") (param i32 i32 i32 i32) (result i32) {batch})
        (func (export "opilio:plugin/observer@0.2.0#report") (param i32 i32 i64) (result i32) {report})"#
    )
}

fn described(kinds: &'static [u32]) -> Vec<Described> {
    vec![Described {
        kinds,
        ..Described::default()
    }]
}

//! Plugins that misbehave, each in one way.

// The sandbox's own tests make their guests of the same clay.
#[allow(
    dead_code,
    unreachable_pub,
    reason = "what the sandbox's tests need and stories do not"
)]
#[path = "../../../host/sandbox/tests/sandbox/guest.rs"]
mod guest;

use guest::Guest;

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

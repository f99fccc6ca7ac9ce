//! Components that import WASI load, but get no access to the machine. The guests call WASI like compiled programs do, and return
//! the results as counters and reasons.

use opilio_sandbox::{FaultKind, LogLevel, Plugin, Stage, Start};
use serde_json::json;

use crate::guest::{Data, Guest};
use crate::support::{candidates, config, engine, limits};

/// The part of WASI that the guests import.
const WIT: &str = "package opilio:plugin@0.3.0;
    world with-wasi {
        include filter-plugin;
        import wasi:cli/environment@0.2.0;
        import wasi:cli/exit@0.2.0;
        import wasi:cli/stdin@0.2.0;
        import wasi:cli/stdout@0.2.0;
        import wasi:cli/stderr@0.2.0;
        import wasi:cli/terminal-stderr@0.2.0;
        import wasi:clocks/monotonic-clock@0.2.0;
        import wasi:clocks/wall-clock@0.2.0;
        import wasi:filesystem/preopens@0.2.0;
        import wasi:filesystem/types@0.2.0;
        import wasi:io/poll@0.2.0;
        import wasi:random/insecure-seed@0.2.0;
        import wasi:random/random@0.2.0;
        import wasi:sockets/instance-network@0.2.0;
        import wasi:sockets/ip-name-lookup@0.2.0;
        import wasi:sockets/tcp-create-socket@0.2.0;
    }
    package wasi:io@0.2.0 {
        interface error { resource error { to-debug-string: func() -> string; } }
        interface poll {
            resource pollable { ready: func() -> bool; block: func(); }
            poll: func(in: list<borrow<pollable>>) -> list<u32>;
        }
        interface streams {
            use error.{error};
            use poll.{pollable};
            variant stream-error { last-operation-failed(error), closed }
            resource input-stream {
                read: func(len: u64) -> result<list<u8>, stream-error>;
                subscribe: func() -> pollable;
            }
            resource output-stream {
                check-write: func() -> result<u64, stream-error>;
                write: func(contents: list<u8>) -> result<_, stream-error>;
                blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>;
                subscribe: func() -> pollable;
            }
        }
    }
    package wasi:cli@0.2.0 {
        interface environment {
            get-environment: func() -> list<tuple<string, string>>;
            get-arguments: func() -> list<string>;
            initial-cwd: func() -> option<string>;
        }
        interface exit { exit: func(status: result); }
        interface stdin { use wasi:io/streams@0.2.0.{input-stream}; get-stdin: func() -> input-stream; }
        interface stdout { use wasi:io/streams@0.2.0.{output-stream}; get-stdout: func() -> output-stream; }
        interface stderr { use wasi:io/streams@0.2.0.{output-stream}; get-stderr: func() -> output-stream; }
        interface terminal-output { resource terminal-output; }
        interface terminal-stderr {
            use terminal-output.{terminal-output};
            get-terminal-stderr: func() -> option<terminal-output>;
        }
    }
    package wasi:clocks@0.2.0 {
        interface monotonic-clock {
            use wasi:io/poll@0.2.0.{pollable};
            now: func() -> u64;
            resolution: func() -> u64;
            subscribe-duration: func(when: u64) -> pollable;
        }
        interface wall-clock {
            record datetime { seconds: u64, nanoseconds: u32 }
            now: func() -> datetime;
        }
    }
    package wasi:filesystem@0.2.0 {
        interface types {
            enum error-code { access, no-entry }
            resource descriptor { sync: func() -> result<_, error-code>; }
        }
        interface preopens {
            use types.{descriptor};
            get-directories: func() -> list<tuple<descriptor, string>>;
        }
    }
    package wasi:random@0.2.0 {
        interface random { get-random-bytes: func(len: u64) -> list<u8>; get-random-u64: func() -> u64; }
        interface insecure-seed { insecure-seed: func() -> tuple<u64, u64>; }
    }
    package wasi:sockets@0.2.0 {
        interface network {
            resource network;
            enum error-code { unknown, access-denied, not-supported }
            enum ip-address-family { ipv4, ipv6 }
        }
        interface instance-network { use network.{network}; instance-network: func() -> network; }
        interface tcp {
            use network.{error-code};
            resource tcp-socket { listen: func() -> result<_, error-code>; }
        }
        interface tcp-create-socket {
            use network.{error-code, ip-address-family};
            use tcp.{tcp-socket};
            create-tcp-socket: func(address-family: ip-address-family) -> result<tcp-socket, error-code>;
        }
        interface ip-name-lookup {
            use network.{network, error-code};
            resource resolve-address-stream;
            resolve-addresses: func(network: borrow<network>, name: string)
                -> result<resolve-address-stream, error-code>;
        }
    }";

const IMPORTS: &str = r#"
    (import "opilio:plugin/counters@0.3.0" "count" (func $count (param i32 i32 i64)))
    (import "wasi:cli/environment@0.2.0" "get-environment" (func $environment (param i32)))
    (import "wasi:cli/environment@0.2.0" "get-arguments" (func $arguments (param i32)))
    (import "wasi:cli/environment@0.2.0" "initial-cwd" (func $cwd (param i32)))
    (import "wasi:cli/exit@0.2.0" "exit" (func $exit (param i32)))
    (import "wasi:cli/stdin@0.2.0" "get-stdin" (func $stdin (result i32)))
    (import "wasi:cli/stdout@0.2.0" "get-stdout" (func $stdout (result i32)))
    (import "wasi:cli/stderr@0.2.0" "get-stderr" (func $stderr (result i32)))
    (import "wasi:cli/terminal-stderr@0.2.0" "get-terminal-stderr" (func $terminal (param i32)))
    (import "wasi:clocks/monotonic-clock@0.2.0" "now" (func $now (result i64)))
    (import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $sleep (param i64) (result i32)))
    (import "wasi:clocks/wall-clock@0.2.0" "now" (func $wall-clock (param i32)))
    (import "wasi:filesystem/preopens@0.2.0" "get-directories" (func $directories (param i32)))
    (import "wasi:filesystem/types@0.2.0" "[method]descriptor.sync" (func $sync (param i32 i32)))
    (import "wasi:io/poll@0.2.0" "[method]pollable.ready" (func $ready (param i32) (result i32)))
    (import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))
    (import "wasi:io/poll@0.2.0" "poll" (func $poll (param i32 i32 i32)))
    (import "wasi:io/streams@0.2.0" "[method]input-stream.read" (func $read (param i32 i64 i32)))
    (import "wasi:io/streams@0.2.0" "[method]input-stream.subscribe" (func $when-read (param i32) (result i32)))
    (import "wasi:io/streams@0.2.0" "[method]output-stream.check-write" (func $check-write (param i32 i32)))
    (import "wasi:io/streams@0.2.0" "[method]output-stream.write" (func $write (param i32 i32 i32 i32)))
    (import "wasi:io/streams@0.2.0" "[resource-drop]output-stream" (func $drop-output (param i32)))
    (import "wasi:random/insecure-seed@0.2.0" "insecure-seed" (func $seed (param i32)))
    (import "wasi:random/random@0.2.0" "get-random-bytes" (func $random-bytes (param i64 i32)))
    (import "wasi:random/random@0.2.0" "get-random-u64" (func $random (result i64)))
    (import "wasi:sockets/instance-network@0.2.0" "instance-network" (func $network (result i32)))
    (import "wasi:sockets/ip-name-lookup@0.2.0" "resolve-addresses" (func $resolve (param i32 i32 i32 i32)))
    (import "wasi:sockets/tcp-create-socket@0.2.0" "create-tcp-socket" (func $socket (param i32 i32)))"#;

/// A filter that runs `body` and passes every candidate. `'text'` is replaced by the text's address and length.
fn guest(body: &str) -> Guest {
    let mut data = Data::default();
    Guest {
        world: "with-wasi",
        imports: IMPORTS,
        functions: Guest::filter(&format!(
            "{} (call $rulings (local.get 4) (i32.const 2))",
            data.with_texts(body)
        ))
        .functions,
        data,
        ..Guest::default()
    }
}

fn build(guest: Guest) -> Vec<u8> {
    guest.build_with_contract(str::to_owned, WIT)
}

fn plugin(guest: Guest) -> Plugin {
    engine()
        .load(&build(guest), "guest")
        .unwrap()
        .configure(config(json!({}), limits()))
        .unwrap()
}

/// The increase of the plugin's counters in one call.
#[track_caller]
fn counted(plugin: &Plugin) -> Vec<(String, u64)> {
    let before = plugin.statistics().counters;
    plugin
        .judge_candidates(Stage::Scope, &candidates(1))
        .unwrap();
    plugin
        .statistics()
        .counters
        .into_iter()
        .map(|(name, n)| {
            let before = before.get(&name).copied().unwrap_or_default();
            (name, n - before)
        })
        .collect()
}

#[track_caller]
fn check_counts(body: &str, expected: &[(&str, u64)]) {
    let plugin = plugin(guest(body));
    let counted = counted(&plugin);
    let counted: Vec<_> = counted
        .iter()
        .map(|(name, n)| (name.as_str(), *n))
        .collect();
    assert_eq!(counted, expected);
}

/// The length of a list or text whose address and length were written to address 80.
const LENGTH: &str = "(i64.extend_i32_u (i32.load (i32.const 84)))";
/// The case of a result, option or variant that was written to address 80, and the case of its content.
const CASE: &str = "(i64.extend_i32_u (i32.load8_u (i32.const 80)))";
const INNER: &str = "(i64.extend_i32_u (i32.load8_u (i32.const 84)))";

#[test]
fn environment_arguments_and_terminal_are_empty() {
    check_counts(
        &format!(
            "(call $environment (i32.const 80)) (call $count 'a-variables' {LENGTH})
            (call $arguments (i32.const 80)) (call $count 'b-arguments' {LENGTH})
            (call $cwd (i32.const 80)) (call $count 'c-folder' {CASE})
            (call $terminal (i32.const 80)) (call $count 'd-terminal' {CASE})"
        ),
        &[
            ("a-variables", 0),
            ("b-arguments", 0),
            ("c-folder", 0),
            ("d-terminal", 0),
        ],
    );
}

#[test]
fn no_files_and_no_input_are_available() {
    // Reading the input returns an error (1), which is `closed` (1).
    check_counts(
        &format!(
            "(local $in i32)
            (call $directories (i32.const 80)) (call $count 'a-folders' {LENGTH})
            (local.set $in (call $stdin))
            (call $read (local.get $in) (i64.const 10) (i32.const 80))
            (call $count 'b-read' {CASE}) (call $count 'c-closed' {INNER})
            (call $count 'd-ready' (i64.extend_i32_u (call $ready (call $when-read (local.get $in)))))"
        ),
        &[("a-folders", 0), ("b-read", 1), ("c-closed", 1), ("d-ready", 1)],
    );
}

#[test]
fn a_file_that_was_never_opened_cannot_be_used() {
    let fault = plugin(guest("(call $sync (i32.const 1) (i32.const 80))"))
        .judge_candidates(Stage::Scope, &candidates(1))
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Trap, "{fault:?}");
    assert!(fault.message.contains("handle"), "{fault:?}");
}

#[test]
fn sockets_and_name_lookup_are_denied() {
    // Both calls return an error (1), which is `access-denied` (1).
    check_counts(
        &format!(
            "(call $socket (i32.const 0) (i32.const 80))
            (call $count 'a-socket' {CASE}) (call $count 'b-denied' {INNER})
            (call $resolve (call $network) 'localhost' (i32.const 80))
            (call $count 'c-resolved' {CASE}) (call $count 'd-denied' {INNER})"
        ),
        &[
            ("a-socket", 1),
            ("b-denied", 1),
            ("c-resolved", 1),
            ("d-denied", 1),
        ],
    );
}

#[test]
fn the_wall_clock_stands_still() {
    check_counts(
        "(call $wall-clock (i32.const 80)) (call $count 'seconds' (i64.load (i32.const 80)))
        (call $wall-clock (i32.const 80)) (call $count 'seconds' (i64.load (i32.const 80)))",
        &[("seconds", 2 * 946_684_800)],
    );
}

#[test]
fn clock_and_randomness_are_the_same_in_every_call() {
    let plugin = plugin(guest(
        "(call $count 'now' (i64.shr_u (call $now) (i64.const 1)))
        (call $count 'random' (i64.shr_u (call $random) (i64.const 16)))
        (call $random-bytes (i64.const 4) (i32.const 80))
        (call $count 'bytes' (i64.load32_u (i32.load (i32.const 80))))
        (call $seed (i32.const 80)) (call $count 'seed' (i64.shr_u (i64.load (i32.const 88)) (i64.const 16)))",
    ));
    let first = counted(&plugin);
    assert!(
        first.len() == 4 && first.iter().all(|(_, n)| *n > 0),
        "{first:?}"
    );
    for _ in 0..100 {
        assert_eq!(counted(&plugin), first);
    }
}

#[test]
fn waiting_takes_no_time_and_moves_the_clock() {
    // Waits for one hour in both ways.
    check_counts(
        "(local $began i64)
        (local.set $began (call $now))
        (call $block (call $sleep (i64.const 1800000000000)))
        (i32.store (i32.const 64) (call $sleep (i64.const 1800000000000)))
        (call $poll (i32.const 64) (i32.const 1) (i32.const 80))
        (call $count 'ready' (i64.extend_i32_u (i32.load (i32.const 84))))
        (call $count 'waited' (i64.sub (call $now) (local.get $began)))",
        &[("ready", 1), ("waited", 3_600_000_001_000)],
    );
}

#[test]
fn a_loop_that_waits_for_the_clock_comes_to_an_end() {
    check_counts(
        "(local $began i64)
        (local.set $began (call $now))
        (loop $l
            (call $count 'looked' (i64.const 1))
            (br_if $l (i64.lt_u (i64.sub (call $now) (local.get $began)) (i64.const 100000))))",
        &[("looked", 100)],
    );
}

/// Writes the text to the stream that `open` returns.
fn print(open: &str, text: &str) -> String {
    format!(
        "(local $out i32) (local.set $out (call {open}))
        (call $check-write (local.get $out) (i32.const 80))
        (call $write (local.get $out) '{text}' (i32.const 80))
        (call $drop-output (local.get $out))"
    )
}

#[test]
fn printed_text_is_in_the_plugin_error() {
    let body = print("$stderr", "Error: no such thing\\n\r\n    at line 7");
    let fault = plugin(guest(&format!(
        "{} (unreachable)",
        body.replace("\\n", "\n")
    )))
    .judge_candidates(Stage::Scope, &candidates(1))
    .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Trap, "{fault:?}");
    let lines: Vec<_> = fault
        .log
        .iter()
        .map(|line| (line.level, line.message.as_str()))
        .collect();
    assert_eq!(
        lines,
        [
            (LogLevel::Warn, "Error: no such thing"),
            (LogLevel::Warn, ""),
            (LogLevel::Warn, "    at line 7")
        ]
    );
}

#[test]
fn printed_text_counts_as_log_output() {
    let body = format!(
        "(local $i i32) {}
        (loop $l
            (call $write (call $stdout) '0123456789' (i32.const 80))
            (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100))))
        (unreachable)",
        print("$stdout", "begin\n")
    );
    let limits = opilio_sandbox::Limits {
        log_bytes: 25,
        ..limits()
    };
    let component = engine().load(&build(guest(&body)), "guest").unwrap();
    let plugin = component.configure(config(json!({}), limits)).unwrap();
    let fault = plugin
        .judge_candidates(Stage::Scope, &candidates(1))
        .unwrap_err();
    let lines: Vec<_> = fault
        .log
        .iter()
        .map(|line| (line.level, line.message.as_str()))
        .collect();
    assert_eq!(
        lines,
        [
            (LogLevel::Info, "begin"),
            (LogLevel::Info, "01234567890123456789")
        ]
    );
    assert_eq!(plugin.statistics().log_bytes_dropped, 980);
}

#[track_caller]
fn check_trap(body: &str, expected: &str) {
    let fault = plugin(guest(body))
        .judge_candidates(Stage::Scope, &candidates(1))
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Trap, "{fault:?}");
    assert!(fault.message.contains(expected), "{fault:?}");
}

#[test]
fn exit_is_a_trap() {
    check_trap(
        "(call $exit (i32.const 0))",
        "called `wasi:cli/exit` with success: a plugin has no process to end",
    );
    check_trap("(call $exit (i32.const 1))", "with failure");
}

#[test]
fn too_many_streams_and_too_many_bytes_are_traps() {
    check_trap("(loop $l (drop (call $stderr)) (br $l))", "1024 streams");
    check_trap(
        "(call $random-bytes (i64.const 1048577) (i32.const 80))",
        "asked for 1048577 random bytes, 1048576 are allowed at once",
    );
    check_trap(
        "(call $write (call $stderr) (i32.const 0) (i32.const 4097) (i32.const 80))",
        "printed 4097 bytes at once, 4096 are allowed",
    );
}

#[test]
fn a_component_with_wasi_is_snapshotted_unless_it_keeps_a_stream() {
    let starts = |configure: &str| {
        let guest = Guest {
            configure: format!("{configure} (i32.const 0)"),
            ..guest("")
        };
        plugin(guest).start().clone()
    };
    let start = starts("(drop (call $now)) (call $drop-output (call $stderr))");
    assert!(matches!(start, Start::Snapshot { .. }), "{start:?}");
    let start = starts("(i32.store (i32.const 64) (call $stderr))");
    let Start::EachCall { why } = start else {
        panic!("{start:?}");
    };
    assert_eq!(why, "it keeps a stream that it got while it was configured");
}

#[test]
fn clock_and_randomness_are_the_same_however_a_call_starts() {
    let guest = || Guest {
        configure: "(i64.store (i32.const 64) (call $random)) (drop (call $now)) (i32.const 0)"
            .to_owned(),
        ..guest(
            "(call $count 'configured' (i64.shr_u (i64.load (i32.const 64)) (i64.const 16)))
            (call $count 'random' (i64.shr_u (call $random) (i64.const 16)))
            (call $count 'now' (call $now))",
        )
    };
    let component = engine().load(&build(guest()), "guest").unwrap();
    let snapshotted = component.configure(config(json!({}), limits())).unwrap();
    let each_call = component
        .configure_each_call(config(json!({}), limits()))
        .unwrap();
    assert!(matches!(snapshotted.start(), Start::Snapshot { .. }));
    assert_eq!(counted(&snapshotted), counted(&each_call));
}

#[test]
fn unsupported_wasi_interfaces_are_refused_by_name() {
    #[track_caller]
    fn check(interface: &str, packages: &str, expected: &str) {
        let wit = format!(
            "package opilio:plugin@0.3.0;
            world with-wasi {{ include filter-plugin; import {interface}; }} {packages}"
        );
        let import = format!(r#"(import "{interface}" "f" (func $f))"#);
        let guest = Guest {
            world: "with-wasi",
            imports: import.leak(),
            ..Guest::filter("(call $f) (i32.const 0)")
        };
        let component = guest.build_with_contract(str::to_owned, &wit);
        let message = engine()
            .load(&component, "x.wasm")
            .map(drop)
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with(&format!(
                "x.wasm imports `{interface}`, which is not available to plugins: "
            )),
            "{message}"
        );
        assert!(message.contains(expected), "{message}");
    }
    check(
        "wasi:http/outgoing-handler@0.2.0",
        "package wasi:http@0.2.0 { interface outgoing-handler { f: func(); } }",
        "plugins may import cli, clocks, filesystem, io, random and sockets of WASI 0.2, all of them inert; build it \
         without what uses `wasi:http/outgoing-handler`",
    );
    check(
        "wasi:clocks/system-clock@0.3.0",
        "package wasi:clocks@0.3.0 { interface system-clock { f: func(); } }",
        "it was built for WASI 0.3.0",
    );
}

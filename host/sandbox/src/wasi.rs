//! Inert WASI, for components whose toolchains require it. Such components load, but get no files, sockets, environment, arguments
//! or input. The wall clock stands still, the monotonic clock advances only when it is read, and the randomness is the same in
//! every call. Printed text goes to the plugin's log, so that the text of an exception reaches the plugin error.
//!
//! This is not a WASI implementation that configuration switches off: it contains no code that could open a file, tell the time or
//! connect to a host. wasmtime's implementation (`wasmtime-wasi`) has such code. It also needs the engine's asynchronous part,
//! which would slow down every call. There are three sorts of functions:
//! - functions that always give the same answer ([`constants`]),
//! - the few that have an effect ([`define_functions_with_effects`]),
//! - functions of objects that cannot exist here, such as `descriptor.read`, which trap with their name.
//!
//! Nothing is linked for a component that does not import WASI.

use wasmtime::component::types::ComponentItem;
use wasmtime::component::{
    Component, ComponentType, Lift, Linker, LinkerInstance, Lower, Resource, ResourceType, Val,
};
use wasmtime::{AsContextMut as _, StoreContextMut, bail};

use crate::call_state::CallState;
use crate::log_line::LogLevel;
use crate::wasi_state::READING_NANOSECONDS;

/// Prefix of WASI imports.
const WASI: &str = "wasi:";
/// Prefix of the only version offered: any 0.2.x.
const VERSION: &str = "0.2.";
/// Interfaces that are offered, without version.
const INTERFACES: [&str; 27] = [
    "cli/environment",
    "cli/exit",
    "cli/stderr",
    "cli/stdin",
    "cli/stdout",
    "cli/terminal-input",
    "cli/terminal-output",
    "cli/terminal-stderr",
    "cli/terminal-stdin",
    "cli/terminal-stdout",
    "clocks/monotonic-clock",
    "clocks/wall-clock",
    "filesystem/preopens",
    "filesystem/types",
    "io/error",
    "io/poll",
    "io/streams",
    "random/insecure",
    "random/insecure-seed",
    "random/random",
    "sockets/instance-network",
    "sockets/ip-name-lookup",
    "sockets/network",
    "sockets/tcp",
    "sockets/tcp-create-socket",
    "sockets/udp",
    "sockets/udp-create-socket",
];

/// The wall-clock time, in seconds since 1970: 2000-01-01T00:00:00Z. It is not zero, which some programs take for an unset clock.
const WALL_CLOCK_SECONDS: u64 = 946_684_800;
/// Most bytes that a stream accepts at once: WASI's limit for its blocking writes. More is a trap, as in WASI.
const WRITE_BYTES_MAX: usize = 4_096;
/// Longest line of printed text. A longer one is split.
const LINE_BYTES_MAX: usize = 4 << 10;
/// Beginning of a line that Rust prints after a panic. Its advice is for programs with an environment.
const BACKTRACE_HINT: &[u8] = b"note: run with `RUST_BACKTRACE=1`";

/// Returns `true` if an import belongs to inert WASI.
pub(crate) fn is_offered(import: &str) -> bool {
    interface(import).is_some_and(|interface| INTERFACES.contains(&interface))
}

/// `cli/exit` of `wasi:cli/exit@0.2.3`; `None` if the import is not of WASI 0.2.
fn interface(import: &str) -> Option<&str> {
    let (interface, version) = import.strip_prefix(WASI)?.split_once('@')?;
    version.starts_with(VERSION).then_some(interface)
}

/// Advice for a WASI import that is not offered; `None` for an import that is not WASI.
pub(crate) fn advice(import: &str) -> Option<String> {
    if !import.starts_with(WASI) && !import.starts_with("wasi_") {
        return None;
    }
    let packages = "cli, clocks, filesystem, io, random and sockets of WASI 0.2, all of them inert";
    let (interface, version) = import.split_once('@').unwrap_or((import, ""));
    Some(if !version.starts_with(VERSION) && !version.is_empty() {
        format!(
            "it was built for WASI {version}; plugins may import {packages}, so build it for wasip2"
        )
    } else {
        format!("plugins may import {packages}; build it without what uses `{interface}`")
    })
}

/// The linker for a component that imports WASI: the given one, with the imports that the component requires. `None` if it imports
/// no WASI.
pub(crate) fn linker(
    linker: &Linker<CallState>,
    component: &Component,
) -> wasmtime::Result<Option<Linker<CallState>>> {
    let engine = linker.engine().clone();
    let mut with_wasi = None;
    for (import, item) in component.component_type().imports(&engine) {
        let (true, ComponentItem::ComponentInstance(instance)) = (is_offered(import), item.ty)
        else {
            continue;
        };
        let with_wasi = with_wasi.get_or_insert_with(|| {
            let mut linker = linker.clone();
            linker.allow_shadowing(true);
            linker
        });
        let interface = interface(import).unwrap_or_default();
        let mut interface_linker = with_wasi.instance(import)?;
        for (name, item) in instance.exports(&engine) {
            match item.ty {
                ComponentItem::ComponentFunc(_) => {
                    define_trap(&mut interface_linker, interface, name)?
                }
                ComponentItem::Resource(_) => define_resource(&mut interface_linker, name)?,
                // Types need no definition, and these interfaces contain nothing else.
                _ => {}
            }
        }
        for (of, name, answer) in constants() {
            if of == interface {
                define_constant(&mut interface_linker, name, answer)?;
            }
        }
        define_functions_with_effects(&mut interface_linker, interface)?;
    }
    Ok(with_wasi)
}

/// Targets of printed text, as the numbers of an [`OutputStream`]. The streams differ only in this number.
const STDOUT: u32 = 1;
const STDERR: u32 = 2;

/// `wasi:io/streams.input-stream`: always at its end.
enum InputStream {}
/// `wasi:io/streams.output-stream`.
enum OutputStream {}
/// `wasi:io/poll.pollable`: always ready.
enum Pollable {}
/// `wasi:sockets/network.network`: a handle that every function refuses.
enum Network {}
/// Any other resource. No instance of it exists.
enum UninhabitedResource {}

/// `wasi:io/streams.stream-error`. Neither variant is ever constructed, because failures are constants.
#[derive(ComponentType, Lift, Lower)]
#[component(variant)]
enum StreamError {
    #[component(name = "last-operation-failed")]
    LastOperationFailed(Resource<UninhabitedResource>),
    #[component(name = "closed")]
    Closed,
}

/// Functions that always give the same answer: interface, function, answer.
fn constants() -> Vec<(&'static str, &'static str, Val)> {
    let none = || Val::Option(None);
    let empty = || Val::List(Vec::new());
    let refused = |why: Val| Val::Result(Err(Some(Box::new(why))));
    let closed = || refused(Val::Variant("closed".to_owned(), None));
    let denied = || refused(Val::Enum("access-denied".to_owned()));
    let time = |seconds, nanoseconds| {
        Val::Record(vec![
            ("seconds".to_owned(), Val::U64(seconds)),
            ("nanoseconds".to_owned(), Val::U32(nanoseconds)),
        ])
    };
    vec![
        ("cli/environment", "get-environment", empty()),
        ("cli/environment", "get-arguments", empty()),
        ("cli/environment", "initial-cwd", none()),
        ("cli/terminal-stdin", "get-terminal-stdin", none()),
        ("cli/terminal-stdout", "get-terminal-stdout", none()),
        ("cli/terminal-stderr", "get-terminal-stderr", none()),
        (
            "clocks/monotonic-clock",
            "resolution",
            Val::U64(READING_NANOSECONDS),
        ),
        ("clocks/wall-clock", "now", time(WALL_CLOCK_SECONDS, 0)),
        ("clocks/wall-clock", "resolution", time(1, 0)),
        ("filesystem/preopens", "get-directories", empty()),
        ("io/poll", "[method]pollable.ready", Val::Bool(true)),
        ("io/streams", "[method]input-stream.read", closed()),
        ("io/streams", "[method]input-stream.blocking-read", closed()),
        ("io/streams", "[method]input-stream.skip", closed()),
        ("io/streams", "[method]input-stream.blocking-skip", closed()),
        ("io/streams", "[method]output-stream.splice", closed()),
        (
            "io/streams",
            "[method]output-stream.blocking-splice",
            closed(),
        ),
        ("sockets/tcp-create-socket", "create-tcp-socket", denied()),
        ("sockets/udp-create-socket", "create-udp-socket", denied()),
        ("sockets/ip-name-lookup", "resolve-addresses", denied()),
    ]
}

fn define_constant(
    interface_linker: &mut LinkerInstance<'_, CallState>,
    name: &str,
    answer: Val,
) -> wasmtime::Result<()> {
    interface_linker.func_new(name, move |mut store, _, arguments, results| {
        for argument in arguments {
            // A borrowed handle must be dropped before the call returns.
            if let Val::Resource(handle) = argument {
                handle.resource_drop(store.as_context_mut())?;
            }
        }
        if let [result] = results {
            *result = answer.clone();
        }
        Ok(())
    })
}

fn define_trap(
    interface_linker: &mut LinkerInstance<'_, CallState>,
    interface: &str,
    name: &str,
) -> wasmtime::Result<()> {
    let function = format!("{WASI}{interface}#{name}");
    interface_linker.func_new(name, move |_, _, _, _| {
        bail!("called `{function}`, which has nothing to work on: plugins have no files and no network")
    })
}

fn define_resource(
    interface_linker: &mut LinkerInstance<'_, CallState>,
    name: &str,
) -> wasmtime::Result<()> {
    let sort = match name {
        "input-stream" => ResourceType::host::<InputStream>(),
        "output-stream" => ResourceType::host::<OutputStream>(),
        "pollable" => ResourceType::host::<Pollable>(),
        "network" => ResourceType::host::<Network>(),
        _ => ResourceType::host::<UninhabitedResource>(),
    };
    interface_linker.resource(name, sort, |mut store, _| {
        let wasi = &mut store.data_mut().wasi;
        wasi.handles = wasi.handles.saturating_sub(1);
        Ok(())
    })
}

type CallStore<'a> = StoreContextMut<'a, CallState>;

/// Defines the few functions that have an effect.
fn define_functions_with_effects(
    interface_linker: &mut LinkerInstance<'_, CallState>,
    interface: &str,
) -> wasmtime::Result<()> {
    match interface {
        "cli/exit" => {
            interface_linker.func_wrap(
                "exit",
                |_: CallStore<'_>, (status,): (Result<(), ()>,)| {
                    let status = if status.is_ok() { "success" } else { "failure" };
                    exit(status)
                },
            )?;
            interface_linker.func_wrap("exit-with-code", |_: CallStore<'_>, (code,): (u8,)| {
                exit(&format!("code {code}"))
            })
        }
        "cli/stdin" => interface_linker.func_wrap("get-stdin", |mut store: CallStore<'_>, ()| {
            Ok((store.data_mut().wasi.add_handle::<InputStream>(0)?,))
        }),
        "cli/stdout" => interface_linker.func_wrap("get-stdout", |mut store: CallStore<'_>, ()| {
            Ok((store.data_mut().wasi.add_handle::<OutputStream>(STDOUT)?,))
        }),
        "cli/stderr" => interface_linker.func_wrap("get-stderr", |mut store: CallStore<'_>, ()| {
            Ok((store.data_mut().wasi.add_handle::<OutputStream>(STDERR)?,))
        }),
        "clocks/monotonic-clock" => define_monotonic_clock(interface_linker),
        "io/poll" => define_poll(interface_linker),
        "io/streams" => define_streams(interface_linker),
        "random/random" => {
            interface_linker.func_wrap("get-random-bytes", random_bytes)?;
            interface_linker.func_wrap("get-random-u64", random_number)
        }
        "random/insecure" => {
            interface_linker.func_wrap("get-insecure-random-bytes", random_bytes)?;
            interface_linker.func_wrap("get-insecure-random-u64", random_number)
        }
        "random/insecure-seed" => {
            interface_linker.func_wrap("insecure-seed", |mut store: CallStore<'_>, ()| {
                let wasi = &mut store.data_mut().wasi;
                Ok(((wasi.random(), wasi.random()),))
            })
        }
        "sockets/instance-network" => interface_linker
            .func_wrap("instance-network", |mut store: CallStore<'_>, ()| {
                Ok((store.data_mut().wasi.add_handle::<Network>(0)?,))
            }),
        _ => Ok(()),
    }
}

fn exit(status: &str) -> wasmtime::Result<()> {
    bail!("called `wasi:cli/exit` with {status}: a plugin has no process to end")
}

fn random_bytes(mut store: CallStore<'_>, (n,): (u64,)) -> wasmtime::Result<(Vec<u8>,)> {
    Ok((store.data_mut().wasi.random_bytes(n)?,))
}

fn random_number(mut store: CallStore<'_>, (): ()) -> wasmtime::Result<(u64,)> {
    Ok((store.data_mut().wasi.random(),))
}

fn define_monotonic_clock(
    interface_linker: &mut LinkerInstance<'_, CallState>,
) -> wasmtime::Result<()> {
    interface_linker.func_wrap("now", |mut store: CallStore<'_>, ()| {
        Ok((store.data_mut().wasi.now(),))
    })?;
    interface_linker.func_wrap(
        "subscribe-instant",
        |mut store: CallStore<'_>, (when,): (u64,)| {
            let wasi = &mut store.data_mut().wasi;
            wasi.wait_until(when);
            Ok((wasi.add_handle::<Pollable>(0)?,))
        },
    )?;
    interface_linker.func_wrap(
        "subscribe-duration",
        |mut store: CallStore<'_>, (wait,): (u64,)| {
            let wasi = &mut store.data_mut().wasi;
            wasi.wait_until(wasi.nanoseconds.saturating_add(wait));
            Ok((wasi.add_handle::<Pollable>(0)?,))
        },
    )
}

fn define_poll(interface_linker: &mut LinkerInstance<'_, CallState>) -> wasmtime::Result<()> {
    interface_linker.func_wrap(
        "[method]pollable.block",
        |_: CallStore<'_>, (_,): (Resource<Pollable>,)| Ok(()),
    )?;
    interface_linker.func_wrap(
        "poll",
        |_: CallStore<'_>, (all,): (Vec<Resource<Pollable>>,)| {
            if all.is_empty() {
                bail!("called `wasi:io/poll#poll` with nothing to wait for");
            }
            let ready: Vec<u32> = (0..).take(all.len()).collect();
            Ok((ready,))
        },
    )
}

fn define_streams(interface_linker: &mut LinkerInstance<'_, CallState>) -> wasmtime::Result<()> {
    type Done = (Result<(), StreamError>,);
    type Stream = Resource<OutputStream>;
    const DONE: Done = (Ok(()),);
    interface_linker.func_wrap(
        "[method]input-stream.subscribe",
        |mut store: CallStore<'_>, (_,): (Resource<InputStream>,)| {
            Ok((store.data_mut().wasi.add_handle::<Pollable>(0)?,))
        },
    )?;
    interface_linker.func_wrap(
        "[method]output-stream.subscribe",
        |mut store: CallStore<'_>, (_,): (Stream,)| {
            Ok((store.data_mut().wasi.add_handle::<Pollable>(0)?,))
        },
    )?;
    interface_linker.func_wrap(
        "[method]output-stream.check-write",
        |_: CallStore<'_>, (_,): (Stream,)| Ok((Ok::<_, StreamError>(WRITE_BYTES_MAX as u64),)),
    )?;
    for name in ["write", "blocking-write-and-flush"] {
        interface_linker.func_wrap(
            &format!("[method]output-stream.{name}"),
            |mut store: CallStore<'_>, (stream, bytes): (Stream, Vec<u8>)| {
                let n = bytes.len();
                if n > WRITE_BYTES_MAX {
                    bail!("printed {n} bytes at once, {WRITE_BYTES_MAX} are allowed");
                }
                store.data_mut().print(stream.rep(), &bytes);
                Ok(DONE)
            },
        )?;
    }
    for name in ["write-zeroes", "blocking-write-zeroes-and-flush"] {
        // A log does not need these zeroes.
        interface_linker.func_wrap(
            &format!("[method]output-stream.{name}"),
            |_: CallStore<'_>, (_, _): (Stream, u64)| Ok(DONE),
        )?;
    }
    for name in ["flush", "blocking-flush"] {
        interface_linker.func_wrap(
            &format!("[method]output-stream.{name}"),
            |_: CallStore<'_>, (_,): (Stream,)| Ok(DONE),
        )?;
    }
    Ok(())
}

impl CallState {
    /// Accepts printed bytes. Each complete line goes to the plugin's log.
    fn print(&mut self, stream: u32, bytes: &[u8]) {
        let unfinished = match stream {
            STDERR => &mut self.wasi.stderr,
            _ => &mut self.wasi.stdout,
        };
        let mut text = std::mem::take(unfinished);
        text.extend_from_slice(bytes);
        let mut rest = text.as_slice();
        loop {
            let (line, after) = match rest.iter().position(|byte| *byte == b'\n') {
                Some(end) if end <= LINE_BYTES_MAX => (&rest[..end], &rest[end + 1..]),
                _ if rest.len() > LINE_BYTES_MAX => rest.split_at(LINE_BYTES_MAX),
                _ => break,
            };
            self.log_printed(stream, line);
            rest = after;
        }
        let rest = rest.to_vec();
        match stream {
            STDERR => self.wasi.stderr = rest,
            _ => self.wasi.stdout = rest,
        }
    }

    /// Logs printed text without a final line feed, once the call is over.
    pub(crate) fn print_unfinished(&mut self) {
        for (stream, text) in [
            (STDOUT, std::mem::take(&mut self.wasi.stdout)),
            (STDERR, std::mem::take(&mut self.wasi.stderr)),
        ] {
            if !text.is_empty() {
                self.log_printed(stream, &text);
            }
        }
    }

    fn log_printed(&mut self, stream: u32, line: &[u8]) {
        let level = match stream {
            STDERR => LogLevel::Warn,
            _ => LogLevel::Info,
        };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.starts_with(BACKTRACE_HINT) {
            return;
        }
        self.log_line(level, &String::from_utf8_lossy(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_inert_interfaces_are_offered() {
        #[track_caller]
        fn check(import: &str, offered: bool) {
            assert_eq!(is_offered(import), offered, "{import}");
            assert!(advice(import).is_some(), "{import}");
        }
        check("wasi:cli/stderr@0.2.0", true);
        check("wasi:cli/stderr@0.2.11", true);
        check("wasi:sockets/udp-create-socket@0.2.3", true);
        check("wasi:cli/stderr@0.3.0", false);
        check("wasi:cli/stderr", false);
        check("wasi:cli/run@0.2.0", false);
        check("wasi:http/outgoing-handler@0.2.0", false);
        check("wasi_snapshot_preview1", false);
        assert_eq!(advice("opilio:plugin/log@0.2.0"), None);
    }
}

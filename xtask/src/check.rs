//! `cargo xtask check` and `cargo xtask test`: the checks of CI that need no other tools, and the tests, always for the whole
//! workspace. A command for one package would select other features of shared dependencies, and build wasmtime again.

use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};

use crate::command::{self, cargo};

/// The checks, in order: the name and the arguments of cargo.
const CARGO: [(&str, &[&str]); 3] = [
    ("formatting", &["fmt", "--all", "--check"]),
    (
        "lints",
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ],
    ),
    // It has no dependencies, so it can be checked as a single package.
    (
        "house rules",
        &["test", "--quiet", "--package", "opilio-tidy"],
    ),
];

/// Checks of generated files: the name and the arguments of this program.
const GENERATED: [(&str, &[&str]); 4] = [
    ("contract", &["contract"]),
    ("bindings of the SDKs", &["bindings", "--check"]),
    ("generated docs", &["docs", "--check"]),
    ("components: source hashes", &["plugins", "--check"]),
];

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct TestOptions {
    /// Part to test: `lib` (unit tests) or an integration test, such as `cli`, `stories`, `frontier` [default: everything].
    part: Option<String>,
    /// Run only tests whose names contain this.
    filter: Option<String>,
}

/// Runs every check, even if an earlier one failed.
#[expect(clippy::print_stderr, reason = "a command's report")]
pub(crate) fn check() -> Result<()> {
    let program = std::env::current_exe()?;
    let mut failed = Vec::new();
    let mut run = |name: &'static str, command: &mut Command| {
        let began = Instant::now();
        let done = command::status(command);
        let verdict = if done.is_ok() { "ok" } else { "FAILED" };
        eprintln!(
            "{:>5.0} s  {name}: {verdict}",
            began.elapsed().as_secs_f64()
        );
        if done.is_err() {
            failed.push(name);
        }
    };
    for (name, arguments) in CARGO {
        run(name, cargo().args(arguments));
    }
    for (name, arguments) in GENERATED {
        run(name, Command::new(&program).args(arguments));
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Runs tests.
pub(crate) fn test(options: &TestOptions) -> Result<()> {
    let mut test = cargo();
    test.args(["test", "--workspace"]);
    match options.part.as_deref() {
        None => {}
        Some("lib") => _ = test.arg("--lib"),
        Some(part) => _ = test.args(["--test", part]),
    }
    test.args(&options.filter);
    command::status(&mut test)
}

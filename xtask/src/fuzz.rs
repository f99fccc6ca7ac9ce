//! `cargo xtask fuzz`: fuzzes extractors natively. A coverage-guided fuzzer mutates the documents of their golden cases.
//!
//! The targets are in `tests/fuzz`, a workspace of its own, and use libFuzzer. No nightly compiler is needed: a stable one has
//! LLVM's pass for coverage counters, and no sanitizer is used, because extractors have no unsafe code. Corpora and crashes are
//! written to `target/fuzz`. A crash should become a golden case of its plugin.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::command::{output, status};
use crate::repository::root;

/// The extractors.
const TARGETS: [&str; 22] = [
    "html",
    "css",
    "js",
    "http",
    "robots",
    "sitemap",
    "feed",
    "manifest",
    "svg",
    "media",
    "office",
    "pdf",
    "json",
    "xml",
    "universal",
    "uri",
    "implied",
    "multi-regex",
    "swf",
    "ftp-listing",
    "whois",
    "forms",
];

/// Longest tested document. The structures that break parsers are short, and short documents are tested more often.
const DOCUMENT_BYTES_MAX: usize = 16 * 1024;

/// Seconds after which one document counts as an error. Usually it takes microseconds; the rest is a margin for busy machines.
const DOCUMENT_SECONDS_MAX: u32 = 20;

/// Memory limit of a fuzzer with its corpus, and of one allocation. A component has 64 MiB.
const MEMORY_MIB_MAX: u32 = 2_048;
const ALLOCATION_MIB_MAX: u32 = 64;

/// LLVM flags that count taken branches, and show the operands of comparisons to the fuzzer.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";

/// Options of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Extractors [default: all].
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// Minutes of fuzzing for each extractor.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
    /// Fuzzers at the same time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    for name in &options.targets {
        ensure!(
            TARGETS.contains(&name.as_str()),
            "{name} is not a target; there are {}",
            TARGETS.join(", ")
        );
    }
    let targets: Vec<&str> = TARGETS
        .into_iter()
        .filter(|name| options.targets.is_empty() || options.targets.iter().any(|one| one == name))
        .collect();
    let home = root().join("target/fuzz");
    let fuzzer = build(&home)?;
    for target in &targets {
        seeds(&home, target)?;
    }
    let next = AtomicUsize::new(0);
    let faults = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.clamp(1, targets.len()) {
            scope.spawn(|| {
                while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = fuzz(&fuzzer, &home, target, options.minutes)
                        && let Ok(mut faults) = faults.lock()
                    {
                        faults.push(format!("{error:#}"));
                    }
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap_or_default();
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    Ok(())
}

/// Builds the targets. The target triple is explicit, so that build scripts and macros are built without coverage counters.
fn build(home: &Path) -> Result<PathBuf> {
    let version = output(Command::new("rustc").arg("-vV"))?;
    let triple = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .context("rustc -vV names no host")?;
    let build = home.join("build");
    status(
        Command::new("cargo")
            .args(["build", "--quiet", "--release", "--target", triple])
            .arg("--target-dir")
            .arg(&build)
            .env("RUSTFLAGS", COVERAGE)
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .current_dir(root().join("tests/fuzz")),
    )
    .context("building the fuzz targets, which takes a C++ compiler")?;
    Ok(build.join(triple).join("release/opilio-fuzz"))
}

/// Writes the documents of all golden cases of a target's component to its seed folder. Documents of one plugin are also good
/// starting points for others.
fn seeds(home: &Path, target: &str) -> Result<()> {
    let folder = home.join("seeds").join(target);
    fs::create_dir_all(&folder)?;
    fs::create_dir_all(home.join("corpus").join(target))?;
    for component in fs::read_dir(root().join("plugins"))? {
        let cases = component?.path().join("cases");
        let mut documents = Vec::new();
        for cases in [cases.clone(), cases.join("predecessor")] {
            documents.extend(documents_of(&cases, target)?);
        }
        for (name, content) in documents {
            fs::write(folder.join(name), content)?;
        }
    }
    Ok(())
}

/// Names and contents of the documents in a folder's cases for this plugin.
fn documents_of(folder: &Path, target: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let mut documents = Vec::new();
    let Ok(files) = fs::read_dir(folder) else {
        return Ok(documents);
    };
    for file in files {
        let path = file?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let cases: Vec<Value> = serde_json::from_slice(&fs::read(&path)?)
            .with_context(|| path.display().to_string())?;
        for case in cases {
            let id = case["id"].as_str().unwrap_or_default();
            // Cases in the folder `predecessor` have a text under `input`. Any extractor can read it.
            if let Some(input) = case["input"].as_str() {
                documents.push((id.to_owned(), input.as_bytes().to_vec()));
            }
            if case["plugin"] != target {
                continue;
            }
            let of_case = case["call"]["extract"]["documents"].as_array();
            for (at, document) in of_case.into_iter().flatten().enumerate() {
                documents.push((format!("{id}-{at}"), content(folder, target, document)?));
            }
        }
    }
    Ok(documents)
}

/// The target's input for this document.
fn content(folder: &Path, target: &str, document: &Value) -> Result<Vec<u8>> {
    match target {
        "uri" | "implied" => return Ok(text(&document["uri"])),
        "http" => {
            let headers = document["headers"].as_array();
            let lines: Vec<String> = headers
                .into_iter()
                .flatten()
                .map(|header| {
                    let part = |name: &str| header[name].as_str().unwrap_or_default();
                    format!("{}: {}", part("name"), part("value"))
                })
                .collect();
            return Ok(lines.join("\n").into_bytes());
        }
        _ => {}
    }
    if let Some(bytes) = document["bytes"].as_array() {
        return Ok(bytes
            .iter()
            .filter_map(|byte| u8::try_from(byte.as_u64()?).ok())
            .collect());
    }
    if let Some(file) = document["file"].as_str() {
        let path = folder.join(file);
        return fs::read(&path).with_context(|| path.display().to_string());
    }
    Ok(text(&document["text"]))
}

fn text(value: &Value) -> Vec<u8> {
    value.as_str().unwrap_or_default().as_bytes().to_vec()
}

/// Fuzzes one target, and returns the result.
#[expect(clippy::print_stdout, reason = "the result of the command")]
fn fuzz(fuzzer: &Path, home: &Path, target: &str, minutes: u64) -> Result<()> {
    let crashes = home.join("crashes").join(target);
    let logs = home.join("logs");
    fs::create_dir_all(&crashes)?;
    fs::create_dir_all(&logs)?;
    let log = logs.join(format!("{target}.log"));
    let written = fs::File::create(&log)?;
    let status = Command::new(fuzzer)
        .env("OPILIO_FUZZ_TARGET", target)
        .arg(format!("-max_total_time={}", minutes.saturating_mul(60)))
        .arg(format!("-max_len={DOCUMENT_BYTES_MAX}"))
        .arg(format!("-timeout={DOCUMENT_SECONDS_MAX}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB_MAX}"))
        .arg(format!("-malloc_limit_mb={ALLOCATION_MIB_MAX}"))
        .arg("-print_final_stats=1")
        .arg(format!("-artifact_prefix={}/", crashes.display()))
        .arg(home.join("corpus").join(target))
        .arg(home.join("seeds").join(target))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(written)
        .status()
        .with_context(|| format!("cannot run {}", fuzzer.display()))?;
    let log_text = fs::read(&log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())?;
    ensure!(
        status.success(),
        "{target}: {}; the document is in {}, the rest in {}",
        log_text
            .lines()
            .find(|line| line.contains("panicked at") || line.contains("ERROR: libFuzzer"))
            .unwrap_or("ended by itself"),
        crashes.display(),
        log.display()
    );
    let last = |mark: &str| {
        let word = |line: &str| {
            line.split(mark)
                .nth(1)?
                .split_whitespace()
                .next()
                .map(str::to_owned)
        };
        log_text.lines().rev().find_map(word).unwrap_or_default()
    };
    println!(
        "{target}: {} documents in {minutes} minutes, {} branches, {} features, no fault",
        last("number_of_executed_units:"),
        last("cov:"),
        last("ft:"),
    );
    Ok(())
}

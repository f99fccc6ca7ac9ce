//! Compares the same extractor in every language on the same pages: lines of code, size, cold load, time and memory. Times are the
//! processor time of a process, so that other load on the machine has little effect.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{build_and_test, sorted};
use crate::bench::measured::{self, Measured};
use crate::documentation;
use crate::repository::root;

/// Number of pages of the documentation packages that are measured.
const PAGES: usize = 40;

/// Rounds for each page. The difference between the two numbers of rounds gives the cost of calls alone.
const ROUNDS: [u32; 2] = [1, 9];

/// Folder of the example, the language's name in the table, and the suffixes of its sources.
const LANGUAGES: [(&str, &str, &str); 6] = [
    ("rust", "Rust", "rs"),
    ("c", "C", "c"),
    ("go", "Go", "go"),
    ("javascript", "JavaScript", "js"),
    ("typescript", "TypeScript", "ts"),
    ("python", "Python", "py"),
];

/// Measurements of one language.
struct Row {
    name: &'static str,
    lines: usize,
    bytes: u64,
    cold: Duration,
    call: Duration,
    memory_bytes: u64,
}

/// The table, in Markdown.
pub(super) fn table(opilio: &Path) -> Result<String> {
    let pages = pages()?;
    let mut rows = Vec::new();
    for (folder, name, ending) in LANGUAGES {
        let project = root()
            .join("plugins/examples")
            .join(folder)
            .join("link-scan");
        build_and_test(opilio, &project)?;
        let component = project.join("link-scan.wasm");
        let (call, memory_bytes) = call(opilio, &component, &pages)?;
        rows.push(Row {
            name,
            lines: lines(&project, ending)?,
            bytes: fs::metadata(&component)?.len(),
            cold: cold_load(opilio, &component)?,
            call,
            memory_bytes,
        });
    }
    let mut table = String::from(
        "| language | lines | component | cold load | a page | to Rust | memory |\n|---|---:|---:|---:|---:|---:|---:|\n",
    );
    let first = rows[0].call;
    for row in &rows {
        table += &row.markdown(first);
    }
    Ok(table)
}

/// Average processor time of a call with one page, and the maximum memory of a call.
fn call(opilio: &Path, component: &Path, pages: &Path) -> Result<(Duration, u64)> {
    let run = |rounds: u32| -> Result<(Duration, Value)> {
        let mut bench = Command::new(opilio);
        bench.args(["plugin", "bench", "--json", "--rounds", &rounds.to_string()]);
        let measured = measured::run(bench.arg(component).arg(pages))?;
        let answer: Value = serde_json::from_str(&measured.stdout).context("plugin bench")?;
        Ok((processor_time(&measured), answer))
    };
    let (few, _) = run(ROUNDS[0])?;
    let (many, answer) = run(ROUNDS[1])?;
    let number = |key: &str| {
        answer[key]
            .as_u64()
            .with_context(|| format!("plugin bench printed no {key}"))
    };
    let calls = number("documents")? * u64::from(ROUNDS[1] - ROUNDS[0]);
    let of_calls = many.saturating_sub(few);
    Ok((
        of_calls.div_f64(calls.max(1) as f64),
        number("memory_bytes")?,
    ))
}

fn processor_time(measured: &Measured) -> Duration {
    measured.user + measured.system
}

/// Pages by other authors, the largest first, in a folder of their own.
fn pages() -> Result<PathBuf> {
    let home = root().join("target/toolchains/pages");
    if home.exists() {
        fs::remove_dir_all(&home)?;
    }
    fs::create_dir_all(&home)?;
    let mut found = Vec::new();
    for package in documentation::packages()? {
        for file in sorted(&package.root)? {
            if file.extension().is_some_and(|ending| ending == "html") {
                found.push((fs::metadata(&file)?.len(), file));
            }
        }
    }
    found.sort();
    for (number, (_, file)) in found.iter().rev().take(PAGES).enumerate() {
        fs::copy(file, home.join(format!("{number:03}.html")))?;
    }
    Ok(home)
}

/// Lines of the plugin's own sources without blank lines and comments.
fn lines(project: &Path, ending: &str) -> Result<usize> {
    let mut lines = 0;
    for folder in [project.to_owned(), project.join("src")] {
        if !folder.is_dir() {
            continue;
        }
        for file in sorted(&folder)? {
            // Go's tests are in the same folder as the code.
            let is_test = file.to_string_lossy().ends_with("_test.go");
            if file.extension().is_some_and(|found| found == ending) && !is_test {
                let text = fs::read_to_string(&file)?;
                let code = |line: &&str| {
                    let line = line.trim();
                    !line.is_empty()
                        && !["//", "#!", "/*", "*", "\"\"\""]
                            .iter()
                            .any(|mark| line.starts_with(mark))
                };
                lines += text.lines().filter(code).count();
            }
        }
    }
    Ok(lines)
}

/// Time from the start of the program until an uncached component is compiled, checked, configured and described.
fn cold_load(opilio: &Path, component: &Path) -> Result<Duration> {
    let cache = root().join("target/toolchains/no-cache");
    if cache.exists() {
        fs::remove_dir_all(&cache)?;
    }
    let mut inspect = Command::new(opilio);
    inspect.args(["plugin", "inspect"]).arg(component);
    inspect.env("XDG_CACHE_HOME", &cache);
    Ok(processor_time(&measured::run(&mut inspect)?))
}

impl Row {
    fn markdown(&self, rust: Duration) -> String {
        format!(
            "| {} | {} | {} KiB | {:.1} s | {:.2} ms | {:.1} | {:.1} MiB |\n",
            self.name,
            self.lines,
            self.bytes.div_ceil(1024),
            self.cold.as_secs_f64(),
            self.call.as_secs_f64() * 1000.0,
            self.call.as_secs_f64() / rust.as_secs_f64().max(1e-9),
            self.memory_bytes as f64 / 1_048_576.0,
        )
    }
}

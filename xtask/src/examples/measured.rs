//! The same extractor in every language on the same pages, as a table: lines of code, size, cold load, time and memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{build_and_test, sorted};
use crate::command::output;
use crate::documentation;
use crate::repository::root;

/// How many pages of the documentation packages are asked about.
const PAGES: usize = 40;

/// How often each of them is given.
const ROUNDS: &str = "3";

/// Folder of the example, what the table calls the language, and its sources' endings.
const LANGUAGES: [(&str, &str, &str); 6] = [
    ("rust", "Rust", "rs"),
    ("c", "C", "c"),
    ("go", "Go", "go"),
    ("javascript", "JavaScript", "js"),
    ("typescript", "TypeScript", "ts"),
    ("python", "Python", "py"),
];

/// The table, in Markdown.
pub(super) fn table(opilio: &Path) -> Result<String> {
    let pages = pages()?;
    let mut table = String::from(
        "| language | lines | component | cold load | a page, median | 90 % | memory |\n|---|---:|---:|---:|---:|---:|---:|\n",
    );
    for (folder, name, ending) in LANGUAGES {
        let project = root()
            .join("plugins/examples")
            .join(folder)
            .join("link-scan");
        build_and_test(opilio, &project)?;
        let component = project.join("link-scan.wasm");
        let lines = lines(&project, ending)?;
        let size = fs::metadata(&component)?.len().div_ceil(1024);
        let cold = cold_load(opilio, &component)?;
        let mut bench = Command::new(opilio);
        bench
            .args(["plugin", "bench", "--json", "--rounds", ROUNDS])
            .arg(&component)
            .arg(&pages);
        let said: Value = serde_json::from_str(&output(&mut bench)?).context("plugin bench")?;
        table += &row(name, lines, size, cold, &said)?;
    }
    Ok(table)
}

/// Pages that nobody here wrote, the largest first, in a folder of their own.
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

/// Lines of the plugin's own sources that are neither blank nor comments.
fn lines(project: &Path, ending: &str) -> Result<usize> {
    let mut lines = 0;
    for folder in [project.to_owned(), project.join("src")] {
        if !folder.is_dir() {
            continue;
        }
        for file in sorted(&folder)? {
            if file.extension().is_some_and(|found| found == ending) {
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

/// Seconds until an unknown component is compiled, checked, configured and described, the start of the program included.
fn cold_load(opilio: &Path, component: &Path) -> Result<f64> {
    let cache = root().join("target/toolchains/no-cache");
    if cache.exists() {
        fs::remove_dir_all(&cache)?;
    }
    let mut inspect = Command::new(opilio);
    inspect.args(["plugin", "inspect"]).arg(component);
    inspect.env("XDG_CACHE_HOME", &cache);
    let began = Instant::now();
    output(&mut inspect)?;
    Ok(began.elapsed().as_secs_f64())
}

fn row(name: &str, lines: usize, kilobytes: u64, cold: f64, said: &Value) -> Result<String> {
    let one = &said[0];
    let number = |key: &str| {
        one[key]
            .as_f64()
            .with_context(|| format!("plugin bench says no {key}"))
    };
    Ok(format!(
        "| {name} | {lines} | {kilobytes} KB | {cold:.1} s | {:.1} ms | {:.1} ms | {:.1} MB |\n",
        number("median_us")? / 1000.0,
        number("p90_us")? / 1000.0,
        number("memory_bytes")? / 1_048_576.0,
    ))
}

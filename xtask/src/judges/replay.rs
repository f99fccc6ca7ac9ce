//! Archives of a small web, checked with tools that read archives: warcio, jwarc, cdxj-indexer, py-wacz, and pywb with Chromium,
//! where every page must look like the live one.

mod rendered;
mod web;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use self::web::ReplayWeb;
use super::{Readers, crawl};
use crate::command::{output, status};
use crate::registries;
use crate::repository::root;

/// Python packages of this judge. pywb installs warcio and cdxj-indexer in compatible versions.
const PYTHON_PACKAGES: [&str; 7] = [
    "warcio==1.8.1",
    "zstandard==0.25.0",
    "cdxj-indexer==1.5.0",
    "wacz==0.6.0",
    "pywb==2.10.0",
    "playwright==1.65.2",
    // pywb uses pkg_resources without declaring the dependency.
    "setuptools<81",
];

/// jwarc, the Java reader, and the command that downloads it.
const JWARC: &str = "org.netpreserve:jwarc:0.31.1";
const JWARC_JAR: &str = "jwarc-0.31.1.jar";
const MAVEN_COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy";

/// Possible places of Chromium.
const CHROMIUM: [&str; 3] = [
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
];

/// Archive settings that are tested besides the default.
const VARIANTS: [(&str, &str); 3] = [
    ("arc", "format = \"arc\""),
    ("zstd", "compression = \"zstd\"\ndigest = \"sha256\""),
    (
        "dictionary",
        "compression = \"zstd\"\ndictionary = \"trained.zdict\"\ndigest = \"both\"",
    ),
];

/// Maximum runs of the first crawl. Each lasts until its time limit, and one is enough unless the machine is very busy.
const RUNS_MAX: usize = 20;

/// Crawls, and runs all tools.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) async fn judge(home: &Path, opilio: &Path) -> Result<()> {
    let home = home.join("replay");
    if home.exists() {
        fs::remove_dir_all(&home)?;
    }
    fs::create_dir_all(&home)?;
    let python = registries::python(&PYTHON_PACKAGES)?;
    let jwarc = jwarc()?;
    let chromium = chromium()?;

    let web = ReplayWeb::serve().await?;
    let (origin, secure_origin) = (web.origin(), web.secure_origin());
    let job = home.join("job");
    let warcs = job.join("warcs");
    let profile = home.join("profile.toml");
    fs::write(&profile, revisiting(&web.seeds()))?;
    for _ in 0..RUNS_MAX {
        crawl(opilio, &profile, &job).await?;
        if web.is_visited() {
            break;
        }
    }
    zst(&python, "train", &warcs, &home.join("trained.zdict"))?;
    for (name, settings) in VARIANTS {
        let profile = home.join(format!("{name}.toml"));
        fs::write(&profile, variant(&web.seeds(), settings))?;
        crawl(opilio, &profile, &home.join(name)).await?;
    }
    // The web server is stopped, so that replay can only use the archive.
    drop(web);

    let readers = Readers {
        python: &python,
        jwarc: Some(&jwarc),
    };
    status(Command::new(opilio).args(["warc", "check"]).arg(&job))?;
    readers.judge(&warcs, &["--schemes", "http,https,ftp,whois,dns"])?;
    let first = warcs.display().to_string();
    for (name, _) in VARIANTS {
        let mut directory = home.join(name).join("warcs");
        status(Command::new(opilio).args(["warc", "check"]).arg(&directory))?;
        if name != "arc" {
            // The other tools cannot read zstd archives. A third-party zstd decompresses them to plain WARC files.
            let unpacked = home.join(name).join("unpacked");
            zst(&python, "unpack", &directory, &unpacked)?;
            directory = unpacked;
        }
        readers.judge(
            &directory,
            &["--schemes", "http,https,ftp,whois", "--like", &first],
        )?;
    }
    readers.judge(&redacted(opilio, &home, &warcs, &origin)?, &[])?;
    let captures = cdxj(&python, opilio, &home, &warcs)?;
    let fuzzed = fuzzed(&python, opilio, &home)?;
    package(&python, opilio, &home, &job)?;
    let for_pywb = home.join("pywb.cdxj");
    status(
        Command::new(opilio)
            .args(["warc", "index", "--without-not-modified", "--output"])
            .args([&for_pywb, &warcs]),
    )?;
    status(
        Command::new(&python)
            .arg(root().join("tests/judges/replay.py"))
            .args([&warcs, &for_pywb, &home.join("all.cdxj")])
            .args([origin, secure_origin])
            .arg(chromium)
            .arg(&home),
    )?;
    rendered::judge(&home, opilio, &python, chromium).await?;
    println!(
        "replay: {captures} captures and {fuzzed} fuzzed URIs indexed alike; screenshots are in {}",
        home.display()
    );
    Ok(())
}

/// The Chromium of this machine.
pub(super) fn chromium() -> Result<&'static Path> {
    CHROMIUM
        .iter()
        .map(Path::new)
        .find(|path| path.exists())
        .context("there is no Chromium; install the package chromium")
}

/// A copy of the archives with one page redacted.
fn redacted(opilio: &Path, home: &Path, warcs: &Path, origin: &str) -> Result<PathBuf> {
    let copy = home.join("redacted");
    fs::create_dir_all(&copy)?;
    for archive in archives(warcs)? {
        fs::copy(&archive, copy.join(archive.file_name().unwrap_or_default()))?;
    }
    status(
        Command::new(opilio)
            .args(["warc", "redact", "--write", "--reason", "a wish"])
            .args(["--uri", &format!("{origin}/original.html")])
            .arg(&copy),
    )?;
    Ok(copy)
}

/// Decompresses archives with a third-party zstd, or makes a dictionary of them.
fn zst(python: &Path, what: &str, from: &Path, to: &Path) -> Result<()> {
    status(
        Command::new(python)
            .arg(root().join("tests/judges/zst.py"))
            .arg(what)
            .args([from, to]),
    )
}

/// Compares the keys of random URIs with those of cdxj-indexer. Returns their number.
fn fuzzed(python: &Path, opilio: &Path, home: &Path) -> Result<usize> {
    let folder = home.join("fuzzed");
    fs::create_dir_all(&folder)?;
    status(
        Command::new(python)
            .arg(root().join("tests/judges/fuzzed_uris.py"))
            .arg(folder.join("fuzzed.warc.gz")),
    )?;
    cdxj(python, opilio, &folder, &folder)
}

/// Compares our index with that of cdxj-indexer, line by line. Returns the number of lines.
fn cdxj(python: &Path, opilio: &Path, home: &Path, warcs: &Path) -> Result<usize> {
    let ours = output(Command::new(opilio).args(["warc", "index"]).arg(warcs))?;
    fs::write(home.join("all.cdxj"), &ours)?;
    let theirs = output(
        Command::new(python)
            .args(["-m", "cdxj_indexer.main", "--sort"])
            .args(archives(warcs)?),
    )?;
    let parsed = |text: &str| -> Result<Vec<(String, serde_json::Value)>> {
        text.lines()
            .map(|line| {
                let (key, fields) = line.split_once(" {").context("a line without fields")?;
                Ok((
                    key.to_owned(),
                    serde_json::from_str(&format!("{{{fields}"))?,
                ))
            })
            .collect()
    };
    let (mut ours_parsed, mut theirs_parsed) = (parsed(&ours)?, parsed(&theirs)?);
    let by_place = |(_, fields): &(String, serde_json::Value)| {
        (fields["filename"].to_string(), fields["offset"].to_string())
    };
    ours_parsed.sort_by_key(by_place);
    theirs_parsed.sort_by_key(by_place);
    if ours_parsed != theirs_parsed {
        fs::write(home.join("theirs.cdxj"), &theirs)?;
        bail!(
            "cdxj-indexer makes another index: compare all.cdxj and theirs.cdxj in {}",
            home.display()
        );
    }
    ensure!(
        ours_parsed.len() > 10,
        "the index has only {} captures",
        ours_parsed.len()
    );
    Ok(ours_parsed.len())
}

/// Makes a WACZ package, and validates it with py-wacz.
fn package(python: &Path, opilio: &Path, home: &Path, job: &Path) -> Result<()> {
    let wacz = home.join("judged.wacz");
    status(
        Command::new(opilio)
            .arg("package")
            .arg(job)
            .arg("-o")
            .arg(&wacz)
            .args(["--title", "The judged", "--logs"]),
    )?;
    status(
        Command::new(python)
            .args(["-m", "wacz.main", "validate", "-f"])
            .arg(&wacz),
    )
}

/// The archive files of a directory, without the indexes.
fn archives(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.to_string_lossy().into_owned();
        if [".warc.gz", ".warc", ".arc.gz", ".arc"]
            .iter()
            .any(|ending| name.ends_with(ending))
        {
            files.push(path);
        }
    }
    files.sort();
    ensure!(!files.is_empty(), "no archive in {}", directory.display());
    Ok(files)
}

fn jwarc() -> Result<PathBuf> {
    let folder = root().join("target/judges/java");
    let jar = folder.join(JWARC_JAR);
    if !jar.exists() {
        fs::create_dir_all(&folder)?;
        status(
            Command::new("mvn")
                .args(["--quiet", "--batch-mode", MAVEN_COPY])
                .arg(format!("-Dartifact={JWARC}"))
                .arg(format!("-DoutputDirectory={}", folder.display())),
        )?;
    }
    Ok(jar)
}

/// The profile of a crawl that revisits pages for a limited time.
fn revisiting(seeds: &[String]) -> String {
    format!(
        r#"name = "judged"
strategy = "revisit"
seeds = {seeds:?}
{POLITENESS}
body-max = "2MiB"

[plugins.adaptive]
component = "builtin:adaptive"
settings = {{ initial-wait = "1s", min-wait = "1s", max-wait = "1m", default-wait = "1s" }}

[revisit]
default-wait = "1s"
min-wait = "1s"
max-wait = "1m"

[archive.duplicates]
across-uris = true
size-min = "1B"

[limits]
time = "12s"
"#
    )
}

/// The profile of a crawl that visits each page once.
fn variant(seeds: &[String], settings: &str) -> String {
    format!(
        r#"name = "variant"
strategy = "snapshot"
seeds = {seeds:?}
{POLITENESS}

[archive]
{settings}
"#
    )
}

/// Settings for loopback: no noticeable delays, and bodies that are spooled to disk.
const POLITENESS: &str = r#"
[politeness]
delay-factor = 0.0
min-delay = "0s"
max-delay = "0s"

[dns]
hosts = { "*.localhost" = "127.0.0.1" }

[fetch]
allow-addresses = ["loopback"]
spool-memory = "64KiB""#;

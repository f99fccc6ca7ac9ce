//! Archives of a small web, judged by tools that read archives: warcio, jwarc, cdxj-indexer, py-wacz, and pywb with
//! Chromium, in which every page must look as the live one did.

mod rendered;
mod web;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use self::web::Judged;
use super::{Readers, crawl};
use crate::command::{output, status};
use crate::registries;
use crate::repository::root;

/// Python packages of this judge. pywb brings warcio and cdxj-indexer in versions that suit it.
const PYTHON_PACKAGES: [&str; 7] = [
    "warcio==1.8.1",
    "zstandard==0.25.0",
    "cdxj-indexer==1.5.0",
    "wacz==0.6.0",
    "pywb==2.10.0",
    "playwright==1.65.2",
    // pywb asks for pkg_resources and does not say so.
    "setuptools<81",
];

/// The one of the Java world, and how its reader is fetched.
const JWARC: &str = "org.netpreserve:jwarc:0.31.1";
const JWARC_JAR: &str = "jwarc-0.31.1.jar";
const MAVEN_COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy";

/// Possible places of Chromium.
const CHROMIUM: [&str; 3] = [
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
];

/// Archive settings that are judged besides the default.
const VARIANTS: [(&str, &str); 3] = [
    ("arc", "format = \"arc\""),
    ("zstd", "compression = \"zstd\"\ndigest = \"sha256\""),
    (
        "dictionary",
        "compression = \"zstd\"\ndictionary = \"trained.zdict\"\ndigest = \"both\"",
    ),
];

/// Maximum runs of the first crawl. Each takes its time limit, and one is enough unless the machine is very busy.
const RUNS_MAX: usize = 20;

/// Crawls, and asks everybody.
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

    let web = Judged::serve().await?;
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
    // What is replayed must come from the archive.
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
            // Those of zstd are read by nobody else. Unpacked by somebody else they are WARC files.
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

/// The browser of this machine.
pub(super) fn chromium() -> Result<&'static Path> {
    CHROMIUM
        .iter()
        .map(Path::new)
        .find(|path| path.exists())
        .context("there is no Chromium; install the package chromium")
}

/// A copy of the archives from which a page has been taken, and what stands for it.
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

/// Has other people's zstd unpack archives, or make a dictionary of them.
fn zst(python: &Path, what: &str, from: &Path, to: &Path) -> Result<()> {
    status(
        Command::new(python)
            .arg(root().join("tests/judges/zst.py"))
            .arg(what)
            .args([from, to]),
    )
}

/// Compares the keys of fuzzed URIs with cdxj-indexer's; returns how many.
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

/// Our index, line by line, against that of cdxj-indexer; how many lines.
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
            "cdxj-indexer indexes otherwise: compare all.cdxj and theirs.cdxj in {}",
            home.display()
        );
    }
    ensure!(
        ours_parsed.len() > 10,
        "an index of {} captures proves little",
        ours_parsed.len()
    );
    Ok(ours_parsed.len())
}

/// A package, and what py-wacz says of it.
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

/// The files of a directory that are archives; indexes stand beside them.
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

/// Visits again and again, for a while.
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

/// Visits once.
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

/// None to speak of, on loopback; and bodies that go through the disk.
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

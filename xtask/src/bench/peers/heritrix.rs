//! Heritrix 3: a job with its default profile, but without delays and without speculative links from scripts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::Run;
use crate::bench::cost::{Cost, bytes_of};
use crate::bench::measured;
use crate::command;

/// Name of the job.
const JOB: &str = "bench";

/// Path of the default profile in the jar of the engine.
const PROFILE: &str = "org/archive/crawler/restlet/profile-crawler-beans.cxml";

/// The part of the profile after which settings are inserted.
const OVERRIDES_END: &str = "##..more?..##";

/// The seeds of the profile.
const SEEDS: &str = "http://example.example/example";

/// Settings that differ from the default profile. Without them, Heritrix waits three seconds between two pages of a host.
const OVERRIDES: &str = "\
metadata.operatorContactUrl=http://localhost/
disposition.delayFactor=0
disposition.minDelayMs=0
disposition.maxDelayMs=0
extractorHtml.extractJavascript=false
extractorJs.enabled=false
crawlController.pauseAtStart=false
";

/// Crawls the seeds with the distribution in the folder `home`.
pub(super) fn run(home: &Path, run: &Run<'_>) -> Result<Cost> {
    let job = run.folder.join(JOB);
    fs::create_dir_all(&job)?;
    let mut unzip = Command::new("unzip");
    unzip.arg("-p").arg(engine(home)?).arg(PROFILE);
    let profile = command::output(&mut unzip)?;
    for place in [OVERRIDES_END, SEEDS] {
        ensure!(
            profile.contains(place),
            "its default profile has no {place}"
        );
    }
    let beans = profile
        .replace(OVERRIDES_END, OVERRIDES)
        .replace(SEEDS, &run.seeds.join("\n"));
    fs::write(job.join("crawler-beans.cxml"), beans)?;
    // Starts Java and not the shell script, so that the system measures the time of this process.
    let mut command = run.command("java");
    command.arg("-Xmx1g");
    command.arg(format!("-Dheritrix.home={}", home.display()));
    command.arg("-cp").arg(home.join("lib/*"));
    command.arg("org.archive.crawler.Heritrix");
    command.args(["--web-admin", "bench:bench", "--web-port", "0"]);
    command.arg("--jobs-dir").arg(run.folder);
    command.args(["--run-job", JOB]).current_dir(run.folder);
    let measured = measured::run(&mut command)?;
    let launch = job.join("latest");
    let log = launch.join("logs/crawl.log");
    let log = fs::read_to_string(&log).with_context(|| format!("reading {}", log.display()))?;
    let pages = log.lines().filter(|line| is_http_exchange(line)).count() as u64;
    let archive_bytes = bytes_of(&launch.join("warcs"), ".warc.gz")?;
    Ok(Cost::of(&measured, pages, archive_bytes))
}

fn engine(home: &Path) -> Result<PathBuf> {
    let lib = home.join("lib");
    let files = fs::read_dir(&lib).with_context(|| format!("reading {}", lib.display()))?;
    let engine = files
        .filter_map(Result::ok)
        .map(|file| file.path())
        .find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("heritrix-engine-") && name.ends_with(".jar")
        });
    engine.with_context(|| format!("{} has no heritrix-engine-*.jar", lib.display()))
}

/// Returns `true` if a line of its crawl log is an HTTP fetch with a response.
fn is_http_exchange(line: &str) -> bool {
    let mut columns = line.split_whitespace().skip(1);
    let status = columns.next().unwrap_or_default();
    !status.starts_with('-') && columns.nth(1).is_some_and(|uri| uri.starts_with("http:"))
}

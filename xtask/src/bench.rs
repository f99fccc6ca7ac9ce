//! `cargo xtask bench crawl`: what a crawl costs, beside what merely fetching the same URLs costs.
//!
//! Real pages (see `documentation`) are served from memory under many host names. The release build of `opilio` crawls
//! them without politeness; right after, a bare HTTP client fetches the URLs of its crawl log over as many connections
//! and discards the bodies, ten rounds of it. Web, crawler and client are processes of their own, so that the processor time of each is
//! known apart. On a busy machine the ratio between the two means more than either.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use serde_json::{Value, json};

use self::measured::Measured;
use crate::documentation::{self, Documentation};
use crate::{command, repository};

mod bare_client;
pub(crate) mod measured;
mod web;

/// Documents of the crawl that goes before, so that components are compiled and files are in memory.
const WARM_UP_PAGES: u64 = 200;

/// How often the client fetches its list: once is over before a clock of 10 ms says much. What is printed is one round's.
const CLIENT_ROUNDS: u64 = 10;

/// A crawl that takes longer has stalled: it ends, and is no measurement.
const TIME_MAX: Duration = Duration::from_secs(300);

/// What "a page" is where cost is given per page of one size, in bytes: the size of a usual HTML page.
const USUAL_PAGE_BYTES: f64 = 40.0 * 1024.0;

/// Benchmarks.
#[derive(clap::Subcommand)]
pub(crate) enum Bench {
    /// Crawl documentation packages from memory with the release build, beside a bare HTTP client.
    Crawl(Options),
    /// The web of the benchmark: prints its port, serves until its standard input ends.
    #[command(hide = true)]
    Web(web::Options),
    /// The bare HTTP client of the benchmark.
    #[command(hide = true)]
    BareClient(bare_client::Options),
}

/// Options of `cargo xtask bench crawl`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Documents after which the crawl ends.
    #[arg(long, default_value_t = 10_000)]
    pages: u64,
    /// Host names, each with one of the packages; each is a queue.
    #[arg(long, default_value_t = 40)]
    hosts: usize,
    /// Workers of the crawl, and connections of the client.
    #[arg(long, default_value_t = 8)]
    workers: usize,
    /// Crawl with this binary instead of building one.
    #[arg(long, value_name = "FILE")]
    opilio: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What fetching the pages cost.
#[derive(Serialize)]
struct Cost {
    pages: u64,
    /// Bytes of all bodies.
    bytes: u64,
    seconds: f64,
    user_seconds: f64,
    system_seconds: f64,
    peak_rss_bytes: u64,
}

/// Runs the command.
pub(crate) fn run(bench: Bench) -> Result<()> {
    match bench {
        Bench::Crawl(options) => crawl(&options),
        Bench::Web(options) => web::run(&options),
        Bench::BareClient(options) => bare_client::run(&options),
    }
}

#[expect(clippy::print_stdout, reason = "the result of the command")]
fn crawl(options: &Options) -> Result<()> {
    let home = repository::root().join("target/bench");
    fs::create_dir_all(&home)?;
    let documentation = documentation::packages()?;
    let opilio = match &options.opilio {
        Some(opilio) => opilio.clone(),
        None => command::release("opilio")?,
    };
    let xtask = if cfg!(debug_assertions) {
        command::release("xtask")?
    } else {
        std::env::current_exe()?
    };
    let web = Web::start(&xtask, &documentation, options.hosts)?;

    let warm_up = Crawl::prepare(&home, "warm-up", &web, options, WARM_UP_PAGES)?;
    warm_up.run(&opilio)?;
    let crawl = Crawl::prepare(&home, "crawl", &web, options, options.pages)?;
    let crawled = crawl.run(&opilio)?;
    let logged = crawl.logged()?;
    let fetched = fetch(&xtask, &web, &logged.urls, &home, options.workers)?.part(CLIENT_ROUNDS);

    let client: Value = serde_json::from_str(&fetched.stdout).context("the client's report")?;
    let crawled_cost = Cost::of(&crawled, logged.urls.len() as u64, logged.bytes);
    let pages = client["pages"].as_u64().unwrap_or_default();
    let client_cost = Cost::of(
        &fetched,
        pages,
        client["bytes"].as_u64().unwrap_or_default(),
    );
    ensure!(
        (crawled_cost.pages, crawled_cost.bytes) == (client_cost.pages, client_cost.bytes),
        "the crawl had {} pages of {} bytes, the client {} of {}",
        crawled_cost.pages,
        crawled_cost.bytes,
        client_cost.pages,
        client_cost.bytes
    );
    let summary = crawled.stdout.lines().last().unwrap_or_default();
    let summary: Value = serde_json::from_str(summary).context("the crawl's summary")?;
    let warc_bytes = crawl.warc_bytes()?;
    if options.json {
        let report = json!({
            "processors": std::thread::available_parallelism().map_or(1, usize::from),
            "hosts": options.hosts,
            "workers": options.workers,
            "crawl": crawled_cost,
            "bare-client": client_cost,
            "cpu-ratio": crawled_cost.cpu() / client_cost.cpu(),
            "time-ratio": crawled_cost.seconds / client_cost.seconds,
            "warc-bytes": warc_bytes,
            "plugins": summary["plugins"],
        });
        println!("{report}");
    } else {
        print!("{}", table(&crawled_cost, &client_cost));
        println!();
        print!("{}", plugin_table(&summary["plugins"], &crawled_cost));
        println!("\nWARC files: {:.1} MB", warc_bytes as f64 / 1e6);
    }
    Ok(())
}

/// The web, in a process of its own; it ends with this.
struct Web {
    process: Child,
    port: u16,
    hosts: usize,
}

impl Web {
    fn start(xtask: &Path, documentation: &[Documentation], hosts: usize) -> Result<Web> {
        let mut command = Command::new(xtask);
        command.args(["bench", "web", "--hosts", &hosts.to_string()]);
        command.args(documentation.iter().map(|package| &package.root));
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut port = String::new();
        let stdout = process.stdout.take().context("the web has no output")?;
        BufReader::new(stdout).read_line(&mut port)?;
        let port = port.trim().parse().context("the web names no port")?;
        Ok(Web {
            process,
            port,
            hosts,
        })
    }

    fn seeds(&self) -> Vec<String> {
        let hosts = (1..=self.hosts).map(web::host);
        hosts
            .map(|host| format!("http://{host}:{}/index.html", self.port))
            .collect()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // It has nothing to say any more, and whether it could be waited for changes nothing.
        let _ = self.process.wait();
    }
}

/// A crawl in a directory of its own.
struct Crawl {
    directory: PathBuf,
    profile: PathBuf,
    cache: PathBuf,
}

/// What a crawl log says was fetched over HTTP.
struct Logged {
    urls: Vec<String>,
    bytes: u64,
}

impl Crawl {
    fn prepare(home: &Path, name: &str, web: &Web, options: &Options, pages: u64) -> Result<Crawl> {
        let directory = home.join(name);
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        fs::create_dir_all(&directory)?;
        let profile = directory.join("profile.toml");
        let (seeds, workers) = (web.seeds(), options.workers);
        fs::write(&profile, profile_text(&seeds, workers, pages))?;
        let cache = home.join("cache");
        Ok(Crawl {
            directory,
            profile,
            cache,
        })
    }

    fn job(&self) -> PathBuf {
        self.directory.join("job")
    }

    fn run(&self, opilio: &Path) -> Result<Measured> {
        let mut command = Command::new(opilio);
        command.arg("crawl").arg(&self.profile).arg("--json");
        command.arg("--job").arg(self.job());
        // Compiled components: those of the operator stay as they are.
        command.env("XDG_CACHE_HOME", &self.cache);
        let measured = measured::run(&mut command)?;
        ensure!(
            measured.time < TIME_MAX,
            "the crawl was not over within {TIME_MAX:?}; see {}",
            self.directory.display()
        );
        Ok(measured)
    }

    fn logged(&self) -> Result<Logged> {
        let log = self.job().join("logs/crawl.log");
        let text =
            fs::read_to_string(&log).with_context(|| format!("reading {}", log.display()))?;
        let mut logged = Logged {
            urls: Vec::new(),
            bytes: 0,
        };
        for line in text.lines() {
            let mut columns = line.split_whitespace().skip(1);
            let (Some(status), Some(size), Some(uri)) =
                (columns.next(), columns.next(), columns.next())
            else {
                bail!("not a line of a crawl log: {line}");
            };
            if uri.starts_with("http:") && !status.starts_with('-') {
                logged.urls.push(uri.to_owned());
                logged.bytes += size.parse::<u64>().unwrap_or_default();
            }
        }
        ensure!(!logged.urls.is_empty(), "the crawl fetched nothing");
        Ok(logged)
    }

    fn warc_bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        for file in fs::read_dir(self.job().join("warcs"))? {
            bytes += file?.metadata()?.len();
        }
        Ok(bytes)
    }
}

/// As an operator would crawl, but for politeness and for hosts on loopback.
fn profile_text(seeds: &[String], workers: usize, pages: u64) -> String {
    format!(
        r#"name = "bench"
strategy = "snapshot"
seeds = {seeds:?}
workers = {workers}

[politeness]
delay-factor = 0.0
min-delay = "0s"
max-delay = "0s"

[fetch]
allow-addresses = ["loopback"]

[limits]
documents = {pages}
time = "{}s"
"#,
        TIME_MAX.as_secs()
    )
}

fn fetch(
    xtask: &Path,
    web: &Web,
    urls: &[String],
    home: &Path,
    connections: usize,
) -> Result<Measured> {
    let list = home.join("urls.txt");
    fs::write(&list, urls.join("\n"))?;
    let rounds = CLIENT_ROUNDS.to_string();
    let mut command = Command::new(xtask);
    command.args(["bench", "bare-client"]).arg(list);
    command.args(["--port", &web.port.to_string()]);
    command.args(["--connections", &connections.to_string()]);
    command.args(["--rounds", &rounds]);
    measured::run(&mut command)
}

impl Cost {
    fn of(measured: &Measured, pages: u64, bytes: u64) -> Cost {
        Cost {
            pages,
            bytes,
            seconds: measured.time.as_secs_f64(),
            user_seconds: measured.user.as_secs_f64(),
            system_seconds: measured.system.as_secs_f64(),
            peak_rss_bytes: measured.peak_rss_bytes,
        }
    }

    fn cpu(&self) -> f64 {
        self.user_seconds + self.system_seconds
    }

    fn row(&self, name: &str) -> String {
        let pages = self.pages as f64;
        let usual_pages = self.bytes as f64 / USUAL_PAGE_BYTES;
        format!(
            "{name:<18} {:>7} {:>8.2} {:>8.0} {:>8.2} {:>8.2} {:>8.2} {:>8.3} {:>8.3} {:>8.1} {:>8.1}\n",
            self.pages,
            self.seconds,
            pages / self.seconds,
            self.user_seconds,
            self.system_seconds,
            self.cpu(),
            1e3 * self.cpu() / pages,
            1e3 * self.cpu() / usual_pages,
            self.peak_rss_bytes as f64 / 1e6,
            self.bytes as f64 / 1e6,
        )
    }
}

fn table(crawl: &Cost, client: &Cost) -> String {
    let head = format!(
        "{:<18} {:>7} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n",
        "",
        "pages",
        "seconds",
        "pages/s",
        "user s",
        "sys s",
        "CPU s",
        "ms/page",
        "ms/40KB",
        "RSS MB",
        "MB"
    );
    let ratio = format!(
        "{:<18} {:>7} {:>8.1} {:>8} {:>8} {:>8} {:>8.1}\n",
        "ratio",
        "",
        crawl.seconds / client.seconds,
        "",
        "",
        "",
        crawl.cpu() / client.cpu(),
    );
    head + &crawl.row("opilio crawl") + &client.row("bare hyper client") + &ratio
}

/// Time within calls of plugins, and its share of all processor time.
fn plugin_table(plugins: &Value, crawl: &Cost) -> String {
    let mut text = format!(
        "{:<18} {:>9} {:>10} {:>9} {:>7}\n",
        "plugin", "calls", "µs a call", "seconds", "share"
    );
    for plugin in plugins.as_array().into_iter().flatten() {
        let calls = plugin["calls"].as_u64().unwrap_or_default();
        let seconds = plugin["seconds"].as_f64().unwrap_or_default();
        if calls > 0 {
            text.push_str(&format!(
                "{:<18} {calls:>9} {:>10.0} {seconds:>9.2} {:>6.1}%\n",
                plugin["name"].as_str().unwrap_or_default(),
                1e6 * seconds / calls as f64,
                100.0 * seconds / crawl.cpu(),
            ));
        }
    }
    text
}

//! The web of the benchmarks, in a process of its own. It serves folders from memory, each under a host name, or many equal hosts.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};
use opilio_test_web::directory::Directory;
use opilio_test_web::{Reply, SeenRequest, Web};

use crate::documentation;

/// Host names that resolve to loopback everywhere, one for each documentation package.
const HOSTS: [&str; 2] = ["localhost", "127.0.0.1"];

/// Options of [`WebProcess::documentation`].
pub(super) struct Documentation {
    /// Number of host names of each package. Each host has a queue of its own.
    pub(super) copies: usize,
    /// Send ETags, and 304 to a client that has the file.
    pub(super) validators: bool,
}

/// Links on a generated page. The pages of a host form a tree, so that each is a few links from the first.
const LINKS: u64 = 20;

/// Options of the hidden `cargo xtask bench web`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The host name of each folder.
    #[arg(long = "host")]
    hosts: Vec<String>,
    /// Send an ETag with each file, and 304 to a client that has it.
    #[arg(long)]
    validators: bool,
    /// Also serve this number of hosts of generated pages.
    #[arg(long, default_value_t = 0)]
    generated_hosts: u64,
    /// Generated pages of each host.
    #[arg(long, default_value_t = 0)]
    pages: u64,
    /// Each generated page also links to the same page of the next host.
    #[arg(long)]
    linked: bool,
    /// Folders to serve.
    folders: Vec<PathBuf>,
}

/// Prints the port, then serves until standard input ends.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) fn run(options: &Options) -> Result<()> {
    let mut web = Web::builder();
    for (host, folder) in options.hosts.iter().zip(&options.folders) {
        let directory = Directory::read(folder);
        let directory = directory.with_context(|| format!("reading {}", folder.display()))?;
        match options.validators {
            true => directory.serve_with_validators(web.site(host)),
            false => directory.serve(web.site(host)),
        }
    }
    for number in 0..options.generated_hosts {
        let (name, pages) = (generated_host(number), options.pages);
        let next = (number + 1) % options.generated_hosts;
        let next = options.linked.then(|| generated_host(next));
        web.site(&name.clone())
            .rest(move |seen| generated(&name, seen, pages, next.as_deref()));
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let web = runtime.block_on(web.serve())?;
    println!("{}", web.address().port());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// The name of a host of generated pages. It resolves to this machine everywhere (RFC 6761).
pub(super) fn generated_host(number: u64) -> String {
    format!("site-{number}.localhost")
}

/// Page `/N`, of some 4 KB, links to [`LINKS`] pages below it, and to `/N` of the host `next`. Other paths do not exist.
fn generated(host: &str, seen: &SeenRequest, pages: u64, next: Option<&str>) -> Reply {
    let number: Option<u64> = seen.target.trim_start_matches('/').parse().ok();
    let Some(number) = number.filter(|&number| number < pages) else {
        return Reply::status(404);
    };
    let mut page = format!("<!doctype html><title>Page {number} of {host}</title>\n");
    for after in 1..=LINKS {
        let link = (number * LINKS + after) % pages;
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            page,
            "<p>Paragraph {after} of page {number} leads to <a href=\"/{link}\">page {link}</a>. \
             It says little else, but it is as long as a paragraph of a usual page, so that reading it costs something.</p>"
        );
    }
    if let Some(next) = next {
        let own = seen.headers.get("host").and_then(|it| it.to_str().ok());
        let port = own.and_then(|it| it.rsplit(':').next()).unwrap_or_default();
        let _ = writeln!(
            page,
            "<p><a href=\"http://{next}:{port}/{number}\">next host</a>"
        );
    }
    Reply::html(page)
}

/// The web, in a process of its own, which ends when this value is dropped.
pub(super) struct WebProcess {
    process: Child,
    /// The port of all its hosts.
    pub(super) port: u16,
    /// The start page of each host of [`WebProcess::documentation`].
    pub(super) seeds: Vec<String>,
}

impl WebProcess {
    /// Serves the documentation packages of Debian.
    pub(super) fn documentation(what: &Documentation) -> Result<WebProcess> {
        let packages = documentation::packages()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", "web"]);
        if what.validators {
            command.arg("--validators");
        }
        let mut hosts = Vec::new();
        for number in 0..what.copies * packages.len() {
            let host = HOSTS.get(number).copied().map(str::to_owned);
            let host = host.unwrap_or_else(|| generated_host(number as u64));
            command.args(["--host", &host]);
            hosts.push(host);
        }
        let roots = packages.iter().map(|package| &package.root).cycle();
        command.args(roots.take(hosts.len()));
        let mut web = WebProcess::start(command)?;
        let seed = |host| format!("http://{host}:{}/index.html", web.port);
        web.seeds = hosts.iter().map(seed).collect();
        Ok(web)
    }

    /// Serves generated pages under the names of [`generated_host`].
    pub(super) fn generated(hosts: u64, pages: u64) -> Result<WebProcess> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", "web", "--generated-hosts", &hosts.to_string()]);
        command.args(["--pages", &pages.to_string()]);
        WebProcess::start(command)
    }

    /// Like [`generated`](Self::generated), but each page also links to the same page of the next host.
    pub(super) fn linked(hosts: u64, pages: u64) -> Result<WebProcess> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", "web", "--linked", "--generated-hosts"]);
        command.args([&hosts.to_string(), "--pages", &pages.to_string()]);
        WebProcess::start(command)
    }

    fn start(mut command: Command) -> Result<WebProcess> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut port = String::new();
        let stdout = process.stdout.take().context("the web has no output")?;
        BufReader::new(stdout).read_line(&mut port)?;
        let port = port.trim().parse().context("the web names no port")?;
        Ok(WebProcess {
            process,
            port,
            seeds: Vec::new(),
        })
    }
}

impl Drop for WebProcess {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // The process is ending, and its exit code does not matter.
        let _ = self.process.wait();
    }
}

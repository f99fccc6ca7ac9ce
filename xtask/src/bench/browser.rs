//! `cargo xtask bench browser`: a site of articles and applications is crawled without a browser (`never`), with one for pages that
//! need it (`auto`), and with one for every page (`always`). The processor time counts, that of the browsers
//! included. The last crawl is watched for leaks: processes, memory, descriptors, and folders. It needs Chromium, and `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use opilio_test_web::{Reply, Site, Web};

use super::cost::empty;
use super::processes::{self, Processes};
use crate::{command, repository};

/// Hosts of the site. Of each, one page at a time is visited.
const HOSTS: usize = 4;

/// Pages of ten that are applications.
const APPLICATIONS_OF_TEN: usize = 3;

/// Links of a list.
const LIST: usize = 50;

/// Time between two looks at the processes of a crawl.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// Time for killed processes to disappear.
const END_TIME_MAX: Duration = Duration::from_secs(30);

/// Rows of the table of one crawl.
const ROWS: usize = 10;

/// The exit code of a crawl that a limit of its profile has ended.
const LIMIT_REACHED: i32 = 4;

/// Options of `cargo xtask bench browser`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Pages of the site.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(100..))]
    pages: u64,
    /// Browsers at the same time.
    #[arg(long, default_value_t = 2)]
    processes: usize,
    /// Crawl with this binary instead of building one.
    #[arg(long, value_name = "FILE")]
    opilio: Option<PathBuf>,
}

/// Figures of a crawl at one moment.
#[derive(Clone, Copy, Default)]
struct Look {
    rendered: usize,
    memory: u64,
    descriptors: usize,
    browser_processes: usize,
    browser_memory: u64,
    /// Folders of browsers, and files for bodies.
    left: usize,
}

/// A crawl from its start to its end.
struct Watched {
    time: Duration,
    own_time: Duration,
    browser_time: Duration,
    looks: Vec<Look>,
}

/// Runs the command.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) fn run(options: &Options) -> Result<()> {
    let binary = match &options.opilio {
        Some(binary) => binary.clone(),
        None => command::release("opilio")?,
    };
    let pages = usize::try_from(options.pages)?;
    let folder = repository::root().join("target/bench/browser");
    let runtime = tokio::runtime::Runtime::new()?;
    let web = runtime.block_on(site(pages).serve())?;
    let seeds: Vec<String> = (0..HOSTS).map(|host| web.url(&name(host), "/")).collect();
    println!(
        "{pages} pages, {APPLICATIONS_OF_TEN} of 10 of them applications; {} browsers",
        options.processes
    );
    println!(
        "render  seconds  requests  rendered  answers for applications  pages/min  CPU s (own + browsers)  pages/min and core"
    );
    // Components are compiled before anything is measured.
    empty(&folder)?;
    let first = profile(&seeds, "auto", options.processes) + "limits.documents = 1\n";
    fs::write(folder.join("profile.toml"), first)?;
    watch(&binary, &folder)?;
    let mut watched = None;
    for render in ["never", "auto", "always"] {
        empty(&folder)?;
        let profile = profile(&seeds, render, options.processes);
        fs::write(folder.join("profile.toml"), profile)?;
        let before = web.requests().len();
        let crawl = watch(&binary, &folder)?;
        let requests = web.requests();
        let answers = requests[before..]
            .iter()
            .filter(|seen| seen.target.starts_with("/api/"))
            .count();
        let applications = (0..pages).filter(|page| is_application(*page)).count();
        ensure!(
            render == "never" || answers >= applications,
            "only {answers} of {applications} applications were rendered with {render:?}; see {}",
            folder.display()
        );
        let processor = crawl.own_time + crawl.browser_time;
        let a_minute = |time: Duration| 60.0 * pages as f64 / time.as_secs_f64();
        println!(
            "{render:<7} {:>7.1} {:>9} {:>9} {:>17} of {} {:>9.0} {:>10.1} ({:.1} + {:.1}) {:>14.0}",
            crawl.time.as_secs_f64(),
            requests.len() - before,
            rendered(&folder.join("job")),
            answers,
            applications,
            a_minute(crawl.time),
            processor.as_secs_f64(),
            crawl.own_time.as_secs_f64(),
            crawl.browser_time.as_secs_f64(),
            a_minute(processor),
        );
        watched = Some(crawl);
    }
    let watched = watched.context("no crawl")?;
    println!("\n{}", table(&watched.looks));
    judge(&watched.looks, options.processes)
}

fn is_application(page: usize) -> bool {
    page % 10 < APPLICATIONS_OF_TEN
}

/// On each host, a home page that links to lists, and lists that link to its pages.
fn site(pages: usize) -> opilio_test_web::WebBuilder {
    let mut web = Web::builder();
    for host in 0..HOSTS {
        let of_host: Vec<usize> = (host..pages).step_by(HOSTS).collect();
        fill(web.site(&name(host)), &of_host);
    }
    web
}

fn name(host: usize) -> String {
    format!("mixed-{host}.localhost")
}

fn fill(site: &mut Site, pages: &[usize]) {
    let lists = pages.chunks(LIST);
    let home = links((0..lists.len()).map(|list| format!("/list/{list}")));
    site.page("/", page("Home", &home));
    for (list, of_list) in lists.enumerate() {
        let of_list = links(of_list.iter().map(|number| target(*number)));
        site.page(&format!("/list/{list}"), page("List", &of_list));
    }
    for &number in pages {
        let title = format!("Page {number}");
        let body = match is_application(number) {
            true => {
                let answer = format!("{{\"title\":\"{title}\",\"next\":{}}}", number / 2);
                let answer = Reply::ok("application/json", answer);
                site.page(&format!("/api/{number}"), answer);
                "<div id=\"root\"></div><script type=\"module\" src=\"/app.js\"></script>".to_owned()
            }
            false => format!(
                "<article><h1>{title}</h1><img src=\"/logo.svg\" alt=\"\">{}</article><script src=\"/site.js\"></script>",
                format!("<p>Paragraph {number} of an article that needs no script to be read, line by line.</p>")
                    .repeat(30)
            ),
        };
        site.page(&target(number), page(&title, &body));
    }
    site.page(
        "/style.css",
        Reply::ok("text/css", "body { font: 16px serif; margin: 2em }"),
    );
    site.page(
        "/site.js",
        Reply::ok("text/javascript", "document.body.dataset.ready = '1';"),
    );
    site.page("/app.js", Reply::ok("text/javascript", APPLICATION));
    site.page("/logo.svg", Reply::ok("image/svg+xml", LOGO));
}

fn links(targets: impl Iterator<Item = String>) -> String {
    targets
        .map(|target| format!("<li><a href=\"{target}\">{target}</a>"))
        .collect()
}

fn target(number: usize) -> String {
    match is_application(number) {
        true => format!("/app/{number}"),
        false => format!("/article/{number}"),
    }
}

fn page(title: &str, body: &str) -> Reply {
    Reply::html(format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <link rel=\"stylesheet\" href=\"/style.css\"></head>\n<body>{body}</body></html>\n"
    ))
}

const APPLICATION: &str = r"const number = location.pathname.split('/').pop();
const item = await (await fetch(`/${'api'}/${number}`)).json();
document.querySelector('#root').innerHTML =
    `<h1>${item.title}</h1><img src='/logo.svg' alt=''>` + `<p>A paragraph of ${item.title}.</p>`.repeat(30);
";

const LOGO: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"200\" height=\"60\"><rect width=\"200\" height=\"60\" fill=\"teal\"/></svg>";

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

/// Crawls with the profile in the folder, and looks at all processes of the crawl again and again.
fn watch(binary: &Path, folder: &Path) -> Result<Watched> {
    let job = folder.join("job");
    let temporary = folder.join("tmp");
    fs::create_dir_all(&temporary)?;
    let mut command = Command::new(binary);
    command.arg("crawl").arg(folder.join("profile.toml"));
    command.args(["--quiet", "--job"]).arg(&job);
    command.env("TMPDIR", &temporary);
    command.env(
        "XDG_CACHE_HOME",
        repository::root().join("target/bench/cache"),
    );
    let began = Instant::now();
    let mut crawl = command
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot run {}", binary.display()))?;
    let mut own_time = Duration::ZERO;
    // By process group: the time of ended processes is in that of those that waited for them.
    let mut browsers: BTreeMap<u32, Duration> = BTreeMap::new();
    let mut looks = Vec::new();
    let status = loop {
        if let Some(status) = crawl.try_wait()? {
            break status;
        }
        let all = Processes::now();
        own_time = own_time.max(all.own_time(crawl.id()));
        let groups = all.groups_under(crawl.id());
        for group in &groups {
            let time = browsers.entry(*group).or_default();
            *time = all.time_of_group(*group).max(*time);
        }
        looks.push(Look {
            rendered: rendered(&job),
            memory: processes::memory(crawl.id()),
            descriptors: entries(&PathBuf::from(format!("/proc/{}/fd", crawl.id()))),
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
        thread::sleep(LOOK_INTERVAL);
    };
    let is_done = status.success() || status.code() == Some(LIMIT_REACHED);
    ensure!(
        is_done,
        "the crawl in {} ended with {status}",
        folder.display()
    );
    let time = began.elapsed();
    let end = Instant::now() + END_TIME_MAX;
    let is_running = |all: &Processes| browsers.keys().any(|it| all.of_group(*it).next().is_some());
    while is_running(&Processes::now()) {
        ensure!(
            Instant::now() < end,
            "the crawl has ended, and its browsers have not"
        );
        thread::sleep(LOOK_INTERVAL);
    }
    let left = entries(&job.join("browsers")) + entries(&temporary);
    ensure!(left == 0, "{left} files are left in {}", folder.display());
    Ok(Watched {
        time,
        own_time,
        browser_time: browsers.into_values().sum(),
        looks,
    })
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

/// The most of each figure in each tenth of the pages.
fn parts(looks: &[Look]) -> Vec<Look> {
    let all = looks.last().map_or(0, |it| it.rendered).max(1);
    let mut parts = vec![Look::default(); ROWS];
    for look in looks.iter().filter(|it| it.rendered > 0) {
        let part = &mut parts[((look.rendered - 1) * ROWS / all).min(ROWS - 1)];
        *part = Look {
            rendered: part.rendered.max(look.rendered),
            memory: part.memory.max(look.memory),
            descriptors: part.descriptors.max(look.descriptors),
            browser_processes: part.browser_processes.max(look.browser_processes),
            browser_memory: part.browser_memory.max(look.browser_memory),
            left: part.left.max(look.left),
        };
    }
    parts
}

fn table(looks: &[Look]) -> String {
    let mut text =
        "most until  opilio MB  descriptors  browser processes  browsers MB  files\n".to_owned();
    for part in parts(looks) {
        text += &format!(
            "{:>10} {:>10} {:>12} {:>18} {:>12} {:>6}\n",
            part.rendered,
            part.memory / 1_000_000,
            part.descriptors,
            part.browser_processes,
            part.browser_memory / 1_000_000,
            part.left,
        );
    }
    text
}

/// A figure of a look.
type Figure = fn(&Look) -> u64;

/// Compares the second half of a crawl with its first: nothing may have grown but by what a busy moment explains.
#[expect(clippy::print_stdout, reason = "the result of the command")]
fn judge(looks: &[Look], browsers: usize) -> Result<()> {
    let parts = parts(looks);
    let (first, second) = parts.split_at(ROWS / 2);
    let most = |parts: &[Look], figure: Figure| parts.iter().map(figure).max();
    // A browser that is being replaced counts beside the new one.
    let of_a_browser = 12;
    let figures: [(&str, Figure, u64); 5] = [
        ("bytes of memory of opilio", |it| it.memory, 64 << 20),
        ("descriptors", |it| it.descriptors as u64, 32),
        (
            "processes of browsers",
            |it| it.browser_processes as u64,
            of_a_browser,
        ),
        (
            "bytes of memory of browsers",
            |it| it.browser_memory,
            512 << 20,
        ),
        ("files", |it| it.left as u64, browsers as u64 + 8),
    ];
    for (name, figure, more) in figures {
        let (before, after) = (most(first, figure), most(second, figure));
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        ensure!(
            after <= before + before / 10 + more,
            "{name} grew from {before} in the first half of the pages to {after} in the second: a leak"
        );
    }
    println!(
        "nothing leaks: no figure of the second half is above that of the first by more than a busy moment explains"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(memory: impl Fn(u64) -> u64) -> Vec<Look> {
        let looks = (1..=1000).map(|rendered| Look {
            rendered: rendered as usize,
            memory: memory(rendered),
            ..Look::default()
        });
        looks.collect()
    }

    #[test]
    fn memory_that_grows_with_the_pages_is_a_leak_and_a_busy_moment_is_not() {
        let leak = looks(|page| (100 << 20) + page * (1 << 20));
        assert!(judge(&leak, 2).is_err());
        let busy = looks(|page| (100 << 20) + (page % 7) * (10 << 20));
        assert!(judge(&busy, 2).is_ok());
    }
}

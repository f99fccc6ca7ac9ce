//! `opilio demo` and `opilio selftest`: a crawl of the demo web, which is served until the crawl ends.

use std::fs;
use std::future;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use opilio_browser::{BrowserError, BrowserExecutable, BrowserSettings};
use opilio_crawl::{End, Order, ProfileSource, Summary, is_job};
use opilio_test_web::{Web, demo};

use crate::crawl::{StartConditions, component_cache, run_order};
use crate::summary::Resumption;
use crate::usage_error::UsageError;
use crate::{DemoArgs, exit, judge, terminal};

/// Profile of the selftest: the demo's profile with a longer time limit. The crawl ends when all pages that the checks need have
/// been visited, which can take longer than the demo on a busy machine.
const SELFTEST: &str = "extends = \"demo\"\nlimits.time = \"10m\"\n";

/// Minimum duration of the selftest's crawl: the time limit of the demo.
const SELFTEST_TIME: Duration = Duration::from_secs(15);

/// Interval between checks for missing visits after that time.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Crawls the demo web and suggests further commands.
pub(crate) async fn run(args: DemoArgs) -> Result<u8> {
    let quiet = args.display.quiet || args.display.json;
    let chromium = BrowserExecutable::find(&BrowserSettings::default()).await;
    let profile = match &chromium {
        Ok(_) => ProfileSource::Text {
            file: "demo-browser.toml".to_owned(),
            text: rendering(),
        },
        Err(_) => ProfileSource::Builtin("demo".to_owned()),
    };
    let (code, _, done) = crawl(&args, profile, async |_| future::pending().await).await?;
    if let (false, Some(summary)) = (quiet, done) {
        terminal::out!("{}", next_steps(&summary, chromium.err()));
    }
    Ok(code)
}

/// Crawls the demo web and checks the archive.
pub(crate) async fn selftest(args: DemoArgs) -> Result<u8> {
    let profile = ProfileSource::Text {
        file: "selftest.toml".to_owned(),
        text: SELFTEST.to_owned(),
    };
    let (code, web, done) = crawl(&args, profile, wait_for_visits).await?;
    let Some(summary) = done else { return Ok(code) };
    if let End::Halted(_) = summary.end {
        return Ok(code);
    }
    let judgement = judge::judge(&summary, &web).context("cannot read the archive back")?;
    if !args.display.quiet {
        terminal::out!("{judgement}");
    }
    Ok(if judgement.is_sound() {
        exit::OK
    } else {
        exit::FAILED
    })
}

/// Waits for the minimum duration of a selftest, and for the visits that its checks need.
async fn wait_for_visits(web: &Web) {
    tokio::time::sleep(SELFTEST_TIME).await;
    while !demo::is_visited(web) {
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

/// Crawls the demo web with this profile, until a limit is reached or `enough` completes.
async fn crawl(
    args: &DemoArgs,
    profile: ProfileSource,
    enough: impl AsyncFnOnce(&Web),
) -> Result<(u8, Web, Option<Summary>)> {
    if let Some(job) = args.job.as_deref().filter(|job| is_job(job)) {
        let problem = format!(
            "{} contains a job, and the demo cannot resume a job, because its web is gone; pass another directory",
            job.display()
        );
        return Err(UsageError::new(problem).into());
    }
    let web = demo::web()
        .serve()
        .await
        .context("cannot serve the demo web on 127.0.0.1")?;
    let order = Order {
        profile,
        seeds: demo::seeds(&web),
        contact_url: None,
        job: Some(args.job.clone().unwrap_or_else(temporary_job)),
        component_cache: component_cache(),
    };
    let done = run_order(
        &order,
        StartConditions::default(),
        Resumption::Impossible,
        args.display,
        None,
        enough(&web),
    );
    let done = done.await?;
    Ok((done.code, web, done.summary))
}

/// Returns a directory that does not exist: the demo web gets another port each time, so a job cannot be resumed.
fn temporary_job() -> PathBuf {
    let now = jiff::Timestamp::now().as_millisecond();
    std::env::temp_dir().join(format!("opilio-demo-{now}-{}", std::process::id()))
}

/// Profile of the demo if Chromium is installed: it renders the page that needs a browser. It has no page behaviours, because the
/// demo web does not need them.
fn rendering() -> String {
    // Chromium's sandbox refuses root. The only page is our own.
    let is_root = fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
    let sandbox = !is_root;
    format!(
        "extends = \"demo\"\nbrowser.render = \"auto\"\nbrowser.sandbox = {sandbox}\nstacks.behave = []\n"
    )
}

/// The outcome of the page that needs a browser.
#[derive(Debug, PartialEq)]
enum Outcome<'l> {
    Rendered,
    /// The crawl tried to render the page and failed, with this annotation.
    NotRendered(&'l str),
    /// The crawl ended before a browser opened the page.
    NotReached,
}

/// Reads the outcome from the lines of `crawl.log`. No other page needs a browser.
fn outcome(log: &str) -> Outcome<'_> {
    let annotations = log
        .lines()
        .filter_map(|line| line.split_whitespace().nth(11));
    let mut outcome = Outcome::NotReached;
    for annotation in annotations.flat_map(|it| it.split(',')) {
        match annotation.split(':').next() {
            Some("rendered") => return Outcome::Rendered,
            Some("notRendered") => outcome = Outcome::NotRendered(annotation),
            _ => {}
        }
    }
    outcome
}

fn next_steps(summary: &Summary, no_chromium: Option<BrowserError>) -> String {
    let job = summary.job.display();
    // The path of the program as the user typed it, so that the printed commands can be pasted.
    let opilio = std::env::args()
        .next()
        .unwrap_or_else(|| "opilio".to_owned());
    let log = fs::read_to_string(summary.job.join("logs/crawl.log")).unwrap_or_default();
    let rendered = match (no_chromium, outcome(&log)) {
        (None, Outcome::Rendered) => format!(
            "  grep rendered {job}/logs/crawl.log
      prices.html is empty until its script has run: Chromium rendered it, and what it requested and links to was archived"
        ),
        (None, Outcome::NotRendered(annotation)) => format!(
            "  less {job}/logs/alerts.log
      prices.html is empty until its script has run, and Chromium did not render it ({annotation}): this log has the reason"
        ),
        (None, Outcome::NotReached) => {
            "  prices.html is empty until its script has run, and the demo ended before Chromium rendered it".to_owned()
        }
        (Some(problem), _) => format!(
            "  prices.html is empty until its script has run, and was archived without its prices
      {problem}; then `{opilio} demo` renders it"
        ),
    };
    format!(
        "
Next steps:
  less {job}/logs/crawl.log
      one line per visit: the news changes, the time of day in clock.html does not count
{rendered}
  warcio index {job}/warcs/*.gz
      any WARC tool reads the archive
  {opilio} selftest
      the same crawl; its archive is checked record by record
  {opilio} crawl https://example.org/ --contact-url https://your.site/crawler
      a real site; Ctrl-C stops the crawl, the same command resumes it
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(annotations: &[&str], expected: Outcome<'_>) {
        let line = |annotations: &&str| {
            format!(
                "2026-11-27T12:00:00.000Z 200 99 http://a.test/ L - text/html #001 20261127120000000+7 sha1:A - {annotations}\n"
            )
        };
        let log: String = annotations.iter().map(line).collect();
        assert_eq!(outcome(&log), expected, "{log}");
    }

    #[test]
    fn rendered_annotation_decides_the_outcome() {
        let filter = "render:needs-browser:110:nothing";
        check(&["-", filter], Outcome::NotReached);
        let whole = format!("{filter},rendered");
        check(&["-", &whole, "1ver"], Outcome::Rendered);
        check(&["rendered:notIdle"], Outcome::Rendered);
        let refused = "notRendered:sandboxRefused";
        let line = format!("{filter},{refused},1ver");
        check(&[&line, "-"], Outcome::NotRendered(refused));
        check(&[&line, "rendered"], Outcome::Rendered);
    }
}

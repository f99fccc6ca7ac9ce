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

/// Profile of the selftest: that of the demo, but its crawl ends when the checks have what they need. A busy machine needs more
/// time for that than the demo takes.
const SELFTEST: &str = "extends = \"demo\"\nlimits.time = \"10m\"\n";

/// Duration of the selftest's crawl, if all is visited by then: that of the demo.
const SELFTEST_TIME: Duration = Duration::from_secs(15);

/// Interval of looks whether all is visited, after that.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

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
        terminal::out!("{}", what_next(&summary, chromium.err()));
    }
    Ok(code)
}

/// Crawls the demo web and checks the archive.
pub(crate) async fn selftest(args: DemoArgs) -> Result<u8> {
    let profile = ProfileSource::Text {
        file: "selftest.toml".to_owned(),
        text: SELFTEST.to_owned(),
    };
    let (code, web, done) = crawl(&args, profile, all_is_visited).await?;
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

/// Waits for the time of a selftest to pass, and for the visits that its checks need.
async fn all_is_visited(web: &Web) {
    tokio::time::sleep(SELFTEST_TIME).await;
    while !demo::is_visited(web) {
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// Crawls the demo web with this profile, until a limit is reached or `enough` ends.
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

/// Profile of the demo where Chromium is installed: it renders the page that needs it. Behaviours have nothing to do there.
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
    /// With this annotation.
    NotRendered(&'l str),
    /// No browser had it before the end.
    NotReached,
}

/// Reads the outcome in the lines of `crawl.log`. No other page needs a browser.
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

fn what_next(summary: &Summary, no_chromium: Option<BrowserError>) -> String {
    let job = summary.job.display();
    // The command as it was called, so that the lines can be pasted.
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
    fn a_page_was_rendered_if_a_line_says_so() {
        let asked = "render:needs-browser:110:nothing";
        check(&["-", asked], Outcome::NotReached);
        let whole = format!("{asked},rendered");
        check(&["-", &whole, "1ver"], Outcome::Rendered);
        check(&["rendered:notIdle"], Outcome::Rendered);
        let refused = "notRendered:sandboxRefused";
        let line = format!("{asked},{refused},1ver");
        check(&[&line, "-"], Outcome::NotRendered(refused));
        check(&[&line, "rendered"], Outcome::Rendered);
    }
}

//! `opilio demo` and `opilio selftest`: a crawl of the demo web, which is served until the crawl ends.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use opilio_crawl::{End, Order, ProfileSource, Summary, is_job};
use opilio_test_web::{Web, demo};

use crate::crawl::{Opening, component_cache, run_order};
use crate::summary::Sequel;
use crate::{DemoArgs, exit, judge, terminal};

/// Crawls the demo web and suggests further commands.
pub(crate) async fn run(args: DemoArgs) -> Result<u8> {
    let quiet = args.display.quiet || args.display.json;
    let (code, _, done) = crawl(&args).await?;
    if let (false, Some(summary)) = (quiet, done) {
        terminal::out!("{}", what_next(&summary));
    }
    Ok(code)
}

/// Crawls the demo web and checks the archive.
pub(crate) async fn selftest(args: DemoArgs) -> Result<u8> {
    let (code, web, done) = crawl(&args).await?;
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

async fn crawl(args: &DemoArgs) -> Result<(u8, Web, Option<Summary>)> {
    if let Some(job) = args.job.as_deref().filter(|job| is_job(job)) {
        bail!(
            "{} contains a job, and the demo cannot resume a job, because its web is gone; pass another directory",
            job.display()
        );
    }
    let web = demo::web()
        .serve()
        .await
        .context("cannot serve the demo web on 127.0.0.1")?;
    let order = Order {
        profile: ProfileSource::Builtin("demo".to_owned()),
        seeds: demo::seeds(&web),
        contact_url: None,
        job: Some(args.job.clone().unwrap_or_else(temporary_job)),
        component_cache: component_cache(),
    };
    let done = run_order(&order, Opening::default(), Sequel::None, args.display, None).await?;
    Ok((done.code, web, done.summary))
}

/// Returns a directory that does not exist: the demo web gets another port each time, so a job cannot be resumed.
fn temporary_job() -> PathBuf {
    let now = jiff::Timestamp::now().as_millisecond();
    std::env::temp_dir().join(format!("opilio-demo-{now}-{}", std::process::id()))
}

fn what_next(summary: &Summary) -> String {
    let job = summary.job.display();
    // The command as it was called, so that the lines can be pasted.
    let opilio = std::env::args()
        .next()
        .unwrap_or_else(|| "opilio".to_owned());
    format!(
        "
Next steps:
  less {job}/logs/crawl.log
      one line per visit: the news changes, the time of day in clock.html does not count
  warcio index {job}/warcs/*.gz
      any WARC tool reads the archive
  {opilio} selftest
      the same crawl; its archive is checked record by record
  {opilio} crawl https://example.org/ --contact-url https://your.site/crawler
      a real site; Ctrl-C stops the crawl, the same command resumes it
"
    )
}

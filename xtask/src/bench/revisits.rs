//! `cargo xtask bench revisits`: compares the cost of a visit that finds an unchanged page with that of a new page.
//!
//! The documentation packages are crawled with `strategy = "fixed"`: once, with an hour between visits, and several times, with
//! a second. What the second crawl costs beyond the first is the cost of its repeated visits. They are measured twice: with a
//! server that answers 304, and with one that sends the same bytes again.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use super::cost::{Cost, empty, median};
use super::opilio;
use super::web::{Documentation, WebProcess};
use crate::{command, repository};

/// Options of `cargo xtask bench revisits`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Alternating runs; the medians are printed.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Crawl with this binary instead of building one.
    #[arg(long, value_name = "FILE")]
    opilio: Option<PathBuf>,
    /// Documents that are fetched, as a multiple of the pages.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..))]
    visits: u64,
}

/// Visits of a crawl, by what they found.
struct Visits {
    new: u64,
    unchanged: u64,
}

/// Runs the command.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) fn run(options: &Options) -> Result<()> {
    let binary = match &options.opilio {
        Some(binary) => binary.clone(),
        None => command::release("opilio")?,
    };
    let folder = repository::root().join("target/bench/revisits");
    for (server, validators, annotation) in [
        ("answers 304", true, "duplicate:server-not-modified"),
        ("sends the same bytes", false, "duplicate:digest"),
    ] {
        let web = WebProcess::documentation(&Documentation {
            copies: 1,
            validators,
        })?;
        let crawl = |wait: &str, documents: &str| -> Result<Cost> {
            empty(&folder)?;
            let more = format!(
                "strategy = \"fixed\"\nrevisit.fixed-wait = \"{wait}\"\nlimits.documents = {documents}"
            );
            let profile = opilio::profile(&web.seeds, &more);
            opilio::crawl(Command::new(&binary), &folder, &profile)
        };
        // A crawl with the strategy `snapshot` counts the pages, and compiles components.
        empty(&folder)?;
        let profile = opilio::profile(&web.seeds, "");
        opilio::crawl(Command::new(&binary), &folder, &profile)?;
        let pages = opilio::urls(&folder)?.len() as u64;
        let (mut once, mut often) = (Vec::new(), Vec::new());
        let mut visits = None;
        for _ in 0..options.rounds {
            once.push(crawl("1h", &(pages - 2).to_string())?);
            often.push(crawl("1s", &(options.visits * pages).to_string())?);
            visits = Some(count(&folder, annotation)?);
        }
        let (once, often) = (median(&once), median(&often));
        let Some(Visits { new, unchanged }) = visits else {
            continue;
        };
        ensure!(unchanged > 0, "no visit found an unchanged page ({server})");
        let new_ms = once.cpu_ms_per_page();
        let unchanged_ms = (1e3 * often.cpu_seconds - new as f64 * new_ms) / unchanged as f64;
        println!(
            "server {server}: {new} new pages at {new_ms:.3} ms of processor time, {unchanged} unchanged at {unchanged_ms:.3} ms, \
             ratio {:.2}",
            unchanged_ms / new_ms
        );
    }
    Ok(())
}

/// Counts the visits in the log of the crawl in this folder.
fn count(folder: &Path, annotation: &str) -> Result<Visits> {
    let log = fs::read_to_string(folder.join("job/logs/crawl.log"))?;
    let unchanged = log.lines().filter(|line| line.contains(annotation)).count() as u64;
    let urls = opilio::urls(folder)?;
    let new = urls.iter().collect::<HashSet<_>>().len() as u64;
    Ok(Visits { new, unchanged })
}

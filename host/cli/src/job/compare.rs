//! `opilio job compare`: the visits of two jobs or checkpoints.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use indicatif::HumanCount;
use opilio_control::{
    Author, ComparedCrawl, ComparedVisit, CrawlComparison, DifferentUri, UriDifference, compare,
    status_words,
};

use super::send::{refused, user};
use crate::job_directory::existing_job;
use crate::named_values::one_of;
use crate::{exit, terminal};

/// Rows of a table of counts that people see.
const ROWS_SHOWN: usize = 20;

/// The command line.
#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    /// First crawl: a job, or the directory of a checkpoint.
    #[arg(value_name = "A", value_parser = existing_job())]
    a: PathBuf,
    /// Second crawl: a job, or the directory of a checkpoint.
    #[arg(value_name = "B", value_parser = existing_job())]
    b: PathBuf,
    /// List the URIs of this kind instead of the counts.
    #[arg(long, value_name = "KIND", value_parser = one_of(UriDifference::ALL.map(|kind| (kind, kind.name()))))]
    list: Option<UriDifference>,
    /// Print JSON: one object, or with --list one object a line.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &CompareArgs) -> Result<u8> {
    let by = Author {
        user: user(),
        pid: std::process::id(),
    };
    let mut written = Ok(());
    let mut each = |kind: UriDifference, uri: &DifferentUri| {
        if args.list == Some(kind) && written.is_ok() {
            written = print(uri, args.json);
        }
    };
    let compared = match args.list {
        // A spinner would stand among the lines.
        Some(_) => compare(&args.a, &args.b, &by, &mut each),
        None => terminal::spinning("comparing", || compare(&args.a, &args.b, &by, &mut each)),
    };
    written?;
    let comparison = match compared {
        Ok(comparison) => comparison,
        Err(problem) => return Ok(refused(&problem)),
    };
    match (args.list, args.json) {
        (Some(_), _) => {}
        (None, true) => terminal::outln!("{}", serde_json::to_string(&comparison)?),
        (None, false) => terminal::out!("{}", lines(&comparison)),
    }
    Ok(exit::OK)
}

fn print(uri: &DifferentUri, json: bool) -> Result<()> {
    if json {
        terminal::outln!("{}", serde_json::to_string(uri)?);
        return Ok(());
    }
    let status = |visit: &Option<ComparedVisit>| match visit {
        Some(visit) => visit.status.to_string(),
        None => "-".to_owned(),
    };
    terminal::outln!("{:>5} {:>5}  {}", status(&uri.a), status(&uri.b), uri.uri);
    Ok(())
}

/// Returns the counts as text.
fn lines(comparison: &CrawlComparison) -> String {
    let CrawlComparison { a, b, .. } = comparison;
    let mut text = format!("a  {}\nb  {}\n\n", side(a), side(b));
    let number = |count: u64| HumanCount(count).to_string();
    for (name, count) in [
        ("visited by a only", comparison.only_a),
        ("visited by b only", comparison.only_b),
        ("visited by both", comparison.both),
        ("  with other content", comparison.changed),
        ("  with another status", comparison.other_status),
    ] {
        text += &format!("{name:<24}{:>12}\n", number(count));
    }
    let statuses = comparison.statuses.iter().map(|row| {
        let words = match row.status {
            100.. => String::new(),
            status => format!(" {}", status_words(status)),
        };
        (format!("{}{words}", row.status), row.a, row.b)
    });
    text += &table("status", statuses);
    let types = comparison.media_types.iter();
    text += &table(
        "media type",
        types.map(|row| (row.media_type.clone(), row.a, row.b)),
    );
    let hosts = comparison.hosts.iter();
    text += &table(
        "host with other counts",
        hosts.map(|row| (row.host.clone(), row.a, row.b)),
    );
    text
}

fn side(crawl: &ComparedCrawl) -> String {
    let state = match &crawl.checkpoint {
        Some(checkpoint) => format!(
            "checkpoint {checkpoint} of {}",
            crawl.at.strftime("%Y-%m-%d %H:%M:%S UTC")
        ),
        None => "as of now".to_owned(),
    };
    format!(
        "{}, {state}: {} URIs visited, {} not visited",
        crawl.job,
        HumanCount(crawl.visited),
        HumanCount(crawl.unvisited)
    )
}

/// Returns a table of counts; empty without rows.
fn table(name: &str, rows: impl Iterator<Item = (String, u64, u64)>) -> String {
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{:>12} {:>12} {:>13}  {name}\n", "a", "b", "b - a");
    for (value, a, b) in rows.iter().take(ROWS_SHOWN) {
        let sign = if b >= a { "+" } else { "-" };
        let difference = format!("{sign}{}", HumanCount(b.abs_diff(*a)));
        text += &format!(
            "{:>12} {:>12} {difference:>13}  {}\n",
            HumanCount(*a).to_string(),
            HumanCount(*b).to_string(),
            terminal::line(value)
        );
    }
    if rows.len() > ROWS_SHOWN {
        let more = rows.len() - ROWS_SHOWN;
        text += &format!("{:>40}  {more} more; --json has all\n", "");
    }
    text
}

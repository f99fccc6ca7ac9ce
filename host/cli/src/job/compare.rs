//! `opilio job compare`: the visits of two jobs or checkpoints.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use indicatif::HumanCount;
use opilio_control::{
    Author, ComparedCrawl, ComparedVisit, CrawlComparison, DifferentUri, UriDifference, compare,
    is_fetched, labelled_status,
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
        // No spinner: it would be mixed with the lines.
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
    let words = failures(uri);
    let line = format!(
        "{:>5} {:>5}  {}{words}",
        status(&uri.a),
        status(&uri.b),
        uri.uri
    );
    terminal::outln!("{line}");
    Ok(())
}

/// Returns the statuses of failed visits with their words, in parentheses; empty if both visits succeeded.
fn failures(uri: &DifferentUri) -> String {
    let statuses = [&uri.a, &uri.b].into_iter().flatten();
    let failed = statuses.map(|visit| visit.status);
    let mut failed: Vec<i32> = failed.filter(|status| !is_fetched(*status)).collect();
    failed.dedup();
    let words: Vec<String> = failed.into_iter().map(labelled_status).collect();
    match words.is_empty() {
        true => String::new(),
        false => format!("  ({})", words.join(", ")),
    }
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
    let statuses = comparison.statuses.iter();
    text += &table(
        "status",
        statuses.map(|row| (labelled_status(row.status), row.a, row.b)),
    );
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_visit_has_its_status_in_words_after_its_uri() {
        let visit = |status: Option<i32>| {
            let status = status?;
            serde_json::from_value(serde_json::json!({ "status": status })).ok()
        };
        let check = |a, b, expected: &str| {
            let (a, b) = (visit(a), visit(b));
            let uri = "http://a.org/".to_owned();
            assert_eq!(failures(&DifferentUri { uri, a, b }), expected);
        };
        check(Some(200), None, "");
        check(Some(200), Some(404), "  (404 not found)");
        check(Some(404), Some(404), "  (404 not found)");
        let both = "  (-2 no connection to the server, 503 service unavailable)";
        check(Some(-2), Some(503), both);
    }
}

//! `opilio job hosts`: hosts with documents, bytes, errors and freshness.

use anyhow::Result;
use clap::Args;
use indicatif::{HumanBytes, HumanCount};
use opilio_control::{Command, HostReport, HostSelection, HostSort, HostTotals};

use super::JobTarget;
use super::send::ask;
use crate::named_values::one_of;
use crate::terminal;

/// Columns of the table.
pub(crate) const COLUMNS: [&str; 8] = [
    "host",
    "documents",
    "bytes",
    "errors",
    "robots.txt",
    "freshness",
    "overdue",
    "last visit",
];

/// The command line.
#[derive(Debug, Args)]
pub(super) struct HostsArgs {
    #[command(flatten)]
    target: JobTarget,
    /// Order of the list. All orders except by name begin with the largest.
    #[arg(long, value_name = "ORDER", default_value = "bytes", value_parser = one_of(HostSort::ALL.map(|one| (one, one.name()))))]
    sort: HostSort,
    /// Reverse the order.
    #[arg(long)]
    reverse: bool,
    /// List only hosts whose names contain this text.
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// List only hosts with error responses or failed visits.
    #[arg(long)]
    errors: bool,
    /// Start after this cursor, which the previous page of the list printed.
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// Maximum number of hosts to list.
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u64,
}

/// Runs the command.
pub(super) fn run(args: HostsArgs) -> Result<u8> {
    let command = Command::Hosts {
        which: HostSelection {
            sort: args.sort,
            reverse: args.reverse,
            search: args.search,
            with_errors: args.errors,
        },
        after: args.after,
        limit: args.limit,
    };
    ask(&args.target, command)
}

/// Returns the row of a host.
pub(crate) fn row(host: &HostReport) -> Vec<String> {
    let counts = &host.counts;
    let pages = host.pages.as_ref();
    let freshness = pages.and_then(|pages| pages.freshness);
    vec![
        terminal::line(&host.host),
        HumanCount(host.documents).to_string(),
        HumanBytes(host.bytes).to_string(),
        HumanCount(host.errors).to_string(),
        HumanCount(counts.robots).to_string(),
        freshness.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0)),
        pages.map_or_else(|| "-".to_owned(), |pages| HumanCount(pages.due).to_string()),
        counts.last_visit.map_or_else(
            || "-".to_owned(),
            |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        ),
    ]
}

/// Returns the line with the sums.
pub(crate) fn totals(totals: &HostTotals) -> String {
    format!(
        "{} hosts: {} documents, {}, {} errors",
        HumanCount(totals.hosts),
        HumanCount(totals.documents),
        HumanBytes(totals.bytes),
        HumanCount(totals.errors)
    )
}

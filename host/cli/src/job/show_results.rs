//! Answers about a job's results, for people: hosts, alerts, counts.

use std::io::{self, Write};

use indicatif::{HumanBytes, HumanCount};
use opilio_control::{HostReport, HostTotals, labelled_status};
use opilio_crawl::{Alert, Breakdown};

use crate::figures::numbered;
use crate::terminal;

/// Names of the columns of [`host_row`].
pub(crate) const HOST_COLUMNS: [&str; 8] = [
    "host",
    "documents",
    "bytes",
    "errors",
    "robots.txt",
    "freshness",
    "overdue",
    "last visit",
];

/// Returns the row of a host.
pub(crate) fn host_row(host: &HostReport) -> Vec<String> {
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

/// Returns the line with the sums of hosts.
pub(crate) fn host_totals(totals: &HostTotals) -> String {
    format!(
        "{}: {}, {}, {}",
        numbered(totals.hosts, "host"),
        numbered(totals.documents, "document"),
        HumanBytes(totals.bytes),
        numbered(totals.errors, "error")
    )
}

/// Prints alerts for people.
pub(crate) fn alerts(alerts: &[Alert], out: &mut dyn Write) -> io::Result<()> {
    if alerts.is_empty() {
        return writeln!(out, "no active alerts, no past alerts");
    }
    for alert in alerts {
        let since = alert.since.strftime("%Y-%m-%d %H:%M:%S");
        let state = match alert.until {
            None if alert.acknowledged.is_some() => {
                format!("{}, acknowledged", alert.severity.name())
            }
            None => alert.severity.name().to_owned(),
            Some(until) => format!("ended {}", until.strftime("%H:%M:%S")),
        };
        // Some alerts concern the whole crawl and have no subject.
        let what = format!("{} {}", alert.kind.name(), alert.subject);
        let line = format!(
            "{since}  {state:<22}  {}: {}",
            what.trim_end(),
            alert.message
        );
        writeln!(out, "{}", terminal::line(&line))?;
    }
    Ok(())
}

/// Prints the results of a job for people.
pub(crate) fn breakdown(breakdown: &Breakdown, out: &mut dyn Write) -> io::Result<()> {
    let totals = &breakdown.totals;
    writeln!(
        out,
        "{} visits, {}, {} hosts",
        totals.all.uris,
        HumanBytes(totals.all.bytes),
        totals.hosts
    )?;
    for row in &breakdown.statuses {
        let status = labelled_status(row.status);
        writeln!(out, "{:>10}  {status}", row.amount.uris)?;
    }
    for row in &breakdown.media_types {
        let name = terminal::line(&row.media_type);
        writeln!(
            out,
            "{:>10}  {name}  {}",
            row.amount.uris,
            HumanBytes(row.amount.bytes)
        )?;
    }
    for row in &breakdown.hosts {
        let host = terminal::line(&row.host);
        let amount = row.counts.responses;
        writeln!(
            out,
            "{:>10}  {host}  {}",
            amount.uris,
            HumanBytes(amount.bytes)
        )?;
    }
    Ok(())
}

//! `opilio job report`, `alerts`, `metrics`: the results of a job, and its problems.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use indicatif::HumanBytes;
use opilio_control::{Author, Command, ReportKind};
use opilio_control::{Figures, labelled_status, metrics};
use opilio_crawl::{Alert, AlertKind, Breakdown, name_of};

use super::JobTarget;
use super::send::{self, ask};
use crate::named_values::one_of;
use crate::{exit, terminal};

/// Of the command `report`.
#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    #[command(flatten)]
    target: JobTarget,
    /// Kind of the report.
    #[arg(value_name = "KIND", default_value = "crawl", value_parser = one_of(ReportKind::ALL.map(|kind| (kind, kind.name()))))]
    kind: ReportKind,
}

/// Prints a report.
pub(super) fn report(args: &ReportArgs) -> Result<u8> {
    let command = Command::Report {
        report: args.kind,
        text: !args.target.json,
    };
    ask(&args.target, command)
}

/// Prints the metrics of a job in the format of Prometheus.
pub(super) fn figures(target: &JobTarget) -> Result<u8> {
    let figures = match Figures::ask(&target.job, &Author::default()) {
        Ok(figures) => figures,
        Err(problem) => return Ok(send::refused(&problem)),
    };
    let name = name_of(&target.job);
    if target.json {
        let object = serde_json::json!({
            "status": figures.status,
            "breakdown": figures.breakdown,
            "plugins": figures.plugins,
        });
        terminal::outln!("{object}");
    } else {
        terminal::out!("{}", metrics([(name.as_str(), &figures)]));
    }
    Ok(exit::OK)
}

/// The command line of `opilio job alerts`.
#[derive(Debug, Args)]
pub(super) struct AlertsArgs {
    #[command(flatten)]
    pub(super) target: JobTarget,
    /// Acknowledge alerts of this kind: they do not count as open until they become worse or are raised again.
    #[arg(long, value_name = "KIND", value_parser = one_of(AlertKind::ALL.map(|kind| (kind, kind.name()))))]
    acknowledge: Option<AlertKind>,
    /// Acknowledge only the alert about this subject, such as a plugin or a folder.
    #[arg(long, value_name = "SUBJECT", requires = "acknowledge")]
    subject: Option<String>,
}

impl AlertsArgs {
    /// Returns the command for the job.
    pub(super) fn command(&self) -> Command {
        match self.acknowledge {
            None => Command::Alerts,
            Some(kind) => Command::Acknowledge {
                kind,
                subject: self.subject.clone(),
            },
        }
    }
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

//! `opilio job report`, `alerts`, `metrics`: the results of a job, and its problems.

use anyhow::Result;
use clap::Args;
use opilio_control::{Author, Command, Figures, ReportKind, metrics};
use opilio_crawl::{AlertKind, name_of};

use super::send::{self, send};
use super::target::JobTarget;
use crate::named_values::one_of;
use crate::{exit, terminal};

/// The command line of `opilio job report`.
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
    send(&args.target, command)
}

/// Prints the metrics of a job in the format of Prometheus.
pub(super) fn figures(target: &JobTarget) -> Result<u8> {
    let figures = match Figures::query(&target.job, &Author::default()) {
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

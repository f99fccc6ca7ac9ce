//! `opilio job verify`: a comparison of archive, indexes, log and frontier of a job.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use indicatif::HumanCount;
use opilio_control::{Author, Discrepancy, DiscrepancyKind, VerificationTotals};
use serde_json::json;

use super::send::{refused, user};
use crate::figures::numbered;
use crate::job_directory::existing_job;
use crate::{exit, terminal};

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
The command reads every archive file three times. Of the archive files, --repair changes only those that a killed process
has left open.

Exit codes: 0 no discrepancy, or all repaired; 1 a discrepancy remains; 2 not a job.")]
pub(super) struct VerifyArgs {
    /// Directory of the job. No process may run the job meanwhile.
    #[arg(value_name = "JOB", value_parser = existing_job())]
    job: PathBuf,
    /// Repair discrepancies: write missing indexes and missing lines of crawl.log, finish files that were left open, and
    /// fetch again the URIs whose captures are lost.
    #[arg(long)]
    repair: bool,
    /// Print JSON: one object per discrepancy, then a summary.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &VerifyArgs) -> Result<u8> {
    let by = Author {
        user: user(),
        pid: std::process::id(),
    };
    let spinner = terminal::spinner("verifying archive, indexes, log and frontier");
    let mut say = |found: Discrepancy| {
        spinner.suspend(|| match args.json {
            true => terminal::outln!("{}", json!(found)),
            false => terminal::outln!("{}", terminal::line(&line(&found))),
        });
    };
    let verified = opilio_control::verify(&args.job, &by, args.repair, &mut say);
    spinner.finish_and_clear();
    let verified = match verified {
        Ok(verified) => verified,
        Err(problem) => return Ok(refused(&problem)),
    };
    match args.json {
        true => terminal::outln!("{}", json!(verified)),
        false => terminal::outln!("{}", summary(&verified)),
    }
    Ok(match verified.problems > verified.repaired {
        true => exit::FAILED,
        false => exit::OK,
    })
}

/// Returns a discrepancy as a line.
pub(crate) fn line(found: &Discrepancy) -> String {
    let what = match found.kind {
        DiscrepancyKind::ArchiveOpen => "was left open",
        DiscrepancyKind::ArchiveDamaged => "is damaged",
        DiscrepancyKind::ArchiveMissing => "is missing",
        DiscrepancyKind::IndexMissing => "is missing",
        DiscrepancyKind::IndexWrong => "does not match its archive file",
        DiscrepancyKind::IndexLeft => "is left over from a finished archive file",
        DiscrepancyKind::LineMissing => "has no line in crawl.log",
        DiscrepancyKind::RecordMissing => "has a line in crawl.log, but no record in the archive",
        DiscrepancyKind::LineUnreadable => "is not a valid line of crawl.log",
        DiscrepancyKind::CaptureMissing => {
            "has no record in the archive, but the frontier knows a capture"
        }
        DiscrepancyKind::Frontier => "is inconsistent in the frontier's store",
    };
    let detail = match found.detail.as_str() {
        "" => String::new(),
        detail => format!(": {detail}"),
    };
    let repaired = if found.is_repaired { "; repaired" } else { "" };
    format!("{} {what}{detail}{repaired}", found.place)
}

fn summary(verified: &VerificationTotals) -> String {
    let handed_over = match verified.handed_over {
        0 => String::new(),
        files => format!(
            "\n{} handed over and not in the job; lines were not compared with records",
            numbered(files, "archive file")
        ),
    };
    format!(
        "{}, {}, {} of crawl.log, {}: {}, {} repaired{handed_over}",
        numbered(verified.files, "archive file"),
        numbered(verified.captures, "capture"),
        numbered(verified.lines, "line"),
        numbered(verified.uris, "URI"),
        numbered(verified.problems, "problem"),
        HumanCount(verified.repaired)
    )
}

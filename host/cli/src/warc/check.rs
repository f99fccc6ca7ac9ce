//! `opilio warc check`: checks that every record is complete, and that its digests match its bytes.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use opilio_archive::{CheckReport, RecordError, check};
use serde_json::json;

use super::row::bare;
use super::{answer, archives};
use crate::{exit, terminal};

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 no errors, 1 errors in at least one file, 2 error in the command line, or a file cannot be read.")]
pub(super) struct CheckArgs {
    /// Archives: files, directories of archives, or jobs.
    #[arg(required = true, value_name = "FILE|DIR|JOB")]
    files: Vec<PathBuf>,
    /// Print nothing about files without errors.
    #[arg(long)]
    quiet: bool,
    /// Print JSON: one object per error, and one per file.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &CheckArgs) -> Result<u8> {
    let mut out = answer();
    let mut code = exit::OK;
    for file in archives(&args.files)? {
        let what = format!("checking {}", file.display());
        let report = terminal::spinning(&what, || check(&file))?;
        if !report.is_sound() {
            code = exit::FAILED;
        }
        for fault in &report.faults {
            let line = match args.json {
                true => fault_as_json(&report, fault).to_string(),
                false => format!("{}: {fault}", file.display()),
            };
            writeln!(out, "{}", terminal::line(&line))?;
        }
        if args.json {
            writeln!(out, "{}", as_json(&report))?;
        } else if !(args.quiet && report.is_sound()) {
            writeln!(out, "{}", as_text(&report))?;
        }
        out.flush()?;
    }
    Ok(code)
}

fn as_text(report: &CheckReport) -> String {
    let listed = report.faults.len() as u64;
    let unlisted = match report.faults_found - listed {
        0 => String::new(),
        more => format!(" ({more} of them not listed)"),
    };
    format!(
        "{}: {} records, {} block and {} payload digests verified, {} errors{unlisted}",
        report.file.display(),
        report.records,
        report.block_digests,
        report.payload_digests,
        report.faults_found
    )
}

fn as_json(report: &CheckReport) -> serde_json::Value {
    json!({
        "file": report.file.display().to_string(),
        "records": report.records,
        "by_type": report.by_kind,
        "block_digests": report.block_digests,
        "payload_digests": report.payload_digests,
        "problems": report.faults_found,
    })
}

fn fault_as_json(report: &CheckReport, fault: &RecordError) -> serde_json::Value {
    json!({
        "file": report.file.display().to_string(),
        "offset": fault.offset,
        "id": fault.record_id.as_deref().map(bare),
        "problem": fault.kind.to_string(),
    })
}

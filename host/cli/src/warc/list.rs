//! `opilio warc ls`: the records of an archive, one a line.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::row::{Filter, Row};
use super::{answer, archives, each_record};
use crate::{exit, terminal};

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
Columns: offset and length in the file, type, date, HTTP status, media type, URI; - for a missing value.

Exit codes: 0 read to the end, 1 a record is damaged (records after it are listed), 2 error in the command line,
or a file cannot be read.")]
pub(super) struct ListArgs {
    /// Archives: files, directories of archives, or jobs.
    #[arg(required = true, value_name = "FILE|DIR|JOB")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    filter: Filter,
    /// Print JSON, one object per record.
    #[arg(long)]
    json: bool,
}

impl ListArgs {
    /// Checks the command line.
    pub(super) fn check(&self) -> Result<()> {
        self.filter.check()
    }
}

/// Runs the command.
pub(super) fn run(args: &ListArgs) -> Result<u8> {
    let files = archives(&args.files)?;
    let many = files.len() > 1;
    let mut out = answer();
    let mut named = None;
    let damaged = each_record(&files, |file, mut record| {
        if !args.filter.wants(record.headers()) {
            record.finish()?;
            return Ok(());
        }
        let row = Row::of(&mut record)?;
        let extent = record.finish()?;
        if !args.filter.wants_row(&row) {
            return Ok(());
        }
        if args.json {
            writeln!(
                out,
                "{}",
                terminal::lines(&row.as_json(file, extent).to_string())
            )?;
            return Ok(());
        }
        if many && named.as_deref() != Some(file) {
            writeln!(out, "{}:", file.display())?;
            named = Some(file.to_owned());
        }
        let length = match extent.shared {
            true => "-".to_owned(),
            false => extent.length.to_string(),
        };
        let status = row.status.map(|status| status.to_string());
        let line = format!(
            "{:>10} {length:>9} {:<8} {:<27} {:>3} {:<24} {}",
            extent.offset,
            row.headers.kind(),
            row.headers.first("WARC-Date").unwrap_or("-"),
            status.as_deref().unwrap_or("-"),
            row.media_type.as_deref().unwrap_or("-"),
            row.headers.target_uri().unwrap_or("-")
        );
        writeln!(out, "{}", terminal::line(&line))?;
        Ok(())
    })?;
    out.flush()?;
    Ok(match damaged {
        0 => exit::OK,
        _ => exit::FAILED,
    })
}

//! `opilio warc cat`: the payloads of many records.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use opilio_archive::Headers;

use super::row::{Filter, Row};
use super::{Content, archives, each_record, payload};
use crate::exit;

/// Longest end of a URI that goes into a file name, in characters.
const NAME_CHARS_MAX: usize = 80;

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --type, the command selects records with a payload: response, resource, conversion. It removes the content coding
(gzip).

Exit codes: 0 read to the end, 1 a record is damaged (reading continues after it), 2 error in the command line, or a file
cannot be read.")]
pub(super) struct CatArgs {
    /// Archives: files, directories of archives, or jobs.
    #[arg(required = true, value_name = "FILE|DIR|JOB")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    filter: Filter,
    /// Keep the content coding, as payload digests do.
    #[arg(long)]
    raw: bool,
    /// Write each payload to its own file in this directory, named by a number and the end of the URI.
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

impl CatArgs {
    /// Checks the command line.
    pub(super) fn check(&self) -> Result<()> {
        self.filter.check()
    }
}

/// Runs the command.
pub(super) fn run(args: &CatArgs) -> Result<u8> {
    let files = archives(&args.files)?;
    if let Some(to) = &args.to {
        fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    }
    let mut out = Content::to_stdout();
    let mut number = 0_u64;
    let damaged = each_record(&files, |_, mut record| {
        let headers = record.headers().clone();
        let has_payload = matches!(headers.kind(), "response" | "resource" | "conversion");
        let wanted = args.filter.wants(&headers) && (args.filter.names_types() || has_payload);
        if !wanted {
            record.finish()?;
            return Ok(());
        }
        let (row, start) = Row::with_start(&mut record)?;
        if !args.filter.wants_row(&row) {
            record.finish()?;
            return Ok(());
        }
        number += 1;
        match &args.to {
            None => {
                payload::each_piece(&mut record, &start, args.raw, &mut |bytes| out.write(bytes))?;
            }
            Some(to) => {
                let path = to.join(name(number, &headers));
                let cannot = || format!("cannot write {}", path.display());
                let mut file = File::create(&path).with_context(cannot)?;
                payload::each_piece(&mut record, &start, args.raw, &mut |bytes| {
                    file.write_all(bytes).with_context(cannot)
                })?;
            }
        }
        record.finish()?;
        Ok(())
    })?;
    out.finish()?;
    Ok(match damaged {
        0 => exit::OK,
        _ => exit::FAILED,
    })
}

/// Returns a file name that stays in its directory: the number, and the last part of the path.
fn name(number: u64, headers: &Headers) -> String {
    let uri = headers.target_uri().unwrap_or_default();
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let end = path.rsplit('/').next().unwrap_or_default();
    let plain = |c: char| match c {
        c if c.is_ascii_alphanumeric() || "-_.".contains(c) => c,
        _ => '_',
    };
    let end: String = end.chars().take(NAME_CHARS_MAX).map(plain).collect();
    match end.as_str() {
        "" => format!("{number:06}"),
        end => format!("{number:06}-{end}"),
    }
}

#[cfg(test)]
mod tests {
    use opilio_archive::Reader;

    use super::*;

    #[test]
    fn file_names_stay_in_the_directory() {
        let named = |uri: &str| {
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join("x.warc");
            let text = format!(
                "WARC/1.1\r\nWARC-Type: resource\r\nWARC-Target-URI: {uri}\r\nContent-Length: 0\r\n\r\n\r\n\r\n"
            );
            fs::write(&file, text).unwrap();
            let mut reader = Reader::open(&file).unwrap();
            let headers = reader.next_record().unwrap().unwrap().headers().clone();
            name(7, &headers)
        };
        assert_eq!(named("http://a/b/c.html?d/e"), "000007-c.html");
        assert_eq!(named("http://a/"), "000007");
        assert_eq!(named("http://a/.."), "000007-..");
        assert_eq!(named("http://a/%2e%2e\\x"), "000007-_2e_2e_x");
    }
}

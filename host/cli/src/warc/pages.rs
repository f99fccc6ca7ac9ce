//! `opilio warc pages`: the list of pages (`pages.jsonl`) of archives, also for packages.

mod title;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use jiff::Timestamp;
use opilio_archive::wacz::{LoadState, PackagePage, RenderedPage, is_page, pages_header};
use opilio_archive::{Fields, ReadError, Reader, StoredRecord, WARC_FIELDS};

use super::row::Row;
use super::{answer, finished};
use crate::{exit, terminal};

/// Longest metadata block that is searched for the role of a capture in the crawl.
const METADATA_BYTES_MAX: usize = 16 << 20;

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
Pages are HTML documents with status 200. Each has a line with id, url, ts and title; seeds, and the targets of their
redirects, have `\"seed\":true`. Pages that a browser rendered have `\"rendered\":true`, and the loadState of Browsertrix: 2,
or 3 if their text is archived. The format is that of pages/pages.jsonl in WACZ files (json-pages-1.0). Files that end in
.open are left out, because a crawl is writing them.")]
pub(super) struct PagesArgs {
    /// Archives: files, directories of archives, or jobs.
    #[arg(required = true, value_name = "FILE|DIR|JOB")]
    files: Vec<PathBuf>,
    /// Write to this file [default: standard output].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(args: &PagesArgs) -> Result<u8> {
    let files = finished(&args.files)?;
    let pages = terminal::spinning("reading the archives", || of(&files))?;
    match &args.output {
        None => write(&pages, answer())?,
        Some(path) => {
            let cannot = || format!("cannot write {}", path.display());
            let out = File::create(path).with_context(cannot)?;
            write(&pages, BufWriter::new(out)).with_context(cannot)?;
        }
    }
    Ok(exit::OK)
}

fn write(pages: &[PackagePage], mut out: impl Write) -> Result<()> {
    writeln!(out, "{}", pages_header("pages", "Pages"))?;
    for page in pages {
        writeln!(out, "{page}")?;
    }
    Ok(out.flush()?)
}

/// Returns the pages of archives, each with its capture, and which of them are seeds.
pub(crate) fn of(files: &[PathBuf]) -> Result<Vec<PackagePage>> {
    let mut pages = Vec::new();
    let mut seeds = HashSet::new();
    let mut rendered: HashMap<(String, String), LoadState> = HashMap::new();
    for file in files {
        let mut reader = Reader::open(file)?;
        while let Some(mut record) = reader.next_record().map_err(|e| unreadable(file, e))? {
            match record.headers().kind() {
                "response" => pages.extend(page(&mut record)?),
                "metadata" => {
                    let about = record.headers().first("WARC-Concurrent-To");
                    if let Some(about) = about.map(id_of)
                        && is_seed(&mut record)?
                    {
                        seeds.insert(about);
                    }
                }
                "resource" => {
                    let headers = record.headers();
                    let about = headers.target_uri().and_then(LoadState::of_record);
                    if let Some(((uri, state), date)) = about.zip(headers.date()) {
                        let known = rendered.entry((uri.to_owned(), page_time(date)));
                        let known = known.or_insert(state);
                        *known = state.max(*known);
                    }
                }
                _ => {}
            }
            record.finish().map_err(|e| unreadable(file, e))?;
        }
    }
    for page in &mut pages {
        page.seed = page.id.as_ref().is_some_and(|id| seeds.contains(id));
        // Records about a page have its date.
        let state = rendered.get(&(page.url.clone(), page.ts.clone()));
        page.rendered = state.map(|state| RenderedPage {
            rendered: true,
            load_state: *state,
        });
    }
    Ok(pages)
}

fn unreadable(file: &Path, problem: ReadError) -> anyhow::Error {
    anyhow::Error::new(problem).context(format!(
        "cannot read the pages of {}; `opilio warc check` lists its errors",
        file.display()
    ))
}

/// Returns the page of a response; none if the response is not a page.
fn page(record: &mut StoredRecord<'_>) -> Result<Option<PackagePage>> {
    let (row, start) = Row::with_start(record)?;
    if !is_page(row.status, row.media_type.as_deref()) {
        return Ok(None);
    }
    let headers = row.headers;
    let id = headers.first("WARC-Record-ID").map(id_of);
    let url = headers.target_uri().map(str::to_owned);
    let (Some(id), Some(url), Some(date)) = (id, url, headers.date()) else {
        return Ok(None);
    };
    Ok(Some(PackagePage {
        id: Some(id),
        url,
        ts: page_time(date),
        title: title::of(record, &start, row.content_type.as_deref())
            .context("cannot read a page")?,
        seed: false,
        rendered: None,
    }))
}

/// Formats a time for a list of pages: ISO 8601 with milliseconds.
fn page_time(date: Timestamp) -> String {
    format!("{date:.3}")
}

/// Whether a metadata record describes a seed, or a URI that redirects led to from a seed.
fn is_seed(record: &mut StoredRecord<'_>) -> Result<bool> {
    if record.headers().first("Content-Type") != Some(WARC_FIELDS) {
        return Ok(false);
    }
    let fields = Fields::parse(&record.block(METADATA_BYTES_MAX)?);
    let is_seed = fields.iter().any(|(name, value)| match name {
        "seed" => true,
        "hopsFromSeed" => !value.is_empty() && value.chars().all(|hop| hop == 'R'),
        _ => false,
    });
    Ok(is_seed)
}

/// Converts a record id to the id of a page: without brackets and scheme.
fn id_of(id: &str) -> String {
    let bare = id.trim_matches(['<', '>']);
    bare.strip_prefix("urn:uuid:").unwrap_or(bare).to_owned()
}

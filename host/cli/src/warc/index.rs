//! `opilio warc index`: the CDXJ of archives, for replay tools.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use opilio_archive::{CdxjCapture, CdxjEntry, forget_catalogues, index, index_path, write_index};

use super::{answer, archives, note};
use crate::exit;

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
The lines have the format of cdxj-indexer and are sorted: key, timestamp, and url, mime, status, digest, length, offset,
filename.

A revisit record with status 304 contains the headers that the server sent. pywb (2.10) sends only these headers to the
browser, which shows nothing. With an index made by --without-not-modified, pywb shows the unchanged page.")]
pub(super) struct IndexArgs {
    /// Archives: files, directories of archives, or jobs.
    #[arg(required = true, value_name = "FILE|DIR|JOB")]
    files: Vec<PathBuf>,
    /// Write one index of all archives to this file [default: standard output].
    #[arg(long, short, value_name = "FILE", conflicts_with = "beside")]
    output: Option<PathBuf>,
    /// Write an index next to each archive, under the name of the archive with the ending .cdxj.
    #[arg(long)]
    beside: bool,
    /// Leave out revisit records with status 304, for replay by pywb.
    #[arg(long)]
    without_not_modified: bool,
}

/// Runs the command.
pub(super) fn run(args: &IndexArgs) -> Result<u8> {
    let files = archives(&args.files)?;
    let mut all: Vec<String> = Vec::new();
    for file in &files {
        let mut entries = index(file).with_context(|| {
            format!(
                "cannot index {}; `opilio warc check` lists its errors",
                file.display()
            )
        })?;
        if args.without_not_modified {
            entries.retain(|entry| !is_not_modified(&entry.capture));
        }
        if args.beside {
            let path = index_path(file);
            write_index(&path, &entries)
                .with_context(|| format!("cannot write {}", path.display()))?;
            note(&format!("{}: {} captures", path.display(), entries.len()));
        } else {
            all.extend(entries.iter().map(CdxjEntry::to_string));
        }
    }
    if args.beside {
        forget_catalogues_of(&files)?;
        return Ok(exit::OK);
    }
    all.sort_unstable();
    match &args.output {
        None => write_lines(all.iter(), answer())?,
        Some(path) => {
            let cannot = || format!("cannot write {}", path.display());
            let out = File::create(path).with_context(cannot)?;
            write_lines(all.iter(), BufWriter::new(out)).with_context(cannot)?;
        }
    }
    Ok(exit::OK)
}

/// Removes the catalogues next to these files, whose indexes have changed; the crawl makes the catalogues anew.
pub(super) fn forget_catalogues_of(files: &[impl AsRef<Path>]) -> Result<()> {
    let files = files.iter().map(AsRef::as_ref);
    let folders: BTreeSet<_> = files.filter_map(Path::parent).collect();
    for folder in folders {
        // The parent of a bare file name is empty.
        let folder = match folder.as_os_str().is_empty() {
            true => Path::new("."),
            false => folder,
        };
        forget_catalogues(folder)
            .with_context(|| format!("cannot remove a catalogue in {}", folder.display()))?;
    }
    Ok(())
}

fn is_not_modified(capture: &CdxjCapture) -> bool {
    capture.is_revisit() && capture.status.as_deref() == Some("304")
}

fn write_lines(
    lines: impl Iterator<Item = impl std::fmt::Display>,
    mut out: impl Write,
) -> Result<()> {
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

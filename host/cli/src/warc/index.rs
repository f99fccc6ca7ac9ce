//! `opilio warc index`: the CDXJ of archives, for replay tools.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use opilio_archive::{CdxjEntry, MergedIndex, forget_catalogues, index, index_path, write_index};

use super::{answer, archives, archives_here, moved, note, note_left_out};
use crate::job_directory::known_job;
use crate::{exit, terminal};

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
    /// Merge the indexes next to the archives. Only archives without an index are read.
    #[arg(long, conflicts_with = "beside")]
    merge: bool,
    /// Leave out revisit records with status 304, for replay by pywb.
    #[arg(long)]
    without_not_modified: bool,
}

/// Runs the command.
pub(super) fn run(args: &IndexArgs) -> Result<u8> {
    let files = match args.merge {
        true => archives_here(&args.files)?,
        false => archives(&args.files)?,
    };
    if args.beside {
        for file in &files {
            let (entries, path) = (args.entries(file)?, index_path(file));
            write_index(&path, &entries)
                .with_context(|| format!("cannot write {}", path.display()))?;
            note(&format!("{}: {} captures", path.display(), entries.len()));
        }
        forget_catalogues_of(&files)?;
        return Ok(exit::OK);
    }
    let folder = args.output.as_deref().and_then(Path::parent);
    let folder = folder.filter(|folder| *folder != Path::new(""));
    let folder = match &args.output {
        Some(_) => folder.unwrap_or(Path::new(".")).to_owned(),
        None => std::env::temp_dir(),
    };
    let mut merged = MergedIndex::new(&folder);
    let jobs = args.files.iter().filter_map(|path| known_job(path));
    for job in jobs.filter(|_| args.merge) {
        // Their indexes stay in the job.
        let mut left_out = moved(&job)?;
        left_out.retain(|file| !merged.add_index_of(&file.path(&job)));
        note_left_out(&job, &left_out);
    }
    for file in &files {
        if !(args.merge && merged.add_index_of(file)) {
            merged.add(args.entries(file)?)?;
        }
    }
    match &args.output {
        None => args.write_lines(merged, answer())?,
        Some(path) => {
            let cannot = || format!("cannot write {}", path.display());
            // The output may be one of the indexes that are merged.
            let draft = path.with_extension("draft");
            let out = File::create(&draft).with_context(cannot)?;
            args.write_lines(merged, BufWriter::new(out))
                .with_context(cannot)?;
            fs::rename(&draft, path).with_context(cannot)?;
        }
    }
    Ok(exit::OK)
}

impl IndexArgs {
    /// Reads the entries of an archive.
    fn entries(&self, file: &Path) -> Result<Vec<CdxjEntry>> {
        let what = format!("reading {}", file.display());
        let entries = terminal::spinning(&what, || index(file));
        let mut entries = entries.with_context(|| {
            format!(
                "cannot index {}; `opilio warc check` lists its errors",
                file.display()
            )
        })?;
        entries.retain(|entry| self.wants(entry));
        Ok(entries)
    }

    fn write_lines(&self, merged: MergedIndex, mut out: impl Write) -> Result<()> {
        merged.each_line(|line| {
            let is_wanted = || line.parse().map_or(true, |entry| self.wants(&entry));
            match !self.without_not_modified || is_wanted() {
                true => writeln!(out, "{line}"),
                false => Ok(()),
            }
        })?;
        Ok(out.flush()?)
    }

    fn wants(&self, entry: &CdxjEntry) -> bool {
        !(self.without_not_modified && is_not_modified(entry))
    }
}

/// Returns `true` if a capture is a revisit record with status 304, of which pywb shows nothing.
pub(crate) fn is_not_modified(CdxjEntry { capture, .. }: &CdxjEntry) -> bool {
    capture.is_revisit() && capture.status.as_deref() == Some("304")
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

//! `opilio warc`: inspection, verification and redaction of archives.

mod cat;
mod check;
pub(crate) mod index;
mod list;
pub(crate) mod pages;
pub(crate) mod payload;
mod redact;
pub(crate) mod row;
mod show;

use std::fs;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, Subcommand};
use opilio_archive::{ReadError, Reader, StoredRecord};
use opilio_crawl::{HandedOver, JobFolders, is_job, only_in_store};

use crate::job_directory::known_job;
use crate::terminal;
use crate::usage_error::UsageError;

/// Extensions of the files that are taken from a directory.
const ENDINGS: [&str; 5] = [".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz"];

/// The command line.
#[derive(Debug, Args)]
pub(crate) struct WarcArgs {
    #[command(subcommand)]
    command: WarcCommand,
}

#[derive(Debug, Subcommand)]
enum WarcCommand {
    /// Verify digests and structure; print every error with file, offset and record.
    Check(check::CheckArgs),
    /// List records.
    Ls(list::ListArgs),
    /// Print one record, selected by offset, record id or URI.
    Show(show::ShowArgs),
    /// Print the payloads of many records, or write each payload to a file.
    Cat(cat::CatArgs),
    /// Write the indexes that replay tools read (CDXJ).
    Index(index::IndexArgs),
    /// List the pages of archives, as WACZ files do (pages.jsonl).
    Pages(pages::PagesArgs),
    /// Redact content: replace records by tombstones with date and reason.
    Redact(redact::RedactArgs),
}

/// Runs the command.
pub(crate) fn run(args: &WarcArgs) -> Result<u8> {
    let sound = match &args.command {
        WarcCommand::Ls(args) => args.check(),
        WarcCommand::Cat(args) => args.check(),
        WarcCommand::Redact(args) => args.check(),
        WarcCommand::Check(_)
        | WarcCommand::Show(_)
        | WarcCommand::Index(_)
        | WarcCommand::Pages(_) => Ok(()),
    };
    if let Err(fault) = sound {
        note(&format!("{fault:#}"));
        return Ok(crate::exit::USAGE);
    }
    let done = match &args.command {
        WarcCommand::Check(args) => check::run(args),
        WarcCommand::Ls(args) => list::run(args),
        WarcCommand::Show(args) => show::run(args),
        WarcCommand::Cat(args) => cat::run(args),
        WarcCommand::Index(args) => index::run(args),
        WarcCommand::Pages(args) => pages::run(args),
        WarcCommand::Redact(args) => redact::run(args),
    };
    match done {
        // The reader has closed the output.
        Err(problem) if terminal::is_broken_pipe(&problem) => Ok(crate::exit::OK),
        other => refuse_unreadable(other),
    }
}

/// Prints the error of an archive that cannot be read, and returns the exit code for an error in the command line. Damage is not
/// such an error: the archive was read.
pub(crate) fn refuse_unreadable(done: Result<u8>) -> Result<u8> {
    let is_unreadable = |problem: &anyhow::Error| {
        let mut causes = problem.chain();
        causes.any(|cause| {
            let cause = cause.downcast_ref::<ReadError>();
            matches!(cause, Some(ReadError::Io { .. }))
        })
    };
    match done {
        Err(problem) if is_unreadable(&problem) => {
            note(&format!("{problem:#}"));
            Ok(crate::exit::USAGE)
        }
        other => other,
    }
}

/// Returns the files of the arguments: files as given, the archive of a job, and the files with an archive's extension of any
/// other directory. They are sorted by name, each once. Files of a job that are only in a store are noted on standard error. A
/// job whose files are all in the store is refused.
pub(crate) fn archives(given: &[PathBuf]) -> Result<Vec<PathBuf>> {
    for job in given.iter().filter_map(|path| known_job(path)) {
        note_left_out(&job, &moved(&job)?);
    }
    let files = archives_here(given)?;
    ensure!(
        !files.is_empty(),
        "no archive file is left in the job; copy files back from the store, or pass files instead of the job"
    );
    Ok(files)
}

/// Returns the same files for readers of indexes. Files that are only in a store are not noted, and the result may be empty if all
/// files of a job are in the store.
fn archives_here(given: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in given {
        let path = &known_job(path).unwrap_or_else(|| path.clone());
        let metadata = fs::metadata(path).with_context(|| UsageError::unreadable(path))?;
        if !metadata.is_dir() {
            found.push(path.clone());
            continue;
        }
        let mut has_moved = false;
        let directories = match is_job(path) {
            true => {
                has_moved = !moved(path)?.is_empty();
                places(path)?.archives
            }
            false => vec![path.clone()],
        };
        let before = found.len();
        for directory in &directories {
            found.extend(inside(directory)?);
        }
        if found.len() == before && !has_moved {
            let problem = format!(
                "no archives found in {} (names ending in {})",
                directories.first().unwrap_or(path).display(),
                ENDINGS.join(", ")
            );
            return Err(UsageError::new(problem).into());
        }
    }
    let mut seen = std::collections::HashSet::new();
    found.retain(|file| seen.insert(file.clone()));
    Ok(found)
}

/// Refuses jobs with archive files that are only in a store: `purpose` needs all files.
pub(crate) fn ensure_local(given: &[PathBuf], purpose: &str) -> Result<()> {
    for job in given.iter().filter_map(|path| known_job(path)) {
        let moved = moved(&job)?;
        if let Some(first) = moved.first() {
            let (job, url) = (job.display(), first.url.as_deref().unwrap_or_default());
            bail!(
                "{} archive files of {job} were deleted after they were stored, such as {url}; {purpose} needs all: copy them back to their folder, or pass files instead of the job",
                moved.len()
            );
        }
    }
    Ok(())
}

/// Returns the archive files of a job that are only in a store.
fn moved(job: &Path) -> Result<Vec<HandedOver>> {
    only_in_store(job).with_context(|| format!("cannot read {}/handed-over.jsonl", job.display()))
}

/// Notes archive files of a job that were left out because they are only in a store, on standard error.
fn note_left_out(job: &Path, files: &[HandedOver]) {
    if let Some(HandedOver { url: Some(url), .. }) = files.first() {
        let (count, job) = (files.len(), job.display());
        note(&format!(
            "left out {count} archive files of {job} that are only in the store, such as {url}; `opilio job handover {job} --list` lists them"
        ));
    }
}

/// Returns the files of the arguments that no crawl is writing. The others are noted on standard error.
pub(crate) fn finished(given: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = archives(given)?;
    files.retain(|file| {
        let is_open = file.extension().is_some_and(|ending| ending == "open");
        if is_open {
            let file = file.display();
            note(&format!("left out {file}, which a crawl is writing"));
        }
        !is_open
    });
    ensure!(!files.is_empty(), "no finished archives found");
    Ok(files)
}

/// Returns the archives of a directory, by name. It is empty for a directory that a job has not created yet.
fn inside(directory: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = || UsageError::unreadable(directory);
    let entries = match fs::read_dir(directory) {
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(unreadable)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let file = entry.with_context(unreadable)?.path();
        if is_archive(&file) {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the places of a job's files.
pub(crate) fn places(job: &Path) -> Result<JobFolders> {
    JobFolders::of(job).with_context(|| {
        format!(
            "cannot find the files of job {}; pass the directory of its archives instead",
            job.display()
        )
    })
}

/// Returns `true` if a file has the name of an archive, finished or being written.
fn is_archive(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".open").unwrap_or(&name);
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Passes every record of the files on. Damage is printed on standard error and counted, and the records after it are read.
fn each_record(
    files: &[PathBuf],
    mut take: impl FnMut(&Path, StoredRecord<'_>) -> Result<()>,
) -> Result<u64> {
    let mut damaged = 0;
    for file in files {
        let mut reader = Reader::open(file)?;
        loop {
            let done = match reader.next_record() {
                Ok(None) => break,
                Ok(Some(record)) => take(file, record),
                Err(problem) => Err(problem.into()),
            };
            let Err(problem) = done else { continue };
            match problem.downcast::<ReadError>() {
                Ok(problem @ ReadError::Damaged { .. }) => {
                    damaged += 1;
                    note(&format!("{:#}", anyhow::Error::new(problem)));
                    if reader.resync()?.is_none() {
                        break;
                    }
                }
                Ok(problem) => return Err(problem.into()),
                Err(problem) => return Err(problem),
            }
        }
    }
    Ok(damaged)
}

/// Prints a note on standard error, apart from the answer.
#[expect(clippy::print_stderr, reason = "for the person at the terminal")]
pub(crate) fn note(text: &str) {
    eprintln!("opilio: {}", terminal::lines(text));
}

/// Standard output for answers.
fn answer() -> BufWriter<io::StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}

/// Standard output for content: unchanged to a file or a program, made safe on a terminal.
struct Content {
    out: BufWriter<io::StdoutLock<'static>>,
    terminal: bool,
}

impl Content {
    fn to_stdout() -> Content {
        Content {
            out: answer(),
            terminal: io::stdout().is_terminal(),
        }
    }

    /// Writes content that came from the web.
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if self.terminal {
            let text = String::from_utf8_lossy(bytes);
            let clean = text.replace("\r\n", "\n");
            self.out.write_all(terminal::lines(&clean).as_bytes())?;
        } else {
            self.out.write_all(bytes)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        Ok(self.out.flush()?)
    }
}

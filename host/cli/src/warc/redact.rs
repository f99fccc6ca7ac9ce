//! `opilio warc redact`: takedown. It lists the chosen records, and redacts them on request; docs/ARCHIVING.md explains how.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use jiff::Timestamp;
use opilio_archive::redact::{RedactionPlan, RedactionReason, Target, Tombstone, redact, survey};
use opilio_archive::{Digest, Headers, Payloads, index, index_path, write_index};
use opilio_crawl::{handed_over, is_job};
use opilio_uri::Uri;
use serde_json::{Value, json};

use super::index::forget_catalogues_of;
use super::row::{bare, check_surt, has_surt};
use super::{answer, archives, ensure_local, note, places};
use crate::job_directory::known_job;
use crate::{exit, terminal};

/// The log of redactions, next to the archives.
const JOURNAL: &str = "redactions.jsonl";

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
The command redacts a capture as a whole: response, request and metadata records, and every revisit record that refers to
it, in all given archives. Pass all archives, or the job. A note counts records with the same payload at other URIs;
--digest redacts these, too.

Without --write, the command lists the records and changes nothing. With --write, it rewrites each file, replaces the file
in one step, and adds a line for every record to redactions.jsonl next to the file.

Exit codes: 0 done, 1 no records found, or a file is damaged and may contain more, 2 error in the command line, or a file
cannot be read.")]
pub(super) struct RedactArgs {
    /// Archives: files, directories of archives, or jobs that no crawl runs.
    #[arg(required = true, value_name = "FILE|DIR|JOB")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    chosen: ChosenArgs,
    /// Reason of the redaction. The tombstones contain it, and are public.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Keep the payload digest of removed content. Owners of a copy can then identify the content.
    #[arg(long)]
    keep_digest: bool,
    /// Redact the records; without this, they are only listed.
    #[arg(long)]
    write: bool,
    /// Print JSON, one object per record.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct ChosenArgs {
    /// Redact captures of this URI. This and the following options may be repeated; a capture must match one of them.
    #[arg(long, value_name = "URI")]
    uri: Vec<String>,
    /// Redact captures of URIs with this SURT prefix: http://(org,example, matches example.org and its subdomains.
    #[arg(long, value_name = "PREFIX")]
    surt: Vec<String>,
    /// Redact the capture that contains the record with this id.
    #[arg(long, value_name = "ID")]
    record: Vec<String>,
    /// Redact captures with this payload digest: sha1:…, as shown by `opilio warc ls --json`.
    #[arg(long, value_name = "DIGEST")]
    digest: Vec<String>,
}

/// Notes that a store still has the original files.
fn note_stored(given: &[PathBuf]) -> Result<()> {
    for job in given.iter().filter_map(|path| known_job(path)) {
        if handed_over(&job)?.iter().any(|file| file.url.is_some()) {
            let job = job.display();
            note(&format!(
                "the store still has the original files; `opilio job handover {job}` replaces them"
            ));
        }
    }
    Ok(())
}

/// Runs the command.
pub(super) fn run(args: &RedactArgs) -> Result<u8> {
    ensure_local(&args.files, "redaction")?;
    let files = archives(&args.files)?;
    let survey = terminal::spinning("reading the archives", || {
        survey(&files, |headers| args.chosen.has(headers))
    })?;
    print_notes(&survey);
    if survey.targets.is_empty() {
        note("no records to redact found");
        return Ok(exit::FAILED);
    }
    let at = Timestamp::now();
    let mut out = answer();
    for target in &survey.targets {
        let line = match args.json {
            true => as_json(target, args, at).to_string(),
            false => as_text(target),
        };
        writeln!(out, "{}", terminal::line(&line))?;
    }
    out.flush()?;
    let in_files = survey.files();
    if args.write {
        forget_payloads(&survey, &args.files)?;
    }
    if !args.write {
        note(&format!(
            "{} records in {} files would be redacted; pass --write to redact them",
            survey.targets.len(),
            in_files.len()
        ));
    } else {
        let tombstone = Tombstone {
            reason: &args.reason,
            at,
            keep_digests: args.keep_digest,
        };
        for file in in_files {
            let of_file = survey.targets.iter().filter(|target| target.file == file);
            // The journal is written first: a line without a redaction is better than a redaction without a line.
            keep_journal(file, of_file.map(|target| as_json(target, args, at)))?;
            let what = format!("rewriting {}", file.display());
            let done = terminal::spinning(&what, || redact(file, &survey.targets, tombstone))?;
            note(&format!(
                "{}: {} records redacted, {} bytes before, {} now",
                file.display(),
                done.records,
                done.bytes_before,
                done.bytes_after
            ));
            let reindexed = reindex(file);
            // Catalogues contain hashes of the redacted records, even if the index could not be rewritten.
            forget_catalogues_of(&[file])?;
            reindexed?;
        }
        note_stored(&args.files)?;
    }
    Ok(match survey.damaged.is_empty() {
        true => exit::OK,
        false => exit::FAILED,
    })
}

impl RedactArgs {
    /// Checks the command line.
    pub(super) fn check(&self) -> Result<()> {
        ensure!(
            !self.reason.trim().is_empty(),
            "--reason is empty: write the text that readers find in place of the content"
        );
        for prefix in &self.chosen.surt {
            check_surt(prefix)?;
        }
        for digest in &self.chosen.digest {
            if !digest.contains(':') {
                bail!("--digest {digest}: the algorithm is missing; write a digest such as sha1:…");
            }
        }
        Ok(())
    }
}

impl ChosenArgs {
    fn has(&self, headers: &Headers) -> bool {
        let id = headers.first("WARC-Record-ID").map(bare);
        let digest = headers.first("WARC-Payload-Digest");
        let uri = headers.target_uri().unwrap_or_default();
        self.record.iter().any(|wanted| Some(bare(wanted)) == id)
            || self
                .digest
                .iter()
                .any(|wanted| digest.is_some_and(|digest| same_digest(wanted, digest)))
            || self.uri.iter().any(|wanted| same(wanted, uri))
            || self.surt.iter().any(|prefix| has_surt(prefix, uri))
    }
}

/// Returns `true` if two texts are the same digest, in base32 or hexadecimal.
fn same_digest(wanted: &str, digest: &str) -> bool {
    wanted.eq_ignore_ascii_case(digest)
        || wanted
            .parse::<Digest>()
            .is_ok_and(|wanted| Ok(wanted) == digest.parse())
}

/// Returns `true` if two texts are the same URI in any spelling.
fn same(wanted: &str, uri: &str) -> bool {
    wanted == uri
        || Uri::parse(wanted)
            .is_ok_and(|wanted| Uri::parse(uri).is_ok_and(|uri| wanted.as_str() == uri.as_str()))
}

/// Removes the redacted payloads from the jobs' indexes of digests. Otherwise later captures would refer to tombstones. Called
/// before the redaction, so that no crawl refers to a record that is being removed.
fn forget_payloads(survey: &RedactionPlan, given: &[PathBuf]) -> Result<()> {
    let mut known = Vec::new();
    for path in given {
        let path = std::path::absolute(path)?;
        // A file or the directory of a job's archives may have been named instead of the job.
        let Some(job) = path.ancestors().take(3).find(|folder| is_job(folder)) else {
            continue;
        };
        let index = places(job)?.payloads;
        if index.is_dir() && !known.contains(&index) {
            known.push(index);
        }
    }
    for index in known {
        let payloads = Payloads::open(&index)?;
        let forgotten = payloads.forget_where(survey.takes())?;
        payloads.persist()?;
        note(&format!(
            "{}: {forgotten} payloads removed from the index",
            index.display()
        ));
    }
    Ok(())
}

/// Prints the notes that the operator needs besides the list.
fn print_notes(survey: &RedactionPlan) {
    for (file, offset, damage) in survey.damages() {
        note(&format!(
            "{} at offset {offset}: {damage}; the damaged part may contain records to redact",
            file.display()
        ));
    }
    if survey.already > 0 {
        note(&format!(
            "{} of the chosen records are already redacted",
            survey.already
        ));
    }
    if let Some((file, offset)) = survey.copies.first() {
        note(&format!(
            "{} other records with the same payload stay, the first in {} at offset {offset}; --digest redacts them, too",
            survey.copies.len(),
            file.display()
        ));
    }
    if survey.payload_elsewhere > 0 {
        note(&format!(
            "{} of the chosen records are revisit records: the records they refer to keep the payload",
            survey.payload_elsewhere
        ));
    }
}

fn as_text(target: &Target) -> String {
    let why = match target.why {
        RedactionReason::Chosen => "chosen",
        RedactionReason::SameCapture => "same capture",
        RedactionReason::Revisit => "revisit",
    };
    let headers = &target.headers;
    format!(
        "{}+{}  {why:<13} {:<8} {}  {}",
        target.file.display(),
        target.extent.offset,
        headers.kind(),
        headers.first("WARC-Date").unwrap_or("-"),
        headers.target_uri().unwrap_or("-")
    )
}

fn as_json(target: &Target, args: &RedactArgs, at: Timestamp) -> Value {
    let headers = &target.headers;
    let digest = headers.first("WARC-Payload-Digest");
    json!({
        "at": format!("{at:.0}"),
        "reason": args.reason,
        "file": target.file.display().to_string(),
        "offset": target.extent.offset,
        "why": match target.why {
            RedactionReason::Chosen => "chosen",
            RedactionReason::SameCapture => "same-capture",
            RedactionReason::Revisit => "revisit",
        },
        "id": headers.first("WARC-Record-ID").map(bare),
        "type": headers.kind(),
        "date": headers.first("WARC-Date"),
        "uri": headers.target_uri(),
        "payload_digest": digest.filter(|_| args.keep_digest),
    })
}

/// Rewrites the index next to a file, if there is one: offsets and digests have changed.
fn reindex(file: &Path) -> Result<()> {
    let path = index_path(file);
    if !path.is_file() {
        note(&format!(
            "{} has no index next to it; rebuild the indexes that list it (`opilio warc index`)",
            file.display()
        ));
        return Ok(());
    }
    let cannot = || format!("cannot rewrite {}", path.display());
    let entries = index(file).with_context(cannot)?;
    write_index(&path, &entries).with_context(cannot)
}

/// Adds lines to the journal next to a file.
fn keep_journal(file: &Path, lines: impl Iterator<Item = Value>) -> Result<()> {
    let path = file.with_file_name(JOURNAL);
    let mut text = String::new();
    for line in lines {
        text.push_str(&line.to_string());
        text.push('\n');
    }
    let mut journal = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .with_context(|| format!("cannot open {}", path.display()))?;
    journal
        .write_all(text.as_bytes())
        .and_then(|()| journal.sync_all())
        .with_context(|| format!("cannot write {}", path.display()))
}

//! `opilio warc redact`: takedown. Shows what would go, and takes it out when told to; docs/ARCHIVING.md says how.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use jiff::Timestamp;
use opilio_archive::redact::{Survey, Target, Tombstone, Why, redact, survey};
use opilio_archive::{Digest, Headers, Payloads, index, index_path, write_index};
use opilio_crawl::is_job;
use opilio_uri::Uri;
use serde_json::{Value, json};

use super::index::forget_catalogues_of;
use super::row::{bare, check_surt, has_surt};
use super::{answer, archives, note, places};
use crate::{exit, terminal};

/// The record of what was taken out, beside the archives.
const JOURNAL: &str = "redactions.jsonl";

/// The command line.
#[derive(Debug, Args)]
#[command(after_help = "\
A capture goes as a whole: response, request and metadata; and with it every revisit that stands for it, in all the archives
given. Give them all, or the job. What stays at other URIs with the same payload is told; --digest takes it too.

Without --write nothing is changed: what would go is listed. With it each file is written anew beside itself and put in its
place in one step, and a line for every record is added to redactions.jsonl beside the file.

Exit codes: 0 done, 1 nothing was found, or something is damaged and may hold more, 2 faults in the command line.")]
pub(super) struct RedactArgs {
    /// Archives: files, directories of them, jobs that no crawl is at.
    #[arg(required = true, value_name = "FILE|DIR|JOB")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    chosen: ChosenArgs,
    /// Why. Stands in the tombstones, and is public with them.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Keep the payload digest of what is removed. Whoever has a copy can tell by it what was there.
    #[arg(long)]
    keep_digest: bool,
    /// Do it.
    #[arg(long)]
    write: bool,
    /// Print JSON, an object a record.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct ChosenArgs {
    /// Captures of this URI. May be given often, as the others; each takes what it fits.
    #[arg(long, value_name = "URI")]
    uri: Vec<String>,
    /// Captures of URIs whose SURT form begins so: http://(org,example, takes example.org and all below it.
    #[arg(long, value_name = "PREFIX")]
    surt: Vec<String>,
    /// The capture with this record.
    #[arg(long, value_name = "ID")]
    record: Vec<String>,
    /// Captures of this payload: sha1:…, as `opilio warc ls --json` shows it.
    #[arg(long, value_name = "DIGEST")]
    digest: Vec<String>,
}

/// Runs the command.
pub(super) fn run(args: &RedactArgs) -> Result<u8> {
    let files = archives(&args.files)?;
    let survey = survey(&files, |headers| args.chosen.has(headers))?;
    tell(&survey);
    if survey.targets.is_empty() {
        note("nothing to redact was found");
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
            "{} records in {} files would be redacted; --write does it",
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
            // Written first: a line too many is better than a record that went without one.
            keep_journal(file, of_file.map(|target| as_json(target, args, at)))?;
            let done = redact(file, &survey.targets, tombstone)?;
            note(&format!(
                "{}: {} records redacted, {} bytes before, {} now",
                file.display(),
                done.records,
                done.bytes_before,
                done.bytes_after
            ));
            let reindexed = reindex(file);
            // Catalogues have hashes of what is gone, also where the index could not be written anew.
            forget_catalogues_of(&[file])?;
            reindexed?;
        }
    }
    Ok(match survey.damaged.is_empty() {
        true => exit::OK,
        false => exit::FAILED,
    })
}

impl RedactArgs {
    /// What is wrong with the command line.
    pub(super) fn check(&self) -> Result<()> {
        ensure!(
            !self.reason.trim().is_empty(),
            "--reason is empty: say what a reader shall find in place of the content"
        );
        for prefix in &self.chosen.surt {
            check_surt(prefix)?;
        }
        for digest in &self.chosen.digest {
            if !digest.contains(':') {
                bail!("--digest {digest}: a digest begins with its algorithm, as sha1: does");
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

/// Whether two texts are the same digest, in base32 or hexadecimal.
fn same_digest(wanted: &str, digest: &str) -> bool {
    wanted.eq_ignore_ascii_case(digest)
        || wanted
            .parse::<Digest>()
            .is_ok_and(|wanted| Ok(wanted) == digest.parse())
}

/// Whether two texts are the same URI, however they are written.
fn same(wanted: &str, uri: &str) -> bool {
    wanted == uri
        || Uri::parse(wanted)
            .is_ok_and(|wanted| Uri::parse(uri).is_ok_and(|uri| wanted.as_str() == uri.as_str()))
}

/// Removes the redacted payloads from the jobs' indexes of digests, or later captures would refer to tombstones. Called before
/// anything is taken out, so that no crawl refers to a record that is being removed.
fn forget_payloads(survey: &Survey, given: &[PathBuf]) -> Result<()> {
    let mut known = Vec::new();
    for path in given {
        let path = std::path::absolute(path)?;
        // A file or the directory of a job's archives may have been named in place of the job.
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
            "{}: {forgotten} payloads forgotten",
            index.display()
        ));
    }
    Ok(())
}

/// What the person has to know beside the list.
fn tell(survey: &Survey) {
    for (file, offset, damage) in survey.damages() {
        note(&format!(
            "{} at offset {offset}: {damage}; what should go may be here too and cannot be found",
            file.display()
        ));
    }
    if survey.already > 0 {
        note(&format!(
            "{} of the chosen records are redacted already",
            survey.already
        ));
    }
    if let Some((file, offset)) = survey.copies.first() {
        note(&format!(
            "{} other records with the same payload stay, the first in {} at offset {offset}; --digest takes them too",
            survey.copies.len(),
            file.display()
        ));
    }
    if survey.payload_elsewhere > 0 {
        note(&format!(
            "{} of the chosen records are revisits: their payload stays with the records they refer to",
            survey.payload_elsewhere
        ));
    }
}

fn as_text(target: &Target) -> String {
    let why = match target.why {
        Why::Chosen => "chosen",
        Why::SameCapture => "same capture",
        Why::Revisit => "revisit of it",
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
            Why::Chosen => "chosen",
            Why::SameCapture => "same-capture",
            Why::Revisit => "revisit",
        },
        "id": headers.first("WARC-Record-ID").map(bare),
        "type": headers.kind(),
        "date": headers.first("WARC-Date"),
        "uri": headers.target_uri(),
        "payload_digest": digest.filter(|_| args.keep_digest),
    })
}

/// Writes the index of a file anew, where it has one beside it: offsets have moved, digests are others.
fn reindex(file: &Path) -> Result<()> {
    let path = index_path(file);
    if !path.is_file() {
        note(&format!(
            "{} has no index beside it; write those that list it anew (`opilio warc index`)",
            file.display()
        ));
        return Ok(());
    }
    let cannot = || format!("cannot write {} anew", path.display());
    let entries = index(file).with_context(cannot)?;
    write_index(&path, &entries).with_context(cannot)
}

/// Adds lines to the journal beside a file.
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

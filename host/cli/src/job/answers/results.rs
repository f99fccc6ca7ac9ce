//! Results of commands, for people: sweeps, imports, checks, checkpoints.

use indicatif::{HumanBytes, HumanCount};
use opilio_control::{CheckedStore, Checkpoint, ImportResult, SourceRead, SweepResult};

use super::lines::line;
use crate::figures::numbered;

pub(super) fn swept_line(swept: &SweepResult) -> String {
    let done = match swept.action.as_str() {
        "delete" => "deleted",
        "forget" => "forgotten",
        _ => "counted",
    };
    let stay = match swept.in_process {
        0 => String::new(),
        1 => ", 1 more is in process".to_owned(),
        some => format!(", {} more are in process", HumanCount(some)),
    };
    let (meant, examined) = (numbered(swept.meant, "URI"), HumanCount(swept.examined));
    format!("{meant} {done}{stay}; {examined} examined")
}

pub(super) fn source_lines(source: &SourceRead) -> String {
    let first = format!(
        "{}: {}, {}, {} malformed\n",
        source.file.display(),
        source.format,
        numbered(source.lines, "line"),
        HumanCount(source.bad_lines)
    );
    first + &indented(&source.problems)
}

pub(super) fn import_lines(imported: &ImportResult) -> String {
    let counts = [
        ("to be fetched", imported.scheduled),
        ("done", imported.included),
        ("known before", imported.known),
        ("prerequisites", imported.prerequisites),
        ("left out", imported.left_out),
        ("refused", imported.refused),
    ];
    let counts = counts.map(|(name, count)| line(name, &HumanCount(count).to_string()));
    counts.concat() + &indented(&imported.refusals)
}

pub(super) fn checked_line(found: &CheckedStore) -> String {
    let problems = numbered(found.problems, "problem");
    let verdict = match (found.problems, found.repaired) {
        (0, _) => "sound".to_owned(),
        (_, 0) => format!("{problems}; repair them with --repair"),
        (_, repaired) => format!("{problems}, {repaired} repaired"),
    };
    format!(
        "{}, {} of them queued in {}: {verdict}",
        numbered(found.uris, "URI"),
        HumanCount(found.queued),
        numbered(found.queues, "queue")
    )
}

pub(super) fn checkpoint_lines(made: &Checkpoint) -> String {
    let bytes: u64 = made.warcs.iter().map(|warc| warc.bytes).sum();
    format!(
        "{directory}\n{}; {} ({}) stay in the job\ncreate a job from it with: opilio job restore {directory} NEWJOB\n",
        numbered(made.uris, "URI"),
        numbered(made.warcs.len() as u64, "WARC file"),
        HumanBytes(bytes),
        directory = made.directory.display(),
    )
}

fn indented(sentences: &[String]) -> String {
    sentences.iter().map(|one| format!("  {one}\n")).collect()
}

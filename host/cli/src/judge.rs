//! Checks of a demo crawl. Archive: all records complete, all digests right, all required captures present, no forbidden ones.
//! Log: one line for each capture and a capture for each line. Indexes and frontier: they match the archive.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use anyhow::Result;
use opilio_archive::{Reader, check};
use opilio_control::{Author, DiscrepancyKind};
use opilio_crawl::Summary;
use opilio_test_web::Web;
use opilio_test_web::demo::{Expected, expected};

use crate::job::verify;
use crate::warc::archives;

/// Most bytes of a record's block that are read: its status line.
const STATUS_LINE_MAX: usize = 4096;

/// The result of the checks.
pub(crate) struct Judgement {
    faults: Vec<String>,
    passed: usize,
    records: u64,
    digests: u64,
    lines: u64,
}

/// Captures of one URI.
#[derive(Default)]
struct Captures {
    /// HTTP status and payload digest of each response.
    responses: Vec<(u16, String)>,
    /// Profiles of revisit records.
    revisits: Vec<String>,
}

impl Judgement {
    /// Returns `true` if no errors were found.
    pub(crate) fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    /// Compares archive, indexes, log and frontier with one another, as `opilio job verify` does it.
    fn compare(&mut self, summary: &Summary) -> Result<()> {
        let by = Author {
            user: "selftest".to_owned(),
            pid: std::process::id(),
        };
        let faults = &mut self.faults;
        let verified = opilio_control::verify(&summary.job, &by, false, &mut |found| {
            // Damage was reported when the archive was read.
            if found.kind != DiscrepancyKind::ArchiveDamaged {
                faults.push(verify::line(&found));
            }
        })?;
        self.lines = verified.lines;
        Ok(())
    }
}

/// Reads the whole archive back.
pub(crate) fn judge(summary: &Summary, web: &Web) -> Result<Judgement> {
    let mut judgement = Judgement {
        faults: Vec::new(),
        passed: 0,
        records: 0,
        digests: 0,
        lines: 0,
    };
    let mut captures: BTreeMap<String, Captures> = BTreeMap::new();
    for warc in archives(std::slice::from_ref(&summary.warc_directory))? {
        let report = check(&warc)?;
        judgement.records += report.records;
        judgement.digests += report.block_digests + report.payload_digests;
        judgement.faults.extend(
            report
                .faults
                .iter()
                .map(|fault| format!("{}: {fault}", warc.display())),
        );
        read(&warc, &mut captures)?;
    }
    judgement.compare(summary)?;
    for (uri, expected) in expected(web) {
        match fault_of(captures.get(&uri), expected) {
            None => judgement.passed += 1,
            Some(fault) => judgement.faults.push(format!("{uri}: {fault}")),
        }
    }
    for plugin in &summary.plugins {
        let faults = plugin.faults_all();
        if faults > 0 {
            judgement
                .faults
                .push(format!("plugin {}: {faults} errors", plugin.name));
        }
    }
    let forbidden_requests = web
        .requests()
        .iter()
        .filter(|seen| seen.target.starts_with("/private/"))
        .count();
    if forbidden_requests > 0 {
        judgement.faults.push(format!(
            "robots.txt forbids /private/, but the crawl requested it {forbidden_requests} times"
        ));
    }
    Ok(judgement)
}

fn read(warc: &PathBuf, captures: &mut BTreeMap<String, Captures>) -> Result<()> {
    let mut reader = Reader::open(warc)?;
    while let Some(mut record) = reader.next_record()? {
        let headers = record.headers();
        let kind = headers.kind().to_owned();
        let digest = headers
            .first("WARC-Payload-Digest")
            .unwrap_or_default()
            .to_owned();
        let profile = headers.first("WARC-Profile").unwrap_or_default().to_owned();
        if let Some(uri) = headers.target_uri().map(str::to_owned) {
            let capture = captures.entry(uri).or_default();
            match kind.as_str() {
                "response" => {
                    let mut head = vec![0; STATUS_LINE_MAX];
                    let length = record.read_block(&mut head)?;
                    capture.responses.push((status(&head[..length]), digest));
                }
                "revisit" => capture.revisits.push(profile),
                _ => {}
            }
        }
        record.finish()?;
    }
    Ok(())
}

fn status(head: &[u8]) -> u16 {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    String::from_utf8_lossy(line)
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .unwrap_or(0)
}

fn fault_of(captures: Option<&Captures>, expected: Expected) -> Option<String> {
    let nothing = Captures::default();
    let captures = captures.unwrap_or(&nothing);
    let responses = captures.responses.len();
    let statuses = || {
        captures
            .responses
            .iter()
            .map(|(status, _)| status.to_string())
            .collect::<Vec<_>>()
            .join(", ")
    };
    match expected {
        Expected::Absent if responses > 0 => {
            Some(format!("archived ({}), but must not be", statuses()))
        }
        Expected::Absent => None,
        Expected::Archived(status)
            if captures.responses.iter().any(|(found, _)| *found == status) =>
        {
            None
        }
        Expected::Archived(status) => Some(format!(
            "not archived with status {status} (found: {})",
            statuses()
        )),
        Expected::Versions => {
            let mut digests: Vec<_> = captures
                .responses
                .iter()
                .map(|(_, digest)| digest)
                .collect();
            digests.sort();
            digests.dedup();
            (digests.len() < 2)
                .then(|| format!("changed, but {} versions are archived", digests.len()))
        }
        Expected::Unchanged if responses == 1 => None,
        Expected::Unchanged => Some(format!("unchanged, but archived {responses} times")),
        Expected::Revisited(profile)
            if responses == 1
                && captures
                    .revisits
                    .iter()
                    .any(|found| found.ends_with(profile)) =>
        {
            None
        }
        Expected::Revisited(profile) => Some(format!(
            "expected 1 response and a revisit record with profile {profile}; found {responses} responses and {} revisit records",
            captures.revisits.len()
        )),
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in &self.faults {
            writeln!(f, "ERROR  {fault}")?;
        }
        writeln!(
            f,
            "{} records, {} digests and {} lines of crawl.log verified; {} expectations met, {} errors",
            self.records,
            self.digests,
            self.lines,
            self.passed,
            self.faults.len()
        )?;
        writeln!(
            f,
            "selftest {}",
            if self.is_sound() { "passed" } else { "FAILED" }
        )
    }
}

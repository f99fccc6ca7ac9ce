//! Reports of counts: hosts, sources, media types, statuses.

use std::collections::HashSet;
use std::path::Path;

use opilio_frontier::QueueReport;
use opilio_uri::Uri;
use serde_json::Value;

use super::page::{Column, Page};
use crate::admin::PART;
use crate::{ControlError, JobAdmin};
use opilio_job::breakdown;
use opilio_job::ledger::{self, HostCounts, Ledger, LedgerSummary};
use opilio_job::transfer::{Sorted, Sorter};

const HOSTS: [Column; 11] = [
    ("#urls", "uris"),
    ("#bytes", "bytes"),
    ("host", "host"),
    ("#robots", "robots"),
    ("#remaining", "remaining"),
    ("#novel-urls", "novel_uris"),
    ("#novel-bytes", "novel_bytes"),
    ("#dup-by-hash-urls", "duplicate_uris"),
    ("#dup-by-hash-bytes", "duplicate_bytes"),
    ("#not-modified-urls", "not_modified_uris"),
    ("#not-modified-bytes", "not_modified_bytes"),
];

const SOURCES: [Column; 3] = [("source", "source"), ("host", "host"), ("#urls", "uris")];

const TYPES: [Column; 3] = [
    ("#urls", "uris"),
    ("#bytes", "bytes"),
    ("mime-types", "media_type"),
];

const STATUSES: [Column; 2] = [("#urls", "uris"), ("rescode", "status")];

impl JobAdmin<'_> {
    /// Returns all counts, including the last line of the log. All of them are in the store afterwards.
    pub(crate) fn counted(&self) -> Result<LedgerSummary, ControlError> {
        if let Some(running) = self.running {
            running.context.figures.ledger.store(self.store())?;
            return Ok(running.context.figures.ledger.summary());
        }
        let logs = self.job.join(&self.profile.logs.directory);
        let ledger = Ledger::open(&logs, self.store())
            .map_err(|problem| ControlError::file(&logs, &problem))?;
        Ok(ledger.summary())
    }

    /// Writes the hosts, the busiest first. Many hosts are sorted on disk.
    pub(super) fn hosts_report(&self, page: &mut Page<'_>) -> Result<(), ControlError> {
        self.counted()?;
        let folder = self.job.join("scratch");
        let failed = |problem: std::io::Error| ControlError::file(&folder, &problem);
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let mut sorter = Sorter::new(&folder).map_err(failed)?;
        let mut forced = self.hosts_in_forced_queues(&folder)?.peekable();
        let mut after: Option<String> = None;
        loop {
            let part = ledger::hosts(&self.frontier(), after.as_deref(), PART)?;
            let is_last = part.len() < PART;
            for (host, counts) in part {
                let mut in_forced = 0u64;
                // Both lists are sorted by name.
                let is_passed = |one: &std::io::Result<Vec<u8>>| {
                    one.as_ref().map_or(true, |one| **one <= *host.as_bytes())
                };
                while let Some(one) = forced.next_if(is_passed) {
                    in_forced += u64::from(one.map_err(failed)? == host.as_bytes());
                }
                let mut record = (u64::MAX - counts.responses.uris).to_be_bytes().to_vec();
                record.extend(in_forced.to_be_bytes());
                record.extend(host.as_bytes());
                sorter.push(&record).map_err(failed)?;
                after = Some(host);
            }
            if is_last {
                break;
            }
        }
        page.head(&HOSTS);
        for record in sorter.sorted().map_err(failed)? {
            let record = record.map_err(failed)?;
            let (in_forced, host) = split_record(&record);
            let host = String::from_utf8_lossy(host).into_owned();
            let row = ledger::host(&self.frontier(), &host)?;
            let remaining = in_forced + self.remaining(&host)?;
            let row = host_row(host, &row.unwrap_or_default(), remaining);
            page.row(&HOSTS, row)?;
        }
        Ok(())
    }

    /// Returns the hosts of all URIs in queues that are named by overrides, sorted by name. Such a queue may have a few URIs each
    /// of many hosts.
    fn hosts_in_forced_queues(&self, folder: &Path) -> Result<Sorted, ControlError> {
        let failed = |problem: std::io::Error| ControlError::file(folder, &problem);
        let mut hosts = Sorter::new(folder).map_err(failed)?;
        for queue in self.profile.forced_queues() {
            let mut after: Option<Vec<u8>> = None;
            loop {
                let part = self.frontier().queue_uris(queue, after.as_deref(), PART)?;
                for uri in &part {
                    let uri = Uri::parse(&uri.record.uri).ok();
                    if let Some(host) = uri.as_ref().and_then(Uri::host) {
                        hosts.push(host.as_bytes()).map_err(failed)?;
                    }
                }
                match part.last() {
                    Some(last) if part.len() == PART => after = Some(last.cursor.clone()),
                    _ => break,
                }
            }
        }
        hosts.sorted().map_err(failed)
    }

    /// Returns the number of URIs in all queues of a host's key: every port, and every parallel queue. The number includes URIs
    /// of other hosts that share the key.
    fn remaining(&self, host: &str) -> Result<u64, ControlError> {
        let Ok(uri) = Uri::parse(&format!("http://{host}/")) else {
            return Ok(0);
        };
        if host.ends_with(':') {
            return Ok(0);
        }
        let now = jiff::Timestamp::now();
        let key = self.profile.queue_key(&uri);
        let forced: HashSet<&str> = self.profile.forced_queues().collect();
        // Requests one queue more than there are parallel queues.
        let most = self.profile.frontier.parallel_queues as usize + 1;
        let mut part: Vec<QueueReport> = self.frontier().queue(&key, now)?.into_iter().collect();
        let mut after = key.clone();
        let mut remaining = 0;
        loop {
            for queue in &part {
                // The remainder after the key is the port, or a number.
                match queue.queue.strip_prefix(&key) {
                    Some(rest) if rest.is_empty() || rest.starts_with('#') => {}
                    _ => return Ok(remaining),
                }
                if !forced.contains(&*queue.queue) {
                    remaining += queue.ready + queue.waiting;
                }
            }
            if let Some(last) = part.last() {
                after = last.queue.to_string();
            }
            part = self.frontier().queues(Some(&after), most, now)?;
            if part.is_empty() {
                return Ok(remaining);
            }
        }
    }

    /// Writes each seed with its hosts.
    pub(super) fn source_report(&self, page: &mut Page<'_>) -> Result<(), ControlError> {
        self.counted()?;
        page.head(&SOURCES);
        let mut after: Option<String> = None;
        loop {
            let part = ledger::source_hosts(&self.frontier(), after.as_deref(), PART)?;
            let is_last = part.len() < PART;
            for (names, urls) in part {
                let (source, host) = names.split_once('\0').unwrap_or((&names, ""));
                page.row(&SOURCES, vec![source.into(), host.into(), urls.into()])?;
                after = Some(names);
            }
            if is_last {
                break;
            }
        }
        self.source_statuses(page)
    }

    /// Writes each seed with its statuses. They show whether a site could be crawled at all.
    fn source_statuses(&self, page: &mut Page<'_>) -> Result<(), ControlError> {
        const COLUMNS: [Column; 3] = [
            ("source", "source"),
            ("rescode", "status"),
            ("#urls", "uris"),
        ];
        page.head(&COLUMNS);
        let mut after: Option<String> = None;
        loop {
            let part = ledger::sources(&self.frontier(), after.as_deref(), PART)?;
            let is_last = part.len() < PART;
            for (source, statuses) in part {
                for (status, urls) in statuses {
                    page.row(
                        &COLUMNS,
                        vec![source.as_str().into(), status.into(), urls.into()],
                    )?;
                }
                after = Some(source);
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Writes the media types, the most frequent first.
    pub(super) fn mimetype_report(&self, page: &mut Page<'_>) -> Result<(), ControlError> {
        page.head(&TYPES);
        for row in breakdown::media_types(&self.counted()?) {
            let amount = row.amount;
            let row = vec![
                amount.uris.into(),
                amount.bytes.into(),
                row.media_type.into(),
            ];
            page.row(&TYPES, row)?;
        }
        Ok(())
    }

    /// Writes the statuses, the most frequent first.
    pub(super) fn responsecode_report(&self, page: &mut Page<'_>) -> Result<(), ControlError> {
        page.head(&STATUSES);
        let mut rows = breakdown::statuses(&self.counted()?);
        rows.sort_by_key(|row| std::cmp::Reverse(row.amount.uris));
        for row in rows {
            page.row(&STATUSES, vec![row.amount.uris.into(), row.status.into()])?;
        }
        Ok(())
    }
}

/// Splits a sorted record of a host behind its sort key: number of its URIs in queues that overrides name, and its name.
fn split_record(record: &[u8]) -> (u64, &[u8]) {
    let rest = record.get(8..).unwrap_or_default();
    match rest.split_first_chunk() {
        Some((in_forced, host)) => (u64::from_be_bytes(*in_forced), host),
        None => (0, rest),
    }
}

fn host_row(host: String, counts: &HostCounts, remaining: u64) -> Vec<Value> {
    vec![
        counts.responses.uris.into(),
        counts.responses.bytes.into(),
        host.into(),
        counts.robots.into(),
        remaining.into(),
        counts.novel.uris.into(),
        counts.novel.bytes.into(),
        counts.duplicate.uris.into(),
        counts.duplicate.bytes.into(),
        counts.not_modified.uris.into(),
        counts.not_modified.bytes.into(),
    ]
}

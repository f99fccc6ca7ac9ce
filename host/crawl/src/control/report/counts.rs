//! Reports of what was counted: hosts, sources, media types, statuses.

use opilio_uri::Uri;
use serde_json::Value;

use super::PART;
use super::page::{Column, Page};
use crate::breakdown;
use crate::control::{ControlError, Desk};
use crate::ledger::{self, HostCounts};
use crate::transfer::Sorter;

const HOSTS: [Column; 11] = [
    ("#urls", "urls"),
    ("#bytes", "bytes"),
    ("host", "host"),
    ("#robots", "robots"),
    ("#remaining", "remaining"),
    ("#novel-urls", "novel_urls"),
    ("#novel-bytes", "novel_bytes"),
    ("#dup-by-hash-urls", "duplicate_urls"),
    ("#dup-by-hash-bytes", "duplicate_bytes"),
    ("#not-modified-urls", "not_modified_urls"),
    ("#not-modified-bytes", "not_modified_bytes"),
];

const SOURCES: [Column; 3] = [("source", "source"), ("host", "host"), ("#urls", "urls")];

const TYPES: [Column; 3] = [
    ("#urls", "urls"),
    ("#bytes", "bytes"),
    ("mime-types", "media_type"),
];

const STATUSES: [Column; 2] = [("#urls", "urls"), ("rescode", "status")];

impl Desk<'_> {
    /// The busiest first. Sorted on the disk where they are many.
    pub(super) fn hosts_report(&self, page: &mut Page<'_>) -> Result<(), ControlError> {
        self.counted()?;
        let folder = self.job.join("scratch");
        let failed = |problem: std::io::Error| ControlError::file(&folder, &problem);
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let mut sorter = Sorter::new(&folder).map_err(failed)?;
        let mut after: Option<String> = None;
        loop {
            let part = ledger::hosts(&self.frontier(), after.as_deref(), PART)?;
            let is_last = part.len() < PART;
            for (host, counts) in part {
                let mut record = (u64::MAX - counts.succeeded.uris).to_be_bytes().to_vec();
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
            let host = String::from_utf8_lossy(&record[8..]).into_owned();
            let row = ledger::host(&self.frontier(), &host)?;
            let row = self.host_row(host, &row.unwrap_or_default())?;
            page.row(&HOSTS, row)?;
        }
        Ok(())
    }

    fn host_row(&self, host: String, counts: &HostCounts) -> Result<Vec<Value>, ControlError> {
        // The queue in which its URIs stand; others may stand there as well, by the profile.
        let remaining = match Uri::parse(&format!("http://{host}/")) {
            Ok(uri) if !host.ends_with(':') => {
                let queue = self.profile.queue_name(&uri);
                let report = self.frontier().queue(&queue, jiff::Timestamp::now())?;
                report.map_or(0, |queue| queue.ready + queue.waiting)
            }
            _ => 0,
        };
        Ok(vec![
            counts.succeeded.uris.into(),
            counts.succeeded.bytes.into(),
            host.into(),
            counts.robots.into(),
            remaining.into(),
            counts.novel.uris.into(),
            counts.novel.bytes.into(),
            counts.duplicate.uris.into(),
            counts.duplicate.bytes.into(),
            counts.not_modified.uris.into(),
            counts.not_modified.bytes.into(),
        ])
    }

    /// Each seed with its hosts.
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

    /// Each seed with its statuses: whether a site could be crawled at all is seen there.
    fn source_statuses(&self, page: &mut Page<'_>) -> Result<(), ControlError> {
        const COLUMNS: [Column; 3] = [
            ("source", "source"),
            ("rescode", "status"),
            ("#urls", "urls"),
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

    /// The most frequent first.
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

    /// The most frequent first.
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

//! Comparison of two crawls: two jobs, or a job or checkpoint and a checkpoint. It compares the last visit of each URI.
//! Prerequisites (look-ups, robots.txt and logins) are left out: the record of a look-up has its time and always differs.
//!
//! Both frontiers are read once, in the order of their records, which is the same in all frontiers. So memory use does not depend
//! on the number of URIs. A running job is read through its socket. A checkpoint is first copied to a folder beside it, because
//! opening a frontier changes its files.

mod result;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use jiff::Timestamp;
use opilio_job::directory;
use opilio_uri::Uri;
use serde::Deserialize;

pub use result::{
    ComparedCrawl, ComparedHost, ComparedStatus, ComparedType, ComparedVisit, CrawlComparison,
    DifferentUri, UriDifference,
};

use super::restore::{described, restore};
use super::{
    Author, Command, CommandRequest, CommandResponse, ControlError, ErrorKind, ExportFormat,
    UriSelection, carry_out,
};

/// Maximum pieces of an export that wait to be compared.
const PIECES_AHEAD: usize = 8;

/// Maximum media types that are counted by name; later ones count as `other`.
const TYPES_MAX: usize = 1_000;

/// Name of the folder with the copy of a checkpoint, before a random part.
const COPY_PREFIX: &str = ".compared-";

/// Age from which a copy counts as left by a killed comparison.
const COPY_AGE_MAX: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// Maximum hosts in the list of the largest differences.
const HOSTS_SHOWN: usize = 100;

/// Line of an export, as far as it is compared.
#[derive(Debug, Deserialize)]
struct Exported {
    uri: String,
    hop_path: String,
    visits: u64,
    versions: u64,
    #[serde(flatten)]
    visit: ComparedVisit,
}

/// Compares two jobs or checkpoints. `each` receives every URI that differs with the kind of its difference, in the order of the
/// frontier; a URI with another status and other content comes twice.
///
/// Blocks until both are read.
///
/// # Errors
/// One of the directories is not a job or a checkpoint, or cannot be read.
pub fn compare(
    a: &Path,
    b: &Path,
    by: &Author,
    mut each: impl FnMut(UriDifference, &DifferentUri),
) -> Result<CrawlComparison, ControlError> {
    let path = |side: &Path| std::fs::canonicalize(side).ok();
    if path(a).is_some_and(|a| Some(a) == path(b)) {
        return Err(ControlError::new(
            ErrorKind::Request,
            format!(
                "{} is given twice; give two jobs, or a job and one of its checkpoints",
                a.display()
            ),
        ));
    }
    let (a, b) = (Side::open(a)?, Side::open(b)?);
    let mut count = Count::new(a.crawl.clone(), b.crawl.clone());
    std::thread::scope(|threads| {
        let (a, b) = (a.read(threads, by), b.read(threads, by));
        merge(a.peekable(), b.peekable(), &mut count, &mut each)
    })?;
    Ok(count.finish())
}

/// Pairs the URIs of two exports in the same order.
fn merge(
    mut a: Peekable<impl Iterator<Item = Result<(String, Exported), ControlError>>>,
    mut b: Peekable<impl Iterator<Item = Result<(String, Exported), ControlError>>>,
    count: &mut Count,
    each: &mut impl FnMut(UriDifference, &DifferentUri),
) -> Result<(), ControlError> {
    loop {
        let order = match (a.peek(), b.peek()) {
            (None, None) => return Ok(()),
            (Some(Err(_)), _) | (Some(_), None) => Ordering::Less,
            (_, Some(Err(_))) | (None, Some(_)) => Ordering::Greater,
            (Some(Ok((a, _))), Some(Ok((b, _)))) => a.cmp(b),
        };
        let of_a = match order {
            Ordering::Greater => None,
            _ => a.next().transpose()?,
        };
        let of_b = match order {
            Ordering::Less => None,
            _ => b.next().transpose()?,
        };
        count.take(of_a.map(|(_, line)| line), of_b.map(|(_, line)| line), each);
    }
}

/// Counts in progress.
struct Count {
    comparison: CrawlComparison,
    statuses: BTreeMap<i32, (u64, u64)>,
    media_types: BTreeMap<String, (u64, u64)>,
    /// The current host: URIs of one host follow each other.
    host: Option<ComparedHost>,
}

impl Count {
    fn new(a: ComparedCrawl, b: ComparedCrawl) -> Count {
        Count {
            comparison: CrawlComparison {
                a,
                b,
                only_a: 0,
                only_b: 0,
                both: 0,
                changed: 0,
                other_status: 0,
                statuses: Vec::new(),
                media_types: Vec::new(),
                hosts: Vec::new(),
            },
            statuses: BTreeMap::new(),
            media_types: BTreeMap::new(),
            host: None,
        }
    }

    fn take(
        &mut self,
        a: Option<Exported>,
        b: Option<Exported>,
        each: &mut impl FnMut(UriDifference, &DifferentUri),
    ) {
        let visited = |line: Option<Exported>, crawl: &mut ComparedCrawl| {
            let line = line.filter(|line| !line.hop_path.ends_with('P'))?;
            crawl.versions += line.versions;
            // A URI that was never visited has no status.
            if line.visit.status == 0 && line.visits == 0 {
                crawl.unvisited += 1;
                return None;
            }
            crawl.visited += 1;
            Some(line)
        };
        let a = visited(a, &mut self.comparison.a);
        let b = visited(b, &mut self.comparison.b);
        let Some(first) = a.as_ref().or(b.as_ref()) else {
            return;
        };
        let (one, other) = (u64::from(a.is_some()), u64::from(b.is_some()));
        self.count_host(&first.uri, one, other);
        if let Some(line) = &a {
            self.statuses.entry(line.visit.status).or_default().0 += 1;
            self.of_type(&line.visit.media_type).0 += 1;
        }
        if let Some(line) = &b {
            self.statuses.entry(line.visit.status).or_default().1 += 1;
            self.of_type(&line.visit.media_type).1 += 1;
        }
        let different = DifferentUri {
            uri: first.uri.clone(),
            a: a.map(|line| line.visit),
            b: b.map(|line| line.visit),
        };
        let result = &mut self.comparison;
        match (&different.a, &different.b) {
            (Some(_), None) => {
                result.only_a += 1;
                each(UriDifference::OnlyA, &different);
            }
            (None, Some(_)) => {
                result.only_b += 1;
                each(UriDifference::OnlyB, &different);
            }
            (Some(a), Some(b)) => {
                result.both += 1;
                if a.differs(b) {
                    result.changed += 1;
                    each(UriDifference::Changed, &different);
                }
                if a.status != b.status {
                    result.other_status += 1;
                    each(UriDifference::Status, &different);
                }
            }
            (None, None) => {}
        }
    }

    fn of_type(&mut self, media_type: &str) -> &mut (u64, u64) {
        let name = match media_type {
            "" => "no-type",
            name if self.media_types.contains_key(name) => name,
            _ if self.media_types.len() >= TYPES_MAX => "other",
            name => name,
        };
        self.media_types.entry(name.to_owned()).or_default()
    }

    fn count_host(&mut self, uri: &str, a: u64, b: u64) {
        let parsed = Uri::parse(uri).ok();
        let host = parsed.as_ref().and_then(Uri::host).unwrap_or_default();
        if self.host.as_ref().is_none_or(|known| known.host != host) {
            self.end_host();
            self.host = Some(ComparedHost {
                host: host.to_owned(),
                a: 0,
                b: 0,
            });
        }
        if let Some(known) = &mut self.host {
            known.a += a;
            known.b += b;
        }
    }

    fn end_host(&mut self) {
        let Some(host) = self.host.take().filter(|host| host.a != host.b) else {
            return;
        };
        let hosts = &mut self.comparison.hosts;
        let difference = |host: &ComparedHost| host.a.abs_diff(host.b);
        let place = hosts.partition_point(|known| difference(known) >= difference(&host));
        if place < HOSTS_SHOWN {
            hosts.insert(place, host);
            hosts.truncate(HOSTS_SHOWN);
        }
    }

    fn finish(mut self) -> CrawlComparison {
        self.end_host();
        let statuses = self.statuses.into_iter();
        self.comparison.statuses = statuses
            .map(|(status, (a, b))| ComparedStatus { status, a, b })
            .collect();
        let types = self.media_types.into_iter();
        self.comparison.media_types = types
            .map(|(media_type, (a, b))| ComparedType { media_type, a, b })
            .collect();
        let types = &mut self.comparison.media_types;
        types.sort_by_key(|it| std::cmp::Reverse(it.a.max(it.b)));
        self.comparison
    }
}

/// One of the compared crawls.
struct Side {
    crawl: ComparedCrawl,
    job: PathBuf,
    /// The copy of a checkpoint, which is removed at the end.
    _copy: Option<tempfile::TempDir>,
}

impl Side {
    fn open(directory: &Path) -> Result<Side, ControlError> {
        let crawl = |job: String| ComparedCrawl {
            job,
            checkpoint: None,
            at: Timestamp::now(),
            visited: 0,
            unvisited: 0,
            versions: 0,
        };
        if directory::is_job(directory) {
            return Ok(Side {
                crawl: crawl(directory::name_of(directory)),
                job: directory.to_owned(),
                _copy: None,
            });
        }
        if !directory.exists() {
            return Err(ControlError::new(
                ErrorKind::Request,
                format!(
                    "job or checkpoint {} not found; opilio job list lists the jobs",
                    directory.display()
                ),
            ));
        }
        let made = described(directory).map_err(|problem| {
            ControlError::new(
                problem.kind,
                format!("not a job, and no usable checkpoint: {problem}"),
            )
        })?;
        let folder = directory.parent().filter(|it| *it != Path::new(""));
        let folder = folder.unwrap_or(Path::new("."));
        remove_old_copies(folder);
        let copy = tempfile::Builder::new()
            .prefix(COPY_PREFIX)
            .tempdir_in(folder)
            .map_err(|problem| ControlError::file(folder, &problem))?;
        let job = copy.path().join("job");
        restore(directory, &job)?;
        Ok(Side {
            crawl: ComparedCrawl {
                checkpoint: Some(directory::name_of(directory)),
                at: made.made,
                ..crawl(directory::name_of(&made.job))
            },
            job,
            _copy: Some(copy),
        })
    }

    /// Reads the URIs on a thread of its own, with their record keys.
    fn read<'s, 'e>(
        &'e self,
        threads: &'s std::thread::Scope<'s, 'e>,
        by: &'e Author,
    ) -> impl Iterator<Item = Result<(String, Exported), ControlError>> {
        let (send, pieces) = sync_channel(PIECES_AHEAD);
        threads.spawn(move || export(&self.job, by, &send));
        Lines {
            pieces,
            text: String::new(),
            read: 0,
        }
    }
}

/// Removes copies of comparisons that were killed.
fn remove_old_copies(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_copy = name.to_string_lossy().starts_with(COPY_PREFIX);
        let modified = entry.metadata().and_then(|found| found.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        if is_copy && age.is_some_and(|age| age > COPY_AGE_MAX) {
            // The next comparison retries a failed removal.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn export(job: &Path, by: &Author, out: &SyncSender<Result<String, ControlError>>) {
    let request = CommandRequest {
        by: by.clone(),
        command: Command::Export {
            format: ExportFormat::JsonLines,
            which: UriSelection::default(),
        },
        only_here: true,
    };
    let reached = carry_out(job, &request, &mut |answer| match answer {
        CommandResponse::Text { text } => out.send(Ok(text)).is_ok(),
        CommandResponse::Refused { kind, message } => {
            out.send(Err(ControlError { kind, message })).is_ok()
        }
        _ => true,
    });
    if let Err(problem) = reached {
        // The receiver is dropped if the other side has failed.
        let _ = out.send(Err(problem));
    }
}

/// Iterator over the lines of an export, which arrives in pieces of whole lines.
struct Lines {
    pieces: Receiver<Result<String, ControlError>>,
    text: String,
    read: usize,
}

impl Iterator for Lines {
    type Item = Result<(String, Exported), ControlError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.read >= self.text.len() {
            self.text = match self.pieces.recv().ok()? {
                Ok(text) => text,
                Err(problem) => return Some(Err(problem)),
            };
            self.read = 0;
        }
        let rest = &self.text[self.read..];
        let line = rest.lines().next().unwrap_or_default();
        self.read += line.len() + 1;
        let parsed = serde_json::from_str::<Exported>(line);
        Some(match parsed {
            Ok(exported) => {
                let uri = Uri::parse(&exported.uri);
                let key = uri.map_or_else(|_| exported.uri.clone(), |uri| uri.key());
                Ok((key, exported))
            }
            Err(problem) => Err(ControlError::new(
                ErrorKind::Failure,
                format!("unexpected line of an export: {problem}"),
            )),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn line(uri: &str, status: i32, digest: &str) -> Result<(String, Exported), ControlError> {
        let visit = ComparedVisit {
            status,
            media_type: "text/html".to_owned(),
            payload_digest: (!digest.is_empty()).then(|| digest.to_owned()),
            stripped_digest: None,
            stripper: None,
        };
        let hop_path = if uri.starts_with("dns:") { "P" } else { "L" };
        let exported = Exported {
            uri: uri.to_owned(),
            hop_path: hop_path.to_owned(),
            visits: u64::from(status > 0),
            versions: 1,
            visit,
        };
        Ok((uri.parse::<Uri>().unwrap().key(), exported))
    }

    fn side(job: &str) -> ComparedCrawl {
        ComparedCrawl {
            job: job.to_owned(),
            checkpoint: None,
            at: Timestamp::UNIX_EPOCH,
            visited: 0,
            unvisited: 0,
            versions: 0,
        }
    }

    #[test]
    fn each_uri_is_compared_with_itself() {
        let a = [
            line("http://a.org/", 200, "sha1:A"),
            line("http://a.org/gone", 200, "sha1:G"),
            line("http://a.org/new", 0, ""),
            line("dns:a.org", 1, "sha1:1"),
            line("http://b.org/same", 200, "sha1:S"),
            line("http://www.a.org/", 200, "sha1:W"),
        ];
        let b = [
            line("http://a.org/", 200, "sha1:B"),
            line("http://a.org/gone", 404, "sha1:X"),
            line("http://a.org/new", 200, "sha1:N"),
            line("dns:a.org", 1, "sha1:2"),
            line("http://b.org/same", 200, "sha1:S"),
        ];
        // The order of records is that of their keys.
        let sorted = |mut lines: Vec<Result<(String, Exported), ControlError>>| {
            lines.sort_by_key(|line| line.as_ref().unwrap().0.clone());
            lines.into_iter().peekable()
        };
        let mut count = Count::new(side("a"), side("b"));
        let mut seen = Vec::new();
        let mut each = |difference: UriDifference, uri: &DifferentUri| {
            seen.push(format!("{} {}", difference.name(), uri.uri));
        };
        merge(sorted(a.into()), sorted(b.into()), &mut count, &mut each).unwrap();
        let found = count.finish();
        assert_eq!(
            seen,
            [
                "changed http://a.org/",
                "changed http://a.org/gone",
                "status http://a.org/gone",
                "only-b http://a.org/new",
                "only-a http://www.a.org/",
            ]
        );
        assert_eq!((found.only_a, found.only_b, found.both), (1, 1, 3));
        assert_eq!((found.changed, found.other_status), (2, 1));
        assert_eq!(
            (found.a.visited, found.a.unvisited, found.b.visited),
            (4, 1, 4)
        );
        let hosts: Vec<_> = found
            .hosts
            .iter()
            .map(|it| (&*it.host, it.a, it.b))
            .collect();
        assert_eq!(hosts, [("a.org", 2, 3), ("www.a.org", 1, 0)]);
        let statuses: Vec<_> = found
            .statuses
            .iter()
            .map(|it| (it.status, it.a, it.b))
            .collect();
        assert_eq!(statuses, [(200, 4, 3), (404, 0, 1)]);
    }
}

//! `audit.jsonl`: the user, time and result of requested changes. Requests that only read are not logged; refused ones are.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Size at which a new file is begun. The old file gets the suffix `.1`, in place of the previous one.
const BYTES_MAX: u64 = 32 << 20;

/// Maximum unauthenticated requests that are logged within [`SPAN`]. More of them could fill the log and push out the entries
/// of others.
const UNAUTHENTICATED_MAX: u64 = 60;
const SPAN: Duration = Duration::from_secs(60);

/// Longest path that is logged completely.
const PATH_BYTES_MAX: usize = 1_000;

/// The log.
pub(crate) struct Audit {
    path: PathBuf,
    file: Mutex<File>,
    unauthenticated: Mutex<UnauthenticatedCounts>,
}

/// Counters of unauthenticated requests in the current span.
#[derive(Default)]
struct UnauthenticatedCounts {
    since: Option<Instant>,
    listed: u64,
    left_out: u64,
}

/// Request to change something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct AuditEntry {
    /// Time of the request.
    pub at: Timestamp,
    /// User; not set if the client was not signed in.
    pub user: Option<String>,
    /// Address of the client.
    pub from: String,
    /// HTTP method.
    pub method: String,
    /// Path of the request.
    pub path: String,
    /// Status of the response.
    pub status: u16,
    /// Reason why nothing was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Number of earlier requests that are not listed because there were too many. All were refused, and their clients were not
    /// signed in.
    #[serde(default, skip_serializing_if = "is_none")]
    pub left_out: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_none(left_out: &u64) -> bool {
    *left_out == 0
}

impl Audit {
    pub(crate) fn open(folder: &Path) -> io::Result<Audit> {
        fs::create_dir_all(folder)?;
        let path = folder.join("audit.jsonl");
        let file = Mutex::new(appended(&path)?);
        Ok(Audit {
            path,
            file,
            unauthenticated: Mutex::default(),
        })
    }

    pub(crate) fn write(&self, mut entry: AuditEntry) {
        let mut unauthenticated = self
            .unauthenticated
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if entry.user.is_none() && !unauthenticated.is_listed(Instant::now()) {
            return;
        }
        entry.left_out = std::mem::take(&mut unauthenticated.left_out);
        let end = entry.path.floor_char_boundary(PATH_BYTES_MAX);
        entry.path.truncate(end);
        if let Err(problem) = self.try_write(&entry) {
            tracing::error!("cannot write {}: {problem}", self.path.display());
        }
    }

    fn try_write(&self, entry: &AuditEntry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.metadata()?.len() > BYTES_MAX {
            fs::rename(&self.path, self.before())?;
            *file = appended(&self.path)?;
        }
        file.write_all(&line)
    }

    /// The last entries, the latest first, including those of the previous file.
    pub(crate) fn last(&self, count: usize) -> io::Result<Vec<AuditEntry>> {
        let before = || match File::open(self.before()) {
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        };
        let (now, before) = {
            // The lock prevents a rotation while the two files are read.
            let _file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            (File::open(&self.path)?, before()?)
        };
        let mut last = last_of(&now, count)?;
        if let Some(before) = before
            && last.len() < count
        {
            last.extend(last_of(&before, count - last.len())?);
        }
        Ok(last)
    }

    /// Path of the previous file.
    fn before(&self) -> PathBuf {
        self.path.with_extension("jsonl.1")
    }
}

impl UnauthenticatedCounts {
    fn is_listed(&mut self, now: Instant) -> bool {
        if self
            .since
            .is_none_or(|since| now.duration_since(since) >= SPAN)
        {
            self.since = Some(now);
            self.listed = 0;
        }
        let is_listed = self.listed < UNAUTHENTICATED_MAX;
        match is_listed {
            true => self.listed += 1,
            false => self.left_out += 1,
        }
        is_listed
    }
}

/// The last entries of a file, the latest first.
fn last_of(file: &File, count: usize) -> io::Result<Vec<AuditEntry>> {
    let mut last = VecDeque::with_capacity(count.min(1_000));
    for line in BufReader::new(file).split(b'\n') {
        // Incomplete lines (after the disk was full) and invalid ones are skipped.
        let Ok(entry) = serde_json::from_slice(&line?) else {
            continue;
        };
        if last.len() == count {
            last.pop_front();
        }
        last.push_back(entry);
    }
    Ok(last.into_iter().rev().collect())
}

fn appended(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(user: Option<&str>, path: &str) -> AuditEntry {
        AuditEntry {
            at: Timestamp::UNIX_EPOCH,
            user: user.map(str::to_owned),
            from: "192.0.2.1".to_owned(),
            method: "POST".to_owned(),
            path: path.to_owned(),
            status: 401,
            problem: None,
            left_out: 0,
        }
    }

    fn paths(audit: &Audit, count: usize) -> Vec<String> {
        let last = audit.last(count).unwrap();
        last.into_iter().map(|entry| entry.path).collect()
    }

    #[test]
    fn invalid_lines_do_not_hide_entries() {
        let home = tempfile::tempdir().unwrap();
        let audit = Audit::open(home.path()).unwrap();
        audit.write(entry(Some("lena"), "/1"));
        let mut file = appended(&home.path().join("audit.jsonl")).unwrap();
        file.write_all(b"{\"user\":\"J\xc3\n").unwrap();
        audit.write(entry(Some("lena"), "/2"));
        assert_eq!(paths(&audit, 1_000), ["/2", "/1"]);
    }

    #[test]
    fn entries_of_the_previous_file_are_listed() {
        let home = tempfile::tempdir().unwrap();
        let audit = Audit::open(home.path()).unwrap();
        audit.write(entry(Some("lena"), "/1"));
        audit.write(entry(Some("lena"), "/2"));
        let file = appended(&home.path().join("audit.jsonl")).unwrap();
        // Sparse: zeros are not a valid entry.
        file.set_len(BYTES_MAX + 1).unwrap();
        drop(file);
        audit.write(entry(Some("lena"), "/3"));
        assert_eq!(paths(&audit, 1_000), ["/3", "/2", "/1"]);
        assert_eq!(paths(&audit, 2), ["/3", "/2"]);
    }

    #[test]
    fn unauthenticated_requests_cannot_fill_the_log() {
        let home = tempfile::tempdir().unwrap();
        let audit = Audit::open(home.path()).unwrap();
        let write = |user| audit.write(entry(user, &"/é".repeat(50_000)));
        for _ in 0..UNAUTHENTICATED_MAX + 9 {
            write(None);
        }
        write(Some("lena"));
        let all = audit.last(1_000).unwrap();
        assert_eq!(all.len() as u64, UNAUTHENTICATED_MAX + 1);
        assert_eq!((all[0].user.as_deref(), all[0].left_out), (Some("lena"), 9));
        assert_eq!((all[1].user.as_deref(), all[1].left_out), (None, 0));
        assert!(all[0].path.len() <= PATH_BYTES_MAX);
        let (mut unauthenticated, now) = (UnauthenticatedCounts::default(), Instant::now());
        let listed = (0..UNAUTHENTICATED_MAX * 2).filter(|_| unauthenticated.is_listed(now));
        assert_eq!(listed.count() as u64, UNAUTHENTICATED_MAX);
        assert!(
            unauthenticated.is_listed(now + SPAN),
            "the next minute has its own"
        );
    }
}

//! `audit.jsonl`: who wanted what changed, when, and what came of it. Requests that only look are not in it, those that were
//! refused are.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A file of this size goes on in a new one; the old one gets `.1`, and the one before that goes.
const BYTES_MAX: u64 = 32 << 20;

/// The log.
pub(crate) struct Audit {
    path: PathBuf,
    file: Mutex<File>,
}

/// What somebody wanted changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct AuditEntry {
    /// When.
    pub at: Timestamp,
    /// Who; none: nobody was let in.
    pub user: Option<String>,
    /// From which address.
    pub from: String,
    /// The method of the request.
    pub method: String,
    /// Its path.
    pub path: String,
    /// The status of the response.
    pub status: u16,
    /// Why nothing was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl Audit {
    pub(crate) fn open(folder: &Path) -> io::Result<Audit> {
        fs::create_dir_all(folder)?;
        let path = folder.join("audit.jsonl");
        let file = Mutex::new(appended(&path)?);
        Ok(Audit { path, file })
    }

    pub(crate) fn write(&self, entry: &AuditEntry) {
        if let Err(problem) = self.try_write(entry) {
            tracing::error!("{} cannot be written: {problem}", self.path.display());
        }
    }

    fn try_write(&self, entry: &AuditEntry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.metadata()?.len() > BYTES_MAX {
            fs::rename(&self.path, self.path.with_extension("jsonl.1"))?;
            *file = appended(&self.path)?;
        }
        file.write_all(&line)
    }

    /// The last entries, the latest first.
    pub(crate) fn last(&self, count: usize) -> io::Result<Vec<AuditEntry>> {
        let mut last = std::collections::VecDeque::with_capacity(count.min(1_000));
        for line in BufReader::new(File::open(&self.path)?).lines() {
            // A line that a full disk has cut short.
            let Ok(entry) = serde_json::from_str(&line?) else {
                continue;
            };
            if last.len() == count {
                last.pop_front();
            }
            last.push_back(entry);
        }
        Ok(last.into_iter().rev().collect())
    }
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

//! The record of files that were handed over: `handed-over.jsonl` in the job. One JSON object a line; lines are only added. A
//! line is forced to disk before anything relies on it, such as the deletion of the local copy.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::name_in;

/// Name of the record in the job's directory.
const FILE: &str = "handed-over.jsonl";

/// File that was handed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedOver {
    /// Path of the file in the job's directory; an absolute path if it is elsewhere.
    pub file: String,
    /// Size in bytes.
    pub size: u64,
    /// `sha256:` and hexadecimal digits.
    pub digest: String,
    /// URL of the copy in the store. Not set: the command `archive.on-close` has taken the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Time at which the copy was verified, or the command ended.
    pub at: Timestamp,
}

/// Receiver of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Receiver {
    /// The command `archive.on-close`.
    Command,
    /// The store `archive.store`.
    Store,
}

/// Files that were handed over, and the open file with their list.
pub struct HandoverRecord {
    job: PathBuf,
    kept: Mutex<RecordedFiles>,
}

struct RecordedFiles {
    latest: BTreeMap<(Receiver, String), HandedOver>,
    /// All digests of a file that the store has or had, in the order of their lines.
    digests: BTreeMap<String, Vec<String>>,
    log: File,
}

/// Returns the last line about each file and receiver, by receiver and file. Lines that cannot be read are left out: a line can
/// be incomplete after a crash.
///
/// # Errors
/// The record cannot be read.
pub fn handed_over(job: &Path) -> io::Result<Vec<HandedOver>> {
    let text = read(&job.join(FILE))?;
    let mut latest = BTreeMap::new();
    for line in lines(&text) {
        latest.insert((line.receiver(), line.file.clone()), line);
    }
    Ok(latest.into_values().collect())
}

impl HandedOver {
    /// Returns the file's path.
    pub fn path(&self, job: &Path) -> PathBuf {
        job.join(&self.file)
    }

    /// Returns `true` if a file with this size and time of the last write is the file that was handed over. A file that was changed
    /// afterwards, for example by a redaction, counts as another file.
    pub fn is_of(&self, size: u64, modified: SystemTime) -> bool {
        let modified = Timestamp::try_from(modified);
        self.size == size && modified.is_ok_and(|modified| modified <= self.at)
    }

    /// Returns the receiver of the file.
    pub fn receiver(&self) -> Receiver {
        match self.url {
            Some(_) => Receiver::Store,
            None => Receiver::Command,
        }
    }
}

impl HandoverRecord {
    /// Returns `true` if this job has stored the file before.
    pub(super) fn has_stored(&self, file: &Path) -> bool {
        self.lock().digests.contains_key(&name_in(&self.job, file))
    }

    /// Opens the record of a job. Only one process may write it.
    ///
    /// # Errors
    /// The record cannot be read or created.
    pub fn open(job: &Path) -> io::Result<HandoverRecord> {
        let path = job.join(FILE);
        let text = read(&path)?;
        let mut log = OpenOptions::new().create(true).append(true).open(path)?;
        // The name of the record must be on disk before a local copy is deleted.
        #[cfg(unix)]
        File::open(job)?.sync_all()?;
        if !text.is_empty() && !text.ends_with('\n') {
            // The last process died while it wrote a line. The file of that line is handed over once more.
            log.write_all(b"\n")?;
        }
        let mut kept = RecordedFiles {
            latest: BTreeMap::new(),
            digests: BTreeMap::new(),
            log,
        };
        for line in lines(&text) {
            kept.add(line);
        }
        Ok(HandoverRecord {
            job: job.to_owned(),
            kept: Mutex::new(kept),
        })
    }

    /// Adds a file, and forces the record to disk.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn add(&self, file: HandedOver) -> io::Result<()> {
        let line = serde_json::to_string(&file)? + "\n";
        let mut kept = self.lock();
        kept.log.write_all(line.as_bytes())?;
        kept.log.sync_data()?;
        kept.add(file);
        Ok(())
    }

    /// Returns `true` if the receiver has the file in its present state. `url` is the URL of the copy in the store: a copy under
    /// another URL does not count.
    pub fn has(&self, receiver: Receiver, file: &Path, url: Option<&str>) -> bool {
        let kept = self.lock();
        let Some(known) = kept.latest.get(&(receiver, name_in(&self.job, file))) else {
            return false;
        };
        match fs::metadata(file) {
            Ok(now) => {
                let modified = now.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                known.url.as_deref() == url && known.is_of(now.len(), modified)
            }
            Err(_) => true,
        }
    }

    /// Returns `true` if this content of the file was stored at some time.
    pub(super) fn knows(&self, file: &Path, digest: &str) -> bool {
        let kept = self.lock();
        let digests = kept.digests.get(&name_in(&self.job, file));
        digests.is_some_and(|digests| digests.iter().any(|known| known == digest))
    }

    /// Returns the last line about each file and receiver.
    pub fn latest(&self) -> Vec<HandedOver> {
        self.lock().latest.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, RecordedFiles> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordedFiles {
    fn add(&mut self, line: HandedOver) {
        if line.receiver() == Receiver::Store {
            let digests = self.digests.entry(line.file.clone()).or_default();
            digests.push(line.digest.clone());
        }
        let key = (line.receiver(), line.file.clone());
        self.latest.insert(key, line);
    }
}

fn read(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        text => text,
    }
}

fn lines(text: &str) -> impl Iterator<Item = HandedOver> {
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn line(file: &str, size: u64, url: Option<&str>) -> HandedOver {
        HandedOver {
            file: file.to_owned(),
            size,
            digest: format!("sha256:{size}"),
            url: url.map(str::to_owned),
            at: Timestamp::now(),
        }
    }

    #[test]
    fn a_file_counts_as_stored_until_it_changes_or_its_url_changes() {
        let job = tempfile::tempdir().unwrap();
        let file = job.path().join("a b.warc.gz");
        fs::write(&file, "12345").unwrap();
        let record = HandoverRecord::open(job.path()).unwrap();
        assert!(!record.has(Receiver::Store, &file, Some("s3://b/a")));
        let stored = line("a b.warc.gz", 5, Some("s3://b/a"));
        record.add(stored.clone()).unwrap();
        drop(record);

        // A line that was cut off is left out, and the next one is whole.
        let path = job.path().join(FILE);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{text}{{\"file\": \"b")).unwrap();
        let record = HandoverRecord::open(job.path()).unwrap();
        record.add(line("c", 1, None)).unwrap();
        let record = HandoverRecord::open(job.path()).unwrap();
        assert_eq!(record.latest().len(), 2);
        assert!(record.has(Receiver::Store, &file, Some("s3://b/a")));
        assert!(!record.has(Receiver::Command, &file, None));
        assert!(!record.has(Receiver::Store, &file, Some("s3://other/a")));
        assert!(record.knows(&file, "sha256:5") && !record.knows(&file, "sha256:6"));
        fs::write(&file, "123456").unwrap();
        assert!(!record.has(Receiver::Store, &file, Some("s3://b/a")));
        // A deleted file needs no further hand-over.
        fs::remove_file(&file).unwrap();
        assert!(record.has(Receiver::Store, &file, Some("s3://b/a")));
        assert_eq!(handed_over(job.path()).unwrap()[1], stored);
    }
}

//! The lock of a job. Only one process holds it at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::JobError;

/// Longest wait for a job that another process holds. A command that only reads the job releases the lock within this time, a crawl
/// does not.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(3);

/// Interval between attempts meanwhile. The system offers no lock with a timeout.
pub(super) const LOCK_PROBE_INTERVAL: Duration = Duration::from_millis(20);

/// The lock of the job in `directory`. No other process can take it until this is dropped.
#[derive(Debug)]
pub struct JobLock(#[expect(dead_code, reason = "held for its lock")] File);

/// Takes the lock of a job, for example to remove the job.
///
/// # Errors
/// Fails if another process holds the job, or if the lock cannot be taken.
pub fn lock_job(directory: &Path) -> Result<JobLock, JobError> {
    lock(directory).map(JobLock)
}

/// Returns `true` if a process holds the job in `directory`. A process that starts the job during this check may be refused.
///
/// # Errors
/// Fails if the lock cannot be checked.
pub fn is_held(directory: &Path) -> io::Result<bool> {
    let file = match File::open(directory.join("lock")) {
        Ok(file) => file,
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(problem) => return Err(problem),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(problem)) => Err(problem),
    }
}

/// Returns the number of the process that holds the job in `directory`, or held it last; `None` if the file contains no process
/// number.
pub fn holder(directory: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(directory.join("lock")).ok()?;
    text.trim().parse().ok()
}

/// Takes the lock of a job. Commands that only read a job hold the lock as well for a short time, so this waits.
pub(super) fn lock(directory: &Path) -> Result<File, JobError> {
    let path = directory.join("lock");
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&path)
        .map_err(|source| JobError::io(&path, source))?;
    let began = Instant::now();
    let mut locked = file.try_lock();
    while matches!(locked, Err(TryLockError::WouldBlock)) && began.elapsed() < LOCK_WAIT_MAX {
        std::thread::sleep(LOCK_PROBE_INTERVAL);
        locked = file.try_lock();
    }
    match locked {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // Only the lock matters. The text of the file is a hint for users, so an error is ignored.
            let _ = file.read_to_string(&mut holder);
            let process = if holder.trim().is_empty() {
                "unknown".to_owned()
            } else {
                holder.trim().to_owned()
            };
            return Err(JobError::InUse {
                directory: directory.display().to_string(),
                process,
            });
        }
        Err(TryLockError::Error(source)) => return Err(JobError::io(&path, source)),
    }
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(|source| JobError::io(&path, source))?;
    Ok(file)
}

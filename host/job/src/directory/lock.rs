//! One process at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::JobError;
use super::error::io_error;

/// How long a job that another process holds is waited for: a command that looks into it is soon done, a crawl is not.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(3);

/// How often it is tried meanwhile; the system has no waiting with an end.
pub(super) const LOCK_PROBE_INTERVAL: Duration = Duration::from_millis(20);

/// Holds the job in `directory`: until this is dropped no other process has it.
#[derive(Debug)]
pub struct Hold(#[expect(dead_code, reason = "held for its lock")] File);

/// Holds a job, be it to take it away.
///
/// # Errors
/// Another process has it, or the lock cannot be taken.
pub fn hold(directory: &Path) -> Result<Hold, JobError> {
    lock(directory).map(Hold)
}

/// Whether a process holds the job in `directory`. Whoever begins it at the very moment of asking may be refused.
///
/// # Errors
/// The lock cannot be looked at.
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

/// The process that holds the job in `directory`, or held it last; none where none has told its number.
pub fn holder(directory: &Path) -> Option<u32> {
    let said = std::fs::read_to_string(directory.join("lock")).ok()?;
    said.trim().parse().ok()
}

/// Takes the lock of a job. Who only looks into one holds it as well, for as long as that takes; so it is waited for.
pub(super) fn lock(directory: &Path) -> Result<File, JobError> {
    let path = directory.join("lock");
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&path)
        .map_err(|source| io_error(&path, source))?;
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
            // The lock is what counts; its text only helps the reader.
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
        Err(TryLockError::Error(source)) => return Err(io_error(&path, source)),
    }
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(|source| io_error(&path, source))?;
    Ok(file)
}

//! Names of log files. A log that is continued in a new file leaves the old one under its name and the time.

use std::fs;
use std::io;
use std::path::Path;

/// The log of finished URIs.
pub const CRAWL: &str = "crawl.log";

/// Digits of the time after the name of a rotated log.
const TIME_DIGITS: usize = 17;

/// Returns the names of the rotated files of a log, the oldest first. Files that an operator has compressed or renamed are left out.
///
/// # Errors
/// Fails if the folder cannot be read.
pub fn rotated(directory: &Path, name: &str) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(problem) => return Err(problem),
    };
    let mut files = Vec::new();
    for entry in entries {
        let Ok(file) = entry?.file_name().into_string() else {
            continue;
        };
        let time = file
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('.'));
        let is_time =
            |time: &str| time.len() == TIME_DIGITS && time.bytes().all(|b| b.is_ascii_digit());
        if time.is_some_and(is_time) {
            files.push(file);
        }
    }
    files.sort_unstable();
    Ok(files)
}

//! Reading of a job's logs by tail, by time and by content, page by page.
//!
//! No running process and no lock are needed: a line is complete once it is visible. Even a log of gigabytes is read from the start
//! of the page only. The start of a tail is near the end of the file. The start for a time is found by bisection, since lines are
//! in the order of their times.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::filter::LogFilter;
use crate::log_files;

/// Bytes that are read at once from the end.
const BLOCK: u64 = 64 * 1024;
/// Longest line that is returned completely; the rest of a longer one is left out.
const LINE_BYTES_MAX: usize = 128 * 1024;
/// Maximum of lines of a page if no number is given.
const LINES: usize = 1000;
/// Maximum bytes of the lines of a page.
pub(super) const PAGE_BYTES_MAX: usize = 4 << 20;
/// Maximum bytes of the log that are examined for a page. A page with few matching lines ends there, and the next page continues.
const LOOKED_AT_MAX: u64 = 256 << 20;

/// Log file of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogFile {
    /// Name in the job's folder of logs.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last write.
    pub modified: Timestamp,
}

/// The lines that a reader requests.
#[derive(Clone, Debug, Default)]
pub struct LogQuery {
    /// `true` to return the last of the matching lines instead of the first.
    pub tail: bool,
    /// The position from which to read: the end of an earlier page. It overrides `tail` and `since`.
    pub after: Option<u64>,
    /// The position before which to read: the start of an earlier page.
    pub before: Option<u64>,
    /// The earliest time of a line.
    pub since: Option<Timestamp>,
    /// The time before which lines were written.
    pub until: Option<Timestamp>,
    /// Start of the first line to examine, if neither `after` nor `since` is given.
    pub not_before: Option<u64>,
    /// Conditions on the lines.
    pub filter: LogFilter,
    /// Maximum of lines to return; `None`: 1000.
    pub lines: Option<usize>,
}

/// Page of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogPage {
    /// Lines, without line ends.
    pub lines: Vec<LogText>,
    /// Start of the examined part: `before` for the previous page.
    pub start: u64,
    /// End of the examined part: `after` for the next page, or for lines that are written later.
    pub end: u64,
    /// Size of the file in bytes.
    pub size: u64,
}

/// Line of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogText {
    /// Offset of the line in the file.
    pub at: u64,
    /// Text of the line.
    pub text: String,
}

/// Returns the log files in a folder, rotated ones included, by name.
///
/// # Errors
/// Fails if the folder cannot be read.
pub fn files(folder: &Path) -> io::Result<Vec<LogFile>> {
    let mut files = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(files),
        other => other?,
    };
    for entry in entries {
        let entry = entry?;
        let file = entry.metadata()?;
        let (true, Ok(name)) = (file.is_file(), entry.file_name().into_string()) else {
            continue;
        };
        files.push(LogFile {
            name,
            size: file.len(),
            modified: Timestamp::try_from(file.modified()?).unwrap_or_default(),
        });
    }
    files.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(files)
}

/// Returns the rotated files of a log, oldest first. Files that an operator has compressed or renamed are left out.
///
/// # Errors
/// Fails if the folder cannot be read.
pub fn rotated(file: &Path) -> io::Result<Vec<PathBuf>> {
    let name = file.file_name().and_then(|name| name.to_str());
    let (Some(folder), Some(name)) = (file.parent(), name) else {
        return Ok(Vec::new());
    };
    let older = log_files::rotated(folder, name)?.into_iter();
    let older = older.map(|name| folder.join(name));
    // A link may lead to a file outside the job.
    Ok(older
        .filter(|file| file.symlink_metadata().is_ok_and(|file| file.is_file()))
        .collect())
}

/// Returns a page of a log.
///
/// # Errors
/// Fails if the file cannot be read.
pub fn page(file: &Path, wanted: &LogQuery) -> io::Result<LogPage> {
    let mut log = File::open(file)?;
    let size = log.metadata()?.len();
    let max = wanted.lines.unwrap_or(LINES).max(1);
    let from = match (wanted.after, wanted.since) {
        // A log that has been rotated meanwhile is shorter.
        (Some(after), _) if after <= size => line_start(&mut log, after)?,
        (Some(_), _) => 0,
        (None, Some(since)) => place_of(&mut log, size, since)?,
        (None, None) => wanted.not_before.unwrap_or(0),
    };
    let to = match wanted.until {
        Some(until) => place_of(&mut log, size, until)?,
        None => size,
    };
    let to = wanted.before.unwrap_or(to).min(to).max(from);
    match wanted.tail && wanted.after.is_none() {
        true => backwards(log, from, to, size, &wanted.filter, max),
        false => forwards(log, from, to, size, &wanted.filter, max),
    }
}

fn forwards(
    mut log: File,
    from: u64,
    to: u64,
    size: u64,
    filter: &LogFilter,
    max: usize,
) -> io::Result<LogPage> {
    log.seek(SeekFrom::Start(from))?;
    let mut log = BufReader::new(log);
    let mut page = LogPage {
        start: from,
        end: from,
        size,
        ..LogPage::default()
    };
    let mut bytes = 0;
    let mut line = Vec::new();
    while page.lines.len() < max
        && bytes < PAGE_BYTES_MAX
        && page.end < to
        && page.end - from < LOOKED_AT_MAX
    {
        line.clear();
        let length = log.read_until(b'\n', &mut line)? as u64;
        // A line without an end is being written.
        if line.last() != Some(&b'\n') {
            break;
        }
        let text = text_of(&line);
        if filter.accepts(&text) {
            bytes += text.len();
            page.lines.push(LogText { at: page.end, text });
        }
        page.end += length;
    }
    Ok(page)
}

/// Reads block by block from the end, until there are enough lines.
fn backwards(
    mut log: File,
    from: u64,
    to: u64,
    size: u64,
    filter: &LogFilter,
    max: usize,
) -> io::Result<LogPage> {
    let mut page = LogPage {
        start: to,
        end: to,
        size,
        ..LogPage::default()
    };
    let mut bytes = 0;
    // The first bytes of what was read so far. They end a line that begins in an earlier block.
    let mut rest: Vec<u8> = Vec::new();
    let mut at = to;
    let mut is_last = true;
    while at > from && page.lines.len() < max && bytes < PAGE_BYTES_MAX && to - at < LOOKED_AT_MAX {
        let start = at.saturating_sub(BLOCK).max(from);
        let mut block = vec![0; usize::try_from(at - start).unwrap_or(0)];
        log.seek(SeekFrom::Start(start))?;
        log.read_exact(&mut block)?;
        block.append(&mut rest);
        at = start;
        if std::mem::take(&mut is_last) {
            // A line without an end is being written.
            let whole = block
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |end| end + 1);
            block.truncate(whole);
            page.end = at + whole as u64;
            page.start = page.end;
        }
        // Offsets at which the lines of the block begin. The first line may begin in an earlier block.
        let mut starts: Vec<usize> = Vec::new();
        if at == from {
            starts.push(0);
        }
        let ends = block.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        starts.extend(
            ends.map(|(end, _)| end + 1)
                .filter(|start| *start < block.len()),
        );
        let mut end = block.len();
        for start in starts.into_iter().rev() {
            if page.lines.len() >= max || bytes >= PAGE_BYTES_MAX {
                break;
            }
            let text = text_of(&block[start..end]);
            end = start;
            page.start = at + start as u64;
            if filter.accepts(&text) {
                bytes += text.len();
                page.lines.push(LogText {
                    at: page.start,
                    text,
                });
            }
        }
        block.truncate(end);
        rest = block;
    }
    page.lines.reverse();
    Ok(page)
}

/// Returns the start of the first line of this time or later. Lines without a time belong to the line before them.
pub(super) fn place_of(log: &mut File, size: u64, since: Timestamp) -> io::Result<u64> {
    let (mut low, mut high) = (0, size);
    // The first line at or after `low` may be too early. The first line after `high` is not too early.
    while low < high {
        let middle = low + (high - low) / 2;
        let start = match middle {
            0 => 0,
            _ => line_start(log, middle)?,
        };
        match time_from(log, start, high)? {
            Some((_, end, time)) if time < since => low = end.max(middle + 1),
            Some(_) | None => high = middle,
        }
    }
    line_start(log, low)
}

/// Returns the first line with a time from `start` on, if it is before a position: its start, its end and its time.
fn time_from(
    log: &mut File,
    mut start: u64,
    before: u64,
) -> io::Result<Option<(u64, u64, Timestamp)>> {
    log.seek(SeekFrom::Start(start))?;
    let mut lines = BufReader::new(&mut *log);
    let mut line = Vec::new();
    while start < before {
        line.clear();
        let length = lines.read_until(b'\n', &mut line)? as u64;
        if length == 0 {
            return Ok(None);
        }
        let first = line
            .split(|byte| *byte == b' ')
            .find(|word| !word.is_empty());
        let time = first
            .and_then(|word| std::str::from_utf8(word).ok())
            .and_then(|word| word.parse().ok());
        if let Some(time) = time {
            return Ok(Some((start, start + length, time)));
        }
        start += length;
    }
    Ok(None)
}

/// Returns the start of the first line at or after this position.
fn line_start(log: &mut File, at: u64) -> io::Result<u64> {
    if at == 0 {
        return Ok(0);
    }
    log.seek(SeekFrom::Start(at - 1))?;
    let mut skipped = Vec::new();
    let length = BufReader::new(log).read_until(b'\n', &mut skipped)? as u64;
    Ok(at - 1 + length)
}

fn text_of(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    String::from_utf8_lossy(&line[..line.len().min(LINE_BYTES_MAX)]).into_owned()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use regex::Regex;

    use super::*;

    /// A log with lines a second apart, of different lengths, some without a time.
    fn log(lines: usize) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        for number in 0..lines {
            let at = Timestamp::UNIX_EPOCH + std::time::Duration::from_secs(number as u64);
            let long = "x".repeat(number % 97);
            writeln!(file, "{at:.3} line-{number} {long}").unwrap();
            if number % 5 == 0 {
                writeln!(file, "    at a frame").unwrap();
            }
        }
        file
    }

    /// Lines that begin with a time.
    fn with_time() -> LogFilter {
        LogFilter {
            text: Some(Regex::new("line-").unwrap()),
            ..LogFilter::default()
        }
    }

    fn names(page: &LogPage) -> Vec<usize> {
        let lines = page.lines.iter();
        let number = |line: &LogText| {
            Some(
                line.text
                    .split("line-")
                    .nth(1)?
                    .split(' ')
                    .next()?
                    .parse()
                    .unwrap(),
            )
        };
        lines.filter_map(number).collect()
    }

    #[test]
    fn a_tail_is_read_backwards_page_by_page() {
        let file = log(5000);
        let mut wanted = LogQuery {
            tail: true,
            lines: Some(700),
            filter: with_time(),
            ..LogQuery::default()
        };
        let mut seen = Vec::new();
        loop {
            let page = page(file.path(), &wanted).unwrap();
            if page.lines.is_empty() {
                break;
            }
            wanted.before = Some(page.start);
            seen.splice(0..0, names(&page));
        }
        assert_eq!(seen, (0..5000).collect::<Vec<_>>());
    }

    #[test]
    fn pages_continue_with_lines_that_are_written_later() {
        let mut file = log(3000);
        let mut wanted = LogQuery {
            lines: Some(400),
            ..LogQuery::default()
        };
        let mut seen = Vec::new();
        loop {
            let page = page(file.path(), &wanted).unwrap();
            wanted.after = Some(page.end);
            if page.lines.is_empty() {
                break;
            }
            seen.extend(names(&page));
        }
        assert_eq!(seen, (0..3000).collect::<Vec<_>>());
        write!(file, "2026-01-01T00:00:00Z line-77").unwrap();
        assert_eq!(page(file.path(), &wanted).unwrap().lines, []);
        writeln!(file, " whole").unwrap();
        assert_eq!(names(&page(file.path(), &wanted).unwrap()), [77]);
    }

    #[test]
    fn a_time_is_found_at_any_position_of_the_log() {
        let file = log(2000);
        for since in [0, 1, 2, 997, 1000, 1998, 1999] {
            let wanted = LogQuery {
                since: Some(Timestamp::UNIX_EPOCH + std::time::Duration::from_secs(since as u64)),
                lines: Some(1),
                filter: with_time(),
                ..LogQuery::default()
            };
            assert_eq!(
                names(&page(file.path(), &wanted).unwrap()),
                [since],
                "{since}"
            );
        }
        let wanted = LogQuery {
            since: Some(Timestamp::UNIX_EPOCH + std::time::Duration::from_secs(5000)),
            ..LogQuery::default()
        };
        assert_eq!(page(file.path(), &wanted).unwrap().lines, []);
    }

    #[test]
    fn an_empty_log_has_no_lines() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for tail in [false, true] {
            let wanted = LogQuery {
                tail,
                since: Some(Timestamp::UNIX_EPOCH),
                ..LogQuery::default()
            };
            assert_eq!(page(file.path(), &wanted).unwrap(), LogPage::default());
        }
    }
}

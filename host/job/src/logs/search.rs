//! Search of a log over all its files: the rotated files and the file that is being written. They are searched as one list of lines
//! in the order of time.
//!
//! For a page of results a limited number of bytes is read, even of a large log. The page's cursor is the position at which the
//! next page begins. The cursor stays valid while the log grows and is rotated.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use jiff::Timestamp;

use super::filter::LogFilter;
use super::read::{LogQuery, PAGE_BYTES_MAX, page, place_of, rotated};

/// Maximum of bytes that are examined for a page. A page with few matching lines ends there.
const EXAMINED_MAX: u64 = 256 << 20;

/// The lines that a reader requests from all files of a log.
#[derive(Clone, Debug, Default)]
pub struct LogSearch {
    /// Conditions on the lines.
    pub filter: LogFilter,
    /// The earliest time of a line.
    pub since: Option<Timestamp>,
    /// The time before which lines were written.
    pub until: Option<Timestamp>,
    /// `true` to begin with the oldest line, `false` to begin with the newest.
    pub oldest_first: bool,
    /// Start of the page: the cursor of the previous one.
    pub after: Option<LogCursor>,
    /// Maximum of lines to return.
    pub limit: usize,
}

/// Page of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLines {
    /// Matching lines in the requested order, without line ends.
    pub lines: Vec<String>,
    /// Start of the next page; `None` if everything was examined.
    pub after: Option<LogCursor>,
    /// Bytes that were examined for this page.
    pub examined: u64,
    /// Bytes of the log within the requested times, in all files.
    pub size: u64,
}

/// Position between two lines of a log. A file that is being written gets another name when it is rotated, so its position names
/// the file before it: `20261120123456789+:12`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogCursor {
    /// Time in the name of a rotated file; empty if no file was rotated.
    rotated: String,
    /// `true` if the position is in the next file.
    is_next: bool,
    offset: u64,
}

impl fmt::Display for LogCursor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let next = if self.is_next { "+" } else { "" };
        write!(out, "{}{next}:{}", self.rotated, self.offset)
    }
}

impl FromStr for LogCursor {
    type Err = String;

    fn from_str(text: &str) -> Result<LogCursor, String> {
        let invalid = || format!("invalid cursor {text:?}; pass the `after` of an earlier page");
        let (file, offset) = text.split_once(':').ok_or_else(invalid)?;
        let rotated = file.strip_suffix('+').unwrap_or(file);
        let is_next = rotated != file;
        let is_time = rotated.len() == 17 && rotated.bytes().all(|byte| byte.is_ascii_digit());
        let is_name = is_time || rotated.is_empty() && is_next;
        let offset = offset.parse().ok().filter(|_| is_name);
        Ok(LogCursor {
            rotated: rotated.to_owned(),
            is_next,
            offset: offset.ok_or_else(invalid)?,
        })
    }
}

/// A file of the log, and the part of it within the requested times.
struct Part {
    path: PathBuf,
    /// Time in its name; `None` for the file that is being written.
    rotated: Option<String>,
    from: u64,
    to: u64,
}

/// Returns a page of matching lines.
///
/// # Errors
/// Fails if a file of the log cannot be read.
pub fn search(file: &Path, wanted: &LogSearch) -> io::Result<FoundLines> {
    let mut parts = parts(file, wanted)?;
    let newest = parts.iter().rev().find_map(|part| part.rotated.clone());
    let newest = newest.unwrap_or_default();
    let mut found = FoundLines {
        lines: Vec::new(),
        after: None,
        examined: 0,
        size: parts.iter().map(|part| part.to - part.from).sum(),
    };
    if let Some(cursor) = &wanted.after {
        go_to(&mut parts, cursor, wanted.oldest_first);
    }
    if !wanted.oldest_first {
        parts.reverse();
    }
    let mut bytes = 0;
    for (n, part) in parts.iter().enumerate() {
        let (mut from, mut to) = (part.from, part.to);
        while from < to {
            let query = LogQuery {
                tail: !wanted.oldest_first,
                after: wanted.oldest_first.then_some(from),
                not_before: Some(from),
                before: Some(to),
                filter: wanted.filter.clone(),
                lines: Some(wanted.limit - found.lines.len()),
                ..LogQuery::default()
            };
            let page = page(&part.path, &query)?;
            if part.rotated.is_none() && page.size < to {
                // The file was rotated meanwhile. The cursor finds it under its new name.
                found.after = Some(LogCursor {
                    rotated: newest,
                    is_next: true,
                    offset: if wanted.oldest_first { from } else { to },
                });
                return Ok(found);
            }
            let left = to - from;
            bytes += page.lines.iter().map(|it| it.text.len()).sum::<usize>();
            let lines = page.lines.into_iter().map(|line| line.text);
            match wanted.oldest_first {
                true => {
                    found.lines.extend(lines);
                    from = page.end;
                }
                false => {
                    found.lines.extend(lines.rev());
                    to = page.start;
                }
            }
            // Only a line without its end is left.
            let is_torn = to.saturating_sub(from) == left;
            found.examined += left - to.saturating_sub(from);
            let is_full = found.lines.len() >= wanted.limit || bytes >= PAGE_BYTES_MAX;
            if is_full || found.examined >= EXAMINED_MAX {
                let is_end = n + 1 == parts.len() && from >= to;
                found.after = (!is_end).then(|| LogCursor {
                    rotated: part.rotated.clone().unwrap_or(newest),
                    is_next: part.rotated.is_none(),
                    offset: if wanted.oldest_first { from } else { to },
                });
                return Ok(found);
            }
            if is_torn {
                break;
            }
        }
    }
    Ok(found)
}

/// Returns the files of the log, the oldest first, with the part of each that can have lines of the requested times.
fn parts(file: &Path, wanted: &LogSearch) -> io::Result<Vec<Part>> {
    let mut parts = Vec::new();
    for path in rotated(file)?.into_iter().chain([file.to_owned()]) {
        // A link may lead to a file outside the job.
        if path.symlink_metadata().is_ok_and(|log| !log.is_file()) {
            continue;
        }
        let mut log = match File::open(&path) {
            Ok(log) => log,
            // The file was removed or rotated since the folder was read, or was never written.
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => continue,
            Err(problem) => return Err(problem),
        };
        let size = log.metadata()?.len();
        let from = match wanted.since {
            Some(since) => place_of(&mut log, size, since)?,
            None => 0,
        };
        let to = match wanted.until {
            Some(until) => place_of(&mut log, size, until)?,
            None => size,
        };
        let stamp = path.extension().map(|it| it.to_string_lossy().into_owned());
        parts.push(Part {
            rotated: stamp.filter(|_| path != file),
            path,
            from,
            to: to.max(from),
        });
    }
    Ok(parts)
}

/// Removes the parts that earlier pages have examined. `parts` begins with the oldest file.
fn go_to(parts: &mut Vec<Part>, cursor: &LogCursor, oldest_first: bool) {
    let is_later = |part: &Part| match &part.rotated {
        Some(stamp) if cursor.is_next => *stamp > cursor.rotated,
        Some(stamp) => *stamp >= cursor.rotated,
        None => true,
    };
    let place = parts.iter().position(is_later).unwrap_or(parts.len());
    // The file of the cursor may have been removed.
    let is_there =
        |part: &&mut Part| cursor.is_next || part.rotated.as_ref() == Some(&cursor.rotated);
    let offset = cursor.offset;
    match (oldest_first, parts.get_mut(place).filter(is_there)) {
        (true, file) => {
            if let Some(part) = file {
                part.from = offset.clamp(part.from, part.to);
            }
            parts.drain(..place);
        }
        (false, Some(part)) => {
            part.to = offset.clamp(part.from, part.to);
            parts.truncate(place + 1);
        }
        (false, None) => parts.truncate(place),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::fs;
    use std::io::Write as _;

    use super::*;

    struct Log {
        home: tempfile::TempDir,
        file: PathBuf,
        lines: u64,
        rotations: u64,
    }

    impl Log {
        fn new() -> Log {
            let home = tempfile::tempdir().unwrap();
            let file = home.path().join("crawl.log");
            Log {
                home,
                file,
                lines: 0,
                rotations: 0,
            }
        }

        /// Writes lines a second apart; every tenth has status 404.
        fn write(&mut self, count: u64) {
            let mut out = fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(&self.file)
                .unwrap();
            for _ in 0..count {
                let n = self.lines;
                let at = time(n);
                let status = if n.is_multiple_of(10) { 404 } else { 200 };
                writeln!(
                    out,
                    "{at:.3}   {status}          0 http://a.org/{n} - - text/html #001 - - - -"
                )
                .unwrap();
                self.lines += 1;
            }
        }

        fn rotate(&mut self) {
            self.rotations += 1;
            let name = format!("crawl.log.{:017}", self.rotations);
            fs::rename(&self.file, self.home.path().join(name)).unwrap();
        }

        /// Reads all pages, and calls `between` after the first.
        fn all(&mut self, mut wanted: LogSearch, between: impl FnOnce(&mut Log)) -> Vec<u64> {
            let mut between = Some(between);
            let mut seen = Vec::new();
            loop {
                let found = search(&self.file, &wanted).unwrap();
                assert!(found.lines.len() <= wanted.limit);
                seen.extend(found.lines.iter().map(|line| number(line)));
                let Some(after) = found.after else {
                    return seen;
                };
                wanted.after = Some(after.to_string().parse().unwrap());
                if let Some(between) = between.take() {
                    between(self);
                }
            }
        }
    }

    fn time(n: u64) -> Timestamp {
        Timestamp::UNIX_EPOCH + std::time::Duration::from_secs(n)
    }

    fn number(line: &str) -> u64 {
        let (_, rest) = line.split_once("a.org/").unwrap();
        rest.split(' ').next().unwrap().parse().unwrap()
    }

    fn rotated_log() -> Log {
        let mut log = Log::new();
        for count in [300, 500, 0, 200] {
            log.write(count);
            log.rotate();
        }
        log.write(100);
        log
    }

    #[test]
    fn all_files_are_searched_in_either_order() {
        let not_found = LogFilter {
            statuses: vec![404..=404],
            ..LogFilter::default()
        };
        let expected: Vec<u64> = (0..1100).step_by(10).collect();
        for limit in [1, 7, 100, 10_000] {
            let wanted = LogSearch {
                filter: not_found.clone(),
                limit,
                oldest_first: true,
                ..LogSearch::default()
            };
            assert_eq!(rotated_log().all(wanted.clone(), |_| ()), expected);
            let wanted = LogSearch {
                oldest_first: false,
                ..wanted
            };
            let newest_first: Vec<u64> = expected.iter().rev().copied().collect();
            assert_eq!(rotated_log().all(wanted, |_| ()), newest_first);
        }
    }

    #[test]
    fn only_the_part_within_the_times_is_examined() {
        let wanted = LogSearch {
            since: Some(time(250)),
            until: Some(time(820)),
            limit: 50,
            ..LogSearch::default()
        };
        let expected: Vec<u64> = (250..820).rev().collect();
        assert_eq!(rotated_log().all(wanted.clone(), |_| ()), expected);
        let found = search(&rotated_log().file, &wanted).unwrap();
        let all = search(
            &rotated_log().file,
            &LogSearch {
                limit: 1,
                ..LogSearch::default()
            },
        );
        assert!(found.size < all.unwrap().size * 6 / 10, "{found:?}");
    }

    #[test]
    fn pages_continue_after_a_rotation_and_the_removal_of_old_files() {
        let newest = LogSearch {
            limit: 60,
            ..LogSearch::default()
        };
        let expected: Vec<u64> = (0..1100).rev().collect();
        let seen = rotated_log().all(newest.clone(), |log| {
            log.rotate();
            log.write(50);
        });
        assert_eq!(seen, expected);
        let oldest = LogSearch {
            oldest_first: true,
            ..newest
        };
        let seen = rotated_log().all(oldest, |log| {
            log.write(5);
            log.rotate();
            fs::remove_file(log.home.path().join("crawl.log.00000000000000001")).unwrap();
        });
        let expected: Vec<u64> = (0..60).chain(300..1105).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn an_invalid_cursor_is_refused() {
        for text in [
            "",
            "1",
            ":1",
            "x:1",
            "x+:1",
            "20261120123456789",
            "20261120123456789:-1",
        ] {
            assert!(text.parse::<LogCursor>().is_err(), "{text}");
        }
        for cursor in ["20261120123456789:12", "20261120123456789+:12", "+:0"] {
            assert_eq!(cursor.parse::<LogCursor>().unwrap().to_string(), cursor);
        }
    }
}

//! The `ftp-listing` extractor: entries of an FTP directory listing in the format of MLSD or LIST.
//!
//! A link from MLSD has its target's date of change. Dates of LIST are ignored, because they lack the time zone and often the
//! year.

use std::fmt::Write;

use opilio_plugin::prelude::*;

use crate::Results;
use crate::content::content;
use crate::dates;

/// Header in which the host names the format of the listing: `MLSD` or `LIST`.
const HEADER: &str = "FTP-Listing";

/// The plugin. It has no settings.
#[derive(Clone, Copy, Debug)]
pub struct FtpListing;

/// An entry of a directory.
#[derive(Debug, PartialEq, Eq)]
struct Entry<'a> {
    name: &'a str,
    directory: bool,
    /// The date of change, as `YYYYMMDDHHMMSS` in UTC.
    modified: Option<&'a str>,
}

impl Plugin for FtpListing {
    const NAME: &'static str = "ftp-listing";
    const SUMMARY: &'static str = "Files and directories in the listing of an FTP directory";
    type Settings = NoSettings;

    fn new(NoSettings {}: NoSettings) -> Result<Self, Vec<SettingsFault>> {
        Ok(Self)
    }

    fn handles() -> Handles {
        Handles {
            media_types: vec!["text/plain".to_owned()],
            uris: vec!["^ftps?://".to_owned()],
        }
    }
}

impl Extractor for FtpListing {
    fn extract(&self, document: &Document) -> Extraction {
        let kinds = document.header(HEADER);
        let Some(kind) = kinds.first() else {
            return Extraction::default();
        };
        let content = content(document);
        let mut found = Results::default();
        for line in content.text.lines() {
            let entry = match kind.as_str() {
                "MLSD" => parse_mlsd(line),
                _ => parse_list(line),
            };
            if let Some(entry) = entry.filter(|entry| is_below(entry.name)) {
                found.push(link(&entry));
            }
        }
        // The URI of a directory may lack the final slash.
        let uri = document.uri();
        let base = match uri.ends_with('/') {
            true => uri,
            false => uri + "/",
        };
        Extraction {
            base: Some(base),
            ..found.into_extraction(content.problem)
        }
    }
}

fn link(entry: &Entry<'_>) -> Link {
    let slash = if entry.directory { "/" } else { "" };
    // Without `./`, a name with a colon would be parsed as a scheme.
    let uri = format!("./{}{slash}", percent_encode(entry.name));
    let mut link = Link::new(uri, Hop::Link, "ftp/listing");
    if let Some(dates) = dates::signal(None, entry.modified.and_then(parse_time)) {
        link.details.get_or_insert_default().dates = Some(dates);
    }
    link
}

/// Parses `YYYYMMDDHHMMSS` into milliseconds since 1970 (RFC 3659 §2.3). Fractions of a second are ignored.
fn parse_time(time: &str) -> Option<u64> {
    let part = |from: usize, to: usize| time.get(from..to);
    let (date, hour) = ((part(0, 4)?, part(4, 6)?, part(6, 8)?), part(8, 10)?);
    let (minute, second) = (part(10, 12)?, part(12, 14)?);
    let (year, month, day) = date;
    dates::parse(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))
}

/// Returns `true` for the name of an entry, `false` for the directory itself, its parent or a path.
fn is_below(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\'])
}

/// Percent-encodes a name for a path (RFC 3986 §3.3).
fn percent_encode(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => text.push(char::from(byte)),
            b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+'
            | b',' | b'=' | b':' | b'@' => text.push(char::from(byte)),
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    text
}

/// Parses a line of MLSD: `type=file;size=31;modify=20261120131203; name` (RFC 3659 §7.2).
fn parse_mlsd(line: &str) -> Option<Entry<'_>> {
    let (facts, name) = line.split_once("; ")?;
    let fact = |wanted: &str| {
        let facts = facts.split(';').filter_map(|fact| fact.split_once('='));
        let mut named = facts.filter(|(name, _)| name.trim().eq_ignore_ascii_case(wanted));
        named.next().map(|(_, value)| value)
    };
    let kind = fact("type").unwrap_or("file").to_ascii_lowercase();
    match kind.as_str() {
        "file" | "dir" => Some(Entry {
            name,
            directory: kind == "dir",
            modified: fact("modify"),
        }),
        // The directory itself, its parent, and symbolic links, whose targets may be anywhere.
        _ => None,
    }
}

/// Parses a line of LIST in the format of `ls -l` or of DOS.
fn parse_list(line: &str) -> Option<Entry<'_>> {
    let line = line.trim_end();
    let first = line.chars().next()?;
    match first {
        '-' | 'd' | 'l' => parse_unix(line, first),
        '0'..='9' => parse_dos(line),
        _ => None,
    }
}

/// Parses `drwxr-xr-x  2 owner group  4096 Nov 20 13:12 name`. Some servers omit the group.
fn parse_unix(line: &str, first: char) -> Option<Entry<'_>> {
    const MONTHS: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let mut rest = line;
    for _ in 0..8 {
        let word;
        (word, rest) = rest.split_once(' ')?;
        rest = rest.trim_start_matches(' ');
        if MONTHS.contains(&word.to_ascii_lowercase().as_str()) {
            // After the day and the year or time, exactly one blank precedes the name, which may begin with blanks.
            let (_, after_day) = rest.split_once(' ')?;
            let (_, name) = after_day.trim_start_matches(' ').split_once(' ')?;
            // The link's own name is reported: the server follows the link, and its target may not be accessible.
            let name = name
                .split_once(" -> ")
                .filter(|_| first == 'l')
                .map_or(name, |(name, _)| name);
            return Some(Entry {
                name,
                directory: first == 'd',
                modified: None,
            });
        }
    }
    None
}

/// Parses `11-20-26  01:12PM       <DIR>          name`.
fn parse_dos(line: &str) -> Option<Entry<'_>> {
    let (date, rest) = line.split_once(' ')?;
    let (time, rest) = rest.trim_start().split_once(' ')?;
    let (size, name) = rest.trim_start().split_once(' ')?;
    let is_size = size == "<DIR>" || size.bytes().all(|byte| byte.is_ascii_digit());
    (is_size && date.contains('-') && time.contains(':')).then(|| Entry {
        name: name.trim_start(),
        directory: size == "<DIR>",
        modified: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(entry: Option<Entry<'_>>, expected: Option<(&str, bool, Option<&str>)>) {
        let entry = entry.map(|entry| (entry.name, entry.directory, entry.modified));
        assert_eq!(entry, expected);
    }

    #[test]
    fn lines_of_mlsd() {
        check(
            parse_mlsd("Type=file;Size=31;Modify=20261120131203;Perm=r; a; b.txt"),
            Some(("a; b.txt", false, Some("20261120131203"))),
        );
        check(parse_mlsd("type=dir; sub"), Some(("sub", true, None)));
        check(parse_mlsd("type=cdir; /pub"), None);
        check(parse_mlsd("type=OS.unix=slink:/etc; x"), None);
        check(parse_mlsd("nothing"), None);
    }

    #[test]
    fn times_of_mlsd_are_utc() {
        assert_eq!(parse_time("20261120131203.25"), Some(1_795_180_323_000));
        assert_eq!(parse_time("2026112"), None);
        assert_eq!(parse_time("20269920131203"), None);
    }

    #[test]
    fn lines_of_list() {
        for (line, name, directory) in [
            (
                "-rw-r--r--   1 ftp ftp   31 Nov 20  2026 file.txt",
                "file.txt",
                false,
            ),
            ("drwxr-xr-x 2 owner 4096 Nov 20 13:12 a dir", "a dir", true),
            ("lrwxrwxrwx 1 a b 7 Nov  1 13:12 now -> 2026", "now", false),
            ("-rw-r--r-- 1 a b 7 Nov  1 13:12 a -> b", "a -> b", false),
            ("11-20-26  01:12PM       <DIR>          sub", "sub", true),
            (
                "11-20-2026  01:12PM              1234 a b.txt",
                "a b.txt",
                false,
            ),
        ] {
            check(parse_list(line), Some((name, directory, None)));
        }
        for line in [
            "total 12",
            "",
            "-rw-r--r--",
            "-rw Nov",
            "11-20-26",
            "550 no",
        ] {
            check(parse_list(line), None);
        }
    }

    #[test]
    fn names_are_encoded_and_paths_rejected() {
        assert_eq!(percent_encode("a b%#?é:1"), "a%20b%25%23%3F%C3%A9:1");
        for name in ["", ".", "..", "a/b", "..\\a"] {
            assert!(!is_below(name), "{name:?}");
        }
    }
}

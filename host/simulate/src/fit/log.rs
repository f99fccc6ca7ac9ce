//! Lines of a crawl log, as far as they contain the time and result of a page's visit.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::ops::RangeInclusive;

use flate2::bufread::MultiGzDecoder;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use opilio_profile::{Diagnostic, Diagnostics, Level, TextPosition};
use opilio_uri::Uri;

use super::FitError;
use crate::scenario::{RESPONSE_MAX, SIZE_MAX};

/// Columns that are read.
const COLUMNS: usize = 11;

/// Errors after which reading stops: the file is not a crawl log.
const FAULTS_MAX: usize = 20;

/// Longest line that is accepted.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Accepted years of visits: those in which a scenario may begin. Other years come from a wrong clock.
const YEARS: RangeInclusive<i16> = 1970..=8999;

/// One visit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LoggedVisit {
    pub(super) uri: String,
    pub(super) host: String,
    /// The first folder of its path.
    pub(super) section: String,
    pub(super) media_type: String,
    /// Milliseconds since 1970.
    pub(super) at: i64,
    /// Duration in milliseconds.
    pub(super) took: Option<u64>,
    pub(super) size: u64,
    pub(super) digest: Option<String>,
    pub(super) outcome: Outcome,
}

/// The result of a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    /// A page. Its digest shows whether it has changed.
    Body,
    /// A page of the same content, by strippers or a change evaluator.
    Unchanged,
    /// The server answered that nothing had changed.
    NotModified,
    /// The page does not exist, or not any more.
    Gone,
    /// No response, or an error.
    Failed,
}

/// Reads a log line by line, plain or compressed with gzip, and passes each visit with the number of its line to `take`. Lines
/// without a visit of a page are skipped: robots.txt, look-ups, disregarded URIs.
pub(super) fn read(
    file: &str,
    log: impl Read,
    mut take: impl FnMut(usize, LoggedVisit),
) -> Result<(), FitError> {
    let unreadable = |source| FitError::Unreadable {
        file: file.to_owned(),
        source,
    };
    let (mut log, is_packed) = unpacked(log).map_err(unreadable)?;
    let mut faults = Diagnostics::default();
    let mut line = Vec::new();
    // Whether at least one line was that of a crawl log.
    let mut is_log = false;
    for number in 1.. {
        line.clear();
        let read = (&mut log)
            .take(LINE_BYTES_MAX as u64)
            .read_until(b'\n', &mut line);
        read.map_err(|source| match is_packed && is_damage(&source) {
            true => FitError::Damaged {
                file: file.to_owned(),
                line: number - 1,
                source,
            },
            false => unreadable(source),
        })?;
        // The last line of a crawl that runs, or was killed, may be incomplete.
        let is_torn = !line.ends_with(b"\n") && line.len() < LINE_BYTES_MAX;
        let text = String::from_utf8_lossy(&line);
        let found = match is_torn {
            true => Ok(None),
            false => parse_line(text.trim_end_matches(['\r', '\n'])),
        };
        let is_text = is_text(&line);
        if !is_log && !is_text && (is_torn || found.is_err()) {
            return Err(FitError::Faults(not_text(file, is_packed).into()));
        }
        if is_torn {
            break;
        }
        match found {
            Ok(found) => {
                is_log |= !text.trim().is_empty();
                found.into_iter().for_each(|visit| take(number, visit));
            }
            Err(LineError { column, problem }) if is_text => {
                faults.push(fault(file, number, &text, column, problem));
            }
            Err(_) => {
                // The following lines would be garbage, too.
                faults.push(fault(file, number, &text, 0, "not text".to_owned()));
                break;
            }
        }
        if faults.len() == FAULTS_MAX {
            break;
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(FitError::Faults(faults))
    }
}

/// Returns a log, unpacked if gzip has packed it in one member or several, and whether it was packed.
fn unpacked<'l>(mut log: impl Read + 'l) -> io::Result<(Box<dyn BufRead + 'l>, bool)> {
    // From a pipe the first bytes may come one by one.
    let mut magic = Vec::new();
    (&mut log).take(2).read_to_end(&mut magic)?;
    let is_packed = magic == [0x1f, 0x8b];
    let log = Cursor::new(magic).chain(BufReader::with_capacity(64 * 1024, log));
    Ok(match is_packed {
        true => (Box::new(BufReader::new(MultiGzDecoder::new(log))), true),
        false => (Box::new(log), false),
    })
}

/// Returns `true` if an error is the decoder's, about damaged data. Other errors come from the disk.
fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
    )
}

/// Returns `true` if a line is UTF-8 without zeros. A character that is cut at the end is accepted.
fn is_text(line: &[u8]) -> bool {
    let is_utf8 = match std::str::from_utf8(line) {
        Ok(_) => true,
        Err(problem) => problem.error_len().is_none(),
    };
    is_utf8 && !line.contains(&0)
}

/// The remedy for an invalid line.
const REMEDY: &str =
    "take the line out, or give the crawl.log of another job: no crawl writes such a line";

/// An error of a line, with the byte at which it begins.
struct LineError {
    column: usize,
    problem: String,
}

fn not_text(file: &str, is_packed: bool) -> Diagnostic {
    let problem = match is_packed {
        true => "compressed with gzip, but its content is not text",
        false => "neither text nor compressed with gzip",
    };
    let suggestion = "give a crawl.log as it was written, or compressed with gzip; what is packed otherwise must be unpacked \
                      first, as in `zstd -dc crawl.log.zst | opilio simulate fit -`";
    Diagnostic {
        file: file.to_owned(),
        place: None,
        pointer: String::new(),
        level: Level::Error,
        problem: problem.to_owned(),
        suggestion: Some(suggestion.to_owned()),
    }
}

fn fault(file: &str, number: usize, line: &str, column: usize, problem: String) -> Diagnostic {
    let end = line[column..]
        .find(' ')
        .map_or(line.len(), |at| column + at);
    let mut place = TextPosition::of(line, column..end);
    place.line = number;
    Diagnostic {
        file: file.to_owned(),
        place: Some(place),
        pointer: String::new(),
        level: Level::Error,
        problem,
        suggestion: Some(REMEDY.to_owned()),
    }
}

fn parse_line(line: &str) -> Result<Option<LoggedVisit>, LineError> {
    let columns: Vec<&str> = line.split_ascii_whitespace().collect();
    if columns.is_empty() {
        return Ok(None);
    }
    let place = |column: &str| column.as_ptr() as usize - line.as_ptr() as usize;
    let line_error = |column: &str, problem: String| LineError {
        column: place(column),
        problem,
    };
    let &[
        logged,
        status,
        size,
        address,
        hop_path,
        _via,
        media_type,
        _worker,
        fetch,
        digest,
        ..,
    ] = columns.as_slice()
    else {
        let problem = format!(
            "{} columns where a crawl log has {COLUMNS} or more",
            columns.len()
        );
        return Err(line_error(columns[0], problem));
    };
    let code: i32 = status
        .parse()
        .map_err(|_| line_error(status, format!("{status:?} is not a status")))?;
    let is_page = address.starts_with("http://") || address.starts_with("https://");
    if !is_page || hop_path.ends_with('P') {
        return Ok(None);
    }
    let uri = Uri::parse(address).map_err(|why| line_error(address, format!("{why}")))?;
    // The twelfth column, or the eleventh if no source is written. Heritrix may write a thirteenth.
    let annotations = columns.get(COLUMNS).or(columns.get(COLUMNS - 1));
    let annotations = annotations.copied().unwrap_or_default();
    let has = |wanted: &str| {
        annotations
            .split(',')
            .any(|annotation| annotation == wanted)
    };
    let outcome = match code {
        304 => Outcome::NotModified,
        404 | 410 => Outcome::Gone,
        _ if has("duplicate:server-not-modified") => Outcome::NotModified,
        200..=299 if has("unchanged") => Outcome::Unchanged,
        200..=399 => Outcome::Body,
        1.. => Outcome::Failed,
        // Not attempted, chaff, out of scope, blocked, quota, time, deleted, robots.txt.
        0 | -50 | -4999..=-4000 | -5999..=-5000 | -6999..=-6000 | -9998 => return Ok(None),
        _ => Outcome::Failed,
    };
    let (start, took) = match fetch.split_once('+') {
        Some((start, took)) => (start, duration(took).map_err(|why| line_error(fetch, why))?),
        None => (logged, None),
    };
    let bytes = match size {
        "-" => Some(0),
        size => size.parse().ok().filter(|size| *size <= SIZE_MAX),
    };
    let bytes = bytes.ok_or_else(|| {
        let problem = format!("{size:?} is not a number of bytes, or more than {SIZE_MAX}");
        line_error(size, problem)
    })?;
    let at = time(start).ok_or_else(|| line_error(start, format!("{start:?} is not a time")))?;
    if !YEARS.contains(&at.to_zoned(TimeZone::UTC).year()) {
        let (first, last) = (YEARS.start(), YEARS.end());
        let problem = format!("{start:?} is not in the years from {first} to {last}");
        return Err(line_error(start, problem));
    }
    let folder = uri.path().trim_start_matches('/').split_once('/');
    Ok(Some(LoggedVisit {
        host: uri.host().unwrap_or_default().to_owned(),
        section: folder.map_or("", |(section, _)| section).to_owned(),
        uri: address.to_owned(),
        media_type: match media_type {
            "-" | "no-type" | "unknown" => String::new(),
            known if is_media_type(known) => known.to_ascii_lowercase(),
            // Invalid media types count as unknown: no plugin handles them.
            _ => String::new(),
        },
        at: at.as_millisecond(),
        took,
        size: bytes,
        digest: (digest != "-").then(|| digest.to_owned()),
        outcome,
    }))
}

/// Parses milliseconds; none if a clock was set back meanwhile.
fn duration(text: &str) -> Result<Option<u64>, String> {
    if text.starts_with('-') {
        return Ok(None);
    }
    let longest = RESPONSE_MAX.as_millis() as u64;
    match text.parse() {
        Ok(took) if took <= longest => Ok(Some(took)),
        _ => Err(format!(
            "{text:?} is not a number of milliseconds, or more than {longest}"
        )),
    }
}

/// Returns `true` if a text is two tokens (RFC 9110 §8.3.1), without parameters.
fn is_media_type(text: &str) -> bool {
    let is_token = |part: &str| {
        let is_of_one = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        !part.is_empty() && part.bytes().all(is_of_one)
    };
    text.split_once('/')
        .is_some_and(|(kind, format)| is_token(kind) && is_token(format))
}

/// Parses `2026-11-20T12:34:56.789Z`, or seventeen digits.
fn time(text: &str) -> Option<Timestamp> {
    if text.contains('T') {
        return text.parse().ok();
    }
    let (seconds, millis) = text.split_at_checked(14)?;
    let at = DateTime::strptime("%Y%m%d%H%M%S", seconds).ok()?;
    let at = at.to_zoned(TimeZone::UTC).ok()?.timestamp();
    let millis = if millis.is_empty() {
        0
    } else {
        millis.parse().ok()?
    };
    Timestamp::from_millisecond(at.as_millisecond().checked_add(millis)?).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::scenario::Scenario;

    const PAGE: &str = "2026-11-20T12:34:56.789Z   200       1234 http://a.org/x/y LE http://a.org/ text/html #007 \
                        20261120120000500+42 sha1:X http://a.org/ 5vis";

    #[track_caller]
    fn check(line: &str, expected: Option<Outcome>) {
        let found = parse_line(line).ok().flatten();
        assert_eq!(found.map(|visit| visit.outcome), expected, "{line}");
    }

    #[test]
    fn a_line_is_a_visit() {
        let Ok(Some(visit)) = parse_line(PAGE) else {
            panic!("no visit");
        };
        assert_eq!(
            (visit.host.as_str(), visit.section.as_str()),
            ("a.org", "x")
        );
        assert_eq!((visit.took, visit.size), (Some(42), 1234));
        assert_eq!(visit.at % 86_400_000, 12 * 3_600_000 + 500);
    }

    #[track_caller]
    fn check_refused(line: &str, expected: &str) {
        let problem = parse_line(line)
            .map_err(|line_error| line_error.problem)
            .unwrap_err();
        assert!(problem.contains(expected), "{problem}");
    }

    #[test]
    fn numbers_that_no_crawl_writes_are_refused() {
        for size in ["-5", "18446744073709551615", "many"] {
            check_refused(
                &PAGE.replace(" 1234 ", &format!(" {size} ")),
                "number of bytes",
            );
        }
        for took in ["18446744073709551615", "86400001", "1e3", ""] {
            let line = PAGE.replace("+42 ", &format!("+{took} "));
            check_refused(&line, "number of milliseconds");
        }
        check(&PAGE.replace("+42", "+-42"), Some(Outcome::Body));
        check(&PAGE.replace(" 1234 ", " - "), Some(Outcome::Body));
    }

    #[test]
    fn only_years_in_which_a_scenario_may_begin_are_accepted() {
        for (year, is_accepted) in [(1969, false), (1970, true), (8999, true), (9000, false)] {
            let web = format!(
                "start = \"{year}-06-01T00:00:00Z\"\ndays = \"40d\"\n[budget]\nvisits = 1.0\n[[site]]\nname = \"a\"\npages = 1\n\
                 [[site.page]]\nchange = {{ process = \"never\" }}\n"
            );
            let scenario = Scenario::parse("web.toml", &web);
            assert_eq!(scenario.is_ok(), is_accepted, "{year}: {scenario:?}");
            let line = PAGE.replace(" 20261120", &format!(" {year}1120"));
            if is_accepted {
                check(&line, Some(Outcome::Body));
            } else {
                check_refused(&line, "is not in the years from 1970 to 8999");
            }
        }
    }

    /// Reads a log of [`PAGE`]s named `x`. Returns the numbers of their lines, or the error.
    fn lines(log: &[u8]) -> Result<Vec<usize>, String> {
        let mut lines = Vec::new();
        read("x", log, |number, _| lines.push(number))
            .map_err(|problem| problem.to_string())
            .map(|()| lines)
    }

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_gzip_log_is_read_to_its_last_member() {
        let text = format!("{PAGE}\n{PAGE}\n");
        assert_eq!(lines(text.as_bytes()), Ok(vec![1, 2]));
        let (first, last) = text.split_at(100);
        let members = [packed(first), packed(last)].concat();
        assert_eq!(lines(&members), Ok(vec![1, 2]));
        let cut = lines(&members[..members.len() - 9]).unwrap_err();
        assert!(cut.contains("data of x is damaged behind line"), "{cut}");
    }

    #[test]
    fn a_log_that_is_not_text_is_reported_once() {
        let garbage = b"a\nb\n\xff\n\xff\0\n\n\xfe\n";
        let zeros = [0; 100].as_slice();
        for bytes in [garbage.as_slice(), &garbage[4..], zeros] {
            let problem = lines(bytes).unwrap_err();
            assert!(problem.starts_with("x: neither text nor"), "{problem}");
            assert_eq!(problem.lines().count(), 1, "{problem}");
        }
        let twice = lines(&packed("\0\n")).unwrap_err();
        assert!(twice.contains("its content is not text"), "{twice}");
        // The log begins as text and continues with other bytes.
        let broken = [PAGE.as_bytes(), b"\n", &garbage[4..]].concat();
        let problem = lines(&broken).unwrap_err();
        assert!(problem.starts_with("x:2:1: not text"), "{problem}");
        assert_eq!(problem.matches("x:").count(), 1, "{problem}");
        // The end of a log after a crash of the machine, and a half-written character.
        let torn = [PAGE.as_bytes(), b"\n", zeros].concat();
        assert_eq!(lines(&torn), Ok(vec![1]));
        assert_eq!(lines(b"\xc3"), Ok(vec![]));
        // Other encodings of addresses are accepted.
        let latin = [PAGE.as_bytes(), b",\xe4\n"].concat();
        assert_eq!(lines(&latin), Ok(vec![1]));
    }

    #[test]
    fn an_invalid_media_type_is_unknown() {
        for (written, expected) in [
            ("Text/HTML", "text/html"),
            ("no-type", ""),
            ("text/\u{7f}html", ""),
            ("text/html\u{200b}", ""),
            ("text", ""),
            ("text/", ""),
        ] {
            let found = parse_line(&PAGE.replace("text/html", written))
                .ok()
                .flatten();
            let found = found.map(|visit| visit.media_type);
            assert_eq!(found.as_deref(), Some(expected), "{written:?}");
        }
    }

    #[test]
    fn statuses_and_annotations_give_the_outcome() {
        check(PAGE, Some(Outcome::Body));
        check(
            &PAGE.replace("5vis", "5vis,unchanged"),
            Some(Outcome::Unchanged),
        );
        check(&PAGE.replace("  200", "  304"), Some(Outcome::NotModified));
        check(&PAGE.replace("  200", "  410"), Some(Outcome::Gone));
        check(&PAGE.replace("  200", "  503"), Some(Outcome::Failed));
        check(&PAGE.replace("  200", "   -2"), Some(Outcome::Failed));
        check(&PAGE.replace("  200", "-5003"), None);
        check(&PAGE.replace(" LE ", " LEP "), None);
        check(&PAGE.replace("http://a.org/x/y", "dns:a.org"), None);
        check("", None);
    }
}

//! Lines of a crawl log, as far as they say when a page was looked at and what was found.

use std::io::{BufRead, Read};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use opilio_profile::{Fault, Faults, Level, Place};
use opilio_uri::Uri;

use super::FitError;
use crate::scenario::{RESPONSE_MAX, SIZE_MAX};

/// Columns that are read.
const COLUMNS: usize = 11;

/// Faults after which nobody reads on: it is no crawl log.
const FAULTS_MAX: usize = 20;

/// Longest line that is taken for one.
const LINE_BYTES_MAX: usize = 1 << 20;

/// One visit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Look {
    pub(super) uri: String,
    pub(super) host: String,
    /// The first folder of its path.
    pub(super) section: String,
    pub(super) media_type: String,
    /// Days since 1970.
    pub(super) at: f64,
    /// Milliseconds.
    pub(super) took: Option<u64>,
    pub(super) size: u64,
    pub(super) digest: Option<String>,
    pub(super) outcome: Outcome,
}

/// What a visit found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A page; its digest says whether it is another one.
    Body,
    /// A page of the same content, as strippers or a change evaluator have it.
    Unchanged,
    /// The server said that nothing had changed.
    NotModified,
    /// There is none (any more).
    Gone,
    /// Nothing came, or an error.
    Failed,
}

/// Reads a log line by line. Lines without a visit of a page are passed over: robots.txt, look-ups, what was not to be fetched.
pub(super) fn read(
    file: &str,
    mut log: impl BufRead,
    mut take: impl FnMut(Look),
) -> Result<(), FitError> {
    let mut faults = Faults::default();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = (&mut log)
            .take(LINE_BYTES_MAX as u64)
            .read_until(b'\n', &mut line);
        read.map_err(|source| FitError::Unreadable {
            file: file.to_owned(),
            source,
        })?;
        // The last line of a crawl that runs, or was killed, may be half a line.
        if !line.ends_with(b"\n") && line.len() < LINE_BYTES_MAX {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        match look(text.trim_end_matches(['\r', '\n'])) {
            Ok(Some(look)) => take(look),
            Ok(None) => {}
            Err(Wrong { column, problem }) => {
                faults.push(fault(file, number, &text, column, problem));
                if faults.len() == FAULTS_MAX {
                    break;
                }
            }
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(FitError::Faults(faults))
    }
}

/// What helps with a line that is none.
const REMEDY: &str =
    "take the line out, or give the crawl.log of another job: no crawl writes such a line";

/// What is wrong with a line, and from which byte on.
struct Wrong {
    column: usize,
    problem: String,
}

fn fault(file: &str, number: usize, line: &str, column: usize, problem: String) -> Fault {
    let end = line[column..]
        .find(' ')
        .map_or(line.len(), |at| column + at);
    let mut place = Place::of(line, column..end);
    place.line = number;
    Fault {
        file: file.to_owned(),
        place: Some(place),
        pointer: String::new(),
        level: Level::Error,
        problem,
        suggestion: Some(REMEDY.to_owned()),
    }
}

fn look(line: &str) -> Result<Option<Look>, Wrong> {
    let columns: Vec<&str> = line.split_ascii_whitespace().collect();
    if columns.is_empty() {
        return Ok(None);
    }
    let place = |column: &str| column.as_ptr() as usize - line.as_ptr() as usize;
    let wrong = |column: &str, problem: String| Wrong {
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
        return Err(wrong(columns[0], problem));
    };
    let code: i32 = status
        .parse()
        .map_err(|_| wrong(status, format!("{status:?} is not a status")))?;
    let is_page = address.starts_with("http://") || address.starts_with("https://");
    if !is_page || hop_path.ends_with('P') {
        return Ok(None);
    }
    let uri = Uri::parse(address).map_err(|why| wrong(address, format!("{why}")))?;
    // The twelfth, or the eleventh where no source is written; Heritrix may write a thirteenth.
    let annotations = columns.get(COLUMNS).or(columns.get(COLUMNS - 1));
    let annotations = annotations.copied().unwrap_or_default();
    let has = |wanted: &str| annotations.split(',').any(|said| said == wanted);
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
        Some((start, took)) => (start, duration(took).map_err(|why| wrong(fetch, why))?),
        None => (logged, None),
    };
    let bytes = match size {
        "-" => Some(0),
        size => size.parse().ok().filter(|size| *size <= SIZE_MAX),
    };
    let bytes = bytes.ok_or_else(|| {
        let problem = format!("{size:?} is not a number of bytes, or more than {SIZE_MAX}");
        wrong(size, problem)
    })?;
    let at = time(start).ok_or_else(|| wrong(start, format!("{start:?} is not a time")))?;
    let folder = uri.path().trim_start_matches('/').split_once('/');
    Ok(Some(Look {
        host: uri.host().unwrap_or_default().to_owned(),
        section: folder.map_or("", |(section, _)| section).to_owned(),
        uri: address.to_owned(),
        media_type: match media_type {
            "-" | "no-type" | "unknown" => String::new(),
            known if is_media_type(known) => known.to_ascii_lowercase(),
            // Whatever a server has sent, no plugin is for it.
            _ => String::new(),
        },
        at: at.as_millisecond() as f64 / 86_400_000.0,
        took,
        size: bytes,
        digest: (digest != "-").then(|| digest.to_owned()),
        outcome,
    }))
}

/// Milliseconds; none where a clock was set back meanwhile.
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

/// Two tokens (RFC 9110 §8.3.1), without parameters.
fn is_media_type(text: &str) -> bool {
    let is_token = |part: &str| {
        let is_of_one = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        !part.is_empty() && part.bytes().all(is_of_one)
    };
    text.split_once('/')
        .is_some_and(|(kind, format)| is_token(kind) && is_token(format))
}

/// `2026-11-20T12:34:56.789Z`, or seventeen digits.
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
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    const PAGE: &str = "2026-11-20T12:34:56.789Z   200       1234 http://a.org/x/y LE http://a.org/ text/html #007 \
                        20261120120000500+42 sha1:X http://a.org/ 5vis";

    #[track_caller]
    fn check(line: &str, expected: Option<Outcome>) {
        let found = look(line).ok().flatten();
        assert_eq!(found.map(|look| look.outcome), expected, "{line}");
    }

    #[test]
    fn a_line_is_a_look() {
        let Ok(Some(look)) = look(PAGE) else {
            panic!("no look");
        };
        assert_eq!((look.host.as_str(), look.section.as_str()), ("a.org", "x"));
        assert_eq!((look.took, look.size), (Some(42), 1234));
        let noon = 0.5 + 500.0 / 86_400_000.0;
        assert!((look.at.fract() - noon).abs() < 1e-8, "{}", look.at);
    }

    #[track_caller]
    fn refused(line: &str, expected: &str) {
        let problem = look(line).map_err(|wrong| wrong.problem).unwrap_err();
        assert!(problem.contains(expected), "{problem}");
    }

    #[test]
    fn numbers_that_no_crawl_writes_are_refused() {
        for size in ["-5", "18446744073709551615", "many"] {
            refused(
                &PAGE.replace(" 1234 ", &format!(" {size} ")),
                "number of bytes",
            );
        }
        for took in ["18446744073709551615", "86400001", "1e3", ""] {
            let line = PAGE.replace("+42 ", &format!("+{took} "));
            refused(&line, "number of milliseconds");
        }
        check(&PAGE.replace("+42", "+-42"), Some(Outcome::Body));
        check(&PAGE.replace(" 1234 ", " - "), Some(Outcome::Body));
    }

    #[test]
    fn a_media_type_that_is_none_is_unknown() {
        for (written, expected) in [
            ("Text/HTML", "text/html"),
            ("no-type", ""),
            ("text/\u{7f}html", ""),
            ("text/html\u{200b}", ""),
            ("text", ""),
            ("text/", ""),
        ] {
            let found = look(&PAGE.replace("text/html", written)).ok().flatten();
            let found = found.map(|look| look.media_type);
            assert_eq!(found.as_deref(), Some(expected), "{written:?}");
        }
    }

    #[test]
    fn statuses_and_annotations_say_what_was_found() {
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

//! Parsers for columns of several formats, and the errors of a line.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use opilio_archive::Digest;
use opilio_uri::{HopPathError, Uri, UriError};

use super::input::LINE_BYTES_MAX;

/// An error in a line.
#[derive(Debug, thiserror::Error)]
pub enum LineProblem {
    /// The line is longer than any line of a crawler.
    #[error("longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    /// The URI contains bytes that are not UTF-8.
    #[error("the URI is not UTF-8")]
    NotUtf8,
    /// The tag is unknown. A recovery journal has `F+`, `Fe`, `Fi`, `Fd`, `Fr`, `Fs` and `Ff`.
    #[error("invalid tag of a recovery journal {0:?}")]
    Tag(String),
    /// The number of columns is wrong. A crawl log has 12 columns, or 13; old ones have 11.
    #[error("{0} columns instead of the 12 of a crawl log")]
    Columns(usize),
    /// The status is not a number.
    #[error("invalid fetch status {0:?}")]
    Status(String),
    /// The line has a tag and nothing after it.
    #[error("no URI")]
    NoUri,
    /// The URI cannot be crawled.
    #[error("{text:?} cannot be crawled")]
    Uri {
        /// The beginning of the URI.
        text: String,
        /// The reason.
        #[source]
        source: UriError,
    },
    /// The word in the place of the hop path is neither a hop path nor a URI.
    #[error("no hop path")]
    HopPath(#[source] HopPathError),
    /// The line is not a JSON object with the fields of an export.
    #[error("not a line of an export")]
    Json(#[source] serde_json::Error),
}

/// Parses the URI of a line. Lines are read as UTF-8 with replacement characters, which a URI must not contain.
pub(super) fn uri(text: &str) -> Result<Uri, LineProblem> {
    if text.contains(char::REPLACEMENT_CHARACTER) {
        return Err(LineProblem::NotUtf8);
    }
    Uri::parse(text).map_err(|source| LineProblem::Uri {
        text: text.chars().take(100).collect(),
        source,
    })
}

/// Parses `2026-11-20T12:34:56Z`, or 14 or 17 digits as in old logs.
pub(crate) fn time(text: &str) -> Option<Timestamp> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok();
    }
    let digits = |from: usize, to: usize| text.get(from..to)?.parse::<i16>().ok();
    let narrow = |from: usize, to: usize| i8::try_from(digits(from, to)?).ok();
    let nanoseconds = match text.len() {
        14 => 0,
        17 => i32::from(digits(14, 17)?) * 1_000_000,
        _ => return None,
    };
    DateTime::new(
        digits(0, 4)?,
        narrow(4, 6)?,
        narrow(6, 8)?,
        narrow(8, 10)?,
        narrow(10, 12)?,
        narrow(12, 14)?,
        nanoseconds,
    )
    .ok()?
    .to_zoned(TimeZone::UTC)
    .ok()
    .map(|zoned| zoned.timestamp())
}

/// Parses `sha1:` and 32 characters of base32. The frontier does not use other digests.
pub(super) fn sha1(text: &str) -> Option<[u8; 20]> {
    match text.parse() {
        Ok(Digest::Sha1(bytes)) => Some(bytes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_all_log_versions_are_read() {
        for (text, expected) in [
            ("2026-11-20T12:34:56.789Z", Some("2026-11-20T12:34:56.789Z")),
            ("20261120123456", Some("2026-11-20T12:34:56Z")),
            ("20261120123456789", Some("2026-11-20T12:34:56.789Z")),
            ("20261399123456", None),
            ("2026", None),
            ("", None),
            ("-", None),
        ] {
            assert_eq!(
                time(text),
                expected.map(|text| text.parse().unwrap()),
                "{text}"
            );
        }
    }
}

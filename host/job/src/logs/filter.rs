//! Conditions on lines of a log: a text, and the columns of `crawl.log`. The log page of the console, `opilio job logs` and the
//! search over all files of `crawl.log` have the same conditions.

use std::ops::RangeInclusive;

use jiff::Timestamp;
use regex::{Regex, RegexBuilder};
use serde::Serialize;
use utoipa::ToSchema;

use crate::ledger;
use crate::transfer::{Outcomes, logged_time};

/// Largest compiled expression, in bytes.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// Number of words at the beginning of a line, in logs other than `crawl.log`, among which the name of a plugin may be. The message
/// follows them.
const NAMING_WORDS: usize = 5;

/// Conditions on lines, as users write them. An empty text is not a condition.
#[derive(Clone, Debug, Default)]
pub struct LogConditions {
    /// A regular expression that the line must contain.
    pub text: Option<String>,
    /// Fetch statuses, separated by commas: `404`, `5xx`, `500-599`, `-2`.
    pub status: Option<String>,
    /// Media type, such as `text/html`, `image/*` or `no-type`.
    pub media_type: Option<String>,
    /// Host of the URI.
    pub host: Option<String>,
    /// Name of a plugin.
    pub plugin: Option<String>,
}

/// Error in a condition.
#[derive(Debug, thiserror::Error)]
pub enum LogConditionError {
    /// The text is not a regular expression.
    #[error("invalid regular expression: {0}")]
    Text(String),
    /// A part of the statuses is not a status.
    #[error(
        "invalid status {0:?}; write a status, a class or a range, such as 404, 5xx, 500-599 or -2"
    )]
    Status(String),
    /// The text is not a host name: it has other parts of a URI.
    #[error(
        "invalid host {0:?}; write a host name without scheme, port and path, such as www.example.org"
    )]
    Host(String),
}

impl LogConditions {
    /// Parses the conditions.
    ///
    /// # Errors
    /// The first invalid condition.
    pub fn parse(self) -> Result<LogFilter, LogConditionError> {
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let text = given(self.text).map(|text| {
            let built = RegexBuilder::new(&text).size_limit(REGEX_BYTES_MAX).build();
            built.map_err(|problem| {
                let message = problem.to_string();
                let last = message.lines().last().unwrap_or_default();
                let reason = last.strip_prefix("error: ").unwrap_or(last);
                LogConditionError::Text(reason.to_owned())
            })
        });
        let statuses = given(self.status)
            .map(|text| Outcomes::statuses(&text))
            .transpose()
            .map_err(LogConditionError::Status)?;
        let host = given(self.host);
        // The host of look-ups, such as `dns:`, ends with a colon. An IPv6 address has colons within brackets.
        let is_host = |host: &String| {
            let name = host.strip_suffix(':').unwrap_or(host);
            !name.contains(['/', '@', '?', '#', ' '])
                && (name.starts_with('[') || !name.contains(':'))
        };
        if let Some(invalid) = host.as_ref().filter(|host| !is_host(host)) {
            return Err(LogConditionError::Host(invalid.clone()));
        }
        Ok(LogFilter {
            text: text.transpose()?,
            statuses: statuses.unwrap_or_default(),
            media_type: given(self.media_type),
            host,
            plugin: given(self.plugin),
        })
    }
}

/// Conditions on a line. All must match; without conditions, every line matches.
#[derive(Clone, Debug, Default)]
pub struct LogFilter {
    /// An expression that the line must contain.
    pub text: Option<Regex>,
    /// Fetch statuses; empty: any.
    pub statuses: Vec<RangeInclusive<i32>>,
    /// Media type without parameters; `image/*` matches all images, `no-type` lines without a media type.
    pub media_type: Option<String>,
    /// Host of the URI, without its subdomains; `dns:` for look-ups.
    pub host: Option<String>,
    /// Name of a plugin. It matches a part of an annotation in `crawl.log`; in other logs, a word before the message.
    pub plugin: Option<String>,
}

/// A line of `crawl.log` by its columns. Columns with `-` are not set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct LoggedVisit<'l> {
    /// Time at which the line was written.
    pub logged: &'l str,
    /// HTTP status, or a status code of Opilio.
    pub status: i32,
    /// Size of the content in bytes.
    pub size: Option<u64>,
    /// The URI.
    pub uri: &'l str,
    /// Hop path; not set for a seed.
    pub hop_path: Option<&'l str>,
    /// The page on which it was found.
    pub via: Option<&'l str>,
    /// Media type; `no-type` if the server named none.
    pub media_type: &'l str,
    /// Time at which the fetch began.
    pub fetched: Option<Timestamp>,
    /// Duration of the fetch in milliseconds, as the log has it.
    pub took_ms: Option<u64>,
    /// Payload digest.
    pub digest: Option<&'l str>,
    /// The seed it descends from.
    pub source: Option<&'l str>,
    /// Annotations.
    pub annotations: Vec<&'l str>,
}

impl<'l> LoggedVisit<'l> {
    /// Parses a line; `None` if it does not have the columns of `crawl.log`.
    pub fn parse(line: &'l str) -> Option<LoggedVisit<'l>> {
        let mut columns = line.split_ascii_whitespace();
        let present = |column: &'l str| (column != "-").then_some(column);
        let logged = columns.next()?;
        let status = columns.next()?.parse().ok()?;
        let size = columns.next()?.parse().ok();
        let uri = columns.next()?;
        let hop_path = present(columns.next()?);
        let via = present(columns.next()?);
        let media_type = columns.next()?;
        let fetch = columns.nth(1)?.split_once('+');
        let digest = present(columns.next()?);
        let source = present(columns.next()?);
        let annotations = present(columns.next()?);
        Some(LoggedVisit {
            logged,
            status,
            size,
            uri,
            hop_path,
            via,
            media_type,
            fetched: fetch.and_then(|(start, _)| logged_time(start)),
            took_ms: fetch.and_then(|(_, took)| took.parse().ok()),
            digest,
            source,
            annotations: annotations.map_or_else(Vec::new, |text| text.split(',').collect()),
        })
    }
}

impl LogFilter {
    /// Returns `true` if some condition needs the columns of `crawl.log`.
    pub fn needs_columns(&self) -> bool {
        !self.statuses.is_empty() || self.media_type.is_some() || self.host.is_some()
    }

    /// Returns `true` if a line matches all conditions.
    pub fn accepts(&self, line: &str) -> bool {
        if !self.text.as_ref().is_none_or(|text| text.is_match(line)) {
            return false;
        }
        if !self.needs_columns() && self.plugin.is_none() {
            return true;
        }
        match LoggedVisit::parse(line) {
            Some(visit) => self.accepts_visit(&visit),
            None if self.needs_columns() => false,
            None => self.plugin.as_ref().is_none_or(|it| names(line, it)),
        }
    }

    fn accepts_visit(&self, visit: &LoggedVisit<'_>) -> bool {
        let statuses = &self.statuses;
        let of_type = |wanted: &String| match wanted.strip_suffix('*') {
            Some(kind) => {
                let beginning = visit.media_type.get(..kind.len());
                beginning.is_some_and(|it| it.eq_ignore_ascii_case(kind))
            }
            None => visit.media_type.eq_ignore_ascii_case(wanted),
        };
        let is_annotated = |wanted: &String| {
            let mut words = visit.annotations.iter().flat_map(|it| it.split(':'));
            words.any(|word| word == wanted)
        };
        (statuses.is_empty() || statuses.iter().any(|range| range.contains(&visit.status)))
            && self.media_type.as_ref().is_none_or(of_type)
            && self
                .host
                .as_ref()
                .is_none_or(|host| ledger::host_of(visit.uri).eq_ignore_ascii_case(host))
            && self.plugin.as_ref().is_none_or(is_annotated)
    }
}

/// Returns `true` if a line of a log other than `crawl.log` names a plugin before its message: an error or an alert of the plugin,
/// its decision on a link, or a command on it.
fn names(line: &str, plugin: &str) -> bool {
    let words = line.split_ascii_whitespace().take(NAMING_WORDS);
    let mut words = words.filter(|word| !word.contains("://"));
    words.any(|word| {
        let mut parts = word.split(':');
        parts.any(|part| part.trim_matches('"') == plugin)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    const LINE: &str = "2026-11-20T12:34:56.789Z   404       1234 http://a.org/x LE http://a.org/ Text/HTML #007 \
                        20261120123455001+42 sha1:X http://a.org/ soft404,by:soft-404,3t,wt-by:adaptive,5vis";

    #[track_caller]
    fn check(filter: &LogFilter, expected: bool) {
        assert_eq!(filter.accepts(LINE), expected, "{filter:?}");
        // A condition on columns matches no line without columns.
        let is_other = filter.accepts("2026-11-20T12:34:56.789Z an alert about a.org");
        assert!(!is_other || !filter.needs_columns(), "{filter:?}");
    }

    #[test]
    fn each_condition_must_match() {
        let none = LogFilter::default();
        check(&none, true);
        for (text, expected) in [("a\\.org/x", true), ("b\\.org", false)] {
            let text = Some(Regex::new(text).unwrap());
            check(
                &LogFilter {
                    text,
                    ..none.clone()
                },
                expected,
            );
        }
        for (statuses, expected) in [(400..=499, true), (404..=404, true), (-2..=-2, false)] {
            let statuses = vec![statuses];
            check(
                &LogFilter {
                    statuses,
                    ..none.clone()
                },
                expected,
            );
        }
        for (media_type, expected) in [
            ("text/html", true),
            ("text/*", true),
            ("text", false),
            ("image/*", false),
            ("application/very-long-name*", false),
        ] {
            let media_type = Some(media_type.to_owned());
            check(
                &LogFilter {
                    media_type,
                    ..none.clone()
                },
                expected,
            );
        }
        for (host, expected) in [("A.org", true), ("org", false), ("www.a.org", false)] {
            let host = Some(host.to_owned());
            check(
                &LogFilter {
                    host,
                    ..none.clone()
                },
                expected,
            );
        }
        for (plugin, expected) in [("adaptive", true), ("soft-404", true), ("adapt", false)] {
            let plugin = Some(plugin.to_owned());
            check(
                &LogFilter {
                    plugin,
                    ..none.clone()
                },
                expected,
            );
        }
    }

    #[test]
    fn lines_of_other_logs_can_be_filtered_by_plugin() {
        for (line, plugin, expected) in [
            (
                "2026-11-20T12:34:56.789Z html trap http://a.org/: no css",
                "html",
                true,
            ),
            (
                "2026-11-20T12:34:56.789Z html trap http://a.org/: no css",
                "css",
                false,
            ),
            (
                "2026-11-20T12:34:56.789Z html trap http://a.org/: no css",
                "http",
                false,
            ),
            (
                "2026-11-20T12:34:56.789Z raised warning plugin html failed",
                "html",
                true,
            ),
            (
                "2026-11-20T12:34:56.789Z REJECT hops:far http://a.org/ -",
                "hops",
                true,
            ),
            (
                "2026-11-20T12:34:56.789Z lena:7 plugin replace \"html\" \"./a.wasm\" => done",
                "html",
                true,
            ),
        ] {
            let filter = LogFilter {
                plugin: Some(plugin.to_owned()),
                ..LogFilter::default()
            };
            assert_eq!(filter.accepts(line), expected, "{plugin}: {line}");
        }
    }

    #[test]
    fn invalid_conditions_are_errors() {
        let conditions = |text: &str, status: &str, host: &str| {
            let given = |text: &str| Some(text.to_owned());
            let conditions = LogConditions {
                text: given(text),
                status: given(status),
                host: given(host),
                ..LogConditions::default()
            };
            conditions.parse().map_err(|problem| problem.to_string())
        };
        assert!(!conditions("", "", "").unwrap().needs_columns());
        let filter = conditions("a+", "404,5xx", "[::1]").unwrap();
        assert_eq!(filter.statuses, [404..=404, 500..=599]);
        for (text, status, host, expected) in [
            ("(", "", "", "invalid regular expression: unclosed group"),
            ("", "4x", "", "invalid status \"4x\"; write"),
            (
                "",
                "",
                "http://a.org/",
                "invalid host \"http://a.org/\"; write",
            ),
            ("", "", "a.org:80", "invalid host \"a.org:80\"; write"),
        ] {
            let problem = conditions(text, status, host).unwrap_err();
            assert!(problem.starts_with(expected), "{problem}");
        }
    }

    #[test]
    fn the_columns_of_a_visit_are_named_in_json() {
        let visit = LoggedVisit::parse(LINE).unwrap();
        let read = serde_json::to_value(&visit).unwrap();
        let expected = serde_json::json!({
            "logged": "2026-11-20T12:34:56.789Z", "status": 404, "size": 1234, "uri": "http://a.org/x", "hop_path": "LE",
            "via": "http://a.org/", "media_type": "Text/HTML", "fetched": "2026-11-20T12:34:55.001Z", "took_ms": 42, "digest": "sha1:X", "source": "http://a.org/",
            "annotations": ["soft404", "by:soft-404", "3t", "wt-by:adaptive", "5vis"],
        });
        assert_eq!(read, expected);
        assert_eq!(LoggedVisit::parse(&LINE[..100]), None);
    }
}

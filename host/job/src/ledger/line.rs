//! A line of `crawl.log` as the ledger counts it. It is always parsed from the text of the log, so that counts of a running crawl
//! and counts after a crash are equal.

use opilio_frontier::LastOutcome;

/// The parts of a line that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CountedLine<'l> {
    /// Time at which the line was written.
    pub logged: &'l str,
    /// HTTP status, or a code of the glossary.
    pub status: i32,
    /// Bytes of content.
    pub bytes: u64,
    /// The host's name; `dns:` and `whois:` for look-ups.
    pub host: &'l str,
    /// The media type; `no-type` if the server named none.
    pub media_type: &'l str,
    /// The seed it descends from.
    pub source: Option<&'l str>,
    /// The content, compared with the archive.
    pub content: ResponseContent,
    /// `true` if a filter identified the response as a bot wall.
    pub is_wall: bool,
    /// `true` for a prerequisite: a DNS look-up, a robots.txt or a login.
    pub is_prerequisite: bool,
}

/// Content of a response, compared with the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseContent {
    /// New, as far as is known.
    Novel,
    /// The content is archived already, by its digest or by the answer of a change evaluator.
    Duplicate,
    /// The server answered 304.
    NotModified,
}

impl CountedLine<'_> {
    /// Parses a line; `None` if it is not a complete line of `crawl.log`.
    pub(super) fn read(line: &str) -> Option<CountedLine<'_>> {
        let mut columns = line.split_ascii_whitespace();
        let logged = columns.next()?;
        let status = columns.next()?.parse().ok()?;
        let bytes = columns.next()?.parse().unwrap_or(0);
        let host = host(columns.next()?);
        let is_prerequisite = columns.next()?.ends_with('P');
        let media_type = columns.nth(1)?;
        let source = columns.nth(3)?;
        let annotations = columns.next()?;
        let has = |wanted: &str| {
            annotations
                .split(',')
                .any(|annotation| annotation == wanted)
        };
        let is_wall = annotations
            .split(',')
            .any(|annotation| annotation.starts_with("botblock:"));
        Some(CountedLine {
            logged,
            is_wall,
            is_prerequisite,
            status,
            bytes,
            host,
            media_type,
            source: (source != "-").then_some(source),
            content: if has("duplicate:server-not-modified") {
                ResponseContent::NotModified
            } else if has("duplicate:digest") || has("unchanged") {
                ResponseContent::Duplicate
            } else {
                ResponseContent::Novel
            },
        })
    }

    /// Returns `true` if the visit had a response of any status.
    pub(super) fn is_response(&self) -> bool {
        self.status > 0
    }

    /// Returns the outcome of the visit.
    pub(super) fn outcome(&self) -> LastOutcome {
        LastOutcome::of(self.status, self.is_prerequisite)
    }
}

/// Returns the host of a normalised URI, without port and userinfo.
pub(crate) fn host(uri: &str) -> &str {
    let Some((scheme, rest)) = uri.split_once(':') else {
        return uri;
    };
    let Some(rest) = rest.strip_prefix("//") else {
        return &uri[..=scheme.len()];
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let authority = authority.rsplit('@').next().unwrap_or(authority);
    match authority.strip_prefix('[').and_then(|it| it.find(']')) {
        Some(end) => &authority[..end + 2],
        None => authority.split(':').next().unwrap_or(authority),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_counted_by_their_names() {
        for (uri, expected) in [
            ("http://example.org/a?b", "example.org"),
            ("https://u:p@example.org:8443?q", "example.org"),
            ("http://[::1]:80/", "[::1]"),
            ("dns:example.org", "dns:"),
            ("ftp://example.org", "example.org"),
        ] {
            assert_eq!(host(uri), expected, "{uri}");
        }
    }

    #[test]
    fn lines_are_parsed_by_columns_and_half_a_line_is_invalid() {
        let line = "2026-11-20T12:34:56.789Z   200       1234 http://a.org/x LE http://a.org/ text/html #007 \
                    20261120123455001+42 sha1:X http://a.org/ unchanged,duplicate:digest,5vis";
        let expected = CountedLine {
            logged: "2026-11-20T12:34:56.789Z",
            status: 200,
            bytes: 1234,
            host: "a.org",
            media_type: "text/html",
            source: Some("http://a.org/"),
            content: ResponseContent::Duplicate,
            is_wall: false,
            is_prerequisite: false,
        };
        assert_eq!(CountedLine::read(line), Some(expected));
        assert_eq!(CountedLine::read(&line[..100]), None);
    }
}

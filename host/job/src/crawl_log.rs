//! `crawl.log`: one line per finished URI, in the columns of Heritrix, which operators' scripts read.
//!
//! Columns, separated by one blank: time logged, status (right-aligned, 5), size (right-aligned, 10), URI, hop path, via, media
//! type, lane, start of fetch + duration in milliseconds, payload digest, source tag, annotations; and JSON if the profile enables
//! it. `-` marks a missing value. The URI starts at offset 42 as long as status and size fit their widths. Some scripts rely on
//! this.

use std::fmt::{self, Display, Write};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use opilio_sandbox::is_unprintable;

/// One finished URI.
#[derive(Clone, Debug)]
pub struct CrawlLogLine {
    /// Time at which the line was written.
    pub logged: Timestamp,
    /// HTTP status or a code of the glossary.
    pub status: i32,
    /// Size of the content in bytes, if there was a response.
    pub size: Option<u64>,
    /// The URI.
    pub uri: String,
    /// Hop path; empty for a seed.
    pub hop_path: String,
    /// The page on which it was found.
    pub via: Option<String>,
    /// Media type without parameters, if the server named one.
    pub media_type: Option<String>,
    /// Number of the worker that visited it.
    pub worker: usize,
    /// Start and duration of the fetch, if there was one.
    pub fetch: Option<(Timestamp, Duration)>,
    /// Payload digest, such as `sha1:…`.
    pub digest: Option<String>,
    /// The seed it descends from, if the profile keeps sources.
    pub source: Option<String>,
    /// Annotations in order; blanks and commas within one become underscores.
    pub annotations: Vec<String>,
    /// The thirteenth column, if the profile enables it.
    pub extra: Option<ExtraInfo>,
}

/// Values of a visit for the thirteenth column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtraInfo {
    /// Bytes of the response as received over the wire, headers included.
    pub received: Option<u64>,
    /// The archive file with the capture.
    pub file: Option<String>,
    /// Offset of the record in that file.
    pub offset: Option<u64>,
}

impl Display for CrawlLogLine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_dash = |text: Option<&str>| {
            text.filter(|text| !text.is_empty())
                .unwrap_or("-")
                .to_owned()
        };
        write!(out, "{} {:>5} ", iso_milliseconds(self.logged), self.status)?;
        match self.size {
            Some(size) => write!(out, "{size:>10}")?,
            None => write!(out, "{:>10}", "-")?,
        }
        let media_type = self
            .media_type
            .as_deref()
            .filter(|media_type| !media_type.is_empty())
            .unwrap_or("no-type");
        write!(
            out,
            " {} {} {} {} #{:03} ",
            self.uri,
            or_dash(Some(&self.hop_path)),
            or_dash(self.via.as_deref()),
            column(media_type.split([';', ' ']).next().unwrap_or("no-type")),
            self.worker,
        )?;
        match self.fetch {
            Some((start, duration)) => {
                write!(out, "{}+{}", timestamp17(start), duration.as_millis())?
            }
            None => out.write_char('-')?,
        }
        write!(
            out,
            " {} {} {}",
            or_dash(self.digest.as_deref()),
            column(&or_dash(self.source.as_deref())),
            or_dash(Some(&annotations_text(&self.annotations))),
        )?;
        match &self.extra {
            Some(extra) => write!(out, " {}", column(&extra.as_json().to_string())),
            None => Ok(()),
        }
    }
}

impl ExtraInfo {
    /// Returns the values under Heritrix's names; missing ones are omitted.
    fn as_json(&self) -> serde_json::Value {
        let mut named = serde_json::Map::new();
        if let Some(received) = self.received {
            named.insert("contentSize".to_owned(), received.into());
        }
        if let Some(file) = &self.file {
            named.insert("warcFilename".to_owned(), file.as_str().into());
        }
        if let Some(offset) = self.offset {
            named.insert("warcFileOffset".to_owned(), offset.into());
        }
        named.into()
    }
}

impl CrawlLogLine {
    /// Returns the same columns by their names, for machines. Missing values are omitted.
    pub fn as_json(&self) -> serde_json::Value {
        let mut line = serde_json::json!({
            "logged": iso_milliseconds(self.logged),
            "status": self.status,
            "uri": self.uri,
            "hop_path": self.hop_path,
            "worker": self.worker,
            "annotations": self.annotations.iter().map(|text| printable(text)).collect::<Vec<_>>(),
        });
        let mut set = |name: &str, value: serde_json::Value| line[name] = value;
        if let Some(size) = self.size {
            set("size", size.into());
        }
        if let Some((start, took)) = self.fetch {
            set("fetched", iso_milliseconds(start).into());
            let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            set("took_ms", took.into());
        }
        if let Some(extra) = &self.extra {
            set("extra", extra.as_json());
        }
        let texts = [
            ("via", &self.via),
            ("media_type", &self.media_type),
            ("digest", &self.digest),
            ("source", &self.source),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                set(name, printable(text).into());
            }
        }
        line
    }
}

/// Formats a time as `2026-11-20T12:34:56.789Z`.
pub fn iso_milliseconds(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC)
        .strftime("%Y-%m-%dT%H:%M:%S.%3fZ")
        .to_string()
}

/// Formats a time as `20261120123456789`.
pub fn timestamp17(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC)
        .strftime("%Y%m%d%H%M%S%3f")
        .to_string()
}

/// Makes a value safe for its column: blanks and unprintable characters would shift every later column.
pub fn column(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_whitespace() || is_unprintable(c) {
                '_'
            } else {
                c
            }
        })
        .collect()
}

/// Returns a text on one line, in its own order: unprintable characters become blanks.
pub fn printable(text: &str) -> String {
    let blank = |c: char| if is_unprintable(c) { ' ' } else { c };
    text.chars().map(blank).collect()
}

/// Returns annotations as one word, separated by commas. Blanks and commas within an annotation become underscores.
pub fn annotations_text(annotations: &[String]) -> String {
    let words = annotations.iter();
    let words = words.map(|annotation| column(annotation).replace(',', "_"));
    words.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> CrawlLogLine {
        CrawlLogLine {
            logged: "2026-11-20T12:34:56.789Z".parse().unwrap(),
            status: 200,
            size: Some(1234),
            uri: "http://example.org/".to_owned(),
            hop_path: "LE".to_owned(),
            via: Some("http://example.org/via".to_owned()),
            media_type: Some("text/html; charset=utf-8".to_owned()),
            worker: 7,
            fetch: Some((
                "2026-11-20T12:34:55.001Z".parse().unwrap(),
                Duration::from_millis(42),
            )),
            digest: Some("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ".to_owned()),
            source: None,
            annotations: vec!["3t".to_owned(), "err=a, b".to_owned()],
            extra: None,
        }
    }

    #[test]
    fn columns_are_at_the_offsets_that_scripts_expect() {
        let text = line().to_string();
        assert_eq!(
            text,
            "2026-11-20T12:34:56.789Z   200       1234 http://example.org/ LE http://example.org/via text/html #007 \
             20261120123455001+42 sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - 3t,err=a__b"
        );
        assert_eq!(text.find("http://"), Some(42));
    }

    #[test]
    fn the_thirteenth_column_is_json_without_blanks() {
        let extra = ExtraInfo {
            received: Some(1300),
            file: Some("WEB 1.warc.gz".to_owned()),
            offset: Some(0),
        };
        for (extra, expected) in [
            (
                extra,
                r#" {"contentSize":1300,"warcFileOffset":0,"warcFilename":"WEB_1.warc.gz"}"#,
            ),
            (ExtraInfo::default(), " {}"),
        ] {
            let line = CrawlLogLine {
                extra: Some(extra),
                ..line()
            };
            let text = line.to_string();
            assert!(
                text.ends_with(&format!(" - 3t,err=a__b{expected}")),
                "{text}"
            );
        }
    }

    #[test]
    fn bidirectional_control_characters_are_replaced() {
        let line = CrawlLogLine {
            media_type: Some("text/\u{202e}lmth".to_owned()),
            source: Some("a\u{2066}b".to_owned()),
            annotations: vec!["ok\u{202e}dedulcxEtobor".to_owned(), "\u{200f}".to_owned()],
            ..line()
        };
        let text = line.to_string();
        assert!(text.contains(" text/_lmth #007 "), "{text}");
        assert!(text.ends_with(" a_b ok_dedulcxEtobor,_"), "{text}");
        assert!(!line.as_json().to_string().contains(is_unprintable));
    }

    #[test]
    fn missing_values_are_dashes() {
        let line = CrawlLogLine {
            status: -2,
            size: None,
            hop_path: String::new(),
            via: None,
            media_type: None,
            fetch: None,
            digest: None,
            annotations: Vec::new(),
            ..line()
        };
        assert_eq!(
            line.to_string(),
            "2026-11-20T12:34:56.789Z    -2          - http://example.org/ - - no-type #007 - - - -"
        );
    }
}

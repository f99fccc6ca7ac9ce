//! Export of URIs and queues as JSON lines.

use std::io::Write;

use opilio_frontier::{QueueReport, UriRecord};
use regex::Regex;

use super::TransferError;
use super::json_lines::{QueueLine, UriLine};

/// The URIs to export.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    key_prefix: String,
    uri: Option<Regex>,
}

impl Selection {
    /// Selects URIs whose key begins with this prefix and that contain a match of the expression. The prefix is written as a SURT
    /// prefix or without the scheme (`org,example,www,)/path`). In a SURT prefix (`http://(org,example,`) the scheme does not
    /// matter, since URIs of all schemes are next to each other. An empty prefix selects all.
    #[must_use]
    pub fn new(surt_prefix: &str, uri: Option<Regex>) -> Selection {
        Selection {
            key_prefix: key_prefix(surt_prefix),
            uri,
        }
    }

    /// Returns the prefix for [`Frontier::records`](opilio_frontier::Frontier::records).
    #[must_use]
    pub fn key_prefix(&self) -> &str {
        &self.key_prefix
    }

    /// Whether the rest of the selection accepts the URI.
    pub fn takes(&self, record: &UriRecord) -> bool {
        self.uri
            .as_ref()
            .is_none_or(|expression| expression.is_match(&record.uri))
    }
}

/// Converts a SURT prefix to a record key's form: without scheme and bracket, and with `#` instead of a colon before a port.
fn key_prefix(surt_prefix: &str) -> String {
    let prefix = match surt_prefix.split_once("://(") {
        Some((scheme, rest)) if scheme.bytes().all(|byte| byte.is_ascii_alphabetic()) => rest,
        _ => surt_prefix.strip_prefix('(').unwrap_or(surt_prefix),
    };
    let (authority, path) = prefix.split_at(prefix.find(')').unwrap_or(prefix.len()));
    match authority.rsplit_once(':') {
        // The other colons of an IPv6 address are within brackets.
        Some((host, port))
            if port.bytes().all(|byte| byte.is_ascii_digit())
                && (host.ends_with(']') || !host.starts_with('[')) =>
        {
            format!("{host}#{port}{path}")
        }
        _ => prefix.to_owned(),
    }
}

/// Writes a line of JSON per URI, in the order of the records. Returns the number of lines.
///
/// # Errors
/// Returns [`TransferError::Write`] or [`TransferError::Frontier`]; the output so far consists of complete lines.
pub fn write_json_lines(
    records: impl IntoIterator<Item = Result<UriRecord, opilio_frontier::Error>>,
    selection: &Selection,
    out: &mut impl Write,
) -> Result<u64, TransferError> {
    let mut count = 0;
    for record in records {
        let record = record?;
        if selection.takes(&record) {
            write_line(&UriLine::from(record), out)?;
            count += 1;
        }
    }
    out.flush().map_err(TransferError::Write)?;
    Ok(count)
}

/// Writes a line of JSON per queue. Returns the number of lines.
///
/// # Errors
/// [`TransferError::Write`]
pub fn write_queues(
    queues: impl IntoIterator<Item = QueueReport>,
    out: &mut impl Write,
) -> Result<u64, TransferError> {
    let mut count = 0;
    for queue in queues {
        write_line(&QueueLine::from(queue), out)?;
        count += 1;
    }
    out.flush().map_err(TransferError::Write)?;
    Ok(count)
}

fn write_line(line: &impl serde::Serialize, out: &mut impl Write) -> Result<(), TransferError> {
    let mut text = serde_json::to_vec(line).map_err(|error| TransferError::Write(error.into()))?;
    text.push(b'\n');
    out.write_all(&text).map_err(TransferError::Write)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::super::trial::{Trial, archived};
    use super::*;
    use opilio_frontier::{
        LinkAttribute, Oscillation, PlannedReconsideration, Signal, SignalSource, Swing,
    };

    fn exported(trial: &Trial) -> Vec<String> {
        let mut out = Vec::new();
        let count = write_json_lines(trial.frontier.records(""), &Selection::default(), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count() as u64, count.unwrap());
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_line_has_all_that_is_known_under_its_documented_name() {
        let mut trial = Trial::new();
        trial.fetch_again_and_again("http://example.org/", archived(200, "text/html"));
        assert_eq!(
            exported(&trial),
            [concat!(
                r#"{"uri":"http://example.org/","state":"queued","standing":"succeeded","status":200,"#,
                r#""queue":"org,example,","hop_path":"LL","via":"http://via.org/","context":"a/@href","#,
                r#""source":"http://seed.org/","seed":false,"strategy":"revisit","precedence":1,"cost":1,"#,
                r#""directive":"normal","discovered":"2026-11-20T12:00:00Z","due":"2026-12-01T12:00:00Z","#,
                r#""wait_ms":864000000,"attempts":0,"deferrals":0,"visits":1,"versions":1,"media_type":"text/html","#,
                r#""payload_digest":"sha1:AEAQCAIBAEAQCAIBAEAQCAIBAEAQCAIB","#,
                r#""stripped_digest":"sha1:AIBAEAQCAIBAEAQCAIBAEAQCAIBAEAQC","stripper":"0000000000000abc","#,
                r#""etag":"\"e\"","archived":{"file":"a.warc.gz","offset":9,"record_id":"urn:uuid:1","#,
                r#""date":"2026-11-20T12:34:56.789Z"},"extractor":"0000000000000def","outlinks":3,"referrers":0,"#,
                r#""history":[{"at":"2026-11-21T12:00:00Z","status":200,"content":"new","size":1234,"#,
                r#""digest":"sha1:AEAQCAIB","wait_s":864000}],"#,
                r#""attributes":{"plugin":{"name":"value"}}}"#,
            )]
        );
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let mut trial = Trial::new();
        trial.schedule("http://example.org/");
        assert_eq!(
            exported(&trial),
            [concat!(
                r#"{"uri":"http://example.org/","state":"queued","standing":"open","status":0,"#,
                r#""queue":"org,example,","hop_path":"LL","via":"http://via.org/","context":"a/@href","#,
                r#""source":"http://seed.org/","seed":false,"strategy":"snapshot","precedence":1,"cost":1,"#,
                r#""directive":"normal","discovered":"2026-11-20T12:00:00Z","due":"2026-11-20T12:00:00Z","#,
                r#""attempts":0,"deferrals":0,"visits":0,"versions":0,"outlinks":0,"referrers":0}"#,
            )]
        );
    }

    #[test]
    fn the_state_of_the_engine_has_names_of_its_own() {
        let mut trial = Trial::new();
        trial.fetch_again_and_again("http://example.org/", archived(200, "text/html"));
        let mut record = trial.frontier.records("").next().unwrap().unwrap();
        let at = |text: &str| text.parse().unwrap();
        record.link_attributes = vec![LinkAttribute {
            name: "rel".to_owned(),
            value: "ugc".to_owned(),
        }];
        record.failures = 2;
        record.signals = vec![Signal {
            at: at("2026-11-22T00:00:00Z"),
            source: SignalSource::Sitemap,
            modified: at("2026-11-21T18:00:00Z"),
        }];
        record.reconsideration = Some(PlannedReconsideration {
            at: at("2026-11-25T00:00:00Z"),
            visit: at("2026-12-01T12:00:00Z"),
        });
        record.oscillation = Some(Oscillation {
            last: Swing::Down,
            in_a_row: 3,
        });
        record.redirect_target = Some("http://www.example.org/".to_owned());
        let mut out = Vec::new();
        write_json_lines([Ok(record)], &Selection::default(), &mut out).unwrap();
        let line = String::from_utf8(out).unwrap();
        let (_, end) = line.split_once(r#""attributes":"#).unwrap();
        assert_eq!(
            end,
            concat!(
                r#"{"plugin":{"name":"value"}},"link_attributes":[{"name":"rel","value":"ugc"}],"failures":2,"#,
                r#""signals":[{"at":"2026-11-22T00:00:00Z","source":"sitemap","modified":"2026-11-21T18:00:00Z"}],"#,
                r#""reconsideration":{"at":"2026-11-25T00:00:00Z","visit":"2026-12-01T12:00:00Z"},"#,
                r#""oscillation":{"last":"down","in_a_row":3},"redirect_target":"http://www.example.org/"}"#,
                "\n"
            )
        );
        let imported = super::super::json_lines::parse(line.trim().as_bytes()).unwrap();
        assert_eq!(imported.uri.as_str(), "http://example.org/");
    }

    #[test]
    fn queues_are_lines_too() {
        let mut trial = Trial::new();
        trial.schedule("http://example.org/");
        let queues = trial.frontier.queues(None, 10, trial.now).unwrap();
        let mut out = Vec::new();
        assert_eq!(write_queues(queues, &mut out).unwrap(), 1);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            concat!(
                r#"{"queue":"org,example,","state":"ready","ready":1,"waiting":0,"in_process":0,"precedence":3,"#,
                r#""wake":"2026-11-20T12:00:00Z","failures":0,"finished":0,"#,
                r#""fetched":0,"succeeded":0,"novel":0,"bytes":0,"novel_bytes":0,"run_time_ms":0,"spent":0}"#,
                "\n"
            )
        );
    }

    #[track_caller]
    fn check(surt_prefix: &str, expected: &str) {
        assert_eq!(key_prefix(surt_prefix), expected);
    }

    #[test]
    fn a_surt_prefix_is_read_as_a_prefix_of_keys() {
        check("", "");
        check("http://(org,example,", "org,example,");
        check("https://(org,example,www,)/a:b", "org,example,www,)/a:b");
        check("http://(org,example,:8080)/", "org,example,#8080)/");
        check("(org,example,", "org,example,");
        check("org,example,)/?u=http://(x", "org,example,)/?u=http://(x");
        check("http://([fe80::1", "[fe80::1");
        check("http://([::1]:81)/", "[::1]#81)/");
        check("http://(127.0.0.1:81)/", "127.0.0.1#81)/");
    }
}

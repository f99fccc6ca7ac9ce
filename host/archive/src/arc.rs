//! The ARC format, which the Internet Archive wrote from 1996 until WARC replaced it. This module reads and writes the line
//! of a record.
//!
//! A record is a line `URL IP-address date type length`, the received bytes, and a line end. The first record of a file
//! describes the file (`filedesc://…`). Version 2 of the line has ten fields and is hardly in use. ARC cannot store
//! requests, revisits, metadata or digests.

use std::fmt::Write as _;
use std::net::IpAddr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::fields::{one_line, safe_uri};
use crate::headers::Headers;
use crate::http_head;
use crate::record::{HTTP_RESPONSE, Record, RecordKind};
use crate::warcinfo::WarcInfo;

/// Longest line that is examined in the search for a record.
pub(crate) const LINE_BYTES_MAX: usize = 64 * 1024;

/// Value of ARC for an unknown address.
const NO_ADDRESS: &str = "0.0.0.0";

/// Value of ARC for an unknown type.
const NO_TYPE: &str = "no-type";

/// Fields after the date of a line of version 2: type, result code, checksum, location, offset, filename, length.
const V2_FIELDS_BEHIND_DATE: usize = 7;

/// The namespace of the crawl description in version 1.1.
const METADATA_NAMESPACE: &str = "http://archive.org/arc/1.0/";

/// Converts the line of a record to the headers that a WARC would have. `None` if it is not the line of a record.
pub(crate) fn headers(line: &str) -> Option<Headers> {
    let line = line.trim_end_matches(['\r', '\n']);
    if line.len() > LINE_BYTES_MAX {
        return None;
    }
    let words: Vec<&str> = line.split(' ').collect();
    // Old URLs and media types may contain blanks. Only the date after an address is reliable.
    let at = (2..words.len().checked_sub(2)? + 1)
        .rev()
        .find(|&at| is_date(words[at]) && is_address(words[at - 1]))?;
    let uri = words[..at - 1].join(" ");
    if !has_scheme(&uri) {
        return None;
    }
    let behind = &words[at + 1..];
    let length = behind.last()?;
    if length.is_empty() || !length.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let media_type = match behind.len() {
        1 => String::new(),
        V2_FIELDS_BEHIND_DATE => behind[0].to_owned(),
        many => behind[..many - 1].join(" "),
    };
    let is_filedesc = uri.starts_with("filedesc:");
    let is_http = is_http(&uri);
    let mut headers = Headers::new("ARC/1.1");
    headers.push(
        "WARC-Type",
        match (is_filedesc, is_http) {
            (true, _) => "warcinfo",
            (false, true) => "response",
            (false, false) => "resource",
        },
    );
    match uri.strip_prefix("filedesc://") {
        Some(file) => headers.push("WARC-Filename", file),
        None => headers.push("WARC-Target-URI", uri),
    }
    if let Some(date) = date(words[at]) {
        headers.push("WARC-Date", date.to_string());
    }
    if words[at - 1] != NO_ADDRESS && words[at - 1].parse::<IpAddr>().is_ok() {
        headers.push("WARC-IP-Address", words[at - 1]);
    }
    let own_type = (!media_type.is_empty() && media_type != NO_TYPE).then_some(media_type);
    if is_http {
        headers.push("Content-Type", HTTP_RESPONSE);
    } else if let Some(own) = &own_type {
        headers.push("Content-Type", own);
    }
    headers.push("Content-Length", *length);
    if let Some(own) = own_type {
        headers.push("ARC-Content-Type", own);
    }
    Some(headers)
}

/// Formats the line of a record with its line end; `None` for kinds that ARC cannot store.
pub(crate) fn line(record: &Record) -> Option<String> {
    match record.kind {
        RecordKind::Response | RecordKind::Resource => {}
        RecordKind::Request | RecordKind::Revisit(_) | RecordKind::Metadata => return None,
    }
    let ip = match record.ip {
        Some(ip) => ip.to_canonical().to_string(),
        None => NO_ADDRESS.to_owned(),
    };
    let media_type = match record.content_type.as_str() {
        HTTP_RESPONSE => http_head::media_type(record).unwrap_or_default(),
        own => own.to_owned(),
    };
    let media_type = match word(&media_type) {
        none if none.is_empty() => NO_TYPE.to_owned(),
        word => word,
    };
    let uri = safe_uri(&record.target_uri);
    let date = timestamp14(record.date);
    let length = record.block.length();
    Some(format!("{uri} {ip} {date} {media_type} {length}\n"))
}

/// Formats the first record of a file with the line end after it: version 1.1, with the description of the crawl.
pub(crate) fn file_description(name: &str, created: Timestamp, info: &WarcInfo) -> String {
    let mut block = String::from(
        "1 1 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n",
    );
    block.push_str(&metadata(created, info));
    let length = block.len();
    let date = timestamp14(created);
    format!("filedesc://{name} {NO_ADDRESS} {date} text/plain {length}\n{block}\n")
}

/// The description of the crawl, in the XML that readers of version 1.1 expect.
fn metadata(created: Timestamp, info: &WarcInfo) -> String {
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<arcmetadata xmlns:dc=\"http://purl.org/dc/elements/1.1/\" xmlns:dcterms=\"http://purl.org/dc/terms/\" \
         xmlns:arc=\"{METADATA_NAMESPACE}\" xmlns=\"{METADATA_NAMESPACE}\">\n"
    );
    let mut element = |name: &str, value: &str| {
        let value = escaped(&one_line(value));
        let _ = writeln!(text, "<{name}>{value}</{name}>");
    };
    element("arc:software", &info.software);
    let named = [
        ("arc:hostname", &info.hostname),
        ("arc:ip", &info.ip),
        ("dcterms:isPartOf", &info.is_part_of),
        ("dc:description", &info.description),
        ("arc:operator", &info.operator),
        ("dc:publisher", &info.organization),
        ("dcterms:audience", &info.audience),
        ("arc:http-header-user-agent", &info.user_agent),
        ("arc:http-header-from", &info.from),
        ("arc:robots", &info.robots),
    ];
    for (name, value) in named {
        if let Some(value) = value {
            element(name, value);
        }
    }
    element(
        "dc:date",
        &created.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    );
    element("dc:format", "ARC file version 1.1");
    element(
        "dcterms:conformsTo",
        "http://archive.org/web/researcher/ArcFileFormat.php",
    );
    text.push_str("</arcmetadata>\n");
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Reduces a type to one word: parameters and text after a blank are left out.
fn word(media_type: &str) -> String {
    let end = media_type.find([';', ' ', '\t', ',']);
    let bare = &media_type[..end.unwrap_or(media_type.len())];
    bare.chars()
        .filter(|c| c.is_ascii_graphic())
        .collect::<String>()
        .to_ascii_lowercase()
}

/// Formats a time as `20261120123456`.
pub(crate) fn timestamp14(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC)
        .strftime("%Y%m%d%H%M%S")
        .to_string()
}

fn is_http(uri: &str) -> bool {
    let scheme = uri.split(':').next().unwrap_or_default();
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// Returns `true` if the text begins with a URI scheme.
fn has_scheme(uri: &str) -> bool {
    uri.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    })
}

/// Returns `true` if a word is an IP address. Some writers use a dash for an unknown address.
fn is_address(word: &str) -> bool {
    word.parse::<IpAddr>().is_ok() || word == "-"
}

/// Returns `true` if a word has fourteen digits, or the twelve of the first crawls.
fn is_date(word: &str) -> bool {
    matches!(word.len(), 12 | 14) && word.bytes().all(|b| b.is_ascii_digit())
}

/// Parses a time of fourteen or twelve digits; `None` if there is no such moment.
pub(crate) fn date(word: &str) -> Option<Timestamp> {
    let number = |from: usize| {
        let digits = word.get(from..from + 2)?;
        digits.parse::<i8>().ok()
    };
    let year = word.get(..4)?.parse().ok()?;
    let second = if word.len() == 14 { number(12)? } else { 0 };
    let at = DateTime::new(
        year,
        number(4)?,
        number(6)?,
        number(8)?,
        number(10)?,
        second,
        0,
    );
    Some(at.ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &[(&str, &str)]) {
        let headers = headers(line).unwrap();
        let found: Vec<_> = headers.iter().collect();
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn a_line_becomes_the_headers_of_a_warc_record() {
        check(
            "http://www.example.org/a 192.0.2.1 19960923142103 text/html 3",
            &[
                ("WARC-Type", "response"),
                ("WARC-Target-URI", "http://www.example.org/a"),
                ("WARC-Date", "1996-09-23T14:21:03Z"),
                ("WARC-IP-Address", "192.0.2.1"),
                ("Content-Type", "application/http;msgtype=response"),
                ("Content-Length", "3"),
                ("ARC-Content-Type", "text/html"),
            ],
        );
        check(
            "filedesc://IA-000001.arc 0.0.0.0 19960923142103 text/plain 200\r\n",
            &[
                ("WARC-Type", "warcinfo"),
                ("WARC-Filename", "IA-000001.arc"),
                ("WARC-Date", "1996-09-23T14:21:03Z"),
                ("Content-Type", "text/plain"),
                ("Content-Length", "200"),
                ("ARC-Content-Type", "text/plain"),
            ],
        );
    }

    #[test]
    fn lines_of_old_writers_are_read() {
        let uri = |line| headers(line).unwrap().target_uri().unwrap().to_owned();
        // Cases: a blank in the URL, a blank in the type, a date of twelve digits, no type, version 2.
        assert_eq!(
            uri("http://a.example/x y 192.0.2.1 19960923142103 text/html 3"),
            "http://a.example/x y"
        );
        assert_eq!(
            uri("http://a.example/ 192.0.2.1 19960923142103 text/html; charset=x 3"),
            "http://a.example/"
        );
        assert_eq!(
            uri("http://a.example/ 192.0.2.1 199609231421 no-type 3"),
            "http://a.example/"
        );
        assert_eq!(
            uri("http://a.example/ 192.0.2.1 19960923142103 3"),
            "http://a.example/"
        );
        let v2 = headers(
            "http://a.example/ 192.0.2.1 19960923142103 text/html 200 fac069150613fe55599cc7fa88aa089d - 209 IA-000001.arc 202",
        );
        let v2 = v2.unwrap();
        assert_eq!(v2.first("ARC-Content-Type"), Some("text/html"));
        assert_eq!(v2.first("Content-Length"), Some("202"));
        // An invalid day: the record is read, without a date.
        let odd = headers("http://a.example/ 192.0.2.1 19960231000000 text/html 3").unwrap();
        assert_eq!(odd.date(), None);
    }

    #[test]
    fn other_lines_are_refused() {
        for line in [
            "",
            "WARC/1.0",
            "http://a.example/",
            "http://a.example/ 192.0.2.1 19960923142103 text/html x",
            "http://a.example/ 192.0.2.1 1996 text/html 3",
            "http://a.example/ nowhere 19960923142103 text/html 3",
            "no uri 192.0.2.1 19960923142103 text/html 3",
            "192.0.2.1 19960923142103 3",
        ] {
            assert!(headers(line).is_none(), "{line}");
        }
    }

    #[test]
    fn hostile_values_stay_on_their_line() {
        let info = WarcInfo {
            operator: Some("</arc:operator>\n&".to_owned()),
            ..WarcInfo::new("opilio")
        };
        let text = metadata(Timestamp::UNIX_EPOCH, &info);
        assert!(
            text.contains("<arc:operator>&lt;/arc:operator&gt; &amp;</arc:operator>"),
            "{text}"
        );
        assert_eq!(word("text/ht\nml; charset=x"), "text/html");
    }
}

//! Writes a small WARC file with every kind of record to a directory, to be checked by third-party tools. Prints the path of the
//! file.
//!
//! `cargo run -p opilio-archive --example write_warc -- DIRECTORY [plain]`
#![allow(clippy::print_stdout, reason = "the path is what the example is for")]

use std::error::Error;

use jiff::Timestamp;
use opilio_archive::{
    Block, Compression, Digest, Fields, Record, RecordId, RefersTo, RevisitProfile, TEXT_DNS,
    Truncation, WarcInfo, Writer, WriterConfig,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("no directory given")?;
    let plain = arguments.next().is_some_and(|word| word == "plain");
    let compression = if plain {
        Compression::None
    } else {
        Compression::Gzip(6)
    };
    let config = WriterConfig {
        compression,
        ..WriterConfig::new(directory)
    };
    let info = WarcInfo {
        operator: Some("Opilio's authors".into()),
        robots: Some("obey".into()),
        ..WarcInfo::new("opilio/0.1.0")
    };
    let (mut writer, _) = Writer::open(config, info)?;
    let date: Timestamp = "2026-01-02T03:04:05.678901Z".parse()?;
    for capture in [
        dns(date),
        page(date)?,
        large(date),
        revisits(date),
        truncated(date),
    ] {
        writer.write(&capture, date)?;
    }
    if let Some(path) = writer.close()? {
        println!("{}", path.display());
    }
    Ok(())
}

fn dns(date: Timestamp) -> Vec<Record> {
    let answer = "20260102030405\nexample.com.\t300\tIN\tA\t192.0.2.1\n";
    let id = RecordId::random();
    vec![Record::resource(
        id,
        date,
        "dns:example.com",
        TEXT_DNS,
        answer.into(),
    )]
}

const PAGE: &[u8] = b"<html><body>hello</body></html>";

fn response(date: Timestamp, uri: &str, headers: &str, body: &[u8]) -> Record {
    let block = [b"HTTP/1.1 200 OK\r\n", headers.as_bytes(), b"\r\n", body].concat();
    Record::response(RecordId::random(), date, uri, block.into())
}

/// A whole page, with its request and metadata.
fn page(date: Timestamp) -> Result<Vec<Record>, Box<dyn Error>> {
    let uri = "http://example.com/";
    let ip = Some("192.0.2.1".parse()?);
    let response = Record {
        ip,
        payload_digest: Some(Digest::sha1(PAGE)),
        protocols: vec!["http/1.1".into()],
        ..response(
            date,
            uri,
            "Content-Type: text/html\r\nContent-Length: 31\r\n",
            PAGE,
        )
    };
    let request = b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n".to_vec();
    let request = Record {
        ip,
        concurrent_to: vec![response.id],
        ..Record::request(RecordId::random(), date, uri, request.into())
    };
    let mut fields = Fields::new();
    fields
        .push("hopsFromSeed", "")
        .push("fetchTimeMs", "12")
        .outlink("http://example.com/a", 'L', "a/@href");
    let metadata = Record::metadata(RecordId::random(), date, uri, response.id, &fields);

    let chunked = b"5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n";
    let headers = "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n";
    let chunked = Record {
        payload_digest: Some(Digest::sha1(b"hello, world")),
        ..self::response(date, "http://example.com/chunked?\u{fc}", headers, chunked)
    };
    Ok(vec![response, request, metadata, chunked])
}

/// A spooled body of 3 MiB.
fn large(date: Timestamp) -> Vec<Record> {
    let body: Vec<u8> = (0..3 * 1024 * 1024_u32)
        .map(|n| (n.wrapping_mul(n) >> 7) as u8)
        .collect();
    let payload_digest = Some(Digest::sha1(&body));
    let headers = "Content-Type: application/octet-stream\r\nContent-Length: 3145728\r\n";
    let whole = [b"HTTP/1.1 200 OK\r\n", headers.as_bytes(), b"\r\n", &body].concat();
    let block = Block::spool(whole.len() as u64, move || {
        Ok(Box::new(std::io::Cursor::new(whole.clone())))
    });
    let uri = "http://example.com/large";
    vec![Record {
        payload_digest,
        ..Record::response(RecordId::random(), date, uri, block)
    }]
}

fn revisits(date: Timestamp) -> Vec<Record> {
    let uri = "http://example.com/";
    let refers_to = RefersTo {
        id: None,
        target_uri: Some(uri.into()),
        date: Some(date),
    };
    let revisit = |profile, head: &str| {
        let block = Block::from(head.as_bytes().to_vec());
        let refers_to = refers_to.clone();
        Record::revisit(RecordId::random(), profile, date, uri, refers_to, block)
    };
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 31\r\n\r\n";
    let identical = Record {
        payload_digest: Some(Digest::sha1(PAGE)),
        ..revisit(RevisitProfile::IdenticalPayloadDigest, head)
    };
    let head = "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n";
    vec![identical, revisit(RevisitProfile::ServerNotModified, head)]
}

fn truncated(date: Timestamp) -> Vec<Record> {
    let uri = "http://example.com/cut";
    let headers = "Content-Type: text/plain\r\nContent-Length: 1000\r\n";
    let body = b"only this much";
    vec![Record {
        truncated: Some(Truncation::Length),
        payload_digest: Some(Digest::sha1(body)),
        ..response(date, uri, headers, body)
    }]
}

//! Redaction removes the chosen records and all references to them, and changes nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use opilio_archive::redact::{
    REDACTED, RedactError, RedactionPlan, RedactionReason, Tombstone, redact, survey,
};
use opilio_archive::{
    Compression, Digest, Fields, Headers, Reader, Record, RecordId, RefersTo, RevisitProfile, check,
};

use crate::fixture::*;

const SECRET: &[u8] = b"a secret that must go";

fn tombstone() -> Tombstone<'static> {
    Tombstone {
        reason: "court order 7/2026",
        at: at("2026-11-22T01:02:03.456Z"),
        keep_digests: false,
    }
}

/// Writes captures: a secret page (100) with response, request and metadata, a revisit of it at another URI (200), a copy of it
/// that was stored again (300), and another page (400).
fn write(directory: &Path, compression: Compression) -> PathBuf {
    let mut writer = writer(directory, compression);
    let request = Record {
        concurrent_to: vec![id(100)],
        ..Record::request(
            id(101),
            now(),
            "http://example.com/100",
            b"GET /100 HTTP/1.1\r\nCookie: secret\r\n\r\n"
                .as_slice()
                .into(),
        )
    };
    let mut fields = Fields::new();
    fields.outlink("http://example.com/secret-link", 'L', "a/@href");
    let metadata = Record::metadata(id(102), now(), "http://example.com/100", id(100), &fields);
    writer
        .write(&[response(100, SECRET), request, metadata], now())
        .unwrap();
    writer
        .write(&[revisit(200, id(100), "http://example.com/100")], now())
        .unwrap();
    writer.write(&[response(300, SECRET)], now()).unwrap();
    writer.write(&[response(400, b"harmless")], now()).unwrap();
    writer.close().unwrap().unwrap()
}

fn revisit(number: u128, of: RecordId, uri: &str) -> Record {
    let refers_to = RefersTo {
        id: Some(of),
        target_uri: Some(uri.to_owned()),
        date: Some(now()),
    };
    Record {
        payload_digest: Some(Digest::sha1(SECRET)),
        ..Record::revisit(
            id(number),
            RevisitProfile::IdenticalPayloadDigest,
            now(),
            format!("http://example.com/{number}"),
            refers_to,
            b"HTTP/1.1 200 OK\r\nX: secret\r\n\r\n".as_slice().into(),
        )
    }
}

fn of_uri(uri: &'static str) -> impl FnMut(&Headers) -> bool {
    move |headers| headers.target_uri() == Some(uri)
}

fn targets(survey: &RedactionPlan) -> Vec<(RecordId, RedactionReason)> {
    survey
        .targets
        .iter()
        .map(|target| (target.headers.record_id().unwrap(), target.why))
        .collect()
}

/// Header and block of each record.
fn read(file: &Path) -> Vec<(Headers, Vec<u8>)> {
    let mut reader = Reader::open(file).unwrap();
    let mut records = Vec::new();
    while let Some(mut record) = reader.next_record().unwrap() {
        let block = record.block(usize::MAX).unwrap();
        records.push((record.headers().clone(), block));
    }
    records
}

#[test]
fn all_records_of_a_capture_and_its_revisits_are_redacted() {
    for compression in BOTH {
        let directory = tempfile::tempdir().unwrap();
        let file = write(directory.path(), compression);
        let (before, ids) = (read(&file), ids_of(&file));
        let files = [file.clone()];
        let found = survey(&files, of_uri("http://example.com/100")).unwrap();
        assert_eq!(
            targets(&found),
            [
                (id(100), RedactionReason::Chosen),
                (id(101), RedactionReason::Chosen),
                (id(102), RedactionReason::Chosen),
                (id(200), RedactionReason::Revisit)
            ]
        );
        // The second stored copy is reported and not redacted.
        assert_eq!(found.copies.len(), 1);
        let done = redact(&file, &found.targets, tombstone()).unwrap();
        assert_eq!(done.records, 4);
        assert_eq!(done.bytes_after, fs::metadata(&file).unwrap().len());

        assert_eq!(ids_of(&file), ids);
        let after = read(&file);
        for (index, (headers, block)) in after.iter().enumerate() {
            let gone = (1..=4).contains(&index);
            assert_eq!(headers.first(REDACTED).is_some(), gone, "{headers:?}");
            if !gone {
                assert_eq!((headers, block), (&before[index].0, &before[index].1));
                continue;
            }
            let secret = |text: &str| text.to_lowercase().contains("secret");
            assert!(!secret(&String::from_utf8_lossy(block)));
            assert!(!headers.iter().any(|(_, value)| secret(value)));
            assert_ne!(
                headers.first("WARC-Payload-Digest"),
                Some(Digest::sha1(SECRET).to_string().as_str())
            );
        }
        assert_eq!(listing(directory.path()).len(), 1);
        // A second survey finds nothing to do.
        let again = survey(&files, of_uri("http://example.com/100")).unwrap();
        assert_eq!(targets(&again), []);
        assert_eq!(again.already, 3);
    }
}

#[test]
fn a_tombstone_has_this_text() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), Compression::None);
    let found = survey(
        std::slice::from_ref(&file),
        of_uri("http://example.com/200"),
    )
    .unwrap();
    assert_eq!(targets(&found), [(id(200), RedactionReason::Chosen)]);
    assert_eq!(found.payload_elsewhere, 1);
    let kept = Tombstone {
        keep_digests: true,
        ..tombstone()
    };
    redact(&file, &found.targets, kept).unwrap();
    let text = String::from_utf8(fs::read(&file).unwrap()).unwrap();
    let expected = "WARC/1.1\r
WARC-Type: response\r
WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-0000000000c8>\r
WARC-Date: 2006-09-19T17:20:24.000000Z\r
WARC-Target-URI: http://example.com/200\r
WARC-Warcinfo-ID: <urn:uuid:00000000-0000-0000-0000-000000000000>\r
Opilio-Redacted-Type: revisit\r
Opilio-Redacted: 2026-11-22T01:02:03Z\r
Opilio-Redaction-Reason: court order 7/2026\r
Opilio-Redacted-Payload-Digest: sha1:3ZCJWWDY44LTTREDKEXO6U3A5J6OOSQF\r
WARC-Payload-Digest: sha1:MUB2CNQEOWDQEQI2SIJQVSB5YYHVKVUS\r
WARC-Block-Digest: sha1:RLHVOLTPU4IRZN6QW6CLVFDH4ZCL6JVV\r
Content-Type: application/http;msgtype=response\r
Content-Length: 176\r
\r
HTTP/1.1 451 Unavailable For Legal Reasons\r
Content-Type: text/plain; charset=utf-8\r
Content-Length: 69\r
\r
This record was redacted on 2026-11-22T01:02:03Z: court order 7/2026\n\r
\r
";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn revisits_in_other_files_and_of_revisits_are_redacted() {
    let first = tempfile::tempdir().unwrap();
    let second = tempfile::tempdir().unwrap();
    let one = write(first.path(), Compression::Gzip(6));
    let mut writer = writer(second.path(), Compression::Gzip(6));
    writer
        .write(&[revisit(500, id(200), "http://example.com/200")], now())
        .unwrap();
    let of_payload = Record {
        refers_to: RefersTo::default(),
        ..revisit(600, id(0), "")
    };
    writer.write(&[of_payload], now()).unwrap();
    let two = writer.close().unwrap().unwrap();
    // The later file is first, because the result does not depend on the order.
    let files = [two.clone(), one.clone()];
    let found = survey(&files, |headers| headers.record_id() == Some(id(102))).unwrap();
    assert_eq!(
        targets(&found),
        [
            (id(500), RedactionReason::Revisit),
            (id(600), RedactionReason::Revisit),
            (id(100), RedactionReason::SameCapture),
            (id(101), RedactionReason::SameCapture),
            (id(102), RedactionReason::Chosen),
            (id(200), RedactionReason::Revisit)
        ]
    );
    assert_eq!(found.files(), [&*two, &*one]);
    for file in [&one, &two] {
        redact(file, &found.targets, tombstone()).unwrap();
        assert!(check(file).unwrap().is_sound());
    }
}

#[test]
fn records_that_cannot_be_redacted_are_refused_and_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), Compression::Gzip(6));
    let before = fs::read(&file).unwrap();
    let all = survey(std::slice::from_ref(&file), |_| true).unwrap();
    let refused = redact(&file, &all.targets, tombstone());
    assert!(
        matches!(&refused, Err(RedactError::Kind { kind, .. }) if kind == "a warcinfo record"),
        "{refused:?}"
    );
    let mut shorter = before.clone();
    shorter.truncate(before.len() - 100);
    fs::write(&file, &shorter).unwrap();
    let changed = redact(&file, &all.targets[6..], tombstone());
    assert!(
        matches!(&changed, Err(RedactError::Changed(_))),
        "{changed:?}"
    );
    assert_eq!(fs::read(&file).unwrap(), shorter);
    assert_eq!(listing(directory.path()).len(), 1);
    let open = file.with_extension("gz.open");
    fs::rename(&file, &open).unwrap();
    let refused = redact(&open, &all.targets, tombstone());
    assert!(matches!(&refused, Err(RedactError::Open(_))), "{refused:?}");
}

#[test]
fn damage_is_reported_and_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), Compression::Gzip(6));
    let whole = survey(std::slice::from_ref(&file), |headers| {
        headers.record_id() == Some(id(400))
    })
    .unwrap();
    let mut bytes = fs::read(&file).unwrap();
    let damaged = whole.targets[0].extent.offset as usize;
    bytes[damaged + 20] ^= 0xff;
    fs::write(&file, &bytes).unwrap();
    let found = survey(
        std::slice::from_ref(&file),
        of_uri("http://example.com/300"),
    )
    .unwrap();
    assert_eq!(found.damages().count(), 1);
    redact(&file, &found.targets, tombstone()).unwrap();
    let after = fs::read(&file).unwrap();
    assert!(after.ends_with(&bytes[damaged..]));
}

#[test]
fn a_tombstone_is_compressed_like_its_record() {
    let directory = tempfile::tempdir().unwrap();
    let plain = write(directory.path(), Compression::None);
    let bytes = fs::read(&plain).unwrap();
    let file = directory.path().join("x.warc.zst");
    // A frame for each record.
    let mut packed = Vec::new();
    for target in survey(&[plain], |_| true).unwrap().targets {
        let from = target.extent.offset as usize;
        let record = &bytes[from..from + target.extent.length as usize];
        packed.extend(zstd::bulk::compress(record, 3).unwrap());
    }
    fs::write(&file, packed).unwrap();
    assert!(check(&file).unwrap().is_sound());
    let found = survey(
        std::slice::from_ref(&file),
        of_uri("http://example.com/400"),
    )
    .unwrap();
    redact(&file, &found.targets, tombstone()).unwrap();
    let report = check(&file).unwrap();
    assert!(report.is_sound(), "{:?}", report.faults);
    let (headers, block) = read(&file).pop().unwrap();
    assert!(headers.first(REDACTED).is_some());
    assert!(block.starts_with(b"HTTP/1.1 451 "));
}

#[test]
fn a_tombstone_in_arc_is_an_answer_with_status_451() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.arc");
    let description = "1 1 test\nURL IP-address Archive-date Content-type Archive-length\n";
    let page = "HTTP/1.1 200 OK\r\n\r\nsecret";
    let text = format!(
        "filedesc://x.arc 0.0.0.0 20260102030405 text/plain {}\n{description}\n\
         http://a.example/ 192.0.2.1 20260102030406 text/html {}\n{page}\n\
         http://b.example/ 192.0.2.1 20260102030407 text/html {}\n{page}\n",
        description.len(),
        page.len(),
        page.len()
    );
    fs::write(&file, text).unwrap();
    let found = survey(std::slice::from_ref(&file), of_uri("http://a.example/")).unwrap();
    redact(&file, &found.targets, tombstone()).unwrap();
    let after = fs::read_to_string(&file).unwrap();
    assert_eq!(after.matches("secret").count(), 1, "{after}");
    let line = "\nhttp://a.example/ 192.0.2.1 20260102030406 text/plain 176\nHTTP/1.1 451 ";
    assert!(after.contains(line), "{after}");
    assert!(check(&file).unwrap().is_sound());
}

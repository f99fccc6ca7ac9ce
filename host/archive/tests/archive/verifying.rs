//! `check` finds errors, reports their places, and continues behind them.

use std::fs;
use std::io::{Read as _, Write as _};

use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use opilio_archive::{
    Algorithm, Compression, Damage, Digest, Reader, Record, RecordError, RecordErrorKind,
    WriterConfig, check,
};

use crate::fixture::*;

fn faults(bytes: &[u8]) -> Vec<RecordError> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.warc");
    fs::write(&file, bytes).unwrap();
    check(&file).unwrap().faults
}

#[test]
fn a_flipped_bit_is_found_at_every_position() {
    for compression in BOTH {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = writer(directory.path(), compression);
        let first = writer
            .write(&[response(100, b"first body")], now())
            .unwrap()
            .remove(0);
        let second = writer
            .write(&[response(101, b"second")], now())
            .unwrap()
            .remove(0);
        let bytes = fs::read(writer.close().unwrap().unwrap()).unwrap();
        let whole = unpacked(compression, &bytes).unwrap();
        let end = (first.offset + first.length) as usize;
        // Plain files: the block and the bytes behind it, because a check cannot find changes of most header values. Gzip: all
        // bits, except unused ones of the member's header.
        let from = match compression {
            Compression::None => {
                end - 4 - b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nfirst body".len()
            }
            Compression::Gzip(_) | Compression::Zstd(_) => first.offset as usize + 10,
        };
        for at in from..end {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                let found = faults(&flipped);
                // A few bits of Deflate have no effect (padding, unused codes).
                let harmless = unpacked(compression, &flipped).as_ref() == Some(&whole);
                assert_eq!(
                    found.is_empty(),
                    harmless,
                    "{compression:?}: byte {at}, bit {bit}"
                );
                assert!(
                    found.iter().all(|fault| fault.offset < second.offset),
                    "{compression:?}: byte {at}, bit {bit}: {found:?}"
                );
            }
        }
        assert_eq!(faults(&bytes), []);
    }
}

/// Contents of the members of a file, if they can be unpacked.
fn unpacked(compression: Compression, bytes: &[u8]) -> Option<Vec<u8>> {
    if compression == Compression::None {
        return Some(bytes.to_vec());
    }
    let mut unpacked = Vec::new();
    MultiGzDecoder::new(bytes).read_to_end(&mut unpacked).ok()?;
    Some(unpacked)
}

#[test]
fn a_wrong_payload_digest_is_found() {
    let stated = Digest::sha1(b"something else");
    let record = Record {
        payload_digest: Some(stated),
        ..response(100, b"body")
    };
    let found = Digest::sha1(b"body");
    sole_fault(
        record,
        RecordErrorKind::PayloadDigest {
            stated,
            found,
            raw: false,
        },
    );
}

#[test]
fn a_wrong_block_digest_is_found() {
    let stated = Digest::of(Algorithm::Sha256, b"something else");
    let record = Record {
        block_digest: Some(stated),
        ..response(100, b"body")
    };
    let block = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nbody";
    let found = Digest::of(Algorithm::Sha256, block);
    sole_fault(record, RecordErrorKind::BlockDigest { stated, found });
}

#[test]
fn payload_digests_are_of_the_body_without_chunk_framing() {
    let framed = b"4\r\nbody\r\n0\r\n\r\n";
    let block = [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".as_slice(),
        framed,
    ]
    .concat();
    let record = |digest| Record {
        payload_digest: Some(digest),
        ..Record::response(id(100), now(), "http://example.com/", block.clone().into())
    };
    let (found, stated) = (Digest::sha1(b"body"), Digest::sha1(framed));
    sole_fault(
        record(stated),
        RecordErrorKind::PayloadDigest {
            stated,
            found,
            raw: true,
        },
    );

    let directory = tempfile::tempdir().unwrap();
    let mut writer = writer(directory.path(), Compression::Gzip(6));
    writer.write(&[record(found)], now()).unwrap();
    let report = check(writer.close().unwrap().unwrap()).unwrap();
    assert_eq!((report.payload_digests, report.faults_found), (1, 0));
}

/// Writes the record between two correct ones. Only this record has the error.
#[track_caller]
fn sole_fault(record: Record, kind: RecordErrorKind) {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = writer(directory.path(), Compression::Gzip(6));
    let capture = [response(300, b"before"), record, response(301, b"after")];
    let locations = writer.write(&capture, now()).unwrap();
    let report = check(writer.close().unwrap().unwrap()).unwrap();
    let record_id = Some(format!("<{}>", id(100)));
    assert_eq!(
        report.faults,
        [RecordError {
            offset: locations[1].offset,
            record_id,
            kind
        }]
    );
    assert_eq!(report.records, 4);
}

#[test]
fn sha256_is_written_and_verified_if_configured() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path(), Compression::None);
    let (mut writer, _) = open(WriterConfig {
        digest: Algorithm::Sha256,
        ..config
    });
    let payload_digest = Some(Digest::of(Algorithm::Sha256, b"body"));
    let record = Record {
        payload_digest,
        ..response(100, b"body")
    };
    writer.write(&[record], now()).unwrap();
    let file = writer.close().unwrap().unwrap();
    let report = check(&file).unwrap();
    assert!(report.is_sound(), "{:?}", report.faults);
    assert_eq!((report.block_digests, report.payload_digests), (2, 1));
    let text = fs::read_to_string(file).unwrap();
    assert_eq!(text.matches("-Digest: sha256:").count(), 3);
}

/// Errors of a record that another program has written.
#[track_caller]
fn check_text(text: &str, expected: &[RecordErrorKind]) {
    let found: Vec<RecordErrorKind> = faults(text.as_bytes())
        .into_iter()
        .map(|fault| fault.kind)
        .collect();
    assert_eq!(found, expected);
}

const SOUND: &str = "WARC/1.0\nwarc-type: response\nWARC-Record-ID: <urn:uuid:1>\n\
    WARC-Date: 2006-09-19T17:20:24Z\nWARC-Target-URI:\n http://example.com/\nContent-Length: 0\n\n\r\n\r\n";

#[test]
fn records_of_other_tools_are_read() {
    check_text(SOUND, &[]);
    check_text("", &[]);
}

#[test]
fn missing_headers_of_the_standard_are_reported() {
    let without = |name: &str| {
        let kept = |line: &&str| !line.starts_with(name);
        SOUND.split_inclusive('\n').filter(kept).collect::<String>()
    };
    check_text(
        &without("WARC-Record-ID"),
        &[RecordErrorKind::Missing("WARC-Record-ID")],
    );
    check_text(
        &without("WARC-Date"),
        &[RecordErrorKind::Missing("WARC-Date")],
    );
    check_text(
        &without("warc-type"),
        &[RecordErrorKind::Missing("WARC-Type")],
    );
    check_text(
        &SOUND.replace("WARC-Target-URI", "X"),
        &[RecordErrorKind::Missing("WARC-Target-URI")],
    );
    check_text(
        &SOUND.replace("response", "revisit"),
        &[RecordErrorKind::Missing("WARC-Profile")],
    );
    check_text(
        &SOUND.replace("2006-09-19T17:20:24Z", "yesterday"),
        &[RecordErrorKind::Header {
            name: "WARC-Date",
            value: "yesterday".into(),
        }],
    );
    check_text(&SOUND.repeat(2), &[RecordErrorKind::SameId]);
    check_text(
        &without("Content-Length"),
        &[Damage::ContentLength(vec![]).into()],
    );
    for length in ["-1", "", "1x", "99999999999999999999999"] {
        check_text(
            &SOUND.replace("Length: 0", &format!("Length: {length}")),
            &[Damage::ContentLength(vec![length.into()]).into()],
        );
    }
    check_text(
        &SOUND.replace("Length: 0", "Length: 0\nContent-Length: 0"),
        &[Damage::ContentLength(vec!["0".into(), "0".into()]).into()],
    );
    check_text(
        &SOUND.replace("Length: 0", "Length: 5"),
        &[Damage::Short.into()],
    );
    check_text(
        &format!("{SOUND}x"),
        &[Damage::NotARecord("x".into()).into()],
    );
    check_text(
        &SOUND.replace("\n\n", "\nno colon\n\n"),
        &[Damage::HeaderLine("no colon".into()).into()],
    );
}

#[test]
fn a_header_without_end_is_an_error() {
    let text = format!(
        "WARC/1.1\r\nX: {}",
        "x".repeat(opilio_archive::HEADER_BYTES_MAX)
    );
    check_text(&text, &[Damage::HeaderTooLong.into()]);
}

#[test]
fn the_check_continues_behind_damage() {
    let torn = SOUND.replace("Length: 0", "Length: 9999");
    let text = format!("{torn}{}", SOUND.replace("uuid:1", "uuid:2"));
    let found = faults(text.as_bytes());
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (found[0].offset, &found[0].kind),
        (0, &Damage::Short.into())
    );
}

#[test]
fn records_that_share_a_gzip_member_are_read_and_reported() {
    let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(SOUND.as_bytes()).unwrap();
    gzip.write_all(SOUND.replace("uuid:1", "uuid:2").as_bytes())
        .unwrap();
    let bytes = gzip.finish().unwrap();
    let kinds: Vec<_> = faults(&bytes).into_iter().map(|fault| fault.kind).collect();
    assert_eq!(
        kinds,
        [RecordErrorKind::SharedMember, RecordErrorKind::SharedMember]
    );
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_not_a_fault() {
    let directory = tempfile::tempdir().unwrap();
    let error = check(directory.path().join("absent.warc")).unwrap_err();
    assert!(
        error.to_string().ends_with("absent.warc at offset 0"),
        "{error}"
    );
}

#[test]
fn a_reader_that_met_damage_is_at_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.warc");
    fs::write(&file, format!("garbage\r\n\r\n{SOUND}")).unwrap();
    let mut reader = Reader::open(&file).unwrap();
    assert!(reader.next_record().is_err());
    assert!(reader.next_record().unwrap().is_none());
    assert_eq!(reader.resync().unwrap(), Some(11));
    assert!(reader.next_record().unwrap().is_some());
}

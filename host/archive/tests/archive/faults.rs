//! Failing writes: nothing incomplete stays in the file, and the writer continues.

use std::error::Error as _;
use std::fs;
use std::io::{self, Read};

use opilio_archive::{
    Block, Compression, HeaderError, Record, RecordKind, RefersTo, RevisitProfile, WriteError,
};

use crate::fixture::*;

/// Returns this number of bytes that compress badly, then fails.
struct Failing {
    left: usize,
    state: u64,
}

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::other("the spool is gone"));
        }
        let got = buffer.len().min(self.left);
        for byte in &mut buffer[..got] {
            self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1);
            *byte = (self.state >> 56) as u8;
        }
        self.left -= got;
        Ok(got)
    }
}

fn spooled(number: u128, block: Block) -> Record {
    let digest = Some(opilio_archive::Digest::sha1(b"taken at its word"));
    Record {
        block,
        block_digest: digest,
        ..response(number, b"")
    }
}

/// Checks that the capture fails with this text, its file is unchanged, and the writer continues.
#[track_caller]
fn check(compression: Compression, failing: Record, expected: &str) {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = writer(directory.path(), compression);
    writer.write(&[response(100, b"before")], now()).unwrap();
    let open = writer.current().unwrap().to_owned();
    let before = fs::read(&open).unwrap();
    let error = writer
        .write(&[response(101, b"same capture"), failing], now())
        .unwrap_err();
    let text = match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    assert_eq!(text, expected);
    assert_eq!(fs::read(&open).unwrap(), before);
    let location = writer
        .write(&[response(102, b"after")], now())
        .unwrap()
        .remove(0);
    assert_eq!(location.offset, before.len() as u64);
    assert_eq!(
        ids_of(&writer.close().unwrap().unwrap()),
        [id(0), id(100), id(102)]
    );
}

const RECORD: &str = "urn:uuid:00000000-0000-0000-0000-000000000066";

#[test]
fn a_failing_spool_leaves_no_part_of_the_capture() {
    for compression in BOTH {
        let block = Block::spool(3_000_000, || {
            Ok(Box::new(Failing {
                left: 2_000_000,
                state: 1,
            }))
        });
        let text = format!("cannot read the block of record {RECORD}: the spool is gone");
        check(compression, spooled(0x66, block), &text);
    }
}

#[test]
fn a_spool_of_another_length_fails() {
    let check = |actual: &'static [u8], what: &str| {
        let block = Block::spool(10, move || Ok(Box::new(actual)));
        let text = format!("cannot read the block of record {RECORD}: block has {what}");
        check(Compression::Gzip(6), spooled(0x66, block), &text);
    };
    check(b"123456789", "9 bytes instead of 10");
    check(b"12345678901", "more than 10 bytes instead of 10");
}

#[test]
fn a_spool_that_cannot_be_opened_fails() {
    let block = Block::spool(1, || Err(io::Error::other("no such spool")));
    let text = format!("cannot read the block of record {RECORD}: no such spool");
    check(
        Compression::None,
        Record {
            block,
            ..response(0x66, b"")
        },
        &text,
    );
}

#[test]
fn headers_with_reserved_or_invalid_names_are_refused() {
    let check = |name: &str, fault: HeaderError| {
        let extra = vec![(name.to_owned(), "x".to_owned())];
        let text = format!("cannot write the header of record {RECORD}: {fault}");
        check(
            Compression::Gzip(6),
            Record {
                extra,
                ..response(0x66, b"")
            },
            &text,
        );
    };
    for name in ["", "a b", "a:b", "a\r\nb", "ü"] {
        check(name, HeaderError::Name(name.into()));
    }
    for name in ["content-length", "WARC-Type", "WARC-Block-Digest"] {
        check(name, HeaderError::Reserved(name.into()));
    }
}

#[test]
fn an_identical_revisit_without_its_digest_is_refused() {
    let kind = RecordKind::Revisit(RevisitProfile::IdenticalPayloadDigest);
    let refers_to = RefersTo::default();
    let record = Record {
        kind,
        refers_to,
        payload_digest: None,
        ..response(0x66, b"")
    };
    let text = format!(
        "cannot write the header of record {RECORD}: an identical-payload-digest revisit has no payload digest"
    );
    check(Compression::Gzip(6), record, &text);
}

#[test]
fn the_error_names_a_directory_that_cannot_be_created() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let config = config(&file.join("warcs"), Compression::None);
    let result = opilio_archive::Writer::open(config, opilio_archive::WarcInfo::new("opilio"));
    assert!(
        matches!(result, Err(WriteError::Directory { .. })),
        "{result:?}"
    );
}

#[test]
fn a_missing_directory_fails_only_the_capture() {
    let directory = tempfile::tempdir().unwrap();
    let warcs = directory.path().join("warcs");
    let mut writer = writer(&warcs, Compression::None);
    fs::remove_dir(&warcs).unwrap();
    let result = writer.write(&[response(100, b"a")], now());
    assert!(
        matches!(result, Err(WriteError::Create { .. })),
        "{result:?}"
    );
    fs::create_dir(&warcs).unwrap();
    writer.write(&[response(100, b"a")], now()).unwrap();
    assert_eq!(ids_of(&writer.close().unwrap().unwrap()), [id(0), id(100)]);
}

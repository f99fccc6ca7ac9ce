//! Records with any content are read back unchanged.

use std::fs;
use std::io::Read as _;

use opilio_archive::{
    Block, Compression, Digest, Reader, Record, RecordKind, RefersTo, RevisitProfile, Truncation,
    check,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::fixture::*;

/// Bytes that look like the structure of a file, mixed with arbitrary bytes.
fn block() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\r\n\r\n".to_vec()),
        Just(b"WARC/1.1\r\nWARC-Type: warcinfo\r\nContent-Length: 5\r\n\r\n".to_vec()),
        Just(vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]),
        Just(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec()),
        Just(b"5\r\nhello\r\n".to_vec()),
        vec(any::<u8>(), 0..400),
    ];
    vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn kind() -> impl Strategy<Value = RecordKind> {
    prop_oneof![
        Just(RecordKind::Request),
        Just(RecordKind::Response),
        Just(RecordKind::Resource),
        Just(RecordKind::Metadata),
        Just(RecordKind::Revisit(RevisitProfile::ServerNotModified)),
        Just(RecordKind::Revisit(RevisitProfile::HeadersUnchanged)),
        Just(RecordKind::Revisit(RevisitProfile::IdenticalPayloadDigest)),
    ]
}

prop_compose! {
    fn record()(
        kind in kind(),
        content in block(),
        spooled in any::<bool>(),
        target_uri in "http://[a-z]{1,9}/\\PC{0,30}|\\PC{0,20}|[\\x00-\\x7f]{0,30}",
        content_type in "\\PC{0,20}|[\\x00-\\x7f]{0,20}",
        protocols in vec("[\\x00-\\x7f]{0,9}", 0..3),
        extra in vec(("X-[a-zA-Z]{1,9}", "[\\x00-\\x7f]{0,30}|\\PC{0,9}"), 0..3),
        truncated in proptest::option::of(Just(Truncation::Length)),
    ) -> (Record, Vec<u8>) {
        let bytes = content.clone();
        let block = if spooled {
            let length = content.len() as u64;
            Block::spool(length, move || Ok(Box::new(std::io::Cursor::new(content.clone()))))
        } else {
            content.into()
        };
        let refers_to = RefersTo { target_uri: Some(target_uri.clone()), ..RefersTo::default() };
        let record = Record {
            kind,
            target_uri,
            content_type,
            protocols,
            extra,
            truncated,
            refers_to,
            payload_digest: matches!(kind, RecordKind::Revisit(_)).then(|| Digest::sha1(b"")),
            ..Record::response(id(0), now(), "", block)
        };
        (record, bytes)
    }
}

/// A value as it must be read back.
fn on_one_line(value: &str) -> String {
    let kept = |c: char| {
        if c.is_control() || "\u{2028}\u{2029}".contains(c) {
            ' '
        } else {
            c
        }
    };
    let text: String = value.chars().map(kept).collect();
    text.split(' ')
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn written_records_are_read_back(
        records in vec(record(), 1..5),
        gzip in any::<bool>(),
    ) {
        let compression = if gzip { Compression::Gzip(1) } else { Compression::None };
        let directory = tempfile::tempdir().unwrap();
        let mut writer = writer(directory.path(), compression);
        let (mut capture, mut blocks) = (Vec::new(), Vec::new());
        for (number, (record, block)) in records.into_iter().enumerate() {
            capture.push(Record { id: id(100 + number as u128), ..record });
            blocks.push(block);
        }
        let locations = writer.write(&capture, now()).unwrap();
        let file = writer.close().unwrap().unwrap();

        let mut reader = Reader::open(&file).unwrap();
        reader.next_record().unwrap().unwrap().finish().unwrap();
        for ((record, block), location) in capture.iter().zip(&blocks).zip(&locations) {
            let mut stored = reader.next_record().unwrap().unwrap();
            let headers = stored.headers().clone();
            prop_assert_eq!(headers.version(), "WARC/1.1");
            prop_assert_eq!(headers.kind(), record.kind.name());
            prop_assert_eq!(headers.record_id(), Some(record.id));
            prop_assert_eq!(headers.block_digest(), Some(Ok(Digest::sha1(block))));
            prop_assert_eq!(headers.all("WARC-Truncated").count(), usize::from(record.truncated.is_some()));
            for (name, value) in &record.extra {
                let found: Vec<_> = headers.all(name).map(on_one_line).collect();
                prop_assert!(found.contains(&on_one_line(value)), "{} {:?}", name, found);
            }
            let mut found = Vec::new();
            stored.read_to_end(&mut found).unwrap();
            prop_assert_eq!(&found, block);
            let extent = stored.finish().unwrap();
            prop_assert_eq!((extent.offset, extent.length), (location.offset, location.length));

            // The record can also be read by its offset alone.
            let mut alone = Reader::open_at(&file, location.offset).unwrap();
            let mut stored = alone.next_record().unwrap().unwrap();
            prop_assert_eq!(stored.headers(), &headers);
            prop_assert_eq!(&stored.block(usize::MAX).unwrap(), block);
        }
        prop_assert!(reader.next_record().unwrap().is_none());
        let report = check(&file).unwrap();
        prop_assert!(report.is_sound(), "{:?}", report.faults);
        prop_assert_eq!(report.block_digests, capture.len() as u64 + 1);
    }

    #[test]
    fn reading_anything_ends_without_a_panic(
        bytes in block(),
        flips in vec((any::<prop::sample::Index>(), 0..8_u8), 0..4),
        valid in any::<bool>(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x.warc");
        let mut bytes = if valid {
            let mut writer = writer(directory.path(), Compression::Gzip(1));
            writer.write(&[response(100, &bytes)], now()).unwrap();
            fs::read(writer.close().unwrap().unwrap()).unwrap()
        } else {
            bytes
        };
        for (index, bit) in flips {
            if !bytes.is_empty() {
                let at = index.index(bytes.len());
                bytes[at] ^= 1 << bit;
            }
        }
        fs::write(&file, &bytes).unwrap();
        check(&file).unwrap();
    }
}

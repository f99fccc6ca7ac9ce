//! A directory, a writer with fixed clock, names and identifiers, and records to write.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use opilio_archive::{
    Compression, Digest, Durability, Record, RecordId, RepairedFile, WarcInfo, Writer, WriterConfig,
};

/// The name of the first file that [`writer`] writes, without its ending.
pub(crate) const FIRST: &str = "WEB-20060919172024000-00000-4711~crawler~0";

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(crate) fn now() -> Timestamp {
    at("2006-09-19T17:20:24Z")
}

/// `urn:uuid:00000000-0000-0000-0000-` and the number.
pub(crate) fn id(number: u128) -> RecordId {
    RecordId(uuid::Uuid::from_u128(number))
}

pub(crate) fn config(directory: &Path, compression: Compression) -> WriterConfig {
    WriterConfig {
        compression,
        durability: Durability::Never,
        host: "crawler".into(),
        pid: 4711,
        ..WriterConfig::new(directory)
    }
}

/// Opens a writer whose `warcinfo` records have the identifiers 0, 1, 2 …
pub(crate) fn open(config: WriterConfig) -> (Writer, Vec<RepairedFile>) {
    let mut next = 0;
    let ids = move || {
        next += 1;
        id(next - 1)
    };
    Writer::open_with_ids(config, WarcInfo::new("opilio"), ids).unwrap()
}

pub(crate) fn writer(directory: &Path, compression: Compression) -> Writer {
    let (writer, repaired) = open(config(directory, compression));
    assert_eq!(repaired, []);
    writer
}

/// A response of the given number with a body.
pub(crate) fn response(number: u128, body: &[u8]) -> Record {
    let block = [b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", body].concat();
    let uri = format!("http://example.com/{number}");
    Record {
        payload_digest: Some(Digest::sha1(body)),
        ..Record::response(id(number), now(), uri, block.into())
    }
}

/// The names in a directory, sorted.
pub(crate) fn listing(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Returns the record identifiers of a file, which must be without errors.
pub(crate) fn ids_of(file: &Path) -> Vec<RecordId> {
    let report = opilio_archive::check(file).unwrap();
    assert!(report.is_sound(), "{:?}", report.faults);
    let mut reader = opilio_archive::Reader::open(file).unwrap();
    let mut ids = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        ids.push(record.headers().record_id().unwrap());
    }
    ids
}

pub(crate) const BOTH: [Compression; 2] = [Compression::None, Compression::Gzip(6)];

pub(crate) fn ending(compression: Compression) -> &'static str {
    if compression == Compression::None {
        ".warc"
    } else {
        ".warc.gz"
    }
}

pub(crate) fn first_file(directory: &Path, compression: Compression) -> PathBuf {
    directory.join(format!("{FIRST}{}", ending(compression)))
}

//! Files that are written as zstd or ARC, with an index, are read back. Hostile files cause errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opilio_archive::{
    Algorithm, ArchiveFormat, BODY_UNINDEXED, CdxjEntry, Compression, CrawlDocument, Digest,
    NameTemplate, Packing, PluginInForce, Reader, Record, RefersTo, RevisitProfile, WarcInfo,
    Writer, WriterConfig, Writers, archives, captures, check, index, index_path,
};
use proptest::prelude::*;

use crate::fixture::{config, id, listing, now, open, response};

fn write(config: WriterConfig, captures: &[Record]) -> PathBuf {
    let (mut writer, _) = open(config);
    for capture in captures {
        writer.write(std::slice::from_ref(capture), now()).unwrap();
    }
    writer.close().unwrap().unwrap()
}

/// Type, URI and block of each record.
fn read(file: &Path) -> Vec<(String, String, Vec<u8>)> {
    let mut reader = Reader::open(file).unwrap();
    let mut records = Vec::new();
    while let Some(mut record) = reader.next_record().unwrap() {
        let headers = record.headers();
        let kind = headers.kind().to_owned();
        let uri = headers.target_uri().unwrap_or_default().to_owned();
        records.push((kind, uri, record.block(1 << 20).unwrap()));
        record.finish().unwrap();
    }
    records
}

fn dictionary() -> Arc<[u8]> {
    let samples: Vec<String> = (0..2000)
        .map(|number| {
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nsample number {number}")
        })
        .collect();
    zstd::dict::from_samples(&samples, 4096).unwrap().into()
}

fn zstd_config(directory: &Path, dictionary: Option<Arc<[u8]>>) -> WriterConfig {
    WriterConfig {
        dictionary,
        ..config(directory, Compression::Zstd(3))
    }
}

#[test]
fn zstd_files_are_read_with_and_without_a_dictionary_from_any_record() {
    for dictionary in [None, Some(dictionary())] {
        let directory = tempfile::tempdir().unwrap();
        let (mut writer, _) = open(zstd_config(directory.path(), dictionary.clone()));
        let mut places = Vec::new();
        for number in 1..50 {
            let body = format!("sample number {number}");
            places.extend(
                writer
                    .write(&[response(number, body.as_bytes())], now())
                    .unwrap(),
            );
        }
        let large = vec![7; 3 << 20];
        places.extend(writer.write(&[response(50, &large)], now()).unwrap());
        let file = writer.close().unwrap().unwrap();
        assert!(file.to_string_lossy().ends_with(".warc.zst"));
        let start = fs::read(&file).unwrap()[..4].to_vec();
        match &dictionary {
            Some(_) => assert_eq!(start, [0x5d, 0x2a, 0x4d, 0x18]),
            None => assert_eq!(start, [0x28, 0xb5, 0x2f, 0xfd]),
        }
        let report = check(&file).unwrap();
        assert!(report.is_sound(), "{:?}", report.faults);
        assert_eq!(
            (report.records, report.block_digests, report.payload_digests),
            (51, 51, 50)
        );
        for place in places {
            let mut reader = Reader::open_at(&file, place.offset).unwrap();
            let record = reader.next_record().unwrap().unwrap();
            assert_eq!(record.headers().record_id(), Some(place.record_id));
            let extent = record.finish().unwrap();
            assert_eq!(
                (extent.offset, extent.length, extent.shared),
                (place.offset, place.length, false)
            );
            assert_eq!(reader.packing(), Packing::Zstd);
        }
    }
}

#[test]
fn an_incomplete_zstd_file_is_cut_back_to_its_last_complete_capture() {
    let directory = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(zstd_config(directory.path(), Some(dictionary())));
    writer.write(&[response(1, b"one")], now()).unwrap();
    let last = writer.write(&[response(2, b"two")], now()).unwrap();
    let path = writer.current().unwrap().to_owned();
    drop(writer);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    let (_, repaired) = open(zstd_config(directory.path(), Some(dictionary())));
    assert_eq!(repaired.len(), 1);
    let file = repaired[0].file.clone().unwrap();
    assert_eq!(fs::metadata(&file).unwrap().len(), last[0].offset);
    assert!(check(&file).unwrap().is_sound());
}

#[test]
fn damage_in_a_zstd_file_affects_one_record() {
    let directory = tempfile::tempdir().unwrap();
    let records: Vec<_> = (1..4)
        .map(|number| response(number, &[number as u8; 500]))
        .collect();
    let file = write(zstd_config(directory.path(), Some(dictionary())), &records);
    let places: Vec<_> = index(&file)
        .unwrap()
        .iter()
        .map(|entry| entry.capture.offset.clone().unwrap())
        .collect();
    let mut bytes = fs::read(&file).unwrap();
    let second: usize = places[1].parse().unwrap();
    bytes[second + 60] ^= 0xff;
    fs::write(&file, bytes).unwrap();
    let report = check(&file).unwrap();
    assert_eq!(
        (report.records, report.faults_found),
        (3, 1),
        "{:?}",
        report.faults
    );
}

#[test]
fn arc_files_have_only_responses_and_resources() {
    for (compression, ending) in [
        (Compression::None, ".arc"),
        (Compression::Gzip(6), ".arc.gz"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let config = WriterConfig {
            format: ArchiveFormat::Arc,
            prefix: "IAH".to_owned(),
            template: "${prefix}-${timestamp12}-${serialno}-${host}"
                .parse()
                .unwrap(),
            index: true,
            ..config(directory.path(), compression)
        };
        let (mut writer, _) = open(config);
        let page = response(1, b"hello\n");
        let dns = Record::resource(
            id(2),
            now(),
            "dns:example.com",
            "text/dns",
            b"20060919172024\n".to_vec().into(),
        );
        let request = Record::request(
            id(3),
            now(),
            "http://example.com/1",
            b"GET / HTTP/1.1\r\n\r\n".to_vec().into(),
        );
        let places = writer.write(&[page, request, dns], now()).unwrap();
        assert_eq!(places.len(), 2, "the request has no place");
        writer.write(&[response(4, b"")], now()).unwrap();
        let file = writer.close().unwrap().unwrap();
        assert_eq!(
            file.file_name().unwrap().to_string_lossy(),
            format!("IAH-200609191720-00000-crawler{ending}")
        );
        let records = read(&file);
        let seen: Vec<_> = records
            .iter()
            .map(|(kind, uri, _)| (kind.as_str(), uri.as_str()))
            .collect();
        assert_eq!(
            seen,
            [
                ("warcinfo", ""),
                ("response", "http://example.com/1"),
                ("resource", "dns:example.com"),
                ("response", "http://example.com/4"),
            ]
        );
        assert!(records[1].2.ends_with(b"\r\n\r\nhello\n"));
        let description = String::from_utf8(records[0].2.clone()).unwrap();
        assert!(description.starts_with(
            "1 1 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n"
        ));
        assert!(description.contains("<arc:software>opilio</arc:software>"));
        let report = check(&file).unwrap();
        assert!(report.is_sound(), "{:?}", report.faults);
        let mut reader = Reader::open_at(&file, places[1].offset).unwrap();
        let record = reader.next_record().unwrap().unwrap();
        assert_eq!(record.headers().first("Content-Type"), Some("text/dns"));
        record.finish().unwrap();
        assert_eq!(reader.format(), Some(ArchiveFormat::Arc));
        // The index written with the file and the index made from the file are the same, except for the digest, which ARC does not
        // have.
        let written = fs::read_to_string(index_path(&file)).unwrap();
        let read: Vec<String> = index(&file)
            .unwrap()
            .iter()
            .map(|entry| format!("{entry}\n"))
            .collect();
        assert_eq!(written.lines().count(), 3);
        assert!(
            written.contains("\"mime\":\"text/plain\",\"status\":\"200\""),
            "{written}"
        );
        assert!(
            read.concat()
                .lines()
                .all(|line| line.contains(&format!("crawler{ending}")))
        );
    }
}

#[test]
fn arc_files_of_others_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("old.arc");
    let block = "1 0 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n";
    let text = format!(
        "filedesc://old.arc 0.0.0.0 19960923142103 text/plain {}\n{block}\n\
         http://a.example/ 192.0.2.1 19960923142104 text/html 3\nabc\n\n\n\
         http://a.example/b c 192.0.2.1 19960923142105 text/html 0\n\n\
         http://a.example/last 192.0.2.1 19960923142106 text/html 2\nxy",
        block.len()
    );
    fs::write(&file, &text).unwrap();
    let uris: Vec<_> = read(&file)
        .into_iter()
        .map(|(_, uri, block)| (uri, block))
        .collect();
    assert_eq!(uris[1], ("http://a.example/".to_owned(), b"abc".to_vec()));
    assert_eq!(uris[2], ("http://a.example/b c".to_owned(), Vec::new()));
    assert_eq!(
        uris[3],
        ("http://a.example/last".to_owned(), b"xy".to_vec())
    );
    // A wrong length that extends into the next record is damage, and reading continues behind it.
    fs::write(&file, text.replace("text/html 3", "text/html 9")).unwrap();
    let mut reader = Reader::open(&file).unwrap();
    let mut seen = 0;
    loop {
        match reader.next_record() {
            Ok(Some(record)) => seen += u32::from(record.finish().is_ok()),
            Ok(None) => break,
            Err(_) => {}
        }
        if reader.format().is_none() {
            break;
        }
        if let Ok(None) = reader.next_record().map(|record| record.map(|_| ())) {
            match reader.resync().unwrap() {
                Some(_) => {}
                None => break,
            }
        }
    }
    assert!(seen >= 1);
}

#[test]
fn the_index_written_with_the_file_is_the_index_of_the_file() {
    for compression in [
        Compression::None,
        Compression::Gzip(6),
        Compression::Zstd(3),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let config = WriterConfig {
            index: true,
            ..config(directory.path(), compression)
        };
        let payload = Digest::sha1(b"payload");
        let refers_to = RefersTo {
            target_uri: Some("http://example.com/1".to_owned()),
            date: Some(now()),
            id: None,
        };
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=x\r\n\r\n".to_vec();
        let revisit = Record {
            payload_digest: Some(payload),
            ..Record::revisit(
                id(8),
                RevisitProfile::IdenticalPayloadDigest,
                now(),
                "http://example.com/z",
                refers_to,
                head.into(),
            )
        };
        let records = [
            response(9, b"nine"),
            response(1, b"one"),
            revisit,
            Record::request(id(3), now(), "http://example.com/1", b"GET".to_vec().into()),
            Record::resource(
                id(2),
                now(),
                "dns:example.com",
                "text/dns",
                b"1\n".to_vec().into(),
            ),
        ];
        let file = write(config, &records);
        let written = fs::read_to_string(index_path(&file)).unwrap();
        let read: Vec<String> = index(&file)
            .unwrap()
            .iter()
            .map(|entry| format!("{entry}\n"))
            .collect();
        assert_eq!(written, read.concat());
        let lines: Vec<_> = written.lines().collect();
        assert_eq!(lines.len(), 4, "{written}");
        assert!(lines.is_sorted());
        // SURT keys of hosts sort before those of look-ups: `dns:example.com`.
        assert!(lines[2].starts_with("com,example)/z 20060919172024 {\"url\":\"http://example.com/z\",\"mime\":\"warc/revisit\",\"status\":\"200\""), "{written}");
    }
}

#[test]
fn a_response_to_a_post_is_found_by_the_body_of_the_request() {
    let directory = tempfile::tempdir().unwrap();
    let config = WriterConfig {
        index: true,
        ..config(directory.path(), Compression::Gzip(6))
    };
    let asked = |number: u128, of: u128, body: &str| {
        let length = body.len();
        let request = format!(
            "POST /{of} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let uri = format!("http://example.com/{of}");
        Record {
            concurrent_to: vec![id(of)],
            ..Record::request(id(number), now(), uri, request.into_bytes().into())
        }
    };
    let secret = Record {
        extra: vec![(BODY_UNINDEXED.to_owned(), "login".to_owned())],
        ..asked(14, 3, "{\"password\":\"x\"}")
    };
    // A request is after its response or before it. A request without a response is on its own.
    let captures = [
        vec![response(1, b"one"), asked(11, 1, "{\"b\":2,\"a\":[1,1]}")],
        vec![asked(12, 2, "{\"a\":1}"), response(2, b"two")],
        vec![asked(13, 9, "{\"a\":1}"), response(3, b"three"), secret],
    ];
    let (mut writer, _) = open(config);
    for capture in &captures {
        writer.write(capture, now()).unwrap();
    }
    let file = writer.close().unwrap().unwrap();
    let written = fs::read_to_string(index_path(&file)).unwrap();
    let read = index(&file).unwrap();
    let lines: Vec<String> = read.iter().map(|entry| format!("{entry}\n")).collect();
    assert_eq!(written, lines.concat());
    let found: Vec<_> = read
        .iter()
        .map(|it| {
            (
                &*it.key,
                it.capture.method.as_deref(),
                it.capture.request_body.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (
                "com,example)/1?__wb_method=post&a=1&a.2_=1&b=2",
                Some("POST"),
                Some("b=2&a=1&a.2_=1")
            ),
            (
                "com,example)/2?__wb_method=post&a=1",
                Some("POST"),
                Some("a=1")
            ),
            ("com,example)/3", None, None),
        ]
    );
}

#[test]
fn a_file_that_was_repaired_has_its_index() {
    let directory = tempfile::tempdir().unwrap();
    let config = || WriterConfig {
        index: true,
        ..config(directory.path(), Compression::Gzip(6))
    };
    let (mut writer, _) = open(config());
    writer.write(&[response(1, b"one")], now()).unwrap();
    drop(writer);
    let (_, repaired) = open(config());
    let file = repaired[0].file.clone().unwrap();
    let lines = fs::read_to_string(index_path(&file)).unwrap();
    assert!(
        lines.contains(&*file.file_name().unwrap().to_string_lossy()),
        "{lines}"
    );
}

#[test]
fn captures_of_a_uri_are_found_in_finished_and_open_files() {
    let home = tempfile::tempdir().unwrap();
    let directories = [home.path().join("a"), home.path().join("not there")];
    let indexed = |index| WriterConfig {
        index,
        ..config(&directories[0], Compression::Gzip(6))
    };
    let of = |minute: i64, uri: &str| Record {
        target_uri: uri.to_owned(),
        date: now() + jiff::SignedDuration::from_mins(minute),
        ..response(u128::from(minute.unsigned_abs()), b"body")
    };
    // Both URIs have the same key.
    let (uri, other) = ("http://www.example.org/a", "http://example.org/A");
    let found = || {
        let found = captures(&directories, &[], uri).unwrap();
        let of = |entry: &CdxjEntry| (entry.timestamp.clone(), entry.capture.filename.clone());
        let unlisted = found.unlisted.len();
        (found.entries.iter().map(of).collect::<Vec<_>>(), unlisted)
    };
    assert_eq!(found(), (vec![], 0));

    let (mut writer, _) = open(indexed(true));
    for minute in 0..3 {
        let records = [of(minute, uri), of(minute, other)];
        writer.write(&records, now()).unwrap();
        let (entries, _) = found();
        assert_eq!(
            entries.len() as i64,
            minute + 1,
            "while it is being written"
        );
    }
    let first = writer.rotate().unwrap().unwrap();
    writer.write(&[of(3, uri)], now()).unwrap();
    let open_file = writer.current().unwrap().to_owned();
    let (entries, unlisted) = found();
    let times: Vec<&str> = entries.iter().map(|(time, _)| time.as_str()).collect();
    assert_eq!(
        times,
        [
            "20060919172024",
            "20060919172124",
            "20060919172224",
            "20060919172324"
        ]
    );
    assert_eq!(unlisted, 0);
    let name = |file: &Path| file.file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(entries[0].1, Some(name(&first)));
    assert_eq!(
        entries[3].1.as_deref(),
        name(&open_file).strip_suffix(".open")
    );

    // Files of a killed process are repaired, together with their indexes.
    drop(writer);
    let (writer, repaired) = open(indexed(true));
    assert_eq!(repaired.len(), 1);
    assert_eq!(found(), (entries, 0));
    drop(writer);
    let names = listing(&directories[0]);
    assert!(
        !names.iter().any(|name| name.contains(".open")),
        "{names:?}"
    );

    let (mut writer, _) = open(indexed(false));
    writer.write(&[of(4, uri)], now()).unwrap();
    let (entries, unlisted) = found();
    assert_eq!((entries.len(), unlisted), (4, 1), "one has no index");
}

#[test]
fn two_digests_are_written_in_two_headers() {
    let directory = tempfile::tempdir().unwrap();
    let config = WriterConfig {
        further_digest: Some(Algorithm::Sha256),
        ..config(directory.path(), Compression::None)
    };
    let record = Record {
        further_payload_digest: Some(Digest::of(Algorithm::Sha256, b"body")),
        ..response(1, b"body")
    };
    let file = write(config, &[record]);
    let report = check(&file).unwrap();
    assert!(report.is_sound(), "{:?}", report.faults);
    assert_eq!((report.block_digests, report.payload_digests), (4, 2));
    let text = fs::read_to_string(&file).unwrap();
    let broken = text.replace("\r\n\r\nbody", "\r\n\r\nBODY");
    fs::write(&file, broken).unwrap();
    assert_eq!(check(&file).unwrap().faults_found, 4);
}

#[test]
fn a_crawl_is_described_again_when_its_plugins_change() {
    let directory = tempfile::tempdir().unwrap();
    let info = WarcInfo {
        documents: vec![CrawlDocument {
            target_uri: "metadata://opilio/profile.toml".to_owned(),
            content_type: "application/toml".to_owned(),
            content: b"name = \"x\"\n".to_vec().into(),
        }],
        ..WarcInfo::new("opilio")
    };
    let (writers, _) =
        Writers::open(&config(directory.path(), Compression::None), &info, 1).unwrap();
    writers.write(&[response(1, b"one")], now()).unwrap();
    let plugin = PluginInForce {
        name: "html".to_owned(),
        version: "2.0.0".to_owned(),
        hash: "sha256:00".to_owned(),
        settings: None,
    };
    // An unchanged description writes no record.
    writers.describe(&info);
    writers.describe(&WarcInfo {
        plugins: vec![plugin],
        user_agent: Some("opilio/9".to_owned()),
        ..info
    });
    writers.write(&[response(2, b"two")], now()).unwrap();
    writers.write(&[response(3, b"three")], now()).unwrap();
    let files = writers.finish().unwrap();
    let mut reader = Reader::open(&files[0]).unwrap();
    let mut seen = Vec::new();
    let mut infos = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        let headers = record.headers();
        match headers.kind() {
            "warcinfo" => infos.push(headers.first("WARC-Record-ID").unwrap().to_owned()),
            _ => {
                let named = headers.first("WARC-Warcinfo-ID").unwrap();
                assert_eq!(Some(named), infos.last().map(String::as_str));
            }
        }
        seen.push(headers.kind().to_owned());
    }
    assert_eq!(
        seen,
        [
            "warcinfo", "resource", "response", "warcinfo", "response", "response"
        ]
    );
    assert!(check(&files[0]).unwrap().is_sound());
    assert!(writers.bytes() > 0);
}

#[test]
fn files_are_spread_over_directories() {
    let directory = tempfile::tempdir().unwrap();
    let config = WriterConfig {
        further_directories: vec![directory.path().join("b")],
        size_max: 1,
        ..config(&directory.path().join("a"), Compression::Gzip(6))
    };
    let (mut writer, _) = open(config.clone());
    for number in 1..5 {
        writer.write(&[response(number, b"x")], now()).unwrap();
    }
    let open_one = writer.current().unwrap().to_owned();
    drop(writer);
    assert!(
        open_one.starts_with(directory.path().join("b")),
        "{}",
        open_one.display()
    );
    let (_, repaired) = open(config.clone());
    assert_eq!(repaired.len(), 1);
    let folders: Vec<_> = archives(&config)
        .unwrap()
        .iter()
        .map(|(file, _)| file.parent().unwrap().file_name().unwrap().to_owned())
        .collect();
    assert_eq!(folders, ["a", "a", "b", "b"]);
}

#[test]
fn names_can_be_those_of_arc_files() {
    let template: NameTemplate = "${prefix}-${timestamp12}-${serialno}".parse().unwrap();
    assert_eq!(template.to_string(), "${prefix}-${timestamp12}-${serialno}");
}

/// Creates a small file of each kind, to be damaged.
fn originals() -> Vec<(&'static str, Vec<u8>)> {
    let directory = tempfile::tempdir().unwrap();
    let records = [
        response(1, b"one"),
        response(2, &[3; 2000]),
        response(3, b""),
    ];
    let make = |name, config| (name, fs::read(write(config, &records)).unwrap());
    let arc = |compression| WriterConfig {
        format: ArchiveFormat::Arc,
        ..config(directory.path(), compression)
    };
    vec![
        make("x.warc", config(directory.path(), Compression::None)),
        make("x.warc.gz", config(directory.path(), Compression::Gzip(6))),
        make("x.warc.zst", zstd_config(directory.path(), None)),
        make(
            "d.warc.zst",
            zstd_config(directory.path(), Some(dictionary())),
        ),
        make("x.arc", arc(Compression::None)),
        make("x.arc.gz", arc(Compression::Gzip(6))),
    ]
}

/// Checks that any content can be read to its end, and repaired.
fn check_that_it_is_readable(name: &str, bytes: &[u8]) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(name);
    fs::write(&file, bytes).unwrap();
    check(&file).unwrap();
    let _ = index(&file);
    fs::rename(&file, directory.path().join(format!("{name}.open"))).unwrap();
    let (_, repaired) = Writer::open(
        config(directory.path(), Compression::None),
        WarcInfo::new("x"),
    )
    .unwrap();
    for file in repaired.iter().flat_map(|repaired| repaired.files()) {
        let report = check(file).unwrap();
        let damaged = report
            .faults
            .iter()
            .any(|fault| matches!(fault.kind, opilio_archive::RecordErrorKind::Damaged(_)));
        assert!(!damaged, "{name}: {:?}", report.faults);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn damaged_files_are_read_to_their_end(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        for (name, mut bytes) in originals() {
            for (at, to) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *to;
            }
            if is_cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            check_that_it_is_readable(name, &bytes);
        }
    }

    #[test]
    fn arbitrary_bytes_are_read_without_a_panic(start in 0_usize..6, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let starts: [&[u8]; 6] = [b"", &[0x1f, 0x8b, 8], &[0x28, 0xb5, 0x2f, 0xfd], &[0x5d, 0x2a, 0x4d, 0x18], b"filedesc://x 0.0.0.0 19960923142103 text/plain 9\n", b"WARC/1.1\r\n"];
        check_that_it_is_readable("x.warc.gz", &[starts[start], &bytes].concat());
    }
}

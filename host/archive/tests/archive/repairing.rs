//! Files of killed processes: records cut at every byte, empty files, damage in the middle.

use std::fs;
use std::path::Path;

use opilio_archive::{Compression, Location, RepairedFile, RescuedRecords};

use crate::fixture::*;

/// Writes captures. Returns the bytes of the file, its name, and the places of the records.
fn written(compression: Compression, bodies: &[&[u8]]) -> (Vec<u8>, Vec<Location>) {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = writer(directory.path(), compression);
    let mut locations = Vec::new();
    for (number, body) in bodies.iter().enumerate() {
        let record = response(100 + number as u128, body);
        locations.extend(writer.write(&[record], now()).unwrap());
    }
    let path = writer.close().unwrap().unwrap();
    (fs::read(path).unwrap(), locations)
}

/// Writes the bytes to an open file, opens a writer, and returns the repaired files.
fn left_behind(directory: &Path, compression: Compression, bytes: &[u8]) -> Vec<RepairedFile> {
    let open = format!("{FIRST}{}.open", ending(compression));
    fs::write(directory.join(open), bytes).unwrap();
    let (writer, repaired) = open_writer(directory, compression);
    assert_eq!(writer.close().unwrap(), None);
    repaired
}

fn open_writer(
    directory: &Path,
    compression: Compression,
) -> (opilio_archive::Writer, Vec<RepairedFile>) {
    open(config(directory, compression))
}

#[test]
fn only_the_incomplete_last_record_is_cut_off() {
    for compression in BOTH {
        let (bytes, locations) = written(compression, &[b"first", b"second", b"third"]);
        let last = &locations[2];
        let last_start = last.offset as usize;
        assert_eq!(last.offset + last.length, bytes.len() as u64);
        for end in last_start..=bytes.len() {
            let directory = tempfile::tempdir().unwrap();
            let repaired = left_behind(directory.path(), compression, &bytes[..end]);
            let file = first_file(directory.path(), compression);
            let kept = if end == bytes.len() { end } else { last_start };
            let expected = RepairedFile {
                file: Some(file.clone()),
                found: directory
                    .path()
                    .join(format!("{FIRST}{}.open", ending(compression))),
                records: if kept == end && end == bytes.len() {
                    4
                } else {
                    3
                },
                cut_bytes: (end - kept) as u64,
                rescued: None,
            };
            assert_eq!(repaired, [expected], "{compression:?} cut at {end}");
            assert_eq!(
                fs::read(&file).unwrap(),
                bytes[..kept],
                "{compression:?} cut at {end}"
            );
            assert_eq!(listing(directory.path()).len(), 1);
        }
    }
}

#[test]
fn a_file_without_a_whole_record_is_removed() {
    for compression in BOTH {
        let (bytes, locations) = written(compression, &[b"first"]);
        let warcinfo = locations[0].offset as usize;
        for end in [0, 1, 2, 5, warcinfo / 2, warcinfo - 1] {
            let directory = tempfile::tempdir().unwrap();
            let repaired = left_behind(directory.path(), compression, &bytes[..end]);
            assert_eq!(repaired[0].file, None);
            assert_eq!(repaired[0].cut_bytes, end as u64);
            assert_eq!(listing(directory.path()), [""; 0]);
        }
    }
}

#[test]
fn complete_records_behind_a_damaged_one_are_rescued() {
    for compression in BOTH {
        let (mut bytes, locations) = written(compression, &[b"one", b"two", b"three", b"four"]);
        // A page that never reached the disk, and an incomplete last record.
        let hole = locations[1].offset as usize;
        bytes[hole + 3..hole + locations[1].length as usize - 3].fill(0);
        bytes.truncate(bytes.len() - 5);
        let directory = tempfile::tempdir().unwrap();
        let repaired = left_behind(directory.path(), compression, &bytes);
        let file = first_file(directory.path(), compression);
        let rescued = directory
            .path()
            .join(format!("{FIRST}-rescued{}", ending(compression)));
        assert_eq!(repaired[0].records, 2);
        assert_eq!(
            repaired[0].rescued,
            Some(RescuedRecords {
                file: rescued.clone(),
                records: 1
            })
        );
        assert_eq!(ids_of(&file), [id(0), id(100)]);
        assert_eq!(ids_of(&rescued), [id(102)]);
        assert_eq!(listing(directory.path()).len(), 2);
    }
}

#[test]
fn an_archived_warc_file_is_not_taken_for_our_own_records() {
    for compression in BOTH {
        // A WARC file that was crawled. With level 0 its bytes are unchanged in the member.
        let (inner, _) = written(compression, &[b"inner one", b"inner two"]);
        let stored = if compression == Compression::None {
            compression
        } else {
            Compression::Gzip(0)
        };
        let directory = tempfile::tempdir().unwrap();
        let (mut writer, _) = {
            let mut next = 50;
            opilio_archive::Writer::open_with_ids(
                config(directory.path(), stored),
                opilio_archive::WarcInfo::new("opilio"),
                move || {
                    next += 1;
                    id(next)
                },
            )
            .unwrap()
        };
        writer.write(&[response(200, b"before")], now()).unwrap();
        let location = writer
            .write(&[response(201, &inner)], now())
            .unwrap()
            .remove(0);
        let path = writer.close().unwrap().unwrap();
        let bytes = fs::read(path).unwrap();

        let directory = tempfile::tempdir().unwrap();
        let torn = &bytes[..bytes.len() - 1];
        let repaired = left_behind(directory.path(), compression, torn);
        assert_eq!(repaired[0].rescued, None);
        let kept = fs::read(first_file(directory.path(), compression)).unwrap();
        assert_eq!(kept, bytes[..location.offset as usize]);
    }
}

#[test]
fn a_finished_file_is_never_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let (bytes, _) = written(Compression::None, &[b"first"]);
    let finished = first_file(directory.path(), Compression::None);
    fs::write(&finished, "finished before").unwrap();
    let repaired = left_behind(directory.path(), Compression::None, &bytes);
    let beside = directory.path().join(format!("{FIRST}-1.warc"));
    assert_eq!(repaired[0].file, Some(beside.clone()));
    assert_eq!(fs::read(&finished).unwrap(), b"finished before");
    assert_eq!(fs::read(&beside).unwrap(), bytes);
}

#[test]
fn other_files_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    for name in [
        "notes.open",
        "crawl.log",
        "WEB-1.warc.gz",
        "x.warc.gz.open.txt",
    ] {
        fs::write(directory.path().join(name), "not ours").unwrap();
    }
    let before = listing(directory.path());
    let (_, repaired) = open_writer(directory.path(), Compression::None);
    assert_eq!(repaired, []);
    assert_eq!(listing(directory.path()), before);
}

#[test]
fn a_writer_that_is_dropped_leaves_a_whole_file() {
    let directory = tempfile::tempdir().unwrap();
    let mut dropped = writer(directory.path(), Compression::Gzip(6));
    dropped.write(&[response(100, b"a")], now()).unwrap();
    drop(dropped);
    let (_, repaired) = open_writer(directory.path(), Compression::Gzip(6));
    assert_eq!((repaired[0].records, repaired[0].cut_bytes), (2, 0));
    assert_eq!(ids_of(repaired[0].file.as_ref().unwrap()), [id(0), id(100)]);
}

/// Returns the names of files, and the text of the index if it exists.
fn indexed(directory: &Path) -> (Vec<String>, Option<String>) {
    let index = directory.join(format!("{FIRST}.cdxj"));
    (listing(directory), fs::read_to_string(index).ok())
}

#[test]
fn after_a_kill_at_any_step_of_finishing_the_next_start_completes_file_and_index() {
    let config = |directory: &Path| opilio_archive::WriterConfig {
        index: true,
        ..config(directory, Compression::Gzip(6))
    };
    let whole = tempfile::tempdir().unwrap();
    let (mut finished, _) = open(config(whole.path()));
    finished.write(&[response(100, b"a")], now()).unwrap();
    let growing = listing(whole.path());
    let name = |ending: &str| format!("{FIRST}{ending}");
    assert_eq!(growing, [name(".cdxj.open"), name(".warc.gz.open")]);
    let bytes = fs::read(finished.current().unwrap()).unwrap();
    finished.close().unwrap();
    let (names, index) = indexed(whole.path());
    assert_eq!(names, [name(".cdxj"), name(".warc.gz")]);
    let index = index.unwrap();
    assert!(index.contains("http://example.com/100"), "{index}");

    // The files after each step: the file, its index, the index of the open file, a draft.
    let states: [&[(&str, &str)]; 6] = [
        &[(".warc.gz.open", ""), (".cdxj.open", "half")],
        &[
            (".warc.gz.open", ""),
            (".cdxj.open", "half"),
            (".cdxj.draft", "ha"),
        ],
        &[
            (".warc.gz.open", ""),
            (".cdxj.open", "half"),
            (".cdxj", "whole"),
        ],
        &[(".warc.gz", ""), (".cdxj.open", "half"), (".cdxj", "whole")],
        // The state that version 0.1.0 left.
        &[(".warc.gz", ""), (".cdxj.open", "half")],
        &[(".warc.gz", "")],
    ];
    for state in states {
        let directory = tempfile::tempdir().unwrap();
        for (ending, text) in state {
            let text = match *ending {
                ".warc.gz" | ".warc.gz.open" => bytes.as_slice(),
                _ if *text == "whole" => index.as_bytes(),
                _ => text.as_bytes(),
            };
            fs::write(directory.path().join(name(ending)), text).unwrap();
        }
        drop(open(config(directory.path())));
        opilio_archive::complete_indexes(directory.path(), 10).unwrap();
        let (names, written) = indexed(directory.path());
        assert_eq!(names, [name(".cdxj"), name(".warc.gz")], "{state:?}");
        assert_eq!(written.as_deref(), Some(index.as_str()), "{state:?}");
    }
}

#[test]
fn a_repaired_file_has_its_index_before_it_has_its_name() {
    let (bytes, _) = written(Compression::None, &[b"first"]);
    let directory = tempfile::tempdir().unwrap();
    let open = directory.path().join(format!("{FIRST}.warc.open"));
    fs::write(&open, bytes).unwrap();
    // The index cannot be written, because its draft is a folder.
    let obstacle = directory.path().join(format!("{FIRST}.cdxj.draft"));
    fs::create_dir(&obstacle).unwrap();
    let config = || opilio_archive::WriterConfig {
        index: true,
        ..config(directory.path(), Compression::None)
    };
    let info = || opilio_archive::WarcInfo::new("opilio");
    let refused = opilio_archive::Writer::open(config(), info()).unwrap_err();
    assert!(refused.to_string().contains("cannot repair"), "{refused}");
    assert!(open.exists() && !first_file(directory.path(), Compression::None).exists());
    fs::remove_dir(obstacle).unwrap();
    opilio_archive::Writer::open(config(), info()).unwrap();
    assert_eq!(
        listing(directory.path()),
        [format!("{FIRST}.cdxj"), format!("{FIRST}.warc")]
    );
}

#[test]
fn indexes_are_completed_up_to_the_limit_and_damaged_files_are_skipped() {
    let directory = tempfile::tempdir().unwrap();
    let (bytes, _) = written(Compression::Gzip(6), &[b"first"]);
    for name in ["a.warc.gz", "b.warc.gz", "c.warc.gz"] {
        fs::write(directory.path().join(name), &bytes).unwrap();
    }
    fs::write(directory.path().join("d.warc.gz"), &bytes[..40]).unwrap();
    let indexes = || {
        let names = listing(directory.path()).into_iter();
        names.filter(|name| name.ends_with(".cdxj")).count()
    };
    assert_eq!(
        opilio_archive::complete_indexes(&directory.path().join("none"), 9).unwrap(),
        0
    );
    let problem = opilio_archive::complete_indexes(directory.path(), 2).unwrap_err();
    assert!(problem.to_string().contains("d.warc.gz"), "{problem}");
    assert_eq!(indexes(), 1);
    opilio_archive::complete_indexes(directory.path(), 9).unwrap_err();
    assert_eq!(indexes(), 3);
}

//! Rotation and names of files.

use std::time::Duration;

use jiff::SignedDuration;
use opilio_archive::{Compression, WarcInfo, Writers, check};

use crate::fixture::*;

#[test]
fn a_full_file_gets_its_name_and_the_next_capture_a_new_one() {
    let directory = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(opilio_archive::WriterConfig {
        size_max: 4000,
        ..config(directory.path(), Compression::None)
    });
    let body = [b'x'; 1500];
    let mut files = Vec::new();
    for number in 100..107 {
        let capture = [response(number, &body), response(number + 1000, b"")];
        let locations = writer.write(&capture, now()).unwrap();
        assert_eq!(
            locations[0].file, locations[1].file,
            "a capture stays in one file"
        );
        files.push(locations[0].file.clone());
    }
    let name = |serial| format!("WEB-20060919172024000-{serial:05}-4711~crawler~0.warc");
    // Each capture takes a little less than 3000 bytes.
    assert_eq!(files, [0, 0, 1, 1, 2, 2, 3].map(name));
    let open = format!("{}.open", name(3));
    assert_eq!(
        listing(directory.path()),
        [name(0), name(1), name(2), open.clone()]
    );
    assert_eq!(
        writer.current(),
        Some(directory.path().join(open).as_path())
    );
    assert_eq!(
        writer.take_finished(),
        [0, 1, 2].map(|n| directory.path().join(name(n)))
    );
    assert_eq!(
        writer.close().unwrap(),
        Some(directory.path().join(name(3)))
    );
    for serial in 0..4 {
        let report = check(directory.path().join(name(serial))).unwrap();
        assert!(report.is_sound(), "{:?}", report.faults);
        assert_eq!(report.by_kind["warcinfo"], 1);
    }
}

#[test]
fn an_old_file_is_finished() {
    let directory = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(opilio_archive::WriterConfig {
        age_max: Some(Duration::from_secs(3600)),
        ..config(directory.path(), Compression::Gzip(6))
    });
    let after = |seconds| {
        now()
            .checked_add(SignedDuration::from_secs(seconds))
            .unwrap()
    };
    let first = writer.write(&[response(100, b"a")], now()).unwrap();
    let second = writer.write(&[response(101, b"b")], after(3599)).unwrap();
    assert_eq!(first[0].file, second[0].file);
    assert_eq!(writer.tick(after(3599)).unwrap(), None);
    let third = writer.write(&[response(102, b"c")], after(3600)).unwrap();
    assert_eq!(
        third[0].file,
        "WEB-20060919182024000-00001-4711~crawler~0.warc.gz"
    );
    let finished = writer.tick(after(7200)).unwrap();
    assert_eq!(finished, Some(directory.path().join(&third[0].file)));
    assert_eq!(writer.close().unwrap(), None);
}

#[test]
fn no_capture_means_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = writer(directory.path(), Compression::Gzip(6));
    assert_eq!(writer.write(&[], now()).unwrap(), []);
    assert_eq!(writer.close().unwrap(), None);
    assert_eq!(listing(directory.path()), [""; 0]);
}

#[test]
fn writers_in_one_directory_never_share_a_name() {
    let directory = tempfile::tempdir().unwrap();
    let mut one = writer(directory.path(), Compression::None);
    one.write(&[response(100, b"a")], now()).unwrap();
    // The second writer finds the first writer's open file and does not change it.
    let mut two = writer(directory.path(), Compression::None);
    two.write(&[response(101, b"b")], now()).unwrap();
    one.write(&[response(102, b"c")], now()).unwrap();
    let one = one.close().unwrap().unwrap();
    let two = two.close().unwrap().unwrap();
    assert_eq!(ids_of(&one), [id(0), id(100), id(102)]);
    assert_eq!(ids_of(&two), [id(0), id(101)]);
}

#[test]
fn several_writers_write_every_capture_once() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path(), Compression::Gzip(1));
    let (writers, _) = Writers::open(&config, &WarcInfo::new("opilio"), 3).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let writers = &writers;
            scope.spawn(move || {
                for number in 0..25 {
                    let record = response(100 + thread * 100 + number, b"body");
                    writers.write(&[record], now()).unwrap();
                }
            });
        }
    });
    let files = writers.finish().unwrap();
    let mut ids: Vec<_> = files
        .iter()
        .flat_map(|file| ids_of(file).split_off(1))
        .collect();
    ids.sort();
    let mut expected: Vec<_> = (0..4)
        .flat_map(|t| (0..25).map(move |n| id(100 + t * 100 + n)))
        .collect();
    expected.sort();
    assert_eq!(ids, expected);
}

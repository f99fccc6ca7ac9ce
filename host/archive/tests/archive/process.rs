//! Tests with another process, which is killed during a write or runs out of space. The other process is this test binary, with an
//! environment variable.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use opilio_archive::{Block, Compression, Reader, WriteError};

use crate::fixture::*;

/// Environment variable with the directory that the child writes to. Without it, the tests named `child…` do nothing.
const DIRECTORY: &str = "OPILIO_ARCHIVE_TEST_DIRECTORY";

fn child_directory() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY).map(PathBuf::from)
}

/// Bytes that cannot be compressed, from a seed.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Writes captures until it is killed, and prints the places of each after it was written.
#[test]
fn child_that_writes_for_ever() {
    let Some(directory) = child_directory() else {
        return;
    };
    let (mut writer, _) = open(opilio_archive::WriterConfig {
        size_max: 2_000_000,
        ..config(&directory, Compression::Gzip(1))
    });
    let mut out = std::io::stdout();
    for number in 100.. {
        let capture = [
            response(
                number * 2,
                &noise(number as u64, (number as usize * 7919) % 60_000),
            ),
            response(number * 2 + 1, b"second of its capture"),
        ];
        for location in writer.write(&capture, now()).unwrap() {
            writeln!(
                out,
                "wrote {} {} {}",
                location.file, location.offset, location.record_id
            )
            .unwrap();
        }
    }
}

#[test]
fn a_killed_process_loses_no_written_capture() {
    for lines in [1, 30, 200] {
        let directory = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "process::child_that_writes_for_ever",
                "--nocapture",
            ])
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut wrote = Vec::new();
        let mut line = String::new();
        while out.read_line(&mut line).unwrap() > 0 {
            if line.starts_with("wrote ") && line.ends_with('\n') {
                wrote.push(line.trim_end().to_owned());
            }
            line.clear();
            if wrote.len() == lines {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(wrote.len() >= lines);

        let (writer, repaired) = open(config(directory.path(), Compression::Gzip(1)));
        assert_eq!(repaired.len(), 1, "{repaired:?}");
        drop(writer);
        for name in listing(directory.path()) {
            assert!(name.ends_with(".warc.gz"), "{name}");
            ids_of(&directory.path().join(name));
        }
        for line in wrote {
            let words: Vec<&str> = line.split(' ').collect();
            let mut reader =
                Reader::open_at(directory.path().join(words[1]), words[2].parse().unwrap())
                    .unwrap();
            let record = reader.next_record().unwrap().unwrap();
            assert_eq!(
                record.headers().record_id(),
                Some(words[3].parse().unwrap())
            );
        }
    }
}

/// Writes until it reaches the limit of file size that its parent has set.
#[test]
fn child_without_space() {
    let Some(directory) = child_directory() else {
        return;
    };
    let mut writer = writer(&directory, Compression::Gzip(1));
    writer.write(&[response(100, b"fits")], now()).unwrap();
    let open = writer.current().unwrap().to_owned();
    let before = fs::read(&open).unwrap();
    let large = || vec![response(101, b"fits"), response(102, &noise(1, 1_000_000))];
    for _ in 0..2 {
        let error = writer.write(&large(), now()).unwrap_err();
        let WriteError::Write { file, offset, .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!((file, *offset), (&open, before.len() as u64));
        assert_eq!(fs::read(&open).unwrap(), before);
    }
    let spool = Block::spool(10, || Ok(Box::new(b"also fits.".as_slice())));
    let spooled = opilio_archive::Record {
        block: spool,
        ..response(103, b"")
    };
    let spooled = opilio_archive::Record {
        payload_digest: None,
        ..spooled
    };
    writer.write(&[spooled], now()).unwrap();
    assert_eq!(
        ids_of(&writer.close().unwrap().unwrap()),
        [id(0), id(100), id(103)]
    );
    fs::write(directory.join("passed"), "").unwrap();
}

#[test]
fn a_full_disk_fails_the_capture_and_leaves_the_writer_usable() {
    let directory = tempfile::tempdir().unwrap();
    let run = "trap '' XFSZ; ulimit -f 256; exec \"$0\" \"$@\"";
    let output = Command::new("sh")
        .args(["-c", run])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "process::child_without_space", "--nocapture"])
        .env(DIRECTORY, directory.path())
        .output()
        .unwrap();
    let passed = |directory: &Path| directory.join("passed").exists();
    assert!(
        passed(directory.path()),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

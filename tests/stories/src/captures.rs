//! Reads the archive of a story's job.

use std::path::{Path, PathBuf};

use opilio_archive::{Reader, check};

/// Largest block that a story reads.
const BLOCK_BYTES_MAX: usize = 64 << 20;

/// A WARC record.
#[derive(Clone, Debug)]
pub struct Capture {
    /// `WARC-Type`.
    pub kind: String,
    /// `WARC-Target-URI`; empty if missing.
    pub uri: String,
    /// Header fields in order.
    pub headers: Vec<(String, String)>,
    /// The block.
    pub block: Vec<u8>,
}

impl Capture {
    /// Returns the value of the first header field with this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the block as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.block).into_owned()
    }

    /// Returns the HTTP status of the block.
    pub fn status(&self) -> u16 {
        self.text()
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap_or(0)
    }
}

/// Returns all records of the job's finished WARC files, in the order of the files.
pub fn captures(job: &Path) -> Vec<Capture> {
    let mut captures = Vec::new();
    for file in files(job) {
        let mut reader = Reader::open(&file).unwrap();
        while let Some(mut record) = reader.next_record().unwrap() {
            let headers = record.headers();
            let mut capture = Capture {
                kind: headers.kind().to_owned(),
                uri: headers.target_uri().unwrap_or_default().to_owned(),
                headers: headers
                    .iter()
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect(),
                block: Vec::new(),
            };
            capture.block = record.block(BLOCK_BYTES_MAX).unwrap();
            record.finish().unwrap();
            captures.push(capture);
        }
    }
    captures
}

/// Asserts that all WARC files of the job are closed, and that every record is complete and matches its digests.
#[track_caller]
pub fn sound(job: &Path) {
    for file in files(job) {
        let name = file.display();
        assert!(
            file.extension().is_some_and(|ending| ending != "open"),
            "{name} was left behind"
        );
        let report = check(&file).unwrap();
        assert!(report.is_sound(), "{name}: {:?}", report.faults);
    }
}

fn files(job: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(job.join("warcs")) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    // Indexes are in the same folder as the archive files.
    files.retain(|file| !file.to_string_lossy().contains(".cdxj"));
    files.sort();
    files
}

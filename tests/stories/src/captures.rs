//! The archive, read back.

use std::path::{Path, PathBuf};

use opilio_archive::{Reader, check};

/// Largest block that a story reads.
const BLOCK_BYTES_MAX: usize = 64 << 20;

/// A WARC record.
#[derive(Clone, Debug)]
pub struct Capture {
    /// `WARC-Type`.
    pub kind: String,
    /// `WARC-Target-URI`; empty where there is none.
    pub uri: String,
    /// Header fields in order.
    pub headers: Vec<(String, String)>,
    /// The block.
    pub block: Vec<u8>,
}

impl Capture {
    /// The first header field of a name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The block as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.block).into_owned()
    }

    /// The HTTP status of the block.
    pub fn status(&self) -> u16 {
        self.text()
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap_or(0)
    }
}

/// Every record of the job's finished WARC files, file after file.
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

/// Asserts that no WARC file of the job is open and that every record of each is whole, with the digests it states.
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
    // Indexes stand beside the files that they are of.
    files.retain(|file| !file.to_string_lossy().contains(".cdxj"));
    files.sort();
    files
}

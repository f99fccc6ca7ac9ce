//! How WARC files are named, sized and kept safe.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::byte_size::{ByteSize, SizeWritten};
use crate::check::{Part, quote};
use crate::duration::DurationWritten;

/// Smallest `size-max`: below it files hold little more than their own `warcinfo`.
const SIZE_MIN: ByteSize = ByteSize::from_bytes(64 * 1024);

/// Longest prefix of a WARC file name; with time, serial number and host it has to stay below 255 bytes.
const PREFIX_BYTES_MAX: usize = 100;

/// How WARC files are named, sized and kept safe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ArchiveFile {
    /// The folder of the WARC files, relative to the job's. Default `"warcs"`: where operators look first.
    pub directory: String,

    /// What file names begin with. Default `"WEB"`: as operators know it; institutions set their own.
    pub prefix: String,

    /// A file that has grown past this is closed and the next begun. Default `"1GiB"`: the size that archives
    /// move around.
    pub size_max: SizeWritten,

    /// A file open for this long is closed and the next begun, however small. Default `"none"`: a snapshot needs it not;
    /// continuous crawls hand over a file a day with `"24h"`.
    pub age_max: DurationWritten,

    /// How hard gzip tries, from 0 to 9. Default `6`: past it files shrink by a percent and cost twice the time.
    #[schemars(range(max = 9))]
    pub compression_level: u8,

    /// How long a capture may be in the operating system's hands alone before it is forced to disk. A crash of the
    /// crawler loses nothing; power loss loses at most this much, and those URIs are fetched again. 0 forces
    /// every capture, `"none"` leaves it to the operating system. Default `"5s"`: costs next to nothing.
    pub fsync: DurationWritten,
}

/// How WARC files are named, sized and kept safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// The folder of the WARC files, relative to the job's.
    pub directory: PathBuf,
    /// What file names begin with: ASCII letters, digits, `-`, `_`, `.`.
    pub prefix: String,
    /// A file past this is closed; at least 64 KiB.
    pub size_max: ByteSize,
    /// A file open for this long is closed; none: never for its age.
    pub age_max: Option<Duration>,
    /// Of gzip, 0 to 9.
    pub compression_level: u32,
    /// Longest time before a capture is forced to disk: zero for at once, none for never.
    pub fsync: Option<Duration>,
}

impl Default for ArchiveFile {
    fn default() -> Self {
        Self {
            directory: "warcs".to_owned(),
            prefix: "WEB".to_owned(),
            size_max: "1GiB".into(),
            age_max: "none".into(),
            compression_level: 6,
            fsync: "5s".into(),
        }
    }
}

impl ArchiveFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Archive {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if self.prefix.is_empty()
            || self.prefix.starts_with('.')
            || !self.prefix.chars().all(allowed)
        {
            let problem = format!("not a file name prefix: {}", quote(&self.prefix));
            part.refuse(
                "prefix",
                problem,
                "use letters, digits, \"-\", \"_\" and \".\", as in \"WEB\"",
            );
        }
        if self.prefix.len() > PREFIX_BYTES_MAX {
            part.refuse(
                "prefix",
                format!("longer than {PREFIX_BYTES_MAX} characters"),
                "",
            );
        }
        let size_max = part.size("size-max", &self.size_max);
        if size_max < SIZE_MIN {
            part.refuse(
                "size-max",
                format!("less than {SIZE_MIN}: {size_max}"),
                "write \"1GiB\"",
            );
        }
        let fsync = match &self.fsync {
            DurationWritten::Text(text) if text == "none" => None,
            written => Some(part.duration("fsync", written)),
        };
        Archive {
            directory: part.directory("directory", &self.directory),
            prefix: self.prefix.clone(),
            size_max,
            age_max: part.duration_limit("age-max", &self.age_max),
            compression_level: self.compression_level.into(),
            fsync,
        }
    }
}

//! Archive settings: the format of the archive, the names and sizes of its files, their safety and hand-over, and duplicates.

use std::path::{Path, PathBuf};
use std::time::Duration;

use opilio_model::ArchiveFormat;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::archive_store::{ArchiveStore, ArchiveStoreFile};
use crate::byte_size::{ByteSize, SizeWritten};
use crate::check::{Part, quote};
use crate::duration::DurationWritten;

/// Smallest `size-max`. Smaller files hold little more than their own `warcinfo` record.
const SIZE_MIN: ByteSize = ByteSize::from_bytes(64 * 1024);

/// Largest dictionary, in bytes. Dictionaries in use have some hundred kilobytes.
const DICTIONARY_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Largest number of files that are written at the same time.
const WRITERS_MAX: u32 = 64;

/// Placeholders of a command.
const PLACEHOLDERS: [&str; 4] = ["{file}", "{size}", "{sha1}", "{sha256}"];

/// Longest prefix of a WARC file name; with time, serial number and host it has to stay below 255 bytes.
const PREFIX_BYTES_MAX: usize = 100;

/// Format, names, sizes, safety and hand-over of the archive files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ArchiveFile {
    /// Format of the archive. `"arc"` is the format from before 2009. It has no place for requests, revisits and metadata, so
    /// these are not kept and duplicates are always stored. Default `"warc"`: WARC/1.1, the standard.
    pub format: ArchiveFormat,

    /// The folder of the WARC files, relative to the job's. Default `"warcs"`: operators look there first.
    pub directory: String,

    /// Further folders for the files. Each new file goes to the next of all folders, so that disks fill at the same pace.
    /// Default `[]`: most jobs need only one folder.
    pub more_directories: Vec<String>,

    /// Prefix of file names. Default `"WEB"`: the same as in Heritrix; institutions set their own.
    pub prefix: String,

    /// Template of file names, with `${prefix}`, `${timestamp17}`, `${timestamp14}`, `${timestamp12}`, `${serialno}`, `${pid}`,
    /// `${host}` and `${port}`. Heritrix's `${heritrix.pid}`, `${heritrix.hostname}` and `${heritrix.port}` mean the last
    /// three. Default `"${prefix}-${timestamp17}-${serialno}-${pid}~${host}~${port}"`: existing tools parse such names.
    pub name: String,

    /// Size at which a file is closed and the next begun. Default `"1GiB"`: the usual size of archive files.
    pub size_max: SizeWritten,

    /// Time after which an open file is closed and the next begun, however small. Default `"none"`: a snapshot does not need
    /// it. With `"24h"`, a continuous crawl hands over a file every day.
    pub age_max: DurationWritten,

    /// Total size of the job's files at which the crawl ends; fetches in flight are still written. Default `"none"`: disk
    /// alerts protect the disk.
    pub max_total_bytes: SizeWritten,

    /// Files that are written at the same time; 0 for one per 32 workers. Default `0`: enough writers that compression does not
    /// delay workers, and few open files.
    #[schemars(range(max = 64))]
    pub writers: u32,

    /// Compression of records, each by itself: `"gzip"`, `"zstd"` (`.warc.zst`; smaller, but fewer tools read it) or `"none"`.
    /// Default `"gzip"`: every tool reads it.
    pub compression: ArchiveCompression,

    /// Compression level: gzip from 0 to 9, zstd from 1 to 22. Default `6`: higher levels save about one percent and take twice
    /// the time.
    #[schemars(range(max = 22))]
    pub compression_level: u8,

    /// A zstd dictionary, relative to the profile, as `zstd --train` makes it; each file begins with it. No default: no
    /// dictionary is used. One that was trained on the pages of a crawl makes small records a third smaller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dictionary: Option<String>,

    /// Digest algorithm: `"sha1"`, `"sha256"`, or `"both"`. With both, the standard headers have SHA-1, and further headers
    /// whose names end in `-SHA256` have SHA-256. Default `"sha1"`: indexes and replay tools compare it.
    pub digest: ArchiveDigest,

    /// `true` if an index (CDXJ) is written next to each file. Default `true`: the console and the API find older versions of a URI
    /// by it, and it costs next to nothing while records are written.
    pub index: bool,

    /// Longest time for which a capture may be only in the operating system's buffers before it is forced to disk. A crash of
    /// the crawler loses nothing. Power loss loses at most this much, and those URIs are fetched again. 0 forces every capture,
    /// `"none"` leaves it to the operating system. Default `"5s"`: costs next to nothing.
    pub fsync: DurationWritten,

    /// A command that takes over each closed file: a program and its arguments, without a shell. `{file}`, `{size}`, `{sha1}`
    /// and `{sha256}` are filled in. If no argument has `{file}`, the path is the last argument. The command is retried when it
    /// fails. Files that were not handed over are handed over at the next start. Default `[]`: files stay in place, and no
    /// command runs.
    pub on_close: Vec<String>,

    /// Longest time for the command; then it is killed and counts as failed. Default `"1h"`: enough for a gigabyte over a slow
    /// line.
    pub on_close_timeout: DurationWritten,

    /// A store that takes over the files.
    pub store: ArchiveStoreFile,

    /// Payloads that are not stored a second time.
    pub duplicates: DuplicatesFile,
}

/// Payloads that are stored already, under any URI.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct DuplicatesFile {
    /// `true` if a payload that was archived under another URI is not stored again, and a revisit record refers to it. For the same
    /// payload of the same URI this is always so. Default `false`: every archive file then contains its pages completely.
    pub across_uris: bool,

    /// Smallest payload that is not stored again; smaller payloads are always stored. Default `"256B"`: a revisit record takes
    /// as much space as a smaller payload.
    pub size_min: SizeWritten,

    /// Folder of the digest index, relative to the job's, on a local disk. Jobs with the same folder know each other's
    /// payloads, also while they crawl at the same time. Default `"digests"`: a folder of the job alone.
    pub index: String,

    /// Indexes (CDXJ, plain or gzip) of earlier archives, relative to the profile; their payloads count as stored. Each is read
    /// once into the digest index, and again when it has changed. Default `[]`: only payloads of this job, and of jobs that
    /// share its index, count as stored.
    pub history: Vec<String>,
}

/// Compression of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ArchiveCompression {
    /// One gzip member for each record.
    Gzip,
    /// One zstd frame for each record.
    Zstd,
    /// No compression.
    None,
}

/// Digest algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ArchiveDigest {
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-1 and SHA-256.
    Both,
}

/// Format, names, sizes, safety and hand-over of the archive files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// WARC or ARC.
    pub format: ArchiveFormat,
    /// The folder of the WARC files, relative to the job's.
    pub directory: PathBuf,
    /// Further folders for the files, relative to the job's.
    pub more_directories: Vec<PathBuf>,
    /// Prefix of file names: ASCII letters, digits, `-`, `_`, `.`.
    pub prefix: String,
    /// Template of file names: variables and plain characters.
    pub name: String,
    /// Size at which a file is closed; at least 64 KiB.
    pub size_max: ByteSize,
    /// Time after which an open file is closed; `None`: never.
    pub age_max: Option<Duration>,
    /// Total size of all files at which the crawl ends.
    pub max_total_bytes: Option<ByteSize>,
    /// Files written at a time; `None`: derived from the workers.
    pub writers: Option<usize>,
    /// Compression of records.
    pub compression: ArchiveCompression,
    /// Compression level: 0 to 9 of gzip, 1 to 22 of zstd.
    pub compression_level: u32,
    /// A zstd dictionary.
    pub dictionary: Option<PathBuf>,
    /// Digest algorithm.
    pub digest: ArchiveDigest,
    /// `true` if each file has an index.
    pub index: bool,
    /// Longest time before a capture is forced to disk: zero for at once, `None` for never.
    pub fsync: Option<Duration>,
    /// The command that takes files over, and its arguments; empty: no command.
    pub on_close: Vec<String>,
    /// Longest time for the command.
    pub on_close_timeout: Duration,
    /// The store that takes over the files.
    pub store: Option<ArchiveStore>,
    /// Payloads that are not stored twice.
    pub duplicates: Duplicates,
}

/// Payloads that are stored already, under any URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicates {
    /// `true` if payloads that were archived under another URI are not stored again.
    pub across_uris: bool,
    /// Smallest payload that is not stored again.
    pub size_min: ByteSize,
    /// The folder of the index, relative to the job's.
    pub index: PathBuf,
    /// Indexes of earlier archives.
    pub history: Vec<PathBuf>,
}

/// Variables of [`Archive::name`], between `${` and `}`.
const NAME_VARIABLES: [&str; 11] = [
    "prefix",
    "timestamp17",
    "timestamp14",
    "timestamp12",
    "serialno",
    "pid",
    "host",
    "port",
    "heritrix.pid",
    "heritrix.hostname",
    "heritrix.port",
];

impl Default for ArchiveFile {
    fn default() -> Self {
        Self {
            format: ArchiveFormat::Warc,
            directory: "warcs".to_owned(),
            more_directories: Vec::new(),
            prefix: "WEB".to_owned(),
            name: "${prefix}-${timestamp17}-${serialno}-${pid}~${host}~${port}".to_owned(),
            size_max: "1GiB".into(),
            age_max: "none".into(),
            max_total_bytes: "none".into(),
            writers: 0,
            compression: ArchiveCompression::Gzip,
            compression_level: 6,
            dictionary: None,
            digest: ArchiveDigest::Sha1,
            index: true,
            fsync: "5s".into(),
            on_close: Vec::new(),
            on_close_timeout: "1h".into(),
            store: ArchiveStoreFile::default(),
            duplicates: DuplicatesFile::default(),
        }
    }
}

impl Default for DuplicatesFile {
    fn default() -> Self {
        Self {
            across_uris: false,
            size_min: "256B".into(),
            index: "digests".to_owned(),
            history: Vec::new(),
        }
    }
}

impl ArchiveFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>, base: &Path) -> Archive {
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
        self.check_name(&mut part);
        self.check_packing(&mut part);
        if self.writers > WRITERS_MAX {
            let problem = format!("more than {WRITERS_MAX}: {}", self.writers);
            part.refuse(
                "writers",
                problem,
                "write 0 for as many as the workers need",
            );
        }
        let dictionary = self.dictionary.as_ref().map(|written| {
            let file = base.join(written);
            let length = file.metadata().map_or(0, |file| file.len());
            if length == 0 || length > DICTIONARY_BYTES_MAX {
                let problem = format!("not a dictionary of at most 32 MiB: {}", file.display());
                part.refuse("dictionary", problem, "make one with `zstd --train`");
            }
            file
        });
        let mut more_directories = Vec::new();
        for (at, written) in self.more_directories.iter().enumerate() {
            let mut each = part.part("more-directories");
            more_directories.push(each.directory(&at.to_string(), written));
        }
        self.check_command(&mut part);
        let has_command = !self.on_close.is_empty();
        let store = self.store.check(part.part("store"), base, has_command);
        let duplicates = self.duplicates.check(part.part("duplicates"), base);
        if self.format == ArchiveFormat::Arc && duplicates.across_uris {
            part.refuse(
                "format",
                "ARC has no revisit records, which duplicates.across-uris asks for".to_owned(),
                "write format = \"warc\"",
            );
        }
        Archive {
            format: self.format,
            directory: part.directory("directory", &self.directory),
            more_directories,
            prefix: self.prefix.clone(),
            name: self.name.clone(),
            size_max,
            age_max: part.duration_limit("age-max", &self.age_max),
            max_total_bytes: part.size_limit("max-total-bytes", &self.max_total_bytes),
            writers: (self.writers > 0).then_some(self.writers as usize),
            compression: self.compression,
            compression_level: self.compression_level.into(),
            dictionary,
            digest: self.digest,
            index: self.index,
            fsync,
            on_close: self.on_close.clone(),
            on_close_timeout: part.positive_duration("on-close-timeout", &self.on_close_timeout),
            store,
            duplicates,
        }
    }

    fn check_name(&self, part: &mut Part<'_, '_>) {
        let mut problem = None;
        let mut rest = self.name.as_str();
        while let Some((plain, after)) = rest.split_once("${") {
            let (variable, after) = after.split_once('}').unwrap_or((after, ""));
            if !NAME_VARIABLES.contains(&variable) {
                problem = Some(format!("unknown variable {}", quote(variable)));
            }
            problem = problem.or_else(|| plain_name(plain));
            rest = after;
        }
        problem = problem.or_else(|| plain_name(rest));
        if !self.name.contains("${serialno}") {
            problem = Some("no ${serialno}, so two files could get the same name".to_owned());
        }
        if let Some(problem) = problem {
            let default = Self::default().name;
            part.refuse(
                "name",
                problem,
                &format!("write a template such as \"{default}\""),
            );
        }
    }

    fn check_packing(&self, part: &mut Part<'_, '_>) {
        let (levels, packer) = match self.compression {
            ArchiveCompression::Gzip => (0..=9, "gzip"),
            ArchiveCompression::Zstd => (1..=22, "zstd"),
            ArchiveCompression::None => (0..=22, "none"),
        };
        if !levels.contains(&self.compression_level) {
            part.refuse(
                "compression-level",
                format!("not a level of {packer}: {}", self.compression_level),
                &format!("write {} to {}", levels.start(), levels.end()),
            );
        }
        let is_zstd = self.compression == ArchiveCompression::Zstd;
        if self.dictionary.is_some() && !is_zstd {
            let problem = "dictionaries are for zstd alone".to_owned();
            part.refuse(
                "dictionary",
                problem,
                "write compression = \"zstd\" too, or leave it out",
            );
        }
        if self.format == ArchiveFormat::Arc && is_zstd {
            let problem = "ARC files are packed with gzip or not at all".to_owned();
            part.refuse("compression", problem, "write \"gzip\"");
        }
    }

    fn check_command(&self, part: &mut Part<'_, '_>) {
        if self.on_close.first().is_some_and(String::is_empty) {
            part.refuse(
                "on-close",
                "no program".to_owned(),
                "write the program and each argument as a text of its own, as in [\"rsync\", \"{file}\", \"store:/warcs/\"]",
            );
        }
        for argument in &self.on_close {
            let inner = argument
                .split('{')
                .skip(1)
                .filter_map(|rest| rest.split_once('}'));
            for (place, _) in inner {
                let is_word = !place.is_empty() && place.bytes().all(|b| b.is_ascii_alphanumeric());
                if is_word && !PLACEHOLDERS.contains(&format!("{{{place}}}").as_str()) {
                    let problem = format!("unknown placeholder {}", quote(&format!("{{{place}}}")));
                    part.refuse(
                        "on-close",
                        problem,
                        &format!("write one of {}", PLACEHOLDERS.join(", ")),
                    );
                }
            }
        }
    }
}

impl DuplicatesFile {
    fn check(&self, mut part: Part<'_, '_>, base: &Path) -> Duplicates {
        let mut history = Vec::new();
        for (at, written) in self.history.iter().enumerate() {
            let file = base.join(written);
            if written.is_empty() || !file.is_file() {
                let problem = format!("there is no file {}", file.display());
                part.part("history").refuse(
                    &at.to_string(),
                    problem,
                    "write the path of a CDXJ file, from the profile's folder",
                );
            }
            history.push(file);
        }
        if !self.across_uris && !history.is_empty() {
            part.refuse(
                "history",
                "no payloads are looked up, since across-uris is false".to_owned(),
                "write across-uris = true too, or leave it out",
            );
        }
        Duplicates {
            across_uris: self.across_uris,
            size_min: part.size("size-min", &self.size_min),
            index: part.directory("index", &self.index),
            history,
        }
    }
}

/// The error in a piece of a file name, if any.
fn plain_name(text: &str) -> Option<String> {
    let odd = text
        .chars()
        .find(|c| !(c.is_ascii_alphanumeric() || "-_.~+=,@".contains(*c)))?;
    Some(format!("{odd:?} cannot be part of a file name"))
}

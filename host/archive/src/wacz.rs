//! WACZ 1.1.1: archive files, their index and a list of pages in one ZIP file, which a browser can replay without a server.
//!
//! Contents: `archive/`, `indexes/index.cdx.gz` (the sorted CDXJ in gzip pieces), `indexes/index.idx` (the offsets of the
//! pieces), `pages/`, `datapackage.json` with the digests of all files, and a digest of that file. Entries are stored without
//! further compression, so that readers can fetch a record by its place in the file.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::cdxj::{self, CdxjEntry};
use crate::reader::ReadError;
use crate::sorted_lines::{Sorter, merge};

/// The version of the format.
const VERSION: &str = "1.1.1";

/// Number of index lines in a piece. A reader decompresses one piece to find a capture.
const LINES_A_PIECE: usize = 1000;

/// Size above which an entry needs the 64-bit form.
const SMALL_BYTES_MAX: u64 = u32::MAX as u64 - 1;

/// A page in the list of pages. Its `Display` form is its line there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PackagePage {
    /// Unique identifier; not set for a page from an index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// URI as archived.
    pub url: String,
    /// Time of the capture.
    pub ts: String,
    /// Title, if the page has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `true` if the page is a seed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub seed: bool,
    /// Rendering in a browser; not set if no browser rendered the page, or if the page is from an index.
    #[serde(flatten)]
    pub rendered: Option<RenderedPage>,
}

/// A page that a browser rendered, in the fields of Browsertrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RenderedPage {
    /// Always `true`, to mark the page as rendered. Browsertrix has no such field.
    pub rendered: bool,
    /// State that the page reached.
    #[serde(rename = "loadState")]
    pub load_state: LoadState,
}

/// State that a rendered page reached, with the numbers of Browsertrix (`LoadState`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "u8")]
pub enum LoadState {
    /// The page was loaded.
    Loaded,
    /// The text of the page was archived, too.
    TextExtracted,
}

impl From<LoadState> for u8 {
    fn from(state: LoadState) -> u8 {
        match state {
            LoadState::Loaded => 2,
            LoadState::TextExtracted => 3,
        }
    }
}

impl LoadState {
    /// Returns the URI of the page that an archived record is about, and the minimum state that the page reached.
    pub fn of_record(target: &str) -> Option<(&str, LoadState)> {
        let loaded = target.strip_prefix("urn:pageinfo:");
        let text = target.strip_prefix("urn:text:");
        loaded
            .map(|uri| (uri, LoadState::Loaded))
            .or(text.map(|uri| (uri, LoadState::TextExtracted)))
    }
}

/// The first line of a list of pages (`pages.jsonl`).
pub fn pages_header(id: &str, title: &str) -> String {
    serde_json::json!({ "format": "json-pages-1.0", "id": id, "title": title }).to_string()
}

/// Returns `true` if a response is a page: an HTML document with status 200.
pub fn is_page(status: Option<u16>, media_type: Option<&str>) -> bool {
    status == Some(200) && matches!(media_type, Some("text/html" | "application/xhtml+xml"))
}

impl PackagePage {
    /// Returns the page of a capture in an index; `None` if the capture is not a page.
    pub fn of(entry: &CdxjEntry) -> Option<PackagePage> {
        let capture = &entry.capture;
        let status = capture.status.as_deref().and_then(|it| it.parse().ok());
        let media_type = capture.mime.as_deref().map(str::to_ascii_lowercase);
        if !is_page(status, media_type.as_deref()) {
            return None;
        }
        let date = DateTime::strptime("%Y%m%d%H%M%S", &entry.timestamp).ok()?;
        Some(PackagePage {
            id: None,
            url: capture.url.clone(),
            ts: format!("{:.0}", date.to_zoned(TimeZone::UTC).ok()?.timestamp()),
            title: None,
            seed: false,
            rendered: None,
        })
    }
}

impl fmt::Display for PackagePage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// The description of a package.
#[derive(Clone, Debug)]
pub struct PackageMetadata {
    /// Title for readers.
    pub title: Option<String>,
    /// Description for readers.
    pub description: Option<String>,
    /// Time of the package's creation.
    pub created: Timestamp,
    /// Software that creates it.
    pub software: String,
}

/// The contents of a package.
#[derive(Clone, Debug)]
pub struct Contents {
    /// WARC files, plain or gzip.
    pub archives: Vec<PathBuf>,
    /// Pages, in the order of their captures.
    pub pages: Vec<PackagePage>,
    /// Logs.
    pub logs: Vec<PathBuf>,
    /// The description of the package.
    pub about: PackageMetadata,
}

/// The result of packing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackageSummary {
    /// Number of archives in the package.
    pub archives: usize,
    /// Lines of the index.
    pub captures: u64,
    /// Bytes of the package.
    pub bytes: u64,
}

/// An error that prevented the package.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The package exists already.
    #[error("{} exists; remove it or name another", .0.display())]
    Exists(PathBuf),
    /// An archive in a format that WACZ readers do not support.
    #[error("{} cannot be packed: WACZ holds .warc and .warc.gz files", .0.display())]
    Format(PathBuf),
    /// Two archives with the same name: the index has only file names.
    #[error("{} and {} have the same name, which an index cannot tell apart; rename one", .0.display(), .1.display())]
    SameName(PathBuf, PathBuf),
    /// The package cannot be written.
    #[error("cannot write {}", file.display())]
    Write {
        /// The package.
        file: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// A file for the package cannot be read.
    #[error("cannot read {}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// An archive cannot be indexed.
    #[error("cannot index an archive; `opilio warc check` shows what is wrong with it")]
    Index(#[from] ReadError),
}

/// A file in the package, as `datapackage.json` lists it.
#[derive(Serialize)]
struct Resource {
    name: String,
    path: String,
    hash: String,
    bytes: u64,
}

/// The package while it is written.
struct Package {
    zip: ZipWriter<BufWriter<File>>,
    resources: Vec<Resource>,
}

/// A writer that hashes and counts the bytes.
struct Hashing<W> {
    inner: W,
    hash: Sha256,
    bytes: u64,
}

/// Creates a package. It gets its name when it is complete.
pub fn pack(out: &Path, contents: &Contents) -> Result<PackageSummary, PackError> {
    if out.exists() {
        return Err(PackError::Exists(out.to_owned()));
    }
    check_names(&contents.archives)?;
    let mut partial = out.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let write = |source| PackError::Write {
        file: out.to_owned(),
        source,
    };
    let done = write_package(&partial, contents, &write).and_then(|packed| {
        fs::rename(&partial, out).map_err(write)?;
        Ok(packed)
    });
    if done.is_err() {
        // The first error is reported, not an error of the clean-up.
        let _ = fs::remove_file(&partial);
    }
    done
}

/// Refuses archive files that readers could not find or read.
fn check_names(archives: &[PathBuf]) -> Result<(), PackError> {
    let mut names: HashMap<String, &PathBuf> = HashMap::new();
    for archive in archives {
        let name = file_name(archive);
        if !(name.ends_with(".warc") || name.ends_with(".warc.gz")) {
            return Err(PackError::Format(archive.clone()));
        }
        if let Some(other) = names.insert(name, archive) {
            return Err(PackError::SameName(other.clone(), archive.clone()));
        }
    }
    Ok(())
}

fn write_package(
    out: &Path,
    contents: &Contents,
    write: &dyn Fn(io::Error) -> PackError,
) -> Result<PackageSummary, PackError> {
    let file = File::create(out).map_err(write)?;
    let mut package = Package {
        zip: ZipWriter::new(BufWriter::new(file)),
        resources: Vec::new(),
    };
    // The temporary files are beside the package, where there is enough space for an index.
    let folder = match out.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut sorter = Sorter::new(folder);
    for archive in &contents.archives {
        for entry in cdxj::index(archive)? {
            sorter.add(entry.to_string()).map_err(write)?;
        }
        package.file("archive", archive, write)?;
    }
    let (captures, pieces) = package
        .entry("indexes/index.cdx.gz", 0, |to| write_index(sorter, to))
        .map_err(write)?;
    package
        .entry("indexes/index.idx", 0, |to| to.write_all(pieces.as_bytes()))
        .map_err(write)?;
    let (first, further): (Vec<&PackagePage>, Vec<&PackagePage>) =
        match contents.pages.iter().any(|p| p.seed) {
            true => contents.pages.iter().partition(|page| page.seed),
            // The seeds are unknown, so all pages are in one list.
            false => (contents.pages.iter().collect(), Vec::new()),
        };
    package
        .pages("pages/pages.jsonl", "pages", "Pages", &first)
        .map_err(write)?;
    if !further.is_empty() {
        package
            .pages(
                "pages/extraPages.jsonl",
                "extraPages",
                "Further pages",
                &further,
            )
            .map_err(write)?;
    }
    for log in &contents.logs {
        package.file("logs", log, write)?;
    }
    package
        .describe(&contents.about, first.first().copied())
        .map_err(write)?;
    let mut file = package
        .zip
        .finish()
        .map_err(zip_error)
        .and_then(|buffer| buffer.into_inner().map_err(io::IntoInnerError::into_error))
        .map_err(write)?;
    file.sync_all().map_err(write)?;
    let bytes = file.seek(SeekFrom::End(0)).map_err(write)?;
    Ok(PackageSummary {
        archives: contents.archives.len(),
        captures,
        bytes,
    })
}

impl Package {
    /// Writes one file of the package and lists it.
    fn entry<T>(
        &mut self,
        path: &str,
        bytes: u64,
        content: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    ) -> io::Result<T> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(bytes > SMALL_BYTES_MAX);
        self.zip.start_file(path, options).map_err(zip_error)?;
        let mut hashing = Hashing {
            inner: &mut self.zip,
            hash: Sha256::new(),
            bytes: 0,
        };
        let done = content(&mut hashing)?;
        let (hash, bytes) = (hashing.hash.finalize(), hashing.bytes);
        self.resources.push(Resource {
            name: resource_name(path, self.resources.len()),
            path: path.to_owned(),
            hash: labelled(&hash),
            bytes,
        });
        Ok(done)
    }

    /// Copies a file into a folder of the package.
    fn file(
        &mut self,
        folder: &str,
        file: &Path,
        write: &dyn Fn(io::Error) -> PackError,
    ) -> Result<(), PackError> {
        let read = |source| PackError::Read {
            file: file.to_owned(),
            source,
        };
        let mut from = File::open(file).map_err(read)?;
        let length = from.metadata().map_err(read)?.len();
        let path = format!("{folder}/{}", file_name(file));
        // Only the length at the time of indexing is copied, because a log may grow meanwhile.
        let copied = self
            .entry(&path, length, |to| {
                io::copy(&mut (&mut from).take(length), to)
            })
            .map_err(write)?;
        match copied == length {
            true => Ok(()),
            false => Err(read(io::ErrorKind::UnexpectedEof.into())),
        }
    }

    fn pages(
        &mut self,
        path: &str,
        id: &str,
        title: &str,
        pages: &[&PackagePage],
    ) -> io::Result<()> {
        self.entry(path, 0, |to| {
            writeln!(to, "{}", pages_header(id, title))?;
            pages.iter().try_for_each(|page| writeln!(to, "{page}"))
        })
    }

    /// Writes the description of the package.
    fn describe(&mut self, about: &PackageMetadata, main: Option<&PackagePage>) -> io::Result<()> {
        let resources = std::mem::take(&mut self.resources);
        let mut package = serde_json::json!({
            "profile": "data-package",
            "wacz_version": VERSION,
            "created": format!("{:.0}", about.created),
            "software": about.software,
            "resources": resources,
        });
        let mut set = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                package[name] = value.into();
            }
        };
        set("title", about.title.as_deref());
        set("description", about.description.as_deref());
        set("mainPageUrl", main.map(|page| &*page.url));
        set("mainPageDate", main.map(|page| &*page.ts));
        let text = serde_json::to_vec_pretty(&package)?;
        let digest = serde_json::json!({
            "path": "datapackage.json",
            "hash": labelled(&Sha256::digest(&text)),
        });
        self.entry("datapackage.json", 0, |to| to.write_all(&text))?;
        self.entry("datapackage-digest.json", 0, |to| {
            to.write_all(&serde_json::to_vec_pretty(&digest)?)
        })
    }
}

/// Writes the lines in order, in pieces of one gzip member each. Returns the number of lines and the list of pieces.
fn write_index(sorter: Sorter, to: &mut dyn Write) -> io::Result<(u64, String)> {
    let meta = serde_json::json!({ "format": "cdxj-gzip-1.0", "filename": "index.cdx.gz" });
    let mut pieces = format!("!meta 0 {meta}\n");
    let mut offset = 0_u64;
    let (mut lines, mut in_piece) = (0_u64, 0);
    let mut piece = String::new();
    let mut end_piece = |piece: &mut String| -> io::Result<()> {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(9));
        encoder.write_all(piece.as_bytes())?;
        let packed = encoder.finish()?;
        to.write_all(&packed)?;
        // Key and timestamp of the first line.
        let begins = piece.split(" {").next().unwrap_or_default();
        let place = serde_json::json!({
            "offset": offset,
            "length": packed.len(),
            "digest": labelled(&Sha256::digest(&packed)),
        });
        pieces.push_str(&format!("{begins} {place}\n"));
        offset += packed.len() as u64;
        piece.clear();
        Ok(())
    };
    let folder = sorter.folder().to_owned();
    merge(sorter.sources().collect(), &folder, |line| {
        piece.push_str(line);
        piece.push('\n');
        lines += 1;
        in_piece += 1;
        if in_piece == LINES_A_PIECE {
            in_piece = 0;
            end_piece(&mut piece)?;
        }
        Ok(())
    })?;
    if !piece.is_empty() {
        end_piece(&mut piece)?;
    }
    Ok((lines, pieces))
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.hash.update(&buffer[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Returns a name that data packages allow: lower case, few punctuation marks, unique by its number.
fn resource_name(path: &str, number: usize) -> String {
    let base = path.rsplit('/').next().unwrap_or_default();
    let plain = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_alphanumeric() || "-._".contains(c) => c,
        _ => '-',
    };
    let name: String = base.chars().map(plain).collect();
    format!("{number}-{name}")
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn labelled(hash: &[u8]) -> String {
    format!("sha256:{}", HEXLOWER.encode(hash))
}

fn zip_error(problem: ZipError) -> io::Error {
    match problem {
        ZipError::Io(problem) => problem,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_the_index_can_be_read_separately() {
        let mut sorter = Sorter::new(&std::env::temp_dir());
        for number in (0..2500).rev() {
            let line = format!("org,example)/{number:04} 20260102030405 {{\"url\":\"x\"}}");
            sorter.add(line).unwrap();
        }
        let mut index = Vec::new();
        let (lines, pieces) = write_index(sorter, &mut index).unwrap();
        assert_eq!(lines, 2500);
        let pieces: Vec<&str> = pieces.lines().collect();
        assert_eq!(pieces.len(), 4);
        for (number, piece) in pieces[1..].iter().enumerate() {
            let (begins, place) = piece.split_once(" {").unwrap();
            let expected = format!("org,example)/{:04} 20260102030405", number * 1000);
            assert_eq!(begins, expected);
            let place: serde_json::Value = serde_json::from_str(&format!("{{{place}")).unwrap();
            let from = place["offset"].as_u64().unwrap() as usize;
            let length = place["length"].as_u64().unwrap() as usize;
            let mut text = String::new();
            flate2::read::GzDecoder::new(&index[from..from + length])
                .read_to_string(&mut text)
                .unwrap();
            assert!(text.starts_with(&expected), "{text}");
        }
    }

    #[test]
    fn names_of_resources_are_valid_and_unique() {
        assert_eq!(
            resource_name("archive/WEB-1~host~0.warc.gz", 3),
            "3-web-1-host-0.warc.gz"
        );
    }
}

//! Reads records one after another from a WARC file, plain or a gzip member per record, from any
//! offset where a record begins. Reads others' files too: WARC/1.0, bare LF line ends, folded
//! headers, several records in one member. It does not judge digests ([`crate::check`] does).

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;
use jiff::Timestamp;

use crate::digest::{Digest, DigestError};
use crate::fields::trim;
use crate::record::RecordId;

/// Longest header of a record. Longer than any in use (a URI has some kilobytes); more is damage.
pub const HEADER_BYTES_MAX: usize = 1024 * 1024;

const BUFFER_BYTES: usize = 64 * 1024;

/// Walks through the records of one file.
pub struct Reader {
    path: PathBuf,
    /// `None` behind the last record, and while one kind of stream is turned into the other.
    stream: Option<Stream>,
    state: State,
    /// Where the current record (its gzip member) begins.
    offset: u64,
    /// Whether records come in gzip members, as far as seen.
    gzip: bool,
    headers: Headers,
    /// The current record is not the first in its gzip member.
    shared: bool,
}

/// A record in a file: its header is read, its block waits to be.
pub struct StoredRecord<'a> {
    reader: &'a mut Reader,
}

/// The header of a record, as it stands in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    version: String,
    fields: Vec<(String, String)>,
}

/// Where a record stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First byte of the record (of its gzip member).
    pub offset: u64,
    /// Bytes in the file. 0 where the record shares its gzip member with another.
    pub length: u64,
    /// Whether it shares its gzip member with another record.
    pub shared: bool,
}

/// A record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be opened or read.
    #[error("cannot read {} at offset {offset}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The record being read.
        offset: u64,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file was read, but what it holds is no whole record.
    #[error("damaged record in {} at offset {offset}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Where the damaged record begins.
        offset: u64,
        /// In what way.
        #[source]
        damage: Damage,
    },
}

/// In what way a record is not whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// No `WARC/` line where a record should begin.
    #[error("no WARC version line, but {0:?}")]
    NotARecord(String),
    /// The header does not end within [`HEADER_BYTES_MAX`].
    #[error("header is longer than {HEADER_BYTES_MAX} bytes")]
    HeaderTooLong,
    /// A header line without a colon.
    #[error("header line {0:?} has no colon")]
    HeaderLine(String),
    /// `Content-Length` is absent, given twice, or no number.
    #[error("Content-Length is {0:?}")]
    ContentLength(Vec<String>),
    /// The file or gzip member ends within the record.
    #[error("record ends early")]
    Short,
    /// The two line ends behind the block are not there.
    #[error("no blank lines behind the block, but {0:?}")]
    Trailer(String),
    /// The gzip member cannot be unpacked, or its checksum is wrong.
    #[error("gzip member is damaged: {0}")]
    Gzip(String),
}

/// The file as a buffered stream that knows how much of it was taken.
struct Source {
    inner: BufReader<File>,
    position: u64,
}

enum Stream {
    Plain(Source),
    Gzip(Box<BufReader<GzDecoder<Source>>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before a record, or at the end.
    Between,
    /// In a block with this many bytes to come.
    Block(u64),
    /// After damage, or behind the last record.
    Over,
}

impl Reader {
    /// Opens a file at its first record.
    pub fn open(path: impl Into<PathBuf>) -> Result<Reader, ReadError> {
        Reader::open_at(path, 0)
    }

    /// Opens a file at the record that begins at `offset`.
    pub fn open_at(path: impl Into<PathBuf>, offset: u64) -> Result<Reader, ReadError> {
        let path = path.into();
        let source = open_source(&path, offset).map_err(|source| ReadError::Io {
            file: path.clone(),
            offset,
            source,
        })?;
        Ok(Reader {
            path,
            stream: Some(Stream::Plain(source)),
            state: State::Between,
            offset,
            gzip: false,
            headers: Headers::default(),
            shared: false,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next record, or `None` behind the last one. What is left of the record before is
    /// skipped, and its end verified. After an error there are no more records, unless
    /// [`Reader::resync`] finds one.
    pub fn next_record(&mut self) -> Result<Option<StoredRecord<'_>>, ReadError> {
        if let State::Block(_) = self.state {
            self.finish()?;
        }
        if self.state == State::Over {
            return Ok(None);
        }
        if !self.guarded(Reader::begin)? {
            self.state = State::Over;
            return Ok(None);
        }
        Ok(Some(StoredRecord { reader: self }))
    }

    /// After damage: goes to the next place behind the damaged record's beginning that looks like
    /// one, and returns its offset. It may lie within the damaged record's block (an archived
    /// WARC file), so what is found is a guess.
    pub fn resync(&mut self) -> Result<Option<u64>, ReadError> {
        let found = next_candidate(&self.path, self.offset + 1, self.gzip);
        let found = found.map_err(|source| self.io(source))?;
        if let Some(offset) = found {
            let gzip = self.gzip;
            *self = Reader::open_at(std::mem::take(&mut self.path), offset)?;
            self.gzip = gzip;
        }
        Ok(found)
    }

    /// Runs a step; an error puts an end to reading.
    fn guarded<T>(
        &mut self,
        step: fn(&mut Reader) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let result = step(self);
        if result.is_err() {
            self.state = State::Over;
        }
        result
    }

    /// Reads the header of the next record; `false` at the end of the file.
    fn begin(&mut self) -> Result<bool, ReadError> {
        self.shared = false;
        let source = match self.stream.take() {
            Some(Stream::Gzip(mut member)) => {
                if member
                    .fill_buf()
                    .map_err(|e| self.gzip_fault(e))?
                    .is_empty()
                {
                    Some((*member).into_inner().into_inner())
                } else {
                    self.shared = true;
                    self.stream = Some(Stream::Gzip(member));
                    None
                }
            }
            Some(Stream::Plain(source)) => Some(source),
            None => return Ok(false),
        };
        if let Some(mut source) = source {
            self.offset = source.position;
            let first = source.fill_buf().map_err(|e| self.io(e))?.first().copied();
            let Some(first) = first else { return Ok(false) };
            self.gzip = first == 0x1f;
            self.stream = Some(if self.gzip {
                let decoder = GzDecoder::new(source);
                Stream::Gzip(Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder)))
            } else {
                Stream::Plain(source)
            });
        }
        self.read_headers()?;
        let lengths: Vec<&str> = self.headers.all("Content-Length").collect();
        let length = match lengths[..] {
            [sole] if sole.bytes().all(|b| b.is_ascii_digit()) => sole.parse().ok(),
            _ => None,
        };
        let length = length.ok_or_else(|| {
            let lengths = lengths
                .iter()
                .map(|length| shown(length.as_bytes()))
                .collect();
            self.damaged(Damage::ContentLength(lengths))
        })?;
        self.state = State::Block(length);
        Ok(true)
    }

    fn read_headers(&mut self) -> Result<(), ReadError> {
        self.headers = Headers::default();
        let mut left = HEADER_BYTES_MAX;
        let mut line = Vec::new();
        self.header_line(&mut line, &mut left)?;
        if !line.starts_with(b"WARC/") {
            return Err(self.damaged(Damage::NotARecord(shown(&line))));
        }
        self.headers.version = String::from_utf8_lossy(&line).into_owned();
        loop {
            self.header_line(&mut line, &mut left)?;
            if line.is_empty() {
                return Ok(());
            }
            let text = String::from_utf8_lossy(&line);
            if line.starts_with(b" ") || line.starts_with(b"\t") {
                match self.headers.fields.last_mut() {
                    Some((_, value)) => {
                        value.push(' ');
                        value.push_str(trim(&text));
                    }
                    None => return Err(self.damaged(Damage::HeaderLine(shown(&line)))),
                }
            } else if let Some((name, value)) = text.split_once(':') {
                self.headers
                    .fields
                    .push((trim(name).to_owned(), trim(value).to_owned()));
            } else {
                return Err(self.damaged(Damage::HeaderLine(shown(&line))));
            }
        }
    }

    /// Reads one line without its end.
    fn header_line(&mut self, line: &mut Vec<u8>, left: &mut usize) -> Result<(), ReadError> {
        line.clear();
        let result = match &mut self.stream {
            Some(Stream::Plain(source)) => source.take(*left as u64).read_until(b'\n', line),
            Some(Stream::Gzip(member)) => member.take(*left as u64).read_until(b'\n', line),
            None => Ok(0),
        };
        *left -= result.map_err(|e| self.stream_fault(e))?;
        if line.pop_if(|last| *last == b'\n').is_some() {
            line.pop_if(|last| *last == b'\r');
            return Ok(());
        }
        let begun = self.headers.version.is_empty() && !line.is_empty();
        Err(self.damaged(match *left {
            0 if begun && !line.starts_with(b"WARC/") => Damage::NotARecord(shown(line)),
            0 => Damage::HeaderTooLong,
            _ if begun && !b"WARC/".starts_with(&line[..line.len().min(5)]) => {
                Damage::NotARecord(shown(line))
            }
            _ => Damage::Short,
        }))
    }

    /// Reads bytes of the block; 0 at its end.
    fn read_block(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let State::Block(left) = self.state else {
            return Ok(0);
        };
        let want = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        if want == 0 {
            return Ok(0);
        }
        let got = self.read_stream(&mut buffer[..want])?;
        if got == 0 {
            self.state = State::Over;
            return Err(self.damaged(Damage::Short));
        }
        self.state = State::Block(left - got as u64);
        Ok(got)
    }

    fn read_stream(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let result = match &mut self.stream {
            Some(Stream::Plain(source)) => source.read(buffer),
            Some(Stream::Gzip(member)) => member.read(buffer),
            None => Ok(0),
        };
        result.map_err(|e| {
            self.state = State::Over;
            self.stream_fault(e)
        })
    }

    /// Skips the rest of the block and verifies the end of the record.
    fn finish(&mut self) -> Result<Extent, ReadError> {
        let mut scratch = [0; 8 * 1024];
        while self.read_block(&mut scratch)? > 0 {}
        self.guarded(Reader::end)
    }

    fn end(&mut self) -> Result<Extent, ReadError> {
        let mut trailer = [0; 4];
        let mut filled = 0;
        while filled < trailer.len() {
            match self.read_stream(&mut trailer[filled..])? {
                0 => return Err(self.damaged(Damage::Short)),
                got => filled += got,
            }
        }
        if trailer != *crate::serialize::TRAILER {
            return Err(self.damaged(Damage::Trailer(shown(&trailer))));
        }
        let mut shared = self.shared;
        let mut end = None;
        match &mut self.stream {
            Some(Stream::Plain(source)) => end = Some(source.position),
            Some(Stream::Gzip(member)) => match member.fill_buf() {
                // Only at the member's end is its checksum verified.
                Ok([]) => end = Some(member.get_ref().get_ref().position),
                Ok(_) => shared = true,
                Err(e) => return Err(self.gzip_fault(e)),
            },
            None => {}
        }
        self.state = State::Between;
        let length = match end {
            Some(end) if !shared => end - self.offset,
            _ => 0,
        };
        Ok(Extent {
            offset: self.offset,
            length,
            shared,
        })
    }

    fn stream_fault(&self, e: io::Error) -> ReadError {
        match self.stream {
            Some(Stream::Gzip(_)) => self.gzip_fault(e),
            _ => self.io(e),
        }
    }

    /// The decoder reports damage and failing reads alike; the latter carry the system's number.
    fn gzip_fault(&self, e: io::Error) -> ReadError {
        if e.raw_os_error().is_some() {
            self.io(e)
        } else if e.kind() == io::ErrorKind::UnexpectedEof {
            self.damaged(Damage::Short)
        } else {
            self.damaged(Damage::Gzip(e.to_string()))
        }
    }

    fn io(&self, source: io::Error) -> ReadError {
        ReadError::Io {
            file: self.path.clone(),
            offset: self.offset,
            source,
        }
    }

    fn damaged(&self, damage: Damage) -> ReadError {
        ReadError::Damaged {
            file: self.path.clone(),
            offset: self.offset,
            damage,
        }
    }
}

impl StoredRecord<'_> {
    /// The header.
    pub fn headers(&self) -> &Headers {
        &self.reader.headers
    }

    /// Where the record (its gzip member) begins in the file.
    pub fn offset(&self) -> u64 {
        self.reader.offset
    }

    /// `Content-Length` less what was read: the bytes of the block still to come.
    pub fn block_left(&self) -> u64 {
        match self.reader.state {
            State::Block(left) => left,
            State::Between | State::Over => 0,
        }
    }

    /// Reads the next bytes of the block; 0 at its end. As [`Read::read`], with our error.
    pub fn read_block(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        self.reader.read_block(buffer)
    }

    /// The rest of the block, at most `bytes_max` of it.
    pub fn block(&mut self, bytes_max: usize) -> Result<Vec<u8>, ReadError> {
        let left = usize::try_from(self.block_left())
            .unwrap_or(usize::MAX)
            .min(bytes_max);
        let mut block = Vec::with_capacity(left.min(BUFFER_BYTES));
        let mut buffer = vec![0; BUFFER_BYTES];
        while block.len() < left {
            let want = buffer.len().min(left - block.len());
            match self.read_block(&mut buffer[..want])? {
                0 => break,
                got => block.extend_from_slice(&buffer[..got]),
            }
        }
        Ok(block)
    }

    /// Skips what is left and verifies that the record is whole.
    pub fn finish(self) -> Result<Extent, ReadError> {
        self.reader.finish()
    }
}

/// The block, as a stream. Damage comes as an error of kind `InvalidData` with a [`ReadError`] inside.
impl Read for StoredRecord<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_block(buffer)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
    }
}

impl Headers {
    /// `WARC/1.1`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The first value under a name (upper and lower case are alike).
    pub fn first(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All values under a name, in order.
    pub fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        self.iter()
            .filter(move |(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, v)| v)
    }

    /// All headers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// `WARC-Type`, empty where absent.
    pub fn kind(&self) -> &str {
        self.first("WARC-Type").unwrap_or_default()
    }

    /// `WARC-Record-ID`, where it is a `urn:uuid:`.
    pub fn record_id(&self) -> Option<RecordId> {
        self.first("WARC-Record-ID")?.parse().ok()
    }

    /// `WARC-Target-URI`, without the angle brackets some older tools put around it.
    pub fn target_uri(&self) -> Option<&str> {
        let uri = self.first("WARC-Target-URI")?;
        Some(
            uri.strip_prefix('<')
                .and_then(|rest| rest.strip_suffix('>'))
                .unwrap_or(uri),
        )
    }

    /// `WARC-Date`, where it can be read.
    pub fn date(&self) -> Option<Timestamp> {
        self.first("WARC-Date")?.parse().ok()
    }

    /// `WARC-Block-Digest`, if any.
    pub fn block_digest(&self) -> Option<Result<Digest, DigestError>> {
        self.first("WARC-Block-Digest").map(str::parse)
    }

    /// `WARC-Payload-Digest`, if any.
    pub fn payload_digest(&self) -> Option<Result<Digest, DigestError>> {
        self.first("WARC-Payload-Digest").map(str::parse)
    }
}

fn open_source(path: &Path, offset: u64) -> io::Result<Source> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    Ok(Source {
        inner: BufReader::with_capacity(BUFFER_BYTES, file),
        position: offset,
    })
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(buffer)?;
        self.position += got as u64;
        Ok(got)
    }
}

impl BufRead for Source {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.inner.consume(amount);
        self.position += amount as u64;
    }
}

/// The beginning of bytes that should have been something else, for a message.
fn shown(bytes: &[u8]) -> String {
    const SHOWN_BYTES_MAX: usize = 60;
    String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES_MAX)]).into_owned()
}

/// The first offset from `from` on at which a record seems to begin: a gzip member that unpacks
/// to a version line, or such a line in a plain file.
fn next_candidate(path: &Path, from: u64, gzip: bool) -> io::Result<Option<u64>> {
    const GZIP: &[u8] = &[0x1f, 0x8b, 8];
    const PLAIN: &[u8] = b"\nWARC/";
    // A plain record may begin right at `from`: look at the line end before it too.
    let (pattern, lead) = if gzip { (GZIP, 0) } else { (PLAIN, 1) };
    let mut base = from.saturating_sub(lead);
    let mut source = open_source(path, base)?;
    let mut window: Vec<u8> = Vec::new();
    loop {
        let got = source.fill_buf()?.len();
        if got == 0 {
            return Ok(None);
        }
        window.extend_from_slice(source.fill_buf()?);
        source.consume(got);
        let hits = window
            .windows(pattern.len())
            .enumerate()
            .filter(|(_, seen)| *seen == pattern);
        for (at, _) in hits {
            let offset = base + at as u64 + lead;
            if offset >= from && (!gzip || unpacks_to_record(path, offset)?) {
                return Ok(Some(offset));
            }
        }
        let kept = window.len().min(pattern.len() - 1);
        base += (window.len() - kept) as u64;
        window.drain(..window.len() - kept);
    }
}

fn unpacks_to_record(path: &Path, offset: u64) -> io::Result<bool> {
    let mut start = [0; 5];
    match GzDecoder::new(open_source(path, offset)?).read_exact(&mut start) {
        Ok(()) => Ok(start == *b"WARC/"),
        Err(e) if e.raw_os_error().is_some() => Err(e),
        Err(_) => Ok(false),
    }
}

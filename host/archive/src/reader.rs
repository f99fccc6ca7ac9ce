//! Reads the records of a WARC or ARC file, from any offset at which a record begins. Files are plain, or have a gzip member or a
//! zstd frame for each record. Files of other writers are supported: WARC/1.0, bare LF line ends, folded headers, several records
//! in one member. Records of ARC files get the headers that a WARC would have ([`crate::arc`]), so that callers need not
//! distinguish the formats. Digests are not verified here, but by [`crate::check`].

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;
use opilio_model::ArchiveFormat;

use crate::arc;
use crate::fields::trim;
use crate::headers::Headers;
use crate::zst;

/// Maximum bytes of a record's header. Real headers are shorter (a URI has some kilobytes). A longer one counts as damage.
pub const HEADER_BYTES_MAX: usize = 1024 * 1024;

const BUFFER_BYTES: usize = 64 * 1024;

/// Reads the records of one file, one after another.
pub struct Reader {
    path: PathBuf,
    /// `None` after the last record, and while a plain stream is replaced by a compressed one or the reverse.
    stream: Option<Stream>,
    state: State,
    /// Offset of the current record (its gzip member).
    offset: u64,
    /// Packing of the records, as far as known.
    packing: Packing,
    /// Format of the file, once a record was read.
    format: Option<ArchiveFormat>,
    /// Dictionary of the zstd frames, once it was looked for.
    dictionary: Option<Vec<u8>>,
    headers: Headers,
    /// `true` if the current record is not the first in its gzip member.
    shared: bool,
}

/// A record in a file. Its header has been read, its block not yet.
pub struct StoredRecord<'a> {
    reader: &'a mut Reader,
}

/// The packing of a file's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Not packed.
    Plain,
    /// A gzip member for each record.
    Gzip,
    /// A zstd frame for each record.
    Zstd,
}

/// The place of a record in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First byte of the record (of its gzip member).
    pub offset: u64,
    /// Bytes in the file; 0 if the record shares its gzip member with another one.
    pub length: u64,
    /// `true` if it shares its gzip member with another record.
    pub shared: bool,
}

/// An error in reading a record.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be opened or read.
    #[error("cannot read {} at offset {offset}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Offset of the record being read.
        offset: u64,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// The file was read, but its content is not a complete record.
    #[error("damaged record in {} at offset {offset}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Offset of the damaged record.
        offset: u64,
        /// The kind of damage.
        #[source]
        damage: Damage,
    },
}

/// The kind of damage to a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// No `WARC/` line at the beginning of a record.
    #[error("no WARC version line, but {0:?}")]
    NotARecord(String),
    /// The header does not end within [`HEADER_BYTES_MAX`].
    #[error("header is longer than {HEADER_BYTES_MAX} bytes")]
    HeaderTooLong,
    /// A header line without a colon.
    #[error("header line {0:?} has no colon")]
    HeaderLine(String),
    /// `Content-Length` is missing, repeated, or not a number.
    #[error("Content-Length is {0:?}")]
    ContentLength(Vec<String>),
    /// The file or gzip member ends within the record.
    #[error("record ends early")]
    Short,
    /// The two line ends after the block are missing.
    #[error("no blank lines behind the block, but {0:?}")]
    Trailer(String),
    /// The gzip member cannot be unpacked, or its checksum is wrong.
    #[error("gzip member is damaged: {0}")]
    Gzip(String),
    /// The zstd frame cannot be unpacked, or its checksum is wrong.
    #[error("zstd frame is damaged: {0}")]
    Zstd(String),
    /// The dictionary at the beginning of a zstd file cannot be read.
    #[error("zstd dictionary is damaged: {0}")]
    Dictionary(String),
}

/// The file as a buffered stream that counts the consumed bytes.
pub(crate) struct Source {
    inner: BufReader<File>,
    position: u64,
}

enum Stream {
    Plain(Source),
    Gzip(Box<BufReader<GzDecoder<Source>>>),
    Zstd(Box<BufReader<zstd::Decoder<'static, Source>>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before a record, or at the end.
    Between,
    /// In a block with this many bytes to come.
    Block(u64),
    /// After damage, or after the last record.
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
            packing: Packing::Plain,
            format: None,
            dictionary: None,
            headers: Headers::default(),
            shared: false,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The format, once a record was read.
    pub fn format(&self) -> Option<ArchiveFormat> {
        self.format
    }

    /// The packing of the record that was read last.
    pub fn packing(&self) -> Packing {
        self.packing
    }

    /// Returns the next record, or `None` after the last one. Skips the remainder of the previous record, and verifies its end.
    /// After an error there are no more records, unless [`Reader::resync`] finds one.
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

    /// Skips to the next place after the start of a damaged record that looks like a record, and returns its offset. The result is
    /// a guess, because the place may be inside the block of the damaged record (an archived WARC file).
    pub fn resync(&mut self) -> Result<Option<u64>, ReadError> {
        let found = self.next_candidate(self.offset + 1);
        let found = found.map_err(|source| self.io(source))?;
        if let Some(offset) = found {
            let path = std::mem::take(&mut self.path);
            let (packing, format) = (self.packing, self.format);
            let dictionary = self.dictionary.take();
            *self = Reader {
                packing,
                format,
                dictionary,
                ..Reader::open_at(path, offset)?
            };
        }
        Ok(found)
    }

    /// Runs a step; an error ends reading.
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
            Some(Stream::Plain(source)) => Some(source),
            Some(Stream::Gzip(mut member)) => {
                let is_over = member
                    .fill_buf()
                    .map_err(|e| packed_fault(&self.path, self.offset, Packing::Gzip, e))?
                    .is_empty();
                if is_over {
                    Some((*member).into_inner().into_inner())
                } else {
                    self.stream = Some(Stream::Gzip(member));
                    None
                }
            }
            Some(Stream::Zstd(mut frame)) => {
                let is_over = frame
                    .fill_buf()
                    .map_err(|e| packed_fault(&self.path, self.offset, Packing::Zstd, e))?
                    .is_empty();
                if is_over {
                    Some((*frame).into_inner().finish())
                } else {
                    self.stream = Some(Stream::Zstd(frame));
                    None
                }
            }
            None => return Ok(false),
        };
        self.shared = source.is_none();
        if let Some(source) = source
            && !self.unpack(source)?
        {
            return Ok(false);
        }
        if self.format == Some(ArchiveFormat::Arc) && !self.skip_line_ends()? {
            // Some writers compressed the blank lines after the last record of an ARC file separately.
            self.shared = false;
            self.offset = self.consumed_bytes().unwrap_or(self.offset);
            return match self.stream {
                Some(Stream::Plain(_)) | None => Ok(false),
                _ => self.begin(),
            };
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
                .map(|length| excerpt(length.as_bytes()))
                .collect();
            self.damaged(Damage::ContentLength(lengths))
        })?;
        self.state = State::Block(length);
        Ok(true)
    }

    /// Detects the compression of the next bytes and begins to decompress them; `false` at the end.
    fn unpack(&mut self, mut source: Source) -> Result<bool, ReadError> {
        loop {
            self.offset = source.position;
            let first = source.fill_buf().map_err(|e| self.io(e))?;
            if first.is_empty() {
                return Ok(false);
            }
            let (packing, skippable) = (packing_of(first), zst::is_skippable(first));
            self.packing = packing;
            match packing {
                Packing::Plain => self.stream = Some(Stream::Plain(source)),
                Packing::Gzip => {
                    let decoder = GzDecoder::new(source);
                    let member = BufReader::with_capacity(BUFFER_BYTES, decoder);
                    self.stream = Some(Stream::Gzip(Box::new(member)));
                }
                Packing::Zstd if skippable => {
                    self.skip_frame(&mut source)?;
                    continue;
                }
                Packing::Zstd => {
                    let dictionary = self.dictionary()?;
                    // The library reports an invalid dictionary as an out-of-memory error.
                    let decoder = zst::decoder(source, dictionary).map_err(|_| {
                        self.damaged(Damage::Dictionary(
                            "it is not a dictionary of zstd".to_owned(),
                        ))
                    })?;
                    let frame = BufReader::with_capacity(BUFFER_BYTES, decoder);
                    self.stream = Some(Stream::Zstd(Box::new(frame)));
                }
            }
            return Ok(true);
        }
    }

    /// Skips a zstd frame without data, such as the frame with the dictionary. The dictionary is read from the beginning of the
    /// file when it is needed, even if reading began at another offset.
    fn skip_frame(&mut self, source: &mut Source) -> Result<(), ReadError> {
        match zst::skip(source) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.damaged(Damage::Short)),
            Err(e) => Err(self.io(e)),
        }
    }

    /// The dictionary of the file; empty if it has none.
    fn dictionary(&mut self) -> Result<&[u8], ReadError> {
        if self.dictionary.is_none() {
            let read = open_source(&self.path, 0).map(zst::read_dictionary);
            let read = read.map_err(|e| self.io(e))?;
            let dictionary = read.map_err(|e| match e.raw_os_error() {
                Some(_) => self.io(e),
                None => self.damaged(Damage::Dictionary(e.to_string())),
            })?;
            self.dictionary = Some(dictionary.unwrap_or_default());
        }
        Ok(self.dictionary.as_deref().unwrap_or_default())
    }

    /// In an ARC file: skips the line ends between records; `false` at the end of this stream.
    fn skip_line_ends(&mut self) -> Result<bool, ReadError> {
        loop {
            let first = match &mut self.stream {
                Some(Stream::Plain(source)) => source.fill_buf().map(|b| b.first().copied()),
                Some(Stream::Gzip(member)) => member.fill_buf().map(|b| b.first().copied()),
                Some(Stream::Zstd(frame)) => frame.fill_buf().map(|b| b.first().copied()),
                None => Ok(None),
            };
            match first.map_err(|e| self.stream_fault(e))? {
                None => return Ok(false),
                Some(b'\n' | b'\r') => {}
                Some(_) => return Ok(true),
            }
            match &mut self.stream {
                Some(Stream::Plain(source)) => {
                    source.consume(1);
                    self.offset = source.position;
                }
                Some(Stream::Gzip(member)) => member.consume(1),
                Some(Stream::Zstd(frame)) => frame.consume(1),
                None => {}
            }
        }
    }

    /// Returns the number of bytes of the file consumed so far, if no decoder has buffered bytes.
    fn consumed_bytes(&self) -> Option<u64> {
        match &self.stream {
            Some(Stream::Plain(source)) => Some(source.position),
            Some(Stream::Gzip(member)) => Some(member.get_ref().get_ref().position),
            Some(Stream::Zstd(frame)) => Some(frame.get_ref().get_ref().position),
            None => None,
        }
    }

    fn read_headers(&mut self) -> Result<(), ReadError> {
        self.headers = Headers::default();
        let mut left = HEADER_BYTES_MAX;
        let mut line = Vec::new();
        self.header_line(&mut line, &mut left)?;
        if self.format != Some(ArchiveFormat::Warc)
            && !line.starts_with(b"WARC/")
            && let Some(headers) = arc::headers(&String::from_utf8_lossy(&line))
        {
            self.format = Some(ArchiveFormat::Arc);
            self.headers = headers;
            return Ok(());
        }
        if self.format == Some(ArchiveFormat::Arc) || !line.starts_with(b"WARC/") {
            return Err(self.damaged(Damage::NotARecord(excerpt(&line))));
        }
        self.format = Some(ArchiveFormat::Warc);
        self.headers = Headers::new(&String::from_utf8_lossy(&line));
        loop {
            self.header_line(&mut line, &mut left)?;
            if line.is_empty() {
                return Ok(());
            }
            let text = String::from_utf8_lossy(&line);
            if line.starts_with(b" ") || line.starts_with(b"\t") {
                match self.headers.last_value() {
                    Some(value) => {
                        value.push(' ');
                        value.push_str(trim(&text));
                    }
                    None => return Err(self.damaged(Damage::HeaderLine(excerpt(&line)))),
                }
            } else if let Some((name, value)) = text.split_once(':') {
                self.headers.push(trim(name), trim(value));
            } else {
                return Err(self.damaged(Damage::HeaderLine(excerpt(&line))));
            }
        }
    }

    /// Reads one line without its end.
    fn header_line(&mut self, line: &mut Vec<u8>, left: &mut usize) -> Result<(), ReadError> {
        line.clear();
        let result = match &mut self.stream {
            Some(Stream::Plain(source)) => source.take(*left as u64).read_until(b'\n', line),
            Some(Stream::Gzip(member)) => member.take(*left as u64).read_until(b'\n', line),
            Some(Stream::Zstd(frame)) => frame.take(*left as u64).read_until(b'\n', line),
            None => Ok(0),
        };
        *left -= result.map_err(|e| self.stream_fault(e))?;
        if line.pop_if(|last| *last == b'\n').is_some() {
            line.pop_if(|last| *last == b'\r');
            return Ok(());
        }
        let begun = self.headers.version().is_empty() && !line.is_empty();
        Err(self.damaged(match *left {
            0 if begun && !line.starts_with(b"WARC/") => Damage::NotARecord(excerpt(line)),
            0 => Damage::HeaderTooLong,
            _ if begun && !b"WARC/".starts_with(&line[..line.len().min(5)]) => {
                Damage::NotARecord(excerpt(line))
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
            Some(Stream::Zstd(frame)) => frame.read(buffer),
            None => Ok(0),
        };
        result.map_err(|e| {
            self.state = State::Over;
            self.stream_fault(e)
        })
    }

    /// Skips the remainder of the block and verifies the end of the record.
    fn finish(&mut self) -> Result<Extent, ReadError> {
        let mut scratch = [0; 8 * 1024];
        while self.read_block(&mut scratch)? > 0 {}
        self.guarded(Reader::end)
    }

    fn end(&mut self) -> Result<Extent, ReadError> {
        match self.format {
            Some(ArchiveFormat::Arc) => self.end_of_arc_record()?,
            Some(ArchiveFormat::Warc) | None => self.end_of_warc_record()?,
        }
        let mut shared = self.shared;
        let mut end = None;
        // The checksum of a member is verified only at its end.
        let at_end = match &mut self.stream {
            Some(Stream::Plain(_)) => Ok(true),
            Some(Stream::Gzip(member)) => member.fill_buf().map(<[u8]>::is_empty),
            Some(Stream::Zstd(frame)) => frame.fill_buf().map(<[u8]>::is_empty),
            None => Ok(false),
        };
        match at_end.map_err(|e| self.stream_fault(e))? {
            true => end = self.consumed_bytes(),
            false => shared = true,
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

    /// Reads the two line ends that the standard requires after a block.
    fn end_of_warc_record(&mut self) -> Result<(), ReadError> {
        let mut trailer = [0; 4];
        let mut filled = 0;
        while filled < trailer.len() {
            match self.read_stream(&mut trailer[filled..])? {
                0 => return Err(self.damaged(Damage::Short)),
                got => filled += got,
            }
        }
        if trailer != *crate::serialize::TRAILER {
            return Err(self.damaged(Damage::Trailer(excerpt(&trailer))));
        }
        Ok(())
    }

    /// Reads the line end of a record. After the last record of a file or a member it may be missing, depending on the writer.
    fn end_of_arc_record(&mut self) -> Result<(), ReadError> {
        let mut end = [0; 1];
        match self.read_stream(&mut end)? {
            0 => Ok(()),
            _ if end == [b'\r'] || end == [b'\n'] => {
                // Blank lines belong to the record. Otherwise a member that has only blank lines would count as a record.
                self.skip_packed_line_ends()
            }
            _ => Err(self.damaged(Damage::Trailer(excerpt(&end)))),
        }
    }

    fn skip_packed_line_ends(&mut self) -> Result<(), ReadError> {
        match self.stream {
            Some(Stream::Gzip(_) | Stream::Zstd(_)) => self.skip_line_ends().map(|_| ()),
            Some(Stream::Plain(_)) | None => Ok(()),
        }
    }

    fn stream_fault(&self, e: io::Error) -> ReadError {
        match self.stream {
            Some(Stream::Gzip(_)) => packed_fault(&self.path, self.offset, Packing::Gzip, e),
            Some(Stream::Zstd(_)) => packed_fault(&self.path, self.offset, Packing::Zstd, e),
            Some(Stream::Plain(_)) | None => self.io(e),
        }
    }

    /// Returns the first offset, at `from` or later, at which a record seems to begin. In a compressed file this is a gzip member
    /// or a zstd frame that contains a record; in a plain file it is a version line.
    fn next_candidate(&mut self, from: u64) -> io::Result<Option<u64>> {
        let is_arc = self.format == Some(ArchiveFormat::Arc);
        let (pattern, lead): (&[u8], u64) = match self.packing {
            Packing::Gzip => (&[0x1f, 0x8b, 8], 0),
            Packing::Zstd => (&zst::FRAME, 0),
            // A plain record may begin exactly at `from`, so the search includes the line end before it.
            Packing::Plain if is_arc => (b"\n", 1),
            Packing::Plain => (b"\nWARC/", 1),
        };
        let mut base = from.saturating_sub(lead);
        let mut source = open_source(&self.path, base)?;
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
                if offset >= from && self.begins_a_record(offset, is_arc)? {
                    return Ok(Some(offset));
                }
            }
            let kept = window.len().min(pattern.len() - 1);
            base += (window.len() - kept) as u64;
            window.drain(..window.len() - kept);
        }
    }

    fn begins_a_record(&mut self, offset: u64, is_arc: bool) -> io::Result<bool> {
        let source = open_source(&self.path, offset)?;
        let start = match (self.packing, is_arc) {
            // The pattern itself is the beginning of a record, so nothing else needs to be checked.
            (Packing::Plain, false) => return Ok(true),
            (Packing::Plain, true) => first_line(source),
            (Packing::Gzip, _) => first_line(GzDecoder::new(source)),
            (Packing::Zstd, _) => match self.dictionary() {
                Ok(dictionary) => zst::decoder(source, dictionary).and_then(first_line),
                Err(_) => return Ok(false),
            },
        };
        match start {
            Ok(line) if is_arc => Ok(arc::headers(&String::from_utf8_lossy(&line)).is_some()),
            Ok(line) => Ok(line.starts_with(b"WARC/")),
            Err(e) if e.raw_os_error().is_some() => Err(e),
            Err(_) => Ok(false),
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

    /// Offset of the record (its gzip member) in the file.
    pub fn offset(&self) -> u64 {
        self.reader.offset
    }

    /// Unread bytes of the block.
    pub fn block_left(&self) -> u64 {
        match self.reader.state {
            State::Block(left) => left,
            State::Between | State::Over => 0,
        }
    }

    /// Reads the next bytes of the block; 0 at its end. Like [`Read::read`], with our error.
    pub fn read_block(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        self.reader.read_block(buffer)
    }

    /// Returns the remainder of the block, at most `bytes_max` bytes.
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

    /// Skips the remainder and verifies that the record is complete.
    pub fn finish(self) -> Result<Extent, ReadError> {
        self.reader.finish()
    }
}

/// Reads the block as a stream. Damage is an error of kind `InvalidData` with a [`ReadError`] inside.
impl Read for StoredRecord<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_block(buffer)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
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

/// The beginning of unexpected bytes, for a message.
fn excerpt(bytes: &[u8]) -> String {
    const SHOWN_BYTES_MAX: usize = 60;
    String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES_MAX)]).into_owned()
}

/// Detects the packing by the first bytes of a stream.
fn packing_of(first: &[u8]) -> Packing {
    match first.first() {
        Some(0x1f) => Packing::Gzip,
        _ if zst::is_frame(first) || zst::is_skippable(first) => Packing::Zstd,
        _ => Packing::Plain,
    }
}

/// Converts a decoder's error. Decoders report damage and failed reads as I/O errors; only failed reads have an OS error number.
fn packed_fault(path: &Path, offset: u64, packing: Packing, e: io::Error) -> ReadError {
    let file = path.to_owned();
    if e.raw_os_error().is_some() {
        return ReadError::Io {
            file,
            offset,
            source: e,
        };
    }
    let damage = match (e.kind(), packing) {
        (io::ErrorKind::UnexpectedEof, _) => Damage::Short,
        (_, Packing::Zstd) => Damage::Zstd(e.to_string()),
        (_, Packing::Gzip | Packing::Plain) => Damage::Gzip(e.to_string()),
    };
    ReadError::Damaged {
        file,
        offset,
        damage,
    }
}

/// Returns the first line of a stream, cut at the maximum length of a record's first line.
fn first_line(stream: impl Read) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut stream = BufReader::new(stream.take(arc::LINE_BYTES_MAX as u64));
    stream.read_until(b'\n', &mut line)?;
    Ok(line)
}

//! Serialises a record: its header as text, and its bytes as a gzip member (RFC 1952), a zstd frame (RFC 8878) or plain.

use std::fmt::Write as _;
use std::io::{self, Read};

use flate2::{Compress, Crc, FlushCompress, Status};
use jiff::Timestamp;
use libdeflater::{CompressionLvl, Compressor};
use zstd::stream::raw::{CParameter, InBuffer, Operation as _, OutBuffer};

use crate::digest::Digest;
use crate::fields::{is_token, one_line, safe_uri};
use crate::record::{Record, RecordId, RecordKind};

/// The first line of every record.
const VERSION: &str = "WARC/1.1\r\n";

/// The end of every record.
pub(crate) const TRAILER: &[u8; 4] = b"\r\n\r\n";

/// Space reserved in the output for each call of the compressor.
const PACK_BYTES: usize = 32 * 1024;

/// Maximum bytes of a record that is compressed in one piece. Longer ones use the streaming compressor, to limit memory.
const WHOLE_BYTES_MAX: u64 = 1 << 20;

/// Bytes of a spooled block read at a time.
const SPOOL_BYTES: usize = 64 * 1024;

/// A header in [`Record::extra`] that cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The name is not a token.
    #[error("{0:?} cannot be the name of a record header")]
    Name(String),
    /// The writer itself writes this header.
    #[error("{0} is written from the record's own fields, not as an extra header")]
    Reserved(String),
    /// The standard requires a payload digest with this profile.
    #[error("an identical-payload-digest revisit has no payload digest")]
    NoPayloadDigest,
}

/// The packing of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Plain, `.warc`.
    None,
    /// A gzip member for each record, `.warc.gz`; level 0 to 9 (more counts as 9).
    Gzip(u32),
    /// A zstd frame for each record, `.warc.zst`; level 1 to 22. Not for ARC.
    Zstd(i32),
}

/// Headers that come from a record's fields.
const RESERVED: [&str; 21] = [
    "warc-type",
    "warc-record-id",
    "warc-date",
    "warc-target-uri",
    "warc-warcinfo-id",
    "warc-filename",
    "warc-profile",
    "warc-refers-to",
    "warc-refers-to-target-uri",
    "warc-refers-to-date",
    "warc-ip-address",
    "warc-truncated",
    "warc-block-digest",
    "warc-payload-digest",
    "warc-block-digest-sha1",
    "warc-block-digest-sha256",
    "warc-payload-digest-sha1",
    "warc-payload-digest-sha256",
    "warc-segment-number",
    "content-type",
    "content-length",
];

/// Lines `Name: value`, each value on one line.
pub(crate) struct HeaderText(String);

impl HeaderText {
    fn new(kind: &str, id: RecordId, date: Timestamp) -> HeaderText {
        let mut text = HeaderText(VERSION.to_owned());
        text.line("WARC-Type", kind);
        text.line("WARC-Record-ID", format_args!("<{id}>"));
        text.line("WARC-Date", format_args!("{date:.6}"));
        text
    }

    /// Adds a line whose value is known to be safe.
    fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        // Writing to a String cannot fail.
        let _ = write!(self.0, "{name}: {value}\r\n");
    }

    /// Adds a second digest in a header with another name. The standard allows no repeated header except `WARC-Concurrent-To`, and
    /// readers fail on repeated ones, but ignore unknown names.
    fn further(&mut self, name: &str, digest: Digest) {
        let algorithm = digest.algorithm().to_string().to_ascii_uppercase();
        self.line(&format!("{name}-{algorithm}"), digest);
    }

    fn finish(mut self) -> String {
        self.0.push_str("\r\n");
        self.0
    }
}

/// The header of a record in the file with the given `warcinfo`.
pub(crate) fn header(
    record: &Record,
    warcinfo: RecordId,
    (block_digest, further): (Digest, Option<Digest>),
) -> Result<String, HeaderError> {
    let mut text = HeaderText::new(record.kind.name(), record.id, record.date);
    text.line("WARC-Target-URI", safe_uri(&record.target_uri));
    if let RecordKind::Revisit(profile) = record.kind {
        text.line("WARC-Profile", profile.uri());
        if record.payload_digest.is_none() && profile.needs_payload_digest() {
            return Err(HeaderError::NoPayloadDigest);
        }
    }
    refers_to(&mut text, record);
    for id in &record.concurrent_to {
        text.line("WARC-Concurrent-To", format_args!("<{id}>"));
    }
    if let Some(ip) = record.ip {
        text.line("WARC-IP-Address", ip.to_canonical());
    }
    for protocol in &record.protocols {
        text.line("WARC-Protocol", one_line(protocol));
    }
    if let Some(reason) = record.truncated {
        text.line("WARC-Truncated", reason.reason());
    }
    text.line("WARC-Warcinfo-ID", format_args!("<{warcinfo}>"));
    for (name, value) in &record.extra {
        if name.is_empty() || !name.chars().all(is_token) {
            return Err(HeaderError::Name(name.clone()));
        }
        if RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(HeaderError::Reserved(name.clone()));
        }
        text.line(name, one_line(value));
    }
    if let Some(digest) = record.payload_digest {
        text.line("WARC-Payload-Digest", digest);
    }
    if let Some(digest) = record.further_payload_digest {
        text.further("WARC-Payload-Digest", digest);
    }
    text.line("WARC-Block-Digest", block_digest);
    if let Some(digest) = further {
        text.further("WARC-Block-Digest", digest);
    }
    let content_type = one_line(&record.content_type);
    if !content_type.is_empty() {
        text.line("Content-Type", content_type);
    }
    text.line("Content-Length", record.block.length());
    Ok(text.finish())
}

fn refers_to(text: &mut HeaderText, record: &Record) {
    let revisit = match record.kind {
        RecordKind::Revisit(_) => true,
        RecordKind::Metadata => false,
        RecordKind::Request | RecordKind::Response | RecordKind::Resource => return,
    };
    if let Some(id) = record.refers_to.id {
        text.line("WARC-Refers-To", format_args!("<{id}>"));
    }
    if revisit {
        if let Some(uri) = &record.refers_to.target_uri {
            text.line("WARC-Refers-To-Target-URI", safe_uri(uri));
        }
        if let Some(date) = record.refers_to.date {
            text.line("WARC-Refers-To-Date", format_args!("{date:.6}"));
        }
    }
}

/// The header of a file's `warcinfo` record.
pub(crate) fn warcinfo_header(
    id: RecordId,
    date: Timestamp,
    file_name: &str,
    (block_digest, further): (Digest, Option<Digest>),
    block_length: usize,
) -> String {
    let mut text = HeaderText::new("warcinfo", id, date);
    text.line("WARC-Filename", file_name);
    text.line("WARC-Block-Digest", block_digest);
    if let Some(digest) = further {
        text.further("WARC-Block-Digest", digest);
    }
    text.line("Content-Type", crate::record::WARC_FIELDS);
    text.line("Content-Length", block_length);
    text.finish()
}

/// The destination of packed bytes: a growing buffer that can be emptied when it is long.
pub(crate) trait Output {
    /// The bytes that have not been written yet.
    fn buffer(&mut self) -> &mut Vec<u8>;
    /// Called after bytes were added; may write and empty the buffer.
    fn added(&mut self) -> io::Result<()>;
}

/// Packs records, one gzip member or zstd frame for each, or leaves them plain.
pub(crate) enum Packer {
    Plain,
    Gzip(Box<GzipPacker>),
    Zstd(zstd::stream::raw::Encoder<'static>),
}

/// Packs records as gzip members: short records in one piece, which takes less than half of the time, long ones piece by piece.
pub(crate) struct GzipPacker {
    whole: WholePacker,
    stream: StreamPacker,
    /// `true` if the current record is packed in one piece.
    is_whole: bool,
}

/// Compresses a record in one piece.
struct WholePacker {
    compressor: Compressor,
    record: Vec<u8>,
    /// Space for the member. It is never shortened, so that it need not be filled with zeros again.
    member: Vec<u8>,
}

/// Compresses a record piece by piece.
struct StreamPacker {
    compress: Compress,
    level: flate2::Compression,
    crc: Crc,
}

impl Packer {
    /// Creates a packer. The dictionary is only for zstd; empty for none.
    pub(crate) fn new(compression: Compression, dictionary: &[u8]) -> io::Result<Packer> {
        Ok(match compression {
            Compression::None => Packer::Plain,
            Compression::Gzip(level) => Packer::Gzip(Box::new(GzipPacker::new(level.min(9)))),
            Compression::Zstd(level) => {
                let mut encoder = zstd::stream::raw::Encoder::with_dictionary(level, dictionary)?;
                // Frames get a checksum, as gzip members have one. Without it, a damaged frame would be accepted.
                encoder.set_parameter(CParameter::ChecksumFlag(true))?;
                Packer::Zstd(encoder)
            }
        })
    }

    /// Begins a record of this many bytes.
    pub(crate) fn begin(&mut self, out: &mut impl Output, length: u64) -> io::Result<()> {
        match self {
            Packer::Plain => {}
            Packer::Gzip(gzip) => gzip.begin(out.buffer(), length),
            Packer::Zstd(encoder) => {
                encoder.reinit()?;
                encoder.set_pledged_src_size(Some(length))?;
            }
        }
        Ok(())
    }

    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut impl Output) -> io::Result<()> {
        match self {
            Packer::Plain => {
                out.buffer().extend_from_slice(bytes);
                out.added()
            }
            Packer::Gzip(gzip) => gzip.feed(bytes, out),
            Packer::Zstd(encoder) => {
                let mut input = InBuffer::around(bytes);
                while input.pos() < bytes.len() {
                    let buffer = out.buffer();
                    buffer.reserve(PACK_BYTES);
                    let at = buffer.len();
                    encoder.run(&mut input, &mut OutBuffer::around_pos(buffer, at))?;
                    out.added()?;
                }
                Ok(())
            }
        }
    }

    pub(crate) fn end(&mut self, out: &mut impl Output) -> io::Result<()> {
        match self {
            Packer::Plain => {}
            Packer::Gzip(gzip) => gzip.end(out.buffer())?,
            Packer::Zstd(encoder) => loop {
                let buffer = out.buffer();
                buffer.reserve(PACK_BYTES);
                let at = buffer.len();
                let left = encoder.finish(&mut OutBuffer::around_pos(buffer, at), true)?;
                if left == 0 {
                    break;
                }
            },
        }
        out.added()
    }
}

impl GzipPacker {
    /// Creates a packer of this level, 0 to 9.
    fn new(level: u32) -> GzipPacker {
        let stream_level = flate2::Compression::new(level);
        // Levels of libdeflate are 0 to 12; levels up to 9 correspond to those of zlib.
        let whole_level = CompressionLvl::new(level.cast_signed()).unwrap_or_default();
        GzipPacker {
            whole: WholePacker {
                compressor: Compressor::new(whole_level),
                record: Vec::new(),
                member: Vec::new(),
            },
            stream: StreamPacker {
                compress: Compress::new(stream_level, false),
                level: stream_level,
                crc: Crc::new(),
            },
            is_whole: false,
        }
    }

    fn begin(&mut self, buffer: &mut Vec<u8>, length: u64) {
        self.is_whole = length <= WHOLE_BYTES_MAX;
        if self.is_whole {
            self.whole.record.clear();
            self.whole
                .record
                .reserve(usize::try_from(length).unwrap_or(0));
        } else {
            self.stream.begin(buffer);
        }
    }

    fn feed(&mut self, bytes: &[u8], out: &mut impl Output) -> io::Result<()> {
        if self.is_whole {
            self.whole.record.extend_from_slice(bytes);
            return Ok(());
        }
        self.stream.feed(bytes, out)
    }

    fn end(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        if self.is_whole {
            self.whole.pack(buffer)
        } else {
            self.stream.end(buffer)
        }
    }
}

impl WholePacker {
    fn pack(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        let bound = self.compressor.gzip_compress_bound(self.record.len());
        if self.member.len() < bound {
            self.member.resize(bound, 0);
        }
        let length = self
            .compressor
            .gzip_compress(&self.record, &mut self.member)
            .map_err(io::Error::other)?;
        buffer.extend_from_slice(&self.member[..length]);
        Ok(())
    }
}

impl StreamPacker {
    fn begin(&mut self, buffer: &mut Vec<u8>) {
        // At level 1, zlib-rs 0.6 keeps an open block of an unfinished record across a reset, and the next record would be damaged.
        self.compress = Compress::new(self.level, false);
        self.crc.reset();
        // Magic, deflate, no flags, no time (the record has its own), unknown system.
        buffer.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
    }

    fn feed(&mut self, mut bytes: &[u8], out: &mut impl Output) -> io::Result<()> {
        self.crc.update(bytes);
        while !bytes.is_empty() {
            let before = self.compress.total_in();
            out.buffer().reserve(PACK_BYTES);
            self.compress
                .compress_vec(bytes, out.buffer(), FlushCompress::None)
                .map_err(io::Error::other)?;
            let taken = usize::try_from(self.compress.total_in() - before).unwrap_or(bytes.len());
            bytes = &bytes[taken..];
            out.added()?;
        }
        Ok(())
    }

    fn end(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        loop {
            buffer.reserve(PACK_BYTES);
            let status = self
                .compress
                .compress_vec(&[], buffer, FlushCompress::Finish)
                .map_err(io::Error::other)?;
            if status == Status::StreamEnd {
                break;
            }
        }
        buffer.extend_from_slice(&self.crc.sum().to_le_bytes());
        buffer.extend_from_slice(&self.crc.amount().to_le_bytes());
        Ok(())
    }
}

/// Reads exactly `length` bytes and passes them to `each`. A failed read or another length is converted by `fault`.
pub(crate) fn read_spool<E>(
    mut reader: Box<dyn Read + Send>,
    length: u64,
    fault: impl Fn(io::Error) -> E,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut buffer = vec![0; SPOOL_BYTES];
    let mut seen = 0;
    loop {
        let got = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(got) => got,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(fault(e)),
        };
        seen += got as u64;
        if seen > length {
            break;
        }
        each(&buffer[..got])?;
    }
    if seen == length {
        return Ok(());
    }
    let more = if seen > length { "more than " } else { "" };
    let seen = seen.min(length);
    Err(fault(io::Error::other(format!(
        "block has {more}{seen} bytes instead of {length}"
    ))))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Output for Vec<u8> {
        fn buffer(&mut self) -> &mut Vec<u8> {
            self
        }

        fn added(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn records_compressed_in_one_or_many_pieces_decompress_to_the_same() {
        let mut packer = Packer::new(Compression::Gzip(6), &[]).unwrap();
        let mut packed = Vec::new();
        let mut expected = Vec::new();
        for length in [0, 1, WHOLE_BYTES_MAX, WHOLE_BYTES_MAX + 1, 5] {
            let record: Vec<u8> = (0..length).map(|at| (at * at / 7) as u8).collect();
            packer.begin(&mut packed, length).unwrap();
            for piece in record.chunks(10_000) {
                packer.feed(piece, &mut packed).unwrap();
            }
            packer.end(&mut packed).unwrap();
            expected.extend(record);
        }
        let mut unpacked = Vec::new();
        let mut decoder = flate2::read::MultiGzDecoder::new(packed.as_slice());
        decoder.read_to_end(&mut unpacked).unwrap();
        assert!(unpacked == expected);
    }
}

//! Appends the records of a capture to the open file.

use std::io;

use super::open_file::OpenFile;
use super::{Location, WriteError, WriterConfig};
use crate::ArchiveFormat;
use crate::arc;
use crate::cdxj;
use crate::digest::{Digest, Hasher};
use crate::reader::Extent;
use crate::record::{Block, Record, RecordKind};
use crate::serialize::{Packer, TRAILER, header, read_spool};

/// The reason why the records of a capture could not be appended. The caller adds the file's name.
pub(super) enum AppendError {
    File(io::Error),
    Capture(WriteError),
}

pub(super) fn append(
    packer: &mut Packer,
    file: &mut OpenFile,
    config: &WriterConfig,
    capture: &[Record],
) -> Result<Vec<Location>, AppendError> {
    let mut locations = Vec::with_capacity(capture.len());
    for record in capture {
        let offset = file.position();
        let digest = append_record(packer, file, config, record)?;
        let length = file.position() - offset;
        if length == 0 {
            // ARC cannot store this record.
            continue;
        }
        // ARC files have no requests.
        let exchange = match config.format {
            ArchiveFormat::Warc => capture,
            ArchiveFormat::Arc => &[],
        };
        if config.index
            && let Some(mut entry) = cdxj::entry_of_written_record(record, exchange)
        {
            if entry.capture.digest.is_none() && record.kind == RecordKind::Resource {
                entry.capture.digest = digest.map(|digest| digest.to_string());
            }
            let extent = Extent {
                offset,
                length,
                shared: false,
            };
            file.entries.push(entry.at(extent, &file.name));
        }
        locations.push(Location {
            file: file.name.clone(),
            offset,
            length,
            record_id: record.id,
        });
    }
    file.flush().map_err(AppendError::File)?;
    Ok(locations)
}

/// Appends a record, and returns the digest of its block if one was computed.
fn append_record(
    packer: &mut Packer,
    file: &mut OpenFile,
    config: &WriterConfig,
    record: &Record,
) -> Result<Option<Digest>, AppendError> {
    let (header, trailer, digest): (String, &[u8], _) = match config.format {
        ArchiveFormat::Arc => match arc::line(record) {
            Some(line) => (line, b"\n", None),
            None => return Ok(None),
        },
        ArchiveFormat::Warc => {
            let (digest, further) = block_digests(record, config)?;
            let header = header(record, file.warcinfo, (digest, further)).map_err(|source| {
                AppendError::Capture(WriteError::Header {
                    record: record.id,
                    source,
                })
            })?;
            (header, TRAILER, Some(digest))
        }
    };
    let length = header.len() as u64 + record.block.length() + trailer.len() as u64;
    packer.begin(file, length).map_err(AppendError::File)?;
    packer
        .feed(header.as_bytes(), file)
        .map_err(AppendError::File)?;
    each_piece(record, |bytes| {
        packer.feed(bytes, file).map_err(AppendError::File)
    })?;
    packer.feed(trailer, file).map_err(AppendError::File)?;
    packer.end(file).map_err(AppendError::File)?;
    Ok(digest)
}

/// The digests of a record's block. Unknown ones are computed in one pass.
fn block_digests(
    record: &Record,
    config: &WriterConfig,
) -> Result<(Digest, Option<Digest>), AppendError> {
    if let (Some(digest), None) = (record.block_digest, config.further_digest) {
        return Ok((digest, None));
    }
    let mut hasher = Hasher::new(config.digest);
    let mut further = config.further_digest.map(Hasher::new);
    each_piece(record, |bytes| {
        hasher.update(bytes);
        if let Some(further) = &mut further {
            further.update(bytes);
        }
        Ok(())
    })?;
    let digest = record.block_digest.unwrap_or_else(|| hasher.finish());
    Ok((digest, further.map(Hasher::finish)))
}

/// Passes a record's block to `each`, piece by piece.
fn each_piece(
    record: &Record,
    mut each: impl FnMut(&[u8]) -> Result<(), AppendError>,
) -> Result<(), AppendError> {
    match &record.block {
        Block::Bytes(bytes) => each(bytes),
        Block::Spool { length, open } => {
            let fault = |source| {
                AppendError::Capture(WriteError::Block {
                    record: record.id,
                    source,
                })
            };
            let reader = open().map_err(fault)?;
            read_spool(reader, *length, fault, each)
        }
    }
}

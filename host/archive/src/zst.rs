//! The rules of `.warc.zst` in addition to Zstandard (RFC 8878): each record is a frame. If the file has a dictionary, it is in the
//! first frame, which other readers skip.
//!
//! The specification is the IIPC's "Zstandard Compression for WARC Files 1.0".

use std::io::{self, BufRead, Read};

/// Magic number of a frame with data.
pub(crate) const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Magic number of the frame with the dictionary: the third last of the sixteen kinds of skippable frames.
pub(crate) const DICTIONARY_FRAME: [u8; 4] = [0x5d, 0x2a, 0x4d, 0x18];

/// Maximum bytes of a dictionary, compressed or not. Real dictionaries have some hundred kilobytes.
pub const DICTIONARY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Returns `true` if a frame with data begins with these bytes. With fewer than four bytes: whether it can.
pub(crate) fn is_frame(first: &[u8]) -> bool {
    first.iter().zip(FRAME).all(|(one, other)| *one == other)
}

/// Returns `true` if a skippable frame begins with these bytes. With fewer than four bytes: whether it can.
pub(crate) fn is_skippable(first: &[u8]) -> bool {
    match first {
        [kind, rest @ ..] => {
            (0x50..=0x5f).contains(kind)
                && (rest.len() >= 3 || *kind != b'W')
                && rest
                    .iter()
                    .zip(&DICTIONARY_FRAME[1..])
                    .all(|(one, other)| one == other)
        }
        [] => false,
    }
}

/// Returns a decoder of the next frame alone.
pub(crate) fn decoder<R: BufRead>(
    source: R,
    dictionary: &[u8],
) -> io::Result<zstd::Decoder<'static, R>> {
    Ok(zstd::Decoder::with_dictionary(source, dictionary)?.single_frame())
}

/// Skips a frame; `false` if the file ends within it.
pub(crate) fn skip(source: &mut impl BufRead) -> io::Result<bool> {
    let Some((_, length)) = frame_header(source)? else {
        return Ok(false);
    };
    let mut left = u64::from(length);
    while left > 0 {
        let got = source.fill_buf()?.len();
        if got == 0 {
            return Ok(false);
        }
        let take = usize::try_from(left).unwrap_or(usize::MAX).min(got);
        source.consume(take);
        left -= take as u64;
    }
    Ok(true)
}

/// Reads the dictionary at the beginning of a file, and decompresses it if necessary. `None` if the file does not begin with one.
pub(crate) fn read_dictionary(mut source: impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let Some((DICTIONARY_FRAME, length)) = frame_header(&mut source)? else {
        return Ok(None);
    };
    let length = length as usize;
    if length > DICTIONARY_BYTES_MAX {
        return Err(too_long());
    }
    let mut dictionary = Vec::new();
    source.take(length as u64).read_to_end(&mut dictionary)?;
    if dictionary.len() < length {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the file ends within it",
        ));
    }
    if !dictionary.starts_with(&FRAME) {
        return Ok(Some(dictionary));
    }
    let mut unpacked = Vec::new();
    let packed = io::BufReader::new(dictionary.as_slice());
    decoder(packed, &[])?
        .take(DICTIONARY_BYTES_MAX as u64 + 1)
        .read_to_end(&mut unpacked)?;
    if unpacked.len() > DICTIONARY_BYTES_MAX {
        return Err(too_long());
    }
    Ok(Some(unpacked))
}

/// Returns the first frame of a file with this dictionary. The dictionary is compressed, because it is mostly text.
pub(crate) fn dictionary_frame(dictionary: &[u8]) -> io::Result<Vec<u8>> {
    let packed = zstd::bulk::compress(dictionary, zstd::DEFAULT_COMPRESSION_LEVEL)?;
    let length = u32::try_from(packed.len()).map_err(|_| too_long())?;
    let mut frame = DICTIONARY_FRAME.to_vec();
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(&packed);
    Ok(frame)
}

fn too_long() -> io::Error {
    let problem = format!("it is longer than {DICTIONARY_BYTES_MAX} bytes");
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// Reads the magic number and the length; `None` if the file ends first.
fn frame_header(source: &mut impl BufRead) -> io::Result<Option<([u8; 4], u32)>> {
    let (mut magic, mut length) = ([0; 4], [0; 4]);
    for part in [&mut magic, &mut length] {
        match source.read_exact(part) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(e) => return Err(e),
        }
    }
    Ok(Some((magic, u32::from_le_bytes(length))))
}

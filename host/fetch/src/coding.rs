//! Content coding (RFC 9110 §8.4): gzip, deflate, br and zstd, also nested, with a limit on the decoded length.
//!
//! No content is lost to a decoding error: the result has the part that could be decoded, or the bytes as received, and the
//! reason.

use std::io::{self, BufReader, Read};

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// Maximum nested codings that are removed. Content with more codings stays as received.
pub const CODINGS_MAX: usize = 4;

/// Bytes that pass through a decoder at a time.
const BUFFER_BYTES: usize = 16 * 1024;

/// RFC 9659: decoders need no more than 8 MiB of window. The limit also bounds decompression bombs.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// Content with its codings removed.
#[derive(Debug)]
pub struct DecodedContent {
    /// The content; after a problem, as much of it as could be decoded.
    pub content: Vec<u8>,
    /// The problem that stopped decoding.
    pub problem: Option<CodingProblem>,
}

/// The reason why content is incomplete or still coded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodingProblem {
    /// An unknown coding: the content is as received.
    #[error("unknown content coding {0:?}")]
    Unknown(String),
    /// More than [`CODINGS_MAX`] codings: the content is as received.
    #[error("{0} nested content codings")]
    TooMany(usize),
    /// The bytes are not coded as the header says: the content is as received. Servers commonly declare a coding that they did
    /// not apply.
    #[error("content is not {0} as its header says")]
    NotCoded(String),
    /// The coded bytes end early or are damaged: the content is the part before the damage.
    #[error("content coding is damaged")]
    Damaged(#[source] io::Error),
    /// The final or an intermediate content is longer than `bytes_max`: the content is cut there.
    #[error("content is longer than {0} bytes when decoded")]
    TooLong(u64),
    /// The recording could not be read.
    #[error("cannot read the recorded content")]
    Read(#[source] io::Error),
}

impl CodingProblem {
    /// The annotation for the crawl log. The name for the first three is Heritrix's.
    pub fn annotation(&self) -> String {
        let detail = match self {
            CodingProblem::Unknown(coding) | CodingProblem::NotCoded(coding) => coding.clone(),
            CodingProblem::TooMany(count) => count.to_string(),
            CodingProblem::Damaged(_) => return "damagedContentEncoding".to_owned(),
            CodingProblem::TooLong(_) => return "decodedLenTrunc".to_owned(),
            CodingProblem::Read(_) => return "unreadableContent".to_owned(),
        };
        let clean = |c: char| {
            if c.is_whitespace() || c == ',' {
                '_'
            } else {
                c
            }
        };
        let detail: String = detail.chars().take(40).map(clean).collect();
        format!("unsatisfiableContentEncoding:{detail}")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// Removes `codings` and returns at most `bytes_max` bytes. The codings are in the order in which the server applied them, as
/// [`ResponseHead::content_codings`](crate::ResponseHead::content_codings) lists them. `content` opens a new reader of the
/// coded bytes; it is called at most twice.
pub fn decode<R: Read>(
    codings: &[String],
    content: impl Fn() -> R,
    bytes_max: u64,
) -> DecodedContent {
    let known = match known(codings) {
        Ok(known) => known,
        Err(problem) => return as_received(content(), bytes_max, Some(problem)),
    };
    if known.is_empty() {
        return as_received(content(), bytes_max, None);
    }
    let source = Source::default();
    let watched = Watched {
        reader: content(),
        source: &source,
    };
    let mut reader: Box<dyn Read + '_> = Box::new(watched);
    for coding in known.iter().rev() {
        reader = match decoder(*coding, reader) {
            Ok(decoder) => Box::new(Bounded {
                reader: decoder,
                left: bytes_max,
                source: &source,
            }),
            Err(error) => {
                return DecodedContent {
                    content: Vec::new(),
                    problem: Some(CodingProblem::Damaged(error)),
                };
            }
        };
    }
    let (decoded, result) = read_all(&mut reader);
    drop(reader);
    let Err(error) = result else {
        return DecodedContent {
            content: decoded,
            problem: None,
        };
    };
    if source.failed.get() {
        return DecodedContent {
            content: decoded,
            problem: Some(CodingProblem::Read(error)),
        };
    }
    if source.too_long.get() {
        return DecodedContent {
            content: decoded,
            problem: Some(CodingProblem::TooLong(bytes_max)),
        };
    }
    // The decoder gave no byte, so the header is wrong and not the bytes. Empty coded content decodes to empty content.
    match decoded.is_empty() {
        true if source.bytes.get() == 0 => DecodedContent {
            content: decoded,
            problem: None,
        },
        true => {
            let problem = CodingProblem::NotCoded(codings.join("+"));
            as_received(content(), bytes_max, Some(problem))
        }
        false => DecodedContent {
            content: decoded,
            problem: Some(CodingProblem::Damaged(error)),
        },
    }
}

fn known(codings: &[String]) -> Result<Vec<Coding>, CodingProblem> {
    if codings.len() > CODINGS_MAX {
        return Err(CodingProblem::TooMany(codings.len()));
    }
    let known = codings.iter().filter(|coding| *coding != "identity");
    known
        .map(|coding| match coding.as_str() {
            "gzip" | "x-gzip" => Ok(Coding::Gzip),
            "deflate" => Ok(Coding::Deflate),
            "br" => Ok(Coding::Brotli),
            "zstd" => Ok(Coding::Zstd),
            _ => Err(CodingProblem::Unknown(coding.clone())),
        })
        .collect()
}

fn as_received(
    mut content: impl Read,
    bytes_max: u64,
    problem: Option<CodingProblem>,
) -> DecodedContent {
    let source = Source::default();
    let (content, result) = read_all(&mut Bounded {
        reader: &mut content,
        left: bytes_max,
        source: &source,
    });
    let fault = match result {
        Ok(()) => None,
        Err(_) if source.too_long.get() => Some(CodingProblem::TooLong(bytes_max)),
        Err(error) => Some(CodingProblem::Read(error)),
    };
    DecodedContent {
        content,
        problem: problem.or(fault),
    }
}

/// Reads up to the end or the first error. The standard's `read_to_end` keeps the bytes before an error too, but does not
/// promise it.
fn read_all(reader: &mut dyn Read) -> (Vec<u8>, io::Result<()>) {
    let mut content = Vec::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    let result = loop {
        match reader.read(&mut buffer) {
            Ok(0) => break Ok(()),
            Ok(count) => content.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    // The vector is kept for a while, and can have twice the capacity that it needs.
    content.shrink_to_fit();
    (content, result)
}

fn decoder<'a>(coding: Coding, reader: Box<dyn Read + 'a>) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match coding {
        Coding::Gzip => Box::new(MultiGzDecoder::new(reader)),
        Coding::Deflate => deflate(reader)?,
        Coding::Brotli => Box::new(brotli_decompressor::Decompressor::new(reader, BUFFER_BYTES)),
        Coding::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::new(reader)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
            Box::new(decoder)
        }
    })
}

/// Decodes deflate. The standard means zlib; some servers send a bare deflate stream. The first two bytes decide
/// (RFC 1950 §2.2).
fn deflate<'a>(mut reader: Box<dyn Read + 'a>) -> io::Result<Box<dyn Read + 'a>> {
    let mut start = Vec::new();
    (&mut reader).take(2).read_to_end(&mut start)?;
    let zlib = match start[..] {
        [method, flags] => {
            method & 0x0f == 8 && (u16::from(method) << 8 | u16::from(flags)) % 31 == 0
        }
        _ => true,
    };
    let whole = BufReader::new(io::Cursor::new(start).chain(reader));
    Ok(match zlib {
        true => Box::new(ZlibDecoder::new(whole)),
        false => Box::new(DeflateDecoder::new(whole)),
    })
}

/// Events at the coded end, which the decoders' errors do not report.
#[derive(Default)]
struct Source {
    bytes: std::cell::Cell<u64>,
    failed: std::cell::Cell<bool>,
    too_long: std::cell::Cell<bool>,
}

/// A reader of the coded bytes that counts and watches for errors.
struct Watched<'a, R> {
    reader: R,
    source: &'a Source,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let result = self.reader.read(buffer);
        match &result {
            Ok(count) => self
                .source
                .bytes
                .set(self.source.bytes.get() + *count as u64),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.source.failed.set(true),
        }
        result
    }
}

/// A reader that gives `left` bytes and fails if there are more.
struct Bounded<'a, R> {
    reader: R,
    left: u64,
    source: &'a Source,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.left == 0 {
            return match self.reader.read(&mut [0])? {
                0 => Ok(0),
                _ => {
                    self.source.too_long.set(true);
                    Err(io::Error::other("too long"))
                }
            };
        }
        let room = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let count = self.reader.read(&mut buffer[..room])?;
        self.left -= count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn raw_deflate(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 3).unwrap()
    }

    /// "hello hello hello" by the reference encoder: an uncompressed meta-block and an empty last one.
    const BROTLI_HELLO: &[u8] = b"\x0b\x08\x80hello hello hello\x03";

    fn run(codings: &[&str], content: &[u8], bytes_max: u64) -> DecodedContent {
        let codings: Vec<String> = codings.iter().map(|c| (*c).to_owned()).collect();
        decode(&codings, || content, bytes_max)
    }

    #[track_caller]
    fn check(codings: &[&str], content: &[u8], expected: &[u8]) {
        let decoded = run(codings, content, 1 << 20);
        assert!(
            decoded.problem.is_none(),
            "{codings:?}: {:?}",
            decoded.problem
        );
        assert_eq!(decoded.content, expected, "{codings:?}");
    }

    #[track_caller]
    fn fault(codings: &[&str], content: &[u8], expected: &[u8], annotation: &str) {
        let decoded = run(codings, content, 1 << 20);
        let problem = decoded.problem.unwrap();
        assert_eq!(problem.annotation(), annotation, "{problem:?}");
        assert_eq!(decoded.content, expected);
    }

    #[test]
    fn every_coding_is_removed() {
        let text = "hello hello hello".repeat(1000).into_bytes();
        check(&[], &text, &text);
        check(&["identity"], &text, &text);
        check(&["gzip"], &gzip(&text), &text);
        check(
            &["x-gzip"],
            &[gzip(b"two "), gzip(b"members")].concat(),
            b"two members",
        );
        check(&["deflate"], &zlib(&text), &text);
        check(&["deflate"], &raw_deflate(&text), &text);
        check(&["zstd"], &zstd(&text), &text);
        check(
            &["zstd"],
            &[zstd(b"two "), zstd(b"frames")].concat(),
            b"two frames",
        );
        check(&["br"], BROTLI_HELLO, b"hello hello hello");
        check(
            &["br", "gzip", "zstd"],
            &zstd(&gzip(BROTLI_HELLO)),
            b"hello hello hello",
        );
        for coding in ["gzip", "deflate", "br", "zstd"] {
            check(&[coding], b"", b"");
        }
        for (coding, empty) in [
            ("gzip", gzip(b"")),
            ("deflate", zlib(b"")),
            ("zstd", zstd(b"")),
        ] {
            check(&[coding], &empty, b"");
        }
    }

    #[test]
    fn content_that_cannot_be_decoded_stays_as_received() {
        fault(
            &["sdch"],
            b"abc",
            b"abc",
            "unsatisfiableContentEncoding:sdch",
        );
        fault(
            &["gzip", "a b,c"],
            b"abc",
            b"abc",
            "unsatisfiableContentEncoding:a_b_c",
        );
        for coding in ["gzip", "deflate", "zstd"] {
            let annotation = format!("unsatisfiableContentEncoding:{coding}");
            fault(
                &[coding],
                b"<html> is not coded",
                b"<html> is not coded",
                &annotation,
            );
        }
        fault(
            &["gzip"; 5],
            b"abc",
            b"abc",
            "unsatisfiableContentEncoding:5",
        );
    }

    #[test]
    fn damaged_content_is_decoded_up_to_the_damage() {
        let text: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
        for (coding, coded) in [
            ("gzip", gzip(&text)),
            ("deflate", zlib(&text)),
            ("zstd", zstd(&text)),
        ] {
            let decoded = run(&[coding], &coded[..coded.len() / 2], 1 << 20);
            assert!(
                matches!(decoded.problem, Some(CodingProblem::Damaged(_))),
                "{coding}: {:?}",
                decoded.problem
            );
            assert!(
                decoded.content.len() > 100_000 && text.starts_with(&decoded.content),
                "{coding}"
            );
        }
        let trailing = [gzip(b"whole"), b"junk".to_vec()].concat();
        fault(&["gzip"], &trailing, b"whole", "damagedContentEncoding");
    }

    #[test]
    fn bombs_are_cut() {
        let zeros = vec![0; 10 << 20];
        let exact = run(&["gzip"], &gzip(&zeros[..1 << 20]), 1 << 20);
        assert!(exact.problem.is_none() && exact.content.len() == 1 << 20);
        let bombs = [
            ("gzip", gzip(&zeros)),
            ("deflate", zlib(&zeros)),
            ("zstd", zstd(&zeros)),
        ];
        for (coding, bomb) in &bombs {
            let decoded = run(&[coding], bomb, 1 << 20);
            assert!(
                matches!(decoded.problem, Some(CodingProblem::TooLong(_))),
                "{coding}: {:?}",
                decoded.problem
            );
            assert_eq!(decoded.content.len(), 1 << 20);
        }
        // The intermediate content is long and the final one short: the limit applies to both.
        let empty_members = gzip(b"").repeat(100_000);
        let nested = run(&["gzip", "gzip"], &gzip(&empty_members), 1 << 20);
        assert!(
            matches!(nested.problem, Some(CodingProblem::TooLong(_))),
            "{:?}",
            nested.problem
        );
        let plain = run(&[], &zeros, 1 << 20);
        assert!(
            matches!(plain.problem, Some(CodingProblem::TooLong(_)))
                && plain.content.len() == 1 << 20
        );
    }

    #[test]
    fn an_unreadable_recording_is_reported() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("disk"))
            }
        }
        for coding in ["gzip", "br", "identity"] {
            let decoded = decode(&[coding.to_owned()], || Broken, 10);
            assert!(
                matches!(decoded.problem, Some(CodingProblem::Read(_))),
                "{coding}: {:?}",
                decoded.problem
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn nothing_panics(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            codings in prop::collection::vec(prop::sample::select(vec!["gzip", "deflate", "br", "zstd"]), 1..4),
            cut in 0usize..60,
        ) {
            let _ = run(&codings, &bytes, 4096);
            let mut coded = gzip(&bytes);
            coded.truncate(cut);
            let _ = run(&["gzip"], &coded, 4096);
        }
    }
}

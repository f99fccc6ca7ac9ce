//! The content of a document as unpacked text, within the memory limit of a plugin.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use opilio_plugin::Document;

/// Most text to read, in bytes. A plugin has 64 MiB of memory by default, which the results need too. Sitemaps may be larger
/// (50 MB); the rest is not read, and the log says so.
pub(crate) const CONTENT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// First bytes of a gzip member (RFC 1952 §2.3.1).
const GZIP: [u8; 2] = [0x1F, 0x8B];

/// The text of a document.
pub(crate) struct Content {
    pub text: String,
    /// Reason why the text is incomplete, for the log; `None` if it is complete.
    pub problem: Option<String>,
}

/// Returns `true` if the document begins like a gzip file. Sitemaps often are gzip files without a `Content-Encoding`.
pub(crate) fn is_gzip(document: &Document) -> bool {
    document.read(0, 2) == GZIP
}

/// Returns the text of a document; for a gzip file, the unpacked text.
pub(crate) fn content(document: &Document) -> Content {
    if is_gzip(document) {
        return unpack(document);
    }
    if document.length() <= CONTENT_BYTES_MAX as u64 {
        return Content {
            text: document.text(),
            problem: None,
        };
    }
    Content {
        text: into_text(document.read(0, CONTENT_BYTES_MAX as u32)),
        problem: Some(too_long()),
    }
}

fn unpack(document: &Document) -> Content {
    let packed = DocumentReader {
        document,
        at: 0,
        chunk: Vec::new(),
        read: 0,
    };
    let mut bytes = Vec::new();
    let outcome = MultiGzDecoder::new(packed)
        .take(CONTENT_BYTES_MAX as u64)
        .read_to_end(&mut bytes);
    let problem = match outcome {
        // The text before the error is kept: it may contain many entries of a sitemap.
        Err(error) => Some(format!("the gzip file is damaged: {error}")),
        Ok(length) if length == CONTENT_BYTES_MAX => Some(too_long()),
        Ok(_) => None,
    };
    Content {
        text: into_text(bytes),
        problem,
    }
}

fn too_long() -> String {
    format!("text after the first {CONTENT_BYTES_MAX} bytes was not read")
}

/// Decodes UTF-8. Invalid bytes become U+FFFD.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Reads the document's bytes from the host in chunks. A copy of the whole document would take memory that the unpacked text
/// needs.
struct DocumentReader<'a> {
    document: &'a Document,
    /// Position in the document after the chunk.
    at: u64,
    chunk: Vec<u8>,
    /// Bytes of the chunk that have been read.
    read: usize,
}

impl Read for DocumentReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        const CHUNK_BYTES: u32 = 64 * 1024;
        if self.read == self.chunk.len() {
            self.chunk = self.document.read(self.at, CHUNK_BYTES);
            self.at += self.chunk.len() as u64;
            self.read = 0;
        }
        let rest = &self.chunk[self.read..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.read += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use opilio_plugin::testing::document;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> Content {
        content(&document("http://example.org/").bytes(bytes))
    }

    #[test]
    fn all_members_of_gzip_files_are_unpacked() {
        let mut packed = gzip(b"one ");
        packed.extend(gzip("zwölf".as_bytes()));
        let content = read(&packed);
        assert_eq!(content.text, "one zwölf");
        assert_eq!(content.problem, None);
        assert_eq!(read(b"plain").text, "plain");
    }

    #[test]
    fn text_before_the_damage_of_a_gzip_file_is_kept() {
        let packed = gzip("abcdefgh".repeat(1_000).as_bytes());
        let content = read(&packed[..packed.len() - 9]);
        assert!(content.text.starts_with("abcdefghabc"), "{}", content.text);
        assert!(content.problem.unwrap().contains("damaged"));
    }

    #[test]
    fn a_zip_bomb_is_unpacked_to_the_limit() {
        let bomb = gzip(&vec![b'a'; CONTENT_BYTES_MAX + 1]);
        assert!(bomb.len() < 100_000);
        let content = read(&bomb);
        assert_eq!(content.text.len(), CONTENT_BYTES_MAX);
        assert!(content.problem.unwrap().contains("not read"));
    }

    #[test]
    fn a_longer_document_is_read_to_the_limit() {
        let content = read(&vec![b'a'; CONTENT_BYTES_MAX + 1]);
        assert_eq!(content.text.len(), CONTENT_BYTES_MAX);
        assert!(content.problem.is_some());
    }
}

//! A document as plugins see it: a response, or a fragment of one. It is cheap to clone, decoded once, and shared by threads.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use encoding_rs::{Encoding, UTF_8};

use crate::kept_values::SharedKeptValues;
use crate::notes::Notes;
use crate::{Fragment, FragmentContent, Header, Span};

/// The parts of a document.
#[derive(Clone, Debug)]
pub struct DocumentParts {
    /// The URI from which it was fetched.
    pub uri: String,
    /// The base of its relative references; usually the URI.
    pub base: String,
    /// HTTP status, or a code of the glossary.
    pub status: i32,
    /// All headers in the order received.
    pub headers: Arc<[Header]>,
    /// Media type, lower-case, without parameters; `application/octet-stream` if the server sent none.
    pub media_type: String,
    /// The encoding of its text; `None` if it is not text. A byte order mark in the content overrules it.
    pub charset: Option<&'static Encoding>,
    /// The context of a fragment, such as `script`; `None` for a whole document.
    pub fragment: Option<String>,
    /// The content, transfer and content codings removed; empty at mid-fetch.
    pub content: Bytes,
    /// Notes that all documents of the visit share: clone them into each.
    pub notes: Notes,
    /// Kept values that all documents of the visit share.
    pub kept: SharedKeptValues,
}

/// A response, or a fragment of one. Clones are the same document.
#[derive(Clone, Debug)]
pub struct Document(Arc<DocumentInner>);

#[derive(Debug)]
struct DocumentInner {
    parts: DocumentParts,
    /// `parts.base` until an extractor reports another.
    base: Mutex<Option<String>>,
    text: OnceLock<Text>,
}

/// Text as UTF-8 bytes. If the content is UTF-8 already, both are the same memory.
#[derive(Debug)]
struct Text(Bytes);

impl Text {
    fn as_str(&self) -> &str {
        // SAFETY: a `Text` is made in two places of this file: from a `String`, and from bytes that decoding found to be UTF-8
        // already.
        unsafe { std::str::from_utf8_unchecked(&self.0) }
    }
}

/// Reason for which a reported fragment is invalid. Every answer of `extract` is checked, so this error occurs only for fragments
/// from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FragmentProblem {
    /// The span ends after the end of the content or text.
    #[error(
        "fragment span {offset}+{length} reaches past the {available} bytes of the document's {of}"
    )]
    PastEnd {
        /// First byte of the span.
        offset: u64,
        /// Bytes of the span.
        length: u64,
        /// Bytes available.
        available: u64,
        /// `content` or `text`.
        of: &'static str,
    },
    /// The span of a text begins or ends within a character.
    #[error("fragment span {offset}+{length} cuts a character of the document's text")]
    CutsCharacter {
        /// First byte of the span.
        offset: u64,
        /// Bytes of the span.
        length: u64,
    },
}

impl Document {
    /// Makes a document of these parts.
    pub fn new(parts: DocumentParts) -> Self {
        Self(Arc::new(DocumentInner {
            parts,
            base: Mutex::new(None),
            text: OnceLock::new(),
        }))
    }

    /// Makes a document of a fragment of this one. It shares the notes and, if possible, the memory. Its base is this document's
    /// at this time. If the fragment names its own base, resolve that and call [`set_base`](Self::set_base).
    pub fn fragment_of(&self, fragment: &Fragment) -> Result<Self, FragmentProblem> {
        let (content, charset) = match &fragment.content {
            FragmentContent::BytesAt(span) => {
                let content = &self.0.parts.content;
                (
                    content.slice(range(span, content.len(), "content")?),
                    self.0.parts.charset,
                )
            }
            FragmentContent::TextAt(span) => {
                (self.decoded().0.slice(self.text_range(span)?), Some(UTF_8))
            }
            FragmentContent::Text(text) => (Bytes::copy_from_slice(text.as_bytes()), Some(UTF_8)),
            FragmentContent::Bytes(bytes) => (Bytes::copy_from_slice(bytes), None),
        };
        Ok(Self::new(DocumentParts {
            uri: self.0.parts.uri.clone(),
            base: self.base(),
            status: self.0.parts.status,
            headers: Arc::new([]),
            media_type: fragment.media_type.clone(),
            charset,
            fragment: Some(fragment.context.clone()),
            content,
            notes: self.0.parts.notes.clone(),
            kept: self.0.parts.kept.clone(),
        }))
    }

    /// Checks a fragment of this document, without making the document.
    pub(crate) fn check_fragment(&self, fragment: &Fragment) -> Result<(), FragmentProblem> {
        match &fragment.content {
            FragmentContent::BytesAt(span) => {
                range(span, self.0.parts.content.len(), "content").map(drop)
            }
            FragmentContent::TextAt(span) => self.text_range(span).map(drop),
            FragmentContent::Text(_) | FragmentContent::Bytes(_) => Ok(()),
        }
    }

    /// The URI from which it was fetched.
    pub fn uri(&self) -> &str {
        &self.0.parts.uri
    }

    /// The base of relative references.
    pub fn base(&self) -> String {
        let base = self.0.base.lock().unwrap_or_else(PoisonError::into_inner);
        base.as_ref().unwrap_or(&self.0.parts.base).clone()
    }

    /// Sets the base of relative references from now on: an absolute URI.
    pub fn set_base(&self, base: String) {
        *self.0.base.lock().unwrap_or_else(PoisonError::into_inner) = Some(base);
    }

    /// HTTP status, or a code of the glossary.
    pub fn status(&self) -> i32 {
        self.0.parts.status
    }

    /// All headers in the order received; empty for a fragment.
    pub fn headers(&self) -> &[Header] {
        &self.0.parts.headers
    }

    /// The values of a header, whatever the case of its name.
    pub(crate) fn values_of(&self, name: &str) -> impl Iterator<Item = &String> {
        let headers = self.headers().iter();
        let named = headers.filter(move |header| header.name.eq_ignore_ascii_case(name));
        named.map(|header| &header.value)
    }

    /// Returns `length` bytes of the content from `offset` on, or fewer at its end.
    pub(crate) fn part(&self, offset: u64, length: u32) -> &[u8] {
        let content = self.content();
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(content.len());
        let end = start.saturating_add(length as usize).min(content.len());
        &content[start..end]
    }

    /// Media type, lower-case, without parameters.
    pub fn media_type(&self) -> &str {
        &self.0.parts.media_type
    }

    /// The encoding with which [`text`](Self::text) decodes: that of the byte order mark if the content has one, otherwise the
    /// declared one. `None` if the document is not text.
    pub fn charset(&self) -> Option<&'static Encoding> {
        let declared = self.0.parts.charset?;
        Some(Encoding::for_bom(&self.0.parts.content).map_or(declared, |(marked, _)| marked))
    }

    /// The context of a fragment; `None` for a whole document.
    pub fn fragment(&self) -> Option<&str> {
        self.0.parts.fragment.as_deref()
    }

    /// The content, transfer and content codings removed.
    pub fn content(&self) -> &Bytes {
        &self.0.parts.content
    }

    /// The whole content as text, without byte order mark. Undecodable bytes become U+FFFD. It is decoded at the first call and
    /// kept. A document without charset is read as UTF-8.
    pub fn text(&self) -> &str {
        self.decoded().as_str()
    }

    /// Notes and annotations of the visit.
    pub fn notes(&self) -> &Notes {
        &self.0.parts.notes
    }

    /// Values that plugins keep with the URI and its site.
    pub fn kept(&self) -> &SharedKeptValues {
        &self.0.parts.kept
    }

    fn text_range(&self, span: &Span) -> Result<std::ops::Range<usize>, FragmentProblem> {
        let text = self.text();
        let range = range(span, text.len(), "text")?;
        match text.get(range.clone()) {
            Some(_) => Ok(range),
            None => Err(FragmentProblem::CutsCharacter {
                offset: span.offset,
                length: span.length,
            }),
        }
    }

    fn decoded(&self) -> &Text {
        self.0.text.get_or_init(|| {
            let content = &self.0.parts.content;
            let charset = self.0.parts.charset.unwrap_or(UTF_8);
            match charset.decode(content).0 {
                // Borrowed means that the bytes are the text, after the mark if there is one. No encoding returns borrowed text
                // of its own, and `slice_ref` would panic if one did.
                std::borrow::Cow::Borrowed(text) => Text(content.slice_ref(text.as_bytes())),
                std::borrow::Cow::Owned(text) => Text(Bytes::from(text)),
            }
        })
    }
}

fn range(
    span: &Span,
    available: usize,
    of: &'static str,
) -> Result<std::ops::Range<usize>, FragmentProblem> {
    let Span { offset, length } = *span;
    let range = || {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        (end <= available).then_some(start..end)
    };
    range().ok_or(FragmentProblem::PastEnd {
        offset,
        length,
        available: available as u64,
        of,
    })
}

#[cfg(test)]
mod tests {
    use encoding_rs::{GBK, ISO_2022_JP, REPLACEMENT, UTF_16LE, WINDOWS_1252};

    use super::*;

    fn document(charset: Option<&'static Encoding>, content: &[u8]) -> Document {
        Document::new(DocumentParts {
            uri: "http://example.org/".into(),
            base: "http://example.org/".into(),
            status: 200,
            headers: Arc::new([]),
            media_type: "text/html".into(),
            charset,
            fragment: None,
            content: Bytes::copy_from_slice(content),
            notes: Notes::new(),
            kept: SharedKeptValues::default(),
        })
    }

    fn fragment(content: FragmentContent) -> Fragment {
        Fragment {
            media_type: "text/css".into(),
            content,
            context: "style".into(),
            base: None,
        }
    }

    #[test]
    fn a_byte_order_mark_overrules_the_charset() {
        #[track_caller]
        fn check(
            charset: Option<&'static Encoding>,
            content: &[u8],
            text: &str,
            label: Option<&str>,
        ) {
            let document = document(charset, content);
            assert_eq!(document.text(), text);
            assert_eq!(document.charset().map(Encoding::name), label);
        }
        check(Some(UTF_8), "grün".as_bytes(), "grün", Some("UTF-8"));
        check(Some(WINDOWS_1252), b"gr\xfcn", "grün", Some("windows-1252"));
        check(Some(UTF_8), b"gr\xfcn", "gr\u{fffd}n", Some("UTF-8"));
        check(
            Some(WINDOWS_1252),
            b"\xef\xbb\xbfgr\xc3\xbcn",
            "grün",
            Some("UTF-8"),
        );
        check(Some(UTF_8), b"\xff\xfea\0", "a", Some("UTF-16LE"));
        check(Some(UTF_16LE), b"a\0b\0", "ab", Some("UTF-16LE"));
        check(None, b"gr\xc3\xbcn\xff", "grün\u{fffd}", None);
        check(None, b"", "", None);
        check(Some(UTF_8), b"\xef\xbb\xbf", "", Some("UTF-8"));
        check(Some(REPLACEMENT), b"abc", "\u{fffd}", Some("replacement"));
        check(Some(ISO_2022_JP), b"abc", "abc", Some("ISO-2022-JP"));
        check(
            Some(ISO_2022_JP),
            b"abc\x1b$B$\"",
            "abc\u{3042}",
            Some("ISO-2022-JP"),
        );
        check(Some(GBK), b"abc", "abc", Some("GBK"));
    }

    #[test]
    fn utf_8_content_is_not_copied_to_become_text() {
        let document = document(Some(UTF_8), b"\xef\xbb\xbfabc");
        assert_eq!(document.text().as_ptr(), document.content()[3..].as_ptr());
    }

    #[test]
    fn later_fragments_inherit_the_base() {
        let document = document(Some(UTF_8), b"abc");
        let clone = document.clone();
        document.set_base("http://example.org/other/".into());
        assert_eq!(clone.base(), "http://example.org/other/");
        let inner = clone
            .fragment_of(&fragment(FragmentContent::Text("x".into())))
            .unwrap();
        assert_eq!(inner.base(), "http://example.org/other/");
        assert_eq!(inner.uri(), "http://example.org/");
        assert_eq!(inner.fragment(), Some("style"));
        assert_eq!(inner.media_type(), "text/css");
    }

    #[test]
    fn fragments_share_the_notes_of_the_visit() {
        let document = document(Some(UTF_8), b"abc");
        let inner = document
            .fragment_of(&fragment(FragmentContent::Bytes(vec![1])))
            .unwrap();
        inner
            .notes()
            .set("a".into(), "b".into(), &crate::Limits::default());
        assert_eq!(document.notes().get("a").as_deref(), Some("b"));
    }

    #[test]
    fn fragments_are_cut_from_bytes_or_text() {
        #[track_caller]
        fn check(content: FragmentContent, expected: Result<&str, FragmentProblem>) {
            let whole = document(Some(WINDOWS_1252), b"gr\xfcn!");
            let cut = whole.fragment_of(&fragment(content));
            assert_eq!(
                cut.as_ref().map(Document::text).map_err(Clone::clone),
                expected
            );
        }
        let at = |offset, length| Span { offset, length };
        check(FragmentContent::BytesAt(at(2, 2)), Ok("ün"));
        check(FragmentContent::TextAt(at(2, 3)), Ok("ün"));
        check(FragmentContent::BytesAt(at(0, 5)), Ok("grün!"));
        check(FragmentContent::BytesAt(at(5, 0)), Ok(""));
        check(FragmentContent::Text("ä".into()), Ok("ä"));
        check(FragmentContent::Bytes(b"a".to_vec()), Ok("a"));
        let past = |offset, length, available, of| {
            Err(FragmentProblem::PastEnd {
                offset,
                length,
                available,
                of,
            })
        };
        check(FragmentContent::BytesAt(at(2, 4)), past(2, 4, 5, "content"));
        check(FragmentContent::TextAt(at(2, 5)), past(2, 5, 6, "text"));
        check(
            FragmentContent::BytesAt(at(u64::MAX, 2)),
            past(u64::MAX, 2, 5, "content"),
        );
        check(
            FragmentContent::TextAt(at(1, u64::MAX)),
            past(1, u64::MAX, 6, "text"),
        );
        check(
            FragmentContent::TextAt(at(3, 1)),
            Err(FragmentProblem::CutsCharacter {
                offset: 3,
                length: 1,
            }),
        );
    }
}

//! Forms of a capture, and the capture that a revisit record refers to.

use opilio_frontier::WarcLocation;

/// The form in which a capture is archived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureForm {
    /// The whole response.
    Response,
    /// The payload is stored already, byte for byte.
    Identical(EarlierCapture),
    /// Another URI has brought the payload.
    Duplicate(EarlierCapture),
    /// The server said that nothing has changed (304).
    NotModified(EarlierCapture),
    /// A mid-fetch filter took the headers as proof that nothing has changed; the body was not fetched.
    HeadersUnchanged(EarlierCapture),
    /// The visit and its headers: the content is the same though the bytes differ.
    Note(EarlierCapture),
    /// Nothing.
    Nothing,
}

/// The capture that a revisit record refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierCapture {
    /// Its URI.
    pub uri: String,
    /// Its first record.
    pub at: WarcLocation,
}

/// Whether the body of a response was fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// The body was fetched, as far as it arrived.
    Fetched,
    /// The server answered 304: it sent none.
    NotModified,
    /// A mid-fetch filter took the headers as proof that nothing has changed.
    LeftAlone,
}

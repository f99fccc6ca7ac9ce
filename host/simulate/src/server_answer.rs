//! The answer of a simulated server: the web makes it, and the crawl receives it.

use bytes::Bytes;

/// The answer of a server.
#[derive(Clone, Debug)]
pub enum ServerAnswer {
    /// A response.
    Response {
        /// Status, 100 to 999.
        status: u16,
        /// Names and values.
        headers: Vec<(String, String)>,
        /// The content, as plugins see it.
        content: Bytes,
        /// The nominal size in bytes: the stand-in for a page may be shorter than pages are.
        size: u64,
    },
    /// No response: the connection could not be made.
    Failure,
}

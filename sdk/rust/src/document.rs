//! What both kinds of document offer on top of the contract: the host's in a component, the double natively.

use crate::Document;

/// Largest single read of [`Document::content`]; keeps one host call's copy bounded.
const READ_BYTES_MAX: u32 = 8 * 1024 * 1024;

impl Document {
    /// The whole content, transfer and content codings removed.
    #[must_use]
    pub fn content(&self) -> Vec<u8> {
        let mut content = self.read(0, READ_BYTES_MAX);
        while (content.len() as u64) < self.length() {
            let more = self.read(content.len() as u64, READ_BYTES_MAX);
            if more.is_empty() {
                break;
            }
            content.extend_from_slice(&more);
        }
        content
    }
}

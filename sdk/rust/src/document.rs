//! Methods that the contract does not have, for documents of the host and for test doubles.

use crate::Document;

/// Largest single read of [`Document::content`]; it limits the copy of one host call.
const READ_BYTES_MAX: u32 = 8 * 1024 * 1024;

impl Document {
    /// The whole content, without transfer and content codings.
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

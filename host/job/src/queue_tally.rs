//! Work that a process has done for each queue.

/// Work that one queue has done in this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueTally {
    /// Visits finished.
    pub uris: u64,
    /// Content received, in bytes.
    pub bytes: u64,
    /// Fetch status of the last attempt.
    pub last_status: i32,
    /// Last error; empty after a response.
    pub last_error: String,
}

impl QueueTally {
    /// Returns a description of the last attempt: its error, or its status.
    pub fn last_attempt(&self) -> String {
        match self.last_error.as_str() {
            "" => opilio_frontier::status_words(self.last_status),
            error => error.to_owned(),
        }
    }
}

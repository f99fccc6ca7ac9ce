//! A queue as precedence plugins see it. The host fills it in; plugins only read.

use jiff::Timestamp;

/// A queue that is to be ranked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its name, such as `org,example,www,`.
    pub name: String,
    /// URIs that wait in it.
    pub queued: u64,
    /// Completed fetches that were successes; a revisit is not a new one.
    pub succeeded: u64,
    /// Completed fetches that failed.
    pub failed: u64,
    /// Bytes fetched.
    pub bytes: u64,
    /// Precedence of its best waiting URI; none where none waits.
    pub best: Option<u8>,
    /// The precedence that the profile gives it.
    pub base: u8,
    /// The time at which this is asked; the only clock a plugin has.
    pub now: Timestamp,
}

//! A queue as precedence plugins see it. The host fills it in; plugins only read it.

use jiff::Timestamp;

/// A queue that a plugin ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its name, such as `org,example,www,`.
    pub name: String,
    /// URIs that wait in it.
    pub queued: u64,
    /// Successful fetches; a revisit is not counted again.
    pub succeeded: u64,
    /// Failed fetches.
    pub failed: u64,
    /// Bytes fetched.
    pub bytes: u64,
    /// Precedence of its best waiting URI; `None` if no URI waits.
    pub best: Option<u8>,
    /// Its precedence in the profile.
    pub base: u8,
    /// The time of the call, which is the only clock of a plugin.
    pub now: Timestamp,
}

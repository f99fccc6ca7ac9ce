//! What passes between a rehearsal and whoever plays the servers.

use std::time::Duration;

use bytes::Bytes;
use opilio_frontier::ContentState;

use opilio_visit::found::OddWait;

/// What is asked of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// `If-None-Match`, where the request is conditional and the server gave an entity tag.
    pub if_none_match: Option<String>,
    /// `If-Modified-Since`, likewise.
    pub if_modified_since: Option<String>,
}

/// Whether a URI is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leave {
    /// It is: hand the answer to [`Rehearsal::finish`].
    Ask(Asked),
    /// It was not to be fetched, or waits for its server's robots.txt: the frontier has it back.
    Settled,
}

/// What a server answers.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A response.
    Response {
        /// 100 to 999.
        status: u16,
        /// Names and values.
        headers: Vec<(String, String)>,
        /// What plugins see.
        content: Bytes,
        /// What it counts as, in bytes: what stands for a page may be shorter than pages are.
        size: u64,
    },
    /// No response: the connection could not be made.
    Failure,
}

/// What a finished visit came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Came {
    /// What the crawl takes the content for.
    pub state: ContentState,
    /// A body came.
    pub body: bool,
    /// The body is kept in full.
    pub archived: bool,
    /// A wait evaluator answered.
    pub answered: bool,
    /// What its answer was corrected for.
    pub odd: Vec<OddWait>,
    /// Until the next visit.
    pub wait: Option<Duration>,
    /// What kind of end it was.
    pub end: Ended,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With a response that counts.
    Success,
    /// A robots.txt.
    Robots,
    /// It is tried again.
    Retry,
    /// Nothing came of it: it failed, or a filter refused it.
    Nothing,
}

impl Came {
    pub(super) fn nothing(end: Ended) -> Self {
        Self {
            state: ContentState::Unknown,
            body: false,
            archived: false,
            answered: false,
            odd: Vec::new(),
            wait: None,
            end,
        }
    }
}

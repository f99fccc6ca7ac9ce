//! The compact form of a completed visit in a URI's record. A crawl keeps up to twenty of them for each of many million URIs.
//!
//! ```text
//! at      status  state, what follows it  size        digest   wait
//! varint  varint  a byte                  option      5 bytes  varint, seconds
//! ```
//!
//! The digest is present only if the visit brought a version, the wait only if one was decided.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ContentState;
use crate::instant::{self, Millis};

/// Bytes of a payload digest that a past visit keeps: eight characters as WARC writes them. They are enough to tell the versions
/// of one URI apart, and to find them in a log.
pub const SHORT_DIGEST_BYTES: usize = 5;

const WITH_DIGEST: u8 = 4;
const WITH_WAIT: u8 = 8;

/// Most fields, as serde counts them.
const FIELDS: usize = 6;

/// A completed visit of the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastVisit {
    /// Time at which it was finished.
    pub at: Timestamp,
    /// HTTP status, or a code of the glossary.
    pub status: i32,
    /// Content state; unknown for a failure.
    pub state: ContentState,
    /// Size of the content in bytes; `None` if no body was fetched.
    pub size: Option<u64>,
    /// The first bytes of the payload digest of its version; `None` if it brought no version that was kept.
    pub digest: Option<[u8; SHORT_DIGEST_BYTES]>,
    /// The wait that was decided after it, in whole seconds, rounded up. `None` if there is no next visit.
    pub wait: Option<Duration>,
}

impl PastVisit {
    /// The part of a payload digest that a past visit keeps.
    #[must_use]
    pub fn short_digest(digest: [u8; 20]) -> [u8; SHORT_DIGEST_BYTES] {
        let [a, b, c, d, e, ..] = digest;
        [a, b, c, d, e]
    }

    /// Records the wait that was decided after it.
    pub fn followed_by(&mut self, wait: Option<Duration>) {
        self.wait = wait.map(|wait| Duration::from_secs(whole_seconds(wait)));
    }
}

fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs()
        .saturating_add((wait.subsec_nanos() > 0).into())
}

impl Serialize for PastVisit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut marks = match self.state {
            ContentState::New => 0,
            ContentState::Changed => 1,
            ContentState::Unchanged => 2,
            ContentState::Unknown => 3,
        };
        marks |= self.digest.map_or(0, |_| WITH_DIGEST);
        marks |= self.wait.map_or(0, |_| WITH_WAIT);
        let mut fields = serializer.serialize_tuple(FIELDS)?;
        fields.serialize_element(&instant::floor(self.at))?;
        fields.serialize_element(&self.status)?;
        fields.serialize_element(&marks)?;
        fields.serialize_element(&self.size)?;
        if let Some(digest) = &self.digest {
            fields.serialize_element(digest)?;
        }
        if let Some(wait) = self.wait {
            fields.serialize_element(&whole_seconds(wait))?;
        }
        fields.end()
    }
}

impl<'de> Deserialize<'de> for PastVisit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_tuple(FIELDS, Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = PastVisit;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a past visit")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut fields: A) -> Result<PastVisit, A::Error> {
        let at: Millis = next(&mut fields)?;
        let status = next(&mut fields)?;
        let marks: u8 = next(&mut fields)?;
        let state = match marks & !(WITH_DIGEST | WITH_WAIT) {
            0 => ContentState::New,
            1 => ContentState::Changed,
            2 => ContentState::Unchanged,
            3 => ContentState::Unknown,
            _ => return Err(Error::custom("invalid content state")),
        };
        Ok(PastVisit {
            at: instant::timestamp(at),
            status,
            state,
            size: next(&mut fields)?,
            digest: match marks & WITH_DIGEST {
                0 => None,
                _ => Some(next(&mut fields)?),
            },
            wait: match marks & WITH_WAIT {
                0 => None,
                _ => Some(Duration::from_secs(next(&mut fields)?)),
            },
        })
    }
}

fn next<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(fields: &mut A) -> Result<T, A::Error> {
    fields
        .next_element()?
        .ok_or_else(|| Error::custom("past visit is incomplete"))
}

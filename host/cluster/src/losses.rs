//! Messages that JetStream acknowledged and then lost, for instance in a power failure with the default `sync_interval`. A stream
//! loses its last messages, and reuses their numbers. So a number alone does not identify a message.
//!
//! If a message is still in its place, no earlier message was lost, because a loss always affects the end of the stream.

use async_nats::jetstream::stream::{RawMessageErrorKind, Stream};

use crate::error::ClusterError;

/// A message of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MessagePlace {
    /// Number of the message in the stream; 0 for none.
    pub sequence: u64,
    /// Time at which NATS stored the message, in nanoseconds since 1970 by the clock of NATS. It distinguishes messages with the
    /// same number.
    pub stored_ns: i64,
}

/// State of a message that a node has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceState {
    /// The message is in its stream. So are all earlier ones, except removed ones.
    Kept,
    /// The message is missing: it was removed, or it was lost and another one with its number was removed. Its number must not be
    /// relied on.
    Removed,
    /// NATS has lost the message.
    Lost,
}

/// The message that has a number at present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// No message has the number: it was removed, or lost.
    Missing,
    /// Time at which the message was stored, and its content.
    Message(i64, bytes::Bytes),
}

impl MessagePlace {
    /// Returns `true` if the message is the other one, or is before it by number and time.
    #[must_use]
    pub fn is_at_or_before(self, other: MessagePlace) -> bool {
        self.sequence <= other.sequence && self.stored_ns <= other.stored_ns
    }
}

/// Reads the message with a number. `kind` describes the messages in errors.
pub(crate) async fn find(
    stream: &Stream<()>,
    sequence: u64,
    kind: &'static str,
) -> Result<Found, ClusterError> {
    match stream.get_raw_message(sequence).await {
        Ok(message) => {
            let stored = nanoseconds(message.time.unix_timestamp_nanos());
            Ok(Found::Message(stored, message.payload))
        }
        Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(Found::Missing),
        Err(error) => Err(ClusterError::of_request(kind, error)),
    }
}

/// Returns `true` if the stream has this message in its place.
pub(crate) async fn has(
    stream: &Stream<()>,
    place: MessagePlace,
    kind: &'static str,
) -> Result<bool, ClusterError> {
    let found = find(stream, place.sequence, kind).await?;
    Ok(matches!(found, Found::Message(stored, _) if stored == place.stored_ns))
}

/// Converts a time of NATS to nanoseconds since 1970.
pub(crate) fn nanoseconds(nanoseconds: i128) -> i64 {
    i64::try_from(nanoseconds).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_with_a_reused_number_is_behind_the_lost_one() {
        let place = |sequence, stored_ns| MessagePlace {
            sequence,
            stored_ns,
        };
        let taken = place(1_000, 50);
        assert!(taken.is_at_or_before(taken));
        assert!(place(900, 40).is_at_or_before(taken));
        assert!(!place(1_001, 60).is_at_or_before(taken));
        assert!(!place(901, 60).is_at_or_before(taken));
    }
}

//! Durations as a number of seconds in JSON, for fields with `#[serde(with = "seconds")]`. Binary formats keep them exactly.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Serialises a duration.
///
/// # Errors
/// The serialiser fails.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    match serializer.is_human_readable() {
        true => duration.as_secs_f64().serialize(serializer),
        false => duration.serialize(serializer),
    }
}

/// Deserialises a duration.
///
/// # Errors
/// The deserialiser fails, or the number is not a duration.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    if !deserializer.is_human_readable() {
        return Duration::deserialize(deserializer);
    }
    let seconds = f64::deserialize(deserializer)?;
    Duration::try_from_secs_f64(seconds).map_err(D::Error::custom)
}

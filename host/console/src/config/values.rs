//! Sizes, durations and addresses as they are written in `opilio.toml`.

use std::fmt;
use std::str::FromStr as _;
use std::time::Duration;

use opilio_profile::{ByteSize, parse_duration, traces_address};
use serde::{Deserialize as _, Deserializer, de};

/// Parses a size; `"none"` means no limit.
pub(super) fn size<'d, D: Deserializer<'d>>(from: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(from)?;
    if text == "none" {
        return Ok(None);
    }
    match ByteSize::from_str(&text) {
        Ok(size) => Ok(Some(size.bytes())),
        Err(_) => Err(unit(&text, "a size such as \"10MiB\", or \"none\"")),
    }
}

/// Parses the address of a collector into the address for traces.
pub(super) fn collector<'d, D: Deserializer<'d>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    match traces_address(&text) {
        Ok(posted) => Ok(Some(posted)),
        Err(problem) => Err(de::Error::custom(format!(
            "{problem}: {text:?}; an example is \"http://127.0.0.1:4318\""
        ))),
    }
}

/// Parses a duration.
pub(super) fn duration<'d, D: Deserializer<'d>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    parse_duration(&text).map_err(|_| unit(&text, "a duration such as \"10s\""))
}

fn unit<E: de::Error>(text: &str, wanted: impl fmt::Display) -> E {
    E::custom(format!("{text:?} is not {wanted}"))
}

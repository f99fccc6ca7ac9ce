//! Sizes in bytes, as settings write them.

use std::borrow::Cow;
use std::fmt;

use opilio_plugin::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of bytes: plain, or with a unit (`"10MiB"`, `"1.5 GB"`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

/// Units, longest first, with their size.
const UNITS: [(&str, u64); 10] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

impl ByteSize {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let unit = UNITS.iter().find(|(unit, _)| text.ends_with(unit));
        let (number, factor) = match unit {
            Some((unit, factor)) => (text.strip_suffix(unit)?.trim_end(), *factor),
            None => (text, 1),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 6 {
            return None;
        }
        let mut bytes = whole.parse::<u64>().ok()?.checked_mul(factor)?;
        if !fraction.is_empty() {
            let scale = 10_u64.pow(u32::try_from(fraction.len()).ok()?);
            bytes =
                bytes.checked_add(fraction.parse::<u64>().ok()?.checked_mul(factor)? / scale)?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binary = UNITS[..4].iter().rev();
        let mut whole =
            binary.filter(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor));
        match whole.next() {
            Some((unit, factor)) => write!(f, "{}{unit}", self.0 / factor),
            None => write!(f, "{}B", self.0),
        }
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SizeVisitor;

        impl Visitor<'_> for SizeVisitor {
            type Value = ByteSize;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as \"10MiB\", or a number of bytes")
            }

            fn visit_u64<E: Error>(self, bytes: u64) -> Result<ByteSize, E> {
                Ok(ByteSize(bytes))
            }

            fn visit_i64<E: Error>(self, bytes: i64) -> Result<ByteSize, E> {
                let bytes = u64::try_from(bytes);
                bytes
                    .map(ByteSize)
                    .map_err(|_| E::custom("a size must not be negative"))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ByteSize, E> {
                ByteSize::parse(text).ok_or_else(|| {
                    E::custom(format!(
                        "`{text}` is not a size; write it like \"10MiB\", \"500kB\" or as a number of bytes"
                    ))
                })
            }
        }

        deserializer.deserialize_any(SizeVisitor)
    }
}

impl JsonSchema for ByteSize {
    fn schema_name() -> Cow<'static, str> {
        "ByteSize".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "integer"],
            "minimum": 0,
            "pattern": r"^\s*[0-9]+(\.[0-9]{1,6})?\s*([KMGT]iB|[kKMGT]B|B)?\s*$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_units_are_parsed() {
        for (text, bytes) in [
            ("0", 0),
            ("10MiB", 10 << 20),
            ("1.5 kB", 1500),
            ("20B", 20),
            (" 2GB ", 2_000_000_000),
        ] {
            assert_eq!(ByteSize::parse(text), Some(ByteSize(bytes)), "{text}");
        }
        for text in ["", "MiB", "-1", "1,5MB", "ten", "99999999999TiB", "1.MiB1"] {
            assert_eq!(ByteSize::parse(text), None, "{text}");
        }
    }

    #[test]
    fn displayed_sizes_are_parsed_to_the_same_size() {
        for bytes in [0, 1, 1023, 1024, 1 << 20, (1 << 20) + 1, 3 << 30] {
            let text = ByteSize(bytes).to_string();
            assert_eq!(ByteSize::parse(&text), Some(ByteSize(bytes)), "{text}");
        }
    }
}

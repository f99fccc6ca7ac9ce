//! Counts that may be without limit.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A count as it is written in the file, or `"none"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CountWritten {
    /// A text: only `"none"` is valid.
    Text(String),
    /// A whole number.
    Number(i64),
}

impl From<&str> for CountWritten {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<i64> for CountWritten {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl JsonSchema for CountWritten {
    fn schema_name() -> Cow<'static, str> {
        "Count".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A whole number; 0 and \"none\" mean no limit.",
            "type": ["integer", "string"],
            "minimum": 0,
            "pattern": "^none$",
            "examples": [1000],
        })
    }
}

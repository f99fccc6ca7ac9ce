//! Other files that are written like profiles, such as scenarios of a simulation: TOML held against the JSON Schema of a type,
//! every fault at its place, and faults of meaning added by whoever knows it.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::document::{Document, Spot};
use crate::fault::{Fault, Faults, Level};
use crate::shape::Shape;

/// A TOML text that has been read, for faults found later.
#[derive(Debug, Clone)]
pub struct Written {
    document: Document,
}

impl Written {
    /// Reads a text as a `T`. `file` is what faults call it.
    ///
    /// # Errors
    /// Every fault of syntax and shape at once: unknown keys with the nearest known one, kinds of values, what is missing.
    pub fn read<T: JsonSchema + DeserializeOwned>(
        file: &str,
        text: &str,
    ) -> Result<(Self, T), Faults> {
        let (document, mut faults) = Document::parse(file, text);
        let schema = schemars::schema_for!(T).to_value();
        let shape = Shape::new(&schema).map_err(|problem| {
            Faults::from(document.fault("", Spot::Key, Level::Error, problem))
        })?;
        // What stands on a line that is no TOML is a guess.
        if faults.is_empty() {
            faults.append(shape.check(&document, "", &mut document.value.clone()));
        }
        if !faults.is_empty() {
            faults.sort();
            return Err(faults);
        }
        let read = serde_json::from_value(document.value.clone());
        let value = read.map_err(|problem| {
            let problem = format!("cannot be used: {problem}");
            Faults::from(document.fault("", Spot::Key, Level::Error, problem))
        })?;
        Ok((Self { document }, value))
    }

    /// An error at what the JSON Pointer names, or at the nearest thing above it that is there.
    #[must_use]
    pub fn fault(&self, pointer: &str, problem: String, suggestion: Option<String>) -> Fault {
        Fault {
            suggestion,
            ..(self.document).fault(pointer, Spot::Value, Level::Error, problem)
        }
    }
}

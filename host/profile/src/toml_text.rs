//! Other files in the form of profiles, such as scenarios of a simulation. They are TOML, checked against the JSON Schema of a
//! type, with every error at its place. The caller adds errors of meaning.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::diagnostic::{Diagnostic, Diagnostics, Level};
use crate::document::{Document, KeyOrValue};
use crate::schema_check::Shape;

/// A TOML text that has been read, for errors found later.
#[derive(Debug, Clone)]
pub struct TomlText {
    document: Document,
}

impl TomlText {
    /// Reads a text as a `T`. `file` is its name in errors.
    ///
    /// # Errors
    /// All errors of syntax and shape at once: unknown keys with the nearest known one, wrong kinds of values, missing keys.
    pub fn read<T: JsonSchema + DeserializeOwned>(
        file: &str,
        text: &str,
    ) -> Result<(Self, T), Diagnostics> {
        let (document, mut faults) = Document::parse(file, text);
        let schema = schemars::schema_for!(T).to_value();
        let shape = Shape::new(&schema).map_err(|problem| {
            Diagnostics::from(document.fault("", KeyOrValue::Key, Level::Error, problem))
        })?;
        // Values on a line that is not TOML are guesses.
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
            Diagnostics::from(document.fault("", KeyOrValue::Key, Level::Error, problem))
        })?;
        Ok((Self { document }, value))
    }

    /// An error at the value that the JSON Pointer names, or at its nearest existing parent.
    #[must_use]
    pub fn fault(&self, pointer: &str, problem: String, suggestion: Option<String>) -> Diagnostic {
        Diagnostic {
            suggestion,
            ..(self.document).fault(pointer, KeyOrValue::Value, Level::Error, problem)
        }
    }
}

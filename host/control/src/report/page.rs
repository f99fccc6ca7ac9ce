//! Output of a report: lines of text under column names, or objects.

use serde_json::{Map, Value};

use super::super::answer::{Respond, listened};
use super::super::{CommandResponse, ControlError};

/// Bytes of text that are collected before they are sent.
const PIECE: usize = 16 * 1024;

/// Column: its name in the text and its name in objects. A column without a text name appears in objects only.
pub(super) type Column = (&'static str, &'static str);

/// Form of a report.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Objects,
    /// Text and objects at the same time, distinguished by the type of the answer.
    Both,
}

/// Report that is being sent to the client.
pub(super) struct Page<'s> {
    form: Form,
    text: String,
    respond: Respond<'s>,
}

impl<'s> Page<'s> {
    pub(super) fn new(form: Form, respond: Respond<'s>) -> Page<'s> {
        Page {
            form,
            text: String::new(),
            respond,
        }
    }

    /// Writes single figures, one on each line. An empty label writes an empty line.
    pub(super) fn facts(&mut self, facts: &[(&str, &str, Value)]) -> Result<(), ControlError> {
        if self.has_text() {
            for (label, _, value) in facts {
                match label.is_empty() {
                    true => self.text.push('\n'),
                    false => self.text.push_str(&format!("{label}: {}\n", plain(value))),
                }
            }
            self.send_text(PIECE)?;
        }
        if !self.has_objects() {
            return Ok(());
        }
        let named = facts.iter().filter(|(_, name, _)| !name.is_empty());
        let facts: Map<String, Value> = named
            .map(|(_, name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        let facts = Value::Object(facts);
        listened((self.respond)(CommandResponse::Facts { facts }))
    }

    /// Writes the names of the columns that follow.
    pub(super) fn head(&mut self, columns: &[Column]) {
        if self.has_text() {
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            let names: Vec<String> = columns
                .iter()
                .filter(|(name, _)| !name.is_empty())
                .map(|(name, _)| format!("[{name}]"))
                .collect();
            self.text.push_str(&names.join(" "));
            self.text.push('\n');
        }
    }

    /// Writes a row under these columns.
    pub(super) fn row(
        &mut self,
        columns: &[Column],
        values: Vec<Value>,
    ) -> Result<(), ControlError> {
        if self.has_text() {
            let shown = columns.iter().zip(&values);
            let shown = shown.filter(|((name, _), _)| !name.is_empty());
            let cells: Vec<String> = shown.map(|(_, value)| cell(value)).collect();
            self.text.push_str(&cells.join(" "));
            self.text.push('\n');
            self.send_text(PIECE)?;
        }
        if !self.has_objects() {
            return Ok(());
        }
        let names = columns.iter().map(|(_, name)| (*name).to_owned());
        let row = Value::Object(names.zip(values).collect());
        listened((self.respond)(CommandResponse::Row { row }))
    }

    /// Writes a row with its own names. It appears in objects only.
    pub(super) fn object(&mut self, row: Map<String, Value>) -> Result<(), ControlError> {
        if !self.has_objects() {
            return Ok(());
        }
        let row = Value::Object(row);
        listened((self.respond)(CommandResponse::Row { row }))
    }

    /// Writes text as it is. It appears in the text form only.
    pub(super) fn words(&mut self, words: &str) -> Result<(), ControlError> {
        if self.has_text() {
            self.text.push_str(words);
        }
        self.send_text(PIECE)
    }

    fn has_text(&self) -> bool {
        self.form != Form::Objects
    }

    fn has_objects(&self) -> bool {
        self.form != Form::Text
    }

    /// Sends the remaining text.
    pub(super) fn finish(mut self) -> Result<(), ControlError> {
        self.send_text(1)
    }

    fn send_text(&mut self, least: usize) -> Result<(), ControlError> {
        if self.text.len() < least {
            return Ok(());
        }
        let text = std::mem::take(&mut self.text);
        listened((self.respond)(CommandResponse::Text { text }))
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.replace(['\n', '\r'], " "),
        other => other.to_string(),
    }
}

/// Formats a value so that it stays within its column. `true` and `false` are about seeds, in Heritrix' words.
fn cell(value: &Value) -> String {
    let text = match value {
        Value::Bool(true) => "CRAWLED".to_owned(),
        Value::Bool(false) => "NOTCRAWLED".to_owned(),
        other => plain(other),
    };
    match text.replace(char::is_whitespace, "_") {
        empty if empty.is_empty() => "-".to_owned(),
        text => text,
    }
}

//! What a report is written on: lines of text under the names of their columns, or objects.

use serde_json::{Map, Value};

use super::super::perform::{Say, listened};
use super::super::{Answer, ControlError};

/// Text that is handed on at once, in bytes.
const PIECE: usize = 16 * 1024;

/// A column: what it is called in the text and in objects. What is called nothing in the text stands in objects alone.
pub(super) type Column = (&'static str, &'static str);

/// In which form a report is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Objects,
    /// Both at once, told from each other by what the answers are.
    Both,
}

/// A report on its way to whoever asked.
pub(super) struct Page<'s> {
    form: Form,
    text: String,
    say: Say<'s>,
}

impl<'s> Page<'s> {
    pub(super) fn new(form: Form, say: Say<'s>) -> Page<'s> {
        Page {
            form,
            text: String::new(),
            say,
        }
    }

    /// Single figures, a line each; a name alone is an empty line.
    pub(super) fn facts(&mut self, facts: &[(&str, &str, Value)]) -> Result<(), ControlError> {
        if self.has_text() {
            for (label, _, value) in facts {
                match label.is_empty() {
                    true => self.text.push('\n'),
                    false => self.text.push_str(&format!("{label}: {}\n", plain(value))),
                }
            }
            self.hand_on(PIECE)?;
        }
        if !self.has_objects() {
            return Ok(());
        }
        let named = facts.iter().filter(|(_, name, _)| !name.is_empty());
        let facts: Map<String, Value> = named
            .map(|(_, name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        let facts = Value::Object(facts);
        listened((self.say)(Answer::Facts { facts }))
    }

    /// The names of the columns that follow.
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

    /// A row under these columns.
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
            self.hand_on(PIECE)?;
        }
        if !self.has_objects() {
            return Ok(());
        }
        let names = columns.iter().map(|(_, name)| (*name).to_owned());
        let row = Value::Object(names.zip(values).collect());
        listened((self.say)(Answer::Row { row }))
    }

    /// A row that has names of its own; no text has it.
    pub(super) fn object(&mut self, row: Map<String, Value>) -> Result<(), ControlError> {
        if !self.has_objects() {
            return Ok(());
        }
        let row = Value::Object(row);
        listened((self.say)(Answer::Row { row }))
    }

    /// Words as they are, in text alone.
    pub(super) fn words(&mut self, words: &str) -> Result<(), ControlError> {
        if self.has_text() {
            self.text.push_str(words);
        }
        self.hand_on(PIECE)
    }

    fn has_text(&self) -> bool {
        self.form != Form::Objects
    }

    fn has_objects(&self) -> bool {
        self.form != Form::Text
    }

    /// Hands on what is left.
    pub(super) fn finish(mut self) -> Result<(), ControlError> {
        self.hand_on(1)
    }

    fn hand_on(&mut self, least: usize) -> Result<(), ControlError> {
        if self.text.len() < least {
            return Ok(());
        }
        let text = std::mem::take(&mut self.text);
        listened((self.say)(Answer::Text { text }))
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.replace(['\n', '\r'], " "),
        other => other.to_string(),
    }
}

/// Keeps a value within its column.
fn cell(value: &Value) -> String {
    match plain(value).replace(char::is_whitespace, "_") {
        empty if empty.is_empty() => "-".to_owned(),
        text => text,
    }
}

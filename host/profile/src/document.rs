//! A TOML text as a JSON value, with the place of every key and value.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Diagnostics, FAULTS_MAX, Level, TextPosition};

/// A profile's text, its value, and the places of its parts.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    /// The file as the caller named it.
    pub(crate) file: String,
    /// The text, verbatim.
    pub(crate) text: String,
    /// The value; always an object.
    pub(crate) value: Value,
    places: HashMap<String, Spans>,
    /// File and text of every layer, if there are several.
    sources: Vec<(String, String)>,
    /// Index of the first source that is a change of a job; `None` if the profile itself has not been laid over the others.
    changes: Option<usize>,
}

/// The value of a TOML text. `None` if the text is not TOML, or is nested deeper than any profile; the reader of the profile
/// reports that. Unlike the bare parser, it is safe for any text from anybody.
#[must_use]
pub fn toml_value(text: &str) -> Option<Value> {
    let (document, faults) = Document::parse("", text);
    faults.is_empty().then_some(document.value)
}

/// The value of a TOML text. If the text has errors, it is the value of its other parts, as the checker of profiles reads them.
#[must_use]
pub fn toml_parts(text: &str) -> Value {
    Document::parse("", text).0.value
}

/// The place of a value, in bytes of the text.
#[derive(Debug, Clone)]
struct Spans {
    /// Index of its source.
    source: usize,
    /// Its key; `None` for items of arrays.
    key: Option<Range<usize>>,
    value: Range<usize>,
}

/// The part of a setting that an error is about: its key or its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyOrValue {
    /// The key: the setting is not allowed here, or lacks something.
    Key,
    /// The value.
    Value,
}

impl Document {
    /// Parses TOML, and continues after syntax errors as far as possible.
    pub(crate) fn parse(file: &str, text: &str) -> (Self, Diagnostics) {
        let parsed = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new()
                .name("profile".to_owned())
                .stack_size(PARSE_STACK_BYTES);
            let parse = thread.spawn_scoped(scope, || Self::parse_here(file, text));
            parse.map(|parse| {
                parse
                    .join()
                    .map_err(|_| "the TOML parser has panicked".to_owned())
            })
        });
        match parsed {
            Ok(Ok(parsed)) => parsed,
            Ok(Err(problem)) => Self::unparsed(file, text, problem),
            Err(problem) => Self::unparsed(file, text, format!("cannot be parsed: {problem}")),
        }
    }

    fn parse_here(file: &str, text: &str) -> (Self, Diagnostics) {
        let mut document = Self::empty(file, text);
        let mut faults = Diagnostics::default();
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors.iter().take(FAULTS_MAX) {
            faults.push(document.syntax_fault(error));
        }
        let object = document.object(table.get_ref(), "", &mut faults);
        document.value = Value::Object(object);
        (document, faults)
    }

    fn unparsed(file: &str, text: &str, problem: String) -> (Self, Diagnostics) {
        let document = Self::empty(file, text);
        let fault = document.fault("", KeyOrValue::Key, Level::Error, problem);
        (document, fault.into())
    }

    fn empty(file: &str, text: &str) -> Self {
        Self {
            file: file.to_owned(),
            text: text.to_owned(),
            value: Value::Object(Map::new()),
            places: HashMap::new(),
            sources: vec![(file.to_owned(), text.to_owned())],
            changes: None,
        }
    }

    /// Returns a document without values, over which this one can be laid.
    pub(crate) fn without_values(&self) -> Self {
        Self {
            sources: Vec::new(),
            ..Self::empty(&self.file, &self.text)
        }
    }

    pub(crate) fn sources_len(&self) -> usize {
        self.sources.len()
    }

    /// Shifts its source numbers, because other sources come first.
    pub(crate) fn shift_sources(&mut self, by: usize) {
        if by > 0 {
            for spans in self.places.values_mut() {
                spans.source += by;
            }
        }
    }

    /// Adds the sources of a document after its own.
    pub(crate) fn take_sources(&mut self, mut upper: Self) {
        self.sources.append(&mut upper.sources);
    }

    /// Makes the last source the profile itself. Later ones are changes of a job.
    pub(crate) fn make_main(&mut self) {
        self.changes = Some(self.sources.len());
        if let Some((file, text)) = self.sources.last() {
            self.file.clone_from(file);
            self.text.clone_from(text);
        }
    }

    /// Copies the place of a value from another document.
    pub(crate) fn copy_place(&mut self, other: &Self, from: &str, to: &str) {
        if let Some(spans) = other.places.get(from) {
            self.places.insert(to.to_owned(), spans.clone());
        }
    }

    /// Copies the places of a value, and of everything within it, from another document.
    pub(crate) fn copy_places(&mut self, other: &Self, from: &str, to: &str, value: &Value) {
        self.copy_place(other, from, to);
        each_within(value, |key| {
            self.copy_places(other, &child(from, key.0), &child(to, key.0), key.1);
        });
    }

    /// Forgets the places of a value and of everything within it.
    pub(crate) fn forget_places(&mut self, pointer: &str, value: &Value) {
        self.places.remove(pointer);
        each_within(value, |key| {
            self.forget_places(&child(pointer, key.0), key.1)
        });
    }

    /// An error of this document at the value that the pointer names, or at its nearest existing parent.
    pub(crate) fn fault(
        &self,
        pointer: &str,
        part: KeyOrValue,
        level: Level,
        problem: String,
    ) -> Diagnostic {
        let (source, span) = self.span(pointer, part);
        let own = (&self.file, &self.text);
        let (file, text) = source
            .and_then(|source| self.sources.get(source))
            .map_or(own, |(file, text)| (file, text));
        Diagnostic {
            file: file.clone(),
            place: Some(TextPosition::of(text, span)),
            pointer: pointer.to_owned(),
            level,
            problem,
            suggestion: None,
        }
    }

    /// Returns `true` if there is a value at this pointer.
    pub(crate) fn has(&self, pointer: &str) -> bool {
        self.places.contains_key(pointer)
    }

    /// Returns `true` if a change of a job has the value at this pointer, or its nearest existing parent.
    pub(crate) fn is_in_change(&self, pointer: &str) -> bool {
        let (source, _) = self.span(pointer, KeyOrValue::Key);
        let both = source.zip(self.changes);
        both.is_some_and(|(source, first)| source >= first)
    }

    /// The name of a setting as it is written there. In a profile it is the key, below the header of its table. In a change of a
    /// job, which has no headers, it is the whole name, such as `politeness.min-delay`.
    pub(crate) fn written_name(&self, pointer: &str) -> String {
        match parent(pointer) {
            Some((_, key)) if !self.is_in_change(pointer) => key,
            _ => dotted(within_override(pointer)),
        }
    }

    /// The number of the layer that has the value at this pointer, later ones higher; `None` if no layer has it.
    pub(crate) fn layer(&self, pointer: &str) -> Option<usize> {
        Some(self.places.get(pointer)?.source)
    }

    /// The text of the layer that has the value at this pointer; `None` if no layer has it.
    pub(crate) fn source_text(&self, pointer: &str) -> Option<&str> {
        let (_, text) = self.sources.get(self.layer(pointer)?)?;
        Some(text)
    }

    /// The source, `None` for the profile itself, and the place in it.
    fn span(&self, pointer: &str, part: KeyOrValue) -> (Option<usize>, Range<usize>) {
        if let Some(spans) = self.places.get(pointer) {
            let span = match (part, &spans.key) {
                (KeyOrValue::Key, Some(key)) => key.clone(),
                _ => spans.value.clone(),
            };
            return (Some(spans.source), span);
        }
        // An error about a missing value is placed at its parent.
        match pointer.rfind('/') {
            Some(end) => self.span(&pointer[..end], KeyOrValue::Key),
            None => (None, 0..0),
        }
    }

    fn syntax_fault(&self, error: &toml::de::Error) -> Diagnostic {
        let span = error.span().unwrap_or(0..0);
        let place = TextPosition::of(&self.text, span);
        Diagnostic {
            file: self.file.clone(),
            place: Some(place),
            pointer: String::new(),
            level: Level::Error,
            problem: format!("not TOML: {}", error.message()),
            suggestion: None,
        }
    }

    fn object(
        &mut self,
        table: &DeTable<'_>,
        pointer: &str,
        faults: &mut Diagnostics,
    ) -> Map<String, Value> {
        let mut object = Map::new();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let pointer = child(pointer, name);
            let spans = Spans {
                source: 0,
                key: Some(key.span()),
                value: value.span(),
            };
            self.places.insert(pointer.clone(), spans);
            let value = self.json(value, &pointer, faults);
            object.insert(name.to_owned(), value);
        }
        object
    }

    /// Converts a value to JSON. Whole floats become integers, as JSON Schema defines these; dates become texts.
    fn json(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        pointer: &str,
        faults: &mut Diagnostics,
    ) -> Value {
        // The parser limits each dotted key and each nesting of values, but not both together.
        let nested = matches!(value.get_ref(), DeValue::Array(_) | DeValue::Table(_));
        if nested && pointer.bytes().filter(|byte| *byte == b'/').count() > DEPTH_MAX {
            let problem = format!("nested more than {DEPTH_MAX} deep");
            faults.push(self.fault(pointer, KeyOrValue::Value, Level::Error, problem));
            return Value::Null;
        }
        match value.get_ref() {
            DeValue::String(text) => Value::String(text.clone().into_owned()),
            DeValue::Boolean(truth) => Value::Bool(*truth),
            DeValue::Datetime(time) => Value::String(time.to_string()),
            DeValue::Integer(number) => {
                if let Ok(number) = i64::from_str_radix(number.as_str(), number.radix()) {
                    return Value::from(number);
                }
                let problem = format!("number out of range: {number}");
                faults.push(self.fault(pointer, KeyOrValue::Value, Level::Error, problem));
                Value::from(0)
            }
            DeValue::Float(number) => match number.as_str().parse::<f64>() {
                Ok(float) if float.fract() == 0.0 && float.abs() < WHOLE_FLOAT_MAX => {
                    let whole = float as i64;
                    Value::from(whole)
                }
                Ok(float) if float.is_finite() => Value::from(float),
                _ => {
                    let problem = format!("not a finite number: {number}");
                    faults.push(self.fault(pointer, KeyOrValue::Value, Level::Error, problem));
                    Value::from(0)
                }
            },
            DeValue::Array(items) => {
                let mut array = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    let pointer = format!("{pointer}/{index}");
                    self.places.insert(
                        pointer.clone(),
                        Spans {
                            source: 0,
                            key: None,
                            value: item.span(),
                        },
                    );
                    let item = self.json(item, &pointer, faults);
                    array.push(item);
                }
                Value::Array(array)
            }
            DeValue::Table(table) => Value::Object(self.object(table, pointer, faults)),
        }
    }
}

/// Stack of the thread that parses. The parser allows 80 parts of a key and 80 nested values, so 6,400 levels in all, and frees
/// them by recursion. The stack of an ordinary thread is too small for that.
const PARSE_STACK_BYTES: usize = 64 * 1024 * 1024;

/// Deepest nesting of tables and lists. A profile has five levels; plugins' settings a few more.
const DEPTH_MAX: usize = 32;

/// Up to this number every whole number has an exact float.
const WHOLE_FLOAT_MAX: f64 = 9_007_199_254_740_992.0;

/// Calls `found` with every key, or index, and value directly within a value.
fn each_within(value: &Value, mut found: impl FnMut((&str, &Value))) {
    match value {
        Value::Object(table) => {
            for (key, value) in table {
                found((key, value));
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                found((&index.to_string(), value));
            }
        }
        _ => {}
    }
}

/// The pointer to a key of the value at `pointer`.
pub(crate) fn child(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// The pointer `/politeness/min-delay` in its dotted form, as in a table header.
pub(crate) fn dotted(pointer: &str) -> String {
    pointer
        .trim_start_matches('/')
        .replace('/', ".")
        .replace("~1", "/")
        .replace("~0", "~")
}

/// The pointer to the setting at `pointer` within an override.
pub(crate) fn in_override(number: u32, pointer: &str) -> String {
    format!("/override/{number}{pointer}")
}

/// The pointer within the override that it leads into; the same if it leads into none.
fn within_override(pointer: &str) -> &str {
    let below = pointer.strip_prefix("/override/");
    below
        .and_then(|below| below.find('/').map(|end| &below[end..]))
        .unwrap_or(pointer)
}

/// The last key of a pointer, and the pointer to its parent.
pub(crate) fn parent(pointer: &str) -> Option<(&str, String)> {
    let (above, key) = pointer.rsplit_once('/')?;
    Some((above, key.replace("~1", "/").replace("~0", "~")))
}

//! Checks of units and single values. Only this module turns a written value into a usable one. Relations between settings are in
//! `relations`.

use std::path::PathBuf;
use std::time::Duration;

use crate::byte_size::{ByteSize, SizeWritten};
use crate::count::CountWritten;
use crate::diagnostic::{Diagnostics, FAULTS_MAX, Level};
use crate::document::{Document, KeyOrValue, child};
use crate::duration::{DurationWritten, parse_duration};

/// Collects the errors of one document. A value that already has an error is not reported twice.
pub(crate) struct Check<'d> {
    pub(crate) document: &'d Document,
    pub(crate) faults: Diagnostics,
    reported: usize,
}

/// The checks of one table.
pub(crate) struct Part<'c, 'd> {
    check: &'c mut Check<'d>,
    pointer: String,
}

impl<'d> Check<'d> {
    pub(crate) fn new(document: &'d Document, faults: Diagnostics) -> Self {
        Self {
            document,
            faults,
            reported: 0,
        }
    }

    /// The table of this name; empty for the root.
    pub(crate) fn part(&mut self, name: &str) -> Part<'_, 'd> {
        let pointer = if name.is_empty() {
            String::new()
        } else {
            child("", name)
        };
        Part {
            check: self,
            pointer,
        }
    }

    pub(crate) fn report(
        &mut self,
        pointer: &str,
        part: KeyOrValue,
        level: Level,
        problem: String,
        suggestion: Option<String>,
    ) {
        if self.faults.covers(pointer) {
            return;
        }
        if self.reported == FAULTS_MAX {
            let problem = format!("more than {FAULTS_MAX} errors; the rest is not shown");
            self.faults.push(
                self.document
                    .fault("", KeyOrValue::Key, Level::Error, problem),
            );
        }
        self.reported += 1;
        if self.reported > FAULTS_MAX {
            return;
        }
        let mut fault = self.document.fault(pointer, part, level, problem);
        fault.suggestion = suggestion;
        self.faults.push(fault);
    }
}

impl<'d> Part<'_, 'd> {
    /// A table or an array item within this one.
    pub(crate) fn part(&mut self, key: &str) -> Part<'_, 'd> {
        Part {
            pointer: child(&self.pointer, key),
            check: self.check,
        }
    }

    pub(crate) fn pointer(&self, key: &str) -> String {
        child(&self.pointer, key)
    }

    /// Reports that the value of `key` is invalid.
    pub(crate) fn refuse(&mut self, key: &str, problem: String, suggestion: &str) {
        let pointer = self.pointer(key);
        let suggestion = (!suggestion.is_empty()).then(|| suggestion.to_owned());
        self.check.report(
            &pointer,
            KeyOrValue::Value,
            Level::Error,
            problem,
            suggestion,
        );
    }

    /// Reports a note about an accepted value.
    pub(crate) fn note(&mut self, key: &str, level: Level, problem: String, suggestion: &str) {
        let pointer = self.pointer(key);
        let suggestion = (!suggestion.is_empty()).then(|| suggestion.to_owned());
        self.check
            .report(&pointer, KeyOrValue::Key, level, problem, suggestion);
    }

    /// Reports that the key itself is invalid.
    pub(crate) fn refuse_key(&mut self, key: &str, problem: String, suggestion: &str) {
        self.note(key, Level::Error, problem, suggestion);
    }

    /// Reports that the table as a whole is invalid.
    pub(crate) fn refuse_whole(&mut self, problem: String, suggestion: &str) {
        let suggestion = Some(suggestion.to_owned());
        self.check.report(
            &self.pointer,
            KeyOrValue::Key,
            Level::Error,
            problem,
            suggestion,
        );
    }

    /// Reports a note about the table as a whole.
    pub(crate) fn note_whole(&mut self, level: Level, problem: String) {
        self.check
            .report(&self.pointer, KeyOrValue::Key, level, problem, None);
    }

    /// Reports a problem of this level about the value of `key`.
    pub(crate) fn value(&mut self, level: Level, key: &str, problem: String, suggestion: &str) {
        let pointer = self.pointer(key);
        self.check.report(
            &pointer,
            KeyOrValue::Value,
            level,
            problem,
            Some(suggestion.to_owned()),
        );
    }

    /// Reads a duration; zero if it is invalid.
    pub(crate) fn duration(&mut self, key: &str, written: &DurationWritten) -> Duration {
        let parsed = match written {
            DurationWritten::Text(text) => {
                parse_duration(text).map_err(|problem| problem.explain(&quote(text)))
            }
            DurationWritten::Number(0) => Ok(Duration::ZERO),
            DurationWritten::Number(number) => Err(number_without_unit(*number, "s")),
        };
        parsed.unwrap_or_else(|(problem, suggestion)| {
            self.refuse(key, problem, &suggestion);
            Duration::ZERO
        })
    }

    /// Reads a duration limit; `None` if it is `"none"` or 0.
    pub(crate) fn duration_limit(
        &mut self,
        key: &str,
        written: &DurationWritten,
    ) -> Option<Duration> {
        match written {
            DurationWritten::Text(text) if text == NONE => None,
            _ => Some(self.duration(key, written)).filter(|duration| !duration.is_zero()),
        }
    }

    /// Reads a size; zero if it is invalid.
    pub(crate) fn size(&mut self, key: &str, written: &SizeWritten) -> ByteSize {
        let parsed = match written {
            SizeWritten::Text(text) => text
                .parse::<ByteSize>()
                .map_err(|problem| problem.explain(&quote(text))),
            SizeWritten::Number(0) => Ok(ByteSize::default()),
            SizeWritten::Number(number) => Err(number_without_unit(*number, "MiB")),
        };
        parsed.unwrap_or_else(|(problem, suggestion)| {
            self.refuse(key, problem, &suggestion);
            ByteSize::default()
        })
    }

    /// Reads a size limit; `None` if it is `"none"` or 0.
    pub(crate) fn size_limit(&mut self, key: &str, written: &SizeWritten) -> Option<ByteSize> {
        match written {
            SizeWritten::Text(text) if text == NONE => None,
            _ => Some(self.size(key, written)).filter(|size| size.bytes() > 0),
        }
    }

    /// Reads a count limit; `None` if it is `"none"` or 0.
    pub(crate) fn count_limit(&mut self, key: &str, written: &CountWritten) -> Option<u64> {
        match written {
            CountWritten::Text(text) if text == NONE => None,
            CountWritten::Text(text) => {
                let problem = format!("not a number: {}", quote(text));
                self.refuse(key, problem, "write a whole number or \"none\"");
                None
            }
            CountWritten::Number(number) => match u64::try_from(*number) {
                Ok(number) => Some(number).filter(|number| *number > 0),
                Err(_) => {
                    let problem = format!("must not be negative: {number}");
                    self.refuse(key, problem, "write 0 or \"none\" for no limit");
                    None
                }
            },
        }
    }

    /// Reads a size of memory, which may not exceed `max`.
    pub(crate) fn memory_size(
        &mut self,
        key: &str,
        written: &SizeWritten,
        max: ByteSize,
    ) -> ByteSize {
        let size = self.size(key, written);
        if size > max {
            let problem = format!("must be at most {max}: {size}");
            let suggestion = format!("this is held in memory: write \"{max}\" or less");
            self.refuse(key, problem, &suggestion);
        }
        size
    }

    /// Reads a size of memory that must not be zero.
    pub(crate) fn positive_memory_size(
        &mut self,
        key: &str,
        written: &SizeWritten,
        max: ByteSize,
    ) -> ByteSize {
        let size = self.memory_size(key, written, max);
        if size.bytes() == 0 {
            self.refuse(
                key,
                "must be larger than zero".to_owned(),
                "write a size such as \"64MiB\"",
            );
        }
        size
    }

    /// Reads a duration that must not be zero.
    pub(crate) fn positive_duration(&mut self, key: &str, written: &DurationWritten) -> Duration {
        let duration = self.duration(key, written);
        if duration.is_zero() {
            self.refuse(
                key,
                "must be longer than zero".to_owned(),
                "write a duration such as \"2s\"",
            );
        }
        duration
    }

    /// Reads a folder, in a relative or absolute path.
    pub(crate) fn directory(&mut self, key: &str, path: &str) -> PathBuf {
        if path.is_empty() || path.contains('\0') {
            self.refuse(
                key,
                format!("not a folder: {}", quote(path)),
                "write a path such as \"warcs\"",
            );
        }
        PathBuf::from(path)
    }

    /// Checks the value of a header (RFC 9110 §5.5): visible ASCII characters and blanks between them.
    pub(crate) fn header_value(&mut self, key: &str, text: &str) {
        let allowed = |c: char| c == ' ' || c.is_ascii_graphic();
        if !text.chars().all(allowed) || text.trim() != text {
            let problem = format!("not a header value: {}", quote(text));
            self.refuse(
                key,
                problem,
                "use visible ASCII characters, and blanks only between them",
            );
        }
    }

    /// Checks a text for a header or a record field: visible characters and blanks, on one line.
    pub(crate) fn line(&mut self, key: &str, text: &str) {
        if text.chars().any(char::is_control) {
            self.refuse(
                key,
                format!(
                    "must be one line without control characters: {}",
                    quote(text)
                ),
                "",
            );
        }
    }
}

/// The value for no limit.
const NONE: &str = "none";

/// Longest text that an error quotes, in characters.
const QUOTE_CHARS_MAX: usize = 80;

fn number_without_unit(number: i64, unit: &str) -> (String, String) {
    if number < 0 {
        return (
            format!("must not be negative: {number}"),
            format!("write it with a unit: \"2{unit}\""),
        );
    }
    (
        format!("number without a unit: {number}"),
        format!("write \"{number}{unit}\""),
    )
}

/// The text in quotation marks, cut if it is long.
pub(crate) fn quote(text: &str) -> String {
    if text.chars().count() <= QUOTE_CHARS_MAX {
        return format!("{text:?}");
    }
    let start: String = text.chars().take(QUOTE_CHARS_MAX).collect();
    format!("{start:?}…")
}

/// The known word that was probably meant, if one is near. Near means about one letter in four differs, whatever the case and
/// whether hyphens or underscores join it.
pub fn nearest<'k>(written: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let plain = |text: &str| text.to_lowercase().replace(['_', '-', ' '], "");
    let written = plain(written);
    let near = 1 + written.chars().count() / 4;
    known
        .map(|known| (strsim::osa_distance(&written, &plain(known)), known))
        .filter(|(distance, known)| *distance <= near && *distance < known.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

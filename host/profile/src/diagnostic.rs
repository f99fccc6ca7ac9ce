//! Errors of a profile with their places. Each is printed as one block, as a compiler does.

use std::error::Error;
use std::fmt;
use std::ops::Range;

/// Longest part of a source line that is shown, in characters. An inline table may have any length.
const EXCERPT_CHARS_MAX: usize = 120;

/// Most errors of one kind of check that are reported. A file with more is not a profile.
pub(crate) const FAULTS_MAX: usize = 500;

/// All errors found, in the order of the file.
///
/// Returned as an error, it has at least one entry of [`Level::Error`], or of [`Level::Warning`] if a job was checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics {
    faults: Vec<Diagnostic>,
}

/// One error, warning or note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file as the caller named it. `seeds` for a seed that was given outside of the profile, `--contact-url` for a contact URL
    /// of the command line.
    pub file: String,
    /// Place in the file; `None` for the file as a whole, such as a file that cannot be read.
    pub place: Option<TextPosition>,
    /// JSON Pointer (RFC 6901) to the setting, such as `/politeness/min-delay`; empty for the whole.
    pub pointer: String,
    /// Its level.
    pub level: Level,
    /// The problem: a lowercase fragment with the value in it, without a full stop.
    pub problem: String,
    /// A suggestion, such as `did you mean "min-delay"?`.
    pub suggestion: Option<String>,
}

/// Consequence of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The value is accepted, with a note.
    Info,
    /// The value is accepted in a profile, but a job may not start with it.
    Warning,
    /// The profile is refused.
    Error,
}

/// A place in a text. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPosition {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// The bytes of the file concerned; within the text, on character boundaries, possibly empty.
    pub span: Range<usize>,
    /// The source line, or the part of it around the place; control characters are replaced.
    pub excerpt: String,
    /// Indent of the carets: characters of `excerpt` before the place.
    pub indent: usize,
    /// Number of carets: characters of the span on this line, at least 1.
    pub width: usize,
}

impl Level {
    /// Returns its name in schemas and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

impl Diagnostics {
    /// Adds an error.
    pub fn push(&mut self, fault: Diagnostic) {
        self.faults.push(fault);
    }

    /// Adds the errors of `others`.
    pub fn append(&mut self, mut others: Self) {
        self.faults.append(&mut others.faults);
    }

    /// Iterates over all entries in the order in which they will be printed.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.faults.iter()
    }

    /// Number of entries of any level.
    pub fn len(&self) -> usize {
        self.faults.len()
    }

    /// Returns `true` if there are no entries of any level.
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// The most severe level among the entries; `None` if there are no entries.
    pub fn worst(&self) -> Option<Level> {
        self.faults.iter().map(|fault| fault.level).max()
    }

    /// Returns `true` if there is an error at exactly this pointer, or above it.
    pub(crate) fn covers(&self, pointer: &str) -> bool {
        self.faults.iter().any(|fault| {
            fault.level == Level::Error
                && pointer
                    .strip_prefix(fault.pointer.as_str())
                    .is_some_and(|rest| {
                        !fault.pointer.is_empty() && (rest.is_empty() || rest.starts_with('/'))
                    })
        })
    }

    /// Sorts the entries by place; those without a place come first. Files keep the order in which they first occur.
    pub fn sort(&mut self) {
        let mut files: Vec<String> = Vec::new();
        for fault in &self.faults {
            if !files.contains(&fault.file) {
                files.push(fault.file.clone());
            }
        }
        self.faults.sort_by_key(|fault| {
            let file = files.iter().position(|file| *file == fault.file);
            let place = fault.place.as_ref().map(|place| (place.line, place.column));
            (file, place)
        });
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.faults.into_iter()
    }
}

impl<'f> IntoIterator for &'f Diagnostics {
    type Item = &'f Diagnostic;
    type IntoIter = std::slice::Iter<'f, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.faults.iter()
    }
}

impl FromIterator<Diagnostic> for Diagnostics {
    fn from_iter<I: IntoIterator<Item = Diagnostic>>(faults: I) -> Self {
        Self {
            faults: faults.into_iter().collect(),
        }
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(fault: Diagnostic) -> Self {
        Self {
            faults: vec![fault],
        }
    }
}

impl Error for Diagnostics {}

impl Error for Diagnostic {}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

/// Formats `file:line:column: problem (suggestion)`, then the source line with carets below. Without a line feed at the end.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file)?;
        if let Some(place) = &self.place {
            write!(f, "{}:{}:", place.line, place.column)?;
        }
        match self.level {
            Level::Info => f.write_str(" note:")?,
            Level::Warning => f.write_str(" warning:")?,
            Level::Error => {}
        }
        write!(f, " {}", self.problem)?;
        if let Some(suggestion) = &self.suggestion {
            write!(f, " ({suggestion})")?;
        }
        if let Some(place) = &self.place {
            write!(f, "\n{place}")?;
        }
        Ok(())
    }
}

/// Formats the excerpt with its line number, and carets below. Without a line feed at the end.
impl fmt::Display for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>5} | {}", self.line, self.excerpt)?;
        // Tabs stay tabs, so that the carets are below the text in the terminal.
        let padding: String = self
            .excerpt
            .chars()
            .take(self.indent)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        write!(f, "      | {padding}{}", "^".repeat(self.width))
    }
}

impl TextPosition {
    /// Makes the place of a span of `text`. A span that is not within the text is cut to it.
    pub fn of(text: &str, span: Range<usize>) -> Self {
        let start = floor_boundary(text, span.start);
        let end = floor_boundary(text, span.end).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let line = text[line_start..line_end].trim_end_matches('\r');
        let before = text[line_start..start].chars().count();
        let width = text[start..end.min(line_end)]
            .trim_end_matches('\r')
            .chars()
            .count()
            .max(1);

        let (excerpt, indent) = excerpt(line, before);
        let shown = excerpt.chars().count();
        Self {
            line: text[..line_start].matches('\n').count() + 1,
            column: before + 1,
            span: start..end,
            width: width.min(shown.saturating_sub(indent)).max(1),
            excerpt,
            indent,
        }
    }
}

/// The line, or the part around its character `before`, and the position of that character in it.
fn excerpt(line: &str, before: usize) -> (String, usize) {
    let clean = |c: char| {
        if c.is_control() && c != '\t' {
            char::REPLACEMENT_CHARACTER
        } else {
            c
        }
    };
    let length = line.chars().count();
    if length <= EXCERPT_CHARS_MAX {
        return (line.chars().map(clean).collect(), before);
    }
    let skipped = before.saturating_sub(EXCERPT_CHARS_MAX / 3);
    let mut shown = String::new();
    if skipped > 0 {
        shown.push('…');
    }
    shown.extend(
        line.chars()
            .skip(skipped)
            .take(EXCERPT_CHARS_MAX)
            .map(clean),
    );
    if skipped + EXCERPT_CHARS_MAX < length {
        shown.push('…');
    }
    (shown, before - skipped + usize::from(skipped > 0))
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, span: Range<usize>, expected: &str) {
        assert_eq!(TextPosition::of(text, span).to_string(), expected);
    }

    #[test]
    fn place_shows_line_and_carets() {
        check("a\nbc = 1\n", 2..4, "    2 | bc = 1\n      | ^^");
        check(
            "a = \"ö\" # x",
            4..8,
            "    1 | a = \"ö\" # x\n      |     ^^^",
        );
        check("\tkey = 1\r\n", 1..4, "    1 | \tkey = 1\n      | \t^^^");
        check("", 0..0, "    1 | \n      | ^");
        check("a = 1\n", 6..6, "    2 | \n      | ^");
        check("a = [\n1,\n]", 4..10, "    1 | a = [\n      |     ^");
        check("a\u{1b}[0m", 0..1, "    1 | a\u{fffd}[0m\n      | ^");
    }

    #[test]
    fn span_outside_of_the_text_is_cut_to_it() {
        assert_eq!(TextPosition::of("ab", 9..12).span, 2..2);
        assert_eq!(TextPosition::of("aö", 2..3).span, 1..3);
        assert_eq!(
            TextPosition::of("abc", Range { start: 2, end: 1 }).span,
            2..2
        );
    }

    #[test]
    fn long_line_is_shown_around_the_place() {
        let text = format!("{}KEY{}", "x".repeat(500), "y".repeat(500));
        let place = TextPosition::of(&text, 500..503);
        assert_eq!(place.column, 501);
        let marked: String = place
            .excerpt
            .chars()
            .skip(place.indent)
            .take(place.width)
            .collect();
        assert_eq!(marked, "KEY");
        assert_eq!(place.excerpt.chars().count(), EXCERPT_CHARS_MAX + 2);
    }
}

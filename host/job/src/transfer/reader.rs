//! Reading of the file of a crawl, line by line.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

use super::input::{Input, InputDamage, NextLine};
use super::line::LineProblem;
use super::{ImportedRecord, TransferError, crawl_log, journal, json_lines};

/// The format of a file's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportFormat {
    /// The recovery journal of Heritrix 3, `frontier.recover.gz`.
    Journal,
    /// `crawl.log`, of Heritrix or Opilio.
    CrawlLog,
    /// The output of [`write_json_lines`](super::write_json_lines).
    JsonLines,
}

impl ImportFormat {
    /// Returns its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ImportFormat::Journal => "recovery journal",
            ImportFormat::CrawlLog => "crawl log",
            ImportFormat::JsonLines => "JSON lines",
        }
    }

    /// Recognises a format by the first bytes of a file.
    #[must_use]
    pub fn of(beginning: &[u8]) -> Option<ImportFormat> {
        match beginning.trim_ascii_start() {
            [b'{', ..] => Some(ImportFormat::JsonLines),
            [b'F', tag, b' ', ..] if journal::is_tag(*tag) => Some(ImportFormat::Journal),
            [b'T' | b'E', b' ', ..] => Some(ImportFormat::Journal),
            [digit, ..] if digit.is_ascii_digit() => Some(ImportFormat::CrawlLog),
            _ => None,
        }
    }
}

/// A line that could not be parsed. Other lines are not affected.
#[derive(Debug, thiserror::Error)]
#[error("line {line}")]
pub struct BadLine {
    /// Line number, counted from 1.
    pub line: u64,
    /// The problem.
    #[source]
    pub problem: LineProblem,
}

/// Counts of the lines and the damaged parts of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputSummary {
    /// Number of lines, including invalid and empty ones.
    pub lines: u64,
    /// The first 20 damaged parts.
    pub damages: Vec<InputDamage>,
    /// Number of damaged parts.
    pub damage_count: u64,
}

/// The lines of a file, as a stream. Lines without a URI (empty ones, time stamps) are skipped.
///
/// ```text
/// let mut reader = UriReader::open(path, None)?;
/// for line in &mut reader { … }
/// let extent = reader.finish()?;
/// ```
pub struct UriReader<S = File> {
    input: Input<S>,
    format: ImportFormat,
    clock: journal::Clock,
    failure: Option<io::Error>,
}

impl<S> std::fmt::Debug for UriReader<S> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("UriReader")
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

impl UriReader<File> {
    /// Opens a file, compressed with gzip or not. If no format is given, the first line decides.
    ///
    /// # Errors
    /// Returns [`TransferError::Read`] or [`TransferError::Unrecognised`].
    pub fn open(
        path: &Path,
        format: Option<ImportFormat>,
    ) -> Result<UriReader<File>, TransferError> {
        let failed = |source| TransferError::Read {
            path: path.to_owned(),
            source,
        };
        let input = Input::new(File::open(path).map_err(failed)?).map_err(failed)?;
        UriReader::of(input, format).ok_or_else(|| TransferError::Unrecognised {
            path: path.to_owned(),
        })
    }
}

impl<S: Read + Seek> UriReader<S> {
    /// Creates a reader; `None` if the format is not given and cannot be recognised.
    fn of(input: Input<S>, format: Option<ImportFormat>) -> Option<UriReader<S>> {
        let ahead = input.ahead();
        let format = match format {
            Some(format) => format,
            // A journal may be empty: the crawl had just begun, or the only gzip member is lost.
            None if ahead.trim_ascii().is_empty() => ImportFormat::Journal,
            None => ImportFormat::of(ahead)?,
        };
        Some(UriReader {
            input,
            format,
            clock: journal::Clock::default(),
            failure: None,
        })
    }

    /// Returns the format of the lines.
    #[must_use]
    pub fn format(&self) -> ImportFormat {
        self.format
    }

    /// Returns the number of lines read so far.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.input.lines()
    }

    /// Returns the counts of the file, once the stream has ended.
    ///
    /// # Errors
    /// Fails if the file could not be read, which also ended the stream.
    pub fn finish(self) -> io::Result<InputSummary> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let lines = self.input.lines();
        let (damages, damage_count) = self.input.damages();
        Ok(InputSummary {
            lines,
            damages,
            damage_count,
        })
    }

    fn understood(
        format: ImportFormat,
        clock: &mut journal::Clock,
        line: &[u8],
    ) -> Result<Option<ImportedRecord>, LineProblem> {
        match format {
            ImportFormat::Journal => journal::parse(line, clock),
            ImportFormat::CrawlLog => crawl_log::parse(line).map(Some),
            ImportFormat::JsonLines => json_lines::parse(line).map(Some),
        }
    }
}

impl<S: Read + Seek> Iterator for UriReader<S> {
    type Item = Result<ImportedRecord, BadLine>;

    fn next(&mut self) -> Option<Result<ImportedRecord, BadLine>> {
        if self.failure.is_some() {
            return None;
        }
        loop {
            let understood = match self.input.next_line() {
                Ok(NextLine::End) => return None,
                Ok(NextLine::TooLong) => Err(LineProblem::TooLong),
                Ok(NextLine::Line([])) => continue,
                Ok(NextLine::Line(line)) => Self::understood(self.format, &mut self.clock, line),
                Ok(NextLine::Unended(line)) => {
                    // A truncated URI would be read as another URI, so the line is skipped. A JSON object with its closing brace is
                    // complete.
                    match (self.format, json_lines::parse(line)) {
                        (ImportFormat::JsonLines, Ok(imported)) => Ok(Some(imported)),
                        _ => {
                            self.input.note_cut();
                            return None;
                        }
                    }
                }
                Err(failure) => {
                    self.failure = Some(failure);
                    return None;
                }
            };
            return Some(match understood {
                Ok(Some(imported)) => Ok(imported),
                Ok(None) => continue,
                Err(problem) => Err(BadLine {
                    line: self.input.lines(),
                    problem,
                }),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8], format: Option<ImportFormat>) -> (Vec<String>, InputSummary) {
        let input = Input::new(Cursor::new(bytes.to_vec())).unwrap();
        let mut reader = UriReader::of(input, format).unwrap();
        let lines = (&mut reader)
            .map(|line| match line {
                Ok(imported) => imported.uri.as_str().to_owned(),
                Err(bad) => format!("{bad}: {}", bad.problem),
            })
            .collect();
        (lines, reader.finish().unwrap())
    }

    #[track_caller]
    fn check(text: &[u8], expected: &[&str]) {
        let (lines, extent) = read(text, None);
        assert_eq!(lines, expected);
        assert_eq!(extent.damages, []);
    }

    #[test]
    fn invalid_lines_are_reported_and_skipped() {
        check(
            b"F+ http://a.org/  \r\n\nFx http://a.org/\nF+ mailto:a@b\nF+ http://a.org/\xff L\nFs http://b.org/\n",
            &[
                "http://a.org/",
                "line 3: invalid tag of a recovery journal \"Fx\"",
                "line 4: \"mailto:a@b\" cannot be crawled",
                "line 5: the URI is not UTF-8",
                "http://b.org/",
            ],
        );
        check(
            b"2026-11-20T12:34:56.789Z 200\n",
            &["line 1: 2 columns instead of the 12 of a crawl log"],
        );
        check(
            b"{\"uri\":\"http://a.org/\"}\n{}\n",
            &["http://a.org/", "line 2: not a line of an export"],
        );
    }

    #[test]
    fn a_format_is_recognised_by_its_first_bytes() {
        for (beginning, format) in [
            ("F+ http://a.org/", Some(ImportFormat::Journal)),
            ("\n T 2026-11-20T12:34:56Z", Some(ImportFormat::Journal)),
            (
                "2026-11-20T12:34:56.789Z   200",
                Some(ImportFormat::CrawlLog),
            ),
            ("20261120123456789   200", Some(ImportFormat::CrawlLog)),
            (" {\"uri\":", Some(ImportFormat::JsonLines)),
            ("Fx http://a.org/", None),
            ("http://a.org/", None),
        ] {
            assert_eq!(
                ImportFormat::of(beginning.as_bytes()),
                format,
                "{beginning}"
            );
        }
    }

    #[test]
    fn a_truncated_last_line_is_skipped_unless_its_json_is_complete() {
        let (lines, extent) = read(b"F+ http://a.org/ L http://b\nF+ http://a.org/ab", None);
        assert_eq!(lines, ["http://a.org/"]);
        assert_eq!(extent.damages, [InputDamage::LastLine { line: 2 }]);
        let (lines, extent) = read(b"{\"uri\":\"http://a.org/\"}", None);
        assert_eq!((lines.len(), extent.damage_count), (1, 0));
        let (lines, extent) = read(b"{\"uri\":\"http://a.org/\"", None);
        assert_eq!((lines.len(), extent.damage_count), (0, 1));
    }

    #[test]
    fn an_empty_file_holds_nothing() {
        check(b"", &[]);
        check(b"\n\n", &[]);
    }

    /// Generates parts of lines of all formats, so that tests reach more than the first check of a parser.
    fn line_part() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            prop::sample::select(vec![
                &b"F+"[..],
                b"Fs",
                b"Fd",
                b"T",
                b"E",
                b" ",
                b"  ",
                b"\n",
                b"\r\n",
                b"-",
                b"200",
                b"-9998",
                b"#001",
                b"http://a.org/",
                b"dns:a.org",
                b"LLE",
                b"51+L",
                b"2026-11-20T12:34:56.789Z",
                b"20261120123456789+42",
                b"20261399999999999+99999999999999999999",
                b"sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
                b"\xff\xfe",
                b"{\"uri\":\"http://a.org/\",",
                b"\"status\":",
                b"99999999999",
                b"}",
                b"\x1f\x8b\x08\x00",
            ])
            .prop_map(<[u8]>::to_vec),
            prop::collection::vec(any::<u8>(), 0..20),
        ]
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_reader_panic(words in prop::collection::vec(line_part(), 0..60)) {
            let bytes = words.concat();
            for format in [ImportFormat::Journal, ImportFormat::CrawlLog, ImportFormat::JsonLines] {
                let (lines, extent) = read(&bytes, Some(format));
                prop_assert!(lines.len() as u64 <= extent.lines);
            }
        }
    }
}

//! The recovery journal of Heritrix 3, `frontier.recover.gz`: one line for each operation of its frontier.
//!
//! `F+`, `Fs` and `Ff` are followed by URI, hop path and via; `Fe`, `Fr`, `Fd` and `Fi` by the URI alone. One blank separates the
//! columns, so the line of a seed ends in two blanks. In old versions, `Fs` and `Ff` are followed by the URI alone, too. Every
//! 10,000 lines there is a line with `T` and a time. Files for the action directory have the same form, but are written by hand:
//! hop path, via and the link's context may be missing there.
//!
//! An export writes the net effect as such a journal, one line for each URI. Heritrix reads the finished and the open URIs of this
//! crawl from it.

use std::io::Write;

use jiff::Timestamp;
use opilio_frontier::{LastOutcome, UriRecord, UriState, is_error_response};
use opilio_uri::{Hop, HopPath};

use super::line::{LineProblem, time, uri};
use super::{Finish, ImportedRecord, Selection, TransferError};

/// The time of the following lines, if the journal states it.
#[derive(Debug, Default)]
pub(super) struct Clock(Option<Timestamp>);

/// Returns `true` if `F` and this letter are a tag.
pub(super) fn is_tag(letter: u8) -> bool {
    matches!(letter, b'+' | b'e' | b'i' | b'd' | b'r' | b's' | b'f')
}

/// Parses a line; `None` for a line without a URI.
pub(super) fn parse(line: &[u8], clock: &mut Clock) -> Result<Option<ImportedRecord>, LineProblem> {
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_ascii_whitespace();
    let tag = words.next().unwrap_or_default();
    let last_outcome = match tag {
        // The crawler had issued the URI or put it back when it died. It is still to be fetched.
        "F+" | "Fe" | "Fr" => None,
        "Fs" => Some(LastOutcome::Succeeded),
        "Ff" => Some(LastOutcome::Failed),
        // Included: the URI is known, but that crawl has not fetched it.
        "Fd" | "Fi" => Some(LastOutcome::Disregarded),
        "T" => {
            clock.0 = words.next().and_then(time).or(clock.0);
            return Ok(None);
        }
        "E" => return Ok(None),
        other => return Err(LineProblem::Tag(other.chars().take(20).collect())),
    };
    let mut imported = ImportedRecord::found(uri(words.next().ok_or(LineProblem::NoUri)?)?);
    // The line of a seed ends in blanks. A line that ends with the URI has no discovery data; the URI's line `F+` has it.
    let written = line.trim_end_matches(['\r', '\n']);
    let is_short =
        tag != "F+" && words.clone().next().is_none() && !written.ends_with(char::is_whitespace);
    if matches!(tag, "F+" | "Fs" | "Ff") && !is_short {
        let mut via = words.next();
        let hop_path = match via {
            None | Some("-") => Ok(HopPath::new()),
            Some(word) => HopPath::parse(word),
        };
        match hop_path {
            Ok(hop_path) => {
                via = words.next();
                imported.hop_path = Some(hop_path);
            }
            // The line has a via, but no hop path.
            Err(_) if via.is_some_and(|word| word.contains(':')) => {
                imported.hop_path = Some(HopPath::new());
            }
            Err(error) => return Err(LineProblem::HopPath(error)),
        }
        imported.via = via.filter(|via| via.len() > 1).map(str::to_owned);
        imported.context = words.next().unwrap_or_default().to_owned();
        imported.seed = imported.hop_path.as_ref().is_some_and(HopPath::is_empty);
    }
    imported.finished = last_outcome.map(|last_outcome| Finish {
        at: clock.0,
        ..Finish::of(last_outcome)
    });
    Ok(Some(imported))
}

/// Writes a line per URI, in the order of the records. Prerequisites are left out: the crawler that reads the journal requests its
/// own. Returns the number of lines.
///
/// # Errors
/// Returns [`TransferError::Write`] or [`TransferError::Frontier`]; the output so far consists of complete lines.
pub fn write_journal(
    records: impl IntoIterator<Item = Result<UriRecord, opilio_frontier::FrontierError>>,
    selection: &Selection,
    out: &mut impl Write,
) -> Result<u64, TransferError> {
    let mut count = 0;
    for record in records {
        let record = record?;
        if selection.takes(&record) && record.hop_path.last() != Some(Hop::Prerequisite) {
            out.write_all(line(&record).as_bytes())
                .map_err(TransferError::Write)?;
            count += 1;
        }
    }
    out.flush().map_err(TransferError::Write)?;
    Ok(count)
}

fn line(record: &UriRecord) -> String {
    let uri = &record.uri;
    let tag = match (record.last_outcome, record.state) {
        // Heritrix counts every response as a success.
        (LastOutcome::Failed, _) if is_error_response(record.status) => "Fs",
        (LastOutcome::Disregarded, _) | (LastOutcome::Open, UriState::Deleted) => {
            return format!("Fd {uri}\n");
        }
        (LastOutcome::Succeeded | LastOutcome::Prerequisite, _) => "Fs",
        (LastOutcome::Failed, _) => "Ff",
        (LastOutcome::Open, _) => "F+",
    };
    let via = record.via.as_deref().unwrap_or_default();
    // A blank in the context would add a column.
    let via = match via.contains(char::is_whitespace) {
        true => "",
        false => via,
    };
    format!("{tag} {uri} {} {via}\n", record.hop_path.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks hop path, via, context, last outcome, and whether it is a seed.
    #[track_caller]
    fn check(line: &str, expected: &str) {
        let shown = match parse(line.as_bytes(), &mut Clock::default()) {
            Ok(None) => "nothing".to_owned(),
            Ok(Some(imported)) => format!(
                "{} {} {} {}{}{}",
                imported.uri,
                imported
                    .hop_path
                    .map_or("?".to_owned(), |path| format!("{:?}", path.as_str())),
                imported.via.as_deref().unwrap_or("-"),
                imported.context,
                imported
                    .finished
                    .map_or("pending".to_owned(), |finish| format!(
                        "{:?}",
                        finish.last_outcome
                    )),
                if imported.seed { " seed" } else { "" },
            ),
            Err(problem) => problem.to_string(),
        };
        assert_eq!(shown, expected, "{line:?}");
    }

    #[test]
    fn each_tag_sets_the_outcome_of_the_uri() {
        check("F+ http://a.org/  ", r#"http://a.org/ "" - pending seed"#);
        check(
            "F+ http://a.org/b LE http://a.org/",
            r#"http://a.org/b "LE" http://a.org/ pending"#,
        );
        check(
            "Fs http://a.org/b LE http://a.org/",
            r#"http://a.org/b "LE" http://a.org/ Succeeded"#,
        );
        check(
            "Ff http://a.org/b 3+LLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLL http://a.org/",
            r#"http://a.org/b "3+LLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLL" http://a.org/ Failed"#,
        );
        check("Fe http://a.org/b", "http://a.org/b ? - pending");
        check("Fr http://a.org/b", "http://a.org/b ? - pending");
        check("Fd http://a.org/b", "http://a.org/b ? - Disregarded");
        check("Fi http://a.org/b", "http://a.org/b ? - Disregarded");
        check(
            "Fs dns:a.org P http://a.org/",
            r#"dns:a.org "P" http://a.org/ Succeeded"#,
        );
        check("Fs http://a.org/  ", r#"http://a.org/ "" - Succeeded seed"#);
        check("Fs http://a.org/b\r\n", "http://a.org/b ? - Succeeded");
        check("Ff http://a.org/b", "http://a.org/b ? - Failed");
    }

    #[test]
    fn hand_written_lines_may_omit_columns() {
        check("F+ http://a.org/", r#"http://a.org/ "" - pending seed"#);
        check("F+ http://a.org/ - -", r#"http://a.org/ "" - pending seed"#);
        check(
            "F+\thttp://a.org/   L    http://b.org/ a/@href",
            r#"http://a.org/ "L" http://b.org/ a/@hrefpending"#,
        );
        check(
            "F+ http://a.org/  http://b.org/",
            r#"http://a.org/ "" http://b.org/ pending seed"#,
        );
    }

    #[test]
    fn invalid_journal_lines_have_a_reason() {
        check("F+", "no URI");
        check(
            "Q+ http://a.org/",
            "invalid tag of a recovery journal \"Q+\"",
        );
        check("F+ http://a.org/ wrong", "no hop path");
        check("T 2026-11-20T12:34:56Z", "nothing");
        check("E 2026-11-20T12:34:56Z gone", "nothing");
    }

    #[test]
    fn a_time_stamp_applies_to_the_lines_after_it() {
        let mut clock = Clock::default();
        let mut at = |line: &str| {
            parse(line.as_bytes(), &mut clock)
                .unwrap()
                .and_then(|imported| imported.finished.unwrap().at)
        };
        assert_eq!(at("Fs http://a.org/  "), None);
        at("T 2026-11-20T12:34:56Z");
        assert_eq!(
            at("Fs http://a.org/  "),
            "2026-11-20T12:34:56Z".parse().ok()
        );
        at("T nonsense");
        assert_eq!(at("Fd http://a.org/"), "2026-11-20T12:34:56Z".parse().ok());
    }
}

//! Answers for people, as tables and as lines of a name and a value; or as JSON, one object a line.

mod lines;
mod results;
mod rows;
mod value;

use std::io::{self, Write};

use opilio_control::{Answer, Command};
use opilio_crawl::plugin_table;

use self::lines::{queue_lines, statistics_lines, status_lines, table_lines, why_lines};
use self::results::{checked_line, checkpoint_lines, import_lines, source_lines, swept_line};
use self::rows::{
    QUEUE_COLUMNS, QUEUED_COLUMNS, RIGHT, URI_COLUMNS, queue_row, queued_row, uri_row,
};
use crate::terminal;

/// Rows whose columns are aligned. Later rows use the same widths as far as they can.
const ROWS_ALIGNED: usize = 1_000;

/// Shows the answers to one command.
pub(crate) struct Show {
    json: bool,
    kind: Kind,
    rows: Vec<Vec<String>>,
    widths: Vec<usize>,
    /// The command for the next page, without its cursor.
    more: String,
    /// Whether an observer has reported anything.
    any_report: bool,
}

/// The kind of command that was answered, if it affects the form of the answers.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Queues,
    Queue,
    Uris,
    List,
    Seeds,
    Export,
    Observe,
    Other,
}

impl Show {
    pub(crate) fn new(command: &Command, json: bool) -> Show {
        let kind = match command {
            Command::Queues { .. } => Kind::Queues,
            Command::Queue { .. } => Kind::Queue,
            Command::Uris { .. } => Kind::Uris,
            Command::List { .. } => Kind::List,
            Command::Seeds { .. } => Kind::Seeds,
            Command::Export { .. } => Kind::Export,
            Command::Observe { .. } => Kind::Observe,
            _ => Kind::Other,
        };
        Show {
            json,
            kind,
            rows: Vec::new(),
            widths: Vec::new(),
            more: String::new(),
            any_report: false,
        }
    }

    pub(crate) fn answer(&mut self, answer: Answer, out: &mut dyn Write) -> io::Result<()> {
        match (answer, self.json) {
            (Answer::Text { text }, _) => out.write_all(text.as_bytes()),
            // An export consists of its lines only.
            (Answer::Done { .. }, _) if self.kind == Kind::Export => Ok(()),
            (Answer::Queue { queue }, true) => writeln!(out, "{queue}"),
            (Answer::Uri(uri), true) => writeln!(out, "{}", serde_json::to_value(uri)?),
            (Answer::Facts { facts: object } | Answer::Row { row: object }, true) => {
                writeln!(out, "{object}")
            }
            (other, true) => writeln!(out, "{}", serde_json::to_string(&other)?),
            (other, false) => self.text(other, out),
        }
    }

    fn text(&mut self, answer: Answer, out: &mut dyn Write) -> io::Result<()> {
        match answer {
            Answer::Queue { queue } if self.kind == Kind::Queue => {
                out.write_all(queue_lines(&queue).as_bytes())
            }
            Answer::Queue { queue } => self.row(queue_row(&queue), out),
            Answer::Uri(found) => {
                let row = match self.kind {
                    Kind::Uris => queued_row(&found),
                    _ => uri_row(&found.uri),
                };
                self.row(row, out)
            }
            Answer::More { after } => {
                self.more = match after.as_str() {
                    "" => "there are more; raise --limit N to list them".to_owned(),
                    after => format!("there are more; continue with --after '{after}'"),
                };
                Ok(())
            }
            Answer::Status(status) => out.write_all(status_lines(&status).as_bytes()),
            Answer::Statistics { statistics } => {
                out.write_all(statistics_lines(&statistics).as_bytes())
            }
            Answer::Plugins { plugins } => match plugin_table(&plugins) {
                table if table.is_empty() => writeln!(out, "no plugin has been called yet"),
                table => out.write_all(terminal::lines(&table).as_bytes()),
            },
            Answer::Tables { tables } => out.write_all(table_lines(&tables).as_bytes()),
            Answer::Report {
                observer,
                file,
                content,
            } => {
                self.any_report = true;
                let (file, content) = (terminal::line(&file), terminal::lines(&content));
                writeln!(out, "== {observer} {file}\n{}", content.trim_end())
            }
            Answer::Done { result } => writeln!(out, "{result}"),
            Answer::Swept(swept) => writeln!(out, "{}", swept_line(&swept)),
            Answer::Why(why) => out.write_all(why_lines(&why).as_bytes()),
            Answer::Source(source) => out.write_all(source_lines(&source).as_bytes()),
            Answer::Imported(imported) => out.write_all(import_lines(&imported).as_bytes()),
            Answer::Problem { problem } => writeln!(out, "{problem}"),
            Answer::Checked(found) => writeln!(out, "{}", checked_line(&found)),
            Answer::Checkpoint(made) => out.write_all(checkpoint_lines(&made).as_bytes()),
            Answer::Text { text } => out.write_all(text.as_bytes()),
            Answer::Settings { settings } => crate::job::show::settings(&settings, out),
            // The refusal that follows contains the errors.
            Answer::Faults { .. } => Ok(()),
            Answer::Set(set) => crate::job::show::changed(&set, out),
            Answer::Change(change) => crate::job::show::change(&change, out),
            Answer::SeedsAdded(added) => crate::job::show::seeds_added(&added, out),
            Answer::Seed(seed) => self.row(crate::job::show::seed_row(&seed), out),
            Answer::Explained(explained) => crate::job::show::explained(&explained, out),
            Answer::Alerts { alerts } => crate::job::report::alerts(&alerts, out),
            Answer::Breakdown(breakdown) => crate::job::report::breakdown(&breakdown, out),
            Answer::Facts { facts: object } | Answer::Row { row: object } => {
                writeln!(out, "{object}")
            }
            Answer::Series { samples } => writeln!(out, "{}", serde_json::to_string(&samples)?),
            Answer::Progress { .. } | Answer::End | Answer::Refused { .. } => Ok(()),
        }
    }

    fn row(&mut self, row: Vec<String>, out: &mut dyn Write) -> io::Result<()> {
        self.rows.push(row);
        if self.rows.len() >= ROWS_ALIGNED {
            self.write_rows(out)?;
        }
        Ok(())
    }

    fn write_rows(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        if self.widths.is_empty() {
            let names = match self.kind {
                Kind::Queues => &QUEUE_COLUMNS[..],
                Kind::Uris => &QUEUED_COLUMNS,
                Kind::Seeds => &crate::job::show::SEED_COLUMNS,
                _ => &URI_COLUMNS,
            };
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            self.rows.insert(0, names);
            self.widths = vec![0; self.rows[0].len()];
        }
        for row in &self.rows {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        for row in self.rows.drain(..) {
            let mut text = String::new();
            for (index, (cell, width)) in row.iter().zip(&self.widths).enumerate() {
                let is_number = cell.starts_with(|c: char| c.is_ascii_digit())
                    && !cell.contains([':', '/'])
                    || RIGHT.contains(&cell.as_str());
                let cell = match is_number {
                    true => format!("{cell:>width$}"),
                    false => format!("{cell:<width$}"),
                };
                if index > 0 {
                    text.push_str("  ");
                }
                text.push_str(&cell);
            }
            writeln!(out, "{}", text.trim_end())?;
        }
        Ok(())
    }

    /// Prints the rows held back. An empty table means that nothing was found only if the answer is complete.
    pub(crate) fn finish(&mut self, is_whole: bool, out: &mut dyn Write) -> io::Result<()> {
        let is_table = matches!(
            self.kind,
            Kind::Queues | Kind::Uris | Kind::List | Kind::Seeds
        );
        if is_whole && is_table && !self.json && self.rows.is_empty() && self.widths.is_empty() {
            return writeln!(out, "none");
        }
        if is_whole && self.kind == Kind::Observe && !self.json && !self.any_report {
            return writeln!(
                out,
                "no reports: the job has no observers (stacks.observe in its profile names them), or none has reported yet"
            );
        }
        self.write_rows(out)?;
        if !self.more.is_empty() {
            writeln!(out, "{}", self.more)?;
        }
        Ok(())
    }
}

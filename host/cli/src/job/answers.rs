//! Answers for people, as tables and as lines of a name and a value; or as JSON, one object a line.

mod lines;
mod results;
mod rows;
mod value;

use std::io::{self, Write};

use opilio_control::{Command, CommandResponse};
use opilio_crawl::plugin_table;
use serde::Serialize;
use serde_json::Value;

use self::lines::{queue_lines, statistics_lines, status_lines, table_lines, why_lines};
use self::results::{checked_line, checkpoint_lines, import_lines, source_lines, swept_line};
use self::rows::{
    QUEUE_COLUMNS, QUEUED_COLUMNS, RIGHT, STATUS, URI_COLUMNS, queue_row, queued_row, uri_row,
};
use super::{show, show_results};
use crate::terminal;

/// Rows held back to align their columns. Later rows use the same widths if their cells fit.
const ROWS_ALIGNED: usize = 1_000;

/// Printer of the answers to one command.
pub(super) struct Show {
    json: bool,
    kind: Kind,
    rows: Vec<Vec<String>>,
    widths: Vec<usize>,
    /// The command for the next page, without its cursor.
    more: String,
    /// Sums below a table.
    totals: String,
    /// `true` if an observer has reported anything, or an override was listed.
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
    Hosts,
    Export,
    Observe,
    Overrides,
    Other,
}

impl Kind {
    /// Returns the names of the columns of the table, if the answers are one.
    fn columns(self) -> &'static [&'static str] {
        match self {
            Kind::Queues => &QUEUE_COLUMNS,
            Kind::Uris => &QUEUED_COLUMNS,
            Kind::Seeds => &show::SEED_COLUMNS,
            Kind::Hosts => &show_results::HOST_COLUMNS,
            _ => &URI_COLUMNS,
        }
    }
}

/// The JSON of an answer: one object for each entry of a list, or one for the answer, with its name in `answer`.
fn objects(answer: CommandResponse) -> serde_json::Result<Vec<Value>> {
    fn each<T: Serialize>(entries: Vec<T>) -> serde_json::Result<Vec<Value>> {
        entries.iter().map(serde_json::to_value).collect()
    }
    match answer {
        CommandResponse::Queue { queue: object }
        | CommandResponse::Facts { facts: object }
        | CommandResponse::Row { row: object } => Ok(vec![object]),
        CommandResponse::Uri(uri) => each(vec![uri]),
        CommandResponse::Override(one) => each(vec![one]),
        CommandResponse::Seed(seed) => each(vec![seed]),
        CommandResponse::Host(host) => each(vec![host]),
        CommandResponse::Change(change) => each(vec![change]),
        CommandResponse::Alerts { alerts } => each(alerts),
        CommandResponse::Plugins { plugins } => each(plugins),
        CommandResponse::Tables { tables } => each(tables),
        CommandResponse::Series { samples } => each(samples),
        CommandResponse::Settings { settings } => each(settings),
        other => each(vec![other]),
    }
}

impl Show {
    pub(super) fn new(command: &Command, json: bool) -> Show {
        let kind = match command {
            Command::Queues { .. } => Kind::Queues,
            Command::Queue { .. } => Kind::Queue,
            Command::Uris { .. } => Kind::Uris,
            Command::List { .. } => Kind::List,
            Command::Seeds { .. } => Kind::Seeds,
            Command::Hosts { .. } => Kind::Hosts,
            Command::Export { .. } => Kind::Export,
            Command::Observe { .. } => Kind::Observe,
            Command::Overrides => Kind::Overrides,
            _ => Kind::Other,
        };
        Show {
            json,
            kind,
            rows: Vec::new(),
            widths: Vec::new(),
            more: String::new(),
            totals: String::new(),
            any_report: false,
        }
    }

    pub(super) fn answer(
        &mut self,
        answer: CommandResponse,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match (answer, self.json) {
            (CommandResponse::Text { text }, _) => out.write_all(text.as_bytes()),
            // An export consists of its lines only.
            (CommandResponse::Done { .. }, _) if self.kind == Kind::Export => Ok(()),
            (answer, true) => {
                let mut objects = objects(answer)?.into_iter();
                objects.try_for_each(|object| writeln!(out, "{object}"))
            }
            (other, false) => self.text(other, out),
        }
    }

    fn text(&mut self, answer: CommandResponse, out: &mut dyn Write) -> io::Result<()> {
        match answer {
            CommandResponse::Queue { queue } if self.kind == Kind::Queue => {
                out.write_all(queue_lines(&queue).as_bytes())
            }
            CommandResponse::Queue { queue } => self.row(queue_row(&queue), out),
            CommandResponse::Uri(found) => {
                let row = match self.kind {
                    Kind::Uris => queued_row(&found),
                    _ => uri_row(&found.uri),
                };
                self.row(row, out)
            }
            CommandResponse::More { after } => {
                self.more = match after.as_str() {
                    "" => "there are more; raise --limit N to list them".to_owned(),
                    after => format!("there are more; continue with --after '{after}'"),
                };
                Ok(())
            }
            CommandResponse::Status(status) => out.write_all(status_lines(&status).as_bytes()),
            CommandResponse::Statistics { statistics } => {
                out.write_all(statistics_lines(&statistics).as_bytes())
            }
            CommandResponse::Plugins { plugins } => match plugin_table(&plugins) {
                table if table.is_empty() => writeln!(out, "no plugin has been called yet"),
                table => out.write_all(terminal::lines(&table).as_bytes()),
            },
            CommandResponse::Tables { tables } => out.write_all(table_lines(&tables).as_bytes()),
            CommandResponse::Report {
                observer,
                file,
                content,
            } => {
                self.any_report = true;
                let (file, content) = (terminal::line(&file), terminal::lines(&content));
                writeln!(out, "== {observer} {file}\n{}", content.trim_end())
            }
            CommandResponse::Done { result } => writeln!(out, "{result}"),
            CommandResponse::Swept(swept) => writeln!(out, "{}", swept_line(&swept)),
            CommandResponse::Why(why) => out.write_all(why_lines(&why).as_bytes()),
            CommandResponse::Source(source) => out.write_all(source_lines(&source).as_bytes()),
            CommandResponse::Imported(imported) => {
                out.write_all(import_lines(&imported).as_bytes())
            }
            CommandResponse::Problem { problem } => writeln!(out, "{problem}"),
            CommandResponse::Checked(found) => writeln!(out, "{}", checked_line(&found)),
            CommandResponse::Checkpoint(made) => out.write_all(checkpoint_lines(&made).as_bytes()),
            CommandResponse::Text { text } => out.write_all(text.as_bytes()),
            CommandResponse::Settings { settings } => show::settings(&settings, out),
            // The refusal that follows contains the errors.
            CommandResponse::Faults { .. } => Ok(()),
            CommandResponse::Set(set) => show::changed(&set, out),
            CommandResponse::Override(one) => {
                self.any_report = true;
                show::listed_override(&one, out)
            }
            CommandResponse::Change(change) => show::change(&change, out),
            CommandResponse::SeedsAdded(added) => show::seeds_added(&added, out),
            CommandResponse::Seed(seed) => self.row(show::seed_row(&seed), out),
            CommandResponse::Host(host) => self.row(show_results::host_row(&host), out),
            CommandResponse::HostTotals(totals) => {
                self.totals = show_results::host_totals(&totals);
                Ok(())
            }
            CommandResponse::Explained(explained) => show::explained(&explained, out),
            CommandResponse::Alerts { alerts } => show_results::alerts(&alerts, out),
            CommandResponse::Breakdown(breakdown) => show_results::breakdown(&breakdown, out),
            CommandResponse::Facts { facts: object } | CommandResponse::Row { row: object } => {
                writeln!(out, "{object}")
            }
            CommandResponse::Series { samples } => {
                writeln!(out, "{}", serde_json::to_string(&samples)?)
            }
            CommandResponse::Progress { .. }
            | CommandResponse::End
            | CommandResponse::Refused { .. } => Ok(()),
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
        let columns = self.kind.columns();
        if self.widths.is_empty() {
            let names = columns.iter().map(|name| (*name).to_owned()).collect();
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
                let is_status = columns.get(index) == Some(&STATUS);
                let is_number = cell.starts_with(|c: char| c.is_ascii_digit())
                    && !cell.contains([':', '/'])
                    && !is_status
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
    pub(super) fn finish(&mut self, is_whole: bool, out: &mut dyn Write) -> io::Result<()> {
        let is_table = matches!(
            self.kind,
            Kind::Queues | Kind::Uris | Kind::List | Kind::Seeds | Kind::Hosts
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
        if is_whole && self.kind == Kind::Overrides && !self.json && !self.any_report {
            return writeln!(
                out,
                "no overrides: opilio job set JOB --host HOST KEY=VALUE adds one"
            );
        }
        self.write_rows(out)?;
        if !self.totals.is_empty() {
            writeln!(out, "{}", self.totals)?;
        }
        if !self.more.is_empty() {
            writeln!(out, "{}", self.more)?;
        }
        Ok(())
    }
}

//! Answers as people read them: tables, and lines of a name and a value; or as JSON, one object a line.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::{HumanBytes, HumanCount, HumanDuration};
use jiff::Timestamp;
use opilio_crawl::control::{Answer, Command, Status, WhyAnswer};
use opilio_crawl::{TableReport, plugin_table};
use serde_json::Value;

use crate::terminal;

/// Width of the names before values.
const NAME_WIDTH: usize = 14;

/// Rows whose columns are made equally wide. Later ones keep to these widths as far as they can.
const ROWS_ALIGNED: usize = 1_000;

/// Fetches in flight that people are shown, the oldest first.
const IN_FLIGHT_SHOWN: usize = 10;

/// Shows the answers to one command.
pub(crate) struct Show {
    json: bool,
    kind: Kind,
    rows: Vec<Vec<String>>,
    widths: Vec<usize>,
    /// The command that goes on with the next page, its cursor missing.
    more: String,
    /// Whether an observer has reported anything.
    any_report: bool,
}

/// What the answers are answers to, where they look different for it.
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
            // An export is its lines alone.
            (Answer::Done { .. }, _) if self.kind == Kind::Export => Ok(()),
            (Answer::Queue { queue }, true) => writeln!(out, "{queue}"),
            (
                Answer::Uri {
                    mut uri,
                    is_ready,
                    in_process,
                },
                true,
            ) => {
                for (name, value) in [("is_ready", is_ready), ("in_process", in_process)] {
                    if let Some(value) = value {
                        uri[name] = value.into();
                    }
                }
                writeln!(out, "{uri}")
            }
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
            Answer::Uri {
                uri,
                is_ready,
                in_process,
            } => {
                let row = match self.kind {
                    Kind::Uris => queued_row(&uri, is_ready, in_process),
                    _ => uri_row(&uri),
                };
                self.row(row, out)
            }
            Answer::More { after } => {
                self.more = match after.as_str() {
                    "" => "there are more; --limit N shows more of them".to_owned(),
                    after => format!("there are more; go on with --after '{after}'"),
                };
                Ok(())
            }
            Answer::Status(status) => out.write_all(status_lines(&status).as_bytes()),
            Answer::Statistics { statistics } => {
                let value = serde_json::to_value(*statistics)?;
                out.write_all(statistics_lines(&value).as_bytes())
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
            Answer::Swept {
                action,
                examined,
                meant,
                in_process,
            } => {
                let done = match action.as_str() {
                    "delete" => "deleted",
                    "forget" => "forgotten",
                    _ => "counted",
                };
                let stay = match in_process {
                    0 => String::new(),
                    1 => ", 1 more is in process".to_owned(),
                    some => format!(", {} more are in process", HumanCount(some)),
                };
                writeln!(
                    out,
                    "{} {done}{stay}; {} looked at",
                    numbered(meant, "URI"),
                    HumanCount(examined)
                )
            }
            Answer::Why(why) => out.write_all(why_lines(&why).as_bytes()),
            Answer::Source {
                file,
                format,
                lines,
                bad_lines,
                problems,
            } => {
                writeln!(
                    out,
                    "{}: {format}, {}, {} of them bad",
                    file.display(),
                    numbered(lines, "line"),
                    HumanCount(bad_lines)
                )?;
                problems.iter().try_for_each(|one| writeln!(out, "  {one}"))
            }
            Answer::Imported {
                scheduled,
                included,
                known,
                prerequisites,
                left_out,
                refused,
                refusals,
            } => {
                let counts = [
                    ("to be fetched", scheduled),
                    ("done", included),
                    ("known before", known),
                    ("prerequisites", prerequisites),
                    ("left out", left_out),
                    ("refused", refused),
                ];
                for (name, count) in counts {
                    out.write_all(line(name, &HumanCount(count).to_string()).as_bytes())?;
                }
                refusals.iter().try_for_each(|one| writeln!(out, "  {one}"))
            }
            Answer::Problem { problem } => writeln!(out, "{problem}"),
            Answer::Checked(found) => {
                let verdict = match (found.problems, found.repaired) {
                    (0, _) => "sound".to_owned(),
                    (problems, 0) => {
                        format!("{}; --repair mends them", numbered(problems, "problem"))
                    }
                    (problems, repaired) => {
                        format!("{}, {repaired} repaired", numbered(problems, "problem"))
                    }
                };
                writeln!(
                    out,
                    "{}, {} of them queued in {}: {verdict}",
                    numbered(found.uris, "URI"),
                    HumanCount(found.queued),
                    numbered(found.queues, "queue")
                )
            }
            Answer::Checkpoint(made) => {
                let bytes: u64 = made.warcs.iter().map(|warc| warc.bytes).sum();
                writeln!(
                    out,
                    "{}\n{}; {} with {} in all stay with the job\nmake a job of it with: opilio job restore {} NEWJOB",
                    made.directory.display(),
                    numbered(made.uris, "URI"),
                    numbered(made.warcs.len() as u64, "WARC file"),
                    HumanBytes(bytes),
                    made.directory.display(),
                )
            }
            Answer::Text { text } => out.write_all(text.as_bytes()),
            Answer::Settings { settings } => crate::job::show::settings(&settings, out),
            // The refusal that follows says them.
            Answer::Faults { .. } => Ok(()),
            Answer::Set {
                number,
                changed,
                notices,
            } => crate::job::show::changed(number, &changed, &notices, out),
            Answer::Change(change) => crate::job::show::change(&change, out),
            Answer::SeedsAdded {
                added,
                prefixes,
                known,
                ..
            } => crate::job::show::seeds_added(added, prefixes, known, out),
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

    /// Prints what has been held back. Only where the answer is whole does an empty one mean that there is nothing.
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

/// Names of columns of numbers.
const RIGHT: [&str; 7] = [
    "ready",
    "waiting",
    "in process",
    "precedence",
    "fetched",
    "received",
    "status",
];

const QUEUE_COLUMNS: [&str; 9] = [
    "queue",
    "state",
    "ready",
    "waiting",
    "in process",
    "precedence",
    "gives from",
    "fetched",
    "received",
];

const QUEUED_COLUMNS: [&str; 5] = ["place", "directive", "precedence", "status", "URI"];

const URI_COLUMNS: [&str; 4] = ["state", "status", "when", "URI"];

/// The lists that plugins look things up in, one a line, and what is wrong with the file of one below it.
fn table_lines(tables: &[TableReport]) -> String {
    if tables.is_empty() {
        return "the profile has no tables\n".to_owned();
    }
    let width = |of: fn(&TableReport) -> usize| tables.iter().map(of).max().unwrap_or(0);
    let (name, kind) = (
        width(|table| table.name.len()),
        width(|table| table.kind.len()),
    );
    let line = |table: &TableReport| {
        let file = match &table.file {
            Some(file) => file.display().to_string(),
            None => "profile.toml".to_owned(),
        };
        let mut line = format!(
            "{:name$}  {:kind$}  {:>12} rows  read {}  {file}\n",
            table.name,
            table.kind,
            HumanCount(table.rows).to_string(),
            table.read.strftime("%Y-%m-%d %H:%M:%S UTC"),
        );
        if let Some(problem) = &table.problem {
            line.push_str(&format!("{:name$}  stays as it was: {problem}\n", ""));
        }
        line
    };
    tables.iter().map(line).collect()
}

fn queue_row(queue: &Value) -> Vec<String> {
    let state = match text(queue, "retired_by") {
        by if by == NOTHING => text(queue, "state"),
        by => format!("{} by {by}", text(queue, "state")),
    };
    vec![
        text(queue, "queue"),
        state,
        count(queue, "ready"),
        count(queue, "waiting"),
        count(queue, "in_process"),
        text(queue, "precedence"),
        time(queue, "wake"),
        count(queue, "fetched"),
        bytes(queue, "bytes"),
    ]
}

fn queued_row(uri: &Value, is_ready: Option<bool>, in_process: Option<bool>) -> Vec<String> {
    let place = match (in_process, is_ready) {
        (Some(true), _) => "in process".to_owned(),
        (_, Some(true)) => "ready".to_owned(),
        _ => time(uri, "due"),
    };
    vec![
        place,
        text(uri, "directive"),
        text(uri, "precedence"),
        status(uri),
        text(uri, "uri"),
    ]
}

fn uri_row(uri: &Value) -> Vec<String> {
    let last = uri["history"].get(0).map(|last| time(last, "at"));
    let (state, when) = match text(uri, "state").as_str() {
        "queued" => ("queued".to_owned(), time(uri, "due")),
        "done" => (
            text(uri, "standing"),
            last.unwrap_or_else(|| NOTHING.to_owned()),
        ),
        other => (other.to_owned(), last.unwrap_or_else(|| NOTHING.to_owned())),
    };
    vec![state, status(uri), when, text(uri, "uri")]
}

fn queue_lines(queue: &Value) -> String {
    let state = match text(queue, "retired_by") {
        by if by == NOTHING => text(queue, "state"),
        by => format!("{} by {by}", text(queue, "state")),
    };
    let mut lines = line("queue", &text(queue, "queue"));
    lines += &line("state", &state);
    lines += &line(
        "URIs",
        &format!(
            "{} ready, {} of them in process; {} not yet due",
            count(queue, "ready"),
            count(queue, "in_process"),
            count(queue, "waiting")
        ),
    );
    lines += &line("precedence", &text(queue, "precedence"));
    lines += &line("gives from", &time(queue, "wake"));
    lines += &line("rests until", &time(queue, "next_ready"));
    let failures = queue["failures"].as_u64().unwrap_or(0);
    if failures > 0 {
        lines += &line("failures", &format!("{failures} in a row"));
    }
    if let Some(delay) = queue["crawl_delay_ms"].as_u64() {
        lines += &line(
            "crawl-delay",
            &format!("{:?}", Duration::from_millis(delay)),
        );
    }
    if queue["group"].is_string() {
        lines += &line("server group", &text(queue, "group"));
    }
    lines += &line(
        "done",
        &format!(
            "{}: {}, {} succeeded, {} new or changed",
            numbered(number(queue, "finished"), "turn"),
            numbered(number(queue, "fetched"), "document"),
            numbered(number(queue, "succeeded"), "URI"),
            numbered(number(queue, "novel"), "document")
        ),
    );
    lines += &line(
        "received",
        &format!(
            "{}, {} of it new or changed",
            bytes(queue, "bytes"),
            bytes(queue, "novel_bytes")
        ),
    );
    let run_time = Duration::from_millis(number(queue, "run_time_ms"));
    lines += &line("exchanges took", &HumanDuration(run_time).to_string());
    lines + &line("cost", &count(queue, "spent"))
}

fn status_lines(status: &Status) -> String {
    let statistics = &status.statistics;
    let state = match (status.pid, status.elapsed_s) {
        (Some(pid), Some(elapsed)) => format!(
            "{}; process {pid}, for {}",
            status.state.name(),
            HumanDuration(Duration::try_from_secs_f64(elapsed).unwrap_or_default())
        ),
        _ => format!("{}: no process runs it", status.state.name()),
    };
    let mut lines = line("job", &status.job.display().to_string());
    lines += &line("state", &state);
    lines += &line(
        "URIs",
        &format!(
            "{} discovered, {} queued, {} in process",
            HumanCount(statistics.discovered),
            HumanCount(statistics.queued),
            HumanCount(statistics.in_process)
        ),
    );
    lines += &line(
        "finished",
        &format!(
            "{} succeeded, {} failed, {} disregarded",
            HumanCount(statistics.succeeded),
            HumanCount(statistics.failed),
            HumanCount(statistics.disregarded)
        ),
    );
    if status.pid.is_some() {
        let received = format!(
            "{} for {} since it began",
            HumanBytes(status.bytes),
            numbered(status.uris, "URI")
        );
        lines += &line("received", &received);
        let (share, taken) = (status.share, status.taken);
        if let Some(bytes) = share.bytes_per_second {
            lines += &line("share", &format!("{} a second", HumanBytes(bytes)));
        }
        if let Some(connections) = share.connections {
            let share = format!("{connections} connections, {} in use", taken.connections);
            lines += &line("share", &share);
        }
    }
    for alert in &status.alerts {
        let what = format!("{}: {}", alert.kind.name(), alert.message);
        lines += &line(alert.severity.name(), &terminal::line(&what));
    }
    for (index, flight) in status.in_flight.iter().take(IN_FLIGHT_SHOWN).enumerate() {
        let name = if index == 0 { "in flight" } else { "" };
        let since = flight.since.strftime("%H:%M:%S");
        lines += &line(name, &format!("since {since}  {}", flight.uri));
    }
    if status.in_flight.len() > IN_FLIGHT_SHOWN {
        lines += &line("", "and others; --json names up to 100");
    }
    lines
}

fn statistics_lines(statistics: &Value) -> String {
    let of = |name: &str| count(statistics, name);
    let nested = |group: &str, name: &str| count(&statistics[group], name);
    let size = |name: &str| bytes(&statistics["bytes"], name);
    let mut lines = line(
        "URIs",
        &format!(
            "{} discovered, {} queued, {} in process",
            of("discovered"),
            of("queued"),
            of("in_process")
        ),
    );
    lines += &line(
        "finished",
        &format!(
            "{} succeeded, {} failed, {} disregarded",
            of("succeeded"),
            of("failed"),
            of("disregarded")
        ),
    );
    lines += &line("visits", &of("visits"));
    lines += &line(
        "revisits",
        &format!(
            "{} changed, {} unchanged, {} not modified, {} unknown",
            nested("revisits", "changed"),
            nested("revisits", "unchanged"),
            nested("revisits", "not_modified"),
            nested("revisits", "unknown")
        ),
    );
    lines += &line(
        "received",
        &format!(
            "{} new or changed, {} unchanged, {} unknown",
            size("novel"),
            size("unchanged"),
            size("unknown")
        ),
    );
    lines += &line("retries", &of("retries"));
    lines += &line("deferrals", &of("deferrals"));
    lines += &line("out of scope", &format!("{} links", of("refused")));
    lines += &line("faded", &of("faded"));
    let bounds = [
        "1 s", "1 min", "10 min", "1 h", "6 h", "1 day", "1 week", "4 weeks", "longer",
    ];
    let counts = statistics["overdue"]["counts"].as_array();
    let late: Vec<String> = counts
        .into_iter()
        .flatten()
        .zip(bounds)
        .filter_map(|(count, bound)| Some((count.as_u64().filter(|count| *count > 0)?, bound)))
        .map(|(count, bound)| format!("{} up to {bound}", HumanCount(count)))
        .collect();
    if !late.is_empty() {
        lines += &line(
            "overdue",
            &late.join(", ").replace("up to longer", "longer"),
        );
    }
    let run_time = &statistics["run_time"]["secs"];
    let run_time = Duration::from_secs(run_time.as_u64().unwrap_or(0));
    lines + &line("run time", &HumanDuration(run_time).to_string())
}

fn why_lines(why: &WhyAnswer) -> String {
    let mut lines = format!("{}\n", why.asked);
    lines += &line("why", &why.sentence);
    if why.canonical != why.asked {
        lines += &line("counts as", &why.canonical);
    }
    let Some(uri) = &why.uri else { return lines };
    if why.known == "same-as" {
        lines += &line("stands for it", &text(uri, "uri"));
    }
    let hops = match text(uri, "hop_path") {
        hops if hops == NOTHING => "none: it is where the crawl begins".to_owned(),
        hops => format!("{hops} from {}", text(uri, "source")),
    };
    lines += &line("hops", &hops);
    if number(uri, "visits") > 0 {
        let visits = format!(
            "{}, {}",
            numbered(number(uri, "visits"), "visit"),
            numbered(number(uri, "versions"), "version")
        );
        lines += &line("visits", &visits);
    }
    for (index, turn) in uri["history"].as_array().into_iter().flatten().enumerate() {
        let name = if index == 0 { "turns" } else { "" };
        let turn = format!(
            "{}  {}  {}",
            time(turn, "at"),
            text(turn, "status"),
            text(turn, "content")
        );
        lines += &line(name, &turn);
    }
    if let Some(queue) = &why.queue {
        let state = match text(queue, "retired_by") {
            by if by == NOTHING => text(queue, "state"),
            by => format!("{} by {by}", text(queue, "state")),
        };
        lines += &line("queue", &format!("{}: {state}", text(queue, "queue")));
    }
    lines
}

/// What stands where there is nothing.
const NOTHING: &str = "-";

fn line(name: &str, value: &str) -> String {
    format!("{name:>NAME_WIDTH$}  {value}\n")
}

fn text(object: &Value, name: &str) -> String {
    match &object[name] {
        Value::Null => NOTHING.to_owned(),
        // Such that no terminal takes it for an order.
        Value::String(text) if text.is_empty() => NOTHING.to_owned(),
        Value::String(text) => text
            .chars()
            .map(|c| if c.is_control() { '\u{fffd}' } else { c })
            .collect(),
        other => other.to_string(),
    }
}

/// So many of something, in words that take an s.
fn numbered(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", HumanCount(count))
}

fn number(object: &Value, name: &str) -> u64 {
    object[name].as_u64().unwrap_or(0)
}

fn count(object: &Value, name: &str) -> String {
    HumanCount(object[name].as_u64().unwrap_or(0)).to_string()
}

fn bytes(object: &Value, name: &str) -> String {
    HumanBytes(object[name].as_u64().unwrap_or(0)).to_string()
}

/// UTC, to the second.
fn time(object: &Value, name: &str) -> String {
    let at = object[name].as_str().and_then(|at| at.parse().ok());
    at.map_or_else(
        || NOTHING.to_owned(),
        |at: Timestamp| at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

/// Fetch status; nothing before the first turn.
fn status(uri: &Value) -> String {
    match uri["status"].as_i64() {
        None | Some(0) => NOTHING.to_owned(),
        Some(status) => status.to_string(),
    }
}

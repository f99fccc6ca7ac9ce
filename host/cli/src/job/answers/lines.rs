//! Lines of a name and a value, for a job, a queue, a URI, and the statistics of the crawl.

use std::time::Duration;

use indicatif::{HumanBytes, HumanCount, HumanDuration};
use opilio_control::{KnownStack, Overdue, Statistics, Status, WhyAnswer, status_words};
use opilio_crawl::TableReport;
use serde_json::Value;

use super::value::{NOTHING, bytes, count, number, queue_state, status, text, time};
use crate::figures::{self, numbered};
use crate::terminal;

/// Width of the names before values.
const NAME_WIDTH: usize = 14;

/// Fetches in flight that are shown to people, the oldest first.
const IN_FLIGHT_SHOWN: usize = 10;

pub(super) fn line(name: &str, value: &str) -> String {
    format!("{name:>NAME_WIDTH$}  {value}\n")
}

pub(super) fn status_lines(status: &Status) -> String {
    let statistics = &status.statistics;
    let mut lines = line("job", &status.job.display().to_string());
    // The state of a job without a process is known from its files, and is shown before this.
    if let (Some(pid), Some(elapsed)) = (status.pid, status.elapsed_s) {
        let elapsed = Duration::try_from_secs_f64(elapsed).unwrap_or_default();
        let state = format!(
            "{}; process {pid}, running for {}",
            status.state.name(),
            HumanDuration(elapsed)
        );
        lines += &line("state", &state);
    }
    lines += &line("URIs", &figures::uris(statistics));
    if let Some(visits) = &status.visits {
        lines += &line("visits", &figures::visits(visits));
    }
    if statistics.retries > 0 {
        lines += &line("retries", &HumanCount(statistics.retries).to_string());
    }
    if status.pid.is_some() {
        let received = format!(
            "{} for {} since the process started",
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
        lines += &line("", "and others; --json lists up to 100");
    }
    if let Some(browsers) = &status.browsers {
        let figures = &browsers.figures;
        let rendered = format!(
            "{} rendered, {} of them cut; {} not rendered; crashes: {}; {}, {} of them refused",
            numbered(figures.rendered, "page"),
            HumanCount(figures.cut_pages()),
            HumanCount(figures.not_rendered),
            HumanCount(figures.crashes),
            numbered(figures.requests, "request"),
            HumanCount(figures.refused),
        );
        lines += &line("browsers", &rendered);
    }
    lines
}

pub(super) fn queue_lines(queue: &Value) -> String {
    let state = queue_state(queue);
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
    lines += &line("next URI at", &time(queue, "wake"));
    lines += &line("delayed until", &time(queue, "next_ready"));
    let failures = queue["failures"].as_u64().unwrap_or(0);
    if failures > 0 {
        let last = queue["last_failure"].as_i64();
        let last = last.and_then(|status| status.try_into().ok());
        let last = last.map_or_else(String::new, |status| {
            format!("; last failure: {}", status_words(status))
        });
        lines += &line("back-offs", &format!("{failures} in a row{last}"));
    }
    if let Some(delay) = queue["crawl_delay_s"].as_f64() {
        lines += &line("crawl-delay", &format!("{delay} s"));
    }
    if queue["group"].is_string() {
        lines += &line("server group", &text(queue, "group"));
    }
    lines += &line(
        "done",
        &format!(
            "{}: {}, {} succeeded, {} new or changed",
            numbered(number(queue, "finished"), "visit"),
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
    let run_time = queue["run_time_s"].as_f64().unwrap_or_default();
    let run_time = Duration::try_from_secs_f64(run_time).unwrap_or_default();
    lines += &line("exchanges took", &HumanDuration(run_time).to_string());
    lines + &line("cost", &count(queue, "spent"))
}

pub(super) fn statistics_lines(statistics: &Statistics) -> String {
    let count = |count: u64| HumanCount(count).to_string();
    let bytes = &statistics.bytes;
    let received = format!(
        "{} new or changed, {} unchanged, {} unknown",
        HumanBytes(bytes.novel),
        HumanBytes(bytes.unchanged),
        HumanBytes(bytes.unknown)
    );
    let lines = [
        ("URIs", figures::uris(statistics)),
        ("finished", figures::outcomes(statistics)),
        ("visits", count(statistics.visits)),
        ("revisits", figures::revisits(statistics)),
        ("received", received),
        ("retries", count(statistics.retries)),
        ("deferrals", count(statistics.deferrals)),
        (
            "out of scope",
            format!("{} links", count(statistics.refused)),
        ),
        ("faded", count(statistics.faded)),
        ("overdue", overdue(&statistics.overdue)),
        ("run time", HumanDuration(statistics.run_time).to_string()),
    ];
    let lines = lines.iter().filter(|(_, value)| !value.is_empty());
    lines.map(|(name, value)| line(name, value)).collect()
}

/// Returns the revisits by delay; empty without revisits.
fn overdue(overdue: &Overdue) -> String {
    let bounds = [
        "up to 1 s",
        "up to 1 min",
        "up to 10 min",
        "up to 1 h",
        "up to 6 h",
        "up to 1 day",
        "up to 1 week",
        "up to 4 weeks",
        "longer",
    ];
    let classes = overdue.counts.iter().zip(bounds);
    let late = classes.filter(|(count, _)| **count > 0);
    let late = late.map(|(count, bound)| format!("{} {bound}", HumanCount(*count)));
    late.collect::<Vec<_>>().join(", ")
}

pub(super) fn why_lines(why: &WhyAnswer) -> String {
    let mut lines = format!("{}\n", why.asked);
    lines += &line("why", &why.sentence);
    if let Some(part) = &why.part {
        lines += &line("part", part);
    }
    if why.canonical != why.asked {
        lines += &line("canonical", &why.canonical);
    }
    let Some(uri) = &why.uri else { return lines };
    if why.known == "same-as" {
        lines += &line("same as", &text(uri, "uri"));
    }
    let hops = match text(uri, "hop_path") {
        hops if hops == NOTHING => "none (seed)".to_owned(),
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
    let history = uri["history"].as_array().map_or(&[][..], Vec::as_slice);
    let widths = history.iter().map(|visit| status(visit).chars().count());
    let width = widths.max().unwrap_or(0);
    for (index, visit) in history.iter().enumerate() {
        let name = if index == 0 { "history" } else { "" };
        let mut visit = format!(
            "{}  {:width$}  {:9}  {:13}  {}",
            time(visit, "at"),
            status(visit),
            text(visit, "content"),
            text(visit, "digest"),
            match visit["wait_s"].as_u64() {
                Some(seconds) =>
                    format!("next after {}", HumanDuration(Duration::from_secs(seconds))),
                None => String::new(),
            }
        );
        visit.truncate(visit.trim_end_matches([' ', '-']).len());
        lines += &line(name, &visit);
    }
    if let Some(refusal) = &why.last_refusal
        && let Some(filter) = &refusal.filter
    {
        let stages = refusal.stages.join(", ");
        let stages = match stages.is_empty() {
            true => "in no stack now",
            false => &stages,
        };
        lines += &line("refused by", &format!("{filter} ({stages})"));
    }
    for (name, field, known) in [
        ("extracted by", "extractor", &why.read_by),
        ("stripped by", "stripper", &why.stripped_by),
    ] {
        if let Some(stack) = stack_of(uri[field].as_str(), known.as_ref()) {
            lines += &line(name, &stack);
        }
    }
    if let Some(queue) = &why.queue {
        let state = queue_state(queue);
        lines += &line("queue", &format!("{}: {state}", text(queue, "queue")));
    }
    lines
}

/// Returns the plugins of a stack hash, or the beginning of the hash if the stack is not known.
fn stack_of(hash: Option<&str>, known: Option<&KnownStack>) -> Option<String> {
    let hash = hash?;
    let Some(known) = known else {
        let is_none = hash.bytes().all(|digit| digit == b'0');
        return Some(match is_none {
            true => "incomplete: a plugin failed; the next visit repeats it".to_owned(),
            false => format!("unknown stack {hash:.8}"),
        });
    };
    let mut plugins = crate::job::show::plugin_names(&known.plugins);
    if plugins.is_empty() {
        plugins.push_str("no plugins");
    }
    let then = match known.is_in_force {
        Some(false) => "; the stack of the job has changed since",
        _ => "",
    };
    Some(format!("{plugins}{then}"))
}

/// Returns the lookup tables, one a line, with the error of a table's file below it.
pub(super) fn table_lines(tables: &[TableReport]) -> String {
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
            line.push_str(&format!("{:name$}  not updated: {problem}\n", ""));
        }
        line
    };
    tables.iter().map(line).collect()
}

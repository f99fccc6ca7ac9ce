//! `opilio job logs`: a job's logs, from any time or as they are written.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use indicatif::HumanBytes;
use jiff::{SignedDuration, Timestamp};
use opilio_control::Command;
use opilio_crawl::logs::filter::{LogConditionError, LogConditions, LogFilter};
use opilio_crawl::logs::read::{self, LogPage, LogQuery};
use opilio_crawl::logs::search::LogSearch;
use serde_json::json;

use super::log_table;
use super::send::{self, send};
use super::target::JobTarget;
use crate::job_directory::existing_job;
use crate::{exit, terminal};

/// Interval between checks of a followed log.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Lines shown if neither a number nor a time is given.
const TAIL: usize = 20;

/// The command line.
#[derive(Debug, Args)]
pub(super) struct LogsArgs {
    /// Directory of the job, or its name in the folder `jobs`.
    #[arg(value_name = "JOB", value_parser = existing_job())]
    job: PathBuf,
    /// Log to print, such as `crawl.log` or `crawl` [default: list the logs].
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print the last N lines [default: 20, or all with --since].
    #[arg(long, value_name = "N")]
    tail: Option<usize>,
    /// Print only lines that contain a match of this regular expression.
    #[arg(long, value_name = "REGEX")]
    grep: Option<String>,
    /// Print only lines since a time, such as 2026-11-20T12:00:00Z, or of a last period, such as 2h.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Print only lines before a time, such as 2026-11-20T12:00:00Z or 2h (two hours ago).
    #[arg(long, value_name = "TIME", conflicts_with = "follow")]
    until: Option<String>,
    #[command(flatten)]
    columns: ColumnArgs,
    /// Print new lines as they are written, until Ctrl-C.
    #[arg(long, short)]
    follow: bool,
    /// crawl.log: write the selected lines of all its files to FILE, as a table in Apache Parquet.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tail", "follow"])]
    parquet: Option<PathBuf>,
    /// Rotate all logs of the running crawl: continue each in a new file.
    #[arg(long, conflicts_with_all = ["name", "tail", "grep", "since", "until", "follow", "parquet", "ColumnArgs"])]
    rotate: bool,
    /// Print JSON: the list of logs, and the results of --parquet and --rotate. Lines of logs are printed as they are.
    #[arg(long)]
    json: bool,
}

/// Conditions on the columns of `crawl.log`.
#[derive(Debug, Args)]
#[group(multiple = true)]
struct ColumnArgs {
    /// crawl.log: print only visits with these fetch statuses, such as 404, 5xx, 500-599 or -2, separated by commas.
    #[arg(long, value_name = "STATUS", allow_hyphen_values = true)]
    status: Option<String>,
    /// crawl.log: print only visits with this media type, such as text/html, image/* or no-type.
    #[arg(long, visible_alias = "type", value_name = "TYPE")]
    media_type: Option<String>,
    /// crawl.log: print only visits of this host, without its subdomains.
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Print only lines about this plugin: in crawl.log visits with an annotation that names it, in runtime-errors.log its errors,
    /// in scope.log its decisions, in alerts.log and job.log its alerts and the commands on it.
    #[arg(long, value_name = "PLUGIN")]
    plugin: Option<String>,
}

/// Lines to print.
struct LineSelection {
    filter: LogFilter,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl LineSelection {
    fn query(&self) -> LogQuery {
        LogQuery {
            since: self.since,
            until: self.until,
            filter: self.filter.clone(),
            ..LogQuery::default()
        }
    }
}

/// Runs the command.
pub(super) fn run(args: LogsArgs) -> Result<u8> {
    if args.rotate {
        let target = JobTarget {
            job: args.job,
            json: args.json,
        };
        return send(&target, Command::RotateLogs);
    }
    let job_log = match opilio_control::log_file(&args.job) {
        Ok(file) => file,
        Err(problem) => return Ok(send::refused(&problem)),
    };
    let folder = job_log.parent().unwrap_or(&args.job).to_owned();
    let Some(name) = &args.name else {
        if args.parquet.is_some() {
            return usage("--parquet needs the name of a log: write `crawl` before it");
        }
        return list(&folder, args.json);
    };
    if args.json && args.parquet.is_none() {
        return usage(
            "--json is for the list of logs, --parquet and --rotate; with `logs.json` in its profile, a job writes crawl.jsonl",
        );
    }
    let Some(file) = find(&folder, name)? else {
        return usage(&format!(
            "log {name:?} not found; `opilio job logs {}` lists the logs",
            args.job.display()
        ));
    };
    let conditions = LogConditions {
        text: args.grep.clone(),
        status: args.columns.status.clone(),
        media_type: args.columns.media_type.clone(),
        host: args.columns.host.clone(),
        plugin: args.columns.plugin.clone(),
    };
    let filter = match conditions.parse() {
        Ok(filter) => filter,
        Err(problem @ LogConditionError::Text(_)) => return usage(&format!("--grep: {problem}")),
        Err(problem) => return usage(&problem.to_string()),
    };
    let time_of = |text: &Option<String>| text.as_deref().map(time).transpose();
    let (since, until) = match (time_of(&args.since), time_of(&args.until)) {
        (Ok(since), Ok(until)) => (since, until),
        (Err(problem), _) => return usage(&format!("--since: {problem}")),
        (_, Err(problem)) => return usage(&format!("--until: {problem}")),
    };
    let log = file.file_name().unwrap_or_default().to_string_lossy();
    if filter.needs_columns() && !log.starts_with("crawl.log") {
        return usage(&format!(
            "{log} has no such columns; --status, --media-type and --host select lines of crawl.log"
        ));
    }
    if let Some(table) = &args.parquet {
        if log != opilio_crawl::logs::CRAWL {
            return usage(&format!("--parquet writes crawl.log only, not {log}"));
        }
        let selected = LogSearch {
            filter,
            since,
            until,
            ..LogSearch::default()
        };
        let rows = log_table::write(&file, selected, table)?;
        let table = table.display().to_string();
        let object = json!({ "answer": "written", "file": table, "rows": rows });
        terminal::print_result(args.json, &object, &format!("{table}: {rows} rows"));
        return Ok(exit::OK);
    }
    let selection = LineSelection {
        filter,
        since,
        until,
    };
    show(&file, &args, &selection)
}

fn list(folder: &Path, as_json: bool) -> Result<u8> {
    let files = read::files(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for file in files {
        if as_json {
            terminal::outln!("{}", serde_json::to_string(&file)?);
            continue;
        }
        let size = HumanBytes(file.size).to_string();
        let at = file.modified.strftime("%Y-%m-%d %H:%M:%S");
        terminal::outln!("{size:>12}  {at}  {}", file.name);
    }
    Ok(exit::OK)
}

/// Finds a log by its whole name, or by its name without the extension.
fn find(folder: &Path, name: &str) -> Result<Option<PathBuf>> {
    let files = read::files(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let is_it = |file: &str| file == name || file.strip_suffix(".log") == Some(name);
    let found = files.into_iter().find(|file| is_it(&file.name));
    Ok(found.map(|file| folder.join(file.name)))
}

/// Parses a time, or a duration before now.
fn time(text: &str) -> Result<Timestamp> {
    if let Ok(at) = text.parse() {
        return Ok(at);
    }
    if let Ok(at) = text.parse::<jiff::civil::DateTime>() {
        return Ok(at.to_zoned(jiff::tz::TimeZone::UTC)?.timestamp());
    }
    match text.parse::<SignedDuration>() {
        Ok(ago) => Ok(Timestamp::now().checked_sub(ago.abs())?),
        Err(_) => bail!("invalid time {text:?}; write 2026-11-20T12:00:00Z, 2026-11-20 or 2h"),
    }
}

/// Shows the lines of a log, including its rotated files.
fn show(file: &Path, args: &LogsArgs, selection: &LineSelection) -> Result<u8> {
    let rotated = read::rotated(file).with_context(|| unreadable(file))?;
    let chain: Vec<&Path> = rotated.iter().map(PathBuf::as_path).chain([file]).collect();
    let mut out = io::stdout().lock();
    let shown = match (args.tail, selection.since) {
        (None, Some(_)) => from(&chain, selection, &mut out)?,
        (lines, _) => tail(&chain, lines.unwrap_or(TAIL), selection, &mut out)?,
    };
    match shown {
        Some(end) if args.follow => follow(file, rotated, end, &selection.filter, &mut out),
        _ => Ok(exit::OK),
    }
}

/// Prints the last lines. Returns the end of the newest file; none if the reader has closed the output.
fn tail(
    chain: &[&Path],
    lines: usize,
    selection: &LineSelection,
    out: &mut dyn Write,
) -> Result<Option<u64>> {
    let mut pages: Vec<LogPage> = Vec::new();
    let mut left = lines;
    for file in chain.iter().rev() {
        // A page ends after much reading even if few lines matched, so several pages may be needed.
        let mut query = LogQuery {
            tail: true,
            ..selection.query()
        };
        let mut is_done = false;
        while left > 0 && !is_done {
            query.lines = Some(left);
            let page = read::page(file, &query).with_context(|| unreadable(file))?;
            is_done = page.start == query.before.unwrap_or(page.end) || page.start == 0;
            left = left.saturating_sub(page.lines.len());
            query.before = Some(page.start);
            pages.push(page);
        }
    }
    let newest = chain.last().copied().unwrap_or(Path::new(""));
    let end = match pages.first() {
        Some(page) => page.end,
        None => newest.metadata().with_context(|| unreadable(newest))?.len(),
    };
    for page in pages.iter().rev() {
        if !print(out, page)? {
            return Ok(None);
        }
    }
    Ok(Some(end))
}

/// Prints all lines of this time and later. Returns the end of the newest file; none if the reader has closed the output.
fn from(chain: &[&Path], selection: &LineSelection, out: &mut dyn Write) -> Result<Option<u64>> {
    let mut end = 0;
    for file in chain {
        let mut query = selection.query();
        loop {
            let page = read::page(file, &query).with_context(|| unreadable(file))?;
            if !print(out, &page)? {
                return Ok(None);
            }
            end = page.end;
            if page.end == page.start {
                break;
            }
            query.after = Some(page.end);
        }
    }
    Ok(Some(end))
}

/// Prints lines that are written later. `rotated` are the files that existed before, `end` is the offset up to which the log was
/// read.
fn follow(
    file: &Path,
    mut rotated: Vec<PathBuf>,
    mut end: u64,
    filter: &LogFilter,
    out: &mut dyn Write,
) -> Result<u8> {
    let page = |file: &Path, after: u64| {
        let query = LogQuery {
            after: Some(after),
            filter: filter.clone(),
            ..LogQuery::default()
        };
        match read::page(file, &query) {
            Ok(page) => Ok(Some(page)),
            // Between a rename and a new file, no file exists for a moment.
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(problem) => Err(problem).with_context(|| unreadable(file)),
        }
    };
    loop {
        let newest = page(file, end)?;
        // Checked after the page was read: the page may be of a new file, and the followed file may have another name now.
        let now = read::rotated(file).with_context(|| unreadable(file))?;
        let new: Vec<_> = now.iter().filter(|it| !rotated.contains(it)).collect();
        for older in &new {
            while let Some(page) = page(older, end)?.filter(|page| page.end != end) {
                end = page.end;
                if !print(out, &page)? {
                    return Ok(exit::OK);
                }
            }
            end = 0;
        }
        if !new.is_empty() {
            rotated = now;
            continue;
        }
        match newest.filter(|page| page.end != end) {
            Some(page) => {
                end = page.end;
                if !print(out, &page)? {
                    return Ok(exit::OK);
                }
            }
            None => std::thread::sleep(CHECK_INTERVAL),
        }
    }
}

fn unreadable(file: &Path) -> String {
    format!("cannot read {}", file.display())
}

/// Prints a page. Returns false if the reader has closed the output.
fn print(out: &mut dyn Write, page: &LogPage) -> Result<bool> {
    let mut write = || {
        for line in &page.lines {
            writeln!(out, "{}", terminal::line(&line.text))?;
        }
        out.flush()
    };
    match write() {
        Err(problem) if problem.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        other => other.map(|()| true).context("cannot write standard output"),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "errors are for the person at the terminal"
)]
fn usage(problem: &str) -> Result<u8> {
    eprintln!("opilio: {problem}");
    Ok(exit::USAGE)
}

//! Fitting of a scenario to a real crawl's log: its hosts, its number of pages, and their rates of change, as far as revisits
//! show them.
//!
//! A visit shows whether a page has changed since the previous one, not how often. The likelihood of rate Δ is e^(−Δg) after g
//! days without a change and 1 − e^(−Δg) after g days with one, for any intervals (Cho & Garcia-Molina 2003). Single pages have
//! too few visits for a rate of their own. The distribution of rates over pages of one kind is fitted instead: a share that never
//! changes and a lognormal rest, by expectation and maximisation over a grid of rates.

mod history;
mod log;
mod spread;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Read};

use opilio_profile::{DURATION_MAX, Diagnostics};

use crate::scenario::{BUDGET, Scenario};
use history::{History, Host, Page, Time};
use spread::{Interval, Spread};

/// Pages visited twice below which hosts and media types are combined: fewer pages do not determine a distribution.
const PAGES_MIN: usize = 20;

/// Most folders of a site.
const SECTIONS_MAX: usize = 50;

/// Births a day and site below which a site counts as complete.
const GROWTH_MIN: f64 = 0.01;

/// The reason that no scenario can be made.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// Lines that do not belong in a crawl log, each at its place.
    #[error("{0}")]
    Faults(Diagnostics),
    /// The log cannot be read to its end.
    #[error("cannot read {file}")]
    Unreadable {
        /// The log.
        file: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The gzip data is damaged, or ends too early.
    #[error(
        "the compressed data of {file} is damaged behind line {line}; give the whole file, or the part that `gzip -dc` can unpack"
    )]
    Damaged {
        /// The log.
        file: String,
        /// Whole lines before it.
        line: usize,
        /// The decoder's error.
        #[source]
        source: io::Error,
    },
    /// The time between two lines exceeds the longest time of a scenario.
    #[error(
        "{last}: {days:.0} days after {first}, and a scenario lasts for a hundred years at most (take out the lines whose time \
         is wrong)"
    )]
    Span {
        /// The place of the earliest line.
        first: String,
        /// The place of the latest one.
        last: String,
        /// Days between the two lines.
        days: f64,
    },
    /// The log contains no page that was visited twice.
    #[error(
        "there is no page that was visited twice in {file}, so rates of change cannot be estimated; give every crawl.log of a job \
         that visits pages again, as those of the profile continuous do, and has run for longer than its waits"
    )]
    NoRevisits {
        /// The log.
        file: String,
    },
    /// The web has more pages, changes or visits than a simulation can have.
    #[error(
        "the web of {file} is too large to be simulated: {faults}; give the log of fewer hosts, or of a longer time"
    )]
    TooLarge {
        /// The log.
        file: String,
        /// The errors for which the scenario was refused.
        faults: Diagnostics,
    },
    /// A defect of Opilio.
    #[error("the fitted scenario is invalid: {0}; please report it")]
    Refused(Diagnostics),
}

/// The result of fitting a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FitResult {
    /// The scenario, as a file.
    pub scenario: String,
    /// Pages in the log.
    pub pages: usize,
    /// Those visited twice or more.
    pub revisited: usize,
    /// Intervals between two visits for which it is known whether the page had changed.
    pub intervals: usize,
}

/// Makes a scenario from the crawl logs of a crawl, plain or compressed with gzip. Each log has a name for error messages. Their
/// order, and that of their lines, does not matter. A last line without its end is left out.
///
/// # Errors
/// Returns [`FitError`].
pub fn fit<L: Read>(
    logs: impl IntoIterator<Item = (String, io::Result<L>)>,
) -> Result<FitResult, FitError> {
    let mut history = History::default();
    for (file, log) in logs {
        match log {
            Ok(log) => history.read(&file, log)?,
            Err(source) => return Err(FitError::Unreadable { file, source }),
        }
    }
    let file = history.name();
    let Some(time) = history.time()? else {
        return Err(FitError::NoRevisits { file });
    };
    let hosts = history.hosts();
    let pages = || hosts.values().flat_map(|host| &host.pages);
    let revisited = pages().filter(|page| !page.intervals.is_empty()).count();
    if revisited == 0 {
        return Err(FitError::NoRevisits { file });
    }
    let intervals = pages().map(|page| page.intervals.len()).sum();
    let visits: usize = pages().map(|page| page.visits).sum();
    let count = pages().count();
    let span = time.end - time.begin;
    let visits_a_day = visits as f64 / count as f64 / span.max(1.0);
    let mut text = format!(
        "# Fitted to a crawl log: {count} pages of {} hosts, {revisited} of them visited again, {intervals} intervals, {span:.1} days.\n\
         # Values that a log does not show are the defaults of scenarios. docs/SIMULATION.md describes how the others were estimated.\n\n\
         description = \"fitted to a crawl log of {span:.1} days\"\n\
         days = \"120d\"\nwarm-up = \"30d\"\n\n[budget]\nvisits = {}\n",
        hosts.len(),
        short(visits_a_day.clamp(*BUDGET.start(), *BUDGET.end())),
    );
    let is_large = |host: &Host| host.revisited() >= PAGES_MIN;
    let (large, small): (Vec<_>, Vec<_>) = hosts.iter().partition(|(_, host)| is_large(host));
    let mut names = BTreeSet::from(["others".to_owned()]);
    for (name, host) in large {
        write_site(&mut text, &label(name, &mut names), &[host], time);
    }
    let small: Vec<&Host> = small.into_iter().map(|(_, host)| host).collect();
    if small.iter().any(|host| !host.pages.is_empty()) {
        write_site(&mut text, "others", &small, time);
    }
    if let Err(faults) = Scenario::parse("fitted.toml", &text) {
        let is_of_size = |pointer: &str| {
            matches!(pointer, "/site" | "/days" | "/budget/visits") || pointer.ends_with("/growth")
        };
        return Err(if faults.iter().all(|fault| is_of_size(&fault.pointer)) {
            FitError::TooLarge { file, faults }
        } else {
            FitError::Refused(faults)
        });
    }
    Ok(FitResult {
        scenario: text,
        pages: count,
        revisited,
        intervals,
    })
}

/// Writes a group of sites: one host, or all the small ones.
fn write_site(text: &mut String, name: &str, hosts: &[&Host], time: Time) {
    let hosts: Vec<&&Host> = hosts.iter().filter(|host| !host.pages.is_empty()).collect();
    let count = hosts.len();
    let pages: Vec<&Page> = hosts.iter().flat_map(|host| &host.pages).collect();
    let half = 0.5 * (time.begin + time.end);
    let late = pages.iter().filter(|page| page.first > half).count();
    let growth = late as f64 / (time.end - half).max(0.5) / count as f64;
    let growth = if growth < GROWTH_MIN { 0.0 } else { growth };
    let early = ((pages.len() as f64 / count as f64).round() as usize).max(1);
    let sections = hosts.iter().map(|host| {
        let sections = host.pages.iter().map(|page| &page.section);
        sections.collect::<BTreeSet<_>>().len()
    });
    let sections = sections.max().unwrap_or(1).clamp(1, SECTIONS_MAX);
    let mut took: Vec<u64> = hosts
        .iter()
        .flat_map(|host| host.took.iter().copied())
        .collect();
    took.sort_unstable();
    let requests: u64 = hosts.iter().map(|host| host.requests).sum();
    let failures: u64 = hosts.iter().map(|host| host.failures).sum();
    let _ = write!(
        text,
        "\n[[site]]\nname = \"{name}\"\ncount = {count}\npages = {early}\nsections = {sections}\n"
    );
    if growth > 0.0 {
        let _ = writeln!(text, "growth = {}", short(growth));
    } else {
        text.push_str("known = true\n");
    }
    let gone = pages.iter().filter(|page| page.gone).count();
    if gone > 0 {
        let watched: f64 = pages.iter().map(|page| page.last - page.first).sum();
        let longest = DURATION_MAX.as_secs_f64() / 86_400.0;
        let life = (watched / gone as f64).clamp(1.0, longest);
        let _ = writeln!(text, "life = \"{life:.0}d\"");
    }
    if let Some(middle) = took.get(took.len() / 2) {
        let _ = writeln!(text, "response = \"{}ms\"", (*middle).max(1));
    }
    if failures > 0 {
        let share = failures as f64 / requests as f64;
        let _ = writeln!(text, "failures = {}", short(share));
    }
    for (media_type, pages) in kinds(&pages) {
        write_kind(text, media_type, &pages);
    }
}

/// Groups pages by media type; types of few pages join the most frequent one.
fn kinds<'p>(pages: &[&'p Page]) -> Vec<(&'p str, Vec<&'p Page>)> {
    let mut types: BTreeMap<&str, Vec<&Page>> = BTreeMap::new();
    for page in pages {
        types.entry(&page.media_type).or_default().push(page);
    }
    let mut types: Vec<_> = types.into_iter().collect();
    types.sort_by_key(|(_, pages)| std::cmp::Reverse(pages.len()));
    let mut kinds: Vec<(&str, Vec<&Page>)> = Vec::new();
    for (media_type, pages) in types {
        let revisited = pages.iter().filter(|page| !page.intervals.is_empty());
        match kinds.first_mut() {
            Some((_, first)) if revisited.count() < PAGES_MIN => first.extend(pages),
            _ => kinds.push((media_type, pages)),
        }
    }
    kinds
}

/// Writes a kind of page: those that change, and those that never do.
fn write_kind(text: &mut String, media_type: &str, pages: &[&Page]) {
    let revisited: Vec<&&Page> = pages
        .iter()
        .filter(|page| !page.intervals.is_empty())
        .collect();
    let histories: Vec<&[Interval]> = revisited
        .iter()
        .map(|page| page.intervals.as_slice())
        .collect();
    let spread = Spread::fit(&histories);
    let bodies: u64 = pages.iter().map(|page| page.bodies).sum();
    let bytes: u64 = pages.iter().map(|page| page.bytes).sum();
    let size = (bytes / bodies.max(1)).max(1);
    let share = |is: fn(&Page) -> bool| {
        let count = revisited.iter().filter(|page| is(page)).count();
        count as f64 / revisited.len().max(1) as f64
    };
    let clock = share(|page| page.trivial);
    let honest = share(|page| page.conditional);
    let count = pages.len() as f64;
    let mut kind = |share: f64, change: &str| {
        if share < 0.001 * count {
            return;
        }
        let media_type = if media_type.is_empty() {
            "application/octet-stream"
        } else {
            media_type
        };
        let _ = write!(
            text,
            "\n[[site.page]]\nshare = {}\nmedia-type = {media_type:?}\nsize = {size}\nchange = {{ {change} }}\n",
            short(share)
        );
        // Scenarios put clocks into HTML only.
        if clock > 0.0 && media_type == "text/html" {
            let _ = writeln!(text, "clock = {}", short(clock));
        }
        if honest > 0.0 {
            let _ = writeln!(text, "last-modified = {{ honest = {} }}", short(honest));
        }
    };
    let lognormal = format!(
        "process = \"poisson\", per-day = {}, rates = \"lognormal\", spread = {}",
        short(spread.median),
        short(spread.sigma)
    );
    kind(count * (1.0 - spread.never), &lognormal);
    kind(count * spread.never, "process = \"never\"");
}

/// Returns an unused label for a host name, and marks it as used.
fn label(host: &str, taken: &mut BTreeSet<String>) -> String {
    let of_name = |c: char| {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            c
        } else {
            '-'
        }
    };
    // `xn--` would begin an internationalised name.
    let host = host.replace("--", "-");
    let name: String = host.chars().map(of_name).take(32).collect();
    let name = name.trim_matches('-');
    let name = if name.is_empty() { "site" } else { name };
    let mut label = name.to_owned();
    let mut number = 2;
    while !taken.insert(label.clone()) {
        label = format!("{name}-{number}");
        number += 1;
    }
    label
}

/// Formats a number with three significant digits, without an exponent.
fn short(value: f64) -> String {
    let digits = (2 - value.abs().max(1e-9).log10().floor() as i32).clamp(1, 9);
    format!("{value:.*}", digits as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log of one host: a page that changes every day, one that never does, and one that has gone; 304s and a clock.
    fn log() -> String {
        let mut text = String::new();
        let mut line = |day: u32, status: i32, path: &str, digest: char, notes: &str| {
            let digest = digest.to_string().repeat(32);
            let _ = writeln!(
                text,
                "2026-01-{day:02}T12:00:00.000Z {status:>5} 1000 http://www.example.org/{path} L - text/html #001 \
                 202601{day:02}120000000+250 sha1:{digest} - {notes}"
            );
        };
        for day in 1..=10 {
            let letter = char::from(b'A' + day as u8);
            line(day, 200, "news/a", letter, "1vis");
            let (status, notes) = if day == 1 {
                (200, "-")
            } else {
                (304, "duplicate:server-not-modified")
            };
            line(day, status, "old/b", 'A', notes);
            line(
                day,
                200,
                "old/c",
                letter,
                if day == 1 { "-" } else { "unchanged" },
            );
            line(day, if day < 5 { 200 } else { 404 }, "old/d", 'A', "-");
        }
        line(10, -2, "old/e", 'A', "-");
        text
    }

    fn fit_one(log: &str) -> Result<FitResult, FitError> {
        fit([("crawl.log".to_owned(), Ok(log.as_bytes()))])
    }

    /// Fits logs of these lines, named `0.log` and so on.
    fn fit_all(logs: &[Vec<&str>]) -> Result<FitResult, FitError> {
        let logs = logs.iter().enumerate().map(|(index, lines)| {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            (format!("{index}.log"), Ok(io::Cursor::new(text)))
        });
        fit(logs)
    }

    #[test]
    fn a_log_becomes_a_scenario() {
        let fitted = fit_one(&log()).unwrap();
        assert_eq!((fitted.pages, fitted.revisited), (4, 4));
        assert_eq!(fitted.intervals, 9 + 9 + 9 + 3);
        let scenario = Scenario::parse("fitted.toml", &fitted.scenario).unwrap();
        // Four pages are too few for a host of its own.
        let site = &scenario.sites[0];
        assert_eq!(
            (site.name.as_str(), site.count, site.pages),
            ("others", 1, 4)
        );
        assert_eq!((site.sections, site.known), (2, true));
        assert_eq!(site.response.as_millis(), 250);
        assert!(
            (site.failures - 1.0 / 41.0).abs() < 1e-3,
            "{}",
            site.failures
        );
        // Four pages were observed for nine days each, and one page has gone.
        assert_eq!(site.life, 36.0);
        assert_eq!(site.kinds[0].clock, 0.25);
        assert_eq!(site.kinds[0].last_modified.honest, 0.25);
        assert_eq!(site.kinds[0].size, 1000);
    }

    #[test]
    fn invalid_lines_are_reported_with_places_and_a_torn_end_is_left_out() {
        let good = log();
        let torn = format!("{good}2026-01-12T12:00:00.000Z   200 10");
        assert_eq!(fit_one(&torn).unwrap(), fit_one(&good).unwrap());
        let bad = format!(
            "{good}nonsense\n2026-01-12T12:00:00.000Z many 10 http://a/ - - text/html #1 - - -\n"
        );
        let error = fit_one(&bad).unwrap_err().to_string();
        assert!(
            error.contains("crawl.log:42:1: 1 columns where a crawl log has 11 or more"),
            "{error}"
        );
        assert!(
            error.contains("crawl.log:43:26: \"many\" is not a status"),
            "{error}"
        );
    }

    /// Any content of a log's lines leads to a valid scenario.
    #[test]
    fn unusual_logs_become_scenarios() {
        for (written, odd) in [
            ("text/html", "text/\u{7f}html"),
            ("text/html", "text/html\u{200b}"),
            ("www.example.org", "xn--bcher-kva.example"),
            ("2026-01-10T", "9999-01-10T"),
            (" 1000 http", " 1000000000000 http"),
            ("+250", "+86400000"),
        ] {
            let fitted = fit_one(&log().replace(written, odd));
            assert!(fitted.is_ok(), "{odd:?}: {fitted:?}");
        }
    }

    #[test]
    fn a_log_without_revisits_is_refused() {
        let first: String = log()
            .lines()
            .take(4)
            .map(|line| format!("{line}\n"))
            .collect();
        let error = fit_one(&first).unwrap_err();
        assert!(matches!(error, FitError::NoRevisits { .. }), "{error}");
    }

    /// Two lines have the same millisecond, and one line is in two logs.
    #[test]
    fn the_order_of_logs_and_lines_does_not_matter() {
        let rest = log();
        let first = rest.lines().next().unwrap();
        let (mut text, other) = (rest.clone(), first.replace("sha1:B", "sha1:Z"));
        text.push_str(&format!("{other}\n"));
        let expected = fit_one(&text).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        for _ in 0..lines.len() {
            lines.rotate_left(7);
            lines.swap(3, 30);
            let (early, late) = lines.split_at(20);
            let logs = [late.to_vec(), early.to_vec(), vec![first]];
            assert_eq!(fit_all(&logs).unwrap(), expected);
        }
    }

    #[test]
    fn a_log_longer_than_any_crawl_is_refused_with_both_places() {
        let late = log().replace(" 20260110", " 22260110");
        let early: Vec<String> = log().lines().map(str::to_owned).collect();
        let early: Vec<&str> = early.iter().map(String::as_str).collect();
        let error = fit_all(&[early, late.lines().collect()]).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, FitError::Span { .. }), "{error:?}");
        let expected = "1.log:37: 73057 days after 0.log:1, ";
        assert!(text.contains(expected), "{text}");
    }
}

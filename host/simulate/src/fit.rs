//! A scenario made of a real crawl's log: which hosts, how many pages, and how often these change, as far as revisits show it.
//!
//! A visit says whether a page has changed since the one before, not how often: after g days without a change the likelihood of
//! rate Δ is e^(−Δg), after g days with one 1 − e^(−Δg), whatever the intervals are (Cho & Garcia-Molina 2003). Single pages
//! have too few visits for a rate of their own. So what is fitted is how rates are spread over pages of one kind: a share
//! that never changes and a lognormal rest, by expectation and maximisation over a grid of rates.

mod log;
mod spread;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::BufRead;

use opilio_profile::{DURATION_MAX, Faults};

use crate::scenario::{BUDGET, Scenario};
use log::{Look, Outcome, read};
use spread::{Interval, Spread};

/// Hosts and media types with fewer pages that were visited twice are put together: fewer say nothing about a spread.
const PAGES_MIN: usize = 20;

/// Most folders of a site.
const SECTIONS_MAX: usize = 50;

/// Births a day and site below which a site counts as finished.
const GROWTH_MIN: f64 = 0.01;

/// Why there is no scenario.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// Lines that are no lines of a crawl log, each at its place.
    #[error("{0}")]
    Faults(Faults),
    /// The log cannot be read to its end.
    #[error("cannot read {file}")]
    Unreadable {
        /// What was read.
        file: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It shows no change and no rest.
    #[error(
        "{file} has no page that was visited twice: how often pages change cannot be seen in it; give the crawl.log of a job \
         that visits pages again, as those of the profile continuous do, and has run for longer than its waits"
    )]
    NoRevisits {
        /// What was read.
        file: String,
    },
    /// More pages, changes or visits than a simulation can have.
    #[error(
        "{file} is of a web that is too large to be simulated: {faults}; give the log of fewer hosts, or of a longer time"
    )]
    TooLarge {
        /// What was read.
        file: String,
        /// What the scenario was refused for.
        faults: Faults,
    },
    /// A defect of ours.
    #[error("the scenario that was made is refused: {0}; please report it")]
    Refused(Faults),
}

/// What a log came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fitted {
    /// The scenario, as a file.
    pub scenario: String,
    /// Pages in the log.
    pub pages: usize,
    /// Those visited twice or more.
    pub revisited: usize,
    /// Intervals between two visits of which it is known whether the page had changed.
    pub intervals: usize,
}

/// A page as the log knows it.
#[derive(Clone, Debug, Default)]
struct Page {
    media_type: String,
    section: String,
    first: f64,
    last: f64,
    looks: usize,
    intervals: Vec<Interval>,
    digest: Option<String>,
    bytes: u64,
    bodies: u64,
    /// It was gone at the last visit.
    gone: bool,
    /// The server has said that it had not changed.
    conditional: bool,
    /// Its bytes changed and its content did not.
    trivial: bool,
}

/// A host as the log knows it.
#[derive(Clone, Debug, Default)]
struct Host {
    pages: BTreeMap<String, Page>,
    requests: u64,
    failures: u64,
    /// Milliseconds of each answer.
    took: Vec<u64>,
}

/// Makes a scenario of a crawl log; `file` is what faults and the scenario call it. A last line without its end is left out.
///
/// # Errors
/// [`FitError`].
pub fn fit(file: &str, log: impl BufRead) -> Result<Fitted, FitError> {
    let mut hosts: BTreeMap<String, Host> = BTreeMap::new();
    let (mut begin, mut end) = (f64::INFINITY, f64::NEG_INFINITY);
    read(file, log, |look| {
        begin = begin.min(look.at);
        end = end.max(look.at);
        hosts.entry(look.host.clone()).or_default().take(look);
    })?;
    let pages = || hosts.values().flat_map(|host| host.pages.values());
    let revisited = pages().filter(|page| !page.intervals.is_empty()).count();
    if revisited == 0 {
        let file = file.to_owned();
        return Err(FitError::NoRevisits { file });
    }
    let intervals = pages().map(|page| page.intervals.len()).sum();
    let looks: usize = pages().map(|page| page.looks).sum();
    let count = pages().count();
    let span = end - begin;
    // In a comment, a line that ends would begin another one.
    let shown = file.replace(char::is_control, "\u{fffd}");
    let visits = looks as f64 / count as f64 / span.max(1.0);
    let mut text = format!(
        "# Fitted to {shown}: {count} pages of {} hosts, {revisited} of them visited again, {intervals} intervals, {span:.1} days.\n\
         # What a log does not show is as scenarios have it by default. docs/SIMULATION.md says how the rest was found.\n\n\
         description = \"fitted to a crawl log of {span:.1} days\"\n\
         days = \"120d\"\nwarm-up = \"30d\"\n\n[budget]\nvisits = {}\n",
        hosts.len(),
        short(visits.clamp(*BUDGET.start(), *BUDGET.end())),
    );
    let is_large = |host: &Host| host.revisited() >= PAGES_MIN;
    let (large, small): (Vec<_>, Vec<_>) = hosts.iter().partition(|(_, host)| is_large(host));
    let mut names = BTreeSet::from(["others".to_owned()]);
    let time = Time { begin, end };
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
            let file = shown;
            FitError::TooLarge { file, faults }
        } else {
            FitError::Refused(faults)
        });
    }
    Ok(Fitted {
        scenario: text,
        pages: count,
        revisited,
        intervals,
    })
}

/// What the log covers, in days.
#[derive(Clone, Copy)]
struct Time {
    begin: f64,
    end: f64,
}

impl Host {
    fn take(&mut self, look: Look) {
        self.requests += 1;
        self.took.extend(look.took);
        if look.outcome == Outcome::Failed {
            self.failures += 1;
            return;
        }
        if look.outcome == Outcome::Gone && !self.pages.contains_key(&look.uri) {
            return;
        }
        let page = self.pages.entry(look.uri).or_default();
        page.looks += 1;
        if page.looks == 1 {
            page.first = look.at;
            page.section = look.section;
            page.media_type = look.media_type;
        }
        let days = look.at - page.last;
        let is_back = std::mem::replace(&mut page.gone, look.outcome == Outcome::Gone);
        let before = page.last;
        page.last = look.at;
        if look.outcome == Outcome::Gone {
            return;
        }
        page.conditional |= look.outcome == Outcome::NotModified;
        let is_same = match (&page.digest, &look.digest) {
            (Some(known), Some(digest)) => Some(known == digest),
            _ => None,
        };
        let is_changed = match look.outcome {
            Outcome::NotModified => Some(false),
            Outcome::Unchanged => {
                page.trivial |= is_same == Some(false);
                Some(false)
            }
            _ => is_same.map(|is_same| !is_same),
        };
        if look.outcome != Outcome::NotModified {
            page.bytes += look.size;
            page.bodies += 1;
            page.digest = look.digest;
        }
        if let Some(is_changed) = is_changed
            && !is_back
            && page.looks > 1
            && before < look.at
        {
            page.intervals.push(Interval { days, is_changed });
        }
    }

    fn revisited(&self) -> usize {
        let pages = self.pages.values();
        pages.filter(|page| !page.intervals.is_empty()).count()
    }
}

/// A group of sites: one host, or all the small ones.
fn write_site(text: &mut String, name: &str, hosts: &[&Host], time: Time) {
    let hosts: Vec<&&Host> = hosts.iter().filter(|host| !host.pages.is_empty()).collect();
    let count = hosts.len();
    let pages: Vec<&Page> = hosts.iter().flat_map(|host| host.pages.values()).collect();
    let half = 0.5 * (time.begin + time.end);
    let late = pages.iter().filter(|page| page.first > half).count();
    let growth = late as f64 / (time.end - half).max(0.5) / count as f64;
    let growth = if growth < GROWTH_MIN { 0.0 } else { growth };
    let early = ((pages.len() as f64 / count as f64).round() as usize).max(1);
    let sections = hosts.iter().map(|host| {
        let sections = host.pages.values().map(|page| &page.section);
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

/// Pages by media type; types of few pages with the most frequent one.
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

/// A kind of page: those that change, and those that never do.
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
        if clock > 0.0 {
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

/// What may be part of a host name, and is not taken.
fn label(host: &str, taken: &mut BTreeSet<String>) -> String {
    let of_name = |c: char| {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            c
        } else {
            '-'
        }
    };
    // `xn--` would begin a name of other letters.
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

/// Three digits that count, without an exponent.
fn short(value: f64) -> String {
    let digits = (2 - value.abs().max(1e-9).log10().floor() as i32).clamp(1, 9);
    format!("{value:.*}", digits as usize)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    /// One host with a page that changes every day, one that never does, and one that has gone; 304s and a clock.
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

    #[test]
    fn a_log_becomes_a_scenario() {
        let fitted = fit("crawl.log", log().as_bytes()).unwrap();
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
        // Nine, nine, nine and nine days watched, and one page gone.
        assert_eq!(site.life, 36.0);
        assert_eq!(site.kinds[0].clock, 0.25);
        assert_eq!(site.kinds[0].last_modified.honest, 0.25);
        assert_eq!(site.kinds[0].size, 1000);
    }

    #[test]
    fn lines_that_are_none_are_told_with_their_places_and_a_torn_end_is_left_out() {
        let good = log();
        let torn = format!("{good}2026-01-12T12:00:00.000Z   200 10");
        assert_eq!(
            fit("crawl.log", torn.as_bytes()).unwrap(),
            fit("crawl.log", good.as_bytes()).unwrap()
        );
        let bad = format!(
            "{good}nonsense\n2026-01-12T12:00:00.000Z many 10 http://a/ - - text/html #1 - - -\n"
        );
        let error = fit("crawl.log", bad.as_bytes()).unwrap_err().to_string();
        assert!(
            error.contains("crawl.log:42:1: 1 columns where a crawl log has 11 or more"),
            "{error}"
        );
        assert!(
            error.contains("crawl.log:43:26: \"many\" is not a status"),
            "{error}"
        );
    }

    /// Whatever is in a log's lines or its name, the scenario is one.
    #[test]
    fn odd_logs_become_scenarios_too() {
        let name = "odd\n[[site]] crawl.log";
        for (written, odd) in [
            ("text/html", "text/\u{7f}html"),
            ("text/html", "text/html\u{200b}"),
            ("www.example.org", "xn--bcher-kva.example"),
            ("2026-01-10T", "9999-01-10T"),
            (" 1000 http", " 1000000000000 http"),
            ("+250", "+86400000"),
        ] {
            let fitted = fit(name, log().replace(written, odd).as_bytes());
            assert!(fitted.is_ok(), "{odd:?}: {fitted:?}");
        }
    }

    #[test]
    fn a_log_of_single_visits_says_nothing() {
        let first: String = log()
            .lines()
            .take(4)
            .map(|line| format!("{line}\n"))
            .collect();
        let error = fit("crawl.log", first.as_bytes()).unwrap_err();
        assert!(matches!(error, FitError::NoRevisits { .. }), "{error}");
    }
}

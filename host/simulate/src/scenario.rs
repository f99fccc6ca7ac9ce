//! Scenarios: sites, their pages, the changes of these, the behaviour of servers, and the budget of the crawl. They are written
//! in TOML and checked like a profile.

mod check;
mod file;

use std::io;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use opilio_profile::{Diagnostic, Diagnostics, Level, TomlText};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::process::Process;
pub(crate) use check::RESPONSE_MAX;
use check::{Check, DAY, MONDAY};
use file::ScenarioFile;

/// The built-in scenarios.
const READY: [(&str, &str); 10] = [
    ("blogs", include_str!("../scenarios/blogs.toml")),
    ("bursts", include_str!("../scenarios/bursts.toml")),
    ("clocks", include_str!("../scenarios/clocks.toml")),
    (
        "dead-archive",
        include_str!("../scenarios/dead-archive.toml"),
    ),
    ("feeds", include_str!("../scenarios/feeds.toml")),
    ("government", include_str!("../scenarios/government.toml")),
    ("hostile", include_str!("../scenarios/hostile.toml")),
    ("poisson", include_str!("../scenarios/poisson.toml")),
    ("rhythm", include_str!("../scenarios/rhythm.toml")),
    ("thesis", include_str!("../scenarios/thesis.toml")),
];

/// Most pages of a scenario, with hubs and sites counted as pages: each takes a few hundred bytes of memory.
const PAGES_MAX: f64 = 20e6;

/// Most changes of a scenario's pages, and most visits: a machine takes some minutes for this number.
const EVENTS_MAX: f64 = 10e9;

/// Visits per page and day. With fewer, a page gets none in a hundred years; more are not a budget any more.
pub(crate) const BUDGET: std::ops::RangeInclusive<f64> = 1e-6..=86_400.0;

/// Largest mean size of pages, a terabyte: sums of it fit into the byte counters.
pub(crate) const SIZE_MAX: u64 = 1_000_000_000_000;

/// Years in which a scenario may begin. Crawls have no times before 1970, and waits must end before calendars do.
const YEARS: std::ops::Range<i16> = 1970..9000;

/// Longest time of a scenario, a hundred years: the limits of calendar times and of milliseconds in floats are much higher.
const DAYS_MAX: f64 = 36_525.0;

/// A checked scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The name of the scenario.
    pub name: String,
    /// A sentence about it.
    pub description: String,
    /// The whole time, in days.
    pub days: f64,
    /// The days at the beginning that are left out of the measures.
    pub warm_up: f64,
    /// Time at which it begins.
    pub start: Timestamp,
    /// Visits that the crawl may make, per page and day.
    pub budget: f64,
    /// Time for which unused visits may be saved up: a budget is an average over a day.
    pub burst: Duration,
    /// Requests in flight at once.
    pub workers: usize,
    /// Groups of similar sites.
    pub sites: Vec<SiteGroup>,
}

/// Similar sites.
#[derive(Clone, Debug)]
pub struct SiteGroup {
    /// First part of their host names.
    pub name: String,
    /// The number of sites.
    pub count: u32,
    /// Pages of each site at the beginning.
    pub pages: u32,
    /// Folders of the pages, each with a hub that links to its pages.
    pub sections: u32,
    /// `true` if all pages are seeds of the crawl.
    pub known: bool,
    /// Pages of each site that appear in a day.
    pub growth: f64,
    /// Mean life of a page in days; infinite if pages live for ever.
    pub life: f64,
    /// Mean duration of an answer.
    pub response: Duration,
    /// Share of answers that are server errors.
    pub failures: f64,
    /// Times and paths that robots.txt forbids; none if it never forbids any.
    pub closed: Option<ClosedPeriods>,
    /// Times at which robots.txt asks for a delay; none if it never does.
    pub slowed: Option<SlowPeriods>,
    /// The feed of new and changed pages, if there is one, and its accuracy.
    pub feed: Lists,
    /// The sitemap, with the same choices.
    pub sitemap: Lists,
    /// Kinds of pages, with their shares of all.
    pub kinds: Vec<PageKind>,
}

/// Times at which a site's robots.txt forbids paths.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedPeriods {
    /// The times.
    pub times: Recurrence,
    /// The forbidden prefix of paths.
    pub path: String,
}

/// Times at which a site's robots.txt asks for a delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowPeriods {
    /// The times.
    pub times: Recurrence,
    /// Delay between requests.
    pub crawl_delay: Duration,
}

/// Recurring times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recurrence {
    /// Days from one to the next, on average.
    pub every: f64,
    /// Days that one of these times lasts.
    pub length: f64,
}

/// The accuracy of a list that sites publish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lists {
    /// The sites have no such list.
    #[default]
    None,
    /// The list has the time at which each page changed.
    Honest,
    /// The list is updated once a week.
    Stale,
    /// The list states for every page that it has just changed.
    Boastful,
}

/// Similar pages.
#[derive(Clone, Debug)]
pub struct PageKind {
    /// First part of their names, by which overrides of a profile can match them. Without one, names begin with `p` and no
    /// hyphen.
    pub name: Option<String>,
    /// Share of all pages, relative to the other kinds.
    pub share: f64,
    /// Media type.
    pub media_type: String,
    /// Mean size in bytes.
    pub size: u64,
    /// The process by which they change.
    pub process: Process,
    /// Their importance.
    pub importance: f64,
    /// Share of pages that show the time of day in a comment and in plain text: `html-strip` recognises both as not content.
    pub clock: f64,
    /// Share of pages with a box of random words that has no markup of its own.
    pub noise: f64,
    /// Share with an entity tag that changes with the content, and share with one that never changes.
    pub etag: HeaderAccuracy,
    /// The same shares for `Last-Modified`.
    pub last_modified: HeaderAccuracy,
}

/// The shares of pages on which a header is right, and on which it is wrong. On the others it is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HeaderAccuracy {
    /// Share of pages whose header changes when the content does.
    pub honest: f64,
    /// Share of pages whose header never changes.
    pub stuck: f64,
    /// Share of pages whose header changes with every answer.
    pub restless: f64,
}

impl Scenario {
    /// Loads a file, or a built-in scenario by its name.
    ///
    /// # Errors
    /// Returns every error at its place, or the error of reading the file.
    pub fn load(name: &str) -> Result<Self, Diagnostics> {
        if let Some((_, text)) = READY.iter().find(|(ready, _)| *ready == name) {
            return Self::parse(&format!("{name}.toml"), text);
        }
        let unreadable = |source: io::Error| {
            let problem = match source.kind() {
                io::ErrorKind::InvalidData => "not UTF-8".to_owned(),
                _ => format!("cannot be read: {source}"),
            };
            let ready: Vec<&str> = Self::ready().collect();
            Diagnostics::from(Diagnostic {
                file: name.to_owned(),
                place: None,
                pointer: String::new(),
                level: Level::Error,
                problem,
                suggestion: Some(format!(
                    "give a file of TOML, or the name of a shipped one: {}",
                    ready.join(", ")
                )),
            })
        };
        let text = std::fs::read_to_string(name).map_err(unreadable)?;
        Self::parse(name, &text)
    }

    /// Returns the JSON Schema of a scenario's file, for editors.
    pub fn schema() -> Value {
        schemars::schema_for!(ScenarioFile).to_value()
    }

    /// Returns the names of the built-in scenarios.
    pub fn ready() -> impl Iterator<Item = &'static str> {
        READY.iter().map(|(name, _)| *name)
    }

    /// Parses and checks a text. `file` is its name in errors.
    ///
    /// # Errors
    /// Returns every error, at its place.
    pub fn parse(file: &str, text: &str) -> Result<Self, Diagnostics> {
        let (written, read) = TomlText::read::<ScenarioFile>(file, text)?;
        let mut check = Check {
            written,
            faults: Diagnostics::default(),
        };
        let stem = Path::new(file).file_stem().unwrap_or_default();
        let start = match &read.start {
            None => Ok(Timestamp::from_second(MONDAY).unwrap_or_default()),
            Some(text) => text.parse(),
        };
        let scenario = Self {
            name: read
                .name
                .unwrap_or_else(|| stem.to_string_lossy().into_owned()),
            description: read.description,
            days: check.days("/days", Some(&read.days), 0.0),
            warm_up: check.days("/warm-up", read.warm_up.as_ref(), 30.0),
            start: check.start(start.ok()),
            budget: read.budget.visits,
            burst: check.duration("/budget/burst", read.budget.burst.as_ref(), DAY),
            workers: read.budget.workers.unwrap_or(50) as usize,
            sites: (read.site.iter().enumerate())
                .map(|(index, site)| check.site(&format!("/site/{index}"), site))
                .collect(),
        };
        if scenario.name.chars().any(char::is_control) {
            let problem = format!("{:?} has characters that cannot be shown", scenario.name);
            check.refuse("/name", problem, "write name = \"web\"");
        }
        check.names(&scenario.sites);
        for fault in scenario.relations() {
            check.refuse(fault.pointer, fault.problem, fault.suggestion);
        }
        if check.faults.is_empty() {
            Ok(scenario)
        } else {
            Err(check.faults)
        }
    }

    /// Returns the same web for another time or budget, as given on a command line.
    ///
    /// # Errors
    /// Returns the errors that the scenario's file would have, each with its flag.
    pub fn instead(mut self, instead: &ScenarioChanges) -> Result<Self, Diagnostics> {
        self.days = instead.days.unwrap_or(self.days);
        self.warm_up = instead.warm_up.unwrap_or(self.warm_up);
        self.budget = instead.budget.unwrap_or(self.budget);
        let mut faults = Diagnostics::default();
        for Contradiction {
            pointer,
            problem,
            suggestion,
        } in self.relations()
        {
            let flag = match pointer {
                "/budget/visits" => "--budget",
                "/warm-up" => "--warm-up",
                _ => "--days",
            };
            faults.push(Diagnostic {
                file: flag.to_owned(),
                place: None,
                pointer: String::new(),
                level: Level::Error,
                problem,
                suggestion: (!suggestion.is_empty()).then(|| suggestion.to_owned()),
            });
        }
        if faults.is_empty() {
            Ok(self)
        } else {
            Err(faults)
        }
    }

    /// Returns the contradictions between settings.
    fn relations(&self) -> Vec<Contradiction> {
        let mut found = Vec::new();
        let mut refuse = |pointer, problem: String, suggestion| {
            found.push(Contradiction {
                pointer,
                problem,
                suggestion,
            });
        };
        let is_time = |days: f64| (0.0..=DAYS_MAX).contains(&days);
        if !is_time(self.warm_up) {
            let problem = format!("a warm-up of {} days", self.warm_up);
            refuse("/warm-up", problem, "write 0 or more days");
        } else if !is_time(self.days) {
            let problem = format!(
                "{} days are not a time between 0 and {DAYS_MAX} days",
                self.days
            );
            refuse("/days", problem, "write days = \"360d\"");
        } else if self.days <= self.warm_up {
            let problem = format!(
                "nothing is left to be measured: {} days with a warm-up of {}",
                self.days, self.warm_up
            );
            refuse("/days", problem, "write a longer time or a shorter warm-up");
        }
        if !BUDGET.contains(&self.budget) {
            let budget = self.budget;
            let budget = match budget.abs() {
                0.001..1e6 | 0.0 => budget.to_string(),
                _ => format!("{budget:e}"),
            };
            let problem = format!("{budget} visits per page and day");
            let suggestion = "write visits = 1.0, or from 0.000001 to 86400";
            refuse("/budget/visits", problem, suggestion);
        }
        if self.workers == 0 {
            let problem = "0 workers fetch nothing".to_owned();
            refuse("/budget/workers", problem, "write workers = 50");
        }
        if self.sites.is_empty() {
            let problem = "there are no sites".to_owned();
            refuse("", problem, "add [[site]] with [[site.page]]");
        }
        let kinds = || self.sites.iter().flat_map(|site| &site.kinds);
        if !self.sites.is_empty() && kinds().all(|kind| kind.importance * kind.share <= 0.0) {
            let problem = "no page has an importance above 0".to_owned();
            refuse("/site", problem, "write importance = 1.0, or leave it out");
        }
        let pages = self.pages();
        let (changes, visits) = (self.changes(), self.budget * pages * self.days);
        if pages.is_nan() || pages > PAGES_MAX {
            let problem = format!(
                "{pages:.0} pages in all, hubs and sites among them, more than {PAGES_MAX}"
            );
            let pointer = if pages - self.pages_born() > PAGES_MAX {
                "/site"
            } else {
                "/days"
            };
            let suggestion = "write fewer sites, pages or sections, less growth or a shorter time";
            refuse(pointer, problem, suggestion);
        } else if changes > EVENTS_MAX {
            let problem = format!("{changes:.1e} changes of pages, more than {EVENTS_MAX:e}");
            let suggestion = "write fewer pages, fewer changes a day or a shorter time";
            refuse("/days", problem, suggestion);
        } else if visits > EVENTS_MAX && BUDGET.contains(&self.budget) {
            let problem = format!("{visits:.1e} visits, more than {EVENTS_MAX:e}");
            let suggestion = "write fewer visits, fewer pages or a shorter time";
            refuse("/budget/visits", problem, suggestion);
        }
        found
    }

    /// Returns the pages of all sites, including future ones. A site and each of its hubs counts as a page.
    fn pages(&self) -> f64 {
        let first = self.sites.iter().map(|site| {
            let hubs = f64::from(site.sections) + 1.0;
            f64::from(site.count) * (1.0 + hubs + f64::from(site.pages))
        });
        first.sum::<f64>() + self.pages_born()
    }

    /// Returns the number of changes of all pages, as if they existed all the time.
    fn changes(&self) -> f64 {
        let sites = self.sites.iter().map(|site| {
            let pages = f64::from(site.pages) + site.growth * self.days.max(0.0);
            let kinds = || site.kinds.iter();
            let draws: f64 = kinds()
                .map(|kind| kind.share * kind.process.draws_a_day())
                .sum();
            let shares: f64 = kinds().map(|kind| kind.share).sum();
            f64::from(site.count) * pages * draws / shares.max(f64::MIN_POSITIVE)
        });
        sites.sum::<f64>() * self.days.max(0.0)
    }

    /// Returns the number of future pages.
    fn pages_born(&self) -> f64 {
        let sites = self.sites.iter();
        let growth: f64 = sites.map(|site| f64::from(site.count) * site.growth).sum();
        growth * self.days.max(0.0)
    }
}

/// The settings of a command line that replace those of a scenario's file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScenarioChanges {
    /// The whole time, in days.
    pub days: Option<f64>,
    /// The days that are left out of the measures.
    pub warm_up: Option<f64>,
    /// Visits per page and day.
    pub budget: Option<f64>,
}

/// Settings of a scenario that contradict each other.
struct Contradiction {
    pointer: &'static str,
    problem: String,
    suggestion: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_scenarios_are_valid() {
        for name in Scenario::ready() {
            let scenario = Scenario::load(name).unwrap();
            assert_eq!(scenario.name, name);
            assert!(!scenario.description.is_empty(), "{name}");
        }
    }

    #[test]
    fn errors_are_reported_at_their_places() {
        let text = "days = \"60d\"\n[budget]\nvisit = 1.0\n";
        let faults = Scenario::parse("web.toml", text).unwrap_err().to_string();
        assert!(faults.contains("unknown key \"visit\""), "{faults}");
        assert!(faults.contains("did you mean \"visits\""), "{faults}");
        let text = "days = \"60d\"\nbudget = { visits = 1 }\n[[site]]\nname = \"a\"\npages = 3\nclosed = { per-year = 100, length = \"4d\" }\n[[site.page]]\nchange = { process = \"never\" }\n";
        let faults = Scenario::parse("web.toml", text).unwrap_err().to_string();
        let expected = "web.toml:6:10: 100 times of 4 days do not fit into a year";
        assert!(faults.contains(expected), "{faults}");
        let text = "days = \"20d\"\n[budget]\nvisits = 0.0\n[[site]]\nname = \"a\"\npages = 3\n[[site.page]]\nchange = { process = \"poisson\", per-day = 1.0, rates = \"gamma\" }\n";
        let faults = Scenario::parse("web.toml", text).unwrap_err();
        let lines: Vec<_> = (faults.iter())
            .map(|fault| (fault.pointer.as_str(), fault.place.as_ref().unwrap().line))
            .collect();
        let expected = [
            ("/site/0/page/0/change", 8),
            ("/days", 1),
            ("/budget/visits", 3),
        ];
        assert_eq!(lines, expected, "{faults}");
    }

    /// Checks the errors, each with its remedy, of a scenario in which `written` replaces a part of a valid one.
    #[track_caller]
    fn check_refused(valid: &str, written: &str, expected: &str) {
        const VALID: &str = r#"
            days = "60d"
            start = "2026-01-05T00:00:00Z"
            [budget]
            visits = 1.0
            [[site]]
            name = "a"
            count = 2
            pages = 3
            sections = 4
            known = true
            growth = 0
            response = "1s"
            life = "90d"
            closed = { per-year = 12, length = "3d" }
            [[site.page]]
            share = 1
            size = 1000
            importance = 1.0
            change = { process = "bursts", per-day = 1.0, rates = "lognormal", spread = 1.5, burst-factor = 20 }
        "#;
        assert!(VALID.contains(valid), "{valid}");
        Scenario::parse("web.toml", VALID).unwrap();
        let text = VALID.replace(valid, written);
        let faults = Scenario::parse("web.toml", &text).unwrap_err();
        let message = faults.to_string();
        assert!(message.contains(expected), "{message}");
        assert!(message.len() < 1000, "{message}");
        for fault in faults.iter() {
            assert!(fault.place.is_some(), "{message}");
            assert!(
                fault.suggestion.is_some() || fault.problem.starts_with("must be "),
                "{message}"
            );
        }
    }

    #[test]
    fn endless_or_empty_scenarios_are_refused() {
        check_refused("per-day = 1.0", "per-day = 1e12", "must be at most 86400");
        check_refused("per-day = 1.0", "per-day = 1e300", "must be at most 86400");
        check_refused(
            "burst-factor = 20",
            "burst-factor = 1e300",
            "must be at most 86400",
        );
        check_refused(
            "per-day = 1.0",
            "per-day = 5000.0",
            "100000 changes a day in a burst",
        );
        check_refused(
            "spread = 1.5",
            "spread = 500",
            "by a factor of e^10 and more",
        );
        check_refused(
            "importance = 1.0",
            "importance = 1e300",
            "must be at most 1000000",
        );
        check_refused(
            "importance = 1.0",
            "importance = 1e-9",
            "an importance of 1e-9",
        );
        check_refused(
            "importance = 1.0",
            "importance = 0",
            "no page has an importance above 0",
        );
        check_refused(
            "size = 1000",
            "size = 9223372036854775807",
            "must be at most 1000000000000",
        );
        check_refused("share = 1", "share = 1e300", "must be at most 1000000000");
        check_refused("share = 1", "share = 0", "no kind of page has a share");
        check_refused("per-year = 12", "per-year = 1e300", "1e300 times in a year");
        check_refused("growth = 0", "growth = 1e300", "must be at most 1000000");
        check_refused("sections = 4", "sections = 4294967295", "pages in all");
        check_refused("count = 2", "count = 4294967295", "pages in all");
        check_refused("count = 2", "count = 0", "a group of 0 sites");
        check_refused("pages = 3", "pages = 0", "a site without pages");
        check_refused(
            "life = \"90d\"",
            "life = \"0s\"",
            "live for less than an hour",
        );
        check_refused(
            "response = \"1s\"",
            "response = \"2d\"",
            "longer than a day",
        );
        check_refused(
            "visits = 1.0",
            "visits = 1e-300",
            "1e-300 visits per page and day",
        );
        check_refused(
            "visits = 1.0",
            "visits = 1e300",
            "1e300 visits per page and day",
        );
        check_refused(
            "name = \"a\"",
            "name = \"a b\"",
            "cannot be part of a host name",
        );
        for start in ["1960-01-03", "-009999-01-03", "9999-12-29", "9000-01-01"] {
            let written = format!("start = \"{start}T00:00:00Z\"");
            let valid = "start = \"2026-01-05T00:00:00Z\"";
            check_refused(valid, &written, "is not in the years from 1970 to 8999");
        }
        check_refused(
            "days = \"60d\"",
            "days = \"60d\"\nname = \"a\\u001b\"",
            "cannot be shown",
        );
        check_refused(
            "pages = 3",
            "pages = 9_000_000",
            "changes of pages, more than 1e10",
        );
    }

    /// Settings without effect: their author expects another web than the simulated one.
    #[test]
    fn settings_without_effect_are_refused() {
        let kind = |more: &str| format!("importance = 1.0\n{more}");
        for (more, expected) in [
            (
                "media-type = \"image/jpeg\"\nclock = 0.5",
                "clock is written into HTML, not into image/jpeg",
            ),
            (
                "media-type = \"application/pdf\"\nnoise = 1.0",
                "noise is written into HTML",
            ),
            ("media-type = \"html\"", "\"html\" is not a media type"),
            (
                "media-type = \"text/html; charset=utf-8\"",
                "is not a media type",
            ),
            ("name = \"Big Stories\"", "does not match the pattern"),
        ] {
            check_refused("importance = 1.0", &kind(more), expected);
        }
        let change = "process = \"bursts\", per-day = 1.0, rates = \"lognormal\", spread = 1.5, burst-factor = 20";
        for (written, expected) in [
            (
                "process = \"never\", per-day = 2.0",
                "per-day has no effect",
            ),
            (
                "process = \"never\", rates = \"lognormal\"",
                "rates has no effect",
            ),
            (
                "process = \"poisson\", per-day = 1.0, spread = 1.5",
                "spread has no effect",
            ),
            (
                "process = \"poisson\", per-day = 1.0, quiet = 0.5",
                "quiet has no effect",
            ),
            (
                "process = \"rhythm\", per-day = 1.0, burst-length = \"1d\"",
                "burst-length has no effect",
            ),
        ] {
            check_refused(change, written, expected);
        }
        let closed = "closed = { per-year = 12, length = \"3d\" }";
        for (written, expected) in [
            (
                "closed = { per-year = 12, length = \"3d\", path = \"s0\" }",
                "does not match the pattern",
            ),
            (
                "slowed = { per-year = 12, length = \"3d\", crawl-delay = \"1500ms\" }",
                "a crawl delay of 1.5s",
            ),
            (
                "slowed = { per-year = 400, length = \"3d\", crawl-delay = \"10s\" }",
                "400 times of 3 days do not fit into a year",
            ),
        ] {
            check_refused(closed, written, expected);
        }
    }

    /// Errors name wrong units as such, even for optional keys.
    #[test]
    fn wrong_units_are_reported() {
        check_refused(
            "life = \"90d\"",
            "life = \"-3d\"",
            "not a duration: \"-3d\"",
        );
        check_refused(
            "life = \"90d\"",
            "life = 2.5",
            "expected a duration, found the number 2.5",
        );
        check_refused("days = \"60d\"", "days = 60", "60 has no unit");
    }

    #[track_caller]
    fn check_changes(days: f64, budget: f64, expected: &str) {
        let changes = ScenarioChanges {
            days: Some(days),
            warm_up: None,
            budget: Some(budget),
        };
        let answer = Scenario::load("thesis").unwrap().instead(&changes);
        let message = answer.map_or_else(|faults| faults.to_string(), |_| String::new());
        assert!(message.contains(expected), "{message}");
        assert_eq!(message.is_empty(), expected.is_empty(), "{message}");
    }

    #[test]
    fn changes_from_a_command_line_are_checked() {
        check_changes(31.0, 0.1, "");
        check_changes(
            30.0,
            1.0,
            "--days: nothing is left to be measured: 30 days with a warm-up of 30",
        );
        check_changes(f64::NAN, 1.0, "--days: NaN days");
        check_changes(60.0, 0.0, "--budget: 0 visits per page and day");
        check_changes(60.0, f64::INFINITY, "--budget: inf visits");
        check_changes(1e6, 1.0, "--days: 1000000 days");
    }
}

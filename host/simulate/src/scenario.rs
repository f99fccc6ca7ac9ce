//! What is simulated: sites, their pages, how these change, what servers do, and how much the crawl may fetch. Written in
//! TOML, checked like a profile.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use opilio_profile::{DurationWritten, Fault, Faults, Level, Written, parse_duration};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::process::{Process, Rates};

/// Scenarios that ship.
const READY: [(&str, &str); 6] = [
    ("blogs", include_str!("../scenarios/blogs.toml")),
    (
        "dead-archive",
        include_str!("../scenarios/dead-archive.toml"),
    ),
    ("government", include_str!("../scenarios/government.toml")),
    ("hostile", include_str!("../scenarios/hostile.toml")),
    ("poisson", include_str!("../scenarios/poisson.toml")),
    ("thesis", include_str!("../scenarios/thesis.toml")),
];

/// Most pages of a scenario: each takes a few hundred bytes of memory.
const PAGES_MAX: f64 = 20e6;

/// Longest time of a scenario, a hundred years: times of the calendar and milliseconds in floats end much later.
const DAYS_MAX: f64 = 36_525.0;

/// A checked scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it is called.
    pub name: String,
    /// A sentence about it.
    pub description: String,
    /// The whole time, in days.
    pub days: f64,
    /// What is left out of the measures at the beginning, in days.
    pub warm_up: f64,
    /// When it begins.
    pub start: Timestamp,
    /// Visits that the crawl may make, per page and day.
    pub budget: f64,
    /// How long unused visits may be saved up.
    pub burst: Duration,
    /// Requests at a time.
    pub workers: usize,
    /// Groups of like sites.
    pub sites: Vec<Sites>,
}

/// Sites that are alike.
#[derive(Clone, Debug)]
pub struct Sites {
    /// First part of their host names.
    pub name: String,
    /// How many.
    pub count: u32,
    /// Pages of each when it begins.
    pub pages: u32,
    /// Folders that the pages stand in, each with a hub that links to them.
    pub sections: u32,
    /// The crawl knows all pages when it begins.
    pub known: bool,
    /// Pages of each that appear in a day.
    pub growth: f64,
    /// Mean life of a page in days; infinite where they live for ever.
    pub life: f64,
    /// How long an answer takes.
    pub response: Duration,
    /// Share of answers that are an error of the server.
    pub failures: f64,
    /// When robots.txt forbids everything; none where it never does.
    pub closed: Option<Closed>,
    /// Whether there is a feed of what is new and has changed, and whether it tells the truth.
    pub feed: Lists,
    /// The same for a sitemap.
    pub sitemap: Lists,
    /// Kinds of pages, with their shares of all.
    pub kinds: Vec<Kind>,
}

/// Times at which a site's robots.txt forbids everything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Closed {
    /// Days from one to the next, on average.
    pub every: f64,
    /// Days that one lasts.
    pub length: f64,
}

/// Lists that sites publish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lists {
    /// There is none.
    #[default]
    None,
    /// It says when each page changed.
    Honest,
    /// It is made anew once a week.
    Stale,
    /// It says that everything has just changed.
    Boastful,
}

/// Pages that are alike.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Of all pages, relative to the other kinds.
    pub share: f64,
    /// Their type.
    pub media_type: String,
    /// Mean size in bytes.
    pub size: u64,
    /// How they change.
    pub process: Process,
    /// What they are worth.
    pub importance: f64,
    /// Share of them that show the time of day, in a comment and in plain text: what `html-strip` knows is no content.
    pub clock: f64,
    /// Share of them with a box of random words that nothing marks.
    pub noise: f64,
    /// Share with an entity tag that changes with the content, and share with one that never does.
    pub etag: Honesty,
    /// The same for `Last-Modified`.
    pub last_modified: Honesty,
}

/// How often a header is right, and how often it is wrong; otherwise it is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Honesty {
    /// It changes when the content does.
    pub honest: f64,
    /// It never changes.
    pub stuck: f64,
    /// It changes with every answer.
    pub restless: f64,
}

/// Where a scenario cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// It has faults.
    #[error("{0}")]
    Faults(Faults),
    /// It cannot be read.
    #[error("cannot read scenario {path}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ScenarioFile {
    /// What it is called; otherwise as its file is.
    name: Option<String>,
    /// A sentence about it.
    #[serde(default)]
    description: String,
    /// The whole time, such as `"360d"`.
    days: DurationWritten,
    /// What is left out of the measures at the beginning; `"30d"` where nothing is said.
    warm_up: Option<DurationWritten>,
    /// When it begins; a Monday where nothing is said.
    start: Option<String>,
    /// What the crawl may fetch.
    budget: BudgetFile,
    /// Groups of sites.
    #[serde(default)]
    site: Vec<SiteFile>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct BudgetFile {
    /// Visits per page and day.
    #[schemars(range(min = 0))]
    visits: f64,
    /// How long visits that were not made may be saved up; `"1h"` where nothing is said.
    burst: Option<DurationWritten>,
    /// Requests at a time; 50 where nothing is said.
    workers: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SiteFile {
    /// First part of the host names: `news` makes `news-1.example`.
    name: String,
    /// How many such sites; 1 where nothing is said.
    count: Option<u32>,
    /// Pages of each.
    pages: u32,
    /// Folders of each; 1 where nothing is said.
    sections: Option<u32>,
    /// The crawl knows all pages when it begins, and finds none by links.
    #[serde(default)]
    known: bool,
    /// Pages of each that appear in a day.
    #[serde(default)]
    #[schemars(range(min = 0))]
    growth: f64,
    /// Mean life of a page, such as `"90d"`; for ever where nothing is said.
    life: Option<DurationWritten>,
    /// How long an answer takes; `"200ms"` where nothing is said.
    response: Option<DurationWritten>,
    /// Share of answers that are errors of the server (503).
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    failures: f64,
    /// When robots.txt forbids everything; never where nothing is said.
    closed: Option<ClosedFile>,
    /// A feed.
    #[serde(default)]
    feed: Lists,
    /// A sitemap.
    #[serde(default)]
    sitemap: Lists,
    /// Kinds of pages.
    page: Vec<KindFile>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ClosedFile {
    /// How often in a year.
    #[schemars(range(min = 0))]
    per_year: f64,
    /// For how long, such as `"3d"`.
    length: DurationWritten,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct KindFile {
    /// Part of the site's pages, relative to other kinds; 1 where nothing is said.
    #[schemars(range(min = 0))]
    share: Option<f64>,
    /// Media type; `text/html` where nothing is said.
    media_type: Option<String>,
    /// Mean size in bytes; 20000 where nothing is said.
    size: Option<u64>,
    /// What such a page is worth; 1 where nothing is said.
    #[schemars(range(min = 0))]
    importance: Option<f64>,
    /// How they change.
    change: ChangeFile,
    /// Share that shows the time.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    clock: f64,
    /// Share with random words.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    noise: f64,
    /// Entity tags.
    #[serde(default)]
    etag: HonestyFile,
    /// Dates of change.
    #[serde(default)]
    last_modified: HonestyFile,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct HonestyFile {
    /// Share of pages where it changes with the content.
    #[schemars(range(min = 0, max = 1))]
    honest: f64,
    /// Share where it never changes.
    #[schemars(range(min = 0, max = 1))]
    stuck: f64,
    /// Share where it changes with every answer.
    #[schemars(range(min = 0, max = 1))]
    restless: f64,
}

/// How pages change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum ProcessName {
    /// At random, at a constant rate.
    Poisson,
    /// After the same time each.
    Periodic,
    /// At random, most by day and on working days.
    Rhythm,
    /// At random, and at times much more often.
    Bursts,
    /// Not at all.
    Never,
}

/// How rates are spread over pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Spread {
    /// All the same.
    #[default]
    Fixed,
    /// The logarithm is normal.
    Lognormal,
    /// Gamma.
    Gamma,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ChangeFile {
    /// Which process.
    process: ProcessName,
    /// Changes a day: the median of a lognormal distribution, the mean of others.
    #[schemars(range(min = 0))]
    per_day: Option<f64>,
    /// How rates are spread over pages.
    #[serde(default)]
    rates: Spread,
    /// Of a lognormal distribution, the standard deviation of the logarithm; of a gamma, its shape.
    #[schemars(range(min = 0))]
    spread: Option<f64>,
    /// Of a rhythm: how many of the changes come at night or at the weekend, 0 to 1; 0.1 where nothing is said.
    #[schemars(range(min = 0, max = 1))]
    quiet: Option<f64>,
    /// Of bursts: how often they come in a year; 4 where nothing is said.
    #[schemars(range(min = 0))]
    bursts_per_year: Option<f64>,
    /// Of bursts: how long they last; `"7d"` where nothing is said.
    burst_length: Option<DurationWritten>,
    /// Of bursts: how much more often pages change meanwhile; 20 where nothing is said.
    #[schemars(range(min = 1))]
    burst_factor: Option<f64>,
}

impl Scenario {
    /// A file, or a scenario that ships, by its name.
    ///
    /// # Errors
    /// Every fault at its place; where it cannot be read.
    pub fn load(name: &str) -> Result<Self, ScenarioError> {
        if let Some((_, text)) = READY.iter().find(|(ready, _)| *ready == name) {
            return Self::parse(&format!("{name}.toml"), text).map_err(ScenarioError::Faults);
        }
        let text = std::fs::read_to_string(name).map_err(|source| ScenarioError::Unreadable {
            path: format!(
                "{name} (there ship: {})",
                Self::ready().collect::<Vec<_>>().join(", ")
            ),
            source,
        })?;
        Self::parse(name, &text).map_err(ScenarioError::Faults)
    }

    /// Names of those that ship.
    pub fn ready() -> impl Iterator<Item = &'static str> {
        READY.iter().map(|(name, _)| *name)
    }

    /// Checks a text. `file` is what faults call it.
    ///
    /// # Errors
    /// Every fault, at its place.
    pub fn parse(file: &str, text: &str) -> Result<Self, Faults> {
        let (written, read) = Written::read::<ScenarioFile>(file, text)?;
        let mut check = Check {
            written,
            faults: Faults::default(),
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
            start: start.unwrap_or_else(|_| {
                let example = "write a time such as \"2026-01-05T00:00:00Z\"";
                check.refuse("/start", "not a time".to_owned(), example);
                Timestamp::UNIX_EPOCH
            }),
            budget: read.budget.visits,
            burst: check.duration("/budget/burst", read.budget.burst.as_ref(), HOUR),
            workers: read.budget.workers.unwrap_or(50) as usize,
            sites: (read.site.iter().enumerate())
                .map(|(index, site)| check.site(&format!("/site/{index}"), site))
                .collect(),
        };
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

    /// The same web for another time or budget, as a command line wants it.
    ///
    /// # Errors
    /// What the scenario refuses in its file, it refuses here, each fault with its flag.
    pub fn instead(mut self, instead: &Instead) -> Result<Self, Faults> {
        self.days = instead.days.unwrap_or(self.days);
        self.warm_up = instead.warm_up.unwrap_or(self.warm_up);
        self.budget = instead.budget.unwrap_or(self.budget);
        let mut faults = Faults::default();
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
            faults.push(Fault {
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

    /// What cannot be together.
    fn relations(&self) -> Vec<Contradiction> {
        let mut found = Vec::new();
        let mut refuse = |pointer, problem: String, suggestion| {
            found.push(Contradiction {
                pointer,
                problem,
                suggestion,
            });
        };
        let is_time = |days: f64| days >= 0.0 && days <= DAYS_MAX;
        if !is_time(self.warm_up) {
            let problem = format!("a warm-up of {} days", self.warm_up);
            refuse("/warm-up", problem, "write 0 or more days");
        } else if !is_time(self.days) {
            let problem = format!(
                "{} days are not a time between 0 and {DAYS_MAX} days",
                self.days
            );
            refuse("/days", problem, "");
        } else if self.days <= self.warm_up {
            let problem = format!(
                "nothing is left to be measured: {} days with a warm-up of {}",
                self.days, self.warm_up
            );
            refuse("/days", problem, "write a longer time or a shorter warm-up");
        }
        if !(self.budget > 0.0 && self.budget.is_finite()) {
            let problem = format!("{} visits per page and day", self.budget);
            refuse("/budget/visits", problem, "write visits = 1.0");
        }
        if self.workers == 0 {
            refuse("/budget/workers", "nobody fetches".to_owned(), "");
        }
        if self.sites.is_empty() {
            let problem = "there are no sites".to_owned();
            refuse("", problem, "add [[site]] with [[site.page]]");
        }
        let pages = self.pages();
        if pages.is_nan() || pages > PAGES_MAX {
            let problem = format!("{pages:.0} pages in all, more than {PAGES_MAX}");
            let pointer = if pages - self.pages_born() > PAGES_MAX {
                "/site"
            } else {
                "/days"
            };
            refuse(pointer, problem, "");
        }
        found
    }

    /// Pages of all sites, those that are to come included.
    fn pages(&self) -> f64 {
        let first = self.sites.iter();
        let first = first.map(|site| f64::from(site.count) * f64::from(site.pages));
        first.sum::<f64>() + self.pages_born()
    }

    /// Pages that are to come.
    fn pages_born(&self) -> f64 {
        let sites = self.sites.iter();
        let growth: f64 = sites.map(|site| f64::from(site.count) * site.growth).sum();
        growth * self.days.max(0.0)
    }
}

/// What a command line wants otherwise than a scenario's file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Instead {
    /// The whole time, in days.
    pub days: Option<f64>,
    /// What is left out of the measures, in days.
    pub warm_up: Option<f64>,
    /// Visits per page and day.
    pub budget: Option<f64>,
}

/// Parts of a scenario that cannot be together.
struct Contradiction {
    pointer: &'static str,
    problem: String,
    suggestion: &'static str,
}

/// 5 January 2026.
const MONDAY: i64 = 1_767_571_200;

const HOUR: Duration = Duration::from_secs(3600);

struct Check {
    written: Written,
    faults: Faults,
}

impl Check {
    fn refuse(&mut self, pointer: &str, problem: String, suggestion: &str) {
        let suggestion = (!suggestion.is_empty()).then(|| suggestion.to_owned());
        let fault = self.written.fault(pointer, problem, suggestion);
        self.faults.push(fault);
    }

    fn duration(
        &mut self,
        pointer: &str,
        written: Option<&DurationWritten>,
        default: Duration,
    ) -> Duration {
        match written {
            None => default,
            Some(DurationWritten::Number(0)) => Duration::ZERO,
            Some(DurationWritten::Number(number)) => {
                let example = format!("write a unit, such as \"{number}s\"");
                self.refuse(pointer, format!("{number} has no unit"), &example);
                default
            }
            Some(DurationWritten::Text(text)) => parse_duration(text).unwrap_or_else(|_| {
                let problem = format!("not a duration: {text:?}");
                self.refuse(
                    pointer,
                    problem,
                    "write a number and a unit: \"200ms\", \"30d\"",
                );
                default
            }),
        }
    }

    fn days(&mut self, pointer: &str, written: Option<&DurationWritten>, default: f64) -> f64 {
        let default = Duration::from_secs_f64(default * 86_400.0);
        self.duration(pointer, written, default).as_secs_f64() / 86_400.0
    }

    fn site(&mut self, at: &str, site: &SiteFile) -> Sites {
        let is_label = |name: &str| {
            !name.is_empty()
                && name.len() <= 40
                && (name.bytes()).all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        if !is_label(&site.name) {
            let problem = format!("{:?} cannot be part of a host name", site.name);
            let example = "write small letters, digits and hyphens";
            self.refuse(&format!("{at}/name"), problem, example);
        }
        if site.page.is_empty() {
            let problem = "a site without a kind of page".to_owned();
            self.refuse(at, problem, "add [[site.page]]");
        }
        let kinds = site.page.iter().enumerate();
        let kinds: Vec<Kind> = kinds
            .map(|(index, kind)| self.kind(&format!("{at}/page/{index}"), kind))
            .collect();
        if !kinds.is_empty() && kinds.iter().all(|kind| kind.share <= 0.0) {
            let problem = "no kind of page has a share above 0".to_owned();
            self.refuse(&format!("{at}/page"), problem, "");
        }
        let life = site.life.as_ref();
        Sites {
            name: site.name.clone(),
            count: site.count.unwrap_or(1),
            pages: site.pages,
            sections: site.sections.unwrap_or(1).max(1),
            known: site.known,
            growth: site.growth,
            life: match life {
                None => f64::INFINITY,
                Some(life) => self.days(&format!("{at}/life"), Some(life), 1.0),
            },
            response: self.duration(
                &format!("{at}/response"),
                site.response.as_ref(),
                Duration::from_millis(200),
            ),
            failures: site.failures,
            closed: (site.closed.as_ref())
                .and_then(|closed| self.closed(&format!("{at}/closed"), closed)),
            feed: site.feed,
            sitemap: site.sitemap,
            kinds,
        }
    }

    fn closed(&mut self, at: &str, written: &ClosedFile) -> Option<Closed> {
        let length = self.days(&format!("{at}/length"), Some(&written.length), 0.0);
        if written.per_year <= 0.0 || length <= 0.0 {
            return None;
        }
        let every = 365.0 / written.per_year;
        if length > every {
            let problem = format!(
                "{} times of {length} days do not go into a year",
                written.per_year
            );
            self.refuse(at, problem, "write a shorter length or a smaller per-year");
        }
        Some(Closed { every, length })
    }

    /// Two groups of one name would have the same hosts.
    fn names(&mut self, sites: &[Sites]) {
        for (index, site) in sites.iter().enumerate() {
            if sites[..index].iter().any(|other| other.name == site.name) {
                let problem = format!("{:?} is there twice", site.name);
                self.refuse(&format!("/site/{index}/name"), problem, "");
            }
        }
    }

    fn kind(&mut self, at: &str, kind: &KindFile) -> Kind {
        Kind {
            share: kind.share.unwrap_or(1.0),
            media_type: kind
                .media_type
                .clone()
                .unwrap_or_else(|| "text/html".to_owned()),
            size: kind.size.unwrap_or(20_000),
            process: self.process(&format!("{at}/change"), &kind.change),
            importance: kind.importance.unwrap_or(1.0),
            clock: kind.clock,
            noise: kind.noise,
            etag: self.honesty(&format!("{at}/etag"), &kind.etag),
            last_modified: self.honesty(&format!("{at}/last-modified"), &kind.last_modified),
        }
    }

    fn honesty(&mut self, at: &str, written: &HonestyFile) -> Honesty {
        let sum = written.honest + written.stuck + written.restless;
        if sum > 1.0 + 1e-9 {
            let problem = format!("the shares add up to {sum}, more than 1");
            self.refuse(at, problem, "");
        }
        Honesty {
            honest: written.honest,
            stuck: written.stuck,
            restless: written.restless,
        }
    }

    fn process(&mut self, at: &str, change: &ChangeFile) -> Process {
        let per_day = match (change.process, change.per_day) {
            (ProcessName::Never, _) => 0.0,
            (_, Some(per_day)) if per_day > 0.0 => per_day,
            (_, Some(per_day)) => {
                let problem = format!("{per_day} changes a day");
                self.refuse(
                    &format!("{at}/per-day"),
                    problem,
                    "write process = \"never\"",
                );
                1.0
            }
            (_, None) => {
                let problem = "no number of changes a day".to_owned();
                self.refuse(at, problem, "write per-day = 0.1");
                1.0
            }
        };
        let spread = |check: &mut Self| {
            change
                .spread
                .filter(|spread| *spread > 0.0)
                .unwrap_or_else(|| {
                    let problem = "rates that differ need a spread above 0".to_owned();
                    check.refuse(at, problem, "write spread = 1.5");
                    1.0
                })
        };
        let rates = match change.rates {
            Spread::Fixed => Rates::Fixed(per_day),
            Spread::Lognormal => Rates::Lognormal {
                median: per_day,
                sigma: spread(self),
            },
            Spread::Gamma => Rates::Gamma {
                mean: per_day,
                shape: spread(self),
            },
        };
        match change.process {
            ProcessName::Never => Process::Never,
            ProcessName::Poisson => Process::Poisson(rates),
            ProcessName::Periodic => Process::Periodic(rates),
            ProcessName::Rhythm => Process::Rhythm {
                rates,
                quiet: change.quiet.unwrap_or(0.1),
            },
            ProcessName::Bursts => {
                let every = 365.0 / change.bursts_per_year.unwrap_or(4.0).max(1e-6);
                let pointer = format!("{at}/burst-length");
                let length = self.days(&pointer, change.burst_length.as_ref(), 7.0);
                if length > every {
                    let problem = format!("bursts of {length} days, and one every {every:.1} days");
                    self.refuse(at, problem, "write a shorter burst-length");
                }
                Process::Bursts {
                    rates,
                    every,
                    length,
                    factor: change.burst_factor.unwrap_or(20.0),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn what_ships_is_sound() {
        for name in Scenario::ready() {
            let scenario = Scenario::load(name).unwrap();
            assert_eq!(scenario.name, name);
            assert!(!scenario.description.is_empty(), "{name}");
        }
    }

    #[test]
    fn faults_are_told_at_their_places() {
        let text = "days = \"60d\"\n[budget]\nvisit = 1.0\n";
        let faults = Scenario::parse("web.toml", text).unwrap_err().to_string();
        assert!(faults.contains("unknown key \"visit\""), "{faults}");
        assert!(faults.contains("did you mean \"visits\""), "{faults}");
        let text = "days = \"60d\"\nbudget = { visits = 1 }\n[[site]]\nname = \"a\"\npages = 3\nclosed = { per-year = 100, length = \"4d\" }\n[[site.page]]\nchange = { process = \"never\" }\n";
        let faults = Scenario::parse("web.toml", text).unwrap_err().to_string();
        let expected = "web.toml:6:10: 100 times of 4 days do not go into a year";
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

    #[track_caller]
    fn instead(days: f64, budget: f64, expected: &str) {
        let instead = Instead {
            days: Some(days),
            warm_up: None,
            budget: Some(budget),
        };
        let answer = Scenario::load("thesis").unwrap().instead(&instead);
        let said = answer.map_or_else(|faults| faults.to_string(), |_| String::new());
        assert!(said.contains(expected), "{said}");
        assert_eq!(said.is_empty(), expected.is_empty(), "{said}");
    }

    #[test]
    fn what_a_command_line_wants_is_held_against_the_scenario() {
        instead(31.0, 0.1, "");
        instead(
            30.0,
            1.0,
            "--days: nothing is left to be measured: 30 days with a warm-up of 30",
        );
        instead(f64::NAN, 1.0, "--days: NaN days");
        instead(60.0, 0.0, "--budget: 0 visits per page and day");
        instead(60.0, f64::INFINITY, "--budget: inf visits");
        instead(1e6, 1.0, "--days: 1000000 days");
    }
}

//! Conversion of a written scenario into a checked one, or into all errors at their places.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use opilio_profile::{Diagnostics, DurationWritten, TomlText, parse_duration};
use opilio_uri::Uri;

use super::file::{
    ChangeFile, ClosedFile, HeaderAccuracyFile, KindFile, ProcessName, SiteFile, SlowedFile, Spread,
};
use super::{ClosedPeriods, HeaderAccuracy, PageKind, Recurrence, SiteGroup, SlowPeriods, YEARS};
use crate::process::{Process, RATE_MAX, Rates};

/// 5 January 2026.
pub(super) const MONDAY: i64 = 1_767_571_200;

pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Shortest mean life of a page: pages with shorter lives are gone once a crawl has begun.
const LIFE_MIN: Duration = Duration::from_secs(60 * 60);

/// Longest mean duration of an answer: crawls do not wait for longer.
pub(crate) const RESPONSE_MAX: Duration = DAY;

/// Widest spread of rates, as the standard deviation of their logarithm: a third of the pages differ by more than a factor of
/// 20,000 from the median.
const SIGMA_MAX: f64 = 10.0;

/// Most times a year at which a robots.txt forbids everything: once an hour.
const CLOSED_A_YEAR_MAX: f64 = 8760.0;

/// Least importance above none: sums with those of a million pages stay exact.
const IMPORTANCE_MIN: f64 = 1e-6;

/// The default media type of pages.
const HTML: &str = "text/html";

pub(super) struct Check {
    pub(super) written: TomlText,
    pub(super) faults: Diagnostics,
}

impl Check {
    pub(super) fn refuse(&mut self, pointer: &str, problem: String, suggestion: &str) {
        let suggestion = (!suggestion.is_empty()).then(|| suggestion.to_owned());
        let fault = self.written.fault(pointer, problem, suggestion);
        self.faults.push(fault);
    }

    pub(super) fn duration(
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

    pub(super) fn days(
        &mut self,
        pointer: &str,
        written: Option<&DurationWritten>,
        default: f64,
    ) -> f64 {
        let default = Duration::from_secs_f64(default * 86_400.0);
        self.duration(pointer, written, default).as_secs_f64() / 86_400.0
    }

    pub(super) fn start(&mut self, written: Option<Timestamp>) -> Timestamp {
        let example = "write a time such as \"2026-01-05T00:00:00Z\"";
        let Some(start) = written else {
            self.refuse("/start", "not a time".to_owned(), example);
            return Timestamp::UNIX_EPOCH;
        };
        if !YEARS.contains(&start.to_zoned(TimeZone::UTC).year()) {
            let problem = format!(
                "{start} is not in the years from {} to {}",
                YEARS.start,
                YEARS.end - 1
            );
            self.refuse("/start", problem, example);
        }
        start
    }

    pub(super) fn site(&mut self, at: &str, site: &SiteFile) -> SiteGroup {
        let is_label = |name: &str| {
            !name.is_empty()
                && name.len() <= 40
                && (name.bytes()).all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
                // `xn--` begins an internationalised name, and not everything that follows is valid.
                && Uri::parse(&format!("http://{name}-1.example/")).is_ok()
        };
        if !is_label(&site.name) {
            let problem = format!("{:?} cannot be part of a host name", site.name);
            let example = "write small letters, digits and hyphens";
            self.refuse(&format!("{at}/name"), problem, example);
        }
        if site.count == Some(0) {
            let problem = "a group of 0 sites".to_owned();
            let suggestion = "write count = 1, or leave the site out";
            self.refuse(&format!("{at}/count"), problem, suggestion);
        }
        if site.pages == 0 && (site.known || site.growth <= 0.0) {
            let problem = "a site without pages".to_owned();
            let suggestion = if site.known {
                "write pages = 100, or known = false if all pages appear later"
            } else {
                "write pages = 100, or growth = 1.0 if all pages appear later"
            };
            self.refuse(&format!("{at}/pages"), problem, suggestion);
        }
        if site.page.is_empty() {
            let problem = "a site without a kind of page".to_owned();
            self.refuse(at, problem, "add [[site.page]]");
        }
        let kinds = site.page.iter().enumerate();
        let kinds: Vec<PageKind> = kinds
            .map(|(index, kind)| self.kind(&format!("{at}/page/{index}"), kind))
            .collect();
        if !kinds.is_empty() && kinds.iter().all(|kind| kind.share <= 0.0) {
            let problem = "no kind of page has a share above 0".to_owned();
            self.refuse(&format!("{at}/page"), problem, "write share = 1.0");
        }
        let life = site.life.as_ref();
        let life = life.map(|life| self.duration(&format!("{at}/life"), Some(life), DAY));
        if life.is_some_and(|life| life < LIFE_MIN) {
            let problem = "pages that live for less than an hour".to_owned();
            let suggestion = "write life = \"1h\" or more";
            self.refuse(&format!("{at}/life"), problem, suggestion);
        }
        let response = self.duration(
            &format!("{at}/response"),
            site.response.as_ref(),
            Duration::from_millis(200),
        );
        if response > RESPONSE_MAX {
            let problem = "answers that take longer than a day".to_owned();
            let suggestion = "write response = \"1d\" or less";
            self.refuse(&format!("{at}/response"), problem, suggestion);
        }
        SiteGroup {
            name: site.name.clone(),
            count: site.count.unwrap_or(1),
            pages: site.pages,
            sections: site.sections.unwrap_or(1).max(1),
            known: site.known,
            growth: site.growth,
            life: life.map_or(f64::INFINITY, |life| life.as_secs_f64() / 86_400.0),
            response,
            failures: site.failures,
            closed: (site.closed.as_ref())
                .and_then(|closed| self.closed(&format!("{at}/closed"), closed)),
            slowed: (site.slowed.as_ref())
                .and_then(|slowed| self.slowed(&format!("{at}/slowed"), slowed)),
            feed: site.feed,
            sitemap: site.sitemap,
            kinds,
        }
    }

    fn closed(&mut self, at: &str, written: &ClosedFile) -> Option<ClosedPeriods> {
        let times = self.times(at, written.per_year, &written.length)?;
        let path = written.path.clone().unwrap_or_else(|| "/".to_owned());
        Some(ClosedPeriods { times, path })
    }

    fn slowed(&mut self, at: &str, written: &SlowedFile) -> Option<SlowPeriods> {
        let pointer = format!("{at}/crawl-delay");
        let crawl_delay = self.duration(&pointer, Some(&written.crawl_delay), DAY);
        if crawl_delay > DAY || crawl_delay.subsec_nanos() > 0 {
            let problem = format!("a crawl delay of {crawl_delay:?}");
            self.refuse(
                &pointer,
                problem,
                "write whole seconds, a day at most: crawl-delay = \"30s\"",
            );
        }
        let times = self.times(at, written.per_year, &written.length)?;
        Some(SlowPeriods { times, crawl_delay })
    }

    fn times(&mut self, at: &str, per_year: f64, length: &DurationWritten) -> Option<Recurrence> {
        let length = self.days(&format!("{at}/length"), Some(length), 0.0);
        if per_year <= 0.0 || length <= 0.0 {
            return None;
        }
        let every = 365.0 / per_year;
        if per_year > CLOSED_A_YEAR_MAX {
            let problem = format!("{per_year:e} times in a year");
            let suggestion = "write per-year = 12, or 8760 at most: once an hour";
            self.refuse(&format!("{at}/per-year"), problem, suggestion);
        } else if length > every {
            let problem = format!("{per_year} times of {length} days do not fit into a year");
            self.refuse(at, problem, "write a shorter length or a smaller per-year");
        }
        Some(Recurrence { every, length })
    }

    /// Two groups of one name would have the same hosts.
    pub(super) fn names(&mut self, sites: &[SiteGroup]) {
        for (index, site) in sites.iter().enumerate() {
            if sites[..index].iter().any(|other| other.name == site.name) {
                let problem = format!("two groups of sites are called {:?}", site.name);
                let suggestion = "write another name, or a higher count for the first one";
                self.refuse(&format!("/site/{index}/name"), problem, suggestion);
            }
        }
    }

    fn kind(&mut self, at: &str, kind: &KindFile) -> PageKind {
        let importance = kind.importance.unwrap_or(1.0);
        if importance > 0.0 && importance < IMPORTANCE_MIN {
            let problem = format!("an importance of {importance:e}");
            let suggestion = "write 0, or from 0.000001 to 1000000: only relations count";
            self.refuse(&format!("{at}/importance"), problem, suggestion);
        }
        let media_type = kind.media_type.as_deref().unwrap_or(HTML);
        let is_part = |part: &str| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
        };
        let (class, subtype) = media_type.split_once('/').unwrap_or_default();
        if !is_part(class) || !is_part(subtype) {
            let problem = format!("{media_type:?} is not a media type");
            let suggestion = "write a type and a subtype alone: \"text/html\", \"image/jpeg\"";
            self.refuse(&format!("{at}/media-type"), problem, suggestion);
        } else if media_type != HTML {
            for (name, share) in [("clock", kind.clock), ("noise", kind.noise)] {
                if share > 0.0 {
                    let problem = format!("{name} is written into HTML, not into {media_type}");
                    let suggestion = "leave it out, or leave media-type out";
                    self.refuse(&format!("{at}/{name}"), problem, suggestion);
                }
            }
        }
        PageKind {
            name: kind.name.clone(),
            share: kind.share.unwrap_or(1.0),
            media_type: media_type.to_owned(),
            size: kind.size.unwrap_or(20_000),
            process: self.process(&format!("{at}/change"), &kind.change),
            importance,
            clock: kind.clock,
            noise: kind.noise,
            etag: self.accuracy(&format!("{at}/etag"), &kind.etag),
            last_modified: self.accuracy(&format!("{at}/last-modified"), &kind.last_modified),
        }
    }

    /// Refuses keys without effect on such changes: their author expects another web than the simulated one.
    fn without_effect(&mut self, at: &str, change: &ChangeFile) {
        let is = |process| change.process == process;
        let (never, fixed) = (is(ProcessName::Never), change.rates == Spread::Fixed);
        let of_bursts = "write process = \"bursts\", or leave it out";
        let keys = [
            (
                "per-day",
                never && change.per_day > Some(0.0),
                "leave it out, or write another process",
            ),
            (
                "rates",
                never && !fixed,
                "leave it out, or write another process",
            ),
            (
                "spread",
                fixed && change.spread.is_some(),
                "write rates = \"lognormal\" or \"gamma\", or leave it out",
            ),
            (
                "quiet",
                !is(ProcessName::Rhythm) && change.quiet.is_some(),
                "write process = \"rhythm\", or leave it out",
            ),
            (
                "bursts-per-year",
                !is(ProcessName::Bursts) && change.bursts_per_year.is_some(),
                of_bursts,
            ),
            (
                "burst-length",
                !is(ProcessName::Bursts) && change.burst_length.is_some(),
                of_bursts,
            ),
            (
                "burst-factor",
                !is(ProcessName::Bursts) && change.burst_factor.is_some(),
                of_bursts,
            ),
        ];
        for (key, is_set, suggestion) in keys {
            if is_set {
                let problem = format!("{key} has no effect here");
                self.refuse(&format!("{at}/{key}"), problem, suggestion);
            }
        }
    }

    fn accuracy(&mut self, at: &str, written: &HeaderAccuracyFile) -> HeaderAccuracy {
        let sum = written.honest + written.stuck + written.restless;
        if sum > 1.0 + 1e-9 {
            let problem = format!("the shares add up to {sum}, more than 1");
            self.refuse(at, problem, "write shares of 1 together, or less");
        }
        HeaderAccuracy {
            honest: written.honest,
            stuck: written.stuck,
            restless: written.restless,
        }
    }

    fn process(&mut self, at: &str, change: &ChangeFile) -> Process {
        self.without_effect(at, change);
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
                let problem = "the number of changes a day is missing".to_owned();
                self.refuse(at, problem, "write per-day = 0.1");
                1.0
            }
        };
        let spread = |check: &mut Self| {
            if change.rates == Spread::Lognormal && change.spread > Some(SIGMA_MAX) {
                let problem = format!("rates that differ by a factor of e^{SIGMA_MAX} and more");
                check.refuse(
                    &format!("{at}/spread"),
                    problem,
                    "write spread = 10.0 or less; 1.5 is usual",
                );
            }
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
                let factor = change.burst_factor.unwrap_or(20.0);
                if per_day * factor > RATE_MAX {
                    let problem = format!("{} changes a day in a burst", per_day * factor);
                    let suggestion = "write a smaller burst-factor or per-day: once a second, 86400 a day, is the most";
                    self.refuse(at, problem, suggestion);
                }
                Process::Bursts {
                    rates,
                    every,
                    length,
                    factor,
                }
            }
        }
    }
}

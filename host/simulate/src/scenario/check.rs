//! From what is written to what is simulated, or every fault at its place.

use std::time::Duration;

use opilio_profile::{DurationWritten, Faults, Written, parse_duration};

use super::written::{
    ChangeFile, ClosedFile, HonestyFile, KindFile, ProcessName, SiteFile, Spread,
};
use super::{Closed, Honesty, Kind, Sites};
use crate::process::{Process, Rates};

/// 5 January 2026.
pub(super) const MONDAY: i64 = 1_767_571_200;

pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) struct Check {
    pub(super) written: Written,
    pub(super) faults: Faults,
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

    pub(super) fn site(&mut self, at: &str, site: &SiteFile) -> Sites {
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
    pub(super) fn names(&mut self, sites: &[Sites]) {
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

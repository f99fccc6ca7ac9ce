//! The results of a simulation, as a table and as JSON.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use crate::measure::Sums;

/// Bytes of a mebibyte.
pub(crate) const MIB: f64 = (1u32 << 20) as f64;

/// All measured values.
#[derive(Clone, Debug)]
pub struct Report {
    /// The scenario's name.
    pub scenario: String,
    /// The profile's name.
    pub profile: String,
    /// The seed.
    pub seed: u64,
    /// The whole time, in days.
    pub days: f64,
    /// The days at the beginning that were not measured.
    pub warm_up: f64,
    /// Pages that existed at the end.
    pub pages: u64,
    /// Pages among these that were not visited in the measured time.
    pub starved: u64,
    /// The longest time without a visit, in days.
    pub longest: f64,
    /// The requests to all servers.
    pub visits: Visits,
    /// The requests to each host, in the scenario's order.
    pub hosts: Vec<HostVisits>,
    /// The results that an oracle reaches.
    pub oracle: Oracle,
    /// The last waits of pages, at most some thousands.
    pub waits: Vec<PageWait>,
    pub(crate) sums: Sums,
}

/// Requests, counted from the end of the warm-up on unless a field states otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Visits {
    /// Days that were measured.
    pub days: f64,
    /// Requests a day that the scenario allows.
    pub budget: f64,
    /// All requests.
    pub requests: u64,
    /// Visits of pages with a response that counts.
    pub pages: u64,
    /// First visits.
    pub new: u64,
    /// Pages found changed.
    pub changed: u64,
    /// Pages that were fetched and were the same.
    pub unchanged: u64,
    /// Answers 304, without a body.
    pub not_modified: u64,
    /// Pages with an unknown state.
    pub unknown: u64,
    /// Pages that did not exist any more, or not yet (404).
    pub gone: u64,
    /// Feeds, sitemaps and URIs that lead nowhere.
    pub lists: u64,
    /// Requests for robots.txt, including failed ones; the budget does not apply to these.
    pub robots: u64,
    /// Other requests that failed.
    pub failed: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Bytes stored.
    pub stored: u64,
    /// Waits that evaluators answered, over the whole time; the next three fields also cover the whole time.
    pub waits: u64,
    /// Waits below the profile's shortest, which were raised to it.
    pub too_short: u64,
    /// Waits above the profile's longest, which were cut to it.
    pub too_long: u64,
    /// Answers that oscillated though every visit found the same. The mean of answer and last wait was used instead.
    pub oscillating: u64,
    /// Mean delay of visits past their due time, in days.
    pub overdue: f64,
    /// Requests to a host before its politeness delay had passed, over the whole time.
    pub too_soon: u64,
    /// The shortest time between two requests to one host, in seconds and over the whole time; none if no host had two.
    pub smallest_gap: Option<f64>,
    /// Calls of plugins that failed, over the whole time.
    pub faults: u64,
    /// The error of the first failed call.
    pub first_fault: Option<String>,
}

/// Requests to one host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostVisits {
    /// Its name.
    pub host: String,
    /// All requests after the warm-up, including those for robots.txt.
    pub requests_a_day: f64,
    /// The shortest time from the end of a request to the beginning of the next, in seconds and over the whole time; none if the
    /// host had fewer than two.
    pub smallest_gap: Option<f64>,
    /// Requests before the politeness delay had passed, over the whole time.
    pub too_soon: u64,
}

/// Results of an oracle that knows how often each page changes, as shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Oracle {
    /// The best freshness of regular visits, by formula.
    pub freshness: f64,
    /// The most versions that regular visits find, by formula.
    pub captures: f64,
    /// Freshness of the first plan, tried on the same web: the base of shares.
    pub freshness_tried: f64,
    /// Captures of the second plan, tried on the same web: the base of shares.
    pub captures_tried: f64,
    /// Mean age in days under the first plan.
    pub age_tried: f64,
    /// Mean delay of captures in days under the second plan; none if it captured nothing.
    pub delay_tried: Option<f64>,
    /// Share of the second plan's visits that found nothing new.
    pub wasted_tried: f64,
    /// Freshness without politeness limits.
    pub freshness_without_politeness: f64,
    /// The best freshness of visits at random times.
    pub freshness_at_random: f64,
    /// Freshness at the maximum of harmonic freshness.
    pub freshness_harmonic: f64,
}

/// A page's true rate and its last wait, with the best one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PageWait {
    /// Changes a day.
    pub rate: f64,
    /// Wait in days.
    pub wait: f64,
    /// Best days between visits for freshness; none for a page that would be given up or never changes.
    pub best: Option<f64>,
}

impl Report {
    /// Returns the share of time in which the archive had the current versions of pages, by weight.
    pub fn freshness(&self) -> f64 {
        self.sums.freshness()
    }

    /// Returns the mean days since the first change that the archive did not have, over all pages and times.
    pub fn age(&self) -> f64 {
        self.sums.age()
    }

    /// Returns the share of versions that the archive has, by weight; none if nothing changed.
    pub fn captures(&self) -> Option<f64> {
        self.sums.captures()
    }

    /// Returns the mean days from a version's appearance to its capture; none if none was captured.
    pub fn delay(&self) -> Option<f64> {
        self.sums.delay()
    }

    /// Returns the share of page visits that found nothing new; none without visits.
    pub fn wasted(&self) -> Option<f64> {
        let visits = &self.visits;
        let wasted = visits.unchanged + visits.not_modified;
        (visits.pages > 0).then(|| wasted as f64 / visits.pages as f64)
    }

    /// Returns the mean delay of visits past their due time, in days; none without visits.
    pub fn overdue(&self) -> Option<f64> {
        (self.visits.pages > 0).then_some(self.visits.overdue)
    }

    /// Returns the freshness over the measured time, in equal parts; none for a part without pages.
    pub fn freshness_over_time(&self) -> Vec<Option<f64>> {
        let parts = self.sums.parts.iter();
        let fresh = parts.map(|(existing, fresh)| (*existing > 0.0).then(|| fresh / existing));
        fresh.collect()
    }

    /// Returns the visits made, as a share of those allowed.
    pub fn budget_used(&self) -> f64 {
        let made = self.visits.requests - self.visits.robots;
        share(made as f64, self.visits.budget * self.visits.days)
    }

    /// Returns the freshness as a share of the best plan's on the same web.
    pub fn of_best_freshness(&self) -> f64 {
        share(self.freshness(), self.oracle.freshness_tried)
    }

    /// Returns the captures as a share of the best plan's on the same web; none if nothing changed.
    pub fn of_best_captures(&self) -> Option<f64> {
        let captures = self.captures()?;
        Some(share(captures, self.oracle.captures_tried))
    }

    /// Returns the host with most requests, and the median of the requests a day over hosts.
    fn busiest_and_median_host(&self) -> Option<(&HostVisits, f64)> {
        let mut hosts: Vec<&HostVisits> = self.hosts.iter().collect();
        hosts.sort_by(|one, other| one.requests_a_day.total_cmp(&other.requests_a_day));
        let median = hosts.get(hosts.len() / 2)?.requests_a_day;
        Some((hosts.pop()?, median))
    }

    /// Returns everything as JSON, for machines. It does not depend on the machine or the time.
    pub fn as_json(&self) -> Value {
        json!({
            "scenario": self.scenario,
            "profile": self.profile,
            "seed": self.seed,
            "days": self.days,
            "warm_up": self.warm_up,
            "pages": self.pages,
            "freshness": self.freshness(),
            "freshness_of_best": self.of_best_freshness(),
            "age": self.age(),
            "versions": self.sums.versions,
            "captured": self.sums.captured,
            "missed": self.sums.missed,
            "born": self.sums.born,
            "found": self.sums.found,
            "captures": self.captures(),
            "captures_of_best": self.of_best_captures(),
            "delay": self.delay(),
            "wasted": self.wasted(),
            "budget_used": self.budget_used(),
            "starved": self.starved,
            "longest_interval": self.longest,
            "visits": self.visits,
            "hosts": self.hosts,
            "oracle": self.oracle,
            "freshness_over_time": self.freshness_over_time(),
            "waits": self.waits,
        })
    }

    /// Returns everything as text, for people.
    pub fn as_text(&self) -> String {
        let Visits {
            requests,
            pages,
            new,
            changed,
            unchanged,
            not_modified,
            unknown,
            gone,
            lists,
            robots,
            failed,
            ..
        } = self.visits;
        let visits = &self.visits;
        let oracle = &self.oracle;
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<22} {value}");
        };
        line(
            "scenario",
            format!("{}, seed {}, {} days", self.scenario, self.seed, self.days),
        );
        line("profile", self.profile.clone());
        line("pages", format!("{}", self.pages));
        line(
            "freshness",
            format!(
                "{}, {} of the best ({}; by formula {})",
                percent(self.freshness()),
                percent(self.of_best_freshness()),
                percent(oracle.freshness_tried),
                percent(oracle.freshness)
            ),
        );
        line(
            "age",
            format!("{:.3} days (best {:.3})", self.age(), oracle.age_tried),
        );
        let versions = match self.captures().zip(self.of_best_captures()) {
            None => format!("{}, nothing changed", self.sums.captured),
            Some((captures, of_best)) => format!(
                "{} of {}: {}, {} of the best ({}; by formula {}); {} missed",
                self.sums.captured,
                self.sums.versions,
                percent(captures),
                percent(of_best),
                percent(oracle.captures_tried),
                percent(oracle.captures),
                self.sums.missed
            ),
        };
        line("versions captured", versions);
        if self.sums.born > 0 {
            line(
                "new pages",
                format!("{} of {} found", self.sums.found, self.sums.born),
            );
        }
        let days = |days: Option<f64>| {
            days.map_or_else(|| "none".to_owned(), |days| format!("{days:.3} days"))
        };
        line(
            "delay of capture",
            format!("{} (best {})", days(self.delay()), days(oracle.delay_tried)),
        );
        line(
            "other optima",
            format!(
                "freshness without politeness {}, at random times {}, harmonic {}",
                percent(oracle.freshness_without_politeness),
                percent(oracle.freshness_at_random),
                percent(oracle.freshness_harmonic)
            ),
        );
        line(
            "requests",
            format!(
                "{requests}, {} of the budget ({:.0} a day)",
                percent(self.budget_used()),
                visits.budget
            ),
        );
        line(
            "  of pages",
            format!(
                "{pages}: {new} new, {changed} changed, {unchanged} unchanged, {not_modified} not modified (304), {gone} gone (404), {unknown} unknown"
            ),
        );
        if let Some(wasted) = self.wasted() {
            line(
                "  wasted",
                format!(
                    "{} of these found nothing new (best for versions {})",
                    percent(wasted),
                    percent(oracle.wasted_tried)
                ),
            );
        }
        line(
            "  others",
            format!("{lists} lists, {robots} robots.txt, {failed} failed"),
        );
        line(
            "bytes",
            format!(
                "{:.1} MiB received, {:.1} MiB stored",
                visits.bytes as f64 / MIB,
                visits.stored as f64 / MIB
            ),
        );
        line("overdue", format!("{} on average", days(self.overdue())));
        line(
            "starved",
            format!(
                "{} pages without a visit; longest interval {:.1} days",
                self.starved, self.longest
            ),
        );
        line(
            "waits",
            format!(
                "{} answered; {} below and {} above the profile's limits, which were used instead; {} oscillating, replaced by means",
                visits.waits, visits.too_short, visits.too_long, visits.oscillating
            ),
        );
        line(
            "politeness",
            format!(
                "{}, {} requests too soon",
                visits.smallest_gap.map_or_else(
                    || "no gap".to_owned(),
                    |gap| format!("smallest gap {gap:.3} s")
                ),
                visits.too_soon
            ),
        );
        if let Some((busiest, median)) = self.busiest_and_median_host() {
            line(
                "hosts",
                format!(
                    "{}, {median:.1} requests a day the median, {:.1} the busiest ({})",
                    self.hosts.len(),
                    busiest.requests_a_day,
                    busiest.host
                ),
            );
        }
        if visits.faults > 0 {
            line(
                "plugin errors",
                format!(
                    "{}, the first: {}",
                    visits.faults,
                    visits.first_fault.as_deref().unwrap_or_default()
                ),
            );
        }
        text
    }
}

/// Returns a part as a share of the whole. The share of an empty whole is 1, as it is for the oracle.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_always_a_number() {
        assert_eq!(share(1.0, 4.0), 0.25);
        assert_eq!(share(0.0, 0.0), 1.0);
        assert_eq!(share(0.02, 0.0), 1.0);
    }
}

//! A crawl of a synthetic web, driven by events: a request is sent, an answer arrives, the budget allows the next visit. The
//! clock of the system is not used.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use opilio_frontier::{ContentState, Issue, Next};
use opilio_profile::{Politeness, Profile};
use opilio_visit::evaluation::WaitCorrection;

use crate::crawl::{EndKind, PageRequest, SimulatedCrawl, SimulationError, VisitEnd, VisitStart};
use crate::measure::Sums;
use crate::oracle::{self, Goal};
use crate::process::{DAY, stream, uniform};
use crate::report::{HostVisits, Oracle, PageWait, Report, Visits};
use crate::scenario::Scenario;
use crate::server_answer::ServerAnswer;
use crate::web::{PageAnswer, PageId, Served, UriTarget, Web};

/// Parts of the measured time in the plot of freshness.
const PARTS: usize = 120;

/// Pages whose waits are plotted.
const WAITS_SHOWN: usize = 2_000;

/// The inputs of a simulation.
pub struct Simulation {
    /// The web.
    pub scenario: Scenario,
    /// The profile of the crawl.
    pub profile: Profile,
    /// The same seed makes the same web and the same crawl.
    pub seed: u64,
    /// The folder of compiled components; none compiles them anew.
    pub component_cache: Option<PathBuf>,
}

/// Progress of a simulation, in whole days of virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulationProgress {
    /// Days that have passed.
    pub day: u64,
    /// Days of the whole simulation, the warm-up included.
    pub days: u64,
}

impl Simulation {
    /// Runs the simulation. Reports progress when the plugins are loaded, and then each day.
    ///
    /// # Errors
    /// Returns [`SimulationError`], which includes the errors of the profile's plugins, each at its place.
    pub fn run(
        self,
        mut progress: impl FnMut(SimulationProgress) + Send,
    ) -> Result<Report, SimulationError> {
        opilio_stacks::on_plugin_thread("simulation", || self.run_here(&mut progress))
            .map_err(SimulationError::Broken)?
    }

    fn run_here(
        self,
        progress: &mut dyn FnMut(SimulationProgress),
    ) -> Result<Report, SimulationError> {
        let folder = tempfile::tempdir()?;
        let web = Web::new(&self.scenario, self.seed, PARTS);
        let start = web.at(0);
        let politeness = self.profile.settings().politeness;
        let name = self.profile.name.clone();
        let mut crawl = SimulatedCrawl::open(
            self.profile,
            folder.path(),
            self.component_cache.clone(),
            &web.prefixes(),
            start,
        )?;
        crawl.allow(visits_a_day(&self.scenario, &web).round().max(1.0) as u64);
        crawl.seed(web.seeds(), start)?;
        progress(progress_at(0, web.window().to));
        let oracle = Self::oracle(&self.scenario, self.seed, &web, &politeness);
        let mut run = Run::new(&self.scenario, web, crawl);
        run.run_to_end(progress)?;
        Ok(run.report(name, &self.scenario, self.seed, oracle))
    }

    /// Returns the results of an oracle that knows the rates, by formula and tried on the same web, and its visits a day of each
    /// page for freshness.
    fn oracle(
        scenario: &Scenario,
        seed: u64,
        web: &Web,
        politeness: &Politeness,
    ) -> (Oracle, BTreeMap<PageId, f64>) {
        let (ids, known): (Vec<PageId>, Vec<_>) = web.known().into_iter().unzip();
        let budget = visits_a_day(scenario, web);
        let limits: Vec<f64> = (0..web.hosts())
            .map(|host| {
                let took = web.response(host);
                86_400.0 / (took + politeness.delay_after(took, None)).as_secs_f64()
            })
            .collect();
        let tried = |goal: Goal, visits: &[f64]| -> Tried {
            let mut web = Web::new(scenario, seed, PARTS);
            let (mut visits_made, mut wasted) = (0_u64, 0_u64);
            let end = web.window().to;
            for (index, (id, visits)) in ids.iter().zip(visits).enumerate() {
                // Pages of the beginning have been visited when the warm-up is over, as by a crawl. A page that never changes
                // stays fresh for ever once it has been visited.
                let born = web.born(*id);
                if born <= 0 || web.rate(*id) <= 0.0 {
                    web.copy_page(*id, born.max(0));
                }
                if *visits <= 0.0 {
                    continue;
                }
                let every = DAY / visits;
                // A page that is born later is best copied at once. A first version does not count as captured.
                let mut at = born.max(0) as f64;
                if born <= 0 || goal == Goal::Captures {
                    let mut random = stream(&[seed, index as u64, 99]);
                    at += uniform(&mut random) * every;
                }
                while at < end as f64 {
                    let found = web.copy_page(*id, at as i64);
                    if at >= web.window().from as f64 {
                        visits_made += u64::from(found.is_some());
                        wasted += u64::from(found == Some(false));
                    }
                    at += every;
                }
            }
            web.finish();
            Tried {
                sums: web.sums,
                visits_made,
                wasted,
            }
        };
        let freshness = oracle::periodic(Goal::Freshness, &known, budget, &limits);
        let captures = oracle::periodic(Goal::Captures, &known, budget, &limits);
        let unlimited = vec![f64::INFINITY; limits.len()];
        let impolite = oracle::periodic(Goal::Freshness, &known, budget, &unlimited);
        let tried_freshness = tried(Goal::Freshness, &freshness.visits);
        let tried_captures = tried(Goal::Captures, &captures.visits);
        let best = ids.iter().copied().zip(freshness.visits.iter().copied());
        let best = best.collect();
        let oracle = Oracle {
            freshness: freshness.value,
            captures: captures.value,
            freshness_tried: tried_freshness.sums.freshness(),
            captures_tried: tried_captures.sums.captures().unwrap_or(0.0),
            age_tried: tried_freshness.sums.age(),
            delay_tried: tried_captures.sums.delay(),
            wasted_tried: tried_captures.wasted as f64 / tried_captures.visits_made.max(1) as f64,
            freshness_without_politeness: impolite.value,
            freshness_at_random: oracle::memoryless_freshness(&known, budget),
            freshness_harmonic: oracle::harmonic_freshness(&known, budget),
        };
        (oracle, best)
    }
}

/// The result of a plan on the web.
struct Tried {
    sums: Sums,
    /// Visits of existing pages after the warm-up, and those that found nothing new.
    visits_made: u64,
    wasted: u64,
}

/// Returns the progress at a time, in milliseconds since the beginning.
fn progress_at(now: i64, end: i64) -> SimulationProgress {
    let days = |millis: i64| millis.max(0) as f64 / DAY;
    SimulationProgress {
        day: days(now).floor() as u64,
        days: days(end).ceil() as u64,
    }
}

/// Returns the visits a day of the budget, for all pages together.
fn visits_a_day(scenario: &Scenario, web: &Web) -> f64 {
    scenario.budget * web.average_pages(scenario.days)
}

/// A request in flight. Flights are ordered by their end; the number distinguishes those with equal ends.
struct Flight {
    request: Box<PageRequest>,
    host: Option<usize>,
    served: Served,
    target: UriTarget,
    started: i64,
}

/// The state of a host's requests.
#[derive(Clone, Copy, Default)]
struct Host {
    requests: u64,
    last_end: Option<i64>,
    last_took: Duration,
    smallest_gap: Option<i64>,
    /// Requests that came sooner than politeness allows.
    too_soon: u64,
}

struct Run {
    web: Web,
    crawl: SimulatedCrawl,
    politeness: Politeness,
    workers: usize,
    end: i64,
    /// Visits that the budget allows now, visits that it adds in a millisecond, and visits that can be saved up.
    visits_left: f64,
    visits_per_millisecond: f64,
    visits_max: f64,
    left_at: i64,
    flights: BTreeMap<u64, Flight>,
    ends: BinaryHeap<Reverse<(i64, u64)>>,
    number: u64,
    hosts: BTreeMap<usize, Host>,
    visits: Visits,
    waits: BTreeMap<PageId, Duration>,
    overdue: f64,
    overdue_counted: u64,
}

impl Run {
    fn new(scenario: &Scenario, web: Web, crawl: SimulatedCrawl) -> Self {
        let per_day = visits_a_day(scenario, &web);
        let per_millisecond = per_day / DAY;
        let politeness = crawl.profile().settings().politeness;
        Self {
            end: web.window().to,
            web,
            crawl,
            politeness,
            workers: scenario.workers,
            visits_left: 0.0,
            visits_per_millisecond: per_millisecond,
            visits_max: (per_millisecond * scenario.burst.as_millis() as f64).max(1.0),
            left_at: 0,
            flights: BTreeMap::new(),
            ends: BinaryHeap::new(),
            number: 0,
            hosts: BTreeMap::new(),
            visits: Visits {
                budget: per_day,
                ..Visits::default()
            },
            waits: BTreeMap::new(),
            overdue: 0.0,
            overdue_counted: 0,
        }
    }

    fn at(&self, millis: i64) -> Timestamp {
        self.web.at(millis)
    }

    fn run_to_end(
        &mut self,
        progress: &mut dyn FnMut(SimulationProgress),
    ) -> Result<(), SimulationError> {
        let start = self.at(0).as_millisecond();
        let mut now = 0;
        let mut reported = 0;
        while now < self.end {
            let passed = progress_at(now, self.end);
            if passed.day > reported {
                reported = passed.day;
                progress(passed);
            }
            let wake = match self.budget_at(now) {
                Err(at) => at,
                Ok(()) if self.flights.len() >= self.workers => i64::MAX,
                Ok(()) => match self.crawl.next(self.at(now))? {
                    Next::Issue(issue) => {
                        self.send(issue, now)?;
                        continue;
                    }
                    Next::WaitUntil(at) => (at.as_millisecond() - start).max(now + 1),
                    Next::InProcess | Next::Empty => i64::MAX,
                },
            };
            let first_end = self.ends.peek().map(|Reverse((at, _))| *at);
            now = wake.min(first_end.unwrap_or(i64::MAX));
            while let Some(Reverse((at, number))) = self.ends.peek().copied()
                && at <= now
                && at < self.end
            {
                self.ends.pop();
                if let Some(flight) = self.flights.remove(&number) {
                    self.receive(flight, at)?;
                }
            }
        }
        self.web.finish();
        Ok(())
    }

    /// Takes a visit from the budget if it allows one now. Otherwise returns the time at which it does.
    fn budget_at(&mut self, now: i64) -> Result<(), i64> {
        let since = (now - self.left_at) as f64;
        self.left_at = now;
        let left = self.visits_left + since * self.visits_per_millisecond;
        self.visits_left = left.min(self.visits_max);
        if self.visits_left >= 1.0 {
            return Ok(());
        }
        let missing = (1.0 - self.visits_left) / self.visits_per_millisecond;
        Err(now.saturating_add((missing.ceil() as i64).max(1)))
    }

    fn send(&mut self, issue: Box<Issue>, now: i64) -> Result<(), SimulationError> {
        let (host, target) = self.web.target_of(&issue.uri);
        let is_known = issue.record.visits > 0;
        let overdue = issue.overdue.as_secs_f64() / 86_400.0;
        let uri = issue.uri.clone();
        let request = match self.crawl.begin(*issue, self.at(now))? {
            VisitStart::Ended(_) => return Ok(()),
            VisitStart::Asks(request) => request,
        };
        // The budget counts visits; prerequisites come on top.
        self.visits_left -= f64::from(u8::from(target != UriTarget::Robots));
        let is_measured = now >= self.web.window().from;
        if let Some(host) = host {
            self.note_gap(host, now, is_measured);
        }
        if is_measured && is_known && matches!(target, UriTarget::Page(_)) {
            self.overdue += overdue;
            self.overdue_counted += 1;
        }
        let served = self.web.serve(&uri, &request.headers, now);
        let ends = now
            + i64::try_from(served.took.as_millis())
                .unwrap_or(i64::MAX)
                .max(1);
        self.number += 1;
        self.ends.push(Reverse((ends, self.number)));
        let flight = Flight {
            request,
            host,
            served,
            target,
            started: now,
        };
        self.flights.insert(self.number, flight);
        Ok(())
    }

    fn note_gap(&mut self, host: usize, now: i64, is_measured: bool) {
        let politeness = &self.politeness;
        let host = self.hosts.entry(host).or_default();
        if let Some(last_end) = host.last_end {
            let gap = now - last_end;
            let smallest = host.smallest_gap.get_or_insert(gap);
            *smallest = gap.min(*smallest);
            let delay = politeness.delay_after(host.last_took, None).as_millis();
            host.too_soon += u64::from(gap < i64::try_from(delay).unwrap_or(i64::MAX));
        }
        host.requests += u64::from(is_measured);
    }

    fn receive(&mut self, flight: Flight, now: i64) -> Result<(), SimulationError> {
        let Flight {
            request,
            host,
            served,
            target,
            started,
        } = flight;
        if let Some(host) = host {
            let host = self.hosts.entry(host).or_default();
            host.last_end = Some(now);
            // As the crawl has measured it, to the millisecond.
            host.last_took = Duration::from_millis(u64::try_from(now - started).unwrap_or(0));
        }
        let size = match &served.answer {
            ServerAnswer::Response { size, .. } => *size,
            ServerAnswer::Failure => 0,
        };
        let ended = self.at(now);
        let visit_end = self.crawl.receive(*request, served.answer, ended)?;
        let is_page = match target {
            UriTarget::Page(id) => Some(id),
            _ => None,
        };
        if let Some(id) = is_page
            && visit_end.archived
        {
            self.web.captured(id, started, served.version);
        }
        if let (Some(id), Some(wait)) = (is_page, visit_end.wait) {
            self.waits.insert(id, wait);
        }
        self.visits.waits += u64::from(visit_end.answered);
        for correction in &visit_end.corrections {
            let count = match correction {
                WaitCorrection::Zero | WaitCorrection::TooShort => &mut self.visits.too_short,
                WaitCorrection::TooLong => &mut self.visits.too_long,
                WaitCorrection::Oscillating => &mut self.visits.oscillating,
            };
            *count += 1;
        }
        if started >= self.web.window().from {
            self.tally(&visit_end, target, size, served.page_answer);
        }
        Ok(())
    }

    fn tally(
        &mut self,
        visit_end: &VisitEnd,
        target: UriTarget,
        size: u64,
        page_answer: PageAnswer,
    ) {
        let visits = &mut self.visits;
        visits.requests += 1;
        visits.bytes = visits.bytes.saturating_add(size);
        if visit_end.archived {
            visits.stored = visits.stored.saturating_add(size);
        }
        match (visit_end.kind, target) {
            // Requests for robots.txt come on top of the budget, whatever their result.
            (_, UriTarget::Robots) => visits.robots += 1,
            (EndKind::Unfinished | EndKind::Failed, _) => visits.failed += 1,
            (EndKind::Success, UriTarget::Page(_)) => {
                visits.pages += 1;
                match visit_end.state {
                    _ if page_answer == PageAnswer::Gone => visits.gone += 1,
                    ContentState::Unchanged if page_answer == PageAnswer::NotModified => {
                        visits.not_modified += 1;
                    }
                    ContentState::Unchanged => visits.unchanged += 1,
                    ContentState::New => visits.new += 1,
                    ContentState::Changed => visits.changed += 1,
                    ContentState::Unknown => visits.unknown += 1,
                }
            }
            (EndKind::Success | EndKind::Robots, _) => visits.lists += 1,
        }
    }

    fn report(
        mut self,
        profile: String,
        scenario: &Scenario,
        seed: u64,
        (oracle, best): (Oracle, BTreeMap<PageId, f64>),
    ) -> Report {
        let days = (self.end - self.web.window().from) as f64 / DAY;
        let hosts = self.hosts.values();
        self.visits.days = days;
        self.visits.too_soon = hosts.clone().map(|host| host.too_soon).sum();
        self.visits.smallest_gap = hosts
            .clone()
            .filter_map(|host| host.smallest_gap)
            .min()
            .map(|gap| gap as f64 / 1000.0);
        let hosts = self.hosts.iter().map(|(site, host)| HostVisits {
            host: self.web.host(*site).to_owned(),
            requests_a_day: host.requests as f64 / days,
            smallest_gap: host.smallest_gap.map(|gap| gap as f64 / 1000.0),
            too_soon: host.too_soon,
        });
        let hosts = hosts.collect();
        self.visits.overdue = self.overdue / self.overdue_counted.max(1) as f64;
        let (faults, first_fault) = self.crawl.faults();
        self.visits.faults = faults;
        self.visits.first_fault = first_fault;
        let end = self.end;
        let existing = (0..self.web.pages.len()).filter(|id| self.web.exists(*id, end - 1));
        let pages: Vec<PageId> = existing.collect();
        let starved = pages
            .iter()
            .filter(|id| self.web.pages[**id].visits == 0)
            .count();
        let longest = pages.iter().map(|id| self.web.pages[*id].longest).max();
        let step = self.waits.len().div_ceil(WAITS_SHOWN).max(1);
        let waits = self.waits.iter().step_by(step);
        let waits = waits.map(|(id, wait)| PageWait {
            rate: self.web.rate(*id),
            wait: wait.as_secs_f64() / 86_400.0,
            best: best
                .get(id)
                .filter(|visits| **visits > 0.0)
                .map(|visits| 1.0 / visits),
        });
        Report {
            scenario: scenario.name.clone(),
            profile,
            seed,
            days: scenario.days,
            warm_up: scenario.warm_up,
            pages: pages.len() as u64,
            starved: starved as u64,
            longest: longest.unwrap_or(0) as f64 / DAY,
            waits: waits.collect(),
            visits: self.visits,
            hosts,
            oracle,
            sums: self.web.sums,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_in_whole_days() {
        let day = DAY as i64;
        let check = |now, end, day, days| {
            assert_eq!(progress_at(now, end), SimulationProgress { day, days });
        };
        check(0, 60 * day, 0, 60);
        check(day - 1, 60 * day, 0, 60);
        check(day, 60 * day, 1, 60);
        check(2 * day, 2 * day + 1, 2, 3);
    }
}

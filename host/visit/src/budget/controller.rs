//! The controller of the price of a visit. It moves the price until the requested visits match the available visits. Times are in
//! days, and the caller passes the present time.
//!
//! The requested rate is known before visits fall due. Every wait requests one visit in that time, so the sum of 1/wait over the
//! documents is the rate. The price therefore follows requested visits, and not only the backlog, which appears weeks later. The
//! backlog has an influence too. Requests become stale when documents disappear, so actual visits slowly correct their sum. The
//! proportional part of the price reacts at once to too many requests. The integral part removes the remaining error as fast as
//! requests are renewed: about once in a mean wait.

/// Largest logarithmic error that one step takes into account. A larger error would change the price too much on little evidence.
const EXCESS_MAX: f64 = 1.0;

/// Largest absolute value of the logarithm of the price.
const LOG_PRICE_MAX: f64 = 30.0;

/// Approximate number of first waits that are averaged. Each first wait moves the mean of the logarithms by one part in this
/// number.
const FIRST_WAITS: f64 = 7.0;

/// Shortest window, in days.
const WINDOW_MIN: f64 = 1e-3;

/// Longest window as a share of the time that the crawl has run, so that the price of a young crawl follows its first hour.
const WINDOW_OF_AGE: f64 = 1.0 / 3.0;

/// Window as a share of a mean wait.
const WINDOW_OF_WAIT: f64 = 0.5;

/// Longest window, in days. Evaluators that use prices reconsider long waits once a week. A price that rose in a young crawl must
/// fall within weeks, even if waits have become as long as a year.
const WINDOW_MAX: f64 = 3.5;

/// Windows in which actual visits replace requested ones.
const MEMORY_WINDOWS: f64 = 20.0;

/// Days after which disappeared documents no longer count. Some documents are visited only twice a year.
const DOCUMENTS_MEMORY: f64 = 365.0;

/// Target delay of documents, as a share of their waits, if no more visits are available. Due times are random and come in waves:
/// if no document is late, some visits remain unused.
const BACKLOG_AIM: f64 = 0.1;

/// Weight of a delay of one whole wait, compared with ln(requested/available).
const BACKLOG_WEIGHT: f64 = 2.0;

/// Limit on the delay beyond the target, in waits. A higher price cannot remove a backlog faster.
const BACKLOG_EXCESS_MAX: f64 = 0.1;

/// Delay, as a share of a wait, up to which more visits may be possible. Without a configured budget, the visits available are as
/// many as happen while documents are later than this.
const BACKLOG_WANTED: f64 = 0.02;

/// Factor over the requested visits, up to which visits count as available while documents are not late.
const GROWTH: f64 = 1.1;

/// Visits over which the time between two is averaged.
const GAPS: f64 = 100.0;

/// Divisor of the target delay: from a backlog of that size on, the target counts in full. Before any document is late, the limit
/// on visits is unknown, and no more than the wanted visits may be requested.
const BACKLOG_SEEN: f64 = 25.0;

/// A price and the state from which it is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Controller {
    /// Time at which the controller began. Waits that were set before are not in its sums.
    began: f64,
    /// Integral part: logarithm of the price.
    level: f64,
    /// Logarithm of the ratio of requested visits to available visits, at the last step.
    excess: f64,
    /// Visits a day that waits request.
    requested_rate: f64,
    /// Documents with a requested visit.
    documents: f64,
    /// Recent first waits: their number, up to [`FIRST_WAITS`], and the mean of their logarithms.
    firsts: f64,
    first: f64,
    /// Recent visits, each counting less with time: their number, their new waits and their delays.
    visits: f64,
    waits: f64,
    delays: f64,
    /// Time from one visit to the next while documents are late; 0 if none has been late.
    gap: f64,
    /// Days that the controller has run, without stops of the crawl.
    age: f64,
    /// Not stored: a stop does not count as time without requests.
    last_step: Option<f64>,
    last_visit: Option<f64>,
}

/// The visit that one document requests, after it was visited or reconsidered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestedVisit {
    pub(crate) now: f64,
    /// Time of the previous visit, and the wait that was set then; `None` at the first visit.
    pub(crate) before: Option<(f64, f64)>,
    pub(crate) wait: f64,
    /// Time past the due time; `None` if the document was reconsidered without a visit.
    pub(crate) delay: Option<f64>,
}

impl Controller {
    pub(crate) fn new(price: f64, now: f64) -> Self {
        Self {
            began: now,
            level: price.ln(),
            excess: 0.0,
            requested_rate: 0.0,
            documents: 0.0,
            firsts: 0.0,
            first: 0.0,
            visits: 0.0,
            waits: 0.0,
            delays: 0.0,
            gap: 0.0,
            age: 0.0,
            last_step: None,
            last_visit: None,
        }
    }

    pub(crate) fn price(&self) -> f64 {
        (self.level + self.excess)
            .clamp(-LOG_PRICE_MAX, LOG_PRICE_MAX)
            .exp()
    }

    /// Returns the visits a day that documents request, including known documents that have not been visited yet.
    pub(crate) fn requested_visits(&self, known: f64) -> f64 {
        self.requested_rate.max(0.0) + self.requested_by_new(known)
    }

    /// Returns the visits a day that unvisited documents will request. The rate of each is that of documents which recently had
    /// their first visit, but not more than the mean of all documents. First visits alone are a poor measure, because front pages
    /// and feeds are visited first.
    fn requested_by_new(&self, known: f64) -> f64 {
        if self.documents < 1.0 {
            return 0.0;
        }
        let each = (-self.first)
            .exp()
            .min(self.requested_rate.max(0.0) / self.documents);
        (known - self.documents).max(0.0) * each
    }

    /// Counts a requested visit and moves the price. `known` is the number of documents, `available` the visits a day. If
    /// `available` is `None`, as many visits are available as can be made. This number becomes known once documents are late.
    pub(crate) fn step(&mut self, requested: RequestedVisit, known: f64, available: Option<f64>) {
        let RequestedVisit {
            now,
            before,
            wait,
            delay,
        } = requested;
        // Waits from before the controller began were never counted.
        let before = before.filter(|(at, _)| *at >= self.began);
        let before = before.map(|(_, wait)| wait);
        let passed = (now - self.last_step.unwrap_or(now)).max(0.0);
        self.last_step = Some(now);
        self.age += passed;
        let window = self.window();
        match before {
            Some(before) => self.requested_rate -= 1.0 / before,
            None => {
                self.documents += 1.0;
                self.firsts = (self.firsts + 1.0).min(FIRST_WAITS);
                self.first += (wait.ln() - self.first) / self.firsts;
            }
        }
        self.requested_rate += 1.0 / wait;
        if let Some(delay) = delay {
            self.count(now, before, wait, delay, window);
        }
        // Without visits, past delays lose weight.
        let fade = (-(now - self.last_visit.unwrap_or(now)).max(0.0) / window).exp();
        let backlog = fade * self.delays / self.waits.max(1e-9);
        let request_rate = self.requested_visits(known);
        let available = available.unwrap_or_else(|| {
            let possible = if self.gap > 0.0 { 1.0 / self.gap } else { 0.0 };
            if backlog > BACKLOG_WANTED && possible > 0.0 {
                possible
            } else {
                possible.max(GROWTH * request_rate)
            }
        });
        let late = (backlog - BACKLOG_AIM).clamp(-BACKLOG_SEEN * backlog, BACKLOG_EXCESS_MAX);
        let excess = (request_rate.max(1e-9) / available.max(1e-9)).ln();
        let excess = excess + BACKLOG_WEIGHT * late;
        self.excess = excess.clamp(-EXCESS_MAX, EXCESS_MAX);
        // The demand of new documents is estimated from the last few answers only. If it dominates, a few answers must not change
        // the price much.
        let step_max = if request_rate > 2.0 * self.requested_rate.max(0.0) {
            1.0 / FIRST_WAITS
        } else {
            1.0
        };
        let level = self.level + self.excess * (passed / window).min(step_max);
        self.level = level.clamp(-LOG_PRICE_MAX, LOG_PRICE_MAX);
    }

    /// Raises the price to this minimum if it is lower.
    pub(crate) fn floor(&mut self, price: f64) {
        self.level = self.level.max(price.max(1e-12).ln());
    }

    fn count(&mut self, now: f64, before: Option<f64>, wait: f64, delay: f64, window: f64) {
        let since = (now - self.last_visit.unwrap_or(now)).max(0.0);
        if self.last_visit.is_some() && delay > since {
            let share = if self.gap > 0.0 { 1.0 / GAPS } else { 1.0 };
            self.gap += (since - self.gap) * share;
        }
        self.last_visit = Some(now);
        let kept = (-since / window).exp();
        self.visits = self.visits * kept + 1.0;
        self.waits = self.waits * kept + wait;
        self.delays = self.delays * kept + delay;
        let long = MEMORY_WINDOWS * window;
        if let Some(before) = before {
            // The time between visits without the delay represents the requested rate.
            let share = (1.0 + delay / before - self.requested_rate * since) / long;
            self.requested_rate = (self.requested_rate + share).max(0.0);
            let share = (before + delay - self.documents * since) / DOCUMENTS_MEMORY;
            self.documents = (self.documents + share).max(1.0);
        }
    }

    /// Returns the text that is stored. [`Controller::read`] reads it.
    pub(crate) fn as_text(&self) -> String {
        let numbers = [
            self.began,
            self.level,
            self.excess,
            self.requested_rate,
            self.documents,
            self.visits,
            self.waits,
            self.delays,
            self.gap,
            self.age,
            self.firsts,
            self.first,
        ];
        numbers.map(|number| number.to_string()).join(" ")
    }

    /// Parses the stored text; `None` if it is malformed.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let numbers: Option<Vec<f64>> = text
            .split(' ')
            .map(|number| {
                number
                    .parse()
                    .ok()
                    .filter(|number: &f64| number.is_finite())
            })
            .collect();
        let numbers = numbers?;
        let &[
            began,
            level,
            excess,
            requested_rate,
            documents,
            visits,
            waits,
            delays,
            gap,
            age,
            firsts,
            first,
        ] = numbers.as_slice()
        else {
            return None;
        };
        Some(Self {
            began,
            level,
            excess,
            requested_rate,
            documents,
            firsts,
            first,
            visits,
            waits,
            delays,
            gap,
            age,
            last_step: None,
            last_visit: None,
        })
    }

    fn window(&self) -> f64 {
        let young = self.age * WINDOW_OF_AGE;
        let cycle = match self.visits > 0.0 {
            true => WINDOW_OF_WAIT * self.waits / self.visits,
            false => young,
        };
        young.min(cycle).clamp(WINDOW_MIN, WINDOW_MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use super::*;

    /// Simulates a crawl of this many documents. The evaluator answers a wait of 2 days at price 1, and longer waits at higher
    /// prices. Visits happen one at a time, `capacity` a day. Returns the requested rate at the end, and the visits a day and the
    /// longest delay in the last third.
    fn crawl(documents: usize, capacity: f64, budget: Option<f64>, first_price: f64) -> [f64; 3] {
        let mut controller = Controller::new(first_price, 0.0);
        let mut due: Vec<(f64, usize)> = (0..documents).map(|one| (0.0, one)).collect();
        let mut before = vec![None; documents];
        let (mut now, days) = (0.0_f64, 180.0);
        let (mut visits, mut latest) = (0.0, 0.0_f64);
        while now < days {
            let (at, _) = due
                .iter()
                .enumerate()
                .min_by(|(_, a), (_, b)| a.0.total_cmp(&b.0))
                .unwrap();
            let (was_due, one) = due[at];
            now = was_due.max(now + 1.0 / capacity);
            let delay = if before[one].is_some() {
                now - was_due
            } else {
                0.0
            };
            let wait = 2.0 * controller.price().sqrt() * (0.5 + one as f64 / documents as f64);
            let wait = wait.clamp(0.01, 60.0);
            let requested = RequestedVisit {
                now,
                before: before[one],
                wait,
                delay: Some(delay),
            };
            controller.step(requested, documents as f64, budget);
            before[one] = Some((now, wait));
            due[at] = (now + wait, one);
            if now > days * 2.0 / 3.0 {
                visits += 1.0;
                latest = latest.max(delay);
            }
        }
        [
            controller.requested_visits(documents as f64),
            visits / (days / 3.0),
            latest,
        ]
    }

    #[test]
    fn requested_visits_approach_the_budget_from_any_first_price() {
        for first_price in [0.001, 1.0, 1000.0] {
            let [rate, visits, _] = crawl(100, 100_000.0, Some(20.0), first_price);
            assert!((19.0..21.0).contains(&rate), "{first_price}: {rate}");
            assert!((19.0..21.0).contains(&visits), "{first_price}: {visits}");
        }
    }

    #[test]
    fn without_a_budget_all_capacity_is_used_without_a_backlog() {
        for capacity in [10.0, 200.0] {
            let [_, visits, latest] = crawl(100, capacity, None, 0.1);
            assert!(visits > 0.95 * capacity, "{capacity}: {visits}");
            let cycle = 100.0 / capacity;
            assert!(latest < 3.0 * cycle, "{capacity}: {latest}");
        }
    }

    /// A hundred documents have waits of most of a year and are reconsidered. After a hundred days many more visits are available
    /// than they request.
    #[test]
    fn a_price_that_is_too_high_falls_within_weeks_even_with_long_waits() {
        let mut controller = Controller::new(1.0, 0.0);
        let mut think = |days: std::ops::Range<usize>, before, delay, available| {
            for day in days {
                let requested = RequestedVisit {
                    now: day as f64,
                    before,
                    wait: 300.0,
                    delay,
                };
                controller.step(requested, 100.0, Some(available));
            }
            controller.price()
        };
        think(0..100, None, Some(0.0), 100.0 / 300.0);
        let before = think(100..101, Some((50.0, 300.0)), None, 100.0 / 300.0);
        let after = think(101..136, Some((50.0, 300.0)), None, 20.0);
        assert!(after < before / 1000.0, "{before} {after}");
    }

    /// Twenty feeds and a thousand pages are known from the beginning. The feeds are found first and read four times a day at any
    /// price. Pages wait longer at higher prices, and for most of a year at prices above 1.
    #[test]
    fn feeds_that_are_found_first_do_not_drive_the_price_up() {
        let mut controller = Controller::new(0.1, 0.0);
        let mut due: BinaryHeap<Reverse<(u64, usize)>> =
            (0..1020).map(|one| Reverse((0, one))).collect();
        let mut before = vec![None; 1020];
        let (mut now, mut dearest) = (0_u64, 0.0_f64);
        while now < 30 * 1440
            && let Some(Reverse((was_due, one))) = due.pop()
        {
            // In minutes: about a hundred visits a day at most.
            now = was_due.max(now + 14);
            let price = controller.price();
            let wait = match one {
                0..20 => 0.25,
                _ if price > 1.0 => 300.0,
                _ => 15.0 * price.sqrt(),
            };
            let at = now as f64 / 1440.0;
            let delay = before[one].map_or(0.0, |_| (now - was_due) as f64 / 1440.0);
            let requested = RequestedVisit {
                now: at,
                before: before[one],
                wait,
                delay: Some(delay),
            };
            controller.step(requested, 1020.0, Some(100.0));
            dearest = dearest.max(controller.price());
            before[one] = Some((at, wait));
            due.push(Reverse((now + (wait * 1440.0) as u64, one)));
        }
        assert!(dearest < 10.0, "{dearest}");
    }

    #[test]
    fn a_stored_price_is_read_back_unchanged() {
        let mut controller = Controller::new(0.25, 20_000.5);
        let requested = RequestedVisit {
            now: 20_001.0,
            before: None,
            wait: 3.5,
            delay: Some(0.0),
        };
        controller.step(requested, 10.0, Some(2.0));
        let read = Controller::read(&controller.as_text()).unwrap();
        assert_eq!(read.as_text(), controller.as_text());
        assert!((read.price() - controller.price()).abs() < 1e-12);
        for text in [
            "",
            "1 2 3",
            "1 2 3 4 5 6 7 8 9 10",
            "1 2 3 4 5 6 7 8 9 10 11 x",
            "1 2 3 4 5 6 7 8 9 10 11 NaN",
        ] {
            assert_eq!(Controller::read(text), None, "{text}");
        }
    }
}

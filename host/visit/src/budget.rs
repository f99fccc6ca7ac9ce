//! Prices of a visit: one for the whole crawl and one for each queue. They divide the available visits among the documents to
//! revisit. The crawl's price follows `revisit.budget`, or the capacity of the crawler. A queue's price follows the visits that its
//! politeness delay allows. Evaluators receive both as measures of a visit. They choose a wait after which the value of a visit
//! reaches the sum of both prices.
//!
//! The prices are written to the frontier's store once a minute. A restart resumes from them and loses one minute at most.

mod controller;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use opilio_frontier::{Frontier, FrontierError, Issue, UriRecord};

use self::controller::{Controller, RequestedVisit};

/// Name under which evaluators read the crawl's price.
const PRICE: &str = "budget-price";

/// Name of the price of the document's queue.
const QUEUE_PRICE: &str = "host-budget-price";

/// Name of the document's precedence, 0 first. Evaluators use it as the document's value.
const PRECEDENCE: &str = "precedence";

/// Name of the days since a document that has never been visited was queued. Evaluators derive the time of its discovery from it.
const QUEUED: &str = "days-queued";

/// Prefix of the names under which prices are stored. The queue's name follows.
const NAME: &str = "price:";

/// The first price of a visit, a guess that the controller corrects.
const FIRST_PRICE: f64 = 0.1;

/// Share of the crawl's price below which a queue's price does not fall, so that it rises again soon when it is needed.
const QUEUE_PRICE_MIN: f64 = 0.01;

/// Share of the fetches allowed by a queue's politeness delay that revisits may request. Retries and new URIs need the rest.
const USE_OF_QUEUE: f64 = 0.95;

/// Maximum of queues whose prices are held in memory. Beyond it, all prices are written to the store and read again when they are
/// needed.
const QUEUES_MAX: usize = 100_000;

const KEPT_EVERY: Duration = Duration::from_secs(60);

const DAY: f64 = 86_400.0;

/// The prices, and the state from which they are computed.
pub struct Budget {
    whole: Controller,
    queues: HashMap<String, Controller>,
    /// Queues whose prices have moved since they were written.
    moved: BTreeSet<String>,
    written: Option<Timestamp>,
}

/// An evaluator's answer for a document, within the profile's limits.
#[derive(Clone, Copy, Debug)]
pub struct EvaluatedWait {
    /// The time of the answer.
    pub now: Timestamp,
    /// Time from the last visit, this one or an earlier one, until the next.
    pub wait: Duration,
    /// `true` if the document was visited; `false` if it was only reconsidered.
    pub is_visit: bool,
    /// Minimum time from one fetch of its queue to the next.
    pub pace: Option<Duration>,
    /// Number of queued URIs.
    pub queued: u64,
    /// Visits a day that the profile sets as its budget.
    pub budget: Option<u64>,
}

/// The queue and state of a URI, as far as its measures depend on them.
#[derive(Clone, Copy, Debug)]
pub struct UriInQueue<'a> {
    /// The URI's queue.
    pub queue: &'a str,
    /// The URI's precedence.
    pub precedence: u8,
    /// Time since the URI was queued, if it was never visited.
    pub queued: Option<Duration>,
}

impl<'a> UriInQueue<'a> {
    /// Returns the place of a URI that was issued.
    pub fn of(issue: &'a Issue) -> UriInQueue<'a> {
        UriInQueue {
            queue: &issue.queue,
            precedence: issue.record.precedence,
            queued: (issue.record.visits == 0).then_some(issue.overdue),
        }
    }
}

impl Budget {
    /// Reads the prices in this store.
    ///
    /// # Errors
    /// Returned if the store fails.
    pub fn open(frontier: &Frontier, now: Timestamp) -> Result<Self, FrontierError> {
        let whole = read(frontier, "")?;
        Ok(Self {
            whole: whole.unwrap_or_else(|| Controller::new(FIRST_PRICE, days(now))),
            queues: HashMap::new(),
            moved: BTreeSet::new(),
            written: None,
        })
    }

    /// Returns the measures of a URI that evaluators may read.
    ///
    /// # Errors
    /// Returned if the store fails.
    pub fn measures(
        &mut self,
        frontier: &Frontier,
        place: UriInQueue<'_>,
        now: Timestamp,
    ) -> Result<BTreeMap<String, f64>, FrontierError> {
        let whole = self.whole.price();
        let queue = self.queue(frontier, place.queue, now)?.price();
        let mut measures = BTreeMap::from([
            (PRICE.to_owned(), whole),
            (QUEUE_PRICE.to_owned(), queue),
            (PRECEDENCE.to_owned(), place.precedence.into()),
        ]);
        if let Some(queued) = place.queued {
            measures.insert(QUEUED.to_owned(), queued.as_secs_f64() / DAY);
        }
        Ok(measures)
    }

    /// Counts an answer and moves the prices.
    ///
    /// # Errors
    /// Returned if the store fails.
    pub fn answered(
        &mut self,
        frontier: &Frontier,
        issue: &Issue,
        answered: EvaluatedWait,
    ) -> Result<(), FrontierError> {
        let record = &issue.record;
        let overdue = issue.overdue.as_secs_f64() / DAY;
        let overdue = if record.visits > 0 { overdue } else { 0.0 };
        let requested = RequestedVisit {
            now: days(answered.now),
            before: before(record),
            wait: (answered.wait.as_secs_f64() / DAY).max(1e-6),
            delay: answered.is_visit.then_some(overdue),
        };
        let queued = answered.queued as f64;
        let budget = answered.budget.map(|budget| budget as f64);
        self.whole.step(requested, queued, budget);
        let floor = self.whole.price() * QUEUE_PRICE_MIN;
        let queue = self.queue(frontier, &issue.queue, answered.now)?;
        if let Some(pace) = answered.pace {
            let allowed = USE_OF_QUEUE * DAY / pace.as_secs_f64().max(1e-3);
            queue.step(requested, 0.0, Some(allowed));
            queue.floor(floor);
        }
        self.moved.insert(issue.queue.clone());
        Ok(())
    }

    /// Returns the prices to write to the store, if a minute has passed.
    pub fn due_prices(&mut self, now: Timestamp) -> Option<Vec<(String, Vec<u8>)>> {
        let is_due = self.written.is_none_or(|written| {
            Duration::try_from(now - written).is_ok_and(|since| since >= KEPT_EVERY)
        });
        (is_due || self.queues.len() > QUEUES_MAX).then(|| self.all_prices(now))
    }

    /// Returns the prices to write to the store now.
    pub fn all_prices(&mut self, now: Timestamp) -> Vec<(String, Vec<u8>)> {
        self.written = Some(now);
        let moved = std::mem::take(&mut self.moved);
        let queues = moved
            .iter()
            .filter_map(|queue| Some((queue.as_str(), self.queues.get(queue)?)));
        let all = std::iter::once(("", &self.whole)).chain(queues);
        let values = all.map(|(queue, controller)| {
            (format!("{NAME}{queue}"), controller.as_text().into_bytes())
        });
        let values = values.collect();
        if self.queues.len() > QUEUES_MAX {
            self.queues.clear();
        }
        values
    }

    fn queue(
        &mut self,
        frontier: &Frontier,
        queue: &str,
        now: Timestamp,
    ) -> Result<&mut Controller, FrontierError> {
        if !self.queues.contains_key(queue) {
            let kept = read(frontier, queue)?;
            let price = self.whole.price() * QUEUE_PRICE_MIN;
            let controller = kept.unwrap_or_else(|| Controller::new(price, days(now)));
            self.queues.insert(queue.to_owned(), controller);
        }
        // The queue's price was inserted just before, if it was missing.
        let new = || Controller::new(FIRST_PRICE, days(now));
        Ok(self.queues.entry(queue.to_owned()).or_insert_with(new))
    }
}

/// Returns the time of the last visit of a URI, and the wait that was set then.
fn before(record: &UriRecord) -> Option<(f64, f64)> {
    let last = record.history.first()?;
    let wait = record.wait.filter(|_| record.visits > 0)?;
    Some((days(last.at), (wait.as_secs_f64() / DAY).max(1e-6)))
}

fn read(frontier: &Frontier, queue: &str) -> Result<Option<Controller>, FrontierError> {
    let kept = frontier.caller_value(&format!("{NAME}{queue}"))?;
    let text = kept.and_then(|kept| String::from_utf8(kept).ok());
    Ok(text.and_then(|text| Controller::read(&text)))
}

fn days(at: Timestamp) -> f64 {
    at.as_millisecond() as f64 / (1000.0 * DAY)
}

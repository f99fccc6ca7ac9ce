//! Precedence plugins, which are called on the outlinks of a page, on seeds, and on queues.
//!
//! The first answer applies. Without an answer, the profile's policy applies. A queue is ranked when this process first uses it and
//! after every [`VISITS_BETWEEN_RANKS`] of its visits, because its documents show its value.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use opilio_frontier::{Frontier, QueueReport, UriRecord, UriState};
use opilio_sandbox::{Candidates, Document, Queue};
use opilio_uri::Uri;

use opilio_stacks::Staged;
use opilio_stacks::breaker::Failure;
use opilio_stacks::guards::{CandidateGuards, GuardVerdict, handled};

/// Visits of a queue after which it is ranked again.
const VISITS_BETWEEN_RANKS: u32 = 20;

/// Maximum of queues whose visits are counted. Beyond it, counting starts from zero and the queues are ranked once more.
const QUEUES_MAX: usize = 100_000;

/// Ranks of a batch, and the calls that failed.
pub struct CandidateRanks {
    /// One rank for each candidate, in order. `None` leaves the rank to the profile.
    pub ranks: Vec<Option<u8>>,
    /// Calls that failed.
    pub failures: Vec<Failure>,
}

/// Effect of the stack's answers on a queue's rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankChange {
    /// The queue keeps its rank: a plugin failed, or its breaker is open, and no other plugin gave a rank.
    Keep,
    /// The queue gets this rank. `None`: no plugin answered, so its settings decide.
    Set(Option<u8>),
}

/// Calls the stack on candidates found on a page, or on seeds. Blocks; call it on a document lane.
pub fn rank(stack: &[Staged], candidates: &Candidates, page: Option<&Document>) -> CandidateRanks {
    let mut ranked = CandidateRanks {
        ranks: vec![None; candidates.len()],
        failures: Vec::new(),
    };
    let mut guards = CandidateGuards::new(candidates);
    for staged in stack {
        let seen = guards.seen_by(staged);
        let mut places = handled(staged, candidates);
        places.retain(|&place| ranked.ranks[place].is_none() && seen[place] == GuardVerdict::Yes);
        if places.is_empty() {
            continue;
        }
        let batch = match places.len() == candidates.len() {
            true => candidates.clone(),
            false => places
                .iter()
                .filter_map(|&place| candidates.get(place).cloned())
                .collect(),
        };
        match staged.rank_candidates(&batch, page) {
            Ok(ranks) => {
                for (place, rank) in places.into_iter().zip(ranks) {
                    ranked.ranks[place] = rank;
                }
            }
            // The profile's precedence applies to the page's links. No link is lost.
            Err(unanswered) => ranked.failures.extend(unanswered.failure()),
        }
    }
    ranked.failures.extend(guards.failures);
    ranked
}

/// Calls the stack on a queue. Blocks. Returns the change of its rank, and the calls that failed.
pub fn rank_queue(
    stack: &[Staged],
    report: &QueueReport,
    now: Timestamp,
) -> (RankChange, Vec<Failure>) {
    let tally = report.tally;
    let queue = Queue {
        name: report.queue.clone(),
        queued: report.ready + report.waiting,
        succeeded: tally.succeeded,
        failed: report.failed,
        bytes: tally.bytes,
        best: report.best,
        base: report.settings.precedence,
        now,
    };
    let mut change = RankChange::Set(None);
    let mut failures = Vec::new();
    for staged in stack {
        match staged.rank_queue(&queue) {
            Ok(Some(rank)) => return (RankChange::Set(Some(rank)), failures),
            Ok(None) => {}
            Err(unanswered) => {
                change = RankChange::Keep;
                failures.extend(unanswered.failure());
            }
        }
    }
    (change, failures)
}

/// Lowers the precedence value of a waiting URI to `rank`, if `rank` is lower.
///
/// # Errors
/// Returns the errors of the store.
pub fn raise(
    frontier: &mut Frontier,
    uri: &Uri,
    rank: u8,
    now: Timestamp,
) -> Result<(), opilio_frontier::FrontierError> {
    let waits = |record: UriRecord| {
        matches!(record.state, UriState::Queued { .. }) && record.precedence > rank
    };
    if frontier.record(uri)?.is_some_and(waits) {
        // A URI that is being fetched keeps its value, which has no further effect.
        frontier.set_precedence(uri, rank, now)?;
    }
    Ok(())
}

/// Counts of visits of queues, which decide when each queue is ranked again.
#[derive(Default)]
pub struct QueueRanks(Mutex<HashMap<String, u32>>);

impl QueueRanks {
    /// Records a finished visit of `queue` and links for the queues `found`. Returns the queues to be ranked now.
    pub fn due(&self, queue: &str, found: impl Iterator<Item = String>) -> BTreeSet<String> {
        let mut due: BTreeSet<String> = found
            .filter(|queue| self.is_due_when_found(queue))
            .collect();
        if self.is_due_after_visit(queue) {
            due.insert(queue.to_owned());
        }
        due
    }

    /// Counts a visit of this queue. Returns whether the queue is to be ranked now.
    pub fn is_due_after_visit(&self, queue: &str) -> bool {
        self.count(queue, 1)
    }

    /// Records that URIs entered this queue. Returns whether it is to be ranked now, because it was not ranked before.
    pub fn is_due_when_found(&self, queue: &str) -> bool {
        self.count(queue, 0)
    }

    fn count(&self, queue: &str, visits: u32) -> bool {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match queues.get_mut(queue) {
            Some(since) => {
                *since += visits;
                let is_due = *since >= VISITS_BETWEEN_RANKS;
                if is_due {
                    *since = 0;
                }
                is_due
            }
            None => {
                if queues.len() >= QUEUES_MAX {
                    queues.clear();
                }
                queues.insert(queue.to_owned(), 0);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_ranked_when_found_and_after_a_fixed_number_of_visits() {
        let ranks = QueueRanks::default();
        assert!(ranks.is_due_when_found("a"));
        assert!(!ranks.is_due_when_found("a"));
        let due: Vec<bool> = (0..2 * VISITS_BETWEEN_RANKS)
            .map(|_| ranks.is_due_after_visit("a"))
            .collect();
        assert_eq!(due.iter().filter(|is_due| **is_due).count(), 2);
        assert!(due[VISITS_BETWEEN_RANKS as usize - 1]);
        assert!(ranks.is_due_after_visit("b"));
    }
}

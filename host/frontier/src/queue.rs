//! A queue: the URIs that share one server's politeness. Its record is durable. `queue_report.rs` computes its state from the
//! record; the state is not stored.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    FrontierConfig, PrecedencePolicy, QueueSettings, Tally,
    instant::{self, Millis},
    keys::{self, OrderKey},
};

/// Most different URIs that may fail in a row before a queue backs off as a whole.
const FAILING_MAX: usize = 1000;

/// Longest bandwidth debt that is plausible: it would be 8 GB at 100 kB a second. A longer debt comes from a clock that was
/// ahead.
pub(crate) const OWED_MAX: Duration = Duration::from_secs(24 * 3600);

/// The stored record of a queue. An idle queue costs this much disk space and no memory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct QueueRecord {
    /// URIs that are ready, those in process included, by precedence; sorted, without empty entries.
    pub(crate) ready: Vec<(u8, u64)>,
    /// URIs that are not yet due.
    pub(crate) waiting: u64,
    /// Earliest due time of the waiting URIs. None of them is due before it.
    pub(crate) first_due: Millis,
    /// Its precedence: queues of a lower number go first. Computed when the record was last written.
    pub(crate) precedence: u8,
    /// Its place in the queue order, with the time at which it was or will be able to issue. `None` if it has no URI to issue.
    pub(crate) order_key: Option<OrderKey>,
    /// Times at which its slots may issue again. Slots past the end have never been used.
    pub(crate) slots: Vec<Millis>,
    /// Time until which its bandwidth is used up.
    pub(crate) paid_until: Millis,
    /// Times in a row that it has backed off as a whole, without a success since.
    pub(crate) failures: u32,
    /// The crawl-delay of its robots.txt, as written there.
    pub(crate) crawl_delay: Option<Duration>,
    /// Its settings, if they differ from [`FrontierConfig::queue`].
    pub(crate) settings: Option<Box<QueueSettings>>,
    /// [`FrontierConfig::settings_hash`] when the settings were resolved.
    pub(crate) settings_hash: u64,
    /// The operator's precedence, in place of that of settings and policy.
    pub(crate) own_precedence: Option<u8>,
    /// Its server's address, if the caller groups by it.
    pub(crate) address_group: Option<String>,
    /// URIs it has issued that were finished, whatever their outcome.
    pub(crate) finished: u64,
    /// Counts of its documents, bytes and time.
    pub(crate) tally: Tally,
    /// Cost so far.
    pub(crate) spent: u64,
    /// Cost it may spend before it becomes inactive.
    pub(crate) balance: i64,
    /// `true` if the operator retired it: it takes URIs and issues none.
    pub(crate) is_retired: bool,
    /// `true` if the operator froze it for a while.
    pub(crate) is_frozen: bool,
    /// The precedence that the caller's ranking last gave it, in place of that of settings and policy.
    pub(crate) ranked_precedence: Option<u8>,
    /// URIs it has issued that could not be fetched, without prerequisites.
    pub(crate) failed: u64,
    /// URIs that have failed in a row while it has not backed off, each once, by a hash of their record keys.
    pub(crate) failing: Vec<u64>,
    /// Fetch status of the failure that it last backed off from; 0 if unknown. Records of early stores end before it.
    #[serde(deserialize_with = "or_zero")]
    pub(crate) last_failure: i32,
}

fn or_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    Ok(i32::deserialize(deserializer).unwrap_or_default())
}

/// Reason for which a queue issues no URI, whatever it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueHold {
    Frozen,
    Retired(RetiredBy),
}

/// The cause of a queue's retirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetiredBy {
    /// The operator.
    Operator,
    /// The queue's cost has reached [`QueueSettings::budget`].
    Budget,
    /// The queue has reached this limit of [`QueueSettings::quota`], by its name in [`Quota`](crate::Quota).
    Quota(&'static str),
}

impl RetiredBy {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Budget => "budget",
            Self::Quota(limit) => limit,
        }
    }
}

impl QueueRecord {
    pub(crate) fn new(name: &str, config: &FrontierConfig) -> Self {
        let mut record = Self {
            first_due: Millis::MAX,
            paid_until: Millis::MIN,
            ..Self::default()
        };
        record.resolve(name, config);
        record
    }

    /// Takes over the current settings.
    pub(crate) fn resolve(&mut self, name: &str, config: &FrontierConfig) {
        self.settings_hash = config.settings_hash;
        self.settings = config
            .resolver
            .as_ref()
            .map(|resolver| Box::new(resolver.resolve(name)))
            .filter(|settings| **settings != config.queue);
    }

    pub(crate) fn settings<'r>(&'r self, config: &'r FrontierConfig) -> &'r QueueSettings {
        self.settings.as_deref().unwrap_or(&config.queue)
    }

    /// Its server group: the operator's, or that of its address.
    pub(crate) fn group<'r>(&'r self, config: &'r FrontierConfig) -> Option<&'r str> {
        let operators = self.settings(config).group.as_deref();
        operators.or(self.address_group.as_deref())
    }

    /// URIs that are ready, those in process included.
    pub(crate) fn ready_count(&self) -> u64 {
        self.ready.iter().map(|(_, count)| count).sum()
    }

    pub(crate) fn add_ready(&mut self, precedence: u8) {
        match self.ready.binary_search_by_key(&precedence, |(of, _)| *of) {
            Ok(at) => self.ready[at].1 += 1,
            Err(at) => self.ready.insert(at, (precedence, 1)),
        }
    }

    pub(crate) fn remove_ready(&mut self, precedence: u8) {
        if let Ok(at) = self.ready.binary_search_by_key(&precedence, |(of, _)| *of) {
            self.ready[at].1 -= 1;
            if self.ready[at].1 == 0 {
                self.ready.remove(at);
            }
        }
    }

    /// Its precedence by settings, policy and operator at this moment.
    pub(crate) fn computed_precedence(&self, config: &FrontierConfig) -> u8 {
        if let Some(given) = self.own_precedence.or(self.ranked_precedence) {
            return given;
        }
        let settings = self.settings(config);
        let added = match &settings.precedence_policy {
            PrecedencePolicy::Base => 0,
            PrecedencePolicy::HighestUri => {
                self.ready.first().map_or(0, |(best, _)| (*best).into())
            }
            PrecedencePolicy::SuccessCounts(steps) => steps_taken(steps, self.tally.succeeded),
        };
        settings
            .precedence
            .saturating_add(u8::try_from(added).unwrap_or(u8::MAX))
    }

    /// The reason for which it issues no URI; `None` if it may.
    pub(crate) fn hold(&self, config: &FrontierConfig) -> Option<QueueHold> {
        let settings = self.settings(config);
        if self.is_frozen {
            Some(QueueHold::Frozen)
        } else if self.is_retired {
            Some(QueueHold::Retired(RetiredBy::Operator))
        } else if settings.budget.is_some_and(|budget| self.spent >= budget) {
            Some(QueueHold::Retired(RetiredBy::Budget))
        } else {
            let limit = self.tally.reached(&settings.quota, 0)?;
            Some(QueueHold::Retired(RetiredBy::Quota(limit)))
        }
    }

    /// Records that one of its URIs has failed and is to be retried. Returns `true` if the queue as a whole backs off. That is so
    /// in three cases: it backs off already without a success since, other URIs wait for this one, or `queue_after` different
    /// URIs have failed in a row.
    pub(crate) fn fails(
        &mut self,
        record_key: &str,
        queue_after: u32,
        is_prerequisite: bool,
    ) -> bool {
        if self.failures == 0 && !is_prerequisite {
            let uri = keys::hash(record_key);
            if !self.failing.contains(&uri) {
                self.failing.push(uri);
            }
            // The list stays short, however large `queue_after` is.
            if self.failing.len() < (queue_after as usize).min(FAILING_MAX) {
                return false;
            }
        }
        self.failing.clear();
        self.failures = self.failures.saturating_add(1);
        true
    }

    /// URIs that may be in process at once now, including those that are.
    pub(crate) fn valence(&self, config: &FrontierConfig) -> usize {
        if self.failures > 0 {
            1
        } else {
            self.settings(config).valence.max(1).into()
        }
    }

    /// The slot that becomes free first, of those not in use, and the time at which it does.
    pub(crate) fn free_slot(
        &self,
        in_use: &[u16],
        config: &FrontierConfig,
    ) -> Option<(u16, Millis)> {
        if in_use.len() >= self.valence(config) {
            return None;
        }
        (0..self.settings(config).valence.max(1))
            .filter(|slot| !in_use.contains(slot))
            .map(|slot| (slot, self.slot(slot, config)))
            .min_by_key(|(slot, at)| (*at, *slot))
    }

    /// Time at which a slot may issue again, bandwidth included. If the valence has been lowered, the remaining slots also take
    /// over the waits of the others.
    fn slot(&self, slot: u16, config: &FrontierConfig) -> Millis {
        let valence = self.settings(config).valence.max(1);
        slot_ready_at(&self.slots, slot, valence).max(self.paid_until)
    }

    /// Makes a slot wait at least until then.
    pub(crate) fn delay_slot(&mut self, slot: u16, until: Millis) {
        let slot = usize::from(slot);
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, Millis::MIN);
        }
        self.slots[slot] = self.slots[slot].max(until);
    }

    /// Makes every slot wait at least until then.
    pub(crate) fn delay_slots(&mut self, until: Millis, config: &FrontierConfig) {
        for slot in 0..self.settings(config).valence.max(1) {
            self.delay_slot(slot, until);
        }
    }

    /// Shortens waits that are longer than anything from now on could cause, as a clock that was ahead leaves them. They become
    /// as long as one request can make them, because the time of the last request is unknown. Returns `false` if there is no such
    /// wait.
    pub(crate) fn shorten_waits(&mut self, now: Timestamp, config: &FrontierConfig) -> bool {
        let settings = self.settings(config);
        let polite = settings.politeness.longest_delay(self.crawl_delay);
        // If several URIs are in process, one may have failed and another have ended the row of failures.
        let longest = match self.failures > 0 || settings.valence > 1 {
            true => polite
                .max(settings.retry_delay_max)
                .max(settings.politeness.retry_after_max),
            false => polite,
        };
        let shorten = |at: &mut Millis, longest: Duration| {
            let is_long = *at > instant::after(now, longest);
            if is_long {
                *at = instant::after(now, polite);
            }
            is_long
        };
        let mut is_long = shorten(&mut self.paid_until, longest.max(OWED_MAX));
        for slot in &mut self.slots {
            is_long |= shorten(slot, longest);
        }
        is_long
    }

    /// Time at which the first of its slots may issue, whatever is in process.
    pub(crate) fn next_ready(&self, config: &FrontierConfig) -> Millis {
        (0..self.settings(config).valence.max(1))
            .map(|slot| self.slot(slot, config))
            .min()
            .unwrap_or(Millis::MIN)
    }
}

/// Time at which a slot may issue again, if there are `valence` slots. The waits of slots beyond that number are shared out.
pub(crate) fn slot_ready_at(slots: &[Millis], slot: u16, valence: u16) -> Millis {
    slots
        .iter()
        .skip(slot.into())
        .step_by(valence.into())
        .copied()
        .max()
        .unwrap_or(Millis::MIN)
}

/// Number of steps that `count` has completed.
fn steps_taken(steps: &[u64], count: u64) -> u64 {
    let mut left = count;
    let mut taken = 0;
    let mut last = None;
    for &step in steps.iter().filter(|step| **step > 0) {
        if left < step {
            return taken;
        }
        left -= step;
        taken += 1;
        last = Some(step);
    }
    taken + last.map_or(0, |step| left / step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_step_repeats() {
        let steps = [100, 1000];
        for (count, expected) in [
            (0, 0),
            (99, 0),
            (100, 1),
            (1099, 1),
            (1100, 2),
            (2100, 3),
            (10_100, 11),
        ] {
            assert_eq!(steps_taken(&steps, count), expected, "{count}");
        }
        assert_eq!(steps_taken(&[], 5), 0);
        assert_eq!(steps_taken(&[0], 5), 0);
    }

    #[test]
    fn precedence_follows_policy_unless_the_operator_sets_it() {
        let mut config = FrontierConfig::default();
        config.queue.precedence_policy = PrecedencePolicy::HighestUri;
        let mut record = QueueRecord::new("q", &config);
        assert_eq!(record.computed_precedence(&config), 3);
        for precedence in [7, 4, 4] {
            record.add_ready(precedence);
        }
        assert_eq!(record.computed_precedence(&config), 7);
        record.remove_ready(4);
        assert_eq!(record.computed_precedence(&config), 7);
        record.remove_ready(4);
        assert_eq!(record.computed_precedence(&config), 10);
        record.ranked_precedence = Some(2);
        assert_eq!(record.computed_precedence(&config), 2);
        record.own_precedence = Some(1);
        assert_eq!(record.computed_precedence(&config), 1);
        record.ranked_precedence = None;
        config.queue.precedence = 250;
        record.own_precedence = None;
        assert_eq!(record.computed_precedence(&config), u8::MAX);
    }
}

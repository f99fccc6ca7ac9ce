//! A queue: the URIs that share one server's patience. Its record is durable; its state is computed, never driven.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    Config, PrecedencePolicy, QueueSettings, Tally, groups::GroupHold, instant, instant::Millis,
    keys, memory::BusyQueue, politeness,
};

/// Most different URIs that may fail in a row before a queue backs off as a whole.
const FAILING_MAX: usize = 1000;

/// What the store keeps of a queue. Idle queues cost this much disk and no memory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct QueueRecord {
    /// URIs that are ready, in process ones included, by precedence; sorted, no empty ones.
    pub(crate) ready: Vec<(u8, u64)>,
    /// URIs that are not yet due.
    pub(crate) waiting: u64,
    /// None of those that wait is due before this.
    pub(crate) first_due: Millis,
    /// Queues of a lower number go first. As computed when it was last written.
    pub(crate) precedence: u8,
    /// When it was, or will be, able to give a URI; its place among the queues. None: it has none to give.
    pub(crate) turn: Option<Turn>,
    /// When each of its slots may issue again. Slots past the end have never been used.
    pub(crate) slots: Vec<Millis>,
    /// Its bandwidth is used up until then.
    pub(crate) paid_until: Millis,
    /// Times in a row that it has backed off as a whole, without a success since.
    pub(crate) failures: u32,
    /// From its robots.txt, as written there.
    pub(crate) crawl_delay: Option<Duration>,
    /// Where they differ from [`Config::queue`].
    pub(crate) settings: Option<Box<QueueSettings>>,
    /// [`Config::settings_hash`] when the settings were resolved.
    pub(crate) settings_hash: u64,
    /// By the operator's hand, in place of what settings and policy say.
    pub(crate) own_precedence: Option<u8>,
    /// Its server's address, where the caller groups by it.
    pub(crate) address_group: Option<String>,
    /// URIs it has issued that were finished, however they ended.
    pub(crate) finished: u64,
    /// What it brought in.
    pub(crate) tally: Tally,
    /// Cost so far.
    pub(crate) spent: u64,
    /// Cost it may spend before it becomes inactive.
    pub(crate) balance: i64,
    /// By the operator's hand: it gives no URI, but takes them.
    pub(crate) is_retired: bool,
    /// By the operator's hand, for a while.
    pub(crate) is_frozen: bool,
    /// What the caller's ranking last gave it, in place of what settings and policy say.
    pub(crate) ranked_precedence: Option<u8>,
    /// URIs it has issued that could not be fetched, prerequisites left out.
    pub(crate) failed: u64,
    /// URIs that have failed in a row while it has not backed off, each once, by a hash of their record keys. Written only
    /// where there are any, so that it is read from what earlier versions of this code wrote as well.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "none_where_it_ends"
    )]
    pub(crate) failing: Vec<u64>,
}

/// The last field of a record, which earlier versions did not write.
fn none_where_it_ends<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<u64>, D::Error> {
    Ok(Vec::<u64>::deserialize(deserializer).unwrap_or_default())
}

/// A queue's place in the line of queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Turn {
    /// Behind all active queues of its precedence.
    pub(crate) is_inactive: bool,
    pub(crate) wake: Millis,
    /// Breaks ties: who came first goes first.
    pub(crate) arrival: u64,
}

/// Why a queue gives no URI, whatever it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    Frozen,
    Retired(RetiredBy),
}

/// What retired a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetiredBy {
    /// The operator.
    Operator,
    /// Its cost has reached [`QueueSettings::budget`].
    Budget,
    /// It has reached a limit of [`QueueSettings::quota`], this one by its name in [`Quota`](crate::Quota).
    Quota(&'static str),
}

impl QueueRecord {
    pub(crate) fn new(name: &str, config: &Config) -> Self {
        let mut record = Self {
            first_due: Millis::MAX,
            paid_until: Millis::MIN,
            ..Self::default()
        };
        record.resolve(name, config);
        record
    }

    /// Takes the settings that hold now.
    pub(crate) fn resolve(&mut self, name: &str, config: &Config) {
        self.settings_hash = config.settings_hash;
        self.settings = config
            .resolver
            .as_ref()
            .map(|resolver| Box::new(resolver.resolve(name)))
            .filter(|settings| **settings != config.queue);
    }

    pub(crate) fn settings<'r>(&'r self, config: &'r Config) -> &'r QueueSettings {
        self.settings.as_deref().unwrap_or(&config.queue)
    }

    /// The server group it belongs to: the operator's, or that of its address.
    pub(crate) fn group<'r>(&'r self, config: &'r Config) -> Option<&'r str> {
        let operators = self.settings(config).group.as_deref();
        operators.or(self.address_group.as_deref())
    }

    /// URIs that are ready, in process ones included.
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

    /// The precedence that settings, policy and operator give it now.
    pub(crate) fn computed_precedence(&self, config: &Config) -> u8 {
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

    /// Why it gives no URI; none where it may.
    pub(crate) fn held(&self, config: &Config) -> Option<Held> {
        let settings = self.settings(config);
        if self.is_frozen {
            Some(Held::Frozen)
        } else if self.is_retired {
            Some(Held::Retired(RetiredBy::Operator))
        } else if settings.budget.is_some_and(|budget| self.spent >= budget) {
            Some(Held::Retired(RetiredBy::Budget))
        } else {
            let limit = settings.quota.reached(&self.tally, 0)?;
            Some(Held::Retired(RetiredBy::Quota(limit)))
        }
    }

    /// A URI of it has failed and is to be tried again. True where the queue as a whole backs off for it: it has done so and
    /// has not succeeded since, the others wait for the URI, or `queue_after` different ones have failed in a row.
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
            // Whatever was asked for, the list stays short.
            if self.failing.len() < (queue_after as usize).min(FAILING_MAX) {
                return false;
            }
        }
        self.failing.clear();
        self.failures = self.failures.saturating_add(1);
        true
    }

    /// URIs that may be in process now, these included that are.
    pub(crate) fn valence(&self, config: &Config) -> usize {
        if self.failures > 0 {
            1
        } else {
            self.settings(config).valence.max(1).into()
        }
    }

    /// The slot that is free first, of those not in use, and when it is.
    pub(crate) fn free_slot(&self, busy: &BusyQueue, config: &Config) -> Option<(u16, Millis)> {
        let in_use = &busy.slots;
        if in_use.len() >= self.valence(config) {
            return None;
        }
        (0..self.settings(config).valence.max(1))
            .filter(|slot| !in_use.contains(slot))
            .map(|slot| (slot, self.slot(slot, config)))
            .min_by_key(|(slot, at)| (*at, *slot))
    }

    /// When a slot may issue again, bandwidth included. Where the valence has been lowered, the slots that are left rest
    /// for the others too.
    fn slot(&self, slot: u16, config: &Config) -> Millis {
        let valence = self.settings(config).valence.max(1);
        rested(&self.slots, slot, valence).max(self.paid_until)
    }

    /// Lets a slot rest at least until then.
    pub(crate) fn rest(&mut self, slot: u16, until: Millis) {
        let slot = usize::from(slot);
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, Millis::MIN);
        }
        self.slots[slot] = self.slots[slot].max(until);
    }

    /// Lets every slot rest at least until then.
    pub(crate) fn rest_all(&mut self, until: Millis, config: &Config) {
        for slot in 0..self.settings(config).valence.max(1) {
            self.rest(slot, until);
        }
    }

    /// Rests that are longer than anything from now on could bring, as after a clock that was ahead, become as long as one
    /// request can bring: nobody knows when its server was last asked. False where there is none.
    pub(crate) fn shorten_rests(&mut self, now: Timestamp, config: &Config) -> bool {
        let settings = self.settings(config);
        let polite = politeness::longest_rest(&settings.politeness, self.crawl_delay);
        // Where several are in process, one may have failed and another have ended the row of failures.
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
        let mut is_long = shorten(&mut self.paid_until, longest.max(politeness::OWED_MAX));
        for slot in &mut self.slots {
            is_long |= shorten(slot, longest);
        }
        is_long
    }

    /// When the first of its slots may issue, whatever is in process.
    pub(crate) fn next_ready(&self, config: &Config) -> Millis {
        (0..self.settings(config).valence.max(1))
            .map(|slot| self.slot(slot, config))
            .min()
            .unwrap_or(Millis::MIN)
    }
}

/// When a slot of so many may issue again, those past them shared out.
pub(crate) fn rested(slots: &[Millis], slot: u16, valence: u16) -> Millis {
    slots
        .iter()
        .skip(slot.into())
        .step_by(valence.into())
        .copied()
        .max()
        .unwrap_or(Millis::MIN)
}

/// How many steps `count` has taken.
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

/// A queue as a report shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueReport {
    /// Its name.
    pub queue: String,
    /// Computed for the time of the report.
    pub state: QueueState,
    /// The operator holds it, whatever of it is in process yet.
    pub is_frozen: bool,
    /// What retired it, where it is.
    pub retired_by: Option<RetiredBy>,
    /// URIs that are ready, those in process included.
    pub ready: u64,
    /// URIs that are not yet due.
    pub waiting: u64,
    /// URIs in process.
    pub in_process: u64,
    /// Queues of a lower number go first.
    pub precedence: u8,
    /// Of the best of its URIs that are ready; none where none is.
    pub best: Option<u8>,
    /// Politeness, back-off and bandwidth let it issue again then; none before its first fetch.
    pub next_ready: Option<Timestamp>,
    /// When it can give a URI; none when it has none to give, or stands back for what others of its group have in process.
    pub wake: Option<Timestamp>,
    /// Its server group rests, or has as much in process as it may.
    pub stands_back: bool,
    /// Times in a row that it has backed off as a whole, without a success since.
    pub failures: u32,
    /// From its robots.txt, as written there.
    pub crawl_delay: Option<Duration>,
    /// The server group that limits it.
    pub group: Option<String>,
    /// Turns completed, however they ended.
    pub finished: u64,
    /// Of these, URIs that could not be fetched, prerequisites left out.
    pub failed: u64,
    /// What it brought in.
    pub tally: Tally,
    /// Cost so far.
    pub spent: u64,
    /// What is set for it.
    pub settings: QueueSettings,
}

/// What a queue is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QueueState {
    /// It could give a URI now.
    Ready,
    /// As many of its URIs are being fetched as may be, or as it has.
    InProcess,
    /// It, or its server group, rests; it backs off, or its first URI is not yet due.
    Snoozed,
    /// It could give a URI, but others of its precedence go first: its session's budget is spent, or it has had none.
    Inactive,
    /// Its precedence is at the floor or past it.
    Ineligible,
    /// Its budget or quota is spent, or the operator retired it.
    Retired,
    /// The operator holds it.
    Frozen,
    /// It holds no URI.
    Exhausted,
}

impl QueueState {
    /// The word for it in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::InProcess => "in-process",
            Self::Snoozed => "snoozed",
            Self::Inactive => "inactive",
            Self::Ineligible => "ineligible",
            Self::Retired => "retired",
            Self::Frozen => "frozen",
            Self::Exhausted => "exhausted",
        }
    }
}

impl RetiredBy {
    /// The word for it in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Budget => "budget",
            Self::Quota(limit) => limit,
        }
    }
}

impl QueueReport {
    pub(crate) fn new(
        queue: &str,
        record: &QueueRecord,
        busy: Option<&BusyQueue>,
        group: Option<GroupHold>,
        config: &Config,
        now: Timestamp,
    ) -> Self {
        let held = record.held(config);
        let is_ineligible = config
            .precedence_floor
            .is_some_and(|floor| record.precedence >= floor);
        let state = match (held, record.turn) {
            _ if busy.is_some_and(|busy| busy.is_full) => QueueState::InProcess,
            _ if record.ready.is_empty() && record.waiting == 0 => QueueState::Exhausted,
            (Some(Held::Frozen), _) => QueueState::Frozen,
            (Some(Held::Retired(_)), _) => QueueState::Retired,
            (None, None) if busy.is_some() => QueueState::InProcess,
            // What was in process when the store was closed is put back by the first call of `next`.
            (None, None) => QueueState::Ready,
            (None, Some(_)) if is_ineligible => QueueState::Ineligible,
            (None, Some(turn)) if turn.wake > instant::floor(now) => QueueState::Snoozed,
            (None, Some(_)) if group.is_some() => QueueState::Snoozed,
            (None, Some(turn)) if turn.is_inactive => QueueState::Inactive,
            (None, Some(_)) => QueueState::Ready,
        };
        let wake = match (record.turn, group) {
            (Some(turn), Some(GroupHold::Rests(at))) => Some(turn.wake.max(at)),
            // That depends on what is in process.
            (_, Some(GroupHold::Full)) => None,
            (turn, _) => turn.map(|turn| turn.wake),
        };
        let next_ready = record.next_ready(config);
        Self {
            queue: queue.to_owned(),
            state,
            is_frozen: record.is_frozen,
            retired_by: match held {
                Some(Held::Retired(by)) => Some(by),
                _ => None,
            },
            ready: record.ready_count(),
            waiting: record.waiting,
            in_process: busy.map_or(0, |busy| busy.slots.len() as u64),
            precedence: record.precedence,
            best: record.ready.first().map(|(precedence, _)| *precedence),
            next_ready: (next_ready != Millis::MIN).then(|| instant::timestamp(next_ready)),
            wake: wake.map(instant::timestamp),
            stands_back: record.turn.is_some() && group.is_some(),
            failures: record.failures,
            crawl_delay: record.crawl_delay,
            group: record.group(config).map(str::to_owned),
            finished: record.finished,
            failed: record.failed,
            tally: record.tally,
            spent: record.spent,
            settings: record.settings(config).clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_go_on_with_the_last() {
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
    fn precedence_follows_policy_until_the_operator_speaks() {
        let mut config = Config::default();
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

//! A naive model of the frontier: maps in memory that are searched from end to end, without a store and without regard to size and
//! speed. Times are whole seconds. `next`, `schedule`, `finished` and the operator commands must return the same as those of the
//! frontier.
//!
//! Counts are made anew for each query where possible. Only values that do not follow from others are stored.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use opilio_frontier::{
    Candidate, ContentState, Directive, Disposition, FinishResult, FrontierConfig, ImportedUri,
    KeptValues, LastOutcome, Outcome, OverQuota, PREREQUISITE_FAILED, PrecedencePolicy,
    QueueSettings, QueueState, Quota, Resolver, ScheduleResult, Statistics, Strategy, Success,
    SweepAction, Tally, TallyKind, Transfer,
};
use opilio_uri::{Hop, HopPath, Uri};

use crate::site::{at, uri};

/// The time of slots that have never been used.
const LONG_AGO: i64 = i64::MIN;

pub(crate) struct Naive {
    config: FrontierConfig,
    overrides: BTreeMap<String, QueueSettings>,
    floor: Option<u8>,
    /// By exact URI.
    pub(crate) uris: BTreeMap<String, Known>,
    /// URI by canonical form.
    pub(crate) canonicals: BTreeMap<String, String>,
    pub(crate) queues: BTreeMap<String, Queue>,
    /// Times at which the slots of a server group may issue again.
    groups: BTreeMap<String, Vec<i64>>,
    tallies: BTreeMap<(TallyKind, String), Tally>,
    /// Number of visits of the page in a row without the embed, by page and embed. Both are record keys.
    embeds: BTreeMap<(String, String), u32>,
    pub(crate) refusals: BTreeMap<String, String>,
    /// Values kept for sites, by host and port.
    pub(crate) sites: BTreeMap<String, KeptValues>,
    busy: Vec<Busy>,
    /// URIs that were in process when the store was closed.
    recovered: Vec<Busy>,
    paid_until: i64,
    /// The statistics that cannot be counted from the records.
    counted: Statistics,
    clock: u64,
    /// Queues that have been changed, in the order of their changes; `true` if they get a new place in the queue order.
    touched: Vec<(String, bool)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) queue: String,
    pub(crate) canonical: String,
    pub(crate) hop_path: HopPath,
    pub(crate) source: Option<String>,
    pub(crate) strategy: Strategy,
    pub(crate) precedence: u8,
    pub(crate) cost: u8,
    pub(crate) seed: bool,
    pub(crate) state: NaiveState,
    pub(crate) attempts: u32,
    pub(crate) deferrals: u32,
    pub(crate) visits: u64,
    pub(crate) versions: u64,
    pub(crate) status: i32,
    pub(crate) last_outcome: LastOutcome,
    pub(crate) wait: Option<Duration>,
    pub(crate) kept: KeptValues,
    /// Visits in a row that failed, or were disregarded for an unknown time.
    pub(crate) failures: u32,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum NaiveState {
    Ready(Rank),
    Waiting(Rank),
    Done,
    Deleted,
    Faded,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Rank {
    pub(crate) directive: Directive,
    pub(crate) due: i64,
    arrival: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) settings: QueueSettings,
    /// Times at which the slots of its valence may issue again.
    slots: Vec<i64>,
    paid_until: i64,
    pub(crate) failures: u32,
    /// URIs that failed in a row while it did not back off.
    failing: BTreeSet<String>,
    pub(crate) crawl_delay: u64,
    address: Option<String>,
    own_precedence: Option<u8>,
    pub(crate) precedence: u8,
    pub(crate) finished: u64,
    pub(crate) tally: Tally,
    pub(crate) spent: u64,
    balance: u64,
    is_retired: bool,
    is_frozen: bool,
    order_key: Option<OrderKey>,
}

/// A place in the queue order within a precedence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct OrderKey {
    is_inactive: bool,
    wake: i64,
    arrival: u64,
}

#[derive(Clone, Debug)]
struct Busy {
    text: String,
    queue: String,
    slot: usize,
    group: Option<(String, usize)>,
    /// Tallies in which it will count.
    tallies: Vec<(TallyKind, String)>,
    issued: i64,
    overdue: u64,
}

/// The next URI that a queue can issue.
enum NextUri {
    Nothing,
    /// None until a URI in process is finished.
    Full,
    /// One at this time; `true` if it is among the ready URIs.
    At(i64, bool),
}

/// Origin of candidates.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'o> {
    Caller,
    Page { canonical: &'o str, refreshes: bool },
    NeededBy(&'o str),
}

#[derive(Debug, PartialEq)]
pub(crate) enum NaiveNext {
    Issue {
        uri: String,
        queue: String,
        due: i64,
        overdue: u64,
        attempts: u32,
        visits: u64,
        over_quota: Option<OverQuota>,
    },
    WaitUntil(i64),
    InProcess,
    Empty,
}

impl Naive {
    pub(crate) fn new(config: FrontierConfig, overrides: BTreeMap<String, QueueSettings>) -> Self {
        Self {
            floor: config.precedence_floor,
            config,
            overrides,
            uris: BTreeMap::new(),
            canonicals: BTreeMap::new(),
            queues: BTreeMap::new(),
            groups: BTreeMap::new(),
            tallies: BTreeMap::new(),
            embeds: BTreeMap::new(),
            refusals: BTreeMap::new(),
            sites: BTreeMap::new(),
            busy: Vec::new(),
            recovered: Vec::new(),
            paid_until: LONG_AGO,
            counted: Statistics::default(),
            clock: 0,
            touched: Vec::new(),
        }
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    // ---- queries

    /// All statistics, most of them counted from the records.
    pub(crate) fn statistics(&self) -> Statistics {
        let last_outcome = |last_outcome| {
            let all = self.uris.values();
            all.filter(|uri| uri.last_outcome == last_outcome).count() as u64
        };
        let queued = self
            .uris
            .values()
            .filter(|uri| uri.rank().is_some())
            .count() as u64;
        Statistics {
            discovered: self.uris.len() as u64,
            queued: queued - self.busy.len() as u64,
            in_process: self.busy.len() as u64,
            succeeded: last_outcome(LastOutcome::Succeeded),
            failed: last_outcome(LastOutcome::Failed),
            disregarded: last_outcome(LastOutcome::Disregarded),
            prerequisites: last_outcome(LastOutcome::Prerequisite),
            ..self.counted
        }
    }

    pub(crate) fn is_busy(&self, text: &str) -> bool {
        self.busy.iter().any(|busy| busy.text == text)
    }

    pub(crate) fn busy_of(&self, queue: &str) -> usize {
        self.busy.iter().filter(|busy| busy.queue == queue).count()
    }

    /// The URIs of a queue in the order of issue: first the ready ones, then those that wait.
    pub(crate) fn in_order(&self, queue: &str) -> Vec<String> {
        let mut uris: Vec<_> = self
            .uris
            .iter()
            .filter(|(_, uri)| uri.queue == queue)
            .filter_map(|(text, uri)| {
                let order = match uri.state {
                    NaiveState::Ready(rank) => (
                        false,
                        Reverse(rank.directive),
                        uri.precedence,
                        rank.due,
                        rank.arrival,
                    ),
                    NaiveState::Waiting(rank) => {
                        (true, Reverse(Directive::Normal), 0, rank.due, rank.arrival)
                    }
                    _ => return None,
                };
                Some((order, text.clone()))
            })
            .collect();
        uris.sort();
        uris.into_iter().map(|(_, text)| text).collect()
    }

    pub(crate) fn counts(&self, queue: &str) -> (u64, u64) {
        let of = |is_counted: fn(&NaiveState) -> bool| {
            self.uris
                .values()
                .filter(|uri| uri.queue == queue && is_counted(&uri.state))
                .count() as u64
        };
        (
            of(|state| matches!(state, NaiveState::Ready(_))),
            of(|state| matches!(state, NaiveState::Waiting(_))),
        )
    }

    pub(crate) fn state(&self, name: &str, now: i64) -> QueueState {
        let queue = &self.queues[name];
        let busy = self.busy_of(name);
        let (ready, waiting) = self.counts(name);
        if busy > 0 && self.is_full(name) {
            QueueState::InProcess
        } else if ready + waiting == 0 {
            QueueState::Exhausted
        } else if queue.is_frozen {
            QueueState::Frozen
        } else if self.retired_by(name).is_some() {
            QueueState::Retired
        } else if (ready + waiting) as usize == busy {
            QueueState::InProcess
        } else if self.is_past_floor(name) {
            QueueState::Ineligible
        } else if queue
            .order_key
            .is_some_and(|order_key| order_key.wake > now || self.stands_back(name, now))
        {
            QueueState::Snoozed
        } else if queue
            .order_key
            .is_some_and(|order_key| order_key.is_inactive)
        {
            QueueState::Inactive
        } else {
            QueueState::Ready
        }
    }

    /// The cause of a queue's retirement, by its name in reports.
    pub(crate) fn retired_by(&self, name: &str) -> Option<&'static str> {
        let queue = &self.queues[name];
        if queue.is_frozen {
            None
        } else if queue.is_retired {
            Some("operator")
        } else if queue
            .settings
            .budget
            .is_some_and(|budget| queue.spent >= budget)
        {
            Some("budget")
        } else {
            reached_limit(&queue.settings.quota, &queue.tally, 0)
        }
    }

    pub(crate) fn group(&self, name: &str) -> Option<String> {
        let queue = &self.queues[name];
        queue
            .settings
            .group
            .clone()
            .or_else(|| queue.address.clone())
    }

    // ---- schedule

    pub(crate) fn schedule(&mut self, candidates: &[Candidate], now: i64) -> Vec<ScheduleResult> {
        let answers = self.admit(candidates, now, Origin::Caller);
        self.place_queues(now);
        answers
    }

    fn admit(
        &mut self,
        candidates: &[Candidate],
        now: i64,
        origin: Origin<'_>,
    ) -> Vec<ScheduleResult> {
        let one = |candidate: &Candidate| {
            let mut candidate = candidate.clone();
            if let Origin::NeededBy(queue) = origin {
                candidate.queue = queue.to_owned();
                candidate.directive = Directive::Highest;
                candidate.precedence = 0;
            } else {
                candidate.directive = directive(&candidate, &self.config);
            }
            candidate
        };
        let candidates: Vec<_> = candidates.iter().map(one).collect();
        candidates
            .iter()
            .map(|candidate| self.admit_one(candidate, now, origin))
            .collect()
    }

    fn admit_one(&mut self, candidate: &Candidate, now: i64, origin: Origin<'_>) -> ScheduleResult {
        let exact = candidate.uri.to_string();
        let redirects = candidate
            .hop_path
            .hops()
            .rev()
            .take_while(|hop| *hop == Hop::Redirect)
            .count();
        let refreshes = matches!(
            origin,
            Origin::Page {
                refreshes: true,
                ..
            }
        ) && candidate.hop_path.last() == Some(Hop::Embed);
        let follows = matches!(origin, Origin::Page { canonical, .. } if canonical == candidate.canonical)
            && (1..=5).contains(&redirects);
        let holder = self.canonicals.get(&candidate.canonical).cloned();
        let has_reason = candidate.force
            || candidate.seed
            || candidate.due.is_some()
            || candidate.directive > Directive::Normal
            || refreshes;
        // URIs of one canonical form are one document.
        if holder.is_some() && !has_reason {
            return ScheduleResult::Known;
        }
        let known = if self.uris.contains_key(&exact) {
            Some(exact.clone())
        } else if candidate.force || follows {
            None
        } else {
            holder.clone()
        };
        let Some(known) = known else {
            self.create(candidate, now);
            self.canonicals
                .entry(candidate.canonical.clone())
                .or_insert(exact);
            return if holder.is_some() && candidate.force {
                ScheduleResult::Forced
            } else {
                ScheduleResult::New
            };
        };
        let Some(mut uri) = self.uris.get(&known).cloned() else {
            return ScheduleResult::Known;
        };
        uri.seed |= candidate.seed;
        self.uris.insert(known.clone(), uri.clone());
        if self.is_busy(&known) {
            if let Origin::NeededBy(queue) = origin
                && queue != uri.queue
            {
                self.delay_queue(queue, now + 1);
            }
            return ScheduleResult::Known;
        }

        let moves =
            uri.rank().is_some() && matches!(origin, Origin::NeededBy(queue) if queue != uri.queue);
        let signal = candidate.due.map(|due| seconds(due).max(now));
        let (rank, directive, due) = match uri.state {
            NaiveState::Ready(rank) => {
                let directive = rank.directive.max(candidate.directive);
                (Some(rank), directive, rank.due)
            }
            NaiveState::Waiting(rank) => {
                // A forced or urgent candidate ends a wait, and so does an embed of a page that has changed.
                let is_pulled =
                    candidate.directive > rank.directive && candidate.directive >= Directive::High;
                let directive = if is_pulled || moves || candidate.force {
                    rank.directive.max(candidate.directive)
                } else {
                    rank.directive
                };
                let due = if is_pulled || moves || candidate.force || refreshes {
                    rank.due.min(now)
                } else {
                    rank.due.min(signal.unwrap_or(i64::MAX))
                };
                (Some(rank), directive, due)
            }
            NaiveState::Faded => (None, candidate.directive, signal.unwrap_or(now)),
            NaiveState::Done if candidate.force || candidate.directive == Directive::Highest => {
                (None, candidate.directive, now)
            }
            NaiveState::Deleted if candidate.force => (None, candidate.directive, now),
            NaiveState::Done | NaiveState::Deleted => return ScheduleResult::Known,
        };
        if let Some(rank) = rank
            && (rank.directive, rank.due) == (directive, due)
            && !moves
            && !candidate.force
        {
            return ScheduleResult::Known;
        }
        if rank.is_some() {
            self.touch(&uri.queue, false);
        }
        let arrival = match rank {
            Some(rank) => rank.arrival,
            None => self.tick(),
        };
        if uri.state == NaiveState::Faded {
            let holder = self.canonicals.entry(uri.canonical.clone());
            holder.or_insert_with(|| known.clone());
        }
        if candidate.directive == Directive::Highest {
            uri.precedence = 0;
        }
        if let Origin::NeededBy(queue) = origin {
            uri.queue = queue.to_owned();
        }
        uri.attempts = 0;
        uri.deferrals = 0;
        uri.state = state_of(
            Rank {
                directive,
                due,
                arrival,
            },
            now,
        );
        self.touch(&uri.queue, false);
        self.uris.insert(known, uri);
        if candidate.force {
            ScheduleResult::Forced
        } else {
            ScheduleResult::Raised(directive)
        }
    }

    fn create(&mut self, candidate: &Candidate, now: i64) {
        let rank = Rank {
            directive: candidate.directive,
            due: candidate.due.map_or(now, |due| seconds(due).max(now)),
            arrival: self.tick(),
        };
        self.uris.insert(
            candidate.uri.to_string(),
            Known {
                queue: candidate.queue.clone(),
                canonical: candidate.canonical.clone(),
                hop_path: candidate.hop_path.clone(),
                source: candidate.source.clone(),
                strategy: candidate.strategy,
                precedence: candidate.precedence,
                cost: candidate.cost,
                seed: candidate.seed,
                state: state_of(rank, now),
                attempts: 0,
                deferrals: 0,
                visits: 0,
                versions: 0,
                status: 0,
                last_outcome: LastOutcome::Open,
                wait: None,
                kept: KeptValues::default(),
                failures: 0,
            },
        );
        self.touch(&candidate.queue, false);
    }

    /// Takes over URIs of another crawl.
    pub(crate) fn include(&mut self, known: &[ImportedUri], now: i64) -> Vec<ScheduleResult> {
        let mut answers = Vec::new();
        for one in known {
            let candidate = Candidate {
                due: None,
                ..one.candidate.clone()
            };
            let exact = candidate.uri.to_string();
            if self.uris.contains_key(&exact) || self.canonicals.contains_key(&candidate.canonical)
            {
                answers.push(ScheduleResult::Known);
                continue;
            }
            self.create(&candidate, now);
            self.canonicals
                .insert(candidate.canonical.clone(), exact.clone());
            let arrival = self.tick();
            let waits = self.config.waits;
            let wait = whole(match one.last_outcome {
                LastOutcome::Failed if one.status < 400 => waits.min,
                _ => waits.max,
            });
            let uri = self.uris.get_mut(&exact).unwrap();
            uri.status = one.status;
            uri.last_outcome = one.last_outcome;
            uri.state = if uri.strategy.revisits() {
                let rank = Rank {
                    directive: Directive::Normal,
                    due: (seconds(one.at) + wait).max(now),
                    arrival,
                };
                state_of(rank, now)
            } else {
                NaiveState::Done
            };
            answers.push(ScheduleResult::New);
        }
        self.place_queues(now);
        answers
    }

    // ---- next

    pub(crate) fn next(&mut self, now: i64) -> NaiveNext {
        self.put_back(now);
        if self.paid_until > now {
            return NaiveNext::WaitUntil(self.paid_until);
        }
        loop {
            let mut soonest = i64::MAX;
            let mut best: Option<((i64, u8, OrderKey), String)> = None;
            for (name, queue) in &self.queues {
                let Some(order_key) = queue.order_key else {
                    continue;
                };
                if self.is_full(name) || self.is_past_floor(name) {
                    continue;
                }
                if order_key.wake > now {
                    soonest = soonest.min(order_key.wake);
                    continue;
                }
                let group_at = match self.group(name) {
                    Some(group) => match self.group_slot(&group) {
                        Some((at, _)) => at,
                        None => continue,
                    },
                    None => LONG_AGO,
                };
                if group_at > now {
                    soonest = soonest.min(group_at);
                    continue;
                }
                let aged = self.config.ageing.map_or(0, |step| {
                    (now - order_key.wake) / i64::try_from(step.as_secs().max(1)).unwrap()
                });
                let aged = i64::from(queue.precedence) - aged;
                let order = (aged, queue.precedence, order_key);
                if best.as_ref().is_none_or(|(first, _)| order < *first) {
                    best = Some((order, name.clone()));
                }
            }
            let Some((_, name)) = best else {
                return match (soonest, self.busy.is_empty()) {
                    (i64::MAX, true) => NaiveNext::Empty,
                    (i64::MAX, false) => NaiveNext::InProcess,
                    (soonest, _) => NaiveNext::WaitUntil(soonest),
                };
            };
            if let Some(issue) = self.issue_from(&name, now) {
                return issue;
            }
        }
    }

    /// Issues the first URI of a queue. Returns `None` if the queue has another place in the queue order now.
    fn issue_from(&mut self, name: &str, now: i64) -> Option<NaiveNext> {
        let before = (self.queues[name].precedence, self.queues[name].order_key);
        for uri in self.uris.values_mut().filter(|uri| uri.queue == name) {
            if let NaiveState::Waiting(rank) = uri.state
                && rank.due <= now
            {
                uri.state = NaiveState::Ready(rank);
            }
        }
        self.touch(name, false);
        self.place_queues(now);
        if before != (self.queues[name].precedence, self.queues[name].order_key) {
            return None;
        }
        let text = self
            .in_order(name)
            .into_iter()
            .find(|text| !self.is_busy(text))
            .unwrap();
        let uri = self.uris[&text].clone();
        let NaiveState::Ready(rank) = uri.state else {
            panic!("{text} is not ready, although {name} may issue")
        };
        let (tallies, over_quota) = match self.admittance(name, &text) {
            Some(admittance) => admittance,
            None => {
                // URIs in process decide whether the next one exceeds a quota.
                self.delay_queue(name, now + 1);
                self.touch(name, true);
                self.place_queues(now);
                return None;
            }
        };
        let (_, slot) = self.slot(name).unwrap();
        let group = self.group(name).map(|group| {
            let (_, slot) = self.group_slot(&group).unwrap();
            (group, slot)
        });
        let overdue = u64::try_from(now - rank.due).unwrap_or(0);
        self.busy.push(Busy {
            text: text.clone(),
            queue: name.to_owned(),
            slot,
            group,
            tallies,
            issued: now,
            overdue,
        });
        if let Some(budget) = self.config.session_budget {
            let queue = self.queues.get_mut(name).unwrap();
            if queue.balance == 0 {
                queue.balance = budget.into();
            }
        }
        self.touch(name, true);
        self.place_queues(now);
        Some(NaiveNext::Issue {
            queue: name.to_owned(),
            due: rank.due,
            overdue,
            attempts: uri.attempts,
            visits: uri.visits,
            over_quota,
            uri: text,
        })
    }

    /// The tallies in which it will count, or the quota that it exceeds; `None` while URIs in process decide.
    #[expect(clippy::type_complexity, reason = "the only such value")]
    fn admittance(
        &self,
        queue: &str,
        text: &str,
    ) -> Option<(Vec<(TallyKind, String)>, Option<OverQuota>)> {
        let known = &self.uris[text];
        if is_prerequisite(text, known) {
            return Some((Vec::new(), None));
        }
        let uri = uri(text);
        let settings = &self.queues[queue].settings;
        let host = uri.host().map(str::to_owned);
        let domain = uri.registrable_domain().map(str::to_owned);
        let limits = [
            (TallyKind::Host, host.clone(), settings.host_quota),
            (TallyKind::Domain, domain.or(host), settings.domain_quota),
            (
                TallyKind::Source,
                known.source.clone(),
                self.config.source_quota,
            ),
        ];
        let mut keys = Vec::new();
        let mut is_certain = true;
        for (kind, name, quota) in limits {
            let Some(name) = name.filter(|_| quota != Quota::default()) else {
                continue;
            };
            let key = (kind, name);
            let tally = self.tallies.get(&key).copied().unwrap_or_default();
            if let Some(limit) = reached_limit(&quota, &tally, 0) {
                let (kind, name) = key;
                return Some((Vec::new(), Some(OverQuota { kind, name, limit })));
            }
            let reserved = self
                .busy
                .iter()
                .filter(|busy| busy.tallies.contains(&key))
                .count();
            is_certain &= reached_limit(&quota, &tally, reserved).is_none();
            keys.push(key);
        }
        is_certain.then_some((keys, None))
    }

    // ---- finished

    pub(crate) fn finished(&mut self, text: &str, outcome: &Outcome, now: i64) -> FinishResult {
        let position = self.busy.iter().position(|busy| busy.text == text).unwrap();
        let busy = self.busy[position].clone();
        let name = busy.queue.clone();
        self.touch(&name, true);
        self.pay(&busy, outcome, now);
        let mut uri = self.uris[text].clone();
        let NaiveState::Ready(rank) = uri.state else {
            panic!("{text} was not ready")
        };
        let mut scheduled = Vec::new();
        let disposition = match outcome {
            Outcome::Succeeded(success) => {
                let (disposition, answers) = self.succeed(&busy, success, now);
                scheduled = answers;
                disposition
            }
            Outcome::Considered { .. } => panic!("no reconsideration in these tests"),
            Outcome::Deferred { prerequisites } => {
                uri.deferrals += 1;
                let tries = uri.deferrals;
                self.uris.insert(text.to_owned(), uri);
                if tries > self.config.max_deferrals {
                    let again = self.fail(&busy, PREREQUISITE_FAILED, now);
                    Disposition::GivenUp {
                        status: PREREQUISITE_FAILED,
                        tries,
                        again,
                    }
                } else {
                    self.counted.deferrals += 1;
                    scheduled = self.admit(prerequisites, now, Origin::NeededBy(&name));
                    // A prerequisite goes behind its own prerequisites. Other URIs go behind prerequisites anyway.
                    if rank.directive == Directive::Highest {
                        self.put_behind(text, now, now);
                    }
                    Disposition::Deferred
                }
            }
            Outcome::Retry {
                status,
                queue_after,
                after,
                ..
            } => {
                let queue = self.queues.get_mut(&name).unwrap();
                queue.failing.insert(text.to_owned());
                let queue_waits = queue.failures > 0
                    || rank.directive == Directive::Highest
                    || queue.failing.len() >= *queue_after as usize;
                let failures = if queue_waits {
                    queue.failing.clear();
                    queue.failures += 1;
                    queue.failures
                } else {
                    uri.attempts + 1
                };
                let settings = queue.settings.clone();
                let doubled = settings.retry_delay.as_secs() << (failures - 1).min(20);
                let requested = after
                    .unwrap_or_default()
                    .min(settings.politeness.retry_after_max);
                let delay = doubled
                    .min(settings.retry_delay_max.as_secs())
                    .max(requested.as_secs());
                let until = now + delay.cast_signed();
                if queue_waits {
                    self.delay_queue(&name, until);
                }
                uri.deferrals = 0;
                uri.attempts += 1;
                uri.status = *status;
                let tries = uri.attempts;
                self.uris.insert(text.to_owned(), uri);
                if tries > settings.max_retries {
                    let again = self.fail(&busy, *status, now);
                    Disposition::GivenUp {
                        status: *status,
                        tries,
                        again,
                    }
                } else {
                    self.counted.retries += 1;
                    if rank.directive != Directive::Highest {
                        let due = if queue_waits { now } else { until };
                        self.put_behind(text, due, now);
                    }
                    Disposition::Retrying { attempts: tries }
                }
            }
            Outcome::Failed { status, .. } => waiting(self.fail(&busy, *status, now)),
            Outcome::OutOfScope { reason, .. } if !uri.seed => {
                self.counted.refused += 1;
                self.refusals.insert(text.to_owned(), reason.clone());
                self.queues.get_mut(&name).unwrap().finished += 1;
                self.forget(text);
                Disposition::Forgotten
            }
            Outcome::OutOfScope { status, .. } | Outcome::Disregarded { status, .. } => {
                uri.status = *status;
                uri.last_outcome = LastOutcome::Disregarded;
                self.uris.insert(text.to_owned(), uri);
                let known = match &outcome {
                    Outcome::Disregarded { wait, .. } => *wait,
                    // The decision lasts until the scope changes.
                    _ => Some(self.config.waits.max),
                };
                let wait = match known {
                    Some(known) if self.uris[text].strategy.revisits() => {
                        Some(known.min(self.config.waits.max))
                    }
                    Some(_) => None,
                    None => self.probe_wait(text),
                };
                waiting(self.complete(&busy, wait, 0, now))
            }
        };
        self.busy.remove(position);
        self.place_queues(now);
        let queue = &self.queues[&name];
        let ready = (0..usize::from(queue.settings.valence))
            .map(|slot| queue.slot(slot))
            .min();
        FinishResult {
            disposition,
            scheduled,
            queue_ready: at(ready.unwrap().max(now)),
        }
    }

    /// Charges a request: delays of its queue and group, and bandwidth.
    fn pay(&mut self, busy: &Busy, outcome: &Outcome, now: i64) {
        let transfer = match outcome {
            Outcome::Succeeded(success) => Some(success.transfer),
            Outcome::Retry { transfer, .. }
            | Outcome::Disregarded { transfer, .. }
            | Outcome::Failed { transfer, .. } => *transfer,
            Outcome::Considered { .. } | Outcome::Deferred { .. } | Outcome::OutOfScope { .. } => {
                None
            }
        };
        let Some(Transfer { duration, bytes }) = transfer.filter(|_| !is_dns(&busy.text)) else {
            return;
        };
        if !is_prerequisite(&busy.text, &self.uris[&busy.text]) {
            let queue = self.queues.get_mut(&busy.queue).unwrap();
            queue.tally.run_time += duration;
            self.counted.tally.run_time += duration;
            for key in &busy.tallies {
                self.tallies.entry(key.clone()).or_default().run_time += duration;
            }
        }
        let (fetch, bytes) = (duration.as_secs().cast_signed(), bytes.cast_signed());
        let used = |until: i64, rate: Option<u64>| match rate {
            Some(rate) => until.max(now - fetch) + bytes / rate.cast_signed(),
            None => LONG_AGO,
        };
        self.paid_until = used(self.paid_until, self.config.bandwidth);
        let queue = self.queues.get_mut(&busy.queue).unwrap();
        let politeness = queue.settings.politeness;
        #[expect(clippy::cast_possible_truncation, reason = "whole seconds")]
        let adaptive = (fetch as f64 * politeness.delay_factor) as i64;
        let delay = adaptive
            .min(whole(politeness.max_delay))
            .max(whole(politeness.min_delay))
            .max(
                queue
                    .crawl_delay
                    .cast_signed()
                    .min(whole(politeness.crawl_delay_max)),
            );
        queue.delay_slot(busy.slot, now + delay);
        queue.paid_until = used(queue.paid_until, queue.settings.bandwidth);
        self.delay_group(busy, now);
    }

    fn delay_group(&mut self, busy: &Busy, from: i64) {
        if let Some((group, slot)) = &busy.group {
            let until = from + whole(self.config.group.min_delay);
            let slots = self.groups.entry(group.clone()).or_default();
            delay_slot(slots, *slot, until);
        }
    }

    fn succeed(
        &mut self,
        busy: &Busy,
        success: &Success,
        now: i64,
    ) -> (Disposition, Vec<ScheduleResult>) {
        let text = &busy.text;
        let visit = &success.visit;
        let bytes = visit.size.unwrap_or(0);
        let is_novel = matches!(visit.state, ContentState::New | ContentState::Changed);
        let mut uri = self.uris[text].clone();
        let counts = !is_prerequisite(text, &uri);
        let is_first = uri.visits == 0 && uri.last_outcome != LastOutcome::Succeeded;
        let queue = self.queues.get_mut(&busy.queue).unwrap();
        queue.failures = 0;
        queue.failing.clear();
        if counts {
            let add = |tally: &mut Tally| {
                tally.fetched += 1;
                tally.bytes += bytes;
                if is_first {
                    tally.succeeded += 1;
                }
                if is_novel {
                    tally.novel += 1;
                    tally.novel_bytes += bytes;
                }
            };
            add(&mut queue.tally);
            add(&mut self.counted.tally);
            for key in &busy.tallies {
                add(self.tallies.entry(key.clone()).or_default());
            }
        }
        let is_revisit = uri.visits > 0;
        let counted = &mut self.counted;
        if is_revisit {
            let bounds = [1, 60, 600, 3_600, 21_600, 86_400, 604_800, 2_419_200];
            let class = bounds
                .iter()
                .take_while(|bound| **bound < busy.overdue)
                .count();
            counted.overdue.counts[class] += 1;
        }
        counted.visits += 1;
        let revisits = &mut counted.revisits;
        let (revisits, volume) = match (visit.state, visit.status) {
            (ContentState::New | ContentState::Changed, _) => {
                (&mut revisits.changed, &mut counted.bytes.novel)
            }
            (ContentState::Unchanged, 304) => {
                (&mut revisits.not_modified, &mut counted.bytes.unchanged)
            }
            (ContentState::Unchanged, _) => (&mut revisits.unchanged, &mut counted.bytes.unchanged),
            (ContentState::Unknown, _) => (&mut revisits.unknown, &mut counted.bytes.unknown),
        };
        *revisits += u64::from(is_revisit);
        *volume += bytes;

        uri.visits += 1;
        uri.versions += u64::from(is_novel);
        uri.status = visit.status;
        uri.last_outcome = match (counts, visit.status) {
            (false, _) => LastOutcome::Prerequisite,
            (true, 400..600) => LastOutcome::Failed,
            (true, _) => LastOutcome::Succeeded,
        };
        uri.deferrals = 0;
        uri.failures = 0;
        uri.wait = success.wait.or(uri.wait);
        uri.strategy = success.strategy.unwrap_or(uri.strategy);
        for change in &visit.kept {
            uri.kept.apply(change.clone());
        }
        let site = self.sites.entry(server(text)).or_default();
        for change in &success.kept_for_site {
            site.apply(change.clone());
        }
        let (canonical, strategy, cost) = (uri.canonical.clone(), uri.strategy, uri.cost);
        self.uris.insert(text.clone(), uri);
        let cost = if counts { cost.into() } else { 0 };
        let disposition = waiting(self.complete(busy, success.wait, cost, now));
        self.counted.refused += success.refused.len() as u64;
        for refused in &success.refused {
            self.refusals
                .insert(refused.uri.to_string(), refused.reason.clone());
        }
        let origin = Origin::Page {
            canonical: &canonical,
            refreshes: success.refresh_embeds,
        };
        let scheduled = self.admit(&success.outlinks, now, origin);
        if strategy.revisits() && self.config.fade_after > 0 {
            let is_extracted = visit.outlinks.is_some();
            self.show(text, is_extracted.then_some(&success.outlinks[..]));
        }
        (disposition, scheduled)
    }

    /// Records the embeds of other sites that a page shows; `None` stands for those of its last extraction.
    fn show(&mut self, page: &str, outlinks: Option<&[Candidate]>) {
        let page_uri = uri(page);
        let page_key = page_uri.key();
        let shown: Option<BTreeSet<String>> = outlinks.map(|outlinks| {
            outlinks
                .iter()
                .filter(|link| link.hop_path.last() == Some(Hop::Embed))
                .filter(|link| site(&link.uri) != site(&page_uri))
                .map(|link| link.uri.key())
                .collect()
        });
        let before: Vec<_> = self
            .embeds
            .iter()
            .filter(|((page, _), _)| *page == page_key)
            .map(|((_, embed), misses)| (embed.clone(), *misses))
            .collect();
        for (embed, misses) in &before {
            let is_shown = match &shown {
                Some(shown) => shown.contains(embed),
                None => *misses == 0,
            };
            let misses = if is_shown { 0 } else { misses + 1 };
            let entry = (page_key.clone(), embed.clone());
            // A URI in process fades with the next visit.
            if misses >= self.config.fade_after && !self.is_busy(&text_of(embed)) {
                self.embeds.remove(&entry);
                self.hide(embed);
            } else {
                self.embeds.insert(entry, misses);
            }
        }
        for embed in shown.unwrap_or_default() {
            let is_new = before.iter().all(|(known, _)| *known != embed);
            if is_new && self.uris.contains_key(&text_of(&embed)) {
                self.embeds.insert((page_key.clone(), embed), 0);
            }
        }
    }

    /// Number of pages that show an embed.
    pub(crate) fn referrers(&self, text: &str) -> u32 {
        let key = uri(text).key();
        let shown = self.embeds.keys().filter(|(_, embed)| *embed == key);
        u32::try_from(shown.count()).unwrap()
    }

    /// Records that a page does not show an embed any more.
    fn hide(&mut self, embed: &str) {
        let text = text_of(embed);
        let is_busy = self.is_busy(&text);
        let referrers = self.referrers(&text);
        let Some(uri) = self.uris.get_mut(&text) else {
            return;
        };
        let is_embed = uri.hop_path.last() == Some(Hop::Embed) && !uri.seed;
        if referrers == 0 && is_embed && !is_busy && uri.rank().is_some() {
            uri.state = NaiveState::Faded;
            let (canonical, queue) = (uri.canonical.clone(), uri.queue.clone());
            self.withdraw_form(&canonical, &text);
            self.counted.faded += 1;
            self.touch(&queue, false);
        }
    }

    fn fail(&mut self, busy: &Busy, status: i32, now: i64) -> Option<Timestamp> {
        let uri = self.uris.get_mut(&busy.text).unwrap();
        uri.status = status;
        uri.last_outcome = LastOutcome::Failed;
        uri.deferrals = 0;
        let cost = match is_prerequisite(&busy.text, uri) {
            true => 0,
            false => u64::from(uri.cost) + u64::from(self.config.error_penalty),
        };
        let wait = self.probe_wait(&busy.text);
        self.complete(busy, wait, cost, now)
    }

    /// The wait after one more failure in a row: the shortest, twice that, and so on up to the longest. The doubling stops once at
    /// the usual wait. After a successful visit it begins with the second of these, unless the usual wait is as short as the
    /// first.
    fn probe_wait(&mut self, text: &str) -> Option<Duration> {
        let limits = self.config.waits;
        let uri = self.uris.get_mut(text).unwrap();
        if !uri.strategy.revisits() {
            return None;
        }
        uri.failures += 1;
        let is_known = uri.visits > 0;
        let usual = uri.wait.filter(|_| is_known);
        let mut all = vec![limits.min];
        while let Some(&last) = all.last()
            && last < limits.max
        {
            all.extend(usual.filter(|usual| last < *usual && *usual < last * 2));
            let from = *all.last().unwrap();
            all.push(from * 2);
        }
        if is_known && usual.is_none_or(|usual| usual > limits.min) && all.len() > 1 {
            all.remove(0);
        }
        let last = all.len() - 1;
        Some(all[last.min(uri.failures as usize - 1)].min(limits.max))
    }

    fn complete(
        &mut self,
        busy: &Busy,
        wait: Option<Duration>,
        cost: u64,
        now: i64,
    ) -> Option<Timestamp> {
        let queue = self.queues.get_mut(&busy.queue).unwrap();
        queue.finished += 1;
        queue.spent += cost;
        queue.balance = queue.balance.saturating_sub(cost);
        let due = wait.map(|wait| now + whole(wait));
        let arrival = self.tick();
        let uri = self.uris.get_mut(&busy.text).unwrap();
        uri.attempts = 0;
        uri.deferrals = 0;
        uri.state = due.map_or(NaiveState::Done, |due| {
            NaiveState::Waiting(Rank {
                directive: Directive::Normal,
                due,
                arrival,
            })
        });
        due.map(at)
    }

    fn put_behind(&mut self, text: &str, due: i64, now: i64) {
        let arrival = self.tick();
        let uri = self.uris.get_mut(text).unwrap();
        if let NaiveState::Ready(rank) = uri.state {
            let rank = Rank {
                due: rank.due.max(due),
                arrival,
                ..rank
            };
            uri.state = state_of(rank, now);
        }
    }

    // ---- reopening

    /// A new process: no URI is in process, and the time of reopening is unknown.
    pub(crate) fn reopen(&mut self) {
        self.recovered.append(&mut self.busy);
        self.floor = self.config.precedence_floor;
    }

    /// The same, with other settings, and all queues resolved anew.
    pub(crate) fn reopen_with(
        &mut self,
        config: FrontierConfig,
        overrides: BTreeMap<String, QueueSettings>,
        now: i64,
    ) {
        self.config = config;
        self.reopen();
        self.overrides = overrides;
        let names: Vec<_> = self.queues.keys().cloned().collect();
        for name in names {
            self.queues.get_mut(&name).unwrap().settings = self.resolve(&name);
            self.touch(&name, false);
        }
        self.place_queues(now);
    }

    /// Puts URIs in process back into their queues. Their slots wait as after the longest fetch.
    fn put_back(&mut self, now: i64) {
        for busy in std::mem::take(&mut self.recovered) {
            if !is_dns(&busy.text) {
                let queue = self.queues.get_mut(&busy.queue).unwrap();
                let politeness = queue.settings.politeness;
                let delay = whole(politeness.max_delay)
                    .max(whole(politeness.min_delay))
                    .max(
                        queue
                            .crawl_delay
                            .cast_signed()
                            .min(whole(politeness.crawl_delay_max)),
                    );
                queue.delay_slot(busy.slot, busy.issued.max(now) + delay);
                self.delay_group(&busy, busy.issued.max(now));
            }
            self.touch(&busy.queue, true);
        }
        self.place_queues(now);
    }

    // ---- operator commands

    pub(crate) fn withdraw(&mut self, text: &str, action: SweepAction, now: i64) -> bool {
        if !self.uris.contains_key(text) || self.is_busy(text) {
            return false;
        }
        self.remove(text, action);
        self.place_queues(now);
        true
    }

    /// Numbers of URIs examined, matched, and matched in process.
    pub(crate) fn sweep(
        &mut self,
        action: SweepAction,
        key_prefix: &str,
        matches_record: impl Fn(&Known) -> bool,
        part: usize,
        now: i64,
    ) -> (u64, u64, u64) {
        let keys: BTreeSet<_> = self.uris.keys().map(|text| uri(text).key()).collect();
        let (mut examined, mut matched, mut in_process) = (0, 0, 0);
        let keys: Vec<_> = keys
            .into_iter()
            .filter(|key| key.starts_with(key_prefix))
            .collect();
        for part in keys.chunks(part) {
            examined += part.len() as u64;
            let all: Vec<_> = part
                .iter()
                .map(|key| text_of(key))
                .filter(|text| matches_record(&self.uris[text]))
                .collect();
            for text in all {
                if self.is_busy(&text) {
                    in_process += 1;
                } else {
                    matched += 1;
                    if action != SweepAction::Count {
                        self.remove(&text, action);
                    }
                }
            }
            self.place_queues(now);
        }
        (examined, matched, in_process)
    }

    fn remove(&mut self, text: &str, action: SweepAction) {
        let uri = self.uris[text].clone();
        if uri.rank().is_some() {
            self.touch(&uri.queue, false);
        }
        if action == SweepAction::Delete {
            let uri = self.uris.get_mut(text).unwrap();
            if uri.state == NaiveState::Faded {
                let canonical = self.canonicals.entry(uri.canonical.clone());
                canonical.or_insert_with(|| text.to_owned());
            }
            uri.state = NaiveState::Deleted;
        } else {
            self.forget(text);
        }
    }

    /// Removes a URI, so that it can be found again. As a page, it shows no embeds any more.
    fn forget(&mut self, text: &str) {
        let key = uri(text).key();
        let forgotten = self.uris.remove(text).unwrap();
        let shown: Vec<_> = self
            .embeds
            .keys()
            .filter(|(page, _)| *page == key)
            .cloned()
            .collect();
        for entry in shown {
            self.embeds.remove(&entry);
            self.hide(&entry.1);
        }
        self.embeds.retain(|(_, embed), _| *embed != key);
        self.withdraw_form(&forgotten.canonical, text);
        if self.uris.keys().all(|other| server(other) != server(text)) {
            self.sites.remove(&server(text));
        }
    }

    /// Makes a canonical form unknown if this URI stands for it.
    fn withdraw_form(&mut self, canonical: &str, text: &str) {
        if self
            .canonicals
            .get(canonical)
            .is_some_and(|holder| holder == text)
        {
            self.canonicals.remove(canonical);
        }
    }

    pub(crate) fn set_precedence(&mut self, text: &str, precedence: u8, now: i64) -> bool {
        if self.is_busy(text) {
            return false;
        }
        let Some(uri) = self.uris.get_mut(text) else {
            return false;
        };
        uri.precedence = precedence;
        let queue = uri.queue.clone();
        if uri.rank().is_some() {
            self.touch(&queue, false);
            self.place_queues(now);
        }
        true
    }

    pub(crate) fn unmark_seed(&mut self, text: &str) -> bool {
        if self.is_busy(text) {
            return false;
        }
        let uri = self.uris.get_mut(text);
        uri.map(|uri| uri.seed = false).is_some()
    }

    pub(crate) fn set_floor(&mut self, floor: Option<u8>) {
        self.floor = floor;
    }

    pub(crate) fn set_crawl_delay(&mut self, queue: &str, crawl_delay: u64) {
        self.known_queue(queue).crawl_delay = crawl_delay;
    }

    pub(crate) fn set_address(&mut self, queue: &str, address: Option<&str>) {
        self.known_queue(queue).address = address.map(str::to_owned);
    }

    pub(crate) fn retire(&mut self, queue: &str, is_retired: bool, now: i64) -> bool {
        self.alter(queue, now, |queue| queue.is_retired = is_retired)
    }

    pub(crate) fn freeze(&mut self, queue: &str, is_frozen: bool, now: i64) -> bool {
        self.alter(queue, now, |queue| queue.is_frozen = is_frozen)
    }

    pub(crate) fn wake(&mut self, queue: &str, now: i64) -> bool {
        self.alter(queue, now, |queue| {
            queue.slots.clear();
            queue.paid_until = LONG_AGO;
            queue.failures = 0;
            queue.failing.clear();
        })
    }

    pub(crate) fn set_queue_precedence(
        &mut self,
        queue: &str,
        precedence: Option<u8>,
        now: i64,
    ) -> bool {
        self.alter(queue, now, |queue| queue.own_precedence = precedence)
    }

    fn alter(&mut self, name: &str, now: i64, alter: impl FnOnce(&mut Queue)) -> bool {
        let Some(queue) = self.queues.get_mut(name) else {
            return false;
        };
        alter(queue);
        self.touch(name, true);
        self.place_queues(now);
        true
    }

    // ---- queues

    fn resolve(&self, name: &str) -> QueueSettings {
        self.overrides
            .get(name)
            .unwrap_or(&self.config.queue)
            .clone()
    }

    fn known_queue(&mut self, name: &str) -> &mut Queue {
        if !self.queues.contains_key(name) {
            let settings = self.resolve(name);
            let queue = Queue {
                precedence: settings.precedence,
                settings,
                slots: Vec::new(),
                paid_until: LONG_AGO,
                failures: 0,
                failing: BTreeSet::new(),
                crawl_delay: 0,
                address: None,
                own_precedence: None,
                finished: 0,
                tally: Tally::default(),
                spent: 0,
                balance: 0,
                is_retired: false,
                is_frozen: false,
                order_key: None,
            };
            self.queues.insert(name.to_owned(), queue);
        }
        self.queues.get_mut(name).unwrap()
    }

    fn touch(&mut self, name: &str, takes_new_place: bool) {
        self.known_queue(name);
        match self.touched.iter_mut().find(|(touched, _)| touched == name) {
            Some((_, new_place)) => *new_place |= takes_new_place,
            None => self.touched.push((name.to_owned(), takes_new_place)),
        }
    }

    /// Gives the changed queues their places. Queues that get a new place follow the queues that they made ready.
    fn place_queues(&mut self, now: i64) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_by_key(|(_, takes_new_place)| *takes_new_place);
        for (name, takes_new_place) in touched {
            let precedence = self.precedence_of(&name);
            let is_held = self.queues[&name].is_frozen || self.retired_by(&name).is_some();
            let next_uri = self.next_uri(&name, now);
            let queue = &self.queues[&name];
            let is_inactive = self.config.session_budget.is_some() && queue.balance == 0;
            let order_key = match (next_uri, queue.order_key) {
                _ if is_held => None,
                (NextUri::Nothing, _) => None,
                (NextUri::Full, order_key) => order_key,
                // A queue that has been ready for long does not fall back because it gets more URIs.
                (NextUri::At(wake, is_ready), Some(order_key))
                    if !takes_new_place
                        && order_key.is_inactive == is_inactive
                        && (order_key.wake == wake
                            || is_ready && wake == now && order_key.wake < now) =>
                {
                    Some(order_key)
                }
                (NextUri::At(wake, _), _) => Some(OrderKey {
                    is_inactive,
                    wake,
                    arrival: self.tick(),
                }),
            };
            let queue = self.queues.get_mut(&name).unwrap();
            queue.order_key = order_key;
            queue.precedence = precedence;
        }
    }

    fn next_uri(&self, name: &str, now: i64) -> NextUri {
        if self.is_full(name) {
            return NextUri::Full;
        }
        let (ready, waiting) = self.counts(name);
        let Some((at, _)) = self.slot(name) else {
            return NextUri::Full;
        };
        if ready > self.busy_of(name) as u64 {
            return NextUri::At(at.max(now), true);
        }
        if waiting == 0 {
            return NextUri::Nothing;
        }
        let due = self
            .uris
            .values()
            .filter(|uri| uri.queue == name)
            .filter_map(|uri| match uri.state {
                NaiveState::Waiting(rank) => Some(rank.due),
                _ => None,
            })
            .min();
        NextUri::At(at.max(due.unwrap()), false)
    }

    fn precedence_of(&self, name: &str) -> u8 {
        let queue = &self.queues[name];
        if let Some(own) = queue.own_precedence {
            return own;
        }
        let added = match &queue.settings.precedence_policy {
            PrecedencePolicy::Base => 0,
            PrecedencePolicy::HighestUri => self
                .uris
                .values()
                .filter(|uri| uri.queue == name && matches!(uri.state, NaiveState::Ready(_)))
                .map(|uri| u64::from(uri.precedence))
                .min()
                .unwrap_or(0),
            PrecedencePolicy::SuccessCounts(steps) => {
                let mut ranks = 0;
                let mut left = queue.tally.succeeded;
                let mut step = 0;
                while left >= steps[step.min(steps.len() - 1)] {
                    left -= steps[step.min(steps.len() - 1)];
                    step += 1;
                    ranks += 1;
                }
                ranks
            }
        };
        u8::try_from(u64::from(queue.settings.precedence) + added).unwrap_or(u8::MAX)
    }

    fn valence(&self, name: &str) -> usize {
        let queue = &self.queues[name];
        match queue.failures {
            0 => queue.settings.valence.into(),
            _ => 1,
        }
    }

    /// Returns `true` if no further URI of the queue may be in process.
    fn is_full(&self, name: &str) -> bool {
        let mut busy = self.busy.iter().filter(|busy| busy.queue == name);
        let count = busy.clone().count();
        let queue = &self.queues[name];
        count >= self.valence(name)
            || reached_limit(&queue.settings.quota, &queue.tally, count).is_some()
            || busy.any(|busy| {
                let rank = self.uris[&busy.text].rank();
                rank.is_some_and(|rank| rank.directive == Directive::Highest)
            })
    }

    fn is_past_floor(&self, name: &str) -> bool {
        self.floor
            .is_some_and(|floor| self.queues[name].precedence >= floor)
    }

    /// The slot that becomes free first, and the time at which it may issue.
    fn slot(&self, name: &str) -> Option<(i64, usize)> {
        if self.busy_of(name) >= self.valence(name) {
            return None;
        }
        let queue = &self.queues[name];
        let in_use = self.busy.iter().filter(|busy| busy.queue == name);
        (0..usize::from(queue.settings.valence))
            .filter(|slot| in_use.clone().all(|busy| busy.slot != *slot))
            .map(|slot| (queue.slot(slot), slot))
            .min()
    }

    /// Returns `true` if its group waits, or has as many URIs in process as allowed.
    fn stands_back(&self, name: &str, now: i64) -> bool {
        let group = self.group(name);
        let slot = group.map(|group| self.group_slot(&group));
        slot.is_some_and(|slot| slot.is_none_or(|(at, _)| at > now))
    }

    /// The same for a server group.
    fn group_slot(&self, group: &str) -> Option<(i64, usize)> {
        let slots = self.groups.get(group).cloned().unwrap_or_default();
        let in_use: Vec<_> = self
            .busy
            .iter()
            .filter_map(|busy| busy.group.as_ref())
            .filter(|(name, _)| name == group)
            .map(|(_, slot)| *slot)
            .collect();
        let valence = usize::from(self.config.group.valence);
        if in_use.len() >= valence {
            return None;
        }
        (0..valence)
            .filter(|slot| !in_use.contains(slot))
            .map(|slot| (slot_ready_at(&slots, slot, valence), slot))
            .min()
    }

    fn delay_queue(&mut self, name: &str, until: i64) {
        let queue = self.known_queue(name);
        for slot in 0..usize::from(queue.settings.valence) {
            queue.delay_slot(slot, until);
        }
    }
}

impl Queue {
    fn slot(&self, slot: usize) -> i64 {
        slot_ready_at(&self.slots, slot, self.settings.valence.into()).max(self.paid_until)
    }

    fn delay_slot(&mut self, slot: usize, until: i64) {
        delay_slot(&mut self.slots, slot, until);
    }
}

impl Known {
    pub(crate) fn rank(&self) -> Option<Rank> {
        match self.state {
            NaiveState::Ready(rank) | NaiveState::Waiting(rank) => Some(rank),
            NaiveState::Done | NaiveState::Deleted | NaiveState::Faded => None,
        }
    }
}

/// A resolver of queue settings, as the profile would provide it.
pub(crate) fn resolver(
    config: &FrontierConfig,
    overrides: BTreeMap<String, QueueSettings>,
) -> Resolver {
    let others = config.queue.clone();
    Resolver::new(move |name| overrides.get(name).unwrap_or(&others).clone())
}

fn delay_slot(slots: &mut Vec<i64>, slot: usize, until: i64) {
    if slots.len() <= slot {
        slots.resize(slot + 1, LONG_AGO);
    }
    slots[slot] = slots[slot].max(until);
}

/// After the number of slots has shrunk, the remaining slots keep the delays of the removed ones, too.
fn slot_ready_at(slots: &[i64], slot: usize, valence: usize) -> i64 {
    let shared = slots.iter().skip(slot).step_by(valence);
    shared.copied().max().unwrap_or(LONG_AGO)
}

fn state_of(rank: Rank, now: i64) -> NaiveState {
    if rank.due > now {
        NaiveState::Waiting(rank)
    } else {
        NaiveState::Ready(rank)
    }
}

fn waiting(again: Option<Timestamp>) -> Disposition {
    again.map_or(Disposition::Done, Disposition::Waiting)
}

/// Host and port of a URI.
pub(crate) fn server(text: &str) -> String {
    let uri = uri(text);
    format!("{:?} {:?}", uri.host(), uri.port())
}

fn is_dns(text: &str) -> bool {
    text.starts_with("dns:")
}

fn is_prerequisite(text: &str, known: &Known) -> bool {
    is_dns(text) || known.hop_path.last() == Some(Hop::Prerequisite)
}

/// The first limit that is reached if `to_come` more documents come in.
fn reached_limit(quota: &Quota, tally: &Tally, to_come: usize) -> Option<&'static str> {
    let to_come = to_come as u64;
    let reached = |limit: Option<u64>, count| limit.is_some_and(|limit| limit <= count);
    if reached(quota.fetched, tally.fetched + to_come) {
        Some("fetched")
    } else if reached(quota.succeeded, tally.succeeded + to_come) {
        Some("succeeded")
    } else if reached(quota.novel, tally.novel) {
        Some("novel")
    } else if reached(quota.bytes, tally.bytes) {
        Some("bytes")
    } else if reached(quota.novel_bytes, tally.novel_bytes) {
        Some("novel-bytes")
    } else if quota.run_time.is_some_and(|limit| limit <= tally.run_time) {
        Some("run-time")
    } else {
        None
    }
}

fn directive(candidate: &Candidate, config: &FrontierConfig) -> Directive {
    let hops = candidate.hop_path.as_str();
    let since_link = hops.rsplit(['L', 'M', 'S']).next().unwrap_or_default();
    let embeds = since_link.matches('E').count();
    let preference = if candidate.strategy.revisits() {
        config.embed_preference_hops_of_revisits
    } else {
        config.embed_preference_hops
    };
    let found = if hops.ends_with('R') || (embeds > 0 && embeds <= preference as usize) {
        Directive::Medium
    } else {
        Directive::Normal
    };
    match candidate.directive {
        Directive::Highest if !hops.ends_with('P') => Directive::High,
        given => given.max(found),
    }
}

fn site(uri: &Uri) -> Option<&str> {
    uri.registrable_domain().or_else(|| uri.host())
}

fn text_of(key: &str) -> String {
    Uri::from_key(key).unwrap().to_string()
}

fn whole(duration: Duration) -> i64 {
    duration.as_secs().cast_signed()
}

/// Seconds since the beginning of the test.
pub(crate) fn seconds(time: Timestamp) -> i64 {
    time.as_second() - at(0).as_second()
}

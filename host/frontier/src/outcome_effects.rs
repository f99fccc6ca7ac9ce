//! The effects of an outcome on its URI, its queue and the candidates that came with it.
//! [`Frontier::finished`](crate::Frontier::finished) applies them.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use opilio_uri::Uri;

use crate::{
    Candidate, ContentState, Directive, Disposition, FrontierError, GroupFigures, KeptChange,
    LastOutcome, OutOfScopeLink, Outcome, PREREQUISITE_FAILED, PREREQUISITE_UNSCHEDULABLE,
    PastVisit, ScheduleResult, Success, Tally, UNTIL_CHANGED, UriRecord, UriState,
    admission::{Origin, admit},
    change::{self, WriteBatch},
    embeds,
    in_process::Busy,
    instant::{self, Millis},
    keys::{self, Rank},
    probe, reconsideration,
    record::{is_free, is_prerequisite},
    rejection,
    store::{damaged, encode},
    visit,
};

/// The state of the URI, and the results of scheduling its candidates.
type OutcomeResult = (Disposition, Vec<ScheduleResult>);

/// Applies the outcome of a URI in process to its record, its queue, its tallies and the statistics.
pub(crate) fn apply(
    change: &mut WriteBatch<'_>,
    busy: &Busy,
    outcome: Outcome,
) -> Result<OutcomeResult, FrontierError> {
    let record = change.known_record(&busy.record_key)?;
    let rank = change::rank(&record).ok_or_else(|| {
        damaged(
            "a URI in process that is not queued",
            busy.record_key.as_bytes(),
        )
    })?;
    let mut completion = Completion {
        uri: busy.uri.clone(),
        change,
        busy,
        record,
        rank,
    };
    completion.charge(&outcome)?;
    match outcome {
        Outcome::Deferred { prerequisites } => completion.defer(prerequisites),
        Outcome::Considered { wait, ask_again } => {
            completion.consider(wait, ask_again).map(without_results)
        }
        outcome => {
            completion.record.deferrals = 0;
            match outcome {
                Outcome::Succeeded(success) => completion.succeed(*success),
                Outcome::Retry {
                    status,
                    queue_after,
                    after,
                    ..
                } => completion.retry(status, queue_after, after),
                Outcome::Failed { status, .. } => completion.fail(status).map(without_results),
                Outcome::OutOfScope { reason, .. } if !completion.record.seed => {
                    completion.forget(reason)
                }
                Outcome::OutOfScope { status, reason } => {
                    completion.disregard(status, &reason, Some(UNTIL_CHANGED))
                }
                Outcome::Disregarded {
                    status,
                    reason,
                    wait,
                    ..
                } => completion.disregard(status, &reason, wait),
                Outcome::Deferred { .. } | Outcome::Considered { .. } => Err(damaged(
                    "an outcome applied twice",
                    completion.busy.record_key.as_bytes(),
                )),
            }
        }
    }
}

/// An issued URI whose outcome is being recorded, and the change that this makes.
struct Completion<'t, 'f> {
    change: &'t mut WriteBatch<'f>,
    busy: &'t Busy,
    uri: Uri,
    record: UriRecord,
    /// Its rank in `ready`.
    rank: Rank,
}

impl Completion<'_, '_> {
    /// Charges the request to its queue, its server group and the crawl: delay and bandwidth.
    fn charge(&mut self, outcome: &Outcome) -> Result<(), FrontierError> {
        let transfer = match outcome {
            Outcome::Succeeded(success) => Some(success.transfer),
            Outcome::Retry { transfer, .. }
            | Outcome::Disregarded { transfer, .. }
            | Outcome::Failed { transfer, .. } => *transfer,
            Outcome::Considered { .. } | Outcome::Deferred { .. } | Outcome::OutOfScope { .. } => {
                None
            }
        };
        let Some(transfer) = transfer else {
            return Ok(());
        };
        let duration = transfer.duration;
        if is_free(self.uri.as_str()) {
            return Ok(());
        }
        if !is_prerequisite(&self.uri, &self.record) {
            self.count_time(duration)?;
        }
        let Busy {
            queue, slot, group, ..
        } = self.busy;
        let change = &mut *self.change;
        let delay = change.politeness_delay(queue, duration)?;
        change.delay_slot(queue, *slot, delay)?;
        if let Some((group, slot)) = group {
            let until = instant::after(change.now, change.config.group.min_delay);
            change.delay_group(group, *slot, until)?;
        }
        change.charge_bandwidth(transfer);
        change.charge_queue_bandwidth(queue, transfer)
    }

    /// Adds to the run time of all tallies in which the URI counts.
    fn count_time(&mut self, duration: Duration) -> Result<(), FrontierError> {
        let change = &mut *self.change;
        let add = |tally: &mut Tally| tally.run_time = tally.run_time.saturating_add(duration);
        add(&mut change.queue(&self.busy.queue)?.tally);
        add(&mut change.counters.statistics.tally);
        for key in &self.busy.tallies {
            add(change.tally(key)?);
        }
        Ok(())
    }

    fn succeed(mut self, success: Success) -> Result<OutcomeResult, FrontierError> {
        let Success {
            visit,
            wait,
            ask_again,
            strategy,
            scope,
            outlinks,
            refresh_embeds,
            refused,
            kept_for_site,
            site_figures,
            transfer: _,
        } = success;
        let is_first =
            self.record.last_outcome != LastOutcome::Succeeded && self.record.visits == 0;
        let is_counted = !is_prerequisite(&self.uri, &self.record);
        let bytes = visit.size.unwrap_or(0);
        let is_novel = visit.state.is_version() && !visit.duplicate;
        let was_extracted = visit.outlinks.is_some();
        let queue = self.change.queue(&self.busy.queue)?;
        queue.failures = 0;
        queue.failing.clear();
        if is_counted {
            queue.tally.succeed(is_first, is_novel, bytes);
            let statistics = &mut self.change.counters.statistics;
            statistics.tally.succeed(is_first, is_novel, bytes);
            for key in &self.busy.tallies {
                self.change.tally(key)?.succeed(is_first, is_novel, bytes);
            }
        }
        if self.record.visits > 0 {
            let overdue = &mut self.change.counters.statistics.overdue;
            overdue.count(self.busy.overdue);
        }
        visit::note(
            &mut self.record,
            &mut self.change.counters.statistics,
            visit,
            self.change.now,
            self.change.config.history_length,
        );
        let last_outcome = LastOutcome::of_response(self.record.status, !is_counted);
        self.change.set_last_outcome(&mut self.record, last_outcome);
        self.record.reason.clear();
        self.record.wait = wait.or(self.record.wait);
        if let Some(past) = self.record.history.first_mut() {
            past.followed_by(wait);
        }
        self.record.scope = scope.unwrap_or(self.record.scope);
        self.record.strategy = strategy.unwrap_or(self.record.strategy);
        let origin = Origin::Document {
            canonical: self.record.canonical,
            refresh_embeds,
        };
        let keeps_embeds = self.record.strategy.revisits() && self.change.config.fade_after > 0;
        let embeds = if keeps_embeds && was_extracted {
            embeds::on_other_domains(&self.uri, &outlinks)
        } else {
            Vec::new()
        };
        let cost = self.record.cost.into();
        let cost = if is_counted { cost } else { 0 };
        let disposition = self.complete(wait, ask_again, cost)?;
        self.change
            .keep_for_site(&self.busy.record_key, kept_for_site, &site_figures)?;
        rejection::remember(self.change, self.uri.as_str(), refused)?;
        let scheduled = admit(self.change, outlinks, origin)?;
        if keeps_embeds {
            let state = if was_extracted {
                embeds::Linked::Only(embeds)
            } else {
                embeds::Linked::AsBefore
            };
            embeds::record(self.change, &self.busy.record_key, state)?;
        }
        Ok((disposition, scheduled))
    }

    fn retry(
        mut self,
        status: i32,
        queue_after: u32,
        after: Option<Duration>,
    ) -> Result<OutcomeResult, FrontierError> {
        let config = self.change.config;
        let Busy {
            record_key, queue, ..
        } = self.busy;
        self.record.status = status;
        self.record.attempts += 1;
        let attempts = self.record.attempts;
        let is_prerequisite = self.rank.directive == Directive::Highest;
        let record = self.change.queue(queue)?;
        let queue_waits = record.fails(record_key, queue_after, is_prerequisite);
        let failures = if queue_waits {
            record.last_failure = status;
            record.failures
        } else {
            attempts
        };
        let settings = record.settings(config);
        let requested = after
            .unwrap_or_default()
            .min(settings.politeness.retry_after_max);
        let delay = settings.back_off(failures).max(requested);
        let max_retries = settings.max_retries;
        if queue_waits {
            self.change.delay_queue(queue, delay)?;
        }
        if attempts > max_retries {
            let disposition = Disposition::GivenUp {
                status,
                tries: attempts,
                again: self.fail(status)?.again(),
            };
            return Ok((disposition, Vec::new()));
        }
        self.change.counters.statistics.retries += 1;
        // It goes behind the others of its rank, so that one bad URI does not delay them. A prerequisite stays before the URIs
        // that depend on it.
        let now = self.change.now;
        if is_prerequisite {
            self.change.put(record_key, self.record);
        } else if queue_waits {
            self.put_behind(instant::floor(now))?;
        } else {
            self.put_behind(instant::after(now, delay))?;
        }
        Ok((Disposition::Retrying { attempts }, Vec::new()))
    }

    fn disregard(
        mut self,
        status: i32,
        reason: &str,
        wait: Option<Duration>,
    ) -> Result<OutcomeResult, FrontierError> {
        self.record.status = status;
        rejection::cut(reason).clone_into(&mut self.record.reason);
        self.change
            .set_last_outcome(&mut self.record, LastOutcome::Disregarded);
        let wait = self.wait_without_visit(wait);
        self.complete(wait, None, 0).map(without_results)
    }

    fn defer(mut self, prerequisites: Vec<Candidate>) -> Result<OutcomeResult, FrontierError> {
        self.record.deferrals += 1;
        let tries = self.record.deferrals;
        if tries > self.change.config.max_deferrals {
            self.record.deferrals = 0;
            let status = PREREQUISITE_FAILED;
            let disposition = Disposition::GivenUp {
                status,
                tries,
                again: self.fail(status)?.again(),
            };
            return Ok((disposition, Vec::new()));
        }
        let Busy {
            record_key, queue, ..
        } = self.busy;
        self.change.counters.statistics.deferrals += 1;
        self.change.put(record_key, self.record);
        let scheduled = admit(self.change, prerequisites, Origin::Prerequisites(queue))?;
        if scheduled
            .iter()
            .any(|one| matches!(one, ScheduleResult::Refused(_)))
        {
            let mut record = self.change.known_record(record_key)?;
            record.deferrals = 0;
            let status = PREREQUISITE_UNSCHEDULABLE;
            let disposition = Disposition::GivenUp {
                status,
                tries,
                again: Completion { record, ..self }.fail(status)?.again(),
            };
            return Ok((disposition, scheduled));
        }
        if self.rank.directive == Directive::Highest {
            // One prerequisite depends on another, which has just been put behind it.
            let record = self.change.known_record(record_key)?;
            let now = instant::floor(self.change.now);
            Completion { record, ..self }.put_behind(now)?;
        }
        Ok((Disposition::Deferred, scheduled))
    }

    /// Puts it behind the others of its rank, not to be fetched before `due`.
    fn put_behind(mut self, due: Millis) -> Result<(), FrontierError> {
        let Busy {
            record_key, queue, ..
        } = self.busy;
        self.change.take_busy(queue, self.rank)?;
        let behind = Rank {
            due: self.rank.due.max(due),
            arrival: self.change.counters.arrival(),
            ..self.rank
        };
        self.record.state = change::state_of(behind);
        self.change.put_queued(queue, behind, record_key)?;
        self.change.put(record_key, self.record);
        Ok(())
    }

    /// Completes a visit that ended without a response, for good or for a long time.
    fn fail(mut self, status: i32) -> Result<Disposition, FrontierError> {
        self.record.status = status;
        let mut past = PastVisit {
            at: self.change.now,
            status,
            state: ContentState::Unknown,
            size: None,
            digest: None,
            wait: None,
        };
        let wait = self.wait_without_visit(None);
        past.followed_by(wait);
        visit::remember(&mut self.record, past, self.change.config.history_length);
        self.change
            .set_last_outcome(&mut self.record, LastOutcome::Failed);
        self.record.reason.clear();
        let cost = match is_prerequisite(&self.uri, &self.record) {
            true => 0,
            false => {
                self.change.queue(&self.busy.queue)?.failed += 1;
                u64::from(self.record.cost) + u64::from(self.change.config.error_penalty)
            }
        };
        self.complete(wait, None, cost)
    }

    /// The wait after a visit that failed or was disregarded; `None` under snapshot. It is finite though the cause may last.
    /// `known` is the duration of the cause, if it is known.
    fn wait_without_visit(&mut self, known: Option<Duration>) -> Option<Duration> {
        if !self.record.strategy.revisits() {
            return None;
        }
        let limits = self.change.config.waits(&self.uri, &self.record);
        Some(match known {
            Some(wait) => wait.min(limits.max),
            None => probe::wait(&mut self.record, limits),
        })
    }

    /// Completes the visit: takes the URI out of the ready ones, charges its queue, and lets it wait if it has a wait.
    fn complete(
        &mut self,
        wait: Option<Duration>,
        ask_again: Option<Duration>,
        cost: u64,
    ) -> Result<Disposition, FrontierError> {
        let Busy {
            record_key, queue, ..
        } = self.busy;
        let mut record = self.record.clone();
        record.attempts = 0;
        self.change.take_busy(queue, self.rank)?;
        let charged = self.change.queue(queue)?;
        charged.finished += 1;
        charged.spent = charged.spent.saturating_add(cost);
        let cost = i64::try_from(cost).unwrap_or(i64::MAX);
        charged.balance = charged.balance.saturating_sub(cost).max(0);
        let now = self.change.now;
        let due: Option<Millis> =
            wait.map(|wait| reconsideration::schedule(&mut record, now, wait, ask_again));
        match due {
            Some(due) => {
                let arrival = self.change.counters.arrival();
                let rank = Rank {
                    directive: Directive::Normal,
                    precedence: record.precedence,
                    due,
                    arrival,
                };
                record.state = change::state_of(rank);
                self.change.put_waiting(queue, rank, record_key)?;
            }
            None => {
                record.state = UriState::Done;
                self.change.count_dequeued();
            }
        }
        self.change.put(record_key, record);
        Ok(due.map_or(Disposition::Done, |due| {
            Disposition::Waiting(instant::timestamp(due))
        }))
    }

    /// Continues the wait of a considered URI, with the wait that the evaluator has now chosen. Its last visit stays as recorded.
    fn consider(
        mut self,
        wait: Option<Duration>,
        ask_again: Option<Duration>,
    ) -> Result<Disposition, FrontierError> {
        let Busy {
            record_key, queue, ..
        } = self.busy;
        let now = self.change.now;
        let before = reconsideration::visit_after(&self.record, self.rank).unwrap_or(self.rank.due);
        let left = |due: Millis| {
            let left = due.saturating_sub(instant::floor(now));
            Duration::from_millis(u64::try_from(left).unwrap_or(0))
        };
        let last_visit = self.record.history.first().map(|past| past.at);
        let since = last_visit.and_then(|at| Duration::try_from(now - at).ok());
        if let (Some(wait), Some(since)) = (wait, since) {
            let whole = since.saturating_add(wait);
            self.record.wait = Some(whole);
            if let Some(past) = self.record.history.first_mut() {
                past.followed_by(Some(whole));
            }
        }
        let wait = wait.unwrap_or_else(|| left(before));
        let due = reconsideration::schedule(&mut self.record, now, wait, ask_again);
        let has_news = due <= instant::floor(now) && !self.record.signals.is_empty();
        let directive = reconsideration::directive(self.rank.directive, has_news);
        self.change.take_busy(queue, self.rank)?;
        let rank = Rank {
            directive,
            due,
            arrival: self.change.counters.arrival(),
            ..self.rank
        };
        self.record.state = change::state_of(rank);
        self.change.put_queued(queue, rank, record_key)?;
        self.change.put(record_key, self.record);
        Ok(Disposition::Waiting(instant::timestamp(due)))
    }

    fn forget(self, reason: String) -> Result<OutcomeResult, FrontierError> {
        let Busy {
            record_key, queue, ..
        } = self.busy;
        let via = self.record.via.clone().unwrap_or_default();
        let uri = self.uri;
        rejection::remember(self.change, &via, vec![OutOfScopeLink { uri, reason }])?;
        self.change.take_busy(queue, self.rank)?;
        self.change.queue(queue)?.finished += 1;
        self.change.count_dequeued();
        self.change.forget(record_key, self.record)?;
        Ok((Disposition::Forgotten, Vec::new()))
    }
}

fn without_results(disposition: Disposition) -> OutcomeResult {
    (disposition, Vec::new())
}

impl Disposition {
    /// The time of the next visit, if the URI waits.
    fn again(self) -> Option<Timestamp> {
        match self {
            Self::Waiting(again) => Some(again),
            _ => None,
        }
    }
}

impl WriteBatch<'_> {
    /// Keeps values and figures for the site of a record.
    pub(crate) fn keep_for_site(
        &mut self,
        record_key: &str,
        changes: Vec<KeptChange>,
        figures: &BTreeMap<String, GroupFigures>,
    ) -> Result<(), FrontierError> {
        for change in changes {
            let key = keys::site_value(record_key, &change.plugin, &change.name);
            let value = change.value.as_ref().map(encode).transpose()?;
            self.site_values.insert(key, value);
        }
        for (group, figures) in figures {
            let key = keys::site_figures(record_key, group);
            self.site_figures.insert(key, Some(encode(figures)?));
        }
        Ok(())
    }

    /// Removes the record of a URI that is in no order any more, so that the URI may be found again.
    pub(crate) fn forget(
        &mut self,
        record_key: &str,
        mut record: UriRecord,
    ) -> Result<(), FrontierError> {
        self.set_last_outcome(&mut record, LastOutcome::Open);
        let discovered = &mut self.counters.statistics.discovered;
        *discovered = discovered.saturating_sub(1);
        embeds::forget_page(self, record_key)?;
        if record.referrers > 0 {
            embeds::forget_embed(self, record_key)?;
        }
        self.left_sites.insert(keys::site_range(record_key));
        self.remove(record_key, &record);
        Ok(())
    }
}

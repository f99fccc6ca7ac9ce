//! Operator commands. No call here takes long: callers make a sweep over many URIs in parts.

use std::collections::BTreeSet;

use jiff::Timestamp;
use opilio_uri::Uri;

use crate::{
    Candidate, Digests, Frontier, FrontierError, LastOutcome, RECORD_KEY_BYTES_MAX, ScheduleResult,
    UriRecord, UriState, Validators,
    admission::{Origin, admit},
    candidate::is_queue_name,
    change::{self, WriteBatch},
    frontier::uri_of,
    instant, is_error_response,
    keys::{self, Rank},
    queue::{OWED_MAX, QueueRecord},
    queue_order::First,
    store::{damaged, decode},
};

/// Effect of a sweep on the matched URIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SweepAction {
    /// Counts them.
    Count,
    /// Takes them out of their queues and keeps them known.
    Delete,
    /// Removes them, so that they may be found again.
    Forget,
    /// Removes those that one source seed has found and no other.
    ForgetSole,
}

/// Result of one part of a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SweepStep {
    /// URIs examined.
    pub examined: u64,
    /// URIs matched, without those in process.
    pub meant: u64,
    /// Matched URIs that are in process: they stay.
    pub in_process: u64,
    /// Matched URIs that other sources have found as well: they stay, see [`SweepAction::ForgetSole`].
    pub shared: u64,
    /// The records of URIs that were deleted now, as they were before.
    pub deleted: Vec<UriRecord>,
    /// Record key after which to continue; `None` at the end.
    pub after: Option<String>,
}

/// Result of one pass over queues that wait too long.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WakeResult {
    /// Queues examined.
    pub examined: u64,
    /// Queues that waited longer than they may, or stood back for a server group that did.
    pub woken: u64,
    /// Queue after which to continue; `None` at the end.
    pub after: Option<String>,
}

/// A URI known to another crawl.
#[derive(Debug, Clone)]
pub struct ImportedUri {
    /// The URI as a candidate.
    pub candidate: Candidate,
    /// Its outcome in the other crawl.
    pub last_outcome: LastOutcome,
    /// Its fetch status in the other crawl.
    pub status: i32,
    /// Time of its last visit in the other crawl.
    pub at: Timestamp,
    /// Its media type, lower-case, without parameters; empty if unknown.
    pub media_type: String,
    /// SHA-1 of its payload.
    pub payload_digest: Option<[u8; 20]>,
    /// Size of its content in bytes.
    pub size: Option<u64>,
}

impl Frontier {
    /// Retires a queue, or takes it back. A retired queue takes URIs and issues none. A queue that its budget or quota retired
    /// comes back when these are raised.
    ///
    /// # Errors
    /// [`FrontierError::Name`] if no queue can have this name. Fails if the store fails.
    pub fn retire(
        &mut self,
        queue: &str,
        is_retired: bool,
        now: Timestamp,
    ) -> Result<bool, FrontierError> {
        self.alter_queue(queue, now, |record| record.is_retired = is_retired)
    }

    /// Freezes a queue, or thaws it. A frozen queue issues no URI.
    ///
    /// # Errors
    /// [`FrontierError::Name`] if no queue can have this name. Fails if the store fails.
    pub fn freeze(
        &mut self,
        queue: &str,
        is_frozen: bool,
        now: Timestamp,
    ) -> Result<bool, FrontierError> {
        self.alter_queue(queue, now, |record| record.is_frozen = is_frozen)
    }

    /// Ends the politeness delay or back-off of a queue. Its next failure counts as its first.
    ///
    /// # Errors
    /// [`FrontierError::Name`] if no queue can have this name. Fails if the store fails.
    pub fn wake(&mut self, queue: &str, now: Timestamp) -> Result<bool, FrontierError> {
        self.alter_queue(queue, now, |record| {
            record.failures = 0;
            record.failing.clear();
            record.slots.clear();
            record.paid_until = i64::MIN;
        })
    }

    /// Shortens overlong waits of up to `queues_max` queues, from the first after `after` on. A wait is overlong if nothing that
    /// happens now could cause it; a clock that was ahead leaves such waits. Each of these queues then waits as long as one
    /// request could make it wait, because the time of its last request is unknown. The same applies to server groups, and to the
    /// bandwidth debt of the whole crawl. Due times of URIs stay.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn wake_overlong(
        &mut self,
        after: Option<&str>,
        queues_max: usize,
        now: Timestamp,
    ) -> Result<WakeResult, FrontierError> {
        let mut from = after.unwrap_or_default().as_bytes().to_vec();
        if after.is_some() {
            from.push(0);
        }
        let mut queues = Vec::new();
        for guard in self.store.queues.range(from..).take(queues_max) {
            let (key, value) = guard.into_inner()?;
            let name = std::str::from_utf8(&key).map_err(|_| damaged("a queue's name", &key))?;
            let record: QueueRecord = decode("a queue", &key, &value)?;
            queues.push((name.to_owned(), record));
        }
        let last = queues.last().filter(|_| queues.len() == queues_max);
        let mut woken = WakeResult {
            examined: queues.len() as u64,
            woken: 0,
            after: last.map(|(name, _)| name.clone()),
        };
        let longest_of_group = self.config.group.min_delay;
        let mut groups = BTreeSet::new();
        self.attempt(|frontier| {
            frontier.write_change(now, |change| {
                let config = change.config;
                if change.counters.paid_until > instant::after(now, OWED_MAX) {
                    change.counters.paid_until = instant::floor(now);
                }
                for (name, mut record) in queues {
                    let is_long = record.shorten_waits(now, config);
                    if is_long {
                        change.queue(&name)?.shorten_waits(now, config);
                        change.take_new_place(&name)?;
                    }
                    let group = record.group(config).map(str::to_owned);
                    if let Some(group) = group
                        && (change.shorten_group(&group, longest_of_group)?
                            || groups.contains(&group))
                    {
                        groups.insert(group);
                        woken.woken += 1;
                    } else if is_long {
                        woken.woken += 1;
                    }
                }
                Ok(())
            })?;
            for group in &groups {
                let until = instant::after(now, longest_of_group);
                frontier.memory.groups.wake(group, until);
            }
            Ok(())
        })?;
        Ok(woken)
    }

    /// The time until which nothing is issued because of waits that [`Frontier::wake_overlong`] would shorten; `None` if the wait
    /// that ends first is not such a wait.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn overlong_until(&mut self, now: Timestamp) -> Result<Option<Timestamp>, FrontierError> {
        let until = self.attempt(|frontier| {
            let now_millis = instant::floor(now);
            let counters = &frontier.memory.counters;
            if counters.paid_until > now_millis {
                let paid_until = counters.paid_until;
                return Ok((paid_until > instant::after(now, OWED_MAX)).then_some(paid_until));
            }
            let group = frontier
                .memory
                .groups
                .first_waking(frontier.config.precedence_floor);
            let first = frontier.first_queue(now_millis)?;
            match (first, group) {
                (First::Ready { .. }, _) | (First::NoQueue, None) => Ok(None),
                (First::At { wake, queue }, group) if group.is_none_or(|group| wake <= group) => {
                    let mut record =
                        change::read_queue(&frontier.store, &queue)?.ok_or_else(|| {
                            damaged(
                                "a queue in the queue order without a record",
                                queue.as_bytes(),
                            )
                        })?;
                    let rests_until = record.next_ready(&frontier.config);
                    record.shorten_waits(now, &frontier.config);
                    // A URI that is due even later would wait in any case.
                    let is_long = record.next_ready(&frontier.config) < rests_until
                        && (!record.ready.is_empty() || record.first_due < rests_until);
                    Ok(is_long.then_some(wake))
                }
                (_, group) => {
                    let longest = instant::after(now, frontier.config.group.min_delay);
                    Ok(group.filter(|until| *until > longest))
                }
            }
        })?;
        Ok(until.map(instant::timestamp))
    }

    /// Sets a queue's precedence in place of its settings, or removes that precedence.
    ///
    /// # Errors
    /// [`FrontierError::Name`] if no queue can have this name. Fails if the store fails.
    pub fn set_queue_precedence(
        &mut self,
        queue: &str,
        precedence: Option<u8>,
        now: Timestamp,
    ) -> Result<bool, FrontierError> {
        self.alter_queue(queue, now, |record| record.own_precedence = precedence)
    }

    /// Sets a queue's precedence in place of its settings and policy, unless the operator has set one. `None` removes it.
    ///
    /// # Errors
    /// [`FrontierError::Name`] if no queue can have this name. Fails if the store fails.
    pub fn rank_queue(
        &mut self,
        queue: &str,
        precedence: Option<u8>,
        now: Timestamp,
    ) -> Result<bool, FrontierError> {
        if !is_queue_name(queue) {
            return Err(FrontierError::Name { bytes: queue.len() });
        }
        self.attempt(|frontier| {
            let Some(record) = change::read_queue(&frontier.store, queue)? else {
                return Ok(false);
            };
            if record.ranked_precedence != precedence {
                frontier.write_change(now, |change| {
                    change.queue(queue)?.ranked_precedence = precedence;
                    // It has issued nothing: among those of its precedence it keeps its place.
                    change.revise(queue)
                })?;
            }
            Ok(true)
        })
    }

    /// Sets the precedence floor of this process: queues of this precedence or a higher number issue no URI. `None`: all issue.
    pub fn set_precedence_floor(&mut self, floor: Option<u8>) {
        self.config.precedence_floor = floor;
    }

    /// Sets the settings hash after the resolver's answers have changed. Queues resolve their settings anew with their next
    /// change.
    pub fn set_settings_hash(&mut self, settings_hash: u64) {
        self.config.settings_hash = settings_hash;
    }

    /// The precedence floor: queues of this precedence or a higher number issue no URI. `None`: all issue.
    #[must_use]
    pub fn precedence_floor(&self) -> Option<u8> {
        self.config.precedence_floor
    }

    /// Replaces the configuration. The settings with which the store was opened stay. Queues are resolved anew with their next
    /// change, or by [`Frontier::resolve_queues`].
    pub fn reconfigure(&mut self, config: crate::FrontierConfig) {
        self.config = crate::FrontierConfig {
            cache_bytes: self.config.cache_bytes,
            survives: self.config.survives,
            refusals_max: self.config.refusals_max,
            part: self.config.part.clone(),
            ..config
        };
    }

    /// Resolves the settings of up to `queues_max` queues anew, from the first after `after` on. It is for queues that nothing
    /// else touches after the profile has changed. Returns the last queue examined; `None` at the end.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn resolve_queues(
        &mut self,
        after: Option<&str>,
        queues_max: usize,
        now: Timestamp,
    ) -> Result<Option<String>, FrontierError> {
        let mut from = after.unwrap_or_default().as_bytes().to_vec();
        if after.is_some() {
            from.push(0);
        }
        let mut names = Vec::new();
        for guard in self.store.queues.range(from..).take(queues_max) {
            let key = guard.key()?;
            let name = std::str::from_utf8(&key).map_err(|_| damaged("a queue's name", &key))?;
            names.push(name.to_owned());
        }
        let last = names.last().filter(|_| names.len() == queues_max).cloned();
        self.attempt(|frontier| {
            frontier.write_change(now, |change| {
                for name in &names {
                    let config = change.config;
                    change.queue(name)?.resolve(name, config);
                    change.revise(name)?;
                }
                Ok(())
            })
        })?;
        Ok(last)
    }

    /// Changes the precedence of a URI, in its queue too. Returns `false` if the URI is unknown or in process.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn set_precedence(
        &mut self,
        uri: &Uri,
        precedence: u8,
        now: Timestamp,
    ) -> Result<bool, FrontierError> {
        self.alter_uri(uri, now, |change, key, mut record| {
            let rank = change::rank(&record);
            let was_ready = match rank {
                Some(rank) => change.is_ready(&record.queue, rank)?,
                None => false,
            };
            change.take_queued(&record)?;
            record.precedence = precedence;
            if let Some(rank) = rank {
                let rank = Rank { precedence, ..rank };
                if was_ready {
                    change.put_ready(&record.queue, rank, key)?;
                } else {
                    change.put_waiting(&record.queue, rank, key)?;
                }
            }
            change.put(key, record);
            Ok(())
        })
    }

    /// Makes a URI no longer a seed. Returns `false` if the URI is unknown or in process.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn unmark_seed(&mut self, uri: &Uri, now: Timestamp) -> Result<bool, FrontierError> {
        self.alter_uri(uri, now, |change, key, mut record| {
            record.seed = false;
            change.put(key, record);
            Ok(())
        })
    }

    /// Records that the archive has lost its captures of a URI. The next visit is not compared with them: it is archived whole,
    /// and requested without validators. Returns `false` if the URI is unknown or in process.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn lose_archived(&mut self, uri: &Uri, now: Timestamp) -> Result<bool, FrontierError> {
        self.alter_uri(uri, now, |change, key, mut record| {
            record.archived = None;
            record.digests = Digests::default();
            record.validators = Validators::default();
            record.fingerprint = None;
            change.put(key, record);
            Ok(())
        })
    }

    /// Removes a URI, so that it may be found again. Returns `false` if the URI is unknown or in process.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn forget(&mut self, uri: &Uri, now: Timestamp) -> Result<bool, FrontierError> {
        self.alter_uri(uri, now, |change, key, record| {
            remove(change, key, record, SweepAction::Forget)
        })
    }

    /// Takes a URI out of its queue and keeps it known, so that it is not found again. Forcing it brings it back. Returns `false`
    /// if the URI is unknown or in process.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn delete(&mut self, uri: &Uri, now: Timestamp) -> Result<bool, FrontierError> {
        self.alter_uri(uri, now, |change, key, record| {
            remove(change, key, record, SweepAction::Delete)
        })
    }

    /// Applies an action to all matched URIs among the next `examined_max` whose record key ([`Uri::key`]) begins with
    /// `key_prefix`, from the first after `after` on. It is one batch: thousands are fine. Call it until [`SweepStep::after`] is
    /// `None`.
    ///
    /// # Errors
    /// Fails if the store fails; then nothing has been changed.
    pub fn sweep(
        &mut self,
        action: SweepAction,
        key_prefix: &str,
        after: Option<&str>,
        examined_max: usize,
        is_meant: &dyn Fn(&UriRecord) -> bool,
        now: Timestamp,
    ) -> Result<SweepStep, FrontierError> {
        self.attempt(|frontier| {
            let (swept, meant) =
                frontier.examine_part(action, key_prefix, after, examined_max, is_meant)?;
            if action != SweepAction::Count {
                frontier.write_change(now, |change| {
                    for (key, _) in meant {
                        // Read again: the removal of an earlier URI may have changed it.
                        let record = change.known_record(&key)?;
                        remove(change, &key, record, action)?;
                    }
                    Ok(())
                })?;
            }
            Ok(swept)
        })
    }

    /// Returns the result that [`Self::sweep`] would have, and changes nothing. It is for callers that record the URIs before they
    /// are deleted.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn would_sweep(
        &mut self,
        action: SweepAction,
        key_prefix: &str,
        after: Option<&str>,
        examined_max: usize,
        is_meant: &dyn Fn(&UriRecord) -> bool,
    ) -> Result<SweepStep, FrontierError> {
        self.attempt(|frontier| {
            let part = frontier.examine_part(action, key_prefix, after, examined_max, is_meant)?;
            Ok(part.0)
        })
    }

    /// Examines one part of a sweep. Returns its counts, and the matched URIs with their record keys.
    fn examine_part(
        &self,
        action: SweepAction,
        key_prefix: &str,
        after: Option<&str>,
        examined_max: usize,
        is_meant: &dyn Fn(&UriRecord) -> bool,
    ) -> Result<(SweepStep, Vec<(String, UriRecord)>), FrontierError> {
        let mut swept = SweepStep::default();
        let mut meant = Vec::new();
        let from = match after {
            Some(after) => [after.as_bytes(), &[0]].concat(),
            None => key_prefix.as_bytes().to_vec(),
        };
        for guard in self.store.uris.range(from..) {
            let (key, bytes) = guard.into_inner()?;
            if !key.starts_with(key_prefix.as_bytes()) {
                break;
            }
            let uri = uri_of(&key)?;
            let record: UriRecord = decode("a record of a URI", &key, &bytes)?;
            let record = UriRecord {
                uri: uri.as_str().to_owned(),
                ..record
            };
            swept.examined += 1;
            if is_meant(&record) {
                meant.push((String::from_utf8_lossy(&key).into_owned(), record));
            }
            if swept.examined >= examined_max as u64 {
                swept.after = Some(String::from_utf8_lossy(&key).into_owned());
                break;
            }
        }
        let in_process = |key: &str| self.memory.is_record_busy(key);
        let all = meant.len() as u64;
        meant.retain(|(key, _)| !in_process(key));
        swept.in_process = all - meant.len() as u64;
        if action == SweepAction::ForgetSole {
            let idle = meant.len();
            let mut sole = Vec::with_capacity(idle);
            for (key, record) in meant {
                let value = self.store.canonical_forms.get(record.canonical)?;
                if value.is_none_or(|value| keys::finder_of(&value) != keys::SHARED) {
                    sole.push((key, record));
                }
            }
            meant = sole;
            swept.shared = (idle - meant.len()) as u64;
        }
        swept.meant = meant.len() as u64;
        if action == SweepAction::Delete {
            let known = meant.iter().map(|(_, record)| record);
            let known = known.filter(|record| record.state != UriState::Deleted);
            swept.deleted = known.cloned().collect();
        }
        Ok((swept, meant))
    }

    /// Takes over URIs that another crawl has finished. They are known from now on. Under snapshot they are not queued. Under
    /// revisit they are due after the longest wait, or after the shortest if they failed there. URIs that are known here stay as
    /// they are, with one exception. A URI that was taken over without its status, as from a journal, gets the status and the
    /// rest of the data. It counts as new. The answers are in the same order.
    ///
    /// # Errors
    /// Fails if the store fails; then none is taken over.
    pub fn include(
        &mut self,
        known: Vec<ImportedUri>,
        now: Timestamp,
    ) -> Result<Vec<ScheduleResult>, FrontierError> {
        let is_busy = |one: &ImportedUri| self.memory.is_record_busy(&one.candidate.uri.key());
        let busy: Vec<bool> = known.iter().map(is_busy).collect();
        self.attempt(|frontier| {
            frontier.write_change(now, |change| {
                let mut candidates = Vec::with_capacity(known.len());
                for one in &known {
                    candidates.push(Candidate {
                        directive: crate::Directive::Normal,
                        force: false,
                        due: None,
                        modified: None,
                        ..one.candidate.clone()
                    });
                }
                let mut answers = admit(change, candidates, Origin::Elsewhere)?;
                let known = known.into_iter().zip(busy);
                for ((one, is_busy), answer) in known.zip(&mut answers) {
                    let completes = *answer == ScheduleResult::Known
                        && !is_busy
                        && one.status != 0
                        && lacks_status(change, &one)?;
                    if completes {
                        *answer = ScheduleResult::New;
                    }
                    if *answer == ScheduleResult::New {
                        include_one(change, one)?;
                    }
                }
                Ok(answers)
            })
        })
    }

    fn alter_queue(
        &mut self,
        queue: &str,
        now: Timestamp,
        alter: impl FnOnce(&mut QueueRecord),
    ) -> Result<bool, FrontierError> {
        if !is_queue_name(queue) {
            return Err(FrontierError::Name { bytes: queue.len() });
        }
        self.attempt(|frontier| {
            if change::read_queue(&frontier.store, queue)?.is_none() {
                return Ok(false);
            }
            frontier.write_change(now, |change| {
                alter(change.queue(queue)?);
                change.take_new_place(queue)?;
                Ok(true)
            })
        })
    }

    /// Alters a URI. Returns `false` if the URI is unknown or in process.
    fn alter_uri(
        &mut self,
        uri: &Uri,
        now: Timestamp,
        alter: impl FnOnce(&mut WriteBatch<'_>, &str, UriRecord) -> Result<(), FrontierError>,
    ) -> Result<bool, FrontierError> {
        let key = uri.key();
        if key.len() > RECORD_KEY_BYTES_MAX || self.memory.is_record_busy(&key) {
            return Ok(false);
        }
        self.attempt(|frontier| {
            frontier.write_change(now, |change| match change.record(&key)? {
                Some(record) => alter(change, &key, record).map(|()| true),
                None => Ok(false),
            })
        })
    }
}

/// Takes a URI out of its queue, and removes its record if it is to be forgotten.
fn remove(
    change: &mut WriteBatch<'_>,
    key: &str,
    mut record: UriRecord,
    action: SweepAction,
) -> Result<(), FrontierError> {
    change.take_queued(&record)?;
    if matches!(record.state, UriState::Queued { .. }) {
        change.count_dequeued();
    }
    match action {
        SweepAction::Forget | SweepAction::ForgetSole => change.forget(key, record)?,
        SweepAction::Delete => {
            if record.state == UriState::Faded && change.canonical(&record.canonical)?.is_none() {
                // The seen test does not know a faded URI. A deleted URI must stay known.
                let value = keys::whole_canonical_value(key.as_bytes());
                change.put_canonical(record.canonical, value);
                record.owns_canonical = true;
            }
            record.state = UriState::Deleted;
            change.put(key, record);
        }
        SweepAction::Count => {}
    }
    Ok(())
}

/// Whether the record of the URI was taken over from another crawl without its status, and was not visited here since.
fn lacks_status(change: &mut WriteBatch<'_>, one: &ImportedUri) -> Result<bool, FrontierError> {
    let record = change.record(&one.candidate.uri.key())?;
    Ok(record.is_some_and(|record| {
        let is_elsewhere = matches!(record.state, UriState::Queued { .. } | UriState::Done);
        record.visits == 0
            && record.status == 0
            && record.last_outcome != LastOutcome::Open
            && is_elsewhere
            && record.history.len() == 1
    }))
}

fn include_one(change: &mut WriteBatch<'_>, known: ImportedUri) -> Result<(), FrontierError> {
    let key = known.candidate.uri.key();
    let mut record = change.known_record(&key)?;
    change.take_queued(&record)?;
    record.status = known.status;
    record.media_type = known.media_type;
    record.digests.payload = known.payload_digest;
    record.discovered = known.at;
    record.history = vec![crate::PastVisit {
        at: known.at,
        status: known.status,
        state: crate::ContentState::Unknown,
        size: known.size,
        digest: known.payload_digest.map(crate::PastVisit::short_digest),
        wait: None,
    }];
    change.set_last_outcome(&mut record, known.last_outcome);
    if record.strategy.revisits() {
        let limits = change.config.waits(&known.candidate.uri, &record);
        let wait = match known.last_outcome {
            LastOutcome::Failed if !is_error_response(known.status) => limits.min,
            _ => limits.max,
        };
        let rank = Rank {
            directive: crate::Directive::Normal,
            precedence: record.precedence,
            due: instant::after(known.at, wait).max(instant::floor(change.now)),
            arrival: change.counters.arrival(),
        };
        record.state = change::state_of(rank);
        change.put_queued(&record.queue, rank, &key)?;
    } else {
        if matches!(record.state, UriState::Queued { .. }) {
            change.count_dequeued();
        }
        record.state = UriState::Done;
    }
    change.put(&key, record);
    Ok(())
}

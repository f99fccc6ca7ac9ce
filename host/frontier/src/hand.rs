//! The operator's hand. Nothing here waits: a sweep over many URIs is made in parts by whoever calls.

use std::collections::BTreeSet;

use jiff::Timestamp;
use opilio_uri::Uri;

use crate::{
    Candidate, Digests, Error, Frontier, Place, RECORD_KEY_BYTES_MAX, Scheduled, Standing,
    UriRecord, Validators,
    admission::{Origin, admit},
    candidate::is_queue_name,
    change::{self, Change},
    frontier::uri_of,
    instant,
    keys::{self, Rank},
    line::First,
    past_visit,
    politeness::OWED_MAX,
    queue::QueueRecord,
    store::{damaged, decode},
};

/// What a sweep does to the URIs that are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SweepAction {
    /// Counts them.
    Count,
    /// Takes them out of their queues and keeps them known.
    Delete,
    /// Removes them, so that they may be found again.
    Forget,
    /// The same, of those alone that one source seed has found and no other.
    ForgetSole,
}

/// What one part of a sweep did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Swept {
    /// URIs looked at.
    pub examined: u64,
    /// URIs that were meant, those in process left out.
    pub meant: u64,
    /// URIs that were meant and are in process: they stay.
    pub in_process: u64,
    /// URIs that were meant and that other sources have found as well: they stay, see [`SweepAction::ForgetSole`].
    pub shared: u64,
    /// The records of URIs that were deleted now, as they were before.
    pub deleted: Vec<UriRecord>,
    /// Record key to go on behind; none at the end.
    pub after: Option<String>,
}

/// What one look at queues that rest too long came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Woken {
    /// Queues looked at.
    pub examined: u64,
    /// Queues that rested longer than they may, or stood back for a server group that did.
    pub woken: u64,
    /// Queue to go on behind; none at the end.
    pub after: Option<String>,
}

/// A URI that another crawl knows.
#[derive(Debug, Clone)]
pub struct Known {
    /// What it is.
    pub candidate: Candidate,
    /// How it ended there.
    pub standing: Standing,
    /// Fetch status it had there.
    pub status: i32,
    /// When.
    pub at: Timestamp,
    /// Lower-case, without parameters; empty where unknown.
    pub media_type: String,
    /// SHA-1 of its payload.
    pub payload_digest: Option<[u8; 20]>,
    /// Size of its content in bytes.
    pub size: Option<u64>,
}

impl Frontier {
    /// Retires a queue, or takes it back: a retired queue takes URIs and gives none. What its budget or quota retired
    /// comes back by raising these.
    ///
    /// # Errors
    /// [`Error::Name`] where no queue can have this name. Where the store fails.
    pub fn retire(&mut self, queue: &str, is_retired: bool, now: Timestamp) -> Result<bool, Error> {
        self.alter_queue(queue, now, |record| record.is_retired = is_retired)
    }

    /// Freezes a queue, or thaws it: what is frozen gives no URI.
    ///
    /// # Errors
    /// [`Error::Name`] where no queue can have this name. Where the store fails.
    pub fn freeze(&mut self, queue: &str, is_frozen: bool, now: Timestamp) -> Result<bool, Error> {
        self.alter_queue(queue, now, |record| record.is_frozen = is_frozen)
    }

    /// Ends whatever rest or back-off a queue is in. Its next failure counts as its first.
    ///
    /// # Errors
    /// [`Error::Name`] where no queue can have this name. Where the store fails.
    pub fn wake(&mut self, queue: &str, now: Timestamp) -> Result<bool, Error> {
        self.alter_queue(queue, now, |record| {
            record.failures = 0;
            record.failing.clear();
            record.slots.clear();
            record.paid_until = i64::MIN;
        })
    }

    /// Looks at up to `queues_max` queues, from the one behind `after` on, for those that rest longer than anything that
    /// happens now could make them, as a clock that was ahead leaves them. Each of them rests as long as one request could
    /// bring from now on, because nobody knows when its server was last asked; so do server groups, and what the whole crawl
    /// owes for its bandwidth. Due times of URIs stay.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn wake_overlong(
        &mut self,
        after: Option<&str>,
        queues_max: usize,
        now: Timestamp,
    ) -> Result<Woken, Error> {
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
        let mut woken = Woken {
            examined: queues.len() as u64,
            woken: 0,
            after: last.map(|(name, _)| name.clone()),
        };
        let longest_of_group = self.config.group.min_delay;
        let mut groups = BTreeSet::new();
        self.attempt(|frontier| {
            frontier.applied(now, |change| {
                let config = change.config;
                if change.counters.paid_until > instant::after(now, OWED_MAX) {
                    change.counters.paid_until = instant::floor(now);
                }
                for (name, mut record) in queues {
                    let is_long = record.shorten_rests(now, config);
                    if is_long {
                        change.queue(&name)?.shorten_rests(now, config);
                        change.line_up_again(&name)?;
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

    /// Until when nothing is issued because of rests that [`Frontier::wake_overlong`] would shorten; none where it is not
    /// such a rest that ends first.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn overlong_until(&mut self, now: Timestamp) -> Result<Option<Timestamp>, Error> {
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
            let first = frontier.first_in_line(now_millis)?;
            match (first, group) {
                (First::Ready { .. }, _) | (First::Nobody, None) => Ok(None),
                (First::At { wake, queue }, group) if group.is_none_or(|group| wake <= group) => {
                    let mut record =
                        change::read_queue(&frontier.store, &queue)?.ok_or_else(|| {
                            damaged("a turn of a queue without a record", queue.as_bytes())
                        })?;
                    let rests_until = record.next_ready(&frontier.config);
                    record.shorten_rests(now, &frontier.config);
                    // What is due later still would wait without its rest as well.
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

    /// Gives a queue a precedence in place of what its settings say, or takes it away again.
    ///
    /// # Errors
    /// [`Error::Name`] where no queue can have this name. Where the store fails.
    pub fn set_queue_precedence(
        &mut self,
        queue: &str,
        precedence: Option<u8>,
        now: Timestamp,
    ) -> Result<bool, Error> {
        self.alter_queue(queue, now, |record| record.own_precedence = precedence)
    }

    /// Gives a queue a precedence in place of what its settings and policy say, unless the operator has given it one; none
    /// takes it away again.
    ///
    /// # Errors
    /// [`Error::Name`] where no queue can have this name. Where the store fails.
    pub fn rank_queue(
        &mut self,
        queue: &str,
        precedence: Option<u8>,
        now: Timestamp,
    ) -> Result<bool, Error> {
        if !is_queue_name(queue) {
            return Err(Error::Name { bytes: queue.len() });
        }
        self.attempt(|frontier| {
            let Some(record) = change::read_queue(&frontier.store, queue)? else {
                return Ok(false);
            };
            if record.ranked_precedence != precedence {
                frontier.applied(now, |change| {
                    change.queue(queue)?.ranked_precedence = precedence;
                    // It has not had a turn: among those of its precedence it stays where it is.
                    change.revise(queue)
                })?;
            }
            Ok(true)
        })
    }

    /// Queues of this precedence or a higher number give no URI from now on, in this process; none: all give.
    pub fn set_precedence_floor(&mut self, floor: Option<u8>) {
        self.config.precedence_floor = floor;
    }

    /// The resolver's answers have changed: queues resolve their settings anew with their next change.
    pub fn set_settings_hash(&mut self, settings_hash: u64) {
        self.config.settings_hash = settings_hash;
    }

    /// Queues of this precedence or a higher number give no URI; none: all give.
    #[must_use]
    pub fn precedence_floor(&self) -> Option<u8> {
        self.config.precedence_floor
    }

    /// Goes by another configuration from now on. What the store was opened with stays as it is. Queues are
    /// resolved anew with their next change, or by [`Frontier::resolve_queues`].
    pub fn reconfigure(&mut self, config: crate::Config) {
        self.config = crate::Config {
            cache_bytes: self.config.cache_bytes,
            survives: self.config.survives,
            refusals_max: self.config.refusals_max,
            ..config
        };
    }

    /// Resolves the settings of up to `queues_max` queues anew, from the one behind `after` on: after the profile has
    /// changed, for those that nothing else touches. The last one looked at; none at the end.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn resolve_queues(
        &mut self,
        after: Option<&str>,
        queues_max: usize,
        now: Timestamp,
    ) -> Result<Option<String>, Error> {
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
            frontier.applied(now, |change| {
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

    /// Changes the precedence of a URI, in its queue too. False where it is unknown or in process.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn set_precedence(
        &mut self,
        uri: &Uri,
        precedence: u8,
        now: Timestamp,
    ) -> Result<bool, Error> {
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

    /// A URI is no seed any more. False where it is unknown or in process.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn unseed(&mut self, uri: &Uri, now: Timestamp) -> Result<bool, Error> {
        self.alter_uri(uri, now, |change, key, mut record| {
            record.seed = false;
            change.put(key, record);
            Ok(())
        })
    }

    /// The archive has lost what it had of a URI: nothing of its next visit is compared with that, so that it is archived
    /// whole and asked for without validators. False where it is unknown or in process.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn lose_archived(&mut self, uri: &Uri, now: Timestamp) -> Result<bool, Error> {
        self.alter_uri(uri, now, |change, key, mut record| {
            record.archived = None;
            record.digests = Digests::default();
            record.validators = Validators::default();
            record.fingerprint = None;
            change.put(key, record);
            Ok(())
        })
    }

    /// Removes a URI, so that it may be found again. False where it is unknown or in process.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn forget(&mut self, uri: &Uri, now: Timestamp) -> Result<bool, Error> {
        self.alter_uri(uri, now, |change, key, record| {
            remove(change, key, record, SweepAction::Forget)
        })
    }

    /// Takes a URI out of its queue and keeps it known, so that it is not found again. Forcing it brings it back. False
    /// where it is unknown or in process.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn delete(&mut self, uri: &Uri, now: Timestamp) -> Result<bool, Error> {
        self.alter_uri(uri, now, |change, key, record| {
            remove(change, key, record, SweepAction::Delete)
        })
    }

    /// Does something to all URIs that are meant among the next `examined_max` whose record key ([`Uri::key`]) begins with
    /// `key_prefix`, from the one behind `after` on. One batch: thousands are well. To be called until
    /// [`Swept::after`] is none.
    ///
    /// # Errors
    /// Where the store fails; then nothing has been done.
    pub fn sweep(
        &mut self,
        action: SweepAction,
        key_prefix: &str,
        after: Option<&str>,
        examined_max: usize,
        is_meant: &dyn Fn(&UriRecord) -> bool,
        now: Timestamp,
    ) -> Result<Swept, Error> {
        self.attempt(|frontier| {
            let mut swept = Swept::default();
            let mut meant = Vec::new();
            let from = match after {
                Some(after) => [after.as_bytes(), &[0]].concat(),
                None => key_prefix.as_bytes().to_vec(),
            };
            for guard in frontier.store.uris.range(from..) {
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
            let in_process = |key: &str| frontier.memory.is_record_busy(key);
            let all = meant.len() as u64;
            meant.retain(|(key, _)| !in_process(key));
            swept.in_process = all - meant.len() as u64;
            if action == SweepAction::ForgetSole {
                let idle = meant.len();
                let mut sole = Vec::with_capacity(idle);
                for (key, record) in meant {
                    let value = frontier.store.canon.get(record.canonical)?;
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
                let known = known.filter(|record| record.place != Place::Deleted);
                swept.deleted = known.cloned().collect();
            }
            if action != SweepAction::Count {
                frontier.applied(now, |change| {
                    for (key, _) in meant {
                        // Read anew: one that went before it may have changed it.
                        let record = change.known_record(&key)?;
                        remove(change, &key, record, action)?;
                    }
                    Ok(())
                })?;
            }
            Ok(swept)
        })
    }

    /// Takes over URIs that another crawl has finished: known from now on, not queued under snapshot, due after the
    /// longest wait under revisit, or after the shortest where it failed there. What is known here already stays as it is. Answers stand in the same order.
    ///
    /// # Errors
    /// Where the store fails; then none is taken over.
    pub fn include(&mut self, known: Vec<Known>, now: Timestamp) -> Result<Vec<Scheduled>, Error> {
        self.attempt(|frontier| {
            frontier.applied(now, |change| {
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
                let answers = admit(change, candidates, Origin::Elsewhere)?;
                for (one, answer) in known.into_iter().zip(&answers) {
                    if *answer == Scheduled::New {
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
    ) -> Result<bool, Error> {
        if !is_queue_name(queue) {
            return Err(Error::Name { bytes: queue.len() });
        }
        self.attempt(|frontier| {
            if change::read_queue(&frontier.store, queue)?.is_none() {
                return Ok(false);
            }
            frontier.applied(now, |change| {
                alter(change.queue(queue)?);
                change.line_up_again(queue)?;
                Ok(true)
            })
        })
    }

    /// False where the URI is unknown or in process.
    fn alter_uri(
        &mut self,
        uri: &Uri,
        now: Timestamp,
        alter: impl FnOnce(&mut Change<'_>, &str, UriRecord) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let key = uri.key();
        if key.len() > RECORD_KEY_BYTES_MAX || self.memory.is_record_busy(&key) {
            return Ok(false);
        }
        self.attempt(|frontier| {
            frontier.applied(now, |change| match change.record(&key)? {
                Some(record) => alter(change, &key, record).map(|()| true),
                None => Ok(false),
            })
        })
    }
}

/// Takes a URI out of its queue, and away where it is to be forgotten.
fn remove(
    change: &mut Change<'_>,
    key: &str,
    mut record: UriRecord,
    action: SweepAction,
) -> Result<(), Error> {
    change.take_queued(&record)?;
    if matches!(record.place, Place::Queued { .. }) {
        change.leave_queue();
    }
    match action {
        SweepAction::Forget | SweepAction::ForgetSole => change.forget(key, record)?,
        SweepAction::Delete => {
            if record.place == Place::Faded && change.canonical(&record.canonical)?.is_none() {
                // What has faded is unknown to the seen test; what is deleted stays known.
                let value = keys::whole_canonical_value(key.as_bytes());
                change.put_canonical(record.canonical, value);
                record.owns_canonical = true;
            }
            record.place = Place::Deleted;
            change.put(key, record);
        }
        SweepAction::Count => {}
    }
    Ok(())
}

fn include_one(change: &mut Change<'_>, known: Known) -> Result<(), Error> {
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
        digest: known.payload_digest.map(past_visit::short),
        wait: None,
    }];
    change.stand(&mut record, known.standing);
    if record.strategy.revisits() {
        let limits = change.config.waits(&known.candidate.uri, &record);
        let wait = match known.standing {
            Standing::Failed => limits.min,
            _ => limits.max,
        };
        let rank = Rank {
            directive: crate::Directive::Normal,
            precedence: record.precedence,
            due: instant::after(known.at, wait).max(instant::floor(change.now)),
            arrival: change.counters.arrival(),
        };
        record.place = change::place(rank);
        change.put_queued(&record.queue, rank, &key)?;
    } else {
        record.place = Place::Done;
        change.leave_queue();
    }
    change.put(&key, record);
    Ok(())
}

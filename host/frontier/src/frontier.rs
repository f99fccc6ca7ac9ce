//! The state machine: `schedule`, `next`, `finished`, and what operators and reports ask.

use std::{path::Path, sync::Arc, time::Duration};

use jiff::Timestamp;
use opilio_uri::Uri;

use crate::{
    Candidate, Config, Directive, Disposition, Error, Finished, Issue, Next, Outcome,
    PREREQUISITE_FAILED, PastVisit, Place, Politeness, QueueReport, RECORD_KEY_BYTES_MAX,
    Scheduled, Standing, Statistics, Strategy, Success, Ticket, UriRecord,
    admission::{Origin, admit},
    candidate::is_queue_name,
    change::{self, Change, Issued, Written},
    instant::{self, Millis},
    keys::{self, Rank},
    line::First,
    memory::{Busy, Memory},
    politeness,
    queue::QueueRecord,
    store::{Store, damaged, decode, encode},
    visit,
};

/// URIs moved at a time from those waiting to those ready. A queue with more of them due at once, after a long stop,
/// moves the earliest due first and the others with its next turns.
const MOVED_MAX: usize = 10_000;

/// Which URI next, and when.
///
/// No clock: every call that depends on the time is given it. Times should not go backwards; where they do, rests grow
/// longer, never shorter. Every call that changes anything writes one atomic batch and returns when the operating system
/// has it: what has been acknowledged survives the death of the process. [`Frontier::persist`] is for power loss.
///
/// After an error other than [`Error::UnknownTicket`] or [`Error::Name`] the frontier answers
/// [`Error::Broken`] and must be opened again.
pub struct Frontier {
    store: Store,
    config: Config,
    memory: Memory,
    is_broken: bool,
}

impl std::fmt::Debug for Frontier {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Frontier")
            .field("statistics", &self.statistics())
            .finish_non_exhaustive()
    }
}

impl Frontier {
    /// Opens the store in this folder, or makes one, and holds it until dropped. URIs that an earlier process was issued
    /// are back in their queues. Takes look-ups, however large the store.
    ///
    /// # Errors
    /// Where the folder cannot be used, a living process has it open, another version wrote it, or it is damaged.
    pub fn open(dir: &Path, config: Config) -> Result<Self, Error> {
        let store = Store::open(dir, config.cache_bytes)?;
        let memory = Memory::open(&store)?;
        Ok(Self {
            store,
            config,
            memory,
            is_broken: false,
        })
    }

    /// Puts what is unknown into its queue, and moves what is known where the candidate gives a reason to. Answers stand
    /// in the order of the candidates. All of them are one batch: thousands are well, millions are too many.
    ///
    /// # Errors
    /// Where the store fails; then none of the candidates is scheduled.
    pub fn schedule(
        &mut self,
        candidates: Vec<Candidate>,
        now: Timestamp,
    ) -> Result<Vec<Scheduled>, Error> {
        self.attempt(|frontier| {
            let (written, answers) = {
                let mut change = frontier.change(now);
                let answers = admit(&mut change, &frontier.memory, candidates, Origin::Caller)?;
                (change.write()?, answers)
            };
            frontier.memory.follow(written);
            Ok(answers)
        })
    }

    /// The URI to fetch now, if there is one: from the queue that has been ready longest among those of the lowest
    /// precedence, the first by directive, precedence, due time and arrival. A queue has one URI in process at a time.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn next(&mut self, now: Timestamp) -> Result<Next, Error> {
        self.attempt(|frontier| {
            frontier.put_back_recovered(now)?;
            loop {
                let memory = &mut frontier.memory;
                let busy_queues = &memory.busy_queues;
                let first = memory
                    .line
                    .first(&frontier.store, instant::floor(now), |queue| {
                        busy_queues.contains(queue)
                    })?;
                let queue: Arc<str> = match first {
                    First::Ready(queue) => Arc::from(queue),
                    First::At(wake) => return Ok(Next::WaitUntil(instant::timestamp(wake))),
                    First::Nobody if frontier.memory.busy.is_empty() => return Ok(Next::Empty),
                    First::Nobody => return Ok(Next::InProcess),
                };
                frontier.move_due(&queue, now)?;
                match frontier.memory.head(&frontier.store, &queue)? {
                    Some((ready_key, record_key)) => {
                        return frontier.issue(queue, &ready_key, &record_key, now);
                    }
                    // Its first URI was taken away meanwhile.
                    None => frontier.apply(now, |change| change.line_up_again(&queue))?,
                }
            }
        })
    }

    /// Takes an issued URI back, with all that its fetch brought, in one batch.
    ///
    /// # Errors
    /// [`Error::UnknownTicket`], which changes nothing. Where the store fails; then the URI is back in its queue when
    /// the store is opened again.
    pub fn finished(
        &mut self,
        ticket: Ticket,
        outcome: Outcome,
        now: Timestamp,
    ) -> Result<Finished, Error> {
        let Ticket(number) = ticket;
        let busy = self
            .memory
            .busy
            .get(&number)
            .cloned()
            .ok_or(Error::UnknownTicket(number))?;
        self.attempt(|frontier| {
            let (written, finished) = {
                let mut change = frontier.change(now);
                change.issued.insert(number.to_be_bytes().to_vec(), None);
                change.line_up_again(&busy.queue)?;
                let (disposition, scheduled) = frontier.settle(&mut change, &busy, outcome)?;
                let next_ready = change
                    .queue(&busy.queue)?
                    .next_ready()
                    .max(instant::floor(now));
                let finished = Finished {
                    disposition,
                    scheduled,
                    queue_ready: instant::timestamp(next_ready),
                };
                (change.write()?, finished)
            };
            frontier.memory.release(number);
            frontier.memory.follow(written);
            Ok(finished)
        })
    }

    /// The crawl in numbers, as of the last call.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let in_process = self.memory.busy.len() as u64;
        let counted = self.memory.counters.statistics;
        Statistics {
            queued: counted.queued.saturating_sub(in_process),
            in_process,
            ..counted
        }
    }

    /// What is known of exactly this URI.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn record(&self, uri: &Uri) -> Result<Option<UriRecord>, Error> {
        let key = uri.key();
        if key.len() > RECORD_KEY_BYTES_MAX {
            return Ok(None);
        }
        let Some(bytes) = self.store.uris.get(&key)? else {
            return Ok(None);
        };
        let record = decode("a record of a URI", key.as_bytes(), &bytes)?;
        Ok(Some(UriRecord {
            uri: uri.as_str().to_owned(),
            ..record
        }))
    }

    /// All records whose key ([`Uri::key`]: the URI in SURT order) begins with `key_prefix`, in that order. Of what
    /// changes meanwhile, some is seen and some is not.
    pub fn records(
        &self,
        key_prefix: &str,
    ) -> impl Iterator<Item = Result<UriRecord, Error>> + use<> {
        self.store.uris.prefix(key_prefix).map(|guard| {
            let (key, bytes) = guard.into_inner()?;
            let uri = uri_of(&key)?;
            let record: UriRecord = decode("a record of a URI", &key, &bytes)?;
            Ok(UriRecord {
                uri: uri.as_str().to_owned(),
                ..record
            })
        })
    }

    /// Up to `queues_max` queues in the order of their names, from the first one behind `after` on.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn queues(
        &self,
        after: Option<&str>,
        queues_max: usize,
        now: Timestamp,
    ) -> Result<Vec<QueueReport>, Error> {
        let mut from = after.unwrap_or_default().as_bytes().to_vec();
        if after.is_some() {
            from.push(0);
        }
        self.store
            .queues
            .range(from..)
            .take(queues_max)
            .map(|guard| self.report(guard, now))
            .collect()
    }

    /// The queues that hold most URIs, the largest first. Reads all queues.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn busiest(&self, queues_max: usize, now: Timestamp) -> Result<Vec<QueueReport>, Error> {
        let mut busiest: Vec<QueueReport> = Vec::new();
        for guard in self.store.queues.iter() {
            busiest.push(self.report(guard, now)?);
            // Sorted now and then, so that memory holds a few times what was asked for.
            if busiest.len() > queues_max.saturating_mul(4).max(1024) {
                keep_largest(&mut busiest, queues_max);
            }
        }
        keep_largest(&mut busiest, queues_max);
        Ok(busiest)
    }

    /// What was kept under a server's name.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn server(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        if name.is_empty() || name.len() > RECORD_KEY_BYTES_MAX {
            return Ok(None);
        }
        Ok(self.store.servers.get(name)?.map(|value| value.to_vec()))
    }

    /// Keeps a small value under a server's name: its robots.txt, its addresses.
    ///
    /// # Errors
    /// [`Error::Name`] where the name is empty or longer than [`RECORD_KEY_BYTES_MAX`]. Where the store fails.
    pub fn put_server(&mut self, name: &str, value: &[u8]) -> Result<(), Error> {
        if name.is_empty() || name.len() > RECORD_KEY_BYTES_MAX {
            return Err(Error::Name { bytes: name.len() });
        }
        self.attempt(|frontier| Ok(frontier.store.servers.insert(name, value)?))
    }

    /// What the job left in the store to know it by; none in a new store.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn identity(&self) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.store.meta.get("identity")?.map(|value| value.to_vec()))
    }

    /// Leaves something in the store to know the job by: what fixes the identity of URIs and queues, say.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn set_identity(&mut self, identity: &[u8]) -> Result<(), Error> {
        self.attempt(|frontier| Ok(frontier.store.meta.insert("identity", identity)?))
    }

    /// Gives a queue the crawl-delay of its robots.txt, or takes it away. Holds from the end of its next fetch, the one
    /// in process included. Respected up to [`Politeness::crawl_delay_max`].
    ///
    /// # Errors
    /// [`Error::Name`] where no queue can have this name. Where the store fails.
    pub fn set_crawl_delay(
        &mut self,
        queue: &str,
        crawl_delay: Option<Duration>,
    ) -> Result<(), Error> {
        self.set(queue, |record| record.crawl_delay = crawl_delay)
    }

    /// Gives a queue a politeness of its own, or takes it away. Holds from the end of its next fetch, the one in process
    /// included.
    ///
    /// # Errors
    /// [`Error::Name`] where no queue can have this name. Where the store fails.
    pub fn set_politeness(
        &mut self,
        queue: &str,
        politeness: Option<Politeness>,
    ) -> Result<(), Error> {
        self.set(queue, |record| record.politeness = politeness)
    }

    /// Removes a URI, so that it may be found again. False where it is unknown or in process.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn forget(&mut self, uri: &Uri, now: Timestamp) -> Result<bool, Error> {
        self.withdraw(uri, now, |change, key, mut record| {
            change.stand(&mut record, Standing::Open);
            let discovered = &mut change.counters.statistics.discovered;
            *discovered = discovered.saturating_sub(1);
            change.remove(key, record.canonical);
        })
    }

    /// Takes a URI out of its queue and keeps it known, so that it is not found again. Forcing it brings it back. False
    /// where it is unknown or in process.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn delete(&mut self, uri: &Uri, now: Timestamp) -> Result<bool, Error> {
        self.withdraw(uri, now, |change, key, mut record| {
            record.place = Place::Deleted;
            change.put(key, record);
        })
    }

    /// Writes everything acknowledged through to the disk, so that it survives the loss of power.
    ///
    /// # Errors
    /// Where the store fails.
    pub fn persist(&self) -> Result<(), Error> {
        self.store.persist()
    }

    /// Runs what may fail halfway; if it does, memory is not trusted any more.
    fn attempt<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.is_broken {
            return Err(Error::Broken);
        }
        let result = run(self);
        self.is_broken = result.is_err();
        result
    }

    fn change(&self, now: Timestamp) -> Change<'_> {
        let memory = &self.memory;
        Change::new(
            &self.store,
            &self.config,
            &memory.queues,
            &memory.busy_queues,
            memory.counters,
            now,
        )
    }

    fn apply(
        &mut self,
        now: Timestamp,
        alter: impl FnOnce(&mut Change<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let written: Written = {
            let mut change = self.change(now);
            alter(&mut change)?;
            change.write()?
        };
        self.memory.follow(written);
        Ok(())
    }

    fn set(&mut self, queue: &str, set: impl FnOnce(&mut QueueRecord)) -> Result<(), Error> {
        if !is_queue_name(queue) {
            return Err(Error::Name { bytes: queue.len() });
        }
        // A queue's settings do not depend on the time, and it keeps its place in the line.
        self.attempt(|frontier| {
            frontier.apply(Timestamp::UNIX_EPOCH, |change| {
                set(change.queue(queue)?);
                Ok(())
            })
        })
    }

    fn withdraw(
        &mut self,
        uri: &Uri,
        now: Timestamp,
        then: impl FnOnce(&mut Change<'_>, &str, UriRecord),
    ) -> Result<bool, Error> {
        let key = uri.key();
        if key.len() > RECORD_KEY_BYTES_MAX || self.memory.is_record_busy(&key) {
            return Ok(false);
        }
        self.attempt(|frontier| {
            let mut is_known = false;
            frontier.apply(now, |change| {
                let Some(record) = change.record(&key)? else {
                    return Ok(());
                };
                is_known = true;
                change.take_queued(&record)?;
                if matches!(record.place, Place::Queued { .. }) {
                    let queued = &mut change.counters.statistics.queued;
                    *queued = queued.saturating_sub(1);
                }
                then(change, &key, record);
                Ok(())
            })?;
            Ok(is_known)
        })
    }

    /// Queues of which a URI was in process when an earlier process ended rest as if that fetch had ended only now, and
    /// had taken long: nobody knows when it did.
    fn put_back_recovered(&mut self, now: Timestamp) -> Result<(), Error> {
        if self.memory.recovered.is_empty() {
            return Ok(());
        }
        let recovered = std::mem::take(&mut self.memory.recovered);
        let default = self.config.politeness;
        tracing::info!(
            uris = recovered.len(),
            "put back what was in process when the store was last closed"
        );
        self.apply(now, |change| {
            for (ticket, issued) in &recovered {
                change.issued.insert(ticket.to_be_bytes().to_vec(), None);
                if !politeness::is_free(uri_of(issued.record_key.as_bytes())?.as_str()) {
                    let record = change.queue(&issued.queue)?;
                    let rest = politeness::longest_rest(
                        &record.politeness.unwrap_or(default),
                        record.crawl_delay,
                    );
                    // Should the clock have gone back, the rest from when it was issued is the longer one.
                    let from_issue = instant::after(instant::timestamp(issued.at), rest);
                    record.set_next_ready(record.next_ready().max(from_issue));
                    change.rest(&issued.queue, rest)?;
                }
                change.line_up_again(&issued.queue)?;
            }
            Ok(())
        })
    }

    /// Moves what has become due in a queue to what is ready there.
    fn move_due(&mut self, queue: &Arc<str>, now: Timestamp) -> Result<(), Error> {
        let first_due = match self.memory.queues.get(queue) {
            Some(record) => record.first_due,
            None => match change::read_queue(&self.store, queue)? {
                Some(record) => {
                    let first_due = record.first_due;
                    self.memory.queues.insert(queue.clone(), record);
                    first_due
                }
                None => {
                    return Err(damaged(
                        "a turn of a queue without a record",
                        queue.as_bytes(),
                    ));
                }
            },
        };
        let now_millis = instant::floor(now);
        if first_due > now_millis {
            return Ok(());
        }
        let (due, next_due) = Memory::due(&self.store, queue, first_due, now_millis, MOVED_MAX)?;
        self.apply(now, |change| change.move_due(queue, due, next_due))
    }

    fn issue(
        &mut self,
        queue: Arc<str>,
        ready_key: &[u8],
        record_key: &[u8],
        now: Timestamp,
    ) -> Result<Next, Error> {
        let rank = keys::rank(ready_key).ok_or_else(|| damaged("a malformed rank", ready_key))?;
        let uri = uri_of(record_key)?;
        let key = String::from_utf8_lossy(record_key).into_owned();
        let bytes = self
            .store
            .uris
            .get(record_key)?
            .ok_or_else(|| damaged("a queued URI without a record", record_key))?;
        let mut record: UriRecord = decode("a record of a URI", record_key, &bytes)?;
        uri.as_str().clone_into(&mut record.uri);

        let ticket = self.memory.next_ticket;
        let now_millis = instant::floor(now);
        let issued = Issued {
            record_key: key.clone(),
            queue: queue.to_string(),
            at: now_millis,
        };
        // Its place in the queue and in the line stay in the store, where a later process would find them.
        self.store
            .issued
            .insert(ticket.to_be_bytes(), encode(&issued)?)?;
        self.memory.next_ticket += 1;
        if let Some(held) = self.memory.queues.get(&queue)
            && let Some(turn) = held.turn
        {
            self.memory.line.remove(held.precedence, turn, &queue);
        }
        self.memory.issue(
            ticket,
            Busy {
                record_key: key,
                queue: queue.clone(),
            },
        );
        let overdue = u64::try_from(now_millis.saturating_sub(rank.due)).unwrap_or(0);
        Ok(Next::Issue(Box::new(Issue {
            ticket: Ticket(ticket),
            uri,
            record,
            queue: queue.to_string(),
            due: instant::timestamp(rank.due),
            overdue: Duration::from_millis(overdue),
        })))
    }

    /// What an outcome does to its URI, its queue and what it brought.
    fn settle(
        &self,
        change: &mut Change<'_>,
        busy: &Busy,
        outcome: Outcome,
    ) -> Result<(Disposition, Vec<Scheduled>), Error> {
        let Busy {
            record_key: key,
            queue,
        } = busy;
        let mut record = change.known_record(key)?;
        let rank = change::rank(&record)
            .ok_or_else(|| damaged("a URI in process that is not queued", key.as_bytes()))?;

        let outcome = match outcome {
            Outcome::Deferred { prerequisites } => {
                return self.defer(change, busy, record, rank, prerequisites);
            }
            outcome => outcome,
        };
        let fetch_duration = match &outcome {
            Outcome::Succeeded(success) => Some(success.fetch_duration),
            Outcome::Retry { fetch_duration, .. }
            | Outcome::Disregarded { fetch_duration, .. }
            | Outcome::Failed { fetch_duration, .. } => *fetch_duration,
            Outcome::Deferred { .. } => None,
        };
        if let Some(fetch_duration) = fetch_duration
            && !politeness::is_free(uri_of(key.as_bytes())?.as_str())
        {
            let rest = change.polite_rest(queue, fetch_duration)?;
            change.rest(queue, rest)?;
        }
        record.deferrals = 0;

        match outcome {
            Outcome::Succeeded(success) => {
                let Success {
                    visit,
                    wait,
                    outlinks,
                    ..
                } = *success;
                let counted = change.queue(queue)?;
                counted.failures = 0;
                counted.succeeded += 1;
                visit::note(
                    &mut record,
                    &mut change.counters.statistics,
                    visit,
                    change.now,
                    self.config.history_length,
                );
                change.stand(&mut record, Standing::Succeeded);
                record.wait = wait.or(record.wait);
                let canonical = record.canonical;
                let disposition = match self.complete(change, busy, record, rank, wait)? {
                    Some(again) => Disposition::Waiting(again),
                    None => Disposition::Done,
                };
                let scheduled = admit(change, &self.memory, outlinks, Origin::Document(canonical))?;
                Ok((disposition, scheduled))
            }
            Outcome::Retry { status, after, .. } => {
                let politeness = change
                    .queue(queue)?
                    .politeness
                    .unwrap_or(self.config.politeness);
                let counted = change.queue(queue)?;
                counted.failures = counted.failures.saturating_add(1);
                let back_off = politeness::back_off(&self.config, counted.failures);
                let asked = after.unwrap_or_default().min(politeness.retry_after_max);
                change.rest(queue, back_off.max(asked))?;
                record.status = status;
                record.attempts += 1;
                if record.attempts > self.config.max_retries {
                    let tries = record.attempts;
                    let again = self.fail(change, busy, record, rank, status)?;
                    return Ok((
                        Disposition::GivenUp {
                            status,
                            tries,
                            again,
                        },
                        Vec::new(),
                    ));
                }
                change.counters.statistics.retries += 1;
                let attempts = record.attempts;
                // Behind the others of its rank, so that one bad URI does not hold them up; but what others depend on
                // stays before them.
                if rank.directive == Directive::Highest {
                    change.put(key, record);
                } else {
                    self.put_behind(change, busy, record, rank)?;
                }
                Ok((Disposition::Retrying { attempts }, Vec::new()))
            }
            Outcome::Failed { status, .. } => {
                let disposition = match self.fail(change, busy, record, rank, status)? {
                    Some(again) => Disposition::Waiting(again),
                    None => Disposition::Done,
                };
                Ok((disposition, Vec::new()))
            }
            Outcome::Disregarded { status, .. } => {
                record.status = status;
                change.stand(&mut record, Standing::Disregarded);
                let wait = self.probe_wait(&record);
                let disposition = match self.complete(change, busy, record, rank, wait)? {
                    Some(again) => Disposition::Waiting(again),
                    None => Disposition::Done,
                };
                Ok((disposition, Vec::new()))
            }
            Outcome::Deferred { .. } => Err(damaged("a deferral settled twice", key.as_bytes())),
        }
    }

    fn defer(
        &self,
        change: &mut Change<'_>,
        busy: &Busy,
        mut record: UriRecord,
        rank: Rank,
        prerequisites: Vec<Candidate>,
    ) -> Result<(Disposition, Vec<Scheduled>), Error> {
        record.deferrals += 1;
        if record.deferrals > self.config.max_deferrals {
            let tries = record.deferrals;
            record.deferrals = 0;
            let status = PREREQUISITE_FAILED;
            let again = self.fail(change, busy, record, rank, status)?;
            return Ok((
                Disposition::GivenUp {
                    status,
                    tries,
                    again,
                },
                Vec::new(),
            ));
        }
        change.counters.statistics.deferrals += 1;
        change.put(&busy.record_key, record);
        let scheduled = admit(
            change,
            &self.memory,
            prerequisites,
            Origin::Prerequisites(&busy.queue),
        )?;
        if rank.directive == Directive::Highest {
            // One prerequisite depends on another, which has just been put behind it.
            let record = change.known_record(&busy.record_key)?;
            self.put_behind(change, busy, record, rank)?;
        }
        Ok((Disposition::Deferred, scheduled))
    }

    fn put_behind(
        &self,
        change: &mut Change<'_>,
        busy: &Busy,
        mut record: UriRecord,
        rank: Rank,
    ) -> Result<(), Error> {
        change.take_ready(&busy.queue, rank)?;
        let behind = Rank {
            due: rank.due.max(instant::floor(change.now)),
            arrival: change.counters.arrival(),
            ..rank
        };
        record.place = change::place(behind);
        change.put_ready(&busy.queue, behind, &busy.record_key)?;
        change.put(&busy.record_key, record);
        Ok(())
    }

    /// A turn that ended without a response, for good or for a long while.
    fn fail(
        &self,
        change: &mut Change<'_>,
        busy: &Busy,
        mut record: UriRecord,
        rank: Rank,
        status: i32,
    ) -> Result<Option<Timestamp>, Error> {
        record.status = status;
        let past = PastVisit {
            at: change.now,
            status,
            state: crate::ContentState::Unknown,
            size: None,
        };
        visit::remember(&mut record, past, self.config.history_length);
        change.stand(&mut record, Standing::Failed);
        let wait = self.probe_wait(&record);
        self.complete(change, busy, record, rank, wait)
    }

    /// How long what failed or was disregarded waits; none under snapshot.
    fn probe_wait(&self, record: &UriRecord) -> Option<Duration> {
        (record.strategy == Strategy::Revisit).then_some(self.config.max_wait)
    }

    /// Takes a URI whose turn is complete out of what is ready, and lets it wait if it shall.
    fn complete(
        &self,
        change: &mut Change<'_>,
        busy: &Busy,
        mut record: UriRecord,
        rank: Rank,
        wait: Option<Duration>,
    ) -> Result<Option<Timestamp>, Error> {
        let Busy {
            record_key: key,
            queue,
        } = busy;
        record.attempts = 0;
        change.take_ready(queue, rank)?;
        change.queue(queue)?.finished += 1;
        let due: Option<Millis> = wait.map(|wait| instant::after(change.now, wait));
        match due {
            Some(due) => {
                let arrival = change.counters.arrival();
                let rank = Rank {
                    directive: Directive::Normal,
                    precedence: record.precedence,
                    due,
                    arrival,
                };
                record.place = change::place(rank);
                change.put_waiting(queue, rank, key)?;
            }
            None => {
                record.place = Place::Done;
                let queued = &mut change.counters.statistics.queued;
                *queued = queued.saturating_sub(1);
            }
        }
        change.put(key, record);
        Ok(due.map(instant::timestamp))
    }

    fn report(&self, guard: fjall::Guard, now: Timestamp) -> Result<QueueReport, Error> {
        let (key, bytes) = guard.into_inner()?;
        let name = std::str::from_utf8(&key).map_err(|_| damaged("a queue's name", &key))?;
        let record = decode("a queue's record", &key, &bytes)?;
        Ok(QueueReport::new(
            name,
            &record,
            self.memory.busy_queues.contains(name),
            now,
        ))
    }
}

fn keep_largest(queues: &mut Vec<QueueReport>, queues_max: usize) {
    queues.sort_by(|a, b| {
        (b.ready + b.waiting)
            .cmp(&(a.ready + a.waiting))
            .then_with(|| a.queue.cmp(&b.queue))
    });
    queues.truncate(queues_max);
}

fn uri_of(record_key: &[u8]) -> Result<Uri, Error> {
    std::str::from_utf8(record_key)
        .ok()
        .and_then(|key| Uri::from_key(key).ok())
        .ok_or_else(|| damaged("a record key that is no URI", record_key))
}

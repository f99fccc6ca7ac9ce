//! The state machine: `schedule`, `next`, `finished`. `outcome_effects.rs` records outcomes. Other files have the rest of
//! [`Frontier`]: `operator_commands.rs` has operator commands, `report.rs` has queries, `caller_values.rs` keeps values of the
//! caller.

use std::{path::Path, sync::Arc, time::Duration};

use jiff::Timestamp;
use opilio_uri::Uri;

use crate::{
    Candidate, FinishResult, FrontierConfig, FrontierError, Issue, Next, Outcome, OverQuota, Quota,
    ScheduleResult, TallyKind, Ticket, UriRecord,
    admission::{self, Origin, admit},
    candidate::is_queue_name,
    change::{self, WriteBatch},
    in_process::{Busy, Issued},
    instant::{self, Millis},
    keys,
    memory::{Memory, WrittenBatch},
    outcome_effects,
    queue::QueueRecord,
    queue_order::{First, Ordering},
    reconsideration,
    record::{is_free, is_prerequisite},
    site::SiteCache,
    store::{Store, damaged, decode, encode},
};

/// URIs that are moved at a time from the waiting to the ready ones. After a long stop a queue may have more of them due at once.
/// Then the earliest due are moved first and the others later.
const MOVED_MAX: usize = 10_000;

/// Pause of a queue whose next URI may exceed a quota, depending on URIs that are in process elsewhere.
const QUOTA_PAUSE: Duration = Duration::from_secs(1);

/// Pause before a caller asks again to reserve a queue that has a URI in process.
const RESERVATION_PAUSE: Duration = Duration::from_millis(100);

/// The frontier: it decides which URI is fetched next, and when.
///
/// The frontier has no clock: every call that depends on the time gets it as an argument. Times should not go backwards; if they
/// do, delays grow longer, never shorter. Every call that changes anything writes one atomic batch and returns when the operating
/// system has it. An acknowledged change survives the death of the process, unless [`FrontierConfig::survives`] is `false`.
/// [`Frontier::persist`] protects against power loss.
///
/// After an error other than [`FrontierError::UnknownTicket`] or [`FrontierError::Name`] the frontier answers
/// [`FrontierError::Broken`] and must be opened again.
pub struct Frontier {
    pub(crate) store: Store,
    pub(crate) config: FrontierConfig,
    pub(crate) memory: Memory,
    pub(crate) sites: SiteCache,
    /// Entries of the outbox up to this number have been removed. A scan that began before them would pass the remains of each.
    pub(crate) outbox_removed: u64,
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

/// The decision of the quotas about a URI that could be issued.
enum Admittance {
    /// Issue it. It counts in these tallies once it is finished.
    Counted(Vec<Vec<u8>>),
    /// Do not fetch it.
    Over(OverQuota),
    /// The decision depends on URIs in process.
    Unsettled,
}

impl Frontier {
    /// Opens the store in this folder, or makes one, and locks it until dropped. URIs that were in process in an earlier process
    /// are back in their queues. Opening takes a few look-ups, however large the store.
    ///
    /// # Errors
    /// The folder cannot be used, a living process has the store open, the store is of another format, or it is damaged.
    pub fn open(dir: &Path, config: FrontierConfig) -> Result<Self, FrontierError> {
        let store = Store::open(dir, &config)?;
        let memory = Memory::open(&store)?;
        Ok(Self {
            store,
            config,
            memory,
            sites: SiteCache::new(),
            outbox_removed: 0,
            is_broken: false,
        })
    }

    /// Puts unknown candidates into their queues, and moves known URIs if the candidate gives a reason. The answers are in the
    /// order of the candidates. All candidates are one batch: a hundred thousand are fine, millions are too many.
    ///
    /// # Errors
    /// Fails if the store fails; then none of the candidates is scheduled.
    pub fn schedule(
        &mut self,
        candidates: Vec<Candidate>,
        now: Timestamp,
    ) -> Result<Vec<ScheduleResult>, FrontierError> {
        self.attempt(|frontier| {
            frontier.write_change(now, |change| admit(change, candidates, Origin::Caller))
        })
    }

    /// Returns for each of these links of a page whether it would change nothing. That is the case if its canonical form is known
    /// from a candidate of the same source, and the link has no reason to move a known URI. [`Frontier::finished`] would answer
    /// [`ScheduleResult::Known`]. Embeds always count as changes, since the frontier keeps track of the embeds of a page.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn changes_nothing<'c>(
        &mut self,
        links: impl Iterator<Item = &'c Candidate>,
    ) -> Result<Vec<bool>, FrontierError> {
        self.attempt(|frontier| {
            let Self {
                store,
                config,
                memory,
                ..
            } = frontier;
            links
                .map(|link| admission::changes_nothing(store, config, &mut memory.seen, link))
                .collect()
        })
    }

    /// The URI to fetch now, if there is one. It comes from the queue that has been ready longest among those of the best
    /// precedence, active queues first. Within the queue, URIs are ordered by directive, precedence, due time and arrival.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn next(&mut self, now: Timestamp) -> Result<Next, FrontierError> {
        self.attempt(|frontier| {
            frontier.put_back_recovered(now)?;
            let now_millis = instant::floor(now);
            let paid_until = frontier.memory.counters.paid_until;
            if paid_until > now_millis {
                return Ok(Next::WaitUntil(instant::timestamp(paid_until)));
            }
            for key in frontier.memory.groups.woken(now_millis) {
                frontier.memory.order.insert_key(key);
            }
            loop {
                let first = frontier.first_queue(now_millis)?;
                let memory = &mut frontier.memory;
                let woken = memory.groups.first_waking(frontier.config.precedence_floor);
                let (queue, key) = match (first, woken) {
                    (First::Ready { queue, key }, _) => (Arc::<str>::from(queue), key),
                    (First::At { wake, .. }, woken) => {
                        let wake = woken.map_or(wake, |woken| woken.min(wake));
                        return Ok(Next::WaitUntil(instant::timestamp(wake)));
                    }
                    (First::NoQueue, Some(woken)) => {
                        return Ok(Next::WaitUntil(instant::timestamp(woken)));
                    }
                    (First::NoQueue, None) if memory.busy.is_empty() => return Ok(Next::Empty),
                    (First::NoQueue, None) => return Ok(Next::InProcess),
                };
                if let Some(issue) = frontier.issue_from(&queue, key, now)? {
                    return Ok(Next::Issue(Box::new(issue)));
                }
            }
        })
    }

    /// Takes an issued URI back, with all results of its fetch, in one batch.
    ///
    /// # Errors
    /// [`FrontierError::UnknownTicket`], and [`FrontierError::Name`] if nothing can be kept under a name: both change nothing.
    /// Fails if the store fails; then the URI is back in its queue when the store is opened again.
    pub fn finished(
        &mut self,
        ticket: Ticket,
        outcome: Outcome,
        now: Timestamp,
    ) -> Result<FinishResult, FrontierError> {
        let Ticket(number) = ticket;
        let busy = self
            .memory
            .busy
            .get(&number)
            .cloned()
            .ok_or(FrontierError::UnknownTicket(number))?;
        if let Outcome::Succeeded(success) = &outcome {
            success.check_names()?;
        }
        self.attempt(|frontier| {
            let (written, finished) = {
                let mut change = frontier.change(now);
                change.finishes(&busy);
                change.issued.insert(number.to_be_bytes().to_vec(), None);
                change.take_new_place(&busy.queue)?;
                let (disposition, scheduled) = outcome_effects::apply(&mut change, &busy, outcome)?;
                let next_ready = change
                    .queue(&busy.queue)?
                    .next_ready(&frontier.config)
                    .max(instant::floor(now));
                let finished = FinishResult {
                    disposition,
                    scheduled,
                    queue_ready: instant::timestamp(next_ready),
                };
                (change.write()?, finished)
            };
            frontier.memory.release(number);
            frontier.update(written);
            let memory = &mut frontier.memory;
            if let Some((group, slot)) = &busy.group {
                memory.groups.release(group, *slot, frontier.config.group);
            }
            Ok(finished)
        })
    }

    /// The identity that the job left in the store; `None` in a new store.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn identity(&self) -> Result<Option<Vec<u8>>, FrontierError> {
        Ok(self.store.meta.get("identity")?.map(|value| value.to_vec()))
    }

    /// Stores the identity of the job, such as the settings that fix the identity of URIs and queues.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn set_identity(&mut self, identity: &[u8]) -> Result<(), FrontierError> {
        self.attempt(|frontier| Ok(frontier.store.meta.insert("identity", identity)?))
    }

    /// Sets or removes the crawl-delay of a queue, from its robots.txt. It applies from the end of the queue's next fetch, the
    /// one in process included, up to [`Politeness::crawl_delay_max`](crate::Politeness::crawl_delay_max).
    ///
    /// # Errors
    /// [`FrontierError::Name`] if no queue can have this name. Fails if the store fails.
    pub fn set_crawl_delay(
        &mut self,
        queue: &str,
        crawl_delay: Option<Duration>,
        now: Timestamp,
    ) -> Result<(), FrontierError> {
        self.set(queue, now, |record| record.crawl_delay = crawl_delay)
    }

    /// Reserves a queue for a request to its server that belongs to none of its URIs, such as a robots.txt to which another site
    /// redirects. Until [`Frontier::release_queue`] the queue issues no URI. If the process dies before that, the queue waits as
    /// after any other request. `uri` is the requested URI. Returns `None` if the queue is reserved, otherwise the time to ask
    /// again.
    ///
    /// # Errors
    /// [`FrontierError::Name`] if no queue can have this name. Fails if the store fails.
    pub fn reserve_queue(
        &mut self,
        queue: &str,
        uri: &Uri,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, FrontierError> {
        if !is_queue_name(queue) {
            return Err(FrontierError::Name { bytes: queue.len() });
        }
        self.attempt(|frontier| {
            frontier.put_back_recovered(now)?;
            let record = change::read_queue(&frontier.store, queue)?;
            let config = &frontier.config;
            let record = record.unwrap_or_else(|| QueueRecord::new(queue, config));
            let ready = record.next_ready(config);
            let ready = ready.max(frontier.taken_over_until(&record));
            let memory = &mut frontier.memory;
            let is_busy =
                memory.busy_queues.contains_key(queue) || memory.borrowed.contains_key(queue);
            if is_busy {
                let soon = instant::after(now, RESERVATION_PAUSE);
                return Ok(Some(instant::timestamp(ready.max(soon))));
            }
            if ready > instant::floor(now) {
                return Ok(Some(instant::timestamp(ready)));
            }
            let ticket = memory.next_ticket;
            let issued = Issued {
                record_key: uri.key(),
                queue: queue.to_owned(),
                slot: 0,
                group: None,
                at: instant::floor(now),
            };
            frontier
                .store
                .in_process
                .insert(ticket.to_be_bytes(), encode(&issued)?)?;
            memory.next_ticket += 1;
            memory.borrowed.insert(queue.to_owned(), ticket);
            Ok(None)
        })
    }

    /// Ends the reservation of a queue. The queue waits as after a fetch that took this long.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn release_queue(
        &mut self,
        queue: &str,
        took: Duration,
        now: Timestamp,
    ) -> Result<(), FrontierError> {
        self.attempt(|frontier| {
            let Some(ticket) = frontier.memory.borrowed.remove(queue) else {
                return Ok(());
            };
            // A queue that has held no URI yet waits as well: its first URI may come at once.
            frontier.write_change(now, |change| {
                change.issued.insert(ticket.to_be_bytes().to_vec(), None);
                let delay = change.politeness_delay(queue, took)?;
                change.delay_queue(queue, delay)?;
                change.take_new_place(queue)
            })
        })
    }

    /// Sets the address group of a queue: the address of its server. `None` takes it out of its group. A group that the queue's
    /// settings name has priority.
    ///
    /// # Errors
    /// [`FrontierError::Name`] if no queue or group can have this name. Fails if the store fails.
    pub fn set_address_group(
        &mut self,
        queue: &str,
        group: Option<&str>,
        now: Timestamp,
    ) -> Result<(), FrontierError> {
        if let Some(group) = group
            && !is_queue_name(group)
        {
            return Err(FrontierError::Name { bytes: group.len() });
        }
        self.set(queue, now, |record| {
            record.address_group = group.map(str::to_owned);
        })
    }

    /// Adds to the time spent crawling.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn add_run_time(&mut self, run_time: Duration) -> Result<(), FrontierError> {
        self.attempt(|frontier| {
            let counters = &mut frontier.memory.counters;
            let total = &mut counters.statistics.run_time;
            *total = total.saturating_add(run_time);
            let counters = encode(counters)?;
            Ok(frontier.store.meta.insert("counters", counters)?)
        })
    }

    /// Writes everything acknowledged through to the disk, so that it survives the loss of power.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn persist(&self) -> Result<(), FrontierError> {
        self.store.persist()
    }

    /// Runs a call that may fail halfway. If it fails, memory is not trusted any more.
    pub(crate) fn attempt<T>(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<T, FrontierError>,
    ) -> Result<T, FrontierError> {
        if self.is_broken {
            return Err(FrontierError::Broken);
        }
        let result = run(self);
        self.is_broken = result.is_err();
        result
    }

    fn change(&self, now: Timestamp) -> WriteBatch<'_> {
        WriteBatch::new(&self.store, &self.config, &self.memory, now)
    }

    /// Writes the change that `alter` makes.
    pub(crate) fn write_change<T>(
        &mut self,
        now: Timestamp,
        alter: impl FnOnce(&mut WriteBatch<'_>) -> Result<T, FrontierError>,
    ) -> Result<T, FrontierError> {
        let (written, answer): (WrittenBatch, T) = {
            let mut change = self.change(now);
            let answer = alter(&mut change)?;
            (change.write()?, answer)
        };
        self.update(written);
        Ok(answer)
    }

    /// Updates what is held in memory after a change has been written.
    fn update(&mut self, written: WrittenBatch) {
        self.sites
            .update(&written.site_values, &written.site_figures);
        self.memory.update(written);
    }

    fn set(
        &mut self,
        queue: &str,
        now: Timestamp,
        set: impl FnOnce(&mut QueueRecord),
    ) -> Result<(), FrontierError> {
        if !is_queue_name(queue) {
            return Err(FrontierError::Name { bytes: queue.len() });
        }
        self.attempt(|frontier| {
            frontier.write_change(now, |change| {
                set(change.queue(queue)?);
                Ok(())
            })
        })
    }

    /// Delays the queues that had a URI in process when an earlier process ended. They wait as if that fetch had ended only now
    /// and had taken long, because its end is unknown.
    pub(crate) fn put_back_recovered(&mut self, now: Timestamp) -> Result<(), FrontierError> {
        if self.memory.recovered.is_empty() {
            return Ok(());
        }
        let recovered = std::mem::take(&mut self.memory.recovered);
        let group_delay = self.config.group.min_delay;
        tracing::info!(
            uris = recovered.len(),
            "put URIs back that were in process when the store was last closed"
        );
        self.write_change(now, |change| {
            for (ticket, issued) in &recovered {
                change.issued.insert(ticket.to_be_bytes().to_vec(), None);
                if !is_free(uri_of(issued.record_key.as_bytes())?.as_str()) {
                    let config = change.config;
                    let record = change.queue(&issued.queue)?;
                    let politeness = &record.settings(config).politeness;
                    let delay = politeness.longest_delay(record.crawl_delay);
                    // If the clock went back, the delay counted from the time of issue is the longer one.
                    let issued_at = instant::timestamp(issued.at);
                    record.delay_slot(issued.slot, instant::after(issued_at, delay));
                    change.delay_slot(&issued.queue, issued.slot, delay)?;
                    if let Some((group, slot)) = &issued.group {
                        let until = instant::after(now.max(issued_at), group_delay);
                        change.delay_group(group, *slot, until)?;
                    }
                }
                change.take_new_place(&issued.queue)?;
            }
            Ok(())
        })
    }

    /// The first queue in the queue order that may issue a URI, or that will.
    pub(crate) fn first_queue(&mut self, now: Millis) -> Result<First, FrontierError> {
        let ordering = Ordering {
            floor: self.config.precedence_floor,
            ageing: self.config.ageing,
        };
        let memory = &mut self.memory;
        let (busy_queues, borrowed) = (&memory.busy_queues, &memory.borrowed);
        memory.order.first(&self.store, now, ordering, |queue| {
            busy_queues.get(queue).is_some_and(|busy| busy.is_full) || borrowed.contains_key(queue)
        })
    }

    /// A queue's record, from memory or from the store.
    fn queue_record(&mut self, queue: &Arc<str>) -> Result<&QueueRecord, FrontierError> {
        if !self.memory.queues.contains_key(queue) {
            let record = change::read_queue(&self.store, queue)?.ok_or_else(|| {
                damaged(
                    "a queue in the queue order without a record",
                    queue.as_bytes(),
                )
            })?;
            self.memory.queues.insert(queue.clone(), record);
        }
        self.memory.queues.get(queue).ok_or(FrontierError::Broken)
    }

    /// Issues the first URI of the queue that is first in the queue order, with this key. Returns `None` if it cannot; then the
    /// queue has another place now, or stands back for its server group.
    fn issue_from(
        &mut self,
        queue: &Arc<str>,
        key: Vec<u8>,
        now: Timestamp,
    ) -> Result<Option<Issue>, FrontierError> {
        let now_millis = instant::floor(now);
        let record = self.queue_record(queue)?;
        if record
            .order_key
            .is_none_or(|order_key| keys::queue_order(record.precedence, order_key, queue) != key)
        {
            // It has moved while it stood back for its server group.
            self.memory.order.remove_key(&key);
            return Ok(None);
        }
        let record = record.clone();
        let until = self.taken_over_until(&record);
        if until > now_millis {
            return self.write_change(now, |change| {
                change.wait_until(queue, until)?;
                Ok(None)
            });
        }
        if record.hold(&self.config).is_some() {
            // A budget was lowered, or a new process has another settings hash.
            return self.write_change(now, |change| {
                change.take_new_place(queue)?;
                Ok(None)
            });
        }
        let first_due = record.first_due;
        let mut group = None;
        if let Some(name) = record.group(&self.config) {
            let settings = self.config.group;
            let groups = &mut self.memory.groups;
            match groups.slot(&self.store, name, settings, now_millis)? {
                Ok(slot) => group = Some((name.to_owned(), slot)),
                Err(at) => {
                    self.memory.order.remove_key(&key);
                    groups.park(name, key, at);
                    return Ok(None);
                }
            }
        }
        if first_due <= now_millis {
            self.move_due(queue, first_due, now)?;
            // URIs that have become due may give the queue another place.
            let place = self.memory.queues.get(queue).map(|record| {
                record
                    .order_key
                    .map(|order_key| keys::queue_order(record.precedence, order_key, queue))
            });
            if place.flatten().is_none_or(|place| place != key) {
                return Ok(None);
            }
        }
        let free = record.free_slot(&self.memory.busy_queue(queue).slots, &self.config);
        let head = self.memory.head(&self.store, queue)?;
        match (free, head) {
            (Some((slot, _)), Some((ready_key, record_key))) => {
                self.issue(queue, slot, group, ready_key, &record_key, now)
            }
            // Its first URI was taken away meanwhile.
            _ => self.write_change(now, |change| {
                change.take_new_place(queue)?;
                Ok(None)
            }),
        }
    }

    /// Moves the URIs of a queue that have become due to the ready ones.
    fn move_due(
        &mut self,
        queue: &Arc<str>,
        first_due: Millis,
        now: Timestamp,
    ) -> Result<(), FrontierError> {
        let (due, next_due) = Memory::due(
            &self.store,
            queue,
            first_due,
            instant::floor(now),
            MOVED_MAX,
        )?;
        self.write_change(now, |change| change.move_due(queue, due, next_due))
    }

    fn issue(
        &mut self,
        queue: &Arc<str>,
        slot: u16,
        group: Option<(String, u16)>,
        ready_key: Vec<u8>,
        record_key: &[u8],
        now: Timestamp,
    ) -> Result<Option<Issue>, FrontierError> {
        let rank = keys::rank(&ready_key).ok_or_else(|| damaged("a malformed rank", &ready_key))?;
        let uri = uri_of(record_key)?;
        let key = String::from_utf8_lossy(record_key).into_owned();
        let bytes = self
            .store
            .uris
            .get(record_key)?
            .ok_or_else(|| damaged("a queued URI without a record", record_key))?;
        let mut record: UriRecord = decode("a record of a URI", record_key, &bytes)?;
        let (tallies, over_quota) = match self.admittance(queue, &uri, &record)? {
            Admittance::Counted(tallies) => (tallies, None),
            Admittance::Over(over) => (Vec::new(), Some(over)),
            Admittance::Unsettled => {
                return self.write_change(now, |change| {
                    change.delay_queue(queue, QUOTA_PAUSE)?;
                    change.take_new_place(queue)?;
                    Ok(None)
                });
            }
        };

        let ticket = self.memory.next_ticket;
        let now_millis = instant::floor(now);
        let considered = reconsideration::visit_after(&record, rank);
        let due = considered.unwrap_or(rank.due);
        let visit_after = considered.filter(|visit| *visit > now_millis);
        let overdue = u64::try_from(now_millis.saturating_sub(due)).unwrap_or(0);
        let overdue = Duration::from_millis(overdue);
        let issued = Issued {
            record_key: key.clone(),
            queue: queue.to_string(),
            slot,
            group: group.clone(),
            at: now_millis,
        };
        let busy = Busy {
            record_key: key,
            uri: uri.clone(),
            queue: queue.clone(),
            ready_key,
            slot,
            group: group.clone(),
            is_prerequisite: rank.directive == crate::Directive::Highest,
            tallies,
            overdue,
        };
        self.mark_in_process(ticket, &issued, &busy, now)?;
        self.memory.next_ticket += 1;
        let in_process = self.memory.busy_queue(queue);
        // The busy state was computed with the queue if its record changed. Otherwise it is computed here.
        let in_process = if in_process.slots.contains(&slot) {
            in_process
        } else {
            let mut alone = self.memory.busy_with(&busy);
            if let Some(record) = self.memory.queues.get(queue) {
                alone.fill(record, &self.config);
            }
            alone
        };
        let known = record.clone();
        uri.as_str().clone_into(&mut record.uri);
        self.memory.issue(ticket, busy, known, in_process);
        Ok(Some(Issue {
            ticket: Ticket(ticket),
            uri,
            record,
            queue: queue.to_string(),
            due: instant::timestamp(due),
            overdue,
            visit_after: visit_after.map(instant::timestamp),
            group: group.map(|(group, _)| group),
            over_quota,
        }))
    }

    /// Records that a URI is in process. Its place in its queue stays in the store, where a later process would find it. The
    /// queue's place in the queue order stays as well, unless the queue continues to issue.
    fn mark_in_process(
        &mut self,
        ticket: u64,
        issued: &Issued,
        busy: &Busy,
        now: Timestamp,
    ) -> Result<(), FrontierError> {
        let record = self.queue_record(&busy.queue)?.clone();
        let issues_more = record.settings(&self.config).valence > 1;
        let is_activated = self.config.session_budget.is_some() && record.balance <= 0;
        if issues_more || is_activated {
            let session_budget = self.config.session_budget;
            return self.write_change(now, |change| {
                change.issues(busy);
                change
                    .issued
                    .insert(ticket.to_be_bytes().to_vec(), Some(encode(issued)?));
                let queue = change.queue(&busy.queue)?;
                if let Some(budget) = session_budget.filter(|_| is_activated) {
                    queue.balance = budget.into();
                }
                change.take_new_place(&busy.queue)
            });
        }
        self.store
            .in_process
            .insert(ticket.to_be_bytes(), encode(issued)?)?;
        if let Some(order_key) = record.order_key {
            self.memory
                .order
                .remove(record.precedence, order_key, &busy.queue);
        }
        Ok(())
    }

    /// The decision of the quotas of its host, domain and source about a URI.
    fn admittance(
        &mut self,
        queue: &Arc<str>,
        uri: &Uri,
        record: &UriRecord,
    ) -> Result<Admittance, FrontierError> {
        if is_prerequisite(uri, record) {
            return Ok(Admittance::Counted(Vec::new()));
        }
        let settings = self.queue_record(queue)?.clone();
        let settings = settings.settings(&self.config);
        let quotas = quotas(
            settings.host_quota,
            settings.domain_quota,
            &self.config,
            uri,
            record,
        );
        let mut keys = Vec::new();
        let mut is_settled = true;
        for (kind, name, quota) in quotas {
            let key = keys::tally(kind, &name);
            let tally = change::read_tally(&self.store, &key)?;
            if let Some(limit) = tally.reached(&quota, 0) {
                return Ok(Admittance::Over(OverQuota { kind, name, limit }));
            }
            is_settled &= tally.reached(&quota, self.memory.reserved(&key)).is_none();
            keys.push(key);
        }
        Ok(if is_settled {
            Admittance::Counted(keys)
        } else {
            Admittance::Unsettled
        })
    }
}

/// The quotas that apply to a URI, with the names of their tallies.
fn quotas(
    host: Quota,
    domain: Quota,
    config: &FrontierConfig,
    uri: &Uri,
    record: &UriRecord,
) -> Vec<(TallyKind, String, Quota)> {
    let mut quotas = Vec::new();
    let mut add = |kind, name: Option<&str>, quota: Quota| {
        if let Some(name) = name.filter(|_| quota.is_some()) {
            quotas.push((kind, name.to_owned(), quota));
        }
    };
    add(TallyKind::Host, uri.host(), host);
    add(
        TallyKind::Domain,
        uri.registrable_domain().or_else(|| uri.host()),
        domain,
    );
    add(
        TallyKind::Source,
        record.source.as_deref(),
        config.source_quota,
    );
    quotas
}

pub(crate) fn uri_of(record_key: &[u8]) -> Result<Uri, FrontierError> {
    std::str::from_utf8(record_key)
        .ok()
        .and_then(|key| Uri::from_key(key).ok())
        .ok_or_else(|| damaged("a record key that is not a URI", record_key))
}

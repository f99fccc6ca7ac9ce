//! Queries for reports and operators. Nothing here changes the store.

use std::{fmt, time::Duration};

use jiff::Timestamp;
use opilio_model::status_words;
use opilio_uri::Uri;

use crate::{
    Frontier, FrontierError, QueueReport, QueueState, RECORD_KEY_BYTES_MAX, Rejection, SiteRecord,
    Statistics, Tally, TallyKind, UriRecord, UriState,
    change::{self, read_tally},
    frontier::uri_of,
    instant, keys,
    queue::QueueRecord,
    store::{damaged, decode},
};

/// A URI of a queue, as [`Frontier::queue_uris`] lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedUri {
    /// Its record, place included.
    pub record: UriRecord,
    /// `true` if it is among the ready URIs.
    pub is_ready: bool,
    /// `true` if it is in process.
    pub in_process: bool,
    /// Cursor from which to continue after it.
    pub cursor: Vec<u8>,
}

/// Explanation of why a URI was, or was not, fetched.
#[derive(Debug, Clone, PartialEq)]
pub enum FetchExplanation {
    /// The URI is unknown: it has not been found, or its refusal is not remembered.
    Unknown,
    /// The URI was found and refused.
    Refused(Rejection),
    /// Another URI of the same canonical form is known, and represents it.
    SameAs(Box<UriFacts>),
    /// The URI is known.
    Known(Box<UriFacts>),
}

/// The facts that decide about a known URI.
#[derive(Debug, Clone, PartialEq)]
pub struct UriFacts {
    /// Its record.
    pub record: UriRecord,
    /// `true` if it is in process.
    pub in_process: bool,
    /// `true` if it is ready, its queue aside.
    pub is_ready: bool,
    /// Its queue at this moment.
    pub queue: Option<QueueReport>,
}

impl Frontier {
    /// Statistics of the crawl, as of the last call.
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

    /// The record of exactly this URI.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn record(&self, uri: &Uri) -> Result<Option<UriRecord>, FrontierError> {
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

    /// All records whose key ([`Uri::key`]: the URI in SURT order) begins with `key_prefix`, in that order. Changes during the
    /// iteration may or may not be included.
    pub fn records(
        &self,
        key_prefix: &str,
    ) -> impl Iterator<Item = Result<UriRecord, FrontierError>> + use<> {
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

    /// The same as [`Frontier::records`], from the first record after the key `after` on, each with its key.
    pub fn records_behind(
        &self,
        key_prefix: &str,
        after: &str,
    ) -> impl Iterator<Item = Result<(String, UriRecord), FrontierError>> + use<> {
        let prefix = key_prefix.to_owned();
        let behind = [after.as_bytes(), &[0]].concat();
        let from = behind.max(key_prefix.as_bytes().to_vec());
        let records = self.store.uris.range(from..).map(|guard| {
            let (key, bytes) = guard.into_inner()?;
            let uri = uri_of(&key)?;
            let record: UriRecord = decode("a record of a URI", &key, &bytes)?;
            let record = UriRecord {
                uri: uri.as_str().to_owned(),
                ..record
            };
            Ok((String::from_utf8_lossy(&key).into_owned(), record))
        });
        records.take_while(move |record| match record {
            Ok((key, _)) => key.starts_with(&prefix),
            Err(_) => true,
        })
    }

    /// Up to `records_max` records in the order of their keys, from the first after the key `after` on, each with its key.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn records_after(
        &self,
        after: Option<&str>,
        records_max: usize,
    ) -> Result<Vec<(String, UriRecord)>, FrontierError> {
        let mut from = after.unwrap_or_default().as_bytes().to_vec();
        if after.is_some() {
            from.push(0);
        }
        let range = self.store.uris.range(from..).take(records_max);
        let records = range.map(|guard| {
            let (key, bytes) = guard.into_inner()?;
            let uri = uri_of(&key)?;
            let record: UriRecord = decode("a record of a URI", &key, &bytes)?;
            let record = UriRecord {
                uri: uri.as_str().to_owned(),
                ..record
            };
            Ok((String::from_utf8_lossy(&key).into_owned(), record))
        });
        records.collect()
    }

    /// Up to `queues_max` queues in the order of their names, from the first after `after` on.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn queues(
        &self,
        after: Option<&str>,
        queues_max: usize,
        now: Timestamp,
    ) -> Result<Vec<QueueReport>, FrontierError> {
        let mut from = after.unwrap_or_default().as_bytes().to_vec();
        if after.is_some() {
            from.push(0);
        }
        self.store
            .queues
            .range(from..)
            .take(queues_max)
            .map(|guard| self.stored_report(guard, now))
            .collect()
    }

    /// The queue with this name.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn queue(&self, queue: &str, now: Timestamp) -> Result<Option<QueueReport>, FrontierError> {
        if queue.is_empty() {
            return Ok(None);
        }
        let Some(record) = change::read_queue(&self.store, queue)? else {
            return Ok(None);
        };
        self.report(queue, &record, now).map(Some)
    }

    /// Shortest time between two requests to the server of a queue if a request takes this long; `None` if the queue does not
    /// exist.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn request_interval(
        &self,
        queue: &str,
        took: Duration,
    ) -> Result<Option<Duration>, FrontierError> {
        let of_store;
        let record = match self.memory.queues.get(queue) {
            Some(record) => record,
            None => match change::read_queue(&self.store, queue)? {
                Some(record) => {
                    of_store = record;
                    &of_store
                }
                None => return Ok(None),
            },
        };
        let settings = record.settings(&self.config);
        let delay = settings.politeness.delay_after(took, record.crawl_delay);
        let slots = u32::from(settings.valence.max(1));
        Ok(Some(delay.saturating_add(took) / slots))
    }

    /// Whether a queue that the operator has frozen holds URIs. Reads all queues.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn has_frozen(&self) -> Result<bool, FrontierError> {
        for guard in self.store.queues.iter() {
            let (key, bytes) = guard.into_inner()?;
            let record: QueueRecord = decode("a queue's record", &key, &bytes)?;
            if record.is_frozen && !(record.ready.is_empty() && record.waiting == 0) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the floor alone keeps a queue from issuing its URIs: a queue that would issue them with the floor `usual`. Reads
    /// all queues.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn has_below_floor(&self, usual: Option<u8>) -> Result<bool, FrontierError> {
        let Some(floor) = self.config.precedence_floor else {
            return Ok(false);
        };
        for guard in self.store.queues.iter() {
            let (key, bytes) = guard.into_inner()?;
            let record: QueueRecord = decode("a queue's record", &key, &bytes)?;
            let precedence = record.precedence;
            let is_passed_over = precedence >= floor && usual.is_none_or(|it| precedence < it);
            let holds_uris = !(record.ready.is_empty() && record.waiting == 0);
            if is_passed_over && holds_uris && record.hold(&self.config).is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Up to `uris_max` URIs of a queue in the order of issue, from the first after `after` on. The ready URIs come first, then
    /// those that are not yet due.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn queue_uris(
        &self,
        queue: &str,
        after: Option<&[u8]>,
        uris_max: usize,
    ) -> Result<Vec<QueuedUri>, FrontierError> {
        // A cursor begins with the order of the URI; its key follows.
        let (from_waiting, from) = match after.and_then(|cursor| cursor.split_first()) {
            Some((order, key)) => (*order == 1, [key, &[0]].concat()),
            None => (false, Vec::new()),
        };
        let start = keys::queue_start(queue);
        let end = keys::queue_end(queue);
        let mut uris = Vec::new();
        for (order, keyspace) in [(0u8, &self.store.ready), (1, &self.store.waiting)] {
            if order == 0 && from_waiting {
                continue;
            }
            let is_continued = (order == 1) == from_waiting;
            let from = if is_continued {
                from.clone().max(start.clone())
            } else {
                start.clone()
            };
            if from >= end {
                continue;
            }
            let range = keyspace.range(from..end.clone());
            for guard in range.take(uris_max.saturating_sub(uris.len())) {
                let (key, value) = guard.into_inner()?;
                let record_key = if order == 0 {
                    &value[..]
                } else {
                    let (_, _, record_key) = keys::from_waiting_value(&value)
                        .ok_or_else(|| damaged("a malformed waiting URI", &key))?;
                    record_key
                };
                let uri = uri_of(record_key)?;
                let record = self
                    .record(&uri)?
                    .ok_or_else(|| damaged("a queued URI without a record", record_key))?;
                uris.push(QueuedUri {
                    in_process: self.memory.is_record_busy(&uri.key()),
                    record,
                    is_ready: order == 0,
                    cursor: [&[order], &key[..]].concat(),
                });
            }
        }
        Ok(uris)
    }

    /// The tally of a host, domain or source. Only names with a quota have one.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn tally(&self, kind: TallyKind, name: &str) -> Result<Tally, FrontierError> {
        read_tally(&self.store, &keys::tally(kind, name))
    }

    /// The state kept for the site of a URI: its host, with the port if that is not the scheme's default.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn site(&self, uri: &Uri) -> Result<SiteRecord, FrontierError> {
        self.sites.site(&self.store, uri)
    }

    /// Explains why a URI was, or was not, fetched. `canonical` is its canonical form.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn explain(
        &self,
        uri: &Uri,
        canonical: &str,
        now: Timestamp,
    ) -> Result<FetchExplanation, FrontierError> {
        if let Some(record) = self.record(uri)? {
            return Ok(FetchExplanation::Known(Box::new(self.reason(record, now)?)));
        }
        if let Some(value) = self.store.canonical_forms.get(keys::canonical(canonical))? {
            let key = keys::from_canonical_value(&value, canonical).unwrap_or_default();
            if let Ok(same) = uri_of(key.as_bytes())
                && let Some(record) = self.record(&same)?
            {
                return Ok(FetchExplanation::SameAs(Box::new(
                    self.reason(record, now)?,
                )));
            }
        }
        let rejection = self.store.refused_uris.get(keys::canonical(uri.as_str()))?;
        match rejection {
            Some(bytes) => decode("a rejection", uri.as_str().as_bytes(), &bytes)
                .map(FetchExplanation::Refused),
            None => Ok(FetchExplanation::Unknown),
        }
    }

    fn reason(&self, record: UriRecord, now: Timestamp) -> Result<UriFacts, FrontierError> {
        let in_process = match Uri::parse(&record.uri) {
            Ok(uri) => self.memory.is_record_busy(&uri.key()),
            Err(_) => false,
        };
        let is_ready = match change::rank(&record) {
            Some(rank) => {
                self.store
                    .ready
                    .contains_key(keys::ready(&record.queue, rank))?
                    || rank.due <= instant::floor(now)
            }
            None => false,
        };
        Ok(UriFacts {
            queue: self.queue(&record.queue, now)?,
            record,
            in_process,
            is_ready,
        })
    }

    fn stored_report(
        &self,
        guard: fjall::Guard,
        now: Timestamp,
    ) -> Result<QueueReport, FrontierError> {
        let (key, bytes) = guard.into_inner()?;
        let name = std::str::from_utf8(&key).map_err(|_| damaged("a queue's name", &key))?;
        let record = decode("a queue's record", &key, &bytes)?;
        self.report(name, &record, now)
    }

    fn report(
        &self,
        name: &str,
        record: &QueueRecord,
        now: Timestamp,
    ) -> Result<QueueReport, FrontierError> {
        let config = &self.config;
        let busy = self.memory.busy_queues.get(name);
        let group = match record.group(config) {
            Some(group) => {
                let now = instant::floor(now);
                let groups = &self.memory.groups;
                groups.holds(&self.store, group, config.group, now)?
            }
            None => None,
        };
        Ok(QueueReport::new(name, record, busy, group, config, now))
    }
}

/// Formats the explanation as a sentence.
impl fmt::Display for FetchExplanation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => formatter.write_str(
                "not known: the URI was never found, or its refusal is no longer recorded",
            ),
            Self::Refused(rejection) => write!(
                formatter,
                "refused by {} when it was found on {} at {:.0}",
                rejection.reason, rejection.via, rejection.at
            ),
            Self::SameAs(reason) => {
                write!(
                    formatter,
                    "counts as {}, which is {reason}",
                    reason.record.uri
                )
            }
            Self::Known(reason) => reason.fmt(formatter),
        }
    }
}

impl fmt::Display for UriFacts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = &self.record;
        let last = record.history.first().map(|past| past.at);
        match record.state {
            _ if self.in_process => write!(formatter, "being fetched")?,
            UriState::Queued { due, .. } if !self.is_ready && record.attempts > 0 => {
                write!(formatter, "retry at {due:.0}")?;
            }
            UriState::Queued { due, .. } if !self.is_ready => {
                write!(formatter, "not due before {due:.0}")?;
            }
            UriState::Queued { due, .. } => {
                write!(formatter, "ready since {due:.0} in queue {}", record.queue)?;
                self.queue_reason(formatter)?;
            }
            UriState::Done => match last {
                Some(last) => write!(formatter, "done since {last:.0}")?,
                None => write!(formatter, "done")?,
            },
            UriState::Deleted => formatter.write_str("deleted by an operator")?,
            UriState::Faded => {
                formatter.write_str("faded: no page has linked to it for several visits")?;
            }
        }
        if record.status != 0 {
            write!(formatter, "; last visit: {}", status_words(record.status))?;
        }
        if record.status < 0 {
            write!(formatter, " (status {})", record.status)?;
        }
        if !record.reason.is_empty() {
            write!(formatter, " ({})", record.reason)?;
        }
        if record.attempts > 0 {
            write!(
                formatter,
                " after {}",
                count_with_noun(record.attempts, "attempt")
            )?;
        }
        write!(formatter, "; found {:.0}", record.discovered)?;
        match &record.via {
            Some(via) => write!(formatter, " by {via}"),
            None if record.seed => formatter.write_str(" as a seed"),
            None => Ok(()),
        }
    }
}

impl UriFacts {
    fn queue_reason(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(queue) = &self.queue else {
            return Ok(());
        };
        match queue.state {
            QueueState::Ready => formatter.write_str(", which is ready to issue it"),
            QueueState::InProcess => formatter.write_str(", which has other URIs in process"),
            QueueState::Snoozed if queue.stands_back && queue.failures == 0 => write!(
                formatter,
                ", which waits for its server group {}",
                queue.group.as_deref().unwrap_or_default()
            ),
            QueueState::Snoozed => match queue.wake {
                Some(wake) if queue.failures > 0 => {
                    let count = count_with_noun(queue.failures, "back-off");
                    write!(
                        formatter,
                        ", which backs off until {wake:.0} ({count} in a row"
                    )?;
                    if let Some(status) = queue.last_failure {
                        write!(formatter, "; last failure: {}", status_words(status))?;
                    }
                    formatter.write_str(")")
                }
                Some(wake) => write!(formatter, ", which waits until {wake:.0}"),
                None => formatter.write_str(", which waits"),
            },
            QueueState::Inactive => {
                formatter.write_str(", which is inactive: other queues of its precedence go first")
            }
            QueueState::Ineligible => write!(
                formatter,
                ", which is ineligible: its precedence {} is at the floor",
                queue.precedence
            ),
            QueueState::Retired => write!(
                formatter,
                ", which is retired by {}",
                queue.retired_by.map_or("its settings", |by| by.name())
            ),
            QueueState::Frozen => formatter.write_str(", which is frozen by an operator"),
            QueueState::Exhausted => Ok(()),
        }
    }
}

/// A count with its noun, in words.
fn count_with_noun(count: u32, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}

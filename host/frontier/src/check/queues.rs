//! Check of queues: their counts, and their places in the queue order.

use std::iter::Peekable;

use fjall::Keyspace;

use super::{Check, InconsistencyKind, queue_of, readable};
use crate::{
    FrontierError,
    candidate::is_queue_name,
    frontier::uri_of,
    in_process::Issued,
    instant::Millis,
    keys::{self, OrderKey},
    queue::QueueRecord,
    store::{Entry, decode, encode},
};

/// The content of a queue.
#[derive(Default)]
struct Content {
    /// By precedence, sorted.
    ready: QueueRecord,
    waiting: u64,
    first_due: Option<Millis>,
}

/// Entries of a keyspace, in order.
type Entries = Peekable<Box<dyn Iterator<Item = Result<Entry, FrontierError>>>>;

impl Check<'_> {
    /// Reads the URIs that were in process when the store was closed.
    pub(super) fn in_process(&mut self) -> Result<(), FrontierError> {
        for guard in self.store.in_process.iter() {
            let (key, value) = guard.into_inner()?;
            let issued = decode::<Issued>("a URI in process", &key, &value)
                .ok()
                .filter(|issued| {
                    is_queue_name(&issued.queue) && uri_of(issued.record_key.as_bytes()).is_ok()
                });
            let Some(issued) = issued else {
                self.report(InconsistencyKind::Malformed("in_process"), &key);
                self.put_repair("in_process", &key, None)?;
                continue;
            };
            // If the URI has been deleted or forgotten meanwhile, its queue only gets a delay.
            let record = self.queued(issued.record_key.as_bytes())?;
            if record.is_some_and(|record| record.queue == issued.queue) {
                self.busy.insert(issued.queue);
            }
        }
        self.write()
    }

    /// Counts the URIs of each queue, over three keyspaces that have the queues in the same order.
    pub(super) fn queues(&mut self) -> Result<(), FrontierError> {
        let mut queues = entries(&self.store.queues);
        let mut ready = entries(&self.store.ready);
        let mut waiting = entries(&self.store.waiting);
        loop {
            let name = [
                name(&mut queues, whole),
                name(&mut ready, queue_part),
                name(&mut waiting, queue_part),
            ]
            .into_iter()
            .flatten()
            .min();
            let Some(name) = name else {
                break;
            };
            let stored = take(&mut queues, &name, whole)?;
            let mut content = Content::default();
            while let Some((key, _)) = take(&mut ready, &name, queue_part)? {
                if let Some(rank) = keys::rank(&key) {
                    content.ready.add_ready(rank.precedence);
                }
            }
            while let Some((key, _)) = take(&mut waiting, &name, queue_part)? {
                if let Some((due, _)) = keys::due(&key) {
                    content.waiting += 1;
                    content.first_due = Some(content.first_due.map_or(due, |first| first.min(due)));
                }
            }
            self.queue(&name, stored, content)?;
        }
        self.write()
    }

    fn queue(
        &mut self,
        key: &[u8],
        stored: Option<Entry>,
        content: Content,
    ) -> Result<(), FrontierError> {
        let holds_any = content.waiting > 0 || !content.ready.ready.is_empty();
        let Ok(name) = std::str::from_utf8(key) else {
            // Its entries belong to no URI, and have been reported before.
            self.report(InconsistencyKind::Malformed("queues"), key);
            return self.put_repair("queues", key, None);
        };
        self.summary.queues += 1;
        let had_record = stored.is_some();
        let known: Option<QueueRecord> =
            stored.and_then(|(_, value)| decode("a queue's record", key, &value).ok());
        let is_known = known.is_some();
        let mut record = match known {
            Some(record) => record,
            None if had_record => {
                self.report(InconsistencyKind::Malformed("queues"), key);
                QueueRecord::new(name, self.config)
            }
            None => {
                self.report(InconsistencyKind::NoQueue, key);
                QueueRecord::new(name, self.config)
            }
        };
        if let Some(order_key) = record.order_key {
            let arrivals = &mut self.counters.arrivals;
            *arrivals = order_key.arrival.max(*arrivals);
        }

        let first_due = content.first_due.unwrap_or(Millis::MAX);
        let is_counted = record.ready == content.ready.ready
            && record.waiting == content.waiting
            && record.first_due <= first_due;
        if is_known && !is_counted {
            self.report(InconsistencyKind::WrongQueueCounts, key);
        }
        record.ready = content.ready.ready;
        record.waiting = content.waiting;
        record.first_due = if is_counted {
            record.first_due
        } else {
            first_due
        };

        let before = record
            .order_key
            .map(|order_key| keys::queue_order(record.precedence, order_key, name));
        let has_place = match &before {
            Some(key) => self.store.queue_order.contains_key(key)?,
            None => false,
        };
        // A held queue has no place. A queue with a URI in process may have given up its place with it.
        let must_have_place = holds_any && record.hold(self.config).is_none();
        let may_be_out = before.is_none() && self.busy.contains(name);
        let needs_place = must_have_place && !has_place && !may_be_out;
        let is_needless = !holds_any && before.is_some();
        if is_known && is_counted && needs_place {
            self.report(InconsistencyKind::NotInLine, key);
        }
        if is_known && is_needless {
            self.report(InconsistencyKind::NeedlessTurn, key);
        }
        if is_known && is_counted && !needs_place && !is_needless {
            return Ok(());
        }

        if let Some(before) = &before {
            self.put_repair("queue_order", before, None)?;
        }
        record.precedence = record.computed_precedence(self.config);
        record.order_key = must_have_place.then(|| self.new_order_key(&record));
        if let Some(order_key) = record.order_key {
            let key = keys::queue_order(record.precedence, order_key, name);
            self.put_repair("queue_order", &key, Some(Vec::new()))?;
        }
        let record = encode(&record)?;
        self.put_repair("queues", key, Some(record))
    }

    /// The place in the queue order of a queue with URIs to issue.
    fn new_order_key(&mut self, record: &QueueRecord) -> OrderKey {
        let ready_at = record
            .free_slot(&[], self.config)
            .map_or(Millis::MIN, |(_, at)| at);
        OrderKey {
            is_inactive: self.config.session_budget.is_some() && record.balance <= 0,
            wake: if record.ready.is_empty() {
                ready_at.max(record.first_due)
            } else {
                ready_at
            },
            arrival: self.counters.arrival(),
        }
    }

    /// Reports places in the queue order that belong to no queue.
    pub(super) fn stray_places(&mut self) -> Result<(), FrontierError> {
        for guard in self.store.queue_order.iter() {
            let key = guard.key()?;
            let queue = keys::from_queue_order(&key).map(|(_, queue)| queue);
            let record = match queue {
                Some(queue) if !queue.is_empty() => {
                    crate::change::read_queue(&self.store, queue).unwrap_or_default()
                }
                _ => None,
            };
            let is_its_own = record.zip(queue).is_some_and(|(record, queue)| {
                record.order_key.is_some_and(|order_key| {
                    keys::queue_order(record.precedence, order_key, queue) == *key
                })
            });
            if !is_its_own {
                let queue = queue.map_or_else(|| readable(&key), str::to_owned);
                self.report(InconsistencyKind::StrayTurn, queue.as_bytes());
                self.put_repair("queue_order", &key, None)?;
            }
        }
        self.write()
    }
}

fn entries(keyspace: &Keyspace) -> Entries {
    let entries = keyspace.iter().map(|guard| {
        let (key, value) = guard.into_inner()?;
        Ok((key.to_vec(), value.to_vec()))
    });
    let entries: Box<dyn Iterator<Item = _>> = Box::new(entries);
    entries.peekable()
}

/// The queue's part of a key in one of the orders, or all of the key if it is malformed.
fn queue_part(key: &[u8]) -> &[u8] {
    queue_of(key).map_or(key, str::as_bytes)
}

fn whole(key: &[u8]) -> &[u8] {
    key
}

/// The queue of the next entry.
fn name(entries: &mut Entries, queue: fn(&[u8]) -> &[u8]) -> Option<Vec<u8>> {
    Some(match entries.peek()? {
        Ok((key, _)) => queue(key).to_vec(),
        // The empty name sorts first, so the error is taken next.
        Err(_) => Vec::new(),
    })
}

/// The next entry, if it belongs to this queue.
fn take(
    entries: &mut Entries,
    name: &[u8],
    queue: fn(&[u8]) -> &[u8],
) -> Result<Option<Entry>, FrontierError> {
    let next = entries.next_if(|next| match next {
        Ok((key, _)) => queue(key) == name,
        Err(_) => true,
    });
    next.transpose()
}

//! The queue order: which queue may issue a URI next. Within a precedence active queues go before inactive ones. Among these, the
//! queue that has been ready longest goes first. The order is durable (`queue_order`). Memory holds only its head, so that a
//! million sleeping queues cost only disk space.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    instant::Millis,
    keys::{self, OrderKey},
    store::{FrontierError, Store, damaged, read},
    window::Window,
};

/// Places read at a time.
const PLACES_READ: usize = 1024;

/// Places of one class held in memory.
const PLACES_HELD_MAX: usize = 16 * 1024;

#[derive(Debug)]
pub(crate) struct QueueOrder {
    classes: BTreeMap<Class, Window>,
}

/// Queues that differ only in the time at which they became ready: the first two bytes of a key of `queue_order`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Class {
    precedence: u8,
    is_inactive: u8,
}

/// The first queue of the order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// This queue may issue a URI. The key is its place.
    Ready { queue: String, key: Vec<u8> },
    /// No queue may issue before this time; then this one may.
    At { wake: Millis, queue: String },
    /// No queue has a URI to issue, apart from those in process.
    NoQueue,
}

/// Rules by which queues of different precedences are compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ordering {
    /// Classes of this precedence and of higher numbers are passed over.
    pub(crate) floor: Option<u8>,
    /// See [`FrontierConfig::ageing`](crate::FrontierConfig::ageing).
    pub(crate) ageing: Option<Duration>,
}

impl QueueOrder {
    /// Finds the classes in use, with one look-up each.
    pub(crate) fn open(store: &Store) -> Result<Self, FrontierError> {
        let mut classes = BTreeMap::new();
        let mut from = vec![0];
        while let Some(guard) = store.queue_order.range(from..).next() {
            let key = guard.key()?;
            let class = Class::of(&key)
                .ok_or_else(|| damaged("a malformed key in the queue order", &key))?;
            classes.insert(class, Window::new(class.start()));
            from = class.end();
        }
        Ok(Self { classes })
    }

    /// The first queue in the order at `now` for which `is_full` is false.
    pub(crate) fn first(
        &mut self,
        store: &Store,
        now: Millis,
        ordering: Ordering,
        is_full: impl Fn(&str) -> bool,
    ) -> Result<First, FrontierError> {
        let mut earliest: Option<(Millis, String)> = None;
        let mut best: Option<(i64, Class, Vec<u8>)> = None;
        for (&class, window) in &mut self.classes {
            if ordering
                .floor
                .is_some_and(|floor| class.precedence >= floor)
            {
                break;
            }
            if ordering.ageing.is_none() && best.is_some() {
                // All later classes have a worse precedence.
                break;
            }
            let end = class.end();
            while let Some((key, _)) =
                window.head(|from| read(&store.queue_order, from, &end, PLACES_READ))?
            {
                let (wake, queue) = keys::from_queue_order(key)
                    .ok_or_else(|| damaged("a malformed key in the queue order", key))?;
                if is_full(queue) {
                    // Read again after the window had shrunk: its place stays in the store until its URI is finished.
                    let key = key.to_vec();
                    window.remove(&key);
                } else if wake <= now {
                    let aged = ordering.aged_precedence(class.precedence, wake, now);
                    if best.as_ref().is_none_or(|(before, _, _)| aged < *before) {
                        best = Some((aged, class, key.to_vec()));
                    }
                    break;
                } else {
                    if earliest.as_ref().is_none_or(|(before, _)| wake < *before) {
                        earliest = Some((wake, queue.to_owned()));
                    }
                    break;
                }
            }
        }
        if let Some((_, _, key)) = best {
            let (_, queue) = keys::from_queue_order(&key)
                .ok_or_else(|| damaged("a malformed key in the queue order", &key))?;
            return Ok(First::Ready {
                queue: queue.to_owned(),
                key,
            });
        }
        Ok(earliest.map_or(First::NoQueue, |(wake, queue)| First::At { wake, queue }))
    }

    /// Records a place that has been stored.
    pub(crate) fn insert(&mut self, precedence: u8, order_key: OrderKey, queue: &str) {
        self.insert_key(keys::queue_order(precedence, order_key, queue));
    }

    /// The same, by its key.
    pub(crate) fn insert_key(&mut self, key: Vec<u8>) {
        let Some(class) = Class::of(&key) else {
            return;
        };
        let window = self
            .classes
            .entry(class)
            .or_insert_with(|| Window::new(class.start()));
        window.insert(key, Vec::new());
        if window.len() > PLACES_HELD_MAX {
            window.shrink(PLACES_HELD_MAX / 2);
        }
    }

    /// Records that a place was removed, or that its queue issues a URI.
    pub(crate) fn remove(&mut self, precedence: u8, order_key: OrderKey, queue: &str) {
        self.remove_key(&keys::queue_order(precedence, order_key, queue));
    }

    /// The same, by its key.
    pub(crate) fn remove_key(&mut self, key: &[u8]) {
        if let Some(window) = Class::of(key).and_then(|class| self.classes.get_mut(&class)) {
            window.remove(key);
        }
    }
}

impl Ordering {
    /// A queue's effective precedence after it has been ready since `wake`. It continues below 0, so that even queues of
    /// precedence 0 cannot keep others waiting for ever.
    fn aged_precedence(self, precedence: u8, wake: Millis, now: Millis) -> i64 {
        let precedence = i64::from(precedence);
        let Some(ageing) = self.ageing else {
            return precedence;
        };
        let step = Millis::try_from(ageing.as_millis().max(1)).unwrap_or(Millis::MAX);
        precedence.saturating_sub(now.saturating_sub(wake).max(0) / step)
    }
}

impl Class {
    fn of(key: &[u8]) -> Option<Self> {
        let &[precedence, is_inactive] = key.first_chunk::<2>()?;
        Some(Self {
            precedence,
            is_inactive,
        })
    }

    fn start(self) -> Vec<u8> {
        vec![self.precedence, self.is_inactive]
    }

    /// The first key after all of its places.
    fn end(self) -> Vec<u8> {
        match (
            self.is_inactive.checked_add(1),
            self.precedence.checked_add(1),
        ) {
            (Some(next), _) => vec![self.precedence, next],
            (None, Some(next)) => vec![next],
            (None, None) => vec![u8::MAX; 32],
        }
    }
}

//! The line of queues: who may give a URI next. Within a precedence the queue that has been ready longest goes first.
//! The line itself is durable (`turns`); memory holds its head, so that a million sleeping queues cost disk alone.

use std::collections::BTreeMap;

use crate::{
    instant::Millis,
    keys,
    queue::Turn,
    store::{Error, Store, damaged, read},
    window::Window,
};

/// Turns read at a time.
const TURNS_READ: usize = 1024;

/// Turns of one precedence held in memory.
const TURNS_HELD_MAX: usize = 16 * 1024;

#[derive(Debug)]
pub(crate) struct Line {
    by_precedence: BTreeMap<u8, Window>,
}

/// Who is first in the line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// This queue may give a URI.
    Ready(String),
    /// No queue may before this time.
    At(Millis),
    /// No queue has a URI to give, but for those in process.
    Nobody,
}

impl Line {
    /// Finds out which precedences are in use: one look-up each.
    pub(crate) fn open(store: &Store) -> Result<Self, Error> {
        let mut by_precedence = BTreeMap::new();
        let mut from = 0;
        while let Some(guard) = store.turns.range(vec![from]..).next() {
            let key = guard.key()?;
            let precedence = *key.first().ok_or_else(|| damaged("an empty turn", &key))?;
            by_precedence.insert(precedence, Window::new(vec![precedence]));
            match precedence.checked_add(1) {
                Some(next) => from = next,
                None => break,
            }
        }
        Ok(Self { by_precedence })
    }

    /// The first queue in line that `is_busy` does not name, at `now`.
    pub(crate) fn first(
        &mut self,
        store: &Store,
        now: Millis,
        is_busy: impl Fn(&str) -> bool,
    ) -> Result<First, Error> {
        let mut earliest = None;
        for (&precedence, window) in &mut self.by_precedence {
            loop {
                let end = precedence
                    .checked_add(1)
                    .map_or_else(|| vec![u8::MAX; 32], |next| vec![next]);
                let Some((key, _)) =
                    window.head(|from| read(&store.turns, from, &end, TURNS_READ))?
                else {
                    break;
                };
                let (wake, queue) =
                    keys::from_turn(key).ok_or_else(|| damaged("a malformed turn", key))?;
                if is_busy(queue) {
                    // Read again after the window had shrunk: its turn stays in the store until it is finished.
                    let key = key.to_vec();
                    window.remove(&key);
                } else if wake <= now {
                    return Ok(First::Ready(queue.to_owned()));
                } else {
                    earliest = Some(earliest.map_or(wake, |earliest: Millis| earliest.min(wake)));
                    break;
                }
            }
        }
        Ok(earliest.map_or(First::Nobody, First::At))
    }

    /// Takes note of a turn that has been stored.
    pub(crate) fn insert(&mut self, precedence: u8, turn: Turn, queue: &str) {
        let window = self
            .by_precedence
            .entry(precedence)
            .or_insert_with(|| Window::new(vec![precedence]));
        window.insert(keys::turn(precedence, turn, queue), Vec::new());
        if window.len() > TURNS_HELD_MAX {
            window.shrink(TURNS_HELD_MAX / 2);
        }
    }

    /// Takes note that a turn has gone, or is being taken.
    pub(crate) fn remove(&mut self, precedence: u8, turn: Turn, queue: &str) {
        if let Some(window) = self.by_precedence.get_mut(&precedence) {
            window.remove(&keys::turn(precedence, turn, queue));
        }
    }
}

//! The head of a sorted range of the store, held in memory: all entries before the horizon are here, none after it. Reading heads
//! one by one from a log-structured tree would pass the tombstones of all entries already taken. A window reads on from where it
//! stopped.

use std::collections::BTreeMap;

use crate::store::Entry;

#[derive(Debug)]
pub(crate) struct Window {
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
    horizon: Horizon,
}

/// Key and value of the first entry.
pub(crate) type Head<'w> = Option<(&'w [u8], &'w [u8])>;

#[derive(Debug)]
enum Horizon {
    /// Entries stored at or after this key are not here.
    At(Vec<u8>),
    /// All stored entries are here.
    End,
}

impl Window {
    /// Makes a window on the range that begins at `start`. Nothing has been read.
    pub(crate) fn new(start: Vec<u8>) -> Self {
        Self {
            entries: BTreeMap::new(),
            horizon: Horizon::At(start),
        }
    }

    /// Makes a window on a range in which nothing is stored.
    pub(crate) fn empty() -> Self {
        Self {
            entries: BTreeMap::new(),
            horizon: Horizon::End,
        }
    }

    /// Records an entry that has been stored.
    pub(crate) fn insert(&mut self, key: Vec<u8>, value: Vec<u8>) {
        let is_within = match &self.horizon {
            Horizon::At(horizon) => key < *horizon,
            Horizon::End => true,
        };
        if is_within {
            self.entries.insert(key, value);
        }
    }

    /// Removes an entry that is no longer stored, or that need not be held.
    pub(crate) fn remove(&mut self, key: &[u8]) {
        self.entries.remove(key);
    }

    /// The first entry. If none is held, `read` is called with a key. It returns any number of entries from that key on, and
    /// whether these were the last.
    pub(crate) fn head<E>(
        &mut self,
        mut read: impl FnMut(&[u8]) -> Result<(Vec<Entry>, bool), E>,
    ) -> Result<Head<'_>, E> {
        while self.entries.is_empty() {
            let Horizon::At(from) = &self.horizon else {
                return Ok(None);
            };
            let (entries, is_last) = read(from)?;
            self.horizon = match entries.last() {
                Some((last, _)) if !is_last => Horizon::At(successor(last)),
                _ => Horizon::End,
            };
            self.entries.extend(entries);
        }
        Ok(self
            .entries
            .first_key_value()
            .map(|(key, value)| (&key[..], &value[..])))
    }

    /// Drops the entries furthest from the head until at most `entries_max` are left.
    pub(crate) fn shrink(&mut self, entries_max: usize) {
        if self.entries.len() <= entries_max {
            return;
        }
        let Some(cut) = self.entries.keys().nth(entries_max).cloned() else {
            return;
        };
        self.entries.split_off(&cut);
        self.horizon = Horizon::At(cut);
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// The first key after `key`.
fn successor(key: &[u8]) -> Vec<u8> {
    let mut next = key.to_vec();
    next.push(0);
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads two entries at a time from `stored`.
    fn head(window: &mut Window, stored: &BTreeMap<Vec<u8>, Vec<u8>>) -> Option<u8> {
        let read = |from: &[u8]| {
            let mut rest = stored.range(from.to_vec()..);
            let entries: Vec<_> = rest
                .by_ref()
                .take(2)
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            Ok::<_, ()>((entries, rest.next().is_none()))
        };
        window.head(read).unwrap().map(|(key, _)| key[0])
    }

    proptest::proptest! {
        #[test]
        fn the_head_is_always_the_first_stored(steps in proptest::collection::vec((0u8..4, 0u8..20), 0..200)) {
            let mut stored = BTreeMap::new();
            let mut window = Window::new(vec![0]);
            for (step, number) in steps {
                let key = vec![number];
                match step {
                    0 | 1 => {
                        stored.insert(key.clone(), vec![]);
                        window.insert(key, vec![]);
                    }
                    2 => {
                        stored.remove(&key);
                        window.remove(&key);
                    }
                    _ => window.shrink(number.into()),
                }
                let first = stored.keys().next().map(|key| key[0]);
                proptest::prop_assert_eq!(head(&mut window, &stored), first);
            }
        }
    }
}

//! Server groups: queues whose servers share an address, or that an operator put together. A group limits its queues together; it
//! does not rename them. The times at which its slots may issue again are durable. A queue that may not issue because of its group
//! stands back. Only memory records this, because the queue keeps its place in the stored queue order.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::{
    GroupSettings,
    instant::Millis,
    queue::slot_ready_at,
    store::{FrontierError, Store, decode},
};

/// Groups held in memory. With more, those without URIs in process and without queues that stand back are dropped.
const GROUPS_HELD_MAX: usize = 64 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Groups {
    held: HashMap<String, Group>,
    /// Groups for which queues stand back, by the time at which they may issue again.
    waking: BTreeSet<(Millis, String)>,
    /// The group of each queue that stands back, by its key in the queue order.
    parked: HashMap<Vec<u8>, String>,
}

/// State of a group.
#[derive(Debug, Default)]
struct Group {
    /// Times at which its slots may issue again. Durable.
    slots: Vec<Millis>,
    /// Slots in use.
    busy: Vec<u16>,
    /// Queues that stand back for it, by their key in the queue order. Each keeps its place in the store.
    parked: BTreeSet<Vec<u8>>,
}

/// Reason for which the queues of a group may not issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupHold {
    /// The group waits until then.
    Waits(Millis),
    /// As many of its URIs are in process as allowed.
    Full,
}

/// Times at which the slots of groups may issue again, by group, for the batch.
pub(crate) type GroupSlots = BTreeMap<String, Vec<Millis>>;

impl Groups {
    /// The slot that may issue at `now`. Otherwise the time at which one may; `None` if that depends on URIs in process.
    pub(crate) fn slot(
        &mut self,
        store: &Store,
        name: &str,
        settings: GroupSettings,
        now: Millis,
    ) -> Result<Result<u16, Option<Millis>>, FrontierError> {
        let group = self.group(store, name)?;
        Ok(match group.free(settings) {
            Some((slot, at)) if at <= now => Ok(slot),
            other => Err(other.map(|(_, at)| at)),
        })
    }

    /// The reason for which the queues of a group may not issue at `now`; `None` if they may.
    pub(crate) fn holds(
        &self,
        store: &Store,
        name: &str,
        settings: GroupSettings,
        now: Millis,
    ) -> Result<Option<GroupHold>, FrontierError> {
        let free = match self.held.get(name) {
            Some(group) => group.free(settings),
            None => {
                let group = Group {
                    slots: read(store, name)?,
                    ..Group::default()
                };
                group.free(settings)
            }
        };
        Ok(match free {
            Some((_, at)) if at <= now => None,
            Some((_, at)) => Some(GroupHold::Waits(at)),
            None => Some(GroupHold::Full),
        })
    }

    /// Makes a queue stand back for its group until `at`, or until a URI of the group is finished.
    pub(crate) fn park(&mut self, name: &str, key: Vec<u8>, at: Option<Millis>) {
        if let Some(group) = self.held.get_mut(name) {
            group.parked.insert(key.clone());
            self.parked.insert(key, name.to_owned());
            if let Some(at) = at {
                self.waking.insert((at, name.to_owned()));
            }
        }
    }

    /// Queues that need not stand back any longer at `now`.
    pub(crate) fn woken(&mut self, now: Millis) -> Vec<Vec<u8>> {
        let mut woken = Vec::new();
        while let Some((at, _)) = self.waking.first()
            && *at <= now
            && let Some((_, name)) = self.waking.pop_first()
        {
            if let Some(group) = self.held.get_mut(&name) {
                woken.extend(std::mem::take(&mut group.parked));
            }
        }
        for key in &woken {
            self.parked.remove(key);
        }
        woken
    }

    /// Ends the standing back of the queue with this key, whatever its group's state. Returns `false` if it did not stand back.
    pub(crate) fn unpark(&mut self, key: &[u8]) -> bool {
        let Some(name) = self.parked.remove(key) else {
            return false;
        };
        if let Some(group) = self.held.get_mut(&name) {
            group.parked.remove(key);
            if group.parked.is_empty() {
                self.waking.retain(|(_, waking)| *waking != name);
            }
        }
        true
    }

    /// The earliest time at which a group wakes for which queues above the precedence floor stand back.
    pub(crate) fn first_waking(&self, floor: Option<u8>) -> Option<Millis> {
        let counts = |name: &str| {
            // The first queue has the best precedence, with which its key begins.
            let first = self.held.get(name).and_then(|group| group.parked.first());
            first.is_some_and(|key| floor.is_none_or(|floor| key.first() < Some(&floor)))
        };
        let mut waking = self.waking.iter();
        waking.find(|(_, name)| counts(name)).map(|(at, _)| *at)
    }

    pub(crate) fn issue(&mut self, name: &str, slot: u16) {
        if let Some(group) = self.held.get_mut(name) {
            group.busy.push(slot);
        }
    }

    /// Records that a URI of the group is finished, and frees its slot.
    pub(crate) fn release(&mut self, name: &str, slot: u16, settings: GroupSettings) {
        let Some(group) = self.held.get_mut(name) else {
            return;
        };
        group.busy.retain(|busy| *busy != slot);
        if !group.parked.is_empty()
            && let Some((_, at)) = group.free(settings)
        {
            self.waking.insert((at, name.to_owned()));
        }
        if self.held.len() > GROUPS_HELD_MAX {
            self.held
                .retain(|_, group| !(group.busy.is_empty() && group.parked.is_empty()));
        }
    }

    /// The slots of a group once this one waits until `until`. `changed` has the group's slots in the batch.
    pub(crate) fn with_delayed_slot(
        &self,
        store: &Store,
        changed: &GroupSlots,
        name: &str,
        slot: u16,
        until: Millis,
    ) -> Result<Vec<Millis>, FrontierError> {
        let mut slots = match (changed.get(name), self.held.get(name)) {
            (Some(slots), _) => slots.clone(),
            (None, Some(group)) => group.slots.clone(),
            (None, None) => read(store, name)?,
        };
        let at = usize::from(slot);
        if slots.len() <= at {
            slots.resize(at + 1, Millis::MIN);
        }
        slots[at] = slots[at].max(until);
        Ok(slots)
    }

    /// The slots of a group once none of them waits beyond `until`; `None` if none does. `changed` has the group's slots in the
    /// batch.
    pub(crate) fn shortened(
        &self,
        store: &Store,
        changed: &GroupSlots,
        name: &str,
        until: Millis,
    ) -> Result<Option<Vec<Millis>>, FrontierError> {
        let mut slots = match (changed.get(name), self.held.get(name)) {
            (Some(slots), _) => slots.clone(),
            (None, Some(group)) => group.slots.clone(),
            (None, None) => read(store, name)?,
        };
        if slots.iter().all(|at| *at <= until) {
            return Ok(None);
        }
        slots.iter_mut().for_each(|at| *at = until.min(*at));
        Ok(Some(slots))
    }

    /// Wakes the queues that stand back for a group at `until` at the latest.
    pub(crate) fn wake(&mut self, name: &str, until: Millis) {
        if self.held.get(name).is_some_and(|it| !it.parked.is_empty()) {
            self.waking.insert((until, name.to_owned()));
        }
    }

    /// Updates the groups in memory after a batch has been written.
    pub(crate) fn update(&mut self, written: GroupSlots) {
        for (name, slots) in written {
            if let Some(group) = self.held.get_mut(&name) {
                group.slots = slots;
            }
        }
    }

    fn group(&mut self, store: &Store, name: &str) -> Result<&mut Group, FrontierError> {
        if !self.held.contains_key(name) {
            let group = Group {
                slots: read(store, name)?,
                ..Group::default()
            };
            self.held.insert(name.to_owned(), group);
        }
        // The entry exists: it was inserted above.
        Ok(self.held.entry(name.to_owned()).or_default())
    }
}

impl Group {
    /// The slot that becomes free first, of those not in use, and the time at which it does.
    fn free(&self, settings: GroupSettings) -> Option<(u16, Millis)> {
        let valence = settings.valence.max(1);
        if self.busy.len() >= usize::from(valence) {
            return None;
        }
        (0..valence)
            .filter(|slot| !self.busy.contains(slot))
            .map(|slot| (slot, slot_ready_at(&self.slots, slot, valence)))
            .min_by_key(|(slot, at)| (*at, *slot))
    }
}

fn read(store: &Store, name: &str) -> Result<Vec<Millis>, FrontierError> {
    match store.server_groups.get(name)? {
        Some(bytes) => decode("a server group", name.as_bytes(), &bytes),
        None => Ok(Vec::new()),
    }
}

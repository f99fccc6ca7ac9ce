//! URIs in process: issued and not yet finished. The store has them, so that a later process puts them back into their queues.
//! Memory has more about each, and the URIs of each queue together.

use std::sync::Arc;

use opilio_uri::Uri;
use serde::{Deserialize, Serialize};

use crate::{FrontierConfig, instant::Millis, queue::QueueRecord};

/// A URI in process, as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Issued {
    pub(crate) record_key: String,
    pub(crate) queue: String,
    pub(crate) slot: u16,
    /// Its server group, and its slot there.
    pub(crate) group: Option<(String, u16)>,
    pub(crate) at: Millis,
}

/// A URI in process, as memory has it.
#[derive(Debug, Clone)]
pub(crate) struct Busy {
    pub(crate) record_key: String,
    pub(crate) uri: Uri,
    pub(crate) queue: Arc<str>,
    /// Its key in `ready`.
    pub(crate) ready_key: Vec<u8>,
    /// Its slot of the queue.
    pub(crate) slot: u16,
    /// Its server group, and its slot there.
    pub(crate) group: Option<(String, u16)>,
    /// `true` if it is a prerequisite, for which its queue waits.
    pub(crate) is_prerequisite: bool,
    /// Keys of the tallies in which it will count.
    pub(crate) tallies: Vec<Vec<u8>>,
    /// Time between its due time and its issue.
    pub(crate) overdue: std::time::Duration,
}

/// The URIs of a queue in process.
#[derive(Debug, Clone, Default)]
pub(crate) struct BusyQueue {
    /// Slots in use.
    pub(crate) slots: Vec<u16>,
    /// Prerequisites among them.
    prerequisites: u16,
    /// `true` if no further URI may be in process.
    pub(crate) is_full: bool,
}

impl BusyQueue {
    /// Determines whether further URIs may be in process.
    pub(crate) fn fill(&mut self, record: &QueueRecord, config: &FrontierConfig) {
        let in_process = self.slots.len();
        let quota = &record.settings(config).quota;
        self.is_full = self.prerequisites > 0
            || in_process >= record.valence(config)
            || record.tally.reached(quota, in_process as u64).is_some();
    }

    /// Adds a URI that is issued.
    pub(crate) fn add(&mut self, busy: &Busy) {
        self.slots.push(busy.slot);
        self.prerequisites += u16::from(busy.is_prerequisite);
    }

    /// Removes a URI that is finished.
    pub(crate) fn remove(&mut self, busy: &Busy) {
        self.slots.retain(|slot| *slot != busy.slot);
        self.prerequisites -= self.prerequisites.min(busy.is_prerequisite.into());
    }
}

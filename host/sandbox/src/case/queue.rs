//! A queue, as JSON under the names of the contract. A missing field has its default.

use serde::{Deserialize, Serialize};

use super::problem::{CallProblem, at};
use crate::Queue;
use crate::visit::instant;

/// A queue.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct QueueFacts {
    pub(super) name: String,
    queued: u64,
    succeeded: u64,
    failed: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<u8>,
    base: u8,
    now: u64,
}

impl QueueFacts {
    pub(super) fn of(queue: &Queue) -> Self {
        Self {
            name: queue.name.clone(),
            queued: queue.queued,
            succeeded: queue.succeeded,
            failed: queue.failed,
            bytes: queue.bytes,
            best: queue.best,
            base: queue.base,
            now: instant(queue.now),
        }
    }

    pub(super) fn queue(&self) -> Result<Queue, CallProblem> {
        Ok(Queue {
            name: self.name.clone(),
            queued: self.queued,
            succeeded: self.succeeded,
            failed: self.failed,
            bytes: self.bytes,
            best: self.best,
            base: self.base,
            now: at(self.now)?,
        })
    }
}

//! Request to end a crawl.

use std::sync::Arc;

use opilio_fetch::Abort;
use tokio::sync::watch;

use opilio_job::End;

/// A handle to stop a crawl. Clones stop the same crawl.
#[derive(Clone, Debug)]
pub struct Stop {
    reason: Arc<watch::Sender<Option<End>>>,
    cut: Abort,
}

impl Stop {
    /// Creates the handle. `cut` ends fetches in flight.
    pub(crate) fn new(cut: Abort) -> Stop {
        Stop {
            reason: Arc::new(watch::Sender::new(None)),
            cut,
        }
    }

    /// Stops the crawl: no visit begins any more, and fetches in flight finish.
    pub fn stop(&self) {
        self.end(End::Stopped);
    }

    /// Stops the crawl as [`Stop::stop`] does, but by request of the system and not of an operator. The program that supervises the
    /// job restarts the crawl.
    pub fn terminate(&self) {
        self.end(End::Terminated);
    }

    /// Stops the crawl without waiting for fetches in flight. Responses that have begun are archived as truncated. URIs without a
    /// response are fetched when the crawl is resumed.
    pub fn stop_without_waiting(&self) {
        self.end(End::Stopped);
        self.cut.now();
    }

    /// Returns a receiver that gets the reason of the end as soon as there is one.
    pub(crate) fn reason_receiver(&self) -> watch::Receiver<Option<End>> {
        self.reason.subscribe()
    }

    /// Returns the reason of the end, if an end has been requested.
    pub(crate) fn reason(&self) -> Option<End> {
        self.reason.borrow().clone()
    }

    /// Returns `true` if a stop has been requested.
    pub fn is_requested(&self) -> bool {
        self.reason.borrow().is_some()
    }

    /// Ends the crawl for this reason, unless there is an earlier reason.
    pub(crate) fn end(&self, end: End) {
        self.reason.send_if_modified(|reason| {
            let first = reason.is_none();
            reason.get_or_insert(end);
            first
        });
    }
}

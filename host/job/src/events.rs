//! Events of crawls, for programs of the operator: states of jobs, alerts, files that were handed over, captures.
//!
//! [`Events::send`] never waits. Each receiver has a separate queue with a maximum; events beyond it are lost and counted.
//! Receivers are webhooks and subjects of NATS.

mod nats;
mod queue;
mod webhook;

use jiff::Timestamp;
use opilio_profile::{EventKind, EventStream, SecretProblem, Webhook};
use serde::Serialize;
use serde_json::Value;

use crate::alerts::Alert;
use crate::handover::HandedOver;
use queue::EventQueue;

pub use crate::alerts::Event as AlertChange;

/// Event of a crawl.
#[derive(Clone, Debug, Serialize)]
pub struct CrawlEvent {
    /// Time of the event.
    pub at: Timestamp,
    /// Name of the job.
    pub job: String,
    /// Name of the job's profile; not set if only the daemon saw the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The occurrence.
    #[serde(flatten)]
    pub what: Occurrence,
}

/// Occurrence in a crawl.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Occurrence {
    /// A job has another state.
    Job {
        /// The state, as in the list of jobs.
        state: String,
        /// Reason for it, as at the end of a crawl.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// An alert was raised or cleared.
    Alert {
        /// Change of the alert.
        change: AlertChange,
        /// The alert.
        alert: Alert,
    },
    /// A file was handed over.
    File {
        /// Its line in `handed-over.jsonl`.
        file: HandedOver,
    },
    /// A URI was visited.
    Capture {
        /// Its line in `crawl.jsonl`.
        line: Value,
    },
}

/// The receivers of events.
#[derive(Default)]
pub struct Events {
    queues: Vec<EventQueue>,
}

impl Occurrence {
    fn kind(&self) -> EventKind {
        match self {
            Occurrence::Job { .. } => EventKind::Job,
            Occurrence::Alert { .. } => EventKind::Alert,
            Occurrence::File { .. } => EventKind::File,
            Occurrence::Capture { .. } => EventKind::Capture,
        }
    }
}

impl Events {
    /// Starts a sender for each webhook and each stream. Needs a runtime.
    ///
    /// # Errors
    /// A secret is missing.
    pub fn start(webhooks: &[Webhook], streams: &[EventStream]) -> Result<Events, SecretProblem> {
        let webhooks = webhooks.iter().map(webhook::start);
        let queues = webhooks.chain(streams.iter().map(nats::start));
        Ok(Events {
            queues: queues.collect::<Result<_, _>>()?,
        })
    }

    /// Returns `true` if there is no receiver.
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Returns `true` if a receiver is configured for events of this kind.
    pub fn wants(&self, kind: EventKind) -> bool {
        self.queues.iter().any(|queue| queue.wants(kind))
    }

    /// Queues an event for all receivers of its kind.
    pub fn send(&self, event: &CrawlEvent) {
        let kind = event.what.kind();
        for queue in self.queues.iter().filter(|queue| queue.wants(kind)) {
            queue.push(event.clone());
        }
    }

    /// Sends the waiting events, up to a time limit. Returns the number of lost events of each receiver that has lost any.
    pub async fn finish(&self) -> Vec<(String, u64)> {
        let mut lost = Vec::new();
        for queue in &self.queues {
            let (receiver, count) = queue.finish().await;
            if count > 0 {
                lost.push((receiver, count));
            }
        }
        lost
    }
}

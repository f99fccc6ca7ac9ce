//! Alerts for the operator. An alert is raised when a problem begins and cleared when it is over. It appears in `alerts.log` and in
//! the job's status, and is sent to the receivers in the profile.
//!
//! ```text
//! watch.rs (figures of the last minutes) ─┐
//! plugins that fail too often, … ─────────┴► store.rs ─► alerts.log, job.log, diagnostics; notify.rs ─► webhook, command
//! ```

mod at_rest;
mod disk;
mod notify;
mod rendered_pages;
mod shared_crawl;
mod store;
mod units;
mod watch;

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use at_rest::{clear_handovers, give_up, raise_handover};
pub use disk::free_space;
pub use disk::free_space_of_disks;
pub use notify::http_client;
pub use notify::{Notice, Notifier};
pub use rendered_pages::RenderedPages;
pub use store::AlertBoard;
pub use store::kept_alerts;
pub use watch::{Measurements, WAIT_MIN, Watch};

/// Share of its limit to which a figure must fall before its alert is cleared.
const CLEARED_AT: f64 = 0.8;

/// Problem that an operator should see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Alert {
    /// Kind of the alert.
    pub kind: AlertKind,
    /// Subject of the alert, such as a plugin or a folder; may be empty.
    pub subject: String,
    /// Severity of the alert.
    pub severity: Severity,
    /// Message, as a sentence.
    pub message: String,
    /// Time at which the alert was raised.
    pub since: Timestamp,
    /// Time at which the problem was over; not set while the alert is active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Acknowledgement by an operator. The alert stays active, and counts as open again if it becomes more severe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Acknowledged>,
}

/// Acknowledgement of an alert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Acknowledged {
    /// User who acknowledged the alert.
    pub by: String,
    /// Time of the acknowledgement.
    pub at: Timestamp,
}

/// Kind of an alert.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum AlertKind {
    /// A disk that the job writes to is nearly full.
    DiskLow,
    /// Plugins fail on many pages.
    FaultRate,
    /// Many fetches fail.
    FailureRate,
    /// Many responses are bot walls.
    BotWalls,
    /// Many hosts back off at the same time.
    HostsFailing,
    /// No URI was finished for a long time although URIs are due.
    Stalled,
    /// The clock of the machine was changed.
    ClockJump,
    /// A plugin failed too often: it is left out, or the crawl pauses or ends.
    Plugin,
    /// The crawl could not make one of its periodic checkpoints.
    Checkpoint,
    /// Files could not be handed over. A running crawl retries; after its end, `opilio job handover` hands them over.
    Handover,
    /// Pages could not be rendered: Chromium is missing, does not start, or fails. They are archived as fetched.
    Browser,
    /// Many rendered pages reach a limit of time or memory, or crash.
    Rendering,
    /// A command for all nodes of a shared crawl fails on this node, and later commands wait for it. It is tried again.
    Commands,
    /// A problem with NATS in a shared crawl: this node fetches nothing, because NATS does not answer or the node's session has
    /// ended; or JetStream has no room; or NATS has lost messages that it had acknowledged.
    Nats,
    /// No process works on a part of a shared crawl, although it has something to do.
    PartGone,
    /// Links between the parts of a shared crawl wait for long: this part does not receive them, or NATS does not store the links
    /// that it sends.
    LinksWaiting,
    /// The storage of the account in JetStream is nearly full.
    JetstreamLow,
    /// Another process works under the name of this part of a shared crawl, or the session of this process ends repeatedly.
    Lease,
    /// The crawl has ended because of an error.
    Halted,
}

/// Severity of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// An operator should look at the problem.
    Warning,
    /// The crawl makes no useful progress until an operator fixes the problem.
    Critical,
}

/// Change of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The alert began, or became worse.
    Raised,
    /// The alert is over.
    Cleared,
}

/// Action that follows from the figures of the crawl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlertAction {
    /// Raise the alert, because its condition is met.
    Raise(AlertKind, String, Severity, String),
    /// Clear the alert, because its condition is not met any more.
    Clear(AlertKind, String),
    /// Pause the crawl: the disk is full.
    Pause(String),
    /// Resume the crawl: there is space again.
    Resume,
}

impl Alert {
    /// Returns `true` if the alert is active and not acknowledged.
    pub fn is_open(&self) -> bool {
        self.until.is_none() && self.acknowledged.is_none()
    }
}

impl AlertKind {
    /// All kinds.
    pub const ALL: [AlertKind; 19] = [
        AlertKind::DiskLow,
        AlertKind::FaultRate,
        AlertKind::FailureRate,
        AlertKind::BotWalls,
        AlertKind::HostsFailing,
        AlertKind::Stalled,
        AlertKind::ClockJump,
        AlertKind::Plugin,
        AlertKind::Checkpoint,
        AlertKind::Handover,
        AlertKind::Browser,
        AlertKind::Rendering,
        AlertKind::Commands,
        AlertKind::Nats,
        AlertKind::PartGone,
        AlertKind::LinksWaiting,
        AlertKind::JetstreamLow,
        AlertKind::Lease,
        AlertKind::Halted,
    ];

    /// Returns the kind's name.
    pub fn name(self) -> &'static str {
        match self {
            AlertKind::DiskLow => "disk-low",
            AlertKind::FaultRate => "fault-rate",
            AlertKind::FailureRate => "failure-rate",
            AlertKind::BotWalls => "bot-walls",
            AlertKind::HostsFailing => "hosts-failing",
            AlertKind::Stalled => "stalled",
            AlertKind::ClockJump => "clock-jump",
            AlertKind::Plugin => "plugin",
            AlertKind::Checkpoint => "checkpoint",
            AlertKind::Handover => "handover",
            AlertKind::Browser => "browser",
            AlertKind::Rendering => "rendering",
            AlertKind::Commands => "commands",
            AlertKind::Nats => "nats",
            AlertKind::PartGone => "part-gone",
            AlertKind::LinksWaiting => "links-waiting",
            AlertKind::JetstreamLow => "jetstream-low",
            AlertKind::Lease => "lease",
            AlertKind::Halted => "halted",
        }
    }

    /// Returns `true` if the alert reports a single event, which has no end.
    fn is_event(self) -> bool {
        matches!(self, AlertKind::ClockJump | AlertKind::Plugin)
    }
}

impl Severity {
    /// Returns the severity's name.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }
}

impl Event {
    /// Returns the event's name.
    pub fn name(self) -> &'static str {
        match self {
            Event::Raised => "raised",
            Event::Cleared => "cleared",
        }
    }
}

/// Formats the alert as in `alerts.log`, after the time and the event.
impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = match self.subject.as_str() {
            "" => "-",
            subject => subject,
        };
        let line = |text: &str| text.replace(['\n', '\r'], " ");
        write!(
            f,
            "{} {} {} {}",
            self.severity.name(),
            self.kind.name(),
            subject.replace(char::is_whitespace, "_"),
            line(&self.message)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings as a profile has them.
    pub(super) fn settings(toml: &str) -> opilio_profile::Alerts {
        let text = format!("[alerts]\n{toml}");
        let given = opilio_profile::ProfileContext {
            builtins: opilio_stacks::builtin_plugins(),
            seeds: vec!["http://a.localhost/".to_owned()],
            ..opilio_profile::ProfileContext::default()
        };
        let profile = opilio_profile::Profile::parse("p.toml", &text, &given);
        profile.unwrap_or_else(|faults| panic!("{faults}")).alerts
    }

    #[test]
    fn an_alert_with_line_ends_is_one_line_of_the_log() {
        let alert = Alert {
            kind: AlertKind::Plugin,
            subject: "a b".to_owned(),
            severity: Severity::Critical,
            message: "one\ntwo".to_owned(),
            since: Timestamp::UNIX_EPOCH,
            until: None,
            acknowledged: None,
        };
        assert_eq!(alert.to_string(), "critical plugin a_b one two");
    }
}

//! Alert settings: thresholds of problems, and the channels to the operator.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::byte_size::{ByteSize, SizeWritten};
use crate::check::{Part, quote};
use crate::duration::DurationWritten;

/// Alerts about problems of the crawl. Every alert is written to `alerts.log`, to the job's status and to the terminal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct AlertsFile {
    /// Free space on a disk that the job writes to, below which there is an alert. Default `"4GiB"`: enough for a few archive
    /// files while an operator makes room.
    pub disk_warn: SizeWritten,

    /// Free space on a disk below which the crawl pauses. Default `"1GiB"`: enough to finish the fetches in flight and to keep
    /// the store consistent.
    pub disk_pause: SizeWritten,

    /// `true` if a crawl that was paused because of a full disk resumes by itself once there is more than `disk-warn`.
    /// Default `false`: the operator who made room decides.
    pub disk_resume: bool,

    /// Period over which the percentages are computed. Default `"10m"`: one bad minute does not cause an alert.
    pub window: DurationWritten,

    /// URIs that must have been finished in that period before a percentage counts. Default `50`: percentages of fewer URIs
    /// depend on chance.
    #[schemars(range(min = 1))]
    pub window_uris: u64,

    /// Plugin errors, in percent of the URIs finished, at which there is an alert; 0 for no such alert. Default `5`: a plugin
    /// that fails on every twentieth page is broken.
    #[schemars(range(max = 100))]
    pub faults_percent: u8,

    /// Failed fetches, in percent of the URIs finished, at which there is an alert; 0 for no such alert. Default `50`: a higher
    /// share is usually caused by the crawler's own network.
    #[schemars(range(max = 100))]
    pub failures_percent: u8,

    /// Responses that a filter took for a bot wall, in percent of the URIs finished, at which there is an alert; 0 for no such
    /// alert. Default `20`: at this share the crawl archives mostly walls of some sites.
    #[schemars(range(max = 100))]
    pub walls_percent: u8,

    /// Pages that reached a limit of time or memory or crashed, in percent of those that were to be rendered, at which there is an
    /// alert. It needs five such pages; 0 for no such alert. Default `50`: so many are seldom slow or too large for the browser.
    #[schemars(range(max = 100))]
    pub rendering_percent: u8,

    /// Queues that back off after failures, in percent of those that hold URIs, at which there is an alert. It needs ten or
    /// more queues that hold URIs, or that all of them back off; 0 for no such alert. Default `50`: so many hosts are seldom down at once.
    #[schemars(range(max = 100))]
    pub failing_hosts_percent: u8,

    /// Time without a finished URI, although URIs are due, after which there is an alert; `"none"` for no such alert.
    /// Default `"30m"`: longer than a large download or a politeness delay takes.
    pub stalled_after: DurationWritten,

    /// Largest change of the machine's clock, forward or back, without an alert; `"none"` for no such alert. Default `"30s"`:
    /// due times and dates of captures depend on the clock.
    pub clock_jump: DurationWritten,

    /// Time after which there is an alert if no process works on a part of a shared crawl that has something to do; `"none"` for no
    /// such alert. Default `"2m"`: longer than a daemon takes to restart a crawl whose process died.
    pub part_gone_after: DurationWritten,

    /// Time for which links between the parts of a shared crawl wait, in NATS or in the frontier, after which there is an alert;
    /// `"none"` for no such alert. Default `"10m"`: links wait for seconds, and somewhat longer when NATS is restarted.
    pub links_waiting_after: DurationWritten,

    /// Used storage of the account in JetStream, in percent of its limit, at which a shared crawl raises an alert; 0 for no such
    /// alert. Default `80`: an operator needs time to make room.
    #[schemars(range(max = 100))]
    pub jetstream_percent: u8,

    /// Sessions of a process of a shared crawl that others end within an hour, at which there is an alert; 0 for no such alert.
    /// Default `3`: one or two are an outage of the network.
    #[schemars(range(max = 1000))]
    pub sessions_lost: u16,

    /// URL to which alerts are sent as JSON, by POST. No default: alerts are not sent.
    #[schemars(extend("examples" = ["https://alerts.example.org/opilio"]))]
    pub webhook: Option<String>,

    /// Longest time for the webhook. Default `"10s"`: each alert is sent up to four times.
    pub webhook_timeout: DurationWritten,

    /// A program that is started for each alert, and its arguments; it reads the alert as JSON. `{job}`, `{name}`, `{profile}`,
    /// `{event}`, `{kind}`, `{severity}`, `{subject}` and `{message}` are filled in. Default `[]`: no program is started.
    #[schemars(extend("examples" = [["mail", "-s", "{kind} {event}: {job}", "crawls@example.org"]]))]
    pub command: Vec<String>,

    /// Longest time for the program before it is killed. Default `"1m"`: longer than a mail server takes.
    pub command_timeout: DurationWritten,
}

/// Alerts about problems of the crawl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alerts {
    /// Free space below which there is an alert; `None`: never.
    pub disk_warn: Option<ByteSize>,
    /// Free space below which the crawl pauses; `None`: never.
    pub disk_pause: Option<ByteSize>,
    /// `true` if a crawl that was paused because of a full disk resumes by itself.
    pub disk_resume: bool,
    /// Period over which the percentages are computed.
    pub window: Duration,
    /// URIs that must have been finished in that period; at least 1.
    pub window_uris: u64,
    /// Plugin errors in percent of URIs finished; 0: no alert.
    pub faults_percent: u8,
    /// Failed fetches in percent of URIs finished; 0: no alert.
    pub failures_percent: u8,
    /// Responses taken for bot walls, in percent of URIs finished; 0: no alert.
    pub walls_percent: u8,
    /// Rendered pages that were cut, in percent of those that were to be rendered; 0: no alert.
    pub rendering_percent: u8,
    /// Queues in back-off, in percent of queues that hold URIs; 0: no alert.
    pub failing_hosts_percent: u8,
    /// Time without a finished URI; `None`: no alert.
    pub stalled_after: Option<Duration>,
    /// Largest change of the clock without an alert; `None`: no alert.
    pub clock_jump: Option<Duration>,
    /// Time without a process of a part of a shared crawl; `None`: no alert.
    pub part_gone_after: Option<Duration>,
    /// Time for which links between parts wait; `None`: no alert.
    pub links_waiting_after: Option<Duration>,
    /// Used storage in JetStream in percent of its limit; 0: no alert.
    pub jetstream_percent: u8,
    /// Sessions lost within an hour; 0: no alert.
    pub sessions_lost: u16,
    /// URL to which alerts are sent.
    pub webhook: Option<String>,
    /// Longest time for the webhook.
    pub webhook_timeout: Duration,
    /// A program and its arguments; empty: no program.
    pub command: Vec<String>,
    /// Longest time for the program.
    pub command_timeout: Duration,
}

impl Default for AlertsFile {
    fn default() -> Self {
        Self {
            disk_warn: "4GiB".into(),
            disk_pause: "1GiB".into(),
            disk_resume: false,
            window: "10m".into(),
            window_uris: 50,
            faults_percent: 5,
            failures_percent: 50,
            walls_percent: 20,
            rendering_percent: 50,
            failing_hosts_percent: 50,
            stalled_after: "30m".into(),
            clock_jump: "30s".into(),
            part_gone_after: "2m".into(),
            links_waiting_after: "10m".into(),
            jetstream_percent: 80,
            sessions_lost: 3,
            webhook: None,
            webhook_timeout: "10s".into(),
            command: Vec::new(),
            command_timeout: "1m".into(),
        }
    }
}

impl AlertsFile {
    pub(crate) fn check(&self, mut part: Part<'_, '_>) -> Alerts {
        if let Some(webhook) = &self.webhook {
            let is_http = ["http://", "https://"]
                .iter()
                .any(|scheme| webhook.starts_with(scheme));
            if !is_http || opilio_uri::Uri::parse(webhook).is_err() {
                part.refuse(
                    "webhook",
                    format!("not an address: {}", quote(webhook)),
                    "write one such as \"https://alerts.example.org/opilio\"",
                );
            }
        }
        if self.command.first().is_some_and(String::is_empty) {
            part.refuse(
                "command",
                "no program".to_owned(),
                "write the program and each argument as a text of its own, as in [\"mail\", \"-s\", \"{kind}\", \"crawls@example.org\"]",
            );
        }
        let alerts = Alerts {
            disk_warn: part.size_limit("disk-warn", &self.disk_warn),
            disk_pause: part.size_limit("disk-pause", &self.disk_pause),
            disk_resume: self.disk_resume,
            window: part.positive_duration("window", &self.window),
            window_uris: self.window_uris.max(1),
            faults_percent: self.faults_percent,
            failures_percent: self.failures_percent,
            walls_percent: self.walls_percent,
            rendering_percent: self.rendering_percent,
            failing_hosts_percent: self.failing_hosts_percent,
            stalled_after: part.duration_limit("stalled-after", &self.stalled_after),
            clock_jump: part.duration_limit("clock-jump", &self.clock_jump),
            part_gone_after: part.duration_limit("part-gone-after", &self.part_gone_after),
            links_waiting_after: part
                .duration_limit("links-waiting-after", &self.links_waiting_after),
            jetstream_percent: self.jetstream_percent,
            sessions_lost: self.sessions_lost,
            webhook: self.webhook.clone(),
            webhook_timeout: part.positive_duration("webhook-timeout", &self.webhook_timeout),
            command: self.command.clone(),
            command_timeout: part.positive_duration("command-timeout", &self.command_timeout),
        };
        if alerts.disk_pause > alerts.disk_warn && alerts.disk_warn.is_some() {
            part.refuse(
                "disk-pause",
                "the crawl would pause before it warns".to_owned(),
                "write a size that is smaller than disk-warn",
            );
        }
        alerts
    }
}

//! Webhooks: URLs that get events of crawls as JSON. A profile has them for its crawls, and the daemon's configuration for all
//! jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Part, quote};
use crate::duration::{DurationWritten, parse_duration};
use crate::secret::{SecretFile, SecretSource};

/// Most events of one request.
const BATCH_MAX: u32 = 1000;

/// A URL that gets events as JSON, by POST.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WebhookFile {
    /// URL to which events are sent.
    #[schemars(extend("examples" = ["https://events.example.org/opilio"]))]
    pub url: String,

    /// Kinds of events: `"job"` (starts, pauses, ends), `"alert"`, `"file"` (an archive file was handed over) and `"capture"`
    /// (each line of `crawl.log`). Default `["job", "alert"]`: a crawl has millions of captures.
    #[serde(default = "kinds")]
    pub events: Vec<EventKind>,

    /// Place of the secret that signs each request (Standard Webhooks): a text, or `whsec_` and base64. No default: requests are
    /// not signed.
    #[serde(default)]
    pub secret: Option<SecretFile>,

    /// Most events of one request. Default `100`: about 50 KB of captures.
    #[schemars(range(min = 1, max = 1000))]
    #[serde(default = "batch_max")]
    pub batch_max: u32,

    /// Longest time for which an event waits for others. Default `"1s"`: short enough for people, long enough for batches.
    #[serde(default = "batch_wait")]
    pub batch_wait: DurationWritten,

    /// Longest time for one request. Default `"10s"`: failed requests are repeated.
    #[serde(default = "timeout")]
    pub timeout: DurationWritten,
}

/// Kind of an event.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A job has another state.
    Job,
    /// An alert was raised or cleared.
    Alert,
    /// An archive file was handed over.
    File,
    /// A URI was visited.
    Capture,
}

impl EventKind {
    /// Its name in settings and events.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::Job => "job",
            EventKind::Alert => "alert",
            EventKind::File => "file",
            EventKind::Capture => "capture",
        }
    }
}

/// A URL that gets events as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its name in the profile.
    pub name: String,
    /// URL to which events are sent.
    pub url: String,
    /// Kinds of events.
    pub events: BTreeSet<EventKind>,
    /// The place of the secret that signs requests; `None`: they are not signed.
    pub secret: Option<SecretSource>,
    /// Most events of one request; at least 1.
    pub batch_max: usize,
    /// Longest time for which an event waits for others.
    pub batch_wait: Duration,
    /// Longest time for one request.
    pub timeout: Duration,
}

fn kinds() -> Vec<EventKind> {
    vec![EventKind::Job, EventKind::Alert]
}

fn batch_max() -> u32 {
    100
}

fn batch_wait() -> DurationWritten {
    "1s".into()
}

fn timeout() -> DurationWritten {
    "10s".into()
}

pub(crate) fn check_webhooks(
    written: &BTreeMap<String, WebhookFile>,
    mut part: Part<'_, '_>,
    folder: &Path,
) -> Vec<Webhook> {
    let each = written.iter().map(|(name, file)| {
        let mut part = part.part(name);
        for (key, problem, remedy) in file.faults() {
            part.refuse(key, problem, remedy);
        }
        let secret = file.secret.as_ref();
        let secret = secret.map(|secret| secret.check("secret", &mut part, folder));
        let batch_wait = part.duration("batch-wait", &file.batch_wait);
        let timeout = part.positive_duration("timeout", &file.timeout);
        file.webhook(name, secret, batch_wait, timeout)
    });
    each.collect()
}

impl WebhookFile {
    /// Checks a webhook that is not part of a profile. The path of its secret is used as it is.
    ///
    /// # Errors
    /// The key that has an error, the error, and a remedy.
    pub fn checked(&self, name: &str) -> Result<Webhook, String> {
        if let Some((key, problem, remedy)) = self.faults().into_iter().next() {
            return Err(format!("{key}: {problem}; {remedy}"));
        }
        let duration = |key: &str, written: &DurationWritten| match written {
            DurationWritten::Number(0) => Ok(Duration::ZERO),
            DurationWritten::Text(text) => {
                parse_duration(text).map_err(|_| format!("{key}: not a duration: {}", quote(text)))
            }
            DurationWritten::Number(number) => Err(format!("{key}: {number} has no unit")),
        };
        let secret = self.secret.as_ref().map(|secret| {
            let place = secret.place();
            place.ok_or("secret: write { env = \"NAME\" } or { file = \"secret.txt\" }")
        });
        let batch_wait = duration("batch-wait", &self.batch_wait)?;
        let timeout = duration("timeout", &self.timeout)?;
        Ok(self.webhook(name, secret.transpose()?, batch_wait, timeout))
    }

    /// Returns the errors of single keys, each with a remedy.
    fn faults(&self) -> Vec<(&'static str, String, &'static str)> {
        let mut faults = Vec::new();
        let is_http = ["http://", "https://"]
            .iter()
            .any(|scheme| self.url.starts_with(scheme));
        if !is_http || opilio_uri::Uri::parse(&self.url).is_err() {
            let problem = format!("not an address: {}", quote(&self.url));
            let remedy = "write one such as \"https://events.example.org/opilio\"";
            faults.push(("url", problem, remedy));
        }
        if self.events.is_empty() {
            let problem = "no event would be sent".to_owned();
            faults.push(("events", problem, "name at least one kind"));
        }
        if !(1..=BATCH_MAX).contains(&self.batch_max) {
            let problem = format!("not a number from 1 to {BATCH_MAX}: {}", self.batch_max);
            faults.push(("batch-max", problem, "write 100"));
        }
        faults
    }

    fn webhook(
        &self,
        name: &str,
        secret: Option<SecretSource>,
        batch_wait: Duration,
        timeout: Duration,
    ) -> Webhook {
        Webhook {
            name: name.to_owned(),
            url: self.url.clone(),
            events: self.events.iter().copied().collect(),
            secret,
            batch_max: self.batch_max.clamp(1, BATCH_MAX) as usize,
            batch_wait,
            timeout,
        }
    }
}

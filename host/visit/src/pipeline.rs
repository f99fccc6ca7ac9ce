//! The pipeline of one visit: the issued URI, and the settings and plugins that apply to it until the visit is over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use encoding_rs::Encoding;
use jiff::Timestamp;
use opilio_fetch::{Exchange, ResponseHead};
use opilio_frontier::{ContentState, Issue, Outcome, Transfer, UNTIL_CHANGED, WarcLocation};
use opilio_profile::{EffectiveSettings, Profile, Strategy};
use opilio_sandbox::Document;
use opilio_stacks::Stacks;
use opilio_uri::{Hop, Uri};

use crate::plugin_view::PluginMemory;
use crate::reading;
use crate::status;

/// Minimum lifetime of a failed prerequisite. It is longer than the politeness delay of queues.
const DENIAL_MIN: Duration = Duration::from_secs(600);

/// The pipeline of one issued URI. Its settings and plugins are those in effect when the visit began. Later changes do not affect
/// it.
pub struct Pipeline {
    /// The URI as the frontier issued it.
    pub issue: Issue,
    /// The profile.
    pub profile: Arc<Profile>,
    /// The settings that apply to the URI before its media type is known.
    pub settings: Arc<EffectiveSettings>,
    /// The plugins that apply to the URI before its media type is known.
    pub stacks: Arc<Stacks>,
    /// All plugins in effect.
    pub(crate) in_force: Arc<Stacks>,
    /// Time at which the visit began.
    pub started: Timestamp,
}

/// The end of a visit: the outcome for the frontier, and the part of the log line that the visit decides.
pub struct Conclusion {
    /// The outcome for the frontier.
    pub outcome: Outcome,
    /// The part of the log line, for `crawl.log` and observers.
    pub entry: LogEntry,
    /// The ranks that plugins gave to the outlinks, in the order of the outlinks.
    pub ranks: Vec<Option<u8>>,
}

/// The part of a log line that a visit decides.
#[derive(Clone, Default)]
pub struct LogEntry {
    /// Fetch status.
    pub status: i32,
    /// Bytes of the payload.
    pub size: Option<u64>,
    /// Media type as the server named it.
    pub media_type: Option<String>,
    /// Time at which the fetch began, and its duration.
    pub fetch: Option<(Timestamp, Duration)>,
    /// Payload digest with its algorithm, such as `sha1:…`.
    pub digest: Option<String>,
    /// Annotations, in order.
    pub annotations: Vec<String>,
    /// Bytes of the response as received over the wire, headers included.
    pub received: Option<u64>,
    /// The first record of the capture; `None` if nothing was archived.
    pub archived: Option<WarcLocation>,
    /// The state of the content.
    pub state: ContentState,
    /// Notes of plugins on the document.
    pub notes: BTreeMap<String, String>,
}

impl Pipeline {
    /// Starts a visit with the profile and the plugins in force.
    pub fn new(
        issue: Issue,
        profile: Arc<Profile>,
        in_force: Arc<Stacks>,
        started: Timestamp,
    ) -> Pipeline {
        let settings = profile.effective_with(&opilio_profile::UriContext {
            source: issue.record.source.as_deref(),
            now: Some(started),
            ..opilio_profile::UriContext::of(&issue.uri)
        });
        let stacks = in_force.selected(&settings, profile.settings());
        Pipeline {
            issue,
            profile,
            settings,
            stacks,
            in_force,
            started,
        }
    }

    /// Returns the settings for a URI of the same source.
    pub(crate) fn settings_for(
        &self,
        uri: &Uri,
        media_type: Option<&str>,
    ) -> Arc<EffectiveSettings> {
        self.profile.effective_with(&opilio_profile::UriContext {
            source: self.issue.record.source.as_deref(),
            now: Some(self.started),
            media_type,
            uri,
        })
    }

    /// Settings and plugins for a response of this media type.
    pub fn for_response(&self, media_type: &str) -> (Arc<EffectiveSettings>, Arc<Stacks>) {
        let settings = self.settings_for(&self.issue.uri, Some(media_type));
        let stacks = self.stacks_of(&settings);
        (settings, stacks)
    }

    /// Returns the plugins that these settings select.
    pub(crate) fn stacks_of(&self, settings: &EffectiveSettings) -> Arc<Stacks> {
        self.in_force.selected(settings, self.profile.settings())
    }

    /// Returns `true` if other URIs wait for this one: a look-up, a robots.txt or a login.
    pub fn is_prerequisite(&self) -> bool {
        self.issue.record.hop_path.last() == Some(Hop::Prerequisite)
    }

    /// Returns `true` if the URI is a robots.txt. Its URI alone decides: a link may lead to the same document.
    pub fn is_robots(&self) -> bool {
        self.issue.uri.robots_txt().as_ref() == Some(&self.issue.uri)
    }

    /// Returns the base for relative references until an extractor reports one. Strings of a script are resolved against the page
    /// that runs it, so the base of a script is the page on which it was found.
    pub(crate) fn base(&self, head: &ResponseHead) -> String {
        let media_type = head.media_type().unwrap_or_default();
        let script = media_type.ends_with("javascript") || media_type.ends_with("ecmascript");
        let page = self.issue.record.via.as_ref().filter(|_| script);
        page.map_or_else(|| self.issue.uri.as_str().to_owned(), Clone::clone)
    }

    /// The document as plugins see it.
    pub fn document(
        &self,
        head: &ResponseHead,
        content: Bytes,
        charset: Option<&'static Encoding>,
        memory: &PluginMemory,
    ) -> Document {
        let uri = self.issue.uri.as_str();
        reading::document(uri, &self.base(head), head, content, charset, memory)
    }

    /// Returns `true` if the extractors in effect have already extracted the archived version.
    pub(crate) fn is_extracted(&self) -> bool {
        let record = &self.issue.record;
        let (_, stacks) = self.for_response(&record.media_type);
        record.extractor == Some(stacks.extract_hash)
    }

    /// Returns `true` if attempts are left for the URI.
    pub(crate) fn attempts_left(&self) -> bool {
        !self.is_idle_robots() && self.issue.record.attempts < self.settings.retry.max_retries
    }

    /// Returns `true` if the URI is a robots.txt and the profile ignores robots.txt. It is not retried, because its whole queue
    /// would wait.
    pub(crate) fn is_idle_robots(&self) -> bool {
        self.is_robots() && !self.settings.robots.policy.needs_robots_txt()
    }

    /// Returns the lifetime of a failed prerequisite, such as a host without an address or an unavailable robots.txt. It is at most
    /// `most`, and not longer than the time until revisited pages are probed. It is at least [`DENIAL_MIN`]: the queue waits in
    /// between, and with a shorter lifetime every page that waits for the prerequisite would request it again.
    #[must_use]
    pub fn denial_lifetime(&self, most: Duration) -> Duration {
        let settings = &self.settings;
        if settings.strategy == Strategy::Snapshot || self.is_idle_robots() {
            return most;
        }
        most.min(settings.revisit.min_wait.max(DENIAL_MIN))
    }

    /// Returns `true` if a failure with this status is retried: the profile retries such failures, and attempts are left.
    pub(crate) fn may_pass(&self, status: i32) -> bool {
        self.settings.retry.has_error(status) && self.attempts_left()
    }

    /// Returns the conclusion for a URI whose host, domain or source has used up a quota; `None` if all quotas are within limits.
    pub fn over_quota(&self) -> Option<Conclusion> {
        let over = self.issue.over_quota.as_ref()?;
        let annotation = format!("quota:{}:{}", over.kind.name(), over.limit);
        let status = match over.limit {
            "run-time" => status::RUN_TIME,
            _ => status::QUOTA,
        };
        Some(Conclusion::postponed(status, annotation))
    }

    /// Returns the conclusion for a fetch that the operator has cancelled. A partial response is not archived.
    pub fn cancelled(&self, duration: Duration) -> Conclusion {
        Conclusion {
            outcome: Outcome::Failed {
                status: status::CANCELLED,
                transfer: Some(Transfer { duration, bytes: 0 }),
            },
            entry: LogEntry {
                fetch: Some((self.started, duration)),
                ..LogEntry::of(status::CANCELLED, "cancelled".to_owned())
            },
            ranks: Vec::new(),
        }
    }
}

impl Conclusion {
    /// Creates a conclusion without outlinks.
    pub fn new(outcome: Outcome, entry: LogEntry) -> Conclusion {
        Conclusion {
            outcome,
            entry,
            ranks: Vec::new(),
        }
    }

    /// The conclusion for a URI that cannot be fetched. No request was sent.
    pub fn failed(status: i32, annotation: String) -> Conclusion {
        let outcome = Outcome::Failed {
            status,
            transfer: None,
        };
        Conclusion::new(outcome, LogEntry::of(status, annotation))
    }

    /// The conclusion for a URI that is disregarded until the rule that refuses it changes. No request was sent.
    pub fn disregarded(status: i32, annotation: String) -> Conclusion {
        let outcome = disregarded(status, annotation.clone(), None);
        Conclusion::new(outcome, LogEntry::of(status, annotation))
    }

    /// The conclusion for a URI that is not fetched for a reason that may disappear at any time. No request was sent.
    pub fn postponed(status: i32, annotation: String) -> Conclusion {
        let outcome = Outcome::Disregarded {
            status,
            reason: annotation.clone(),
            wait: None,
            transfer: None,
        };
        Conclusion::new(outcome, LogEntry::of(status, annotation))
    }

    /// The conclusion for a server that cannot be reached. The failure affects all URIs of its queue. `error` is empty after a
    /// response.
    pub fn retry(
        status: i32,
        error: &str,
        after: Option<Duration>,
        transfer: Option<Transfer>,
    ) -> Conclusion {
        let annotation = match error {
            "" => String::new(),
            error => format!("err={error}"),
        };
        let outcome = Outcome::Retry {
            status,
            queue_after: 1,
            after,
            transfer,
        };
        Conclusion::new(outcome, LogEntry::of(status, annotation))
    }
}

impl LogEntry {
    /// Creates an entry with this status, and with this annotation if it is not empty.
    pub fn of(status: i32, annotation: String) -> LogEntry {
        let annotations = if annotation.is_empty() {
            Vec::new()
        } else {
            vec![annotation]
        };
        LogEntry {
            status,
            annotations,
            ..LogEntry::default()
        }
    }
}

/// The outcome for a URI that is disregarded until the rule that refuses it changes.
pub(crate) fn disregarded(status: i32, reason: String, transfer: Option<Transfer>) -> Outcome {
    Outcome::Disregarded {
        status,
        reason,
        wait: Some(UNTIL_CHANGED),
        transfer,
    }
}

/// The target of a redirect over HTTP.
pub fn redirect_of(uri: &Uri, exchange: &Exchange) -> Option<Uri> {
    let head = exchange
        .head
        .as_ref()
        .filter(|head| (300..400).contains(&head.status))?;
    uri.join(head.first("location")?).ok().filter(Uri::is_http)
}

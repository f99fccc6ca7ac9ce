//! The settings that may differ from URI to URI and from queue to queue.

use std::path::Path;

use jiff::Timestamp;
use opilio_uri::Uri;
use serde::{Deserialize, Serialize};

use crate::check::Check;
use crate::cookies::{Cookies, CookiesFile};
use crate::fetch::{Fetch, FetchFile};
use crate::file::ProfileFile;
use crate::plugin_settings::PluginSettings;
use crate::politeness::{Politeness, PolitenessFile};
use crate::precedence_file::Files;
use crate::profile::Strategy;
use crate::queue::{Queue, QueueFile};
use crate::quotas::{Quotas, QuotasFile};
use crate::retry::{Retry, RetryFile};
use crate::revisit::{Revisit, RevisitFile};
use crate::robots::{Robots, RobotsFile};
use crate::stacks::{Stacks, StacksFile};
use crate::uri::{UriFile, UriPrecedencePolicy, UriSettings};

/// The settings that may differ from URI to URI.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Whether the document is fetched once or again and again.
    pub strategy: Strategy,
    /// Which plugins are asked at each stage.
    pub stacks: Stacks,
    /// What overrides say of the settings of plugins.
    pub plugins: PluginSettings,
    /// How long its queue rests between two fetches: that of [`QueueSettings`].
    pub politeness: Politeness,
    /// Whether robots.txt is obeyed.
    pub robots: Robots,
    /// How it is asked for.
    pub fetch: Fetch,
    /// Whether cookies are kept.
    pub cookies: Cookies,
    /// What is tried again; how often and when is that of [`QueueSettings`].
    pub retry: Retry,
    /// When it is visited again.
    pub revisit: Revisit,
    /// What goes first within its queue, and what it costs.
    pub uri: UriSettings,
}

/// The settings that hold for a queue as a whole: those whose overrides match by what a queue's name says.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueSettings {
    /// How long it rests between two fetches.
    pub politeness: Politeness,
    /// How often its URIs are tried again, and how long it waits after a failure. What counts as a failure is a matter of
    /// [`Settings`].
    pub retry: Retry,
    /// Fetches at once, rank, budget, group.
    pub queue: Queue,
    /// How much is fetched of it, of its host, its domain, a seed.
    pub quotas: Quotas,
}

/// A URI, and what is known of it. Overrides that match by what is not known do not match.
#[derive(Debug, Clone, Copy)]
pub struct Context<'c> {
    /// The URI.
    pub uri: &'c Uri,
    /// The seed it was found from, as the normalised URI of the seed.
    pub source: Option<&'c str>,
    /// The time.
    pub now: Option<Timestamp>,
    /// The media type of the response, parameters allowed.
    pub media_type: Option<&'c str>,
}

impl<'c> Context<'c> {
    /// Of a URI of which nothing else is known.
    pub const fn of(uri: &'c Uri) -> Self {
        Self {
            uri,
            source: None,
            now: None,
            media_type: None,
        }
    }
}

/// What is written of them: the tables of a profile in which something can be overridden.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Overridable {
    strategy: Strategy,
    pub(crate) stacks: StacksFile,
    politeness: PolitenessFile,
    robots: RobotsFile,
    fetch: FetchFile,
    cookies: CookiesFile,
    retry: RetryFile,
    revisit: RevisitFile,
    queue: QueueFile,
    uri: UriFile,
    quotas: QuotasFile,
}

impl From<&ProfileFile> for Overridable {
    fn from(written: &ProfileFile) -> Self {
        Self {
            strategy: written.strategy,
            stacks: written.stacks.clone(),
            politeness: written.politeness.clone(),
            robots: written.robots.clone(),
            fetch: written.fetch.clone(),
            cookies: written.cookies.clone(),
            retry: written.retry.clone(),
            revisit: written.revisit.clone(),
            queue: written.queue.clone(),
            uri: written.uri.clone(),
            quotas: written.quotas.clone(),
        }
    }
}

impl Overridable {
    pub(crate) fn check(
        &self,
        check: &mut Check<'_>,
        stacks: Stacks,
        folder: &Path,
        files: &mut Files,
    ) -> (Settings, QueueSettings) {
        let politeness = self.politeness.check(check.part("politeness"));
        let retry = self.retry.check(check.part("retry"));
        let settings = Settings {
            strategy: self.strategy,
            stacks,
            plugins: PluginSettings::default(),
            politeness: politeness.clone(),
            robots: self.robots.check(check.part("robots")),
            fetch: self.fetch.check(check.part("fetch"), folder),
            cookies: self.cookies.check(check.part("cookies"), folder),
            retry: retry.clone(),
            revisit: self.revisit.check(check.part("revisit")),
            uri: self.uri.check(check.part("uri"), folder, files),
        };
        let queue = QueueSettings {
            politeness,
            retry,
            queue: self.queue.check(check.part("queue")),
            quotas: self.quotas.check(check.part("quotas")),
        };
        (settings, queue)
    }
}

/// Each override is fit by itself; where two together contradict each other, the longer wait holds.
impl Settings {
    pub(crate) fn reconciled(mut self) -> Self {
        reconcile(&mut self.politeness, &mut self.retry);
        let revisit = &mut self.revisit;
        revisit.max_wait = revisit.max_wait.max(revisit.min_wait);
        revisit.default_wait = revisit
            .default_wait
            .clamp(revisit.min_wait, revisit.max_wait);
        let extract = &self.stacks.extract;
        self.stacks
            .last_resort
            .retain(|name| extract.contains(name));
        if self.uri.precedence_policy == UriPrecedencePolicy::File && self.uri.precedences.is_none()
        {
            self.uri.precedence_policy = UriPrecedencePolicy::Base;
        }
        self
    }
}

impl QueueSettings {
    pub(crate) fn reconciled(mut self) -> Self {
        reconcile(&mut self.politeness, &mut self.retry);
        self
    }
}

fn reconcile(politeness: &mut Politeness, retry: &mut Retry) {
    politeness.max_delay = politeness.max_delay.max(politeness.min_delay);
    retry.delay_max = retry.delay_max.max(retry.delay);
}

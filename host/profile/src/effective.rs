//! Effective settings: those that may differ from URI to URI and from queue to queue.

pub(crate) mod relations;

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use opilio_model::{Politeness, QueueSettings, Strategy};
use opilio_uri::Uri;
use serde::{Deserialize, Serialize};

use crate::browser::{Browser, BrowserFile};
use crate::check::Check;
use crate::cookies::{Cookies, CookiesFile};
use crate::fetch::{Fetch, FetchFile};
use crate::file::ProfileFile;
use crate::plugin_settings::PluginSettings;
use crate::politeness::PolitenessFile;
use crate::precedence_file::Files;
use crate::queue::{QueueFile, ServerGroup};
use crate::quotas::QuotasFile;
use crate::retry::{Retry, RetryFile};
use crate::revisit::{Revisit, RevisitFile};
use crate::robots::{RobotsFile, RobotsSettings};
use crate::stacks::{StackSettings, StacksFile};
use crate::uri::{UriFile, UriPrecedencePolicy, UriSettings};

/// Settings that may differ from URI to URI.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectiveSettings {
    /// Whether the document is fetched once or again and again.
    pub strategy: Strategy,
    /// Plugins of each stage.
    pub stacks: StackSettings,
    /// Settings of plugins from overrides.
    pub plugins: PluginSettings,
    /// Politeness delay of its queue. The value in [`QueueSettings`] applies.
    pub politeness: Politeness,
    /// Whether robots.txt is obeyed.
    pub robots: RobotsSettings,
    /// Fetch settings.
    pub fetch: Fetch,
    /// Whether cookies are kept.
    pub cookies: Cookies,
    /// Rendering of its page, if it is one. Chromium's path, its sandbox, and the number of browsers and of their pages belong to the
    /// job.
    pub browser: Browser,
    /// Failures that are retried. The number and times of retries in [`QueueSettings`] apply.
    pub retry: Retry,
    /// Queues with which its queue is limited. The value of [`Profile::server_group`](crate::Profile::server_group) applies.
    pub server_group: ServerGroup,
    /// Times of revisits.
    pub revisit: Revisit,
    /// Precedence within its queue, and cost.
    pub uri: UriSettings,
}

/// A URI with the facts known about it. Overrides that match by an unknown fact do not match.
#[derive(Debug, Clone, Copy)]
pub struct UriContext<'c> {
    /// The URI.
    pub uri: &'c Uri,
    /// The seed from which it was found, as the seed's normalised URI.
    pub source: Option<&'c str>,
    /// The time.
    pub now: Option<Timestamp>,
    /// The media type of the response, parameters allowed.
    pub media_type: Option<&'c str>,
}

impl<'c> UriContext<'c> {
    /// Makes a context with only a URI.
    pub const fn of(uri: &'c Uri) -> Self {
        Self {
            uri,
            source: None,
            now: None,
            media_type: None,
        }
    }
}

/// The written form: the tables of a profile in which settings can be overridden.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Overridable {
    strategy: Strategy,
    pub(crate) stacks: StacksFile,
    politeness: PolitenessFile,
    robots: RobotsFile,
    fetch: FetchFile,
    cookies: CookiesFile,
    browser: BrowserFile,
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
            browser: written.browser.clone(),
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
        stacks: StackSettings,
        folder: &Path,
        files: &mut Files,
    ) -> (EffectiveSettings, QueueSettings) {
        let (politeness, bandwidth) = self.politeness.check(check.part("politeness"));
        let retry = self.retry.check(check.part("retry"));
        let (queue, server_group) = self.queue.check(check.part("queue"));
        let [quota, host_quota, domain_quota] = self.quotas.check_queue(check.part("quotas"));
        let queue = QueueSettings {
            politeness,
            max_retries: retry.max_retries,
            retry_delay: retry.delay,
            retry_delay_max: retry.delay_max,
            bandwidth,
            quota,
            host_quota,
            domain_quota,
            ..queue
        };
        let settings = EffectiveSettings {
            strategy: self.strategy,
            stacks,
            plugins: PluginSettings::default(),
            politeness,
            robots: self.robots.check(check.part("robots")),
            fetch: self.fetch.check(check.part("fetch"), folder),
            cookies: self.cookies.check(check.part("cookies"), folder),
            browser: self.browser.check(check.part("browser"), folder),
            retry,
            server_group,
            revisit: self.revisit.check(check.part("revisit")),
            uri: self.uri.check(check.part("uri"), folder, files),
        };
        (settings, queue)
    }
}

/// Resolves contradictions between overrides, each of which is valid by itself. The longer wait applies.
impl EffectiveSettings {
    pub(crate) fn reconciled(mut self) -> Self {
        let retry = &mut self.retry;
        reconcile(&mut self.politeness, retry.delay, &mut retry.delay_max);
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

/// Resolves the same contradictions in the settings of a queue.
pub(crate) fn reconciled_queue(mut queue: QueueSettings) -> QueueSettings {
    reconcile(
        &mut queue.politeness,
        queue.retry_delay,
        &mut queue.retry_delay_max,
    );
    queue
}

fn reconcile(politeness: &mut Politeness, retry_delay: Duration, retry_delay_max: &mut Duration) {
    politeness.max_delay = politeness.max_delay.max(politeness.min_delay);
    *retry_delay_max = (*retry_delay_max).max(retry_delay);
}

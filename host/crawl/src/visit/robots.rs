//! Redirects of a robots.txt. They are followed at once, because the whole host waits for its rules.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use opilio_fetch::Exchange;
use opilio_fetch::robots::ROBOTS_REDIRECTS_MAX;
use opilio_uri::Uri;
use opilio_visit::plugin_view::PluginMemory;
use opilio_visit::robots::answer_of;
use opilio_visit::{CaptureForm, Permit, RobotsAnswer, redirect_of};

use super::CrawlVisit;
use super::look_up::LookUpResult;
use crate::error::Halt;
use crate::records::{self, RecordContext};

/// Longest time for which a robots.txt waits for the queue of the host that it redirects to; then the visit is deferred.
const RESERVATION_PATIENCE: Duration = Duration::from_secs(60);

impl CrawlVisit<'_> {
    /// Returns the response to a request for robots.txt, after its redirects were followed and archived.
    pub(super) async fn follow_robots(
        &self,
        exchange: &Arc<Exchange>,
    ) -> Result<RobotsAnswer, Halt> {
        let (context, issue) = (self.context, &self.pipeline.issue);
        let (servers, frontier) = (&context.network.servers, &context.frontier);
        let mut answer = answer_of(exchange);
        let mut at = issue.uri.clone();
        let mut redirect = redirect_of(&at, exchange);
        for _ in 0..ROBOTS_REDIRECTS_MAX {
            let Some(target) = redirect.take() else { break };
            // Many hosts redirect to one host, whose robots.txt may be known already.
            if let Some(known) = servers.robots_answer(frontier, &target, Timestamp::now()) {
                answer = known;
                break;
            }
            if !self.reserve_queue(&target).await? {
                return Ok(RobotsAnswer::Busy(RESERVATION_PATIENCE));
            }
            let addresses = match self.addresses_now(&target).await? {
                LookUpResult::Found(addresses) => addresses,
                // The target cannot be a robots.txt. The response is that of the redirect, which excludes nothing.
                LookUpResult::NoSuchHost => {
                    self.release_queue(&target, Duration::ZERO)?;
                    break;
                }
                // The rules exist but are unavailable (RFC 9309 §2.3.1.4).
                LookUpResult::Failed(status) => {
                    self.release_queue(&target, Duration::ZERO)?;
                    answer = (status, Vec::new());
                    break;
                }
            };
            let permit = Permit {
                addresses,
                ..Permit::default()
            };
            let (next, _) = self
                .fetch(&target, &permit, &PluginMemory::default())
                .await?;
            self.release_queue(&target, next.duration)?;
            let about = RecordContext {
                via: Some(at.as_str()),
                hop_path: issue.record.hop_path.as_str(),
                ..RecordContext::default()
            };
            let records = records::of_exchange(&target, &next, &CaptureForm::Response, &about);
            let records = records::in_passing(records, &issue.uri);
            context.archive(records).await?;
            answer = answer_of(&next);
            redirect = redirect_of(&target, &next);
            let is_own = target.robots_txt().as_ref() == Some(&target);
            if is_own && redirect.is_none() && (200..500).contains(&answer.0) {
                let lifetime = self.pipeline.settings.robots.expires;
                let now = Timestamp::now();
                servers.keep_robots(frontier, &target, answer.clone(), lifetime, now)?;
            }
            at = target;
        }
        let (status, body) = answer;
        Ok(RobotsAnswer::Received(status, body))
    }

    /// Reserves the queue of a URI that is requested in passing, as soon as its politeness delay is over. Returns `false` if that
    /// takes too long.
    async fn reserve_queue(&self, uri: &Uri) -> Result<bool, Halt> {
        let context = self.context;
        let queue = context.current().queue_name(uri);
        if queue == self.pipeline.issue.queue {
            let settings = context.current().queue_settings(&queue);
            let politeness = &settings.politeness;
            self.pause(politeness.min_delay.min(RESERVATION_PATIENCE))
                .await?;
            return Ok(true);
        }
        let end = Timestamp::now() + RESERVATION_PATIENCE;
        loop {
            let now = Timestamp::now();
            let Some(at) = context.frontier().reserve_queue(&queue, uri, now)? else {
                return Ok(true);
            };
            if at > end {
                return Ok(false);
            }
            self.pause(Duration::try_from(at - now).unwrap_or_default())
                .await?;
        }
    }

    /// Waits, at most until the crawl ends. A long wait does not occupy a worker.
    async fn pause(&self, time: Duration) -> Result<(), Halt> {
        let cut = self.context.network.fetchers.base().abort_handle();
        let pause = self.waiting(tokio::time::sleep(time));
        cut.unless_made(pause).await.ok_or(Halt::Stopped)
    }

    fn release_queue(&self, uri: &Uri, took: Duration) -> Result<(), Halt> {
        let context = self.context;
        let queue = context.current().queue_name(uri);
        if queue != self.pipeline.issue.queue {
            let now = Timestamp::now();
            context.frontier().release_queue(&queue, took, now)?;
        }
        Ok(())
    }
}

//! The visit of a `dns:` URI, and look-ups of hosts for requests in passing.

use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use opilio_fetch::{FetchFailure, PayloadDigest};
use opilio_frontier::{ContentState, Digests, Outcome, Success, VisitUpdate};
use opilio_uri::Uri;
use opilio_visit::{Conclusion, Driver, LogEntry, Step, status};
use tracing::Instrument as _;

use super::{CrawlVisit, warc_location};
use crate::error::Halt;
use crate::records;

/// The result of a look-up in passing.
pub(super) enum LookUpResult {
    /// The addresses; empty if a proxy looks the host up.
    Found(Vec<IpAddr>),
    /// The name does not exist, and never had an address.
    NoSuchHost,
    /// The look-up failed, with this status code. The name may exist.
    Failed(i32),
}

impl CrawlVisit<'_> {
    /// Looks up the host of a `dns:` URI.
    pub(super) async fn look_up(&self) -> Result<Conclusion, Halt> {
        let (context, pipeline) = (self.context, &self.pipeline);
        let uri = &pipeline.issue.uri;
        let host = uri.path();
        self.step(Step::Fetch);
        let dns = &pipeline.profile.dns;
        let fetcher = context.network.fetchers.base();
        let resolving = fetcher.resolve(host, pipeline.started);
        let resolving = resolving.instrument(tracing::info_span!("dns"));
        let (servers, frontier) = (&context.network.servers, &context.frontier);
        let denied_for = pipeline.denial_lifetime(dns.negative_expires);
        let denied = |good_for: Duration| {
            let expires = Timestamp::now() + good_for;
            servers.keep_addresses(frontier, host, dns, Vec::new(), expires)
        };
        let resolution = match self.waiting(resolving).await {
            Ok(resolution) => resolution,
            Err(FetchFailure::Stopped) => return Err(Halt::Stopped),
            // If a name had an address before, its absence is usually a temporary mistake.
            Err(ref failure @ FetchFailure::NoAddress { ttl, .. })
                if !servers.had_addresses(frontier, host) =>
            {
                denied(ttl.map_or(denied_for, |ttl| ttl.min(denied_for)))?;
                return Ok(final_failure(failure));
            }
            Err(failure) if !pipeline.settings.retry.has_error(failure.status()) => {
                denied(denied_for)?;
                return Ok(final_failure(&failure));
            }
            Err(failure) => {
                let error = opilio_stacks::chain(&failure);
                return Ok(Conclusion::retry(failure.status(), &error, None, None));
            }
        };
        let good_for = resolution.ttl.clamp(dns.min_expires, dns.max_expires);
        let record = records::of_resolution(uri, &resolution, pipeline.started);
        let location = context.archive(vec![record]).await?.into_iter().next();
        let archived = location.map(|location| warc_location(location, pipeline.started));
        let expires = pipeline.started + good_for;
        servers.keep_addresses(frontier, host, dns, resolution.addresses, expires)?;
        let payload = PayloadDigest::of(resolution.text.as_bytes());
        let size = resolution.text.len() as u64;
        let visit = VisitUpdate {
            status: status::DNS_OK,
            state: ContentState::New,
            size: Some(size),
            media_type: "text/dns".to_owned(),
            digests: Some(Digests {
                payload: Some(payload.0),
                stripped: None,
            }),
            archived: archived.clone(),
            ..VisitUpdate::default()
        };
        let success = Success {
            visit,
            ..Success::default()
        };
        let entry = LogEntry {
            status: status::DNS_OK,
            size: Some(size),
            media_type: Some("text/dns".to_owned()),
            fetch: Some((pipeline.started, self.elapsed())),
            digest: Some(payload.to_string()),
            state: ContentState::New,
            received: Some(size),
            archived,
            ..LogEntry::default()
        };
        let outcome = Outcome::Succeeded(Box::new(success));
        Ok(Conclusion::new(outcome, entry))
    }

    /// Looks up another host at once, if its addresses are not known, and archives the response.
    pub(super) async fn addresses_now(&self, uri: &Uri) -> Result<LookUpResult, Halt> {
        let context = self.context;
        let Some(host) = uri.host() else {
            return Ok(LookUpResult::NoSuchHost);
        };
        if self.is_looked_up_by_proxy(host) {
            return Ok(LookUpResult::Found(Vec::new()));
        }
        let now = Timestamp::now();
        let dns = &self.pipeline.profile.dns;
        let (servers, frontier) = (&context.network.servers, &context.frontier);
        if let Some(known) = servers.addresses(frontier, host, dns, now) {
            return Ok(match known.addresses.is_empty() {
                true => LookUpResult::NoSuchHost,
                false => LookUpResult::Found(known.addresses),
            });
        }
        let fetcher = context.network.fetchers.base();
        let resolution = match self.waiting(fetcher.resolve(host, now)).await {
            Ok(resolution) => resolution,
            Err(FetchFailure::Stopped) => return Err(Halt::Stopped),
            Err(FetchFailure::NoAddress { ttl, .. }) if !servers.had_addresses(frontier, host) => {
                let most = self.pipeline.denial_lifetime(dns.negative_expires);
                let expires = now + ttl.map_or(most, |ttl| ttl.min(most));
                servers.keep_addresses(frontier, host, dns, Vec::new(), expires)?;
                return Ok(LookUpResult::NoSuchHost);
            }
            Err(failure) => return Ok(LookUpResult::Failed(failure.status())),
        };
        let record = records::of_resolution(&Uri::dns(host), &resolution, now);
        let records = records::in_passing(vec![record], &self.pipeline.issue.uri);
        context.archive(records).await?;
        let expires = now + resolution.ttl.clamp(dns.min_expires, dns.max_expires);
        let addresses = resolution.addresses;
        servers.keep_addresses(frontier, host, dns, addresses.clone(), expires)?;
        Ok(LookUpResult::Found(addresses))
    }
}

/// Returns the conclusion for a failed look-up that is not repeated.
fn final_failure(failure: &FetchFailure) -> Conclusion {
    let error = format!("err={}", opilio_stacks::chain(failure));
    Conclusion::failed(failure.status(), error)
}

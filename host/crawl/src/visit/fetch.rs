//! The exchange with a server: cookies, credentials, mid-fetch filters.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use opilio_fetch::{Exchange, FetchFailure, HeadVerdict, Request, ResponseHead};
use opilio_uri::Uri;
use opilio_visit::plugin_view::PluginMemory;
use opilio_visit::{CaptureForm, MidFetch, Permit, judge_head, redirect_of};
use tracing::Instrument as _;

use super::CrawlVisit;
use crate::error::Halt;
use crate::logins::LoginPart;
use crate::records::{self, RecordContext};

impl CrawlVisit<'_> {
    /// Makes one exchange, with mid-fetch filters. If the profile has credentials for an authentication challenge, the request is
    /// repeated with them. A redirect to the same URI that sets a cookie is followed. In both cases, the first response is archived
    /// beside the final one.
    pub(super) async fn fetch(
        &self,
        uri: &Uri,
        permit: &Permit,
        memory: &PluginMemory,
    ) -> Result<(Exchange, MidFetch), Halt> {
        let context = self.context;
        // Credentials of an earlier challenge are sent with every request from then on.
        let known = context.network.credentials.authorization("GET", uri);
        let answered = known.is_some();
        let cookies = self.cookies_for(uri);
        let request = self.request(uri, permit, known);
        let (exchange, mid_fetch) = self.exchange(request, memory).await?;
        self.keep_cookies(uri, &exchange)?;
        // A form is not sent twice.
        let head = exchange.head.as_ref().filter(|_| !permit.is_login);
        let head = head.filter(|_| uri.is_http());
        let answer = head.and_then(|head| context.network.credentials.answer(uri, head, answered));
        let (authorization, remark) = match answer {
            Some(answer) => (
                Some(answer.header),
                format!("authenticated:{}", answer.name),
            ),
            // As a link, the URI would be known already, and the page would never be fetched.
            None if head.is_some()
                && redirect_of(uri, &exchange).as_ref() == Some(uri)
                && self.cookies_for(uri) != cookies =>
            {
                let known = context.network.credentials.authorization("GET", uri);
                (known, "cookieRedirect".to_owned())
            }
            None => return Ok((exchange, mid_fetch)),
        };
        let issue = &self.pipeline.issue;
        let about = RecordContext {
            via: issue.record.via.as_deref(),
            hop_path: issue.record.hop_path.as_str(),
            source: issue.record.source.as_deref(),
            annotations: &exchange.annotations,
            ..RecordContext::default()
        };
        let records = records::of_exchange(uri, &exchange, &CaptureForm::Response, &about);
        context
            .archive(records::in_passing(records, &issue.uri))
            .await?;
        let request = self.request(uri, permit, authorization);
        let (mut exchange, mid_fetch) = self.exchange(request, memory).await?;
        self.keep_cookies(uri, &exchange)?;
        exchange.annotations.push(remark);
        Ok((exchange, mid_fetch))
    }

    /// Returns the Cookie header for a URI.
    fn cookies_for(&self, uri: &Uri) -> Option<String> {
        let context = self.context;
        let are_kept = self.pipeline.settings.cookies.accept && uri.is_http();
        let header = || {
            context
                .network
                .cookies
                .header(&context.frontier, uri, Timestamp::now())
        };
        are_kept.then(header).flatten()
    }

    fn keep_cookies(&self, uri: &Uri, exchange: &Exchange) -> Result<(), Halt> {
        let settings = &self.pipeline.settings.cookies;
        if let (true, Some(head)) = (settings.accept && uri.is_http(), &exchange.head) {
            let (context, now) = (self.context, Timestamp::now());
            let per_host = settings.per_host;
            context
                .network
                .cookies
                .receive(&context.frontier, uri, head, per_host, now)?;
        }
        Ok(())
    }

    /// Returns the request for a URI.
    pub(super) fn request(
        &self,
        uri: &Uri,
        permit: &Permit,
        authorization: Option<String>,
    ) -> Request {
        let context = self.context;
        let decided = self.pipeline.request_headers(uri, permit);
        let mut headers = decided.more;
        if let Some(cookies) = self.cookies_for(uri) {
            headers.push(("Cookie".to_owned(), cookies));
        }
        if let Some(authorization) = authorization {
            headers.push(("Authorization".to_owned(), authorization));
        }
        let is_login = permit.is_login && uri == &self.pipeline.issue.uri;
        let part = is_login
            .then(|| context.network.logins.part_of(uri))
            .flatten();
        Request {
            addresses: permit.addresses.clone(),
            referer: decided.referer,
            if_none_match: decided.if_none_match,
            if_modified_since: decided.if_modified_since,
            headers,
            body: part.as_ref().and_then(LoginPart::body),
            login: context.network.credentials.login(uri),
            received: self.flight.received(),
            ..Request::new(uri.clone(), Vec::new())
        }
    }

    /// Waits until this process has its part of a shared job. Without the part, no request may be sent: another process may have
    /// taken the part over while this one was stopped.
    pub(super) async fn until_allowed(&self) -> Result<(), Halt> {
        let Some(membership) = &self.context.membership else {
            return Ok(());
        };
        if membership.has_part() {
            return Ok(());
        }
        let cut = self.context.network.fetchers.base().abort_handle();
        let allowed = cut.unless_made(membership.until_has_part()).await;
        allowed.ok_or(Halt::Stopped)
    }

    /// Calls the mid-fetch filters on the headers that were received from `address`.
    pub(super) async fn call_mid_fetch_filters(
        &self,
        head: &ResponseHead,
        address: Option<String>,
        memory: &PluginMemory,
    ) -> MidFetch {
        let mid_fetch_answer = judge_head(&self.pipeline, self, head, address, memory).await;
        mid_fetch_answer.unwrap_or_else(|problem| {
            let uri = &self.pipeline.issue.uri;
            tracing::error!(%uri, "{problem}");
            MidFetch::default()
        })
    }

    async fn exchange(
        &self,
        request: Request,
        memory: &PluginMemory,
    ) -> Result<(Exchange, MidFetch), Halt> {
        self.until_allowed().await?;
        let uri = &self.pipeline.issue.uri;
        let is_own = request.uri == *uri;
        // The first address is the one that the fetcher tries first.
        let address = request.addresses.first().map(ToString::to_string);
        let mid_fetch = Mutex::new(MidFetch::default());
        let on_head = async |head: &ResponseHead| {
            if !is_own {
                return HeadVerdict::Continue;
            }
            let mid_fetch_answer = self
                .call_mid_fetch_filters(head, address.clone(), memory)
                .await;
            let answer = match &mid_fetch_answer.verdict {
                None => HeadVerdict::Continue,
                Some(verdict) => HeadVerdict::Abort {
                    reason: verdict.reason().to_owned(),
                },
            };
            *mid_fetch.lock().unwrap_or_else(PoisonError::into_inner) = mid_fetch_answer;
            answer
        };
        let fetcher = self
            .context
            .network
            .fetchers
            .of(&self.pipeline.settings.fetch);
        let fetcher = fetcher.map_err(|problem| Halt::Fetcher(opilio_stacks::chain(&problem)))?;
        let exchange = async {
            match request.uri.scheme() {
                "ftp" | "ftps" => fetcher.ftp(request, on_head).await,
                "whois" => fetcher.whois(request).await,
                _ => fetcher.http(request, on_head).await,
            }
        };
        // Boxed, because every future that awaits it would contain it again and enlarge the stack.
        let exchange = Box::pin(exchange.instrument(tracing::info_span!("fetch")));
        let exchange = self.waiting(exchange).await;
        let mid_fetch = mid_fetch.into_inner();
        if let Some(FetchFailure::Stopped) = exchange.failure {
            return Err(Halt::Stopped);
        }
        let mid_fetch = mid_fetch.unwrap_or_else(PoisonError::into_inner);
        Ok((exchange, mid_fetch))
    }
}

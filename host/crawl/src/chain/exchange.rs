//! The exchange itself, and those that end with it: nothing usable came, or the profile wants it tried again.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_fetch::{Exchange, FetchFailure, HeadVerdict, Request, ResponseHead};
use opilio_frontier::Outcome;
use opilio_sandbox::{Stage, Verdict};
use opilio_uri::Uri;
use tracing::Instrument as _;

use crate::context::Halt;
use crate::lanes::Lane;
use crate::logins::Part;
use crate::records::{self, About, Keep};
use opilio_stacks::breaker::Failure;
use opilio_stacks::guards::Guards;
use opilio_visit::found::{self, Rejected};
use opilio_visit::standing::{self, Memory};

use super::preconditions::{Leave, redirect_of};
use super::{Chain, Entry, Turn, disregarded, transfer};

impl Chain<'_> {
    /// One exchange, mid-fetch filters included. A challenge that the profile has an answer to is answered, and who is sent
    /// back to the same URI with a cookie comes back; both are archived beside what came then.
    pub(super) async fn fetch(
        &self,
        uri: &Uri,
        leave: &Leave,
        memory: &Memory,
    ) -> Result<(Exchange, MidFetch), Halt> {
        let context = self.context;
        // What was challenged once is sent along from then on.
        let known = context.credentials.authorization(uri);
        let answered = known.is_some();
        let cookies = self.cookies_for(uri);
        let request = self.request(uri, leave, known);
        let (exchange, mid_fetch) = self.exchange(request, memory).await?;
        self.keep_cookies(uri, &exchange)?;
        // A form is not sent twice.
        let head = exchange.head.as_ref().filter(|_| leave.part.is_none());
        let head = head.filter(|_| uri.is_http());
        let answer = head.and_then(|head| context.credentials.answer(uri, head, answered));
        let (authorization, remark) = match answer {
            Some(answer) => (
                Some(answer.header),
                format!("authenticated:{}", answer.name),
            ),
            // As a link it would be known already, and the page never be had.
            None if head.is_some()
                && redirect_of(uri, &exchange).as_ref() == Some(uri)
                && self.cookies_for(uri) != cookies =>
            {
                let known = context.credentials.authorization(uri);
                (known, "cookieRedirect".to_owned())
            }
            None => return Ok((exchange, mid_fetch)),
        };
        let record = &self.issue.record;
        let about = About {
            via: record.via.as_deref(),
            hop_path: record.hop_path.as_str(),
            source: record.source.as_deref(),
            annotations: &exchange.annotations,
            ..About::default()
        };
        let records = records::of_exchange(uri, &exchange, &Keep::Response, &about);
        let records = records::in_passing(records, &self.issue.uri);
        context.archive(records).await?;
        let request = self.request(uri, leave, authorization);
        let (mut exchange, mid_fetch) = self.exchange(request, memory).await?;
        self.keep_cookies(uri, &exchange)?;
        exchange.annotations.push(remark);
        Ok((exchange, mid_fetch))
    }

    /// The Cookie header for a URI.
    fn cookies_for(&self, uri: &Uri) -> Option<String> {
        let context = self.context;
        let are_kept = self.settings.cookies.accept && uri.is_http();
        let header = || {
            context
                .cookies
                .header(&context.frontier, uri, Timestamp::now())
        };
        are_kept.then(header).flatten()
    }

    fn keep_cookies(&self, uri: &Uri, exchange: &Exchange) -> Result<(), Halt> {
        let settings = &self.settings.cookies;
        if let (true, Some(head)) = (settings.accept && uri.is_http(), &exchange.head) {
            let (context, now) = (self.context, Timestamp::now());
            let per_host = settings.per_host;
            context
                .cookies
                .receive(&context.frontier, uri, head, per_host, now)?;
        }
        Ok(())
    }

    /// What is asked for, and with which headers.
    fn request(&self, uri: &Uri, leave: &Leave, authorization: Option<String>) -> Request {
        let context = self.context;
        let settings = &self.settings.fetch;
        let record = &self.issue.record;
        let same = uri == &self.issue.uri;
        // A page that is to be extracted again, because extractors have changed or failed, must come with its body.
        let extracted = self.is_extracted();
        let conditional = same
            && settings.conditional
            && record.archived.is_some()
            && extracted
            && leave.part.is_none();
        // Nobody follows a link to robots.txt.
        let followed = same && !self.is_prerequisite();
        let referer = record
            .via
            .as_deref()
            .filter(|_| settings.referer && followed);
        let mut headers = Vec::new();
        let profile = context.current();
        let of_all = &profile.settings().fetch;
        if settings.headers != of_all.headers {
            headers.extend(settings.headers.iter().cloned());
        }
        let mut set = |name: &str, value: String| headers.push((name.to_owned(), value));
        if settings.accept_encoding != of_all.accept_encoding {
            set(
                "Accept-Encoding",
                settings.accept_encoding.clone().unwrap_or_default(),
            );
        }
        if let Some(agent) = &leave.agent {
            set("User-Agent", agent.clone());
        }
        if let Some(cookies) = self.cookies_for(uri) {
            set("Cookie", cookies);
        }
        if let Some(authorization) = authorization {
            set("Authorization", authorization);
        }
        let part = leave.part.as_ref().filter(|_| same);
        Request {
            addresses: leave.addresses.clone(),
            referer: referer
                .and_then(|via| Uri::parse(via).ok())
                .filter(Uri::is_http),
            if_none_match: record.validators.etag.clone().filter(|_| conditional),
            if_modified_since: record
                .validators
                .last_modified
                .clone()
                .filter(|_| conditional),
            headers,
            body: part.and_then(Part::body),
            login: context.credentials.login(uri),
            received: self.flight.received(),
            ..Request::new(uri.clone(), Vec::new())
        }
    }

    /// Waits for a server, in the place of no worker where it is slow.
    pub(super) async fn waiting<T>(&self, work: impl Future<Output = T>) -> T {
        let throttle = self.context.fetchers.base().throttle();
        let slow_after = self.settings.fetch.slow_after;
        let held_up = || throttle.taken().waits;
        self.flight.waiting(slow_after, held_up, work).await
    }

    async fn exchange(
        &self,
        request: Request,
        memory: &Memory,
    ) -> Result<(Exchange, MidFetch), Halt> {
        let same = request.uri == self.issue.uri;
        // The first is the one that is tried first.
        let address = request.addresses.first().map(ToString::to_string);
        let mid_fetch = Mutex::new(MidFetch::default());
        let on_head = async |head: &ResponseHead| {
            if !same || self.stacks.mid_fetch.is_empty() {
                return HeadVerdict::Continue;
            }
            let asked = self.mid_fetch(head, address.clone(), memory).await;
            let answer = match &asked.verdict {
                None => HeadVerdict::Continue,
                Some(verdict) => HeadVerdict::Abort {
                    reason: verdict.reason().to_owned(),
                },
            };
            *mid_fetch.lock().unwrap_or_else(PoisonError::into_inner) = asked;
            answer
        };
        let fetcher = self.context.fetchers.of(&self.settings.fetch);
        let fetcher = fetcher.map_err(|problem| Halt::Fetcher(opilio_stacks::chain(&problem)))?;
        let exchange = async {
            match request.uri.scheme() {
                "ftp" | "ftps" => fetcher.ftp(request, on_head).await,
                "whois" => fetcher.whois(request).await,
                _ => fetcher.http(request, on_head).await,
            }
        };
        // In a box, since whatever waits for a future holds it once more on the stack.
        let exchange = Box::pin(exchange.instrument(tracing::info_span!("fetch")));
        let exchange = self.waiting(exchange).await;
        let mid_fetch = mid_fetch.into_inner();
        if let Some(FetchFailure::Stopped) = exchange.failure {
            return Err(Halt::Stopped);
        }
        let mid_fetch = mid_fetch.unwrap_or_else(PoisonError::into_inner);
        Ok((exchange, mid_fetch))
    }

    /// Whether today's extractors have read the page as it is archived.
    fn is_extracted(&self) -> bool {
        let record = &self.issue.record;
        let (_, stacks) = self.for_response(&record.media_type);
        record.extractor == Some(stacks.extract_hash)
    }

    pub(super) async fn mid_fetch(
        &self,
        head: &ResponseHead,
        address: Option<String>,
        memory: &Memory,
    ) -> MidFetch {
        let document = self.document(head, Bytes::new(), None, memory);
        let mut visit = standing::visit(
            self.issue,
            self.started,
            i32::from(head.status),
            head.media_type(),
            memory,
        );
        visit.candidate.address = address;
        let stacks = self.stacks.clone();
        let judged = self
            .context
            .lanes
            .run(Lane::Header, move || {
                // Asked anew of the whole document: there is no content yet.
                let guards = Guards::default();
                let stack = &stacks.mid_fetch;
                let stage = Stage::MidFetch;
                let mut judged = found::judge_document(stack, &stage, &document, &visit, &guards);
                judged.failures.extend(guards.take_failures());
                judged
            })
            .await;
        let judged = match judged {
            Ok(judged) => judged,
            Err(panic) => {
                tracing::error!(uri = %self.issue.uri, "{panic}");
                return MidFetch::default();
            }
        };
        let verdict = match judged.verdict {
            Verdict::Reject => Some(HeaderVerdict::Rejected(Rejected {
                status: judged.status,
                because: judged.reason,
            })),
            // What has never been archived cannot be unchanged, whatever a filter says.
            // Nor what is to be extracted again, because extractors have changed or failed.
            Verdict::Unchanged if self.issue.record.archived.is_some() && self.is_extracted() => {
                Some(HeaderVerdict::Unchanged(judged.reason))
            }
            _ => None,
        };
        MidFetch {
            verdict,
            failures: judged.failures,
        }
    }

    /// Whether it may be tried again.
    pub(super) fn attempts_left(&self) -> bool {
        !self.is_idle_robots() && self.issue.record.attempts < self.settings.retry.max_retries
    }

    /// A robots.txt that nobody goes by: it is not tried again, because its whole queue would wait for it.
    fn is_idle_robots(&self) -> bool {
        self.is_robots() && !self.settings.robots.policy.needs_robots_txt()
    }

    /// Whether a failure is tried again: the profile wants it, and it has not been tried too often.
    fn may_pass(&self, status: i32) -> bool {
        self.settings.retry.has_error(status) && self.attempts_left()
    }

    /// Exchanges that end here: nothing usable came, or the profile wants it tried again.
    pub(super) async fn unusable(
        &self,
        exchange: &Arc<Exchange>,
        verdict: Option<&HeaderVerdict>,
    ) -> Result<Option<Turn>, Halt> {
        let entry = || Entry {
            status: exchange.status(),
            size: Some(exchange.payload.length()).filter(|_| exchange.head.is_some()),
            media_type: exchange.head.as_ref().and_then(ResponseHead::media_type),
            fetch: Some((exchange.started, exchange.duration)),
            digest: exchange
                .head
                .as_ref()
                .map(|_| exchange.payload_digest.to_string()),
            annotations: exchange.annotations.clone(),
            ..Entry::default()
        };
        if let Some(HeaderVerdict::Rejected(Rejected { status, because })) = verdict {
            let mut turn = Turn {
                outcome: disregarded(*status, because.clone(), Some(transfer(exchange))),
                entry: entry(),
            };
            turn.entry.status = *status;
            turn.entry.annotations.push(because.clone());
            return Ok(Some(turn));
        }
        if let Some(failure) = &exchange.failure {
            let status = failure.status();
            let words = opilio_stacks::chain(failure);
            let mut entry = entry();
            entry.annotations.push(format!("err={words}"));
            let outcome = match failure {
                FetchFailure::Scratch(source) => return Err(Halt::Scratch(source.clone())),
                FetchFailure::AddressRefused { .. } | FetchFailure::PortRefused { .. } => {
                    disregarded(status, words, None)
                }
                FetchFailure::Unfetchable { .. } => Outcome::Failed {
                    status,
                    transfer: None,
                },
                // Part of a response, and no more attempts: what came is archived as cut short.
                _ if exchange.head.is_some() && !self.may_pass(status) => return Ok(None),
                _ if !self.settings.retry.has_error(status) || self.is_idle_robots() => {
                    Outcome::Failed {
                        status,
                        transfer: Some(transfer(exchange)),
                    }
                }
                _ => Outcome::Retry {
                    status,
                    queue_after: match failure.is_of_server() {
                        true => 1,
                        false => self.settings.retry.queue_after,
                    },
                    after: None,
                    transfer: Some(transfer(exchange)),
                },
            };
            return Ok(Some(Turn { outcome, entry }));
        }
        let retry = exchange.head.as_ref().is_some_and(|head| {
            // FTP's own "not now" (RFC 959 §4.2.1): whoever asks again later may be served.
            let not_now = head.version == "FTP" && (400..500).contains(&head.status);
            not_now || self.settings.retry.statuses.contains(&head.status)
        });
        if retry && self.attempts_left() {
            let after = retry_after(exchange);
            let outcome = Outcome::Retry {
                status: exchange.status(),
                queue_after: match after.is_some() || asks_all_to_wait(exchange) {
                    true => 1,
                    false => self.settings.retry.queue_after,
                },
                after,
                transfer: Some(transfer(exchange)),
            };
            return Ok(Some(Turn {
                outcome,
                entry: entry(),
            }));
        }
        Ok(None)
    }
}

/// What became of asking mid-fetch filters.
#[derive(Default)]
pub(super) struct MidFetch {
    /// None: it goes on.
    pub(super) verdict: Option<HeaderVerdict>,
    /// Calls that failed.
    pub(super) failures: Vec<Failure>,
}

/// What mid-fetch filters made of a response's headers, where they did not let it go on.
pub(super) enum HeaderVerdict {
    Rejected(Rejected),
    Unchanged(String),
}

impl HeaderVerdict {
    pub(super) fn reason(&self) -> &str {
        match self {
            HeaderVerdict::Rejected(Rejected { because, .. }) => because,
            HeaderVerdict::Unchanged(reason) => reason,
        }
    }
}

/// Whether a response that is no answer yet speaks for the whole server: 429 (RFC 6585 §4), and FTP's 421, after which it
/// closes the connection (RFC 959 §5.4).
fn asks_all_to_wait(exchange: &Exchange) -> bool {
    let head = exchange.head.as_ref();
    head.is_some_and(|head| head.status == 429 || head.version == "FTP" && head.status == 421)
}

/// `Retry-After` in seconds or as a date (RFC 9110 §10.2.3).
pub(super) fn retry_after(exchange: &Exchange) -> Option<Duration> {
    let head = exchange.head.as_ref()?;
    wait_asked_for(head.first("retry-after")?, Timestamp::now())
}

fn wait_asked_for(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(at - now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now: Timestamp = Timestamp::from_second(784_111_700).unwrap_or_default();
        let seconds = |value| wait_asked_for(value, now).map(|wait| wait.as_secs());
        assert_eq!(seconds("120"), Some(120));
        assert_eq!(seconds(" 0 "), Some(0));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(77));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0));
        for nonsense in ["", "-5", "soon", "1.5", "99999999999999999999999"] {
            assert_eq!(seconds(nonsense), None, "{nonsense}");
        }
    }
}

//! The exchange itself, and those that end with it: nothing usable came, or the profile wants it tried again.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use opilio_fetch::{Exchange, FetchFailure, HeadVerdict, Request, ResponseHead};
use opilio_frontier::Outcome;
use opilio_sandbox::{Stage, Verdict};
use opilio_uri::Uri;

use crate::breaker::Failure;
use crate::context::Halt;
use crate::found;
use crate::guards::Guards;
use crate::lanes::Lane;
use crate::standing::{self, Memory};

use super::{Chain, Entry, Turn, disregarded, status, transfer};

impl Chain<'_> {
    /// One exchange, mid-fetch filters included.
    pub(super) async fn fetch(
        &self,
        uri: &Uri,
        addresses: Vec<IpAddr>,
        memory: &Memory,
    ) -> (Exchange, MidFetch) {
        let settings = &self.settings.fetch;
        let record = &self.issue.record;
        let same = uri == &self.issue.uri;
        // A page that is to be extracted again, because extractors have changed or failed, must come with its body.
        let (_, stacks) = self.for_response(&record.media_type);
        let extracted = record.extractor == Some(stacks.extract_hash);
        let conditional = same && settings.conditional && record.archived.is_some() && extracted;
        // Nobody follows a link to robots.txt.
        let followed = same && !self.is_prerequisite();
        let referer = record
            .via
            .as_deref()
            .filter(|_| settings.referer && followed);
        let request = Request {
            uri: uri.clone(),
            addresses,
            referer: referer
                .and_then(|via| Uri::parse(via).ok())
                .filter(Uri::is_http),
            if_none_match: record.validators.etag.clone().filter(|_| conditional),
            if_modified_since: record
                .validators
                .last_modified
                .clone()
                .filter(|_| conditional),
            headers: Vec::new(),
            body: None,
        };
        let mid_fetch = Mutex::new(MidFetch::default());
        let exchange = self
            .context
            .fetcher
            .http(request, async |head: &ResponseHead| {
                if !same || self.stacks.mid_fetch.is_empty() {
                    return HeadVerdict::Continue;
                }
                let asked = self.mid_fetch(head, memory).await;
                let answer = match &asked.verdict {
                    None => HeadVerdict::Continue,
                    Some(verdict) => HeadVerdict::Abort {
                        reason: verdict.reason().to_owned(),
                    },
                };
                *mid_fetch.lock().unwrap_or_else(PoisonError::into_inner) = asked;
                answer
            })
            .await;
        let mid_fetch = mid_fetch.into_inner();
        (exchange, mid_fetch.unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) async fn mid_fetch(&self, head: &ResponseHead, memory: &Memory) -> MidFetch {
        let document = self.document(head, Bytes::new(), None, memory);
        let visit = standing::visit(
            self.issue,
            self.started,
            i32::from(head.status),
            head.media_type(),
            memory,
        );
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
            Verdict::Reject => Some(HeaderVerdict::Rejected(judged.reason)),
            // What has never been archived cannot be unchanged, whatever a filter says.
            Verdict::Unchanged if self.issue.record.archived.is_some() => {
                Some(HeaderVerdict::Unchanged(judged.reason))
            }
            _ => None,
        };
        MidFetch {
            verdict,
            failures: judged.failures,
        }
    }

    pub(super) fn attempts_left(&self) -> bool {
        self.issue.record.attempts < self.settings.retry.max_retries
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
        if let Some(HeaderVerdict::Rejected(reason)) = verdict {
            let mut turn = Turn {
                outcome: disregarded(status::BLOCKED, reason.clone(), Some(transfer(exchange))),
                entry: entry(),
            };
            turn.entry.status = status::BLOCKED;
            turn.entry.annotations.push(reason.clone());
            return Ok(Some(turn));
        }
        if let Some(failure) = &exchange.failure {
            let status = failure.status();
            let words = crate::stacks::chain(failure);
            let mut entry = entry();
            entry.annotations.push(format!("err={words}"));
            let outcome = match failure {
                FetchFailure::Scratch(_) => return Err(Halt::Scratch(words)),
                FetchFailure::AddressRefused { .. } => disregarded(status, words, None),
                FetchFailure::Unfetchable { .. } => Outcome::Failed {
                    status,
                    transfer: None,
                },
                // Part of a response, and no more attempts: what came is archived as cut short.
                _ if exchange.head.is_some() && !self.attempts_left() => return Ok(None),
                _ => Outcome::Retry {
                    status,
                    after: None,
                    transfer: Some(transfer(exchange)),
                },
            };
            return Ok(Some(Turn { outcome, entry }));
        }
        let retry = exchange
            .head
            .as_ref()
            .is_some_and(|head| self.settings.retry.statuses.contains(&head.status));
        if retry && self.attempts_left() {
            let outcome = Outcome::Retry {
                status: exchange.status(),
                after: retry_after(exchange),
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
    Rejected(String),
    Unchanged(String),
}

impl HeaderVerdict {
    pub(super) fn reason(&self) -> &str {
        match self {
            HeaderVerdict::Rejected(reason) | HeaderVerdict::Unchanged(reason) => reason,
        }
    }
}

/// `Retry-After` in seconds or as a date (RFC 9110 §10.2.3).
pub(super) fn retry_after(exchange: &Exchange) -> Option<Duration> {
    let value = exchange.head.as_ref()?.first("retry-after")?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(at - Timestamp::now()).unwrap_or_default())
}

//! Exchanges that end a visit: no usable response was received, or the profile retries the URI.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use opilio_fetch::{Exchange, FetchFailure, ResponseHead};
use opilio_frontier::{Outcome, Transfer};

use crate::document_filters::FilterRejection;
use crate::head::HeaderVerdict;
use crate::pipeline::{Conclusion, LogEntry, Pipeline, disregarded};

/// The classification of an exchange.
pub(crate) enum ExchangeClass {
    /// The exchange has a response to read.
    Response,
    /// The visit ends here.
    Ends(Box<Conclusion>),
    /// The response could not be spooled to disk.
    Scratch(Arc<io::Error>),
}

/// Decides whether an exchange has a response to read.
pub(crate) fn usable(
    pipeline: &Pipeline,
    exchange: &Exchange,
    transfer: Transfer,
    verdict: Option<&HeaderVerdict>,
) -> ExchangeClass {
    let ends = |outcome, entry| ExchangeClass::Ends(Box::new(Conclusion::new(outcome, entry)));
    let head = exchange.head.as_ref();
    let mut entry = LogEntry {
        status: exchange.status(),
        size: Some(exchange.payload.length()).filter(|_| head.is_some()),
        media_type: head.and_then(ResponseHead::media_type),
        fetch: Some((exchange.started, exchange.duration)),
        digest: head.map(|_| exchange.payload_digest.to_string()),
        annotations: exchange.annotations.clone(),
        ..LogEntry::default()
    };
    if let Some(HeaderVerdict::Rejected(FilterRejection { status, because })) = verdict {
        let outcome = disregarded(*status, because.clone(), Some(transfer));
        entry.status = *status;
        entry.annotations.push(because.clone());
        return ends(outcome, entry);
    }
    let retry = &pipeline.settings.retry;
    if let Some(failure) = &exchange.failure {
        let status = failure.status();
        let message = opilio_stacks::chain(failure);
        entry.annotations.push(format!("err={message}"));
        let outcome = match failure {
            FetchFailure::Scratch(source) => return ExchangeClass::Scratch(source.clone()),
            // The host name may get another address at any time.
            FetchFailure::AddressRefused { .. } => Outcome::Disregarded {
                status,
                reason: message,
                wait: None,
                transfer: None,
            },
            FetchFailure::PortRefused { .. } => disregarded(status, message, None),
            FetchFailure::Unfetchable { .. } => Outcome::Failed {
                status,
                transfer: None,
            },
            // A partial response after the last attempt is archived as truncated.
            _ if head.is_some() && !pipeline.may_pass(status) => return ExchangeClass::Response,
            _ if !retry.has_error(status) || pipeline.is_idle_robots() => Outcome::Failed {
                status,
                transfer: Some(transfer),
            },
            _ => Outcome::Retry {
                status,
                queue_after: match failure.is_of_server() {
                    true => 1,
                    false => retry.queue_after,
                },
                after: None,
                transfer: Some(transfer),
            },
        };
        return ends(outcome, entry);
    }
    let is_wanted_again = head.is_some_and(|head| {
        // FTP's transient negative replies (RFC 959 §4.2.1): a later attempt may succeed.
        let not_now = head.version == "FTP" && (400..500).contains(&head.status);
        not_now || retry.statuses.contains(&head.status)
    });
    if is_wanted_again && pipeline.attempts_left() {
        let after = retry_after(exchange);
        let outcome = Outcome::Retry {
            status: exchange.status(),
            queue_after: match after.is_some() || requires_pause(exchange) {
                true => 1,
                false => retry.queue_after,
            },
            after,
            transfer: Some(transfer),
        };
        return ends(outcome, entry);
    }
    ExchangeClass::Response
}

/// Returns `true` if a response asks the client to pause all requests to the server: 429 (RFC 6585 §4), and FTP's 421, after which
/// the server closes the connection (RFC 959 §5.4).
fn requires_pause(exchange: &Exchange) -> bool {
    let head = exchange.head.as_ref();
    head.is_some_and(|head| head.status == 429 || head.version == "FTP" && head.status == 421)
}

/// `Retry-After` in seconds or as a date (RFC 9110 §10.2.3), from the end of the exchange.
pub(crate) fn retry_after(exchange: &Exchange) -> Option<Duration> {
    let head = exchange.head.as_ref()?;
    let ended = exchange.started.checked_add(exchange.duration).ok()?;
    parse_retry_after(head.first("retry-after")?, ended)
}

fn parse_retry_after(value: &str, now: Timestamp) -> Option<Duration> {
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
        let seconds = |value| parse_retry_after(value, now).map(|wait| wait.as_secs());
        assert_eq!(seconds("120"), Some(120));
        assert_eq!(seconds(" 0 "), Some(0));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(77));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0));
        for nonsense in ["", "-5", "soon", "1.5", "99999999999999999999999"] {
            assert_eq!(seconds(nonsense), None, "{nonsense}");
        }
    }
}

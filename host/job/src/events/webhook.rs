//! Delivery of events to a URL, in batches, one after another. Requests are signed as in Standard Webhooks
//! (<https://www.standardwebhooks.com>), so that libraries can verify them.

use std::sync::Arc;

use data_encoding::BASE64;
use jiff::Timestamp;
use opilio_profile::{SecretProblem, Webhook};
use reqwest::StatusCode;
use ring::hmac;
use serde::Serialize;

use super::CrawlEvent;
use super::queue::{EventQueue, Failure, WaitingEvents};
use crate::alerts::http_client;

/// Body of a request.
#[derive(Serialize)]
struct BatchBody<'b> {
    /// Name of the webhook.
    webhook: &'b str,
    /// Number of events that this process has lost so far: the queue was full, or the receiver refused a batch.
    lost: u64,
    events: &'b [CrawlEvent],
}

/// Starts to send events to a webhook.
pub(super) fn start(settings: &Webhook) -> Result<EventQueue, SecretProblem> {
    let secret = settings.secret.as_ref();
    let secret = secret.map(|secret| secret.read()).transpose()?;
    let receiver = format!("webhook {}", settings.name);
    let (kinds, settings) = (settings.events.clone(), settings.clone());
    let key = secret.as_deref().map(key);
    let send = |waiting| send_all(waiting, settings, key);
    Ok(EventQueue::start(receiver, kinds, send))
}

/// Sends events until the end.
async fn send_all(waiting: Arc<WaitingEvents>, settings: Webhook, key: Option<hmac::Key>) {
    let client = match http_client(&settings.url, settings.timeout) {
        Ok(client) => client,
        Err(problem) => {
            tracing::error!("{}: cannot send events: {problem}", waiting.receiver());
            return;
        }
    };
    let process = Timestamp::now().as_nanosecond();
    for number in 0_u64.. {
        let events = waiting.next_batch(settings.batch_max, settings.batch_wait);
        let events = events.await;
        if events.is_empty() {
            return;
        }
        let id = format!("opilio_{process:x}_{number}");
        let mut batch = waiting.begin(events.len() as u64);
        loop {
            let body = BatchBody {
                webhook: &settings.name,
                lost: waiting.lost(),
                events: &events,
            };
            let posted = post(&client, &settings.url, &id, key.as_ref(), &body).await;
            if waiting.record_result(&mut batch, posted).await {
                break;
            }
        }
    }
}

async fn post(
    client: &reqwest::Client,
    url: &str,
    id: &str,
    key: Option<&hmac::Key>,
    batch: &BatchBody<'_>,
) -> Result<(), Failure> {
    let body = serde_json::to_string(batch);
    let body = body.map_err(|problem| Failure::Refused(problem.to_string()))?;
    let at = Timestamp::now().as_second();
    let mut request = client
        .post(url)
        .header("content-type", "application/json")
        .header("webhook-id", id)
        .header("webhook-timestamp", at);
    if let Some(key) = key {
        request = request.header("webhook-signature", signature(key, id, at, &body));
    }
    match request.body(body).send().await {
        Ok(answer) if answer.status().is_success() => Ok(()),
        Ok(answer) => {
            let status = answer.status();
            let why = format!("status {status}");
            let is_temporary = !status.is_client_error()
                || [
                    StatusCode::REQUEST_TIMEOUT,
                    StatusCode::TOO_EARLY,
                    StatusCode::TOO_MANY_REQUESTS,
                ]
                .contains(&status);
            Err(match is_temporary {
                true => Failure::Temporary(why),
                false => Failure::Refused(why),
            })
        }
        Err(problem) => {
            let why = opilio_stacks::chain(&problem.without_url());
            Err(Failure::Temporary(why))
        }
    }
}

/// Returns the key of a secret: the bytes of the text, or, after the prefix `whsec_`, the bytes that the rest encodes in base64.
fn key(secret: &str) -> hmac::Key {
    let encoded = secret.strip_prefix("whsec_");
    let decoded = encoded.and_then(|it| BASE64.decode(it.as_bytes()).ok());
    let bytes = decoded.unwrap_or_else(|| secret.as_bytes().to_vec());
    hmac::Key::new(hmac::HMAC_SHA256, &bytes)
}

fn signature(key: &hmac::Key, id: &str, at: i64, body: &str) -> String {
    let tag = hmac::sign(key, format!("{id}.{at}.{body}").as_bytes());
    format!("v1,{}", BASE64.encode(tag.as_ref()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    /// The example of the specification's libraries.
    #[test]
    fn requests_are_signed_as_standard_webhooks() {
        let key = key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let body = r#"{"test": 2432232314}"#;
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        assert_eq!(
            signature(&key, id, 1_614_265_330, body),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }
}

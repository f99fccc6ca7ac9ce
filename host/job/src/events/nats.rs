//! Delivery of events to subjects of NATS: a message for each event, with its kind at the end of the subject. A stream of JetStream
//! acknowledges each message. It recognises repeated messages by their ids and drops them.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, HeaderMap, header};
use bytes::Bytes;
use jiff::Timestamp;
use opilio_profile::{EventStream, SecretProblem, SecretSource};
use tokio::time::timeout;

use super::CrawlEvent;
use super::queue::{EventQueue, Failure, WaitingEvents};

/// Maximum of messages that wait for their acknowledgements.
const BATCH_MAX: usize = 500;

/// Time for a connection, and for the acknowledgement of a message.
const REQUEST_MAX: Duration = Duration::from_secs(5);

/// Sender of the events of one stream.
struct Publisher {
    settings: EventStream,
    credentials: Option<String>,
    /// The connection. The client reconnects by itself after the first connection.
    connected: Option<(Client, Context)>,
}

/// A message: an event with its subject and its id.
struct Message {
    subject: String,
    headers: HeaderMap,
    body: Bytes,
}

/// Starts to send events to a stream.
pub(super) fn start(settings: &EventStream) -> Result<EventQueue, SecretProblem> {
    let credentials = settings.credentials.as_ref().map(SecretSource::read);
    let receiver = format!("stream {}", settings.name);
    let kinds = settings.events.clone();
    let publisher = Publisher {
        settings: settings.clone(),
        credentials: credentials.transpose()?,
        connected: None,
    };
    let send = |waiting| send_all(waiting, publisher);
    Ok(EventQueue::start(receiver, kinds, send))
}

/// Sends events until the end.
async fn send_all(waiting: Arc<WaitingEvents>, mut publisher: Publisher) {
    let process = Timestamp::now().as_nanosecond();
    let mut number = 0_u64;
    loop {
        let events = waiting.next_batch(BATCH_MAX, Duration::ZERO).await;
        if events.is_empty() {
            return;
        }
        let mut messages = Vec::new();
        for event in &events {
            number += 1;
            match Message::of(event, &publisher.settings, &format!("{process:x}-{number}")) {
                Ok(message) => messages.push(message),
                Err(problem) => waiting.lose(1, &problem.to_string()),
            }
        }
        let mut batch = waiting.begin(messages.len() as u64);
        loop {
            let published = publisher.publish(&messages).await;
            if waiting.record_result(&mut batch, published).await {
                break;
            }
        }
    }
}

impl Message {
    fn of(event: &CrawlEvent, settings: &EventStream, id: &str) -> serde_json::Result<Message> {
        let kind = event.what.kind().name();
        let mut headers = HeaderMap::new();
        headers.insert(header::NATS_MESSAGE_ID, format!("opilio-{id}").as_str());
        Ok(Message {
            subject: format!("{}.{kind}", settings.subject),
            headers,
            body: serde_json::to_vec(event)?.into(),
        })
    }
}

impl Publisher {
    /// Publishes messages, and waits until all are acknowledged. Messages that a stream has already are acknowledged, too.
    async fn publish(&mut self, messages: &[Message]) -> Result<(), Failure> {
        let (client, context) = match &self.connected {
            Some(connected) => connected.clone(),
            None => self.connected.insert(self.connect().await?).clone(),
        };
        if !self.settings.acknowledged {
            for message in messages {
                let (subject, headers) = (message.subject.clone(), message.headers.clone());
                let sent = client.publish_with_headers(subject, headers, message.body.clone());
                sent.await.map_err(|problem| temporary(&problem))?;
            }
            let flushed = timeout(REQUEST_MAX, client.flush()).await;
            let flushed = flushed.map_err(|_| Failure::Temporary(self.silence()))?;
            return flushed.map_err(|problem| temporary(&problem));
        }
        let mut acknowledgements = Vec::new();
        for message in messages {
            let (subject, headers) = (message.subject.clone(), message.headers.clone());
            let sent = context.publish_with_headers(subject, headers, message.body.clone());
            let sent = sent.await.map_err(|problem| self.failure(&problem))?;
            acknowledgements.push(sent);
        }
        for acknowledgement in acknowledgements {
            let acknowledged = acknowledgement.await;
            acknowledged.map_err(|problem| self.failure(&problem))?;
        }
        Ok(())
    }

    async fn connect(&self) -> Result<(Client, Context), Failure> {
        let options = match &self.credentials {
            None => ConnectOptions::new(),
            Some(credentials) => {
                let options = ConnectOptions::with_credentials(credentials);
                options.map_err(|problem| {
                    Failure::Temporary(format!("invalid credentials: {problem}"))
                })?
            }
        };
        let options = options.name("opilio").connection_timeout(REQUEST_MAX);
        let servers = &self.settings.servers;
        let connected = options.connect(servers.as_slice()).await;
        let client = connected.map_err(|problem| {
            let remedy = match problem.kind() {
                ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
                    "; check credentials of the stream"
                }
                _ => "",
            };
            let why = opilio_stacks::chain(&problem);
            Failure::Temporary(format!("{}: {why}{remedy}", servers.join(", ")))
        })?;
        let mut context = jetstream::new(client.clone());
        context.set_timeout(REQUEST_MAX);
        Ok((client, context))
    }

    fn failure(&self, problem: &jetstream::context::PublishError) -> Failure {
        match problem.kind() {
            PublishErrorKind::StreamNotFound => Failure::Temporary(format!(
                "no stream of JetStream has the subject {0}.*; create it (`nats stream add --subjects '{0}.*'`), or set acknowledged = false",
                self.settings.subject
            )),
            PublishErrorKind::TimedOut => Failure::Temporary(self.silence()),
            PublishErrorKind::MaxPayloadExceeded => Failure::Refused(opilio_stacks::chain(problem)),
            _ => temporary(problem),
        }
    }

    fn silence(&self) -> String {
        let seconds = REQUEST_MAX.as_secs();
        let servers = self.settings.servers.join(", ");
        format!("{servers}: no acknowledgement within {seconds} s")
    }
}

fn temporary(problem: &(dyn std::error::Error + 'static)) -> Failure {
    Failure::Temporary(opilio_stacks::chain(problem))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::collections::BTreeSet;

    use async_nats::jetstream::stream;
    use opilio_profile::EventKind;
    use opilio_test_nats::NatsServer;

    use super::*;
    use crate::events::{Events, Occurrence};

    fn url(server: &NatsServer) -> String {
        format!("nats://127.0.0.1:{}", server.port)
    }

    fn settings(server: &str, acknowledged: bool) -> EventStream {
        EventStream {
            name: "archive".to_owned(),
            servers: vec![server.to_owned()],
            subject: "opilio.events".to_owned(),
            events: BTreeSet::from([EventKind::Job, EventKind::Capture]),
            credentials: None,
            acknowledged,
        }
    }

    fn event(what: Occurrence) -> CrawlEvent {
        CrawlEvent {
            at: Timestamp::UNIX_EPOCH,
            job: "news".to_owned(),
            profile: None,
            what,
        }
    }

    fn running() -> CrawlEvent {
        event(Occurrence::Job {
            state: "running".to_owned(),
            reason: None,
        })
    }

    #[tokio::test]
    async fn every_event_is_in_the_stream_once() {
        let Some(server) = NatsServer::start() else {
            return;
        };
        let url = url(&server);
        let client = async_nats::connect(&*url).await.unwrap();
        let context = jetstream::new(client);
        let config = stream::Config {
            name: "events".to_owned(),
            subjects: vec!["opilio.events.>".to_owned()],
            ..stream::Config::default()
        };
        let mut stored = context.create_stream(config).await.unwrap();
        let events = Events::start(&[], &[settings(&url, true)]).unwrap();
        events.send(&running());
        for number in 0..2 * BATCH_MAX {
            let line = serde_json::json!({"uri": format!("http://a.org/{number}")});
            events.send(&event(Occurrence::Capture { line }));
        }
        assert_eq!(events.finish().await, []);
        let messages = stored.info().await.unwrap().state.messages;
        assert_eq!(messages, 2 * BATCH_MAX as u64 + 1);
        let state = stored.get_last_raw_message_by_subject("opilio.events.job");
        let state: serde_json::Value =
            serde_json::from_slice(&state.await.unwrap().payload).unwrap();
        assert_eq!(
            (&state["job"], &state["state"]),
            (&"news".into(), &"running".into())
        );

        // A repeated batch is stored once.
        let mut publisher = Publisher {
            settings: settings(&url, true),
            credentials: None,
            connected: None,
        };
        let again = [Message::of(&running(), &publisher.settings, "1").unwrap()];
        for _ in 0..2 {
            assert!(publisher.publish(&again).await.is_ok());
        }
        let messages = stored.info().await.unwrap().state.messages;
        assert_eq!(messages, 2 * BATCH_MAX as u64 + 2);
    }

    #[tokio::test]
    async fn a_missing_stream_is_an_error_only_if_acknowledgements_are_required() {
        let Some(server) = NatsServer::start() else {
            return;
        };
        let url = url(&server);
        let publisher = |acknowledged| Publisher {
            settings: settings(&url, acknowledged),
            credentials: None,
            connected: None,
        };
        let mut acknowledged = publisher(true);
        let message = [Message::of(&running(), &acknowledged.settings, "1").unwrap()];
        let Err(Failure::Temporary(why)) = acknowledged.publish(&message).await else {
            panic!("published without a stream");
        };
        assert!(why.contains("opilio.events.*"), "{why}");
        assert!(publisher(false).publish(&message).await.is_ok());
        let mut nowhere = publisher(true);
        drop(server);
        nowhere.settings.servers = vec![url.clone()];
        let Err(Failure::Temporary(why)) = nowhere.publish(&message).await else {
            panic!("published without a server");
        };
        assert!(why.contains(&url), "{why}");
    }
}

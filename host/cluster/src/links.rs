//! Links between partitions, over NATS. They are sent at least once: the owner of the target acknowledges them after it has
//! them on disk, and scheduling a known URI changes nothing.
//!
//! Send a link only after the outbox of its page's owner has it on disk, and keep it there until NATS has stored it
//! ([`LinkSender::sent_through`]). Then a death loses no link, and a takeover sends again what is in the outbox. Readers must not
//! drop links of older epochs: those of an owner that died later are as good as any.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_nats::jetstream::consumer::push::{Ordered, OrderedConfig};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::RawMessageErrorKind;
use serde::{Deserialize, Serialize};

use crate::bucket::{milliseconds, next};
use crate::error::{ClusterError, NatsError};
use crate::frame;
use crate::job::ClusterJob;
use crate::link_batch::{LinkAdmission, LinkBatch, LinkBatcher, LinkSource};
use crate::partition::Partition;

/// Sends links of this node to the owners of other partitions.
#[derive(Debug)]
pub struct LinkSender {
    job: ClusterJob,
    batcher: Mutex<LinkBatcher>,
    /// Batches that were taken and that NATS has not accepted. One call at a time sends them.
    unsent: tokio::sync::Mutex<Vec<LinkBatch>>,
}

/// Reads the links into a partition of this node.
pub struct LinkReader {
    job: ClusterJob,
    partition: Partition,
    messages: Ordered,
}

/// Links that have arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkDelivery {
    /// For [`LinkReader::acknowledge`].
    pub sequence: u64,
    /// The node that sent them.
    pub node: String,
    /// The links.
    pub links: Vec<Vec<u8>>,
    /// Messages that wait behind this one.
    pub waiting: u64,
}

#[derive(Serialize, Deserialize)]
struct LinkMessage {
    node: String,
    links: Vec<Vec<u8>>,
}

impl std::fmt::Debug for LinkReader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("LinkReader")
            .field("partition", &self.partition)
            .finish_non_exhaustive()
    }
}

impl LinkSender {
    /// A sender for the links of a job.
    #[must_use]
    pub fn new(job: &ClusterJob) -> Self {
        Self {
            job: job.clone(),
            batcher: Mutex::default(),
            unsent: tokio::sync::Mutex::default(),
        }
    }

    /// Adds a link to a partition, which the outbox of its page's owner has. `now` is the time since any fixed moment.
    pub fn add(
        &self,
        partition: Partition,
        link: Vec<u8>,
        source: LinkSource,
        now: Duration,
    ) -> LinkAdmission {
        self.batcher().add(partition, link, source, now)
    }

    /// Sends the batches that are large or old enough, and those that failed before. They are stored when this returns.
    ///
    /// # Errors
    /// NATS has no room, or fails. What it did not accept is sent again with the next call.
    pub async fn send_due(&self, now: Duration) -> Result<(), ClusterError> {
        // Taken under the lock, so that a call that is cancelled leaves them to the next one.
        let mut unsent = self.unsent.lock().await;
        unsent.extend(self.batcher().take_due(now));
        self.send(&mut unsent).await
    }

    /// Sends everything, such as before a process ends.
    ///
    /// # Errors
    /// As [`Self::send_due`].
    pub async fn send_all(&self) -> Result<(), ClusterError> {
        let mut unsent = self.unsent.lock().await;
        unsent.extend(self.batcher().take_all());
        self.send(&mut unsent).await
    }

    /// Number of the entry in the outbox of `source` up to which NATS has stored all links. Remove these entries from the outbox.
    /// `last` is the number of the last entry that was added.
    #[must_use]
    pub fn sent_through(&self, source: Partition, last: u64) -> u64 {
        self.batcher().sent_through(source, last)
    }

    async fn send(&self, unsent: &mut Vec<LinkBatch>) -> Result<(), ClusterError> {
        let jetstream = &self.job.cluster.connection.data;
        let mut answers = Vec::new();
        for batch in unsent.iter() {
            let message = frame::encode(&LinkMessage {
                node: self.job.cluster.config().node.clone(),
                links: batch.links.clone(),
            });
            let (_, subject) = self.job.links(batch.partition);
            let publish = PublishMessage::build().payload(message.into());
            answers.push((batch.id, jetstream.send_publish(subject, publish).await));
        }
        let mut failure = Ok(());
        for (id, answer) in answers {
            let stored = match answer {
                Ok(answer) => answer.await.map(drop),
                Err(error) => Err(error),
            };
            match stored {
                Ok(()) => {
                    if let Some(place) = unsent.iter().position(|batch| batch.id == id) {
                        self.batcher().finish(&unsent.remove(place));
                    }
                }
                Err(error) => failure = Err(ClusterError::of_request("links", error)),
            }
        }
        failure
    }

    fn batcher(&self) -> std::sync::MutexGuard<'_, LinkBatcher> {
        self.batcher.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClusterJob {
    /// Messages with links that their owners have not acknowledged.
    pub(crate) async fn waiting_link_messages(&self) -> Result<u64, ClusterError> {
        let mut waiting = 0;
        for stream in self.link_streams() {
            let info = stream.get_info().await;
            let info =
                info.map_err(|error| ClusterError::of_request("a question for links", error))?;
            waiting += info.state.messages;
        }
        Ok(waiting)
    }

    /// Time at which NATS stored the first message with links into a part behind message `taken`, in milliseconds since
    /// 1970 by the clock of NATS; `None` if there is no such message.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn links_behind(
        &self,
        partition: Partition,
        taken: u64,
    ) -> Result<Option<i64>, ClusterError> {
        let (stream, subject) = self.links(partition);
        let first = stream.get_first_raw_message_by_subject(subject, taken + 1);
        match first.await {
            Ok(message) => Ok(Some(milliseconds(message.time.unix_timestamp_nanos()))),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(ClusterError::of_request("a question for links", error)),
        }
    }
}

impl LinkReader {
    /// Reads the links into a partition from the first that was not acknowledged.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn open(job: &ClusterJob, partition: Partition) -> Result<Self, ClusterError> {
        let (stream, subject) = job.links(partition);
        let config = OrderedConfig {
            deliver_subject: job.cluster.connection.client.new_inbox(),
            filter_subject: subject,
            ..OrderedConfig::default()
        };
        let failed = |error: NatsError| ClusterError::of_request("reading links", error);
        let consumer = stream
            .create_consumer(config)
            .await
            .map_err(|error| failed(error.into()))?;
        let messages = consumer
            .messages()
            .await
            .map_err(|error| failed(error.into()))?;
        Ok(Self {
            job: job.clone(),
            partition,
            messages,
        })
    }

    /// The next links. Waits until there are some.
    ///
    /// # Errors
    /// A message is malformed, or NATS fails. After a failure of NATS, open the reader again.
    pub async fn next(&mut self) -> Result<LinkDelivery, ClusterError> {
        let failed = |error: NatsError| ClusterError::of_request("reading links", error);
        let received = next(&mut self.messages).await;
        let message = received.ok_or_else(|| failed("the reader ended".into()))?;
        let message = message.map_err(|error| failed(error.into()))?;
        let info = message.info().map_err(failed)?;
        let sequence = info.stream_sequence;
        let decoded: LinkMessage =
            frame::decode(&message.payload).ok_or_else(|| ClusterError::Malformed {
                kind: "links",
                stream: info.stream.to_owned(),
                sequence,
            })?;
        Ok(LinkDelivery {
            sequence,
            node: decoded.node,
            links: decoded.links,
            waiting: info.pending,
        })
    }

    /// Removes these links and all before them from the stream. Call it when they are on disk; once a second is often enough.
    ///
    /// # Errors
    /// NATS fails. Then the links may be delivered again to the next reader.
    pub async fn acknowledge(&mut self, sequence: u64) -> Result<(), ClusterError> {
        self.job.acknowledge_links(self.partition, sequence).await
    }
}

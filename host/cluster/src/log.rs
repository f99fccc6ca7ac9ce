//! The log of a partition: the inputs of its frontier, in order. The server fences it. Each message names the sequence of the one
//! before it, so the first message of a new owner makes every later one of the old owner fail.
//!
//! Entries are bytes; the crawl encodes them. A message has all entries that came together while the message before it was on its
//! way, so that a slow NATS makes messages larger and not the crawl slower.

use std::time::Duration;

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::push::OrderedConfig;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::bucket::next;
use crate::error::{ClusterError, is_wrong_sequence};
use crate::frame;
use crate::guard::LeaseGuard;
use crate::job::ClusterJob;
use crate::partition::Partition;

/// Attempts to claim a log while its old owner still appends.
const CLAIMS_MAX: usize = 50;

/// Longest pause between two messages of a replay, after which it has failed.
const REPLAY_PAUSE_MAX: Duration = Duration::from_secs(30);

/// The log of a partition that this node owns.
#[derive(Debug)]
pub struct PartitionLog {
    job: ClusterJob,
    partition: Partition,
    epoch: u64,
    /// Place of the last message that NATS has acknowledged.
    last: LogPosition,
    /// Place of the claim, at which a replay ends.
    claim: LogPosition,
    /// Place of the snapshot, at which a replay begins.
    snapshot: LogPosition,
    /// Entries that NATS may or may not have, and their message.
    unsettled: Option<(Vec<Vec<u8>>, Bytes)>,
}

/// A place in a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogPosition {
    /// Number of the message in this log, counted from 1 over all owners.
    pub index: u64,
    /// Its sequence in the stream; 0 if unknown.
    pub sequence: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct LogMessage {
    epoch: u64,
    index: u64,
    /// Name of the node, for people who read the stream.
    node: String,
    /// None: a new owner claims the log.
    entries: Vec<Vec<u8>>,
}

impl PartitionLog {
    /// Claims the log for its new owner. From then on the old owner cannot append. `snapshot` is the place up to which a snapshot
    /// has the state of the partition.
    ///
    /// # Errors
    /// The partition belongs to another node by now, or NATS fails.
    pub async fn claim(
        job: &ClusterJob,
        guard: &LeaseGuard,
        snapshot: Option<LogPosition>,
    ) -> Result<Self, ClusterError> {
        let mut log = Self {
            job: job.clone(),
            partition: guard.partition(),
            epoch: guard.epoch(),
            last: LogPosition::default(),
            claim: LogPosition::default(),
            snapshot: snapshot.unwrap_or_default(),
            unsettled: None,
        };
        log.write_claim().await?;
        Ok(log)
    }

    /// Continues after [`ClusterError::LogBehind`]: claims the log again, behind a snapshot that has the effects of all entries
    /// that were acknowledged. Entries of a failed append are kept.
    ///
    /// Save the snapshot first, for the index of [`Self::last`] and sequence 0: no message of the log has this place any more.
    ///
    /// # Errors
    /// As [`Self::claim`].
    pub async fn claim_again(&mut self, snapshot: LogPosition) -> Result<(), ClusterError> {
        self.snapshot = snapshot;
        self.write_claim().await?;
        if let Some((entries, _)) = self.unsettled.take() {
            let message = self.encode(self.last.index + 1, &entries)?;
            self.unsettled = Some((entries, message));
        }
        Ok(())
    }

    async fn write_claim(&mut self) -> Result<(), ClusterError> {
        for _ in 0..CLAIMS_MAX {
            let (sequence, index) = match self.read_last().await? {
                None => (0, 0),
                Some((_, message)) if message.epoch > self.epoch => {
                    return Err(self.fenced(message.epoch));
                }
                Some((sequence, message)) => (sequence, message.index),
            };
            // JetStream may have lost messages that the snapshot has.
            let index = index.max(self.snapshot.index) + 1;
            let message = self.encode(index, &[])?;
            match self.publish(message, sequence).await {
                Ok(sequence) => {
                    self.last = LogPosition { index, sequence };
                    self.claim = self.last;
                    return Ok(());
                }
                Err(PublishFailure::WrongSequence) => {}
                Err(PublishFailure::Failed(error)) => return Err(error),
            }
        }
        Err(ClusterError::Unavailable {
            kind: "a claim of a log",
            source: "the old owner appends all the time".into(),
        })
    }

    /// Place of the last message that NATS has acknowledged.
    #[must_use]
    pub fn last(&self) -> LogPosition {
        self.last
    }

    /// Gives all entries between the snapshot and the claim to `apply`, in order.
    ///
    /// # Errors
    /// Entries are missing or malformed, `apply` fails, or NATS fails. The replay can be repeated from the snapshot.
    pub async fn replay<E>(
        &self,
        mut apply: impl FnMut(LogPosition, Vec<Vec<u8>>) -> Result<(), E>,
    ) -> Result<(), E>
    where
        E: From<ClusterError>,
    {
        let (stream, subject) = self.job.log(self.partition);
        let request = |error| ClusterError::of_request("a replay", error);
        let consumer = stream
            .create_consumer(OrderedConfig {
                deliver_subject: self.job.cluster.connection.client.new_inbox(),
                filter_subject: subject,
                deliver_policy: DeliverPolicy::All,
                ..OrderedConfig::default()
            })
            .await
            .map_err(|error| request(crate::error::NatsError::from(error)))?;
        let opened = consumer.messages().await;
        let mut messages = opened.map_err(|error| request(error.into()))?;
        let mut known = self.snapshot.index;
        loop {
            let received = tokio::time::timeout(REPLAY_PAUSE_MAX, next(&mut messages)).await;
            let message = match received {
                Err(elapsed) => return Err(request(elapsed.into()).into()),
                Ok(None) => return Err(request("the replay ended early".into()).into()),
                Ok(Some(Err(error))) => return Err(request(error.into()).into()),
                Ok(Some(Ok(message))) => message,
            };
            let info = message.info().map_err(request)?;
            let sequence = info.stream_sequence;
            let decoded = self.decode(sequence, &message.payload)?;
            if decoded.index > known {
                if decoded.index > known + 1 {
                    let (from, to) = (known + 1, decoded.index - 1);
                    let partition = self.partition.number();
                    return Err(ClusterError::LogGap {
                        partition,
                        from,
                        to,
                    }
                    .into());
                }
                known = decoded.index;
                if !decoded.entries.is_empty() {
                    let index = decoded.index;
                    apply(LogPosition { index, sequence }, decoded.entries)?;
                }
            }
            if sequence >= self.claim.sequence {
                return Ok(());
            }
        }
    }

    /// Appends entries, all of them or none. They are durable when this returns.
    ///
    /// After an error that [is temporary](ClusterError::is_temporary) the log keeps the entries and stores them with the next call
    /// of [`Self::append`] or [`Self::flush`]: do not append them again.
    ///
    /// # Errors
    /// The partition belongs to another node by now, NATS has lost acknowledged messages, has no room, or fails.
    pub async fn append(&mut self, entries: &[Vec<u8>]) -> Result<LogPosition, ClusterError> {
        self.flush().await?;
        if entries.is_empty() {
            return Ok(self.last);
        }
        let message = self.encode(self.last.index + 1, entries)?;
        self.unsettled = Some((entries.to_vec(), message));
        self.flush().await
    }

    /// Stores the entries of an append that failed for a while.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub async fn flush(&mut self) -> Result<LogPosition, ClusterError> {
        let Some((_, message)) = self.unsettled.clone() else {
            return Ok(self.last);
        };
        let sequence = match self.publish(message.clone(), self.last.sequence).await {
            Ok(sequence) => sequence,
            Err(PublishFailure::Failed(error)) => return Err(error),
            Err(PublishFailure::WrongSequence) => self.find_unsettled(&message).await?,
        };
        self.last = LogPosition {
            index: self.last.index + 1,
            sequence,
        };
        self.unsettled = None;
        Ok(self.last)
    }

    /// Removes all messages before a place, which a snapshot has. The message at the place stays, as the fence.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn trim(&self, position: LogPosition) -> Result<(), ClusterError> {
        if position.sequence == 0 {
            return Ok(());
        }
        let (stream, subject) = self.job.log(self.partition);
        let purged = stream
            .purge()
            .filter(subject)
            .sequence(position.sequence)
            .await;
        purged
            .map(drop)
            .map_err(|error| ClusterError::of_request("trimming a log", error))
    }

    /// The reason why NATS refused a message: it has it already, another owner has appended, or it has lost some.
    async fn find_unsettled(&self, message: &Bytes) -> Result<u64, ClusterError> {
        let found = self.read_last().await?;
        let index = found.as_ref().map_or(0, |(_, last)| last.index);
        match found {
            // The answer to an earlier attempt was lost.
            Some((sequence, last))
                if *message == self.encode(last.index, &last.entries)?
                    && last.epoch == self.epoch =>
            {
                Ok(sequence)
            }
            Some((_, last)) if last.epoch > self.epoch => Err(self.fenced(last.epoch)),
            Some((sequence, _)) if sequence == self.last.sequence => {
                Err(ClusterError::Unavailable {
                    kind: "an append",
                    source: "an earlier attempt is still under way".into(),
                })
            }
            _ => Err(ClusterError::LogBehind {
                partition: self.partition.number(),
                found: index,
                expected: self.last.index,
            }),
        }
    }

    /// The last message, from the leader of the stream.
    async fn read_last(&self) -> Result<Option<(u64, LogMessage)>, ClusterError> {
        let (stream, subject) = self.job.log(self.partition);
        match stream.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => {
                let decoded = self.decode(message.sequence, &message.payload)?;
                Ok(Some((message.sequence, decoded)))
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(ClusterError::of_request("a question for a log", error)),
        }
    }

    fn encode(&self, index: u64, entries: &[Vec<u8>]) -> Result<Bytes, ClusterError> {
        let message = LogMessage {
            epoch: self.epoch,
            index,
            node: self.job.cluster.config().node.clone(),
            entries: entries.to_vec(),
        };
        let bytes = frame::encode(&message);
        let max = self.job.cluster.connection.message_bytes_max();
        match bytes.len() <= max {
            true => Ok(bytes.into()),
            false => {
                let bytes = bytes.len();
                Err(ClusterError::TooLarge {
                    kind: "an append",
                    bytes,
                    max,
                })
            }
        }
    }

    fn decode(&self, sequence: u64, payload: &[u8]) -> Result<LogMessage, ClusterError> {
        frame::decode(payload).ok_or_else(|| ClusterError::Malformed {
            kind: "log message",
            stream: format!(
                "of the log of partition {} of job {:?}",
                self.partition, self.job.name
            ),
            sequence,
        })
    }

    async fn publish(&self, message: Bytes, last: u64) -> Result<u64, PublishFailure> {
        let (_, subject) = self.job.log(self.partition);
        let publish = PublishMessage::build()
            .payload(message)
            .expected_last_subject_sequence(last);
        let failed =
            |error: async_nats::jetstream::context::PublishError| match is_wrong_sequence(&error) {
                true => PublishFailure::WrongSequence,
                false => PublishFailure::Failed(ClusterError::of_request("an append", error)),
            };
        let jetstream = &self.job.cluster.connection.data;
        let answer = jetstream
            .send_publish(subject, publish)
            .await
            .map_err(failed)?;
        Ok(answer.await.map_err(failed)?.sequence)
    }

    fn fenced(&self, epoch: u64) -> ClusterError {
        ClusterError::Fenced {
            partition: self.partition.number(),
            epoch,
        }
    }
}

enum PublishFailure {
    WrongSequence,
    Failed(ClusterError),
}

//! Links between partitions, over NATS. They are delivered at least once: the owner of the target acknowledges links after they are
//! on its disk. Duplicates are harmless, because scheduling a known URI changes nothing.
//!
//! Send a link only after the outbox of its page's owner has it on disk, and keep it there until the owner of its target has
//! acknowledged it ([`LinkSender::received_through`]). Then no link is lost if a process dies, or if NATS loses messages that it
//! has acknowledged (`losses.rs`). [`LinkSender::check`] detects such losses, and then the links that may be lost are sent again.
//! After a start or a takeover, links that NATS had not stored are sent ([`LinkSender::resume`]). Readers must not drop links of
//! older epochs, which are valid even if their sender has died since.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::jetstream::consumer::push::{Ordered, OrderedConfig};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::RawMessageErrorKind;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::bucket::next;
use crate::error::{ClusterError, NatsError};
use crate::frame;
use crate::job::ClusterJob;
use crate::link_batch::{LinkAdmission, LinkBatch, LinkBatcher, LinkSource, SentMessage};
use crate::losses::{Found, MessagePlace, PlaceState, find, nanoseconds};
use crate::partition::Partition;

/// Sends links of this node to the owners of other partitions.
#[derive(Debug)]
pub struct LinkSender {
    job: ClusterJob,
    batcher: Mutex<LinkBatcher>,
    /// Batches that were taken and that NATS has not accepted. Only one call at a time sends them.
    unsent: tokio::sync::Mutex<Vec<LinkBatch>>,
    trust: Mutex<Trust>,
}

/// Reads the links into a partition of this node.
pub struct LinkReader {
    job: ClusterJob,
    partition: Partition,
    /// Name of the consumer in NATS.
    consumer: String,
    messages: Ordered,
}

/// Received links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkDelivery {
    /// Place of the message, for [`LinkReader::acknowledge`].
    pub place: MessagePlace,
    /// The node that sent them.
    pub node: String,
    /// The links.
    pub links: Vec<Vec<u8>>,
    /// Number of messages behind this one.
    pub waiting: u64,
}

/// Result of [`LinkSender::check`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkLosses {
    /// `true` if NATS may have lost links that it had stored. Then add the links of the outbox behind [`LinkSender::repeat_after`]
    /// again.
    pub must_repeat: bool,
    /// `true` if NATS has certainly lost messages that it had stored.
    pub is_certain: bool,
}

/// Reliability, for a sender, of the messages that NATS has stored.
#[derive(Debug, Default)]
struct Trust {
    /// `true` if nothing has happened since the last check by which NATS may have lost messages.
    is_sure: bool,
    /// Number of interruptions of the connection at the last check.
    interruptions: u64,
    /// The leader of each stream at the last check.
    leaders: BTreeMap<usize, StreamLeader>,
    losses: LinkLosses,
}

/// Name of the server that leads a stream, and the time of its election in nanoseconds since 1970; `None` without a NATS cluster.
type StreamLeader = Option<(Option<String>, Option<i128>)>;

/// First and last number of a stream.
struct StreamEnds {
    /// Number of the first message that is not acknowledged, or the next number if there is none.
    first: u64,
    /// The last number that the stream has assigned.
    last: u64,
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
    /// Creates a sender for the links of a job.
    #[must_use]
    pub fn new(job: &ClusterJob) -> Self {
        Self {
            job: job.clone(),
            batcher: Mutex::default(),
            unsent: tokio::sync::Mutex::default(),
            trust: Mutex::default(),
        }
    }

    /// Adds a link to a partition. The outbox of its page's owner must have the link. Links of an outbox must be added in its
    /// order. `now` is the time since any fixed moment.
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
    /// NATS has no free space, or fails. Links that it did not accept are sent again by the next call.
    pub async fn send_due(&self, now: Duration) -> Result<(), ClusterError> {
        // Batches are taken under the lock, so that the next call sends the batches of a cancelled one.
        let mut unsent = self.unsent.lock().await;
        unsent.extend(self.batcher().take_due(now));
        self.send(&mut unsent).await
    }

    /// Sends all links, for instance before a process ends.
    ///
    /// # Errors
    /// As [`Self::send_due`].
    pub async fn send_all(&self) -> Result<(), ClusterError> {
        let mut unsent = self.unsent.lock().await;
        unsent.extend(self.batcher().take_all());
        self.send(&mut unsent).await
    }

    /// Returns the number of the entry in the outbox of `source` up to which NATS has stored all links. `last` is the number of the
    /// last entry that was added.
    #[must_use]
    pub fn sent_through(&self, source: Partition, last: u64) -> u64 {
        self.batcher().sent_through(source, last)
    }

    /// Returns the number of the entry in the outbox of `source` up to which the owners had acknowledged all links at the last
    /// [`Self::check`]. These entries can be removed from the outbox. `last` is the number of the last entry that was added.
    #[must_use]
    pub fn received_through(&self, source: Partition, last: u64) -> u64 {
        self.batcher().received_through(source, last)
    }

    /// Returns the number of the entry in the outbox of `source` behind which all links must be added again after a loss. It is
    /// `last`, the number of the last entry that was added, if nothing was lost since the last call.
    pub fn repeat_after(&self, source: Partition, last: u64) -> u64 {
        self.batcher().repeat_after(source, last)
    }

    /// Returns the state of the links of an outbox, for [`Self::resume`]. Store it with the outbox. `last` is the number of the
    /// last entry that was added.
    #[must_use]
    pub fn stored_links(&self, source: Partition, last: u64) -> Vec<u8> {
        frame::encode(&self.batcher().stored_links(source, last))
    }

    /// Resumes with the links that an earlier process has sent, so that they are not sent again. Returns the number of the entry in
    /// the outbox of `source` behind which links must be added; 0 if the state cannot be read.
    pub fn resume(&self, source: Partition, state: &[u8]) -> u64 {
        match frame::decode(state) {
            Some(known) => self.batcher().resume(source, known),
            None => 0,
        }
    }

    /// Queries NATS for the messages that their owners have acknowledged. After an interruption, a failure or an election of a
    /// leader, also checks whether NATS still has the others. Call [`Self::take_losses`] afterwards.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn check(&self) -> Result<(), ClusterError> {
        let checked = self.check_streams().await;
        if checked.is_err() {
            self.trust().is_sure = false;
        }
        checked
    }

    /// Returns the losses that [`Self::check`] and sending have found since the last call.
    pub fn take_losses(&self) -> LinkLosses {
        std::mem::take(&mut self.trust().losses)
    }

    async fn check_streams(&self) -> Result<(), ClusterError> {
        // Read before NATS is queried, so that the next check covers later interruptions.
        let interruptions = self.job.cluster.connection.interruptions();
        let newest = self.batcher().newest();
        let streams: BTreeSet<usize> = newest.iter().map(|(to, _)| self.job.stream(*to)).collect();
        let mut ends = BTreeMap::new();
        let mut leaders = BTreeMap::new();
        for number in streams {
            let info = self.job.link_streams()[number].get_info().await;
            let info = info.map_err(|error| ClusterError::of_request(CHECKED, error))?;
            let leader = info.cluster.map(|cluster| {
                let since = cluster.leader_since;
                (cluster.leader, since.map(|it| it.unix_timestamp_nanos()))
            });
            leaders.insert(number, leader);
            let (state, last) = (&info.state, info.state.last_sequence);
            let first = match state.messages {
                0 => last + 1,
                _ => state.first_sequence,
            };
            ends.insert(number, StreamEnds { first, last });
        }
        if !self.is_sure(interruptions, &newest, &ends, &leaders) {
            self.find_losses(&newest, &ends).await?;
        }
        let mut trust = self.trust();
        trust.is_sure = true;
        trust.interruptions = interruptions;
        trust.leaders.extend(leaders);
        drop(trust);
        let mut batcher = self.batcher();
        for (number, end) in ends {
            batcher.confirm(|to| self.job.stream(to) == number, end.first);
        }
        Ok(())
    }

    /// Returns `true` if nothing has happened since the last check by which NATS may have lost messages.
    fn is_sure(
        &self,
        interruptions: u64,
        newest: &[(Partition, SentMessage)],
        ends: &BTreeMap<usize, StreamEnds>,
        leaders: &BTreeMap<usize, StreamLeader>,
    ) -> bool {
        let trust = self.trust();
        let mut is_sure = trust.is_sure && trust.interruptions == interruptions;
        for (number, leader) in leaders {
            let known = trust.leaders.get(number);
            is_sure &= known.is_none_or(|known| known == leader);
        }
        for (to, message) in newest {
            let end = ends.get(&self.job.stream(*to));
            is_sure &= end.is_none_or(|end| message.sequence <= end.last);
        }
        is_sure
    }

    /// Checks whether NATS has the newest message to each partition. If so, it also has all earlier ones that were not
    /// acknowledged. Otherwise the links are sent again, because it is unknown whether the message was acknowledged or lost.
    async fn find_losses(
        &self,
        newest: &[(Partition, SentMessage)],
        ends: &BTreeMap<usize, StreamEnds>,
    ) -> Result<(), ClusterError> {
        for (to, message) in newest {
            let (stream, _) = self.job.links(*to);
            let is_certain = match find(stream, message.sequence, CHECKED).await? {
                Found::Message(_, content) if xxh3_128(&content) == message.digest => continue,
                Found::Message(..) => true,
                Found::Missing => {
                    let end = ends.get(&self.job.stream(*to));
                    end.is_some_and(|end| message.sequence > end.last)
                }
            };
            self.batcher().repeat(*to);
            let mut trust = self.trust();
            trust.losses.must_repeat = true;
            trust.losses.is_certain |= is_certain;
        }
        Ok(())
    }

    async fn send(&self, unsent: &mut Vec<LinkBatch>) -> Result<(), ClusterError> {
        if unsent.is_empty() {
            return Ok(());
        }
        let connection = &self.job.cluster.connection;
        if !self.is_checked(connection.interruptions()) {
            self.check().await?;
        }
        let interruptions = self.trust().interruptions;
        let mut answers = Vec::new();
        for batch in unsent.iter() {
            let message = frame::encode(&LinkMessage {
                node: self.job.cluster.config().node.clone(),
                links: batch.links.clone(),
            });
            let digest = xxh3_128(&message);
            let (_, subject) = self.job.links(batch.partition);
            let publish = PublishMessage::build().payload(message.into());
            let answer = connection.data.send_publish(subject, publish).await;
            answers.push((batch.id, digest, answer));
        }
        let mut failure = Ok(());
        for (id, digest, answer) in answers {
            let stored = match answer {
                Ok(answer) => answer.await,
                Err(error) => Err(error),
            };
            let noted = match stored {
                Ok(stored) => {
                    let sequence = stored.sequence;
                    let message = SentMessage { sequence, digest };
                    self.note_stored(unsent, id, message, interruptions)
                }
                Err(error) => Err(ClusterError::of_request("links", error)),
            };
            if let Err(error) = noted {
                // A full stream loses no stored messages.
                if !matches!(error, ClusterError::Full { .. }) {
                    self.trust().is_sure = false;
                }
                failure = Err(error);
            }
        }
        failure
    }

    /// Records that NATS has stored a batch. After an interruption, or if an earlier message had a greater number, NATS may have
    /// lost messages. Then the batch is not recorded and is sent again after the next check, so that the numbers of recorded
    /// messages only rise.
    fn note_stored(
        &self,
        unsent: &mut Vec<LinkBatch>,
        id: u64,
        message: SentMessage,
        interruptions: u64,
    ) -> Result<(), ClusterError> {
        let Some(place) = unsent.iter().position(|batch| batch.id == id) else {
            return Ok(());
        };
        let to = unsent[place].partition;
        let mut batcher = self.batcher();
        let newest = batcher.newest();
        let mut own = newest.iter().filter(|(partition, _)| *partition == to);
        let is_behind = own.all(|(_, newest)| newest.sequence < message.sequence);
        if !is_behind || self.job.cluster.connection.interruptions() != interruptions {
            return Err(ClusterError::Unavailable {
                kind: "links",
                source: "the connection was interrupted meanwhile".into(),
            });
        }
        batcher.store(&unsent.remove(place), message);
        Ok(())
    }

    fn is_checked(&self, interruptions: u64) -> bool {
        let trust = self.trust();
        trust.is_sure && trust.interruptions == interruptions
    }

    fn batcher(&self) -> MutexGuard<'_, LinkBatcher> {
        self.batcher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trust(&self) -> MutexGuard<'_, Trust> {
        self.trust.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Name of the questions about links that were sent, in errors.
const CHECKED: &str = "a question for links that were sent";

impl ClusterJob {
    /// Returns the number of messages with links that their owners have not acknowledged.
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

    /// Checks whether the stream of the links into a part has this message. If so, it also has all earlier ones, except removed
    /// ones.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn check_link(
        &self,
        partition: Partition,
        place: MessagePlace,
    ) -> Result<PlaceState, ClusterError> {
        let (stream, _) = self.links(partition);
        let found = find(stream, place.sequence, "a question for links").await?;
        Ok(match found {
            Found::Message(stored_ns, _) if stored_ns == place.stored_ns => PlaceState::Kept,
            Found::Message(..) => PlaceState::Lost,
            Found::Missing if self.last_link(partition).await? < place.sequence => PlaceState::Lost,
            Found::Missing => PlaceState::Removed,
        })
    }

    /// Returns the greatest number that the stream of the links into a part has assigned. It is less than the number of a message
    /// that was read only if NATS has lost messages.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn last_link(&self, partition: Partition) -> Result<u64, ClusterError> {
        let info = self.links(partition).0.get_info().await;
        let info = info.map_err(|error| ClusterError::of_request("a question for links", error))?;
        Ok(info.state.last_sequence)
    }

    /// Returns the number of the first message with links into a part behind message `taken`; `None` if there is no such message.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn links_behind(
        &self,
        partition: Partition,
        taken: u64,
    ) -> Result<Option<u64>, ClusterError> {
        let (stream, subject) = self.links(partition);
        let first = stream.get_first_raw_message_by_subject(subject, taken + 1);
        match first.await {
            Ok(message) => Ok(Some(message.sequence)),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(ClusterError::of_request("a question for links", error)),
        }
    }
}

impl LinkReader {
    /// Opens a reader of the links into a partition, from the first message that was not acknowledged.
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
        let name = consumer.cached_info().name.clone();
        let messages = consumer
            .messages()
            .await
            .map_err(|error| failed(error.into()))?;
        Ok(Self {
            job: job.clone(),
            partition,
            consumer: name,
            messages,
        })
    }

    /// Returns the next links. Waits until there are some.
    ///
    /// # Errors
    /// A message is malformed, or NATS fails or was interrupted. After a failure of NATS, open the reader again. Also open it again
    /// after an interruption without an error ([`ClusterConnection::reconnected`](crate::ClusterConnection::reconnected)), because
    /// this reader would skip messages that get reused numbers.
    pub async fn next(&mut self) -> Result<LinkDelivery, ClusterError> {
        let failed = |error: NatsError| ClusterError::of_request("reading links", error);
        let received = next(&mut self.messages).await;
        let message = received.ok_or_else(|| failed("the reader ended".into()))?;
        let message = message.map_err(|error| failed(error.into()))?;
        let info = message.info().map_err(failed)?;
        if info.consumer != self.consumer {
            // The client would continue behind the last number that it has received.
            return Err(failed("the reading was interrupted".into()));
        }
        let sequence = info.stream_sequence;
        let decoded: LinkMessage =
            frame::decode(&message.payload).ok_or_else(|| ClusterError::Malformed {
                kind: "links",
                stream: info.stream.to_owned(),
                sequence,
            })?;
        Ok(LinkDelivery {
            place: MessagePlace {
                sequence,
                stored_ns: nanoseconds(info.published.unix_timestamp_nanos()),
            },
            node: decoded.node,
            links: decoded.links,
            waiting: info.pending,
        })
    }

    /// Removes these links and all earlier ones from the stream. Call it after they are on disk; once a second is often enough.
    ///
    /// # Errors
    /// NATS fails. Then the links may be delivered again to the next reader.
    pub async fn acknowledge(&mut self, place: MessagePlace) -> Result<(), ClusterError> {
        self.job.acknowledge_links(self.partition, place).await
    }
}

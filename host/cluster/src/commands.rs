//! Operators' commands on a job. Each node reads all of them in one order, from the first, and keeps the place up to which it has
//! applied them together with their effects. So a command takes effect once on each node, a new node gets the settings that were
//! changed before it came, and a node whose disk was lost starts again. A consumer kept by NATS would not know of the lost disk.
//! The place has the time of its command, so that a node notices if NATS has lost commands ([`ClusterJob::command_place`]).

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::push::{Ordered, OrderedConfig};
use async_nats::jetstream::message::PublishMessage;

use crate::bucket::{BucketEntry, BucketError, next};
use crate::error::{ClusterError, NatsError};
use crate::job::ClusterJob;
use crate::losses::{Found, MessagePlace, find, nanoseconds};

/// Attempts to note what a node has applied.
const NOTES_MAX: usize = 5;

/// Name of the questions about commands that a node has applied, in errors.
const PLACE: &str = "a question for commands";

/// Reads the commands of a job.
pub struct CommandReader {
    job: ClusterJob,
    /// Name of the consumer in NATS.
    consumer: String,
    messages: Ordered,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobCommand {
    /// Its place in the order. Keep it with the effects of the command.
    pub sequence: u64,
    /// Time at which NATS stored it, for [`MessagePlace::stored_ns`]. Keep it, too.
    pub stored_ns: i64,
    /// The command, as the crawl encodes it.
    pub command: Vec<u8>,
}

impl std::fmt::Debug for CommandReader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("CommandReader")
            .field("job", &self.job.name)
            .finish_non_exhaustive()
    }
}

impl ClusterJob {
    /// Sends a command to all nodes. It is stored when this returns.
    ///
    /// # Errors
    /// NATS has no room, or fails; then the command may or may not be carried out.
    pub async fn send_command(&self, command: &[u8]) -> Result<u64, ClusterError> {
        let publish = PublishMessage::build().payload(command.to_vec().into());
        let failed = |error| ClusterError::of_request("a command", error);
        let jetstream = &self.cluster.connection.data;
        let answer = jetstream
            .send_publish(self.command_subject(), publish)
            .await;
        let stored = answer.map_err(failed)?.await.map_err(failed)?;
        Ok(stored.sequence)
    }

    /// The place of the last command; 0 if there is none.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn last_command(&self) -> Result<u64, ClusterError> {
        let info = self.commands.get_info().await;
        let info =
            info.map_err(|error| ClusterError::of_request("a question for commands", error))?;
        Ok(info.state.last_sequence)
    }

    /// The last command that a node has applied, if it has noted this one: an earlier one if NATS has lost commands up to it. Then NATS
    /// gives the numbers behind that one again, to commands that the node has not applied.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn command_place(&self, noted: MessagePlace) -> Result<MessagePlace, ClusterError> {
        if noted.sequence == 0 {
            return Ok(noted);
        }
        let last = self.last_command().await?;
        let mut sequence = noted.sequence.min(last);
        while sequence > 0 {
            if let Found::Message(stored_ns, _) = find(&self.commands, sequence, PLACE).await?
                && stored_ns <= noted.stored_ns
            {
                return Ok(MessagePlace {
                    sequence,
                    stored_ns,
                });
            }
            sequence -= 1;
        }
        Ok(MessagePlace::default())
    }

    /// The place up to which each node has applied the commands.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn applied_commands(&self) -> Result<Vec<(String, u64)>, ClusterError> {
        let entries = self.state.list("applied.*").await?;
        let applied = entries.into_iter().filter_map(|entry| {
            let node = entry.key.strip_prefix("applied.")?;
            Some((node.to_owned(), number_in(&entry)?))
        });
        Ok(applied.collect())
    }

    /// The place up to which a node has noted that it has applied the commands; 0 for none.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn applied_command(&self, node: &str) -> Result<u64, ClusterError> {
        let entry = self.state.read(&format!("applied.{node}")).await?;
        Ok(entry.as_ref().and_then(number_in).unwrap_or(0))
    }

    /// Notes that this node has applied all commands up to this place, for operators who wait for it.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn note_applied(&self, sequence: u64) -> Result<(), ClusterError> {
        let node = &self.cluster.config().node;
        self.note(&format!("applied.{node}"), sequence).await
    }

    /// Notes that NATS has lost the commands behind this place, which this node has applied.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn note_lost(&self, sequence: u64) -> Result<(), ClusterError> {
        let key = format!("applied.{}", self.cluster.config().node);
        self.write_number(&key, sequence, |known| known <= sequence)
            .await
    }

    /// Writes a number that only rises.
    async fn note(&self, key: &str, number: u64) -> Result<(), ClusterError> {
        self.write_number(key, number, |known| known >= number)
            .await
    }

    /// Writes a number, unless the known one is enough.
    async fn write_number(
        &self,
        key: &str,
        number: u64,
        is_enough: impl Fn(u64) -> bool,
    ) -> Result<(), ClusterError> {
        for _ in 0..NOTES_MAX {
            let entry = self.state.read(key).await?;
            let known = entry.as_ref().and_then(number_in);
            if known.is_some_and(&is_enough) {
                return Ok(());
            }
            let revision = entry.map_or(0, |entry| entry.revision);
            match self
                .state
                .write(key, number.to_string().into_bytes(), revision)
                .await
            {
                Ok(_) => return Ok(()),
                Err(BucketError::Conflict) => {}
                Err(BucketError::Failed(error)) => return Err(error),
            }
        }
        Err(ClusterError::Unavailable {
            kind: "a note of applied commands",
            source: "another process writes it at the same time".into(),
        })
    }
}

/// The number in an entry.
fn number_in(entry: &BucketEntry) -> Option<u64> {
    std::str::from_utf8(entry.value.as_deref()?)
        .ok()?
        .parse()
        .ok()
}

impl CommandReader {
    /// Reads the commands behind the place up to which this node has applied them; 0 for a node that has applied none.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn open(job: &ClusterJob, applied_through: u64) -> Result<Self, ClusterError> {
        let config = OrderedConfig {
            deliver_subject: job.cluster.connection.client.new_inbox(),
            filter_subject: job.command_subject(),
            deliver_policy: DeliverPolicy::ByStartSequence {
                start_sequence: applied_through + 1,
            },
            ..OrderedConfig::default()
        };
        let failed = |error: NatsError| ClusterError::of_request("reading commands", error);
        let consumer = job
            .commands
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
            consumer: name,
            messages,
        })
    }

    /// The next command. Waits until there is one.
    ///
    /// # Errors
    /// NATS fails, or was interrupted. Then open the reader again. Open it also after an interruption without an error
    /// ([`ClusterConnection::reconnected`](crate::ClusterConnection::reconnected)): NATS may give the numbers of commands again.
    pub async fn next(&mut self) -> Result<JobCommand, ClusterError> {
        let failed = |error: NatsError| ClusterError::of_request("reading commands", error);
        let received = next(&mut self.messages).await;
        let message = received.ok_or_else(|| failed("the reader ended".into()))?;
        let message = message.map_err(|error| failed(error.into()))?;
        let info = message.info().map_err(failed)?;
        if info.consumer != self.consumer {
            // The client continues after the last number that it has seen.
            return Err(failed("the reading was interrupted".into()));
        }
        Ok(JobCommand {
            sequence: info.stream_sequence,
            stored_ns: nanoseconds(info.published.unix_timestamp_nanos()),
            command: message.payload.to_vec(),
        })
    }
}

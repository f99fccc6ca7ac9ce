//! Operators' commands on a job. Each node reads all of them in one order, from the first, and keeps the place up to which it has
//! applied them together with their effects. So a command takes effect once on each node, a new node gets the settings that were
//! changed before it came, and a node whose disk was lost starts again. A consumer kept by NATS would not know of the lost disk.

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::push::{Ordered, OrderedConfig};
use async_nats::jetstream::message::PublishMessage;

use crate::bucket::{BucketEntry, BucketError, next};
use crate::error::{ClusterError, NatsError};
use crate::job::ClusterJob;

/// Attempts to note what a node has applied.
const NOTES_MAX: usize = 5;

/// Reads the commands of a job.
pub struct CommandReader {
    job: ClusterJob,
    messages: Ordered,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobCommand {
    /// Its place in the order. Keep it with the effects of the command.
    pub sequence: u64,
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

    /// The place up to which each node has applied the commands.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn applied_commands(&self) -> Result<Vec<(String, u64)>, ClusterError> {
        // The list needs a key that exists.
        self.note(ANCHOR, 0).await?;
        let entries = self.state.list(&["applied.*", ANCHOR]).await?;
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

    /// Writes a number that only rises.
    async fn note(&self, key: &str, number: u64) -> Result<(), ClusterError> {
        for _ in 0..NOTES_MAX {
            let entry = self.state.read(key).await?;
            let known = entry.as_ref().and_then(number_in);
            if known.is_some_and(|known| known >= number) {
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

const ANCHOR: &str = "applied-anchor";

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
        let messages = consumer
            .messages()
            .await
            .map_err(|error| failed(error.into()))?;
        Ok(Self {
            job: job.clone(),
            messages,
        })
    }

    /// The next command. Waits until there is one.
    ///
    /// # Errors
    /// NATS fails. Then open the reader again.
    pub async fn next(&mut self) -> Result<JobCommand, ClusterError> {
        let failed = |error: NatsError| ClusterError::of_request("reading commands", error);
        let received = next(&mut self.messages).await;
        let message = received.ok_or_else(|| failed("the reader ended".into()))?;
        let message = message.map_err(|error| failed(error.into()))?;
        let sequence = message.info().map_err(failed)?.stream_sequence;
        Ok(JobCommand {
            sequence,
            command: message.payload.to_vec(),
        })
    }
}

//! Questions to the process of a part, and its answers. They are not stored, so a question fails if the process does not run.

use async_nats::{Client, Message, RequestErrorKind, Subscriber};

use crate::bucket::next;
use crate::error::{ClusterError, outermost};
use crate::job::ClusterJob;

/// The questions to a part.
pub struct PartQuestions {
    client: Client,
    messages: Subscriber,
}

/// A question.
pub struct PartQuestion {
    client: Client,
    message: Message,
}

impl ClusterJob {
    /// Sends a question to the process of a part, and returns the answer.
    ///
    /// # Errors
    /// [`ClusterError::PartSilent`] if no process answers, or NATS fails.
    pub async fn query_part(&self, part: &str, question: Vec<u8>) -> Result<Vec<u8>, ClusterError> {
        let client = &self.cluster.connection.client;
        let answer = client.request(self.questions_to(part), question.into());
        match answer.await {
            Ok(answer) => Ok(answer.payload.to_vec()),
            Err(error) => Err(match error.kind() {
                RequestErrorKind::NoResponders | RequestErrorKind::TimedOut => {
                    ClusterError::PartSilent {
                        part: part.to_owned(),
                    }
                }
                _ => ClusterError::Unavailable {
                    kind: "a question to a part",
                    source: outermost(&error),
                },
            }),
        }
    }

    /// Subscribes to the questions to a part, for its process.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn questions(&self, part: &str) -> Result<PartQuestions, ClusterError> {
        let client = self.cluster.connection.client.clone();
        let subscribed = client.subscribe(self.questions_to(part)).await;
        let messages = subscribed.map_err(|error| ClusterError::Unavailable {
            kind: "a subscription to questions",
            source: outermost(&error),
        })?;
        Ok(PartQuestions { client, messages })
    }

    fn questions_to(&self, part: &str) -> String {
        format!("opilio.{}.ask.{part}", self.name)
    }
}

impl PartQuestions {
    /// Returns the next question; `None` if the connection was closed. Waits until there is one, also while NATS is not available.
    pub async fn next(&mut self) -> Option<PartQuestion> {
        let message = next(&mut self.messages).await?;
        let client = self.client.clone();
        Some(PartQuestion { client, message })
    }
}

impl PartQuestion {
    /// Returns the question.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.message.payload
    }

    /// Answers the question. Does nothing if the client expects no answer.
    pub async fn answer(self, answer: Vec<u8>) {
        let Some(reply) = self.message.reply else {
            return;
        };
        if let Err(problem) = self.client.publish(reply, answer.into()).await {
            tracing::warn!("a question was not answered: {problem}");
        }
    }
}

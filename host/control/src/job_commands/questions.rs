//! Commands about a URI or a queue of another part of a shared job: they are sent to its process over NATS, which answers.

use std::time::Duration;

use jiff::Timestamp;
use opilio_cluster::{ClusterError, PartQuestions};
use opilio_crawl::JobPart;
use opilio_uri::Uri;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::command_log::{JobCommands, not_given, of_other_node};
use crate::answer::Respond;
use crate::{Command, CommandRequest, CommandResponse, ControlError, ErrorKind, JobAdmin, Running};

/// Pause after a failure of NATS.
const RETRY: Duration = Duration::from_secs(10);

/// Time between two checks of the session of the process.
const SESSION_PAUSE: Duration = Duration::from_millis(100);

impl JobCommands {
    /// Sends a command to the process of another part, and its answers to `respond`.
    pub(crate) fn forward(
        &self,
        place: &OtherPart,
        request: &CommandRequest,
        respond: Respond<'_>,
    ) {
        let answers = match place {
            OtherPart::Site { part } => self.answers_of(part, request).map_err(|problem| {
                ControlError::new(
                    problem.kind,
                    format!(
                        "the site of this URI belongs to part {part:?} of the crawl: {problem}"
                    ),
                )
            }),
            OtherPart::Queue { queue } => self.answers_about(queue, request),
        };
        match answers {
            Ok(answers) => answers.into_iter().for_each(|answer| {
                respond(answer);
            }),
            Err(ControlError { kind, message }) => {
                respond(CommandResponse::Refused { kind, message });
            }
        }
    }

    /// Returns the answers of the part that has a queue. The name of a queue does not tell its part, so all other parts are queried
    /// first, at the same time, so that several silent parts take no longer than one.
    fn answers_about(
        &self,
        queue: &str,
        request: &CommandRequest,
    ) -> Result<Vec<CommandResponse>, ControlError> {
        let question = self.question(&CommandRequest {
            command: Command::Queue {
                queue: queue.to_owned(),
            },
            ..request.clone()
        })?;
        let own = &self.part;
        let mut asked = JoinSet::new();
        for part in own.parts.iter().filter(|part| **part != own.part) {
            let (job, part, question) = (self.job.clone(), part.clone(), question.clone());
            asked.spawn_on(
                async move {
                    let answers = job.query_part(&part, question).await;
                    (part, answers)
                },
                &self.handle,
            );
        }
        let mut silent = Vec::new();
        while let Some((part, answers)) = self.wait(next_of(&mut asked))? {
            match answers
                .map_err(|problem| not_given(&problem))
                .and_then(|it| read(&it))
            {
                Ok(answers) if is_unknown(&answers) => {}
                Ok(_) => return self.answers_of(&part, request),
                Err(problem) => silent.push(problem.message),
            }
        }
        silent.sort();
        match silent.is_empty() {
            true => Err(ControlError::new(
                ErrorKind::Unknown,
                format!(
                    "queue {queue:?} not found in any part of the crawl; `opilio frontier queues JOB` lists the queues of a node"
                ),
            )),
            false => Err(ControlError::new(
                ErrorKind::State,
                format!(
                    "queue {queue:?} is not in this part of the crawl, and may be in one that does not answer: {}",
                    silent.join("; ")
                ),
            )),
        }
    }

    /// Returns the answers of the process of a part.
    fn answers_of(
        &self,
        part: &str,
        request: &CommandRequest,
    ) -> Result<Vec<CommandResponse>, ControlError> {
        let question = self.question(request)?;
        read(&self.wait(self.job.query_part(part, question))?)
    }

    /// A command as a question to another part.
    fn question(&self, request: &CommandRequest) -> Result<Vec<u8>, ControlError> {
        let question = CommandRequest {
            by: of_other_node(&request.by, &self.part.part),
            ..request.clone()
        };
        serde_json::to_vec(&question).map_err(|problem| ControlError::failure(&problem))
    }

    /// Answers questions of other nodes about URIs and queues of this part, until the crawl ends. Answers nothing while another
    /// process may have the part.
    pub(super) async fn answer(&self, running: &Running, mut ended: watch::Receiver<()>) {
        let membership = running.context.membership.clone();
        let has_part = || membership.as_ref().is_some_and(|it| it.has_part());
        while ended.has_changed().is_ok() {
            if !has_part() {
                // Resolves when the sender is dropped.
                let _ = tokio::time::timeout(SESSION_PAUSE, ended.changed()).await;
                continue;
            }
            let mut questions = match self.job.questions(&self.part.part).await {
                Ok(questions) => questions,
                Err(problem) => {
                    tracing::warn!("{problem}");
                    let _ = tokio::time::timeout(RETRY, ended.changed()).await;
                    continue;
                }
            };
            let goes_on = || ended.has_changed().is_ok() && has_part();
            answer_while(&mut questions, goes_on, |request| async move {
                let running = running.clone();
                let answers = tokio::task::spawn_blocking(move || answers(&request, &running));
                let answers = answers.await;
                answers.inspect_err(|panic| tracing::error!("a question of another node: {panic}"))
            })
            .await;
        }
    }
}

/// Answers questions while `goes_on` is true. If it is not true before and after a command, no answer is sent, because another
/// process may have the part.
pub(super) async fn answer_while<E, A: Future<Output = Result<Vec<u8>, E>>>(
    questions: &mut PartQuestions,
    goes_on: impl Fn() -> bool,
    answer_to: impl Fn(Vec<u8>) -> A,
) {
    while goes_on() {
        let Ok(question) = tokio::time::timeout(SESSION_PAUSE, questions.next()).await else {
            continue;
        };
        // The connection was closed.
        let Some(question) = question else { return };
        if !goes_on() {
            return;
        }
        let answer = answer_to(question.bytes().to_vec()).await;
        if let Ok(answer) = answer
            && goes_on()
        {
            question.answer(answer).await;
        }
    }
}

/// The part with the URI or queue of a command, if it is not the part of this directory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OtherPart {
    /// This part has the site of the URI.
    Site {
        /// Name of the part.
        part: String,
    },
    /// Another part may have the queue.
    Queue {
        /// Name of the queue.
        queue: String,
    },
}

/// Returns the part with the URI or queue of a command, if it is not this part.
pub(crate) fn other_part(
    admin: &JobAdmin<'_>,
    own: &JobPart,
    command: &Command,
) -> Option<OtherPart> {
    if let Some(queue) = command.queue_of_part() {
        let found = admin.frontier().queue(queue, Timestamp::now());
        // An error of the store is reported when the command is carried out.
        return matches!(found, Ok(None)).then(|| OtherPart::Queue {
            queue: queue.to_owned(),
        });
    }
    let uri = Uri::parse_seed(command.uri_of_site()?).ok()?;
    let part = own.part_of(admin.profile, &uri);
    (part != own.part).then(|| OtherPart::Site {
        part: part.to_owned(),
    })
}

/// A part with its answers.
type Answered = (String, Result<Vec<u8>, ClusterError>);

/// Returns the next part that has answered or timed out; `None` if there are no more.
async fn next_of(asked: &mut JoinSet<Answered>) -> Result<Option<Answered>, ClusterError> {
    Ok(asked
        .join_next()
        .await
        .map(|answer| answer.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))))
}

fn read(answers: &[u8]) -> Result<Vec<CommandResponse>, ControlError> {
    serde_json::from_slice(answers).map_err(|problem| ControlError::failure(&problem))
}

/// Returns `true` if a part has refused a command because it does not have the URI or queue.
fn is_unknown(answers: &[CommandResponse]) -> bool {
    matches!(
        answers.last(),
        Some(CommandResponse::Refused {
            kind: ErrorKind::Unknown,
            ..
        })
    )
}

/// Returns `true` if other parts may send this command.
fn is_question(command: &Command) -> bool {
    command.uri_of_site().is_some() || command.queue_of_part().is_some()
}

/// Answers a question of another node.
fn answers(request: &[u8], running: &Running) -> Vec<u8> {
    let mut answers = Vec::new();
    match serde_json::from_slice::<CommandRequest>(request) {
        Ok(request) if is_question(&request.command) => {
            let profile = running.context.current();
            running
                .admin(&profile)
                .perform_here(&request, &mut |answer| {
                    answers.push(answer);
                    true
                });
        }
        _ => answers.push(CommandResponse::Refused {
            kind: ErrorKind::Request,
            message: "invalid question: run the same version of Opilio on all nodes".to_owned(),
        }),
    }
    serde_json::to_vec(&answers).unwrap_or_default()
}

//! Commands about a URI whose site another part of a shared job has: its process is asked over NATS, and answers.

use std::time::Duration;

use opilio_cluster::PartQuestions;
use opilio_crawl::JobPart;
use opilio_profile::Profile;
use opilio_uri::Uri;
use tokio::sync::watch;

use super::{JobCommands, of_other_node};
use crate::perform::Say;
use crate::{Command, CommandRequest, CommandResponse, ControlError, ErrorKind, Running};

/// Pause after a failure of NATS.
const RETRY: Duration = Duration::from_secs(10);

/// Pause between two looks at the session of the process.
const SESSION_PAUSE: Duration = Duration::from_millis(100);

impl JobCommands {
    /// Has another part carry out a command. Its answers go to `say`.
    pub(crate) fn ask(&self, part: &str, request: &CommandRequest, say: Say<'_>) {
        let question = CommandRequest {
            by: of_other_node(&request.by, &self.part.part),
            ..request.clone()
        };
        let asked = serde_json::to_vec(&question)
            .map_err(|problem| ControlError::failure(&problem))
            .and_then(|question| self.wait(self.job.ask_part(part, question)))
            .and_then(|answers| {
                serde_json::from_slice::<Vec<CommandResponse>>(&answers)
                    .map_err(|problem| ControlError::failure(&problem))
            });
        match asked {
            Ok(answers) => answers.into_iter().for_each(|answer| {
                say(answer);
            }),
            Err(ControlError { fault, message }) => {
                let message = format!(
                    "the site of this URI belongs to part {part:?} of the crawl: {message}"
                );
                say(CommandResponse::Refused { fault, message });
            }
        }
    }

    /// Answers questions of other nodes about URIs of this part, until the crawl ends. While another process may have the part, it
    /// listens to none.
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

/// Answers questions as long as `goes_on` holds. A question that comes later, or during whose answer it ceases to hold, is not answered:
/// another process may have the part.
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

/// Returns the part that has the site of a command's URI, if it is another one.
pub(crate) fn other_part(own: &JobPart, profile: &Profile, command: &Command) -> Option<String> {
    let uri = Uri::parse_seed(command.uri_of_site()?).ok()?;
    let part = own.part_of(profile, &uri);
    (part != own.part).then(|| part.to_owned())
}

/// Answers a question of another node.
fn answers(request: &[u8], running: &Running) -> Vec<u8> {
    let mut answers = Vec::new();
    match serde_json::from_slice::<CommandRequest>(request) {
        Ok(request) if request.command.uri_of_site().is_some() => {
            let profile = running.context.current();
            running
                .admin(&profile)
                .perform_here(&request, &mut |answer| {
                    answers.push(answer);
                    true
                });
        }
        _ => answers.push(CommandResponse::Refused {
            fault: ErrorKind::Request,
            message: "invalid question: run the same version of Opilio on all nodes".to_owned(),
        }),
    }
    serde_json::to_vec(&answers).unwrap_or_default()
}

//! Commands about a URI whose site another part of a shared job has: its process is asked over NATS, and answers.

use std::time::Duration;

use opilio_crawl::JobPart;
use opilio_profile::Profile;
use opilio_uri::Uri;
use tokio::sync::watch;

use super::{JobCommands, of_other_node};
use crate::perform::Say;
use crate::{Command, CommandRequest, CommandResponse, ControlError, ErrorKind, Running};

/// Pause after a failure of NATS.
const RETRY: Duration = Duration::from_secs(10);

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

    /// Answers questions of other nodes about URIs of this part, until the crawl ends.
    pub(super) async fn answer(&self, running: &Running, mut ended: watch::Receiver<()>) {
        while ended.has_changed().is_ok() {
            let mut questions = match self.job.questions(&self.part.part).await {
                Ok(questions) => questions,
                Err(problem) => {
                    tracing::warn!("{problem}");
                    // Resolves when the sender is dropped.
                    let _ = tokio::time::timeout(RETRY, ended.changed()).await;
                    continue;
                }
            };
            loop {
                let question = tokio::select! {
                    biased;
                    _ = ended.changed() => return,
                    question = questions.next() => question,
                };
                let Some(question) = question else { break };
                let (request, running) = (question.bytes().to_vec(), running.clone());
                let answers = tokio::task::spawn_blocking(move || answers(&request, &running));
                match answers.await {
                    Ok(answers) => question.answer(answers).await,
                    Err(panic) => tracing::error!("a question of another node: {panic}"),
                }
            }
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

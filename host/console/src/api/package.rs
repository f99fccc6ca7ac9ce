//! Packages (WACZ) of the archive of a job. A process of `opilio package` writes them.

use std::process::{Output, Stdio};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::process::Command;
use utoipa::ToSchema;

use super::jobs::blocking;
use super::{Shared, own_files};
use crate::access::Caller;
use crate::daemon::Daemon;
use crate::file_tasks::FileTaskKind;
use crate::input::{Body, PathParams};
use crate::problem::Problem;

/// Maximum bytes of a failed process's output that are kept.
const WORDS_BYTES_MAX: usize = 2_000;

/// Longest title or description, in characters.
const TEXT_CHARS_MAX: usize = 1_000;

/// New package.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPackage {
    /// Title for readers.
    #[schema(max_length = 1000, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
    title: Option<String>,
    /// Description for readers.
    #[schema(max_length = 1000, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
    description: Option<String>,
    /// `true` if the package has the `crawl.log`, which lists every URI that the crawl requested.
    #[serde(default)]
    logs: bool,
}

/// Package that is being written.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BegunPackage {
    /// Name under which `GET /jobs/{job}/files?kind=wacz` lists the package when it is complete.
    name: String,
}

/// Begins to pack the finished archive files of a job into a WACZ file, with their index and a list of pages. Files that a crawl
/// is writing are left out. The package is in the job's folder, and a hand-over stores it. `GET /jobs/{job}/file-task` has the
/// progress.
#[utoipa::path(post, path = "/jobs/{job}/package", operation_id = "pack_job", tag = "files", params(("job" = String, Path, description = "Name of the job")), request_body = NewPackage, responses((status = 202, body = BegunPackage)))]
pub(crate) async fn pack(
    State(daemon): Shared,
    caller: Caller,
    PathParams(job): PathParams<String>,
    Body(new): Body<NewPackage>,
) -> Result<(StatusCode, Json<BegunPackage>), Problem> {
    for text in [&new.title, &new.description].into_iter().flatten() {
        if text.chars().count() > TEXT_CHARS_MAX || text.contains(char::is_control) {
            return Err(Problem::unusable(
                "title and description may have at most 1000 characters, without line ends",
            ));
        }
    }
    let directory = daemon.directory(&job)?;
    let checked = directory.clone();
    blocking(move || own_files(&checked)).await?;
    let name = format!("{job}-{}.wacz", Timestamp::now().strftime("%Y%m%d%H%M%S"));
    let mut command = Command::new(&daemon.program);
    command.arg("package").arg(&directory).arg("--output");
    command.arg(directory.join(&name));
    if let Some(title) = &new.title {
        command.arg(format!("--title={title}"));
    }
    if let Some(description) = &new.description {
        command.arg(format!("--description={description}"));
    }
    if new.logs {
        command.arg("--logs");
    }
    // A separate process group: signals to the daemon, as by Ctrl-C in a terminal, must not reach the process.
    #[cfg(unix)]
    command.process_group(0);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let kind = FileTaskKind::Package;
    let task = Some(name.clone());
    daemon.file_tasks.begin(&job, kind, task, &caller.user)?;
    tokio::spawn(carry_out(daemon, job, command));
    Ok((StatusCode::ACCEPTED, Json(BegunPackage { name })))
}

/// Runs the process that writes the package, and ends the task when the process ends.
async fn carry_out(daemon: Arc<Daemon>, job: String, mut command: Command) {
    let problem = match command.output().await {
        Ok(Output { status, .. }) if status.success() => None,
        Ok(Output { stderr, status, .. }) => Some(last_line(&stderr, &status.to_string())),
        Err(problem) => Some(format!("cannot start opilio package: {problem}")),
    };
    match &problem {
        None => daemon.file_tasks.count(&job, Ok(())),
        Some(problem) => tracing::warn!(job, "package: {problem}"),
    }
    daemon.file_tasks.end(&job, problem);
}

/// Returns the last line of a failed process's output.
fn last_line(stderr: &[u8], status: &str) -> String {
    let text = String::from_utf8_lossy(&stderr[stderr.len().saturating_sub(WORDS_BYTES_MAX)..]);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    match last {
        Some(line) => line.trim().trim_start_matches("opilio: ").to_owned(),
        None => format!("opilio package ended with {status}"),
    }
}

//! The command `archive.on-close`, which takes over closed files with their checksums.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use opilio_job::handover::Checksums;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

/// Maximum of a failing command's output that is kept, in bytes.
const WORDS_BYTES_MAX: u64 = 2048;

/// The command, with its settings.
pub(super) struct OnClose {
    pub(super) command: Vec<String>,
    pub(super) timeout: Duration,
    pub(super) job: PathBuf,
}

impl OnClose {
    /// Runs the command for a file.
    pub(super) async fn run(&self, file: &Path, sums: &Checksums) -> Result<(), String> {
        let mut arguments = filled(&self.command, file, sums).into_iter();
        let Some(program) = arguments.next() else {
            return Ok(());
        };
        let mut child = Command::new(&program)
            .args(arguments)
            .current_dir(&self.job)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|problem| format!("cannot start {program}: {problem}"))?;
        let stderr = child.stderr.take();
        let ended = async {
            let output = match stderr {
                Some(mut stderr) => {
                    let mut output = Vec::new();
                    let _ = (&mut stderr)
                        .take(WORDS_BYTES_MAX)
                        .read_to_end(&mut output)
                        .await;
                    let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
                    output
                }
                None => Vec::new(),
            };
            (child.wait().await, output)
        };
        match tokio::time::timeout(self.timeout, ended).await {
            Err(_) => Err(format!(
                "{program} was killed after {} s",
                self.timeout.as_secs()
            )),
            Ok((Err(problem), _)) => Err(format!("{program}: {problem}")),
            Ok((Ok(status), _)) if status.success() => Ok(()),
            Ok((Ok(status), output)) => Err(format!(
                "{program} exited with {status}: {}",
                String::from_utf8_lossy(&output).trim()
            )),
        }
    }
}

/// Fills the placeholders in the command's arguments. Appends the path if no argument names the file.
fn filled(command: &[String], file: &Path, sums: &Checksums) -> Vec<String> {
    let path = file.to_string_lossy();
    let names_file = command
        .iter()
        .skip(1)
        .any(|argument| argument.contains("{file}"));
    let mut arguments: Vec<String> = command
        .iter()
        .enumerate()
        .map(|(at, argument)| match at {
            0 => argument.clone(),
            // The path is inserted last, because it may contain braces itself.
            _ => argument
                .replace("{size}", &sums.size.to_string())
                .replace("{sha1}", &sums.sha1)
                .replace("{sha256}", &sums.sha256)
                .replace("{file}", &path),
        })
        .collect();
    if !names_file {
        arguments.push(path.into_owned());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &[&str], expected: &[&str]) {
        let command: Vec<_> = command
            .iter()
            .map(|argument| (*argument).to_owned())
            .collect();
        let sums = Checksums {
            size: 3,
            sha1: "s1".to_owned(),
            sha256: "s256".to_owned(),
        };
        let arguments = filled(&command, Path::new("/job/{size}.warc.gz"), &sums);
        assert_eq!(arguments, expected);
    }

    #[test]
    fn placeholders_in_the_command_are_replaced() {
        check(&["take"], &["take", "/job/{size}.warc.gz"]);
        check(
            &["take", "--sum={sha256}", "{file}.x", "{size}/{sha1}"],
            &["take", "--sum=s256", "/job/{size}.warc.gz.x", "3/s1"],
        );
        check(
            &["{file}", "{size}"],
            &["{file}", "3", "/job/{size}.warc.gz"],
        );
    }
}

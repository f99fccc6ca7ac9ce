//! A browser process with its process group, its profile folder and its last lines of standard error.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::devtools::DevTools;
use crate::error::BrowserError;
use crate::executable::BrowserExecutable;
use crate::flags::CommandLine;
use crate::process_tree::ProcessGroup;

/// Maximum lines of standard error that are kept.
const STDERR_LINES_MAX: usize = 12;

/// Maximum bytes of such a line.
const STDERR_LINE_BYTES_MAX: u64 = 500;

/// Time limit for the end of a killed group.
const END_TIME_MAX: Duration = Duration::from_secs(10);

/// A running browser. Dropping it kills its group.
#[derive(Debug)]
pub(crate) struct BrowserProcess {
    child: Child,
    /// ID of the process and of its group.
    group: u32,
    stderr: Arc<Mutex<VecDeque<String>>>,
    profile: TempDir,
}

impl BrowserProcess {
    /// Starts a browser in its own group, with a fresh profile in `folder`.
    pub(crate) fn start(
        executable: &BrowserExecutable,
        profile: TempDir,
        line: &CommandLine<'_>,
    ) -> Result<(BrowserProcess, DevTools), BrowserError> {
        let failed = |problem: io::Error| BrowserError::DoesNotStart {
            path: executable.path.clone(),
            status: problem.to_string(),
            stderr: String::new(),
        };
        // The shell moves the pipes to the descriptors that Chromium uses, and is then replaced by Chromium.
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null"#, "sh"])
            .arg(&executable.path)
            .args(line.arguments())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        set_environment(&mut command, profile.path());
        let mut child = command.spawn().map_err(failed)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors), Some(group)) =
            (pipes.0, pipes.1, pipes.2, child.id())
        else {
            return Err(failed(io::ErrorKind::BrokenPipe.into()));
        };
        let stderr = Arc::default();
        tokio::spawn(keep_last_lines(errors, Arc::clone(&stderr)));
        let process = BrowserProcess {
            child,
            group,
            stderr,
            profile,
        };
        Ok((process, DevTools::connect(input, output)))
    }

    /// Returns the ID of the process group.
    pub(crate) fn group(&self) -> u32 {
        self.group
    }

    /// Returns the last lines of standard error, without messages that every browser writes.
    pub(crate) fn stderr(&self) -> String {
        let lines = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        match lines.is_empty() {
            true => "no message".to_owned(),
            false => lines.join(" | "),
        }
    }

    /// Returns the exit status of a browser whose pipe is closed.
    pub(crate) async fn status(&mut self) -> String {
        match tokio::time::timeout(Duration::from_secs(2), self.child.wait()).await {
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(problem)) => problem.to_string(),
            Err(_) => "it still runs".to_owned(),
        }
    }

    /// Kills the whole group, waits for its end, and removes the profile.
    pub(crate) async fn end(mut self) {
        let gone = async {
            let _ = self.child.start_kill();
            let _ = self.child.wait().await;
            while !self.kill_all() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(END_TIME_MAX, gone).await.is_err() {
            tracing::error!(group = self.group, "processes of a browser do not end");
        }
        self.remove_profile();
    }

    /// Kills all processes of the browser. Returns `true` if no process was left.
    fn kill_all(&self) -> bool {
        let mut running = ProcessGroup::read(self.group).running;
        if !running.is_empty() {
            kill_group(self.group);
        }
        let handlers = ProcessGroup::crash_handlers(self.profile.path()).running;
        for handler in &handlers {
            kill(*handler);
        }
        running.extend(handlers);
        running.is_empty()
    }

    fn remove_profile(&mut self) {
        // The ID may be reused for another group from now on.
        self.group = 0;
        let profile = self.profile.path();
        if let Err(problem) = std::fs::remove_dir_all(profile) {
            tracing::error!(profile = %profile.display(), %problem, "a browser's profile stays");
        }
    }
}

impl Drop for BrowserProcess {
    fn drop(&mut self) {
        if self.group == 0 {
            return;
        }
        // Processes that are still ending may write further files.
        for _ in 0..20 {
            if self.kill_all() {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.remove_profile();
    }
}

/// Kills one process.
fn kill(pid: u32) {
    if let Ok(pid) = i32::try_from(pid)
        && pid > 1
    {
        // SAFETY: kill has no precondition.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
}

/// Kills all processes of a group. Does nothing if the group has ended.
// std kills single processes only.
pub(crate) fn kill_group(group: u32) {
    if let Ok(group) = i32::try_from(group)
        && group > 1
    {
        // SAFETY: killpg has no precondition.
        unsafe { libc::killpg(group, libc::SIGKILL) };
    }
}

/// Sets the profile folder as the browser's home, so that the browser writes no files elsewhere.
fn set_environment(command: &mut Command, profile: &Path) {
    command.env_clear();
    for name in [
        "PATH",
        "LANG",
        "LC_ALL",
        "TZ",
        "LD_LIBRARY_PATH",
        "FONTCONFIG_FILE",
    ] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    for name in [
        "HOME",
        "XDG_CONFIG_HOME",
        "XDG_CACHE_HOME",
        "XDG_RUNTIME_DIR",
    ] {
        command.env(name, profile);
    }
    // Chromium creates a socket among its temporary files. Its path may have at most 107 bytes (unix(7)), and the path of a job may
    // be longer.
    command.current_dir(profile).env("TMPDIR", "/proc/self/cwd");
    // Chromium must not connect to a desktop.
    for name in ["DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS"] {
        command.env(name, "unix:path=/dev/null");
    }
}

async fn keep_last_lines(output: impl AsyncRead + Unpin, lines: Arc<Mutex<VecDeque<String>>>) {
    let mut output = BufReader::new(output).take(STDERR_LINE_BYTES_MAX);
    let mut line = Vec::new();
    loop {
        line.clear();
        output.set_limit(STDERR_LINE_BYTES_MAX);
        if !matches!(output.read_until(b'\n', &mut line).await, Ok(1..)) {
            return;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        if text.is_empty()
            || text.contains("dbus/")
            || text.contains("unexpected operator")
            || text.contains("manifest_broker")
        {
            continue;
        }
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == STDERR_LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(text.to_owned());
    }
}

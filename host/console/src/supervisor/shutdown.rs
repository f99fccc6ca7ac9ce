//! Ends crawls with the daemon, if they cannot continue without it.

use std::collections::BTreeSet;

use opilio_control::Command;

use super::{DAEMON, PERIOD, ProcessState, Supervisor};
use crate::process::Alive;

impl Supervisor {
    /// Stops all crawls of the folder, even if another process started them, and waits for their end. Their orders stay unchanged,
    /// so the next daemon resumes them.
    pub(super) async fn end_crawls(&mut self) {
        let (mut asked, mut unreachable) = (BTreeSet::new(), BTreeSet::new());
        loop {
            let jobs = self.watcher.look().await;
            let mut left = 0;
            for (name, known) in &jobs {
                let process = self.process(name, known.alive);
                let is_over = known.alive == Alive::No && process != ProcessState::Alive;
                if is_over || unreachable.contains(name) {
                    continue;
                }
                left += 1;
                if known.alive != Alive::Yes || asked.contains(name) {
                    continue;
                }
                let directory = known.directory.clone();
                let ending = self
                    .daemon
                    .commands
                    .send_here(directory, DAEMON, Command::Terminate)
                    .await;
                match ending {
                    Ok(_) => {
                        tracing::info!(job = name, "stopping; the next daemon restarts the job");
                        asked.insert(name.clone());
                    }
                    Err(problem) if problem.is_unusable() => {
                        tracing::warn!(
                            job = name,
                            "the process has another version, so the daemon does not wait for it; stop it with `opilio job stop JOB`"
                        );
                        unreachable.insert(name.clone());
                    }
                    // The job may have just ended; otherwise the stop is retried.
                    Err(problem) => tracing::warn!(job = name, "{}", problem.detail()),
                }
            }
            if left == 0 {
                return;
            }
            tokio::time::sleep(PERIOD).await;
        }
    }
}

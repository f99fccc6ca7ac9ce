//! Sends jobs their shares in the common limits, as divided by `share.rs`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use opilio_control::{Command, JobState};
use opilio_crawl::Share;

use super::{DAEMON, Supervisor};
use crate::overview::{Jobs, KnownJob};
use crate::process::Alive;
use crate::share::{Member, attainable, lowered};

/// Longest wait for a job to accept its share.
const PATIENCE: Duration = Duration::from_secs(3);

/// The reason why a job could not be given its share.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ShareFailure {
    /// A temporary error, which is retried at the next examination.
    Temporary,
    /// This process does not understand the command.
    Unsupported(Option<u32>),
}

impl Supervisor {
    /// Returns a running job as a member of the division.
    pub(super) fn member(&self, name: &str, known: &KnownJob) -> Member {
        let status = known.status.as_ref();
        let begun = self.processes.get(name).map(|process| process.share);
        Member {
            share: status.map(|status| status.share).or(begun),
            taken: status.and_then(|status| {
                let (pid, elapsed) = (status.pid?, status.elapsed_s?);
                Some((pid, elapsed, status.taken))
            }),
            is_paused: status.is_some_and(|status| status.state == JobState::Paused),
        }
    }

    /// Sends jobs their new shares, reductions first. Returns the jobs that can begin now, with their shares.
    pub(super) async fn divide(
        &mut self,
        jobs: &Jobs,
        mut members: BTreeMap<String, Member>,
        begin: &[String],
    ) -> Vec<(String, Share)> {
        for name in begin {
            let member = Member {
                share: None,
                taken: None,
                is_paused: false,
            };
            members.insert(name.clone(), member);
        }
        let limits = self.daemon.config.limits.clone();
        let wanted = self.shares.divide(&members, Instant::now()).clone();
        for (name, share) in lowered(&members, &wanted) {
            if self.send_share(jobs, &name, share).await
                && let Some(member) = members.get_mut(&name)
            {
                member.share = Some(share);
            }
        }
        for name in wanted.keys() {
            let Some(held) = members.get(name).and_then(|member| member.share) else {
                continue;
            };
            let Some(share) = attainable(name, &members, &wanted, &limits) else {
                continue;
            };
            if share != held {
                self.send_share(jobs, name, share).await;
                // The job may have accepted the share even without an answer.
                if let Some(member) = members.get_mut(name) {
                    member.share = Some(share);
                }
            }
        }
        let mut shares = Vec::new();
        for name in begin {
            let Some(share) = attainable(name, &members, &wanted, &limits) else {
                continue;
            };
            if let Some(member) = members.get_mut(name) {
                member.share = Some(share);
            }
            shares.push((name.clone(), share));
        }
        shares
    }

    /// Sends a job its share. Returns `false` if it did not accept the share.
    async fn send_share(&mut self, jobs: &Jobs, name: &str, share: Share) -> bool {
        let Some(known) = jobs.get(name).filter(|known| known.alive == Alive::Yes) else {
            return false;
        };
        let pid = known.status.as_ref().and_then(|status| status.pid);
        if self.share_failures.get(name) == Some(&ShareFailure::Unsupported(pid)) {
            return false;
        }
        let command = Command::Share { share };
        let asked = self
            .daemon
            .commands
            .send_here(known.directory.clone(), DAEMON, command);
        let (failure, problem) = match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok(_)) => {
                self.share_failures.remove(name);
                return true;
            }
            Ok(Err(problem)) if problem.is_unusable() => {
                let why = "the process has another version without shares; it gets a share at its next start";
                (ShareFailure::Unsupported(pid), why.to_owned())
            }
            Ok(Err(problem)) => (ShareFailure::Temporary, problem.detail().to_owned()),
            Err(_) => (
                ShareFailure::Temporary,
                "the process does not answer".to_owned(),
            ),
        };
        // Logged once, not at every examination.
        if self.share_failures.insert(name.to_owned(), failure) != Some(failure) {
            tracing::warn!(job = name, "its share is unchanged: {problem}");
        }
        false
    }
}

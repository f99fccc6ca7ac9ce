//! The wait of a part that no process works on, until this daemon takes it over.

use std::time::{Duration, Instant};

use opilio_control::{ListedPart, PartState};

use super::has_begun;

/// The times of a part that no process works on.
pub(super) struct Waiting {
    /// Time at which the wait began: when it was first seen, or at a later command.
    pub(super) since: Instant,
    /// Number of commands that it had not carried out then.
    pub(super) commands: u64,
    /// End of the last attempt to take it over, which has failed.
    pub(super) failed: Option<Instant>,
    /// Epoch of the part before that attempt, until the next look.
    pub(super) tried: Option<u64>,
    /// Epoch that an attempt has got for this node before it failed. No directory has the part then.
    pub(super) claimed: Option<u64>,
}

impl Waiting {
    /// Returns `true` if the part may be taken over after this wait. After a failure `after` must pass: each attempt fetches all files
    /// of the crawl, and the cause may be a file that this machine lacks.
    pub(super) fn is_over(&self, wait: Duration, after: Duration, now: Instant) -> bool {
        let has_rested = |failed| now.duration_since(failed) >= after;
        now.duration_since(self.since) >= wait && self.failed.is_none_or(has_rested)
    }

    /// Begins the wait of a part that no directory has had again after a command: an operator may be stopping the crawl, and the last
    /// process may need some time. Other parts carry a stop out when they begin again.
    pub(super) fn heed(&mut self, part: &ListedPart, now: Instant) {
        if !has_begun(part) && self.commands != part.commands {
            self.commands = part.commands;
            self.since = now;
        }
    }

    /// Notes an attempt to take the part over that has failed. `epoch` is that of the part before.
    pub(super) fn fail(&mut self, epoch: u64) {
        self.failed = Some(Instant::now());
        self.tried = Some(epoch);
    }

    /// Notes at the first look after an attempt that has failed whether it has got the part for this node.
    pub(super) fn note(&mut self, part: &ListedPart, own: &str) {
        let tried = self.tried.take();
        let is_next = tried.is_some() && part.epoch.checked_sub(1) == tried;
        if is_next && part.node.as_deref() == Some(own) {
            self.claimed = Some(part.epoch);
        }
    }

    /// Returns `true` if an attempt has got the part for this node and then failed, for instance because the disk was full. Nobody else
    /// takes it over: its node works.
    pub(super) fn is_half_taken(&self, part: &ListedPart) -> bool {
        part.state != PartState::Running && self.claimed == Some(part.epoch)
    }
}

//! Checkpoints that a running crawl makes by itself, every `checkpoint.every`. The last `checkpoint.keep` of these stay.
//! Checkpoints made by operators are never removed.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use super::checkpoint::DESCRIPTION;
use super::restore::{KeptCheckpoint, checkpoints};
use super::{ControlError, Running};
use opilio_job::alerts::{AlertKind, Severity};

/// Interval at which the crawl examines whether a checkpoint is due.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Schedule of the next checkpoint.
struct Schedule {
    /// Time of the last checkpoint or attempt. Before the first one, the start of the process.
    last: Timestamp,
    /// Number of URIs that the process had finished at that time.
    finished: u64,
}

impl Schedule {
    /// Creates the schedule of a job. `last` is the time of its last periodic checkpoint, if there is one.
    fn new(last: Option<Timestamp>, now: Timestamp) -> Schedule {
        Schedule {
            last: last.unwrap_or(now),
            finished: 0,
        }
    }

    /// Returns `true` if a checkpoint is due. A crawl that has finished no URI since the last one needs no checkpoint. A clock that
    /// was set back does not delay a checkpoint.
    fn is_due(&self, every: Option<Duration>, finished: u64, now: Timestamp) -> bool {
        let Some(every) = every.filter(|_| finished != self.finished) else {
            return false;
        };
        let passed = Duration::try_from(now - self.last);
        passed.map_or(true, |passed| passed >= every)
    }
}

/// Makes checkpoints until the crawl ends.
pub(crate) async fn keep(running: Running, mut ended: watch::Receiver<()>) {
    let last = periodic(&running.job)
        .ok()
        .and_then(|kept| kept.first()?.made);
    let mut schedule = Schedule::new(last, Timestamp::now());
    while tokio::time::timeout(LOOK_EVERY, ended.changed())
        .await
        .is_err()
    {
        let now = Timestamp::now();
        let every = running.context.current().checkpoint.every;
        let finished = running
            .context
            .figures
            .counters
            .lines
            .load(Ordering::Relaxed);
        if !schedule.is_due(every, finished, now) {
            continue;
        }
        schedule = Schedule {
            last: now,
            finished,
        };
        let running = running.clone();
        let made = tokio::task::spawn_blocking(move || make(&running));
        if let Err(panic) = made.await {
            tracing::error!("{panic}");
        }
    }
}

/// Makes a checkpoint, and removes the oldest ones over the limit.
fn make(running: &Running) {
    let context = &running.context;
    let profile = context.current();
    let words = match running.admin(&profile).make_checkpoint(None, true) {
        Ok(made) => {
            context.clear(AlertKind::Checkpoint, "");
            format!("{} with {} URIs", made.directory.display(), made.uris)
        }
        Err(problem) => {
            let why = format!("cannot make a checkpoint: {problem}");
            context.raise(AlertKind::Checkpoint, "", Severity::Warning, &why);
            why
        }
    };
    running.log.crawl("checkpoint", &words);
    if let Err(problem) = remove_old(&running.job, profile.checkpoint.keep) {
        let words = format!("cannot remove an old checkpoint: {problem}");
        running.log.crawl("checkpoint", &words);
    }
}

/// Returns the periodic checkpoints, the latest first.
fn periodic(job: &Path) -> Result<Vec<KeptCheckpoint>, ControlError> {
    let mut kept = checkpoints(job)?;
    kept.retain(|kept| kept.is_periodic);
    kept.sort_by_key(|kept| std::cmp::Reverse(kept.made));
    Ok(kept)
}

fn remove_old(job: &Path, keep: usize) -> Result<(), ControlError> {
    for old in periodic(job)?.into_iter().skip(keep) {
        let directory = &old.directory;
        // The description is removed first, so that an incomplete checkpoint does not count as complete.
        fs::remove_file(directory.join(DESCRIPTION))
            .and_then(|()| fs::remove_dir_all(directory))
            .map_err(|problem| ControlError::file(directory, &problem))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_due_when_its_time_has_come_and_something_was_finished() {
        let began = Timestamp::UNIX_EPOCH;
        let hour = Duration::from_secs(3600);
        let schedule = Schedule::new(None, began);
        assert!(!schedule.is_due(Some(hour), 5, began + hour / 2));
        assert!(schedule.is_due(Some(hour), 5, began + hour));
        assert!(!schedule.is_due(None, 5, began + hour));
        // Nothing was finished since the last checkpoint.
        assert!(!schedule.is_due(Some(hour), 0, began + hour));
        // Neither a restart nor a clock that was set back delays the checkpoint.
        let resumed = Schedule::new(Some(began), began + hour);
        assert!(resumed.is_due(Some(hour), 1, began + hour));
        assert!(resumed.is_due(Some(hour), 1, began - hour));
    }
}

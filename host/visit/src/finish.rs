//! The end of a visit: the outcome is passed to the frontier, and the frontier's answer is applied.

use std::time::Duration;

use opilio_frontier::{Disposition, Outcome, ScheduleResult};
use opilio_uri::Uri;

use crate::driver::{Driver, OutcomeKind, Step};
use crate::pipeline::{Conclusion, LogEntry, Pipeline};

/// Maximum politeness delay of a queue that is accepted from a profile or a server.
const POLITENESS_DELAY_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// Passes a conclusion to the frontier.
///
/// # Errors
/// Returns the errors of the driver.
pub async fn finish<D: Driver>(
    pipeline: &Pipeline,
    driver: &D,
    conclusion: Conclusion,
) -> Result<(), D::Error> {
    driver.step(Step::Finish);
    let Conclusion {
        outcome,
        mut entry,
        ranks,
    } = conclusion;
    driver.finishing(&outcome, &entry)?;
    let kind = match &outcome {
        Outcome::Succeeded(_) => OutcomeKind::Succeeded,
        Outcome::Retry { .. } | Outcome::Deferred { .. } => OutcomeKind::Unfinished,
        _ => OutcomeKind::Failed,
    };
    let outlinks: Vec<(Uri, String)> = match &outcome {
        Outcome::Succeeded(success) => {
            let links = success.outlinks.iter();
            let links = links.map(|link| (link.uri.clone(), link.queue.clone()));
            links.collect()
        }
        _ => Vec::new(),
    };
    let finished = driver.finish(outcome)?;
    for ((link, _), scheduled) in outlinks.iter().zip(&finished.scheduled) {
        if let ScheduleResult::Refused(why) = scheduled {
            driver.link_refused(link, &why.to_string())?;
        }
    }
    // A page may link again to a queued URI. The better of the two precedences applies. A link from a less important page does
    // not lower it.
    for (((link, _), scheduled), rank) in outlinks.iter().zip(&finished.scheduled).zip(ranks) {
        if let (ScheduleResult::Known, Some(rank)) = (scheduled, rank) {
            driver.raise(link, rank)?;
        }
    }
    driver
        .rank_queues(outlinks.into_iter().map(|(_, queue)| queue))
        .await?;
    if let Disposition::GivenUp { status, tries, .. } = finished.disposition {
        entry.status = status;
        entry.annotations.push(format!("{tries}t"));
        give_up_prerequisite(pipeline, driver, status, finished.queue_ready)?;
    }
    driver.finished(entry, kind, finished.disposition).await
}

/// Gives up a prerequisite after its last attempt, so that the URIs waiting for it fail too. They are issued after the queue's
/// delay, which is longer than the lifetime of the stored failure. When the first of them is probed again, the prerequisite is
/// requested anew.
fn give_up_prerequisite<D: Driver>(
    pipeline: &Pipeline,
    driver: &D,
    status: i32,
    queue_ready: jiff::Timestamp,
) -> Result<(), D::Error> {
    let (uri, now) = (&pipeline.issue.uri, driver.now());
    let from = queue_ready.clamp(now, now + POLITENESS_DELAY_MAX);
    let settings = &pipeline.settings;
    let probed_after = settings.revisit.min_wait;
    if uri.scheme() == "dns" {
        let expires = from + pipeline.profile.dns.negative_expires.min(probed_after);
        driver.keep_no_addresses(uri.path(), expires)?;
    } else if pipeline.is_robots() {
        let lifetime = settings.robots.expires.min(probed_after);
        driver.keep_robots(uri, (status, Vec::new()), lifetime, from)?;
    }
    Ok(())
}

/// Returns `true` if a URI will be issued again soon. Then observers do not count its visit as finished.
#[must_use]
pub fn will_be_reissued(disposition: Disposition) -> bool {
    matches!(
        disposition,
        Disposition::Retrying { .. } | Disposition::Deferred
    )
}

impl LogEntry {
    /// Returns `true` if a capture of the visit is in the archive.
    #[must_use]
    pub fn is_archived(&self) -> bool {
        self.archived.is_some()
    }
}

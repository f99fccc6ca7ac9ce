//! Task for the limits of a crawl that several nodes share: this node reports its counts, and takes shares of the remaining
//! numbers.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::context::CrawlContext;
use crate::shared_limits::{CountedLimit, limits_of};

/// Interval of reports. Between two reports, the accounts lack the URIs that this node has fetched since.
const INTERVAL: Duration = Duration::from_secs(1);

/// Shortest time between two updates of the accounts.
const PAUSE: Duration = Duration::from_millis(50);

/// Maximum wait for NATS. A failed report is repeated, at the latest at the next start of the part.
const NATS_TIME_MAX: Duration = Duration::from_secs(5);

impl CrawlContext {
    /// Returns the limits of the profile, with the counts of this node.
    pub(crate) fn counted_limits(&self) -> Vec<CountedLimit> {
        let mut limits = limits_of(&self.current());
        if limits.is_empty() {
            return limits;
        }
        let tally = self.frontier().statistics().tally;
        let archived = self.outputs.writers.bytes();
        limits
            .iter_mut()
            .for_each(|limit| limit.count(&tally, archived));
        limits
    }

    /// Returns this node's even share of a number for the whole crawl.
    pub(crate) fn even_share(&self, whole: u64) -> u64 {
        let part = self.membership.as_ref().map(|it| it.part());
        part.map_or(whole, |part| part.even_share(whole))
    }
}

/// Reports the counts of this node, and takes shares of the remaining numbers, until the crawl ends on this node.
pub(super) async fn keep_updated(context: Arc<CrawlContext>, mut ended: watch::Receiver<()>) {
    let Some(membership) = context.membership.clone() else {
        return;
    };
    let shared = &membership.limits;
    let part = membership.part();
    let own = (part.part.as_str(), part.parts.len() as u64);
    let mut is_failing = false;
    loop {
        let is_last = tokio::select! {
            biased;
            // Resolves when the sender is dropped.
            _ = ended.changed() => true,
            () = shared.wanted() => false,
            () = tokio::time::sleep(INTERVAL) => false,
        };
        let limits = context.counted_limits();
        if is_last {
            shared.release(&limits);
        }
        // At its end the process has left the job. If the part cannot be taken over, it has no other owner, so the last report is
        // still valid.
        let has_part = membership.has_part() || is_last && !part.can_move();
        if !limits.is_empty() && has_part {
            let updated = shared.update_shares(membership.job(), own, &limits);
            let updated = tokio::time::timeout(NATS_TIME_MAX, updated).await;
            if let Ok(Ok(true)) = updated {
                context.live.wake_dispatcher();
            }
            if let (Ok(Err(problem)), false) = (&updated, is_failing) {
                let problem = opilio_stacks::chain(problem);
                tracing::warn!("this node's shares of limits are unknown: {problem}");
            }
            is_failing = !matches!(updated, Ok(Ok(_)));
        }
        if is_last {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

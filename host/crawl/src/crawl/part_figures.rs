//! Publication of the figures of this node's part of a shared crawl, for the figures of the whole crawl.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::context::CrawlContext;
use crate::job_part::PartFigures;
use opilio_job::job_state::JobState;

/// Interval of publication. Unchanged figures are not published again.
const INTERVAL: Duration = Duration::from_secs(3);

/// Maximum wait for NATS.
const NATS_TIME_MAX: Duration = Duration::from_secs(5);

/// Publishes the figures until the crawl ends on this node.
pub(super) async fn run(context: Arc<CrawlContext>, mut ended: watch::Receiver<()>) {
    let Some(membership) = context.membership.clone() else {
        return;
    };
    let part = membership.part();
    let mut published = None;
    loop {
        // Resolves when the sender is dropped.
        let is_last = timeout(INTERVAL, ended.changed()).await.is_ok();
        let figures = figures(&context);
        // If the part cannot be taken over, the process leaves the job at the same time. No other process has the part, so the
        // figures are still valid.
        let has_part = membership.has_part() || is_last && !part.can_move();
        if has_part && published != Some(figures) {
            let json = serde_json::to_vec(&figures).unwrap_or_default();
            let publishing = membership.job().publish_figures(&part.part, json);
            if let Ok(Ok(())) = timeout(NATS_TIME_MAX, publishing).await {
                published = Some(figures);
            }
        }
        if is_last {
            return;
        }
    }
}

fn figures(context: &CrawlContext) -> PartFigures {
    let statistics = context.frontier().statistics();
    PartFigures {
        queued: statistics.queued,
        in_process: statistics.in_process,
        discovered: statistics.discovered,
        fetched: statistics.tally.fetched,
        succeeded: statistics.tally.succeeded,
        bytes: statistics.tally.bytes,
        is_paused: context.live.crawl_state() != JobState::Running,
    }
}

//! Counts of queues and pages, repeated while the crawl runs.

use std::sync::Arc;
use std::time::Duration;

use opilio_profile::Strategy;
use tokio::sync::watch;

use crate::context::CrawlContext;
use opilio_job::{census, figures};

/// Pause after a part of a count, in multiples of the time that the part took.
const PAUSE_FACTOR: u32 = 50;

/// Shortest time between two counts of the queues.
const QUEUES_EVERY: Duration = Duration::from_secs(5);

/// Shortest time between two counts of the pages.
const PAGES_EVERY: Duration = Duration::from_secs(20);

/// Counts queues until the crawl ends.
pub(crate) async fn keep_queues(context: Arc<CrawlContext>, ended: watch::Receiver<()>) {
    run(context, ended, QUEUES_EVERY, |context, pause| {
        if let Some(census) = census::queues(&context.frontier, pause)? {
            context.figures.census.lock().queues = Some(census);
        }
        Ok(())
    })
    .await;
}

/// Counts pages until the crawl ends, if pages are visited again.
pub(crate) async fn keep_pages(context: Arc<CrawlContext>, ended: watch::Receiver<()>) {
    run(context, ended, PAGES_EVERY, |context, pause| {
        if !is_continuous(context) {
            return Ok(());
        }
        if let Some(census) = census::pages(&context.frontier, pause)? {
            context.figures.census.lock().pages = Some(census);
        }
        Ok(())
    })
    .await;
}

/// Returns `true` if pages are visited again: the profile has revisits, or revisits have taken place.
fn is_continuous(context: &CrawlContext) -> bool {
    let revisits = figures::revisit_count(&context.frontier().statistics());
    context.current().settings().strategy != Strategy::Snapshot || revisits > 0
}

/// A count through the store. It passes the time of its last part to the function, which returns whether to continue.
type Count = fn(
    &CrawlContext,
    &mut dyn FnMut(Duration) -> bool,
) -> Result<(), opilio_frontier::FrontierError>;

async fn run(
    context: Arc<CrawlContext>,
    mut ended: watch::Receiver<()>,
    every: Duration,
    count: Count,
) {
    while ended.has_changed().is_ok() {
        let (context, still) = (context.clone(), ended.clone());
        let counted = tokio::task::spawn_blocking(move || {
            count(&context, &mut |took| {
                std::thread::sleep(took * PAUSE_FACTOR);
                still.has_changed().is_ok()
            })
        });
        if let Ok(Err(problem)) = counted.await {
            tracing::error!("{}", opilio_stacks::chain(&problem));
        }
        // Resolves when the sender is dropped.
        let _ = tokio::time::timeout(every, ended.changed()).await;
    }
}

//! Tasks of a running crawl that hand over its closed files, and the hand-over of the remaining files at its end.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use opilio_archive::Writers;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::context::CrawlContext;
use crate::handover::Handover;
use opilio_job::End;
use opilio_job::alerts::{AlertKind, Severity};
use opilio_job::events::Occurrence;
use opilio_job::handover::HandedOver;
use opilio_job::progress::HandoverTotals;

/// Interval at which finished files are collected, and files that are too old are finished.
const LOOK: Duration = Duration::from_secs(1);

/// Finishes files that are too old, and queues finished files for hand-over, until the crawl ends.
pub(crate) async fn finish_old_files(
    writers: Arc<Writers>,
    handovers: Vec<Arc<Handover>>,
    mut ended: watch::Receiver<()>,
) {
    while ended.has_changed().is_ok() {
        let writers = writers.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let ticked = writers.tick(Timestamp::now());
            (ticked, writers.take_finished())
        });
        if let Ok((ticked, finished)) = looked.await {
            if let Err(problem) = ticked {
                // The file keeps its suffix `.open`, and is tried again at the end.
                tracing::error!("{}", opilio_stacks::chain(&problem));
            }
            for handover in &handovers {
                handover.add(finished.clone());
            }
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            _ = ended.changed() => {}
        }
    }
}

/// Hands over queued files until the crawl ends.
pub(crate) async fn hand_over(
    handover: Arc<Handover>,
    context: Arc<CrawlContext>,
    ended: watch::Receiver<()>,
) {
    let mut lanes = JoinSet::new();
    for _ in 0..handover.lanes() {
        let (handover, context, mut ended) = (handover.clone(), context.clone(), ended.clone());
        lanes.spawn(async move {
            while ended.has_changed().is_ok() {
                if let Some(file) = handover.take(false) {
                    let result = handover.hand_over(&file).await;
                    log_result(&handover, &file, result, &context);
                    continue;
                }
                tokio::select! {
                    () = tokio::time::sleep(LOOK) => {}
                    () = handover.added() => {}
                    _ = ended.changed() => {}
                }
            }
        });
    }
    lanes.join_all().await;
}

/// Hands over the files that are left when the last file is closed, each with one more attempt, and then logs and reports. `tasks`
/// are those of [`hand_over`], for each receiver. Returns the totals of each receiver. If the system has terminated the crawl, the
/// files are handed over at the next start.
pub(crate) async fn finish(
    context: &Arc<CrawlContext>,
    end: &End,
    tasks: Vec<JoinHandle<()>>,
) -> Vec<HandoverTotals> {
    let outputs = &context.outputs;
    let finished = outputs.writers.take_finished();
    let mut totals = Vec::new();
    for (handover, task) in outputs.handovers.iter().zip(tasks) {
        handover.add(finished.clone());
        match end {
            End::Terminated => task.abort(),
            // The part belongs to another node now.
            _ if !handover.is_allowed() => task.abort(),
            _ => finish_one(handover, context, task).await,
        }
        totals.push(handover.totals());
    }
    for left in &totals {
        let Some(message) = left.leftover() else {
            continue;
        };
        tracing::warn!("{message}");
        context.job_log.crawl("handover", &message);
        // The next start of a crawl that the system has terminated hands over what is left.
        if *end != End::Terminated {
            context.raise(AlertKind::Handover, &left.to, Severity::Warning, &message);
        }
    }
    // `raise` does not write the file if only the message of an active alert has changed.
    context.alerts.board.write();
    totals
}

/// Logs the result for a file, and raises or clears the alert.
fn log_result(
    handover: &Handover,
    file: &Path,
    result: Result<HandedOver, String>,
    context: &CrawlContext,
) {
    match result {
        Ok(done) => {
            let to = done.url.as_deref().unwrap_or("taken");
            let what = format!("handed over {}", file.display());
            context.job_log.crawl(&what, to);
            context.send_event(|| Occurrence::File { file: done.clone() });
            if handover.is_well() {
                context.clear(AlertKind::Handover, handover.name());
            }
        }
        Err(why) => {
            let waiting = handover.totals().left;
            let why = format!("{why}; files that wait to be tried again: {waiting}");
            context.raise(
                AlertKind::Handover,
                handover.name(),
                Severity::Warning,
                &why,
            );
        }
    }
}

/// Ends the hand-over to one receiver: within the store's time limit, or within the limits of the command.
async fn finish_one(
    handover: &Arc<Handover>,
    context: &Arc<CrawlContext>,
    mut task: JoinHandle<()>,
) {
    let all = async {
        // This waits for the files that are being handed over.
        if let Err(panic) = (&mut task).await {
            tracing::error!("{panic}");
        }
        let each = |file: &Path, result| log_result(handover, file, result, context);
        handover.hand_over_each(each).await;
        // If one fails, the others would fail, too.
        let each = |result: Result<HandedOver, String>| result.is_ok();
        handover.put_other_files(&context.profile, each).await;
        if handover.totals().left == 0 {
            context.clear(AlertKind::Handover, handover.name());
        }
    };
    let Some(limit) = handover.finish_within() else {
        all.await;
        return;
    };
    if tokio::time::timeout(limit, all).await.is_err() {
        task.abort();
        handover.ran_out_of_time();
        tracing::warn!("stopped handing over after {} s", limit.as_secs());
    }
}

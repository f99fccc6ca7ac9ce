//! A running crawl that takes operators' commands: from its socket, from its action directory, and by the clock.

use tokio::spawn;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{JobAdmin, Running, Server, actions, periodic, remove_unfinished, write_reports};
use opilio_crawl::crawl::Crawl;
use opilio_job::progress::Summary;

/// Takes operators' commands, and crawls until nothing is left, a limit is reached, or a stop is requested; then closes the
/// archive.
pub async fn run(crawl: Crawl) -> Summary {
    let (context, running) = (crawl.context().clone(), Running::of(&crawl));
    remove_checkpoints(&running);
    let server = Server::start(running.clone())
        .inspect_err(|problem| tracing::warn!("the crawl cannot accept commands: {problem}"))
        .ok();
    // The tasks end when `taken` is dropped.
    let (taken, ended) = watch::channel(());
    let tasks: [JoinHandle<()>; 2] = [
        spawn(actions::keep(running.clone(), ended.clone())),
        spawn(periodic::keep(running.clone(), ended)),
    ];

    let ended = crawl.crawl().await;

    if let Some(server) = server {
        server.close().await;
    }
    drop(taken);
    for task in tasks {
        if let Err(panic) = task.await {
            tracing::error!("{panic}");
        }
    }
    let reports = || {
        let admin = JobAdmin::new(
            &running.job,
            &context.profile,
            &context.frontier,
            &running.log,
        );
        if let Err(problem) = write_reports(&admin, &context.figures.census.get()) {
            tracing::error!("cannot write reports: {problem}");
        }
    };
    ended.close(reports).await
}

/// Removes checkpoints that were never finished. Each may hold a copy of the store, and none can be restored.
fn remove_checkpoints(running: &Running) {
    match remove_unfinished(&running.job) {
        Ok(removed) => {
            for name in removed {
                let words = format!("removed {name}, which was incomplete");
                running.log.crawl("checkpoint", &words);
            }
        }
        Err(problem) => {
            let folder = running.job.join("checkpoints");
            let words = format!(
                "cannot remove incomplete checkpoints from {}: {problem}",
                folder.display()
            );
            tracing::warn!("{words}");
            running.log.crawl("checkpoint", &words);
        }
    }
}

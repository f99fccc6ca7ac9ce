//! A running crawl that takes operators' commands from its socket and its action directory, and does periodic work.

use tokio::spawn;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::part_snapshots::Publisher;
use super::{
    JobAdmin, Running, Server, actions, job_commands, periodic, remove_unfinished, write_reports,
};
use opilio_crawl::crawl::Crawl;
use opilio_job::End;
use opilio_job::progress::Summary;

/// Takes operators' commands, and crawls until nothing is left, a limit is reached, or a stop is requested; then closes the
/// archive.
pub async fn run(crawl: Crawl) -> Summary {
    let (context, running) = (crawl.context().clone(), Running::of(&crawl));
    remove_checkpoints(&running);
    job_commands::begin(&running).await;
    let server = Server::start(running.clone())
        .inspect_err(|problem| tracing::warn!("the crawl cannot accept commands: {problem}"))
        .ok();
    // The tasks end when `crawl_is_running` is dropped.
    let (crawl_is_running, ended) = watch::channel(());
    let tasks: [JoinHandle<()>; 3] = [
        spawn(job_commands::keep(running.clone(), ended.clone())),
        spawn(actions::keep(running.clone(), ended.clone())),
        spawn(periodic::keep(running.clone(), ended.clone())),
    ];
    let publisher = publisher(&running).map(|publisher| spawn(publisher.keep(ended)));

    let ended = crawl.crawl().await;
    job_commands::stop_others_at_time_limit(&running, ended.end()).await;

    if let Some(server) = server {
        server.close().await;
    }
    drop(crawl_is_running);
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
    let summary = ended.close(reports).await;
    if let Some(publisher) = publisher {
        publish_last(publisher, &summary.end).await;
    }
    if let Some(membership) = context
        .membership
        .as_ref()
        .filter(|it| it.part().can_move())
    {
        match summary.end {
            End::Terminated => membership.leave_terminated().await,
            _ => membership.leave().await,
        }
    }
    if summary.end != End::Terminated {
        job_commands::end(&running);
    }
    summary
}

/// Returns the publisher of snapshots of a crawl whose part can be taken over.
fn publisher(running: &Running) -> Option<Publisher> {
    let publisher = Publisher::of(running)?;
    let publisher = publisher.inspect_err(|problem| {
        let problem = opilio_stacks::chain(problem);
        tracing::error!("no snapshots of the part are published: {problem}");
    });
    publisher.ok()
}

/// Publishes the last snapshot. If the system ends the crawl, there is no time for it, and the next process publishes one.
async fn publish_last(publisher: JoinHandle<Publisher>, end: &End) {
    match publisher.await {
        Ok(mut publisher) if *end != End::Terminated => publisher.finish().await,
        Ok(_) => {}
        Err(panic) => tracing::error!("{panic}"),
    }
}

/// Removes incomplete checkpoints. They cannot be restored, and each may have a copy of the store.
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

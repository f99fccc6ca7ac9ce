//! Parts of shared crawls that move by themselves: this daemon takes over parts of nodes that are gone or drained, and gives its own
//! parts up when it is drained. [`PartTakeovers`] decides which parts, and when. `opilio_control::take_over_fetched` makes the job, with
//! files of the cluster; the supervisor begins its process.

mod attempt;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use opilio_cluster::control::{ChosenPart, PartOverview, PartTakeovers, SessionState};
use opilio_cluster::{Availability, ClusterConnection, ClusterError, ClusterJob};
use opilio_control::{
    Command, ListedPart, PartState, PartToTake, chain, is_worked_on, listed_parts,
    take_over_fetched,
};
use opilio_crawl::{JobPart, JobState, is_made_halfway};

use crate::daemon::Daemon;
use crate::node::{ClusterNode, overviews};
use crate::orders::Orders;
use crate::overview::KnownJob;
use crate::process::Alive;
use crate::window::fits_any;
use attempt::Attempt;

/// Shortest and longest pause between two looks at the parts.
const LOOK_MIN: Duration = Duration::from_millis(500);
const LOOK_MAX: Duration = Duration::from_secs(30);

/// The daemon's user name in orders and logs of jobs.
const DAEMON: &str = "daemon";

/// A directory of this daemon that has a part of a shared crawl.
struct OwnPart {
    name: String,
    directory: PathBuf,
    part: JobPart,
}

/// Moves parts until the daemon ends. It does nothing without `take-over-after` in `[cluster]`.
pub(crate) async fn keep(daemon: Arc<Daemon>) {
    let cluster = daemon.config.cluster.as_ref();
    let Some(after) = cluster.and_then(|cluster| cluster.take_over_after) else {
        return;
    };
    let Some(node) = daemon.node.as_ref() else {
        return;
    };
    let mut closing = daemon.closing.subscribe();
    let mut takeovers = PartTakeovers::new(node.name(), after);
    let began = Instant::now();
    let mut failing: Option<String> = None;
    loop {
        let pause = (after / 5).clamp(LOOK_MIN, LOOK_MAX);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = closing.wait_for(|closing| *closing) => return,
        }
        let own = own_parts(&daemon);
        if node.is_drained() {
            give_up_parts(&daemon, &own).await;
            continue;
        }
        let can_work = matches!(
            node.status().availability,
            Availability::Working | Availability::Slow
        );
        if !can_work || !has_place(&daemon) {
            continue;
        }
        let looked = look(&daemon, node, &own, &mut takeovers, began).await;
        let problem = looked.err();
        if let Some(problem) = problem.as_ref().filter(|it| failing.as_ref() != Some(*it)) {
            tracing::warn!(node = node.name(), "parts are not taken over: {problem}");
        }
        failing = problem;
    }
}

/// The directories of this daemon with parts that can be taken over.
fn own_parts(daemon: &Daemon) -> Vec<OwnPart> {
    let jobs = daemon.jobs.borrow().clone();
    // A job that has finished was the last word of its whole crawl.
    let unfinished = jobs
        .iter()
        .filter(|(_, known)| known.overview.state != JobState::Finished);
    let own = unfinished.filter_map(|(name, known)| {
        let part = JobPart::read(&known.directory).ok().flatten()?;
        part.can_move().then(|| OwnPart {
            name: name.clone(),
            directory: known.directory.clone(),
            part,
        })
    });
    own.collect()
}

/// Returns `true` if another crawl could begin.
fn has_place(daemon: &Daemon) -> bool {
    let is_busy = |known: &&KnownJob| {
        known.alive != Alive::No || known.orders.as_ref().is_some_and(|orders| orders.crawl)
    };
    daemon.jobs.borrow().values().filter(is_busy).count() < daemon.config.limits.jobs
}

/// Stops the crawls of a drained node whose parts others can take over. Each publishes a last snapshot before it leaves.
async fn give_up_parts(daemon: &Daemon, own: &[OwnPart]) {
    for OwnPart {
        name, directory, ..
    } in own
    {
        let jobs = daemon.jobs.borrow().clone();
        let Some(known) = jobs.get(name) else {
            continue;
        };
        let is_wanted = known.orders.as_ref().is_some_and(|orders| orders.crawl);
        if !is_wanted || known.alive != Alive::Yes {
            continue;
        }
        // First, so that the job is not restarted if it dies while it stops.
        let withdrawn = daemon.order(name, Orders::withdraw);
        let asked = daemon
            .commands
            .ask_here(directory.clone(), DAEMON, Command::Stop);
        match asked.await {
            Ok(_) => tracing::info!(
                job = name,
                "stopped, because this node is drained; another node takes its part over"
            ),
            Err(problem) => {
                tracing::warn!(job = name, "{}", problem.detail());
                daemon.order(name, |orders| orders.give_back(withdrawn.as_ref()));
            }
        }
    }
}

/// Looks for a part to take over, and takes over at most one. `began` is the start of the clock of `takeovers`.
async fn look(
    daemon: &Daemon,
    node: &ClusterNode,
    own: &[OwnPart],
    takeovers: &mut PartTakeovers,
    began: Instant,
) -> Result<(), String> {
    let describe = |problem: ClusterError| chain(&problem);
    let connection = node.cluster().connection();
    let nodes = overviews(node.cluster()).await.map_err(describe)?;
    let mut names = ClusterJob::names(connection).await.map_err(describe)?;
    let cluster = daemon.config.cluster.as_ref();
    let wanted = cluster.and_then(|cluster| cluster.take_over_crawls.as_deref());
    names.retain(|name| is_wanted(name, wanted));
    let mut crawls = Vec::new();
    let mut problems = Vec::new();
    for name in names {
        match parts_of(connection, &name).await {
            Ok(parts) => {
                end_interrupted(node, own, &name, &parts).await;
                let parts: Vec<_> = parts.into_iter().map(overview).collect();
                crawls.push((name, parts));
            }
            Err(problem) => problems.push(describe(problem)),
        }
    }
    let clock_ms = Timestamp::now().as_millisecond();
    // This machine may lack something that one of the crawls needs.
    for chosen in takeovers.choose(&crawls, &nodes, began.elapsed(), clock_ms) {
        match take_over(daemon, node, own, &chosen).await {
            Ok(()) => {
                takeovers.finish(chosen);
                break;
            }
            Err(problem) => {
                problems.push(problem);
                takeovers.fail(chosen, began.elapsed());
            }
        }
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems.join("; ")),
    }
}

/// Returns `true` if this daemon takes over parts of a crawl. `wanted` is the setting `take-over-crawls`.
fn is_wanted(crawl: &str, wanted: Option<&[String]>) -> bool {
    wanted.is_none_or(|patterns| fits_any(patterns, crawl))
}

/// The parts of a crawl; none if no node works on it.
async fn parts_of(
    connection: &ClusterConnection,
    crawl: &str,
) -> Result<Vec<ListedPart>, ClusterError> {
    // Most crawls of a cluster have ended.
    if !is_worked_on(connection, crawl).await? {
        return Ok(Vec::new());
    }
    listed_parts(connection, crawl).await
}

/// A part as the decision needs it.
fn overview(part: ListedPart) -> PartOverview {
    PartOverview {
        session: match part.state {
            PartState::New => None,
            PartState::Running => Some(SessionState::Live),
            PartState::Gone => Some(SessionState::Expired),
            PartState::Stopped => Some(SessionState::Left),
        },
        has_work: has_work(&part),
        name: part.name,
        node: part.node,
        epoch: part.epoch,
        commands: part.commands,
    }
}

/// Returns `true` unless a part is at rest and no link to it waits.
fn has_work(part: &ListedPart) -> bool {
    !part.is_at_rest || part.inbox > 0
}

async fn take_over(
    daemon: &Daemon,
    node: &ClusterNode,
    own: &[OwnPart],
    chosen: &ChosenPart,
) -> Result<(), String> {
    let (crawl, part) = (chosen.job.as_str(), chosen.part.as_str());
    let Some(cluster) = daemon.config.cluster.as_ref() else {
        return Ok(());
    };
    let (name, directory) = free_name(daemon, crawl, part);
    tracing::info!(job = name, "takes over part {part:?} of crawl {crawl:?}");
    let other = own.iter().find(|other| other.part.job == crawl);
    let take = PartToTake {
        job: crawl.to_owned(),
        part: part.to_owned(),
        epoch: chosen.epoch,
        directory,
        config: cluster.config.clone(),
        beside: other.map(|other| other.directory.clone()),
        component_cache: daemon.folder.component_cache(),
    };
    let attempt = Attempt {
        node,
        crawl,
        part,
        epoch: chosen.epoch,
    };
    attempt.begin().await;
    if let Err(problem) = take_over_fetched(node.settings().clone(), take).await {
        let problem = chain(&problem);
        attempt.fail(&problem).await;
        return Err(format!("part {part:?} of crawl {crawl:?}: {problem}"));
    }
    daemon.order(&name, |orders| *orders = Orders::new(true, DAEMON));
    attempt.end().await;
    Ok(())
}

/// Notes the end of the attempts of this node that are under way according to the cluster, although this daemon takes nothing over: the
/// daemon before ended meanwhile.
async fn end_interrupted(node: &ClusterNode, own: &[OwnPart], crawl: &str, parts: &[ListedPart]) {
    // A crawl with nothing left is ending. A part of this node may have finished, and is not in `own` then.
    if !parts.iter().any(has_work) {
        return;
    }
    for part in parts {
        let attempt = part.takeover.as_ref();
        if attempt.is_none_or(|attempt| attempt.node != node.name()) {
            continue;
        }
        let attempt = Attempt {
            node,
            crawl,
            part: &part.name,
            epoch: part.epoch,
        };
        let is_it =
            |own: &JobPart| (&*own.job, &*own.part, own.epoch) == (crawl, &*part.name, part.epoch);
        match own.iter().any(|own| is_it(&own.part)) {
            true => attempt.end().await,
            false => attempt.fail("the daemon ended meanwhile").await,
        }
    }
}

/// A name for the job of a part, and its directory, which does not exist, or has leftovers of a takeover that was cut short.
fn free_name(daemon: &Daemon, crawl: &str, part: &str) -> (String, PathBuf) {
    let names = (1..).map(|number| match number {
        1 => format!("{crawl}-{part}"),
        _ => format!("{crawl}-{part}-{number}"),
    });
    let mut places = names.map(|name| (name.clone(), daemon.folder.path().join(name)));
    let free = places
        .find(|(_, directory)| directory.symlink_metadata().is_err() || is_made_halfway(directory));
    // The numbers do not end.
    free.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_named_crawls_alone_are_taken_over() {
        let named = ["news-*", "museum"].map(str::to_owned);
        for (crawl, expected) in [("news-2026", true), ("museum", true), ("museum-2", false)] {
            assert_eq!(is_wanted(crawl, Some(&named)), expected, "{crawl}");
            assert!(is_wanted(crawl, None), "{crawl}");
        }
    }
}

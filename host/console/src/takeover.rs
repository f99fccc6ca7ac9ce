//! Automatic takeover of parts of shared crawls: this daemon takes over parts of nodes that are gone or drained, and gives up its
//! own parts when it is drained. [`PartTakeovers`] decides which parts are taken over, and when.
//! `opilio_control::take_over_fetched` creates the job with files from the cluster, and the supervisor starts its process.

mod attempt;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use opilio_cluster::control::{ChosenPart, JobParts, PartOverview, PartTakeovers, SessionState};
use opilio_cluster::{Availability, ClusterConnection, ClusterError, ClusterJob, TakeoverScope};
use opilio_control::{
    ClusterFile, Command, ListedPart, PartState, PartToTake, chain, is_worked_on, listed_parts,
    take_over_fetched,
};
use opilio_crawl::{JobPart, JobState, is_made_halfway};

use crate::daemon::Daemon;
use crate::node::{ClusterNode, overviews, takeover_scopes};
use crate::orders::Orders;
use crate::overview::KnownJob;
use crate::process::Alive;
use crate::window::fits_any;
use attempt::Attempt;

/// Shortest and longest interval at which the parts are examined.
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

/// Takes over and gives up parts until the daemon ends. Without `take-over-after` in `[cluster]`, it only publishes that this daemon
/// takes over no parts.
pub(crate) async fn keep(daemon: Arc<Daemon>) {
    let (Some(cluster), Some(node)) = (daemon.config.cluster.as_ref(), daemon.node.as_ref()) else {
        return;
    };
    let mut closing = daemon.closing.subscribe();
    let scope = scope_of(cluster);
    while let Err(problem) = node.cluster().publish_takeover_scope(&scope).await {
        tracing::debug!(
            "the crawls to take over are not published: {}",
            chain(&problem)
        );
        tokio::select! {
            () = tokio::time::sleep(LOOK_MAX) => {}
            _ = closing.wait_for(|closing| *closing) => return,
        }
    }
    let Some(after) = cluster.take_over_after else {
        return;
    };
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
        let examined = examine_crawls(&daemon, node, &own, &scope, &mut takeovers, began).await;
        let problem = examined.err();
        if let Some(problem) = problem.as_ref().filter(|it| failing.as_ref() != Some(*it)) {
            tracing::warn!(node = node.name(), "parts are not taken over: {problem}");
        }
        failing = problem;
    }
}

/// Returns the directories of this daemon with parts that can be taken over.
fn own_parts(daemon: &Daemon) -> Vec<OwnPart> {
    let jobs = daemon.jobs.borrow().clone();
    // A part finishes only together with its whole crawl.
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

/// Returns `true` if fewer than the maximum number of jobs crawl.
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
        // The order is changed first, so that the job is not restarted if it dies while it stops.
        let withdrawn = daemon.order(name, Orders::withdraw);
        let asked = daemon
            .commands
            .send_here(directory.clone(), DAEMON, Command::Stop);
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

/// Examines the parts of all crawls, and takes over at most one. Times in `takeovers` are counted from `began`.
async fn examine_crawls(
    daemon: &Daemon,
    node: &ClusterNode,
    own: &[OwnPart],
    scope: &TakeoverScope,
    takeovers: &mut PartTakeovers,
    began: Instant,
) -> Result<(), String> {
    let describe = |problem: ClusterError| chain(&problem);
    let (cluster, connection) = (node.cluster(), node.cluster().connection());
    let nodes = overviews(cluster).await.map_err(describe)?;
    let scopes = takeover_scopes(cluster).await.map_err(describe)?;
    if scopes.get(node.name()) != Some(scope) {
        // NATS has lost the scope of this node.
        let published = cluster.publish_takeover_scope(scope).await;
        published.map_err(describe)?;
    }
    let mut names = ClusterJob::names(connection).await.map_err(describe)?;
    names.retain(|name| has_crawl(scope, name));
    let mut crawls = Vec::new();
    let mut problems = Vec::new();
    for name in names {
        match parts_of(connection, &name).await {
            Ok(parts) => {
                end_interrupted(node, own, &name, &parts).await;
                crawls.push(JobParts {
                    declined_by: declined_by(&scopes, &name),
                    parts: parts.into_iter().map(overview).collect(),
                    job: name,
                });
            }
            Err(problem) => problems.push(describe(problem)),
        }
    }
    let clock_ms = Timestamp::now().as_millisecond();
    // Errors of one crawl do not affect others: this machine may lack something that the crawl needs.
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

/// Returns the crawls whose parts a daemon with these settings takes over.
fn scope_of(cluster: &ClusterFile) -> TakeoverScope {
    let crawls = match (cluster.take_over_after, &cluster.take_over_crawls) {
        (None, _) => Vec::new(),
        (Some(_), None) => vec!["*".to_owned()],
        (Some(_), Some(crawls)) => crawls.clone(),
    };
    TakeoverScope { crawls }
}

/// Returns `true` if a daemon with this scope takes over parts of the crawl.
fn has_crawl(scope: &TakeoverScope, crawl: &str) -> bool {
    fits_any(&scope.crawls, crawl)
}

/// Returns the names of the nodes that take over no parts of a crawl. A node that has published no scope, because it has an earlier
/// version or has just joined, is not among them.
fn declined_by(scopes: &BTreeMap<String, TakeoverScope>, crawl: &str) -> BTreeSet<String> {
    let declined = scopes.iter().filter(|(_, scope)| !has_crawl(scope, crawl));
    declined.map(|(node, _)| node.clone()).collect()
}

/// Returns the parts of a crawl; an empty list if no node works on it.
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

/// Returns the facts about a part that decide about its takeover.
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

/// Returns `true` unless a part has nothing left to do and no link waits in its inbox.
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

/// Records the end of takeovers of this node that the cluster lists as unfinished, although this daemon has begun none: the
/// previous daemon ended before they finished.
async fn end_interrupted(node: &ClusterNode, own: &[OwnPart], crawl: &str, parts: &[ListedPart]) {
    // A crawl with nothing left to do is ending. Parts of this node that have finished are not in `own`.
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

/// Returns a name for the job of a part, and its directory, which does not exist or was left by an interrupted takeover.
fn free_name(daemon: &Daemon, crawl: &str, part: &str) -> (String, PathBuf) {
    let names = (1..).map(|number| match number {
        1 => format!("{crawl}-{part}"),
        _ => format!("{crawl}-{part}-{number}"),
    });
    let mut places = names.map(|name| (name.clone(), daemon.folder.path().join(name)));
    let free = places
        .find(|(_, directory)| directory.symlink_metadata().is_err() || is_made_halfway(directory));
    // A name is always found, because there is no last number.
    free.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parts_of_the_named_crawls_are_taken_over() {
        let settings = |text: &str| {
            let text = format!("servers = [\"127.0.0.1\"]\nnode = \"a\"\n{text}");
            toml::from_str::<ClusterFile>(&text).unwrap()
        };
        let after = "take-over-after = \"5m\"\n";
        let named = format!("{after}take-over-crawls = [\"news-*\", \"museum\"]\n");
        let scopes = [("all", after), ("named", named.as_str()), ("none", "")];
        let scopes = scopes.map(|(node, text)| (node.to_owned(), scope_of(&settings(text))));
        let scopes = BTreeMap::from(scopes);
        for (crawl, expected) in [
            ("news-2026", &["none"][..]),
            ("museum", &["none"][..]),
            ("museum-2", &["named", "none"][..]),
        ] {
            let declined = declined_by(&scopes, crawl);
            let declined: Vec<&str> = declined.iter().map(String::as_str).collect();
            assert_eq!(declined, expected, "{crawl}");
        }
    }
}

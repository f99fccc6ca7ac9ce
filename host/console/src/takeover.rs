//! Parts of shared crawls that move by themselves: this daemon takes over parts of nodes that are gone or drained, and gives its own
//! parts up when it is drained. `opilio_control::take_over_fetched` makes the job, with files of the cluster; the supervisor begins its
//! process.
//!
//! Nothing here needs to be agreed between daemons. Two of them that want one part join the crawl under its name, and only one can.
//! Each part has an order of nodes, so that usually the first of them comes first: the others wait longer.

mod attempt;
mod waiting;

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use opilio_cluster::{Availability, ClusterConnection, ClusterError, ClusterJob};
use opilio_control::{
    Command, ListedPart, PartState, PartToTake, chain, is_worked_on, listed_parts,
    take_over_fetched,
};
use opilio_crawl::{JobPart, JobState, is_made_halfway};

use crate::daemon::Daemon;
use crate::node::{ClusterNode, ListedNode, NodeState};
use crate::orders::Orders;
use crate::overview::KnownJob;
use crate::process::Alive;
use crate::window::fits_any;
use attempt::Attempt;
use waiting::Waiting;

/// Shortest and longest pause between two looks at the parts.
const LOOK_MIN: Duration = Duration::from_millis(500);
const LOOK_MAX: Duration = Duration::from_secs(30);

/// The daemon's user name in orders and logs of jobs.
const DAEMON: &str = "daemon";

/// A part that no process works on.
type Orphan = (String, String);

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
    let mut seen = HashMap::new();
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
        let looked = look(&daemon, node, &own, after, &mut seen).await;
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

/// Looks for a part to take over, and takes over at most one.
async fn look(
    daemon: &Daemon,
    node: &ClusterNode,
    own: &[OwnPart],
    after: Duration,
    seen: &mut HashMap<Orphan, Waiting>,
) -> Result<(), String> {
    let describe = |problem: ClusterError| chain(&problem);
    let connection = node.cluster().connection();
    let nodes = ListedNode::all(node.cluster()).await.map_err(describe)?;
    let crawls = ClusterJob::names(connection).await.map_err(describe)?;
    let cluster = daemon.config.cluster.as_ref();
    let wanted = cluster.and_then(|cluster| cluster.take_over_crawls.as_deref());
    let mut orphans = BTreeSet::new();
    let mut chosen = Vec::new();
    let mut problems = Vec::new();
    for crawl in crawls.into_iter().filter(|crawl| is_wanted(crawl, wanted)) {
        let parts = match parts_under_way(connection, &crawl).await {
            Ok(parts) => parts,
            Err(problem) => {
                problems.push(describe(problem));
                continue;
            }
        };
        for part in &parts {
            let attempt = part.takeover.as_ref();
            if attempt.is_some_and(|attempt| attempt.node == node.name()) {
                end_interrupted(node, own, &crawl, part).await;
            }
            let orphan = (crawl.clone(), part.name.clone());
            let is_half_taken = seen.get_mut(&orphan).is_some_and(|known| {
                known.note(part, node.name());
                known.is_half_taken(part)
            });
            if !is_half_taken && !is_orphan(part, &nodes, after, Timestamp::now(), node.name()) {
                continue;
            }
            let now = Instant::now();
            let waiting = seen.entry(orphan.clone()).or_insert_with(|| Waiting {
                since: now,
                commands: part.commands,
                failed: None,
                tried: None,
                claimed: None,
            });
            waiting.heed(part, now);
            orphans.insert(orphan);
            let rank = || rank(&crawl, &part.name, node.name(), &nodes);
            let wait = match has_begun(part) {
                true => after * rank(),
                // An operator may be about to start the crawl on this node, or to stop it.
                false if part.name == node.name() => after,
                false => after * rank().saturating_add(1),
            };
            if waiting.is_over(wait, after, now) {
                chosen.push((crawl.clone(), part.name.clone(), part.epoch));
            }
        }
    }
    // The session of an attempt that has failed lives on for a while.
    seen.retain(|orphan, waiting| orphans.contains(orphan) || waiting.failed.is_some());
    // This machine may lack something that one of the crawls needs.
    for (crawl, part, epoch) in chosen {
        let taken = take_over(daemon, node, own, &crawl, (&part, epoch)).await;
        match taken {
            Ok(()) => {
                seen.remove(&(crawl, part));
                break;
            }
            Err(problem) => {
                problems.push(problem);
                if let Some(waiting) = seen.get_mut(&(crawl, part)) {
                    waiting.fail(epoch);
                }
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

/// The parts of a crawl that a node works on and whose parts can be taken over; otherwise none.
async fn parts_under_way(
    connection: &ClusterConnection,
    crawl: &str,
) -> Result<Vec<ListedPart>, ClusterError> {
    // Most crawls of a cluster have ended.
    if !is_worked_on(connection, crawl).await? {
        return Ok(Vec::new());
    }
    let parts = listed_parts(connection, crawl).await?;
    let can_move = parts.iter().any(|part| part.epoch > 0);
    match can_move && is_under_way(&parts) {
        true => Ok(parts),
        false => Ok(Vec::new()),
    }
}

async fn take_over(
    daemon: &Daemon,
    node: &ClusterNode,
    own: &[OwnPart],
    crawl: &str,
    (part, epoch): (&str, u64),
) -> Result<(), String> {
    let Some(cluster) = daemon.config.cluster.as_ref() else {
        return Ok(());
    };
    let (name, directory) = free_name(daemon, crawl, part);
    tracing::info!(job = name, "takes over part {part:?} of crawl {crawl:?}");
    let other = own.iter().find(|other| other.part.job == crawl);
    let take = PartToTake {
        job: crawl.to_owned(),
        part: part.to_owned(),
        epoch,
        directory,
        config: cluster.config.clone(),
        beside: other.map(|other| other.directory.clone()),
        component_cache: daemon.folder.component_cache(),
    };
    let attempt = Attempt {
        node,
        crawl,
        part,
        epoch,
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

/// Notes the end of an attempt of this node that is under way according to the cluster, although this daemon takes nothing over: the
/// daemon before ended meanwhile.
async fn end_interrupted(node: &ClusterNode, own: &[OwnPart], crawl: &str, part: &ListedPart) {
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

/// Returns `true` if a part has something left to do, and a node works on one. Otherwise the crawl is finished, or an operator has
/// stopped it on all nodes: then nobody works on parts of nodes that are drained or gone.
fn is_under_way(parts: &[ListedPart]) -> bool {
    let is_done = |part: &ListedPart| part.is_at_rest && part.inbox == 0;
    let is_running = |part: &ListedPart| part.state == PartState::Running;
    !parts.iter().all(is_done) && parts.iter().any(is_running)
}

/// Returns `true` if nobody works on a part, and nobody is about to.
fn is_orphan(
    part: &ListedPart,
    nodes: &[ListedNode],
    after: Duration,
    now: Timestamp,
    own: &str,
) -> bool {
    let node = part.node.as_ref();
    let node = node.and_then(|name| nodes.iter().find(|node| node.name == *name));
    let is_drained = node.is_some_and(|node| node.is_drained);
    if part.state != PartState::Running && !has_begun(part) {
        // A part with the name of a node waits for that node.
        let has_node = nodes.iter().any(|node| node.name == part.name);
        return part.name == own || part.name.starts_with("part-") && !has_node;
    }
    match part.state {
        PartState::Running | PartState::New => false,
        // Its node's daemon begins it again, unless the node is gone too.
        PartState::Gone => {
            let is_gone = node.is_some_and(|node| {
                let silent = SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX);
                node.state == NodeState::Gone && node.renewed.duration_until(now) >= silent
            });
            is_gone || is_drained
        }
        // Otherwise an operator has stopped it.
        PartState::Stopped => is_drained,
    }
}

/// Returns `true` if a directory has got a part of a crawl whose parts can be taken over. A process that has failed before that has
/// left nothing but its session.
fn has_begun(part: &ListedPart) -> bool {
    part.state != PartState::New && part.epoch > 0
}

/// The place of a node among those that could take a part over, by rendezvous hashing: the first waits no longer.
fn rank(crawl: &str, part: &str, own: &str, nodes: &[ListedNode]) -> u32 {
    let weight = |node: &str| {
        // Nodes of different versions may disagree. That costs at most an attempt.
        let mut hasher = DefaultHasher::new();
        (crawl, part, node).hash(&mut hasher);
        hasher.finish()
    };
    let can_take = |node: &&ListedNode| node.state == NodeState::Live && !node.is_drained;
    let before = nodes
        .iter()
        .filter(can_take)
        .filter(|node| weight(&node.name) > weight(own));
    u32::try_from(before.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn node(name: &str, state: NodeState, is_drained: bool) -> ListedNode {
        ListedNode {
            name: name.to_owned(),
            state,
            is_drained,
            is_leader: false,
            version: String::new(),
            since: at(0),
            renewed: at(0),
            clock_skew_s: 0.0,
        }
    }

    fn part(name: &str, node: Option<&str>, state: PartState) -> ListedPart {
        ListedPart {
            name: name.to_owned(),
            node: node.map(str::to_owned),
            state,
            is_at_rest: false,
            snapshot: None,
            inbox: 0,
            commands: 0,
            epoch: u64::from(state != PartState::New),
            since: None,
            figures: None,
            takeover: None,
            failed_takeover: None,
        }
    }

    #[track_caller]
    fn check(part: &ListedPart, node: ListedNode, expected: bool) {
        let found = is_orphan(part, &[node], Duration::from_secs(60), at(100), "own");
        assert_eq!(found, expected, "{part:?}");
    }

    #[test]
    fn parts_of_the_named_crawls_alone_are_taken_over() {
        let named = ["news-*", "museum"].map(str::to_owned);
        for (crawl, expected) in [("news-2026", true), ("museum", true), ("museum-2", false)] {
            assert_eq!(is_wanted(crawl, Some(&named)), expected, "{crawl}");
            assert!(is_wanted(crawl, None), "{crawl}");
        }
    }

    #[test]
    fn parts_of_nodes_that_are_gone_for_long_or_drained_are_taken_over() {
        let of_a = |state| part("a", Some("a"), state);
        let gone = node("a", NodeState::Gone, false);
        check(&of_a(PartState::Gone), gone.clone(), true);
        let lately = ListedNode {
            renewed: at(50),
            ..gone.clone()
        };
        check(&of_a(PartState::Gone), lately, false);
        // Its daemon begins the process again.
        check(
            &of_a(PartState::Gone),
            node("a", NodeState::Live, false),
            false,
        );
        check(&of_a(PartState::Running), gone.clone(), false);
        // An operator has stopped it, or the drained daemon.
        check(&of_a(PartState::Stopped), gone.clone(), false);
        check(
            &of_a(PartState::Stopped),
            node("a", NodeState::Live, true),
            true,
        );
        // It waits for its node, or has none.
        check(&part("a", None, PartState::New), gone.clone(), false);
        check(&part("part-1", None, PartState::New), gone, true);
        let named_so = node("part-1", NodeState::Live, false);
        check(&part("part-1", None, PartState::New), named_so, false);
        // It waits for this node.
        let own = node("own", NodeState::Live, false);
        check(&part("own", None, PartState::New), own.clone(), true);
        // A process that began it has failed before it got it.
        let failed = |name| ListedPart {
            epoch: 0,
            ..part(name, Some(name), PartState::Gone)
        };
        check(&failed("own"), own.clone(), true);
        check(&failed("part-1"), own.clone(), true);
        check(&failed("a"), node("a", NodeState::Live, false), false);
        check(&part("own", Some("own"), PartState::Gone), own, false);
    }

    fn waiting(since: Instant) -> Waiting {
        Waiting {
            since,
            commands: 0,
            failed: None,
            tried: None,
            claimed: None,
        }
    }

    #[test]
    fn a_part_that_was_claimed_without_a_job_is_taken_over_again() {
        let of_own = |state, epoch| ListedPart {
            epoch,
            ..part("a", Some("own"), state)
        };
        let mut waiting = waiting(Instant::now());
        let mut is_half_taken = |failed_at: Option<u64>, part: &ListedPart| {
            failed_at.into_iter().for_each(|epoch| waiting.fail(epoch));
            waiting.note(part, "own");
            waiting.is_half_taken(part)
        };
        // The attempt failed before it got the part.
        let of_b = part("a", Some("b"), PartState::Gone);
        assert!(!is_half_taken(Some(1), &of_b));
        // Later it got the part. Its session ends after a while.
        assert!(!is_half_taken(Some(1), &of_own(PartState::Running, 2)));
        assert!(is_half_taken(None, &of_own(PartState::Gone, 2)));
        // The next attempt fails before it gets the part again.
        assert!(is_half_taken(Some(2), &of_own(PartState::Gone, 2)));
        // An operator has taken it over on this node, and has stopped it.
        assert!(!is_half_taken(None, &of_own(PartState::Stopped, 3)));
    }

    #[test]
    fn a_part_that_nobody_has_begun_waits_again_after_a_command() {
        let since = Instant::now();
        let later = since + Duration::from_secs(9);
        let waits_since = |state, commands| {
            let mut waiting = waiting(since);
            let part = ListedPart {
                commands,
                ..part("part-1", None, state)
            };
            waiting.heed(&part, later);
            waiting.heed(&part, later + Duration::from_secs(9));
            waiting.since
        };
        assert_eq!(waits_since(PartState::New, 0), since);
        assert_eq!(waits_since(PartState::New, 1), later);
        assert_eq!(waits_since(PartState::Gone, 1), since);
    }

    #[test]
    fn a_part_that_could_not_be_taken_over_rests_before_the_next_attempt() {
        let second = Duration::from_secs;
        let since = Instant::now();
        let is_over = |failed: Option<u64>, wait: u64, now: u64| {
            let waiting = Waiting {
                failed: failed.map(|failed| since + second(failed)),
                ..waiting(since)
            };
            waiting.is_over(second(wait), second(60), since + second(now))
        };
        assert!(is_over(None, 0, 0));
        assert!(!is_over(None, 60, 59));
        assert!(is_over(None, 60, 60));
        assert!(!is_over(Some(60), 0, 119));
        assert!(is_over(Some(60), 0, 120));
    }

    #[test]
    fn each_node_that_can_take_a_part_has_another_rank() {
        let names = ["a", "b", "c", "d"];
        let mut nodes: Vec<_> = names.map(|name| node(name, NodeState::Live, false)).into();
        nodes[2].is_drained = true;
        nodes[3].state = NodeState::Gone;
        let mut firsts = BTreeSet::new();
        for number in 0..20 {
            let name = format!("part-{number}");
            let mut ranks = ["a", "b"].map(|own| (rank("news", &name, own, &nodes), own));
            ranks.sort_unstable();
            assert_eq!((ranks[0].0, ranks[1].0), (0, 1));
            firsts.insert(ranks[0].1);
        }
        assert_eq!(firsts.len(), 2);
    }

    #[test]
    fn a_crawl_is_under_way_while_a_part_has_work_and_a_node_works() {
        let mut parts = [
            part("a", Some("a"), PartState::Running),
            part("b", Some("b"), PartState::Stopped),
        ];
        assert!(is_under_way(&parts));
        parts[0].is_at_rest = true;
        assert!(is_under_way(&parts));
        parts[1].is_at_rest = true;
        assert!(!is_under_way(&parts));
        parts[1].inbox = 1;
        assert!(is_under_way(&parts));
        // An operator has stopped it on all nodes.
        parts[0].state = PartState::Stopped;
        assert!(!is_under_way(&parts));
    }
}

//! Automatic takeover: decides which parts without a process the daemon of a node takes over, and when. `host/console` carries out
//! the takeovers.
//!
//! Daemons need no agreement. If two daemons choose the same part, both try to join the job under the part's name, and only one
//! can. Each part has an order of nodes. Nodes later in the order wait longer, so usually only the first one tries.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use super::overviews::{JobParts, NodeOverview, PartOverview};
use super::records::SessionState;

/// A part that a node should take over now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenPart {
    /// Name of the job.
    pub job: String,
    /// Name of the part.
    pub part: String,
    /// Epoch of the part at the time of the decision.
    pub epoch: u64,
}

/// Takeover decisions of one node. Times are durations since any fixed moment of its own clock.
#[derive(Debug)]
pub struct PartTakeovers {
    /// Name of the node.
    own: String,
    after: Duration,
    /// Parts without a process, by job and name.
    waiting: HashMap<(String, String), Waiting>,
}

/// Wait for the takeover of a part that no process works on.
#[derive(Debug)]
struct Waiting {
    /// Time at which the wait began: when the part was first found without a process, or at a later command.
    since: Duration,
    /// Number of commands that the part had not carried out then.
    commands: u64,
    /// Time at which the last takeover failed.
    failed: Option<Duration>,
    /// Epoch of the part before that takeover; taken at the next call of [`PartTakeovers::choose`].
    tried: Option<u64>,
    /// Epoch that a takeover claimed for this node before it failed. Then no directory has the part.
    claimed: Option<u64>,
}

impl PartTakeovers {
    /// Creates the decisions of a node that takes over parts of nodes that are gone for longer than `after`.
    #[must_use]
    pub fn new(own: &str, after: Duration) -> Self {
        Self {
            own: own.to_owned(),
            after,
            waiting: HashMap::new(),
        }
    }

    /// Returns the parts to take over now, in the order of the jobs. `jobs` has the jobs whose parts this node takes over, with all
    /// their parts, and `nodes` has all nodes. `clock_ms` is the wall clock in milliseconds since 1970. It is compared with times of
    /// renewals by the clock of NATS.
    pub fn choose(
        &mut self,
        jobs: &[JobParts],
        nodes: &[NodeOverview],
        now: Duration,
        clock_ms: i64,
    ) -> Vec<ChosenPart> {
        let mut orphans = BTreeSet::new();
        let mut chosen = Vec::new();
        let under_way = jobs.iter().filter(|job| is_under_way(&job.parts));
        let parts = under_way.flat_map(|job| job.parts.iter().map(move |part| (job, part)));
        for (job, part) in parts {
            let orphan = (job.job.clone(), part.name.clone());
            let is_claimed_without_job = self.waiting.get_mut(&orphan).is_some_and(|known| {
                known.record_claim(part, &self.own);
                known.is_claimed_without_job(part)
            });
            if !is_claimed_without_job && !self.is_orphan(part, nodes, clock_ms) {
                continue;
            }
            let waiting = self.waiting.entry(orphan.clone());
            let waiting = waiting.or_insert_with(|| Waiting::begin(now, part.commands));
            waiting.restart_wait_after_command(part, now);
            orphans.insert(orphan);
            let rank = || rank(job, &part.name, &self.own, nodes);
            let wait = match has_begun(part) {
                // The daemon may have left long ago. An operator may be about to start the process again without it.
                true if has_left(part, nodes) => self.after * rank().saturating_add(1),
                true => self.after * rank(),
                // An operator may be about to start the crawl on this node, or to stop it.
                false if part.name == self.own => self.after,
                false => self.after * rank().saturating_add(1),
            };
            if waiting.is_over(wait, self.after, now) {
                chosen.push(ChosenPart {
                    job: job.job.clone(),
                    part: part.name.clone(),
                    epoch: part.epoch,
                });
            }
        }
        // After a failed takeover its session lives on for a while, so the part seems to have a process. Its wait is kept.
        self.waiting
            .retain(|orphan, waiting| orphans.contains(orphan) || waiting.failed.is_some());
        chosen
    }

    /// Records that the node has taken over a part.
    pub fn finish(&mut self, chosen: ChosenPart) {
        self.waiting.remove(&(chosen.job, chosen.part));
    }

    /// Records a failed takeover.
    pub fn fail(&mut self, chosen: ChosenPart, now: Duration) {
        let epoch = chosen.epoch;
        if let Some(waiting) = self.waiting.get_mut(&(chosen.job, chosen.part)) {
            waiting.failed = Some(now);
            waiting.tried = Some(epoch);
        }
    }

    /// Returns `true` if no process works on a part, and its own node is not expected to resume or start it.
    fn is_orphan(&self, part: &PartOverview, nodes: &[NodeOverview], clock_ms: i64) -> bool {
        if part.session == Some(SessionState::Live) {
            return false;
        }
        if !has_begun(part) {
            // A part that has the name of a node is started by that node.
            let has_node = || nodes.iter().any(|node| node.name == part.name);
            return part.name == self.own || part.name.starts_with("part-") && !has_node();
        }
        let node = node_of(part, nodes);
        let is_drained = node.is_some_and(|node| node.is_drained);
        // The daemon of the node restarts a process that has died, that the system has terminated, or that has not begun after a
        // takeover (`SessionEnd::Expired`), unless the node is gone too. A process that has left was stopped by an operator, or by
        // the daemon of a drained node.
        let has_died = part.session == Some(SessionState::Expired);
        let is_gone = node.is_some_and(|node| match node.state {
            SessionState::Live => false,
            SessionState::Expired => {
                let after = i64::try_from(self.after.as_millis()).unwrap_or(i64::MAX);
                clock_ms.saturating_sub(node.renewed_ms) >= after
            }
            // A machine that is shut down ends its daemon in good order. The part waits (`has_left`).
            SessionState::Left => true,
        });
        is_drained || has_died && is_gone
    }
}

impl Waiting {
    fn begin(now: Duration, commands: u64) -> Self {
        Self {
            since: now,
            commands,
            failed: None,
            tried: None,
            claimed: None,
        }
    }

    /// Returns `true` if the part has waited for `wait`. After a failed takeover it waits for `after`, because each takeover
    /// fetches all files of the crawl, and the cause may last, such as a file that this machine lacks.
    fn is_over(&self, wait: Duration, after: Duration, now: Duration) -> bool {
        let has_waited = |failed| now.saturating_sub(failed) >= after;
        now.saturating_sub(self.since) >= wait && self.failed.is_none_or(has_waited)
    }

    /// Restarts the wait after a command if no directory has had the part. An operator may be stopping the crawl, and its last
    /// process may need some time to end. Other parts carry out a stop when they resume.
    fn restart_wait_after_command(&mut self, part: &PartOverview, now: Duration) {
        if !has_begun(part) && self.commands != part.commands {
            self.commands = part.commands;
            self.since = now;
        }
    }

    /// After a failed takeover, records whether it had claimed the part for this node.
    fn record_claim(&mut self, part: &PartOverview, own: &str) {
        let tried = self.tried.take();
        let is_next = tried.is_some() && part.epoch.checked_sub(1) == tried;
        if is_next && part.node.as_deref() == Some(own) {
            self.claimed = Some(part.epoch);
        }
    }

    /// Returns `true` if a takeover has claimed the part for this node and then failed, for instance because the disk was full. No
    /// other node takes over such a part, because its node is alive.
    fn is_claimed_without_job(&self, part: &PartOverview) -> bool {
        part.session != Some(SessionState::Live) && self.claimed == Some(part.epoch)
    }
}

/// Returns `true` if the parts of a job can be taken over, a part has something left to do, and a process works on a part.
/// Otherwise the crawl is finished, or an operator has stopped it on all nodes, and then parts of drained or gone nodes are not
/// taken over.
fn is_under_way(parts: &[PartOverview]) -> bool {
    let can_move = parts.iter().any(|part| part.epoch > 0);
    let is_running = |part: &PartOverview| part.session == Some(SessionState::Live);
    can_move && parts.iter().any(|part| part.has_work) && parts.iter().any(is_running)
}

/// Returns `true` if a directory has ever had the part. A process that failed before it claimed the part has left only its session.
fn has_begun(part: &PartOverview) -> bool {
    part.session.is_some() && part.epoch > 0
}

/// Returns the node that has a part, if it is in the list.
fn node_of<'n>(part: &PartOverview, nodes: &'n [NodeOverview]) -> Option<&'n NodeOverview> {
    let name = part.node.as_ref()?;
    nodes.iter().find(|node| node.name == *name)
}

/// Returns `true` if the daemon of the node that has a part has left, and the node is not drained.
fn has_left(part: &PartOverview, nodes: &[NodeOverview]) -> bool {
    let node = node_of(part, nodes);
    node.is_some_and(|node| node.state == SessionState::Left && !node.is_drained)
}

/// Returns the position of a node among the nodes that could take over a part, by rendezvous hashing. It is 0 for the first node,
/// and nodes with greater positions wait longer.
fn rank(job: &JobParts, part: &str, own: &str, nodes: &[NodeOverview]) -> u32 {
    // Nodes of different versions may compute different orders, which costs at most a failed takeover.
    let weight = |node: &str| xxh3_64(format!("{}/{part}/{node}", job.job).as_bytes());
    let own = weight(own);
    let can_take = |node: &&NodeOverview| {
        let is_at_work = node.state == SessionState::Live && !node.is_drained;
        is_at_work && !job.declined_by.contains(&node.name)
    };
    let others = nodes.iter().filter(can_take);
    let before = others.filter(|node| weight(&node.name) > own);
    u32::try_from(before.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const LIVE: SessionState = SessionState::Live;
    const GONE: SessionState = SessionState::Expired;
    const STOPPED: SessionState = SessionState::Left;

    /// A node that has renewed its session at 0 seconds.
    fn node(name: &str, state: SessionState, is_drained: bool) -> NodeOverview {
        NodeOverview {
            name: name.to_owned(),
            state,
            is_drained,
            is_leader: false,
            version: String::new(),
            since_ms: 0,
            renewed_ms: 0,
            clock_skew_ms: 0,
        }
    }

    fn part(name: &str, node: Option<&str>, session: Option<SessionState>) -> PartOverview {
        PartOverview {
            name: name.to_owned(),
            node: node.map(str::to_owned),
            session,
            epoch: u64::from(session.is_some()),
            has_work: true,
            commands: 0,
        }
    }

    /// A job whose parts are taken over by all nodes.
    fn news(parts: Vec<PartOverview>) -> JobParts {
        JobParts {
            job: "news".to_owned(),
            parts,
            declined_by: BTreeSet::new(),
        }
    }

    #[track_caller]
    fn check(part: &PartOverview, node: NodeOverview, expected: bool) {
        let takeovers = PartTakeovers::new("own", 60 * SECOND);
        let found = takeovers.is_orphan(part, &[node], 100_000);
        assert_eq!(found, expected, "{part:?}");
    }

    #[test]
    fn parts_of_drained_and_long_gone_nodes_are_taken_over() {
        let of_a = |state| part("a", Some("a"), Some(state));
        let gone = node("a", GONE, false);
        check(&of_a(GONE), gone.clone(), true);
        let lately = NodeOverview {
            renewed_ms: 50_000,
            ..gone.clone()
        };
        check(&of_a(GONE), lately, false);
        // The machine was shut down, or the daemon was stopped for an upgrade.
        check(&of_a(GONE), node("a", STOPPED, false), true);
        check(&of_a(LIVE), node("a", STOPPED, false), false);
        check(&of_a(STOPPED), node("a", STOPPED, false), false);
        // The daemon of the node restarts the process.
        check(&of_a(GONE), node("a", LIVE, false), false);
        check(&of_a(LIVE), gone.clone(), false);
        // An operator or the daemon of the drained node has stopped the process.
        check(&of_a(STOPPED), gone.clone(), false);
        check(&of_a(STOPPED), node("a", LIVE, true), true);
        // The part waits for the node with its name, or has no node.
        check(&part("a", None, None), gone.clone(), false);
        check(&part("part-1", None, None), gone, true);
        check(
            &part("part-1", None, None),
            node("part-1", LIVE, false),
            false,
        );
        // The part waits for this node.
        let own = node("own", LIVE, false);
        check(&part("own", None, None), own.clone(), true);
        // A process failed before it claimed the part.
        let failed = |name| PartOverview {
            epoch: 0,
            ..part(name, Some(name), Some(GONE))
        };
        check(&failed("own"), own.clone(), true);
        check(&failed("part-1"), own.clone(), true);
        check(&failed("a"), node("a", LIVE, false), false);
        check(&part("own", Some("own"), Some(GONE)), own, false);
    }

    #[test]
    fn a_part_that_was_claimed_without_a_job_is_taken_over_again() {
        let of_own = |state, epoch| PartOverview {
            epoch,
            ..part("a", Some("own"), Some(state))
        };
        let mut waiting = Waiting::begin(Duration::ZERO, 0);
        let mut is_claimed_without_job = |tried: Option<u64>, part: &PartOverview| {
            waiting.tried = tried.or(waiting.tried);
            waiting.record_claim(part, "own");
            waiting.is_claimed_without_job(part)
        };
        // The takeover failed before it claimed the part.
        assert!(!is_claimed_without_job(
            Some(1),
            &part("a", Some("b"), Some(GONE))
        ));
        // A later takeover claimed the part and failed. Its session ends after a while.
        assert!(!is_claimed_without_job(Some(1), &of_own(LIVE, 2)));
        assert!(is_claimed_without_job(None, &of_own(GONE, 2)));
        // The next takeover fails before it claims the part.
        assert!(is_claimed_without_job(Some(2), &of_own(GONE, 2)));
        // An operator has taken over the part on this node, and has stopped it.
        assert!(!is_claimed_without_job(None, &of_own(STOPPED, 3)));
    }

    #[test]
    fn the_wait_for_an_unstarted_part_restarts_after_a_command() {
        let waits_since = |session, commands| {
            let mut waiting = Waiting::begin(SECOND, 0);
            let part = PartOverview {
                commands,
                ..part("part-1", None, session)
            };
            waiting.restart_wait_after_command(&part, 10 * SECOND);
            waiting.restart_wait_after_command(&part, 19 * SECOND);
            waiting.since
        };
        assert_eq!(waits_since(None, 0), SECOND);
        assert_eq!(waits_since(None, 1), 10 * SECOND);
        assert_eq!(waits_since(Some(GONE), 1), SECOND);
    }

    #[test]
    fn a_failed_takeover_is_retried_after_a_pause() {
        let nodes = [node("a", GONE, false), node("own", LIVE, false)];
        let parts = vec![
            part("a", Some("a"), Some(GONE)),
            part("own", Some("own"), Some(LIVE)),
        ];
        let jobs = [news(parts)];
        let mut takeovers = PartTakeovers::new("own", 60 * SECOND);
        let mut choose = |failed: Option<ChosenPart>, second: u32| {
            let now = second * SECOND;
            if let Some(chosen) = failed {
                takeovers.fail(chosen, now);
            }
            takeovers.choose(&jobs, &nodes, now, 1_000 * i64::from(second))
        };
        assert_eq!(choose(None, 59), []);
        let chosen = choose(None, 60);
        let of_a = ChosenPart {
            job: "news".to_owned(),
            part: "a".to_owned(),
            epoch: 1,
        };
        assert_eq!(chosen, std::slice::from_ref(&of_a));
        assert_eq!(choose(Some(of_a.clone()), 70), []);
        assert_eq!(choose(None, 129), []);
        assert_eq!(choose(None, 130), [of_a]);
    }

    #[test]
    fn a_part_that_this_node_has_claimed_without_a_job_is_chosen_again() {
        let nodes = [node("b", GONE, false), node("own", LIVE, false)];
        let look = |takeovers: &mut PartTakeovers, of_a: PartOverview, second: u32| {
            let parts = vec![of_a, part("own", Some("own"), Some(LIVE))];
            let jobs = [news(parts)];
            takeovers.choose(&jobs, &nodes, second * SECOND, 1_000 * i64::from(second))
        };
        let of_own = |session| PartOverview {
            epoch: 2,
            ..part("a", Some("own"), Some(session))
        };
        let mut takeovers = PartTakeovers::new("own", 60 * SECOND);
        let mut chosen = look(&mut takeovers, part("a", Some("b"), Some(GONE)), 60);
        assert_eq!(chosen.len(), 1);
        takeovers.fail(chosen.remove(0), 70 * SECOND);
        // The takeover has claimed the part and failed. Its session lives on for a while.
        assert_eq!(look(&mut takeovers, of_own(LIVE), 75), []);
        assert_eq!(look(&mut takeovers, of_own(GONE), 129), []);
        let again = look(&mut takeovers, of_own(GONE), 130);
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].epoch, 2);
        // Other nodes do not take over the part, because this node is alive.
        let mut others = PartTakeovers::new("other", 60 * SECOND);
        for second in [130, 1_000] {
            assert_eq!(look(&mut others, of_own(GONE), second), []);
        }
    }

    #[test]
    fn nodes_wait_by_rank_and_longer_for_unstarted_parts() {
        let nodes = [
            node("a", GONE, false),
            node("b", LIVE, false),
            node("c", LIVE, false),
        ];
        let parts = vec![
            part("a", Some("a"), Some(GONE)),
            part("b", None, None),
            part("c", Some("c"), Some(LIVE)),
            part("part-1", None, None),
        ];
        let jobs = [news(parts)];
        for own in ["b", "c"] {
            let rank = |part: &str| rank(&jobs[0], part, own, &nodes);
            // In units of `after`. A part with the name of a node is started only by that node.
            let waits = [
                ("a", Some(rank("a"))),
                ("b", (own == "b").then_some(1)),
                ("part-1", Some(rank("part-1") + 1)),
            ];
            let mut takeovers = PartTakeovers::new(own, 60 * SECOND);
            for waited in [0, 59, 60, 119, 120] {
                let second: u32 = 100 + waited;
                let chosen =
                    takeovers.choose(&jobs, &nodes, second * SECOND, 1_000 * i64::from(second));
                let chosen: Vec<&str> = chosen.iter().map(|it| it.part.as_str()).collect();
                let is_due = |wait: u32| 60 * wait <= waited;
                let due = waits.iter().filter(|(_, wait)| wait.is_some_and(is_due));
                let expected: Vec<&str> = due.map(|(part, _)| *part).collect();
                assert_eq!(chosen, expected, "{own} after {waited} s");
            }
        }
    }

    #[test]
    fn each_node_that_can_take_a_part_has_another_rank() {
        let names = ["a", "b", "c", "d"];
        let mut nodes = names.map(|name| node(name, LIVE, false));
        nodes[2].is_drained = true;
        nodes[3].state = GONE;
        let job = news(Vec::new());
        let mut firsts = BTreeSet::new();
        for number in 0..20 {
            let name = format!("part-{number}");
            let mut ranks = ["a", "b"].map(|own| (rank(&job, &name, own, &nodes), own));
            ranks.sort_unstable();
            assert_eq!((ranks[0].0, ranks[1].0), (0, 1));
            firsts.insert(ranks[0].1);
        }
        assert_eq!(firsts.len(), 2);
    }

    #[test]
    fn nobody_waits_for_a_node_that_takes_no_parts_of_the_crawl_over() {
        let mut nodes = ["a", "b", "c"].map(|name| node(name, LIVE, false));
        nodes[0].state = GONE;
        let parts = vec![
            part("a", Some("a"), Some(GONE)),
            part("c", Some("c"), Some(LIVE)),
        ];
        let mut job = news(parts);
        // The first of the two waits no longer than after the loss, the other one for a minute more.
        let (first, second) = match rank(&job, "a", "b", &nodes) {
            0 => ("b", "c"),
            _ => ("c", "b"),
        };
        let waits = |job: &JobParts| {
            let mut takeovers = PartTakeovers::new(second, 60 * SECOND);
            let jobs = [job.clone()];
            let mut looks = (60u32..600).step_by(10);
            looks.find(|second| {
                let clock_ms = 1_000 * i64::from(*second);
                !takeovers
                    .choose(&jobs, &nodes, *second * SECOND, clock_ms)
                    .is_empty()
            })
        };
        assert_eq!(waits(&job), Some(120));
        job.declined_by.insert(first.to_owned());
        assert_eq!(waits(&job), Some(60));
    }

    #[test]
    fn a_part_of_a_node_that_has_left_waits_from_the_end_of_its_process() {
        let chosen = |drained: bool, looks: &[(SessionState, u32)]| -> Vec<usize> {
            let nodes = [node("a", STOPPED, drained), node("own", LIVE, false)];
            let mut takeovers = PartTakeovers::new("own", 60 * SECOND);
            let looks = looks.iter().map(|(session, second)| {
                let parts = vec![
                    part("a", Some("a"), Some(*session)),
                    part("own", Some("own"), Some(LIVE)),
                ];
                let clock_ms = 1_000 * i64::from(*second);
                let chosen = takeovers.choose(&[news(parts)], &nodes, *second * SECOND, clock_ms);
                chosen.len()
            });
            looks.collect()
        };
        // The daemon left at 0 seconds, and the crawl continued without it. The crawl's process is restarted at 940 seconds.
        let looks = [
            (LIVE, 900),
            (GONE, 910),
            (LIVE, 940),
            (GONE, 950),
            (GONE, 1_009),
            (GONE, 1_010),
        ];
        assert_eq!(chosen(false, &looks), [0, 0, 0, 0, 0, 1]);
        assert_eq!(chosen(true, &looks[..2]), [0, 1]);
    }

    #[test]
    fn a_crawl_is_under_way_while_a_part_has_work_and_a_process_works() {
        let mut parts = [
            part("a", Some("a"), Some(LIVE)),
            part("b", Some("b"), Some(STOPPED)),
        ];
        assert!(is_under_way(&parts));
        parts[0].has_work = false;
        assert!(is_under_way(&parts));
        parts[1].has_work = false;
        assert!(!is_under_way(&parts));
        parts[1].has_work = true;
        assert!(is_under_way(&parts));
        // An operator has stopped the crawl on all nodes.
        parts[0].session = Some(STOPPED);
        assert!(!is_under_way(&parts));
    }
}

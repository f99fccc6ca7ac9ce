//! Observes the state of this process's part of a shared crawl, for alerts, metrics and operators. The leader of the job's members
//! also observes the other parts, so that only one process reads their state, and each problem has one alert.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use opilio_cluster::control::SessionState;
use opilio_cluster::{ClusterError, NodeOverview};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::context::CrawlContext;
use crate::job_part::{part_state, takeover_attempts};
use crate::membership::JobMembership;
use opilio_job::part_status::{JetStreamUse, OtherPart, PartState, PartStatus};

/// Interval of observations.
const INTERVAL: Duration = Duration::from_secs(5);

/// Maximum time for the requests of one observation.
const NATS_TIME_MAX: Duration = Duration::from_secs(10);

/// Difference between the clocks of a process and of NATS, in milliseconds, from which on the log has a warning. Daemons have the
/// same limit.
const CLOCK_SKEW_MAX_MS: i64 = 2_000;

/// Number of observations that a [`QueueAge`] stores.
const MARKS_MAX: usize = 512;

/// Observes the state until the crawl ends on this node.
pub(super) async fn run(context: Arc<CrawlContext>, mut ended: watch::Receiver<()>) {
    let Some(membership) = context.membership.clone() else {
        return;
    };
    let mut outbox = QueueAge::default();
    let mut watched = EarlierObservations::default();
    loop {
        let mut status = membership.status().unwrap_or_default();
        look_here(&context, &membership, &mut outbox, &mut status);
        // If NATS fails, later observations still update the figures of this machine.
        if membership.status().is_some() {
            membership.set_status(status.clone());
        }
        let looked = look_at_nats(&membership, &mut status, &mut watched);
        let observation = timeout(NATS_TIME_MAX, looked);
        let nats_answers = tokio::select! {
            // Resolves when the sender is dropped.
            _ = ended.changed() => return,
            observed = observation => match observed {
                Ok(Ok(())) => true,
                // The alert `nats` and the tasks for links report an outage.
                Ok(Err(problem)) => {
                    tracing::debug!("the state of the part: {}", opilio_stacks::chain(&problem));
                    false
                }
                Err(_) => false,
            },
        };
        status.nats_answers = nats_answers;
        if nats_answers || membership.status().is_some() {
            membership.set_status(status);
        }
        if timeout(INTERVAL, ended.changed()).await.is_ok() {
            return;
        }
    }
}

/// Updates the figures that are known without NATS.
fn look_here(
    context: &CrawlContext,
    membership: &JobMembership,
    outbox: &mut QueueAge,
    status: &mut PartStatus,
) {
    let part = membership.part();
    status.crawl.clone_from(&part.job);
    status.name.clone_from(&part.part);
    status.takeovers = part.can_move().then(|| part.epoch - 1);
    status.sessions_lost = membership.member.sessions_lost();
    status.has_rival = membership.member.status().borrow().has_rival;
    let (first, end) = {
        let frontier = context.frontier();
        // Links that NATS has stored stay in the outbox until their part has received them.
        let first = frontier.outbox(membership.sent(), 1);
        (first, frontier.outbox_end())
    };
    match first {
        Ok(first) => {
            let first = first.first().map(|entry| entry.number);
            status.outbox_wait_s = outbox.look(end, first, Instant::now()).as_secs();
        }
        Err(problem) => tracing::warn!("the outbox: {}", opilio_stacks::chain(&problem)),
    }
}

/// State from earlier observations of NATS.
#[derive(Default)]
struct EarlierObservations {
    /// Age of the messages in the inbox that have not been received. It does not depend on clocks of other machines.
    inbox: QueueAge,
    /// The processes of other versions in the last warning of the log.
    other_versions: String,
    /// The processes with wrong clocks in the last warning of the log.
    wrong_clocks: String,
}

/// Updates the figures that come from NATS.
async fn look_at_nats(
    membership: &JobMembership,
    status: &mut PartStatus,
    watched: &mut EarlierObservations,
) -> Result<(), ClusterError> {
    let (job, own) = (membership.job(), membership.inbox());
    status.inbox = job.inbox_messages(own).await?;
    let (taken, end) = (membership.taken().sequence, job.last_link(own).await?);
    if end < taken {
        // NATS has lost messages, and uses their numbers again.
        membership.reread.notify_one();
    }
    let first = match status.inbox {
        0 => None,
        _ => job.links_behind(own, taken).await?,
    };
    status.inbox_wait_s = watched.inbox.look(end, first, Instant::now()).as_secs();
    let applied = job.applied_command(&membership.part().part).await?;
    status.commands = job.last_command().await?.saturating_sub(applied);
    let storage = job.cluster().connection().storage().await?;
    status.jetstream = Some(JetStreamUse {
        bytes: storage.used,
        limit: storage.limit,
    });
    let is_leading = membership.member.status().borrow().is_leading;
    status.others = match is_leading {
        true => {
            let sessions = job.cluster().nodes().await?;
            warn_of_versions(&sessions, &mut watched.other_versions);
            warn_of_clocks(&sessions, &mut watched.wrong_clocks);
            Some(others(membership, &sessions).await?)
        }
        false => None,
    };
    Ok(())
}

/// Warns if processes of other versions of Opilio work on the crawl, once for the same processes.
fn warn_of_versions(sessions: &[NodeOverview], warned: &mut String) {
    const OWN: &str = env!("CARGO_PKG_VERSION");
    let others = of_other_versions(sessions, OWN);
    if others != *warned && !others.is_empty() {
        tracing::warn!(
            "the crawl has processes of other versions of Opilio than {OWN}: {others}; run the same version on all nodes"
        );
    }
    *warned = others;
}

/// Returns the running processes of other versions than `own`, with their versions. The text is empty if all processes have that
/// version.
fn of_other_versions(sessions: &[NodeOverview], own: &str) -> String {
    let others = sessions
        .iter()
        .filter(|session| session.state == SessionState::Live && session.version != own);
    let names: Vec<String> = others
        .map(|session| format!("{} ({})", session.name, session.version))
        .collect();
    names.join(", ")
}

/// Warns if clocks of processes differ from that of NATS, once for the same processes.
fn warn_of_clocks(sessions: &[NodeOverview], warned: &mut String) {
    let wrong = with_wrong_clocks(sessions);
    let names: Vec<&str> = wrong.iter().map(|(name, _)| *name).collect();
    let names = names.join(", ");
    if names != *warned && !names.is_empty() {
        let clocks = wrong.iter().map(|(name, skew_ms)| {
            let seconds = *skew_ms as f64 / 1_000.0;
            format!("{name} ({seconds:+.1} s)")
        });
        let clocks: Vec<String> = clocks.collect();
        tracing::warn!(
            "clocks of processes of the crawl differ from the clock of NATS: {}; synchronise the clocks of these machines and of the NATS servers",
            clocks.join(", ")
        );
    }
    *warned = names;
}

/// Returns the running processes whose clocks differ too much from that of NATS, with the differences in milliseconds.
fn with_wrong_clocks(sessions: &[NodeOverview]) -> Vec<(&str, i64)> {
    let wrong = sessions.iter().filter(|session| {
        session.state == SessionState::Live && session.clock_skew_ms.abs() > CLOCK_SKEW_MAX_MS
    });
    wrong
        .map(|session| (session.name.as_str(), session.clock_skew_ms))
        .collect()
}

/// Observes the other parts.
async fn others(
    membership: &JobMembership,
    sessions: &[NodeOverview],
) -> Result<Vec<OtherPart>, ClusterError> {
    let (job, own) = (membership.job(), membership.part());
    let mut others = Vec::new();
    for (number, name) in (0..).zip(&own.parts) {
        if *name == own.part {
            continue;
        }
        let session = sessions.iter().find(|session| session.name == *name);
        let state = part_state(session.map(|session| session.state));
        // Further requests are made only for parts that may need an alert.
        let is_asked = own.can_move() && state != PartState::Running;
        let record = match is_asked {
            true => job.part(name).await?,
            false => None,
        };
        let attempts = match is_asked {
            true => job.checked_takeover(name, record.as_ref()).await?,
            false => None,
        };
        let (takeover, failed_takeover) = takeover_attempts(attempts);
        let node = match state {
            PartState::Running | PartState::New => None,
            PartState::Gone | PartState::Stopped if own.can_move() => {
                record.map(|record| record.node)
            }
            PartState::Gone | PartState::Stopped => Some(name.clone()),
        };
        let is_done = matches!(state, PartState::Gone | PartState::Stopped)
            && job.is_at_rest(name).await?
            && job.inbox_messages(own.inbox(number)).await? == 0;
        others.push(OtherPart {
            name: name.clone(),
            state,
            node,
            is_done,
            takeover,
            failed_takeover,
        });
    }
    Ok(others)
}

/// Age of the oldest entry of a queue whose entries have rising numbers, but no times.
struct QueueAge {
    /// The greatest number at some observations, as long as entries up to this number wait.
    marks: VecDeque<(u64, Instant)>,
    /// Shortest time between two marks. It is doubled when there are too many.
    spacing: Duration,
}

impl Default for QueueAge {
    fn default() -> Self {
        Self {
            marks: VecDeque::new(),
            spacing: INTERVAL,
        }
    }
}

impl QueueAge {
    /// Returns a lower bound of the time for which the first entry has waited. It has waited longer by one interval at most; after
    /// hours, by one percent at most. `end` is the greatest number so far, `first` the number of the first entry.
    fn look(&mut self, end: u64, first: Option<u64>, now: Instant) -> Duration {
        let Some(first) = first else {
            *self = Self::default();
            return Duration::ZERO;
        };
        if self.marks.back().is_some_and(|(mark, _)| *mark > end) {
            // NATS has lost messages, and uses their numbers again.
            *self = Self::default();
        }
        while self.marks.front().is_some_and(|(mark, _)| *mark < first) {
            self.marks.pop_front();
        }
        let since = |at: Instant| now.saturating_duration_since(at);
        let is_due = |(mark, at): &(u64, Instant)| *mark < end && since(*at) >= self.spacing;
        if self.marks.back().is_none_or(is_due) {
            self.marks.push_back((end, now));
        }
        if self.marks.len() > MARKS_MAX {
            self.spacing *= 2;
            let mut place = 0;
            self.marks.retain(|_| {
                place += 1;
                place % 2 == 1
            });
        }
        let oldest = self.marks.front().map(|(_, at)| *at);
        oldest.map_or(Duration::ZERO, since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_processes_with_another_version_or_a_wrong_clock_are_listed() {
        let session = |name: &str, version: &str, state| NodeOverview {
            name: name.to_owned(),
            state,
            is_drained: false,
            is_leader: false,
            version: version.to_owned(),
            since_ms: 0,
            renewed_ms: 0,
            clock_skew_ms: 0,
        };
        let sessions = [
            session("a", "1.0.0", SessionState::Live),
            session("b", "2.0.0", SessionState::Live),
            session("c", "2.0.0", SessionState::Left),
            session("d", "1.1.0", SessionState::Live),
        ];
        assert_eq!(
            of_other_versions(&sessions, "1.0.0"),
            "b (2.0.0), d (1.1.0)"
        );
        assert_eq!(of_other_versions(&sessions[..1], "1.0.0"), "");

        let mut sessions = sessions;
        assert_eq!(with_wrong_clocks(&sessions), []);
        let skews = [1_999, -3_600_000, 5_000, 2_001];
        for (session, skew_ms) in sessions.iter_mut().zip(skews) {
            session.clock_skew_ms = skew_ms;
        }
        let wrong = [("b", -3_600_000), ("d", 2_001)];
        assert_eq!(with_wrong_clocks(&sessions), wrong);
    }

    #[test]
    fn the_age_of_a_queue_is_that_of_its_first_entry() {
        let (mut age, began) = (QueueAge::default(), Instant::now());
        let mut look = |second, end, first| {
            let now = began + Duration::from_secs(second);
            age.look(end, first, now).as_secs()
        };
        assert_eq!(look(0, 100, None), 0);
        assert_eq!(look(5, 110, Some(104)), 0);
        assert_eq!(look(10, 120, Some(104)), 5);
        assert_eq!(look(15, 120, Some(104)), 10);
        // Entry 115 was added between seconds 5 and 10.
        assert_eq!(look(20, 130, Some(115)), 10);
        assert_eq!(look(25, 130, Some(130)), 5);
        assert_eq!(look(30, 130, None), 0);
        assert_eq!(look(35, 140, Some(135)), 0);
        // Numbers that are used again belong to new entries.
        assert_eq!(look(40, 120, Some(110)), 0);
        assert_eq!(look(45, 121, Some(110)), 5);
    }

    #[test]
    fn a_long_queue_keeps_the_age_of_its_first_entry() {
        let (mut age, began) = (QueueAge::default(), Instant::now());
        for second in 0..10_000 {
            let now = began + Duration::from_secs(second);
            assert_eq!(age.look(second, Some(0), now).as_secs(), second);
        }
        assert!(age.marks.len() <= MARKS_MAX);
        // Half of the entries are sent.
        let now = began + Duration::from_secs(10_000);
        let left = age.look(10_000, Some(5_000), now).as_secs();
        assert!((4_900..=5_000).contains(&left), "{left}");
    }
}

//! The parts of a shared crawl as operators see them.

use jiff::Timestamp;
use opilio_cluster::control::SessionState;
use opilio_cluster::{Cluster, ClusterConnection, ClusterError, ClusterJob, MemberScope};
use opilio_crawl::{PartFigures, inbox_of_part, part_state, parts_of_job, takeover_attempts};
use opilio_job::part_status::IdlePart;
pub use opilio_job::part_status::{FailedTakeover, PartState, PartTakeover};
use serde::Serialize;
use utoipa::ToSchema;

/// A part of a shared crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ListedPart {
    /// Name of the part.
    pub name: String,
    /// Node that has the part; not set if no node has started it.
    pub node: Option<String>,
    /// State of the part.
    pub state: PartState,
    /// `true` if the part had nothing left to do at its last report.
    pub is_at_rest: bool,
    /// Newest snapshot of the part; not set if there is none.
    pub snapshot: Option<ListedSnapshot>,
    /// Messages with links that the part has not taken, or that no snapshot covers.
    pub inbox: u64,
    /// Commands of operators that the part has not carried out.
    pub commands: u64,
    /// Number of directories that have had the part; 0 if it cannot be taken over.
    pub epoch: u64,
    /// Time at which the node got the part. Not set if it cannot be taken over.
    pub since: Option<Timestamp>,
    /// Latest figures of the part; not set if its process has published none.
    pub figures: Option<PartFigures>,
    /// Takeover that a daemon has begun; not set if there is none.
    pub takeover: Option<PartTakeover>,
    /// Last takeover that failed. Not set if none has failed, if another directory has got the part since, or if the part runs and
    /// no other takeover has begun.
    pub failed_takeover: Option<FailedTakeover>,
    /// The reason why no process works on it, and the remedy, as a sentence. Not set unless it has something left to do, other parts
    /// are at work, and no daemon takes it over.
    pub remedy: Option<String>,
}

/// A snapshot of a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ListedSnapshot {
    /// Time of the saved state.
    pub made: Timestamp,
    /// Known URIs.
    pub uris: u64,
    /// Path of its manifest in the archive store.
    pub manifest: String,
}

/// Returns the sum of the figures of all parts.
#[must_use]
pub fn total_figures(parts: &[ListedPart]) -> PartFigures {
    let mut total = PartFigures {
        is_paused: parts.iter().any(|part| part.figures.is_some()),
        ..PartFigures::default()
    };
    for figures in parts.iter().filter_map(|part| part.figures.as_ref()) {
        total.add(figures);
    }
    total
}

/// Returns `true` if a process works on a part of a shared crawl. A process that has died counts until another process notices
/// that it does not renew its session.
///
/// # Errors
/// NATS fails.
pub async fn is_worked_on(connection: &ClusterConnection, job: &str) -> Result<bool, ClusterError> {
    let scope = MemberScope::Job(job.to_owned());
    let Some(members) = Cluster::find(connection.clone(), &scope).await? else {
        return Ok(false);
    };
    let sessions = members.nodes().await?;
    Ok(sessions
        .iter()
        .any(|session| session.state == SessionState::Live))
}

/// Lists the parts of a shared crawl in the order of their numbers.
///
/// # Errors
/// The cluster has no such crawl, or NATS fails.
pub async fn listed_parts(
    connection: &ClusterConnection,
    job: &str,
) -> Result<Vec<ListedPart>, ClusterError> {
    let scope = MemberScope::Job(job.to_owned());
    let members = Cluster::find(connection.clone(), &scope).await?;
    let unknown = || ClusterError::UnknownJob {
        job: job.to_owned(),
    };
    let members = members.ok_or_else(unknown)?;
    let job = ClusterJob::open(&members, job).await?;
    let sessions = members.nodes().await?;
    let names = parts_of_job(&job).await?;
    let last_command = job.last_command().await?;
    let applied = job.applied_commands().await?;
    let mut parts = Vec::new();
    for (name, number) in names.iter().zip(0..) {
        let record = job.part(name).await?;
        let session = sessions.iter().find(|session| session.name == *name);
        let carried_out = applied.iter().find(|(part, _)| part == name);
        let carried_out = carried_out.map_or(0, |(_, sequence)| *sequence);
        let figures = job.figures(name).await?;
        let attempts = job.checked_takeover(name, record.as_ref()).await?;
        let (takeover, failed_takeover) = takeover_attempts(attempts);
        let state = part_state(session.map(|session| session.state));
        let needs_takeover = needs_takeover(state, takeover.as_ref());
        let (epoch, since) = record
            .as_ref()
            .map_or((0, None), |record| (record.epoch, Some(record.claimed_ms)));
        let snapshot = record.as_ref().and_then(|record| record.snapshot.clone());
        parts.push(ListedPart {
            name: name.clone(),
            // Without takeover a part has the name of its node.
            node: match (record, session) {
                (Some(record), _) => Some(record.node),
                (None, session) => session.map(|session| session.name.clone()),
            },
            state,
            is_at_rest: job.is_at_rest(name).await?,
            snapshot: snapshot.map(|snapshot| ListedSnapshot {
                made: Timestamp::from_millisecond(snapshot.made_ms).unwrap_or_default(),
                uris: snapshot.uris,
                manifest: snapshot.manifest,
            }),
            inbox: job
                .inbox_messages(inbox_of_part(members.config().partitions, number))
                .await?,
            commands: last_command.saturating_sub(carried_out),
            epoch,
            since: since.and_then(|at| Timestamp::from_millisecond(at).ok()),
            figures: figures.and_then(|json| serde_json::from_slice(&json).ok()),
            takeover,
            failed_takeover: failed_takeover.filter(|_| needs_takeover),
            remedy: None,
        });
    }
    name_remedies(&mut parts);
    Ok(parts)
}

/// Adds remedies to parts that no process works on. A crawl that was stopped on all nodes, or has finished, needs none.
fn name_remedies(parts: &mut [ListedPart]) {
    let is_running = |part: &ListedPart| part.state == PartState::Running;
    if !parts.iter().any(is_running) {
        return;
    }
    let can_move = parts.iter().any(|part| part.epoch > 0);
    for part in parts {
        let has_work = !part.is_at_rest || part.inbox > 0;
        if is_running(part) || part.takeover.is_some() || !has_work {
            continue;
        }
        let idle = IdlePart {
            name: &part.name,
            state: part.state,
            node: part.node.as_deref(),
            can_move,
        };
        part.remedy = Some(format!("{}; {}", idle.cause(), idle.remedy()));
    }
}

/// Returns `true` if no process works on the part, or if a takeover has begun. A process may resume its part after a failed
/// takeover.
fn needs_takeover(state: PartState, takeover: Option<&PartTakeover>) -> bool {
    state != PartState::Running || takeover.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_takeovers_of_a_running_part_are_not_listed() {
        let takeover = PartTakeover {
            node: "b".to_owned(),
            since: Timestamp::UNIX_EPOCH,
        };
        assert!(needs_takeover(PartState::Gone, None));
        assert!(!needs_takeover(PartState::Running, None));
        // The daemon that takes the part over has a session under the name of the part.
        assert!(needs_takeover(PartState::Running, Some(&takeover)));
    }

    fn part(name: &str, state: PartState) -> ListedPart {
        ListedPart {
            name: name.to_owned(),
            node: Some(format!("node-{name}")),
            state,
            is_at_rest: false,
            snapshot: None,
            inbox: 0,
            commands: 0,
            epoch: 1,
            since: None,
            figures: None,
            takeover: None,
            failed_takeover: None,
            remedy: None,
        }
    }

    #[test]
    fn a_part_that_was_stopped_has_a_remedy_while_others_are_at_work() {
        let mut parts = [
            part("a", PartState::Running),
            part("b", PartState::Stopped),
            part("c", PartState::Stopped),
            part("d", PartState::Gone),
        ];
        parts[2].is_at_rest = true;
        parts[3].takeover = Some(PartTakeover {
            node: "node-a".to_owned(),
            since: Timestamp::UNIX_EPOCH,
        });
        name_remedies(&mut parts);
        let remedies = parts.each_ref().map(|part| part.remedy.as_deref());
        let remedy = remedies[1].unwrap();
        assert!(remedy.contains("`opilio node drain node-b`"), "{remedy}");
        assert_eq!([remedies[0], remedies[2], remedies[3]], [None; 3]);
        // The crawl was stopped on all nodes.
        let mut parts = [part("a", PartState::Stopped), part("b", PartState::Gone)];
        name_remedies(&mut parts);
        assert!(parts.iter().all(|part| part.remedy.is_none()), "{parts:?}");
    }
}

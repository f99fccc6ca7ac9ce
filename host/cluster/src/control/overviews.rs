//! Nodes and parts as operators and daemons see them.

use std::collections::BTreeSet;

use serde::Serialize;

use super::records::SessionState;

/// A node as operators see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeOverview {
    /// Its name.
    pub name: String,
    /// State of its session. `Live` until another node has noticed its silence.
    pub state: SessionState,
    /// `true` if it is drained: its daemon starts no crawls.
    pub is_drained: bool,
    /// `true` if it leads.
    pub is_leader: bool,
    /// Version of its program.
    pub version: String,
    /// Time at which its session began, in milliseconds since 1970, by its own clock.
    pub since_ms: i64,
    /// Time of its last renewal, in milliseconds since 1970, by the clock of NATS.
    pub renewed_ms: i64,
    /// Difference of its clock from the clock of NATS, in milliseconds; positive if it is ahead. It includes the time that the
    /// renewal took to NATS.
    pub clock_skew_ms: i64,
}

/// The parts of a job as daemons see them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobParts {
    /// Name of the job.
    pub job: String,
    /// All parts.
    pub parts: Vec<PartOverview>,
    /// Names of the nodes whose daemons take no parts of the job over.
    pub declined_by: BTreeSet<String>,
}

/// A part of a job as daemons see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartOverview {
    /// Its name.
    pub name: String,
    /// The node that has it; `None` if no node has begun it.
    pub node: Option<String>,
    /// State of the session under its name; `None` if there has been none.
    pub session: Option<SessionState>,
    /// Epoch of the directory that has it; 0 if no directory has, or if the parts of the job cannot be taken over.
    pub epoch: u64,
    /// `true` unless it is at rest and no link to it waits.
    pub has_work: bool,
    /// Commands of operators that it has not carried out.
    pub commands: u64,
}

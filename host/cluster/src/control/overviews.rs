//! Nodes and parts as operators and daemons see them.

use std::collections::BTreeSet;

use serde::Serialize;

use super::records::SessionState;

/// A node as operators see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeOverview {
    /// Its name.
    pub name: String,
    /// State of the node's session. It stays `Live` until another node has noticed that the session is not renewed.
    pub state: SessionState,
    /// `true` if the node is drained: its daemon starts no crawls.
    pub is_drained: bool,
    /// `true` if the node is the leader.
    pub is_leader: bool,
    /// Version of the node's program.
    pub version: String,
    /// Time at which the session began, in milliseconds since 1970, by the node's clock.
    pub since_ms: i64,
    /// Time of the last renewal, in milliseconds since 1970, by the clock of NATS.
    pub renewed_ms: i64,
    /// Difference of the node's clock from the clock of NATS, in milliseconds; positive if the node's clock is ahead. It includes
    /// the time that the renewal took to reach NATS.
    pub clock_skew_ms: i64,
}

/// The parts of a job as daemons see them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobParts {
    /// Name of the job.
    pub job: String,
    /// All parts.
    pub parts: Vec<PartOverview>,
    /// Names of the nodes whose daemons take over no parts of the job.
    pub declined_by: BTreeSet<String>,
}

/// A part of a job as daemons see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartOverview {
    /// Its name.
    pub name: String,
    /// The node that has the part; `None` if no node has started it.
    pub node: Option<String>,
    /// State of the session under the part's name; `None` if there never was a session.
    pub session: Option<SessionState>,
    /// Epoch of the directory that has the part; 0 if no directory has it, or if the parts of the job cannot be taken over.
    pub epoch: u64,
    /// `true` unless the part has nothing left to do and no link waits in its inbox.
    pub has_work: bool,
    /// Number of operators' commands that the part has not carried out.
    pub commands: u64,
}

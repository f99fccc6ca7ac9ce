//! A part of a shared crawl as its process sees it: links and commands that wait, its session, the storage of NATS and, in one part of
//! the crawl, the others. Alerts, metrics and the job's status show it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Part of a shared crawl as its process sees it. While NATS does not answer, the figures from NATS keep their last values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PartStatus {
    /// Name of the crawl in the cluster.
    pub crawl: String,
    /// Name of the part.
    pub name: String,
    /// Number of takeovers of the part; not set if parts of the crawl cannot be taken over.
    pub takeovers: Option<u64>,
    /// Messages with links that the part has not received, or that no snapshot covers.
    pub inbox: u64,
    /// Age of the oldest message in NATS with links that the part has not received, in seconds; 0 without such a message.
    pub inbox_wait_s: u64,
    /// Age of the oldest link to another part that is in the frontier and not yet stored by NATS, in seconds; 0 without such a
    /// link, or if it is only a few seconds old.
    pub outbox_wait_s: u64,
    /// Commands of operators that the part has not carried out.
    pub commands: u64,
    /// Sessions of this process that other processes have ended, because NATS received no renewal.
    pub sessions_lost: u64,
    /// `true` if another process works under the name of the part. Then this process does not fetch.
    pub has_rival: bool,
    /// `true` if NATS has answered the last requests. Otherwise the figures from NATS are older.
    pub nats_answers: bool,
    /// Storage of the account in NATS.
    pub jetstream: Option<JetStreamUse>,
    /// The other parts; not set if another part of the crawl watches them.
    pub others: Option<Vec<OtherPart>>,
}

/// File storage of an account in JetStream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JetStreamUse {
    /// Bytes in use.
    pub bytes: u64,
    /// Maximum of bytes for the account; not set if the account has no limit.
    pub limit: Option<u64>,
}

/// Another part of the crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OtherPart {
    /// Name of the part.
    pub name: String,
    /// State of the part.
    pub state: PartState,
    /// The node of the part, if its process is gone or has stopped.
    pub node: Option<String>,
    /// `true` if the part has nothing left to do.
    pub is_done: bool,
    /// The present attempt of a daemon to take the part over; not set if there is no attempt.
    #[serde(default)]
    pub takeover: Option<PartTakeover>,
    /// The last failed attempt to take the part over; not set if no attempt has failed, or if another directory has got the part
    /// since.
    #[serde(default)]
    pub failed_takeover: Option<FailedTakeover>,
}

/// Attempt of a daemon to take over a part of a shared crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PartTakeover {
    /// Node of the daemon.
    pub node: String,
    /// Time at which it began, by the clock of the node.
    pub since: Timestamp,
}

/// Attempt to take over a part of a shared crawl that has failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedTakeover {
    /// Node of the daemon.
    pub node: String,
    /// Time of the failure, by the clock of the node.
    pub at: Timestamp,
    /// The cause.
    pub problem: String,
}

/// State of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartState {
    /// No process has begun the part.
    New,
    /// A process works on the part, or its silence has not been noticed yet.
    Running,
    /// The process did not renew its session within the time to live, was terminated by the system, or has not joined the crawl
    /// after a takeover. The daemon of its node begins the part again.
    Gone,
    /// The process was stopped, or has finished.
    Stopped,
}

/// A part without a process that has something left to do.
#[derive(Clone, Copy, Debug)]
pub struct IdlePart<'a> {
    /// Name of the part.
    pub name: &'a str,
    /// State of the part.
    pub state: PartState,
    /// The node of the part, if it is known.
    pub node: Option<&'a str>,
    /// `true` if other nodes can take the part over.
    pub can_move: bool,
}

impl IdlePart<'_> {
    /// Returns the cause, such as `it was stopped on node "b" and has something left to do`.
    pub fn cause(&self) -> String {
        let node = self.node.unwrap_or(self.name);
        match self.state {
            PartState::New => "no node has begun it".to_owned(),
            PartState::Stopped => {
                format!("it was stopped on node {node:?} and has something left to do")
            }
            PartState::Gone | PartState::Running => format!(
                "its process on node {node:?} has died or was terminated, or does not reach NATS"
            ),
        }
    }

    /// Returns the remedy, such as `start its job again`.
    pub fn remedy(&self) -> String {
        let (name, node) = (self.name, self.node.unwrap_or(self.name));
        let here = match self.state {
            PartState::New => "start the crawl on its node",
            PartState::Stopped => "start its job again, or stop the crawl on all nodes",
            PartState::Gone | PartState::Running => "start its job again",
        };
        match (self.can_move, self.state) {
            (false, _) => here.to_owned(),
            // An operator has stopped the part, so daemons take it over only after this command.
            (true, PartState::Stopped) => format!(
                "{here}, or take the part over with --take-over {name}; if its machine is lost, `opilio node drain {node}` lets daemons with take-over-after take over its parts"
            ),
            (true, _) => format!("{here}, or take the part over with --take-over {name}"),
        }
    }
}

impl PartState {
    /// All states.
    pub const ALL: [PartState; 4] = [
        PartState::New,
        PartState::Running,
        PartState::Gone,
        PartState::Stopped,
    ];

    /// Returns the name of the state.
    pub fn name(self) -> &'static str {
        match self {
            PartState::New => "new",
            PartState::Running => "running",
            PartState::Gone => "gone",
            PartState::Stopped => "stopped",
        }
    }
}

impl OtherPart {
    /// Returns `true` if the part has something to do and no process works on it.
    pub fn is_missing(&self) -> bool {
        match self.state {
            PartState::Running => false,
            PartState::New => true,
            PartState::Gone | PartState::Stopped => !self.is_done,
        }
    }
}

impl JetStreamUse {
    /// Returns the used share of the limit, in percent; `None` without a limit.
    pub fn percent(&self) -> Option<f64> {
        let limit = self.limit.filter(|limit| *limit > 0)?;
        Some(self.bytes as f64 * 100.0 / limit as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_without_a_process_has_a_cause_and_a_remedy() {
        let check = |state, can_move, expected: &str| {
            let idle = IdlePart {
                name: "b",
                state,
                node: Some("node-2").filter(|_| state != PartState::New),
                can_move,
            };
            assert_eq!(format!("{}; {}", idle.cause(), idle.remedy()), expected);
        };
        check(
            PartState::New,
            true,
            "no node has begun it; start the crawl on its node, or take the part over with --take-over b",
        );
        check(
            PartState::Gone,
            true,
            "its process on node \"node-2\" has died or was terminated, or does not reach NATS; start its job again, or take the part over with --take-over b",
        );
        check(
            PartState::Stopped,
            true,
            "it was stopped on node \"node-2\" and has something left to do; start its job again, or stop the crawl on all nodes, or take the part over with --take-over b; if its machine is lost, `opilio node drain node-2` lets daemons with take-over-after take over its parts",
        );
        check(
            PartState::Stopped,
            false,
            "it was stopped on node \"node-2\" and has something left to do; start its job again, or stop the crawl on all nodes",
        );
    }
}

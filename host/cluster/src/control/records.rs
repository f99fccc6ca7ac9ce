//! The records of the cluster's bucket, their keys, and the times that all nodes share. Records are JSON, so that `nats kv get`
//! shows them.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A key of the cluster's bucket.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClusterKey {
    /// The session of a node; the node itself writes it.
    Node(String),
    /// Present while the operator drains the node.
    Drain(String),
    /// The leader.
    Leader,
}

/// A record of the cluster's bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterRecord {
    /// Under [`ClusterKey::Node`].
    Node(NodeRecord),
    /// Under [`ClusterKey::Drain`].
    Drain,
    /// Under [`ClusterKey::Leader`].
    Leader(LeaderRecord),
}

/// The session of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// Identifier of the session. A node that lost its session begins another one.
    pub session: String,
    /// State of the session.
    pub state: SessionState,
    /// Version of the program.
    pub version: String,
    /// Number of the renewal, counted from 1.
    pub beat: u64,
    /// The node's wall clock when it sent the record, in milliseconds since 1970.
    pub clock_ms: i64,
    /// The node's wall clock when the session began, in milliseconds since 1970.
    pub since_ms: i64,
}

/// State of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionState {
    /// The node renews it.
    Live,
    /// Another node ended the session because it was not renewed, or the node itself ended it as [`SessionEnd::Expired`].
    Expired,
    /// The node ended it.
    Left,
}

/// State of the session after a process has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// [`SessionState::Left`]: no other process has to continue under the name.
    Left,
    /// [`SessionState::Expired`], as if the process had died: another process has to continue under the name, which is free at
    /// once.
    Expired,
    /// State of the previous session, for a process that must not have the name: `Left` if that session had left, otherwise
    /// `Expired`.
    AsBefore,
}

/// The leader. It is leader as long as its session is live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaderRecord {
    /// Name of the node.
    pub node: String,
    /// Session of the leader.
    pub session: String,
    /// Number of the term: each new leader has a greater one.
    pub term: u64,
}

/// A write to the bucket that takes effect only if the key's last revision is as expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyWrite {
    /// The key.
    pub key: ClusterKey,
    /// The new record.
    pub record: ClusterRecord,
    /// Expected last revision of the key; 0 if it has none.
    pub expected: u64,
}

/// Times of sessions. They must be the same on all nodes, and are part of the cluster's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTimings {
    /// Time after which other nodes may end a session that was not renewed.
    pub time_to_live: Duration,
    /// Time before the end of the session at which the node itself stops working.
    pub margin: Duration,
    /// Time between two renewals.
    pub renewal: Duration,
}

impl ClusterKey {
    /// Reads a key of the bucket. Returns `None` for keys that later versions may add.
    #[must_use]
    pub fn parse(key: &str) -> Option<Self> {
        match key.split_once('.') {
            None if key == "leader" => Some(Self::Leader),
            Some(("nodes", name)) => Some(Self::Node(name.to_owned())),
            Some(("drain", name)) => Some(Self::Drain(name.to_owned())),
            _ => None,
        }
    }
}

impl fmt::Display for ClusterKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(name) => write!(formatter, "nodes.{name}"),
            Self::Drain(name) => write!(formatter, "drain.{name}"),
            Self::Leader => formatter.write_str("leader"),
        }
    }
}

impl ClusterRecord {
    /// Returns the record as JSON.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let json = match self {
            Self::Node(record) => serde_json::to_vec(record),
            Self::Drain => Ok(b"{}".to_vec()),
            Self::Leader(record) => serde_json::to_vec(record),
        };
        // Serialization cannot fail: these types have string keys and no foreign `Serialize`.
        json.unwrap_or_default()
    }

    /// Reads the record of a key.
    ///
    /// # Errors
    /// The bytes are not a record of this kind.
    pub fn parse(key: &ClusterKey, json: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(match key {
            ClusterKey::Node(_) => Self::Node(serde_json::from_slice(json)?),
            ClusterKey::Drain(_) => Self::Drain,
            ClusterKey::Leader => Self::Leader(serde_json::from_slice(json)?),
        })
    }
}

impl Default for SessionTimings {
    /// A time to live of 15 seconds: a dead process is replaced within half a minute, and no node pauses during a restart of a NATS
    /// server, which takes a few seconds. The margin of a fifth allows for clocks of different speed.
    fn default() -> Self {
        Self::of(Duration::from_secs(15))
    }
}

impl SessionTimings {
    /// Computes the times from a time to live: margin and interval of renewals are a fifth of it.
    #[must_use]
    pub fn of(time_to_live: Duration) -> Self {
        Self {
            time_to_live,
            margin: time_to_live / 5,
            renewal: time_to_live / 5,
        }
    }
}

//! A bucket of members: its format, and the nodes as operators see them. It needs no membership, so commands work from anywhere.

use serde::{Deserialize, Serialize};

use crate::bucket::{Bucket, BucketError};
use crate::config::{ClusterConfig, check_name};
use crate::connection::ClusterConnection;
use crate::control::{
    ClusterKey, ClusterRecord, LeaderRecord, NodeOverview, NodeRecord, SessionState, SessionTimings,
};
use crate::error::ClusterError;

/// Version of the keys and records of the bucket, and of all streams.
const FORMAT: u32 = 1;

/// Key of the format.
const FORMAT_KEY: &str = "format";

/// Attempts to change a key that others change at the same time.
const ATTEMPTS_MAX: usize = 10;

/// The members of a cluster or of a job, over a connection.
#[derive(Debug, Clone)]
pub struct Cluster {
    pub(crate) connection: ClusterConnection,
    pub(crate) bucket: Bucket,
    pub(crate) bucket_name: String,
}

/// Members that observe each other. A process has a session of its own, so that nothing but its own clock decides when it ends. As each
/// part of a job is a process, each job has members of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberScope {
    /// The nodes: one member for each daemon.
    Nodes,
    /// The processes of a job: one member for each part, with the part's name.
    Job(String),
}

impl MemberScope {
    fn bucket(&self) -> Result<String, ClusterError> {
        match self {
            Self::Nodes => Ok("opilio_cluster".to_owned()),
            Self::Job(job) => {
                check_name("name of a job", job)?;
                Ok(format!("opilio_members_{job}"))
            }
        }
    }
}

/// Settings that all nodes share, in the bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FormatRecord {
    format: u32,
    partitions: u16,
    time_to_live_ms: u64,
}

impl Cluster {
    /// Opens the bucket of these members, or creates it with these settings if there is none.
    ///
    /// # Errors
    /// The bucket has another format, number of partitions or time to live, or NATS fails.
    pub async fn open(
        connection: ClusterConnection,
        scope: &MemberScope,
    ) -> Result<Self, ClusterError> {
        let bucket_name = scope.bucket()?;
        let replicas = connection.config.replicas;
        let description = "Opilio: sessions, leader and drained nodes";
        let bucket = Bucket::open(&connection.data, &bucket_name, description, replicas).await?;
        let cluster = Self {
            connection,
            bucket,
            bucket_name,
        };
        cluster.write_format().await?;
        Ok(cluster)
    }

    /// Opens the bucket of these members, and creates nothing. Returns `None` if no member has ever joined.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn find(
        connection: ClusterConnection,
        scope: &MemberScope,
    ) -> Result<Option<Self>, ClusterError> {
        let bucket_name = scope.bucket()?;
        let Some(bucket) = Bucket::find(&connection.data, &bucket_name).await? else {
            return Ok(None);
        };
        let cluster = Self {
            connection,
            bucket,
            bucket_name,
        };
        let is_complete = cluster.check_format().await?;
        Ok(is_complete.then_some(cluster))
    }

    /// The bucket for renewals: answers that come late are worth nothing there.
    pub(crate) async fn session_bucket(&self) -> Result<Bucket, ClusterError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            match Bucket::find(&self.connection.control, &self.bucket_name).await {
                Ok(Some(bucket)) => return Ok(bucket),
                Ok(None) => return Err(contention()),
                // Opening may take longer than a renewal may.
                Err(error) if error.is_temporary() && attempts < ATTEMPTS_MAX => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The settings of this node.
    #[must_use]
    pub fn config(&self) -> &ClusterConfig {
        &self.connection.config
    }

    /// The connection.
    #[must_use]
    pub fn connection(&self) -> &ClusterConnection {
        &self.connection
    }

    /// Checks the settings in the bucket, and writes them if the bucket has no settings.
    async fn write_format(&self) -> Result<(), ClusterError> {
        for _ in 0..ATTEMPTS_MAX {
            if self.check_format().await? {
                return Ok(());
            }
            let json = serde_json::to_vec(&self.own_format()).unwrap_or_default();
            match self.bucket.write(FORMAT_KEY, json, 0).await {
                Ok(_) => return Ok(()),
                // Another node was faster.
                Err(BucketError::Conflict) => {}
                Err(BucketError::Failed(error)) => return Err(error),
            }
        }
        Err(contention())
    }

    /// Compares the settings in the bucket with those of this node. Returns whether there are any.
    async fn check_format(&self) -> Result<bool, ClusterError> {
        let Some(entry) = self.bucket.read(FORMAT_KEY).await? else {
            return Ok(false);
        };
        let value = entry.value.unwrap_or_default();
        let found = serde_json::from_slice::<FormatRecord>(&value).map_err(|_| {
            // A later version may have other fields; its number stays where it is.
            #[derive(Deserialize)]
            struct Number {
                format: u32,
            }
            let number = serde_json::from_slice::<Number>(&value).map_or(0, |number| number.format);
            ClusterError::Format {
                found: number,
                expected: FORMAT,
            }
        })?;
        self.own_format().check(&found)?;
        Ok(true)
    }

    fn own_format(&self) -> FormatRecord {
        let config = self.config();
        FormatRecord {
            format: FORMAT,
            partitions: config.partitions.get(),
            time_to_live_ms: millis(config.timings()),
        }
    }

    /// All nodes, by name.
    ///
    /// # Errors
    /// NATS fails.
    pub async fn nodes(&self) -> Result<Vec<NodeOverview>, ClusterError> {
        let mut nodes: Vec<(String, NodeRecord, i64)> = Vec::new();
        let mut drained = Vec::new();
        let mut leader: Option<LeaderRecord> = None;
        for entry in self.bucket.list(">").await? {
            let (Some(key), Some(value)) = (ClusterKey::parse(&entry.key), entry.value) else {
                continue;
            };
            let record =
                ClusterRecord::parse(&key, &value).map_err(|_| self.malformed(entry.revision))?;
            match (key, record) {
                (ClusterKey::Node(name), ClusterRecord::Node(record)) => {
                    nodes.push((name, record, entry.stored_ms));
                }
                (ClusterKey::Drain(name), _) => drained.push(name),
                (_, ClusterRecord::Leader(record)) => leader = Some(record),
                _ => {}
            }
        }
        nodes.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        let overview = nodes
            .into_iter()
            .map(|(name, record, stored_ms)| NodeOverview {
                state: record.state,
                is_drained: drained.contains(&name),
                is_leader: leader
                    .as_ref()
                    .is_some_and(|leader| leader.node == name && leader.session == record.session),
                since_ms: record.since_ms,
                renewed_ms: stored_ms,
                clock_skew_ms: record.clock_ms - stored_ms,
                version: record.version,
                name,
            });
        Ok(overview.collect())
    }

    /// Drains a node: its daemon starts no crawls, and gives up the parts that other nodes can take over.
    ///
    /// # Errors
    /// There is no such node, or NATS fails.
    pub async fn drain(&self, node: &str) -> Result<(), ClusterError> {
        self.node_record(node).await?;
        self.change(&ClusterKey::Drain(node.to_owned()), true).await
    }

    /// Ends the draining of a node.
    ///
    /// # Errors
    /// There is no such node, or NATS fails.
    pub async fn undrain(&self, node: &str) -> Result<(), ClusterError> {
        self.node_record(node).await?;
        self.change(&ClusterKey::Drain(node.to_owned()), false)
            .await
    }

    /// Removes a node that has left or died from the list. If its session seems live, this waits until the node renews the
    /// session, or for its time to live: no other node may be there to notice the silence.
    ///
    /// # Errors
    /// There is no such node, it is alive, or NATS fails.
    pub async fn remove(&self, node: &str) -> Result<(), ClusterError> {
        let (record, mut revision) = self.node_record(node).await?;
        let key = ClusterKey::Node(node.to_owned()).to_string();
        let alive = || ClusterError::NodeAlive {
            node: node.to_owned(),
        };
        if record.state == SessionState::Live {
            let time_to_live = self.config().timings().time_to_live;
            let changed = tokio::time::timeout(time_to_live, self.next_revision(&key, revision));
            if let Ok(changed) = changed.await {
                changed?;
                let (record, changed) = self.node_record(node).await?;
                if record.state == SessionState::Live {
                    return Err(alive());
                }
                revision = changed;
            }
        }
        match self.bucket.delete(&key, revision).await {
            Ok(()) => {}
            // It has joined again.
            Err(BucketError::Conflict) => return Err(alive()),
            Err(BucketError::Failed(error)) => return Err(error),
        }
        self.forget_takeover_scope(node).await?;
        self.change(&ClusterKey::Drain(node.to_owned()), false)
            .await
    }

    /// Waits until a key has another revision.
    async fn next_revision(&self, key: &str, known: u64) -> Result<(), ClusterError> {
        let mut watch = self.bucket.watch(&[key]).await?;
        while watch.next().await?.revision <= known {}
        Ok(())
    }

    async fn node_record(&self, node: &str) -> Result<(NodeRecord, u64), ClusterError> {
        let key = ClusterKey::Node(node.to_owned());
        let unknown = || ClusterError::UnknownNode {
            node: node.to_owned(),
        };
        check_name("node", node)?;
        let entry = self
            .bucket
            .read(&key.to_string())
            .await?
            .ok_or_else(unknown)?;
        let value = entry.value.ok_or_else(unknown)?;
        match ClusterRecord::parse(&key, &value) {
            Ok(ClusterRecord::Node(record)) => Ok((record, entry.revision)),
            _ => Err(self.malformed(entry.revision)),
        }
    }

    /// Writes or deletes a key that operators change.
    async fn change(&self, key: &ClusterKey, is_present: bool) -> Result<(), ClusterError> {
        let name = key.to_string();
        for _ in 0..ATTEMPTS_MAX {
            let entry = self.bucket.read(&name).await?;
            let revision = entry.as_ref().map_or(0, |entry| entry.revision);
            if entry.is_some_and(|entry| entry.value.is_some()) == is_present {
                return Ok(());
            }
            if revision == 0 && !is_present {
                return Ok(());
            }
            let changed = match is_present {
                true => self
                    .bucket
                    .write(&name, ClusterRecord::Drain.to_json(), revision)
                    .await
                    .map(drop),
                false => self.bucket.delete(&name, revision).await,
            };
            match changed {
                Ok(()) => return Ok(()),
                Err(BucketError::Conflict) => {}
                Err(BucketError::Failed(error)) => return Err(error),
            }
        }
        Err(contention())
    }

    fn malformed(&self, sequence: u64) -> ClusterError {
        ClusterError::Malformed {
            kind: "record",
            stream: format!("KV_{}", self.bucket_name),
            sequence,
        }
    }
}

impl FormatRecord {
    fn check(&self, found: &FormatRecord) -> Result<(), ClusterError> {
        let setting = |setting, wanted: String, found: String| {
            Err(ClusterError::Setting {
                setting,
                wanted,
                found,
            })
        };
        if found.format != self.format {
            return Err(ClusterError::Format {
                found: found.format,
                expected: self.format,
            });
        }
        if found.partitions != self.partitions {
            return setting(
                "partitions",
                self.partitions.to_string(),
                found.partitions.to_string(),
            );
        }
        if found.time_to_live_ms != self.time_to_live_ms {
            return setting(
                "time-to-live",
                duration(self.time_to_live_ms),
                duration(found.time_to_live_ms),
            );
        }
        Ok(())
    }
}

fn contention() -> ClusterError {
    ClusterError::Unavailable {
        kind: "a change that others make at the same time",
        source: "too many attempts".into(),
    }
}

/// A duration as the configuration has it, with its quotes.
fn duration(milliseconds: u64) -> String {
    match milliseconds % 1_000 {
        0 => format!("\"{}s\"", milliseconds / 1_000),
        _ => format!("\"{milliseconds}ms\""),
    }
}

fn millis(timings: SessionTimings) -> u64 {
    u64::try_from(timings.time_to_live.as_millis()).unwrap_or(u64::MAX)
}

//! Errors of the cluster. The text of each error includes the remedy.

use std::error::Error as StdError;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::jetstream;

use crate::partition::PartitionCountError;

/// Cause of a [`ClusterError`], as reported by the client of NATS.
pub type NatsError = Box<dyn StdError + Send + Sync>;

/// The reason why a node cannot work with its cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A setting is wrong.
    #[error("{0}")]
    Config(String),
    /// The number of partitions is wrong.
    #[error("cluster.partitions")]
    Partitions(#[source] PartitionCountError),
    /// A file of the settings cannot be read.
    #[error("cannot read {}: check cluster.{setting} and the file's permissions", file.display())]
    File {
        /// The setting that names the file.
        setting: &'static str,
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// No server answers.
    #[error(
        "no NATS server answers at {servers}: start nats-server there, or correct cluster.servers"
    )]
    Unreachable {
        /// The addresses.
        servers: String,
        /// The cause of the last attempt.
        #[source]
        source: NatsError,
    },
    /// TLS failed.
    #[error(
        "cannot set up TLS with NATS at {servers}: check the files in [cluster.tls] and the server's certificate"
    )]
    Tls {
        /// The addresses.
        servers: String,
        /// The cause.
        #[source]
        source: NatsError,
    },
    /// The server refuses the credentials.
    #[error("NATS at {servers} refuses {user}: correct {remedy}")]
    Refused {
        /// The addresses.
        servers: String,
        /// The login that was sent.
        user: String,
        /// The settings to correct.
        remedy: &'static str,
    },
    /// The server has no JetStream, or the account may not use it.
    #[error("JetStream is disabled {place}: {remedy}")]
    JetStreamDisabled {
        /// In the server, or for the account.
        place: &'static str,
        /// The change to make.
        remedy: &'static str,
    },
    /// There are fewer servers than replicas.
    #[error(
        "NATS cannot keep {replicas} replicas: run {replicas} servers in one NATS cluster, or set cluster.replicas = 1"
    )]
    Replicas {
        /// The setting.
        replicas: usize,
        /// The cause.
        #[source]
        source: NatsError,
    },
    /// The bucket is of another version of Opilio.
    #[error(
        "the cluster has format {found}, this version of Opilio has {expected}: run the same version on all nodes"
    )]
    Format {
        /// Format of the bucket.
        found: u32,
        /// Format of this program.
        expected: u32,
    },
    /// The cluster was created with other settings.
    #[error(
        "cluster.{setting} is {wanted}, but the cluster was created with {found}: write {found}"
    )]
    Setting {
        /// The setting.
        setting: &'static str,
        /// Its value here.
        wanted: String,
        /// Its value in the cluster.
        found: String,
    },
    /// Another process has the node's name.
    #[error(
        "another process is in the cluster as node {node:?}: stop it, or choose another name in cluster.node"
    )]
    NameInUse {
        /// The name.
        node: String,
    },
    /// The node took too long to join.
    #[error(
        "node {node:?} has not become a member of the cluster within {waited:?}: check that NATS has a leader for stream KV_{bucket}"
    )]
    JoinTimeout {
        /// The name.
        node: String,
        /// The time.
        waited: Duration,
        /// The bucket of the cluster.
        bucket: String,
    },
    /// There is no such node.
    #[error("no node {node:?} in the cluster: `opilio node list` shows the nodes")]
    UnknownNode {
        /// The name.
        node: String,
    },
    /// The node is alive.
    #[error(
        "node {node:?} is alive: drain it with `opilio node drain {node}`, stop it, then remove it"
    )]
    NodeAlive {
        /// The name.
        node: String,
    },
    /// There is a job of this name.
    #[error("the cluster has a job {job:?} already: choose another name")]
    JobExists {
        /// The name.
        job: String,
    },
    /// The job of this name has another file.
    #[error(
        "job {job:?} of the cluster has another {file}: use the same profile, seeds and nodes on all nodes, or another name for the job"
    )]
    OtherFile {
        /// The name.
        job: String,
        /// The file.
        file: String,
    },
    /// There is no job of this name.
    #[error("the cluster has no job {job:?}: check the name, or start the job on one of the nodes")]
    UnknownJob {
        /// The name.
        job: String,
    },
    /// A plugin of the job has another component.
    #[error(
        "plugin {plugin:?} has another component here than in job {job:?} of the cluster (SHA-256 {sha256} there): use the same component on all nodes, or join the job without a profile, which fetches components of files"
    )]
    OtherComponent {
        /// Name of the job.
        job: String,
        /// Name of the plugin in the profile.
        plugin: String,
        /// Digest of the job's component, as hexadecimal digits.
        sha256: String,
    },
    /// The object store has lost a file of the job.
    #[error(
        "the object store of NATS lacks {file:?} of job {job:?} (SHA-256 {digest}): join the job with its profile, which stores the file again"
    )]
    FileMissing {
        /// Name of the job.
        job: String,
        /// The file.
        file: String,
        /// Its SHA-256, as hexadecimal digits.
        digest: String,
    },
    /// A stored file differs from its digest.
    #[error(
        "{file:?} of job {job:?} in the object store of NATS does not have the SHA-256 {digest}: join the job with its profile, which stores the file again"
    )]
    Damaged {
        /// Name of the job.
        job: String,
        /// The file.
        file: String,
        /// Its SHA-256, as hexadecimal digits.
        digest: String,
    },
    /// Another directory has the part.
    #[error(
        "part {part:?} of the job belongs to node {node:?} since epoch {epoch}, and this job directory no longer has it: work with the directory there, or take the part over into a new directory with --take-over {part}"
    )]
    PartTaken {
        /// Name of the part.
        part: String,
        /// The node that has it; empty if no node has.
        node: String,
        /// Epoch of its directory; 0 if no node has it.
        epoch: u64,
    },
    /// Another process works on the part.
    #[error("another process works on part {part:?} of the job: stop it first")]
    PartInUse {
        /// Name of the part.
        part: String,
    },
    /// A new directory would start a part from the beginning although a node has worked on it.
    #[error(
        "node {node:?} has begun part {part:?} of the job: resume the job's directory there, or continue from the newest snapshot with --take-over {part}"
    )]
    PartBegun {
        /// Name of the part.
        part: String,
        /// The node that has it.
        node: String,
    },
    /// No process of the part answers.
    #[error(
        "the process of part {part:?} does not answer: start the job there, or take the part over; `opilio node parts` shows its node"
    )]
    PartSilent {
        /// Name of the part.
        part: String,
    },
    /// A stored message cannot be read.
    #[error(
        "malformed {kind} at sequence {sequence} of stream {stream}: another version may have written it; run the same version on all nodes"
    )]
    Malformed {
        /// Kind of message.
        kind: &'static str,
        /// Name of the stream.
        stream: String,
        /// Its sequence.
        sequence: u64,
    },
    /// A file of a job is too large.
    #[error(
        "a file of {bytes} bytes exceeds the {max} bytes that a file of a job may have: use a smaller one"
    )]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// JetStream has no room.
    #[error(
        "JetStream has no room for {kind}: raise max_file_store of nats-server or the limits of the stream, or free disk"
    )]
    Full {
        /// Kind of message.
        kind: &'static str,
    },
    /// NATS did not answer, or answered with a temporary error.
    #[error("NATS did not accept {kind}: check nats-server and its log, then try again")]
    Unavailable {
        /// Kind of message or request.
        kind: &'static str,
        /// The cause.
        #[source]
        source: NatsError,
    },
}

impl ClusterError {
    /// Returns `true` if the same request may succeed later without any action of an operator.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. } | Self::Full { .. } | Self::Unreachable { .. }
        )
    }

    /// Returns the error for a failed request of this kind.
    pub(crate) fn of_request(kind: &'static str, source: impl Into<NatsError>) -> Self {
        let source = source.into();
        let code = jetstream_code(source.as_ref());
        match code.or_else(|| code_in_text(&source.to_string())) {
            Some(code) if is_full(code, source.as_ref()) => Self::Full { kind },
            Some(10_039 | 10_076) => Self::JetStreamDisabled {
                place: "for the account",
                remedy: "enable it for the account in the configuration of nats-server",
            },
            _ => Self::Unavailable {
                kind,
                source: outermost(source.as_ref()),
            },
        }
    }
}

/// Returns an error without its causes. The texts of the client's errors include their causes, so a chain of them would repeat
/// these.
pub(crate) fn outermost(error: &(dyn StdError + 'static)) -> NatsError {
    error.to_string().into()
}

/// Returns the error code of JetStream from an error's chain of causes. The client stores it in the cause or in the kind, and its
/// kinds lack codes of newer servers.
pub(crate) fn jetstream_code(error: &(dyn StdError + 'static)) -> Option<u64> {
    use jetstream::context::{
        AccountError, AccountErrorKind, CreateStreamError, CreateStreamErrorKind, GetStreamError,
        GetStreamErrorKind,
    };
    use jetstream::stream::{
        ConsumerError, ConsumerErrorKind, LastRawMessageError, LastRawMessageErrorKind, PurgeError,
        PurgeErrorKind,
    };
    macro_rules! code {
        ($error:expr, $($type:ty => $kind:path),*) => {
            $(if let Some(error) = $error.downcast_ref::<$type>()
                && let $kind(inner) = error.kind()
            {
                return Some(inner.error_code().0);
            })*
        };
    }
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<jetstream::Error>() {
            return Some(error.error_code().0);
        }
        code!(error,
            AccountError => AccountErrorKind::JetStream,
            CreateStreamError => CreateStreamErrorKind::JetStream,
            GetStreamError => GetStreamErrorKind::JetStream,
            ConsumerError => ConsumerErrorKind::JetStream,
            LastRawMessageError => LastRawMessageErrorKind::JetStream,
            PurgeError => PurgeErrorKind::JetStream
        );
        cause = error.source();
    }
    None
}

/// Parses the error code of JetStream in the text of an error. Errors of the client's object store have a text instead of a cause.
fn code_in_text(text: &str) -> Option<u64> {
    let (_, code) = text.rsplit_once(", error code ")?;
    code.split(')').next()?.parse().ok()
}

/// Returns `true` if an error reports another last sequence. Servers answer 10071 after a comparison with the store, and 10164
/// while another write of the same subject is in progress (2.12 and later), which `async-nats` 0.51 does not support.
pub(crate) fn is_wrong_sequence(error: &(dyn StdError + 'static)) -> bool {
    matches!(jetstream_code(error), Some(10_071 | 10_164))
}

/// Returns `true` if a storage limit is reached: of memory, account, server or stream.
fn is_full(code: u64, error: &(dyn StdError + 'static)) -> bool {
    let contains = |text: &str| error.to_string().contains(text);
    match code {
        10_002 | 10_023 | 10_028 | 10_047 | 10_122 => true,
        10_077 => {
            contains("maximum bytes exceeded")
                || contains("maximum messages exceeded")
                || contains("no space left")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use async_nats::jetstream::context::{PublishError, PublishErrorKind};

    use super::*;

    fn refusal(code: u64, description: &str) -> PublishError {
        let json = format!(r#"{{"code":400,"err_code":{code},"description":"{description}"}}"#);
        let error: jetstream::Error = serde_json::from_str(&json).unwrap();
        PublishError::with_source(PublishErrorKind::Other, error)
    }

    #[test]
    fn a_wrong_sequence_has_two_codes() {
        let codes = [10_071, 10_164, 10_077].map(|code| is_wrong_sequence(&refusal(code, "")));
        assert_eq!(codes, [true, true, false]);
    }

    #[test]
    fn a_full_store_is_distinguished_from_other_errors() {
        let is_full = |code, description| {
            let error = ClusterError::of_request("a test", refusal(code, description));
            matches!(error, ClusterError::Full { .. })
        };
        assert!(is_full(10_047, "insufficient storage resources available"));
        assert!(is_full(10_077, "maximum bytes exceeded"));
        assert!(!is_full(10_077, "no message found"));
        let text = "failed publishing object chunks: failed getting chunk ack: publish failed: insufficient resources (code 503, error code 10023)";
        let error = ClusterError::of_request("a file", text);
        assert!(matches!(error, ClusterError::Full { .. }), "{error}");
    }
}

//! Settings of a node in a cluster. The daemon reads them from `[cluster]` of its configuration.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::control::SessionTimings;
use crate::error::ClusterError;
use crate::partition::PartitionCount;

/// Longest name of a node: it is part of subjects and names of consumers.
pub const NODE_NAME_BYTES_MAX: usize = 64;

/// Shortest time to live of sessions. With less, a garbage collection in a NATS server would pause nodes.
const TIME_TO_LIVE_MIN: Duration = Duration::from_secs(1);

/// Longest time to live of sessions. The parts of a dead node are idle for at least this time.
const TIME_TO_LIVE_MAX: Duration = Duration::from_secs(600);

/// Maximum replicas of JetStream.
const REPLICAS_MAX: usize = 5;

/// Settings of a node in a cluster.
#[derive(Debug, Clone)]
pub struct ClusterConfig {
    /// Addresses of NATS servers, such as `nats://nats-1:4222`. One is enough: the client learns the other addresses from it.
    pub servers: Vec<String>,
    /// Name of this node, unique in the cluster.
    pub node: String,
    /// Login.
    pub login: NatsLogin,
    /// Certificates. `None`: TLS if the server requires it, with the certificate authorities of the system.
    pub tls: Option<NatsTls>,
    /// Replicas of buckets and streams. 1 by default, for tests; 3 in production.
    pub replicas: usize,
    /// Number of partitions; fixed when the cluster is created.
    pub partitions: PartitionCount,
    /// Time after which the session of a node ends if it is not renewed; fixed when the cluster is created.
    pub time_to_live: Duration,
}

/// Login to NATS.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum NatsLogin {
    /// No login: the server requires none, or identifies the client by its certificate.
    #[default]
    Anonymous,
    /// A credentials file, with a JWT and a key, as `nsc` writes it.
    Credentials(PathBuf),
    /// User and password.
    Password {
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
}

/// Certificates for TLS with NATS, in PEM.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NatsTls {
    /// Certificate authorities, instead of the system's.
    pub authorities: Option<PathBuf>,
    /// Certificate of this client, for servers that ask for one.
    pub certificate: Option<PathBuf>,
    /// Key of the certificate.
    pub key: Option<PathBuf>,
}

impl fmt::Debug for NatsLogin {
    /// Formats the login without its password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => formatter.write_str("anonymous"),
            Self::Credentials(file) => write!(formatter, "credentials {}", file.display()),
            Self::Password { user, .. } => write!(formatter, "user {user}"),
        }
    }
}

impl ClusterConfig {
    /// Creates settings with defaults.
    #[must_use]
    pub fn new(node: impl Into<String>, servers: Vec<String>) -> Self {
        Self {
            servers,
            node: node.into(),
            login: NatsLogin::Anonymous,
            tls: None,
            replicas: 1,
            partitions: PartitionCount::default(),
            time_to_live: SessionTimings::default().time_to_live,
        }
    }

    /// Returns the times of sessions, which are derived from the time to live.
    #[must_use]
    pub fn timings(&self) -> SessionTimings {
        SessionTimings::of(self.time_to_live)
    }

    /// Checks the settings and their relations.
    ///
    /// # Errors
    /// A setting has an invalid value.
    pub fn check(&self) -> Result<(), ClusterError> {
        let wrong = |problem: String| Err(ClusterError::Config(problem));
        if self.servers.is_empty() {
            return wrong("cluster.servers is empty: write the address of a NATS server, such as \"nats://127.0.0.1:4222\"".to_owned());
        }
        check_name("cluster.node", &self.node)?;
        if !(1..=REPLICAS_MAX).contains(&self.replicas) {
            return wrong(format!(
                "cluster.replicas is {}: write 1, or 3 in production",
                self.replicas
            ));
        }
        let time = self.time_to_live;
        if !(TIME_TO_LIVE_MIN..=TIME_TO_LIVE_MAX).contains(&time) {
            return wrong(format!(
                "cluster.time-to-live is {time:?}: write {TIME_TO_LIVE_MIN:?} to {TIME_TO_LIVE_MAX:?}"
            ));
        }
        if let Some(tls) = &self.tls
            && tls.certificate.is_some() != tls.key.is_some()
        {
            return wrong(
                "[cluster.tls] needs certificate and key together: add the missing one".to_owned(),
            );
        }
        Ok(())
    }
}

/// Checks a name that becomes part of subjects and of paths: of a node, of a job, or of a part. `setting` is the kind of name in
/// the error.
///
/// # Errors
/// The name is empty, longer than [`NODE_NAME_BYTES_MAX`], or has other characters than letters, digits, `-` and `_`.
pub fn check_name(setting: &str, name: &str) -> Result<(), ClusterError> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if !name.is_empty() && name.len() <= NODE_NAME_BYTES_MAX && name.chars().all(is_letter) {
        return Ok(());
    }
    Err(ClusterError::Config(format!(
        "invalid {setting} {name:?}: write up to {NODE_NAME_BYTES_MAX} letters, digits, \"-\" and \"_\""
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(change: impl FnOnce(&mut ClusterConfig), expected: &str) {
        let mut config = ClusterConfig::new("node-1", vec!["127.0.0.1".to_owned()]);
        assert!(config.check().is_ok());
        change(&mut config);
        let error = config.check().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn a_wrong_setting_is_named() {
        check(|config| config.servers.clear(), "cluster.servers is empty");
        check(
            |config| config.node = "a.b".to_owned(),
            "invalid cluster.node \"a.b\"",
        );
        check(|config| config.node.clear(), "invalid cluster.node \"\"");
        check(|config| config.replicas = 0, "cluster.replicas is 0");
        check(
            |config| config.time_to_live = Duration::ZERO,
            "cluster.time-to-live is 0ns",
        );
        let half = NatsTls {
            key: Some("k".into()),
            ..NatsTls::default()
        };
        check(
            |config| config.tls = Some(half),
            "certificate and key together",
        );
    }

    #[test]
    fn a_password_is_not_shown() {
        let (user, password) = ("u".to_owned(), "geheim".to_owned());
        let login = NatsLogin::Password { user, password };
        assert_eq!(format!("{login:?}"), "user u");
    }
}

//! `[cluster]` of the daemon's configuration: the NATS servers of a cluster, and this machine's name in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use opilio_cluster::partition::{PARTITIONS_DEFAULT, PartitionCount};
use opilio_cluster::{ClusterConfig, ClusterError, NatsLogin, NatsTls, check_name};
use opilio_profile::parse_duration;
use serde::{Deserialize, Deserializer, de};

use crate::secret_file::read_secret_file;

/// The cluster of a daemon.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClusterFile {
    /// Addresses of NATS servers. One is enough: the client learns the addresses of the other servers from it.
    pub servers: Vec<String>,
    /// Name of this machine, unique in the cluster.
    pub node: String,
    /// A credentials file with a JWT and a key. Default: none.
    pub credentials: Option<PathBuf>,
    /// User of NATS, with `password-file`. Default: none.
    pub user: Option<String>,
    /// A file with the user's password, which others must not be able to read.
    pub password_file: Option<PathBuf>,
    /// Certificates for NATS. Default: none; the system's authorities apply if a server asks for TLS.
    pub tls: Option<ClusterTlsFiles>,
    /// Replicas of all data in NATS. Default 1, the maximum of a single NATS server.
    #[serde(default = "replicas")]
    pub replicas: usize,
    /// Number of partitions of a crawl. Default 1,024. The same on all nodes.
    #[serde(default = "partitions")]
    pub partitions: u16,
    /// Time after which a node that does not renew its session counts as gone. Default `"15s"`. The same on all nodes.
    #[serde(default = "time_to_live", deserialize_with = "duration")]
    pub time_to_live: Duration,
    /// Time after which this daemon takes over parts of shared crawls of a node that is gone or was shut down, and parts that no node
    /// has started. Default: the daemon takes over no parts.
    #[serde(default, deserialize_with = "some_duration")]
    pub take_over_after: Option<Duration>,
    /// Names of the crawls whose parts this daemon takes over; `*` stands for any characters. Default: all crawls of the cluster.
    /// Needs `take-over-after`.
    pub take_over_crawls: Option<Vec<String>>,
    /// Absolute path of the configuration file with this section; empty if the section was not read from a file.
    #[serde(skip)]
    pub config: PathBuf,
}

/// Certificates for TLS with NATS, in PEM.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ClusterTlsFiles {
    /// Certificate authorities, instead of the system's.
    pub authorities: Option<PathBuf>,
    /// Certificate of this machine, for servers that ask for one.
    pub certificate: Option<PathBuf>,
    /// Key of the certificate.
    pub key: Option<PathBuf>,
}

impl ClusterFile {
    /// The settings for a connection. Reads the password.
    ///
    /// # Errors
    /// A setting is wrong, or the password cannot be read.
    pub fn settings(&self) -> Result<ClusterConfig, ClusterError> {
        self.check()?;
        let read = self.password_file.as_ref().map(|file| {
            read_secret_file(file).map_err(|source| ClusterError::File {
                setting: "password-file",
                file: file.clone(),
                source,
            })
        });
        self.with_password(read.transpose()?)
    }

    /// Checks the settings without reading other files.
    ///
    /// # Errors
    /// A setting is wrong.
    pub fn check(&self) -> Result<(), ClusterError> {
        let password = self.password_file.as_ref().map(|_| String::new());
        self.with_password(password)?.check()?;
        self.check_takeovers()
    }

    fn check_takeovers(&self) -> Result<(), ClusterError> {
        let wrong = |problem: String| Err(ClusterError::Config(problem));
        let Some(crawls) = &self.take_over_crawls else {
            return Ok(());
        };
        if self.take_over_after.is_none() {
            return wrong(
                "cluster.take-over-crawls needs cluster.take-over-after: add it".to_owned(),
            );
        }
        if crawls.is_empty() {
            return wrong(
                "cluster.take-over-crawls is empty: name crawls, or remove cluster.take-over-after to take over no part"
                    .to_owned(),
            );
        }
        for crawl in crawls {
            let letters = crawl.replace('*', "");
            let is_all = letters.is_empty() && !crawl.is_empty();
            if !is_all && check_name("name of a crawl", &letters).is_err() {
                return wrong(format!(
                    "invalid name {crawl:?} in cluster.take-over-crawls: write letters, digits, \"-\" and \"_\", and \"*\" for any characters"
                ));
            }
        }
        Ok(())
    }

    /// Reads `[cluster]` of a daemon's configuration.
    ///
    /// # Errors
    /// The file cannot be read, or has no valid `[cluster]`.
    pub fn read(config: &Path) -> Result<ClusterFile, ClusterError> {
        let wrong = |problem: String| {
            ClusterError::Config(format!(
                "cannot read [cluster] of {}: {problem}",
                config.display()
            ))
        };
        let text = std::fs::read_to_string(config).map_err(|problem| wrong(problem.to_string()))?;
        let mut all: toml::Table =
            toml::from_str(&text).map_err(|problem| wrong(problem.message().to_owned()))?;
        let section = all
            .remove("cluster")
            .ok_or_else(|| wrong("the section is missing; add it".to_owned()))?;
        let mut file: ClusterFile = section
            .try_into()
            .map_err(|problem: toml::de::Error| wrong(problem.message().to_owned()))?;
        file.resolve(config);
        Ok(file)
    }

    /// Resolves relative paths in the section against the folder of the configuration file, and stores the path of that file.
    pub fn resolve(&mut self, config: &Path) {
        let folder = config.parent().unwrap_or(Path::new(""));
        self.config = std::path::absolute(config).unwrap_or_else(|_| config.to_owned());
        let own = [&mut self.credentials, &mut self.password_file];
        let tls = self
            .tls
            .iter_mut()
            .flat_map(|tls| [&mut tls.authorities, &mut tls.certificate, &mut tls.key]);
        for file in own.into_iter().chain(tls).flatten() {
            *file = folder.join(&file);
        }
    }

    fn with_password(&self, password: Option<String>) -> Result<ClusterConfig, ClusterError> {
        let wrong = |problem: &str| ClusterError::Config(problem.to_owned());
        let login = match (&self.credentials, &self.user, password) {
            (Some(_), Some(_), _) => {
                return Err(wrong(
                    "cluster.credentials and cluster.user exclude each other: remove one of the two",
                ));
            }
            (_, Some(_), None) => {
                return Err(wrong("cluster.user needs cluster.password-file: add it"));
            }
            (_, None, Some(_)) => {
                return Err(wrong("cluster.password-file needs cluster.user: add it"));
            }
            (Some(file), None, None) => NatsLogin::Credentials(file.clone()),
            (None, Some(user), Some(password)) => NatsLogin::Password {
                user: user.clone(),
                password,
            },
            (None, None, None) => NatsLogin::Anonymous,
        };
        Ok(ClusterConfig {
            login,
            tls: self.tls.as_ref().map(|tls| NatsTls {
                authorities: tls.authorities.clone(),
                certificate: tls.certificate.clone(),
                key: tls.key.clone(),
            }),
            replicas: self.replicas,
            partitions: PartitionCount::new(self.partitions).map_err(ClusterError::Partitions)?,
            time_to_live: self.time_to_live,
            ..ClusterConfig::new(&*self.node, self.servers.clone())
        })
    }
}

fn replicas() -> usize {
    1
}

fn partitions() -> u16 {
    PARTITIONS_DEFAULT
}

fn time_to_live() -> Duration {
    ClusterConfig::new("", Vec::new()).time_to_live
}

fn duration<'d, D: Deserializer<'d>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    parse_duration(&text)
        .map_err(|_| de::Error::custom(format!("{text:?} is not a duration such as \"15s\"")))
}

fn some_duration<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Duration>, D::Error> {
    duration(from).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "servers = [\"nats://127.0.0.1:4222\"]\nnode = \"a\"\n";

    fn parse(more: &str) -> ClusterFile {
        toml::from_str(&format!("{LEAST}{more}")).unwrap()
    }

    #[track_caller]
    fn refused(more: &str, expected: &str) {
        let problem = parse(more).check().unwrap_err();
        let problem = opilio_stacks::chain(&problem);
        assert!(problem.contains(expected), "{problem}");
    }

    #[test]
    fn only_servers_and_node_are_required() {
        let config = parse("").settings().unwrap();
        assert_eq!(config.login, NatsLogin::Anonymous);
        assert_eq!(config.replicas, 1);
        assert_eq!(config.partitions.get(), 1_024);
        assert_eq!(config.time_to_live, Duration::from_secs(15));
        assert_eq!(parse("").take_over_after, None);
        let five = Some(Duration::from_secs(300));
        assert_eq!(parse("take-over-after = \"5m\"\n").take_over_after, five);
    }

    #[test]
    fn take_over_crawls_has_names_or_patterns() {
        let five = "take-over-after = \"5m\"\n";
        let crawls = |list: &str| format!("{five}take-over-crawls = {list}\n");
        let all = "[\"news-*\", \"dk_2026\", \"*\"]";
        parse(&crawls(all)).check().unwrap();
        refused(&crawls("[]"), "is empty: name crawls");
        for wrong in ["", "a b", "news.*", "a/*"] {
            refused(&crawls(&format!("[\"news\", \"{wrong}\"]")), "invalid name");
        }
        refused(
            "take-over-crawls = [\"news\"]\n",
            "needs cluster.take-over-after: add it",
        );
    }

    #[test]
    fn errors_name_the_setting_and_a_remedy() {
        refused(
            "credentials = \"c\"\nuser = \"u\"\n",
            "exclude each other: remove one",
        );
        refused("user = \"u\"\n", "cluster.password-file: add it");
        refused("password-file = \"p\"\n", "cluster.user: add it");
        refused("partitions = 1000\n", "write a power of two");
        refused("replicas = 9\n", "cluster.replicas is 9: write 1");
        refused("[tls]\nkey = \"k\"\n", "certificate and key together");
        refused("time-to-live = \"10ms\"\n", "write 1s to 600s");
        let problem = toml::from_str::<ClusterFile>("servers = []\n").unwrap_err();
        assert!(problem.message().contains("missing field `node`"));
    }

    #[test]
    fn the_section_of_a_daemons_configuration_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("opilio.toml");
        let write = |text: &str| std::fs::write(&config, text).unwrap();
        let refused = || ClusterFile::read(&config).unwrap_err().to_string();
        assert!(refused().contains("opilio.toml"));
        write("listen = \"127.0.0.1:1\"\n");
        assert!(refused().contains("section is missing"));
        write(&format!(
            "listen = \"127.0.0.1:1\"\n[cluster]\n{LEAST}credentials = \"a.creds\"\n"
        ));
        let file = ClusterFile::read(&config).unwrap();
        assert_eq!(file.credentials, Some(dir.path().join("a.creds")));
    }

    #[test]
    fn the_password_is_read_from_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        let file = ClusterFile {
            user: Some("u".to_owned()),
            password_file: Some(path.clone()),
            ..parse("")
        };
        let problem = file.settings().unwrap_err().to_string();
        assert!(problem.contains("check cluster.password-file"), "{problem}");
        std::fs::write(&path, "secret\n").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        let login = NatsLogin::Password {
            user: "u".to_owned(),
            password: "secret".to_owned(),
        };
        assert_eq!(file.settings().unwrap().login, login);
    }
}

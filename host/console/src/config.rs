//! `opilio.toml`: the daemon's configuration. Every setting has a default, so the file may be missing.
//!
//! As in profiles, an unknown setting is an error at its line: a misspelt limit would otherwise have no effect.

mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use opilio_control::{ClusterFile, chain};
use opilio_profile::{EventKind, EventStream, EventStreamFile, Webhook, WebhookFile};
use serde::Deserialize;

use crate::calendar::CalendarEntry;
use crate::folder::{self, JobsFolderError};
use crate::profile_store::ProfileStore;
use crate::window::Window;
use values::{collector, duration, size};

/// Minimum bytes a second for each job. With less, a page takes minutes and servers disconnect.
const JOB_BYTES_LEAST: u64 = 1024;

/// Largest value of `limits.jobs`: each job is a process with a store and plugins.
const JOBS_MAX: usize = 1_000;

/// Largest value of `limits.connections`: more than the ports of an address.
const CONNECTIONS_MAX: usize = 1_000_000;

/// The daemon's configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct DaemonConfig {
    /// The folder of jobs.
    pub jobs: PathBuf,
    /// Folder of the named profiles, which the API offers beside the shipped ones. Unlike profiles sent over the API, those put
    /// there may name programs and files. Default: `.opilio/profiles` in the folder of jobs.
    pub profiles: Option<PathBuf>,
    /// Address to listen on. Default: loopback only, so that other machines cannot reach the daemon unless that is wanted.
    pub listen: SocketAddr,
    /// Host names of the daemon, in addition to its address and those of loopback. Requests under other names are refused. So a
    /// foreign page cannot direct its own name here.
    pub hosts: Vec<String>,
    /// `true` if a token is needed. It can be `false` only on loopback. Then every account on this machine has all rights.
    pub authentication: bool,
    /// File of the hashed tokens. Default: `.opilio/tokens.json` in the folder of jobs.
    pub tokens: Option<PathBuf>,
    /// Certificate and key.
    pub tls: Option<TlsFiles>,
    /// `true` if all clients come through a proxy with TLS, such as an ingress. Then the daemon may listen on other addresses than
    /// loopback without TLS of its own. Default `false`: tokens would be readable on the network between proxy and daemon.
    pub tls_proxy: bool,
    /// Limits for all jobs together.
    pub limits: CommonLimits,
    /// Restart of crawls that died.
    pub restart: Restart,
    /// `true` if crawls end with the daemon. Containers need this, because all their processes end together. The next daemon
    /// resumes them. Default `false`: crawls continue without the daemon.
    pub end_crawls: bool,
    /// Jobs that are created and started at certain times.
    pub calendar: Vec<CalendarEntry>,
    /// Times at which jobs may crawl.
    pub window: Vec<Window>,
    /// Access for clients of Heritrix 3. Default: none, and `/engine` does not exist.
    pub heritrix: Option<HeritrixFile>,
    /// Traces of the daemon's own requests. Crawls use the settings of their profiles.
    pub telemetry: Traces,
    /// URLs that get the states of all jobs and their alerts, by name. Default: none. Profiles can name others for their crawls.
    pub webhooks: BTreeMap<String, WebhookFile>,
    /// Subjects of NATS that get the same, by name. Default: none.
    pub streams: BTreeMap<String, EventStreamFile>,
    /// The cluster that this machine belongs to. Default: none.
    pub cluster: Option<ClusterFile>,
}

/// The destination of request traces.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Traces {
    /// Address of a collector for OTLP over HTTP; `/v1/traces` is added. `None`: no traces.
    #[serde(deserialize_with = "collector")]
    pub otlp: Option<String>,
    /// The share of traced requests, among those without a `traceparent`. Default 1: requests are few.
    pub sample: f64,
    /// Timeout of the collector for one batch of traces. Default `"10s"`.
    #[serde(deserialize_with = "duration")]
    pub timeout: Duration,
}

/// Access for clients of Heritrix 3, which control jobs at `/engine`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HeritrixFile {
    /// Name of their user, who has the role of an operator.
    pub user: String,
    /// A file with the password, which others must not be able to read. It is read when the daemon starts.
    pub password_file: PathBuf,
    /// A base profile for all their configurations, for settings that a `crawler-beans.cxml` leaves open or cannot express.
    pub profile: Option<String>,
}

/// Certificate and key, in PEM. They are read again when one of them changes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TlsFiles {
    /// The certificate, with intermediate ones.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// Limits for all jobs together.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct CommonLimits {
    /// Jobs that crawl at once; others wait for a place. Default 4: each compiles plugins and has a store in memory.
    pub jobs: usize,
    /// Free space below which no job begins. Default `"1GiB"`: about one WARC file.
    #[serde(deserialize_with = "size")]
    pub disk_free: Option<u64>,
    /// Bytes that all jobs receive in a second. Default `"none"`: unlimited.
    #[serde(deserialize_with = "size")]
    pub bandwidth: Option<u64>,
    /// Connections that all jobs have open. Default: limited only by the number of their workers.
    pub connections: Option<usize>,
}

/// Restart of crawls whose process was killed or has crashed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Restart {
    /// Maximum attempts in a row. After ten minutes of crawling the count starts again. Default 5.
    pub attempts: u32,
    /// Pause before the first attempt; each further pause is twice as long. Default `"5s"`.
    #[serde(deserialize_with = "duration")]
    pub pause: Duration,
    /// The longest pause. Default `"10m"`.
    #[serde(deserialize_with = "duration")]
    pub pause_max: Duration,
}

/// The reason why the daemon does not start.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The file has an error.
    #[error("{}:{line}:{column}: {problem}", file.display())]
    Fault {
        /// The file.
        file: PathBuf,
        /// Line, counted from 1.
        line: usize,
        /// Column, counted from 1, in characters.
        column: usize,
        /// The error.
        problem: String,
    },
    /// Settings contradict each other.
    #[error("{0}")]
    Relation(String),
}

impl Default for DaemonConfig {
    fn default() -> DaemonConfig {
        DaemonConfig {
            jobs: "jobs".into(),
            profiles: None,
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8470),
            hosts: Vec::new(),
            authentication: true,
            tokens: None,
            tls: None,
            tls_proxy: false,
            limits: CommonLimits::default(),
            restart: Restart::default(),
            end_crawls: false,
            calendar: Vec::new(),
            window: Vec::new(),
            heritrix: None,
            telemetry: Traces::default(),
            webhooks: BTreeMap::new(),
            streams: BTreeMap::new(),
            cluster: None,
        }
    }
}

impl Default for Traces {
    fn default() -> Traces {
        Traces {
            otlp: None,
            sample: 1.0,
            timeout: Duration::from_secs(10),
        }
    }
}

impl Traces {
    /// The settings in the form of profiles.
    pub fn settings(&self) -> opilio_profile::Telemetry {
        opilio_profile::Telemetry {
            traces: self.otlp.clone(),
            sample: self.sample,
            timeout: self.timeout,
        }
    }
}

impl Default for CommonLimits {
    fn default() -> CommonLimits {
        CommonLimits {
            jobs: 4,
            disk_free: Some(1 << 30),
            bandwidth: None,
            connections: None,
        }
    }
}

impl Default for Restart {
    fn default() -> Restart {
        Restart {
            attempts: 5,
            pause: Duration::from_secs(5),
            pause_max: Duration::from_secs(600),
        }
    }
}

impl DaemonConfig {
    /// Reads a file. Relative paths in it start from its folder.
    ///
    /// # Errors
    /// The file cannot be read, or has an error.
    pub fn load(file: &Path) -> Result<DaemonConfig, ConfigError> {
        let text = std::fs::read_to_string(file).map_err(|source| ConfigError::Read {
            file: file.to_owned(),
            source,
        })?;
        let mut config = DaemonConfig::parse(file, &text)?;
        let folder = file.parent().unwrap_or(Path::new(""));
        let mut paths: Vec<&mut PathBuf> = vec![&mut config.jobs];
        paths.extend(&mut config.profiles);
        paths.extend(&mut config.tokens);
        if let Some(tls) = &mut config.tls {
            paths.extend([&mut tls.certificate, &mut tls.key]);
        }
        if let Some(heritrix) = &mut config.heritrix {
            paths.push(&mut heritrix.password_file);
        }
        for path in paths {
            *path = folder.join(&path);
        }
        if let Some(cluster) = &mut config.cluster {
            cluster.resolve(file);
        }
        let secrets = config.webhooks.values_mut();
        let secrets = secrets.filter_map(|webhook| webhook.secret.as_mut());
        let streams = config.streams.values_mut();
        let secrets = secrets.chain(streams.filter_map(|stream| stream.credentials.as_mut()));
        for file in secrets.filter_map(|secret| secret.file.as_mut()) {
            *file = folder.join(&file).display().to_string();
        }
        Ok(config)
    }

    fn parse(file: &Path, text: &str) -> Result<DaemonConfig, ConfigError> {
        toml::from_str(text).map_err(|problem| {
            let before = &text[..problem.span().map_or(0, |span| span.start.min(text.len()))];
            let line_start = before.rfind('\n').map_or(0, |end| end + 1);
            ConfigError::Fault {
                file: file.to_owned(),
                line: before.matches('\n').count() + 1,
                column: before[line_start..].chars().count() + 1,
                problem: problem.message().to_owned(),
            }
        })
    }

    /// The webhooks, checked.
    ///
    /// # Errors
    /// One of them has an error, or names events that only a crawl sees.
    pub(crate) fn checked_webhooks(&self) -> Result<Vec<Webhook>, ConfigError> {
        let checked = self.webhooks.iter().map(|(name, file)| {
            let webhook = file.checked(name);
            let webhook = webhook.map_err(|problem| format!("webhooks.{name}.{problem}"));
            let webhook = webhook.map_err(ConfigError::Relation)?;
            must_be_seen(&webhook.events, &format!("webhooks.{name}"))?;
            Ok(webhook)
        });
        checked.collect()
    }

    /// The streams, checked.
    ///
    /// # Errors
    /// As for webhooks.
    pub(crate) fn checked_streams(&self) -> Result<Vec<EventStream>, ConfigError> {
        let checked = self.streams.iter().map(|(name, file)| {
            let stream = file.checked(name);
            let stream = stream.map_err(|problem| format!("streams.{name}.{problem}"));
            let stream = stream.map_err(ConfigError::Relation)?;
            must_be_seen(&stream.events, &format!("streams.{name}"))?;
            Ok(stream)
        });
        checked.collect()
    }

    /// Checks the relations between settings.
    ///
    /// # Errors
    /// One of the relations is violated.
    pub fn check(&self) -> Result<(), ConfigError> {
        let relation = |problem: String| Err(ConfigError::Relation(problem));
        self.checked_webhooks()?;
        self.checked_streams()?;
        if let Some(cluster) = &self.cluster {
            let checked = cluster.check();
            checked.map_err(|problem| ConfigError::Relation(chain(&problem)))?;
        }
        let listen = self.listen;
        if self.tls_proxy && self.tls.is_some() {
            return relation(
                "tls-proxy is for requests without TLS, which [tls] refuses: remove one of the two"
                    .to_owned(),
            );
        }
        if !listen.ip().is_loopback() {
            if !self.uses_https() {
                return relation(format!(
                    "{listen} can be reached from other machines, and without TLS others can read tokens: set certificate and key in [tls]; or listen on 127.0.0.1 behind a proxy with TLS; or set tls-proxy = true if only such a proxy can reach the address"
                ));
            }
            if !self.authentication {
                return relation(format!(
                    "{listen} can be reached from other machines, which requires authentication: create tokens with `opilio token new`, or listen on 127.0.0.1"
                ));
            }
        }
        if self.limits.jobs == 0 {
            return relation("limits.jobs is 0, so no job could start; write 1 or more".to_owned());
        }
        let counts = [
            ("jobs", Some(self.limits.jobs), JOBS_MAX),
            ("connections", self.limits.connections, CONNECTIONS_MAX),
        ];
        for (name, count, max) in counts {
            if let Some(count) = count.filter(|count| *count > max) {
                return relation(format!(
                    "limits.{name} is {count}, which is too large; write {max} or less"
                ));
            }
        }
        let jobs = self.limits.jobs;
        if let Some(connections) = self.limits.connections.filter(|most| *most < jobs) {
            return relation(format!(
                "limits.connections is {connections}, but each of {jobs} jobs (limits.jobs) needs one"
            ));
        }
        let least = jobs as u64 * JOB_BYTES_LEAST;
        if let Some(bandwidth) = self.limits.bandwidth.filter(|most| *most < least) {
            return relation(format!(
                "limits.bandwidth is {bandwidth} bytes a second, too few for {jobs} jobs (limits.jobs): write \"{least}B\" or more, or \"none\""
            ));
        }
        if !(0.0..=1.0).contains(&self.telemetry.sample) {
            let sample = self.telemetry.sample;
            return relation(format!(
                "invalid telemetry.sample {sample}; write a number from 0 to 1"
            ));
        }
        if self.restart.pause > self.restart.pause_max {
            return relation("restart.pause is longer than restart.pause-max".to_owned());
        }
        let is_user = |user: &str| !user.is_empty() && !user.contains([':', '"', '\\']);
        if let Some(heritrix) = &self.heritrix
            && !is_user(&heritrix.user)
        {
            return relation(format!(
                "invalid heritrix.user {:?}: not a user name for HTTP authentication",
                heritrix.user
            ));
        }
        let mut names = BTreeSet::new();
        for entry in &self.calendar {
            if !names.insert(&entry.name) {
                return relation(format!(
                    "two calendar entries have the name {:?}",
                    entry.name
                ));
            }
            let name = &entry.name;
            let no_job = |problem| format!("invalid job name template {:?}: {problem}", entry.job);
            let problem = match entry.first_name() {
                Ok(None) => {
                    return relation(format!(
                        "calendar entry {name:?}: the time in cron never occurs; correct its day and month"
                    ));
                }
                Ok(Some(job)) if !folder::is_name(&job) => JobsFolderError::Name(job).to_string(),
                Ok(Some(_)) => match entry.repeated_name() {
                    Ok(None) => continue,
                    Ok(Some(job)) => format!("several of its jobs would have the name {job:?}"),
                    Err(problem) => no_job(problem),
                },
                Err(problem) => no_job(problem),
            };
            return relation(format!(
                "calendar entry {name:?}: {problem}; use the time in job, as in \"{name}-%Y-%m-%d\""
            ));
        }
        Ok(())
    }

    /// Returns `true` if clients use HTTPS: with the daemon, or with a proxy in front of it.
    pub(crate) fn uses_https(&self) -> bool {
        self.tls.is_some() || self.tls_proxy
    }

    /// The daemon's own folder.
    pub fn own(&self) -> PathBuf {
        self.jobs.join(".opilio")
    }

    /// The store of named profiles.
    pub fn profile_store(&self) -> ProfileStore {
        let default = || self.own().join("profiles");
        ProfileStore::new(self.profiles.clone().unwrap_or_else(default))
    }

    /// Path of the token file.
    pub fn token_file(&self) -> PathBuf {
        let default = || self.own().join("tokens.json");
        self.tokens.clone().unwrap_or_else(default)
    }
}

/// Refuses kinds of events that only a crawl sees. `receiver` is the name of the table.
fn must_be_seen(kinds: &BTreeSet<EventKind>, receiver: &str) -> Result<(), ConfigError> {
    let is_seen = |kind: &EventKind| matches!(kind, EventKind::Job | EventKind::Alert);
    match kinds.iter().all(is_seen) {
        true => Ok(()),
        false => Err(ConfigError::Relation(format!(
            "{receiver}.events may have \"job\" and \"alert\"; name receivers of \"file\" and \"capture\" in profiles"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str) -> String {
        let config = DaemonConfig::parse(Path::new("opilio.toml"), text);
        config
            .and_then(|config| config.check())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn errors_have_line_and_column() {
        for (text, expected) in [
            (
                "listen = \"127.0.0.1:1\"\nlisten-adress = 1\n",
                "opilio.toml:2:1: unknown field `listen-adress`",
            ),
            (
                "[limits]\ndisk-free = \"10 apples\"\n",
                "opilio.toml:2:13: \"10 apples\" is not a size",
            ),
            (
                "[telemetry]\notlp = \"collector:4317\"\n",
                "opilio.toml:2:8: not an address: \"collector:4317\"",
            ),
            (
                "[restart]\npause = \"soon\"\n",
                "opilio.toml:2:9: \"soon\" is not a duration",
            ),
            (
                "[[window]]\njobs = [\"a\"]\ntimes = [\"25:00-26:00\"]\n",
                "opilio.toml:3:",
            ),
            (
                "[[calendar]]\nname = \"a\"\ncron = \"every day\"\nprofile = \"snapshot\"\njob = \"a\"\n",
                "opilio.toml:3:",
            ),
        ] {
            let problem = refused(text);
            assert!(problem.starts_with(expected), "{problem}");
        }
    }

    #[test]
    fn shipped_configurations_are_valid() {
        let deploy = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy"));
        for file in [
            "opilio.toml",
            "opilio-container.toml",
            "kubernetes/opilio.toml",
            "cluster/opilio.toml",
            "cluster/kubernetes/opilio.toml",
        ] {
            let config = DaemonConfig::load(&deploy.join(file)).unwrap();
            let checked = config.check();
            checked.unwrap_or_else(|problem| panic!("{file}: {problem}"));
        }
    }

    #[test]
    fn common_limits_must_suffice_for_each_job() {
        let problem = refused("[limits]\njobs = 4\nconnections = 3\n");
        assert!(
            problem.contains("each of 4 jobs (limits.jobs) needs one"),
            "{problem}"
        );
        let problem = refused("[limits]\njobs = 4\nbandwidth = \"4000B\"\n");
        assert!(problem.contains("write \"4096B\" or more"), "{problem}");
        let problem = refused("[limits]\njobs = 9223372036854775807\nbandwidth = \"1GiB\"\n");
        assert!(problem.contains("write 1000 or less"), "{problem}");
        let problem = refused("[limits]\nconnections = 1000001\n");
        assert!(problem.contains("write 1000000 or less"), "{problem}");
        let enough = "[limits]\njobs = 4\nconnections = 4\nbandwidth = \"4KiB\"\n";
        let config = DaemonConfig::parse(Path::new("x"), enough).unwrap();
        config.check().unwrap();
        assert_eq!(config.limits.bandwidth, Some(4096));
    }

    #[test]
    fn jobs_of_a_calendar_entry_have_different_names() {
        let of = |job: &str| {
            format!(
                "[[calendar]]\nname = \"dk\"\ncron = \"0 3 * * *\"\nprofile = \"snapshot\"\njob = \"{job}\"\n"
            )
        };
        let problem = refused(&of("dk"));
        assert!(
            problem.contains("several of its jobs would have the name \"dk\"")
                && problem.contains("\"dk-%Y-%m-%d\""),
            "{problem}"
        );
        let problem = refused(&of("dk-%Y-%!"));
        assert!(problem.contains("template \"dk-%Y-%!\""), "{problem}");
        // The error is reported at the start, not at the first occurrence.
        let problem = refused(&of("dk/%Y-%m-%d"));
        assert!(
            problem.contains("invalid job name \"dk/2024-01-01\""),
            "{problem}"
        );
        let never = of("dk-%Y-%m-%d").replace("0 3 * * *", "0 3 31 2 *");
        assert!(refused(&never).contains("the time in cron never occurs"));
        let config = DaemonConfig::parse(Path::new("x"), &of("dk-%Y-%m-%d"));
        config.unwrap().check().unwrap();
    }

    #[test]
    fn addresses_beyond_loopback_need_tls_and_tokens() {
        assert!(refused("listen = \"0.0.0.0:8470\"").contains("set certificate and key in [tls]"));
        let tls = "[tls]\ncertificate = \"a\"\nkey = \"b\"\n";
        let open = format!("listen = \"[::]:8470\"\nauthentication = false\n{tls}");
        assert!(refused(&open).contains("opilio token new"));
        for with in [tls, "tls-proxy = true"] {
            let config =
                DaemonConfig::parse(Path::new("x"), &format!("listen = \"[::]:8470\"\n{with}"));
            config.unwrap().check().unwrap();
        }
        DaemonConfig::default().check().unwrap();
        let open = "listen = \"[::]:8470\"\nauthentication = false\ntls-proxy = true";
        assert!(refused(open).contains("opilio token new"));
        assert!(refused(&format!("tls-proxy = true\n{tls}")).contains("remove one of the two"));
    }
}

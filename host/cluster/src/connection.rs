//! The connection to NATS, and the state of the link.

use std::io::{ErrorKind, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::context::AccountErrorKind;
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event};
use tokio::sync::watch;

use crate::config::{ClusterConfig, NatsLogin};
use crate::error::{ClusterError, NatsError, outermost};

/// Time limit for a connection, including TLS and login.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// Maximum pause between two attempts to reconnect.
const RECONNECT_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Time limit of requests that store data. An election of a leader in NATS takes up to four seconds.
const DATA_REQUEST_MAX: Duration = Duration::from_secs(10);

/// A connection to NATS. It reconnects automatically. Clones share the connection.
#[derive(Clone)]
pub struct ClusterConnection {
    pub(crate) config: Arc<ClusterConfig>,
    pub(crate) client: Client,
    /// Client for sessions, with a short time limit: late answers are useless.
    pub(crate) control: Context,
    /// Client for links, commands and files.
    pub(crate) data: Context,
    link: watch::Receiver<LinkState>,
}

/// State of the link to NATS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkState {
    /// `true` if a server is connected.
    pub is_up: bool,
    /// Number of interruptions so far.
    pub interruptions: u64,
}

impl std::fmt::Debug for ClusterConnection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ClusterConnection")
            .field("node", &self.config.node)
            .field("link", &*self.link.borrow())
            .finish_non_exhaustive()
    }
}

impl ClusterConnection {
    /// Connects, and checks that JetStream can be used. Creates nothing.
    ///
    /// # Errors
    /// A setting is wrong, no server answers, it refuses the login, or JetStream is disabled.
    pub async fn open(config: ClusterConfig) -> Result<Self, ClusterError> {
        config.check()?;
        let renewal = config.timings().renewal;
        let (sender, link) = watch::channel(LinkState {
            is_up: true,
            interruptions: 0,
        });
        let options = options(&config).await?;
        let options = options
            .name(format!("opilio {}", config.node))
            .connection_timeout(CONNECT_MAX)
            // A connection that breaks without an error is noticed after two intervals.
            .ping_interval(renewal)
            .reconnect_delay_callback(|attempts| {
                let pause = Duration::from_millis(20)
                    .saturating_mul(attempts.try_into().unwrap_or(u32::MAX));
                pause.min(RECONNECT_PAUSE_MAX)
            })
            .event_callback(move |event| {
                sender.send_modify(|state| match event {
                    Event::Connected => state.is_up = true,
                    Event::Disconnected if state.is_up => {
                        state.is_up = false;
                        state.interruptions += 1;
                    }
                    Event::Closed => state.is_up = false,
                    _ => {}
                });
                std::future::ready(())
            });
        let connected = options.connect(config.servers.as_slice()).await;
        let client = connected.map_err(|error| connect_error(&config, error))?;
        let mut control = jetstream::new(client.clone());
        control.set_timeout(renewal);
        let mut data = jetstream::new(client.clone());
        data.set_timeout(DATA_REQUEST_MAX);
        check_jetstream(&data).await?;
        Ok(Self {
            config: Arc::new(config),
            client,
            control,
            data,
            link,
        })
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &ClusterConfig {
        &self.config
    }

    /// The state of the link, and its changes.
    #[must_use]
    pub fn link(&self) -> watch::Receiver<LinkState> {
        self.link.clone()
    }

    /// Number of interruptions so far, for [`Self::reconnected`].
    #[must_use]
    pub fn interruptions(&self) -> u64 {
        self.link.borrow().interruptions
    }

    /// Waits until a server is connected and there were other interruptions than `known`. The server may have lost messages
    /// meanwhile.
    pub async fn reconnected(&self, known: u64) {
        let mut link = self.link.clone();
        let back = |state: &LinkState| state.is_up && state.interruptions != known;
        let is_closed = link.wait_for(back).await.is_err();
        if is_closed {
            std::future::pending::<()>().await;
        }
    }
}

async fn options(config: &ClusterConfig) -> Result<ConnectOptions, ClusterError> {
    let mut options = match &config.login {
        NatsLogin::Anonymous => ConnectOptions::new(),
        NatsLogin::Password { user, password } => {
            ConnectOptions::with_user_and_password(user.clone(), password.clone())
        }
        NatsLogin::Credentials(file) => {
            let read = ConnectOptions::with_credentials_file(file).await;
            read.map_err(|source| file_error("credentials", file, source))?
        }
    };
    if let Some(tls) = &config.tls {
        options = options.require_tls(true);
        if let Some(file) = &tls.authorities {
            check_readable("tls.authorities", file)?;
            options = options.add_root_certificates(file.clone());
        }
        if let (Some(certificate), Some(key)) = (&tls.certificate, &tls.key) {
            check_readable("tls.certificate", certificate)?;
            check_readable("tls.key", key)?;
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
    }
    Ok(options)
}

/// Checks that the files for TLS can be read. The client reads them while it connects, and its error names neither file nor cause.
fn check_readable(setting: &'static str, file: &Path) -> Result<(), ClusterError> {
    let read = std::fs::File::open(file).and_then(|mut open| open.read(&mut [0]));
    read.map(drop)
        .map_err(|source| file_error(setting, file, source))
}

fn file_error(setting: &'static str, file: &Path, source: std::io::Error) -> ClusterError {
    ClusterError::File {
        setting,
        file: file.to_owned(),
        source,
    }
}

fn connect_error(config: &ClusterConfig, error: async_nats::ConnectError) -> ClusterError {
    let servers = config.servers.join(", ");
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            let (user, remedy) = match &config.login {
                NatsLogin::Anonymous => (
                    "a client without credentials".to_owned(),
                    "cluster.credentials, or cluster.user and cluster.password-file",
                ),
                NatsLogin::Credentials(file) => (
                    format!("the credentials in {}", file.display()),
                    "cluster.credentials",
                ),
                NatsLogin::Password { user, .. } => (
                    format!("user {user:?}"),
                    "cluster.user and cluster.password-file",
                ),
            };
            ClusterError::Refused {
                servers,
                user,
                remedy,
            }
        }
        ConnectErrorKind::Tls => {
            let source = outermost(&error);
            ClusterError::Tls { servers, source }
        }
        ConnectErrorKind::ServerParse => ClusterError::Config(format!(
            "invalid address in cluster.servers ({servers}): write addresses such as \"nats://127.0.0.1:4222\""
        )),
        _ if is_tls_failure(&error) => {
            let source = outermost(&error);
            ClusterError::Tls { servers, source }
        }
        _ => {
            let source = outermost(&error);
            ClusterError::Unreachable { servers, source }
        }
    }
}

/// Returns `true` for a failed TLS handshake: an I/O error whose cause is an error of rustls.
fn is_tls_failure(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<std::io::Error>()
            && io.kind() == ErrorKind::InvalidData
        {
            return true;
        }
        cause = error.source();
    }
    false
}

async fn check_jetstream(jetstream: &Context) -> Result<(), ClusterError> {
    let Err(error) = jetstream.query_account().await else {
        return Ok(());
    };
    Err(match error.kind() {
        AccountErrorKind::JetStreamUnavailable => ClusterError::JetStreamDisabled {
            place: "in nats-server",
            remedy: "start nats-server with -js, or check its log if its disk was full",
        },
        _ => ClusterError::of_request("a question about the account", NatsError::from(error)),
    })
}

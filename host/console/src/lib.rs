//! The daemon: many jobs, their REST API and the web console.
//!
//! ```text
//! server ─► guard (access control) ─► api, assets
//!                    │
//!                  daemon ◄── supervisor (begins, restarts, pauses) ◄── calendar, window
//!                    │
//!        folder, overview, asking, process ─► directories and sockets of jobs
//! ```
//! The daemon itself does not crawl. Each job has a process of its own, which does not depend on the daemon. The daemon gets all
//! information on a job from the job's directory and socket. So an upgrade of the daemon stops no crawl, and a crashed crawl does
//! not affect others.

mod config;

mod access;
mod api;
mod assets;
mod audit;
mod calendar;
mod clock;
mod command_sender;
mod connections;
mod daemon;
mod file_tasks;
mod folder;
mod guard;
mod heritrix;
mod heritrix_account;
mod input;
mod metrics;
mod node;
mod orders;
mod overview;
mod own_file;
mod problem;
mod process;
mod profile_store;
mod reach;
mod request_spans;
mod server;
mod share;
mod supervisor;
mod takeover;
mod timeouts;
mod tls;
mod webhooks;
mod window;

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use opilio_cluster::ClusterError;
use opilio_control::{ClusterFile, chain};
use opilio_crawl::crawl_events::Events;
use tokio::net::TcpListener;

pub use access::{Role, TokenRecord, Tokens};
pub use api::document;
pub use api::pywb::{REPLAY_ADDRESS, REPLAY_FOLDER, program_in_path};
pub use calendar::CalendarEntry;
pub use clock::Clock;
pub use config::{
    CommonLimits, ConfigError, DaemonConfig, HeritrixFile, Restart, TlsFiles, Traces,
};
pub use folder::{Folder, JobsFolderError, NewJob};
pub use node::{ListedNode, NodeState};
pub use orders::Orders;
pub use overview::{JobOverview, job_overviews};
pub use process::{PROCESS_LOG, begin, is_awaited, is_starting, last_output};
pub use profile_store::{
    ChangeNote, ExpectedProfile, ProfileChange, ProfileStore, ProfileStoreError, ProfileSummary,
    ProfileVersion, StoredProfile, profile_difference,
};
pub use window::Window;

use access::Access;
use audit::Audit;
use calendar::HandledOccurrences;
use daemon::Daemon;
use heritrix_account::HeritrixAccount;
use node::ClusterNode;
use supervisor::Supervisor;

/// A daemon that has opened its sockets and does not serve requests yet.
pub struct Console {
    daemon: Daemon,
    events: Events,
    listener: TcpListener,
    // Kept open for its lock, which the system releases at the end of the process.
    _lock: File,
}

/// The reason why the daemon does not start.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// The configuration is inconsistent.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The folder of jobs cannot be used.
    #[error(transparent)]
    Folder(#[from] JobsFolderError),
    /// There is no token, so no user could sign in.
    #[error(
        "there are no tokens, and without one nobody can sign in: create one with `opilio token new NAME --role admin`, or pass --no-auth if every account of this machine may have full access"
    )]
    NoTokens,
    /// Another daemon supervises these jobs.
    #[error("another daemon manages the jobs in {}", .0.display())]
    Taken(PathBuf),
    /// The daemon cannot join its cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Certificate or key cannot be read, or do not fit each other.
    #[error(
        "cannot use [tls]: {0}; the user that runs the daemon must be able to read certificate and key, and the key must be that of the certificate"
    )]
    Tls(io::Error),
    /// The file system reports an error, or a file of the daemon is damaged.
    #[error("cannot use {}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl Console {
    /// Checks the configuration, listens, and joins the cluster, if there is one. `program` is the binary that crawls.
    ///
    /// # Errors
    /// [`ConsoleError`]; then the daemon has not started.
    pub async fn open(
        config: DaemonConfig,
        program: PathBuf,
        component_cache: Option<PathBuf>,
    ) -> Result<Console, ConsoleError> {
        config.check()?;
        let folder = Folder::open(&config.jobs, component_cache)?;
        let own = config.own();
        std::fs::create_dir_all(&own).map_err(failed(&own))?;
        let lock = lock(&own)?;
        let tokens = config.token_file();
        let access = Access::new(tokens.clone()).map_err(failed(&tokens))?;
        let audit = Audit::open(&own).map_err(failed(&own))?;
        // Errors in the file must be found before the daemon announces its address.
        let handled = own.join("calendar.json");
        HandledOccurrences::read(&handled).map_err(failed(&handled))?;
        let events = Events::start(&config.checked_webhooks()?, &config.checked_streams()?);
        let events = events.map_err(|problem| ConfigError::Relation(chain(&problem)))?;
        let address = config.listen;
        let needs_token = config.authentication;
        let account = config.heritrix.as_ref().map(|file| {
            let opened = HeritrixAccount::open(file);
            opened.map_err(failed(&file.password_file))
        });
        let cluster = config.cluster.as_ref().map(ClusterFile::settings);
        let cluster = cluster.transpose()?;
        let mut daemon = Daemon::new(config, folder, program, account.transpose()?, access, audit);
        if needs_token && !daemon.access.has_tokens() {
            return Err(ConsoleError::NoTokens);
        }
        if let Some(tls) = &daemon.config.tls {
            tls.check().map_err(ConsoleError::Tls)?;
        }
        let listener = TcpListener::bind(address)
            .await
            .map_err(|source| ConsoleError::Listen { address, source })?;
        // The daemon joins last, so that a daemon that cannot start does not take the node's name.
        if let Some(cluster) = cluster {
            daemon.node = Some(ClusterNode::join(cluster).await?);
        }
        Ok(Console {
            daemon,
            events,
            listener,
            _lock: lock,
        })
    }

    /// Sets the clock of calendar and windows, in place of the machine's.
    pub fn with_clock(mut self, clock: Clock) -> Console {
        self.daemon.clock = clock;
        self
    }

    /// Returns the address that the daemon listens on.
    ///
    /// # Errors
    /// The operating system does not report the address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves requests and supervises jobs until `ended`. Then crawls continue, unless [`DaemonConfig::end_crawls`] is set, in
    /// which case they are stopped and waited for.
    ///
    /// # Errors
    /// The calendar's file cannot be read, or certificate or key have become unreadable since [`Console::open`].
    pub async fn run(self, ended: impl Future<Output = ()>) -> io::Result<()> {
        let daemon = Arc::new(self.daemon);
        let supervisor = Supervisor::new(daemon.clone())?;
        let supervising = tokio::spawn(supervisor.run());
        let takeovers = tokio::spawn(takeover::keep(daemon.clone()));
        let sending = tokio::spawn(webhooks::send_events(daemon.clone(), self.events));
        let serving = async {
            let serving = server::serve(&daemon, self.listener);
            let mut serving = std::pin::pin!(serving);
            let served = tokio::select! {
                served = &mut serving => served,
                () = ended => {
                    daemon.closing.send_replace(true);
                    serving.await
                }
            };
            daemon.closing.send_replace(true);
            served
        };
        // Crawls are ended without waiting for answers in progress.
        let (served, supervised) = tokio::join!(serving, supervising);
        supervised.map_err(io::Error::other)?;
        sending.await.map_err(io::Error::other)?;
        // An unfinished takeover would leave a job that this node's next daemon does not start.
        takeovers.abort();
        if let Some(node) = &daemon.node {
            node.leave().await;
        }
        served
    }
}

/// Returns `true` if a daemon supervises the jobs of a folder, so that their orders are carried out.
pub fn is_supervised(folder: &Path) -> bool {
    let file = folder.join(".opilio").join("lock");
    File::open(file)
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Wraps a file system error with its path.
fn failed(path: &Path) -> impl Fn(io::Error) -> ConsoleError {
    |source| ConsoleError::Io {
        path: path.to_owned(),
        source,
    }
}

fn lock(own: &Path) -> Result<File, ConsoleError> {
    let path = own.join("lock");
    let failed = failed(&path);
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).read(true).write(true);
    let file = file.open(&path).map_err(&failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(ConsoleError::Taken(own.parent().unwrap_or(own).to_owned()))
        }
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

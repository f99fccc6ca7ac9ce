//! The daemon: many jobs, their REST API and the web console.
//!
//! ```text
//! server ─► guard (who may) ─► api, assets
//!                               │
//!                             daemon ◄── supervisor (begins, begins again, pauses) ◄── calendar, window
//!                               │
//!                folder, overview, asking, process ─► directories and sockets of jobs
//! ```
//! It crawls nothing itself. Each job is a process of its own that goes on whatever becomes of the daemon, and all that is known
//! of it comes from its directory and its socket; so a daemon that is upgraded stops no crawl, and a crawl that dies takes
//! nobody along.

mod config;

mod access;
mod api;
mod asking;
mod assets;
mod audit;
mod calendar;
mod clock;
mod connections;
mod daemon;
mod folder;
mod guard;
mod heritrix;
mod input;
mod metrics;
mod orders;
mod overview;
mod pace;
mod problem;
mod process;
mod server;
mod share;
mod supervisor;
mod tls;
mod traced;
mod window;
mod written;

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpListener;

pub use access::{Role, TokenRecord, Tokens};
pub use api::document;
pub use calendar::CalendarEntry;
pub use clock::Clock;
pub use config::{Config, ConfigError, HeritrixFile, Limits, Restart, TlsFiles, Traces};
pub use folder::{Folder, FolderError, NewJob};
pub use orders::Orders;
pub use overview::{JobOverview, JobState, glance};
pub use process::{PROCESS_LOG, begin, is_awaited, is_on_its_way, last_words};
pub use window::Window;

use access::Access;
use audit::Audit;
use calendar::SeenTo;
use daemon::Daemon;
use heritrix::Door;
use supervisor::Supervisor;

/// A daemon that listens and has not begun to serve.
pub struct Console {
    daemon: Daemon,
    listener: TcpListener,
    // Held for its lock, which the system releases with the process.
    _lock: File,
}

/// Why there is no daemon.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// What it was told does not go together.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The folder of jobs cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Nobody could sign in.
    #[error(
        "there is no token yet, so nobody could sign in: make one with `opilio token new NAME --role admin`, or give --no-auth where everybody with an account on this machine may do everything"
    )]
    NoTokens,
    /// Another daemon sees to these jobs.
    #[error("another daemon sees to the jobs in {}", .0.display())]
    Taken(PathBuf),
    /// It cannot listen there.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file system refused, or a file of the daemon's is damaged.
    #[error("cannot use {}", path.display())]
    Io {
        /// What.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Console {
    /// Checks what it is told, and listens. `program` is the binary that crawls.
    ///
    /// # Errors
    /// [`ConsoleError`]; then nothing was begun.
    pub async fn open(
        config: Config,
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
        // A file that is none must not be found after somebody was told where the daemon listens.
        let seen_to = own.join("calendar.json");
        SeenTo::read(&seen_to).map_err(failed(&seen_to))?;
        let address = config.listen;
        let needs_token = config.authentication;
        let door = config.heritrix.as_ref().map(|file| {
            let opened = Door::open(file);
            opened.map_err(failed(&file.password_file))
        });
        let daemon = Daemon::new(config, folder, program, door.transpose()?, access, audit);
        if needs_token && !daemon.access.has_tokens() {
            return Err(ConsoleError::NoTokens);
        }
        let listener = TcpListener::bind(address)
            .await
            .map_err(|source| ConsoleError::Listen { address, source })?;
        Ok(Console {
            daemon,
            listener,
            _lock: lock,
        })
    }

    /// Calendar and windows go by this clock rather than by the machine's.
    pub fn by_the_clock(mut self, clock: Clock) -> Console {
        self.daemon.clock = clock;
        self
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves and sees to the jobs until `ended`. Jobs go on then, unless [`Config::end_crawls`] has them end, which is waited
    /// for.
    ///
    /// # Errors
    /// Certificate or key cannot be read, or the calendar's file.
    pub async fn run(self, ended: impl Future<Output = ()>) -> io::Result<()> {
        let daemon = Arc::new(self.daemon);
        let supervisor = Supervisor::new(daemon.clone())?;
        let supervising = tokio::spawn(supervisor.run());
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
        // Crawls that are to end do not wait for answers that are under way.
        let (served, supervised) = tokio::join!(serving, supervising);
        supervised.map_err(io::Error::other)?;
        served
    }
}

/// Whether a daemon sees to the jobs of a folder, and so to what is wanted of them.
pub fn is_seen_to(folder: &Path) -> bool {
    let file = folder.join(".opilio").join("lock");
    File::open(file)
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// What the file system refused, and where.
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

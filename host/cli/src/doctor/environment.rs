//! The facts about a machine that the checks examine. Tests construct them.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use opilio_console::ListedNode;

/// All facts.
#[derive(Clone, Debug)]
pub(super) struct Environment {
    pub(super) limits: Limits,
    pub(super) memory: Memory,
    pub(super) processors: u64,
    /// The folder of jobs.
    pub(super) jobs: Folder,
    /// The folder of compiled components; `None`: the user has no cache directory.
    pub(super) cache: Option<Folder>,
    pub(super) lookup: Lookup,
    pub(super) clock: Clock,
    pub(super) certificates: Certificates,
    pub(super) chromium: Chromium,
    /// The daemon; `None`: it has no configuration file here.
    pub(super) daemon: Option<Daemon>,
    /// The cluster of the daemon's configuration, if it has one.
    pub(super) cluster: Option<NatsCluster>,
}

/// Limits of a process. `None`: unlimited, or not reported by the system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) open_files: Option<u64>,
    /// The limit to which a process may raise its own.
    pub(super) open_files_hard: Option<u64>,
    /// Processes and threads of the user, or of the cgroup.
    pub(super) processes: Option<u64>,
    pub(super) address_space: Option<u64>,
    pub(super) file_size: Option<u64>,
}

/// Memory in bytes. `None`: not reported by the system.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    pub(super) total: Option<u64>,
    /// Memory that can be allocated without swapping.
    pub(super) available: Option<u64>,
    /// Limit of the cgroup: of the container or the unit.
    pub(super) cgroup: Option<u64>,
}

/// A folder, or the nearest one above it if it is missing.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// Free bytes for users other than root.
    pub(super) free: Option<u64>,
    /// Free inodes; `None`: the file system has no limit.
    pub(super) free_inodes: Option<u64>,
    pub(super) file_system: Option<FileSystem>,
    pub(super) no_exec: bool,
    /// Time for a small file to reach the disk, or the operation that failed.
    pub(super) sync: Result<Duration, String>,
}

/// File systems that differ for a crawl from a local disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileSystem {
    Network(&'static str),
    /// Lost at the end of the container.
    Overlay,
    /// Lost when the machine stops.
    Memory,
}

/// A look-up of a host name.
#[derive(Clone, Debug)]
pub(super) struct Lookup {
    pub(super) host: String,
    /// Name servers of the profile, or of `/etc/resolv.conf`.
    pub(super) servers: Vec<String>,
    pub(super) answer: Result<Answer, String>,
}

#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) addresses: Vec<IpAddr>,
    pub(super) time: Duration,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    /// `true` if a time service keeps the clock; `None`: not reported by the system.
    pub(super) is_synchronised: Option<bool>,
    /// Time since this program was written to disk. A negative time means that the clock is behind.
    pub(super) since_program: Option<jiff::SignedDuration>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Certificates {
    pub(super) roots: usize,
    pub(super) problems: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Chromium {
    /// `true` if the profile renders pages.
    pub(super) is_needed: bool,
    /// Version and path of Chromium, or the reason why it cannot be used, with the remedy.
    pub(super) found: Result<String, String>,
}

/// NATS, and the nodes that use it.
#[derive(Clone, Debug)]
pub(super) struct NatsCluster {
    /// Addresses of the servers.
    pub(super) servers: String,
    /// Nodes of the cluster, or the reason why they are unknown. Empty: no node has ever joined.
    pub(super) nodes: Result<Vec<ListedNode>, String>,
}

/// The daemon, as its configuration file describes it.
#[derive(Clone, Debug)]
pub(super) struct Daemon {
    pub(super) file: PathBuf,
    /// An error in the file, or in certificate and key.
    pub(super) problem: Option<String>,
    pub(super) address: SocketAddr,
    /// Number of tokens; `None`: no token is needed.
    pub(super) tokens: Option<Result<usize, String>>,
    pub(super) port: Port,
}

/// The state of the daemon's port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Port {
    Free,
    /// A server answers `/readyz` on the port with this status.
    Answers(u16),
    /// Another program uses the port, or the system refuses it.
    Refused(String),
}

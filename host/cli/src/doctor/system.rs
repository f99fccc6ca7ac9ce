//! Collects the facts about the machine: limits, disks, DNS, clock, programs and the daemon's port.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use opilio_browser::{BrowserExecutable, BrowserSettings};
use opilio_console::{ConfigError, DaemonConfig, ListedNode, Tokens};
use opilio_control::ClusterFile;
use opilio_fetch::{AddressPolicy, Fetcher, HeadVerdict, NameServer, Request, Trust};
use opilio_profile::Profile;
use opilio_uri::Uri;

use super::environment::{
    Answer, Certificates, Chromium, Clock, Daemon, Environment, FileSystem, Folder, Limits, Lookup,
    Memory, NatsCluster, Port,
};
use super::linux;
use crate::crawl::component_cache;
use crate::node;

/// Longest time for one answer of a name server, the daemon, or another program.
const PATIENCE: Duration = Duration::from_secs(10);

/// Examines everything.
pub(super) async fn examine(
    profile: &Profile,
    jobs: &Path,
    host: &str,
    daemon: Option<Daemon>,
    cluster: Option<&ClusterFile>,
) -> Environment {
    Environment {
        limits: limits(),
        memory: memory(),
        processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
        jobs: folder(jobs),
        cache: component_cache().map(|cache| folder(&cache)),
        lookup: look_up(profile, host).await,
        clock: clock(),
        certificates: certificates(),
        chromium: chromium(profile).await,
        daemon,
        cluster: match cluster {
            Some(cluster) => Some(nats(cluster).await),
            None => None,
        },
    }
}

fn proc(file: &str) -> String {
    fs::read_to_string(Path::new("/proc").join(file)).unwrap_or_default()
}

fn cgroup_limit(controller: &str, files: [&str; 2]) -> Option<u64> {
    let own = proc("self/cgroup");
    linux::cgroup_limit(Path::new("/sys/fs/cgroup"), &own, controller, files)
}

fn limits() -> Limits {
    let limits = linux::limits(&proc("self/limits"));
    let of_group = cgroup_limit("pids", ["pids.max", "pids.max"]);
    let processes = [limits.processes, of_group].into_iter().flatten().min();
    Limits {
        processes,
        ..limits
    }
}

fn memory() -> Memory {
    Memory {
        cgroup: cgroup_limit("memory", ["memory.limit_in_bytes", "memory.max"]),
        ..linux::memory(&proc("meminfo"))
    }
}

/// Examines a folder. If it is missing, examines its nearest existing ancestor, in which it would be created.
fn folder(path: &Path) -> Folder {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = absolute.ancestors().find(|folder| folder.is_dir());
    let there = there.unwrap_or(Path::new("/"));
    let disk = Disk::of(there);
    Folder {
        path: absolute.clone(),
        free: opilio_crawl::free_space(there),
        free_inodes: disk.free_inodes,
        file_system: disk.file_system,
        no_exec: disk.no_exec,
        sync: write_small_file(there).map_err(|problem| problem.to_string()),
    }
}

/// Facts about a folder's file system.
#[derive(Default)]
struct Disk {
    free_inodes: Option<u64>,
    file_system: Option<FileSystem>,
    no_exec: bool,
}

impl Disk {
    #[cfg(target_os = "linux")]
    fn of(folder: &Path) -> Disk {
        use rustix::fs::StatVfsMountFlags;
        let Ok(disk) = rustix::fs::statvfs(folder) else {
            return Disk::default();
        };
        // The numbers of statfs(2).
        let file_system = rustix::fs::statfs(folder)
            .ok()
            .and_then(|it| match it.f_type as u32 {
                0x6969 => Some(FileSystem::Network("NFS")),
                0xff53_4d42 | 0xfe53_4d42 => Some(FileSystem::Network("SMB")),
                0x0102_1997 => Some(FileSystem::Network("9P")),
                0x6573_5546 => Some(FileSystem::Network("FUSE")),
                0x794c_7630 => Some(FileSystem::Overlay),
                0x0102_1994 => Some(FileSystem::Memory),
                _ => None,
            });
        Disk {
            free_inodes: (disk.f_files > 0).then_some(disk.f_favail),
            file_system,
            no_exec: disk.f_flag.contains(StatVfsMountFlags::NOEXEC),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn of(_: &Path) -> Disk {
        Disk::default()
    }
}

/// Does the file operations of a crawl once: writes a file, syncs, renames and locks it, and opens a socket next to it.
fn write_small_file(folder: &Path) -> io::Result<Duration> {
    let failed = |what: &'static str| {
        move |problem: io::Error| io::Error::new(problem.kind(), format!("{what}: {problem}"))
    };
    let own = tempfile::Builder::new()
        .prefix(".opilio-doctor-")
        .tempdir_in(folder);
    let own = own.map_err(failed("cannot create a folder"))?;
    let (draft, finished) = (own.path().join("draft"), own.path().join("finished"));
    let mut file = File::create(&draft).map_err(failed("cannot create a file"))?;
    file.write_all(&[0; 4096])
        .map_err(failed("cannot write a file"))?;
    let began = Instant::now();
    file.sync_all()
        .map_err(failed("cannot sync a file to the disk"))?;
    let took = began.elapsed();
    fs::rename(&draft, &finished).map_err(failed("cannot rename a file"))?;
    file.try_lock()
        .map_err(|problem| failed("cannot lock a file")(problem.into()))?;
    #[cfg(unix)]
    {
        /// Longest path of a socket.
        const SOCKET_PATH_MAX: usize = 100;
        let socket = own.path().join("control");
        if socket.as_os_str().len() <= SOCKET_PATH_MAX {
            std::os::unix::net::UnixListener::bind(socket)
                .map_err(failed("cannot open a socket"))?;
        }
    }
    own.close().map_err(failed("cannot remove a folder"))?;
    Ok(took)
}

/// Looks up a host with the name servers of a profile.
async fn look_up(profile: &Profile, host: &str) -> Lookup {
    let of_system = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let servers = profile.dns.servers.iter().flat_map(|server| match server {
        NameServer::System => linux::name_servers(&of_system),
        NameServer::At(address) => vec![address.to_string()],
        NameServer::Https { host, .. } => vec![format!("https://{host}")],
    });
    let servers = servers.collect();
    let began = Instant::now();
    let found = async {
        let mut config =
            opilio_fetch::FetcherConfig::new(profile.user_agent.clone(), std::env::temp_dir());
        config.name_servers = profile.dns.servers.clone();
        let fetcher = Fetcher::new(config).map_err(|problem| problem.to_string())?;
        let found = tokio::time::timeout(PATIENCE, fetcher.resolve(host, Timestamp::now())).await;
        let found = found.map_err(|_| format!("no answer after {} s", PATIENCE.as_secs()))?;
        found.map_err(|problem| problem.to_string())
    };
    let answer = found.await.map(|found| Answer {
        addresses: found.addresses,
        time: began.elapsed(),
    });
    Lookup {
        host: host.to_owned(),
        servers,
        answer,
    }
}

fn clock() -> Clock {
    let written = std::env::current_exe()
        .and_then(fs::metadata)
        .and_then(|it| it.modified());
    let written = written.ok().and_then(|time| Timestamp::try_from(time).ok());
    Clock {
        is_synchronised: linux::is_clock_synchronised(),
        since_program: written.map(|written| Timestamp::now().duration_since(written)),
    }
}

fn certificates() -> Certificates {
    let found = rustls_native_certs::load_native_certs();
    Certificates {
        roots: found.certs.len(),
        problems: found.errors.iter().map(ToString::to_string).collect(),
    }
}

async fn chromium(profile: &Profile) -> Chromium {
    let settings = BrowserSettings {
        executable: profile.settings().browser.executable.clone(),
        ..BrowserSettings::default()
    };
    let found = BrowserExecutable::find(&settings).await;
    Chromium {
        is_needed: profile.renders_by().is_some(),
        found: found
            .map(|it| format!("{} ({})", it.version, it.path.display()))
            .map_err(|problem| problem.to_string()),
    }
}

/// Connects to the NATS of a cluster, and lists its nodes. Changes nothing.
async fn nats(cluster: &ClusterFile) -> NatsCluster {
    let nodes = async {
        match node::find(cluster).await? {
            Some(cluster) => ListedNode::all(&cluster).await,
            None => Ok(Vec::new()),
        }
    };
    NatsCluster {
        servers: cluster.servers.join(", "),
        nodes: nodes
            .await
            .map_err(|problem| format!("{:#}", anyhow::Error::new(problem))),
    }
}

/// Examines the daemon if it has a configuration file. The result includes an error in the file.
pub(super) async fn daemon(
    config: &DaemonConfig,
    configured: Option<(PathBuf, Option<ConfigError>)>,
) -> Option<Daemon> {
    let (file, problem) = configured?;
    let problem = problem.or_else(|| config.check().err());
    let problem = problem.map(|problem| format!("{:#}", anyhow::Error::new(problem)));
    let problem = problem.or_else(|| Some(config.tls.as_ref()?.check().err()?.to_string()));
    let tokens = config.authentication.then(|| {
        let file = config.token_file();
        let tokens = Tokens::read(&file).map(|tokens| tokens.iter().count());
        tokens.map_err(|problem| format!("{}: {problem}", file.display()))
    });
    Some(Daemon {
        file,
        problem,
        address: config.listen,
        tokens,
        port: port(config).await,
    })
}

/// The state of the daemon's port.
async fn port(config: &DaemonConfig) -> Port {
    match TcpListener::bind(config.listen) {
        Ok(_) => Port::Free,
        // This process may lack the right to use a low port, and a daemon that has the right may run there.
        Err(bind) => match status(config).await {
            Ok(status) => Port::Answers(status),
            Err(problem) if bind.kind() == io::ErrorKind::AddrInUse => {
                Port::Refused(format!("another program has it: {problem}"))
            }
            Err(_) => Port::Refused(bind.to_string()),
        },
    }
}

/// Returns the status of `/readyz` of the daemon. The name in its certificate is not checked.
async fn status(config: &DaemonConfig) -> Result<u16, String> {
    let address = match config.listen.ip() {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    };
    let scheme = match config.tls {
        Some(_) => "https",
        None => "http",
    };
    let address = SocketAddr::new(address, config.listen.port());
    let uri = Uri::parse(&format!("{scheme}://{address}/readyz"));
    let uri = uri.map_err(|problem| problem.to_string())?;
    let mut own = opilio_fetch::FetcherConfig::new("opilio-doctor", std::env::temp_dir());
    own.trust = Trust::Record;
    own.total_timeout = PATIENCE;
    own.addresses = AddressPolicy {
        private: true,
        loopback: true,
        link_local: true,
        metadata: true,
    };
    own.allow_ports = vec![address.port()];
    let fetcher = Fetcher::new(own).map_err(|problem| problem.to_string())?;
    let request = Request::new(uri, vec![address.ip()]);
    let exchange = fetcher.http(request, async |_| HeadVerdict::Continue).await;
    match (exchange.failure, exchange.head) {
        (None, Some(head)) => Ok(head.status),
        (Some(failure), _) => Err(failure.to_string()),
        (None, None) => Err("no answer".to_owned()),
    }
}

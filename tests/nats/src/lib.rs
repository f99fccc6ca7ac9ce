//! Starts `nats-server` processes on loopback. Tests that need them are skipped if the program is missing, or fail if the
//! environment requires it.

#![allow(clippy::unwrap_used, reason = "tests")]

mod proxy;

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub use proxy::{NatsNetwork, NatsProxy};

/// Variable with the program's path, if it is not in `PATH`.
const PROGRAM: &str = "OPILIO_NATS_SERVER";

/// Variable that makes tests fail instead of being skipped if the program is missing.
const REQUIRED: &str = "OPILIO_NATS_REQUIRED";

/// A server with a store of its own. It is killed when dropped.
#[derive(Debug)]
pub struct NatsServer {
    /// Its port on 127.0.0.1.
    pub port: u16,
    program: PathBuf,
    arguments: Vec<String>,
    dir: tempfile::TempDir,
    process: Option<Child>,
}

impl NatsServer {
    /// Starts a server with JetStream. Prints a message and returns `None` if the program is missing.
    pub fn start() -> Option<Self> {
        Self::start_with("")
    }

    /// Starts a server with JetStream and these lines of configuration.
    pub fn start_with(configuration: &str) -> Option<Self> {
        Self::run(configuration, true)
    }

    /// Starts a server without JetStream.
    pub fn without_jetstream() -> Option<Self> {
        Self::run("", false)
    }

    /// Prepares the given number of servers of one NATS cluster, and starts them. They do not announce each other to clients, so
    /// that clients connect only through the proxies in front of them.
    pub fn start_cluster(count: usize) -> Option<Vec<Self>> {
        let routes: Vec<u16> = (0..count).map(|_| free_port()).collect();
        let list: Vec<String> = routes
            .iter()
            .map(|port| format!("nats://127.0.0.1:{port}"))
            .collect();
        let list = list.join(", ");
        let mut servers = Vec::new();
        for (number, route) in routes.iter().enumerate() {
            let configuration = format!(
                "server_name: n{number}\ncluster {{ name: c, listen: \"127.0.0.1:{route}\", routes: [{list}], no_advertise: true }}\n"
            );
            servers.push(Self::prepare(&configuration, true)?);
        }
        for server in &mut servers {
            server.begin();
        }
        Some(servers)
    }

    fn run(configuration: &str, has_jetstream: bool) -> Option<Self> {
        let mut server = Self::prepare(configuration, has_jetstream)?;
        server.begin();
        Some(server)
    }

    fn prepare(configuration: &str, has_jetstream: bool) -> Option<Self> {
        let program = program()?;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("nats.conf");
        let port = free_port();
        let store = dir.path().join("store");
        let jetstream = match configuration.contains("jetstream") || !has_jetstream {
            true => String::new(),
            false => format!("jetstream {{ store_dir: {store:?} }}\n"),
        };
        let configuration = configuration.replace("STORE", &format!("{store:?}"));
        std::fs::write(&file, format!("{jetstream}{configuration}")).unwrap();
        let file = file.to_str().unwrap().to_owned();
        let arguments =
            ["-a", "127.0.0.1", "-p", &port.to_string(), "-c", &file].map(str::to_owned);
        Some(Self {
            port,
            program,
            arguments: arguments.into(),
            dir,
            process: None,
        })
    }

    /// Starts the process, and waits until it reports that it is ready.
    pub fn begin(&mut self) {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut text = String::new();
        while !text.contains("Server is ready") {
            let read = log.read_line(&mut text).unwrap();
            assert!(read > 0, "nats-server ended: {text}");
        }
        // Drains the pipe, which would block the process when full.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        self.process = Some(child);
    }

    /// Kills the process, as `kill -9` does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.process.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Copies the store for [`Self::restore_store`]. The process is killed for the copy, then started again.
    pub fn save_store(&mut self) {
        self.kill();
        copy_folder(
            &self.dir.path().join("store"),
            &self.dir.path().join("saved"),
        );
        self.begin();
    }

    /// Kills the process, and starts it with the store of [`Self::save_store`]. Later messages are lost, as after a power failure.
    pub fn restore_store(&mut self) {
        self.kill();
        let store = self.dir.path().join("store");
        std::fs::remove_dir_all(&store).unwrap();
        copy_folder(&self.dir.path().join("saved"), &store);
        self.begin();
    }

    /// Stops the process without ending it (`-STOP`) or continues it (`-CONT`). A stopped server does not answer.
    pub fn signal(&self, signal: &str) {
        signal_process(self.process.as_ref().unwrap().id(), signal);
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let copy = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &copy),
            false => drop(std::fs::copy(entry.path(), copy).unwrap()),
        }
    }
}

/// Sends a signal to a process. After `-STOP` it waits until all threads of the process have stopped.
pub fn signal_process(pid: u32, signal: &str) {
    let status = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
    while signal == "-STOP" && is_running(pid) {
        std::thread::yield_now();
    }
}

/// Returns `true` if a thread of a process is not stopped, as far as the system reports it.
fn is_running(pid: u32) -> bool {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    tasks.map_while(Result::ok).any(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        // The state follows the program's name, which is in parentheses.
        let state = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.chars().next());
        state.is_some_and(|state| state != 'T')
    })
}

/// A port on which nobody listens. It is outside of the range from which the system assigns ports, so it is still free when a
/// server starts later or restarts.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    const FIRST: u32 = 20_000;
    const COUNT: u32 = 12_000;
    loop {
        // Each process starts at a different port.
        let number =
            std::process::id().wrapping_mul(101) % COUNT + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(FIRST + number % COUNT).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn program() -> Option<PathBuf> {
    let named = std::env::var_os(PROGRAM).map(PathBuf::from);
    let in_path = || {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path)
            .map(|folder| folder.join("nats-server"))
            .find(|file| file.is_file())
    };
    let program = named.or_else(in_path);
    if program.is_none() {
        let hint = format!(
            "go install github.com/nats-io/nats-server/v2@v2.15.3, or name the program in {PROGRAM}"
        );
        assert!(
            std::env::var_os(REQUIRED).is_none(),
            "nats-server not found: {hint}"
        );
        #[expect(clippy::print_stderr, reason = "reports a skipped test")]
        {
            eprintln!("skipped: nats-server not found: {hint}");
        }
    }
    program
}

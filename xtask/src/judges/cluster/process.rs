//! The machines of the chaos crawl, and the processes on them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Result, ensure};
use opilio_test_nats::{NatsNetwork, NatsProxy, NatsServer};

use super::{NODES, TIME_TO_LIVE};
use crate::command::status;

/// Name of the job in the cluster.
pub(super) const JOB: &str = "news";

/// The exit code of a Rust program whose main thread panicked.
const PANICKED: i32 = 101;

/// A machine: a node of the cluster with a folder, which has a job directory for each part.
pub(super) struct Machine {
    pub(super) name: &'static str,
    pub(super) folder: PathBuf,
    /// Its connections to the NATS servers.
    proxies: Vec<NatsProxy>,
}

impl Machine {
    /// Writes the node's configuration and the profile into a new folder.
    pub(super) async fn new(
        name: &'static str,
        home: &Path,
        servers: &[NatsServer],
        profile: &str,
    ) -> Result<Machine> {
        let folder = home.join(name);
        fs::create_dir_all(&folder)?;
        let mut proxies = Vec::new();
        for server in servers {
            proxies.push(NatsProxy::start(server.port).await);
        }
        let addresses: Vec<String> = proxies
            .iter()
            .map(|proxy| format!("127.0.0.1:{}", proxy.port))
            .collect();
        fs::write(
            folder.join("opilio.toml"),
            format!(
                "[cluster]\nservers = {addresses:?}\nnode = \"{name}\"\nreplicas = {}\n\
                 partitions = 64\ntime-to-live = \"{}s\"\n",
                servers.len(),
                TIME_TO_LIVE.as_secs()
            ),
        )?;
        fs::write(folder.join("p.toml"), profile)?;
        Ok(Machine {
            name,
            folder,
            proxies,
        })
    }

    /// Closes all connections to NATS, for all processes of the machine.
    pub(super) fn cut_off(&self) {
        self.set_network(NatsNetwork::Cut);
    }

    /// Ends [`Self::cut_off`].
    pub(super) fn connect(&self) {
        self.set_network(NatsNetwork::Open(Duration::ZERO));
    }

    fn set_network(&self, network: NatsNetwork) {
        for proxy in &self.proxies {
            proxy.set(network);
        }
    }
}

/// The command that starts a process of the crawl.
pub(super) struct CrawlCommand {
    pub(super) opilio: PathBuf,
    /// Number of parts of the crawl.
    pub(super) parts: usize,
}

impl CrawlCommand {
    /// Starts the process of the part that has the name of its node.
    pub(super) fn start(&self, machines: &[Machine], machine: usize) -> Result<PartProcess> {
        self.begin(machines, machine, machines[machine].name, &[])
    }

    /// Starts the process of a part that no node has, or that another node had.
    pub(super) fn take_over(
        &self,
        machines: &[Machine],
        machine: usize,
        part: &str,
    ) -> Result<PartProcess> {
        self.begin(machines, machine, part, &["--take-over", part])
    }

    fn begin(
        &self,
        machines: &[Machine],
        machine: usize,
        part: &str,
        more: &[&str],
    ) -> Result<PartProcess> {
        let (nodes, parts) = (NODES.join(","), self.parts.to_string());
        let mut arguments = vec!["crawl", "p.toml", "--quiet", "--job", part];
        arguments.extend(["--cluster-job", JOB, "--nodes", &nodes, "--parts", &parts]);
        arguments.extend(more);
        let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
        let folder = machines[machine].folder.clone();
        Ok(PartProcess {
            child: spawn(&self.opilio, &folder, part, &arguments)?,
            part: part.to_owned(),
            machine,
            folder,
            opilio: self.opilio.clone(),
            arguments,
            restarts: 0,
        })
    }
}

/// The process of a part of the crawl, in a job directory with the part's name.
pub(super) struct PartProcess {
    pub(super) part: String,
    /// Index of its machine.
    pub(super) machine: usize,
    /// Folder of its machine.
    folder: PathBuf,
    opilio: PathBuf,
    arguments: Vec<String>,
    child: Child,
    /// Number of times that it ended by itself before the end of the crawl, and was restarted.
    pub(super) restarts: usize,
}

impl PartProcess {
    /// Folder of the archive that this process writes.
    pub(super) fn archive(&self) -> PathBuf {
        self.folder.join(&self.part).join("warcs")
    }

    /// Returns `true` if there is a job directory, so that the process owns the part.
    pub(super) fn has_job(&self) -> bool {
        self.folder.join(&self.part).join("job.json").exists()
    }

    /// Its process id.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process, and restarts it with the same command.
    pub(super) fn kill_and_start(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        self.restart()
    }

    /// Asks the process to stop in an orderly way. The other nodes continue.
    pub(super) fn stop(&self) -> Result<()> {
        let mut stop = Command::new(&self.opilio);
        stop.args(["job", "stop", &self.part, "--this-node"]);
        stop.current_dir(&self.folder).stdout(Stdio::null());
        status(&mut stop)
    }

    /// Restarts the process if it has ended before the crawl, as a service manager does, because it exits with an error if it
    /// cannot join the cluster. Returns `true` if it has ended in an orderly way. Fails if the process crashed.
    pub(super) fn supervise(&mut self) -> Result<bool> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(false);
        };
        if status.success() {
            return Ok(true);
        }
        let is_crash = status.code().is_none_or(|code| code == PANICKED);
        ensure!(
            !is_crash,
            "the process of part {} crashed with {status}: {}",
            self.part,
            self.last_error_line()
        );
        self.restart()?;
        self.restarts += 1;
        Ok(false)
    }

    /// The last line of its standard error.
    pub(super) fn last_error_line(&self) -> String {
        let text =
            fs::read_to_string(self.folder.join(stderr_file(&self.part))).unwrap_or_default();
        text.lines().last().unwrap_or_default().to_owned()
    }

    fn restart(&mut self) -> Result<()> {
        self.child = spawn(&self.opilio, &self.folder, &self.part, &self.arguments)?;
        Ok(())
    }
}

impl Drop for PartProcess {
    fn drop(&mut self) {
        // Nothing to do if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Name of the file with the standard error of a part's processes.
fn stderr_file(part: &str) -> String {
    format!("{part}-stderr.txt")
}

fn spawn(opilio: &Path, folder: &Path, part: &str, arguments: &[String]) -> Result<Child> {
    let stderr = File::options()
        .create(true)
        .append(true)
        .open(folder.join(stderr_file(part)))?;
    let mut command = Command::new(opilio);
    command
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(stderr);
    Ok(command.spawn()?)
}

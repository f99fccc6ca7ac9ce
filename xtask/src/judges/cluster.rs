//! A crawl of three nodes over three NATS servers with failures. Nodes are killed, stopped for longer than their lease, and
//! disconnected from NATS. NATS servers are killed, including the leaders of streams.
//!
//! At the end every page of the web must be archived. No more pages may be fetched twice than were in flight when a process was
//! killed. In the web's own log, two requests to a host must not be closer than the delay, and there must be no requests of a node
//! that was disconnected for longer than its lease. warcio also reads the archives.
//!
//! In the long form each failure happens to each node. A node is added during the crawl and starts a part that waited for one.
//! Another node is drained, and the added one continues its part. Takeovers from snapshots of lost machines, and daemons that move
//! parts automatically, are tested in the command line's tests (`host/cli/tests/cli/takeover.rs`).

mod accounts;
mod process;
mod web;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use opilio_test_nats::{NatsServer, signal_process};
use opilio_test_web::Web;

use self::accounts::{LeaseLoss, PartArchive, check_delays, check_lease_losses, check_pages};
use self::process::{CrawlCommand, JOB, Machine, PartProcess};
use self::web::WebSize;
use super::{PYTHON_PACKAGES, Readers};
use crate::registries;

const NODES: [&str; 3] = ["a", "b", "c"];

/// The node that is added during the crawl, and the part that waits for it.
const ADDED: (&str, &str) = ("d", "part-1");

/// Index of the part that moves when its node is drained. No failure has affected it in the round before.
const DRAINED: usize = 2;

const NATS_SERVERS: usize = 3;

/// Delay between two requests to a site.
const DELAY: Duration = Duration::from_millis(300);

/// Time after which a silent node has lost its part.
const TIME_TO_LIVE: Duration = Duration::from_secs(5);

/// Visits in process at a time on one node.
const WORKERS: usize = 8;

/// Time between two failures.
const TIME_BETWEEN_FAILURES: Duration = Duration::from_secs(4);

/// Interval at which the processes are checked.
const CHECK_EVERY: Duration = Duration::from_millis(200);

/// Timeout for the start of the crawl, the stop of a node and the takeover of a part. Also the time within which the crawl must end
/// after the last failure.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Failures, in order.
const FAILURES: [Failure; 4] = [
    Failure::Killed,
    Failure::NatsKilled,
    Failure::Stopped,
    Failure::CutOff,
];

/// Size of the crawl.
pub(super) struct CrawlSize {
    /// Its sites must last longer than all failures. Each gets at most one request in [`DELAY`].
    web: WebSize,
    /// Number of times that each failure happens, each time to another node or NATS server.
    rounds: usize,
    /// `true` if a node is added after the first round, and another one drained after the second.
    parts_move: bool,
}

/// The short form, for CI: about a minute.
pub(super) const SHORT: CrawlSize = CrawlSize {
    web: WebSize {
        sites: 6,
        pages: 60,
    },
    rounds: 1,
    parts_move: false,
};

/// The long form: several minutes.
pub(super) const LONG: CrawlSize = CrawlSize {
    web: WebSize {
        sites: 24,
        pages: 250,
    },
    rounds: NODES.len(),
    parts_move: true,
};

/// Failure of a node or a NATS server.
#[derive(Debug, Clone, Copy)]
enum Failure {
    /// The process of a node is killed, and started again at once.
    Killed,
    /// A NATS server is killed, and started again after some seconds.
    NatsKilled,
    /// The process is stopped for longer than its lease, then continued.
    Stopped,
    /// The node is disconnected from NATS for longer than its lease.
    CutOff,
}

/// The crawl while it runs.
struct ChaosCrawl {
    command: CrawlCommand,
    /// The first ones are those of [`NODES`].
    processes: Vec<PartProcess>,
    machines: Vec<Machine>,
    servers: Vec<NatsServer>,
    lease_losses: Vec<LeaseLoss>,
}

/// Crawls with three nodes through all failures.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) async fn judge(home: &Path, opilio: &Path, size: &CrawlSize) -> Result<()> {
    let home = home.join("cluster");
    if home.exists() {
        fs::remove_dir_all(&home)?;
    }
    let store = home.join("archive");
    fs::create_dir_all(&store)?;
    let python = registries::python(&PYTHON_PACKAGES)?;
    let servers = NatsServer::start_cluster(NATS_SERVERS)
        .context("nats-server is not in the path: CONTRIBUTING.md says how to install it")?;
    let web = size.web.serve().await?;
    let profile = size.profile(&web, &store);
    let mut crawl = ChaosCrawl {
        command: CrawlCommand {
            opilio: opilio.to_owned(),
            parts: NODES.len() + usize::from(size.parts_move),
        },
        processes: Vec::new(),
        machines: Vec::new(),
        servers,
        lease_losses: Vec::new(),
    };
    for (number, name) in NODES.into_iter().enumerate() {
        crawl.add_machine(name, &home, &profile).await?;
        let process = crawl.command.start(&crawl.machines, number)?;
        crawl.processes.push(process);
    }
    // Failures start when there are results to lose.
    let began = Instant::now();
    while web.requests().len() < size.web.sites {
        crawl.check_timeout(began, "did not begin")?;
        crawl.wait_while_crawling(CHECK_EVERY).await?;
    }
    crawl.wait_while_crawling(TIME_BETWEEN_FAILURES).await?;
    for round in 0..size.rounds {
        crawl.cause_failures(round, &web).await?;
        match round {
            0 if size.parts_move => crawl.add_node(&home, &profile).await?,
            1 if size.parts_move => crawl.drain_node().await?,
            _ => {}
        }
    }
    let last = Instant::now();
    while !crawl.wait_while_crawling(TIME_BETWEEN_FAILURES).await? {
        crawl.check_timeout(last, "did not end")?;
    }
    for process in &crawl.processes {
        println!(
            "part {}: its process ended {} times by itself and was started again",
            process.part, process.restarts
        );
    }
    // The files also remain on the machines. But parts can move, so only the files in the store count.
    let archives = match size.parts_move {
        true => PartArchive::in_store(&store.join(JOB))?,
        false => crawl.archives(),
    };
    // A visit that is in process when a process is killed is repeated. One process is killed in each round. A node that was
    // stopped, disconnected or drained completes its visits.
    let most = WORKERS * size.rounds;
    check_pages(&archives, &size.web.all_pages(&web), &web, most)?;
    check_delays(&web)?;
    check_lease_losses(&archives, &web, &crawl.lease_losses)?;
    let readers = Readers {
        python: &python,
        jwarc: None,
    };
    for archive in &archives {
        readers.judge(&archive.folder, &[])?;
    }
    Ok(())
}

impl CrawlSize {
    /// The profile of the crawl. Parts that move need a store that all machines share.
    fn profile(&self, web: &Web, store: &Path) -> String {
        let (seeds, delay) = (self.web.seeds(web), DELAY.as_millis());
        let settings = match self.parts_move {
            true => format!(
                "[archive.store]\nurl = \"file://{}\"\n\n[checkpoint]\npublish-every = \"20s\"\n",
                store.display()
            ),
            false => String::new(),
        };
        format!(
            r#"name = "shared"
strategy = "snapshot"
seeds = {seeds:?}
workers = {WORKERS}

[politeness]
delay-factor = 0.0
min-delay = "{delay}ms"
max-delay = "{delay}ms"

[alerts]
disk-warn = "none"
disk-pause = "none"

[fetch]
allow-addresses = ["loopback"]

[dns]
hosts = {{ "*.localhost" = "127.0.0.1" }}

{settings}"#
        )
    }
}

impl ChaosCrawl {
    async fn add_machine(&mut self, name: &'static str, home: &Path, profile: &str) -> Result<()> {
        let machine = Machine::new(name, home, &self.servers, profile).await?;
        self.machines.push(machine);
        Ok(())
    }

    /// Causes each failure once, each on another node or NATS server.
    #[expect(clippy::print_stdout, reason = "the result of the command")]
    async fn cause_failures(&mut self, round: usize, web: &Web) -> Result<()> {
        for (number, kind) in FAILURES.into_iter().enumerate() {
            let victim = (round + number) % NODES.len();
            let before = web.requests().len();
            ensure!(
                !self.processes[victim].supervise()?,
                "the crawl was over before the last failure"
            );
            self.cause_failure(kind, victim).await?;
            self.wait_while_crawling(TIME_BETWEEN_FAILURES).await?;
            println!(
                "{kind:?} {}: {} requests meanwhile",
                self.processes[victim].part,
                web.requests().len() - before
            );
        }
        Ok(())
    }

    /// Starts a new node. It starts the part that has no node.
    #[expect(clippy::print_stdout, reason = "the result of the command")]
    async fn add_node(&mut self, home: &Path, profile: &str) -> Result<()> {
        let (name, part) = ADDED;
        self.add_machine(name, home, profile).await?;
        self.take_over(part).await?;
        println!("node {name} is added and starts {part}");
        self.wait_while_crawling(TIME_BETWEEN_FAILURES).await?;
        Ok(())
    }

    /// Stops a node in an orderly way. The added node continues its part.
    #[expect(clippy::print_stdout, reason = "the result of the command")]
    async fn drain_node(&mut self) -> Result<()> {
        self.processes[DRAINED].stop()?;
        let began = Instant::now();
        while !self.processes[DRAINED].supervise()? {
            self.check_timeout(began, "did not stop on one node")?;
            self.wait_while_crawling(CHECK_EVERY).await?;
        }
        let part = self.processes[DRAINED].part.clone();
        self.take_over(&part).await?;
        // The new process gets the index of the old one.
        drop(self.processes.swap_remove(DRAINED));
        println!("node {part} is drained; its part continues at {}", ADDED.0);
        self.wait_while_crawling(TIME_BETWEEN_FAILURES).await?;
        Ok(())
    }

    /// Starts the process of a part on the machine that was added last, and waits until it owns the part.
    async fn take_over(&mut self, part: &str) -> Result<()> {
        let last = self.machines.len() - 1;
        let taken = self.command.take_over(&self.machines, last, part)?;
        self.processes.push(taken);
        let began = Instant::now();
        while !self.processes.last().is_some_and(PartProcess::has_job) {
            self.check_timeout(began, "was not taken over by the added node")?;
            self.wait_while_crawling(CHECK_EVERY).await?;
        }
        Ok(())
    }

    async fn cause_failure(&mut self, kind: Failure, victim: usize) -> Result<()> {
        match kind {
            Failure::Killed => self.processes[victim].kill_and_start()?,
            Failure::NatsKilled => {
                self.servers[victim].kill();
                tokio::time::sleep(TIME_BETWEEN_FAILURES).await;
                self.servers[victim].begin();
            }
            Failure::Stopped => {
                let process = self.processes[victim].id();
                signal_process(process, "-STOP");
                tokio::time::sleep(2 * TIME_TO_LIVE).await;
                signal_process(process, "-CONT");
            }
            Failure::CutOff => {
                let machine = self.processes[victim].machine;
                self.machines[machine].cut_off();
                let from = Instant::now() + TIME_TO_LIVE;
                tokio::time::sleep(2 * TIME_TO_LIVE).await;
                let to = Instant::now();
                self.machines[machine].connect();
                let affected = self.processes.iter().filter(|it| it.machine == machine);
                let lease_losses = affected.map(|process| LeaseLoss {
                    part: process.part.clone(),
                    from,
                    to,
                });
                self.lease_losses.extend(lease_losses);
            }
        }
        Ok(())
    }

    /// Fails if [`TIMEOUT`] has passed since `began`.
    fn check_timeout(&self, began: Instant, fault: &str) -> Result<()> {
        let lines = self.processes.iter().map(PartProcess::last_error_line);
        let lines: Vec<String> = lines.collect();
        ensure!(
            began.elapsed() < TIMEOUT,
            "the crawl {fault} within {TIMEOUT:?}; the last lines of its processes are {lines:?}; see {}",
            self.machines[0].folder.display()
        );
        Ok(())
    }

    /// Waits while the nodes crawl. Returns `true` if all of them have finished.
    async fn wait_while_crawling(&mut self, time: Duration) -> Result<bool> {
        let began = Instant::now();
        loop {
            let mut are_done = true;
            for process in &mut self.processes {
                are_done &= process.supervise()?;
            }
            if are_done || began.elapsed() > time {
                return Ok(are_done);
            }
            tokio::time::sleep(CHECK_EVERY).await;
        }
    }

    /// The archives on the machines.
    fn archives(&self) -> Vec<PartArchive> {
        let archives = self.processes.iter().map(|process| PartArchive {
            part: process.part.clone(),
            folder: process.archive(),
        });
        archives.collect()
    }
}

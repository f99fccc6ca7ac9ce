//! A crawl of three nodes over three NATS servers while misfortune strikes: nodes are killed, stopped for longer than their lease
//! and cut off from NATS, and NATS servers are killed, so that the leaders of streams are, too.
//!
//! At the end every page of the web is archived, and no more pages were fetched again than were in flight when a process was killed.
//! The web's own log has no two requests to a host closer than the delay, and none of a node that was cut off for longer than its
//! lease. Archives are read by warcio as well.
//!
//! In the long form each misfortune strikes each node. A node is added meanwhile, and begins a part that waited. Another one is
//! drained, and its part goes on at the added one. Takeovers from snapshots of lost machines, and daemons that move parts by
//! themselves, are tests of the command line (`host/cli/tests/cli/takeover.rs`).

mod accounts;
mod process;
mod web;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use opilio_test_nats::{NatsServer, signal_process};
use opilio_test_web::Web;

use self::accounts::{PartArchive, Silence, account, polite, silent};
use self::process::{CrawlCommand, JOB, Machine, PartProcess};
use self::web::WebSize;
use super::{PYTHON_PACKAGES, Readers};
use crate::registries;

const NODES: [&str; 3] = ["a", "b", "c"];

/// The node that is added during the crawl, and the part that waits for it.
const ADDED: (&str, &str) = ("d", "part-1");

/// Place of the part that moves when its node is drained. No misfortune has struck it in the round before.
const DRAINED: usize = 2;

const NATS_SERVERS: usize = 3;

/// Delay between two requests to a site.
const DELAY: Duration = Duration::from_millis(300);

/// Time after which a node that is silent has lost its part.
const TIME_TO_LIVE: Duration = Duration::from_secs(5);

/// Visits that a node has under way at a time.
const WORKERS: usize = 8;

/// Time in which the nodes crawl before the next misfortune.
const CALM: Duration = Duration::from_secs(4);

/// Pause between two looks at the processes.
const LOOK: Duration = Duration::from_millis(200);

/// Time within which the crawl begins, a node stops or a part is taken over, and time after the last misfortune within which the
/// crawl ends.
const PATIENCE: Duration = Duration::from_secs(600);

/// Misfortunes, in the order in which they strike.
const MISFORTUNES: [Misfortune; 4] = [
    Misfortune::Killed,
    Misfortune::NatsKilled,
    Misfortune::Stopped,
    Misfortune::CutOff,
];

/// Size of the judged crawl.
pub(super) struct CrawlSize {
    /// Its sites last longer than all misfortunes: each gives at most one page in [`DELAY`].
    web: WebSize,
    /// Times that each misfortune strikes, each time another node or NATS server.
    rounds: usize,
    /// `true` if a node is added after the first round, and another one drained after the second.
    parts_move: bool,
}

/// The form that CI runs: about a minute.
pub(super) const SHORT: CrawlSize = CrawlSize {
    web: WebSize {
        sites: 6,
        pages: 60,
    },
    rounds: 1,
    parts_move: false,
};

/// The form on request: some minutes.
pub(super) const LONG: CrawlSize = CrawlSize {
    web: WebSize {
        sites: 24,
        pages: 250,
    },
    rounds: NODES.len(),
    parts_move: true,
};

/// Misfortune of a node or a NATS server.
#[derive(Debug, Clone, Copy)]
enum Misfortune {
    /// The process of a node is killed, and started again at once.
    Killed,
    /// A NATS server is killed, and started again after some seconds.
    NatsKilled,
    /// The process is stopped for longer than its lease, and goes on.
    Stopped,
    /// No message passes between node and NATS for longer than its lease.
    CutOff,
}

/// The crawl while it runs.
struct ChaosCrawl {
    command: CrawlCommand,
    /// The first are those of [`NODES`].
    processes: Vec<PartProcess>,
    machines: Vec<Machine>,
    servers: Vec<NatsServer>,
    silences: Vec<Silence>,
}

/// Has three nodes crawl through all misfortunes.
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
        silences: Vec::new(),
    };
    for (number, name) in NODES.into_iter().enumerate() {
        crawl.add_machine(name, &home, &profile).await?;
        let process = crawl.command.start(&crawl.machines, number)?;
        crawl.processes.push(process);
    }
    // Nothing is lost before there is something to lose.
    let began = Instant::now();
    while web.requests().len() < size.web.sites {
        crawl.in_time(began, "did not begin")?;
        crawl.keep_up(LOOK).await?;
    }
    crawl.keep_up(CALM).await?;
    for round in 0..size.rounds {
        crawl.suffer(round, &web).await?;
        match round {
            0 if size.parts_move => crawl.add_node(&home, &profile).await?,
            1 if size.parts_move => crawl.drain_node().await?,
            _ => {}
        }
    }
    let last = Instant::now();
    while !crawl.keep_up(CALM).await? {
        crawl.in_time(last, "did not end")?;
    }
    for process in &crawl.processes {
        println!(
            "part {}: its process ended {} times by itself and was started again",
            process.part, process.restarts
        );
    }
    // Files stay on the machines as well, but what is in the store counts where parts move.
    let archives = match size.parts_move {
        true => PartArchive::in_store(&store.join(JOB))?,
        false => crawl.archives(),
    };
    // A visit that is under way when a process is killed is made again. One is killed in each round. A node that was stopped or cut
    // off completes its visits, and so does one that is drained.
    let most = WORKERS * size.rounds;
    account(&archives, &size.web.all_pages(&web), &web, most)?;
    polite(&web)?;
    silent(&archives, &web, &crawl.silences)?;
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
    /// The profile of the crawl. Parts that move need the store that all machines share.
    fn profile(&self, web: &Web, store: &Path) -> String {
        let (seeds, delay) = (self.web.seeds(web), DELAY.as_millis());
        let moves = match self.parts_move {
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

{moves}"#
        )
    }
}

impl ChaosCrawl {
    async fn add_machine(&mut self, name: &'static str, home: &Path, profile: &str) -> Result<()> {
        let machine = Machine::new(name, home, &self.servers, profile).await?;
        self.machines.push(machine);
        Ok(())
    }

    /// Has every misfortune strike once, each another node or NATS server.
    #[expect(clippy::print_stdout, reason = "the result of the command")]
    async fn suffer(&mut self, round: usize, web: &Web) -> Result<()> {
        for (number, kind) in MISFORTUNES.into_iter().enumerate() {
            let victim = (round + number) % NODES.len();
            let before = web.requests().len();
            ensure!(
                !self.processes[victim].supervise()?,
                "the crawl was over before the last misfortune"
            );
            self.strike(kind, victim).await?;
            self.keep_up(CALM).await?;
            println!(
                "{kind:?} {}: {} requests meanwhile",
                self.processes[victim].part,
                web.requests().len() - before
            );
        }
        Ok(())
    }

    /// Starts a new node, which begins the part that no node has.
    #[expect(clippy::print_stdout, reason = "the result of the command")]
    async fn add_node(&mut self, home: &Path, profile: &str) -> Result<()> {
        let (name, part) = ADDED;
        self.add_machine(name, home, profile).await?;
        self.take_over(part).await?;
        println!("node {name} is added, and begins {part}");
        self.keep_up(CALM).await?;
        Ok(())
    }

    /// Stops a node in good order, and has the added one go on with its part.
    #[expect(clippy::print_stdout, reason = "the result of the command")]
    async fn drain_node(&mut self) -> Result<()> {
        self.processes[DRAINED].stop()?;
        let began = Instant::now();
        while !self.processes[DRAINED].supervise()? {
            self.in_time(began, "did not stop on one node")?;
            self.keep_up(LOOK).await?;
        }
        let part = self.processes[DRAINED].part.clone();
        self.take_over(&part).await?;
        // The process that goes on has the place of the one before.
        drop(self.processes.swap_remove(DRAINED));
        println!("node {part} is drained; its part goes on at {}", ADDED.0);
        self.keep_up(CALM).await?;
        Ok(())
    }

    /// Starts the process of a part at the machine that was added last, and waits until it has the part.
    async fn take_over(&mut self, part: &str) -> Result<()> {
        let last = self.machines.len() - 1;
        let taken = self.command.take_over(&self.machines, last, part)?;
        self.processes.push(taken);
        let began = Instant::now();
        while !self.processes.last().is_some_and(PartProcess::has_job) {
            self.in_time(began, "was not taken over by the added node")?;
            self.keep_up(LOOK).await?;
        }
        Ok(())
    }

    async fn strike(&mut self, kind: Misfortune, victim: usize) -> Result<()> {
        match kind {
            Misfortune::Killed => self.processes[victim].kill_and_start()?,
            Misfortune::NatsKilled => {
                self.servers[victim].kill();
                tokio::time::sleep(CALM).await;
                self.servers[victim].begin();
            }
            Misfortune::Stopped => {
                let process = self.processes[victim].id();
                signal_process(process, "-STOP");
                tokio::time::sleep(2 * TIME_TO_LIVE).await;
                signal_process(process, "-CONT");
            }
            Misfortune::CutOff => {
                let machine = self.processes[victim].machine;
                self.machines[machine].cut_off();
                let from = Instant::now() + TIME_TO_LIVE;
                tokio::time::sleep(2 * TIME_TO_LIVE).await;
                let to = Instant::now();
                self.machines[machine].connect();
                let silent = self.processes.iter().filter(|it| it.machine == machine);
                let silences = silent.map(|process| Silence {
                    part: process.part.clone(),
                    from,
                    to,
                });
                self.silences.extend(silences);
            }
        }
        Ok(())
    }

    /// Fails if [`PATIENCE`] has passed since `began`.
    fn in_time(&self, began: Instant, fault: &str) -> Result<()> {
        let words = self.processes.iter().map(PartProcess::last_words);
        let words: Vec<String> = words.collect();
        ensure!(
            began.elapsed() < PATIENCE,
            "the crawl {fault} within {PATIENCE:?}; the last words of its processes are {words:?}; see {}",
            self.machines[0].folder.display()
        );
        Ok(())
    }

    /// Lets the nodes crawl for a while. Returns `true` if all of them are done.
    async fn keep_up(&mut self, time: Duration) -> Result<bool> {
        let began = Instant::now();
        loop {
            let mut are_done = true;
            for process in &mut self.processes {
                are_done &= process.supervise()?;
            }
            if are_done || began.elapsed() > time {
                return Ok(are_done);
            }
            tokio::time::sleep(LOOK).await;
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

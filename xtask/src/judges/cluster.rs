//! A crawl of three nodes over three NATS servers while misfortune strikes: nodes are killed, stopped for longer than their lease
//! and cut off from NATS, and each NATS server is killed, so the leaders of all streams are, too.
//!
//! At the end every page of the web is archived, and no more pages were fetched again than were in flight when a process was killed.
//! The web's own log has no two requests to a host closer than the delay, and none of a node that was cut off for longer than its
//! lease. Archives are read by warcio as well.
//!
//! Parts do not move here: takeovers and drains are tests of the command line (`host/cli/tests/cli/takeover.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use opilio_test_nats::{NatsNetwork, NatsProxy, NatsServer, signal_process};
use opilio_test_web::{Reply, SeenRequest, Web};
use serde_json::Value;

use super::{PYTHON_PACKAGES, Readers};
use crate::registries;

const NODES: [&str; 3] = ["a", "b", "c"];

const NATS_SERVERS: usize = 3;

const SITES: usize = 24;

/// Pages of a site that its first page names. Each names a page of the next site that nothing else names.
const PAGES: usize = 250;

/// Delay between two requests to a site.
const DELAY: Duration = Duration::from_millis(300);

/// Unit in which the crawler counts time: a delay may be shorter by less than this.
const TICK: Duration = Duration::from_millis(1);

/// The exit code of a Rust program whose main thread panicked.
const PANICKED: i32 = 101;

/// Time after which a node that is silent has lost its part.
const TIME_TO_LIVE: Duration = Duration::from_secs(5);

/// Visits that a node has under way at a time.
const WORKERS: usize = 8;

/// Time in which the nodes crawl before the next misfortune.
const CALM: Duration = Duration::from_secs(4);

/// Time within which the crawl begins, and time after the last misfortune within which it ends.
const PATIENCE: Duration = Duration::from_secs(600);

/// Each happens to each node, or each NATS server.
#[derive(Debug, Clone, Copy)]
enum Misfortune {
    /// The process of a node is killed, and started again at once.
    Killed,
    /// The process is stopped for longer than its lease, and goes on.
    Stopped,
    /// No message passes between node and NATS for longer than its lease.
    CutOff,
    /// A NATS server is killed, and started again after some seconds.
    NatsKilled,
}

/// A machine: a folder, and the process of its part.
struct Node {
    name: &'static str,
    folder: PathBuf,
    process: Child,
    /// Its networks to the NATS servers.
    proxies: Vec<NatsProxy>,
    /// Times that its process ended by itself before the crawl, and was started again.
    restarts: usize,
}

/// Time in which a node had lost its lease, because it was cut off.
struct Silence {
    node: usize,
    from: Instant,
    to: Instant,
}

impl Node {
    async fn start(
        name: &'static str,
        home: &Path,
        opilio: &Path,
        servers: &[NatsServer],
        web: &Web,
    ) -> Result<Node> {
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
                "[cluster]\nservers = {addresses:?}\nnode = \"{name}\"\nreplicas = {NATS_SERVERS}\n\
                 partitions = 64\ntime-to-live = \"{}s\"\n",
                TIME_TO_LIVE.as_secs()
            ),
        )?;
        fs::write(folder.join("p.toml"), profile(web))?;
        let process = begin(opilio, &folder)?;
        Ok(Node {
            name,
            folder,
            process,
            proxies,
            restarts: 0,
        })
    }

    /// Starts the process again if it has ended before the crawl, as a service manager does: it ends with an error if it cannot join
    /// the cluster. Returns `true` if the crawl is over. Fails if the process crashed.
    fn supervise(&mut self, opilio: &Path) -> Result<bool> {
        let Some(status) = self.process.try_wait()? else {
            return Ok(false);
        };
        if status.success() {
            return Ok(true);
        }
        let is_crash = status.code().is_none_or(|code| code == PANICKED);
        ensure!(
            !is_crash,
            "the process of node {} crashed with {status}: {}",
            self.name,
            self.last_words()
        );
        self.process = begin(opilio, &self.folder)?;
        self.restarts += 1;
        Ok(false)
    }

    /// The last line that its process has written to standard error.
    fn last_words(&self) -> String {
        let output = fs::read_to_string(self.folder.join("said.txt")).unwrap_or_default();
        output.lines().last().unwrap_or_default().to_owned()
    }

    fn set_network(&self, network: NatsNetwork) {
        for proxy in &self.proxies {
            proxy.set(network);
        }
    }

    /// Number of captures of each page, from the CDXJ files.
    fn captures(&self) -> Result<BTreeMap<String, usize>> {
        let mut captures = BTreeMap::new();
        for entry in fs::read_dir(self.folder.join("job/warcs"))? {
            let file = entry?.path();
            if file.extension().is_none_or(|ending| ending != "cdxj") {
                continue;
            }
            for line in fs::read_to_string(&file)?.lines() {
                // Key, time, fields.
                let fields = line.splitn(3, ' ').nth(2);
                let fields = fields.with_context(|| format!("{}: {line}", file.display()))?;
                let fields: Value = serde_json::from_str(fields)?;
                let url = fields["url"].as_str().unwrap_or_default();
                if url.starts_with("http") && !url.ends_with("/robots.txt") {
                    *captures.entry(url.to_owned()).or_default() += 1;
                }
            }
        }
        Ok(captures)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Nothing to do where it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn begin(opilio: &Path, folder: &Path) -> Result<Child> {
    let nodes = NODES.join(",");
    let output = File::options()
        .create(true)
        .append(true)
        .open(folder.join("said.txt"))?;
    let mut command = Command::new(opilio);
    command
        .args(["crawl", "p.toml", "--job", "job", "--quiet"])
        .args(["--cluster-job", "news", "--nodes", &nodes])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(output);
    Ok(command.spawn()?)
}

fn host(site: usize) -> String {
    format!("www.site{site}.localhost")
}

fn profile(web: &Web) -> String {
    let seeds: Vec<String> = (0..SITES).map(|site| web.url(&host(site), "/")).collect();
    let delay = DELAY.as_millis();
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
"#
    )
}

fn page(site: usize, seen: &SeenRequest) -> Reply {
    let host_and_port = seen.headers.get("host").and_then(|it| it.to_str().ok());
    let port = host_and_port
        .and_then(|it| it.rsplit(':').next())
        .unwrap_or_default();
    let next = host((site + 1) % SITES);
    if seen.target == "/" {
        let own = (0..PAGES).map(|number| format!("<a href='/{number}.html'>{number}</a> "));
        return Reply::html(own.collect::<String>());
    }
    match seen.target.strip_prefix("/from-before-") {
        Some(_) => Reply::html("<p>The end of this path."),
        None => Reply::html(format!(
            "<a href='http://{next}:{port}/from-before-{}'>next</a>",
            seen.target.trim_start_matches('/')
        )),
    }
}

/// All pages of the web.
fn expected(web: &Web) -> BTreeSet<String> {
    let of_site = |site: usize| {
        let host = host(site);
        let pages = (0..PAGES).flat_map(|number| {
            [
                format!("/{number}.html"),
                format!("/from-before-{number}.html"),
            ]
        });
        let targets: Vec<String> = pages.chain(["/".to_owned()]).collect();
        targets
            .into_iter()
            .map(|target| web.url(&host, &target))
            .collect::<Vec<_>>()
    };
    (0..SITES).flat_map(of_site).collect()
}

/// Has three nodes crawl through all misfortunes.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) async fn judge(home: &Path, opilio: &Path) -> Result<()> {
    let home = home.join("cluster");
    if home.exists() {
        fs::remove_dir_all(&home)?;
    }
    fs::create_dir_all(&home)?;
    let python = registries::python(&PYTHON_PACKAGES)?;
    let mut servers = NatsServer::start_cluster(NATS_SERVERS)
        .context("nats-server is not in the path: CONTRIBUTING.md says how to install it")?;
    let mut web = Web::builder();
    for site in 0..SITES {
        web.site(&host(site))
            .page("/robots.txt", Reply::status(404))
            .rest(move |seen| page(site, seen));
    }
    let web = web.serve().await?;
    let mut nodes = Vec::new();
    for name in NODES {
        nodes.push(Node::start(name, &home, opilio, &servers, &web).await?);
    }
    // Nothing is lost before there is something to lose.
    let began = Instant::now();
    while web.requests().len() < SITES {
        in_time(began, "did not begin", &nodes)?;
        keep_up(&mut nodes, opilio, CALM).await?;
    }
    let kinds = [
        Misfortune::Killed,
        Misfortune::NatsKilled,
        Misfortune::Stopped,
        Misfortune::CutOff,
    ];
    let mut silences = Vec::new();
    for (round, kind) in kinds
        .into_iter()
        .cycle()
        .take(kinds.len() * NODES.len())
        .enumerate()
    {
        // Each kind meets each node, beginning with another one.
        let victim = (round / kinds.len() + round) % NODES.len();
        let before = web.requests().len();
        ensure!(
            !nodes[victim].supervise(opilio)?,
            "the crawl was over before the last misfortune"
        );
        silences.extend(strike(kind, victim, opilio, &mut nodes, &mut servers).await?);
        keep_up(&mut nodes, opilio, CALM).await?;
        println!(
            "{kind:?} {}: {} requests meanwhile",
            NODES[victim],
            web.requests().len() - before
        );
    }
    let last = Instant::now();
    while !keep_up(&mut nodes, opilio, CALM).await? {
        in_time(last, "did not end", &nodes)?;
    }
    account(&nodes, &web)?;
    polite(&web)?;
    silent(&nodes, &web, &silences)?;
    let readers = Readers {
        python: &python,
        jwarc: None,
    };
    for node in &nodes {
        readers.judge(&node.folder.join("job/warcs"), &[])?;
    }
    Ok(())
}

/// Fails if [`PATIENCE`] has passed since `began`.
fn in_time(began: Instant, fault: &str, nodes: &[Node]) -> Result<()> {
    let words: Vec<String> = nodes.iter().map(Node::last_words).collect();
    ensure!(
        began.elapsed() < PATIENCE,
        "the crawl {fault} within {PATIENCE:?}; the last words of its nodes are {words:?}; see {}",
        nodes[0].folder.display()
    );
    Ok(())
}

/// Lets the nodes crawl for a while. Returns `true` if all of them are done.
async fn keep_up(nodes: &mut [Node], opilio: &Path, time: Duration) -> Result<bool> {
    let began = Instant::now();
    loop {
        let mut are_done = true;
        for node in nodes.iter_mut() {
            are_done &= node.supervise(opilio)?;
        }
        if are_done || began.elapsed() > time {
            return Ok(are_done);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Returns the time in which the victim had lost its lease without being stopped, if there was one.
async fn strike(
    kind: Misfortune,
    victim: usize,
    opilio: &Path,
    nodes: &mut [Node],
    servers: &mut [NatsServer],
) -> Result<Option<Silence>> {
    let node = &mut nodes[victim];
    match kind {
        Misfortune::Killed => {
            node.process.kill()?;
            node.process.wait()?;
            node.process = begin(opilio, &node.folder)?;
        }
        Misfortune::Stopped => {
            signal_process(node.process.id(), "-STOP");
            tokio::time::sleep(2 * TIME_TO_LIVE).await;
            signal_process(node.process.id(), "-CONT");
        }
        Misfortune::CutOff => {
            node.set_network(NatsNetwork::Cut);
            let from = Instant::now() + TIME_TO_LIVE;
            tokio::time::sleep(2 * TIME_TO_LIVE).await;
            let to = Instant::now();
            node.set_network(NatsNetwork::Open(Duration::ZERO));
            return Ok(Some(Silence {
                node: victim,
                from,
                to,
            }));
        }
        Misfortune::NatsKilled => {
            servers[victim].kill();
            tokio::time::sleep(CALM).await;
            servers[victim].begin();
        }
    }
    Ok(None)
}

/// Holds the archives of all nodes, and the web's own log, against the pages of the web.
#[expect(clippy::print_stdout, reason = "the result of the command")]
fn account(nodes: &[Node], web: &Web) -> Result<()> {
    let mut all: BTreeMap<String, usize> = BTreeMap::new();
    let mut both = 0;
    for node in nodes {
        let captures = node.captures()?;
        println!(
            "node {}: {} pages, its process ended {} times by itself and was started again",
            node.name,
            captures.len(),
            node.restarts
        );
        for (uri, count) in captures {
            let known = all.entry(uri).or_default();
            both += usize::from(*known > 0);
            *known += count;
        }
    }
    let expected = expected(web);
    let missing: Vec<&String> = expected
        .iter()
        .filter(|uri| !all.contains_key(*uri))
        .collect();
    let beyond: Vec<&String> = all.keys().filter(|uri| !expected.contains(*uri)).collect();
    ensure!(
        missing.is_empty() && beyond.is_empty(),
        "missing {}: {:?}; not of the web {}: {:?}",
        missing.len(),
        missing.first(),
        beyond.len(),
        beyond.first()
    );
    let repeated: usize = all.values().map(|count| count - 1).sum();
    let again = |seen: &&SeenRequest| seen.visit > 1 && seen.target != "/robots.txt";
    let fetched_again = web.requests().iter().filter(again).count();
    // A visit that is under way when a process is killed is made again. Each node is killed once; a node that was stopped or cut off
    // completes its visits.
    let most = WORKERS * nodes.len();
    if repeated.max(fetched_again) > most || both > 0 {
        bail!(
            "{repeated} pages were archived and {fetched_again} were fetched again, at most {most} are explained; {both} pages have two nodes"
        );
    }
    println!(
        "cluster: all {} pages are archived; {repeated} were archived and {fetched_again} fetched again (at most {most} were in flight \
         when a process was killed), no page has two nodes",
        expected.len()
    );
    Ok(())
}

/// Looks for two requests to a host that are closer than the delay.
#[expect(clippy::print_stdout, reason = "the result of the command")]
fn polite(web: &Web) -> Result<()> {
    let mut requests = web.requests();
    requests.sort_by_key(|seen| seen.came);
    let mut last: BTreeMap<&str, Instant> = BTreeMap::new();
    let mut shortest = Duration::MAX;
    for seen in &requests {
        if let Some(before) = last.insert(&seen.host, seen.came) {
            let rest = seen.came - before;
            ensure!(
                rest + TICK > DELAY,
                "{}{} came {rest:?} after the request before it; the delay is {DELAY:?}",
                seen.host,
                seen.target
            );
            shortest = shortest.min(rest);
        }
    }
    println!(
        "cluster: {} requests, the shortest time between two to a host is {shortest:?}",
        requests.len()
    );
    Ok(())
}

/// Looks for requests of nodes that were cut off for longer than their lease.
#[expect(clippy::print_stdout, reason = "the result of the command")]
fn silent(nodes: &[Node], web: &Web, silences: &[Silence]) -> Result<()> {
    let requests = web.requests();
    for silence in silences {
        let node = &nodes[silence.node];
        let captures = node.captures()?;
        let hosts: BTreeSet<&str> = captures
            .keys()
            .filter_map(|uri| uri.split(['/', ':']).nth(3))
            .collect();
        ensure!(!hosts.is_empty(), "node {} has no sites", node.name);
        let zombie = requests.iter().find(|seen| {
            (silence.from..silence.to).contains(&seen.came) && hosts.contains(&*seen.host)
        });
        if let Some(seen) = zombie {
            bail!(
                "node {} requested {}{} though it was cut off {:?} before, for longer than its lease",
                node.name,
                seen.host,
                seen.target,
                seen.came - silence.from + TIME_TO_LIVE
            );
        }
    }
    println!(
        "cluster: no requests by nodes that had lost their lease ({} times)",
        silences.len()
    );
    Ok(())
}

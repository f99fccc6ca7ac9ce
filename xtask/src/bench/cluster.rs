//! `cargo xtask bench cluster`: crawls the same pages with the embedded store alone, as one node over NATS, and with two nodes that
//! share the crawl, in alternation.
//!
//! The costs do not include the processor time of `nats-server` and of the web. The throughput of two nodes with one core each is
//! not measured but calculated from their processor time for each page, because a machine of two cores has none left for NATS and
//! the web. The calculation assumes that nodes always have work.
//!
//! The numbers of messages to NATS, and of those that JetStream stores, come from the monitoring of `nats-server` (`/varz`,
//! `/jsz`).

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use opilio_test_nats::{NatsServer, free_port};
use serde_json::Value;

use super::cost::{Cost, empty, median};
use super::opilio;
use super::web::{WebProcess, generated_host};
use crate::{command, repository};

/// Options of `cargo xtask bench cluster`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Alternating runs; the medians are printed.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Crawl with this binary instead of building one.
    #[arg(long, value_name = "FILE")]
    opilio: Option<PathBuf>,
    /// Hosts. Each links to pages of the next.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(2..))]
    hosts: u64,
    /// Pages of each host.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(2..))]
    pages: u64,
}

/// Messages and bytes of one crawl.
#[derive(Debug, Clone, Copy, Default)]
struct NatsTraffic {
    /// Messages that clients sent, including requests and acknowledgements.
    messages: u64,
    /// Bytes of these messages.
    bytes: u64,
    /// The maximum that JetStream stored at any time, in messages.
    stored_messages_max: u64,
    /// The maximum that JetStream stored at any time, in bytes on disk.
    stored_bytes_max: u64,
}

/// Interval at which the size of JetStream's storage is read.
const READING_INTERVAL: Duration = Duration::from_millis(200);

/// Runs the command.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) fn run(options: &Options) -> Result<()> {
    let binary = match &options.opilio {
        Some(binary) => fs::canonicalize(binary)?,
        None => command::release("opilio")?,
    };
    let home = repository::root().join("target/bench/cluster");
    let (mut alone, mut one, mut two) = (Vec::new(), Vec::new(), Vec::new());
    let mut traffic = None;
    // The first round compiles components and fills the file cache.
    for round in 0..=options.rounds {
        for (costs, nodes) in [
            (&mut alone, &[][..]),
            (&mut one, &["a"][..]),
            (&mut two, &["a", "b"][..]),
        ] {
            let (cost, sent) = crawl(options, &binary, &home, nodes)?;
            traffic = sent;
            if round > 0 {
                costs.push(cost);
            }
        }
    }
    let (alone, one, two) = (median(&alone), median(&one), median(&two));
    for (name, cost) in [
        ("embedded store", &alone),
        ("one node", &one),
        ("two nodes", &two),
    ] {
        println!(
            "{name:>15}: {:>6} pages, {:>6.1} s, {:>6.0} pages/s, {:>6.1} s of processor time, {:.3} ms a page, at most {:.0} MB a node",
            cost.pages,
            cost.seconds,
            cost.pages_per_second(),
            cost.cpu_seconds,
            cost.cpu_ms_per_page(),
            cost.peak_rss_bytes as f64 / 1e6
        );
    }
    println!(
        "one node over NATS costs {:.2} times the embedded store a page; by this processor time, two nodes with a core each would crawl {:.2} times the pages of one",
        one.cpu_ms_per_page() / alone.cpu_ms_per_page(),
        2.0 * one.cpu_ms_per_page() / two.cpu_ms_per_page()
    );
    if let Some(traffic) = traffic {
        let scale = 1e6 / (options.hosts * options.pages) as f64;
        println!(
            "two nodes, scaled to a million pages: {:.0} messages and {:.0} MB to NATS; JetStream kept at most {} messages and {:.1} MB (not scaled)",
            traffic.messages as f64 * scale,
            traffic.bytes as f64 * scale / 1e6,
            traffic.stored_messages_max,
            traffic.stored_bytes_max as f64 / 1e6
        );
    }
    Ok(())
}

/// Crawls all pages with these nodes, or without NATS if the list is empty. The costs of the nodes are added.
fn crawl(
    options: &Options,
    binary: &Path,
    home: &Path,
    nodes: &[&str],
) -> Result<(Cost, Option<NatsTraffic>)> {
    let web = WebProcess::linked(options.hosts, options.pages)?;
    let seeds: Vec<String> = (0..options.hosts)
        .map(|number| format!("http://{}:{}/0", generated_host(number), web.port))
        .collect();
    let profile = opilio::profile(&seeds, "");
    let monitoring = free_port();
    let nats = match nodes {
        [] => None,
        _ => {
            let server = NatsServer::start_with(&format!("http: \"127.0.0.1:{monitoring}\"\n"));
            Some(server.context("nats-server is not in the path")?)
        }
    };
    empty(home)?;
    let all = nodes.join(",");
    let run = |node: &str| -> Result<Cost> {
        let folder = home.join(node);
        fs::create_dir_all(&folder)?;
        let mut command = Command::new(binary);
        command.current_dir(&folder);
        let Some(nats) = &nats else {
            return opilio::crawl(command, &folder, &profile);
        };
        fs::write(
            folder.join("opilio.toml"),
            format!(
                "[cluster]\nservers = [\"127.0.0.1:{}\"]\nnode = \"{node}\"\n",
                nats.port
            ),
        )?;
        let shared = ["--cluster-job", "bench", "--nodes", &all];
        opilio::crawl_with(command, &folder, &profile, &shared)
    };
    let names: &[&str] = if nodes.is_empty() { &["alone"] } else { nodes };
    let (ended, waiting) = mpsc::channel::<()>();
    let (costs, traffic) = thread::scope(|scope| {
        let traffic = nats
            .is_some()
            .then(|| scope.spawn(move || watch(monitoring, &waiting)));
        let running: Vec<_> = names.iter().map(|name| scope.spawn(|| run(name))).collect();
        let costs: Result<Vec<Cost>> = running.into_iter().map(joined).collect();
        drop(ended);
        Ok::<_, anyhow::Error>((costs?, traffic.map(joined).transpose()?))
    })?;
    let mut crawled = BTreeSet::new();
    for name in names {
        for url in opilio::urls(&home.join(name))? {
            ensure!(crawled.insert(url.clone()), "{url} was fetched twice");
        }
    }
    let pages = crawled.iter().filter(|url| !url.ends_with("/robots.txt"));
    let (pages, all) = (pages.count() as u64, options.hosts * options.pages);
    ensure!(
        pages == all,
        "{pages} pages were crawled, the web has {all}"
    );
    let cost = Cost {
        pages: costs.iter().map(|cost| cost.pages).sum(),
        cpu_seconds: costs.iter().map(|cost| cost.cpu_seconds).sum(),
        seconds: costs.iter().map(|cost| cost.seconds).fold(0.0, f64::max),
        peak_rss_bytes: costs.iter().map(|it| it.peak_rss_bytes).max().unwrap_or(0),
        ..costs[0].clone()
    };
    Ok((cost, traffic))
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    let result = thread.join();
    result.map_err(|_| anyhow!("a thread of the benchmark panicked"))?
}

/// Reads the monitoring of NATS until the other end of the channel is dropped.
fn watch(monitoring: u16, ended: &mpsc::Receiver<()>) -> Result<NatsTraffic> {
    let mut traffic = NatsTraffic::default();
    loop {
        let is_last = ended.recv_timeout(READING_INTERVAL) != Err(RecvTimeoutError::Timeout);
        let kept = figures(monitoring, "/jsz")?;
        let number = |value: &Value, key: &str| value[key].as_u64().unwrap_or(0);
        traffic.stored_messages_max = traffic.stored_messages_max.max(number(&kept, "messages"));
        traffic.stored_bytes_max = traffic.stored_bytes_max.max(number(&kept, "storage"));
        if is_last {
            let server = figures(monitoring, "/varz")?;
            traffic.messages = number(&server, "in_msgs");
            traffic.bytes = number(&server, "in_bytes");
            return Ok(traffic);
        }
    }
}

/// Reads one page of the monitoring of NATS.
fn figures(monitoring: u16, path: &str) -> Result<Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", monitoring))?;
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer
        .split_once("\r\n\r\n")
        .context("NATS' monitoring gave no answer")?;
    serde_json::from_str(body).context("NATS' monitoring gave no JSON")
}

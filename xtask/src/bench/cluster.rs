//! `cargo xtask bench cluster`: the same pages crawled with the embedded store alone, as one node over NATS, and by two nodes that
//! share the crawl, in alternation.
//!
//! Processor time of `nats-server` and of the web is on no account. Throughput of two nodes with a core each is not measured but
//! calculated from their processor time of a page: a machine of two cores has none left for NATS and the web. The calculation assumes
//! that nodes have work all the time.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context as _, Result, anyhow, ensure};
use opilio_test_nats::NatsServer;

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
    /// Hosts, each of which names pages of the next.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(2..))]
    hosts: u64,
    /// Pages of each host.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(2..))]
    pages: u64,
}

/// Runs the command.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) fn run(options: &Options) -> Result<()> {
    let binary = match &options.opilio {
        Some(binary) => fs::canonicalize(binary)?,
        None => command::release("opilio")?,
    };
    let home = repository::root().join("target/bench/cluster");
    let (mut alone, mut one, mut two) = (Vec::new(), Vec::new(), Vec::new());
    // The first round compiles components and warms files up.
    for round in 0..=options.rounds {
        let crawls = [
            (&mut alone, crawl(options, &binary, &home, &[])?),
            (&mut one, crawl(options, &binary, &home, &["a"])?),
            (&mut two, crawl(options, &binary, &home, &["a", "b"])?),
        ];
        for (costs, cost) in crawls {
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
            "{name:>15}: {:>6} pages, {:>6.1} s, {:>6.1} s of processor time, {:.3} ms a page, at most {:.0} MB a node",
            cost.pages,
            cost.seconds,
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
    Ok(())
}

/// Crawls all pages with these nodes, or without NATS if the list is empty. The costs of the nodes are added up.
fn crawl(options: &Options, binary: &Path, home: &Path, nodes: &[&str]) -> Result<Cost> {
    let web = WebProcess::linked(options.hosts, options.pages)?;
    let seeds: Vec<String> = (0..options.hosts)
        .map(|number| format!("http://{}:{}/0", generated_host(number), web.port))
        .collect();
    let profile = opilio::profile(&seeds, "");
    let nats = match nodes {
        [] => None,
        _ => Some(NatsServer::start().context("nats-server is not in the path")?),
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
    let costs = thread::scope(|scope| {
        let running: Vec<_> = names.iter().map(|name| scope.spawn(|| run(name))).collect();
        let ended = running.into_iter().map(|node| {
            node.join()
                .map_err(|_| anyhow!("a node's thread panicked"))?
        });
        ended.collect::<Result<Vec<Cost>>>()
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
    Ok(Cost {
        pages: costs.iter().map(|cost| cost.pages).sum(),
        cpu_seconds: costs.iter().map(|cost| cost.cpu_seconds).sum(),
        seconds: costs.iter().map(|cost| cost.seconds).fold(0.0, f64::max),
        peak_rss_bytes: costs.iter().map(|it| it.peak_rss_bytes).max().unwrap_or(0),
        ..costs[0].clone()
    })
}

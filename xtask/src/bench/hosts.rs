//! `cargo xtask bench hosts`: compares a polite crawl of many hosts with a crawl of as many equal pages on two hosts without
//! delays.
//!
//! The difference is the cost of dispatcher, frontier, DNS and robots.txt for each host. Both crawls run in the same minutes.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::cost::{Cost, empty, median};
use super::opilio;
use super::web::{WebProcess, generated_host};
use crate::{command, repository};

/// Number of hosts of the reference crawl.
const FEW: u64 = 2;

/// Options of `cargo xtask bench hosts`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Alternating runs; the medians are printed.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Crawl with this binary instead of building one.
    #[arg(long, value_name = "FILE")]
    opilio: Option<PathBuf>,
    /// Hosts of the polite crawl.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(FEW..))]
    hosts: u64,
    /// Pages of each host.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..))]
    pages: u64,
    /// Time between two requests to one host.
    #[arg(long, default_value = "1s")]
    delay: String,
}

/// Runs the command.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) fn run(options: &Options) -> Result<()> {
    let binary = match &options.opilio {
        Some(binary) => binary.clone(),
        None => command::release("opilio")?,
    };
    let folder = repository::root().join("target/bench/hosts");
    let crawl = |hosts: u64, pages: u64, delay: &str| -> Result<Cost> {
        let web = WebProcess::generated(hosts, pages)?;
        let seed = |number| format!("http://{}:{}/0", generated_host(number), web.port);
        let seeds: Vec<String> = (0..hosts).map(seed).collect();
        empty(&folder)?;
        let profile = opilio::profile(&seeds, "");
        let profile = profile.replace("min-delay = \"0s\"", &format!("min-delay = \"{delay}\""));
        let profile = profile.replace("max-delay = \"0s\"", &format!("max-delay = \"{delay}\""));
        opilio::crawl(Command::new(&binary), &folder, &profile)
    };
    let (mut many, mut few) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        few.push(crawl(FEW, options.hosts * options.pages / FEW, "0s")?);
        many.push(crawl(options.hosts, options.pages, &options.delay)?);
    }
    let (many, few) = (median(&many), median(&few));
    for (cost, hosts) in [(&few, FEW), (&many, options.hosts)] {
        println!(
            "{hosts:>6} hosts: {:>7} pages, {:>7.1} s, {:>7.1} s of processor time, {:.3} ms a page, at most {:.0} MB",
            cost.pages,
            cost.seconds,
            cost.cpu_seconds,
            cost.cpu_ms_per_page(),
            cost.peak_rss_bytes as f64 / 1e6
        );
        for (name, seconds) in &cost.threads {
            println!(
                "{name:>20} {:.3} ms a page",
                1e3 * seconds / cost.pages as f64
            );
        }
    }
    println!(
        "ratio {:.2}",
        many.cpu_ms_per_page() / few.cpu_ms_per_page()
    );
    Ok(())
}

//! Benchmarks of whole crawls. Each prints ratios between programs that ran alternately in the same minutes.

use anyhow::Result;

mod bare_client;
mod browser;
mod cluster;
mod cost;
mod hosts;
pub(crate) mod measured;
mod opilio;
mod peers;
mod processes;
mod revisits;
mod web;

/// Benchmarks.
#[derive(clap::Subcommand)]
pub(crate) enum Bench {
    /// Crawl two documentation packages with opilio, wget and Heritrix in alternation; fetch them with a bare HTTP client.
    Peers(peers::Options),
    /// Fetch unchanged pages again, to compare the cost of such a visit with that of a new page.
    Revisits(revisits::Options),
    /// Compare a polite crawl of many hosts with a crawl of as many pages on two hosts without delays.
    Hosts(hosts::Options),
    /// Crawl a site with a browser for no page, for pages that need one, and for all pages. Compare with a bare loop in Playwright,
    /// and look for leaks.
    Browser(browser::Options),
    /// Crawl with the embedded store, as one node over NATS, and as two nodes that share the crawl.
    Cluster(cluster::Options),
    /// Serve the web of the benchmarks: print its port, and serve until standard input ends.
    #[command(hide = true)]
    Web(web::Options),
    /// The bare HTTP client of the benchmarks.
    #[command(hide = true)]
    BareClient(bare_client::Options),
}

/// Runs the command.
pub(crate) fn run(bench: Bench) -> Result<()> {
    match bench {
        Bench::Peers(options) => peers::run(&options),
        Bench::Revisits(options) => revisits::run(&options),
        Bench::Hosts(options) => hosts::run(&options),
        Bench::Browser(options) => browser::run(&options),
        Bench::Cluster(options) => cluster::run(&options),
        Bench::Web(options) => web::run(&options),
        Bench::BareClient(options) => bare_client::run(&options),
    }
}

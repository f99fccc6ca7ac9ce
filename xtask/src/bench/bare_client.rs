//! A client that only fetches: connections are kept open, bodies are discarded.

use std::collections::VecDeque;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Options of the hidden `cargo xtask bench bare-client`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// A file with one URL on each line.
    urls: PathBuf,
    /// Address of all hosts, on loopback.
    #[arg(long)]
    port: u16,
    /// Connections at the same time.
    #[arg(long)]
    connections: usize,
    /// Rounds in which all URLs are fetched. The output is for one round.
    #[arg(long, default_value_t = 1)]
    rounds: u64,
}

/// Number of pages and bytes of their bodies.
#[derive(Default)]
struct Fetched {
    pages: u64,
    bytes: u64,
}

type Urls = Arc<Mutex<VecDeque<String>>>;

/// Fetches all URLs and prints the number of pages and bytes.
#[expect(clippy::print_stdout, reason = "the result of the command")]
pub(super) fn run(options: &Options) -> Result<()> {
    let list = fs::read_to_string(&options.urls)?;
    let round = || list.lines().map(str::to_owned);
    let urls = (0..options.rounds).flat_map(|_| round()).collect();
    let urls: Urls = Arc::new(Mutex::new(urls));
    let server = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
    let runtime = tokio::runtime::Runtime::new()?;
    let fetched = runtime.block_on(fetch_all(server, &urls, options.connections))?;
    let pages = fetched.pages / options.rounds;
    let bytes = fetched.bytes / options.rounds;
    println!("{}", json!({"pages": pages, "bytes": bytes}));
    Ok(())
}

async fn fetch_all(server: SocketAddr, urls: &Urls, connections: usize) -> Result<Fetched> {
    let mut at_work = JoinSet::new();
    for _ in 0..connections {
        at_work.spawn(fetch_over_one(server, urls.clone()));
    }
    let mut sum = Fetched::default();
    while let Some(fetched) = at_work.join_next().await {
        let Fetched { pages, bytes } = fetched??;
        sum.pages += pages;
        sum.bytes += bytes;
    }
    Ok(sum)
}

async fn fetch_over_one(server: SocketAddr, urls: Urls) -> Result<Fetched> {
    let stream = TcpStream::connect(server).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let mut fetched = Fetched::default();
    while let Some(url) = next(&urls) {
        let (authority, target) = parts(&url)?;
        let request = Request::get(target)
            .header("Host", authority)
            .header("User-Agent", "bare-client")
            .header("Accept", "*/*")
            .body(Empty::<Bytes>::new())?;
        sender.ready().await?;
        let mut body = sender.send_request(request).await?.into_body();
        while let Some(frame) = body.frame().await {
            fetched.bytes += frame?.data_ref().map_or(0, |data| data.len() as u64);
        }
        fetched.pages += 1;
    }
    drop(sender);
    connection.await??;
    Ok(fetched)
}

fn next(urls: &Urls) -> Option<String> {
    let mut urls = urls.lock().unwrap_or_else(PoisonError::into_inner);
    urls.pop_front()
}

/// The URL's authority, and its path with query.
fn parts(url: &str) -> Result<(&str, &str)> {
    let rest = url.strip_prefix("http://");
    let rest = rest.with_context(|| format!("not an http URL: {url}"))?;
    let slash = rest.find('/').with_context(|| format!("no path: {url}"))?;
    Ok(rest.split_at(slash))
}

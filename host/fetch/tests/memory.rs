//! Memory of hundreds of large downloads at once, compared with a client that discards the bytes that it reads. The test has a
//! process of its own, because the peak memory of a process never decreases.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use opilio_fetch::{Fetcher, FetcherConfig, HeadVerdict, Request, ResponseHead};
use opilio_uri::Uri;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Barrier, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

const DOWNLOADS: usize = 500;
/// The socket of the client, that of the server, and a scratch file.
const FILES_PER_DOWNLOAD: usize = 3;
const BODY: usize = 600 << 10;
/// Less than one body may hold in memory. So without a common limit, all these bytes would be in memory at once.
const FIRST_PART: usize = 400 << 10;
const MEMORY_TOTAL: usize = 32 << 20;
/// Limit for buffers and state of 500 exchanges, and for freed memory that the allocator keeps.
const OTHER_MEMORY_MAX: u64 = 96 << 20;

/// The number in a line of a kernel file.
fn number(file: &str, line: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap();
    let line = text.lines().find_map(|found| found.strip_prefix(line));
    let mut words = line.unwrap().split_whitespace();
    words.next().unwrap().parse().unwrap()
}

fn peak() -> u64 {
    number("/proc/self/status", "VmHWM:") << 10
}

/// Sends the first part of each body, and the rest once all downloads have had theirs. Returns the port, and a channel with a
/// message for each accepted connection: clients connect one after the other, because the kernel resets connections if too many
/// wait to be accepted.
async fn serve(downloads: usize) -> (u16, mpsc::UnboundedReceiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let all = Arc::new(Barrier::new(downloads));
    let (accepted, connections) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            // The receiver is gone once all downloads have begun.
            let _ = accepted.send(());
            let all = all.clone();
            tokio::spawn(async move {
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = client.read_u8().await else {
                        return;
                    };
                    request.push(byte);
                }
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\n\r\n");
                client.write_all(head.as_bytes()).await.unwrap();
                let piece = [b'x'; 4096];
                for sent in 0..BODY / piece.len() {
                    if sent == FIRST_PART / piece.len() {
                        all.wait().await;
                    }
                    client.write_all(&piece).await.unwrap();
                }
            });
        }
    });
    (port, connections)
}

/// Waits for the next connection.
async fn accepted(connections: &mut mpsc::UnboundedReceiver<()>) {
    let next = timeout(Duration::from_secs(60), connections.recv());
    next.await.unwrap().unwrap();
}

async fn peak_of_bare_client(downloads: usize) -> u64 {
    let (port, mut connections) = serve(downloads).await;
    let mut clients = JoinSet::new();
    for _ in 0..downloads {
        clients.spawn(async move {
            let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
                .await
                .unwrap();
            server.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
            let mut buffer = [0; 8192];
            while server.read(&mut buffer).await.unwrap() > 0 {}
        });
        accepted(&mut connections).await;
    }
    while let Some(done) = clients.join_next().await {
        done.unwrap();
    }
    peak()
}

async fn peak_of_fetcher(downloads: usize) -> u64 {
    let (port, mut connections) = serve(downloads).await;
    let scratch = tempfile::tempdir().unwrap();
    let mut config = FetcherConfig::new("opilio-test/1", scratch.path());
    config.addresses.loopback = true;
    config.connect_timeout = Duration::from_secs(600);
    config.response_timeout = Duration::from_secs(600);
    config.spool_memory_max = 512 << 10;
    config.spool_memory_total_max = MEMORY_TOTAL;
    let fetcher = Fetcher::new(config).unwrap();
    let mut exchanges = JoinSet::new();
    for number in 0..downloads {
        let fetcher = fetcher.clone();
        exchanges.spawn(async move {
            let uri = Uri::parse(&format!("http://site{number}.test:{port}/")).unwrap();
            let request = Request::new(uri, vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]);
            let proceed = async |_: &ResponseHead| HeadVerdict::Continue;
            let exchange = fetcher.http(request, proceed).await;
            assert_eq!(exchange.payload.length(), BODY as u64, "{exchange:?}");
            let mut first = [0];
            exchange.payload.reader().read_exact(&mut first).unwrap();
            assert_eq!(first, [b'x']);
        });
        accepted(&mut connections).await;
    }
    while let Some(done) = exchanges.join_next().await {
        done.unwrap();
    }
    peak()
}

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_large_downloads_at_once_take_bounded_memory() {
    let files = number("/proc/self/limits", "Max open files") as usize;
    let downloads = DOWNLOADS.min(files.saturating_sub(100) / FILES_PER_DOWNLOAD);
    let bare = peak_of_bare_client(downloads).await;
    let ours = peak_of_fetcher(downloads).await;
    println!(
        "{downloads} downloads of {BODY} B at once: peak {} MiB, of a bare client {} MiB",
        ours >> 20,
        bare >> 20
    );
    let difference = ours.saturating_sub(bare);
    assert!(
        difference < MEMORY_TOTAL as u64 + OTHER_MEMORY_MAX,
        "{difference} B more"
    );
}

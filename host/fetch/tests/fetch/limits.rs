//! Further limits of exchanges: rates, header counts, scratch space, addresses, ports, and the stop of a crawl.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use opilio_fetch::{
    AddressFamily, Allowance, Exchange, Fetcher, FetcherConfig, HeadVerdict, Request, ResponseHead,
    TruncationCause,
};
use opilio_uri::Uri;

use crate::server::{Connection, Server};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Long enough for loopback on a busy machine, and short in tests that wait for it.
const SHORT: Duration = Duration::from_secs(1);
/// Longer than any test.
const LONG: Duration = Duration::from_secs(600);

fn config() -> FetcherConfig {
    let mut config = FetcherConfig::new("opilio-test/1", std::env::temp_dir());
    config.addresses.loopback = true;
    config.response_timeout = LONG;
    config
}

fn request(server: &Server, addresses: &[IpAddr]) -> Request {
    let uri = format!("http://site.test:{}/", server.address.port());
    Request::new(Uri::parse(&uri).unwrap(), addresses.to_vec())
}

async fn fetch(fetcher: &Fetcher, server: &Server) -> Exchange {
    let proceed = async |_: &ResponseHead| HeadVerdict::Continue;
    fetcher.http(request(server, &[LOOPBACK]), proceed).await
}

#[track_caller]
fn check(exchange: &Exchange, truncation: TruncationCause, reason: &str, annotation: &str) {
    assert_eq!(
        (exchange.status(), exchange.truncated),
        (200, Some(truncation)),
        "{exchange:?}"
    );
    assert_eq!(truncation.warc_reason(), reason);
    assert_eq!(exchange.annotations, [annotation]);
}

/// Sends half of a body, and then nothing.
async fn half(mut connection: Connection) {
    connection.request().await;
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
    connection.send(head).await;
    connection.hang().await;
}

#[tokio::test]
async fn the_first_byte_has_a_limit_of_its_own() {
    let server = Server::plain(|mut connection: Connection| async move {
        connection.request().await;
        connection.hang().await;
    })
    .await;
    let mut config = config();
    config.first_byte_timeout = Some(SHORT);
    let exchange = fetch(&Fetcher::new(config).unwrap(), &server).await;
    assert_eq!(exchange.status(), -4, "{exchange:?}");

    let answering = Server::plain(half).await;
    let mut config = self::config();
    config.first_byte_timeout = Some(LONG);
    config.response_timeout = SHORT;
    let exchange = fetch(&Fetcher::new(config).unwrap(), &answering).await;
    assert_eq!(
        (exchange.status(), exchange.payload.length()),
        (-4, 5),
        "{exchange:?}"
    );
}

#[tokio::test]
async fn a_slow_body_is_cut() {
    let server = Server::plain(half).await;
    let mut config = config();
    config.rate_min = Some(100);
    config.rate_window = SHORT;
    let exchange = fetch(&Fetcher::new(config).unwrap(), &server).await;
    check(&exchange, TruncationCause::Rate, "time", "rateTrunc");
    assert_eq!(exchange.payload.length(), 5);
}

#[tokio::test]
async fn slow_whois_content_is_cut() {
    let server = Server::plain(|mut connection: Connection| async move {
        connection.line(&mut Vec::new()).await;
        while connection.send(b"x").await {
            tokio::time::sleep(SHORT).await;
        }
    })
    .await;
    let mut config = config();
    config.rate_min = Some(100);
    config.rate_window = SHORT;
    let uri = format!("whois://site.test:{}/x", server.address.port());
    let request = Request::new(Uri::parse(&uri).unwrap(), vec![LOOPBACK]);
    let exchange = Fetcher::new(config).unwrap().whois(request).await;
    assert_eq!(
        (exchange.failure.is_none(), exchange.truncated),
        (true, Some(TruncationCause::Rate)),
        "{exchange:?}"
    );
}

/// A server that sends without end, and a fetch that takes all of the allowed bandwidth until it is dropped.
struct Busy {
    server: Server,
    fetch: tokio::task::JoinHandle<Exchange>,
}

impl Busy {
    async fn with(fetcher: &Fetcher) -> Busy {
        let throttle = fetcher.throttle();
        throttle.allow(Allowance {
            bytes_per_second: Some(1 << 20),
            connections: None,
        });
        let server = Server::plain(|mut connection: Connection| async move {
            connection.request().await;
            let head = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n";
            let mut is_connected = connection.send(head).await;
            while is_connected {
                is_connected = connection.send(&[b'x'; 16 * 1024]).await;
            }
        })
        .await;
        let (fetcher, request) = (fetcher.clone(), request(&server, &[LOOPBACK]));
        let proceed = async |_: &ResponseHead| HeadVerdict::Continue;
        let fetch = tokio::spawn(async move { fetcher.http(request, proceed).await });
        while throttle.taken().waits < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Busy { server, fetch }
    }

    /// Returns `true` if the fetch has run until now on one connection.
    fn is_busy(&self) -> bool {
        self.server.captures().len() == 1 && !self.fetch.is_finished()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.fetch.abort();
    }
}

/// Long enough for several reads of the busy fetch.
const BUSY_TIME: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn slow_whois_content_is_cut_although_another_fetch_takes_the_bandwidth() {
    let server = Server::plain(|mut connection: Connection| async move {
        connection.line(&mut Vec::new()).await;
        while connection.send(b"x").await {
            tokio::time::sleep(SHORT).await;
        }
    })
    .await;
    let mut config = config();
    config.rate_window = BUSY_TIME;
    let base = Fetcher::new(config.clone()).unwrap();
    let busy = Busy::with(&base).await;
    config.total_timeout = 20 * BUSY_TIME;
    config.rate_min = Some(100);
    let fetcher = base.with(config).unwrap();
    let uri = format!("whois://site.test:{}/x", server.address.port());
    let request = Request::new(Uri::parse(&uri).unwrap(), vec![LOOPBACK]);
    let exchange = fetcher.whois(request).await;
    assert!(busy.is_busy());
    assert_eq!(
        exchange.truncated,
        Some(TruncationCause::Rate),
        "{exchange:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_is_abandoned_although_another_fetch_takes_the_bandwidth() {
    let server = Server::plain(half).await;
    let mut config = config();
    let base = Fetcher::new(config.clone()).unwrap();
    let busy = Busy::with(&base).await;
    config.total_timeout = 20 * BUSY_TIME;
    config.response_timeout = BUSY_TIME;
    let exchange = fetch(&base.with(config).unwrap(), &server).await;
    assert!(busy.is_busy());
    let failure = exchange.failure.as_ref().map(ToString::to_string);
    let failure = failure.unwrap_or_default();
    assert!(failure.contains("1s"), "{failure}: {exchange:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_body_is_cut_although_another_fetch_takes_the_bandwidth() {
    let server = Server::plain(half).await;
    let mut config = config();
    config.rate_window = BUSY_TIME;
    let base = Fetcher::new(config.clone()).unwrap();
    let busy = Busy::with(&base).await;
    config.total_timeout = 20 * BUSY_TIME;
    config.rate_min = Some(100);
    let exchange = fetch(&base.with(config).unwrap(), &server).await;
    assert!(busy.is_busy());
    check(&exchange, TruncationCause::Rate, "time", "rateTrunc");
}

#[tokio::test]
async fn the_number_of_headers_is_limited() {
    let server = Server::plain(|mut connection: Connection| async move {
        connection.request().await;
        let lines = "X: y\r\n".repeat(20);
        let response = format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 2\r\n\r\nok");
        connection.send(response.as_bytes()).await;
        connection.hang().await;
    })
    .await;
    let mut config = config();
    config.headers_max = 21;
    let exchange = fetch(&Fetcher::new(config.clone()).unwrap(), &server).await;
    assert_eq!(exchange.truncated, None, "{exchange:?}");
    config.headers_max = 20;
    let exchange = fetch(&Fetcher::new(config).unwrap(), &server).await;
    check(&exchange, TruncationCause::Headers, "length", "headerTrunc");
}

#[tokio::test]
async fn a_stop_cuts_bodies_and_keeps_received_bytes() {
    let server = Server::plain(half).await;
    let fetcher = Fetcher::new(config()).unwrap();
    let cut = fetcher.abort_handle();
    let when_the_head_is_there = async |_: &ResponseHead| {
        cut.now();
        HeadVerdict::Continue
    };
    let exchange = fetcher
        .http(request(&server, &[LOOPBACK]), when_the_head_is_there)
        .await;
    check(&exchange, TruncationCause::Stop, "unspecified", "stopTrunc");
    // A later exchange does not begin.
    let exchange = fetch(&fetcher, &server).await;
    assert_eq!(
        (exchange.status(), exchange.head.is_some()),
        (0, false),
        "{exchange:?}"
    );
}

/// Sends a body of this many megabytes.
async fn large(mut connection: Connection, megabytes: usize) {
    connection.request().await;
    let length = megabytes << 20;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    connection.send(head.as_bytes()).await;
    let megabyte = vec![b'x'; 1 << 20];
    for _ in 0..megabytes {
        if !connection.send(&megabyte).await {
            return;
        }
    }
    connection.hang().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exchange_waits_for_scratch_space() {
    let server = Server::plain(|connection| large(connection, 3)).await;
    let mut config = config();
    config.spool_memory_max = 0;
    config.scratch_bytes_max = Some(5 << 20);
    config.keep_alive = false;
    let fetcher = Fetcher::new(config).unwrap();
    let first = fetch(&fetcher, &server).await;
    assert_eq!(first.payload.length(), 3 << 20, "{first:?}");
    let other = {
        let (fetcher, request) = (fetcher.clone(), request(&server, &[LOOPBACK]));
        let proceed = async |_: &ResponseHead| HeadVerdict::Continue;
        tokio::spawn(async move { fetcher.http(request, proceed).await })
    };
    // The first recording still holds its space, so the other has to wait.
    tokio::task::yield_now().await;
    assert!(!other.is_finished());
    drop(first);
    let other = other.await.unwrap();
    assert_eq!(
        (other.truncated, other.payload.length()),
        (None, 3 << 20),
        "{other:?}"
    );
}

#[tokio::test]
async fn a_download_is_cut_if_no_other_exchange_can_release_space() {
    let server = Server::plain(|connection| large(connection, 3)).await;
    let mut config = config();
    config.spool_memory_max = 0;
    config.scratch_bytes_max = Some(2 << 20);
    let exchange = fetch(&Fetcher::new(config).unwrap(), &server).await;
    check(
        &exchange,
        TruncationCause::Scratch,
        "unspecified",
        "scratchTrunc",
    );
    let length = exchange.payload.length();
    assert!((1 << 20..=2 << 20).contains(&length), "{length}");
    let head = exchange.head.unwrap().length;
    assert_eq!(exchange.wire.length(), head + length);
}

#[tokio::test]
async fn the_next_address_is_tried_if_one_does_not_answer() {
    let server = Server::plain(half).await;
    let mut config = config();
    config.body_bytes_max = Some(2);
    config.family = AddressFamily::Ipv6First;
    let fetcher = Fetcher::new(config.clone()).unwrap();
    // No server listens on this port at ::1.
    let addresses = [LOOPBACK, IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let proceed = async |_: &ResponseHead| HeadVerdict::Continue;
    let exchange = fetcher.http(request(&server, &addresses), proceed).await;
    assert_eq!(
        (exchange.status(), exchange.peer),
        (200, Some(LOOPBACK)),
        "{exchange:?}"
    );
    config.family = AddressFamily::Ipv6Only;
    let fetcher = Fetcher::new(config).unwrap();
    let exchange = fetcher.http(request(&server, &[LOOPBACK]), proceed).await;
    assert_eq!(exchange.status(), -1, "{exchange:?}");
}

#[tokio::test]
async fn connections_come_from_the_configured_address() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let from = tokio::spawn(async move { listener.accept().await.unwrap().1.ip() });
    let mut config = config();
    let local: IpAddr = "127.0.0.7".parse().unwrap();
    config.bind = vec!["::1".parse().unwrap(), local];
    config.first_byte_timeout = Some(SHORT);
    let uri = Uri::parse(&format!("http://site.test:{port}/")).unwrap();
    let proceed = async |_: &ResponseHead| HeadVerdict::Continue;
    let fetcher = Fetcher::new(config).unwrap();
    fetcher
        .http(Request::new(uri, vec![LOOPBACK]), proceed)
        .await;
    assert_eq!(from.await.unwrap(), local);
}

#[tokio::test]
async fn a_derived_fetcher_has_its_own_limits_and_shares_connections() {
    let server = Server::plain(|mut connection: Connection| async move {
        while connection.request().await {
            let response = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
            connection.send(response).await;
        }
    })
    .await;
    let fetcher = Fetcher::new(config()).unwrap();
    assert_eq!(fetch(&fetcher, &server).await.payload.length(), 5);
    let mut small = config();
    small.body_bytes_max = Some(2);
    let small = fetcher.with(small).unwrap();
    let exchange = fetch(&small, &server).await;
    assert!(exchange.reused_connection);
    assert_eq!(exchange.payload.length(), 2);
    // An idle connection is not used for an address that the settings refuse.
    assert_eq!(fetch(&fetcher, &server).await.payload.length(), 5);
    let mut closed = config();
    closed.addresses.loopback = false;
    let exchange = fetch(&fetcher.with(closed).unwrap(), &server).await;
    assert_eq!(exchange.status(), -5001, "{exchange:?}");
}

#[tokio::test]
async fn an_incomplete_head_has_its_own_time_limit() {
    let heads: [&[u8]; 2] = [
        b"HTTP/1.1 200 OK\r\nX: y",
        b"HTTP/1.1 103 Early Hints\r\n\r\n",
    ];
    for head in heads {
        let server = Server::plain(move |mut connection: Connection| async move {
            connection.request().await;
            connection.send(head).await;
            connection.hang().await;
        })
        .await;
        let mut config = config();
        config.header_timeout = SHORT;
        let exchange = fetch(&Fetcher::new(config).unwrap(), &server).await;
        assert_eq!(
            (exchange.status(), exchange.truncated),
            (-4, Some(TruncationCause::Time)),
            "{exchange:?}"
        );
        let failure = exchange.failure.unwrap().to_string();
        assert!(failure.contains("1s"), "{failure}");
    }
}

#[tokio::test]
async fn a_body_may_take_longer_than_a_head() {
    let server = Server::plain(|mut connection: Connection| async move {
        connection.request().await;
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
        connection.send(head).await;
        tokio::time::sleep(2 * SHORT).await;
        connection.send(b"hello").await;
        connection.hang().await;
    })
    .await;
    let mut config = config();
    config.header_timeout = SHORT;
    let exchange = fetch(&Fetcher::new(config).unwrap(), &server).await;
    assert_eq!(
        (exchange.status(), exchange.payload.length()),
        (200, 10),
        "{exchange:?}"
    );
}

#[tokio::test]
async fn ports_of_other_services_are_used_only_if_the_profile_allows_them() {
    let (fetcher, server) = (Fetcher::new(config()).unwrap(), "site.test");
    let status = async |fetcher: &Fetcher, uri: String| {
        let request = Request::new(Uri::parse(&uri).unwrap(), vec![LOOPBACK]);
        let proceed = async |_: &ResponseHead| HeadVerdict::Continue;
        let exchange = match request.uri.scheme() {
            "ftp" => fetcher.ftp(request, proceed).await,
            "whois" => fetcher.whois(request).await,
            _ => fetcher.http(request, proceed).await,
        };
        assert!(exchange.peer.is_none(), "{exchange:?}");
        exchange.status()
    };
    for scheme in ["http", "https", "ftp", "whois"] {
        let uri = format!("{scheme}://{server}:6697/x");
        assert_eq!(status(&fetcher, uri).await, -5001, "{scheme}");
    }
    // No server listens on this port.
    let mut config = config();
    config.allow_ports = vec![1];
    let allowing = Fetcher::new(config).unwrap();
    assert_eq!(status(&allowing, format!("http://{server}:1/")).await, -2);
}

//! Servers that speak only HTTP/2, and the recordings of their responses.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use opilio_fetch::{
    Exchange, Fetcher, FetcherConfig, HeadVerdict, NameServer, Request, RequestBody, ResponseHead,
    TruncationCause, Trust,
};
use opilio_uri::Uri;
use rustls::ServerConfig;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Ways to refuse HTTP/1.1.
#[derive(Clone, Copy)]
enum Refusal {
    /// In the handshake.
    Alpn,
    /// By closing the connection.
    Close,
    /// With a status code.
    Status,
}

struct Server {
    port: u16,
    connections: Arc<AtomicUsize>,
}

async fn serve(refusal: Refusal) -> Server {
    serve_with(refusal, speak).await
}

async fn serve_with<F>(
    refusal: Refusal,
    speak: impl Fn(tokio_rustls::server::TlsStream<tokio::net::TcpStream>) -> F + Send + 'static,
) -> Server
where
    F: Future<Output = ()> + Send + 'static,
{
    serve_as("site.test", refusal, speak).await.0
}

async fn serve_as<F>(
    host: &str,
    refusal: Refusal,
    speak: impl Fn(tokio_rustls::server::TlsStream<tokio::net::TcpStream>) -> F + Send + 'static,
) -> (Server, CertificateDer<'static>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let made = rcgen::generate_simple_self_signed([host.to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = match refusal {
        Refusal::Alpn => vec![b"h2".to_vec()],
        Refusal::Close | Refusal::Status => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
    };
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let Ok(mut session) = acceptor.accept(tcp).await else {
                continue;
            };
            if session.get_ref().1.alpn_protocol() == Some(b"h2") {
                tokio::spawn(speak(session));
                continue;
            }
            let mut head = vec![0; 4096];
            let _ = session.read(&mut head).await;
            if let Refusal::Status = refusal {
                let answer =
                    b"HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Length: 0\r\n\r\n";
                session.write_all(answer).await.unwrap();
            }
            let _ = session.shutdown().await;
        }
    });
    (Server { port, connections }, certificate)
}

/// Answers the preface with SETTINGS, then sends `before` once and `flood` repeatedly until the client disconnects.
async fn flood(
    mut session: tokio_rustls::server::TlsStream<tokio::net::TcpStream>,
    before: &[u8],
    flood: &[u8],
) {
    session
        .write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0])
        .await
        .unwrap();
    session.write_all(before).await.unwrap();
    let many = flood.repeat(1000);
    let (mut reading, mut writing) = tokio::io::split(session);
    let drained = async { tokio::io::copy(&mut reading, &mut tokio::io::sink()).await };
    let flooded = async { while writing.write_all(&many).await.is_ok() {} };
    tokio::select! {
        _ = drained => {}
        () = flooded => {}
    }
}

/// A server that floods every connection in this way.
async fn serve_flood(before: &'static [u8], frames: &'static [u8]) -> Server {
    serve_with(Refusal::Alpn, move |session| flood(session, before, frames)).await
}

async fn speak(session: tokio_rustls::server::TlsStream<tokio::net::TcpStream>) {
    let mut connection = h2::server::handshake(session).await.unwrap();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        tokio::spawn(async move {
            let path = request.uri().path().to_owned();
            assert_eq!(request.uri().host(), Some("site.test"));
            assert!(!request.headers().contains_key("host"));
            let mut received = request.into_body();
            let mut echo = Vec::new();
            while let Some(Ok(data)) = received.data().await {
                echo.extend_from_slice(&data);
                let _ = received.flow_control().release_capacity(data.len());
            }
            // The announced length is greater than that of the body.
            let announced = (path == "/breaks").then_some("9");
            let mut response = http::Response::builder().status(200);
            if let Some(length) = announced {
                response = response.header("content-length", length);
            }
            let response = response
                .header("content-type", "text/plain")
                .header("set-cookie", "a=1")
                .header("set-cookie", "b=2")
                .body(())
                .unwrap();
            let mut body = respond.send_response(response, false).unwrap();
            if path == "/large" {
                for _ in 0..100 {
                    let _ = body.send_data(Bytes::from(vec![b'x'; 10_000]), false);
                }
            }
            echo.extend_from_slice(b"hello");
            let _ = body.send_data(echo.into(), true);
        });
    }
}

fn fetcher(change: impl FnOnce(&mut FetcherConfig)) -> Fetcher {
    let mut config = FetcherConfig::new("opilio-test/1", std::env::temp_dir());
    config.addresses.loopback = true;
    config.trust = Trust::Record;
    change(&mut config);
    Fetcher::new(config).unwrap()
}

fn request(server: &Server, path: &str) -> Request {
    let uri = format!("https://site.test:{}{path}", server.port);
    Request::new(
        Uri::parse(&uri).unwrap(),
        vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
    )
}

async fn fetch(fetcher: &Fetcher, request: Request) -> Exchange {
    let proceed = async |_: &ResponseHead| HeadVerdict::Continue;
    fetcher.http(request, proceed).await
}

fn wire(exchange: &Exchange) -> String {
    let mut text = String::new();
    exchange.wire.reader().read_to_string(&mut text).unwrap();
    text
}

const EXPECTED: &str =
    "HTTP/1.1 200 \r\ncontent-type: text/plain\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n\r\nhello";

#[tokio::test]
async fn a_server_that_refuses_http_1_is_fetched_over_http_2() {
    for refusal in [Refusal::Alpn, Refusal::Close, Refusal::Status] {
        let server = serve(refusal).await;
        let fetcher = fetcher(|_| {});
        for connections in [2, 3] {
            let exchange = fetch(&fetcher, request(&server, "/a?b=c")).await;
            assert_eq!(exchange.status(), 200, "{exchange:?}");
            assert_eq!(wire(&exchange), EXPECTED);
            assert_eq!(exchange.payload.length(), 5);
            assert_eq!(exchange.protocols(), ["h2", "tls/1.3"]);
            let sent = String::from_utf8_lossy(&exchange.request_bytes).into_owned();
            let first = format!("GET /a?b=c HTTP/1.1\r\nhost: site.test:{}\r\n", server.port);
            assert!(sent.starts_with(&first), "{sent}");
            assert!(
                sent.contains("\r\nuser-agent: opilio-test/1\r\n") && sent.ends_with("\r\n\r\n"),
                "{sent}"
            );
            // The protocol of the server is remembered.
            assert_eq!(server.connections.load(Ordering::SeqCst), connections);
        }
    }
}

#[tokio::test]
async fn a_form_is_posted_over_http_2() {
    let server = serve(Refusal::Alpn).await;
    let mut request = request(&server, "/");
    request.body = Some(RequestBody {
        content_type: "application/x-www-form-urlencoded".to_owned(),
        content: "a=1&b=2".into(),
    });
    let exchange = fetch(&fetcher(|_| {}), request).await;
    assert!(
        wire(&exchange).ends_with("\r\n\r\na=1&b=2hello"),
        "{exchange:?}"
    );
    let sent = String::from_utf8_lossy(&exchange.request_bytes).into_owned();
    assert!(
        sent.starts_with("POST / HTTP/1.1\r\n") && sent.ends_with("\r\n\r\na=1&b=2"),
        "{sent}"
    );
}

#[tokio::test]
async fn limits_and_failures_are_as_over_http_1() {
    let server = serve(Refusal::Alpn).await;
    let exchange = fetch(&fetcher(|_| {}), request(&server, "/breaks")).await;
    assert_eq!(
        (exchange.status(), exchange.truncated),
        (-3, Some(TruncationCause::Disconnect)),
        "{exchange:?}"
    );
    assert!(wire(&exchange).ends_with("\r\n\r\n"));
    let small = fetcher(|config| config.body_bytes_max = Some(500_000));
    let exchange = fetch(&small, request(&server, "/large")).await;
    assert_eq!(
        (exchange.status(), exchange.truncated),
        (200, Some(TruncationCause::Length)),
        "{exchange:?}"
    );
    let head = exchange.head.as_ref().unwrap().length;
    assert_eq!(
        (exchange.payload.length(), exchange.wire.length()),
        (500_000, head + 500_000)
    );
    let large = fetcher(|config| config.spool_memory_max = 10_000);
    let exchange = fetch(&large, request(&server, "/large")).await;
    assert_eq!(exchange.payload.length(), 1_000_005, "{exchange:?}");
}

#[tokio::test]
async fn a_filter_ends_an_exchange_over_http_2_at_its_head() {
    let server = serve(Refusal::Alpn).await;
    let abort = async |head: &ResponseHead| HeadVerdict::Abort {
        reason: head.media_type().unwrap(),
    };
    let exchange = fetcher(|_| {})
        .http(request(&server, "/large"), abort)
        .await;
    assert_eq!(exchange.aborted_by_filter.as_deref(), Some("text/plain"));
    assert_eq!(exchange.payload.length(), 0);
    assert!(wire(&exchange).ends_with("\r\n\r\n"));
}

/// A PING (RFC 9113 §6.7).
const PING: &[u8] = &[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
/// A frame of an unknown type.
const UNKNOWN: &[u8] = &[0, 0, 0, 0xee, 0, 0, 0, 0, 1];
/// HEADERS of stream 1 with `:status: 103`, not indexed.
const EARLY_HINTS: &[u8] = &[0, 0, 5, 1, 4, 0, 0, 0, 1, 0x08, 3, b'1', b'0', b'3'];
/// HEADERS of stream 1 with `:status: 200`, and DATA with `hello`; the stream does not end.
const BEGINNING: &[u8] = &[
    0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88, 0, 0, 5, 0, 0, 0, 0, 0, 1, b'h', b'e', b'l', b'l', b'o',
];
/// An empty DATA frame.
const NO_DATA: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0, 1];

/// A fetcher whose time limits are longer than any test.
fn without_time_limits() -> Fetcher {
    fetcher(|config| {
        let long = std::time::Duration::from_secs(3600);
        config.response_timeout = long;
        config.total_timeout = long;
        config.header_timeout = long;
    })
}

#[tokio::test]
async fn floods_of_frames_before_the_head_end_the_exchange() {
    for frames in [PING, UNKNOWN, EARLY_HINTS] {
        let server = serve_flood(b"", frames).await;
        let exchange = fetch(&without_time_limits(), request(&server, "/")).await;
        assert_eq!(exchange.status(), -3, "{exchange:?}");
        assert!(exchange.head.is_none());
        let failure = exchange.failure.unwrap().to_string();
        assert!(failure.contains("control frames"), "{failure}");
    }
}

#[tokio::test]
async fn floods_of_frames_in_the_body_cut_it() {
    for (frames, truncation) in [
        (PING, TruncationCause::Framing),
        (UNKNOWN, TruncationCause::Framing),
        // The h2 library limits these itself.
        (NO_DATA, TruncationCause::Disconnect),
    ] {
        let server = serve_flood(BEGINNING, frames).await;
        let exchange = fetch(&without_time_limits(), request(&server, "/")).await;
        assert_eq!(
            (exchange.status(), exchange.truncated),
            (-3, Some(truncation)),
            "{exchange:?}"
        );
        assert!(wire(&exchange).ends_with("\r\n\r\nhello"));
    }
}

#[tokio::test]
async fn control_frames_do_not_end_silence() {
    // Far fewer frames than a flood, without end.
    let server = serve_with(Refusal::Alpn, |mut session| async move {
        let settings = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
        session.write_all(settings).await.unwrap();
        while session.write_all(PING).await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
    let fetcher = fetcher(|config| {
        config.response_timeout = std::time::Duration::from_secs(1);
        config.total_timeout = std::time::Duration::from_secs(3600);
    });
    let exchange = fetch(&fetcher, request(&server, "/")).await;
    assert_eq!(exchange.status(), -4, "{exchange:?}");
}

#[tokio::test]
async fn a_name_server_that_floods_delays_a_lookup_up_to_its_limit_only() {
    let (server, certificate) = serve_as("127.0.0.1", Refusal::Alpn, |session| {
        flood(session, b"", PING)
    })
    .await;
    let limit = std::time::Duration::from_secs(1);
    let fetcher = fetcher(|config| {
        config.total_timeout = limit;
        config.trust = Trust::Roots(vec![certificate]);
        config.name_servers = vec![NameServer::Https {
            host: "127.0.0.1".to_owned(),
            port: server.port,
            path: "/dns-query".to_owned(),
        }];
    });
    let now = "2026-11-24T08:00:00Z".parse().unwrap();
    let failure = fetcher.resolve("site.example", now).await.unwrap_err();
    assert!(failure.to_string().contains("1s"), "{failure}");
    assert!(server.connections.load(Ordering::SeqCst) > 0);
}

//! Exchanges through proxies. The recording has the bytes that the origin server received and sent.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use opilio_fetch::{
    Exchange, FetchFailure, Fetcher, FetcherConfig, HeadVerdict, Proxy, ProxyKind, Request,
    ResponseHead, Trust,
};
use opilio_uri::Uri;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::server::{Connection, Server};
use crate::tls::certificate;

const RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\ntransfer-ENCODING: chunked\r\nX-Fold: a\r\n b\r\n\r\n5;x=y\r\nhello\r\n0\r\n\r\n";

/// A running proxy, and the requests that it received.
struct TestProxy {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl TestProxy {
    async fn start(kind: ProxyKind, refuses: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = requests.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let log = log.clone();
                tokio::spawn(async move {
                    match kind {
                        ProxyKind::Http => http(client, &log, refuses).await,
                        ProxyKind::Socks5 => socks(client, &log, refuses).await,
                    }
                });
            }
        });
        TestProxy { address, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(head).unwrap())
}

/// Connects to the server of a test: all names stand for this machine.
async fn origin(authority: &str) -> TcpStream {
    let (_, port) = authority.rsplit_once(':').unwrap();
    let to = SocketAddr::new(LOOPBACK, port.parse().unwrap());
    TcpStream::connect(to).await.unwrap()
}

async fn http(mut client: TcpStream, requests: &Mutex<Vec<String>>, refuses: bool) {
    let mut behind: Option<TcpStream> = None;
    while let Some(request) = head(&mut client).await {
        requests.lock().unwrap().push(request.clone());
        if refuses {
            let answer = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
            client.write_all(answer).await.unwrap();
            continue;
        }
        let (first, rest) = request.split_once("\r\n").unwrap();
        let target = first.split(' ').nth(1).unwrap();
        if first.starts_with("CONNECT ") {
            let mut server = origin(target).await;
            let answer = b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n";
            client.write_all(answer).await.unwrap();
            let _ = copy_bidirectional(&mut client, &mut server).await;
            return;
        }
        let (authority, path) = target
            .strip_prefix("http://")
            .and_then(|rest| rest.split_once('/'))
            .unwrap();
        let server = match &mut behind {
            Some(server) => server,
            none => none.insert(origin(authority).await),
        };
        let first = first.replace(target, &format!("/{path}"));
        let kept = rest.split_inclusive("\r\n");
        let kept: String = kept
            .filter(|line| !line.starts_with("Proxy-Authorization:"))
            .collect();
        server
            .write_all(format!("{first}\r\n{kept}").as_bytes())
            .await
            .unwrap();
        let mut answer = vec![0; RESPONSE.len()];
        server.read_exact(&mut answer).await.unwrap();
        client.write_all(&answer).await.unwrap();
    }
}

async fn socks(mut client: TcpStream, requests: &Mutex<Vec<String>>, refuses: bool) {
    let [_, methods] = client.read_u16().await.unwrap().to_be_bytes();
    let mut offered = vec![0; methods.into()];
    client.read_exact(&mut offered).await.unwrap();
    if offered.contains(&2) {
        client.write_all(&[5, 2]).await.unwrap();
        let mut credentials = Vec::new();
        client.read_u8().await.unwrap();
        for _ in 0..2 {
            let length = client.read_u8().await.unwrap();
            let mut text = vec![0; length.into()];
            client.read_exact(&mut text).await.unwrap();
            credentials.push(String::from_utf8(text).unwrap());
        }
        requests.lock().unwrap().push(credentials.join(":"));
        client.write_all(&[1, u8::from(refuses)]).await.unwrap();
    } else {
        client.write_all(&[5, 0]).await.unwrap();
    }
    let mut start = [0; 4];
    if client.read_exact(&mut start).await.is_err() {
        return;
    }
    let host = match start[3] {
        1 => Ipv4Addr::from_bits(client.read_u32().await.unwrap()).to_string(),
        3 => {
            let length = client.read_u8().await.unwrap();
            let mut name = vec![0; length.into()];
            client.read_exact(&mut name).await.unwrap();
            String::from_utf8(name).unwrap()
        }
        other => panic!("address of type {other}"),
    };
    let authority = format!("{host}:{}", client.read_u16().await.unwrap());
    requests.lock().unwrap().push(authority.clone());
    let mut server = origin(&authority).await;
    let answer = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    client.write_all(&answer).await.unwrap();
    let _ = copy_bidirectional(&mut client, &mut server).await;
}

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn proxy(kind: ProxyKind, test_proxy: &TestProxy) -> Proxy {
    Proxy {
        kind,
        host: "127.0.0.1".to_owned(),
        port: test_proxy.address.port(),
        credentials: Some(("archive".to_owned(), "secret".to_owned())),
        remote_names: false,
        except: Vec::new(),
    }
}

fn fetcher(proxy: Proxy, trust: Trust) -> Fetcher {
    let mut config = FetcherConfig::new("opilio-test/1", std::env::temp_dir());
    config.addresses.loopback = true;
    config.trust = trust;
    config.proxy = Some(Arc::new(proxy));
    Fetcher::new(config).unwrap()
}

async fn fetch(fetcher: &Fetcher, scheme: &str, server: &Server, addresses: &[IpAddr]) -> Exchange {
    let port = server.address.port();
    let uri = Uri::parse(&format!("{scheme}://site.test:{port}/a?b=http://c/")).unwrap();
    let proceed = async |_: &ResponseHead| HeadVerdict::Continue;
    let request = Request::new(uri, addresses.to_vec());
    fetcher.http(request, proceed).await
}

async fn answer(mut connection: Connection) {
    while connection.request().await {
        connection.send(RESPONSE).await;
    }
}

/// Runs two exchanges on one connection, and checks that client and server recorded the same bytes.
async fn same_on_both_sides(kind: ProxyKind, scheme: &str) -> Vec<String> {
    let test_proxy = TestProxy::start(kind, false).await;
    let (acceptor, certificate) = certificate("site.test");
    let server = match scheme {
        "http" => Server::plain(answer).await,
        _ => Server::tls(acceptor, answer).await,
    };
    let fetcher = fetcher(proxy(kind, &test_proxy), Trust::Roots(vec![certificate]));
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    for reused in [false, true] {
        let exchange = fetch(&fetcher, scheme, &server, &[LOOPBACK]).await;
        assert_eq!(
            (exchange.status(), exchange.reused_connection),
            (200, reused),
            "{exchange:?}"
        );
        assert_eq!(exchange.payload.length(), 5);
        sent.extend_from_slice(&exchange.request_bytes);
        exchange.wire.reader().read_to_end(&mut received).unwrap();
        let known = (kind == ProxyKind::Socks5).then_some(LOOPBACK);
        assert_eq!(exchange.peer, known);
        let name = exchange.proxy.unwrap();
        assert!(name.ends_with(&test_proxy.address.to_string()), "{name}");
    }
    let capture = server.captures().remove(0);
    assert_eq!(
        String::from_utf8_lossy(&sent),
        String::from_utf8_lossy(&capture.received)
    );
    assert_eq!(
        String::from_utf8_lossy(&received),
        String::from_utf8_lossy(&capture.sent)
    );
    test_proxy.requests()
}

#[tokio::test]
async fn a_forwarding_proxy_gets_whole_uris_and_credentials_that_are_not_recorded() {
    let requests = same_on_both_sides(ProxyKind::Http, "http").await;
    assert_eq!(requests.len(), 2);
    for request in requests {
        let mut lines = request.split("\r\n");
        let first = lines.next().unwrap();
        assert!(
            first.starts_with("GET http://site.test:")
                && first.ends_with("/a?b=http://c/ HTTP/1.1"),
            "{first}"
        );
        assert_eq!(
            lines.next(),
            Some("Proxy-Authorization: Basic YXJjaGl2ZTpzZWNyZXQ=")
        );
    }
}

#[tokio::test]
async fn a_tunnel_is_requested_once() {
    let requests = same_on_both_sides(ProxyKind::Http, "https").await;
    assert_eq!(requests.len(), 1);
    assert!(
        requests[0].starts_with("CONNECT site.test:"),
        "{requests:?}"
    );
    assert!(
        requests[0].contains("\r\nProxy-Authorization: Basic "),
        "{requests:?}"
    );
}

#[tokio::test]
async fn a_socks_proxy_gets_the_checked_address() {
    for scheme in ["http", "https"] {
        let requests = same_on_both_sides(ProxyKind::Socks5, scheme).await;
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[0], "archive:secret");
        assert!(requests[1].starts_with("127.0.0.1:"), "{requests:?}");
    }
}

#[tokio::test]
async fn names_are_sent_to_a_proxy_that_looks_them_up() {
    let test_proxy = TestProxy::start(ProxyKind::Socks5, false).await;
    let server = Server::plain(answer).await;
    let proxy = Proxy {
        remote_names: true,
        credentials: None,
        ..proxy(ProxyKind::Socks5, &test_proxy)
    };
    let fetcher = fetcher(proxy, Trust::Platform);
    let exchange = fetch(&fetcher, "http", &server, &[]).await;
    assert_eq!(
        (exchange.status(), exchange.peer),
        (200, None),
        "{exchange:?}"
    );
    assert!(
        test_proxy.requests()[0].starts_with("site.test:"),
        "{:?}",
        test_proxy.requests()
    );
}

#[tokio::test]
async fn the_address_policy_applies_before_the_proxy() {
    for kind in [ProxyKind::Http, ProxyKind::Socks5] {
        let test_proxy = TestProxy::start(kind, false).await;
        let server = Server::plain(answer).await;
        let private = [
            IpAddr::from([10, 0, 0, 1]),
            IpAddr::from([169, 254, 169, 254]),
        ];
        let fetcher = fetcher(proxy(kind, &test_proxy), Trust::Platform);
        let exchange = fetch(&fetcher, "http", &server, &private).await;
        assert_eq!(exchange.status(), -5001, "{exchange:?}");
        // An address in a URI is checked even if the proxy looks names up.
        let remote = Proxy {
            remote_names: true,
            ..proxy(kind, &test_proxy)
        };
        let fetcher = self::fetcher(remote, Trust::Platform);
        let request = Request::new(Uri::parse("http://[fd00:ec2::254]/").unwrap(), Vec::new());
        let proceed = async |_: &ResponseHead| HeadVerdict::Continue;
        let exchange = fetcher.http(request, proceed).await;
        assert_eq!(exchange.status(), -5001, "{exchange:?}");
        assert!(test_proxy.requests().is_empty());
    }
}

#[tokio::test]
async fn a_refusal_by_a_proxy_is_not_a_response_of_the_site() {
    for (kind, scheme) in [
        (ProxyKind::Http, "http"),
        (ProxyKind::Http, "https"),
        (ProxyKind::Socks5, "http"),
    ] {
        let test_proxy = TestProxy::start(kind, true).await;
        let server = Server::plain(answer).await;
        let fetcher = fetcher(proxy(kind, &test_proxy), Trust::Platform);
        let exchange = fetch(&fetcher, scheme, &server, &[LOOPBACK]).await;
        assert!(
            matches!(exchange.failure, Some(FetchFailure::Proxy { .. })),
            "{exchange:?}"
        );
        assert_eq!((exchange.status(), exchange.wire.length()), (-2, 0));
        assert!(!format!("{exchange:?}").contains("secret"));
        assert!(server.captures().is_empty());
    }
}

#[tokio::test]
async fn exceptions_are_fetched_without_the_proxy() {
    let test_proxy = TestProxy::start(ProxyKind::Http, true).await;
    let server = Server::plain(answer).await;
    let proxy = Proxy {
        except: vec![".test".to_owned()],
        ..proxy(ProxyKind::Http, &test_proxy)
    };
    let exchange = fetch(
        &fetcher(proxy, Trust::Platform),
        "http",
        &server,
        &[LOOPBACK],
    )
    .await;
    assert_eq!((exchange.status(), exchange.peer), (200, Some(LOOPBACK)));
    assert!(test_proxy.requests().is_empty() && exchange.proxy.is_none());
}

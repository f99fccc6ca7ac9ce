//! Crawls through a proxy.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use opilio_stories::{Certificate, Rogue, Rogues, crawl};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

/// Starts an HTTP proxy that tunnels and forwards to this machine for all host names, with one exchange per connection. Returns its
/// port and the request lines that it receives.
async fn proxy() -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let request_lines = Arc::<Mutex<Vec<String>>>::default();
    let received = request_lines.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(serve(client, received.clone()));
        }
    });
    (port, request_lines)
}

async fn serve(mut client: TcpStream, request_lines: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = client.read_u8().await else {
            return;
        };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let (first, rest) = head.split_once("\r\n").unwrap();
    request_lines.lock().unwrap().push(first.to_owned());
    let words: Vec<_> = first.split(' ').collect();
    let [method, target, version] = words[..] else {
        panic!("{first}");
    };
    let (authority, path) = match target.strip_prefix("http://") {
        Some(target) => target.split_once('/').unwrap(),
        None => (target, ""),
    };
    let port: u16 = authority.rsplit_once(':').unwrap().1.parse().unwrap();
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut server = TcpStream::connect(to).await.unwrap();
    if method == "CONNECT" {
        let answer = b"HTTP/1.1 200 Connected\r\n\r\n";
        client.write_all(answer).await.unwrap();
    } else {
        let head = format!("{method} /{path} {version}\r\n{rest}");
        server.write_all(head.as_bytes()).await.unwrap();
    }
    // Copying ends when either side closes its connection.
    let _ = copy_bidirectional(&mut client, &mut server).await;
}

/// The archive has the request as the server received it, without the headers for the proxy.
#[tokio::test]
async fn requests_through_a_proxy_are_archived_as_the_server_received_them() {
    let (port, request_lines) = proxy().await;
    let rogues = Rogues::serve([
        Rogue::new("plain"),
        Rogue::new("secret").with_tls(Certificate::Good),
        Rogue::new("direct"),
    ]);
    let (plain, secret, direct) = (
        rogues.url("plain", "/a"),
        rogues.url("secret", "/b"),
        rogues.url("direct", "/c"),
    );
    let result = crawl()
        .profile(&format!(
            "[fetch]\nproxy = 'http://127.0.0.1:{port}'\nno-proxy = ['direct.localhost']\nkeep-alive = false"
        ))
        .seed(&plain)
        .seed(&secret)
        .seed(&direct)
        .run()
        .await
        .finished();
    let mut expected = [
        format!("GET {plain} HTTP/1.1"),
        format!("GET {} HTTP/1.1", rogues.url("plain", "/robots.txt")),
        format!("CONNECT {} HTTP/1.1", authority(&secret)),
        format!("CONNECT {} HTTP/1.1", authority(&secret)),
    ];
    let mut request_lines = request_lines.lock().unwrap().clone();
    expected.sort();
    request_lines.sort();
    assert_eq!(request_lines, expected);
    for (name, uri) in [("plain", &plain), ("secret", &secret), ("direct", &direct)] {
        assert_eq!(result.sole(uri).status, 200);
        let response = result.record("response", uri);
        assert!(response.text().ends_with(&format!("a page of {name}")));
        let target = uri.rsplit_once('/').unwrap().1;
        let requests = rogues.asked();
        let received = requests
            .iter()
            .find(|request| request.name == name && request.target.ends_with(target))
            .unwrap();
        assert_eq!(result.record("request", uri).text(), received.head);
        let is_direct = name == "direct";
        assert_eq!(response.header("warc-ip-address").is_some(), is_direct);
        let metadata = result.record("metadata", uri).text();
        let line = format!("proxy: http://127.0.0.1:{port}");
        assert_eq!(metadata.contains(&line), !is_direct, "{metadata}");
    }
}

fn authority(url: &str) -> &str {
    url.split('/').nth(2).unwrap()
}

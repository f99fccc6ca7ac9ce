//! Exchanges with correct and with broken servers. The recording is compared with the bytes on the server's side.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use crate::server::{Connection, Server, resetting};
use opilio_fetch::{
    AddressPolicy, Exchange, FetchFailure, Fetcher, FetcherConfig, HeadVerdict, PayloadDigest,
    Phase, Request, RequestBody, ResponseHead, Spool, TruncationCause, Trust,
};
use opilio_uri::Uri;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Long enough for loopback on a busy machine, and short in tests that wait for it.
const SHORT: Duration = Duration::from_secs(1);

fn config() -> FetcherConfig {
    let mut config = FetcherConfig::new("opilio-test/1", std::env::temp_dir());
    config.addresses = AddressPolicy::ALL;
    config.trust = Trust::Roots(Vec::new());
    config
}

fn request(scheme: &str, server: SocketAddr) -> Request {
    let port = server.port();
    Request::new(
        Uri::parse(&format!("{scheme}://site.test:{port}/a?b=c")).unwrap(),
        vec![LOOPBACK],
    )
}

async fn proceed(_: &ResponseHead) -> HeadVerdict {
    HeadVerdict::Continue
}

fn all(spool: &Spool) -> Vec<u8> {
    let mut bytes = Vec::new();
    spool.reader().read_to_end(&mut bytes).unwrap();
    bytes
}

/// A response that a server sends after the request. Then it closes the connection or keeps it open.
struct Case {
    response: Vec<u8>,
    close: bool,
    config: FetcherConfig,
}

impl Case {
    fn new(response: impl AsRef<[u8]>) -> Self {
        Case {
            response: response.as_ref().to_vec(),
            close: true,
            config: config(),
        }
    }

    fn kept_open(mut self) -> Self {
        self.close = false;
        self
    }

    fn with(mut self, change: impl FnOnce(&mut FetcherConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// Runs one exchange, and compares the recorded bytes with those on the server's side.
    async fn run(self) -> Exchange {
        let (response, close) = (self.response.clone(), self.close);
        let server = Server::plain(move |mut connection: Connection| {
            let response = response.clone();
            async move {
                connection.request().await;
                connection.send(&response).await;
                match close {
                    true => connection.close().await,
                    false => connection.hang().await,
                }
            }
        })
        .await;
        let fetcher = Fetcher::new(self.config).unwrap();
        let exchange = fetcher.http(request("http", server.address), proceed).await;
        let capture = server.captures().remove(0);
        assert_eq!(exchange.request_bytes, capture.received);
        assert_eq!(exchange.peer, Some(LOOPBACK));
        let recorded = [exchange.interim.to_vec(), all(&exchange.wire)].concat();
        assert!(
            capture.sent.starts_with(&recorded),
            "{:?}\n{:?}",
            String::from_utf8_lossy(&recorded),
            String::from_utf8_lossy(&capture.sent)
        );
        assert_eq!(
            exchange.payload_digest,
            PayloadDigest::of(&all(&exchange.payload))
        );
        exchange
    }

    /// Checks a complete response, which is recorded whole.
    async fn complete(self, status: i32, payload: impl AsRef<[u8]>) -> Exchange {
        let sent = self.response.clone();
        let exchange = self.run().await;
        assert!(
            exchange.failure.is_none() && exchange.truncated.is_none(),
            "{exchange:?}"
        );
        assert_eq!(exchange.status(), status);
        assert_eq!(
            [exchange.interim.to_vec(), all(&exchange.wire)].concat(),
            sent
        );
        assert_eq!(all(&exchange.payload), payload.as_ref());
        exchange
    }

    /// Checks a broken response, which is recorded up to the first invalid byte, with its status, truncation and annotation.
    async fn broken(
        self,
        status: i32,
        truncated: Option<TruncationCause>,
        payload: &str,
    ) -> Exchange {
        let sent = self.response.clone();
        let exchange = self.run().await;
        assert_eq!(
            (exchange.status(), exchange.truncated),
            (status, truncated),
            "{exchange:?}"
        );
        let recorded = [exchange.interim.to_vec(), all(&exchange.wire)].concat();
        let is_misframed = truncated == Some(TruncationCause::Framing);
        assert!(
            recorded == sent || (is_misframed && sent.starts_with(&recorded)),
            "{exchange:?}"
        );
        assert_eq!(String::from_utf8_lossy(&all(&exchange.payload)), payload);
        exchange
    }
}

#[tokio::test]
async fn the_request_is_sent_as_configured() {
    let server = Server::plain(|mut connection| async move {
        connection.request().await;
        connection.send(b"HTTP/1.1 204 No Content\r\n\r\n").await;
        connection.hang().await;
    })
    .await;
    let mut config = config();
    config.from = Some("crawl@library.example".to_owned());
    config.accept_encoding = Some("gzip, br".to_owned());
    config
        .headers
        .push(("X-Purpose".to_owned(), "preservation".to_owned()));
    config.keep_alive = false;
    let fetcher = Fetcher::new(config).unwrap();
    let mut request = request("http", server.address);
    request.referer = Some(Uri::parse("http://u:p@site.test/from").unwrap());
    request.if_none_match = Some("W/\"\u{e9}\"".to_owned());
    request.if_modified_since = Some("Sat, 29 Oct 1994 19:43:31 GMT".to_owned());
    request.headers = vec![("accept".to_owned(), "*/*".to_owned())];
    let exchange = fetcher.http(request, proceed).await;
    let port = server.address.port();
    let expected = format!(
        "GET /a?b=c HTTP/1.1\r\nHost: site.test:{port}\r\nUser-Agent: opilio-test/1\r\n\
         From: crawl@library.example\r\nX-Purpose: preservation\r\nAccept-Encoding: gzip, br\r\n\
         Referer: http://site.test/from\r\nIf-None-Match: W/\"\u{e9}\"\r\n\
         If-Modified-Since: Sat, 29 Oct 1994 19:43:31 GMT\r\nConnection: close\r\nAccept: */*\r\n\r\n"
    );
    let expected: Vec<u8> = expected.chars().map(|c| u8::try_from(c).unwrap()).collect();
    let sent = |bytes: &[u8]| -> Vec<String> {
        let text: String = bytes.iter().map(|b| char::from(*b)).collect();
        let mut lines: Vec<String> = text.split("\r\n").map(str::to_owned).collect();
        // A replaced field has a place of its own.
        lines[1..].sort();
        lines
    };
    assert_eq!(sent(&exchange.request_bytes), sent(&expected));
    assert_eq!(exchange.request_bytes, server.captures()[0].received);
    assert_eq!((exchange.status(), exchange.payload.length()), (204, 0));
}

#[tokio::test]
async fn a_form_is_posted() {
    let server = Server::plain(|mut connection| async move {
        connection.request().await;
        connection
            .send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .await;
        connection.hang().await;
    })
    .await;
    let mut request = request("http", server.address);
    request.body = Some(RequestBody {
        content_type: "application/x-www-form-urlencoded".to_owned(),
        content: "a=1&b=2".into(),
    });
    let exchange = Fetcher::new(config()).unwrap().http(request, proceed).await;
    let sent = String::from_utf8_lossy(&exchange.request_bytes).into_owned();
    assert!(sent.starts_with("POST /a?b=c HTTP/1.1\r\nHost: "), "{sent}");
    assert!(
        sent.contains("\r\nContent-Type: application/x-www-form-urlencoded\r\n"),
        "{sent}"
    );
    assert!(
        sent.contains("\r\nContent-Length: 7\r\n") && sent.ends_with("\r\n\r\na=1&b=2"),
        "{sent}"
    );
}

#[tokio::test]
async fn complete_responses_are_recorded_to_the_byte() {
    let exchange = Case::new("HTTP/1.1 200 Fine\r\ncOnTent-LENGTH:  5\r\nX-a: 1\r\nx-A:2\r\nX-Fold: a\r\n  b\r\n\r\nhello")
        .kept_open()
        .complete(200, "hello")
        .await;
    let head = exchange.head.unwrap();
    assert_eq!(
        (head.version.as_str(), head.status, head.reason.as_str()),
        ("HTTP/1.1", 200, "Fine")
    );
    let headers: Vec<_> = head
        .headers
        .iter()
        .map(|(n, v)| (n.as_str(), v.as_str()))
        .collect();
    assert_eq!(
        headers,
        [
            ("cOnTent-LENGTH", "5"),
            ("X-a", "1"),
            ("x-A", "2"),
            ("X-Fold", "a b")
        ]
    );

    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n03;ext=\"x\"\r\nell\r\n1\r\no\r\n0\r\nTrailer: t\r\n\r\n";
    Case::new(chunks).kept_open().complete(200, "hello").await;
    let both = "HTTP/1.1 200 OK\r\nContent-Length: 999\r\ntransfer-encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    Case::new(both).kept_open().complete(200, "hello").await;
    Case::new("HTTP/1.1 200 OK\r\n\r\nuntil the end")
        .complete(200, "until the end")
        .await;
    Case::new("HTTP/1.0 200 OK\r\nA: b\r\n\r\nold")
        .complete(200, "old")
        .await;
    Case::new("HTTP/1.0 200\n\nbare")
        .complete(200, "bare")
        .await;
    Case::new("HTTP/1.1 304 Not Modified\r\nETag: x\r\nContent-Length: 99\r\n\r\n")
        .kept_open()
        .complete(304, "")
        .await;
    Case::new("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
        .kept_open()
        .complete(404, "")
        .await;
    Case::new(
        "HTTP/1.1 200 OK\r\nX: a\x01b\r\nBad Name: x\r\nno colon\r\nContent-Length: 2\r\n\r\nok",
    )
    .kept_open()
    .complete(200, "ok")
    .await;
    Case::new("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nopaque")
        .complete(200, "opaque")
        .await;
    let interim = Case::new(
        "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
    )
    .kept_open()
    .complete(200, "x")
    .await;
    assert!(
        interim.interim.ends_with(b"Link: a\r\n\r\n")
            && all(&interim.wire).starts_with(b"HTTP/1.1 200")
    );
}

#[tokio::test]
async fn large_bodies_go_to_disk_unharmed() {
    let body: Vec<u8> = (0..700_000u32).flat_map(u32::to_le_bytes).collect();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let response = [head.as_bytes(), &body].concat();
    let exchange = Case::new(&response).kept_open().complete(200, &body).await;
    assert!(exchange.payload.bytes_if_small().is_none());

    let mut chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let mut rest = &body[..];
    for size in (1..).map(|n| n * n % 9973 + 1) {
        let chunk = &rest[..rest.len().min(size)];
        chunked.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
        chunked.extend_from_slice(chunk);
        chunked.extend_from_slice(b"\r\n");
        rest = &rest[chunk.len()..];
        if rest.is_empty() {
            break;
        }
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    let exchange = Case::new(&chunked).kept_open().complete(200, &body).await;
    assert!(exchange.payload.bytes_if_small().is_none());
    Case::new(&chunked)
        .kept_open()
        .with(|c| c.spool_memory_max = 0)
        .complete(200, &body)
        .await;
}

#[tokio::test]
async fn broken_responses_have_the_right_status() {
    use TruncationCause::{Disconnect, Framing};
    let lost = Some(Disconnect);
    Case::new("").broken(-404, None, "").await;
    Case::new("HTTP/1.1 200 OK\r\nCont")
        .broken(-3, lost, "")
        .await;
    Case::new("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
        .broken(-3, lost, "hello")
        .await;
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    Case::new(chunked).broken(-3, lost, "hello").await;
    Case::new(format!("{chunked}5\r\nhel"))
        .broken(-3, lost, "hellohel")
        .await;
    Case::new(format!("{chunked}zz\r\nhello\r\n0\r\n\r\n"))
        .broken(-3, Some(Framing), "hello")
        .await;
    let unchunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n<p>hello";
    let exchange = Case::new(unchunked)
        .broken(-3, Some(Framing), "<p>hello")
        .await;
    assert_eq!(all(&exchange.wire), unchunked.as_bytes());
    for garbage in [
        "<html>HTTP/0.9</html>",
        "\0\x01\x02\x03",
        "ICY 200 OK\r\n\r\nmusic",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2p1\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 5\r\n\r\nhello",
    ] {
        // If the garbage has a head, the head is recorded.
        let head = garbage.contains("\r\nContent-Length:");
        let truncated = head.then_some(Framing);
        let exchange = Case::new(garbage).broken(-3, truncated, "").await;
        let end = garbage.find("\r\n\r\n").map_or(0, |end| end + 4);
        if head {
            assert_eq!(all(&exchange.wire), &garbage.as_bytes()[..end]);
        }
        assert!(
            matches!(exchange.failure, Some(FetchFailure::NotHttp { .. })),
            "{exchange:?}"
        );
    }
}

#[tokio::test]
async fn bytes_after_the_message_are_cut_and_counted() {
    let exchange = Case::new("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more")
        .kept_open()
        .run()
        .await;
    assert_eq!((exchange.status(), exchange.truncated), (200, None));
    assert!(all(&exchange.wire).ends_with(b"\r\n\r\nhello"));
    assert_eq!(all(&exchange.payload), b"hello");
    assert_eq!(exchange.annotations, ["excessBytes:9"]);
}

#[tokio::test]
async fn silence_is_a_timeout() {
    let short = |config: &mut FetcherConfig| config.response_timeout = SHORT;
    let time = Some(TruncationCause::Time);
    Case::new("")
        .kept_open()
        .with(short)
        .broken(-4, None, "")
        .await;
    Case::new("HTTP/1.1 200 O")
        .kept_open()
        .with(short)
        .broken(-4, time, "")
        .await;
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello";
    let exchange = Case::new(head)
        .kept_open()
        .with(short)
        .broken(-4, time, "hello")
        .await;
    assert!(matches!(
        exchange.failure,
        Some(FetchFailure::Timeout {
            phase: Phase::Body,
            ..
        })
    ));
    assert_eq!(exchange.head.unwrap().status, 200);
}

/// A server that sends `head`, and then `again` repeatedly until the client disconnects.
async fn endless(head: &'static str, again: &'static str, pause: Duration) -> Server {
    Server::plain(move |mut connection| async move {
        connection.request().await;
        connection.send(head.as_bytes()).await;
        // Without a pause it sends larger pieces, which do not end with a chunk or a line.
        let endless = again.repeat(1000);
        let mut rest = endless.as_bytes().iter().copied().cycle();
        let size = if pause.is_zero() { 997 } else { again.len() };
        while connection
            .send(&rest.by_ref().take(size).collect::<Vec<_>>())
            .await
        {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
    })
    .await
}

#[tokio::test]
async fn endless_responses_are_cut() {
    let none = Duration::ZERO;
    let slow = Duration::from_millis(5);
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let plain = "HTTP/1.1 200 OK\r\n\r\n";
    for (head, again, pause, status, truncated, annotation) in [
        (
            chunked,
            "5\r\nhello\r\n",
            slow,
            200,
            TruncationCause::Time,
            "timeTrunc",
        ),
        (
            plain,
            "hello",
            slow,
            200,
            TruncationCause::Time,
            "timeTrunc",
        ),
        (
            plain,
            "hello",
            none,
            200,
            TruncationCause::Length,
            "lenTrunc",
        ),
        (
            chunked,
            "5\r\nhello\r\n",
            none,
            200,
            TruncationCause::Length,
            "lenTrunc",
        ),
        (
            "HTTP/1.1 200 OK\r\n",
            "A: b\r\n",
            none,
            200,
            TruncationCause::Headers,
            "headerTrunc",
        ),
        (
            "HTTP/1.1 200 OK\r\n",
            "A",
            none,
            200,
            TruncationCause::Headers,
            "headerTrunc",
        ),
    ] {
        let server = endless(head, again, pause).await;
        let mut config = config();
        config.body_bytes_max = Some(100_003).filter(|_| pause == none);
        config.total_timeout = if pause == none {
            config.total_timeout
        } else {
            SHORT
        };
        let exchange = Fetcher::new(config)
            .unwrap()
            .http(request("http", server.address), proceed)
            .await;
        assert_eq!(
            (exchange.status(), exchange.truncated),
            (status, Some(truncated)),
            "{exchange:?}"
        );
        assert_eq!(exchange.annotations, [annotation]);
        let payload = all(&exchange.payload);
        assert!(b"hello".repeat(payload.len() / 5 + 1).starts_with(&payload));
        let wire = all(&exchange.wire);
        let sent = [
            head.as_bytes(),
            &again.as_bytes().repeat(wire.len())[..wire.len()],
        ]
        .concat();
        assert!(sent.starts_with(&wire));
        if truncated == TruncationCause::Length {
            assert_eq!(payload.len(), 100_003);
            assert!(
                wire.ends_with(b"hel"),
                "the recording ends where the payload does"
            );
        }
        assert_eq!(exchange.payload_digest, PayloadDigest::of(&payload));
    }
}

#[tokio::test]
async fn endless_interim_responses_are_a_failure() {
    let server = endless("", "HTTP/1.1 100 Continue\r\n\r\n", Duration::ZERO).await;
    let exchange = Fetcher::new(config())
        .unwrap()
        .http(request("http", server.address), proceed)
        .await;
    assert_eq!(exchange.status(), -3, "{exchange:?}");
    assert!(
        matches!(exchange.failure, Some(FetchFailure::NotHttp { .. })),
        "{exchange:?}"
    );
    assert!(exchange.interim.len() < 1 << 20);
}

#[tokio::test]
async fn slow_heads_reach_the_time_limit() {
    let server = endless("HTTP/1.1 200 OK\r\n", "A: b\r\n", Duration::from_millis(20)).await;
    let mut config = config();
    config.total_timeout = SHORT;
    let exchange = Fetcher::new(config)
        .unwrap()
        .http(request("http", server.address), proceed)
        .await;
    assert_eq!(
        (exchange.status(), exchange.truncated),
        (-4, Some(TruncationCause::Time)),
        "{exchange:?}"
    );
}

#[tokio::test]
async fn a_filter_can_stop_after_the_head() {
    let response =
        "HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 11\r\n\r\nhello world";
    let server = Server::plain(move |mut connection| async move {
        while connection.request().await {
            connection.send(response.as_bytes()).await;
        }
    })
    .await;
    let fetcher = Fetcher::new(config()).unwrap();
    let wanted = request("http", server.address);
    let media_type = Arc::new(std::sync::Mutex::new(None));
    let seen = media_type.clone();
    // Spawned, as in the crawl: the future must be `Send`.
    let task = tokio::spawn({
        let (fetcher, wanted) = (fetcher.clone(), wanted.clone());
        async move {
            let on_head = async move |head: &ResponseHead| {
                *seen.lock().unwrap() = head.media_type();
                tokio::task::yield_now().await;
                HeadVerdict::Abort {
                    reason: "too moving".to_owned(),
                }
            };
            fetcher.http(wanted, on_head).await
        }
    });
    let exchange = task.await.unwrap();
    assert_eq!(media_type.lock().unwrap().as_deref(), Some("video/mp4"));
    assert_eq!(exchange.aborted_by_filter.as_deref(), Some("too moving"));
    assert_eq!(
        (exchange.status(), exchange.annotations.as_slice()),
        (200, &["midFetchAbort".to_owned()][..])
    );
    assert_eq!(
        all(&exchange.wire),
        response.strip_suffix("hello world").unwrap().as_bytes()
    );
    assert!(exchange.payload.is_empty() && exchange.truncated.is_none());
    // The connection is not reused, because its body has not been read.
    let next = fetcher.http(wanted, proceed).await;
    assert_eq!(
        (next.reused_connection, all(&next.payload).as_slice()),
        (false, &b"hello world"[..])
    );
}

#[tokio::test]
async fn kept_connections_split_their_exchanges_exactly() {
    let responses = [
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\n\r\n",
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\nfour",
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nfive",
    ];
    let server = Server::plain(move |mut connection| async move {
        for response in responses {
            if !connection.request().await {
                return;
            }
            connection.send(response.as_bytes()).await;
        }
    })
    .await;
    let fetcher = Fetcher::new(config()).unwrap();
    let mut sent = Vec::new();
    for (number, response) in responses.iter().enumerate() {
        let exchange = fetcher.http(request("http", server.address), proceed).await;
        assert_eq!(String::from_utf8(all(&exchange.wire)).unwrap(), *response);
        assert_eq!(exchange.reused_connection, number > 0);
        sent.extend_from_slice(&exchange.request_bytes);
    }
    let captures = server.captures();
    assert_eq!((captures.len(), &captures[0].received), (1, &sent));
    let after = fetcher.http(request("http", server.address), proceed).await;
    assert_eq!(
        (after.reused_connection, server.captures().len()),
        (false, 2)
    );
}

#[tokio::test]
async fn connections_are_closed_if_the_configuration_does_not_keep_them() {
    let server = Server::plain(move |mut connection| async move {
        while connection.request().await {
            connection
                .send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                .await;
        }
    })
    .await;
    let mut config = config();
    config.keep_alive = false;
    let fetcher = Fetcher::new(config).unwrap();
    for _ in 0..2 {
        let exchange = fetcher.http(request("http", server.address), proceed).await;
        assert_eq!(
            (exchange.status(), exchange.reused_connection),
            (200, false)
        );
    }
    assert_eq!(server.captures().len(), 2);
}

#[tokio::test]
async fn a_dead_idle_connection_is_replaced_once() {
    let server = Server::plain(move |mut connection| async move {
        connection.request().await;
        connection
            .send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .await;
        // The first connection receives its second request and closes, as a server that had decided to close it.
        if connection.number == 0 {
            connection.request().await;
            connection.close().await;
        } else {
            connection.hang().await;
        }
    })
    .await;
    let fetcher = Fetcher::new(config()).unwrap();
    fetcher.http(request("http", server.address), proceed).await;
    let exchange = fetcher.http(request("http", server.address), proceed).await;
    assert_eq!(
        (exchange.status(), exchange.reused_connection),
        (200, false)
    );
    let captures = server.captures();
    assert_eq!(captures.len(), 2);
    assert_eq!(exchange.request_bytes, captures[1].received);
    // On a new connection the same is a failure.
    let empty = Case::new("").run().await;
    assert!(matches!(empty.failure, Some(FetchFailure::Empty)));
}

#[tokio::test]
async fn resets_are_lost_connections() {
    for (after_request, response) in [
        (false, ""),
        (true, ""),
        (true, "HTTP/1.1 200 OK\r\nCont"),
        (true, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"),
        (true, "HTTP/1.1 200 OK\r\n\r\nhello"),
    ] {
        let (address, task) = resetting(after_request, response.as_bytes()).await;
        let exchange = Fetcher::new(config())
            .unwrap()
            .http(request("http", address), proceed)
            .await;
        assert_eq!(exchange.status(), -3, "{response:?}: {exchange:?}");
        task.await.unwrap();
    }
}

#[tokio::test]
async fn refused_connections_and_the_next_address() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let fetcher = Fetcher::new(config()).unwrap();
    let exchange = fetcher.http(request("http", address), proceed).await;
    assert_eq!(exchange.status(), -2, "{exchange:?}");
    assert!(
        exchange.request_bytes.is_empty() && exchange.wire.is_empty() && exchange.peer.is_none()
    );

    let server = Server::plain(|mut connection| async move {
        connection.request().await;
        connection
            .send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .await;
    })
    .await;
    let mut both = request("http", server.address);
    // No server listens on this port.
    both.addresses.insert(0, "127.0.0.2".parse().unwrap());
    assert_eq!(fetcher.http(both, proceed).await.status(), 200);
    let mut nowhere = request("http", server.address);
    nowhere.addresses.clear();
    assert_eq!(fetcher.http(nowhere, proceed).await.status(), -1);
}

#[tokio::test]
async fn private_addresses_are_refused_before_connecting() {
    let server = Server::plain(|connection| connection.hang()).await;
    let mut config = config();
    config.addresses = AddressPolicy::default();
    config.hosts = [("site.test", LOOPBACK)].into_iter().collect();
    let fetcher = Fetcher::new(config).unwrap();
    let now = jiff::Timestamp::UNIX_EPOCH;
    let mut request = request("http", server.address);
    request.addresses = fetcher.resolve("site.test", now).await.unwrap().addresses;
    for address in [
        "127.0.0.1",
        "::ffff:127.0.0.1",
        "169.254.169.254",
        "0.0.0.0",
    ] {
        request.addresses.push(address.parse().unwrap());
        let exchange = fetcher.http(request.clone(), proceed).await;
        assert_eq!(exchange.status(), -5001, "{exchange:?}");
        assert!(matches!(
            exchange.failure,
            Some(FetchFailure::AddressRefused { .. })
        ));
    }
    assert_eq!(server.captures().len(), 0);
}

#[tokio::test]
async fn uris_of_other_schemes_are_unfetchable() {
    let fetcher = Fetcher::new(config()).unwrap();
    let mut dns = request("http", "127.0.0.1:1".parse().unwrap());
    dns.uri = Uri::dns("site.test");
    assert_eq!(fetcher.http(dns, proceed).await.status(), -7);
}

#[tokio::test]
async fn a_failing_scratch_directory_has_its_own_status() {
    let body = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
        "x".repeat(100)
    );
    let missing = |config: &mut FetcherConfig| {
        config.spool_memory_max = 10;
        config.scratch_dir = "/nonexistent/scratch".into();
    };
    let server = Server::plain(move |mut connection| {
        let body = body.clone();
        async move {
            connection.request().await;
            connection.send(body.as_bytes()).await;
            connection.hang().await;
        }
    })
    .await;
    let mut config = config();
    missing(&mut config);
    let exchange = Fetcher::new(config)
        .unwrap()
        .http(request("http", server.address), proceed)
        .await;
    assert_eq!(exchange.status(), -5, "{exchange:?}");
}

#[test]
fn headers_that_cannot_be_sent_are_rejected() {
    for (name, value) in [("A b", "c"), ("A", "b\r\nC: d"), ("", "x")] {
        let mut config = config();
        config.headers.push((name.to_owned(), value.to_owned()));
        Fetcher::new(config).unwrap_err();
    }
}

#[tokio::test]
async fn content_is_decoded_while_the_record_stays_coded() {
    // "hello" as one stored block in a gzip member.
    let coded = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01\x05\0\xfa\xffhello\x86\xa6\x10\x36\x05\0\0\0";
    let head =
        b"HTTP/1.1 200 OK\r\ncontent-ENCODING: GZip\r\nTransfer-Encoding: chunked\r\n\r\n1C\r\n";
    let response = [&head[..], coded, b"\r\n0\r\n\r\n"].concat();
    let exchange = Case::new(response).kept_open().complete(200, coded).await;
    let content = exchange.content(100);
    assert!(content.problem.is_none(), "{:?}", content.problem);
    assert_eq!(content.content, b"hello");
    assert_eq!(exchange.content(3).content, b"hel");
}

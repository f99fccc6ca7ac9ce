//! Requests for browsers: any method, and a payload that is passed on while it is received.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use opilio_fetch::{
    AddressPolicy, Exchange, Fetcher, FetcherConfig, HeadVerdict, PayloadTap, Request, RequestBody,
    ResponseHead, TruncationCause, Trust,
};
use opilio_uri::Uri;
use tokio::sync::{Notify, mpsc};

use crate::server::Server;

async fn proceed(_: &ResponseHead) -> HeadVerdict {
    HeadVerdict::Continue
}

fn fetcher() -> Fetcher {
    let mut config = FetcherConfig::new("opilio-test/1", std::env::temp_dir());
    config.addresses = AddressPolicy::ALL;
    config.trust = Trust::Roots(Vec::new());
    Fetcher::new(config).unwrap()
}

fn request(server: &Server) -> Request {
    let uri = format!("http://site.test:{}/a", server.address.port());
    let addresses = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
    Request::new(Uri::parse(&uri).unwrap(), addresses)
}

/// Sends a changed request to a server with this response. Returns the request as sent, and the exchange.
async fn sent(response: &'static str, change: impl FnOnce(&mut Request)) -> (String, Exchange) {
    let server = Server::plain(move |mut connection| async move {
        connection.request().await;
        connection.send(response.as_bytes()).await;
        connection.hang().await;
    })
    .await;
    let mut request = request(&server);
    change(&mut request);
    let exchange = fetcher().http(request, proceed).await;
    let sent = String::from_utf8_lossy(&exchange.request_bytes).into_owned();
    (sent, exchange)
}

#[tokio::test]
async fn any_method_is_sent_with_its_body_and_its_headers() {
    let (sent, _) = sent("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", |request| {
        request.method = Some(Method::PUT);
        request.body = Some(RequestBody {
            content_type: String::new(),
            content: "{}".into(),
        });
        request.headers = vec![("X-Api".to_owned(), "1".to_owned())];
    })
    .await;
    assert!(sent.starts_with("PUT /a HTTP/1.1\r\n"), "{sent}");
    assert!(sent.contains("\r\nX-Api: 1\r\n"), "{sent}");
    assert!(
        !sent.to_ascii_lowercase().contains("content-type"),
        "{sent}"
    );
    assert!(sent.ends_with("\r\n\r\n{}"), "{sent}");
}

#[tokio::test]
async fn a_response_to_head_ends_with_its_head() {
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    let head = |request: &mut Request| request.method = Some(Method::HEAD);
    let (sent, exchange) = sent(response, head).await;
    assert!(sent.starts_with("HEAD /a HTTP/1.1\r\n"), "{sent}");
    assert!(
        exchange.failure.is_none() && exchange.truncated.is_none(),
        "{exchange:?}"
    );
    assert_eq!((exchange.wire.length(), exchange.payload.length()), (41, 0));
}

#[tokio::test]
async fn a_payload_is_passed_on_before_it_is_complete() {
    let go_on = Arc::new(Notify::new());
    let waiting = go_on.clone();
    let server = Server::plain(move |mut connection| {
        let waiting = waiting.clone();
        async move {
            connection.request().await;
            let first = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n";
            connection.send(first).await;
            waiting.notified().await;
            connection.send(b"4\r\nlast\r\n0\r\n\r\n").await;
            connection.hang().await;
        }
    })
    .await;
    let (sender, mut payload) = mpsc::channel::<Bytes>(1);
    let mut request = request(&server);
    request.tap = Some(PayloadTap::new(sender));
    let fetcher = fetcher();
    let receiving = async {
        // The server sends the rest only after the client has received the first part.
        let first = payload.recv().await;
        go_on.notify_one();
        (first, payload.recv().await, payload.recv().await)
    };
    let (exchange, received) = tokio::join!(fetcher.http(request, proceed), receiving);
    let expected = (Some("first".into()), Some("last".into()), None);
    assert_eq!(received, expected);
    assert!(exchange.truncated.is_none(), "{exchange:?}");
    assert_eq!(exchange.payload.length(), 9);
}

#[tokio::test]
async fn an_exchange_ends_when_the_receiver_of_its_payload_is_dropped() {
    let server = Server::plain(|mut connection| async move {
        connection.request().await;
        connection
            .send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
            .await;
        // An event stream does not end.
        connection.hang().await;
    })
    .await;
    let (sender, mut payload) = mpsc::channel::<Bytes>(1);
    let mut request = request(&server);
    request.tap = Some(PayloadTap::new(sender));
    let fetcher = fetcher();
    let receiving = async {
        payload.recv().await;
        drop(payload);
    };
    let (exchange, ()) = tokio::join!(fetcher.http(request, proceed), receiving);
    assert_eq!(exchange.truncated, Some(TruncationCause::Unwanted));
    assert_eq!(exchange.annotations, ["unwantedTrunc"]);
    assert!(exchange.failure.is_none(), "{exchange:?}");
    assert_eq!(exchange.payload.length(), 9);
}

//! Requests of pages: all are sent through the fetcher, and none by other routes.

use std::io;
use std::net::UdpSocket;
use std::time::Duration;

use opilio_browser::{ActionResult, LoadResult, PageAction, PageSession, ResourceResult};

use crate::chromium::TestPool;
use crate::site::{Endless, Site, html, missing, typed};

/// Returns an action that waits for a text in the page's paragraph.
fn text_appears() -> PageAction {
    PageAction::WaitForSelector {
        selector: "p:not(:empty)".to_owned(),
        time_max: Duration::from_secs(120),
    }
}

#[tokio::test]
async fn requests_of_service_workers_belong_to_their_page() {
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let site = Site::serve(|it| match it.uri.as_str() {
        "https://site.test/" => html(
            "<script>
            navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready)
                .then(() => { document.title = 'ready' });
            </script>",
        ),
        "https://site.test/worker.js" => typed(
            "text/javascript",
            "addEventListener('install', (it) => it.waitUntil(
                caches.open('a').then((cache) => cache.addAll(['/cached']))));",
        ),
        "https://site.test/cached" => typed("text/plain", "cached"),
        _ => missing(),
    })
    .await;
    let mut page = PageSession::open(&test.pool, site.clone())
        .await
        .expect("a browser");
    page.load("https://site.test/").await.expect("a page");
    let script = "await navigator.serviceWorker.ready; return navigator.userAgent".to_owned();
    let agent = page
        .act(&PageAction::Evaluate { script })
        .await
        .expect("it runs");
    let is_plain = matches!(&agent, ActionResult::Value(it) if it.contains(" Chrome/"));
    assert!(is_plain, "{agent:?}");
    let report = page.close().await;
    let uris: Vec<&str> = report.resources.iter().map(|it| it.uri.as_str()).collect();
    for uri in ["https://site.test/worker.js", "https://site.test/cached"] {
        assert!(uris.contains(&uri), "{uris:?}");
    }
    test.close().await;
}

#[tokio::test]
async fn web_sockets_are_opened_over_both_schemes() {
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let site = Site::serve(|_| {
        html(
            "<p></p><script>
            new WebSocket(location.origin.replace('http', 'ws') + '/socket').onmessage =
                (it) => { document.querySelector('p').textContent = it.data };
            </script>",
        )
    })
    .await;
    for (uri, socket) in [
        ("https://site.test/", "wss://site.test/socket"),
        ("http://plain.test:8080/", "ws://plain.test:8080/socket"),
    ] {
        let mut page = PageSession::open(&test.pool, site.clone())
            .await
            .expect("a browser");
        assert_eq!(page.load(uri).await.expect("a page"), LoadResult::Idle);
        let shown = page.act(&text_appears()).await.expect("it waits");
        assert_eq!(shown, ActionResult::Done);
        assert_eq!(page.extract().await.expect("content").text, "hello");
        let report = page.close().await;
        let opened = report.resources.iter().find(|it| it.uri == socket);
        let opened = opened.expect("it is recorded");
        assert_eq!(opened.result, ResourceResult::WebSocket);
        assert_eq!(opened.status, Some(101));
    }
    test.close().await;
}

#[tokio::test]
async fn a_rejected_request_is_a_network_error_and_is_fetched_once() {
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let site = Site::serve(|it| match it.uri.as_str() {
        "https://site.test/" => html(
            "<p></p><script>
            fetch('/ok').then(() => fetch('https://refused.test/')).then(
                () => { document.querySelector('p').textContent = 'a response' },
                (it) => { document.querySelector('p').textContent = it.name });
            </script>",
        ),
        _ => typed("text/plain", "ok"),
    })
    .await;
    let mut page = PageSession::open(&test.pool, site.clone())
        .await
        .expect("a browser");
    page.load("https://site.test/").await.expect("a page");
    page.act(&text_appears()).await.expect("it waits");
    assert_eq!(page.extract().await.expect("content").text, "TypeError");
    let report = page.close().await;
    let rejected = ResourceResult::Rejected("refused: a policy".to_owned());
    assert!(
        report.resources.iter().any(|it| it.result == rejected),
        "{report:?}"
    );
    let asked = site
        .uris()
        .iter()
        .filter(|it| it.contains("refused"))
        .count();
    assert_eq!(asked, 1);
    let mut page = PageSession::open(&test.pool, site)
        .await
        .expect("a browser");
    let loaded = page.load("https://refused.test/").await.expect("a result");
    assert_eq!(
        loaded,
        LoadResult::Failed("net::ERR_EMPTY_RESPONSE".to_owned())
    );
    page.close().await;
    test.close().await;
}

#[tokio::test]
async fn range_requests_are_passed_on_with_their_responses() {
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let site = Site::serve(|it| match (it.uri.as_str(), &it.range) {
        ("http://site.test/", _) => html(
            "<p></p><script>
            fetch('/data', {headers: {Range: 'bytes=2-4'}}).then(async (it) => {
                document.querySelector('p').textContent = `${it.status} ${await it.text()}`;
            });
            </script>",
        ),
        ("http://site.test/data", Some(_)) => {
            let mut part = typed("text/plain", "cde");
            *part.status_mut() = http::StatusCode::PARTIAL_CONTENT;
            let range = "bytes 2-4/10".parse().expect("a valid value");
            part.headers_mut().insert("content-range", range);
            part
        }
        _ => missing(),
    })
    .await;
    let mut page = PageSession::open(&test.pool, site.clone())
        .await
        .expect("a browser");
    page.load("http://site.test/").await.expect("a page");
    page.act(&text_appears()).await.expect("it waits");
    assert_eq!(page.extract().await.expect("content").text, "206 cde");
    page.close().await;
    let asked = site.fetched().into_iter().find_map(|it| it.range);
    assert_eq!(asked.as_deref(), Some("bytes=2-4"));
    test.close().await;
}

#[tokio::test]
async fn the_browser_sends_no_packets_except_to_the_proxy() {
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let server = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    server.set_nonblocking(true).expect("a socket");
    let port = server.local_addr().expect("an address").port();
    let site = Site::serve(|_| html("<p>page</p>")).await;
    let mut page = PageSession::open(&test.pool, site.clone())
        .await
        .expect("a browser");
    page.load("https://site.test/").await.expect("a page");
    let script = format!(
        "const link = new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{port}'}}]}});
        link.createDataChannel('a');
        await link.setLocalDescription(await link.createOffer());
        for (let i = 0; i < 60 && link.iceGatheringState !== 'complete'; i++)
            await new Promise((go) => setTimeout(go, 50));
        try {{ await new WebTransport('https://127.0.0.1:{port}/').ready }} catch (it) {{ return it.name }}"
    );
    let result = page
        .act(&PageAction::Evaluate { script })
        .await
        .expect("it runs");
    assert!(matches!(result, ActionResult::Value(_)), "{result:?}");
    page.close().await;
    let mut packet = [0; 100];
    let received = server.recv(&mut packet).map_err(|it| it.kind());
    assert_eq!(received, Err(io::ErrorKind::WouldBlock));
    test.close().await;
}

#[tokio::test]
async fn bodies_are_passed_on_while_they_are_received() {
    let Some(test) = TestPool::with(|_| {}).await else {
        return;
    };
    let events = Endless(
        "<p></p><script>new EventSource('/events').onmessage =
            (it) => { document.querySelector('p').textContent = it.data }</script>",
    );
    let mut page = PageSession::open(&test.pool, std::sync::Arc::new(events))
        .await
        .expect("a browser");
    let loaded = page.load("https://site.test/").await.expect("a page");
    assert_eq!(loaded, LoadResult::Idle);
    let shown = page.act(&text_appears()).await.expect("it waits");
    assert_eq!(shown, ActionResult::Done);
    assert_eq!(page.extract().await.expect("content").text, "first");
    let report = page.close().await;
    let stream = report
        .resources
        .iter()
        .find(|it| it.uri.ends_with("/events"));
    assert_eq!(stream.expect("it is recorded").received, 13);
    test.close().await;
}

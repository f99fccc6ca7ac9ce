//! Request and response records contain the bytes of the connection. Stops and limits with slow servers.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use opilio_control::{Command, CommandResponse};
use opilio_crawl::{End, Share};
use opilio_stories::{Story, crawl, html, raw, site, until};

const WWW: &str = "www.story.localhost";

#[tokio::test]
async fn request_and_response_records_equal_the_bytes_at_the_server() {
    let chunked = b"HTTP/1.1 200 Fine By Me\r\ncOnTeNt-TyPe: text/html\r\nX-Odd:   two  blanks \r\nx-odd: again\r\n\
        Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n6;ext=1\r\n<a hre\r\n1B\r\nf='/plain.html'>plain</a>..\r\n0\r\nX-After: 1\r\n\r\n";
    let until_closed = b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\nno length\r\n\r\nat all";
    let robots = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let server = raw(vec![
        ("/robots.txt", robots.to_vec()),
        ("/", chunked.to_vec()),
        ("/plain.html", until_closed.to_vec()),
    ]);
    let result = crawl().seed(server.url(WWW, "/")).run().await.finished();
    let exchanges = server.exchanges();
    assert_eq!(exchanges.len(), 3);
    for exchange in exchanges {
        let uri = server.url(WWW, &exchange.target);
        assert_eq!(
            result.record("request", &uri).block,
            exchange.request,
            "{uri}"
        );
        assert_eq!(
            result.record("response", &uri).block,
            exchange.response,
            "{uri}"
        );
    }
}

/// Starts a server that sends half of a page, and then nothing until the client disconnects. `/silent.html` gets no response.
/// Returns the port and the number of requests for pages.
fn half_a_page() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let pages = Arc::new(AtomicUsize::new(0));
    let requests = pages.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, requests) = (stream.unwrap(), requests.clone());
            std::thread::spawn(move || {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                    head.push(byte[0]);
                }
                if head.starts_with(b"GET /robots.txt ") {
                    let none = b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                    let _ = stream.write_all(none);
                    return;
                }
                if head.starts_with(b"GET /silent.html ") {
                    requests.fetch_add(1, Ordering::SeqCst);
                    let _ = stream.read(&mut byte);
                    return;
                }
                let half =
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 99\r\n\r\nhalf";
                let _ = stream.write_all(half);
                requests.fetch_add(1, Ordering::SeqCst);
                let _ = stream.read(&mut byte);
            });
        }
    });
    (port, pages)
}

/// The server never finishes its responses. The crawl ends after `fetch.stop-grace`.
#[tokio::test]
async fn a_stop_truncates_fetches_in_flight_and_a_restart_repeats_those_without_response() {
    let (port, requests) = half_a_page();
    let half = format!("http://{WWW}:{port}/half.html");
    let silent = format!("http://silent.story.localhost:{port}/silent.html");
    let story = crawl()
        .profile("[fetch]\nresponse-timeout = '10m'\ntotal-timeout = '20m'\nstop-grace = '1ms'")
        .seed(&half)
        .seed(&silent);
    let result = story
        .run_until("both were requested", || {
            requests.load(Ordering::SeqCst) == 2
        })
        .await;
    assert_eq!(result.summary.end, End::Stopped);
    let record = result.record("response", &half);
    assert_eq!(record.header("warc-truncated"), Some("unspecified"));
    assert!(record.text().ends_with("\r\n\r\nhalf"));
    assert!(result.sole(&half).notes("stopTrunc"), "{:?}", result.log);
    assert!(result.of(&silent).is_empty(), "{:?}", result.log);

    let result = story
        .run_until("the silent page was requested again", || {
            requests.load(Ordering::SeqCst) == 3
        })
        .await;
    assert!(result.of(&silent).is_empty(), "{:?}", result.log);
}

/// One worker, three servers that never finish their responses, and one good server, which does not wait for them.
#[tokio::test]
async fn slow_servers_do_not_block_a_worker_that_another_server_needs() {
    let (port, requests) = half_a_page();
    let good = site("good.localhost").page("/", html("well")).serve().await;
    let mut story = crawl().profile(
        "workers = 1
        [fetch]
        response-timeout = '10m'
        min-rate = 'none'
        slow-after = '100ms'
        slow-fetches = 3
        stop-grace = '1ms'",
    );
    for (name, page) in [("a", "half"), ("b", "silent"), ("c", "half")] {
        story = story.seed(format!("http://{name}.localhost:{port}/{page}.html"));
    }
    let result = story
        .seed(good.url("good.localhost", "/"))
        .run_until("all were requested", || {
            let is_fetched = good.requests().iter().any(|seen| seen.target == "/");
            is_fetched && requests.load(Ordering::SeqCst) >= 3
        })
        .await;
    assert_eq!(result.summary.end, End::Stopped);
}

/// Starts a server that sends an endless page as fast as possible, as soon as the returned sender is dropped. Returns its port.
fn endless_page() -> (u16, std::sync::mpsc::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (begin, begun) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                head.push(byte[0]);
            }
            if head.starts_with(b"GET /robots.txt ") {
                let none = b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                let _ = stream.write_all(none);
                continue;
            }
            let _ = begun.recv();
            let head = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n";
            let mut sent = stream.write_all(head);
            while sent.is_ok() {
                sent = stream.write_all(&[b'x'; 16 * 1024]);
            }
        }
    });
    (port, begin)
}

/// Returns the number of waits for bandwidth while reading.
async fn waited_for_bytes(story: &Story) -> u64 {
    match &story.order(Command::Status).await.unwrap()[..] {
        [CommandResponse::Status(status)] => status.taken.waited_for_bytes,
        other => panic!("{other:?}"),
    }
}

/// Two workers. One is busy with a server that always sends more than the bandwidth. The other is free for all servers that are not
/// slow, as without a bandwidth limit.
#[tokio::test(flavor = "multi_thread")]
async fn slow_servers_do_not_block_workers_while_a_server_uses_all_bandwidth() {
    let (port, requests) = half_a_page();
    let (busy, begin) = endless_page();
    let good = site("good.localhost").page("/", html("well")).serve().await;
    let story = crawl()
        .profile(
            "workers = 2
            [fetch]
            response-timeout = '10m'
            min-rate = 'none'
            slow-after = '500ms'
            slow-fetches = 3
            stop-grace = '1ms'",
        )
        .seed(format!("http://busy.localhost:{busy}/"));
    let share = Share {
        bytes_per_second: Some(2 << 20),
        connections: None,
    };
    let slow = [("a", "half"), ("b", "silent"), ("c", "half")];
    let slow = slow.map(|(name, page)| format!("http://{name}.localhost:{port}/{page}.html"));
    let mut seeds = slow.to_vec();
    seeds.push(good.url("good.localhost", "/"));
    let operator = async {
        let share = Command::Share { share };
        while story.order(share.clone()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(begin);
        while waited_for_bytes(&story).await < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        story.order(Command::AddSeeds { seeds }).await.unwrap();
        until("all were requested", || {
            let is_fetched = good.requests().iter().any(|seen| seen.target == "/");
            is_fetched && requests.load(Ordering::SeqCst) >= 3
        })
        .await;
        story.order(Command::Stop).await.unwrap();
    };
    let (result, ()) = story.run_with(operator).await;
    assert_eq!(result.summary.end, End::Stopped);
}

/// The server never finishes its response, and the profile has the default time for a stop.
#[tokio::test]
async fn a_time_limit_ends_a_crawl_with_fetches_in_flight() {
    let (port, _) = half_a_page();
    let end = async |limit: &str| {
        let result = crawl()
            .profile(&format!(
                "{limit} = '1s'\n[fetch]\nresponse-timeout = '10m'"
            ))
            .seed(format!("http://{WWW}:{port}/half.html"))
            .run()
            .await;
        result.summary.end
    };
    let (process, job) = tokio::join!(end("limits.time"), end("quotas.crawl.run-time"));
    assert_eq!((process, job), (End::TimeLimit, End::Quota("run-time")));
}

/// Fetch settings of an override apply only to its site: limits and allowed addresses.
#[tokio::test]
async fn fetch_settings_of_an_override_apply_only_to_its_site() {
    let page =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\n0123456789";
    let robots = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let server = raw(vec![
        ("/robots.txt", robots.to_vec()),
        ("/a", page.to_vec()),
    ]);
    let (free, short) = (
        server.url("free.localhost", "/a"),
        server.url("short.localhost", "/a"),
    );
    let closed = server.url("closed.localhost", "/a");
    let result = crawl()
        .profile(
            r#"
            [[override]]
            match.host = ["short.localhost"]
            fetch.body-max = "4B"
            [[override]]
            match.host = ["closed.localhost"]
            fetch.allow-addresses = ["metadata"]
            "#,
        )
        .seed(&free)
        .seed(&short)
        .seed(&closed)
        .run()
        .await
        .finished();
    assert!(
        result
            .record("response", &free)
            .text()
            .ends_with("\n0123456789")
    );
    let cut = result.record("response", &short);
    assert!(cut.text().ends_with("\n0123"), "{}", cut.text());
    assert_eq!(cut.header("warc-truncated"), Some("length"));
    assert!(result.sole(&short).notes("lenTrunc"));
    assert_eq!(result.sole(&closed).status, -5001);
}

//! Servers that are busy, down or do not exist.

use std::time::Duration;

use opilio_stories::{CLOSED_PORT, asked, crawl, html, lines, raw, site};
use opilio_test_web::Reply;

const WWW: &str = "www.story.localhost";

#[tokio::test]
async fn a_busy_server_is_retried_after_its_retry_after() {
    let web = site(WWW)
        .page("/", html("<a href='/busy.html'>b</a>"))
        .answer("/busy.html", |seen| match seen.visit {
            1 => Reply::status(503).with("retry-after", "1"),
            _ => html("at your service"),
        })
        .serve()
        .await;
    let result = crawl().seed(web.url(WWW, "/")).run().await.finished();
    let busy = web.url(WWW, "/busy.html");
    assert_eq!(result.record("response", &busy).status(), 200);
    let line = result.sole(&busy);
    assert!(line.status == 200 && line.notes("2t"), "{line:?}");
    assert!(
        result.summary.progress.elapsed >= Duration::from_secs(1),
        "{:?}",
        result.summary.progress.elapsed
    );
    assert!(result.log_file("nonfatal-errors.log").contains(&busy));
}

#[tokio::test]
async fn the_last_answer_of_a_server_that_stays_busy_is_archived() {
    let web = site(WWW).page("/", Reply::status(503)).serve().await;
    let result = crawl().seed(web.url(WWW, "/")).run().await.finished();
    assert_eq!(asked(&web).len(), 3, "once, and two retries");
    assert_eq!(result.record("response", &web.url(WWW, "/")).status(), 503);
    assert_eq!(result.sole(&web.url(WWW, "/")).status, 503);
}

#[tokio::test]
async fn a_host_that_is_down_costs_few_requests_for_many_pages() {
    let down = format!("http://down.localhost:{CLOSED_PORT}");
    let pictures: String = (0..10)
        .map(|n| format!("<img src='{down}/{n}.png'>"))
        .collect();
    let web = site(WWW).page("/", html(&pictures)).serve().await;
    let result = crawl().seed(web.url(WWW, "/")).run().await.finished();
    let robots = result.sole(&format!("{down}/robots.txt"));
    assert!(robots.status == -2 && robots.notes("3t"), "{robots:?}");
    for n in 0..10 {
        assert_eq!(result.sole(&format!("{down}/{n}.png")).status, -61);
    }
}

#[tokio::test]
async fn only_robots_txt_of_a_server_that_closes_connections_is_requested() {
    let mute = raw(Vec::new());
    let pictures: String = (0..10)
        .map(|n| {
            format!(
                "<img src='{}'>",
                mute.url("mute.localhost", &format!("/{n}.png"))
            )
        })
        .collect();
    let web = site(WWW).page("/", html(&pictures)).serve().await;
    let result = crawl().seed(web.url(WWW, "/")).run().await.finished();
    assert_eq!(
        result
            .sole(&mute.url("mute.localhost", "/robots.txt"))
            .status,
        -404
    );
    assert_eq!(
        result.sole(&mute.url("mute.localhost", "/7.png")).status,
        -61
    );
    let probes: Vec<_> = mute
        .exchanges()
        .into_iter()
        .map(|exchange| exchange.target)
        .collect();
    assert!(
        probes.len() <= 6 && probes.iter().all(|target| target == "/robots.txt"),
        "{probes:?}"
    );
}

/// `.invalid` has no addresses (RFC 6761 §6.4), so no name server is queried.
#[tokio::test]
async fn a_name_without_an_address_and_its_pages_have_different_statuses() {
    let nowhere = "http://nowhere.invalid";
    let web = site(WWW)
        .page(
            "/",
            html(&format!(
                "<img src='{nowhere}/a.png'><img src='{nowhere}/b.png'>"
            )),
        )
        .serve()
        .await;
    let result = crawl().seed(web.url(WWW, "/")).run().await.finished();
    let error_of = |uri: &str| {
        let line = result.sole(uri);
        let mut annotations = line.annotations.iter();
        let error = annotations.find_map(|it| it.strip_prefix("err="));
        (line.status, error.unwrap_or_default().to_owned())
    };
    let (status, error) = error_of("dns:nowhere.invalid");
    assert_eq!(status, -1);
    assert!(
        error.starts_with("no_address_for_nowhere.invalid:_"),
        "{error}"
    );
    let (status, error) = error_of(&format!("{nowhere}/a.png"));
    assert_eq!((status, &*error), (-6, "no_address_for_nowhere.invalid"));
    assert_eq!(result.sole(&format!("{nowhere}/b.png")).status, -6);
}

#[tokio::test]
async fn errors_of_other_classes_than_retry_errors_are_final_at_once() {
    let mute = raw(Vec::new());
    let seed = mute.url("mute.localhost", "/");
    let story =
        crawl().profile("retry.errors = ['connect', 'timeout']\n[robots]\npolicy = 'ignore'");
    let result = story.seed(&seed).run().await.finished();
    assert_eq!(result.sole(&seed).status, -404);
    let targets: Vec<_> = mute.exchanges().into_iter().map(|it| it.target).collect();
    assert_eq!(targets, ["/robots.txt", "/"], "each once");
}

#[tokio::test]
async fn a_retry_after_may_be_a_date() {
    let web = site(WWW)
        .answer("/", |seen| match seen.visit {
            1 => {
                // Dates have a precision of one second, so the wait is at least one second.
                let at = jiff::Timestamp::now() + Duration::from_secs(2);
                let date = at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
                Reply::status(429).with("retry-after", date)
            }
            _ => html("at your service"),
        })
        .serve()
        .await;
    let result = crawl().seed(web.url(WWW, "/")).run().await.finished();
    assert_eq!(result.sole(&web.url(WWW, "/")).status, 200);
    let elapsed = result.summary.progress.elapsed;
    assert!(elapsed >= Duration::from_secs(1), "{elapsed:?}");
}

#[tokio::test]
async fn a_busy_page_does_not_delay_other_pages_of_its_host() {
    let links: String = (1..=5)
        .map(|n| format!("<a href='/{n}.html'>{n}</a>"))
        .collect();
    let web = site(WWW)
        .page("/", html(&format!("<a href='/busy.html'>b</a>{links}")))
        .page("/busy.html", Reply::status(503))
        .rest(|_| html("a page"))
        .serve()
        .await;
    let story = crawl()
        .profile("workers = 1\nretry.delay = '1h'")
        .seed(web.url(WWW, "/"));
    story
        .run_until("the other pages", || asked(&web).len() >= 7)
        .await;
    let busy = asked(&web).iter().filter(|it| it.contains("busy")).count();
    assert_eq!(busy, 1, "the page waits for its retry delay of an hour");
}

#[tokio::test]
async fn a_page_without_success_so_far_is_probed_after_the_minimum_wait() {
    let web = site(WWW)
        .answer("/", |seen| match seen.visit {
            1 => html("never").taking(Duration::from_secs(3600)),
            _ => html("at your service"),
        })
        .serve()
        .await;
    let story = crawl()
        .profile(
            r#"
            strategy = "revisit"
            fetch.response-timeout = "2s"
            retry.errors = ["connect"]
            [[override]]
            match.host = ["www.story.localhost"]
            revisit.min-wait = "50ms"
            "#,
        )
        .seed(web.url(WWW, "/"));
    let result = story
        .run_until("the second visit", || asked(&web).len() >= 2)
        .await;
    let statuses: Vec<_> = result
        .of(&web.url(WWW, "/"))
        .iter()
        .map(|line| line.status)
        .collect();
    assert_eq!(statuses, [-4, 200]);
}

/// Starts a name server that answers every query with 127.0.0.1, except the second query for an IPv4 address: NXDOMAIN.
fn forgetful_name_server() -> std::net::SocketAddr {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut query, mut ipv4_queries) = ([0; 512], 0);
        while let Ok((length, from)) = socket.recv_from(&mut query) {
            let Some(end) = query[12..length].iter().position(|byte| *byte == 0) else {
                continue;
            };
            let question = &query[12..12 + end + 5];
            let is_ipv4 = question[end + 2] == 1;
            ipv4_queries += u32::from(is_ipv4);
            let is_denied = ipv4_queries == 2;
            let count = u8::from(is_ipv4 && !is_denied);
            let code = if is_denied { 3 } else { 0 };
            let header = [
                query[0],
                query[1],
                0x81,
                0x80 | code,
                0,
                1,
                0,
                count,
                0,
                0,
                0,
                0,
            ];
            let record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1];
            let record = &record[..record.len() * usize::from(count)];
            let _ = socket.send_to(&[&header, question, record].concat(), from);
        }
    });
    address
}

#[tokio::test]
async fn a_name_without_an_address_for_a_moment_loses_no_page() {
    let host = "pictures.story.test";
    let picture = Reply::ok("image/png", "a picture");
    let pictures = site(host).rest(move |_| picture.clone()).serve().await;
    let urls = ["/a.png", "/b.png"].map(|target| pictures.url(host, target));
    let web = site(WWW)
        .page(
            "/",
            html(
                &urls
                    .each_ref()
                    .map(|url| format!("<img src='{url}'>"))
                    .concat(),
            ),
        )
        .serve()
        .await;
    let names = forgetful_name_server();
    let story = crawl().profile(&format!(
        r#"
        dns = {{ servers = ["{names}"], min-expires = "200ms", max-expires = "200ms" }}
        politeness = {{ min-delay = "400ms", max-delay = "400ms" }}
        "#
    ));
    let result = story.seed(web.url(WWW, "/")).run().await.finished();
    for url in &urls {
        assert_eq!(result.sole(url).status, 200);
    }
    let failed = result.log_file("nonfatal-errors.log");
    assert!(failed.contains(&format!("dns:{host}")), "{failed}");
}

#[tokio::test]
async fn a_page_is_retried_max_retries_times_if_name_servers_are_down() {
    let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let names = closed.local_addr().unwrap();
    drop(closed);
    let away = "http://away.story.test/";
    let web = site(WWW)
        .page("/", html(&format!("<img src='{away}a.png'>")))
        .serve()
        .await;
    // The last delay of the queue is longer than the lifetime of the negative answer about the name.
    let story = crawl().profile(&format!(
        r#"
        dns = {{ servers = ["{names}"], negative-expires = "50ms" }}
        retry = {{ max-retries = 1, delay = "300ms" }}
        "#
    ));
    let result = story.seed(web.url(WWW, "/")).run().await.finished();
    let look_up = result.sole("dns:away.story.test");
    assert!(look_up.status == -1 && look_up.notes("2t"), "{look_up:?}");
    assert_eq!(result.sole(&format!("{away}a.png")).status, -6);
}

/// Starts a name server that answers every query with this response code (RFC 1035 §4.1.1).
fn name_server_that_answers(code: u8) -> std::net::SocketAddr {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut query = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut query) {
            let Some(end) = query[12..length].iter().position(|byte| *byte == 0) else {
                continue;
            };
            let question = &query[12..12 + end + 5];
            let header = [
                query[0],
                query[1],
                0x81,
                0x80 | code,
                0,
                1,
                0,
                0,
                0,
                0,
                0,
                0,
            ];
            let _ = socket.send_to(&[&header, question].concat(), from);
        }
    });
    address
}

#[tokio::test]
async fn a_robots_txt_redirect_to_an_unresolvable_host_closes_the_site_if_the_host_may_exist() {
    let (server_failure, name_error) = (2, 3);
    for (code, status) in [(server_failure, -61), (name_error, 200)] {
        let names = name_server_that_answers(code);
        let web = site(WWW)
            .page(
                "/robots.txt",
                Reply::redirect(301, "http://other.story.test/robots.txt"),
            )
            .page("/", html("a page"))
            .serve()
            .await;
        let profile = format!("dns.servers = [\"{names}\"]\nretry.max-retries = 1\n");
        let result = crawl()
            .profile(&profile)
            .seed(web.url(WWW, "/"))
            .run()
            .await
            .finished();
        assert_eq!(result.sole(&web.url(WWW, "/")).status, status);
    }
}

/// The address of a host may change at any time.
#[tokio::test]
async fn a_host_with_a_refused_address_is_probed_again() {
    let inside = "http://inside.story.test/a.png";
    let web = site(WWW)
        .page("/", html(&format!("<img src='{inside}'>")))
        .serve()
        .await;
    let story = crawl()
        .profile("strategy = 'revisit'\nrevisit = { min-wait = '10ms', default-wait = '1h' }")
        .profile(
            "fetch.allow-addresses = ['loopback']\n[dns.hosts]\n'inside.story.test' = '10.9.9.9'",
        )
        .seed(web.url(WWW, "/"));
    let refused = || {
        let log = lines(&story.job());
        let of_picture = log.iter().filter(|line| line.uri == inside);
        of_picture.filter(|line| line.status == -5001).count()
    };
    story
        .run_until("the host was probed twice", || refused() >= 2)
        .await;
}

//! Servers that are busy, down or do not exist.

use std::time::Duration;

use opilio_stories::{asked, crawl, html, raw, site};
use opilio_test_web::Reply;

const WWW: &str = "www.story.localhost";

#[tokio::test]
async fn a_busy_server_is_asked_again_when_it_said_and_the_answer_is_archived() {
    let web = site(WWW)
        .page("/", html("<a href='/busy.html'>b</a>"))
        .answer("/busy.html", |seen| match seen.visit {
            1 => Reply::status(503).with("retry-after", "1"),
            _ => html("at your service"),
        })
        .serve()
        .await;
    let told = crawl().seed(web.url(WWW, "/")).run().await.finished();
    let busy = web.url(WWW, "/busy.html");
    assert_eq!(told.record("response", &busy).status(), 200);
    let line = told.sole(&busy);
    assert!(line.status == 200 && line.notes("2t"), "{line:?}");
    assert!(
        told.summary.progress.elapsed >= Duration::from_secs(1),
        "{:?}",
        told.summary.progress.elapsed
    );
    assert!(told.log_file("nonfatal-errors.log").contains(&busy));
}

#[tokio::test]
async fn a_server_that_stays_busy_is_archived_as_it_is_in_the_end() {
    let web = site(WWW).page("/", Reply::status(503)).serve().await;
    let told = crawl().seed(web.url(WWW, "/")).run().await.finished();
    assert_eq!(asked(&web).len(), 3, "once, and two retries");
    assert_eq!(told.record("response", &web.url(WWW, "/")).status(), 503);
    assert_eq!(told.sole(&web.url(WWW, "/")).status, 503);
}

#[tokio::test]
async fn a_host_that_is_down_costs_few_probes_however_many_pages_it_has() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let down = format!("http://down.localhost:{port}");
    let pictures: String = (0..10)
        .map(|n| format!("<img src='{down}/{n}.png'>"))
        .collect();
    let web = site(WWW).page("/", html(&pictures)).serve().await;
    let told = crawl().seed(web.url(WWW, "/")).run().await.finished();
    let robots = told.sole(&format!("{down}/robots.txt"));
    assert!(robots.status == -2 && robots.notes("3t"), "{robots:?}");
    for n in 0..10 {
        assert_eq!(told.sole(&format!("{down}/{n}.png")).status, -61);
    }
}

#[tokio::test]
async fn a_server_that_hangs_up_is_probed_by_its_robots_txt_alone() {
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
    let told = crawl().seed(web.url(WWW, "/")).run().await.finished();
    assert_eq!(
        told.sole(&mute.url("mute.localhost", "/robots.txt")).status,
        -404
    );
    assert_eq!(told.sole(&mute.url("mute.localhost", "/7.png")).status, -61);
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

/// `.invalid` has no addresses by RFC 6761 §6.4; no name server is asked.
#[tokio::test]
async fn a_name_without_an_address_is_told_apart_from_pages_that_cannot_be_had_for_it() {
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
    let told = crawl().seed(web.url(WWW, "/")).run().await.finished();
    assert_eq!(told.sole("dns:nowhere.invalid").status, -1);
    assert_eq!(told.sole(&format!("{nowhere}/a.png")).status, -6);
    assert_eq!(told.sole(&format!("{nowhere}/b.png")).status, -6);
}

#[tokio::test]
async fn failures_of_a_class_that_is_not_named_are_final_at_once() {
    let mute = raw(Vec::new());
    let seed = mute.url("mute.localhost", "/");
    let story =
        crawl().profile("retry.errors = ['connect', 'timeout']\n[robots]\npolicy = 'ignore'");
    let told = story.seed(&seed).run().await.finished();
    assert_eq!(told.sole(&seed).status, -404);
    let targets: Vec<_> = mute.exchanges().into_iter().map(|it| it.target).collect();
    assert_eq!(targets, ["/robots.txt", "/"], "each once");
}

#[tokio::test]
async fn a_retry_after_may_be_a_date() {
    let web = site(WWW)
        .answer("/", |seen| match seen.visit {
            1 => {
                // To the second, so that at least one lies between.
                let at = jiff::Timestamp::now() + Duration::from_secs(2);
                let date = at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
                Reply::status(429).with("retry-after", date)
            }
            _ => html("at your service"),
        })
        .serve()
        .await;
    let told = crawl().seed(web.url(WWW, "/")).run().await.finished();
    assert_eq!(told.sole(&web.url(WWW, "/")).status, 200);
    let elapsed = told.summary.progress.elapsed;
    assert!(elapsed >= Duration::from_secs(1), "{elapsed:?}");
}

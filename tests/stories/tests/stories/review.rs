//! Regressions: hostile or odd sites that once broke a crawl.

use opilio_stories::{crawl, html, site};
use opilio_test_web::Reply;

const WWW: &str = "www.story.localhost";
const OTHER: &str = "other.localhost";

/// A crawl with one worker once waited for ever for that worker, which had finished.
#[tokio::test]
async fn a_crawl_with_a_single_worker_ends() {
    let links: String = (0..300)
        .map(|page| format!("<a href='/{page}.html'>p</a>"))
        .collect();
    let web = site(WWW)
        .page("/", html(&links))
        .rest(|_| html("a page"))
        .serve()
        .await;
    let result = crawl()
        .profile("workers = 1")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    let fetched = result
        .statuses()
        .iter()
        .filter(|line| line.starts_with("200 "))
        .count();
    assert_eq!(fetched, 302);
}

/// The record of such a robots.txt has the hop type of the link. It was once deferred to itself until all pages of the host had
/// failed.
#[tokio::test]
async fn a_link_to_robots_txt_does_not_close_the_host() {
    let web = site(WWW)
        .answer("/", |seen| {
            let port = seen.headers["host"].to_str().unwrap().rsplit_once(':').unwrap().1.to_owned();
            html(&format!(
                "<img src='http://{OTHER}:{port}/robots.txt'> <img src='http://{OTHER}:{port}/a.png'>"
            ))
        })
        .and(OTHER)
        .page("/robots.txt", Reply::ok("text/plain", "User-agent: *\nDisallow: /b\n"))
        .page("/a.png", Reply::ok("image/png", "a"))
        .serve()
        .await;
    let result = crawl().seed(web.url(WWW, "/")).run().await.finished();
    assert_eq!(result.sole(&web.url(OTHER, "/a.png")).status, 200);
    assert_eq!(
        result
            .record("response", &web.url(OTHER, "/robots.txt"))
            .status(),
        200
    );
}

#[tokio::test]
async fn a_seed_may_be_a_robots_txt() {
    let web = site(WWW)
        .page("/robots.txt", Reply::ok("text/plain", ""))
        .serve()
        .await;
    let result = crawl()
        .seed(web.url(WWW, "/robots.txt"))
        .run()
        .await
        .finished();
    assert_eq!(result.sole(&web.url(WWW, "/robots.txt")).status, 200);
}

/// `dns:` URIs omit the dot of the root. Once, the address was looked up for ever, because the names differed.
#[tokio::test]
async fn a_host_with_a_dot_at_its_end_is_fetched() {
    let web = site("dotted.localhost.")
        .page("/", html("a page"))
        .serve()
        .await;
    let url = web.url("dotted.localhost.", "/");
    let result = crawl().seed(url.clone()).run().await.finished();
    assert_eq!(result.sole(&url).status, 200);
}

/// robots.txt may redirect to another host. The redirect is followed once, and is not a link.
#[tokio::test]
async fn a_redirect_of_robots_txt_adds_no_uri_to_the_crawl() {
    let web = site(WWW)
        .answer("/robots.txt", |seen| {
            let port = seen.headers["host"]
                .to_str()
                .unwrap()
                .rsplit_once(':')
                .unwrap()
                .1
                .to_owned();
            Reply::redirect(302, &format!("http://{OTHER}:{port}/rules"))
        })
        .page("/", html("<a href='/b.html'>B</a>"))
        .and(OTHER)
        .page(
            "/rules",
            Reply::ok("text/plain", "User-agent: *\nDisallow: /b.html\n"),
        )
        .serve()
        .await;
    let result = crawl().seed(web.url(WWW, "/")).run().await.finished();
    assert_eq!(result.sole(&web.url(WWW, "/b.html")).status, -9998);
    assert_eq!(
        result.records("response", &web.url(OTHER, "/rules")).len(),
        1
    );
    assert!(result.of(&web.url(OTHER, "/rules")).is_empty());
}

#[tokio::test]
async fn seeds_added_when_resuming_are_saved_in_the_job() {
    let web = site(WWW)
        .page("/", html("a page"))
        .and(OTHER)
        .page("/", html("<a href='/b.html'>B</a>"))
        .page("/b.html", html("b"))
        .serve()
        .await;
    let story = crawl().seed(web.url(WWW, "/"));
    let job = story.job();
    story.run().await.finished();
    let result = story.seed(web.url(OTHER, "/")).run().await.finished();
    assert_eq!(result.sole(&web.url(OTHER, "/b.html")).status, 200);
    let given = web.url(OTHER, "/");
    let added = std::fs::read_to_string(job.join("added-seeds.txt")).unwrap();
    assert!(added.contains(&given), "{added}");
    let seeds = std::fs::read_to_string(job.join("seeds.txt")).unwrap();
    assert!(!seeds.contains(&given), "{seeds}");
}

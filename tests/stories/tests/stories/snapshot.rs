//! The snapshot strategy: fetched URIs, their order and their records.

use opilio_stories::{asked, crawl, html, site};
use opilio_test_web::Reply;

const WWW: &str = "www.story.localhost";
const OTHER: &str = "other.localhost";
const IMAGES: &str = "images.localhost";

#[tokio::test]
async fn pages_of_the_site_and_embeds_of_other_sites_are_fetched_once() {
    let web = site(WWW)
        .answer("/", |seen| {
            let port = seen.headers["host"].to_str().unwrap().rsplit_once(':').unwrap().1.to_owned();
            html(&format!(
                "<a href='a.html'>A</a> <a href='/b.html#part'>B</a> <a href='/b.html'>B again</a>
                 <img src='http://{IMAGES}:{port}/one.png'> <a href='http://{OTHER}:{port}/'>other</a>
                 <a href='http://{IMAGES}:{port}/page.html'>page</a>"
            ))
        })
        .page("/a.html", html("<a href='/'>home</a> <a href='/missing.html'>missing</a>"))
        .page("/b.html", html("<a href='/a.html'>A</a>"))
        .and(IMAGES)
        .page("/one.png", Reply::ok("image/png", "not really"))
        .and(OTHER)
        .page("/", html("elsewhere"))
        .serve()
        .await;
    let result = crawl().seed(web.url(WWW, "/")).run().await.finished();
    assert_eq!(
        asked(&web),
        [
            format!("{IMAGES} /one.png"),
            format!("{WWW} /"),
            format!("{WWW} /a.html"),
            format!("{WWW} /b.html"),
            format!("{WWW} /missing.html"),
        ]
    );
    assert_eq!(
        result
            .record("response", &web.url(WWW, "/missing.html"))
            .status(),
        404
    );
    assert_eq!(result.sole(&web.url(WWW, "/missing.html")).hops, "LL");
    assert_eq!(result.sole(&web.url(IMAGES, "/one.png")).hops, "E");
    assert_eq!(result.sole(&web.url(WWW, "/a.html")).via, web.url(WWW, "/"));
}

#[tokio::test]
async fn robots_txt_is_fetched_once_per_host_before_other_uris_and_obeyed() {
    let web = site(WWW)
        .page("/robots.txt", Reply::ok("text/plain", "User-agent: *\nDisallow: /private/\nAllow: /private/press.html\n"))
        .page("/", html("<a href='/private/a.html'>no</a> <a href='/private/press.html'>yes</a> <a href='/b.html'>B</a>"))
        .page("/b.html", html("b"))
        .page("/private/press.html", html("press"))
        .page("/private/a.html", html("secret"))
        .serve()
        .await;
    let result = crawl().seed(web.url(WWW, "/")).run().await.finished();
    let requests = web.requests();
    assert_eq!(requests[0].target, "/robots.txt");
    assert_eq!(
        requests
            .iter()
            .filter(|seen| seen.target == "/robots.txt")
            .count(),
        1
    );
    assert_eq!(
        asked(&web),
        [
            format!("{WWW} /"),
            format!("{WWW} /b.html"),
            format!("{WWW} /private/press.html")
        ]
    );

    let refused = result.sole(&web.url(WWW, "/private/a.html"));
    assert_eq!(
        (refused.status, &refused.annotations[..]),
        (
            -9998,
            &["robotExcluded".to_owned(), "robotsLine:2".to_owned()][..]
        )
    );
    assert!(result.records("response", &refused.uri).is_empty());

    let robots = web.url(WWW, "/robots.txt");
    assert_eq!(result.sole(&robots).hops, "P");
    assert!(
        result
            .record("response", &robots)
            .text()
            .contains("Disallow: /private/")
    );
    let name = format!("dns:{WWW}");
    assert_eq!(
        (result.sole(&name).status, &*result.sole(&name).hops),
        (1, "P")
    );
    let record = result.record("resource", &name);
    assert_eq!(record.header("content-type"), Some("text/dns"));
    assert!(record.text().contains("127.0.0.1"), "{}", record.text());
}

#[tokio::test]
async fn a_private_address_is_refused_unless_the_profile_allows_it() {
    let web = site(WWW).page("/", html("")).serve().await;
    let story = crawl()
        .profile("[fetch]\nallow-addresses = ['private', 'link-local', 'metadata']\n[retry]\ndelay = '1h'")
        .seed(web.url(WWW, "/"));
    let result = story.run().await.finished();
    assert!(web.requests().is_empty());
    assert_eq!(result.sole(&web.url(WWW, "/")).status, -5001);
    assert_eq!(result.sole(&web.url(WWW, "/robots.txt")).status, -5001);
}

/// Links are not truncated: a long link is followed, and a link that is too long is logged with the reason.
#[tokio::test]
async fn links_that_are_too_long_are_logged_and_long_ones_are_followed() {
    let (long, too_long) = ("x".repeat(30_000), "y".repeat(70_000));
    let page = format!("<a href='/{long}'>long</a> <a href='/{too_long}'>too long</a>");
    let web = site(WWW)
        .page("/", html(&page))
        .rest(|_| Reply::status(404))
        .serve()
        .await;
    let result = crawl().seed(web.url(WWW, "/")).run().await.finished();
    assert!(
        result.log.iter().any(|line| line.uri.contains(&long)),
        "{:?}",
        result.statuses()
    );
    let errors = result.log_file("uri-errors.log");
    assert!(errors.contains("yyyyy"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

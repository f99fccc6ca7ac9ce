//! Precedence within a queue, and among queues.

use opilio_stories::{asked, crawl, html, site};
use opilio_test_web::{Reply, Web};

use crate::many::{A, B, hosts, in_order, requests_to};

/// Serves a page with two links and a style sheet. The style sheet names a picture, which is found after the links.
async fn web_with_a_late_picture() -> Web {
    site(A)
        .page("/robots.txt", Reply::status(404))
        .page(
            "/",
            html("<link rel=stylesheet href=/s.css> <a href=/x.html>x</a> <a href=/y.html>y</a>"),
        )
        .page(
            "/s.css",
            Reply::ok("text/css", "p { background: url(/i.png) }"),
        )
        .rest(|_| html("a page"))
        .serve()
        .await
}

async fn check_order(profile: &str, expected: [&str; 5]) {
    let web = web_with_a_late_picture().await;
    crawl()
        .profile("workers = 1")
        .profile(profile)
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    assert_eq!(
        in_order(&web),
        expected.map(|target| format!("{A} {target}")),
        "{profile}"
    );
}

const AS_FOUND: [&str; 5] = ["/", "/s.css", "/x.html", "/y.html", "/i.png"];

#[tokio::test]
async fn uris_of_equal_precedence_are_fetched_in_the_order_of_discovery() {
    check_order("", AS_FOUND).await;
}

#[tokio::test]
async fn the_policy_hops_prefers_fewer_link_hops() {
    let profile = r#"uri = { precedence-policy = "hops" }"#;
    check_order(profile, ["/", "/s.css", "/i.png", "/x.html", "/y.html"]).await;
}

#[tokio::test]
async fn the_policy_hops_can_count_hops_of_all_types() {
    let profile = r#"uri = { precedence-policy = "hops", navigation-hops-only = false }"#;
    check_order(profile, AS_FOUND).await;
}

#[tokio::test]
async fn an_override_changes_the_precedence_of_a_part_of_a_site() {
    check_order(
        r#"
        uri.precedence-policy = "base"
        [[override]]
        match.regex = 'y\.html$'
        uri.precedence = 0
        "#,
        ["/", "/s.css", "/y.html", "/x.html", "/i.png"],
    )
    .await;
}

#[tokio::test]
async fn precedences_can_come_from_a_file() {
    let web = hosts(&[A], 4, &html("a page")).serve().await;
    let list = [(1, 40), (2, 10), (4, 0)]
        .map(|(page, precedence)| {
            format!("{} {precedence}\n", web.url(A, &format!("/{page}.html")))
        })
        .concat();
    let story = crawl().seed(web.url(A, "/"));
    let file = story.file("precedences.txt", &list);
    story
        .profile(&format!(
            r#"
            workers = 1
            uri = {{ precedence-policy = "file", precedence-file = '{}', precedence = 20 }}
            "#,
            file.display()
        ))
        .run()
        .await
        .finished();
    assert_eq!(
        in_order(&web),
        ["/", "/4.html", "/2.html", "/3.html", "/1.html"].map(|target| format!("{A} {target}"))
    );
}

/// With a valence of two, each queue has a slot without a delay when the only worker is idle again.
#[tokio::test]
async fn a_queue_of_higher_precedence_is_crawled_first() {
    let web = hosts(&[A, B], 5, &html("a page")).serve().await;
    crawl()
        .profile(
            r#"
            workers = 1
            queue.valence = 2
            [[override]]
            match.host = ["b.localhost"]
            queue.precedence = 1
            "#,
        )
        .seed(web.url(A, "/"))
        .seed(web.url(B, "/"))
        .run()
        .await
        .finished();
    let order: Vec<_> = web.requests().into_iter().map(|seen| seen.host).collect();
    assert_eq!(order, [[B; 7], [A; 7]].concat());
}

#[tokio::test]
async fn a_precedence_floor_holds_a_host_back_until_it_is_raised() {
    let web = hosts(&[A, B], 3, &html("a page")).serve().await;
    let story = crawl()
        .profile(
            r#"
            frontier.precedence-floor = 5
            [[override]]
            match.host = ["a.localhost"]
            queue.precedence = 5
            "#,
        )
        .seed(web.url(A, "/"))
        .seed(web.url(B, "/"));
    story.run().await.finished();
    assert_eq!((requests_to(&web, A), requests_to(&web, B)), (0, 4));
    story.amend("frontier.precedence-floor = 6");
    story.run().await.finished();
    assert_eq!(
        (requests_to(&web, A), requests_to(&web, B)),
        (4, 4),
        "{:?}",
        asked(&web)
    );
}

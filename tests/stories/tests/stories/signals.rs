//! Signals: sitemaps and feeds report when a page has changed.

use opilio_stories::{Story, asked, crawl, html, site};
use opilio_test_web::{Reply, Web};

use crate::revisits::visits;

const WWW: &str = "www.story.localhost";

/// Returns a story in which pages have a wait of an hour, and the list has a wait of 20 ms.
fn with_list(extractor: &str) -> Story {
    crawl().profile(&format!(
        r#"
        strategy = "fixed"
        revisit = {{ fixed-wait = "1h", default-wait = "1h", min-wait = "10ms", max-wait = "2h" }}
        stacks.extract = ["http", "html", "{extractor}"]
        [[override]]
        match.regex = 'list$'
        revisit.fixed-wait = "20ms"
        "#
    ))
}

/// Checks that a page is visited again early. From the third visit on, the list gives the current time for this page, and an old
/// time for another page.
async fn check(extractor: &str, media_type: &'static str, list: fn(&str, &str) -> String) {
    let at = |visit: u64| match visit {
        0..=2 => "2020-01-01T00:00:00Z".to_owned(),
        _ => jiff::Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%SZ")
            .to_string(),
    };
    let web: Web = site(WWW)
        .page(
            "/",
            html("<a href='/list'>l</a> <a href='/a.html'>a</a> <a href='/b.html'>b</a>"),
        )
        .answer("/list", move |seen| {
            let old = "2020-01-01T00:00:00Z";
            let base = format!("http://{}", seen.headers["host"].to_str().unwrap());
            let text = list(&format!("{base}/a.html"), &at(seen.visit as u64))
                .replace("OTHER", &format!("{base}/b.html"))
                .replace("OLD", old);
            Reply::ok(media_type, text)
        })
        .page("/a.html", html("a"))
        .page("/b.html", html("b"))
        .serve()
        .await;
    with_list(extractor)
        .seed(web.url(WWW, "/"))
        .run_until("the page is visited again", || visits(&web, "/a.html") >= 2)
        .await;
    assert_eq!(visits(&web, "/b.html"), 1, "{:?}", asked(&web));
    assert_eq!(visits(&web, "/"), 1);
}

#[tokio::test]
async fn a_sitemap_makes_due_only_pages_with_a_new_date() {
    check("sitemap", "application/xml", |page, at| {
        format!(
            r#"<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
            <url><loc>{page}</loc><lastmod>{at}</lastmod></url>
            <url><loc>OTHER</loc><lastmod>OLD</lastmod></url></urlset>"#
        )
    })
    .await;
}

#[tokio::test]
async fn a_feed_makes_due_only_pages_with_a_new_date() {
    check("feed", "application/atom+xml", |page, at| {
        format!(
            r#"<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>t</title>
            <entry><link href="{page}"/><updated>{at}</updated></entry>
            <entry><link href="OTHER"/><updated>OLD</updated></entry></feed>"#
        )
    })
    .await;
}

//! Lists of sites: sitemaps in robots.txt, feeds and the dates of their items.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use opilio_stories::{crawl, html, site};
use opilio_test_web::Reply;

use crate::revisits::{revisiting, visits};

const WWW: &str = "www.story.localhost";

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn sitemaps_and_feeds_lead_to_pages_without_links() {
    let web = site(WWW)
        .page("/robots.txt", Reply::ok("text/plain", "User-agent: *\nAllow: /\nSitemap: /maps.xml"))
        .page(
            "/maps.xml",
            Reply::ok("text/xml", "<sitemapindex><sitemap><loc>/map.xml.gz</loc></sitemap></sitemapindex>"),
        )
        .page(
            "/map.xml.gz",
            Reply::ok(
                "application/octet-stream",
                gzip("<urlset><url><loc>/mapped.html</loc><lastmod>2020-01-01</lastmod></url></urlset>"),
            ),
        )
        .page("/", html("<link rel=alternate type=application/rss+xml href=/feed><script type=application/ld+json>\
                         {\"@context\":\"https://schema.org\",\"url\":\"/data.html\"}</script>"))
        .page(
            "/feed",
            Reply::ok(
                "text/xml",
                "<rss><channel><item><link>/item.html</link><enclosure url='/item.svg'/>\
                 <description>&lt;img src=/shown.png></description></item></channel></rss>",
            ),
        )
        .page("/item.svg", Reply::ok("image/svg+xml", "<svg><image href='/drawn.png'/></svg>"))
        .page("/mapped.html", html("m"))
        .page("/item.html", html("i"))
        .page("/data.html", html("d"))
        .page("/shown.png", Reply::ok("image/png", "s"))
        .page("/drawn.png", Reply::ok("image/png", "d"))
        .serve()
        .await;
    let result = crawl().seed(web.url(WWW, "/")).run().await.finished();
    for (target, hops) in [
        ("/maps.xml", "PM"),
        ("/map.xml.gz", "PMM"),
        ("/mapped.html", "PMMM"),
        ("/feed", "L"),
        ("/item.html", "LL"),
        ("/item.svg", "LE"),
        ("/drawn.png", "LEE"),
        ("/shown.png", "LE"),
        ("/data.html", "L"),
    ] {
        let line = result.sole(&web.url(WWW, target));
        assert_eq!((line.status, line.hops.as_str()), (200, hops), "{target}");
    }
}

/// The feed has short waits and its items have long ones. The feed has a later date for the item that changes.
#[tokio::test]
async fn an_item_with_a_new_date_in_the_feed_is_visited_again() {
    let web = site(WWW)
        .answer("/", |seen| {
            let item = if seen.visit > 2 {
                format!("<updated>{}</updated>", Timestamp::now())
            } else {
                "<updated>2020-01-01T00:00:00Z</updated>".to_owned()
            };
            let feed = format!("<feed><entry><link href='/item.html'/>{item}</entry>\
                                <entry><link href='/other.html'/><updated>2020-01-01</updated></entry></feed>");
            Reply::ok("application/atom+xml", feed)
        })
        .page("/item.html", html("i"))
        .page("/other.html", html("o"))
        .serve()
        .await;
    revisiting()
        .profile(
            r#"
            stacks.wait = ["pages", "adaptive"]
            [plugins.pages]
            component = "builtin:adaptive"
            settings = { media-types = ["text/html"], initial-wait = "1h", min-wait = "1h", max-wait = "1h" }
            [[override]]
            match.media-type = ["text/html"]
            revisit = { min-wait = "1h", max-wait = "1h", default-wait = "1h" }
            "#,
        )
        .seed(web.url(WWW, "/"))
        .run_until("the second visit to the item", || {
            visits(&web, "/item.html") >= 2
        })
        .await;
    assert_eq!(visits(&web, "/other.html"), 1);
}

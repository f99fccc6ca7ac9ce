//! Differences that do not count as a change: noise that strippers remove, sections that publishers mark, headers, small
//! differences. Also waits that depend on feeds.

use opilio_stories::{Capture, FinishedCrawl, LoggedUri, Story, html, site};
use opilio_test_web::{Reply, Web};
use sha1::{Digest as _, Sha1};

use crate::revisits::{revisiting, visits};

const WWW: &str = "www.story.localhost";

async fn run_until_visits(story: Story, web: &Web, target: &str, count: usize) -> FinishedCrawl {
    story
        .seed(web.url(WWW, target))
        .run_until("enough visits", || visits(web, target) >= count)
        .await
}

/// Asserts that all visits after the first found the page unchanged, with one response record and different payload digests.
#[track_caller]
fn assert_unchanged(result: &FinishedCrawl, page: &str) {
    result.record("response", page);
    let log = result.of(page);
    assert!(log.len() > 2, "{log:?}");
    for line in &log[1..] {
        assert!(line.notes("unchanged") && line.notes("1ver"), "{line:?}");
    }
    let digests: std::collections::HashSet<_> = log.iter().map(|line| &line.digest).collect();
    assert_eq!(
        digests.len(),
        log.len(),
        "payload digests are those of the unstripped bytes"
    );
}

/// A clock, a token and a comment change at each visit and do not count. Payload digests are those of the unstripped bytes.
#[tokio::test]
async fn a_page_with_a_clock_is_unchanged_with_different_payload_digests() {
    let web = site(WWW)
        .answer("/", |seen| {
            html(&format!(
                "<!-- built {n} --><p>It is 12:00:{n:02}, and all is well.</p>\
                 <form><input type=hidden name=csrf_token value='token-{n}'></form>\
                 <script nonce=n{n}>started({n})</script>",
                n = seen.visit % 60
            ))
        })
        .serve()
        .await;
    let story =
        revisiting().profile("stacks.digest = ['html-strip']\nrevisit.stripped-equal = 'note'");
    let result = run_until_visits(story, &web, "/", 3).await;
    let page = web.url(WWW, "/");
    assert_unchanged(&result, &page);
    let response = result.record("response", &page);
    let text = response.text();
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    let digest = data_encoding::BASE32.encode(&Sha1::digest(body));
    assert_eq!(
        response.header("warc-payload-digest"),
        Some(&*format!("sha1:{digest}"))
    );
}

/// A page of a newspaper's archive that also shows the front page story of the day, in a marked section.
#[tokio::test]
async fn changes_in_marked_sections_do_not_count() {
    let web = site(WWW)
        .answer("/1996/election.html", |seen| {
            html(&format!(
                "<h1>The election of 1996</h1><p>The results.</p>\
                 <!-- noarchive-start --><div class=box><h2>Front page</h2>\
                 <a href='/story-{}.html'>Story</a></div><!-- noarchive-end -->",
                seen.visit
            ))
        })
        .serve()
        .await;
    let story = revisiting()
        .profile("stacks.digest = ['marked-sections']\nrevisit.stripped-equal = 'note'");
    let result = run_until_visits(story, &web, "/1996/election.html", 3).await;
    assert_unchanged(&result, &web.url(WWW, "/1996/election.html"));
}

/// The page changes a little at each visit. It is compared with the archived version, so that many small changes count.
#[tokio::test]
async fn small_changes_do_not_count_until_they_add_up() {
    let web = site(WWW)
        .answer("/", |seen| {
            let word = |n: usize| match n < seen.visit {
                true => format!("new{n} "),
                false => format!("word{n} "),
            };
            html(&(0..300).map(word).collect::<String>())
        })
        .serve()
        .await;
    let story =
        revisiting().profile("stacks.change = ['similar']\nrevisit.stripped-equal = 'drop'");
    let result = run_until_visits(story, &web, "/", 14).await;
    let log = result.of(&web.url(WWW, "/"));
    let unchanged = |line: &LoggedUri| line.notes("unchanged");
    assert!(unchanged(log[1]) && log[1].notes("similar:"), "{log:#?}");
    assert!(log[1..].iter().any(|line| !unchanged(line)), "{log:#?}");
}

const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

/// Serves a page with a constant Last-Modified header. Its content changes from visit `changes` on.
async fn dated(changes: usize) -> Web {
    site(WWW)
        .answer("/", move |seen| {
            let version = if seen.visit < changes { 0 } else { seen.visit };
            html(&format!("version {version}")).with("last-modified", DATE)
        })
        .serve()
        .await
}

fn by_headers(trust_after: u32) -> Story {
    revisiting().profile(&format!(
        "fetch.conditional = false
        stacks = {{ mid-fetch = ['headers'], archive = ['headers'] }}
        plugins.headers = {{ component = 'builtin:unchanged-headers', settings = {{ trust-after = {trust_after} }} }}"
    ))
}

/// Predictions from headers are compared with digests until enough of them were right. Then bodies are not fetched any more.
#[tokio::test]
async fn bodies_are_skipped_at_a_site_with_reliable_headers() {
    let web = dated(usize::MAX).await;
    let page = web.url(WWW, "/");
    let job = by_headers(2).seed(&*page);
    let folder = job.job();
    let result = job
        .run_until("a body is skipped", || {
            let lines = opilio_stories::lines(&folder);
            lines.iter().any(|line| line.notes("midFetchAbort"))
        })
        .await;
    let log = result.of(&page);
    assert!(!log[0].notes("headers:"), "{log:?}");
    for (line, level) in log[1..3].iter().zip(1..) {
        let right = format!("headers:right:{level}");
        assert!(line.notes(&right) && line.digest != "-", "{line:?}");
    }
    let skipped = log.iter().find(|line| line.notes("midFetchAbort")).unwrap();
    assert!(skipped.notes("headers:trust:"), "{skipped:?}");
    assert!(
        skipped.notes("unchanged") && skipped.digest == "-",
        "{skipped:?}"
    );
    let revisits = result.records("revisit", &page);
    let by_headers = |revisit: &&Capture| revisit.text().starts_with("HTTP/1.1 200");
    let profile = |profile: &'static str| {
        let revisits = revisits.iter().copied();
        revisits.filter(move |revisit| revisit.header("warc-profile") == Some(profile))
    };
    let own = profile("urn:opilio:revisit:headers-unchanged");
    assert!(own.filter(by_headers).count() > 0);
    assert!(skipped.notes("warcRevisit:headersUnchanged"), "{skipped:?}");
    let server = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";
    assert_eq!(
        profile(server).count(),
        0,
        "the server has sent no 304 response"
    );
}

/// The page is larger than the stripper's limit in bytes, so only its bytes are compared.
#[tokio::test]
async fn a_page_too_large_for_its_stripper_is_compared_by_bytes() {
    let web = site(WWW)
        .answer("/", |seen| {
            html(&format!(
                "<p>version {} of a large page</p>",
                seen.visit.div_ceil(2)
            ))
        })
        .serve()
        .await;
    let story = revisiting().profile(
        "stacks.digest = ['strip']
        plugins.strip = { component = 'builtin:html-strip', settings = { max-size = 10 } }",
    );
    let result = run_until_visits(story, &web, "/", 4).await;
    let log = result.of(&web.url(WWW, "/"));
    let states: Vec<_> = log[..4]
        .iter()
        .map(|line| {
            (
                line.notes("unchanged"),
                line.notes("unstripped:strip:too-large"),
            )
        })
        .collect();
    assert_eq!(
        states,
        [(false, true), (true, false), (false, true), (true, false)],
        "{log:#?}"
    );
    assert!(
        log[2].notes("2ver"),
        "a changed page is a new version: {log:#?}"
    );
}

#[tokio::test]
async fn bodies_are_fetched_at_a_site_with_unreliable_headers() {
    let web = dated(4).await;
    let result = run_until_visits(by_headers(2), &web, "/", 8).await;
    let log = result.of(&web.url(WWW, "/"));
    // The first checked visit after the fourth finds the wrong prediction and ends the trust.
    let wrong = log.iter().position(|line| line.notes("headers:wrong:"));
    let Some(wrong) = wrong else {
        // No visit was checked: with a share of one in two, this is impossible in eight visits.
        panic!("{log:#?}");
    };
    assert!(
        log[wrong + 1..]
            .iter()
            .all(|line| !line.notes("midFetchAbort") && line.digest != "-"),
        "{log:#?}"
    );
}

/// The feed is read every 20 ms. Its pages have a wait of an hour, and are visited early when the feed gives a new date.
#[tokio::test]
async fn a_page_with_a_new_date_in_a_feed_is_visited_before_its_wait_ends() {
    let feed = |seen: &opilio_test_web::SeenRequest| {
        let at = match seen.visit {
            0..=2 => "2020-01-01T00:00:00Z".to_owned(),
            _ => jiff::Timestamp::now().to_string(),
        };
        let base = format!("http://{}", seen.headers["host"].to_str().unwrap());
        Reply::ok(
            "application/atom+xml",
            format!(
                r#"<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>t</title>
                <entry><link href="{base}/a.html"/><updated>{at}</updated></entry>
                <entry><link href="{base}/b.html"/><updated>2020-01-01T00:00:00Z</updated></entry></feed>"#
            ),
        )
    };
    let web = site(WWW)
        .page("/", html("<a href='/feed'>f</a>"))
        .answer("/feed", feed)
        .answer("/a.html", |seen| html(&format!("version {}", seen.visit)))
        .page("/b.html", html("b"))
        .serve()
        .await;
    let story = revisiting().profile(
        r#"
        stacks = { extract = ["html", "feed"], wait = ["lists", "hourly"] }
        plugins.lists = { component = "builtin:feed-trigger", settings = { list-wait = "20ms", announced-wait = "2h" } }
        plugins.hourly = { component = "builtin:fixed", settings = { wait = "1h" } }
        revisit = { default-wait = "1h", min-wait = "10ms", max-wait = "4w" }
        "#,
    );
    let page = web.url(WWW, "/a.html");
    let job = story.seed(web.url(WWW, "/"));
    let folder = job.job();
    let result = job
        .run_until("the page is visited again", || {
            let lines = opilio_stories::lines(&folder);
            lines.iter().filter(|line| line.uri == page).count() >= 2
        })
        .await;
    assert_eq!(visits(&web, "/b.html"), 1);
    let log = result.of(&page);
    assert!(log[0].notes("wt:1h"), "{log:?}");
    assert!(
        log[1].notes("wt:2h"),
        "the page had changed, as the feed reported: {log:?}"
    );
}

/// A feed that gives the current time as the date of all pages at every visit.
#[tokio::test]
async fn signals_of_feeds_can_be_ignored() {
    let web = site(WWW)
        .page("/", html("<a href='/feed'>f</a>"))
        .answer("/feed", |seen| {
            let base = format!("http://{}", seen.headers["host"].to_str().unwrap());
            let at = jiff::Timestamp::now();
            Reply::ok(
                "application/atom+xml",
                format!(
                    r#"<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>t</title>
                    <entry><link href="{base}/a.html"/><updated>{at}</updated></entry></feed>"#
                ),
            )
        })
        .page("/a.html", html("a"))
        .serve()
        .await;
    let story = revisiting().profile(
        r#"
        stacks = { extract = ["html", "feed"], wait = ["lists", "hourly"] }
        plugins.lists = { component = "builtin:feed-trigger", settings = { list-wait = "10ms" } }
        plugins.hourly = { component = "builtin:fixed", settings = { wait = "1h" } }
        revisit = { default-wait = "1h", min-wait = "10ms", max-wait = "4w", signals = false }
        "#,
    );
    run_until_feed_was_read(story, &web).await;
    assert_eq!(visits(&web, "/a.html"), 1);
}

async fn run_until_feed_was_read(story: Story, web: &Web) -> FinishedCrawl {
    story
        .seed(web.url(WWW, "/"))
        .run_until("the feed is read often, and the page once", || {
            visits(web, "/feed") >= 6 && visits(web, "/a.html") >= 1
        })
        .await
}

//! Differences that are no change: noise that strippers remove, sections that publishers mark, headers, small differences.
//! And what is told from elsewhere: feeds that make their evaluator's waits.

use opilio_stories::{Capture, FinishedCrawl, LoggedUri, Story, html, site};
use opilio_test_web::{Reply, Web};
use sha1::{Digest as _, Sha1};

use crate::revisits::{revisiting, visits};

const WWW: &str = "www.story.localhost";

async fn told_after(story: Story, web: &Web, target: &str, count: usize) -> FinishedCrawl {
    story
        .seed(web.url(WWW, target))
        .run_until("enough visits", || visits(web, target) >= count)
        .await
}

/// Every visit after the first found nothing new: one response, and notes that do not claim the same payload.
#[track_caller]
fn check_noted(told: &FinishedCrawl, page: &str) {
    told.record("response", page);
    let log = told.of(page);
    assert!(log.len() > 2, "{log:?}");
    for line in &log[1..] {
        assert!(line.notes("unchanged") && line.notes("1ver"), "{line:?}");
    }
    let digests: std::collections::HashSet<_> = log.iter().map(|line| &line.digest).collect();
    assert_eq!(digests.len(), log.len(), "payload digests are of the bytes");
}

/// A clock, a token, a comment: nothing of it counts. What the archive and the log say of the payload is of its bytes.
#[tokio::test]
async fn a_page_with_a_clock_is_unchanged_and_its_payload_digest_is_that_of_its_bytes() {
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
    let told = told_after(story, &web, "/", 3).await;
    let page = web.url(WWW, "/");
    check_noted(&told, &page);
    let response = told.record("response", &page);
    let text = response.text();
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    let digest = data_encoding::BASE32.encode(&Sha1::digest(body));
    assert_eq!(
        response.header("warc-payload-digest"),
        Some(&*format!("sha1:{digest}"))
    );
}

/// A newspaper's archive, whose every page shows the story of the day.
#[tokio::test]
async fn an_archive_page_stays_the_same_whatever_the_front_page_story_is() {
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
    let told = told_after(story, &web, "/1996/election.html", 3).await;
    check_noted(&told, &web.url(WWW, "/1996/election.html"));
}

/// Little by little the page becomes another: it is compared with what the archive has, so that counts one day.
#[tokio::test]
async fn little_things_pass_until_they_add_up() {
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
    let told = told_after(story, &web, "/", 14).await;
    let log = told.of(&web.url(WWW, "/"));
    let unchanged = |line: &LoggedUri| line.notes("unchanged");
    assert!(unchanged(log[1]) && log[1].notes("similar:"), "{log:#?}");
    assert!(log[1..].iter().any(|line| !unchanged(line)), "{log:#?}");
}

const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

/// Sends its headers whatever is asked, and a page that `changes` from a visit on.
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

/// The predictions of a site are held against digests until enough of them were right; then bodies are left alone.
#[tokio::test]
async fn a_site_whose_headers_were_right_is_believed() {
    let web = dated(usize::MAX).await;
    let page = web.url(WWW, "/");
    let job = by_headers(2).seed(&*page);
    let folder = job.job();
    let told = job
        .run_until("a body is left alone", || {
            let lines = opilio_stories::lines(&folder);
            lines.iter().any(|line| line.notes("midFetchAbort"))
        })
        .await;
    let log = told.of(&page);
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
    let revisits = told.records("revisit", &page);
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
        "the server has said no such thing"
    );
}

/// The page is too large for its stripper, whose limit counts bytes: those alone are compared.
#[tokio::test]
async fn a_page_too_large_for_its_stripper_is_compared_by_its_bytes() {
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
    let told = told_after(story, &web, "/", 4).await;
    let log = told.of(&web.url(WWW, "/"));
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
        "a changed page is another version: {log:#?}"
    );
}

#[tokio::test]
async fn a_site_whose_headers_lie_is_not_believed() {
    let web = dated(4).await;
    let told = told_after(by_headers(2), &web, "/", 8).await;
    let log = told.of(&web.url(WWW, "/"));
    // Whichever visit is the first that is checked after the fourth: what it finds ends the trust.
    let lie = log.iter().position(|line| line.notes("headers:wrong:"));
    let Some(lie) = lie else {
        // Believed to the end: every visit since was left alone, which eight visits with a share of one in two are not.
        panic!("{log:#?}");
    };
    assert!(
        log[lie + 1..]
            .iter()
            .all(|line| !line.notes("midFetchAbort") && line.digest != "-"),
        "{log:#?}"
    );
}

/// The feed is read every 20 ms; what it names waits for an hour, and is there when the feed names it.
#[tokio::test]
async fn what_a_feed_names_is_visited_long_before_its_wait_is_over() {
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
    let told = job
        .run_until("the page is visited again", || {
            let lines = opilio_stories::lines(&folder);
            lines.iter().filter(|line| line.uri == page).count() >= 2
        })
        .await;
    assert_eq!(visits(&web, "/b.html"), 1);
    let log = told.of(&page);
    assert!(log[0].notes("wt:1h"), "{log:?}");
    assert!(
        log[1].notes("wt:2h"),
        "it had changed, as the feed said: {log:?}"
    );
}

/// A list that calls everything new at every reading.
#[tokio::test]
async fn lists_are_not_believed_where_the_profile_says_so() {
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
    told_after_root(story, &web).await;
    assert_eq!(visits(&web, "/a.html"), 1);
}

async fn told_after_root(story: Story, web: &Web) -> FinishedCrawl {
    story
        .seed(web.url(WWW, "/"))
        .run_until("the feed is read often, and the page once", || {
            visits(web, "/feed") >= 6 && visits(web, "/a.html") >= 1
        })
        .await
}

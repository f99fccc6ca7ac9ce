//! Revisits: the records and the log lines of each visit.

use opilio_control::{Command, CommandResponse};
use opilio_stories::{LoggedUri, Story, crawl, html, never_waits, site};
use opilio_test_web::{Reply, Web};

const WWW: &str = "www.story.localhost";

pub(crate) fn revisiting() -> Story {
    crawl().profile(
        r#"
        strategy = "revisit"
        [plugins.adaptive]
        component = "builtin:adaptive"
        settings = { initial-wait = "40ms", min-wait = "10ms", max-wait = "200ms", default-wait = "50ms" }
        [revisit]
        default-wait = "50ms"
        min-wait = "10ms"
        max-wait = "200ms"
        "#,
    )
}

/// Returns the number of requests for a target so far.
pub(crate) fn visits(web: &Web, target: &str) -> usize {
    web.requests()
        .iter()
        .filter(|seen| seen.target == target)
        .count()
}

/// Returns the annotations of a visit without the overdue time.
fn notes(line: &LoggedUri) -> Vec<&str> {
    line.annotations
        .iter()
        .map(String::as_str)
        .filter(|note| !note.starts_with("ov:"))
        .collect()
}

#[tokio::test]
async fn a_page_that_changes_gets_a_response_for_each_version() {
    let web = site(WWW)
        .answer("/", |seen| {
            html(&format!(
                "<p>version {}</p><a href='/from-{}.html'>x</a>",
                seen.visit, seen.visit
            ))
        })
        .serve()
        .await;
    let result = revisiting()
        .seed(web.url(WWW, "/"))
        .run_until("three visits", || visits(&web, "/") >= 3)
        .await;
    let page = web.url(WWW, "/");
    let versions: Vec<_> = result
        .records("response", &page)
        .iter()
        .map(|record| record.text())
        .collect();
    assert_eq!(versions.len(), visits(&web, "/"));
    for (n, version) in versions.iter().enumerate() {
        assert!(
            version.contains(&format!("version {}<", n + 1)),
            "{version}"
        );
    }
    assert!(result.records("revisit", &page).is_empty());
    let log = result.of(&page);
    assert_eq!(notes(log[0]), ["wt:40ms", "wt-by:adaptive", "1vis", "1ver"]);
    assert_eq!(notes(log[1])[2..], ["2vis", "2ver"]);
    assert!(
        log[1].notes("wt:26ms") || log[1].notes("wt:27ms"),
        "40 ms / 1.5: {:?}",
        log[1]
    );
    assert!(log.iter().all(|line| line.notes("ov:")), "{log:?}");
    assert!(
        visits(&web, "/from-2.html") > 0,
        "links of the new version are followed"
    );
}

#[tokio::test]
async fn why_shows_the_digest_and_the_wait_of_each_visit() {
    let web = site(WWW)
        .answer("/", |seen| html(&format!("version {}", seen.visit / 2)))
        .serve()
        .await;
    let story = revisiting().seed(web.url(WWW, "/"));
    let result = story
        .run_until("four visits", || visits(&web, "/") >= 4)
        .await;
    let page = web.url(WWW, "/");
    let uri = page.clone();
    let answers = story.order(Command::Why { uri }).await.unwrap();
    let [CommandResponse::Why(why)] = &answers[..] else {
        panic!("{answers:?}");
    };
    let record = why.uri.as_ref().unwrap();
    let history = record["history"].as_array().unwrap();
    let log = result.of(&page);
    assert_eq!(history.len(), log.len());
    for (past, line) in history.iter().rev().zip(log) {
        // These waits are some milliseconds long. They are rounded up to seconds.
        assert_eq!(past["wait_s"], 1, "{past}");
        match past["digest"].as_str() {
            Some(digest) => assert!(line.digest.starts_with(digest), "{past} {line:?}"),
            None => assert_eq!(past["content"], "unchanged"),
        }
    }
    assert!(history[history.len() - 1]["digest"].is_string());
}

#[tokio::test]
async fn an_unchanged_page_becomes_a_revisit_record_that_refers_to_its_capture() {
    let web = site(WWW).page("/", html("always the same")).serve().await;
    let result = revisiting()
        .seed(web.url(WWW, "/"))
        .run_until("three visits", || visits(&web, "/") >= 3)
        .await;
    let page = web.url(WWW, "/");
    let first = result.record("response", &page);
    let revisits = result.records("revisit", &page);
    assert_eq!(revisits.len() + 1, visits(&web, "/"));
    for revisit in revisits {
        assert!(
            revisit
                .header("warc-profile")
                .unwrap()
                .ends_with("/revisit/identical-payload-digest")
        );
        assert_eq!(
            revisit.header("warc-refers-to"),
            first.header("warc-record-id")
        );
        assert_eq!(revisit.header("warc-refers-to-target-uri"), Some(&*page));
        assert_eq!(
            revisit.header("warc-refers-to-date"),
            first.header("warc-date")
        );
        assert_eq!(
            revisit.header("warc-payload-digest"),
            first.header("warc-payload-digest")
        );
        assert!(
            revisit.text().starts_with("HTTP/1.1 200") && revisit.text().ends_with("\r\n\r\n"),
            "{}",
            revisit.text()
        );
    }
    let log = result.of(&page);
    let duplicate = ["unchanged", "duplicate:digest", "warcRevisit:digest"];
    assert_eq!(notes(log[1])[..3], duplicate);
    let by = "wt-by:adaptive";
    assert_eq!(notes(log[1])[3..], ["wt:60ms", by, "2vis", "1ver"]);
    assert_eq!(notes(log[2])[3..], ["wt:90ms", by, "3vis", "1ver"]);
}

#[tokio::test]
async fn a_304_response_counts_as_unchanged() {
    let web = site(WWW)
        .answer("/", |seen| match seen.headers.get("if-none-match") {
            Some(tag) if tag == "\"v1\"" => Reply {
                body: "".into(),
                ..Reply::status(304)
            },
            _ => html("tagged")
                .with("etag", "\"v1\"")
                .with("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
        })
        .serve()
        .await;
    let result = revisiting()
        .seed(web.url(WWW, "/"))
        .run_until("three visits", || visits(&web, "/") >= 3)
        .await;
    let page = web.url(WWW, "/");
    let requests: Vec<_> = web
        .requests()
        .into_iter()
        .filter(|seen| seen.target == "/")
        .collect();
    assert!(!requests[0].headers.contains_key("if-none-match"));
    for later in &requests[1..] {
        assert_eq!(later.headers["if-none-match"], "\"v1\"");
        assert_eq!(
            later.headers["if-modified-since"],
            "Sun, 06 Nov 1994 08:49:37 GMT"
        );
    }
    let first = result.record("response", &page);
    for revisit in result.records("revisit", &page) {
        assert!(
            revisit
                .header("warc-profile")
                .unwrap()
                .ends_with("/revisit/server-not-modified")
        );
        assert_eq!(
            revisit.header("warc-refers-to"),
            first.header("warc-record-id")
        );
        assert_eq!(revisit.status(), 304);
    }
    let log = result.of(&page);
    assert_eq!((log[1].status, log[1].digest.as_str()), (304, "-"));
    assert!(
        log[1].notes("unchanged") && log[1].notes("1ver") && log[1].notes("2vis"),
        "{:?}",
        log[1]
    );
}

/// The page has a link with the number of the visit. If the page were extracted again, a link with a higher number would be
/// requested.
#[tokio::test]
async fn changes_of_stripped_parts_do_not_count_and_are_not_extracted() {
    let web = site(WWW)
        .answer("/", |seen| {
            html(&format!(
                "news <i class=clock><a href='/at-{}.html'>now</a></i>",
                seen.visit
            ))
        })
        .serve()
        .await;
    let result = revisiting()
        .profile(
            r#"
            stacks = { digest = ["clock"] }
            [plugins.clock]
            component = "builtin:regex-strip"
            settings = { patterns = ["<i class=clock>.*</i>"] }
            [[override]]
            match.media-type = ["text/html"]
            revisit.stripped-equal = "drop"
            "#,
        )
        .seed(web.url(WWW, "/"))
        .run_until("three visits, and a link", || {
            visits(&web, "/") >= 3 && visits(&web, "/at-1.html") > 0
        })
        .await;
    let page = web.url(WWW, "/");
    assert!(result.record("response", &page).text().contains("at-1"));
    assert!(result.records("revisit", &page).is_empty());
    assert_eq!(visits(&web, "/at-2.html") + visits(&web, "/at-3.html"), 0);
    let log = result.of(&page);
    assert_eq!(
        notes(log[1]),
        ["unchanged", "wt:60ms", "wt-by:adaptive", "2vis", "1ver"]
    );
    assert_ne!(
        log[0].digest, log[1].digest,
        "the payload digest is that of the unstripped bytes"
    );
}

#[tokio::test]
async fn versions_and_validators_survive_a_restart() {
    let web = site(WWW)
        .answer("/", |seen| match seen.headers.get("if-none-match") {
            Some(_) => Reply {
                body: "".into(),
                ..Reply::status(304)
            },
            None => html("tagged").with("etag", "\"v1\""),
        })
        .page("/a.html", html("a"))
        .serve()
        .await;
    let story = revisiting().seed(web.url(WWW, "/"));
    story.run_until("a visit", || visits(&web, "/") >= 1).await;
    let before = visits(&web, "/");
    let result = story
        .run_until("another", || visits(&web, "/") > before)
        .await;
    let page = web.url(WWW, "/");
    assert_eq!(result.records("response", &page).len(), 1);
    assert_eq!(
        result.records("revisit", &page).len(),
        visits(&web, "/") - 1
    );
}

#[tokio::test]
async fn corrected_waits_are_counted_for_their_evaluator() {
    let web = site(WWW).page("/", html("always the same")).serve().await;
    let result = crawl()
        .plugin("never-waits", &never_waits())
        .profile(
            r#"
            strategy = "revisit"
            revisit = { default-wait = "20ms", min-wait = "20ms", max-wait = "1s" }
            stacks = { wait = ["never-waits"] }
            "#,
        )
        .seed(web.url(WWW, "/"))
        .run_until("three visits", || visits(&web, "/") >= 3)
        .await;
    let report = |name: &str| {
        let file = result.job().join("reports").join(name);
        std::fs::read_to_string(file).unwrap()
    };
    let count = result.of(&web.url(WWW, "/")).len();
    let line = format!("{count} waits of zero");
    assert!(report("plugins.txt").contains(&line), "{line}");
    let sample = format!(
        "opilio_plugin_odd_waits_total{{plugin=\"never-waits\",variant=\"\",why=\"zero\"}} {count}\n"
    );
    assert!(report("plugins.prom").contains(&sample), "{sample}");
}

//! Errors of plugins of every kind at once, and the policies for errors.

use opilio_crawl::End;
use opilio_stories::{
    Misdeed, Story, asked, change_evaluator, crawl, extractor, html, observer, precedence,
    scope_filter, site, stripper, until, wait_evaluator,
};
use opilio_test_web::Web;

use crate::revisits::visits;

const WWW: &str = "www.story.localhost";

async fn changing_pages() -> Web {
    site(WWW)
        .answer("/", |seen| {
            html(&format!("{} <a href='/a.html'>a</a>", seen.visit))
        })
        .answer("/a.html", |seen| html(&format!("{}", seen.visit)))
        .serve()
        .await
}

/// Returns a story with faulty plugins of all kinds, except in the scope stack.
fn with_faulty_plugins(misdeed: Misdeed) -> Story {
    let mut story = crawl()
        .plugin("bad-extract", &extractor(misdeed))
        .plugin("bad-strip", &stripper(misdeed))
        .plugin("bad-change", &change_evaluator(misdeed))
        .plugin("bad-rank", &precedence(misdeed))
        .plugin("bad-wait", &wait_evaluator(misdeed))
        .plugin("bad-watch", &observer(misdeed))
        .plugin("bad-filter", &scope_filter(misdeed))
        .profile(
            r#"
            strategy = "revisit"
            revisit = { default-wait = "30ms", min-wait = "10ms", max-wait = "1s" }
            [stacks]
            precedence = ["bad-rank"]
            pre-fetch = ["bad-filter"]
            digest = ["bad-strip"]
            change = ["bad-change"]
            extract = ["bad-extract", "http", "html"]
            wait = ["bad-wait"]
            observe = ["bad-watch"]
            [plugins.bad-filter]
            on-fault = "accept"
            "#,
        );
    // Plugins that trap get a long time limit: on a busy machine they could otherwise time out first.
    let is_endless = matches!(misdeed, Misdeed::Loops);
    for name in [
        "extract", "strip", "change", "rank", "wait", "watch", "filter",
    ] {
        let time = if is_endless { "20ms" } else { "100s" };
        story = story.profile(&format!("[plugins.bad-{name}.limits]\ntime = '{time}'"));
    }
    story
}

async fn check_faulty_plugins(misdeed: Misdeed, kind: &str) {
    let web = changing_pages().await;
    let result = with_faulty_plugins(misdeed)
        .seed(web.url(WWW, "/"))
        .run_until("two visits of each page", || {
            visits(&web, "/") >= 2 && visits(&web, "/a.html") >= 2
        })
        .await;
    assert_eq!(result.summary.end, End::Stopped);
    let errors = result.log_file("runtime-errors.log");
    for target in ["/", "/a.html"] {
        let uri = web.url(WWW, target);
        // Each visit is archived in full, because no plugin reports that the document is unchanged.
        assert_eq!(
            result.records("response", &uri).len(),
            result.of(&uri).len()
        );
        assert!(
            errors.contains(&format!(" bad-extract {kind} {uri}: ")),
            "{errors}"
        );
    }
    for name in ["strip", "rank", "wait", "watch", "filter"] {
        assert!(
            errors.contains(&format!(" bad-{name} {kind} ")),
            "{name}: {errors}"
        );
        let plugins = &result.summary.plugins;
        let plugin = plugins
            .iter()
            .find(|plugin| plugin.name == format!("bad-{name}"));
        assert_eq!(
            plugin.unwrap().faults_all(),
            plugin.unwrap().calls,
            "{name}"
        );
    }
}

#[tokio::test]
async fn every_page_is_archived_though_every_plugin_traps() {
    check_faulty_plugins(Misdeed::Traps, "trap").await;
}

#[tokio::test]
async fn every_page_is_archived_though_no_plugin_ever_returns() {
    check_faulty_plugins(Misdeed::Loops, "timeout").await;
}

#[tokio::test]
async fn a_plugin_that_fails_too_often_is_left_out_and_reported() {
    let mut web = site("s0.localhost");
    for n in 0..10 {
        web = web.and(&format!("s{n}.localhost")).page("/", html("a"));
    }
    let web = web.serve().await;
    let story = (0..10).fold(
        crawl()
            .plugin("bad", &extractor(Misdeed::Traps))
            .profile(
                "workers = 1\nstacks.extract = ['bad', 'html']\nplugins.bad.breaker = { faults = 3, calls = 5, skip-for = '1h' }",
            ),
        |story, n| story.seed(web.url(&format!("s{n}.localhost"), "/")),
    );
    let result = story.run().await.finished();
    let plugins = &result.summary.plugins;
    let bad = plugins.iter().find(|plugin| plugin.name == "bad").unwrap();
    assert_eq!((bad.calls, bad.faults_all(), bad.trips), (3, 3, 1));
    assert!(bad.left_out_s.is_some_and(|left| left > 3000.0), "{bad:?}");
    let log = result.log_file("job.log");
    assert!(
        log.contains("alert plugin bad => failed too often") && log.contains("left out for 3600 s"),
        "{log}"
    );
    let report = std::fs::read_to_string(result.job().join("reports/plugins.txt")).unwrap();
    assert!(report.contains("3 trap, left out for"), "{report}");
    assert_eq!(asked(&web).len(), 10);
}

#[tokio::test]
async fn a_plugin_error_pauses_the_crawl_with_on_fault_pause() {
    let web = changing_pages().await;
    let story = crawl()
        .plugin("bad", &extractor(Misdeed::Traps))
        .profile("workers = 1\nstacks.extract = ['bad', 'html']\nplugins.bad.on-fault = 'pause'")
        .seed(web.url(WWW, "/"));
    let crawl = story.begin().unwrap_or_else(|error| panic!("{error}"));
    let stop = crawl.stop();
    let job_log = || std::fs::read_to_string(story.job().join("logs/job.log")).unwrap_or_default();
    let stopping = async {
        until("the crawl is paused", || {
            job_log().contains("pause => paused; no fetches in flight")
        })
        .await;
        stop.stop();
    };
    let (summary, ()) = tokio::join!(opilio_control::run(crawl), stopping);
    assert_eq!(summary.end, End::Stopped);
    // robots.txt is the first document.
    assert!(asked(&web).is_empty(), "{:?}", asked(&web));
    assert!(
        job_log().contains("alert plugin bad => failed with"),
        "{}",
        job_log()
    );
}

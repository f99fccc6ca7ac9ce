//! Every kind of plugin misbehaving at once, and the policies that hold then.

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

/// All but the scope and what decides about links there.
fn besieged(misdeed: Misdeed) -> Story {
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
    // What traps may be out of the processor for longer than this, and would be stopped for its time.
    let is_endless = matches!(misdeed, Misdeed::Loops);
    for name in [
        "extract", "strip", "change", "rank", "wait", "watch", "filter",
    ] {
        let time = if is_endless { "20ms" } else { "100s" };
        story = story.profile(&format!("[plugins.bad-{name}.limits]\ntime = '{time}'"));
    }
    story
}

async fn check_besieged(misdeed: Misdeed, kind: &str) {
    let web = changing_pages().await;
    let told = besieged(misdeed)
        .seed(web.url(WWW, "/"))
        .run_until("two visits of each page", || {
            visits(&web, "/") >= 2 && visits(&web, "/a.html") >= 2
        })
        .await;
    assert_eq!(told.summary.end, End::Stopped);
    let errors = told.log_file("runtime-errors.log");
    for target in ["/", "/a.html"] {
        let uri = web.url(WWW, target);
        // Each visit is archived in full: nothing says that it is the same.
        assert_eq!(told.records("response", &uri).len(), told.of(&uri).len());
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
        let plugins = &told.summary.plugins;
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
    check_besieged(Misdeed::Traps, "trap").await;
}

#[tokio::test]
async fn every_page_is_archived_though_no_plugin_ever_returns() {
    check_besieged(Misdeed::Loops, "timeout").await;
}

#[tokio::test]
async fn a_plugin_that_fails_too_often_is_left_out_and_the_job_says_so() {
    let mut web = site("s0.localhost");
    for n in 0..10 {
        web = web.and(&format!("s{n}.localhost")).page("/", html("a"));
    }
    let web = web.serve().await;
    let story = (0..10).fold(
        crawl()
            .plugin("bad", &extractor(Misdeed::Traps))
            .profile(
                "workers = 1\nstacks.extract = ['bad', 'html']\nplugins.bad.breaker = { faults = 3, calls = 5, rest = '1h' }",
            ),
        |story, n| story.seed(web.url(&format!("s{n}.localhost"), "/")),
    );
    let told = story.run().await.finished();
    let plugins = &told.summary.plugins;
    let bad = plugins.iter().find(|plugin| plugin.name == "bad").unwrap();
    assert_eq!((bad.calls, bad.faults_all(), bad.trips), (3, 3, 1));
    assert!(bad.left_out_s.is_some_and(|left| left > 3000.0), "{bad:?}");
    let log = told.log_file("job.log");
    assert!(
        log.contains("alert plugin bad => failed too often") && log.contains("left out for 3600 s"),
        "{log}"
    );
    let report = std::fs::read_to_string(told.job().join("reports/plugins.txt")).unwrap();
    assert!(report.contains("3 trap, left out for"), "{report}");
    assert_eq!(asked(&web).len(), 10);
}

#[tokio::test]
async fn a_fault_pauses_the_crawl_where_the_profile_says_so() {
    let web = changing_pages().await;
    let story = crawl()
        .plugin("bad", &extractor(Misdeed::Traps))
        .profile("workers = 1\nstacks.extract = ['bad', 'html']\nplugins.bad.on-fault = 'pause'")
        .seed(web.url(WWW, "/"));
    let crawl = story.begin().unwrap_or_else(|error| panic!("{error}"));
    let stop = crawl.stop();
    let job_log = || std::fs::read_to_string(story.job().join("logs/job.log")).unwrap_or_default();
    let stopping = async {
        until("it is paused", || {
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

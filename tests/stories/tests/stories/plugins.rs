//! Plugin errors: the crawl continues without loss, and the log names plugin and URI.

use opilio_crawl::End;
use opilio_stories::{
    Misdeed, Story, asked, asks_for_the_network, crawl, extractor, html, scope_filter, site,
    stripper, wait_evaluator,
};
use opilio_test_web::Web;

const WWW: &str = "www.story.localhost";

async fn three_pages() -> Web {
    site(WWW)
        .page("/", html("<a href='/a.html'>a</a> <a href='/b.html'>b</a>"))
        .page("/a.html", html("a"))
        .page("/b.html", html("b"))
        .serve()
        .await
}

async fn check_extractor(misdeed: Misdeed, kind: &str) {
    let web = three_pages().await;
    let result = crawl()
        .plugin("bad", &extractor(misdeed))
        .profile("[plugins.bad.limits]\ntime = '50ms'\n[stacks]\nextract = ['bad', 'http', 'html', 'css', 'js']")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    let errors = result.log_file("runtime-errors.log");
    for target in ["/", "/a.html", "/b.html"] {
        let uri = web.url(WWW, target);
        assert_eq!(result.record("response", &uri).status(), 200);
        assert!(errors.contains(&format!(" bad {kind} {uri}: ")), "{errors}");
    }
    assert!(errors.contains("\n    of guest 1.0.0\n"), "{errors}");
    let bad = result
        .summary
        .plugins
        .iter()
        .find(|plugin| plugin.name == "bad")
        .unwrap();
    // robots.txt is a document, too.
    assert_eq!(bad.faults_all(), 4, "{errors}");
    assert_eq!(result.summary.progress.faults, 4);
}

#[tokio::test]
async fn an_extractor_that_traps_loses_only_its_own_links() {
    check_extractor(Misdeed::Traps, "trap").await;
}

#[tokio::test]
async fn an_extractor_that_never_returns_is_stopped() {
    check_extractor(Misdeed::Loops, "timeout").await;
}

#[tokio::test]
async fn a_plugin_with_forbidden_imports_is_refused_before_the_job_is_created() {
    let story = crawl()
        .plugin("nosy", &asks_for_the_network())
        .profile("[stacks]\npre-fetch = ['nosy']")
        .seed("http://www.story.localhost/");
    let refused = story.begin().map(drop).unwrap_err().to_string();
    assert!(
        refused.contains("wasi:http/outgoing-handler@0.2.0"),
        "{refused}"
    );
    assert!(refused.contains("story.toml:"), "{refused}");
    assert!(!story.job().exists());
}

fn with_failing_scope() -> Story {
    crawl()
        .plugin("bad", &scope_filter(Misdeed::Traps))
        .profile("workers = 1\n[stacks]\nscope = ['surt-scope', 'bad']")
}

#[tokio::test]
async fn a_scope_filter_that_always_fails_rejects_all_links_and_halts_the_crawl() {
    let mut web = site("s0.localhost");
    for n in 0..40 {
        let body = "<a href='/a.html'>a</a>";
        web = web
            .and(&format!("s{n}.localhost"))
            .page("/", html(body))
            .page("/a.html", html("a"));
    }
    let web = web.serve().await;
    let story = (0..40).fold(with_failing_scope(), |story, n| {
        story.seed(web.url(&format!("s{n}.localhost"), "/"))
    });
    let result = story.run().await;
    let End::Halted(why) = &result.summary.end else {
        panic!("{:?}", result.summary.end)
    };
    assert!(
        why.contains("bad") && why.contains("run the same command again"),
        "{why}"
    );
    assert!(
        asked(&web).iter().all(|request| request.ends_with(" /")),
        "{:?}",
        asked(&web)
    );
    assert!(
        asked(&web).len() < 40,
        "the crawl halts before all seeds are fetched"
    );
}

#[tokio::test]
async fn errors_of_strippers_and_wait_evaluators_do_not_stop_the_crawl() {
    let web = site(WWW)
        .answer("/", |seen| html(&format!("version {}", seen.visit)))
        .serve()
        .await;
    let visits = || asked(&web).len();
    let result = crawl()
        .plugin("bad-strip", &stripper(Misdeed::Traps))
        .plugin("bad-wait", &wait_evaluator(Misdeed::Traps))
        .profile(
            r#"
            strategy = "revisit"
            stacks = { digest = ["bad-strip"], wait = ["bad-wait"] }
            revisit = { default-wait = "30ms", min-wait = "10ms", max-wait = "1s" }
            "#,
        )
        .seed(web.url(WWW, "/"))
        .run_until("three visits", || visits() >= 3)
        .await;
    let page = web.url(WWW, "/");
    assert_eq!(
        result.records("response", &page).len(),
        visits(),
        "documents of unknown state are archived"
    );
    assert!(
        result.of(&page).iter().all(|line| line.notes("wt:30ms")),
        "{:?}",
        result.of(&page)
    );
    let errors = result.log_file("runtime-errors.log");
    assert!(
        errors.contains(" bad-strip trap ") && errors.contains(" bad-wait trap "),
        "{errors}"
    );
}

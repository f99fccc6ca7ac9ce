//! Plugins that fail: the crawl goes on, nothing is lost, and the log says who and where.

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
    let told = crawl()
        .plugin("bad", &extractor(misdeed))
        .profile("[plugins.bad.limits]\ntime = '50ms'\n[stacks]\nextract = ['bad', 'http', 'html', 'css', 'js']")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    let errors = told.log_file("runtime-errors.log");
    for target in ["/", "/a.html", "/b.html"] {
        let uri = web.url(WWW, target);
        assert_eq!(told.record("response", &uri).status(), 200);
        assert!(errors.contains(&format!(" bad {kind} {uri}: ")), "{errors}");
    }
    assert!(errors.contains("\n    of guest 1.0.0\n"), "{errors}");
    let bad = told
        .summary
        .plugins
        .iter()
        .find(|plugin| plugin.name == "bad")
        .unwrap();
    // robots.txt is a document too.
    assert_eq!(bad.faults_all(), 4, "{errors}");
    assert_eq!(told.summary.progress.faults, 4);
}

#[tokio::test]
async fn an_extractor_that_traps_costs_its_own_links_alone() {
    check_extractor(Misdeed::Traps, "trap").await;
}

#[tokio::test]
async fn an_extractor_that_never_returns_is_stopped() {
    check_extractor(Misdeed::Loops, "timeout").await;
}

#[tokio::test]
async fn a_plugin_that_wants_more_than_it_may_have_is_refused_before_anything_is_made() {
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
async fn a_scope_filter_that_always_fails_lets_nothing_in_and_halts_the_crawl() {
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
    let told = story.run().await;
    let End::Halted(why) = &told.summary.end else {
        panic!("{:?}", told.summary.end)
    };
    assert!(
        why.contains("bad") && why.contains("run the same command again"),
        "{why}"
    );
    assert!(
        asked(&web).iter().all(|asked| asked.ends_with(" /")),
        "{:?}",
        asked(&web)
    );
    assert!(asked(&web).len() < 40, "it halts before it is through");
}

#[tokio::test]
async fn other_faults_of_a_revisit_leave_the_crawl_going() {
    let web = site(WWW)
        .answer("/", |seen| html(&format!("version {}", seen.visit)))
        .serve()
        .await;
    let visits = || asked(&web).len();
    let told = crawl()
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
        told.records("response", &page).len(),
        visits(),
        "unknown is archived"
    );
    assert!(
        told.of(&page).iter().all(|line| line.notes("wt:30ms")),
        "{:?}",
        told.of(&page)
    );
    let errors = told.log_file("runtime-errors.log");
    assert!(
        errors.contains(" bad-strip trap ") && errors.contains(" bad-wait trap "),
        "{errors}"
    );
}

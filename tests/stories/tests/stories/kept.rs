//! Values that plugins keep with URIs and sites, from visit to visit and from process to process.

use opilio_stories::{html, keeper, site};

use crate::revisits::{revisiting, visits};

const WWW: &str = "www.story.localhost";

#[tokio::test]
async fn what_a_plugin_keeps_is_there_at_the_next_visit_and_after_a_restart() {
    let web = site(WWW)
        .page("/", html("<a href='/a.html'>a</a>"))
        .page("/a.html", html("a"))
        .serve()
        .await;
    let story = revisiting()
        .plugin("keeper", &keeper())
        .profile("stacks.archive = ['keeper']\nworkers = 1")
        .seed(web.url(WWW, "/"));
    story
        .run_until("two visits of each", || {
            visits(&web, "/") >= 2 && visits(&web, "/a.html") >= 2
        })
        .await;
    let before = visits(&web, "/");
    let told = story
        .run_until("one more", || visits(&web, "/") > before)
        .await;
    for target in ["/", "/a.html"] {
        for (visit, line) in told.of(&web.url(WWW, target)).iter().enumerate() {
            let kept = format!("uri-{}", "x".repeat(visit + 1));
            assert!(
                line.annotations.contains(&kept),
                "{target} {visit}: {line:?}"
            );
        }
    }
    // Both pages, and robots.txt, add to what is kept for the site; one worker, so none comes between another's.
    let pages = told.log.iter().filter(|line| line.uri.starts_with("http"));
    for (visit, line) in pages.enumerate() {
        let kept = format!("site-{}", "x".repeat(visit + 1));
        assert!(line.annotations.contains(&kept), "{visit}: {line:?}");
    }
}

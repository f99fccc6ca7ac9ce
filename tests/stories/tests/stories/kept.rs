//! Kept values: values that plugins keep with URIs and sites across visits and processes.

use opilio_stories::{html, keeper, site};

use crate::revisits::{revisiting, visits};

const WWW: &str = "www.story.localhost";

#[tokio::test]
async fn kept_values_survive_to_the_next_visit_and_a_restart() {
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
    let result = story
        .run_until("one more", || visits(&web, "/") > before)
        .await;
    for target in ["/", "/a.html"] {
        for (visit, line) in result.of(&web.url(WWW, target)).iter().enumerate() {
            let value = format!("uri-{}", "x".repeat(visit + 1));
            assert!(
                line.annotations.contains(&value),
                "{target} {visit}: {line:?}"
            );
        }
    }
    // Visits of both pages and of robots.txt add to the value of the site. With one worker, visits do not overlap.
    let pages = result
        .log
        .iter()
        .filter(|line| line.uri.starts_with("http"));
    for (visit, line) in pages.enumerate() {
        let value = format!("site-{}", "x".repeat(visit + 1));
        assert!(line.annotations.contains(&value), "{visit}: {line:?}");
    }
}

//! Walls that servers send in place of pages: with the default profile they are named in the log, and archived like any page.

use opilio_stories::{asked, crawl, html, site};
use opilio_test_web::Reply;

const WWW: &str = "www.story.localhost";

#[tokio::test]
async fn bot_walls_and_pages_that_say_there_is_nothing_are_named_in_the_log_and_archived() {
    let gone = "<title>Page not found | Story</title><a href='/from-gone.html'>x</a>";
    let web = site(WWW)
        .page(
            "/",
            html(
                "<a href='/walled.html'>w</a> <a href='/gone.html'>g</a> <a href='/fix.html'>f</a>",
            ),
        )
        .page(
            "/walled.html",
            Reply::status(403).with("cf-mitigated", "challenge"),
        )
        .page("/gone.html", Reply::html(gone))
        .page("/from-gone.html", html("a page"))
        .page(
            "/fix.html",
            Reply::html("<title>How to fix \"page not found\"</title>"),
        )
        .serve()
        .await;
    let told = crawl().seed(web.url(WWW, "/")).run().await.finished();

    let walled = told.sole(&web.url(WWW, "/walled.html"));
    assert_eq!(walled.status, 403);
    assert!(walled.notes("botblock:cloudflare"), "{walled:?}");
    assert!(walled.notes("by:bot-walls"), "{walled:?}");
    told.record("response", &web.url(WWW, "/walled.html"));
    let gone = told.sole(&web.url(WWW, "/gone.html"));
    assert_eq!(gone.status, 200);
    assert!(gone.notes("soft404"), "{gone:?}");
    told.record("response", &web.url(WWW, "/gone.html"));
    let fix = told.sole(&web.url(WWW, "/fix.html"));
    assert!(!fix.notes("soft404"), "{fix:?}");
    assert!(asked(&web).contains(&format!("{WWW} /from-gone.html")));
}

#[tokio::test]
async fn a_page_that_says_there_is_nothing_leads_nowhere_where_the_profile_says_so() {
    let web = site(WWW)
        .page(
            "/b.html",
            Reply::html("<title>Page not found</title><a href='/a.html'>a</a>"),
        )
        .serve()
        .await;
    let told = crawl()
        .profile("stacks.post-fetch = []\nstacks.pre-extract = ['soft-404']")
        .profile(
            "[plugins.soft-404]\ncomponent = 'builtin:soft-404'\nsettings = { then = 'reject' }",
        )
        .seed(web.url(WWW, "/b.html"))
        .run()
        .await
        .finished();
    assert_eq!(asked(&web), [format!("{WWW} /b.html")]);
    let page = told.sole(&web.url(WWW, "/b.html"));
    assert!(page.notes("unextracted:soft-404:"), "{page:?}");
    told.record("response", &web.url(WWW, "/b.html"));
}

//! Bot walls and error pages with status 200: the default profile annotates them in the log and archives them like other pages.

use opilio_stories::{asked, crawl, html, site};
use opilio_test_web::Reply;

const WWW: &str = "www.story.localhost";

#[tokio::test]
async fn bot_walls_and_soft_404_pages_are_annotated_and_archived() {
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
    let result = crawl().seed(web.url(WWW, "/")).run().await.finished();

    let walled = result.sole(&web.url(WWW, "/walled.html"));
    assert_eq!(walled.status, 403);
    assert!(walled.notes("botblock:cloudflare"), "{walled:?}");
    assert!(walled.notes("by:bot-walls"), "{walled:?}");
    result.record("response", &web.url(WWW, "/walled.html"));
    let gone = result.sole(&web.url(WWW, "/gone.html"));
    assert_eq!(gone.status, 200);
    assert!(gone.notes("soft404"), "{gone:?}");
    result.record("response", &web.url(WWW, "/gone.html"));
    let fix = result.sole(&web.url(WWW, "/fix.html"));
    assert!(!fix.notes("soft404"), "{fix:?}");
    assert!(asked(&web).contains(&format!("{WWW} /from-gone.html")));
}

#[tokio::test]
async fn links_of_soft_404_pages_are_not_extracted_if_the_profile_says_so() {
    let web = site(WWW)
        .page(
            "/b.html",
            Reply::html("<title>Page not found</title><a href='/a.html'>a</a>"),
        )
        .serve()
        .await;
    let result = crawl()
        .profile("stacks.post-fetch = []\nstacks.pre-extract = ['soft-404']")
        .profile(
            "[plugins.soft-404]\ncomponent = 'builtin:soft-404'\nsettings = { then = 'reject' }",
        )
        .seed(web.url(WWW, "/b.html"))
        .run()
        .await
        .finished();
    assert_eq!(asked(&web), [format!("{WWW} /b.html")]);
    let page = result.sole(&web.url(WWW, "/b.html"));
    assert!(page.notes("unextracted:soft-404:"), "{page:?}");
    result.record("response", &web.url(WWW, "/b.html"));
}

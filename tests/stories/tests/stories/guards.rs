//! Guards: filters that decide whether one plugin of a stack is asked.

use opilio_stories::{Misdeed, asked, crawl, extractor, html, refuser, scope_filter, site};
use opilio_test_web::Web;

const WWW: &str = "www.story.localhost";

async fn two_pages() -> Web {
    site(WWW)
        .page("/", html("<a href='/a.html'>a</a>"))
        .page("/a.html", html("a"))
        .serve()
        .await
}

#[tokio::test]
async fn a_plugin_is_not_asked_about_documents_that_its_guard_rejects() {
    let web = two_pages().await;
    let told = crawl()
        .plugin("bad", &extractor(Misdeed::Traps))
        .plugin("never", &refuser())
        .profile("plugins.bad.filters = ['never']\nstacks.extract = ['bad', 'http', 'html']")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    assert_eq!(told.log_file("runtime-errors.log"), "");
    assert_eq!(asked(&web).len(), 2, "the others see it");
    let calls = |name: &str| {
        let plugins = &told.summary.plugins;
        plugins
            .iter()
            .find(|plugin| plugin.name == name)
            .unwrap()
            .calls
    };
    // Once for each document, robots.txt included.
    assert_eq!((calls("never"), calls("bad")), (3, 0));
}

#[tokio::test]
async fn a_filter_passes_on_candidates_that_its_guard_rejects() {
    let web = two_pages().await;
    let told = crawl()
        .plugin("bad", &scope_filter(Misdeed::Traps))
        .plugin("never", &refuser())
        .profile("plugins.bad.filters = ['never']\nstacks.scope = ['surt-scope', 'bad']")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    assert_eq!(told.log_file("runtime-errors.log"), "");
    assert_eq!(asked(&web).len(), 2, "{:?}", asked(&web));
}

/// Nobody knows whether the filter would have been asked, so it is as if it had failed.
#[tokio::test]
async fn where_a_guard_of_the_scope_fails_the_scope_fails_closed() {
    let web = two_pages().await;
    let told = crawl()
        .plugin("bad", &scope_filter(Misdeed::Traps))
        .plugin("never", &refuser())
        .profile("plugins.never.filters = ['bad']\nstacks.scope = ['surt-scope', 'never']")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    assert_eq!(asked(&web), [format!("{WWW} /")]);
    let errors = told.log_file("runtime-errors.log");
    assert!(errors.contains(" bad trap "), "{errors}");
}

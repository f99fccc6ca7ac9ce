//! Guards: filters that decide whether one plugin of a stack is called.

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
async fn a_plugin_is_not_called_for_documents_that_its_guard_rejects() {
    let web = two_pages().await;
    let result = crawl()
        .plugin("bad", &extractor(Misdeed::Traps))
        .plugin("never", &refuser())
        .profile("plugins.bad.filters = ['never']\nstacks.extract = ['bad', 'http', 'html']")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    assert_eq!(result.log_file("runtime-errors.log"), "");
    assert_eq!(asked(&web).len(), 2, "the other extractors are called");
    let calls = |name: &str| {
        let plugins = &result.summary.plugins;
        plugins
            .iter()
            .find(|plugin| plugin.name == name)
            .unwrap()
            .calls
    };
    // The guard is called once for each document, including robots.txt.
    assert_eq!((calls("never"), calls("bad")), (3, 0));
}

#[tokio::test]
async fn a_filter_passes_on_candidates_that_its_guard_rejects() {
    let web = two_pages().await;
    let result = crawl()
        .plugin("bad", &scope_filter(Misdeed::Traps))
        .plugin("never", &refuser())
        .profile("plugins.bad.filters = ['never']\nstacks.scope = ['surt-scope', 'bad']")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    assert_eq!(result.log_file("runtime-errors.log"), "");
    assert_eq!(asked(&web).len(), 2, "{:?}", asked(&web));
}

/// Without the answer of the guard it is unknown whether the filter applies, so the filter counts as failed.
#[tokio::test]
async fn a_failing_guard_of_a_scope_filter_rejects_the_candidates() {
    let web = two_pages().await;
    let result = crawl()
        .plugin("bad", &scope_filter(Misdeed::Traps))
        .plugin("never", &refuser())
        .profile("plugins.never.filters = ['bad']\nstacks.scope = ['surt-scope', 'never']")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    assert_eq!(asked(&web), [format!("{WWW} /")]);
    let errors = result.log_file("runtime-errors.log");
    assert!(errors.contains(" bad trap "), "{errors}");
}

//! Change evaluators: different bytes that are not a new version, and documents that cannot be compared.

use opilio_stories::{Misdeed, change_evaluator, html, never_changes, site};
use opilio_test_web::Web;

use crate::revisits::{revisiting, visits};

const WWW: &str = "www.story.localhost";

/// Serves a page that differs at every visit.
async fn clock() -> Web {
    site(WWW)
        .answer("/", |seen| {
            html(&format!(
                "visit {} <a href='/at-{}.html'>now</a>",
                seen.visit, seen.visit
            ))
        })
        .serve()
        .await
}

#[tokio::test]
async fn a_document_that_an_evaluator_calls_unchanged_is_not_stored_as_a_revisit() {
    let web = clock().await;
    let result = revisiting()
        .plugin("alike", &never_changes())
        .profile("stacks.change = ['alike']\nrevisit.stripped-equal = 'note'")
        .seed(web.url(WWW, "/"))
        .run_until("three visits", || visits(&web, "/") >= 3)
        .await;
    let page = web.url(WWW, "/");
    assert!(result.record("response", &page).text().contains("at-1"));
    assert!(result.records("revisit", &page).is_empty());
    let log = result.of(&page);
    assert!(!log[0].notes("unchanged"), "{:?}", log[0]);
    for line in &log[1..] {
        assert!(
            line.notes("unchanged") && line.notes("alike:alike") && line.notes("1ver"),
            "{line:?}"
        );
    }
    assert_eq!(visits(&web, "/at-2.html") + visits(&web, "/at-3.html"), 0);
}

/// The sandbox passes a fingerprint only to the evaluator that made it, with the same settings. Without a fingerprint, this
/// evaluator does not answer.
#[tokio::test]
async fn a_fingerprint_survives_a_restart() {
    let web = clock().await;
    let story = revisiting()
        .plugin("alike", &never_changes())
        .profile("stacks.change = ['alike']\nrevisit.stripped-equal = 'drop'")
        .seed(web.url(WWW, "/"));
    story.run_until("a visit", || visits(&web, "/") >= 1).await;
    let before = visits(&web, "/");
    let result = story
        .run_until("another", || visits(&web, "/") > before)
        .await;
    let page = web.url(WWW, "/");
    assert_eq!(result.records("response", &page).len(), 1);
    assert!(result.of(&page).last().unwrap().notes("1ver"));
}

#[tokio::test]
async fn an_evaluator_that_fails_leaves_the_state_unknown() {
    let web = clock().await;
    let result = revisiting()
        .plugin("bad", &change_evaluator(Misdeed::Traps))
        .profile("stacks.change = ['bad']")
        .seed(web.url(WWW, "/"))
        .run_until("three visits", || visits(&web, "/") >= 3)
        .await;
    let page = web.url(WWW, "/");
    let log = result.of(&page);
    assert_eq!(result.records("response", &page).len(), log.len());
    // A document of unknown state is not a new version, and has the constant wait.
    for line in &log[1..] {
        assert!(line.notes("1ver") && line.notes("wt:50ms"), "{line:?}");
    }
    let errors = result.log_file("runtime-errors.log");
    assert!(errors.contains(" bad trap "), "{errors}");
}

//! Change evaluators: different bytes that are no new version, and those that cannot be compared.

use opilio_stories::{Misdeed, change_evaluator, html, never_changes, site};
use opilio_test_web::Web;

use crate::revisits::{revisiting, visits};

const WWW: &str = "www.story.localhost";

/// A page that is never twice the same.
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
async fn what_an_evaluator_calls_unchanged_is_no_version_and_never_passes_for_the_same_bytes() {
    let web = clock().await;
    let told = revisiting()
        .plugin("alike", &never_changes())
        .profile("stacks.change = ['alike']\nrevisit.stripped-equal = 'note'")
        .seed(web.url(WWW, "/"))
        .run_until("three visits", || visits(&web, "/") >= 3)
        .await;
    let page = web.url(WWW, "/");
    assert!(told.record("response", &page).text().contains("at-1"));
    assert!(told.records("revisit", &page).is_empty());
    let log = told.of(&page);
    assert!(!log[0].notes("unchanged"), "{:?}", log[0]);
    for line in &log[1..] {
        assert!(
            line.notes("unchanged") && line.notes("alike:alike") && line.notes("1ver"),
            "{line:?}"
        );
    }
    assert_eq!(visits(&web, "/at-2.html") + visits(&web, "/at-3.html"), 0);
}

/// The fingerprint is that of the evaluator with those settings: the sandbox hands none over that another has made, and
/// then this evaluator does not answer.
#[tokio::test]
async fn a_fingerprint_survives_a_restart() {
    let web = clock().await;
    let story = revisiting()
        .plugin("alike", &never_changes())
        .profile("stacks.change = ['alike']\nrevisit.stripped-equal = 'drop'")
        .seed(web.url(WWW, "/"));
    story.run_until("a visit", || visits(&web, "/") >= 1).await;
    let before = visits(&web, "/");
    let told = story
        .run_until("another", || visits(&web, "/") > before)
        .await;
    let page = web.url(WWW, "/");
    assert_eq!(told.records("response", &page).len(), 1);
    assert!(told.of(&page).last().unwrap().notes("1ver"));
}

#[tokio::test]
async fn an_evaluator_that_fails_leaves_the_state_unknown() {
    let web = clock().await;
    let told = revisiting()
        .plugin("bad", &change_evaluator(Misdeed::Traps))
        .profile("stacks.change = ['bad']")
        .seed(web.url(WWW, "/"))
        .run_until("three visits", || visits(&web, "/") >= 3)
        .await;
    let page = web.url(WWW, "/");
    let log = told.of(&page);
    assert_eq!(told.records("response", &page).len(), log.len());
    // What is unknown is not a version, and gets the constant wait.
    for line in &log[1..] {
        assert!(line.notes("1ver") && line.notes("wt:50ms"), "{line:?}");
    }
    let errors = told.log_file("runtime-errors.log");
    assert!(errors.contains(" bad trap "), "{errors}");
}

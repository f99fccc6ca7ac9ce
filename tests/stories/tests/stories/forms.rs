//! Forms: what a reader would ask for by sending them as they stand, and logins, which nobody sends unasked.

use opilio_stories::{asked, crawl, html, site};

const WWW: &str = "www.story.localhost";

const PAGE: &str = "<form action='/search'><input name=q value=herring><select name=in><option value=all>All</select></form>
    <form method=post action='/order'><input name=what value=herring></form>
    <form method=post action='/login'><input name=user><input type=password name=secret></form>
    <form action='/enter'><input name=user><input type=password name=secret></form>";

#[tokio::test]
async fn a_get_form_is_sent_as_it_stands_and_a_login_is_reported_and_never_sent() {
    let web = site(WWW)
        .page("/", html(PAGE))
        .page("/search?q=herring&in=all", html("found"))
        .serve()
        .await;
    let told = crawl()
        .profile("stacks.extract = ['http', 'forms']")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();

    let searched = told.sole(&web.url(WWW, "/search?q=herring&in=all"));
    assert_eq!((searched.status, &*searched.hops), (200, "S"));
    // Neither what is sent with POST nor anything with a password.
    let expected = ["/", "/search?q=herring&in=all"];
    assert_eq!(
        asked(&web),
        expected.map(|target| format!("{WWW} {target}"))
    );
    let page = told.sole(&web.url(WWW, "/"));
    assert!(page.notes("login-form"), "{page:?}");
    let metadata = told.record("metadata", &web.url(WWW, "/"));
    let metadata = String::from_utf8_lossy(&metadata.block);
    assert!(
        metadata.contains("POST /login user=user password=secret"),
        "{metadata}"
    );
}

//! Forms: GET forms are submitted with their default values; login forms are reported and never submitted.

use opilio_stories::{asked, crawl, html, site};

const WWW: &str = "www.story.localhost";

const PAGE: &str = "<form action='/search'><input name=q value=herring><select name=in><option value=all>All</select></form>
    <form method=post action='/order'><input name=what value=herring></form>
    <form method=post action='/login'><input name=user><input type=password name=secret></form>
    <form action='/enter'><input name=user><input type=password name=secret></form>";

#[tokio::test]
async fn a_get_form_is_submitted_and_a_login_form_is_only_reported() {
    let web = site(WWW)
        .page("/", html(PAGE))
        .page("/search?q=herring&in=all", html("found"))
        .serve()
        .await;
    let result = crawl()
        .profile("stacks.extract = ['http', 'forms']")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();

    let searched = result.sole(&web.url(WWW, "/search?q=herring&in=all"));
    assert_eq!((searched.status, &*searched.hops), (200, "S"));
    // Forms with method POST or with a password are not submitted.
    let expected = ["/", "/search?q=herring&in=all"];
    assert_eq!(
        asked(&web),
        expected.map(|target| format!("{WWW} {target}"))
    );
    let page = result.sole(&web.url(WWW, "/"));
    assert!(page.notes("login-form"), "{page:?}");
    let metadata = result.record("metadata", &web.url(WWW, "/"));
    let metadata = String::from_utf8_lossy(&metadata.block);
    assert!(
        metadata.contains("POST /login user=user password=secret"),
        "{metadata}"
    );
}

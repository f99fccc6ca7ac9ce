//! Canonicalisation rules of single sites.

use opilio_stories::{asked, crawl, html};
use opilio_test_web::Reply;

use crate::many::{A, B, hosts};

/// A rule for one site that removes the query.
const WITHOUT_QUERY: &str = r#"
    [[override]]
    match.host = ["a.localhost"]
    canonicalization.rules = ["lowercase", { regex = '(.*)\?.*', replace = '${1}' }]
"#;

#[tokio::test]
async fn a_canonicalisation_rule_of_one_site_applies_only_there_and_leaves_fetched_uris_unchanged()
{
    let links =
        html("<a href='/Page?from=1'>1</a> <a href='/page?from=2'>2</a> <a href='/page'>3</a>");
    let web = hosts(&[A, B], 0, &html("a page"))
        .and(A)
        .page("/", links.clone())
        .and(B)
        .page("/", links)
        .serve()
        .await;
    let result = crawl()
        .profile(WITHOUT_QUERY)
        .seed(web.url(A, "/"))
        .seed(web.url(B, "/"))
        .run()
        .await
        .finished();
    let expected = [
        (A, "/"),
        (A, "/Page?from=1"),
        (B, "/"),
        (B, "/Page?from=1"),
        (B, "/page"),
        (B, "/page?from=2"),
    ];
    assert_eq!(
        asked(&web),
        expected.map(|(host, target)| format!("{host} {target}"))
    );
    assert_eq!(
        result
            .record("response", &web.url(A, "/Page?from=1"))
            .status(),
        200
    );
}

#[tokio::test]
async fn a_redirect_to_a_uri_with_the_same_canonical_form_is_followed() {
    let web = hosts(&[A], 0, &html("a page"))
        .page("/", html("<a href='/start'>s</a>"))
        .page("/start", Reply::redirect(302, "/start?session=1"))
        .page(
            "/start?session=1",
            html("<a href='/start?session=2'>again</a>"),
        )
        .serve()
        .await;
    crawl()
        .profile(WITHOUT_QUERY)
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    assert_eq!(
        asked(&web),
        ["/", "/start", "/start?session=1"].map(|target| format!("{A} {target}"))
    );
}

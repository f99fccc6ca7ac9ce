//! Filters at every stage of one crawl, with their annotations.

use opilio_control::{Command, CommandResponse};
use opilio_stories::{Story, asked, crawl, html, refuser, site};
use opilio_test_web::Reply;

const WWW: &str = "www.story.localhost";
const INSIDE: &str = "inside.story.localhost";
const AWAY: &str = "away.localhost";

const PROFILE: &str = r#"
    [stacks]
    scope = ["domain", "queries", "files-out", "hops"]
    pre-fetch = ["loopback"]
    mid-fetch = ["films-out"]
    pre-extract = ["subject"]
    archive = ["missing-out"]

    [plugins.queries]
    component = "builtin:query-trap"

    [plugins.files-out]
    component = "builtin:file-type"
    settings = { kinds = ["archives"] }

    [plugins.loopback]
    component = "builtin:ip-set"

    [plugins.films-out]
    component = "builtin:content-type"
    settings = { types = ["video/*"] }

    [plugins.subject]
    component = "builtin:content-regex"
    settings = { keywords = ["herring"] }

    [plugins.missing-out]
    component = "builtin:status"
    settings = { statuses = ["404"] }

    [[override]]
    match.host = ["inside.story.localhost"]
    plugins.loopback.settings = { addresses = ["127.0.0.0/8", "::1"] }
"#;

/// Returns the reason of the filter that refused a URI; empty if no filter accepted it.
async fn why(story: &Story, uri: &str) -> String {
    let uri = uri.to_owned();
    let answers = story.order(Command::Why { uri }).await.unwrap();
    let [CommandResponse::Why(why)] = &answers[..] else {
        panic!("{answers:?}");
    };
    assert_eq!(why.known, "refused", "{why:?}");
    why.refused.as_ref().unwrap()["reason"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn filters_reject_at_every_stage_and_their_reasons_are_recorded() {
    let links = "herring <a href='/off.html'>o</a> <a href='/film'>f</a> <a href='/gone.html'>g</a>
        <a href='/list?a=1&b=2'>l</a> <a href='/list?b=2&a=1'>l</a> <a href='/fish.zip'>z</a>";
    let web = site(WWW)
        .page("/off.html", html("football <a href='/never.html'>n</a>"))
        .page("/film", Reply::ok("video/mp4", "film"))
        .page("/gone.html", Reply::status(404))
        .page("/list?a=1&b=2", html("herring"))
        .answer("/", move |seen| {
            let host = seen.headers.get("host").and_then(|host| host.to_str().ok());
            let port = host.and_then(|host| host.rsplit(':').next()).unwrap_or_default();
            html(&format!(
                "{links} <a href='http://{INSIDE}:{port}/'>i</a> <a href='http://{AWAY}:{port}/'>a</a>"
            ))
        })
        .and(INSIDE)
        .page("/", html("herring"))
        .and(AWAY)
        .page("/", html("herring"))
        .serve()
        .await;
    let story = crawl().profile(PROFILE).seed(web.url(WWW, "/"));
    let result = story.run().await.finished();

    // Scope: another domain, a permuted query and a packed file were not requested. Links of a page without the keyword were not
    // extracted.
    let expected = ["/", "/film", "/gone.html", "/list?a=1&b=2", "/off.html"];
    assert_eq!(
        asked(&web),
        expected.map(|target| format!("{WWW} {target}"))
    );
    assert_eq!(why(&story, &web.url(AWAY, "/")).await, "");
    let reason = why(&story, &web.url(WWW, "/list?b=2&a=1")).await;
    assert!(reason.starts_with("queries:"), "{reason}");
    let reason = why(&story, &web.url(WWW, "/fish.zip")).await;
    assert!(reason.starts_with("files-out:"), "{reason}");
    // Pre-fetch: the address of one host, by an override.
    let inside = result.sole(&web.url(INSIDE, "/"));
    assert_eq!(inside.status, -5001);
    assert!(inside.notes("loopback:127.0.0.1"), "{inside:?}");
    // Mid-fetch: the type.
    let film = result.sole(&web.url(WWW, "/film"));
    assert_eq!(film.status, -5001);
    assert!(film.notes("films-out:video/mp4"), "{film:?}");
    // Pre-extract: the page without the keyword is archived, but not extracted.
    let off = web.url(WWW, "/off.html");
    assert!(
        result.sole(&off).notes("unextracted:subject:no_keyword"),
        "{:?}",
        result.sole(&off)
    );
    result.record("response", &off);
    // Archive: the status.
    let gone = web.url(WWW, "/gone.html");
    assert!(
        result.sole(&gone).notes("unwritten:missing-out:status_404"),
        "{:?}",
        result.sole(&gone)
    );
    assert!(result.records("response", &gone).is_empty());
}

/// Refusals by filters that are not shipped have their own status.
#[tokio::test]
async fn refusals_by_custom_filters_have_status_minus_5002() {
    for stage in ["pre-fetch", "post-fetch"] {
        let web = site(WWW).page("/", html("a page")).serve().await;
        let result = crawl()
            .plugin("never", &refuser())
            .profile(&format!("stacks.{stage} = ['never']"))
            .seed(web.url(WWW, "/"))
            .run()
            .await
            .finished();
        let page = result.sole(&web.url(WWW, "/"));
        assert_eq!(page.status, -5002, "{stage}: {page:?}");
        assert!(page.notes("never"), "{stage}: {page:?}");
    }
}

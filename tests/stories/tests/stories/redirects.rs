//! Redirects are hops.

use opilio_stories::{asked, crawl, html, site};
use opilio_test_web::{Reply, SeenRequest};

const WWW: &str = "www.story.localhost";
const BARE: &str = "story.localhost";
const NEW: &str = "new.localhost";

/// Returns the URL of another host at the port of a request.
fn at(seen: &SeenRequest, host: &str, target: &str) -> String {
    let port = seen.headers["host"]
        .to_str()
        .unwrap()
        .rsplit_once(':')
        .unwrap()
        .1;
    format!("http://{host}:{port}{target}")
}

#[tokio::test]
async fn each_redirect_is_archived_and_its_target_is_one_hop_further() {
    let web = site(WWW)
        .page("/", html("<a href='/one'>1</a>"))
        .page("/one", Reply::redirect(301, "two"))
        .page("/two", Reply::redirect(302, "/three.html"))
        .page("/three.html", html("here"))
        .serve()
        .await;
    let result = crawl().seed(web.url(WWW, "/")).run().await.finished();
    assert_eq!(
        result.record("response", &web.url(WWW, "/one")).status(),
        301
    );
    let last = result.sole(&web.url(WWW, "/three.html"));
    assert_eq!(
        (last.status, &*last.hops, &last.via),
        (200, "LRR", &web.url(WWW, "/two"))
    );
}

#[tokio::test]
async fn redirects_in_a_circle_end() {
    let web = site(WWW)
        .page("/", html("<a href='/a'>a</a> <a href='/self'>self</a>"))
        .page("/a", Reply::redirect(302, "/b"))
        .page("/b", Reply::redirect(302, "/a"))
        .page("/self", Reply::redirect(307, "/self"))
        .serve()
        .await;
    crawl().seed(web.url(WWW, "/")).run().await.finished();
    assert_eq!(
        asked(&web),
        ["/", "/a", "/b", "/self"].map(|target| format!("{WWW} {target}"))
    );
}

#[tokio::test]
async fn a_redirected_seed_widens_the_scope_to_the_new_host() {
    let web = site(WWW)
        .answer("/", |seen| Reply::redirect(301, &at(seen, NEW, "/")))
        .and(NEW)
        .page("/", html("<a href='/a.html'>a</a>"))
        .page("/a.html", html("<a href='/b.html'>b</a>"))
        .page("/b.html", html("b"))
        .serve()
        .await;
    let result = crawl().seed(web.url(WWW, "/")).run().await.finished();
    assert_eq!(
        asked(&web),
        [
            format!("{NEW} /"),
            format!("{NEW} /a.html"),
            format!("{NEW} /b.html"),
            format!("{WWW} /")
        ]
    );
    assert_eq!(result.sole(&web.url(NEW, "/b.html")).hops, "RLL");
}

#[tokio::test]
async fn a_redirected_page_does_not_widen_the_scope() {
    let web = site(WWW)
        .page("/", html("<a href='/away'>a</a>"))
        .answer("/away", |seen| Reply::redirect(301, &at(seen, NEW, "/")))
        .and(NEW)
        .page("/", html("<a href='/a.html'>a</a>"))
        .page("/a.html", html("a"))
        .serve()
        .await;
    crawl().seed(web.url(WWW, "/")).run().await.finished();
    assert!(
        !asked(&web).contains(&format!("{NEW} /a.html")),
        "{:?}",
        asked(&web)
    );
}

/// Both names have the same canonical form; the seen test must not drop the target.
#[tokio::test]
async fn a_redirect_to_the_same_site_under_www_is_followed() {
    let web = site(BARE)
        .answer("/", |seen| Reply::redirect(301, &at(seen, WWW, "/")))
        .and(WWW)
        .page("/", html("<a href='/a.html'>a</a>"))
        .page("/a.html", html("a"))
        .serve()
        .await;
    let result = crawl().seed(web.url(BARE, "/")).run().await.finished();
    assert_eq!(
        asked(&web),
        [
            format!("{BARE} /"),
            format!("{WWW} /"),
            format!("{WWW} /a.html")
        ]
    );
    assert_eq!(result.record("response", &web.url(WWW, "/")).status(), 200);
}

/// A chain of redirects to new URIs ends after `fetch.redirects-max`; the last redirect is archived, too.
#[tokio::test]
async fn the_number_of_successive_redirects_is_limited() {
    let web = site(WWW)
        .rest(
            |seen| match seen.target.trim_start_matches('/').parse::<u32>() {
                Ok(number) => Reply::redirect(302, &format!("/{}", number + 1)),
                Err(_) => Reply::status(404),
            },
        )
        .serve()
        .await;
    let result = crawl()
        .profile("[fetch]\nredirects-max = 3")
        .seed(web.url(WWW, "/0"))
        .run()
        .await
        .finished();
    for target in ["/0", "/1", "/2"] {
        assert!(!result.sole(&web.url(WWW, target)).notes("redirectsTrunc"));
    }
    let last = web.url(WWW, "/3");
    assert!(
        result.sole(&last).notes("redirectsTrunc:3"),
        "{:?}",
        result.log
    );
    assert_eq!(result.record("response", &last).status(), 302);
    assert!(
        result.of(&web.url(WWW, "/4")).is_empty(),
        "{:?}",
        result.log
    );
}

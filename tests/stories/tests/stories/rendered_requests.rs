//! Rules of the crawl for requests of pages that a browser renders: limits, quotas, filters, https. The stories need Chromium.

use opilio_crawl::End;
use opilio_stories::{
    Certificate, LoggedUri, Rogue, RogueStep, Rogues, Sites, asked, counter, html, site,
};
use opilio_test_web::Reply;

use crate::rendered::rendering;

const WWW: &str = "www.story.localhost";

/// A page that requests fifty parts, one after another. URIs are encoded, so that extractors cannot find them.
const ASKING: &str = "<p>page</p><script>
    (async () => {
        for (let number = 0; number < 50; number += 1) await fetch(atob('L3BhcnQ=') + number).catch(() => 0);
    })();
    </script>";

/// Returns a site with this page and this number of parts.
fn parts(page: &str, count: u32) -> Sites {
    (0..count).fold(site(WWW).page("/", html(page)), |sites, number| {
        sites.page(
            &format!("/part{number}"),
            Reply::ok("text/plain", number.to_string()),
        )
    })
}

#[tokio::test]
async fn requests_beyond_the_limit_of_a_page_fail_and_are_annotated() {
    let Some(story) = rendering() else { return };
    // URIs are encoded, so that extractors cannot find them.
    let asking = "<p>page</p><script>
        for (let number = 0; number < 6; number += 1) fetch(atob('L3BhcnQ=') + number).catch(() => 0);
        </script>";
    let web = parts(asking, 6).serve().await;
    let result = story
        .profile("[browser]\npage-requests = 3\nscreenshots = false\ntext = false\n")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    let page = result.sole(&web.url(WWW, "/"));
    assert!(
        page.annotations.contains(&"rendered".to_owned()),
        "{page:?}"
    );
    assert!(page.notes("pageRequestsRefused:"), "{page:?}");
    // The page itself is one of the three requests, and an icon may be another.
    let asked = asked(&web);
    let parts = asked.iter().filter(|it| it.contains("/part")).count();
    assert!((1..=2).contains(&parts), "{asked:?}");
}

#[tokio::test]
async fn requests_of_a_page_count_towards_the_quota_of_their_host() {
    let Some(story) = rendering() else { return };
    let web = parts(ASKING, 50).serve().await;
    let result = story
        .profile("quotas.host.fetched = 2\nbrowser.screenshots = false\nbrowser.text = false\n")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    // A request counts when it is archived, so some further requests may be made.
    let asked = asked(&web);
    let (served, refused): (Vec<_>, Vec<_>) = (0..50)
        .map(|number| format!("/part{number}"))
        .partition(|part| asked.contains(&format!("{WWW} {part}")));
    assert!(!served.is_empty() && !refused.is_empty(), "{asked:?}");
    for part in refused {
        let line = result.sole(&web.url(WWW, &part));
        assert_eq!(line.status, -5003, "{line:?}");
        let is_annotated = line.notes("browser") && line.notes("quota:host:");
        assert!(is_annotated, "{line:?}");
    }
    // The page itself is archived.
    result.record("response", &web.url(WWW, "/"));
}

#[tokio::test]
async fn requests_of_a_page_do_not_exceed_a_limit_of_the_crawl() {
    for (limit, end) in [
        ("limits.documents = 5", End::DocumentLimit),
        ("limits.fetched = 5", End::DocumentLimit),
        ("quotas.crawl.fetched = 5", End::Quota("fetched")),
    ] {
        let Some(story) = rendering() else { return };
        let web = parts(ASKING, 50).serve().await;
        let result = story
            .profile(limit)
            .profile("browser.screenshots = false\nbrowser.text = false\n")
            .seed(web.url(WWW, "/"))
            .run()
            .await;
        assert_eq!(result.summary.end, end, "{limit}");
        let is_document = |line: &&LoggedUri| line.status > 1 && !line.uri.ends_with("/robots.txt");
        let documents = result.log.iter().filter(is_document).count();
        assert_eq!(documents, 5, "{limit}: {:#?}", result.log);
        // The page itself is archived. Its further requests fail, and have lines in the log.
        result.record("response", &web.url(WWW, "/"));
        let refused = result.log.iter().filter(|line| line.status == -5003);
        let refused: Vec<_> = refused.collect();
        assert!(!refused.is_empty(), "{limit}: {:#?}", result.log);
        for line in refused {
            assert!(line.notes("browser"), "{line:?}");
            assert!(line.notes("quota:crawl"), "{line:?}");
        }
    }
}

#[tokio::test]
async fn requests_of_the_last_page_do_not_count_towards_a_limit_of_successes() {
    for (limit, end) in [
        ("limits.succeeded = 1", End::DocumentLimit),
        ("quotas.crawl.succeeded = 1", End::Quota("succeeded")),
    ] {
        let Some(story) = rendering() else { return };
        let web = parts(ASKING, 50).serve().await;
        let result = story
            .profile(limit)
            .profile("browser.screenshots = false\nbrowser.text = false\n")
            .seed(web.url(WWW, "/"))
            .run()
            .await;
        assert_eq!(result.summary.end, end, "{limit}");
        result.record("response", &web.url(WWW, "/"));
        for number in 0..50 {
            result.record("response", &web.url(WWW, &format!("/part{number}")));
        }
    }
}

#[tokio::test]
async fn mid_fetch_filters_and_observers_get_requests_of_a_page() {
    let Some(story) = rendering() else { return };
    // URIs are encoded, so that extractors cannot find them.
    let asking = "<p>page</p><script>
        (async () => {
            const got = [];
            for (const uri of [atob('L2ZpbG0='), atob('L3RleHQ=')])
                got.push(await fetch(uri).then((it) => it.text()).catch(() => 'nothing'));
            document.querySelector('p').textContent = got.join(' and ');
        })();
        </script>";
    let web = site(WWW)
        .page("/", html(asking))
        .page("/film", Reply::ok("video/mp4", "film"))
        .page("/text", Reply::ok("text/plain", "words"))
        .serve()
        .await;
    let url = |target: &str| web.url(WWW, target);
    let result = story
        .plugin("counter", &counter())
        .profile(
            "stacks.mid-fetch = ['films-out']
            stacks.observe = ['counter']
            browser.screenshots = false
            [plugins.films-out]
            component = 'builtin:content-type'
            settings = { types = ['video/*'] }",
        )
        .seed(url("/"))
        .run()
        .await
        .finished();
    let film = result.sole(&url("/film"));
    assert_eq!(film.status, -5001, "{film:?}");
    for note in ["browser", "midFetchAbort", "films-out:video/mp4"] {
        assert!(film.notes(note), "{film:?}");
    }
    assert!(result.records("response", &url("/film")).is_empty());
    result.record("response", &url("/text"));
    let text = result.record("resource", &format!("urn:text:{}", url("/")));
    let is_refused = text.text().contains("nothing and words");
    assert!(is_refused, "{}", text.text());
    let info = result.record("resource", &format!("urn:pageinfo:{}", url("/")));
    let info: serde_json::Value = serde_json::from_slice(&info.block).unwrap();
    let error = info["urls"][url("/film")]["error"].as_str();
    let is_named = error.is_some_and(|it| it.starts_with("refused: films-out:video/mp4"));
    assert!(is_named, "{info}");
    // Each line of the log is an event.
    let counted = result.job().join("reports/counter/count.txt");
    let counted = std::fs::read_to_string(counted).unwrap();
    assert_eq!(
        counted,
        format!("{:02}", result.log.len()),
        "{:#?}",
        result.log
    );
}

/// Returns a JavaScript expression for a URI that extractors do not recognise.
fn hidden(uri: &str) -> String {
    let codes: Vec<String> = uri.bytes().map(|byte| byte.to_string()).collect();
    format!("String.fromCharCode({})", codes.join(","))
}

/// Returns a response that scripts of all sites may read.
fn open_answer(media_type: &str, body: &str) -> RogueStep {
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    RogueStep::Send(answer.into_bytes())
}

/// The browser trusts the certificates of the recording proxy; the crawl checks those of servers.
#[tokio::test]
async fn a_page_over_https_is_rendered_and_the_crawl_checks_certificates_of_servers() {
    let Some(story) = rendering() else { return };
    let server = |name: &str, certificate| Rogue::new(name).with_tls(certificate);
    let others = Rogues::serve([
        server("other", Certificate::OfAnother)
            .answers("/data", [open_answer("text/plain", "other")]),
        server("strict", Certificate::Good).answers("/data", [open_answer("text/plain", "strict")]),
    ]);
    let other = others.url("other", "/data");
    let strict = others.url("strict", "/data");
    let uris = ["/data", &*other, &*strict].map(hidden).join(", ");
    let page = format!(
        "<!doctype html><title>t</title><p>page</p><script>
        (async () => {{
            const got = [location.protocol];
            for (const uri of [{uris}])
                got.push(await fetch(uri).then((it) => it.text()).catch(() => 'nothing'));
            document.querySelector('p').textContent = got.join(' and ');
        }})();
        </script>"
    );
    let secure = Rogues::serve([server("secure", Certificate::Good)
        .answers("/", [open_answer("text/html", &page)])
        .answers("/data", [open_answer("text/plain", "own")])]);
    let url = |target: &str| secure.url("secure", target);
    let result = story
        .profile(
            "browser.screenshots = false
            [[override]]
            match.host = ['strict.localhost']
            fetch.tls-trust = 'platform'
            robots.policy = 'ignore'",
        )
        .seed(url("/"))
        .run()
        .await
        .finished();
    let page = result.sole(&url("/"));
    let is_rendered = page.annotations.contains(&"rendered".to_owned());
    assert!(is_rendered, "{page:?}");
    let text = result.record("resource", &format!("urn:text:{}", url("/")));
    let has_all = text.text().contains("https: and own and other and nothing");
    assert!(has_all, "{}", text.text());
    for uri in [&url("/data"), &other] {
        let line = result.sole(uri);
        assert_eq!(line.status, 200, "{line:?}");
        assert!(line.notes("browser"), "{line:?}");
        assert!(result.record("response", uri).text().contains("200 OK"));
        let metadata = result.record("metadata", uri).text();
        let is_recorded = metadata.contains("tls-certificate: not trusted");
        assert!(is_recorded, "{metadata}");
    }
    let refused = result.sole(&strict);
    assert_eq!(refused.status, -9, "{refused:?}");
    let is_annotated = refused.notes("browser") && refused.notes("err=");
    assert!(is_annotated, "{refused:?}");
    assert!(result.records("response", &strict).is_empty());
    assert!(others.asked().iter().all(|it| it.name != "strict"));
    // The crawl made the requests, not the browser.
    let asked = secure.asked();
    let data = asked.iter().find(|it| it.target == "/data").unwrap();
    assert!(data.head.contains("opilio/"), "{}", data.head);
}

//! Cookies: storing, sending back, and saving them when a crawl stops.

use opilio_stories::{asked, crawl, html, site};
use opilio_test_web::{Reply, SeenRequest, Web};

use crate::many::{A, B};
use crate::rendered::rendering;

/// Returns the Cookie header of the last request for a page.
#[track_caller]
fn sent_cookies(web: &Web, host: &str, target: &str) -> String {
    let requests = web.requests();
    let request = requests
        .iter()
        .rev()
        .find(|seen| seen.host == host && seen.target == target);
    let headers = &request
        .unwrap_or_else(|| panic!("{host}{target} was not requested"))
        .headers;
    headers
        .get("cookie")
        .map(|it| it.to_str().unwrap().to_owned())
        .unwrap_or_default()
}

async fn two_hosts() -> Web {
    site(A)
        .page(
            "/",
            html("<a href='/in/side.html'>a</a>")
                .with("set-cookie", "session=1; HttpOnly")
                .with("set-cookie", "deep=2; Path=/in")
                .with("set-cookie", "gone=3; Max-Age=0"),
        )
        .page("/in/side.html", html("in"))
        .and(B)
        .page("/", html("b"))
        .serve()
        .await
}

#[tokio::test]
async fn a_cookie_is_sent_back_only_to_its_server() {
    let web = two_hosts().await;
    let result = crawl()
        .seed(web.url(A, "/"))
        .seed(web.url(B, "/"))
        .run()
        .await
        .finished();
    assert_eq!(sent_cookies(&web, A, "/"), "");
    assert_eq!(sent_cookies(&web, A, "/in/side.html"), "deep=2; session=1");
    assert_eq!(sent_cookies(&web, B, "/"), "");
    let request = result
        .record("request", &web.url(A, "/in/side.html"))
        .text();
    assert!(
        request.contains("\r\nCookie: deep=2; session=1\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn cookies_are_not_stored_if_the_profile_rejects_them() {
    let web = two_hosts().await;
    crawl()
        .profile("[[override]]\nmatch.host = ['a.localhost']\ncookies = { accept = false }")
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    assert_eq!(sent_cookies(&web, A, "/in/side.html"), "");
}

#[tokio::test]
async fn cookies_survive_a_stop_and_are_read_and_written_as_files() {
    let web = site(A)
        .page(
            "/",
            html("<a href='/b.html'>b</a>").with("set-cookie", "session=1"),
        )
        .page("/b.html", html("<a href='/c.html'>c</a>"))
        .page("/c.html", html("c"))
        .serve()
        .await;
    let story = crawl();
    let file = story.file(
        "cookies.txt",
        ".a.localhost\tTRUE\t/\tFALSE\t0\tours\tyes\n# remark\nnonsense\n",
    );
    let story = story
        .profile(&format!(
            "workers = 1\n[cookies]\nload = '{}'\nsave = 'saved.txt'",
            file.display()
        ))
        .seed(web.url(A, "/"));
    let is_requested = |target: &str| web.requests().iter().any(|seen| seen.target == target);
    story
        .run_until("the second page", || is_requested("/b.html"))
        .await;
    let result = story.run().await.finished();
    assert_eq!(sent_cookies(&web, A, "/"), "ours=yes");
    assert_eq!(sent_cookies(&web, A, "/c.html"), "ours=yes; session=1");
    let saved = std::fs::read_to_string(result.job().join("saved.txt")).unwrap();
    assert_eq!(
        saved,
        "# Netscape HTTP Cookie File\n\
         .a.localhost\tTRUE\t/\tFALSE\t0\tours\tyes\n\
         a.localhost\tFALSE\t/\tFALSE\t0\tsession\t1\n"
    );
    let log = result.log_file("job.log");
    assert_eq!(
        log.matches("1 cookies read, 1 lines skipped").count(),
        1,
        "{log}"
    );
}

#[tokio::test]
async fn cookies_per_host_are_limited() {
    let mut front = html("<a href='/b.html'>b</a>");
    for n in 0..400 {
        front = front.with("set-cookie", format!("n{n}={}", "x".repeat(50)));
    }
    let web = site(A)
        .page("/", front)
        .page("/b.html", html("b"))
        .serve()
        .await;
    crawl()
        .profile("cookies.per-host = 20")
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    let sent_cookies = sent_cookies(&web, A, "/b.html");
    assert_eq!(sent_cookies.split("; ").count(), 20, "{sent_cookies}");
}

#[tokio::test]
async fn a_redirect_to_the_same_page_with_a_cookie_is_followed_once() {
    let wall = |seen: &SeenRequest| match seen.headers.contains_key("cookie") {
        true => html("<a href='/closed.html'>c</a>"),
        false => Reply::redirect(302, "/").with("set-cookie", "seen=1; Path=/"),
    };
    let web = site(A)
        .answer("/", wall)
        .page(
            "/closed.html",
            Reply::redirect(302, "/closed.html").with("set-cookie", "seen=1; Path=/"),
        )
        .serve()
        .await;
    let result = crawl().seed(web.url(A, "/")).run().await.finished();
    let front = web.url(A, "/");
    assert!(result.sole(&front).status == 200 && result.sole(&front).notes("cookieRedirect"));
    let statuses: Vec<_> = result
        .records("response", &front)
        .iter()
        .map(|it| it.status())
        .collect();
    assert_eq!(statuses, [302, 200]);
    assert_eq!(
        asked(&web),
        ["a.localhost /", "a.localhost /", "a.localhost /closed.html"]
    );
}

#[tokio::test]
async fn a_rendered_page_sends_the_cookies_of_the_crawl_to_its_own_site_only() {
    let Some(story) = rendering() else { return };
    // URIs are encoded, so that extractors cannot find them.
    let asking = "<p>page</p><script>
        const other = 'http:' + '//' + atob('Yi5sb2NhbGhvc3Q=') + ':' + location.port;
        for (const base of [location.origin, other])
            fetch(base + atob('L2Zyb20tcGFnZQ=='), {method: 'POST', mode: 'no-cors', credentials: 'include', body: 'x'});
        </script>";
    let web = site(A)
        .page("/", html(asking))
        .page("/from-page", Reply::ok("text/plain", "own"))
        .and(B)
        .page("/from-page", Reply::ok("text/plain", "other"))
        .serve()
        .await;
    let file = story.file(
        "cookies.txt",
        ".a.localhost\tTRUE\t/\tFALSE\t0\tours\tyes\n.b.localhost\tTRUE\t/\tFALSE\t0\ttheirs\tyes\n",
    );
    let result = story
        .profile(&format!(
            "cookies.load = '{}'\nbrowser.screenshots = false",
            file.display()
        ))
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    for host in [A, B] {
        let line = result.sole(&web.url(host, "/from-page"));
        assert!(line.notes("method:POST"), "{line:?}");
    }
    assert_eq!(sent_cookies(&web, A, "/from-page"), "ours=yes");
    assert_eq!(sent_cookies(&web, B, "/from-page"), "");
}

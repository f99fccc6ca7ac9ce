//! Cookies: kept, sent back, taken along when a crawl is stopped.

use opilio_stories::{asked, crawl, html, site};
use opilio_test_web::{Reply, SeenRequest, Web};

use crate::many::{A, B};
use crate::rendered::rendering;

/// The Cookie header of the last request for a page.
#[track_caller]
fn sent(web: &Web, host: &str, target: &str) -> String {
    let requests = web.requests();
    let asked = requests
        .iter()
        .rev()
        .find(|seen| seen.host == host && seen.target == target);
    let headers = &asked
        .unwrap_or_else(|| panic!("{host}{target} was not asked for"))
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
async fn what_a_server_sets_is_sent_back_to_it_alone() {
    let web = two_hosts().await;
    let told = crawl()
        .seed(web.url(A, "/"))
        .seed(web.url(B, "/"))
        .run()
        .await
        .finished();
    assert_eq!(sent(&web, A, "/"), "");
    assert_eq!(sent(&web, A, "/in/side.html"), "deep=2; session=1");
    assert_eq!(sent(&web, B, "/"), "");
    let request = told.record("request", &web.url(A, "/in/side.html")).text();
    assert!(
        request.contains("\r\nCookie: deep=2; session=1\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn none_are_kept_where_the_profile_does_not_want_them() {
    let web = two_hosts().await;
    crawl()
        .profile("[[override]]\nmatch.host = ['a.localhost']\ncookies = { accept = false }")
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    assert_eq!(sent(&web, A, "/in/side.html"), "");
}

#[tokio::test]
async fn they_outlive_a_stop_and_are_read_from_and_written_to_files() {
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
    let asked = |target: &str| web.requests().iter().any(|seen| seen.target == target);
    story
        .run_until("the second page", || asked("/b.html"))
        .await;
    let told = story.run().await.finished();
    assert_eq!(sent(&web, A, "/"), "ours=yes");
    assert_eq!(sent(&web, A, "/c.html"), "ours=yes; session=1");
    let saved = std::fs::read_to_string(told.job().join("saved.txt")).unwrap();
    assert_eq!(
        saved,
        "# Netscape HTTP Cookie File\n\
         .a.localhost\tTRUE\t/\tFALSE\t0\tours\tyes\n\
         a.localhost\tFALSE\t/\tFALSE\t0\tsession\t1\n"
    );
    let log = told.log_file("job.log");
    assert_eq!(
        log.matches("1 cookies read, 1 lines skipped").count(),
        1,
        "{log}"
    );
}

#[tokio::test]
async fn a_flood_of_cookies_has_an_end() {
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
    let sent = sent(&web, A, "/b.html");
    assert_eq!(sent.split("; ").count(), 20, "{sent}");
}

#[tokio::test]
async fn who_is_sent_back_with_a_cookie_comes_back_once() {
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
    let told = crawl().seed(web.url(A, "/")).run().await.finished();
    let front = web.url(A, "/");
    assert!(told.sole(&front).status == 200 && told.sole(&front).notes("cookieRedirect"));
    let statuses: Vec<_> = told
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
    // Addresses are written so that only the page itself knows them.
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
    let told = story
        .profile(&format!(
            "cookies.load = '{}'\nbrowser.screenshots = false",
            file.display()
        ))
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    for host in [A, B] {
        let line = told.sole(&web.url(host, "/from-page"));
        assert!(line.notes("method:POST"), "{line:?}");
    }
    assert_eq!(sent(&web, A, "/from-page"), "ours=yes");
    assert_eq!(sent(&web, B, "/from-page"), "");
}

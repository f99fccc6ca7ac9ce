//! HTTP authentication and login forms. Passwords must not appear in logs, reports and metadata records.

use opilio_stories::{FinishedCrawl, Story, asked, crawl, html, site};
use opilio_test_web::{Reply, SeenRequest, Web, schemes};

use crate::many::{A, B};

const PASSWORD: &str = "hush-hush";

fn header(seen: &SeenRequest, name: &str) -> String {
    let value = seen.headers.get(name);
    value
        .map(|it| it.to_str().unwrap().to_owned())
        .unwrap_or_default()
}

/// Returns a story whose profile refers to a file with a password.
fn with_password(toml: &str) -> Story {
    let story = crawl();
    let file = story.file("secret.txt", &format!("{PASSWORD}\n"));
    story.profile(&toml.replace("SECRET", &file.display().to_string()))
}

const CREDENTIAL: &str = "[credentials.staff]\nhosts = ['*.localhost']\nrealm = 'Staff'\nuser = 'archive'\npassword = { file = 'SECRET' }";

/// Asserts that no file of the job and no metadata record contains the password in clear text.
#[track_caller]
fn assert_no_password(result: &FinishedCrawl) {
    let mut folders = vec![result.job().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let bytes = std::fs::read(&path).unwrap();
                    let text = String::from_utf8_lossy(&bytes);
                    assert!(!text.contains(PASSWORD), "{}", path.display());
                }
            }
        }
    }
    for capture in result
        .captures
        .iter()
        .filter(|it| it.kind != "request" && it.kind != "response")
    {
        assert!(!capture.text().contains(PASSWORD), "{capture:?}");
    }
}

fn guarded(seen: &SeenRequest) -> Reply {
    // base64 of archive:hush-hush
    match header(seen, "authorization").as_str() {
        "Basic YXJjaGl2ZTpodXNoLWh1c2g=" => html("<a href='/staff/b.html'>b</a>"),
        _ => Reply::status(401).with("www-authenticate", "Basic realm=\"Staff\""),
    }
}

#[tokio::test]
async fn credentials_are_sent_after_one_challenge() {
    let web = site(A)
        .page("/", html("<a href='/staff/a.html'>a</a>"))
        .answer("/staff/a.html", guarded)
        .answer("/staff/b.html", guarded)
        .serve()
        .await;
    let result = with_password(CREDENTIAL)
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    let (a, b) = (web.url(A, "/staff/a.html"), web.url(A, "/staff/b.html"));
    let line = result.sole(&a);
    assert!(
        line.status == 200 && line.notes("authenticated:staff"),
        "{line:?}"
    );
    assert_eq!(result.sole(&b).status, 200);
    assert_eq!(
        asked(&web),
        [
            "a.localhost /",
            "a.localhost /staff/a.html",
            "a.localhost /staff/a.html",
            "a.localhost /staff/b.html"
        ]
    );
    let statuses: Vec<_> = result
        .records("response", &a)
        .iter()
        .map(|it| it.status())
        .collect();
    assert_eq!(statuses, [401, 200], "the challenge is archived too");
    let requests = result.records("request", &a);
    assert!(
        requests[1].text().contains("\r\nAuthorization: Basic "),
        "the request is archived as sent"
    );
    assert_no_password(&result);
}

#[tokio::test]
async fn a_password_that_is_wrong_or_not_for_this_realm_is_not_tried_again() {
    let web = site(A)
        .page(
            "/",
            Reply::status(401).with("www-authenticate", "Basic realm=\"Staff\""),
        )
        .and(B)
        .page(
            "/",
            Reply::status(401).with("www-authenticate", "Basic realm=\"Others\""),
        )
        .serve()
        .await;
    let story = with_password(CREDENTIAL)
        .seed(web.url(A, "/"))
        .seed(web.url(B, "/"));
    let result = story.run().await.finished();
    assert_eq!(
        asked(&web),
        ["a.localhost /", "a.localhost /", "b.localhost /"]
    );
    assert_eq!(result.sole(&web.url(A, "/")).status, 401);
    assert_eq!(result.sole(&web.url(B, "/")).status, 401);
}

#[tokio::test]
async fn a_digest_is_computed_again_if_its_nonce_is_stale() {
    let answer = |seen: &SeenRequest| {
        let authorization = header(seen, "authorization");
        let nonce = if seen.target == "/" { "one" } else { "two" };
        let is_fresh = authorization.starts_with("Digest ")
            && authorization.contains(&format!("nonce=\"{nonce}\""));
        if is_fresh
            && authorization.contains("username=\"archive\"")
            && authorization.contains("nc=00000001")
        {
            return html("<a href='/b.html'>b</a>");
        }
        let challenge = format!(
            "Digest realm=\"Staff\", qop=\"auth\", algorithm=MD5, nonce=\"{nonce}\", stale=true"
        );
        Reply::status(401).with("www-authenticate", challenge)
    };
    let web = site(A)
        .answer("/", answer)
        .answer("/b.html", answer)
        .serve()
        .await;
    let result = with_password(CREDENTIAL)
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    assert_eq!(result.sole(&web.url(A, "/")).status, 200);
    assert_eq!(result.sole(&web.url(A, "/b.html")).status, 200);
    assert_eq!(asked(&web).len(), 4);
    assert_no_password(&result);
}

#[tokio::test]
async fn a_missing_secret_is_an_error_of_the_profile() {
    for table in [
        "[credentials.staff]\nhosts = ['a.localhost']\nuser = 'archive'\npassword = { env = 'NO_SUCH_VARIABLE_OF_OPILIO' }",
        "[fetch]\nproxy = 'http://127.0.0.1:9'\nproxy-user = 'archive'\nproxy-password = { env = 'NO_SUCH_VARIABLE_OF_OPILIO' }",
    ] {
        let story = crawl().profile(table).seed("http://a.localhost/");
        let Err(problem) = story.begin() else {
            panic!("the crawl began");
        };
        let problem = problem.to_string();
        assert!(
            problem.contains("NO_SUCH_VARIABLE_OF_OPILIO") && problem.contains("story.toml:"),
            "{problem}"
        );
        assert!(!story.job().exists(), "nothing is created");
    }
}

const LOGIN: &str = "workers = 1\n[logins.shop]\npage = 'PAGE'\nfields = { user = 'archive' }\nsecrets = { pass = { file = 'SECRET' } }\nrefused = 'wrong password'";

/// Returns a site that redirects requests without a session to its login page. A session ends when `ends` returns `true`.
fn shop(ends: fn(&SeenRequest) -> bool) -> opilio_stories::Sites {
    let page = move |text: &'static str| {
        move |seen: &SeenRequest| match header(seen, "cookie").contains("session=") && !ends(seen) {
            true => html(text),
            false => Reply::redirect(302, "/login?next=x"),
        }
    };
    site(A)
        .page("/robots.txt", Reply::ok("text/plain", "User-agent: *\nDisallow: /login\n"))
        .answer("/", page("<a href='/b.html'>b</a>"))
        .answer("/b.html", page("<a href='/c.html'>c</a>"))
        .answer("/c.html", page("the end"))
        .page(
            "/login",
            html("<form action='/do' method=post><input type=hidden name=token value='t&1'><input name=user><input type=password name=pass></form>")
                .with("set-cookie", "visitor=1"),
        )
        .answer("/do", |seen| {
            let body = String::from_utf8_lossy(&seen.body).into_owned();
            let is_visitor = header(seen, "cookie").contains("visitor=1");
            match body == format!("token=t%261&user=archive&pass={PASSWORD}") && is_visitor {
                true => Reply::redirect(303, "/").with("set-cookie", "session=1"),
                false => html("wrong password"),
            }
        })
}

fn login(web: &Web) -> Story {
    with_password(&LOGIN.replace("PAGE", &web.url(A, "/login")))
}

#[tokio::test]
async fn a_login_form_is_submitted_once_before_the_first_page() {
    let web = shop(|_| false).serve().await;
    let story = login(&web).seed(web.url(A, "/"));
    let is_requested = |target: &str| web.requests().iter().any(|seen| seen.target == target);
    story
        .run_until("the second page", || is_requested("/b.html"))
        .await;
    let result = story.run().await.finished();
    let in_order: Vec<_> = web
        .requests()
        .iter()
        .map(|seen| format!("{} {}", seen.method, seen.target))
        .collect();
    assert_eq!(
        in_order,
        [
            "GET /robots.txt",
            "GET /login",
            "POST /do",
            "GET /",
            "GET /b.html",
            "GET /c.html"
        ]
    );
    let form = result.sole(&web.url(A, "/do"));
    assert!(form.status == 303 && form.hops.ends_with('P'), "{form:?}");
    for page in ["/", "/b.html", "/c.html"] {
        assert_eq!(result.sole(&web.url(A, page)).status, 200);
    }
    let sent = result.record("request", &web.url(A, "/do")).text();
    assert!(
        sent.starts_with("POST /do HTTP/1.1\r\n") && sent.contains(PASSWORD),
        "the request is archived as sent"
    );
    assert!(
        result.log_file("job.log").contains("login shop"),
        "{}",
        result.log_file("job.log")
    );
    assert_no_password(&result);
}

#[tokio::test]
async fn the_login_is_repeated_when_the_session_has_ended() {
    // The session ends at the first request for the third page.
    let web = shop(|seen| seen.target == "/c.html" && seen.visit == 1)
        .serve()
        .await;
    let result = login(&web).seed(web.url(A, "/")).run().await.finished();
    let of = |target: &str| {
        web.requests()
            .iter()
            .filter(|seen| seen.target == target)
            .count()
    };
    assert_eq!((of("/login"), of("/do"), of("/c.html")), (2, 2, 2));
    assert_eq!(result.sole(&web.url(A, "/c.html")).status, 200);
}

#[tokio::test]
async fn a_page_that_stays_closed_after_the_login_is_archived() {
    let web = shop(|seen| seen.target == "/c.html").serve().await;
    let result = login(&web).seed(web.url(A, "/")).run().await.finished();
    assert_eq!(result.sole(&web.url(A, "/c.html")).status, 302);
    let of = |target: &str| {
        web.requests()
            .iter()
            .filter(|seen| seen.target == target)
            .count()
    };
    assert_eq!(of("/c.html"), 2);
}

#[tokio::test]
async fn pages_behind_a_refused_login_fail() {
    let web = shop(|_| false).serve().await;
    let story = login(&web).profile("logins.shop.fields.user = 'nobody'");
    let result = story.seed(web.url(A, "/")).run().await.finished();
    let front = result.sole(&web.url(A, "/"));
    assert!(
        front.status == -62 && front.notes("login:shop"),
        "{front:?}"
    );
    assert!(result.log_file("job.log").contains("alert login shop"));
}

#[tokio::test]
async fn passwords_in_links_are_removed() {
    let link = format!("<a href='http://someone:{PASSWORD}@outside.localhost/b.html'>b</a>");
    let web = site(A)
        .page("/", html("front"))
        .and(B)
        .page("/", html(&link))
        .serve()
        .await;
    let port = web.address().port();
    let seed = format!("http://someone:{PASSWORD}@a.localhost:{port}/");
    let result = crawl()
        .seed(seed)
        .seed(web.url(B, "/"))
        .run()
        .await
        .finished();
    assert_eq!(result.sole(&web.url(A, "/")).status, 200);
    for capture in result.captures.iter().filter(|it| it.kind == "metadata") {
        assert!(!capture.text().contains(PASSWORD), "{}", capture.text());
    }
    for log in [
        "crawl.log",
        "job.log",
        "uri-errors.log",
        "nonfatal-errors.log",
    ] {
        assert!(!result.log_file(log).contains(PASSWORD), "{log}");
    }
    let seeds = std::fs::read_to_string(result.job().join("seeds.txt")).unwrap();
    assert!(!seeds.contains(PASSWORD), "{seeds}");
}

fn note(path: &str) -> Option<&'static [u8]> {
    (path == "note.txt").then_some(b"A note.\n")
}

#[tokio::test]
async fn ftp_servers_get_the_profiles_password_and_not_that_of_a_link() {
    let port = schemes::ftp(note).unwrap();
    let result = with_password(&CREDENTIAL.replace("realm = 'Staff'\n", ""))
        .profile("[operator]\nfrom = 'crawl@example.org'\n[dns.hosts]\n'files.test' = '127.0.0.1'")
        .seed(format!(
            "ftp://someone:{PASSWORD}@files.localhost:{port}/note.txt"
        ))
        .seed(format!(
            "ftp://someone:{PASSWORD}@files.test:{port}/note.txt"
        ))
        .run()
        .await
        .finished();
    for (host, login) in [
        (
            "files.localhost",
            "USER archive\r\n331 and you are?\r\nPASS ****\r\n",
        ),
        (
            "files.test",
            "USER anonymous\r\n331 and you are?\r\nPASS crawl@example.org\r\n",
        ),
    ] {
        let uri = format!("ftp://{host}:{port}/note.txt");
        assert_eq!(result.sole(&uri).status, 226);
        let conversation: String = result
            .records("metadata", &uri)
            .iter()
            .map(|it| it.text())
            .collect();
        assert!(conversation.contains(login), "{conversation}");
    }
    assert_no_password(&result);
}

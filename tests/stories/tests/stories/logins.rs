//! Sites that want to know who we are: passwords, forms, and where none of it may turn up.

use opilio_stories::{FinishedCrawl, Story, asked, crawl, html, site};
use opilio_test_web::{Reply, SeenRequest, Web, schemes};

use crate::many::{A, B};

const HUSH: &str = "hush-hush";

fn header(seen: &SeenRequest, name: &str) -> String {
    let value = seen.headers.get(name);
    value
        .map(|it| it.to_str().unwrap().to_owned())
        .unwrap_or_default()
}

/// A story whose profile knows a password, kept in a file.
fn with_password(toml: &str) -> Story {
    let story = crawl();
    let file = story.file("secret.txt", &format!("{HUSH}\n"));
    story.profile(&toml.replace("SECRET", &file.display().to_string()))
}

const CREDENTIAL: &str = "[credentials.staff]\nhosts = ['*.localhost']\nrealm = 'Staff'\nuser = 'archive'\npassword = { file = 'SECRET' }";

/// No log, report or metadata record has the password.
#[track_caller]
fn says_nothing(told: &FinishedCrawl) {
    let mut folders = vec![told.job().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let bytes = std::fs::read(&path).unwrap();
                    let text = String::from_utf8_lossy(&bytes);
                    assert!(!text.contains(HUSH), "{}", path.display());
                }
            }
        }
    }
    for capture in told
        .captures
        .iter()
        .filter(|it| it.kind != "request" && it.kind != "response")
    {
        assert!(!capture.text().contains(HUSH), "{capture:?}");
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
async fn a_server_that_asks_once_is_told_from_then_on() {
    let web = site(A)
        .page("/", html("<a href='/staff/a.html'>a</a>"))
        .answer("/staff/a.html", guarded)
        .answer("/staff/b.html", guarded)
        .serve()
        .await;
    let told = with_password(CREDENTIAL)
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    let (a, b) = (web.url(A, "/staff/a.html"), web.url(A, "/staff/b.html"));
    let line = told.sole(&a);
    assert!(
        line.status == 200 && line.notes("authenticated:staff"),
        "{line:?}"
    );
    assert_eq!(told.sole(&b).status, 200);
    assert_eq!(
        asked(&web),
        [
            "a.localhost /",
            "a.localhost /staff/a.html",
            "a.localhost /staff/a.html",
            "a.localhost /staff/b.html"
        ]
    );
    let statuses: Vec<_> = told
        .records("response", &a)
        .iter()
        .map(|it| it.status())
        .collect();
    assert_eq!(statuses, [401, 200], "the challenge is archived too");
    let requests = told.records("request", &a);
    assert!(
        requests[1].text().contains("\r\nAuthorization: Basic "),
        "as it was sent"
    );
    says_nothing(&told);
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
    let told = story.run().await.finished();
    assert_eq!(
        asked(&web),
        ["a.localhost /", "a.localhost /", "b.localhost /"]
    );
    assert_eq!(told.sole(&web.url(A, "/")).status, 401);
    assert_eq!(told.sole(&web.url(B, "/")).status, 401);
}

#[tokio::test]
async fn a_digest_is_counted_and_made_anew_when_its_nonce_is_stale() {
    let answer = |seen: &SeenRequest| {
        let said = header(seen, "authorization");
        let nonce = if seen.target == "/" { "one" } else { "two" };
        let fresh = said.starts_with("Digest ") && said.contains(&format!("nonce=\"{nonce}\""));
        if fresh && said.contains("username=\"archive\"") && said.contains("nc=00000001") {
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
    let told = with_password(CREDENTIAL)
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    assert_eq!(told.sole(&web.url(A, "/")).status, 200);
    assert_eq!(told.sole(&web.url(A, "/b.html")).status, 200);
    assert_eq!(asked(&web).len(), 4);
    says_nothing(&told);
}

#[tokio::test]
async fn a_secret_that_is_not_there_is_a_fault_of_the_profile() {
    for table in [
        "[credentials.staff]\nhosts = ['a.localhost']\nuser = 'archive'\npassword = { env = 'NO_SUCH_VARIABLE_OF_OPILIO' }",
        "[fetch]\nproxy = 'http://127.0.0.1:9'\nproxy-user = 'archive'\nproxy-password = { env = 'NO_SUCH_VARIABLE_OF_OPILIO' }",
    ] {
        let story = crawl().profile(table).seed("http://a.localhost/");
        let Err(problem) = story.begin() else {
            panic!("it began");
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

/// A site that shows nothing to who has no session. Sessions end when `ends` says so.
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
            match body == format!("token=t%261&user=archive&pass={HUSH}") && is_visitor {
                true => Reply::redirect(303, "/").with("set-cookie", "session=1"),
                false => html("wrong password"),
            }
        })
}

fn login(web: &Web) -> Story {
    with_password(&LOGIN.replace("PAGE", &web.url(A, "/login")))
}

#[tokio::test]
async fn a_form_is_sent_before_the_first_page_and_once() {
    let web = shop(|_| false).serve().await;
    let story = login(&web).seed(web.url(A, "/"));
    let asked_for = |target: &str| web.requests().iter().any(|seen| seen.target == target);
    story
        .run_until("the second page", || asked_for("/b.html"))
        .await;
    let told = story.run().await.finished();
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
    let form = told.sole(&web.url(A, "/do"));
    assert!(form.status == 303 && form.hops.ends_with('P'), "{form:?}");
    for page in ["/", "/b.html", "/c.html"] {
        assert_eq!(told.sole(&web.url(A, page)).status, 200);
    }
    let sent = told.record("request", &web.url(A, "/do")).text();
    assert!(
        sent.starts_with("POST /do HTTP/1.1\r\n") && sent.contains(HUSH),
        "as it was sent"
    );
    assert!(
        told.log_file("job.log").contains("login shop"),
        "{}",
        told.log_file("job.log")
    );
    says_nothing(&told);
}

#[tokio::test]
async fn whose_session_has_ended_logs_in_again() {
    // The third page, when it is asked for first.
    let web = shop(|seen| seen.target == "/c.html" && seen.visit == 1)
        .serve()
        .await;
    let told = login(&web).seed(web.url(A, "/")).run().await.finished();
    let of = |target: &str| {
        web.requests()
            .iter()
            .filter(|seen| seen.target == target)
            .count()
    };
    assert_eq!((of("/login"), of("/do"), of("/c.html")), (2, 2, 2));
    assert_eq!(told.sole(&web.url(A, "/c.html")).status, 200);
}

#[tokio::test]
async fn a_page_that_stays_closed_is_archived_as_it_is() {
    let web = shop(|seen| seen.target == "/c.html").serve().await;
    let told = login(&web).seed(web.url(A, "/")).run().await.finished();
    assert_eq!(told.sole(&web.url(A, "/c.html")).status, 302);
    let of = |target: &str| {
        web.requests()
            .iter()
            .filter(|seen| seen.target == target)
            .count()
    };
    assert_eq!(of("/c.html"), 2);
}

#[tokio::test]
async fn pages_behind_a_login_that_is_refused_fail() {
    let web = shop(|_| false).serve().await;
    let story = login(&web).profile("logins.shop.fields.user = 'nobody'");
    let told = story.seed(web.url(A, "/")).run().await.finished();
    let front = told.sole(&web.url(A, "/"));
    assert!(
        front.status == -62 && front.notes("login:shop"),
        "{front:?}"
    );
    assert!(told.log_file("job.log").contains("alert login shop"));
}

#[tokio::test]
async fn passwords_in_links_go_nowhere() {
    let link = format!("<a href='http://someone:{HUSH}@outside.localhost/b.html'>b</a>");
    let web = site(A)
        .page("/", html("front"))
        .and(B)
        .page("/", html(&link))
        .serve()
        .await;
    let port = web.address().port();
    let seed = format!("http://someone:{HUSH}@a.localhost:{port}/");
    let told = crawl()
        .seed(seed)
        .seed(web.url(B, "/"))
        .run()
        .await
        .finished();
    assert_eq!(told.sole(&web.url(A, "/")).status, 200);
    for capture in told.captures.iter().filter(|it| it.kind == "metadata") {
        assert!(!capture.text().contains(HUSH), "{}", capture.text());
    }
    for log in [
        "crawl.log",
        "job.log",
        "uri-errors.log",
        "nonfatal-errors.log",
    ] {
        assert!(!told.log_file(log).contains(HUSH), "{log}");
    }
    let seeds = std::fs::read_to_string(told.job().join("seeds.txt")).unwrap();
    assert!(!seeds.contains(HUSH), "{seeds}");
}

fn note(path: &str) -> Option<&'static [u8]> {
    (path == "note.txt").then_some(b"A note.\n")
}

#[tokio::test]
async fn ftp_servers_are_told_the_profiles_password_and_never_one_of_a_link() {
    let port = schemes::ftp(note).unwrap();
    let told = with_password(&CREDENTIAL.replace("realm = 'Staff'\n", ""))
        .profile("[operator]\nfrom = 'crawl@example.org'\n[dns.hosts]\n'files.test' = '127.0.0.1'")
        .seed(format!(
            "ftp://someone:{HUSH}@files.localhost:{port}/note.txt"
        ))
        .seed(format!("ftp://someone:{HUSH}@files.test:{port}/note.txt"))
        .run()
        .await
        .finished();
    for (host, said) in [
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
        assert_eq!(told.sole(&uri).status, 226);
        let conversation: String = told
            .records("metadata", &uri)
            .iter()
            .map(|it| it.text())
            .collect();
        assert!(conversation.contains(said), "{conversation}");
    }
    says_nothing(&told);
}

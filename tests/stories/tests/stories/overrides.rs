//! `[[override]]`: what an operator sees of other values for some sites.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use opilio_stories::{asked, crawl, html, rests};
use opilio_test_web::Reply;

use crate::many::{A, B, hosts, ms};
use crate::revisits::{revisiting, visits};

#[tokio::test]
async fn a_front_page_is_visited_again_and_again_and_the_archive_once() {
    let front = html(
        "<a href='/archive/old.html'>old</a> <a href='/2001/05/'>older</a> <a href='/now.html'>now</a>",
    );
    let web = hosts(&[A], 0, &html("a page"))
        .page("/", front)
        .serve()
        .await;
    let overrides = format!(
        r#"
        [[override]]
        match.surt = ["{}"]
        strategy = "snapshot"
        [[override]]
        match.regex = '/20\d\d/'
        strategy = "snapshot"
        "#,
        web.url(A, "/archive/")
    );
    let once = ["/archive/old.html", "/2001/05/"];
    let told = revisiting()
        .profile(&overrides)
        .seed(web.url(A, "/"))
        .run_until("five visits", || {
            visits(&web, "/") >= 5
                && visits(&web, "/now.html") >= 3
                && once.iter().all(|target| visits(&web, target) > 0)
        })
        .await;
    for target in once {
        assert_eq!(visits(&web, target), 1);
        let line = told.sole(&web.url(A, target));
        assert!(!line.notes("wt:"), "no next visit: {line:?}");
    }
}

/// The waits that evaluators choose for a page that changes all the time would get shorter each time.
#[tokio::test]
async fn a_fixed_wait_is_kept_whatever_the_page_does() {
    let web = hosts(&[A], 0, &html("a page"))
        .answer("/", |seen| html(&format!("version {}", seen.visit)))
        .serve()
        .await;
    let told = revisiting()
        .profile(
            r#"
            [[override]]
            match.host = ["a.localhost"]
            strategy = "fixed"
            revisit.fixed-wait = "80ms"
            "#,
        )
        .seed(web.url(A, "/"))
        .run_until("four visits", || visits(&web, "/") >= 4)
        .await;
    for line in told.of(&web.url(A, "/")) {
        assert!(line.notes("wt:80ms"), "{line:?}");
    }
    let requests = web.requests();
    let came: Vec<_> = requests
        .iter()
        .filter(|seen| seen.target == "/")
        .map(|seen| seen.came)
        .collect();
    assert!(
        came.windows(2).all(|two| two[1] - two[0] >= ms(80)),
        "{came:?}"
    );
}

#[tokio::test]
async fn what_holds_at_this_time_of_day_holds_and_what_holds_at_another_does_not() {
    let private = html("<a href='/private.html'>p</a>");
    let robots = Reply::ok("text/plain", "User-agent: *\nDisallow: /private\n");
    let mut sites = hosts(&[A, B], 0, &html("a page"));
    for host in [A, B] {
        sites = sites
            .and(host)
            .page("/", private.clone())
            .page("/robots.txt", robots.clone());
    }
    let web = sites.serve().await;
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    let hour = SignedDuration::from_hours(1);
    let (before, after) = (
        (&now - hour).strftime("%H:%M"),
        (&now + hour).strftime("%H:%M"),
    );
    let told = crawl()
        .profile(&format!(
            r#"
            [[override]]
            match = {{ host = ["{A}"], time = "{before}-{after}" }}
            robots.policy = "ignore"
            politeness = {{ min-delay = "60ms", max-delay = "60ms" }}
            [[override]]
            match = {{ host = ["{B}"], time = "{after}-{before}" }}
            robots.policy = "ignore"
            politeness = {{ min-delay = "1h", max-delay = "1h" }}
            "#
        ))
        .seed(web.url(A, "/"))
        .seed(web.url(B, "/"))
        .run()
        .await
        .finished();
    assert_eq!(told.sole(&web.url(A, "/private.html")).status, 200);
    assert_eq!(told.sole(&web.url(B, "/private.html")).status, -9998);
    let rests = rests(&web, |seen| seen.host == A);
    assert_eq!(rests.len(), 2);
    assert!(rests.iter().all(|rest| *rest >= ms(60)), "{rests:?}");
}

/// Style sheets name pictures; on one host nobody looks into them. On the other, one page is out of scope.
#[tokio::test]
async fn a_host_has_extractors_and_a_scope_of_its_own() {
    let mut sites = hosts(&[A, B], 0, &html("a page"));
    for host in [A, B] {
        sites = sites
            .and(host)
            .page(
                "/",
                html("<link rel=stylesheet href=/s.css> <a href=/calendar/>c</a>"),
            )
            .page(
                "/s.css",
                Reply::ok("text/css", "p { background: url(/i.png) }"),
            );
    }
    let web = sites.serve().await;
    crawl()
        .profile(&format!(
            r#"
            [plugins.no-calendar]
            component = "builtin:surt-scope"
            settings = {{ from-seeds = false, prefixes = ["{}"], then = "reject" }}
            [[override]]
            match.host = ["{A}"]
            stacks.extract = {{ without = ["css"] }}
            [[override]]
            match.host = ["{B}"]
            stacks.scope = {{ before = {{ prerequisite = ["no-calendar"] }} }}
            "#,
            web.url(B, "/calendar/")
        ))
        .seed(web.url(A, "/"))
        .seed(web.url(B, "/"))
        .run()
        .await
        .finished();
    let expected = [
        (A, "/"),
        (A, "/calendar/"),
        (A, "/s.css"),
        (B, "/"),
        (B, "/i.png"),
        (B, "/s.css"),
    ];
    assert_eq!(
        asked(&web),
        expected.map(|(host, target)| format!("{host} {target}"))
    );
}

/// An override by media type is known before the second visit, so that the request can be conditional.
#[tokio::test]
async fn extractors_by_media_type_do_not_cost_a_server_whole_bodies() {
    let web = hosts(&[A], 0, &html("a page").with("etag", "\"v1\""))
        .serve()
        .await;
    revisiting()
        .profile(
            r#"
            [[override]]
            match.media-type = ["text/html"]
            stacks.extract = { without = ["js"] }
            "#,
        )
        .seed(web.url(A, "/1.html"))
        .run_until("two visits", || visits(&web, "/1.html") >= 2)
        .await;
    let requests = web.requests();
    let second = requests
        .iter()
        .filter(|seen| seen.target == "/1.html")
        .nth(1)
        .unwrap();
    assert_eq!(second.headers.get("if-none-match").unwrap(), "\"v1\"");
}

#[tokio::test]
async fn a_filter_among_the_extractors_of_an_override_is_a_fault_and_nothing_is_created() {
    let story = crawl()
        .profile(
            r#"
            [[override]]
            match.host = ["a.localhost"]
            stacks.extract = { before = ["hops"] }
            "#,
        )
        .seed("http://a.localhost/");
    let refused = story.begin().err().map(|error| error.to_string());
    assert!(
        refused.as_ref().is_some_and(|why| why.contains("hops")),
        "{refused:?}"
    );
    assert!(!story.job().exists());
}

#[tokio::test]
async fn headers_are_those_of_the_site() {
    let web = hosts(&[A, B], 1, &html("a page")).serve().await;
    crawl()
        .profile(
            r#"
            fetch.headers = { X-Crawl = "ours", Accept-Language = "en" }
            [[override]]
            match.host = ["a.localhost"]
            fetch = { headers = { Accept-Language = "cy", X-Crawl = "" }, accept-encoding = "" }
            "#,
        )
        .seed(web.url(A, "/"))
        .seed(web.url(B, "/"))
        .run()
        .await
        .finished();
    for seen in web.requests() {
        let header = |name| {
            seen.headers
                .get(name)
                .map(|it| it.to_str().unwrap().to_owned())
        };
        let found = ["accept-language", "x-crawl", "accept-encoding"].map(header);
        let found = found.each_ref().map(Option::as_deref);
        let expected = match seen.host == A {
            true => [Some("cy"), None, None],
            false => [Some("en"), Some("ours"), Some("gzip, br")],
        };
        assert_eq!(found, expected, "{seen:?}");
    }
}

//! `[[override]]`: settings for some sites.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use opilio_stories::{asked, crawl, html, pauses};
use opilio_test_web::Reply;

use crate::many::{A, B, hosts, ms};
use crate::revisits::{revisiting, visits};

#[tokio::test]
async fn pages_with_the_snapshot_strategy_are_visited_once() {
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
    let result = revisiting()
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
        let line = result.sole(&web.url(A, target));
        assert!(!line.notes("wt:"), "no next visit: {line:?}");
    }
}

/// Wait evaluators would choose shorter and shorter waits for this page, which changes at every visit.
#[tokio::test]
async fn a_fixed_wait_does_not_depend_on_changes() {
    let web = hosts(&[A], 0, &html("a page"))
        .answer("/", |seen| html(&format!("version {}", seen.visit)))
        .serve()
        .await;
    let result = revisiting()
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
    for line in result.of(&web.url(A, "/")) {
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
async fn overrides_by_time_of_day_apply_only_at_that_time() {
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
    let result = crawl()
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
    assert_eq!(result.sole(&web.url(A, "/private.html")).status, 200);
    assert_eq!(result.sole(&web.url(B, "/private.html")).status, -9998);
    let pauses = pauses(&web, |seen| seen.host == A);
    assert_eq!(pauses.len(), 2);
    assert!(pauses.iter().all(|pause| *pause >= ms(60)), "{pauses:?}");
}

/// Style sheets name pictures. One host has no extractor for style sheets; on the other, one page is out of scope.
#[tokio::test]
async fn overrides_change_extractors_and_scope_of_a_host() {
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

/// Before the second visit, the media type is known and the override applies, so the request is conditional.
#[tokio::test]
async fn revisits_with_extractors_by_media_type_are_conditional() {
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
async fn a_filter_among_the_extractors_of_an_override_is_an_error_of_the_profile() {
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
async fn overrides_change_request_headers() {
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

//! Politeness delays: their length and the queues that they apply to, also across restarts.

use std::time::Duration;

use opilio_stories::{at_once, crawl, html, last_goes_first, never_content, never_waits, pauses};
use opilio_test_web::Reply;

use crate::many::{A, B, hosts, in_order, ms};

#[tokio::test]
async fn a_politeness_delay_applies_only_to_the_hosts_of_its_override() {
    let web = hosts(&[A, B], 5, &html("a page")).serve().await;
    crawl()
        .profile(
            r#"
            [[override]]
            match.host = ["a.localhost"]
            politeness = { min-delay = "100ms", max-delay = "100ms" }
            "#,
        )
        .seed(web.url(A, "/"))
        .seed(web.url(B, "/"))
        .run()
        .await
        .finished();
    let pauses = pauses(&web, |seen| seen.host == A);
    assert_eq!(pauses.len(), 6);
    assert!(pauses.iter().all(|pause| *pause >= ms(100)), "{pauses:?}");
    let hosts: Vec<_> = web
        .requests()
        .iter()
        .map(|seen| seen.host.clone())
        .collect();
    let last_of_b = hosts.iter().rposition(|host| host == B);
    let last_of_a = hosts.iter().rposition(|host| host == A);
    assert!(last_of_b < last_of_a, "{hosts:?}");
}

#[tokio::test]
async fn crawl_delays_are_obeyed_up_to_crawl_delay_max() {
    let rules = |delay: &str| {
        Reply::ok(
            "text/plain",
            format!("User-agent: *\nCrawl-delay: {delay}\n"),
        )
    };
    let web = hosts(&[A, B], 3, &html("a page"))
        .and(A)
        .page("/robots.txt", rules("0.06"))
        .and(B)
        .page("/robots.txt", rules("3600"))
        .serve()
        .await;
    crawl()
        .profile("[politeness]\ncrawl-delay-max = \"120ms\"")
        .seed(web.url(A, "/"))
        .seed(web.url(B, "/"))
        .run()
        .await
        .finished();
    for (host, delay) in [(A, ms(60)), (B, ms(120))] {
        let pauses = pauses(&web, |seen| seen.host == host);
        assert_eq!(pauses.len(), 4);
        assert!(
            pauses.iter().all(|pause| *pause >= delay),
            "{host}: {pauses:?}"
        );
    }
}

#[tokio::test]
async fn retry_after_applies_to_the_whole_host_and_across_a_stop() {
    let web = hosts(&[A], 3, &html("a page"))
        .answer("/1.html", |seen| match seen.visit {
            1 => Reply::status(429).with("retry-after", "1"),
            _ => html("a page"),
        })
        .serve()
        .await;
    let story = crawl().profile("workers = 1").seed(web.url(A, "/"));
    story
        .run_until("the refusal", || in_order(&web).len() >= 2)
        .await;
    assert_eq!(in_order(&web).len(), 2, "no request follows the refusal");
    let result = story.run().await.finished();
    assert_eq!(result.sole(&web.url(A, "/1.html")).status, 200);
    let pauses = pauses(&web, |seen| seen.target != "/robots.txt");
    assert!(pauses[1] >= Duration::from_secs(1), "{pauses:?}");
    assert_eq!(pauses.len(), 4);
}

/// Every request to the failing host takes until the response timeout.
#[tokio::test]
async fn a_failing_host_gets_one_request_at_a_time_and_does_not_delay_others() {
    let never = html("never").taking(Duration::from_secs(3600));
    let web = hosts(&[B], 10, &html("a page"))
        .and(A)
        .rest(move |_| never.clone())
        .serve()
        .await;
    let links = [1, 2, 3].map(|n| web.url(A, &format!("/{n}.html")));
    let mut story = crawl()
        .profile(
            r#"
            workers = 4
            queue.valence = 3
            retry = { max-retries = 2, delay = "200ms" }
            [[override]]
            match.host = ["a.localhost"]
            fetch.response-timeout = "2s"
            "#,
        )
        .seed(web.url(B, "/"));
    for link in &links {
        story = story.seed(link.clone());
    }
    let result = story.run().await.finished();
    assert_eq!(at_once(&web, |seen| seen.host == A), 1);
    let requests = web.requests();
    let probes: Vec<_> = requests.iter().filter(|seen| seen.host == A).collect();
    let targets: Vec<_> = probes.iter().map(|seen| seen.target.as_str()).collect();
    assert_eq!(targets, ["/robots.txt"; 3], "once and two retries");
    // The response timeout and the back-off, which doubles.
    assert!(
        probes[1].came - probes[0].came >= ms(2000 + 200),
        "{probes:?}"
    );
    assert!(
        probes[2].came - probes[1].came >= ms(2000 + 400),
        "{probes:?}"
    );
    for link in &links {
        assert_eq!(result.sole(link).status, -61);
    }
    let others = requests.iter().filter(|seen| seen.host == B);
    assert!(others.clone().count() > 10);
    for other in others {
        assert!(other.came < probes[1].came, "{requests:?}");
    }
}

/// The minimum delay of the profile applies even with a wait of 0 and the first rank.
#[tokio::test]
async fn no_plugin_shortens_the_politeness_delay() {
    let web = hosts(&[A], 3, &html("a page")).serve().await;
    crawl()
        .plugin("never-waits", &never_waits())
        .plugin("ranks", &last_goes_first())
        .profile(
            r#"
            strategy = "revisit"
            politeness = { min-delay = "80ms", max-delay = "80ms" }
            revisit = { default-wait = "1ms", min-wait = "1ms", max-wait = "1s" }
            stacks = { wait = ["never-waits"], precedence = ["ranks"] }
            "#,
        )
        .seed(web.url(A, "/"))
        .run_until("every page was fetched twice", || {
            in_order(&web).len() >= 12
        })
        .await;
    let pauses = pauses(&web, |_| true);
    assert!(pauses.len() >= 11, "{pauses:?}");
    assert!(pauses.iter().all(|pause| *pause >= ms(80)), "{pauses:?}");
}

#[tokio::test]
async fn retries_of_a_filter_are_polite_and_limited() {
    let web = hosts(&[A], 3, &html("a page"))
        .page("/robots.txt", Reply::status(404))
        .serve()
        .await;
    let seeds = ["/1.html", "/2.html", "/3.html"].map(|target| web.url(A, target));
    let story = crawl().plugin("never-content", &never_content()).profile(
        r#"
        politeness = { min-delay = "80ms", max-delay = "80ms" }
        stacks.post-fetch = ["never-content"]
        "#,
    );
    let story = seeds.iter().fold(story, |story, seed| story.seed(seed));
    let result = story.run().await.finished();
    let pauses = pauses(&web, |_| true);
    assert!(pauses.iter().all(|pause| *pause >= ms(80)), "{pauses:?}");
    // In log, frontier and archive, the URIs and robots.txt have failed, and the last responses are archived.
    let known = &result.summary.progress.statistics;
    assert_eq!(known.failed, 4, "{known:?}");
    for seed in &seeds {
        let line = result.sole(seed);
        assert_eq!(line.status, -8, "{line:?}");
        assert_eq!(result.record("response", seed).status(), 200);
        assert!(
            line.notes("retriesExhausted:never-content:") && line.notes("os200"),
            "{line:?}"
        );
        assert!(line.notes("3t") && line.digest != "-", "{line:?}");
        let metadata = result.record("metadata", seed).text();
        assert!(
            metadata.contains("retriesExhausted:never-content:"),
            "{metadata}"
        );
        let requests = in_order(&web).into_iter();
        let target = seed.rsplit_once('/').unwrap().1;
        let times = requests.filter(|request| request.ends_with(target)).count();
        assert_eq!(times, 3, "once, and two retries: {:?}", result.log);
    }
}

//! Budgets and quotas.

use opilio_stories::{FinishedCrawl, asked, crawl, html};
use opilio_test_web::{Reply, Web};

use crate::many::{A, B, C, hosts, requests_to};

#[tokio::test]
async fn a_spent_budget_retires_a_queue_and_a_larger_one_reactivates_it() {
    let web = hosts(&[A, B], 9, &html("a page")).serve().await;
    let story = crawl()
        .profile(
            r#"
            [[override]]
            match.host = ["a.localhost"]
            queue.budget = 5
            "#,
        )
        .seed(web.url(A, "/"))
        .seed(web.url(B, "/"));
    let result = story.run().await.finished();
    assert_eq!((requests_to(&web, A), requests_to(&web, B)), (5, 10));
    assert_eq!(result.summary.progress.statistics.queued, 5);

    story.amend(
        r#"
        [[override]]
        match.host = ["a.localhost"]
        queue.budget = 1000
        "#,
    );
    let result = story.run().await.finished();
    let mut expected: Vec<_> = (1..=9)
        .flat_map(|n| [A, B].map(|host| format!("{host} /{n}.html")))
        .chain([A, B].map(|host| format!("{host} /")))
        .collect();
    expected.sort();
    assert_eq!(asked(&web), expected, "each page once");
    assert_eq!(result.summary.progress.statistics.queued, 0);
}

/// Asserts that each group of hosts had this number of requests, and that `beyond` further URIs are in the log with this
/// annotation.
#[track_caller]
fn check(
    web: &Web,
    result: &FinishedCrawl,
    quotas: &[(&[&str], usize)],
    beyond: usize,
    annotation: &str,
) {
    for (hosts, quota) in quotas {
        let requests: usize = hosts.iter().map(|host| requests_to(web, host)).sum();
        assert_eq!(requests, *quota, "{hosts:?}: {:#?}", result.statuses());
    }
    let refused: Vec<_> = result
        .log
        .iter()
        .filter(|line| line.status == -5003)
        .collect();
    assert_eq!(refused.len(), beyond);
    for line in refused {
        assert_eq!(line.annotations, [annotation], "{line:?}");
    }
}

#[tokio::test]
async fn a_hosts_quota_is_not_exceeded_by_concurrent_fetches() {
    let web = hosts(&[A, B], 9, &html("a page")).serve().await;
    let result = crawl()
        .profile(
            r#"
            workers = 8
            queue.valence = 4
            quotas.host.fetched = 4
            [[override]]
            match.host = ["b.localhost"]
            quotas.host.fetched = 7
            "#,
        )
        .seed(web.url(A, "/"))
        .seed(web.url(B, "/"))
        .run()
        .await
        .finished();
    check(
        &web,
        &result,
        &[(&[A], 4), (&[B], 7)],
        6 + 3,
        "quota:host:fetched",
    );
}

#[tokio::test]
async fn a_domains_quota_counts_its_hosts_together() {
    let (one, other) = ("one.story.localhost", "other.story.localhost");
    let web = hosts(&[one, other, A], 5, &html("a page")).serve().await;
    let result = crawl()
        .profile("workers = 8\nqueue.valence = 4\nquotas.domain.fetched = 7")
        .seed(web.url(one, "/"))
        .seed(web.url(other, "/"))
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    check(
        &web,
        &result,
        &[(&[one, other], 7), (&[A], 6)],
        5,
        "quota:domain:fetched",
    );
}

/// All URIs of host B were found from the seed on host A.
#[tokio::test]
async fn a_sources_quota_counts_uris_found_from_its_seed() {
    let web = hosts(&[A, B, C], 5, &html("a page"))
        .and(A)
        .answer("/1.html", |seen| {
            let port = seen.headers["host"]
                .to_str()
                .unwrap()
                .rsplit_once(':')
                .unwrap()
                .1;
            Reply::html(format!("<a href='http://{B}:{port}/'>B</a>"))
        })
        .serve()
        .await;
    let result = crawl()
        .profile("workers = 8\nqueue.valence = 4\nquotas.source.fetched = 6")
        .seed(web.url(A, "/"))
        .seed(format!("+{}", web.url(B, "/")))
        .seed(web.url(C, "/"))
        .run()
        .await
        .finished();
    let beyond = result
        .log
        .iter()
        .filter(|line| line.status == -5003)
        .count();
    assert!(beyond > 0);
    check(
        &web,
        &result,
        &[(&[A, B], 6), (&[C], 6)],
        beyond,
        "quota:source:fetched",
    );
}

#[tokio::test]
async fn one_document_may_exceed_a_quota_of_bytes() {
    let web = hosts(&[A], 9, &Reply::ok("image/png", vec![0; 1000]))
        .serve()
        .await;
    let result = crawl()
        .profile("quotas.host.bytes = \"4KiB\"")
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    // A front page of some hundred bytes and four pictures of 1,000 bytes exceed 4,096 bytes.
    check(&web, &result, &[(&[A], 5)], 5, "quota:host:bytes");
}

#[tokio::test]
async fn uris_beyond_a_quota_of_run_time_have_status_minus_5004() {
    let web = hosts(&[A], 40, &html("a page")).serve().await;
    let result = crawl()
        .profile("workers = 1\nquotas.host.run-time = '1ms'")
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    let over: Vec<_> = result
        .log
        .iter()
        .filter(|line| line.status == -5004)
        .collect();
    assert!(!over.is_empty(), "{:#?}", result.log);
    for line in over {
        assert_eq!(line.annotations, ["quota:host:run-time"], "{line:?}");
    }
}

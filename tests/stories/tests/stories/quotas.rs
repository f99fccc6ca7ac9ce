//! Budgets and quotas: how much of a site is enough.

use opilio_stories::{FinishedCrawl, asked, crawl, html};
use opilio_test_web::{Reply, Web};

use crate::many::{A, B, C, asked_of, hosts};

#[tokio::test]
async fn a_spent_budget_retires_a_queue_and_a_raised_one_brings_it_back() {
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
    let told = story.run().await.finished();
    assert_eq!((asked_of(&web, A), asked_of(&web, B)), (5, 10));
    assert_eq!(told.summary.progress.statistics.queued, 5);

    story.amend(
        r#"
        [[override]]
        match.host = ["a.localhost"]
        queue.budget = 1000
        "#,
    );
    let told = story.run().await.finished();
    let mut whole: Vec<_> = (1..=9)
        .flat_map(|n| [A, B].map(|host| format!("{host} /{n}.html")))
        .chain([A, B].map(|host| format!("{host} /")))
        .collect();
    whole.sort();
    assert_eq!(asked(&web), whole, "each page once");
    assert_eq!(told.summary.progress.statistics.queued, 0);
}

/// The hosts and how much may be asked of each; what is beyond is in the log with this annotation.
#[track_caller]
fn check(
    web: &Web,
    told: &FinishedCrawl,
    enough: &[(&[&str], usize)],
    beyond: usize,
    annotation: &str,
) {
    for (hosts, enough) in enough {
        let asked: usize = hosts.iter().map(|host| asked_of(web, host)).sum();
        assert_eq!(asked, *enough, "{hosts:?}: {:#?}", told.statuses());
    }
    let refused: Vec<_> = told
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
async fn a_hosts_quota_is_never_exceeded_however_many_fetch_at_once() {
    let web = hosts(&[A, B], 9, &html("a page")).serve().await;
    let told = crawl()
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
        &told,
        &[(&[A], 4), (&[B], 7)],
        6 + 3,
        "quota:host:fetched",
    );
}

#[tokio::test]
async fn a_domains_quota_counts_its_hosts_together() {
    let (one, other) = ("one.story.localhost", "other.story.localhost");
    let web = hosts(&[one, other, A], 5, &html("a page")).serve().await;
    let told = crawl()
        .profile("workers = 8\nqueue.valence = 4\nquotas.domain.fetched = 7")
        .seed(web.url(one, "/"))
        .seed(web.url(other, "/"))
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    check(
        &web,
        &told,
        &[(&[one, other], 7), (&[A], 6)],
        5,
        "quota:domain:fetched",
    );
}

/// All of one host was found from the seed on another.
#[tokio::test]
async fn a_sources_quota_counts_what_was_found_from_its_seed() {
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
    let told = crawl()
        .profile("workers = 8\nqueue.valence = 4\nquotas.source.fetched = 6")
        .seed(web.url(A, "/"))
        .seed(format!("+{}", web.url(B, "/")))
        .seed(web.url(C, "/"))
        .run()
        .await
        .finished();
    let beyond = told.log.iter().filter(|line| line.status == -5003).count();
    assert!(beyond > 0);
    check(
        &web,
        &told,
        &[(&[A, B], 6), (&[C], 6)],
        beyond,
        "quota:source:fetched",
    );
}

#[tokio::test]
async fn bytes_are_counted_with_the_document_that_crosses_the_limit() {
    let web = hosts(&[A], 9, &Reply::ok("image/png", vec![0; 1000]))
        .serve()
        .await;
    let told = crawl()
        .profile("quotas.host.bytes = \"4KiB\"")
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    // A front page of some hundred bytes and four pictures are more than 4,096.
    check(&web, &told, &[(&[A], 5)], 5, "quota:host:bytes");
}

#[tokio::test]
async fn what_is_past_a_quota_of_time_has_minus_5004() {
    let web = hosts(&[A], 40, &html("a page")).serve().await;
    let told = crawl()
        .profile("workers = 1\nquotas.host.run-time = '1ms'")
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    let over: Vec<_> = told
        .log
        .iter()
        .filter(|line| line.status == -5004)
        .collect();
    assert!(!over.is_empty(), "{:#?}", told.log);
    for line in over {
        assert_eq!(line.annotations, ["quota:host:run-time"], "{line:?}");
    }
}

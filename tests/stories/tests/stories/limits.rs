//! Limits of a crawl.

use std::time::Duration;

use opilio_crawl::End;
use opilio_stories::{FinishedCrawl, Story, crawl, html};
use opilio_test_web::{Reply, Web};

use crate::many::{A, B, hosts, ms, requests_to};
use crate::revisits::revisiting;

/// Returns the number of lines of the log about documents.
fn documents(result: &FinishedCrawl) -> usize {
    result
        .log
        .iter()
        .filter(|line| line.status > 1 && !line.uri.ends_with("/robots.txt"))
        .count()
}

fn on(story: Story, web: &Web, limit: &str) -> Story {
    story
        .profile("workers = 4\nqueue.valence = 4")
        .profile(limit)
        .seed(web.url(A, "/"))
}

/// DNS look-ups and robots.txt do not count.
#[tokio::test]
async fn responses_of_any_status_count_towards_limits() {
    for limit in ["fetched", "succeeded"] {
        let web = hosts(&[A], 9, &Reply::status(404)).serve().await;
        let story = on(crawl(), &web, &format!("limits.{limit} = 4"));
        let result = story.run().await;
        assert_eq!(result.summary.end, End::DocumentLimit, "{limit}");
        assert_eq!(documents(&result), 4, "{limit}: {:#?}", result.log);
        let result = story.run().await;
        assert_eq!(documents(&result), 8, "limits apply to each run");
    }
}

/// A limit, in contrast, applies to each run.
#[tokio::test]
async fn a_quota_of_the_crawl_counts_over_all_runs() {
    let web = hosts(&[A], 9, &html("a page")).serve().await;
    let story = on(crawl(), &web, "quotas.crawl.fetched = 4");
    for _ in 0..2 {
        let result = story.run().await;
        assert_eq!(result.summary.end, End::Quota("fetched"));
        assert_eq!(documents(&result), 4, "{:#?}", result.log);
    }
}

/// One page changes with every visit, the others never.
#[tokio::test]
async fn a_limit_of_novel_documents_counts_new_and_changed_ones() {
    let web = hosts(&[A], 3, &html("a page"))
        .answer("/1.html", |seen| html(&format!("version {}", seen.visit)))
        .serve()
        .await;
    let result = on(revisiting(), &web, "limits.novel-documents = 12")
        .run()
        .await;
    assert_eq!(result.summary.end, End::DocumentLimit);
    let novel = result
        .log
        .iter()
        .filter(|line| !line.notes("unchanged"))
        .count();
    assert!(
        (12..12 + 4).contains(&novel),
        "URIs in process are finished: {:#?}",
        result.log
    );
}

#[tokio::test]
async fn a_limit_of_novel_bytes_counts_new_and_changed_ones() {
    let web = hosts(&[A], 9, &Reply::ok("image/png", vec![7; 10_000]))
        .serve()
        .await;
    let result = on(crawl(), &web, "limits.novel-bytes = \"30KiB\"")
        .run()
        .await;
    assert_eq!(result.summary.end, End::ByteLimit);
    let fetched = requests_to(&web, A);
    assert!(
        (5..5 + 4).contains(&fetched),
        "URIs in process are finished: {fetched}"
    );
}

/// URIs in process are finished, and nothing else exceeds the limit.
#[tokio::test]
async fn bandwidth_is_limited_over_all_hosts() {
    let web = hosts(&[A, B], 4, &Reply::ok("image/png", vec![7; 20_000]))
        .serve()
        .await;
    let result = crawl()
        .profile("limits.bandwidth = \"200KiB\"")
        .seed(web.url(A, "/"))
        .seed(web.url(B, "/"))
        .run()
        .await
        .finished();
    assert_eq!(documents(&result), 10);
    let requests = web.requests();
    let first = requests[0].came;
    let mut taken = 0;
    for seen in &requests {
        // One response of each host may be in flight.
        let allowed = 204.8 * (seen.came - first + ms(1)).as_millis() as f64 + 2.0 * 20_500.0;
        assert!(
            f64::from(taken) <= allowed,
            "{taken} bytes by {:?}",
            seen.came - first
        );
        if seen.target.ends_with("/1.html") || seen.target.len() > 2 && seen.target != "/robots.txt"
        {
            taken += 20_000;
        }
    }
    assert!(
        result.summary.progress.elapsed >= Duration::from_millis(600),
        "{:?}",
        result.summary.progress.elapsed
    );
}

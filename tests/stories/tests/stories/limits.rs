//! Limits of a crawl.

use std::time::Duration;

use opilio_crawl::End;
use opilio_stories::{FinishedCrawl, Story, crawl, html};
use opilio_test_web::{Reply, Web};

use crate::many::{A, B, asked_of, hosts, ms};
use crate::revisits::revisiting;

/// The lines of the log that are about documents.
fn documents(told: &FinishedCrawl) -> usize {
    told.log
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

/// The look-up of the address and robots.txt do not count.
#[tokio::test]
async fn answers_of_any_status_count() {
    for limit in ["fetched", "succeeded"] {
        let web = hosts(&[A], 9, &Reply::status(404)).serve().await;
        let story = on(crawl(), &web, &format!("limits.{limit} = 4"));
        let told = story.run().await;
        assert_eq!(told.summary.end, End::DocumentLimit, "{limit}");
        assert_eq!(documents(&told), 4, "{limit}: {:#?}", told.log);
        let told = story.run().await;
        assert_eq!(documents(&told), 8, "limits begin anew with each run");
    }
}

/// Unlike a limit, which counts for one run.
#[tokio::test]
async fn a_quota_of_the_crawl_counts_over_all_runs() {
    let web = hosts(&[A], 9, &html("a page")).serve().await;
    let story = on(crawl(), &web, "quotas.crawl.fetched = 4");
    for _ in 0..2 {
        let told = story.run().await;
        assert_eq!(told.summary.end, End::Quota("fetched"));
        assert_eq!(documents(&told), 4, "{:#?}", told.log);
    }
}

/// One page changes with every visit, the others never.
#[tokio::test]
async fn documents_that_are_new_or_changed_count() {
    let web = hosts(&[A], 3, &html("a page"))
        .answer("/1.html", |seen| html(&format!("version {}", seen.visit)))
        .serve()
        .await;
    let told = on(revisiting(), &web, "limits.novel-documents = 12")
        .run()
        .await;
    assert_eq!(told.summary.end, End::DocumentLimit);
    let novel = told
        .log
        .iter()
        .filter(|line| !line.notes("unchanged"))
        .count();
    assert!(
        (12..12 + 4).contains(&novel),
        "what is in process is finished: {:#?}",
        told.log
    );
}

#[tokio::test]
async fn bytes_that_are_new_or_changed_count() {
    let web = hosts(&[A], 9, &Reply::ok("image/png", vec![7; 10_000]))
        .serve()
        .await;
    let told = on(crawl(), &web, "limits.novel-bytes = \"30KiB\"")
        .run()
        .await;
    assert_eq!(told.summary.end, End::ByteLimit);
    let fetched = asked_of(&web, A);
    assert!(
        (5..5 + 4).contains(&fetched),
        "what is in process is finished: {fetched}"
    );
}

/// URIs in process are finished, and nothing else exceeds the limit.
#[tokio::test]
async fn bandwidth_holds_for_all_hosts_together() {
    let web = hosts(&[A, B], 4, &Reply::ok("image/png", vec![7; 20_000]))
        .serve()
        .await;
    let told = crawl()
        .profile("limits.bandwidth = \"200KiB\"")
        .seed(web.url(A, "/"))
        .seed(web.url(B, "/"))
        .run()
        .await
        .finished();
    assert_eq!(documents(&told), 10);
    let requests = web.requests();
    let first = requests[0].came;
    let mut taken = 0;
    for seen in &requests {
        // Two may be in flight, one of each host.
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
        told.summary.progress.elapsed >= Duration::from_millis(600),
        "{:?}",
        told.summary.progress.elapsed
    );
}

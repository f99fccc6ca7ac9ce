//! Queues: delays and overlap of fetches within queues and server groups.

use opilio_stories::{at_once, crawl, html, pauses};
use opilio_test_web::Gate;

use crate::many::{A, B, C, hosts, ms};

#[tokio::test]
async fn hosts_in_one_queue_share_its_delay_and_never_overlap() {
    let web = hosts(&[A, B], 4, &html("a page").taking(ms(10)))
        .serve()
        .await;
    crawl()
        .profile(
            r#"
            [[override]]
            match.host = ["a.localhost", "b.localhost"]
            queue.name = "together"
            [[override]]
            match.queue = ["together"]
            politeness = { min-delay = "40ms", max-delay = "40ms" }
            "#,
        )
        .seed(web.url(A, "/"))
        .seed(web.url(B, "/"))
        .run()
        .await
        .finished();
    let pauses = pauses(&web, |_| true);
    assert_eq!(
        pauses.len(),
        11,
        "robots.txt, the front page and four pages of each"
    );
    assert!(pauses.iter().all(|pause| *pause >= ms(40)), "{pauses:?}");
}

#[tokio::test]
async fn parallel_queues_limit_concurrent_fetches_of_a_host() {
    let page = html("a page").behind(&Gate::of(3)).taking(ms(20));
    let web = hosts(&[A], 30, &page).serve().await;
    crawl()
        .profile("workers = 8\nfrontier.parallel-queues = 3")
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    assert_eq!(at_once(&web, |_| true), 3);
}

#[tokio::test]
async fn a_valence_of_three_allows_three_concurrent_requests() {
    let three = html("a page").behind(&Gate::of(3)).taking(ms(20));
    let web = hosts(&[A, B], 12, &html("a page").taking(ms(20)))
        .and(A)
        .rest(move |_| three.clone())
        .serve()
        .await;
    crawl()
        .profile(
            r#"
            workers = 8
            [[override]]
            match.host = ["a.localhost"]
            queue.valence = 3
            "#,
        )
        .seed(web.url(A, "/"))
        .seed(web.url(B, "/"))
        .run()
        .await
        .finished();
    assert_eq!(at_once(&web, |seen| seen.host == A), 3);
    assert_eq!(at_once(&web, |seen| seen.host == B), 1);
}

/// Checks a group of two hosts. A third host is not in the group: the gate opens only when a page of it and a page of the group are
/// in flight at the same time.
async fn check_group(group: &str) {
    let gate = Gate::of(2);
    let web = hosts(&[A, B, C], 3, &html("a page").taking(ms(10)))
        .and(A)
        .page("/1.html", html("a page").behind(&gate))
        .and(C)
        .page("/1.html", html("a page").behind(&gate))
        .serve()
        .await;
    crawl()
        .profile(&format!(
            r#"
            workers = 8
            [group]
            min-delay = "40ms"
            [[override]]
            match.host = ["a.localhost", "b.localhost"]
            queue.group = "{group}"
            "#
        ))
        .seed(web.url(A, "/"))
        .seed(web.url(B, "/"))
        .seed(web.url(C, "/"))
        .run()
        .await
        .finished();
    let pauses = pauses(&web, |seen| seen.host != C);
    assert_eq!(
        pauses.len(),
        9,
        "robots.txt, the front page and three pages of each"
    );
    assert!(pauses.iter().all(|pause| *pause >= ms(40)), "{pauses:?}");
}

#[tokio::test]
async fn hosts_on_one_address_share_a_delay_and_never_overlap() {
    check_group("address").await;
}

#[tokio::test]
async fn hosts_of_a_server_group_share_a_delay_and_never_overlap() {
    check_group("hosting").await;
}

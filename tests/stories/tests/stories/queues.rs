//! Queues: who waits for whom, and who does not.

use opilio_stories::{at_once, crawl, html, rests};
use opilio_test_web::Gate;

use crate::many::{A, B, C, hosts, ms};

#[tokio::test]
async fn two_hosts_in_one_queue_never_overlap_and_rest_between_each_other() {
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
    let rests = rests(&web, |_| true);
    assert_eq!(
        rests.len(),
        11,
        "robots.txt, the front page and four pages of each"
    );
    assert!(rests.iter().all(|rest| *rest >= ms(40)), "{rests:?}");
}

#[tokio::test]
async fn parallel_queues_fetch_a_host_at_as_many_places_at_once_and_no_more() {
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
async fn a_valence_of_three_lets_three_requests_overlap_and_never_four() {
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

/// A third host stands outside of the group: a page of it is at the server together with one of theirs, or both would
/// wait at the gate in vain.
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
    let rests = rests(&web, |seen| seen.host != C);
    assert_eq!(
        rests.len(),
        9,
        "robots.txt, the front page and three pages of each"
    );
    assert!(rests.iter().all(|rest| *rest >= ms(40)), "{rests:?}");
}

#[tokio::test]
async fn hosts_on_one_address_never_overlap_and_rest_between_each_other() {
    check_group("address").await;
}

#[tokio::test]
async fn hosts_of_a_group_never_overlap_and_rest_between_each_other() {
    check_group("hosting").await;
}

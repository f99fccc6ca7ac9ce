//! Precedence plugins: the order of a page's links, and of queues.

use jiff::Timestamp;
use opilio_frontier::{Frontier, FrontierConfig};
use opilio_stories::{
    Misdeed, crawl, html, last_goes_first, precedence, ranks_extreme_queues, site,
};
use opilio_test_web::{Reply, Web};

use crate::many::{A, B, hosts, in_order};

async fn web() -> Web {
    hosts(&[A], 4, &html("a page")).serve().await
}

const AS_FOUND: [&str; 5] = ["/", "/1.html", "/2.html", "/3.html", "/4.html"];

fn targets(of: &[&str]) -> Vec<String> {
    of.iter().map(|target| format!("{A} {target}")).collect()
}

#[tokio::test]
async fn a_plugin_ranks_the_links_of_a_page() {
    let web = web().await;
    crawl()
        .plugin("last", &last_goes_first())
        .profile("workers = 1\nstacks.precedence = ['last']")
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    assert_eq!(
        in_order(&web),
        targets(&["/", "/4.html", "/3.html", "/2.html", "/1.html"])
    );
}

#[tokio::test]
async fn a_failing_plugin_leaves_the_order_of_the_profile() {
    let web = web().await;
    let result = crawl()
        .plugin("bad", &precedence(Misdeed::Traps))
        .profile("workers = 1\nstacks.precedence = ['bad']")
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    assert_eq!(in_order(&web), targets(&AS_FOUND));
    let errors = result.log_file("runtime-errors.log");
    assert!(errors.contains(" bad trap "), "{errors}");
}

/// The front page links to `first` and gives it a low rank, because further links follow it. The page `again`, found later, links
/// only to `first` and gives it a high rank.
#[tokio::test]
async fn a_link_found_again_with_a_higher_rank_moves_forward() {
    let web = site(A)
        .page("/robots.txt", Reply::status(404))
        // Ranks 4 to 1: `again` is fetched at once and ranks `first` 1, before the others.
        .page(
            "/",
            html("<a href=/first>1</a> <a href=/b>2</a> <a href=/c>3</a> <a href=/again>4</a>"),
        )
        .page("/again", html("<a href=/first>1</a>"))
        .rest(|_| html("a page"))
        .serve()
        .await;
    crawl()
        .plugin("last", &last_goes_first())
        .profile("workers = 1\nstacks.precedence = ['last']")
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    assert_eq!(
        in_order(&web),
        targets(&["/", "/again", "/first", "/c", "/b"])
    );
}

/// With a valence of two, each queue has a slot without a delay when the only worker is idle again.
#[tokio::test]
async fn a_plugin_ranks_queues() {
    let web = hosts(&[A, B], 5, &html("a page")).serve().await;
    crawl()
        .plugin("last", &last_goes_first())
        .profile("workers = 1\nqueue.valence = 2\nstacks.precedence = ['last']")
        .seed(web.url(A, "/"))
        .seed(web.url(B, "/"))
        .run()
        .await
        .finished();
    let order: Vec<_> = web.requests().into_iter().map(|seen| seen.host).collect();
    // Both queues are new at the first fetch. From then on, all of B is fetched before the rest of A.
    let last_of_b = order.iter().rposition(|host| host == B).unwrap();
    let before: Vec<_> = order[..last_of_b]
        .iter()
        .filter(|host| *host == A)
        .collect();
    assert!(before.len() <= 2, "{order:?}");
}

/// Queues are ranked when they are new, and after each 20 visits. Here the plugin fails after the first 20, and its breaker leaves
/// it out after the next 20.
#[tokio::test]
async fn a_queue_keeps_its_rank_while_its_plugin_fails_or_is_left_out() {
    let web = hosts(&[A], 50, &html("a page")).serve().await;
    let result = crawl()
        .plugin("extreme", &ranks_extreme_queues())
        .profile("workers = 1\nstacks.precedence = ['extreme']")
        .profile("plugins.extreme.breaker = { faults = 1, calls = 1, skip-for = '1h' }")
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    let errors = result.log_file("runtime-errors.log");
    assert_eq!(errors.matches(" extreme trap ").count(), 1, "{errors}");
    let state = result.job().join("state");
    let frontier = Frontier::open(&state, FrontierConfig::default()).unwrap();
    let queues = frontier.queues(None, 10, Timestamp::now()).unwrap();
    let of_host = queues
        .iter()
        .find(|queue| queue.queue.starts_with("localhost,a,"));
    assert_eq!(of_host.unwrap().precedence, b'{' - b'a');
}

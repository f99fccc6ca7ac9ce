//! Precedence plugins: what goes first, by a page's links and by queues.

use opilio_stories::{Misdeed, crawl, html, last_goes_first, precedence, site};
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
async fn a_plugin_says_which_links_of_a_page_go_first() {
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
async fn a_plugin_that_fails_leaves_the_order_of_the_profile() {
    let web = web().await;
    let told = crawl()
        .plugin("bad", &precedence(Misdeed::Traps))
        .profile("workers = 1\nstacks.precedence = ['bad']")
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    assert_eq!(in_order(&web), targets(&AS_FOUND));
    let errors = told.log_file("runtime-errors.log");
    assert!(errors.contains(" bad trap "), "{errors}");
}

/// A page that lists `first`, with as many links behind it as it takes to give it a low rank, is found before one that
/// lists it alone.
#[tokio::test]
async fn a_link_found_again_in_a_better_place_moves_forward() {
    let web = site(A)
        .page("/robots.txt", Reply::status(404))
        // Ranks 4 to 1: `again` goes at once and ranks `first` 1, before the others.
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

/// A valence of two leaves each queue a slot that does not rest when the only worker is idle again.
#[tokio::test]
async fn a_plugin_says_which_queue_goes_first() {
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
    // Both are new when the first is fetched; from then on all of B goes before what is left of A.
    let last_of_b = order.iter().rposition(|host| host == B).unwrap();
    let before: Vec<_> = order[..last_of_b]
        .iter()
        .filter(|host| *host == A)
        .collect();
    assert!(before.len() <= 2, "{order:?}");
}

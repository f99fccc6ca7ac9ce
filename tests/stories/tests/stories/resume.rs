//! Resuming a job.

use opilio_crawl::End;
use opilio_stories::{asked, crawl, html, site};
use opilio_test_web::{Reply, Web};

const WWW: &str = "www.story.localhost";
const NEW: &str = "new.localhost";

/// Number of pages in a tree: page n links to pages 2n and 2n + 1.
const PAGES: usize = 40;

fn tree(n: usize) -> Reply {
    let children = [2 * n, 2 * n + 1]
        .into_iter()
        .filter(|child| *child < PAGES);
    html(
        &children
            .map(|child| format!("<a href='/{child}.html'>{child}</a>"))
            .collect::<String>(),
    )
}

fn page_of(target: &str) -> Option<usize> {
    target
        .strip_prefix('/')?
        .strip_suffix(".html")?
        .parse()
        .ok()
}

async fn web_of_a_tree(host: &str) -> Web {
    let web = site(host).page("/", tree(1));
    web.rest(|seen| page_of(&seen.target).map_or(Reply::status(404), tree))
        .serve()
        .await
}

fn whole_tree(host: &str) -> Vec<String> {
    let mut all: Vec<_> = (2..PAGES).map(|n| format!("{host} /{n}.html")).collect();
    all.push(format!("{host} /"));
    all.sort();
    all
}

#[tokio::test]
async fn a_resumed_crawl_requests_no_page_twice() {
    let web = web_of_a_tree(WWW).await;
    let story = crawl().seed(web.url(WWW, "/"));
    let result = story
        .run_until("ten requests", || web.requests().len() >= 10)
        .await;
    assert_eq!(result.summary.end, End::Stopped);
    let before = asked(&web).len();
    assert!(
        before < PAGES - 1,
        "stopped too late for this test: {before}"
    );

    let result = story
        .run_until("ten more", || asked(&web).len() >= before + 10)
        .await;
    assert_eq!(result.summary.end, End::Stopped);
    let result = story.run().await.finished();
    assert_eq!(asked(&web), whole_tree(WWW));
    let robots = web
        .requests()
        .iter()
        .filter(|seen| seen.target == "/robots.txt")
        .count();
    assert_eq!(robots, 1);
    // Statistics of plugins include all three processes; the last one did not visit all pages.
    let mut plugins = result.summary.plugins.iter();
    let html = plugins.find(|plugin| plugin.name == "html").unwrap();
    assert!(html.calls >= PAGES as u64 - 1, "{html:?}");
    for n in 2..PAGES {
        assert_eq!(
            result
                .record("response", &web.url(WWW, &format!("/{n}.html")))
                .status(),
            200
        );
    }
}

#[tokio::test]
async fn a_finished_crawl_makes_no_further_requests() {
    let web = web_of_a_tree(WWW).await;
    let story = crawl().seed(web.url(WWW, "/"));
    let first = story.run().await.finished();
    let requests_before = web.requests().len();
    let second = story.run().await.finished();
    assert_eq!(web.requests().len(), requests_before);
    assert_eq!(second.log.len(), first.log.len());
}

#[tokio::test]
async fn a_limit_of_documents_applies_to_each_run() {
    let web = web_of_a_tree(WWW).await;
    let story = crawl()
        .profile("[limits]\ndocuments = 7")
        .seed(web.url(WWW, "/"));
    for run in 1..=2 {
        let result = story.run().await;
        assert_eq!(result.summary.end, End::DocumentLimit);
        assert_eq!(asked(&web).len(), 7 * run);
    }
}

#[tokio::test]
async fn a_scope_widened_by_a_redirected_seed_survives_a_stop() {
    let web = site(WWW)
        .answer("/", |seen| {
            let port = seen.headers["host"]
                .to_str()
                .unwrap()
                .rsplit_once(':')
                .unwrap()
                .1;
            Reply::redirect(301, &format!("http://{NEW}:{port}/"))
        })
        .and(NEW)
        .page("/", tree(1))
        .rest(|seen| page_of(&seen.target).map_or(Reply::status(404), tree))
        .serve()
        .await;
    let story = crawl().profile("workers = 1").seed(web.url(WWW, "/"));
    let first = story
        .run_until("the first page", || {
            asked(&web).contains(&format!("{NEW} /"))
        })
        .await;
    assert_eq!(first.summary.end, End::Stopped);
    story.run().await.finished();
    let mut expected = whole_tree(NEW);
    expected.push(format!("{WWW} /"));
    expected.sort();
    assert_eq!(asked(&web), expected);
}

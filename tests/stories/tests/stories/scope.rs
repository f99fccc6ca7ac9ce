//! Changes of the scope between two runs of a job, and calls of scope filters.

use opilio_crawl::End;
use opilio_stories::{FinishedCrawl, crawl, html};

use crate::many::{A, hosts};

const WIDE: &str = r#"
    [stacks]
    scope = ["surt-scope", "hops", "prerequisite", "scheme"]
"#;

const NARROW: &str = r#"
    [stacks]
    scope = ["surt-scope", "hops", "not-there", "prerequisite", "scheme"]
"#;

/// Each page links to the URI that the scope of the second run rejects.
#[tokio::test]
async fn a_queued_uri_out_of_a_changed_scope_is_forgotten_and_can_be_found_again() {
    let links = "<a href='/there/1.html'>t</a> <a href='/2.html'>2</a> <a href='/3.html'>3</a>";
    let web = hosts(&[A], 0, &html(links))
        .page("/", html(links))
        .serve()
        .await;
    let story = crawl()
        .profile("workers = 1\nlimits.documents = 1")
        .profile(WIDE)
        .profile(&format!(
            r#"
            [plugins.not-there]
            component = "builtin:surt-scope"
            settings = {{ from-seeds = false, prefixes = ["{}"], then = "reject" }}
            "#,
            web.url(A, "/there/")
        ))
        .seed(web.url(A, "/"));
    let there = web.url(A, "/there/1.html");
    let statuses = |result: &FinishedCrawl| -> Vec<_> {
        result.of(&there).iter().map(|line| line.status).collect()
    };

    let result = story.run().await;
    assert_eq!(
        (result.summary.end.clone(), statuses(&result)),
        (End::DocumentLimit, vec![])
    );
    story.amend(NARROW);
    let result = story.run().await;
    assert_eq!(
        (result.summary.end.clone(), statuses(&result)),
        (End::DocumentLimit, vec![-5000])
    );
    assert!(result.of(&there)[0].notes("not-there"), "{:?}", result.log);
    story.amend(WIDE);
    story.amend("limits.documents = 100");
    let result = story.run().await.finished();
    assert_eq!(statuses(&result), [-5000, 200]);
}

/// Scope filters are called only for new links. With a guard and `scope.log`, they are called for every link.
#[tokio::test]
async fn calling_filters_for_every_link_or_for_new_links_gives_the_same_crawl() {
    let all =
        "<a href='/1.html'>1</a> <a href='/2/3/'>2</a> <img src='/4.png'> <a href='/5.html'>5</a>
        <a href='http://elsewhere.example/'>out</a> <a href='/a/a/a/a/a/'>repeating</a>";
    let web = hosts(&[A], 0, &html(all))
        .page("/", html(all))
        .serve()
        .await;
    let run = async |more: &str| {
        let story = crawl().profile("workers = 1").profile(more);
        story.seed(web.url(A, "/")).run().await.finished()
    };
    let each = run(r#"
        logs.scope = true
        plugins.hops = { component = "builtin:hops", filters = ["pass"] }
        [plugins.pass]
        component = "builtin:surt-scope"
        settings = { from-seeds = false }
        "#)
    .await;
    let new = run("").await;

    let log = |result: &FinishedCrawl| -> Vec<_> {
        // Records of DNS look-ups contain the time, so their digests differ.
        let fetched = result
            .log
            .iter()
            .filter(|line| line.uri.starts_with("http"));
        let lines = fetched.map(|line| {
            (
                (line.status, line.uri.clone(), line.hops.clone()),
                (line.via.clone(), line.digest.clone()),
                line.annotations.clone(),
            )
        });
        lines.collect()
    };
    assert!(log(&new).len() >= 6, "{:#?}", new.log);
    assert_eq!(log(&new), log(&each));
    let accepted = |result: &FinishedCrawl| -> Vec<_> {
        let metadata = result.captures.iter().filter(|one| one.kind == "metadata");
        let texts = metadata.map(|one| (one.uri.clone(), one.text()));
        let lines = texts.flat_map(|(uri, text)| {
            let lines = text.lines().filter(|line| line.starts_with("accepted"));
            lines
                .map(|line| format!("{uri} {line}"))
                .collect::<Vec<_>>()
        });
        lines.collect()
    };
    assert!(accepted(&new).len() >= 5, "{:?}", accepted(&new));
    assert_eq!(accepted(&new), accepted(&each));
    let refused = |result: &FinishedCrawl| result.summary.progress.out_of_scope;
    assert!(refused(&new) >= 10);
    assert_eq!(refused(&new), refused(&each));

    let calls = |result: &FinishedCrawl| {
        let mut plugins = result.summary.plugins.iter();
        plugins.find(|plugin| plugin.name == "hops").unwrap().calls
    };
    // One call for the links of the first page. For other pages, one call for the links out of scope and the image at each new hop
    // path.
    assert_eq!(calls(&each), 9, "five pages with links, four captures");
    assert!(calls(&new) <= 3, "{}", calls(&new));
}

/// The answer of this filter about a link depends on the links before it on the page, known or not.
#[tokio::test]
async fn a_filter_that_compares_the_links_of_a_page_is_called_for_known_links_too() {
    let links = "<a href='/l?a=1&b=2'>1</a> <a href='/l?b=2&a=1'>2</a> <a href='/b.html'>b</a> <a href='/c.html'>c</a>";
    let web = hosts(&[A], 0, &html(links))
        .page("/", html(links))
        .serve()
        .await;
    let result = crawl()
        .profile("workers = 1\nstacks.scope = ['surt-scope', 'hops', 'query-trap', 'prerequisite', 'scheme']")
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    assert_eq!(result.of(&web.url(A, "/l?a=1&b=2")).len(), 1);
    assert!(
        result.of(&web.url(A, "/l?b=2&a=1")).is_empty(),
        "{:#?}",
        result.log
    );
}

//! A scope that is changed between two runs of a job.

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

/// Each page links to the one that the second run leaves out.
#[tokio::test]
async fn what_waits_and_is_out_of_scope_now_is_forgotten_and_found_again_when_it_is_in() {
    let everywhere =
        "<a href='/there/1.html'>t</a> <a href='/2.html'>2</a> <a href='/3.html'>3</a>";
    let web = hosts(&[A], 0, &html(everywhere))
        .page("/", html(everywhere))
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
    let statuses = |told: &FinishedCrawl| -> Vec<_> {
        told.of(&there).iter().map(|line| line.status).collect()
    };

    let told = story.run().await;
    assert_eq!(
        (told.summary.end.clone(), statuses(&told)),
        (End::DocumentLimit, vec![])
    );
    story.amend(NARROW);
    let told = story.run().await;
    assert_eq!(
        (told.summary.end.clone(), statuses(&told)),
        (End::DocumentLimit, vec![-5000])
    );
    assert!(told.of(&there)[0].notes("not-there"), "{:?}", told.log);
    story.amend(WIDE);
    story.amend("limits.documents = 100");
    let told = story.run().await.finished();
    assert_eq!(statuses(&told), [-5000, 200]);
}

/// Filters are asked about links that are new alone. With a guard and `scope.log` they are asked about every link.
#[tokio::test]
async fn a_crawl_is_the_same_whether_filters_are_asked_about_every_link_or_about_new_ones() {
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

    let log = |told: &FinishedCrawl| -> Vec<_> {
        // The answer to a look-up has the time in it.
        let fetched = told.log.iter().filter(|line| line.uri.starts_with("http"));
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
    let accepted = |told: &FinishedCrawl| -> Vec<_> {
        let metadata = told.captures.iter().filter(|one| one.kind == "metadata");
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
    let refused = |told: &FinishedCrawl| told.summary.progress.out_of_scope;
    assert!(refused(&new) >= 10);
    assert_eq!(refused(&new), refused(&each));

    let calls = |told: &FinishedCrawl| {
        let mut plugins = told.summary.plugins.iter();
        plugins.find(|plugin| plugin.name == "hops").unwrap().calls
    };
    // Once about the links of the first page; on others, once about the links out of scope and the image for each new hop path.
    assert_eq!(calls(&each), 9, "five pages with links, four captures");
    assert!(calls(&new) <= 3, "{}", calls(&new));
}

/// Its answer about a link depends on the links before it on the page, whether they are known or not.
#[tokio::test]
async fn a_filter_that_compares_the_links_of_a_page_is_asked_about_known_ones_too() {
    let links = "<a href='/l?a=1&b=2'>1</a> <a href='/l?b=2&a=1'>2</a> <a href='/b.html'>b</a> <a href='/c.html'>c</a>";
    let web = hosts(&[A], 0, &html(links))
        .page("/", html(links))
        .serve()
        .await;
    let told = crawl()
        .profile("workers = 1\nstacks.scope = ['surt-scope', 'hops', 'query-trap', 'prerequisite', 'scheme']")
        .seed(web.url(A, "/"))
        .run()
        .await
        .finished();
    assert_eq!(told.of(&web.url(A, "/l?a=1&b=2")).len(), 1);
    assert!(
        told.of(&web.url(A, "/l?b=2&a=1")).is_empty(),
        "{:#?}",
        told.log
    );
}

//! Traps: endless pages without new content.

use opilio_crawl::End;
use opilio_stories::{FinishedCrawl, asked, crawl, html, site};

const WWW: &str = "www.story.localhost";

/// Returns a page that links to the next one. Pages differ only in their number.
fn page_of(target: &str) -> String {
    let number: u32 = target
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .parse()
        .unwrap_or(0);
    format!(
        "Nothing is planned for this day, as little as for any other day of this calendar. {number}
        <a href='/day/{}'>next</a>",
        number + 1
    )
}

#[tokio::test]
async fn equal_siblings_are_counted_over_all_runs_and_not_extracted_above_the_limit() {
    let web = site(WWW)
        .rest(|seen| html(&page_of(&seen.target)))
        .serve()
        .await;
    let story = crawl()
        .profile("workers = 1\nlimits.documents = 2\nstacks.pre-extract = ['siblings']")
        .profile("[plugins.siblings]\ncomponent = 'builtin:sibling-trap'\nsettings = { siblings-max = 3 }")
        .seed(web.url(WWW, "/day/1"));
    let refused = |result: &FinishedCrawl| -> Vec<String> {
        let lines = result.log.iter();
        let lines = lines.filter(|line| line.notes("unextracted:siblings:"));
        lines.map(|line| line.uri.clone()).collect()
    };

    let result = story.run().await;
    assert_eq!(result.summary.end, End::DocumentLimit);
    assert!(
        refused(&result).is_empty() && !result.of(&web.url(WWW, "/day/2")).is_empty(),
        "{:?}",
        result.log
    );
    // The counts of the first run are kept in the second.
    story.amend("limits.documents = 100");
    let result = story.run().await.finished();
    assert_eq!(refused(&result), [web.url(WWW, "/day/4")]);
    let fourth = result.sole(&web.url(WWW, "/day/4"));
    assert!(fourth.notes("unextracted:siblings:sibling_4"), "{fourth:?}");
    let expected = ["/day/1", "/day/2", "/day/3", "/day/4"];
    assert_eq!(
        asked(&web),
        expected.map(|target| format!("{WWW} {target}"))
    );
    // The page is archived, although its links are not extracted.
    result.record("response", &web.url(WWW, "/day/4"));
}

#[tokio::test]
async fn a_calendar_page_far_in_the_future_is_archived_and_not_extracted() {
    let web = site(WWW)
        .page(
            "/",
            html("<a href='/events/9998/05/'>far</a> <a href='/events/2001/05/'>past</a>"),
        )
        .page("/events/9998/05/", html("<a href='/never.html'>x</a>"))
        .page("/events/2001/05/", html("<a href='/then.html'>x</a>"))
        .page("/then.html", html("a page"))
        .serve()
        .await;
    let result = crawl()
        .profile("stacks.pre-extract = ['calendar-trap']")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    let far = result.sole(&web.url(WWW, "/events/9998/05/"));
    assert_eq!(far.status, 200);
    assert!(
        far.notes("unextracted:calendar-trap:9998-05_is_too_far_in_the_future"),
        "{far:?}"
    );
    result.record("response", &web.url(WWW, "/events/9998/05/"));
    let expected = ["/", "/events/2001/05/", "/events/9998/05/", "/then.html"];
    assert_eq!(
        asked(&web),
        expected.map(|target| format!("{WWW} {target}"))
    );
}

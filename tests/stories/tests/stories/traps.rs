//! Traps: pages without end that say nothing new.

use opilio_crawl::End;
use opilio_stories::{FinishedCrawl, asked, crawl, html, site};

const WWW: &str = "www.story.localhost";

/// Each page links to the next; all but the number is the same.
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
async fn siblings_that_say_the_same_are_counted_through_all_visits_and_runs_and_lead_nowhere_then()
{
    let web = site(WWW)
        .rest(|seen| html(&page_of(&seen.target)))
        .serve()
        .await;
    let story = crawl()
        .profile("workers = 1\nlimits.documents = 2\nstacks.pre-extract = ['siblings']")
        .profile("[plugins.siblings]\ncomponent = 'builtin:sibling-trap'\nsettings = { siblings-max = 3 }")
        .seed(web.url(WWW, "/day/1"));
    let refused = |told: &FinishedCrawl| -> Vec<String> {
        let lines = told.log.iter();
        let lines = lines.filter(|line| line.notes("unextracted:siblings:"));
        lines.map(|line| line.uri.clone()).collect()
    };

    let told = story.run().await;
    assert_eq!(told.summary.end, End::DocumentLimit);
    assert!(
        refused(&told).is_empty() && !told.of(&web.url(WWW, "/day/2")).is_empty(),
        "{:?}",
        told.log
    );
    // What the first run counted counts in the second.
    story.amend("limits.documents = 100");
    let told = story.run().await.finished();
    assert_eq!(refused(&told), [web.url(WWW, "/day/4")]);
    let fourth = told.sole(&web.url(WWW, "/day/4"));
    assert!(fourth.notes("unextracted:siblings:sibling_4"), "{fourth:?}");
    let expected = ["/day/1", "/day/2", "/day/3", "/day/4"];
    assert_eq!(
        asked(&web),
        expected.map(|target| format!("{WWW} {target}"))
    );
    // It is archived all the same.
    told.record("response", &web.url(WWW, "/day/4"));
}

#[tokio::test]
async fn a_calendar_far_ahead_is_archived_and_leads_nowhere() {
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
    let told = crawl()
        .profile("stacks.pre-extract = ['calendar-trap']")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    let far = told.sole(&web.url(WWW, "/events/9998/05/"));
    assert_eq!(far.status, 200);
    assert!(
        far.notes("unextracted:calendar-trap:9998-05_is_far_ahead"),
        "{far:?}"
    );
    told.record("response", &web.url(WWW, "/events/9998/05/"));
    let expected = ["/", "/events/2001/05/", "/events/9998/05/", "/then.html"];
    assert_eq!(
        asked(&web),
        expected.map(|target| format!("{WWW} {target}"))
    );
}

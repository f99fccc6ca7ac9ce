//! A scope that is changed between two runs of a job.

use opilio_crawl::End;
use opilio_stories::{Told, crawl, html};

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
    let statuses =
        |told: &Told| -> Vec<_> { told.of(&there).iter().map(|line| line.status).collect() };

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

//! Recordings of plugin calls.

use std::path::Path;

use opilio_stories::{Misdeed, crawl, extractor, html, site};
use serde_json::Value;

const WWW: &str = "www.story.localhost";

fn recordings(job: &Path) -> Vec<Value> {
    let Ok(files) = std::fs::read_dir(job.join("recordings")) else {
        return Vec::new();
    };
    let read = |file: std::io::Result<std::fs::DirEntry>| {
        serde_json::from_slice(&std::fs::read(file.unwrap().path()).unwrap()).unwrap()
    };
    files.map(read).collect()
}

fn of<'r>(all: &'r [Value], instance: &str) -> Vec<&'r Value> {
    let mut of: Vec<_> = all
        .iter()
        .filter(|one| one["instance"] == instance)
        .collect();
    of.sort_by_key(|one| one["subject"].as_str().map(str::to_owned));
    of
}

async fn pages() -> opilio_test_web::Web {
    let links: String = (0..9)
        .map(|n| format!("<a href='/{n}.html'>x</a>"))
        .collect();
    site(WWW)
        .page("/", html(&links))
        .rest(|_| html("a page"))
        .serve()
        .await
}

#[tokio::test]
async fn the_first_failing_calls_are_recorded() {
    let web = pages().await;
    let result = crawl()
        .plugin("bad", &extractor(Misdeed::Traps))
        .profile("stacks.extract = ['bad', 'html']\nrecord.faults = 3")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    let all = recordings(result.job());
    let bad = of(&all, "bad");
    assert_eq!((bad.len(), all.len()), (3, 3));
    for one in bad {
        assert_eq!(one["outcome"]["fault"]["kind"], "trap", "{one}");
        assert!(one["subject"].as_str().unwrap().contains(WWW), "{one}");
    }
}

#[tokio::test]
async fn calls_about_chosen_uris_and_a_sample_of_others_are_recorded() {
    let web = pages().await;
    let of_uris = crawl()
        .profile("record = { uris = ['/7\\.html$'], plugins = ['html', 'hops'] }")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    let all = recordings(of_uris.job());
    let html = of(&all, "html");
    assert_eq!(html.len(), 1, "{all:?}");
    assert_eq!(html[0]["subject"], web.url(WWW, "/7.html"));
    assert_eq!(
        html[0]["outcome"]["answer"][0]["links"],
        Value::Array(Vec::new())
    );
    // The filter was called about the links of the front page. Its decision is known when the capture is described, without a call.
    let hops = of(&all, "hops");
    let pages: Vec<_> = hops.iter().map(|call| &call["subject"]).collect();
    assert_eq!(pages, [&web.url(WWW, "/")]);

    let sampled = crawl()
        .profile("record = { sample = 0.5, plugins = ['html'] }")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    let all = recordings(sampled.job());
    // Ten pages and robots.txt.
    assert_eq!((of(&all, "html").len(), all.len()), (5, 5));

    let few = crawl()
        .profile("record = { sample = 1, files = 4 }\nworkers = 1")
        .seed(web.url(WWW, "/"))
        .run()
        .await
        .finished();
    assert_eq!(recordings(few.job()).len(), 4);
}

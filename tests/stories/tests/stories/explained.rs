//! Commands `why` and `explain`: the recorded answers of plugins about a URI, and their current answers.

use opilio_control::{Command, CommandResponse, ExplainedUri, WhyAnswer};
use opilio_stories::{Story, asked, crawl, html, site, until};
use opilio_test_web::{Gate, Reply};

use crate::replace::{file, html_extractor, replace, with_pages};
use crate::revisits::{revisiting, visits};

const WWW: &str = "www.story.localhost";

async fn why(story: &Story, uri: &str) -> WhyAnswer {
    let uri = uri.to_owned();
    match story.order(Command::Why { uri }).await.unwrap().pop() {
        Some(CommandResponse::Why(why)) => *why,
        other => panic!("{other:?}"),
    }
}

async fn explain(story: &Story, uri: &str) -> ExplainedUri {
    let command = Command::Explain {
        uri: uri.to_owned(),
        via: None,
        hops: None,
        source: None,
        media_type: None,
        at: None,
    };
    match story.order(command).await.unwrap().pop() {
        Some(CommandResponse::Explained(explained)) => *explained,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn why_names_the_replaced_extractors_that_read_a_document() {
    let (first, last) = (Gate::of(2), Gate::of(2));
    let web = site(WWW)
        .page("/", html("first").behind(&first))
        .page("/next.html", html("<a href='/last.html'>last</a>"))
        .page("/last.html", html("last").behind(&last))
        .serve()
        .await;
    let story = with_pages(&html_extractor("old"))
        .profile("fetch.response-timeout = '100s'")
        .seed(web.url(WWW, "/"))
        .seed(web.url(WWW, "/next.html"));
    let new = file(&story, "new.wasm", &html_extractor("new"));
    let page = web.url(WWW, "/");
    let operator = async {
        until("the page is requested", || asked(&web).len() == 1).await;
        story.order(replace(&new)).await.unwrap();
        first.come();
        until("the last page is requested", || asked(&web).len() == 3).await;
        let answer = why(&story, &page).await;
        last.come();
        answer
    };
    let (result, while_running) = story.run_with(operator).await;
    result.finished();
    let while_stopped = why(&story, &page).await;
    let next = why(&story, &web.url(WWW, "/next.html")).await;

    let [running, stopped, next] =
        [while_running, while_stopped, next].map(|why| why.read_by.unwrap());
    assert_eq!(running.is_in_force, Some(false), "{running:?}");
    assert_eq!(stopped.is_in_force, None);
    assert_eq!(running.plugins, stopped.plugins);
    let plugins = stopped.plugins.iter();
    let names: Vec<(&str, &str)> = plugins.map(|one| (&*one.name, &*one.plugin)).collect();
    assert_eq!(names, [("http", "http"), ("pages", "html")]);
    assert_ne!(stopped.plugins[1].sha256, next.plugins[1].sha256);
    assert_eq!(stopped.plugins[0], next.plugins[0]);
}

#[tokio::test]
async fn why_names_the_filter_and_the_stage_of_a_refused_response() {
    let web = site(WWW)
        .page("/b.html", Reply::html("<title>Page not found</title>"))
        .serve()
        .await;
    let story = crawl()
        .profile("stacks.post-fetch = ['soft-404']")
        .profile(
            "[plugins.soft-404]\ncomponent = 'builtin:soft-404'\nsettings = { then = 'reject' }",
        )
        .seed(web.url(WWW, "/b.html"));
    story.run().await.finished();
    let why = why(&story, &web.url(WWW, "/b.html")).await;
    let refusal = why.last_refusal.unwrap();
    assert_eq!(refusal.filter.as_deref(), Some("soft-404"), "{refusal:?}");
    assert_eq!(refusal.stages, ["post-fetch"]);
    assert!(refusal.reason.starts_with("soft-404:"), "{refusal:?}");
    assert_eq!(why.read_by, None, "no extractor has read it");
}

#[tokio::test]
async fn explain_predicts_the_wait_after_the_next_visit() {
    let web = site(WWW).page("/", html("always the same")).serve().await;
    let story = revisiting().seed(web.url(WWW, "/"));
    story
        .run_until("three visits", || visits(&web, "/") >= 3)
        .await;
    let page = web.url(WWW, "/");
    let wait = why(&story, &page).await.uri.unwrap()["wait_s"].clone();
    let wait = wait.as_f64().unwrap();
    let explained = explain(&story, &page).await;

    let found: Vec<&str> = explained.waits.iter().map(|one| &*one.found).collect();
    assert_eq!(found, ["unchanged", "changed"]);
    for (one, factor) in explained.waits.iter().zip([1.5, 1.0 / 1.5]) {
        let expected = (wait * factor).clamp(0.01, 0.2);
        assert!((one.wait_s - expected).abs() < 0.002, "{wait} {one:?}");
        let decides = one.answers.iter().find(|answer| answer.decides).unwrap();
        assert_eq!(
            (&*decides.evaluator, &*decides.answer),
            ("adaptive", "wait")
        );
    }
    let stack = explained.stacks.iter().find(|stack| stack.stage == "wait");
    let names = stack.unwrap().plugins.iter().map(|one| &*one.name);
    let answers = explained.waits[0].answers.iter();
    let evaluators: Vec<&str> = answers.map(|one| &*one.evaluator).collect();
    assert_eq!(names.collect::<Vec<_>>(), evaluators);
    // The command has changed nothing.
    let again = why(&story, &page).await.uri.unwrap()["wait_s"].clone();
    assert_eq!(again.as_f64().unwrap(), wait);

    let unknown = explain(&story, &web.url(WWW, "/unknown.html")).await;
    assert_eq!(unknown.waits[0].found, "new", "{:?}", unknown.waits);
    assert_eq!(unknown.waits[0].wait_s, 0.04);
}

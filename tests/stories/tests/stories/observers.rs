//! Observers: they receive every finished URI once, keep their memory across restarts, and report on request.

use std::path::Path;
use std::time::{Duration, Instant};

use opilio_control::{Command, CommandRequest, CommandResponse, carry_out};
use opilio_stories::{Misdeed, Story, counter, crawl, html, observer, until};
use opilio_test_web::Web;

use crate::many::{A, hosts, requests_to};

/// Longest time for an event to reach an observer, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(300);

async fn four_pages() -> Web {
    hosts(&[A], 3, &html("a page")).serve().await
}

fn counting(web: &Web) -> Story {
    crawl()
        .plugin("counter", &counter())
        .profile("stacks.observe = ['counter']")
        .seed(web.url(A, "/"))
}

fn file(story: &Story, path: &str) -> String {
    std::fs::read_to_string(story.job().join(path)).unwrap_or_default()
}

/// Sends a command to the job, as the command line does. Returns the answers.
fn send(job: &Path, command: Command) -> Vec<CommandResponse> {
    let request = CommandRequest {
        by: Default::default(),
        command,
        only_here: false,
    };
    let mut answers = Vec::new();
    carry_out(job, &request, &mut |answer| {
        answers.push(answer);
        true
    })
    .unwrap();
    answers
}

fn reported_count(answers: &[CommandResponse]) -> String {
    match answers {
        [
            CommandResponse::Report {
                observer,
                file,
                content,
            },
            CommandResponse::End,
        ] if observer == "counter" && file == "count.txt" => content.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_observer_receives_every_finished_uri_once() {
    let web = four_pages().await;
    let story = counting(&web);
    let result = story.run().await.finished();
    // DNS look-ups and robots.txt are finished URIs, too.
    assert_eq!(result.log.len(), 6, "{:#?}", result.log);
    assert_eq!(file(&story, "reports/counter/count.txt"), "06");
    assert_eq!(file(&story, "observers/counter/batches.txt"), "a batch\n");
    assert_eq!(file(&story, "observers/counter.memory"), "\u{6}");
    let answers = send(&story.job(), Command::Observe { observer: None });
    assert_eq!(reported_count(&answers), "06");
}

#[tokio::test]
async fn an_observer_remembers_across_restarts() {
    let web = four_pages().await;
    let story = counting(&web).profile("limits.documents = 2");
    story.run().await;
    assert_eq!(file(&story, "reports/counter/count.txt"), "04");
    story.amend("limits.documents = 'none'");
    story.run().await.finished();
    assert_eq!(file(&story, "reports/counter/count.txt"), "06");
}

#[tokio::test]
async fn an_observer_reports_on_all_finished_uris_while_the_crawl_runs() {
    let web = four_pages().await;
    let story = counting(&web).profile("strategy = 'revisit'\n[plugins.adaptive]\ncomponent = 'builtin:adaptive'\nsettings = { initial-wait = '1h', min-wait = '1h', max-wait = '2h', default-wait = '1h' }");
    let crawl = story.begin().unwrap_or_else(|error| panic!("{error}"));
    let stop = crawl.stop();
    let operator = async {
        until("all are fetched", || requests_to(&web, A) == 4).await;
        let job = story.job();
        // The last event may not have reached the observer yet.
        let polling = tokio::task::spawn_blocking(move || {
            let command = || Command::Observe {
                observer: Some("counter".to_owned()),
            };
            let began = Instant::now();
            let counts = std::iter::repeat_with(|| reported_count(&send(&job, command())));
            let mut counts = counts.take_while(|_| began.elapsed() < PATIENCE);
            counts.find(|count| count == "06")
        });
        let reported_count = polling.await;
        stop.stop();
        reported_count.unwrap()
    };
    let (summary, reported_count) = tokio::join!(opilio_control::run(crawl), operator);
    assert_eq!(reported_count.as_deref(), Some("06"));
    let counter = summary
        .plugins
        .iter()
        .find(|plugin| plugin.name == "counter");
    assert!(counter.unwrap().outputs["reports"] >= 2);
}

#[tokio::test]
async fn events_of_a_failing_call_are_lost_to_that_observer_only_and_counted() {
    let web = four_pages().await;
    let story = crawl()
        .plugin("bad", &observer(Misdeed::Traps))
        .plugin("counter", &counter())
        .profile("stacks.observe = ['bad', 'counter']")
        .seed(web.url(A, "/"));
    let result = story.run().await.finished();
    let lost = |name: &str| {
        let plugins = &result.summary.plugins;
        let plugin = plugins.iter().find(|plugin| plugin.name == name);
        plugin.unwrap().lost_events
    };
    assert_eq!((lost("bad"), lost("counter")), (6, 0));
    assert_eq!(file(&story, "reports/counter/count.txt"), "06");
    assert!(
        result.log_file("runtime-errors.log").contains(" bad trap "),
        "{}",
        result.log_file("runtime-errors.log")
    );
}

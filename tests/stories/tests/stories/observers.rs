//! Observers: told of everything once, remembering across restarts, reporting when asked.

use std::path::Path;
use std::time::{Duration, Instant};

use opilio_control::{Command, CommandRequest, CommandResponse, carry_out};
use opilio_stories::{Misdeed, Story, counter, crawl, html, observer, until};
use opilio_test_web::Web;

use crate::many::{A, asked_of, hosts};

/// No event takes this long to reach an observer, on however slow a machine.
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

/// Asks the job as the command line does.
fn asked(job: &Path, command: Command) -> Vec<CommandResponse> {
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

fn counted(answers: &[CommandResponse]) -> String {
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
async fn every_finished_uri_is_told_once() {
    let web = four_pages().await;
    let story = counting(&web);
    let told = story.run().await.finished();
    // DNS and robots.txt are finished URIs as well.
    assert_eq!(told.log.len(), 6, "{:#?}", told.log);
    assert_eq!(file(&story, "reports/counter/count.txt"), "06");
    assert_eq!(file(&story, "observers/counter/batches.txt"), "a batch\n");
    assert_eq!(file(&story, "observers/counter.memory"), "\u{6}");
    let answers = asked(&story.job(), Command::Observe { observer: None });
    assert_eq!(counted(&answers), "06");
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
async fn an_observer_reports_while_the_crawl_runs_on_all_that_is_finished() {
    let web = four_pages().await;
    let story = counting(&web).profile("strategy = 'revisit'\n[plugins.adaptive]\ncomponent = 'builtin:adaptive'\nsettings = { initial-wait = '1h', min-wait = '1h', max-wait = '2h', default-wait = '1h' }");
    let crawl = story.begin().unwrap_or_else(|error| panic!("{error}"));
    let stop = crawl.stop();
    let asking = async {
        until("all are fetched", || asked_of(&web, A) == 4).await;
        let job = story.job();
        // The last of them may be on its way to the observer still.
        let asked = tokio::task::spawn_blocking(move || {
            let command = || Command::Observe {
                observer: Some("counter".to_owned()),
            };
            let began = Instant::now();
            let counts = std::iter::repeat_with(|| counted(&asked(&job, command())));
            let mut counts = counts.take_while(|_| began.elapsed() < PATIENCE);
            counts.find(|count| count == "06")
        });
        let counted = asked.await;
        stop.stop();
        counted.unwrap()
    };
    let (summary, counted) = tokio::join!(opilio_control::run(crawl), asking);
    assert_eq!(counted.as_deref(), Some("06"));
    let seen = summary
        .plugins
        .iter()
        .find(|plugin| plugin.name == "counter");
    assert!(seen.unwrap().outputs["reports"] >= 2);
}

#[tokio::test]
async fn what_an_observer_fails_on_is_lost_to_it_alone_and_counted() {
    let web = four_pages().await;
    let story = crawl()
        .plugin("bad", &observer(Misdeed::Traps))
        .plugin("counter", &counter())
        .profile("stacks.observe = ['bad', 'counter']")
        .seed(web.url(A, "/"));
    let told = story.run().await.finished();
    let lost = |name: &str| {
        let plugins = &told.summary.plugins;
        let plugin = plugins.iter().find(|plugin| plugin.name == name);
        plugin.unwrap().lost_events
    };
    assert_eq!((lost("bad"), lost("counter")), (6, 0));
    assert_eq!(file(&story, "reports/counter/count.txt"), "06");
    assert!(
        told.log_file("runtime-errors.log").contains(" bad trap "),
        "{}",
        told.log_file("runtime-errors.log")
    );
}

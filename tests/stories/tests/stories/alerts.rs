//! Alerts: problems of a crawl reach the operator.

use std::time::Duration;

use opilio_control::{Command, CommandResponse};
use opilio_crawl::{Alert, AlertKind, Severity};

use opilio_stories::{CLOSED_PORT, Misdeed, Story, crawl, html, html_extractor, site, until};
use opilio_test_web::{Reply, Web};
use serde_json::Value;

const WWW: &str = "www.story.localhost";
const HOOK: &str = "127.0.0.1";

async fn alerts(story: &Story) -> Vec<Alert> {
    match story.order(Command::Alerts).await.unwrap().remove(0) {
        CommandResponse::Alerts { alerts } => alerts,
        other => panic!("{other:?}"),
    }
}

/// Requests that the hook has received so far.
fn sent(web: &Web) -> Vec<Value> {
    let requests = web.requests();
    let posts = requests.iter().filter(|seen| seen.target == "/hook");
    posts
        .map(|seen| serde_json::from_slice(&seen.body).unwrap())
        .collect()
}

#[tokio::test]
async fn a_full_disk_pauses_the_crawl_tells_who_is_to_know_and_goes_on_when_told_to() {
    let web = site(WWW)
        .page("/", html("<a href='/a'>a</a>"))
        .page("/a", html("a"));
    // The hook is away at first.
    let web = web.and(HOOK).answer("/hook", |seen| match seen.visit {
        1 => Reply::status(503),
        _ => Reply::status(204),
    });
    let web = web.serve().await;
    let story = crawl().seed(web.url(WWW, "/"));
    let told = story.job().join("told");
    let story = story.profile(&format!(
        r#"[alerts]
        disk-warn = "2000000GiB"
        disk-pause = "1000000GiB"
        webhook = "{}"
        command = ["sh", "-c", "cat > \"$0\"", "{}"]"#,
        web.url(HOOK, "/hook"),
        told.display(),
    ));
    let operator = async {
        until("the hook has taken it", || sent(&web).len() == 2).await;
        until("the command has read it", || {
            std::fs::read(&told).is_ok_and(|text| serde_json::from_slice::<Value>(&text).is_ok())
        })
        .await;
        let alerts = alerts(&story).await;
        story.order(Command::Resume).await.unwrap();
        alerts
    };
    let (ended, alerts) = story.run_with(operator).await;
    // It went on, and was not paused again by the same disk.
    assert_eq!(ended.finished().statuses().len(), 4);

    assert_eq!(alerts.len(), 1, "{alerts:?}");
    let alert = &alerts[0];
    assert_eq!(
        (alert.kind, alert.severity),
        (AlertKind::DiskLow, Severity::Critical)
    );
    assert!(
        alert.message.contains("opilio job resume"),
        "{}",
        alert.message
    );
    let sent = sent(&web);
    assert_eq!(sent[0], sent[1]);
    assert_eq!(sent[1]["event"], "raised");
    assert_eq!(sent[1]["alert"]["kind"], "disk-low");
    // The job is called by its directory; several may have one profile.
    assert_eq!(
        (&sent[1]["name"], &sent[1]["profile"]),
        (&"job".into(), &"story".into())
    );
    let read: Value = serde_json::from_slice(&std::fs::read(&told).unwrap()).unwrap();
    assert_eq!(read, sent[1]);
}

#[tokio::test]
async fn a_hook_that_never_answers_holds_nothing_up() {
    let web = site(WWW)
        .page("/", html("<a href='/a'>a</a>"))
        .page("/a", html("a"));
    let web = web
        .and(HOOK)
        .page("/hook", Reply::status(204).taking(Duration::from_secs(600)));
    let web = web.serve().await;
    let story = crawl().seed(web.url(WWW, "/")).profile(&format!(
        "[alerts]\ndisk-warn = '2000000GiB'\nwebhook = '{}'\nwebhook-timeout = '100ms'",
        web.url(HOOK, "/hook"),
    ));
    let told = story.run().await.finished();
    assert_eq!(told.statuses().len(), 4);
    let log = told.log_file("alerts.log");
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains(" raised warning disk-low "), "{log}");
}

#[tokio::test]
async fn a_plugin_that_fails_too_often_is_an_alert() {
    let web = site(WWW)
        .page("/", html("<a href='/a'>a</a>"))
        .rest(|_| html("page"));
    let web = web.serve().await;
    let story = crawl()
        .plugin("bad", &html_extractor(Misdeed::Traps))
        .profile(
            "[stacks]\nextract = ['html', 'bad']\n[plugins.bad.breaker]\nfaults = 1\ncalls = 5",
        )
        .seed(web.url(WWW, "/"));
    let told = story.run().await.finished();
    let log = told.log_file("alerts.log");
    assert!(
        log.contains(" raised warning plugin bad failed too often"),
        "{log}"
    );
    assert!(told.log_file("job.log").contains("alert plugin bad"));
}

/// Alerts that the hook received as raised and cleared, in order.
fn events(web: &Web) -> Vec<String> {
    let events = sent(web).into_iter().map(|notice| {
        let (event, kind) = (&notice["event"], &notice["alert"]["kind"]);
        format!("{} {}", event.as_str().unwrap(), kind.as_str().unwrap())
    });
    events.collect()
}

/// Returns `true` if the hook was told that each of these is over.
fn are_cleared(web: &Web, kinds: &[&str]) -> bool {
    let events = events(web);
    kinds
        .iter()
        .all(|kind| events.contains(&format!("cleared {kind}")))
}

/// Asserts that the hook was told that each of these was raised, and later that it was over.
#[track_caller]
fn raised_and_cleared(web: &Web, kinds: &[&str]) {
    let events = events(web);
    for kind in kinds {
        let of = |event: &str| {
            let wanted = format!("{event} {kind}");
            let mut places = events.iter().enumerate();
            let place = places.find(|(_, event)| **event == wanted);
            place.map(|(place, _)| place)
        };
        let (raised, cleared) = (of("raised"), of("cleared"));
        assert!(
            raised.is_some() && raised < cleared,
            "{kind}: {raised:?}, {cleared:?}: {events:?}"
        );
    }
}

#[tokio::test]
async fn faults_and_walls_that_are_many_are_told_and_told_to_be_over() {
    let mut links = String::new();
    for page in 0..12 {
        links.push_str(&format!("<a href='/wall/{page}'>w</a>"));
    }
    // More than there is time for: it ends when all is over.
    for page in 0..3000 {
        links.push_str(&format!("<a href='/text/{page}'>t</a>"));
    }
    let slowly = Duration::from_millis(120);
    let web = site(WWW).page("/", html(&links)).rest(move |seen| {
        let reply = match seen.target.starts_with("/wall/") {
            // The plugin fails at them, too.
            true => html("Just a moment").with("cf-mitigated", "challenge"),
            false => Reply::ok("text/plain", seen.target.clone()),
        };
        reply.taking(slowly)
    });
    let web = web.and(HOOK).page("/hook", Reply::status(204));
    let web = web.serve().await;
    let story = crawl()
        .plugin("bad", &html_extractor(Misdeed::Traps))
        .profile(&format!(
            r#"[stacks]
            extract = ["html", "bad"]
            [alerts]
            window = "4s"
            window-uris = 5
            webhook = "{}""#,
            web.url(HOOK, "/hook"),
        ))
        .seed(web.url(WWW, "/"));
    let kinds = ["fault-rate", "bot-walls"];
    let told = story
        .run_until("it is over", || are_cleared(&web, &kinds))
        .await;
    raised_and_cleared(&web, &kinds);
    let log = told.log_file("alerts.log");
    let wall = " raised warning bot-walls - ";
    assert!(
        log.contains(wall) && log.contains("contact the sites"),
        "{log}"
    );
}

#[tokio::test]
async fn hosts_that_are_down_together_are_told_and_told_to_be_over() {
    // More than there is time for: it ends when all is over.
    let links: String = (0..300)
        .map(|page| format!("<a href='/{page}'>p</a>"))
        .collect();
    let web = site(WWW)
        .page("/", html(&links))
        .rest(|seen| Reply::ok("text/plain", seen.target.clone()).taking(Duration::from_secs(1)));
    let web = web.and(HOOK).page("/hook", Reply::status(204));
    let web = web.serve().await;
    let mut story = crawl().seed(web.url(WWW, "/")).profile(&format!(
        r#"[robots]
        policy = "ignore"
        [retry]
        max-retries = 1
        delay = "7s"
        [alerts]
        window = "3s"
        window-uris = 5
        webhook = "{}""#,
        web.url(HOOK, "/hook"),
    ));
    for host in 0..12 {
        story = story.seed(format!("http://down-{host}.story.localhost:{CLOSED_PORT}/"));
    }
    let kinds = ["hosts-failing", "failure-rate"];
    let told = story
        .run_until("it is over", || are_cleared(&web, &kinds))
        .await;
    raised_and_cleared(&web, &kinds);
    let log = told.log_file("alerts.log");
    assert!(log.contains("of 13 queues back off"), "{log}");
}

#[tokio::test]
async fn a_crawl_that_goes_on_does_not_say_again_what_it_has_said() {
    let web = site(WWW)
        .page("/", html("a"))
        .page("/b", html("b"))
        .serve()
        .await;
    let story = crawl()
        .seed(web.url(WWW, "/"))
        .profile("[alerts]\ndisk-warn = '2000000GiB'");
    story.run().await.finished();
    // Nobody runs it, and it is known all the same.
    let before = alerts(&story).await;
    assert_eq!(before.len(), 1, "{before:?}");
    assert_eq!(before[0].kind, AlertKind::DiskLow);
    let acknowledge = |kind| Command::Acknowledge {
        kind,
        subject: None,
    };
    story.order(acknowledge(AlertKind::DiskLow)).await.unwrap();
    let refused = story.order(acknowledge(AlertKind::BotWalls)).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("no active alert bot-walls"), "{refused}");

    let story = story.seed(web.url(WWW, "/b"));
    let told = story.run().await.finished();
    let log = told.log_file("alerts.log");
    assert_eq!(log.lines().count(), 1, "{log}");
    let after = alerts(&story).await;
    assert_eq!(after[0].since, before[0].since);
    assert!(after[0].acknowledged.is_some(), "{after:?}");
}

//! Alerts: when they are raised and cleared, and how they reach the operator.

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

/// Returns the requests that the webhook has received so far.
fn webhook_requests(web: &Web) -> Vec<Value> {
    let requests = web.requests();
    let posts = requests.iter().filter(|seen| seen.target == "/hook");
    posts
        .map(|seen| serde_json::from_slice(&seen.body).unwrap())
        .collect()
}

#[tokio::test]
async fn a_full_disk_pauses_the_crawl_until_an_operator_resumes_it() {
    let web = site(WWW)
        .page("/", html("<a href='/a'>a</a>"))
        .page("/a", html("a"));
    // The webhook fails at first.
    let web = web.and(HOOK).answer("/hook", |seen| match seen.visit {
        1 => Reply::status(503),
        _ => Reply::status(204),
    });
    let web = web.serve().await;
    let story = crawl().seed(web.url(WWW, "/"));
    let command_input = story.job().join("command-input");
    let story = story.profile(&format!(
        r#"[alerts]
        disk-warn = "2000000GiB"
        disk-pause = "1000000GiB"
        webhook = "{}"
        command = ["sh", "-c", "cat > \"$0\"", "{}"]"#,
        web.url(HOOK, "/hook"),
        command_input.display(),
    ));
    let operator = async {
        until("the webhook has accepted the alert", || {
            webhook_requests(&web).len() == 2
        })
        .await;
        until("the command has read the alert", || {
            std::fs::read(&command_input)
                .is_ok_and(|text| serde_json::from_slice::<Value>(&text).is_ok())
        })
        .await;
        let alerts = alerts(&story).await;
        story.order(Command::Resume).await.unwrap();
        alerts
    };
    let (ended, alerts) = story.run_with(operator).await;
    // The crawl resumed, and the same disk did not pause it again.
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
    let webhook_requests = webhook_requests(&web);
    assert_eq!(webhook_requests[0], webhook_requests[1]);
    assert_eq!(webhook_requests[1]["event"], "raised");
    assert_eq!(webhook_requests[1]["alert"]["kind"], "disk-low");
    // `name` is the name of the job's directory, because several jobs may have the same profile.
    assert_eq!(
        (
            &webhook_requests[1]["name"],
            &webhook_requests[1]["profile"]
        ),
        (&"job".into(), &"story".into())
    );
    let read: Value = serde_json::from_slice(&std::fs::read(&command_input).unwrap()).unwrap();
    assert_eq!(read, webhook_requests[1]);
}

#[tokio::test]
async fn a_webhook_that_never_answers_does_not_delay_the_crawl() {
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
    let result = story.run().await.finished();
    assert_eq!(result.statuses().len(), 4);
    let log = result.log_file("alerts.log");
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains(" raised warning disk-low "), "{log}");
}

#[tokio::test]
async fn a_plugin_that_fails_too_often_raises_an_alert() {
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
    let result = story.run().await.finished();
    let log = result.log_file("alerts.log");
    assert!(
        log.contains(" raised warning plugin bad failed too often"),
        "{log}"
    );
    assert!(result.log_file("job.log").contains("alert plugin bad"));
}

/// Returns `raised KIND` or `cleared KIND` for each event that the webhook received, in order.
fn events(web: &Web) -> Vec<String> {
    let events = webhook_requests(web).into_iter().map(|notice| {
        let (event, kind) = (&notice["event"], &notice["alert"]["kind"]);
        format!("{} {}", event.as_str().unwrap(), kind.as_str().unwrap())
    });
    events.collect()
}

/// Returns `true` if the webhook received a cleared event of each kind.
fn are_cleared(web: &Web, kinds: &[&str]) -> bool {
    let events = events(web);
    kinds
        .iter()
        .all(|kind| events.contains(&format!("cleared {kind}")))
}

/// Asserts that the webhook received a raised event and a later cleared event of each kind.
#[track_caller]
fn assert_raised_and_cleared(web: &Web, kinds: &[&str]) {
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
async fn alerts_about_plugin_errors_and_walls_are_raised_and_cleared() {
    let mut links = String::new();
    for page in 0..12 {
        links.push_str(&format!("<a href='/wall/{page}'>w</a>"));
    }
    // More pages than are needed: the crawl is stopped when the alerts are cleared.
    for page in 0..3000 {
        links.push_str(&format!("<a href='/text/{page}'>t</a>"));
    }
    let slowly = Duration::from_millis(120);
    let web = site(WWW).page("/", html(&links)).rest(move |seen| {
        let reply = match seen.target.starts_with("/wall/") {
            // The plugin fails on these pages, too.
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
    let result = story
        .run_until("the alerts are cleared", || are_cleared(&web, &kinds))
        .await;
    assert_raised_and_cleared(&web, &kinds);
    let log = result.log_file("alerts.log");
    let wall = " raised warning bot-walls - ";
    assert!(
        log.contains(wall) && log.contains("contact the sites"),
        "{log}"
    );
}

#[tokio::test]
async fn alerts_about_failing_hosts_are_raised_and_cleared() {
    // More pages than are needed: the crawl is stopped when the alerts are cleared.
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
    let result = story
        .run_until("the alerts are cleared", || are_cleared(&web, &kinds))
        .await;
    assert_raised_and_cleared(&web, &kinds);
    let log = result.log_file("alerts.log");
    assert!(log.contains("of 13 queues back off"), "{log}");
}

#[tokio::test]
async fn a_resumed_crawl_does_not_repeat_its_alerts() {
    let web = site(WWW)
        .page("/", html("a"))
        .page("/b", html("b"))
        .serve()
        .await;
    let story = crawl()
        .seed(web.url(WWW, "/"))
        .profile("[alerts]\ndisk-warn = '2000000GiB'");
    story.run().await.finished();
    // No process runs the job; its alerts are still known.
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
    let result = story.run().await.finished();
    let log = result.log_file("alerts.log");
    assert_eq!(log.lines().count(), 1, "{log}");
    let after = alerts(&story).await;
    assert_eq!(after[0].since, before[0].since);
    assert!(after[0].acknowledged.is_some(), "{after:?}");
}

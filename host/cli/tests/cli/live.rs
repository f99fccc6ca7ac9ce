//! Settings that take effect at once in a running crawl, and periodic checkpoints.

use std::fs;

use opilio_stories::{sound, until};
use serde_json::Value;

use crate::command::Home;
use crate::job::{Gate, job_log, paused, waiting};

/// Returns the concatenated WARC files of the job as text.
fn archived(home: &Home) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(home.job().join("warcs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "warc") {
            text.push_str(&String::from_utf8_lossy(&fs::read(path).unwrap()));
        }
    }
    text
}

/// Returns the names of the job's checkpoints, and whether each is periodic and complete.
fn checkpoints(home: &Home) -> Vec<(String, bool)> {
    let listed = home.run(&["job", "checkpoints", "job", "--json"]);
    let kept = listed.out.lines().map(|line| {
        let kept: Value = serde_json::from_str(line).unwrap();
        let name = kept["name"].as_str().unwrap().to_owned();
        (
            name,
            kept["is_periodic"] == true && kept["is_whole"] == true,
        )
    });
    kept.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_user_agent_and_dns_hosts_apply_to_the_next_fetch() {
    let gate = Gate::serve(&[("/", ""), ("/elsewhere", "")]);
    let home = Home::new();
    let mut running = waiting(&home, &gate, "archive.compression = 'none'").await;
    let agent = "Mozilla/5.0 (compatible; opilio/@VERSION@; by night +@CONTACT-URL@)";
    let set = home
        .run(&[
            "job",
            "set",
            "job",
            &format!("user-agent = {agent:?}"),
            "operator.contact-url = 'https://archive.nowhere.net/bot'",
            "operator.from = 'bot@archive.nowhere.net'",
            "dns.hosts.'elsewhere.test' = '127.0.0.1'",
        ])
        .code(0);
    assert_eq!(set.out.matches(", at once").count(), 4, "{set:?}");
    // Only dns.hosts has an address for this name.
    let elsewhere = gate
        .url("/elsewhere")
        .replace("gate.localhost", "elsewhere.test");
    let add = ["job", "seeds", "job", "--add", &elsewhere];
    home.run(&add).code(0);
    gate.open();
    assert_eq!(running.wait(), 0);

    assert_eq!(gate.requests_for("/elsewhere"), 1);
    let now = format!(
        "(compatible; opilio/{}; by night +https://archive.nowhere.net/bot)",
        env!("CARGO_PKG_VERSION")
    );
    let text = archived(&home);
    let request = text.split("GET /elsewhere ").nth(1).unwrap();
    let request = &request[..request.find("\r\n\r\n").unwrap()];
    assert!(request.contains(&now), "{request}");
    assert!(request.contains("bot@archive.nowhere.net"), "{request}");
    let before = text.split("GET / ").nth(1).unwrap();
    assert!(!before[..before.find("\r\n\r\n").unwrap()].contains("night"));
    // Later records follow a warcinfo record with the new user agent.
    assert!(text.contains(&format!("http-header-user-agent: Mozilla/5.0 {now}")));
    sound(&home.job());

    // The changes survive a restart.
    let settings = home.run(&["job", "settings", "job", "user-agent", "--json"]);
    assert!(settings.code(0).out.contains("by night"));
    let again = gate
        .url("/again")
        .replace("gate.localhost", "elsewhere.test");
    home.run(&["job", "seeds", "job", "--add", &again]).code(0);
    home.run(&["crawl", "p.toml", "--job", "job"]).code(0);
    assert_eq!(gate.requests_for("/again"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn additional_workers_start_at_once() {
    let gate = Gate::serve(&[("/", ""), ("/other", "")]);
    let home = Home::new();
    let mut running = waiting(&home, &gate, "workers = 1").await;
    let other = gate.url("/other").replace("gate.", "other.");
    home.run(&["job", "seeds", "job", "--add", &other]).code(0);
    let report = |what: &str| {
        home.run(&["job", "report", "job", what, "--json"])
            .code(0)
            .out
    };
    assert!(
        report("threads").contains("\"idle\":0"),
        "{}",
        report("threads")
    );
    assert_eq!(gate.requests_for("/other"), 0);
    home.run(&["job", "set", "job", "workers = 2"]).code(0);
    // The first worker is still busy.
    until("the other page is requested", || {
        gate.requests_for("/other") == 1
    })
    .await;
    gate.open();
    assert_eq!(running.wait(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_limit_that_is_already_reached_ends_the_crawl() {
    for (limit, end) in [
        ("limits.time = '1ms'", "time"),
        ("quotas.crawl.fetched = 1", "quota"),
    ] {
        let gate = Gate::serve(&[("/", "<a href='/a'>a</a>"), ("/a", "")]);
        let home = Home::new();
        let mut running = paused(&home, &gate).await;
        home.run(&["job", "set", "job", limit]).code(0);
        // The exit code of a limit.
        assert_eq!(running.wait(), 4, "{limit}");
        assert_eq!(gate.requests_for("/a"), 0, "{limit}");
        let log = job_log(&home);
        let last = log.lines().last().unwrap();
        assert!(
            last.contains("crawl end => ") && last.contains(end),
            "{log}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_alert_limits_and_commands_take_effect() {
    let gate = Gate::serve(&[("/", "")]);
    let home = Home::new();
    let mut running = waiting(&home, &gate, "").await;
    home.run(&[
        "job",
        "set",
        "job",
        "alerts.command = ['touch', '{kind}-raised']",
        "alerts.disk-warn = '8000000GiB'",
    ])
    .code(0);
    let touched = home.job().join("disk-low-raised");
    until("the command has run", || touched.exists()).await;
    home.run(&[
        "job",
        "set",
        "job",
        "alerts.disk-warn = 'none'",
        "alerts.disk-pause = 'none'",
    ])
    .code(0);
    let log = home.job().join("logs/alerts.log");
    let is_over = || {
        fs::read_to_string(&log)
            .unwrap()
            .contains("cleared warning disk-low")
    };
    until("the alert is cleared", is_over).await;
    gate.open();
    assert_eq!(running.wait(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_makes_periodic_checkpoints_and_keeps_the_last() {
    let gate = Gate::serve(&[("/", "")]);
    let home = Home::new();
    let again = "strategy = 'revisit'\nrevisit = { min-wait = '20ms', default-wait = '20ms', max-wait = '50ms' }";
    let mut running = waiting(&home, &gate, again).await;
    gate.open();
    home.run(&["job", "checkpoint", "job"]).code(0);
    let own = checkpoints(&home);
    assert!(matches!(&*own, [(_, false)]), "{own:?}");
    home.run(&[
        "job",
        "set",
        "job",
        "checkpoint.every = '1ms'",
        "checkpoint.keep = 1",
    ])
    .code(0);
    let periodic = || -> Vec<String> {
        let kept = checkpoints(&home).into_iter();
        kept.filter(|(_, is_periodic)| *is_periodic)
            .map(|(name, _)| name)
            .collect()
    };
    until("there is a periodic checkpoint", || !periodic().is_empty()).await;
    let first = periodic()[0].clone();
    let is_replaced = || {
        let kept = periodic();
        !kept.is_empty() && !kept.contains(&first)
    };
    until("a later checkpoint has replaced it", is_replaced).await;
    home.run(&["job", "set", "job", "checkpoint.every = 'none'"])
        .code(0);
    home.run(&["job", "stop", "job"]).code(0);
    assert_eq!(running.wait(), 0);
    assert_eq!(periodic().len(), 1);
    // The checkpoint of the operator is kept, and a job can be restored from the periodic one.
    assert!(checkpoints(&home).contains(&own[0]));
    assert!(job_log(&home).contains("crawl checkpoint => "));
    let from = format!("job/checkpoints/{}", periodic()[0]);
    home.run(&["job", "restore", &from, "restored"]).code(0);
    home.run(&["frontier", "check", "restored"]).code(0);
}

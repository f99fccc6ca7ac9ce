//! Killed processes: nothing is lost; fetches in flight may be archived twice.

use std::collections::BTreeMap;

use opilio_stories::{asked, captures, html, site, sound, until};
use opilio_test_web::Gate;

use crate::command::{Home, WWW, held_tree, uris_of_tree};

const PAGES: usize = 300;
const WORKERS: usize = 4;
const DEATHS: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_that_is_killed_repeatedly_archives_every_page() {
    // Held pages keep each crawl from ending before the signal.
    let gates = [100, 200, 290].map(|page| (page, Gate::closed()));
    let held = gates.each_ref().map(|(page, gate)| (*page, gate));
    let (home, web) = (Home::new(), held_tree(PAGES, 2000, &held).await);
    home.profile(&format!("name = 'tree'\nworkers = {WORKERS}"));
    let seed = web.url(WWW, "/");
    let command = ["crawl", "p.toml", "--seed", &seed, "--job", "job"];
    for (_, gate) in &gates {
        let enough = asked(&web).len() + 40;
        let mut running = home.start(&command);
        until("forty more pages are requested", || {
            asked(&web).len() >= enough
        })
        .await;
        running.signal("KILL");
        assert_eq!(running.wait(), -1);
        gate.open();
    }
    let ended = home.run(&command).code(0);
    assert!(ended.err.contains("was left open"), "{ended:?}");
    sound(&home.job());
    // Captures and lines of the log match, and all files have indexes.
    home.run(&["job", "verify", "job"]).code(0);

    let mut archived: BTreeMap<String, usize> = BTreeMap::new();
    for capture in captures(&home.job())
        .iter()
        .filter(|capture| capture.kind == "response")
    {
        *archived.entry(capture.uri.clone()).or_default() += 1;
    }
    let missing: Vec<_> = uris_of_tree(&web, PAGES)
        .into_iter()
        .filter(|uri| !archived.contains_key(uri))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    let twice = archived.values().filter(|times| **times > 1).count();
    assert!(
        twice <= WORKERS * DEATHS,
        "{twice} URIs were archived more than once"
    );
    let repeated_requests = asked(&web).len() - (PAGES - 1);
    assert!(
        repeated_requests <= WORKERS * DEATHS,
        "{repeated_requests} requests too many"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_cookie_survives_a_kill() {
    // The first request for the page is held until the second one arrives.
    let gate = Gate::of(2);
    let web = site(WWW)
        .page(
            "/",
            html("<a href='/held.html'>held</a>").with("set-cookie", "session=1"),
        )
        .page("/held.html", html("held").behind(&gate))
        .serve()
        .await;
    let home = Home::new();
    home.profile("name = 'session'");
    let seed = web.url(WWW, "/");
    let command = ["crawl", "p.toml", "--seed", &seed, "--job", "job"];
    let front = format!("{WWW} /");
    let page = format!("{WWW} /held.html");
    let mut running = home.start(&command);
    until("the page is requested", || asked(&web).contains(&page)).await;
    running.signal("KILL");
    assert_eq!(running.wait(), -1);
    home.run(&command).code(0);
    assert_eq!(asked(&web), [front, page.clone(), page]);
    let cookies: Vec<_> = web
        .requests()
        .iter()
        .filter(|seen| seen.target == "/held.html")
        .map(|seen| seen.headers.get("cookie").cloned())
        .collect();
    assert_eq!(cookies.len(), 2);
    assert!(
        cookies
            .iter()
            .all(|it| it.as_ref().is_some_and(|it| it == "session=1")),
        "{cookies:?}"
    );
    let scratch = std::fs::read_dir(home.job().join("scratch")).unwrap();
    assert_eq!(scratch.count(), 0);
}

/// The files and folders of a job that is being created, in the order in which they appear.
const CREATION_STEPS: [&str; 7] = [
    "lock",
    "state/",
    "warcs/",
    "logs/",
    "profile.draft",
    "profile.toml",
    "seeds.draft",
];

#[test]
fn a_half_created_job_is_created_by_the_same_command() {
    let home = Home::new();
    home.profile("");
    let seed = ["--seed", "http://localhost/"];
    for length in [0, 1, 4, 5, CREATION_STEPS.len()] {
        for (name, command) in [
            (
                "new",
                &["job", "new", "jobs/new", "--profile", "p.toml"][..],
            ),
            ("crawl", &["crawl", "p.toml", "--job", "jobs/crawl"]),
            ("clone", &["job", "clone", "jobs/one", "clone"]),
        ] {
            let seeds: &[&str] = if name == "clone" { &[] } else { &seed };
            if !home.path().join("jobs/one").exists() {
                home.run(
                    &[
                        &["job", "new", "jobs/one", "--profile", "p.toml"],
                        &seed[..],
                    ]
                    .concat(),
                )
                .code(0);
            }
            let job = home.path().join("jobs").join(name);
            for part in &CREATION_STEPS[..length] {
                let path = job.join(part);
                match part.strip_suffix('/') {
                    Some(_) => std::fs::create_dir_all(path).unwrap(),
                    None => {
                        std::fs::create_dir_all(&job).unwrap();
                        std::fs::write(path, "half").unwrap();
                    }
                }
            }
            // Nothing listens on port 80.
            let code = if name == "crawl" { 5 } else { 0 };
            home.run(&[command, seeds].concat()).code(code);
            assert!(job.join("job.json").exists(), "{name} {length}");
            std::fs::remove_dir_all(job).unwrap();
        }
    }
}

#[test]
fn a_half_restored_job_is_restored_by_the_same_command() {
    let home = Home::new();
    home.profile("");
    let new = [
        "job",
        "new",
        "./job",
        "--profile",
        "p.toml",
        "--seed",
        "http://localhost/",
    ];
    home.run(&new).code(0);
    home.run(&["job", "checkpoint", "job", "--to", "kept"])
        .code(0);
    let restored = home.path().join("restored");
    std::fs::create_dir_all(restored.join("restoring.new/state")).unwrap();
    std::fs::create_dir_all(restored.join("state")).unwrap();
    std::fs::write(restored.join("state/half"), "half").unwrap();
    home.run(&["job", "restore", "kept", "restored"]).code(0);
    assert!(!restored.join("state/half").exists());
    home.run(&["frontier", "check", "restored"]).code(0);
    let again = home.run(&["job", "restore", "kept", "restored"]).code(2);
    assert!(again.err.contains("already exists"), "{again:?}");
}

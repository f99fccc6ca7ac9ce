//! `opilio crawl`: its ends and exit codes.

use opilio_stories::{asked, captures, html, lines, site, sound, until};
use opilio_test_web::{Gate, Web};

use crate::command::{Home, WWW, held_tree, tree, uris_of_tree};

fn archived(home: &Home, web: &Web, pages: usize) -> bool {
    let captures = captures(&home.job());
    uris_of_tree(web, pages).iter().all(|uri| {
        captures
            .iter()
            .any(|capture| capture.kind == "response" && capture.uri == *uri)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_with_profile_seed_and_job_finishes() {
    let (home, web) = (Home::new(), tree(8, 0).await);
    home.profile("name = 'tree'");
    let seed = web.url(WWW, "/");
    let ended = home
        .run(&["crawl", "p.toml", "--seed", &seed, "--job", "job"])
        .code(0);
    assert!(ended.out.contains("finished: no URIs left"), "{ended:?}");
    assert!(ended.err.contains("crawling job"), "{ended:?}");
    sound(&home.job());
    assert!(archived(&home, &web, 8));

    let requests = web.requests().len();
    let again = home
        .run(&["crawl", "p.toml", "--seed", &seed, "--job", "job"])
        .code(0);
    assert!(again.err.contains("resuming job"), "{again:?}");
    assert_eq!(web.requests().len(), requests);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_and_the_end_of_a_crawl_have_different_exit_codes() {
    let (home, web) = (Home::new(), tree(8, 0).await);
    home.profile("name = 'tree'\nlimits.documents = 5");
    let seed = web.url(WWW, "/");
    let crawl = ["crawl", "p.toml", "--seed", &seed, "--job", "job"];
    let ended = home.run(&crawl).code(4);
    assert!(ended.out.contains("limit"), "{ended:?}");
    let ended = home.run(&crawl).code(0);
    assert!(ended.out.contains("no URIs left"), "{ended:?}");
    assert!(archived(&home, &web, 8));
}

/// The default profile refuses loopback addresses, so the crawl runs and fetches nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_url_is_crawled_with_the_default_profile_in_a_job_named_after_it() {
    let (home, web) = (
        Home::new(),
        site("localhost").page("/", html("")).serve().await,
    );
    let url = web.url("localhost", "/");
    let ended = home.run(&["crawl", &url]).code(5);
    assert!(ended.err.contains("allow-addresses"), "{ended:?}");
    assert!(
        ended
            .out
            .contains("fetch.allow-addresses or fetch.allow-ports refuses"),
        "{ended:?}"
    );
    let job = home
        .path()
        .join(format!("jobs/localhost-{}", web.address().port()));
    assert!(
        lines(&job)
            .iter()
            .any(|line| line.uri == url && line.status == -5001),
        "{:?}",
        lines(&job)
    );
    assert!(web.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn quiet_prints_nothing_without_errors() {
    let (home, web) = (Home::new(), tree(4, 0).await);
    home.profile("name = 'tree'");
    let ended = home
        .run(&[
            "crawl",
            "p.toml",
            "--seed",
            &web.url(WWW, "/"),
            "--job",
            "job",
            "--quiet",
        ])
        .code(0);
    assert_eq!((&*ended.out, &*ended.err), ("", ""));
    assert!(archived(&home, &web, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn json_output_is_one_object_per_line() {
    let (home, web) = (Home::new(), tree(4, 0).await);
    home.profile("name = 'tree'");
    let ended = home
        .run(&[
            "crawl",
            "p.toml",
            "--seed",
            &web.url(WWW, "/"),
            "--job",
            "job",
            "--json",
        ])
        .code(0);
    let objects: Vec<serde_json::Value> = ended
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let summary = objects.last().unwrap();
    // Three pages; robots.txt and the DNS look-up.
    let statistics = &summary["progress"]["statistics"];
    let counts = [&statistics["succeeded"], &statistics["prerequisites"]];
    assert_eq!(counts, [3, 2], "{summary}");
    assert_eq!(summary["warcs"].as_array().unwrap().len(), 1, "{summary}");
    assert!(
        summary["end"].as_str().unwrap().starts_with("finished"),
        "{summary}"
    );
    for line in ended.err.lines() {
        assert!(
            serde_json::from_str::<serde_json::Value>(line).is_ok(),
            "standard error: {line}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_stops_the_crawl_and_the_same_command_resumes_it() {
    const PAGES: usize = 200;
    let gate = Gate::closed();
    let (home, web) = (Home::new(), held_tree(PAGES, 0, &[(30, &gate)]).await);
    home.profile("name = 'tree'\nworkers = 2");
    let seed = web.url(WWW, "/");
    let command = ["crawl", "p.toml", "--seed", &seed, "--job", "job"];
    let mut running = home.start(&command);
    until("twenty pages are requested", || asked(&web).len() >= 20).await;
    running.signal("INT");
    running.wait_for_line("stopping: current fetches finish");
    gate.open();
    assert_eq!(running.wait(), 0);
    sound(&home.job());
    assert!(
        !archived(&home, &web, PAGES),
        "stopped too late for this test"
    );

    home.run(&command).code(0);
    sound(&home.job());
    assert!(archived(&home, &web, PAGES));
    let mut all = asked(&web);
    all.dedup();
    assert_eq!(all.len(), asked(&web).len(), "no page is requested twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_termination_stops_the_crawl_politely() {
    let (home, web) = (Home::new(), tree(200, 0).await);
    home.profile("name = 'tree'\nworkers = 2");
    let mut running = home.start_following_both(&[
        "crawl",
        "p.toml",
        "--seed",
        &web.url(WWW, "/"),
        "--job",
        "job",
    ]);
    until("twenty pages are requested", || asked(&web).len() >= 20).await;
    running.signal("TERM");
    assert_eq!(running.wait(), 0);
    sound(&home.job());
    // The summary does not count seeds, because that could take too long.
    running.wait_for_line("opilio job report");
    let seen = running.seen();
    assert!(
        !seen.iter().any(|line| line.contains("fetched")),
        "{seen:#?}"
    );
}

/// A polite stop waits for a server that never answers. A second interrupt does not wait, and nothing is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_interrupt_cuts_fetches_short_and_the_next_run_resumes() {
    let (home, web) = (Home::new(), tree(50, 0).await);
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_seed = format!(
        "http://silent.localhost:{}/",
        silent.local_addr().unwrap().port()
    );
    home.profile("name = 'tree'");
    let seed = web.url(WWW, "/");
    let mut running = home.start(&[
        "crawl",
        "p.toml",
        "--seed",
        &seed,
        "--seed",
        &silent_seed,
        "--job",
        "job",
    ]);
    until("all pages are requested", || asked(&web).len() >= 49).await;
    running.signal("INT");
    running.wait_for_line("stopping: current fetches finish");
    running.signal("INT");
    assert_eq!(running.wait(), 0);
    sound(&home.job());

    // Now the silent server is down, so the crawl can finish.
    drop(silent);
    home.run(&["crawl", "p.toml", "--job", "job"]).code(0);
    sound(&home.job());
    assert!(archived(&home, &web, 50));
}

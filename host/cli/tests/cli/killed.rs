//! Sudden death: what is in flight may be archived twice, and nothing is lost.

use std::collections::BTreeMap;

use opilio_stories::{asked, captures, html, site, sound, until};
use opilio_test_web::Gate;

use crate::command::{Home, WWW, tree, uris_of_tree};

const PAGES: usize = 300;
const WORKERS: usize = 4;
const DEATHS: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_that_is_killed_again_and_again_archives_every_page() {
    let (home, web) = (Home::new(), tree(PAGES, 2000).await);
    home.profile(&format!("name = 'tree'\nworkers = {WORKERS}"));
    let seed = web.url(WWW, "/");
    let command = ["crawl", "p.toml", "--seed", &seed, "--job", "job"];
    for _ in 0..DEATHS {
        let enough = asked(&web).len() + 40;
        let mut running = home.start(&command);
        until("forty more pages are asked for", || {
            asked(&web).len() >= enough
        })
        .await;
        running.signal("KILL");
        assert_eq!(running.wait(), -1);
    }
    let ended = home.run(&command).code(0);
    assert!(ended.err.contains("had been left open"), "{ended:?}");
    sound(&home.job());

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
    let asked_twice = asked(&web).len() - (PAGES - 1);
    assert!(
        asked_twice <= WORKERS * DEATHS,
        "{asked_twice} requests too many"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_outlives_sudden_death() {
    // The first who asks for the page waits until the second has come.
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
    until("the page is asked for", || asked(&web).contains(&page)).await;
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

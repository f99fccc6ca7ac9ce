//! Sudden death: what is in flight may be archived twice, and nothing is lost.

use std::collections::BTreeMap;

use opilio_stories::{asked, captures, sound, until};

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

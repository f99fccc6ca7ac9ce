//! A shared crawl whose NATS server loses acknowledged messages, as in a power failure.

use std::collections::BTreeSet;

use opilio_stories::until;
use opilio_test_nats::NatsServer;
use opilio_test_web::{Gate, Reply, Web};
use serde_json::Value;

use crate::command::Home;
use crate::shared_crawl::{SITES, all_uris, crawl, home, host, page, pages};

/// Returns the number of messages in the inbox of a part; 0 while NATS does not answer.
fn inbox(home: &Home, part: &str) -> u64 {
    let listed = home.run(&["node", "parts", "news", "--json"]).out;
    let mut parts = listed
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap_or_default());
    let part = parts.find(|listed| listed["name"] == part);
    part.and_then(|part| part["inbox"].as_u64()).unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn links_lost_by_nats_are_sent_again_and_no_page_is_missing() {
    let Some(mut server) = NatsServer::start() else {
        return;
    };
    let gate = Gate::closed();
    let mut web = Web::builder();
    for site in 0..SITES {
        let built = web.site(&host(site));
        let built = built.page("/robots.txt", Reply::status(404).behind(&gate));
        built.rest(move |seen| page(site, seen));
    }
    let web = web.serve().await.unwrap();
    let (home_a, home_b) = (home(&server, &web, "a"), home(&server, &web, "b"));
    let mut a = crawl(&home_a);
    let mut b = crawl(&home_b);
    until("both crawl", || web.requests().len() >= SITES).await;
    b.signal("KILL");
    b.wait();
    server.save_store();
    gate.open();
    until("links to the dead node are stored", || {
        inbox(&home_a, "b") > 0
    })
    .await;
    server.restore_store();
    let mut b = crawl(&home_b);
    assert_eq!((a.wait(), b.wait()), (0, 0));
    let mut all = pages(&home_a.job());
    all.extend(pages(&home_b.job()));
    assert_eq!(all.keys().cloned().collect::<BTreeSet<_>>(), all_uris(&web));
    let log = std::fs::read_to_string(home_a.job().join("logs/alerts.log")).unwrap();
    let is_raised = |line: &str| line.contains(" raised ") && line.contains(" nats lost-links ");
    assert!(log.lines().any(is_raised), "{log}");
}

//! A crawl that two nodes share over a real `nats-server`: each site belongs to one node, and together they crawl the same
//! pages as one node.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use opilio_control::{Author, Command, CommandRequest, carry_out};
use opilio_stories::{captures, html, until};
use opilio_test_nats::NatsServer;
use opilio_test_web::{Gate, Reply, SeenRequest, Web};
use serde_json::Value;

use crate::command::{Home, Running};

pub(crate) const SITES: usize = 8;

/// Number of pages that the first page of a site links to.
const PAGES: usize = 5;

/// Time to live of sessions, so that a restart after a death does not wait for long.
const TIME_TO_LIVE: &str = "5s";

pub(crate) fn host(site: usize) -> String {
    format!("www.site{site}.localhost")
}

/// Sites whose first page links to pages of the site and to a page of the next site that no other page links to.
pub(crate) async fn web() -> Web {
    held_web(&[]).await
}

/// The same sites, with these pages of each site behind a gate.
async fn held_web(held: &[(&str, &Gate)]) -> Web {
    let mut web = Web::builder();
    for site in 0..SITES {
        let mut built = web
            .site(&host(site))
            .page("/robots.txt", Reply::status(404));
        for (target, gate) in held {
            built = built.page(target, html("held").behind(gate));
        }
        built.rest(move |seen| page(site, seen));
    }
    web.serve().await.unwrap()
}

pub(crate) fn page(site: usize, seen: &SeenRequest) -> Reply {
    let host_and_port = seen.headers["host"].to_str().unwrap();
    let port = host_and_port.rsplit(':').next().unwrap();
    let next = host((site + 1) % SITES);
    match seen.target.as_str() {
        "/" => {
            let own: String = (0..PAGES)
                .map(|n| format!("<a href='/{n}.html'>{n}</a>"))
                .collect();
            html(&format!(
                "{own}<a href='http://{next}:{port}/from-{site}.html'>next</a>"
            ))
        }
        // Every page links to the first page of the next site.
        _ => html(&format!("<a href='http://{next}:{port}/'>next</a>")),
    }
}

pub(crate) fn all_uris(web: &Web) -> BTreeSet<String> {
    let of_site = |site: usize| {
        let pages = (0..PAGES).map(|n| format!("/{n}.html"));
        let before = (site + SITES - 1) % SITES;
        let others = ["/".to_owned(), format!("/from-{before}.html")];
        let targets: Vec<String> = pages.chain(others).collect();
        targets.into_iter().map(move |it| (site, it))
    };
    let uris = (0..SITES).flat_map(of_site);
    uris.map(|(site, target)| web.url(&host(site), &target))
        .collect()
}

/// Number of captures of each page.
pub(crate) fn pages(job: &Path) -> BTreeMap<String, usize> {
    let mut pages = BTreeMap::new();
    for capture in captures(job) {
        let is_page = capture.uri.starts_with("http") && !capture.uri.ends_with("/robots.txt");
        if is_page && ["response", "revisit"].contains(&&*capture.kind) {
            *pages.entry(capture.uri).or_default() += 1;
        }
    }
    pages
}

/// Returns the configuration of a node.
pub(crate) fn configuration(server: &NatsServer, node: &str) -> String {
    format!(
        "[cluster]\nservers = [\"127.0.0.1:{}\"]\nnode = \"{node}\"\npartitions = 16\ntime-to-live = \"{TIME_TO_LIVE}\"\n",
        server.port
    )
}

/// Creates a home with the configuration of a node and the profile of the crawl.
pub(crate) fn home(server: &NatsServer, web: &Web, node: &str) -> Home {
    let home = Home::new();
    home.file("opilio.toml", configuration(server, node));
    let seeds: Vec<String> = (0..SITES).map(|site| web.url(&host(site), "/")).collect();
    home.profile(&format!("name = 'shared'\nseeds = {seeds:?}"));
    home
}

pub(crate) fn crawl(home: &Home) -> Running {
    home.start(&[
        "crawl",
        "p.toml",
        "--job",
        "job",
        "--cluster-job",
        "news",
        "--nodes",
        "a,b",
    ])
}

fn sites(pages: &BTreeMap<String, usize>) -> BTreeSet<&str> {
    pages
        .keys()
        .map(|uri| uri.split('/').nth(2).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_crawl_the_same_pages_as_one_and_each_site_has_one_node() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let web = web().await;
    let (home_a, home_b) = (home(&server, &web, "a"), home(&server, &web, "b"));
    let mut a = crawl(&home_a);
    // The first node waits for the other node.
    until("the first node crawls", || web.requests().len() >= SITES).await;
    let mut b = crawl(&home_b);
    assert_eq!(b.wait(), 0);
    assert_eq!(a.wait(), 0);
    let (of_a, of_b) = (pages(&home_a.job()), pages(&home_b.job()));
    let (sites_a, sites_b) = (sites(&of_a), sites(&of_b));
    assert!(!sites_a.is_empty() && !sites_b.is_empty());
    assert!(sites_a.is_disjoint(&sites_b), "{sites_a:?} {sites_b:?}");
    let mut all = of_a.clone();
    all.extend(of_b.clone());
    assert_eq!(all.keys().cloned().collect::<BTreeSet<_>>(), all_uris(&web));
    assert!(all.values().all(|count| *count == 1), "{all:?}");

    // The job is registered in the cluster, and only the same job can be resumed.
    let again = ["crawl", "job"];
    home_a.run(&again).code(0);
    let other = [
        "crawl",
        "p.toml",
        "--job",
        "job",
        "--cluster-job",
        "news",
        "--nodes",
        "a,c",
    ];
    let ended = home_a.run(&other).code(1);
    assert!(
        ended.err.contains("was made for other nodes (a, b)"),
        "{ended:?}"
    );
    let other = [
        "crawl",
        "p.toml",
        "--job",
        "other",
        "--cluster-job",
        "news",
        "--nodes",
        "b,c",
    ];
    let ended = home_a.run(&other).code(1);
    assert!(
        ended
            .err
            .contains("node \"a\" (cluster.node) is not one of"),
        "{ended:?}"
    );
    let profile = std::fs::read_to_string(home_a.path().join("p.toml")).unwrap();
    home_a.file("p.toml", profile.replace("'shared'", "'changed'"));
    let other = [
        "crawl",
        "p.toml",
        "--job",
        "other",
        "--cluster-job",
        "news",
        "--nodes",
        "a,b",
    ];
    let ended = home_a.run(&other).code(1);
    assert!(ended.err.contains("has another profile"), "{ended:?}");
    assert!(!home_a.path().join("other").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_nodes_continue_and_no_page_is_missing() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let web = web().await;
    let (home_a, home_b) = (home(&server, &web, "a"), home(&server, &web, "b"));
    let mut a = crawl(&home_a);
    let mut b = crawl(&home_b);
    let fetched = |least: usize| web.requests().len() >= least;
    until("both nodes crawl", || fetched(SITES)).await;
    b.signal("KILL");
    b.wait();
    // Links to the dead node wait in NATS.
    let mut b = crawl(&home_b);
    until("the crawl continues", || fetched(3 * SITES)).await;
    a.signal("KILL");
    a.wait();
    let mut a = crawl(&home_a);
    assert_eq!((a.wait(), b.wait()), (0, 0));
    let mut all = pages(&home_a.job());
    for (uri, count) in pages(&home_b.job()) {
        assert!(!all.contains_key(&uri), "{uri} has two nodes");
        all.insert(uri, count);
    }
    assert_eq!(all.keys().cloned().collect::<BTreeSet<_>>(), all_uris(&web));
    let repeated = all.values().filter(|count| **count > 1).count();
    // Pages that were being fetched at a death: one per queue.
    assert!(repeated <= 2 * SITES, "{all:?}");
}

/// Returns the kinds of the changes of a job.
fn changes(home: &Home) -> Vec<String> {
    let text = std::fs::read_to_string(home.job().join("history.jsonl")).unwrap_or_default();
    let changes = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let kinds = changes.map(|change| {
        let action = change["action"].as_str().unwrap_or_default();
        format!("{} {action}", change["change"].as_str().unwrap())
    });
    kinds.collect()
}

fn json_file(home: &Home, name: &str) -> Value {
    let text = std::fs::read_to_string(home.job().join(name)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn state(home: &Home) -> String {
    let ended = home.run(&["job", "status", "job", "--json"]);
    let status: Value = serde_json::from_str(&ended.out).unwrap_or_default();
    status["state"].as_str().unwrap_or_default().to_owned()
}

/// Returns the component of the HTML extractor that a job uses.
fn html_component(home: &Home) -> String {
    let plugins = json_file(home, "plugins.json").to_string();
    let component = plugins.contains("changed.wasm");
    if component { "changed" } else { "built in" }.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_operators_take_effect_once_on_all_nodes_and_survive_restarts() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let gate = Gate::closed();
    let web = held_web(&[("/4.html", &gate)]).await;
    let (home_a, home_b) = (home(&server, &web, "a"), home(&server, &web, "b"));
    let homes = [&home_a, &home_b];
    let (mut a, mut b) = (crawl(&home_a), crawl(&home_b));
    let is_held = |web: &Web| {
        let held = web.requests();
        held.iter().filter(|seen| seen.target == "/4.html").count()
    };
    until("a page of each site is held", || is_held(&web) == SITES).await;

    // A question about a URI is sent to the node that has its site.
    let uri = web.url(&host(0), "/");
    let why = ["frontier", "why", "job", &uri, "--json"];
    let answers = homes.map(|home| home.run(&why).code(0).out);
    let part = |answer: &String| {
        let (_, rest) = answer.split_once("\"part\":\"").unwrap();
        rest.chars().next().unwrap()
    };
    assert_eq!(part(&answers[0]), part(&answers[1]), "{answers:?}");
    assert!(answers.iter().all(|it| it.contains("\"visits\":1")));

    // An override that is added on one node. Its number is different on a node that had a change before.
    let own = [
        "job",
        "set",
        "job",
        "--host",
        &host(0),
        "retry.max-retries=3",
    ];
    home_a.run(&own).code(0);
    until("both nodes have the override", || {
        homes.map(changes) == [["override add"], ["override add"]]
    })
    .await;
    let refused = home_a.run(&["job", "set", "job", "workers='many'"]).code(2);
    assert!(refused.err.contains("nothing was changed"), "{refused:?}");

    home_b.run(&["job", "pause", "job"]).code(0);
    until("both nodes are paused", || {
        homes.map(state).iter().all(|it| it.starts_with("paus"))
    })
    .await;

    // A node that does not run receives commands when it starts, but commands can be sent from it.
    b.signal("KILL");
    b.wait();
    let mut component = opilio_builtin::find("html").unwrap().component.to_vec();
    component.extend(b"\0\x08\x06remark!");
    let file = home_a.file("changed.wasm", component);
    let replace = ["plugin", "replace", "job", "html", "changed.wasm"];
    home_a.run(&replace).code(0);
    std::fs::remove_file(file).unwrap();
    home_b.run(&["job", "set", "job", "workers=3"]).code(0);
    assert_eq!(html_component(&home_b), "changed");
    until("the other node has the setting too", || {
        changes(&home_a) == ["override add", "set "]
    })
    .await;
    let mut b = crawl(&home_b);
    until("the node is paused from its start", || {
        state(&home_b).starts_with("paus")
    })
    .await;
    assert_eq!(homes.map(html_component), ["changed", "changed"]);

    let id = json_file(&home_b, "changes/overrides.json")[0]["id"].to_string();
    home_b
        .run(&["job", "unset", "job", "--override", &id])
        .code(0);
    let all = ["override add", "set ", "override remove"];
    until("all changes arrived", || homes.map(changes) == [all, all]).await;

    // A stop ends all processes; the pause remains.
    home_a.run(&["job", "stop", "job"]).code(0);
    gate.open();
    assert_eq!((a.wait(), b.wait()), (0, 0));
    let requests = web.requests().len();
    let (mut a, mut b) = (crawl(&home_a), crawl(&home_b));
    until("both nodes are paused again", || {
        homes.map(state).iter().all(|it| it.starts_with("paus"))
    })
    .await;
    assert_eq!(web.requests().len(), requests);
    home_b.run(&["job", "resume", "job"]).code(0);
    assert_eq!((a.wait(), b.wait()), (0, 0));
    assert_eq!(homes.map(changes), [all, all]);
    let mut fetched = pages(&home_a.job());
    fetched.extend(pages(&home_b.job()));
    assert_eq!(
        fetched.keys().cloned().collect::<BTreeSet<_>>(),
        all_uris(&web)
    );

    // One of the two nodes does not have the site, and the other node does not run.
    let answers = homes.map(|home| home.run(&why));
    let refused = answers.iter().find(|ended| ended.code != 0).unwrap();
    assert!(refused.err.contains("does not answer"), "{refused:?}");

    // Without NATS, nothing is changed.
    drop(server);
    let refused = home_a.run(&["job", "set", "job", "workers=4"]).code(1);
    assert!(
        refused.err.contains("no NATS server answers"),
        "{refused:?}"
    );
    assert_eq!(changes(&home_a), all);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_paused_by_itself_stays_paused_if_nats_cannot_accept_the_resumption() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let gate = Gate::closed();
    let web = held_web(&[("/4.html", &gate)]).await;
    let home_a = home(&server, &web, "a");
    let mut a = crawl(&home_a);
    until("the node crawls", || !web.requests().is_empty()).await;
    // Alerts and crawl windows pause a node in this way.
    let pause = CommandRequest {
        by: Author::default(),
        command: Command::Pause,
        only_here: true,
    };
    carry_out(&home_a.job(), &pause, &mut |_| true).unwrap();
    let is_paused = || state(&home_a).starts_with("paus");
    assert!(is_paused());
    drop(server);
    let refused = home_a.run(&["job", "resume", "job"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(is_paused());
    a.signal("KILL");
    a.wait();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_nats_is_an_alert_and_the_crawl_continues_after_it() {
    let Some(mut server) = NatsServer::start() else {
        return;
    };
    let gate = Gate::closed();
    let web = held_web(&[("/4.html", &gate)]).await;
    let (home_a, home_b) = (home(&server, &web, "a"), home(&server, &web, "b"));
    let homes = [&home_a, &home_b];
    let (mut a, mut b) = (crawl(&home_a), crawl(&home_b));
    until("both nodes crawl", || web.requests().len() >= 2 * SITES).await;
    server.kill();
    let has_alert = |home: &&Home| {
        let alerts = home.run(&["job", "alerts", "job"]).out;
        alerts.contains("NATS does not answer")
    };
    until("both nodes are paused", || homes.iter().all(has_alert)).await;
    server.begin();
    gate.open();
    assert_eq!((a.wait(), b.wait()), (0, 0));
    for home in homes {
        let log = std::fs::read_to_string(home.job().join("logs/alerts.log")).unwrap();
        let cleared = |line: &str| line.contains(" cleared ") && line.contains(" nats");
        assert!(log.lines().any(cleared), "{log}");
    }
    let mut all = pages(&home_a.job());
    all.extend(pages(&home_b.job()));
    assert_eq!(all.keys().cloned().collect::<BTreeSet<_>>(), all_uris(&web));
    assert!(all.values().all(|count| *count == 1), "{all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_fails_on_one_node_raises_an_alert_and_delays_no_pause_or_stop() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let gate = Gate::closed();
    let web = held_web(&[("/4.html", &gate)]).await;
    let (home_a, home_b) = (home(&server, &web, "a"), home(&server, &web, "b"));
    let homes = [&home_a, &home_b];
    let (mut a, mut b) = (crawl(&home_a), crawl(&home_b));
    // One node alone can have sent as many requests, so the states are checked too.
    let are_running = || homes.map(state).iter().all(|it| it == "running");
    until("both nodes crawl", || {
        web.requests().len() >= 2 * SITES && are_running()
    })
    .await;

    // A folder in place of the file makes the write fail, as a full disk would.
    let file = home_b.job().join("added-seeds.txt");
    std::fs::create_dir(&file).unwrap();
    let new = web.url(&host(0), "/new.html");
    let add = ["job", "seeds", "job", "--add", &new];
    home_a.run(&add).code(0);
    let alerts = || home_b.run(&["job", "alerts", "job"]).out;
    until("an alert is raised", || alerts().contains("commands")).await;
    home_a.run(&["job", "pause", "job"]).code(0);
    let are_paused = || homes.map(state).iter().all(|it| it.starts_with("paus"));
    until("both nodes are paused", are_paused).await;
    home_b.run(&["job", "stop", "job"]).code(0);
    gate.open();
    assert_eq!((a.wait(), b.wait()), (0, 0));

    std::fs::remove_dir(&file).unwrap();
    let (mut a, mut b) = (crawl(&home_a), crawl(&home_b));
    until("both nodes are paused from their start", are_paused).await;
    assert!(file.is_file());
    home_a.run(&["job", "resume", "job"]).code(0);
    assert_eq!((a.wait(), b.wait()), (0, 0));
    let mut fetched = pages(&home_a.job());
    fetched.extend(pages(&home_b.job()));
    assert!(fetched.contains_key(&new), "{fetched:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_a_node_cannot_store_is_stored_when_the_cause_is_removed() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let gate = Gate::closed();
    let web = held_web(&[("/4.html", &gate)]).await;
    let home_a = home(&server, &web, "a");
    let mut a = crawl(&home_a);
    until("the node crawls", || !web.requests().is_empty()).await;
    a.signal("KILL");
    a.wait();

    // A folder in place of the file makes the write fail, as a full disk would.
    let draft = home_a.job().join("plugins.draft");
    std::fs::create_dir(&draft).unwrap();
    let mut component = opilio_builtin::find("html").unwrap().component.to_vec();
    component.extend(b"\0\x08\x06remark!");
    home_a.file("changed.wasm", component);
    let replace = ["plugin", "replace", "job", "html", "changed.wasm"];
    let failed = home_a.run(&replace).code(1);
    let is_delayed = failed.err.contains("not carried out here yet");
    assert!(is_delayed, "{failed:?}");
    assert_eq!(html_component(&home_a), "built in");
    std::fs::remove_dir(&draft).unwrap();
    home_a.run(&["job", "set", "job", "workers=3"]).code(0);
    assert_eq!(html_component(&home_a), "changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_of_all_nodes_applies_if_the_disk_is_full_when_a_process_starts() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let gate = Gate::closed();
    let web = held_web(&[("/4.html", &gate)]).await;
    let home_a = home(&server, &web, "a");
    let mut a = crawl(&home_a);
    until("the node crawls", || !web.requests().is_empty()).await;
    home_a.run(&["job", "pause", "job"]).code(0);
    a.signal("KILL");
    a.wait();

    // A folder in place of the file makes the write fail, as a full disk would.
    let draft = home_a.job().join("cluster-commands.draft");
    std::fs::create_dir(&draft).unwrap();
    let requests = web.requests().len();
    let mut a = crawl(&home_a);
    let is_paused = || state(&home_a).starts_with("paus");
    until("the node is paused from its start", is_paused).await;
    assert_eq!(web.requests().len(), requests);
    // The resumption takes effect although its position in the log cannot be written.
    home_a.run(&["job", "resume", "job"]).code(0);
    assert!(!is_paused());
    a.signal("KILL");
    a.wait();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_is_sent_after_the_death_of_the_process_ends_the_next_process() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let gate = Gate::closed();
    let web = held_web(&[("/4.html", &gate)]).await;
    let home_a = home(&server, &web, "a");
    let mut a = crawl(&home_a);
    until("the node crawls", || !web.requests().is_empty()).await;
    a.signal("KILL");
    a.wait();
    home_a.run(&["job", "stop", "job"]).code(0);
    assert_eq!(crawl(&home_a).wait(), 0);
    // The stop has had its effect: the next start crawls.
    let requests = web.requests().len();
    let mut a = crawl(&home_a);
    until("the node crawls again", || web.requests().len() > requests).await;
    a.signal("KILL");
    a.wait();
}

#[tokio::test(flavor = "multi_thread")]
async fn all_nodes_together_reach_a_limit_of_the_crawl_exactly() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    const LIMIT: usize = 21;
    let web = web().await;
    let (home_a, home_b) = (home(&server, &web, "a"), home(&server, &web, "b"));
    for home in [&home_a, &home_b] {
        let profile = std::fs::read_to_string(home.path().join("p.toml")).unwrap();
        home.file("p.toml", format!("{profile}limits.documents = {LIMIT}\n"));
    }
    let (mut a, mut b) = (crawl(&home_a), crawl(&home_b));
    assert_eq!((a.wait(), b.wait()), (4, 4));
    let fetched = |home: &Home| pages(&home.job()).values().sum::<usize>();
    assert_eq!(fetched(&home_a) + fetched(&home_b), LIMIT);
    let logged = |home: &Home| {
        let log = std::fs::read_to_string(home.job().join("logs/crawl.log")).unwrap();
        let lines = log.lines();
        let status = |line: &&str| line.split_whitespace().nth(1) == Some("200");
        lines.filter(status).count()
    };
    assert_eq!(logged(&home_a) + logged(&home_b), LIMIT);
    let listed = home_a.run(&["node", "parts", "news", "--json"]).code(0).out;
    let parts = listed
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let reported = parts.map(|part| part["figures"]["fetched"].as_u64().unwrap());
    assert_eq!(reported.sum::<u64>(), LIMIT as u64);

    // A changed limit applies to all nodes.
    let more = ["job", "set", "job", "limits.documents='none'"];
    home_b.run(&more).code(0);
    let (mut a, mut b) = (crawl(&home_a), crawl(&home_b));
    assert_eq!((a.wait(), b.wait()), (0, 0));
    let mut all = pages(&home_a.job());
    all.extend(pages(&home_b.job()));
    assert_eq!(all.keys().cloned().collect::<BTreeSet<_>>(), all_uris(&web));
    assert_eq!(all.values().sum::<usize>(), all.len());
}

//! Takeover of parts of a shared crawl by another machine, over a real `nats-server` and a folder as archive store.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use opilio_stories::{captures, html, until};
use opilio_test_nats::NatsServer;
use opilio_test_web::{Gate, Reply, SeenRequest, Web};
use serde_json::Value;
use tempfile::TempDir;

use crate::command::{Home, Running};
use crate::serve::Daemon;

/// Number of sites: enough that each of two parts has some.
const SITES: usize = 8;

/// Number of pages that the first page of a site links to.
const PAGES: usize = 5;

/// Number of the page that is not answered until the gate is open.
const HELD: usize = 3;

/// Delay between two requests to a site.
const DELAY: Duration = Duration::from_millis(300);

/// The web, the NATS server and the archive store that the machines share.
struct World {
    nats: NatsServer,
    web: Web,
    gate: Gate,
    store: TempDir,
}

/// A machine, which is a home with the configuration of a node.
struct Machine {
    home: Home,
}

fn host(site: usize) -> String {
    format!("www.site{site}.localhost")
}

/// Sites whose first page links to pages of the site and to a page of the next site that no other page links to.
fn page(site: usize, seen: &SeenRequest) -> Reply {
    let host_and_port = seen.headers["host"].to_str().unwrap();
    let port = host_and_port.rsplit(':').next().unwrap();
    let next = host((site + 1) % SITES);
    match seen.target.as_str() {
        "/" => {
            let own = (0..PAGES).map(|n| format!("<a href='/{n}.html'>{n}</a>"));
            let own: String = own.collect();
            html(&format!(
                "{own}<a href='http://{next}:{port}/from-{site}.html'>next</a>"
            ))
        }
        _ => html("text"),
    }
}

impl World {
    async fn new() -> Option<World> {
        let nats = NatsServer::start()?;
        let gate = Gate::closed();
        let mut web = Web::builder();
        for site in 0..SITES {
            web.site(&host(site))
                .page("/robots.txt", Reply::status(404))
                .page(&format!("/{HELD}.html"), html("held").behind(&gate))
                .rest(move |seen| page(site, seen));
        }
        Some(World {
            nats,
            web: web.serve().await.unwrap(),
            gate,
            store: tempfile::tempdir().unwrap(),
        })
    }

    fn machine(&self, node: &str) -> Machine {
        let home = Home::new();
        home.file(
            "opilio.toml",
            format!(
                "[cluster]\nservers = [\"127.0.0.1:{}\"]\nnode = \"{node}\"\npartitions = 16\ntime-to-live = \"2s\"\ntake-over-after = \"1s\"\n",
                self.nats.port
            ),
        );
        let seeds: Vec<String> = (0..SITES)
            .map(|site| self.web.url(&host(site), "/"))
            .collect();
        let delay = DELAY.as_millis();
        home.file(
            "p.toml",
            format!(
                "name = 'shared'\nseeds = {seeds:?}\n\
                 politeness = {{ delay-factor = 0.0, min-delay = \"{delay}ms\", max-delay = \"{delay}ms\" }}\n\
                 fetch = {{ allow-addresses = [\"loopback\"], response-timeout = \"10m\" }}\n\
                 alerts = {{ disk-warn = \"none\", disk-pause = \"none\", part-gone-after = \"1s\" }}\n\
                 checkpoint.publish-every = \"1s\"\narchive.store.url = \"file://{}\"\n",
                self.store.path().display()
            ),
        );
        Machine { home }
    }

    /// Number of sites whose held page was requested.
    fn held(&self) -> usize {
        let held = format!("/{HELD}.html");
        let requests = self.web.requests();
        let hosts = requests.iter().filter(|seen| seen.target == held);
        let hosts: BTreeSet<_> = hosts.map(|seen| &seen.host).collect();
        hosts.len()
    }

    /// Number of requests for each page.
    fn requests(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for seen in self.web.requests() {
            if seen.target != "/robots.txt" {
                *counts
                    .entry(self.web.url(&seen.host, &seen.target))
                    .or_default() += 1;
            }
        }
        counts
    }

    /// Number of captures of each page that the store has.
    fn stored(&self) -> BTreeMap<String, usize> {
        let mut pages = BTreeMap::new();
        for part in std::fs::read_dir(self.store.path().join("news")).unwrap() {
            for capture in captures(&part.unwrap().path()) {
                let is_page =
                    capture.uri.starts_with("http") && !capture.uri.ends_with("robots.txt");
                if is_page && ["response", "revisit"].contains(&&*capture.kind) {
                    *pages.entry(capture.uri).or_default() += 1;
                }
            }
        }
        pages
    }

    /// Asserts that the store has each page once, and that only pages that were held during a takeover were requested twice.
    #[track_caller]
    fn assert_every_page_once(&self) {
        let stored = self.stored();
        let pages = |site: usize| {
            let own = (0..PAGES).map(|n| format!("/{n}.html"));
            let before = (site + SITES - 1) % SITES;
            let others = ["/".to_owned(), format!("/from-{before}.html")];
            own.chain(others).map(move |target| (site, target))
        };
        let expected = (0..SITES).flat_map(pages);
        let expected: BTreeSet<String> = expected
            .map(|(site, target)| self.web.url(&host(site), &target))
            .collect();
        assert_eq!(stored.keys().cloned().collect::<BTreeSet<_>>(), expected);
        assert!(stored.values().all(|count| *count == 1), "{stored:?}");
        for (uri, count) in self.requests() {
            let most = if uri.ends_with(&format!("/{HELD}.html")) {
                2
            } else {
                1
            };
            assert!(count <= most, "{uri} was fetched {count} times");
        }
    }

    /// Asserts that the requests to each site had the delay between them.
    #[track_caller]
    fn assert_polite(&self) {
        let mut last: BTreeMap<String, Instant> = BTreeMap::new();
        let mut requests = self.web.requests();
        requests.sort_by_key(|seen| seen.came);
        for seen in requests {
            if let Some(before) = last.insert(seen.host.clone(), seen.came) {
                let rest = seen.came - before;
                assert!(rest >= DELAY, "{} came after {rest:?}", seen.target);
            }
        }
    }
}

impl Machine {
    fn job(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn arguments<'s>(job: &'s str, more: &[&'s str]) -> Vec<&'s str> {
        let fixed = [
            "crawl",
            "p.toml",
            "--job",
            job,
            "--cluster-job",
            "news",
            "--nodes",
            "a,b",
        ];
        fixed.iter().chain(more).copied().collect()
    }

    fn crawl(&self, job: &str, more: &[&str]) -> Running {
        self.home.start(&Self::arguments(job, more))
    }

    /// Returns the parts as `opilio node parts` shows them.
    #[track_caller]
    fn parts(&self) -> BTreeMap<String, Value> {
        let ended = self.home.run(&["node", "parts", "news", "--json"]).code(0);
        let parts = ended.out.lines().map(|line| {
            let part: Value = serde_json::from_str(line).unwrap();
            (part["name"].as_str().unwrap().to_owned(), part)
        });
        parts.collect()
    }

    /// Waits until a snapshot of a part was published after this call, and returns its time.
    async fn wait_for_snapshot(&self, job: &str, part: &str) -> String {
        let before = Timestamp::now();
        // Makes a change that the newest snapshot cannot have: without a change, no further snapshot may be published.
        let listed = self
            .home
            .run(&["frontier", "queues", job, "--json"])
            .code(0);
        let first: Value = serde_json::from_str(listed.out.lines().next().unwrap()).unwrap();
        let queue = first["queue"].as_str().unwrap();
        self.home.run(&["frontier", "freeze", job, queue]).code(0);
        self.home.run(&["frontier", "thaw", job, queue]).code(0);
        let mut made = String::new();
        until("a snapshot is published", || {
            let parts = self.parts();
            let at = parts[part]["snapshot"]["made"].as_str().unwrap_or_default();
            at.clone_into(&mut made);
            at.parse::<Timestamp>().is_ok_and(|at| at > before)
        })
        .await;
        made
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(self::files(&path)),
            false => files.push(path),
        }
    }
    files.sort();
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn the_part_of_a_lost_machine_is_taken_over_and_no_page_is_missing() {
    let Some(world) = World::new().await else {
        return;
    };
    let (one, two) = (world.machine("a"), world.machine("b"));
    let mut a = one.crawl("job", &[]);
    let mut b = two.crawl("job", &[]);
    until("a page of each site is held", || world.held() == SITES).await;
    one.wait_for_snapshot("job", "a").await;
    // At the start the alert is also raised if one process begins long before the other.
    let is_alert = || {
        let log = std::fs::read_to_string(two.job("job/logs/alerts.log")).unwrap_or_default();
        let last = log.lines().rfind(|line| line.contains(" part-gone a "));
        last.is_some_and(|line| line.contains(" raised warning "))
    };
    until("no part is missing", || !is_alert()).await;
    a.signal("KILL");
    a.wait();
    std::fs::remove_dir_all(one.job("job")).unwrap();
    until("the other machine raises an alert", is_alert).await;
    let gone = |line: &str| line.starts_with("opilio_parts{") && line.ends_with("\"gone\"} 1");
    until("a metric counts the part", || {
        let metrics = two.home.run(&["job", "metrics", "job"]).code(0).out;
        metrics.lines().any(gone)
    })
    .await;

    // A part that has begun cannot be started from scratch by mistake.
    let ended = one.home.run(&Machine::arguments("job", &[])).code(1);
    assert!(ended.err.contains("has begun part \"a\""), "{ended:?}");
    assert!(!one.job("job").exists());
    // The profile comes from the cluster.
    let join = ["crawl", "--cluster-job", "news", "--job", "taken"];
    let take_over = [&join[..], &["--take-over", "a"]].concat();
    let mut taken = two.home.start(&take_over);
    until("the part continues on the other machine", || {
        two.job("taken/job.json").exists()
    })
    .await;
    until("the alert is over", || !is_alert()).await;
    world.gate.open();
    assert_eq!((taken.wait(), b.wait()), (0, 0));
    world.assert_every_page_once();
    world.assert_polite();
    let parts = two.parts();
    for part in ["a", "b"] {
        let part = &parts[part];
        assert_eq!(part["node"], "b", "{part}");
        assert_eq!(
            (&part["state"], &part["inbox"]),
            (&"stopped".into(), &0.into())
        );
    }
    // The earlier snapshots were deleted.
    let news = world.store.path().join("news");
    assert_eq!(
        files(&news.join("a-1/snapshots")),
        [""; 0].map(PathBuf::from)
    );
    let manifests = files(&news.join("a-2/snapshots"));
    let manifests = manifests.iter().filter(|it| it.ends_with("manifest.json"));
    assert_eq!(manifests.count(), 1);
    // The job cannot be restored in place to an earlier state.
    let saved = ["job", "checkpoint", "taken", "--to", "saved"];
    two.home.run(&saved).code(0);
    let back = ["job", "restore", "saved", "taken", "--in-place", "--yes"];
    let ended = two.home.run(&back).code(1);
    assert!(ended.err.contains("--take-over a"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_a_lost_machine_did_not_receive_ends_the_process_that_takes_over_its_part() {
    let Some(world) = World::new().await else {
        return;
    };
    let (one, two) = (world.machine("a"), world.machine("b"));
    let mut a = one.crawl("job", &[]);
    let mut b = two.crawl("job", &[]);
    until("a page of each site is held", || world.held() == SITES).await;
    one.wait_for_snapshot("job", "a").await;
    a.signal("KILL");
    a.wait();
    two.home.run(&["job", "stop", "job"]).code(0);
    world.gate.open();
    assert_eq!(b.wait(), 0);

    let requests = world.web.requests().len();
    let mut taken = two.crawl("taken", &["--take-over", "a"]);
    assert_eq!(taken.wait(), 0);
    assert_eq!(world.web.requests().len(), requests);
    // The stop has had its effect: the next start crawls.
    let mut taken = two.home.start(&["crawl", "taken"]);
    let mut b = two.home.start(&["crawl", "job"]);
    assert_eq!((taken.wait(), b.wait()), (0, 0));
    world.assert_every_page_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_whose_part_was_taken_over_fetches_and_writes_nothing() {
    let Some(world) = World::new().await else {
        return;
    };
    let (one, two) = (world.machine("a"), world.machine("b"));
    let parts = ["--parts", "3"];
    let mut a = one.crawl("job", &parts);
    let mut b = two.crawl("job", &parts);
    until("the crawl is registered in the cluster", || {
        !world.requests().is_empty()
    })
    .await;
    // A part that no node has begun.
    let mut third = two.crawl("third", &[&parts[..], &["--take-over", "part-1"]].concat());
    until("a page of each site is held", || world.held() == SITES).await;
    one.wait_for_snapshot("job", "a").await;
    opilio_test_nats::signal_process(a.child.id(), "-STOP");
    let mut taken = two.crawl("taken", &[&parts[..], &["--take-over", "a"]].concat());
    until("the part continues on the other machine", || {
        two.job("taken/job.json").exists()
    })
    .await;
    world.gate.open();
    assert_eq!((taken.wait(), b.wait(), third.wait()), (0, 0, 0));
    let news = world.store.path().join("news");
    let (requests, stored) = (world.web.requests().len(), files(&news));
    let parts = two.parts();

    opilio_test_nats::signal_process(a.child.id(), "-CONT");
    assert_eq!(a.wait(), 1);
    let log = std::fs::read_to_string(one.job("job/logs/job.log")).unwrap();
    assert!(log.contains("belongs to node \"b\" since epoch 2"), "{log}");
    assert_eq!(world.web.requests().len(), requests);
    assert_eq!(files(&news), stored);
    assert_eq!(two.parts(), parts);
    world.assert_every_page_once();
    world.assert_polite();
    let ended = one.home.run(&["crawl", "job"]).code(1);
    assert!(ended.err.contains("belongs to node \"b\""), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_without_a_job_of_the_crawl_starts_its_part_and_takes_over_another_part() {
    let Some(world) = World::new().await else {
        return;
    };
    let (one, two) = (world.machine("a"), world.machine("b"));
    std::fs::remove_file(two.home.path().join("p.toml")).unwrap();
    let _daemon = Daemon::start(&one.home, &["--no-auth"]);
    let daemon = Daemon::start(&two.home, &["--no-auth"]);
    let mut a = one.crawl("job", &[]);
    until("a page of each site is held", || world.held() == SITES).await;
    one.wait_for_snapshot("job", "a").await;
    a.signal("KILL");
    a.wait();
    std::fs::remove_dir_all(one.job("job")).unwrap();

    one.home.run(&["node", "drain", "a"]).code(0);
    until("the part continues on the other machine", || {
        two.job("jobs/news-a/job.json").exists()
    })
    .await;
    world.gate.open();
    until("both parts are finished", || {
        ["news-a", "news-b"].map(|job| daemon.state(job)) == ["finished", "finished"]
    })
    .await;
    world.assert_every_page_once();
    world.assert_polite();
    let parts = two.parts();
    assert_eq!(["a", "b"].map(|part| &parts[part]["node"]), ["b", "b"]);
    for part in parts.values() {
        assert!(part["takeover"].is_null(), "{part}");
        assert!(part["failed_takeover"].is_null(), "{part}");
    }
}

/// The processes of a machine that is shut down end normally, and no operator stops the crawl.
#[tokio::test(flavor = "multi_thread")]
async fn the_part_of_a_machine_that_was_shut_down_and_does_not_come_back_is_taken_over() {
    let Some(world) = World::new().await else {
        return;
    };
    let (one, two) = (world.machine("a"), world.machine("b"));
    let mut of_one = Daemon::start(&one.home, &["--no-auth"]);
    let daemon = Daemon::start(&two.home, &["--no-auth"]);
    let mut a = one.crawl("job", &[]);
    until("all sites are held", || world.held() == SITES).await;
    one.wait_for_snapshot("job", "a").await;
    of_one.end();
    a.signal("TERM");
    a.wait_for_line("stopping: current fetches finish");
    a.signal("TERM");
    assert_eq!(a.wait(), 0);
    std::fs::remove_dir_all(one.job("job")).unwrap();

    until("the part continues on the other machine", || {
        two.job("jobs/news-a/job.json").exists()
    })
    .await;
    world.gate.open();
    until("both parts are finished", || {
        ["news-a", "news-b"].map(|job| daemon.state(job)) == ["finished", "finished"]
    })
    .await;
    world.assert_every_page_once();
    world.assert_polite();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_part_of_a_drained_node_is_taken_over_automatically_without_a_second_fetch() {
    let Some(world) = World::new().await else {
        return;
    };
    let (one, two) = (world.machine("a"), world.machine("b"));
    // The job is created and then controlled by the daemon.
    let mut a = one.crawl("jobs/news", &["--paused"]);
    let stop = ["job", "stop", "jobs/news"];
    until("the job accepts a stop", || one.home.run(&stop).code == 0).await;
    assert_eq!(a.wait(), 0);
    let mut b = two.crawl("jobs/news", &[]);
    let daemons = [&one, &two].map(|machine| Daemon::start(&machine.home, &["--no-auth"]));
    one.home.run(&["job", "start", "jobs/news"]).code(0);
    until("a page of each site is held", || world.held() == SITES).await;

    one.home.run(&["node", "drain", "a"]).code(0);
    until("the job of the drained node stops", || {
        daemons[0].state("news") == "ending"
    })
    .await;
    world.gate.open();
    until("the part continues on the other machine", || {
        two.job("jobs/news-a/job.json").exists() && daemons[1].state("news-a") == "finished"
    })
    .await;
    assert_eq!(b.wait(), 0);
    assert_eq!(daemons[0].state("news"), "stopped");
    assert_eq!(two.parts()["a"]["node"], "b");
    let twice = world.requests().into_iter().find(|(_, count)| *count > 1);
    assert_eq!(twice, None);
    world.assert_every_page_once();
    world.assert_polite();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_by_the_api_while_the_process_starts_reaches_all_nodes() {
    let Some(world) = World::new().await else {
        return;
    };
    let (one, two) = (world.machine("a"), world.machine("b"));
    // Creates the job for the daemon.
    let mut a = one.crawl("jobs/news", &["--paused"]);
    let stop = ["job", "stop", "jobs/news"];
    until("the job is stopped", || one.home.run(&stop).code == 0).await;
    assert_eq!(a.wait(), 0);
    let mut b = two.crawl("job", &[]);
    until("the other node crawls", || !world.requests().is_empty()).await;
    let job = one.job("jobs/news");
    let orders = || -> Value {
        let text = std::fs::read(job.join("orders.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    };
    // A job without a record of an earlier process can be started while its lock is held. The process of the job then waits for the
    // lock, and accepts no commands.
    std::fs::remove_file(job.join("process.json")).unwrap();
    let lock = std::fs::File::open(job.join("lock")).unwrap();
    lock.lock().unwrap();
    let daemon = Daemon::start(&one.home, &["--no-auth"]);
    daemon.post("/jobs/news/start", None, 202);
    until("the daemon has begun a process", || {
        !orders()["begun"].is_null()
    })
    .await;
    let stopped = daemon.post("/jobs/news/stop", None, 200);
    assert_eq!(
        stopped["result"],
        "stopping on all nodes; this one stops as soon as its process accepts commands"
    );
    world.gate.open();
    assert_eq!(b.wait(), 0);
    drop(lock);
    until("the stop is carried out", || {
        let ordered = orders();
        ordered["stop_pending"].is_null() && ordered["crawl"] == false
    })
    .await;
    until("the job is stopped", || daemon.state("news") == "stopped").await;
    assert_eq!(two.parts()["b"]["state"], "stopped");
}

//! A daemon without an operator: jobs that its calendar creates, and their crawl window. The daemon runs in the test, which sets
//! its clock; crawls are processes as usual.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use opilio_console::{Clock, Console, DaemonConfig};
use opilio_stories::{component_cache, until};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::command::Home;
use crate::job::Gate;
use crate::serve::{Daemon, kill, process};

/// A calendar and a crawl window in a time zone that is two hours ahead of UTC in summer.
const CONFIG: &str = r#"
jobs = "jobs"
profiles = "profiles"
listen = "127.0.0.1:0"
authentication = false

[[calendar]]
name = "national"
cron = "0 3 1 1,4,7,10 *"
zone = "Europe/Copenhagen"
profile = "national"
job = "national-%Y-%m-%d"

[[window]]
jobs = ["national-*"]
times = ["22:00-06:00 Europe/Copenhagen"]
"#;

const JOB: &str = "national-2026-04-01";

/// The clock of a daemon, which a test sets.
#[derive(Clone)]
struct TestClock(Arc<Mutex<&'static str>>);

impl TestClock {
    fn at(time: &'static str) -> TestClock {
        TestClock(Arc::new(Mutex::new(time)))
    }

    fn set(&self, time: &'static str) {
        *self.0.lock().unwrap() = time;
    }

    fn reader(&self) -> Clock {
        let clock = self.clone();
        Clock::of(move || clock.0.lock().unwrap().parse().unwrap())
    }
}

/// A daemon in this process.
struct TestDaemon {
    api: Daemon,
    end: oneshot::Sender<()>,
    serving: JoinHandle<std::io::Result<()>>,
}

impl TestDaemon {
    /// Starts a daemon and waits for the first check of its calendar. Times before that check are not missed times.
    async fn start(home: &Home, clock: &TestClock) -> TestDaemon {
        let config = DaemonConfig::load(&home.path().join("opilio.toml")).unwrap();
        let console = Console::open(config, program(home), Some(component_cache()));
        let console = console.await.unwrap().with_clock(clock.reader());
        let address: SocketAddr = console.address().unwrap();
        let (end, ended) = oneshot::channel();
        let serving = tokio::spawn(console.run(async {
            // The daemon also ends if the sender is dropped.
            let _ = ended.await;
        }));
        let looked_at = home.path().join("jobs/.opilio/calendar.json");
        until("the calendar was checked", || looked_at.exists()).await;
        TestDaemon {
            api: Daemon::at(address),
            end,
            serving,
        }
    }

    /// Ends the daemon. Crawls continue.
    async fn end(self) {
        self.end.send(()).unwrap();
        self.serving.await.unwrap().unwrap();
    }

    fn job(&self) -> Option<Value> {
        let jobs = self.api.get("/jobs");
        let jobs = jobs["jobs"].as_array().unwrap();
        jobs.iter().find(|job| job["name"] == JOB).cloned()
    }

    async fn until(&self, state: &str) -> Value {
        let has_state = || self.job().is_some_and(|job| job["state"] == state);
        until(&format!("the job is {state}"), has_state).await;
        self.job().unwrap()
    }
}

/// Writes a program that runs the binary with the cache of all tests.
fn program(home: &Home) -> PathBuf {
    let cache = component_cache().ancestors().nth(2).unwrap().to_owned();
    let text = format!(
        "#!/bin/sh\nexport XDG_CACHE_HOME='{}'\nexec '{}' \"$@\"\n",
        cache.display(),
        env!("CARGO_BIN_EXE_opilio")
    );
    let file = home.file("opilio.sh", text);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file
}

/// Prepares a site of two pages behind a gate, the home of a daemon that will crawl the site, and the clock of that daemon.
fn prepared(time: &'static str) -> (Gate, Home, TestClock) {
    let gate = Gate::serve(&[("/", "<a href='/a'>a</a>"), ("/a", "a")]);
    let home = Home::new();
    home.file("opilio.toml", CONFIG);
    let profile = fs::read_to_string(home.profile("")).unwrap();
    fs::create_dir(home.path().join("profiles")).unwrap();
    let seeds = format!("seeds = [{:?}]\n{profile}", gate.url("/"));
    home.file("profiles/national.toml", seeds);
    (gate, home, TestClock::at(time))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_calendar_starts_a_job_and_its_window_pauses_and_resumes_it_across_a_restart() {
    let (gate, home, clock) = prepared("2026-04-01T00:59:00Z");
    let daemon = TestDaemon::start(&home, &clock).await;
    assert_eq!(daemon.job(), None);

    // Three o'clock on the first of April in the zone of the calendar.
    clock.set("2026-04-01T01:00:00Z");
    daemon.until("running").await;
    until("the seed is requested", || gate.requests_for("/") == 1).await;

    // Six o'clock: current fetches finish, and no others begin.
    clock.set("2026-04-01T04:00:00Z");
    daemon.until("pausing").await;
    gate.open();
    daemon.until("paused").await;
    let why = || daemon.job().unwrap()["ended_why"].clone();
    until("the window is the cause of the pause", || {
        why() == "the crawl window is closed"
    })
    .await;
    assert_eq!(gate.requests_for("/a"), 0);

    // Another daemon, for example after an upgrade, knows that the window paused the job, and creates no second job.
    daemon.end().await;
    clock.set("2026-04-01T19:59:59Z");
    let daemon = TestDaemon::start(&home, &clock).await;
    let job = daemon.until("paused").await;
    assert_eq!(job["ended_why"], "the crawl window is closed", "{job}");
    assert_eq!(gate.requests_for("/a"), 0);

    // Ten o'clock in the evening.
    clock.set("2026-04-01T20:00:00Z");
    daemon.until("finished").await;
    assert_eq!(gate.requests_for("/a"), 1);
    let log = fs::read_to_string(home.path().join(format!("jobs/{JOB}/logs/job.log"))).unwrap();
    assert_eq!(log.matches("daemon window => closed").count(), 1, "{log}");
    assert_eq!(log.matches("daemon window => open").count(), 1, "{log}");
    assert!(!log.contains("process died"), "{log}");
    assert_eq!(daemon.api.get("/jobs")["total"], 1);
    daemon.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_the_calendar_cannot_create_is_reported_and_created_later() {
    let (gate, home, clock) = prepared("2026-04-01T00:59:00Z");
    gate.open();
    let (profile, elsewhere) = (
        home.path().join("profiles/national.toml"),
        home.path().join("national.toml"),
    );
    fs::rename(&profile, &elsewhere).unwrap();
    let daemon = TestDaemon::start(&home, &clock).await;
    let reports = |what: &str| {
        let about = daemon.api.get("/daemon");
        let problem = about["calendar"][0]["problem"].as_str();
        problem.is_some_and(|problem| problem.contains(what))
    };
    until("the problem is reported in advance", || {
        reports("profile \"national\" not found in")
    })
    .await;
    clock.set("2026-04-01T01:00:00Z");
    until("the problem is reported", || {
        reports("cannot create job national-2026-04-01")
    })
    .await;
    assert_eq!(daemon.job(), None);

    fs::rename(&elsewhere, &profile).unwrap();
    daemon.until("finished").await;
    assert!(daemon.api.get("/daemon")["calendar"][0]["problem"].is_null());
    daemon.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_with_the_name_of_the_calendar_that_was_crawled_before_is_not_started_again() {
    let (gate, home, clock) = prepared("2026-04-01T00:59:00Z");
    gate.open();
    let job = format!("jobs/{JOB}");
    home.run(&["crawl", "profiles/national.toml", "--job", &job])
        .code(0);
    let daemon = TestDaemon::start(&home, &clock).await;
    clock.set("2026-04-01T01:00:00Z");
    until("the problem is reported", || {
        let about = daemon.api.get("/daemon");
        let problem = about["calendar"][0]["problem"].as_str();
        problem.is_some_and(|problem| problem.contains("was started before"))
    })
    .await;
    assert!(!home.path().join(&job).join("orders.json").exists());
    assert_eq!(gate.requests_for("/"), 1);
    daemon.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missed_job_is_started_later_and_a_job_that_died_outside_its_window_waits_for_it() {
    let (gate, home, clock) = prepared("2026-03-31T12:00:00Z");
    let daemon = TestDaemon::start(&home, &clock).await;
    daemon.end().await;

    // The machine did not run at three o'clock, and runs again at five.
    clock.set("2026-04-01T03:00:00Z");
    let daemon = TestDaemon::start(&home, &clock).await;
    daemon.until("running").await;
    until("the seed is requested", || gate.requests_for("/") == 1).await;
    clock.set("2026-04-01T04:00:00Z");
    daemon.until("pausing").await;

    // The machine goes down again: the daemon ends, and the crawl is killed.
    daemon.end().await;
    kill(&process(&home, &format!("jobs/{JOB}")));
    let daemon = TestDaemon::start(&home, &clock).await;
    let waits = || {
        daemon.job().is_some_and(|job| {
            job["state"] == "waiting" && job["ended_why"] == "the crawl window is closed"
        })
    };
    until("the job waits for its window", waits).await;
    assert_eq!(gate.requests_for("/"), 1);

    gate.open();
    clock.set("2026-04-01T20:00:00Z");
    daemon.until("finished").await;
    assert_eq!((gate.requests_for("/"), gate.requests_for("/a")), (2, 1));
    daemon.end().await;
}

/// Returns a job that its window has paused.
async fn paused_by_window() -> (Gate, Home, TestClock, TestDaemon) {
    let (gate, home, clock) = prepared("2026-04-01T00:59:00Z");
    let daemon = TestDaemon::start(&home, &clock).await;
    clock.set("2026-04-01T01:00:00Z");
    until("the seed is requested", || gate.requests_for("/") == 1).await;
    clock.set("2026-04-01T04:00:00Z");
    daemon.until("pausing").await;
    gate.open();
    daemon.until("paused").await;
    until("the window is the cause of the pause", || is_closed(&home)).await;
    (gate, home, clock, daemon)
}

/// Returns `true` if the job is paused by its window.
fn is_closed(home: &Home) -> bool {
    let orders = fs::read_to_string(home.path().join(format!("jobs/{JOB}/orders.json")));
    orders.unwrap().contains("\"window_closed\": true")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_an_operator_pauses_in_a_closed_window_stays_paused_when_it_opens() {
    let (_gate, home, clock, daemon) = paused_by_window().await;
    let directory = format!("jobs/{JOB}");
    let early = home.run(&["job", "resume", &directory]).code(1);
    assert!(
        early.err.contains("the crawl window of the job is closed"),
        "{early:?}"
    );
    home.run(&["job", "pause", &directory]).code(0);
    assert!(!is_closed(&home));

    clock.set("2026-04-01T20:00:00Z");
    home.run(&["job", "resume", &directory]).code(0);
    daemon.until("finished").await;
    let log = fs::read_to_string(home.path().join(&directory).join("logs/job.log")).unwrap();
    assert!(!log.contains("daemon window => open"), "{log}");
    daemon.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_an_operator_resumes_in_a_closed_window_continues_when_it_opens() {
    let (_gate, home, clock, daemon) = paused_by_window().await;
    let resume = format!("/jobs/{JOB}/resume");
    let refused = daemon.api.post(&resume, None, 409);
    assert_eq!(
        refused["detail"],
        "the crawl window is closed; the job resumes when it opens"
    );

    home.run(&["job", "pause", &format!("jobs/{JOB}")]).code(0);
    let done = daemon.api.post(&resume, None, 200);
    assert_eq!(
        done["result"],
        "the job resumes when its crawl window opens"
    );
    assert!(is_closed(&home));
    assert_eq!(daemon.job().unwrap()["state"], "paused");
    clock.set("2026-04-01T20:00:00Z");
    daemon.until("finished").await;
    daemon.end().await;
}

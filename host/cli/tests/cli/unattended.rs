//! A daemon that is left to itself: what its calendar begins, and what becomes of that outside its window. The daemon runs
//! in the test, which holds its clock; crawls are processes as ever.

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

/// A night in a country where clocks are two hours ahead of UTC in summer.
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

/// The hands of a daemon's clock.
#[derive(Clone)]
struct Hands(Arc<Mutex<&'static str>>);

impl Hands {
    fn at(time: &'static str) -> Hands {
        Hands(Arc::new(Mutex::new(time)))
    }

    fn turn(&self, time: &'static str) {
        *self.0.lock().unwrap() = time;
    }

    fn clock(&self) -> Clock {
        let hands = self.clone();
        Clock::of(move || hands.0.lock().unwrap().parse().unwrap())
    }
}

/// A daemon in this process.
struct Resident {
    api: Daemon,
    end: oneshot::Sender<()>,
    serving: JoinHandle<std::io::Result<()>>,
}

impl Resident {
    /// A daemon that has looked at its calendar: a clock that is turned before that has missed nothing.
    async fn start(home: &Home, hands: &Hands) -> Resident {
        let config = DaemonConfig::load(&home.path().join("opilio.toml")).unwrap();
        let console = Console::open(config, program(home), Some(component_cache()));
        let console = console.await.unwrap().by_the_clock(hands.clock());
        let address: SocketAddr = console.address().unwrap();
        let (end, ended) = oneshot::channel();
        let serving = tokio::spawn(console.run(async {
            // Whoever held the other end has gone: so does the daemon.
            let _ = ended.await;
        }));
        let looked_at = home.path().join("jobs/.opilio/calendar.json");
        until("the calendar was looked at", || looked_at.exists()).await;
        Resident {
            api: Daemon::at(address),
            end,
            serving,
        }
    }

    /// Ends it; crawls go on.
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
        let is_so = || self.job().is_some_and(|job| job["state"] == state);
        until(&format!("the job is {state}"), is_so).await;
        self.job().unwrap()
    }
}

/// The binary, with the cache that all tests have.
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

/// A site of two pages that waits at its gate, the home of a daemon that is to crawl it, and the hands of that daemon's clock.
fn furnished(time: &'static str) -> (Gate, Home, Hands) {
    let gate = Gate::serve(&[("/", "<a href='/a'>a</a>"), ("/a", "a")]);
    let home = Home::new();
    home.file("opilio.toml", CONFIG);
    let profile = fs::read_to_string(home.profile("")).unwrap();
    fs::create_dir(home.path().join("profiles")).unwrap();
    let seeds = format!("seeds = [{:?}]\n{profile}", gate.url("/"));
    home.file("profiles/national.toml", seeds);
    (gate, home, Hands::at(time))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_calendar_begins_a_job_and_its_window_pauses_and_resumes_it_over_a_restart() {
    let (gate, home, hands) = furnished("2026-04-01T00:59:00Z");
    let daemon = Resident::start(&home, &hands).await;
    assert_eq!(daemon.job(), None);

    // Three o'clock on the first of April, by the calendar's zone.
    hands.turn("2026-04-01T01:00:00Z");
    daemon.until("running").await;
    until("the seed is asked for", || gate.was_asked("/") == 1).await;

    // Six: what is in flight finishes, and nothing begins.
    hands.turn("2026-04-01T04:00:00Z");
    daemon.until("pausing").await;
    gate.open();
    daemon.until("paused").await;
    let why = || daemon.job().unwrap()["ended_why"].clone();
    until("it is known whose pause it is", || {
        why() == "the crawl window is closed"
    })
    .await;
    assert_eq!(gate.was_asked("/a"), 0);

    // Another daemon, such as after an upgrade, knows whose pause it is, and makes no second job.
    daemon.end().await;
    hands.turn("2026-04-01T19:59:59Z");
    let daemon = Resident::start(&home, &hands).await;
    let job = daemon.until("paused").await;
    assert_eq!(job["ended_why"], "the crawl window is closed", "{job}");
    assert_eq!(gate.was_asked("/a"), 0);

    // Ten in the evening.
    hands.turn("2026-04-01T20:00:00Z");
    daemon.until("finished").await;
    assert_eq!(gate.was_asked("/a"), 1);
    let log = fs::read_to_string(home.path().join(format!("jobs/{JOB}/logs/job.log"))).unwrap();
    assert_eq!(log.matches("daemon window => closed").count(), 1, "{log}");
    assert_eq!(log.matches("daemon window => open").count(), 1, "{log}");
    assert!(!log.contains("process died"), "{log}");
    assert_eq!(daemon.api.get("/jobs")["total"], 1);
    daemon.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_calendar_cannot_make_is_told_and_made_once_it_can() {
    let (gate, home, hands) = furnished("2026-04-01T00:59:00Z");
    gate.open();
    let (profile, elsewhere) = (
        home.path().join("profiles/national.toml"),
        home.path().join("national.toml"),
    );
    fs::rename(&profile, &elsewhere).unwrap();
    let daemon = Resident::start(&home, &hands).await;
    let told = |what: &str| {
        let about = daemon.api.get("/daemon");
        let problem = about["calendar"][0]["problem"].as_str();
        problem.is_some_and(|problem| problem.contains(what))
    };
    until("it is told before the time has come", || {
        told("profile \"national\" not found in")
    })
    .await;
    hands.turn("2026-04-01T01:00:00Z");
    until("it is told", || {
        told("cannot create job national-2026-04-01")
    })
    .await;
    assert_eq!(daemon.job(), None);

    fs::rename(&elsewhere, &profile).unwrap();
    daemon.until("finished").await;
    assert!(daemon.api.get("/daemon")["calendar"][0]["problem"].is_null());
    daemon.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_the_calendars_name_that_was_crawled_before_is_not_begun_again() {
    let (gate, home, hands) = furnished("2026-04-01T00:59:00Z");
    gate.open();
    let job = format!("jobs/{JOB}");
    home.run(&["crawl", "profiles/national.toml", "--job", &job])
        .code(0);
    let daemon = Resident::start(&home, &hands).await;
    hands.turn("2026-04-01T01:00:00Z");
    until("it is told", || {
        let about = daemon.api.get("/daemon");
        let problem = about["calendar"][0]["problem"].as_str();
        problem.is_some_and(|problem| problem.contains("was started before"))
    })
    .await;
    assert!(!home.path().join(&job).join("orders.json").exists());
    assert_eq!(gate.was_asked("/"), 1);
    daemon.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_missed_is_made_up_for_and_what_died_outside_its_window_waits_for_it() {
    let (gate, home, hands) = furnished("2026-03-31T12:00:00Z");
    let daemon = Resident::start(&home, &hands).await;
    daemon.end().await;

    // The machine was down at three, and is up again at five.
    hands.turn("2026-04-01T03:00:00Z");
    let daemon = Resident::start(&home, &hands).await;
    daemon.until("running").await;
    until("the seed is asked for", || gate.was_asked("/") == 1).await;
    hands.turn("2026-04-01T04:00:00Z");
    daemon.until("pausing").await;

    // It goes down again, crawls and all.
    daemon.end().await;
    kill(&process(&home, &format!("jobs/{JOB}")));
    let daemon = Resident::start(&home, &hands).await;
    let waits = || {
        daemon.job().is_some_and(|job| {
            job["state"] == "waiting" && job["ended_why"] == "the crawl window is closed"
        })
    };
    until("it waits for its window", waits).await;
    assert_eq!(gate.was_asked("/"), 1);

    gate.open();
    hands.turn("2026-04-01T20:00:00Z");
    daemon.until("finished").await;
    assert_eq!((gate.was_asked("/"), gate.was_asked("/a")), (2, 1));
    daemon.end().await;
}

/// A job that its window has paused.
async fn paused_by_its_window() -> (Gate, Home, Hands, Resident) {
    let (gate, home, hands) = furnished("2026-04-01T00:59:00Z");
    let daemon = Resident::start(&home, &hands).await;
    hands.turn("2026-04-01T01:00:00Z");
    until("the seed is asked for", || gate.was_asked("/") == 1).await;
    hands.turn("2026-04-01T04:00:00Z");
    daemon.until("pausing").await;
    gate.open();
    daemon.until("paused").await;
    until("it is known whose pause it is", || is_closed(&home)).await;
    (gate, home, hands, daemon)
}

/// Returns `true` if the job's pause is its window's.
fn is_closed(home: &Home) -> bool {
    let orders = fs::read_to_string(home.path().join(format!("jobs/{JOB}/orders.json")));
    orders.unwrap().contains("\"window_closed\": true")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_pauses_in_a_closed_window_stays_paused_when_it_opens() {
    let (_gate, home, hands, daemon) = paused_by_its_window().await;
    let directory = format!("jobs/{JOB}");
    let early = home.run(&["job", "resume", &directory]).code(1);
    assert!(
        early.err.contains("the crawl window of the job is closed"),
        "{early:?}"
    );
    home.run(&["job", "pause", &directory]).code(0);
    assert!(!is_closed(&home));

    hands.turn("2026-04-01T20:00:00Z");
    home.run(&["job", "resume", &directory]).code(0);
    daemon.until("finished").await;
    let log = fs::read_to_string(home.path().join(&directory).join("logs/job.log")).unwrap();
    assert!(!log.contains("daemon window => open"), "{log}");
    daemon.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_resumes_in_a_closed_window_goes_on_when_it_opens() {
    let (_gate, home, hands, daemon) = paused_by_its_window().await;
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
    hands.turn("2026-04-01T20:00:00Z");
    daemon.until("finished").await;
    daemon.end().await;
}

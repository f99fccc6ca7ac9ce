//! Several jobs in a folder, with and without a daemon.

use std::fs;
use std::path::Path;

use opilio_stories::until;
use serde_json::{Value, json};

use crate::command::{Home, WWW, tree};
use crate::job::{Gate, waiting};
use crate::serve::{Daemon, make};

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_copied_listed_and_deleted_without_a_daemon() {
    let gate = Gate::serve(&[("/", "x")]);
    let home = Home::new();
    make(&home, "jobs/one", &gate.url("/"));
    let copied = home.run(&["job", "clone", "jobs/one", "two", "--json"]);
    let copied: Value = serde_json::from_str(&copied.code(0).out).unwrap();
    assert_eq!(copied["answer"], "created", "{copied}");
    assert!(copied["job"].as_str().unwrap().ends_with("jobs/two"));
    // For every command, a name in use is an error of the command line.
    let new = ["job", "new", "jobs/two", "--profile", "snapshot"];
    for command in [&["job", "clone", "jobs/one", "two"][..], &new] {
        let taken = home.run(command).code(2);
        assert!(taken.err.contains("two\" already exists"), "{taken:?}");
    }
    let states = || -> Vec<(String, String)> {
        let listed = home.run(&["job", "list", "jobs", "--json"]).code(0).out;
        let jobs = listed.lines().map(|line| {
            let job: Value = serde_json::from_str(line).unwrap();
            let text = |field: &str| job[field].as_str().unwrap().to_owned();
            (text("name"), text("state"))
        });
        jobs.collect()
    };
    let is = |name: &str, state: &str| (name.to_owned(), state.to_owned());
    let state = |job: &str| {
        let status = home.run(&["job", "status", job, "--json"]).code(0).out;
        let status: Value = serde_json::from_str(&status).unwrap();
        status["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(states(), [is("one", "new"), is("two", "new")]);
    assert_eq!(state("jobs/one"), "new");

    let begun = home.run(&["job", "start", "jobs/two", "--json"]).code(0);
    let begun: Value = serde_json::from_str(&begun.out).unwrap();
    assert_eq!(begun["state"], "running", "{begun}");
    assert!(begun["pid"].is_u64(), "{begun}");
    until("two runs", || states()[1] == is("two", "running")).await;
    let again = home.run(&["job", "start", "jobs/two"]).code(1);
    assert!(again.err.contains("is already running"), "{again:?}");
    let refused = home.run(&["job", "delete", "jobs/two", "--yes"]).code(1);
    assert!(refused.err.contains("is running; stop it first"));
    home.run(&["job", "stop", "jobs/two"]).code(0);
    gate.open();
    until("two is stopped", || states()[1] == is("two", "stopped")).await;
    assert_eq!(state("jobs/two"), "stopped");

    let elsewhere = home.run(&["job", "start", "typo/one"]).code(2);
    assert!(
        elsewhere.err.contains("job \"typo/one\" not found"),
        "{elsewhere:?}"
    );
    assert!(!home.path().join("typo").exists());
    let unconfirmed = home.run(&["job", "delete", "jobs/one"]).code(2);
    assert!(unconfirmed.err.contains("pass --yes"), "{unconfirmed:?}");
    let deleted = home.run(&["job", "delete", "jobs/one", "--yes"]).code(0);
    assert!(
        deleted.out.starts_with("deleted the state of job one"),
        "{deleted:?}"
    );
    let gone = home.run(&["job", "delete", "jobs/one", "--yes"]).code(2);
    assert!(gone.err.contains("\"one\""), "{gone:?}");
    assert_eq!(states(), [is("two", "stopped")]);
    let all = ["job", "delete", "jobs/two", "--archive", "--yes", "--json"];
    let deleted: Value = serde_json::from_str(&home.run(&all).code(0).out).unwrap();
    assert_eq!(deleted["with_archive"], true, "{deleted}");
    assert!(!home.path().join("jobs/two").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_lock_is_held_for_a_moment_is_started_later() {
    let web = tree(3, 10).await;
    let home = Home::new();
    let daemon = Daemon::start(&home, &["--no-auth"]);
    // If the process gets the lock before this test does, the test tries another job.
    let mut numbers = 0..20;
    let (job, directory, lock) = loop {
        let job = format!("job{}", numbers.next().expect("a process that comes later"));
        make(&home, &format!("jobs/{job}"), &web.url(WWW, "/"));
        let directory = home.path().join("jobs").join(&job);
        let lock = fs::File::open(directory.join("lock")).unwrap();
        let requests = web.requests().len();
        // The start is ordered before the test takes the lock.
        daemon.post(&format!("/jobs/{job}/start"), None, 202);
        lock.lock().unwrap();
        if web.requests().len() == requests {
            break (job, directory, lock);
        }
    };
    let log = || fs::read_to_string(directory.join("process.log")).unwrap_or_default();
    until("the process has found the job in use", || {
        log().contains("is in use")
    })
    .await;
    drop(lock);
    until("the job is finished", || daemon.state(&job) == "finished").await;
    let log = fs::read_to_string(directory.join("logs/job.log")).unwrap();
    assert!(!log.contains("died"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_job_is_shown_as_waiting_and_can_be_stopped() {
    let gate = Gate::serve(&[("/", "x")]);
    let home = Home::new();
    home.file("opilio.toml", "[limits]\njobs = 1\n");
    let daemon = Daemon::start(&home, &["--no-auth"]);
    for job in ["jobs/a", "jobs/b"] {
        make(&home, job, &gate.url("/"));
    }
    home.run(&["job", "start", "jobs/a"]).code(0);
    until("a runs", || daemon.state("a") == "running").await;
    home.run(&["job", "start", "jobs/b"]).code(0);
    until("b waits", || daemon.state("b") == "waiting").await;

    let status = home.run(&["job", "status", "jobs/b"]).code(0).out;
    assert!(
        status.contains("state  waiting for a free place"),
        "{status}"
    );
    // Commands and the API have the same name for the state.
    let status = home.run(&["job", "status", "jobs/b", "--json"]).code(0).out;
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["state"], "waiting", "{status}");
    let status = daemon.get("/jobs/b/status");
    assert_eq!(status["overview"]["state"], "waiting", "{status}");
    assert_eq!(status["state"], "waiting", "{status}");
    let result = |answer: Value| answer["result"].as_str().unwrap().to_owned();
    assert_eq!(
        result(daemon.post("/jobs/b/pause", None, 200)),
        "the job will start paused"
    );
    let resumed = home.run(&["job", "resume", "jobs/b"]).code(0).out;
    assert_eq!(
        resumed,
        "the job will start as soon as a place among the concurrent crawls is free\n"
    );
    let paused = home.run(&["job", "pause", "jobs/b"]).code(0).out;
    assert_eq!(paused, "the job will start paused\n");
    let resumed = result(daemon.post("/jobs/b/resume", None, 200));
    assert_eq!(
        resumed,
        "the job will start as soon as a place among the concurrent crawls is free"
    );
    let stopped = home.run(&["job", "stop", "jobs/b"]).code(0).out;
    assert_eq!(stopped, "the job will not start\n");
    home.run(&["job", "stop", "jobs/b"]).code(1);
    until("b does not wait", || daemon.state("b") == "new").await;

    gate.open();
    until("a is finished", || daemon.state("a") == "finished").await;
    let status = home.run(&["job", "status", "jobs/a"]).code(0).out;
    assert!(status.contains("state  finished: no URIs left"), "{status}");
    assert!(!status.contains("idle"), "{status}");
    let log = home.run(&["job", "log", "jobs/a"]).code(0).out;
    assert!(log.contains("crawl begin => new job"), "{log}");
    let log = home.run(&["job", "log", "jobs/b"]).code(0).out;
    assert!(log.contains("stop => the job will not start"), "{log}");
    assert_eq!(daemon.state("b"), "new");
}

/// The daemon starts a process, which takes the lock of the job later. Orders between these times must reach the process.
#[tokio::test(flavor = "multi_thread")]
async fn orders_during_the_start_of_a_process_reach_it() {
    let home = Home::new();
    let daemon = Daemon::start(&home, &["--no-auth"]);
    for (job, order, state) in [("p", "pause", "paused"), ("s", "stop", "stopped")] {
        // Each job has its own gate: otherwise a crawl could end before a busy machine gives the order.
        let gate = Gate::serve(&[("/", "<a href='/a'>a</a>"), ("/a", "the one")]);
        let path = format!("jobs/{job}");
        make(&home, &path, &gate.url("/"));
        daemon.post(&format!("/jobs/{job}/start"), None, 202);
        let orders = home.path().join(&path).join("orders.json");
        until("the process is started", || {
            let orders: Value = serde_json::from_slice(&fs::read(&orders).unwrap()).unwrap();
            !orders["begun"].is_null()
        })
        .await;
        home.run(&["job", order, &path]).code(0);
        gate.open();
        until("the process obeys", || daemon.state(job) == state).await;
        assert_eq!(gate.requests_for("/a"), 0);
    }
    // Crawls outlive the daemon: a paused one would wait for ever.
    home.run(&["job", "stop", "jobs/p"]).code(0);
}

/// Requests that read a job and hand-overs of its files hold the lock, like a process of the job.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_takes_effect_while_the_lock_of_the_job_is_held() {
    let gate = Gate::serve(&[("/", "<a href='/a'>a</a>"), ("/a", "the one")]);
    let home = Home::new();
    let daemon = Daemon::start(&home, &["--no-auth"]);
    let held = |job: &str| {
        make(&home, &format!("jobs/{job}"), &gate.url("/"));
        let directory = home.path().join("jobs").join(job);
        let lock = fs::File::open(directory.join("lock")).unwrap();
        lock.lock().unwrap();
        (directory, lock)
    };
    let orders = |directory: &Path| -> Value {
        serde_json::from_slice(&fs::read(directory.join("orders.json")).unwrap()).unwrap()
    };
    let result = |answer: Value| answer["result"].as_str().unwrap().to_owned();

    // The first job waits for its start time.
    for by_api in [true, false] {
        let job = format!("waits-{by_api}");
        let (directory, _lock) = held(&job);
        let later = json!({ "crawl": true, "by": "lena", "since": "2026-01-01T00:00:00Z",
            "start_at": "2099-01-01T00:00:00Z" });
        fs::write(directory.join("orders.json"), later.to_string()).unwrap();
        until("the job waits", || daemon.state(&job) == "waiting").await;
        let answer = match by_api {
            true => result(daemon.post(&format!("/jobs/{job}/stop"), None, 200)),
            false => {
                let path = format!("jobs/{job}");
                home.run(&["job", "stop", &path]).code(0).out
            }
        };
        assert_eq!(answer.trim(), "the job will not start");
        assert_eq!(orders(&directory)["crawl"], false);
        let log = fs::read_to_string(directory.join("logs/job.log")).unwrap();
        assert!(log.contains("stop => the job will not start"), "{log}");
        until("the job does not wait", || daemon.state(&job) == "new").await;
    }

    // The process of another job waits for the lock.
    let (directory, lock) = held("starts");
    daemon.post("/jobs/starts/start", None, 202);
    until("the process is started", || {
        !orders(&directory)["begun"].is_null()
    })
    .await;
    let answer = result(daemon.post("/jobs/starts/stop", None, 200));
    assert_eq!(
        answer,
        "the job stops as soon as its process accepts commands"
    );
    drop(lock);
    // The process got the lock and is stopped, or gave up. It is not started again.
    until("the job has no pending order", || {
        let ordered = orders(&directory);
        ordered["stop_pending"].is_null() && ordered["crawl"] == false
    })
    .await;
    gate.open();
    until("the process has ended", || {
        ["stopped", "new"].contains(&daemon.state("starts").as_str())
    })
    .await;
    assert_eq!(gate.requests_for("/a"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_of_a_missing_process_can_be_repeated_and_is_withdrawn() {
    let home = Home::new();
    make(&home, "jobs/one", "http://nowhere.localhost/");
    let directory = home.path().join("jobs/one");
    let orders = directory.join("orders.json");
    let pending = json!({ "crawl": false, "stop_pending": true, "by": "lena",
        "since": "2026-01-01T00:00:00Z", "begun": "2026-01-01T00:00:00Z" });
    fs::write(&orders, pending.to_string()).unwrap();
    // While the lock is held, its holder may be the process to stop.
    let lock = fs::File::open(directory.join("lock")).unwrap();
    lock.lock().unwrap();
    let daemon = Daemon::start(&home, &["--no-auth"]);
    until("the job is ending", || daemon.state("one") == "ending").await;
    let stops = "the job stops as soon as its process accepts commands";
    let answer = daemon.post("/jobs/one/stop", None, 200);
    assert_eq!(answer["result"], stops);
    let output = home.run(&["job", "stop", "jobs/one"]).code(0).out;
    assert_eq!(output.trim(), stops);
    drop(lock);
    until("the job is new", || daemon.state("one") == "new").await;
    until("no stop is pending", || {
        let ordered: Value = serde_json::from_slice(&fs::read(&orders).unwrap()).unwrap();
        ordered["stop_pending"].is_null()
    })
    .await;
}

/// A killed daemon has not carried out a stop. The next daemon must not stop a crawl that an operator has started since.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_without_a_daemon_withdraws_a_pending_stop() {
    let gate = Gate::serve(&[("/", "x")]);
    let home = Home::new();
    make(&home, "jobs/one", &gate.url("/"));
    let orders = home.path().join("jobs/one/orders.json");
    let pending = json!({ "crawl": false, "stop_pending": true, "by": "lena",
        "since": "2026-01-01T00:00:00Z", "begun": "2026-01-01T00:00:00Z" });
    fs::write(&orders, pending.to_string()).unwrap();
    home.run(&["job", "start", "jobs/one"]).code(0);
    let ordered: Value = serde_json::from_slice(&fs::read(&orders).unwrap()).unwrap();
    assert!(ordered["stop_pending"].is_null(), "{ordered}");
    let daemon = Daemon::start(&home, &["--no-auth"]);
    until("the daemon finds the crawl", || {
        daemon.state("one") == "running"
    })
    .await;
    gate.open();
    until("the job is finished", || daemon.state("one") == "finished").await;
}

#[test]
fn a_job_without_a_contact_url_is_refused_with_a_remedy() {
    let home = Home::new();
    let new = ["job", "new", "jobs/job", "--profile", "continuous"];
    let seed = ["--seed", "https://www.nationalarchive.dk/"];
    let missing = home.run(&[&new[..], &seed].concat()).code(2);
    let remedy = "fix the profile, or pass --contact-url URL";
    assert!(missing.err.contains(remedy), "{missing:?}");
    assert!(!home.path().join("jobs/job").exists());
}

#[test]
fn the_daemon_does_not_start_with_damaged_files() {
    let home = Home::new();
    home.run(&["token", "new", "ada", "--role", "admin"])
        .code(0);
    for file in ["calendar.json", "tokens.json"] {
        home.file(&format!("jobs/.opilio/{file}"), "{");
        let refused = home.run(&["serve", "--listen", "127.0.0.1:0"]).code(1);
        assert!(refused.err.contains(file), "{refused:?}");
        assert_eq!(refused.out, "");
    }
}

#[test]
fn unreadable_profiles_and_jobs_are_reported_with_a_remedy() {
    let home = Home::new();
    make(&home, "jobs/sound", "http://nowhere.localhost/");
    make(&home, "jobs/faulty", "http://nowhere.localhost/");
    make(&home, "jobs/torn", "http://nowhere.localhost/");
    let profile = home.path().join("jobs/faulty/profile.toml");
    let text = fs::read_to_string(&profile).unwrap();
    fs::write(&profile, format!("{text}\nbad = [\n")).unwrap();
    home.file("jobs/torn/process.json", "{");
    home.file("opilio.toml", "profiles = \"profiles\"\n");
    fs::create_dir_all(home.path().join("profiles/dir.toml")).unwrap();
    let bytes = b"name = \"bin\"\n# \xff\n";
    fs::write(home.path().join("profiles/bin.toml"), bytes).unwrap();
    let daemon = Daemon::start(&home, &["--no-auth"]);

    let listed = daemon.get("/profiles").to_string();
    assert!(listed.contains("\"bin\""), "{listed}");
    assert!(!listed.contains("\"dir\""), "{listed}");
    for (path, status, expected) in [
        ("/profiles/bin", 422, "bin.toml:2: not UTF-8"),
        ("/profiles/dir", 404, "not found"),
    ] {
        let answer = daemon.call("GET", &format!("/api/v1{path}"), None, "");
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert!(answer.body.contains(expected), "{path}: {answer:?}");
    }
    let clone = |job: &str, to: &str, status| {
        let path = format!("/jobs/{job}/clone");
        daemon.post(&path, Some(json!({ "name": to })), status)
    };
    clone("sound", "copy", 201);
    let refused = clone("faulty", "c1", 422);
    assert_eq!(refused["detail"], "the profile has an error", "{refused}");
    assert!(refused["faults"][0]["line"].is_u64(), "{refused}");
    assert!(!home.path().join("jobs/c1").exists());
    let refused = daemon.post("/jobs/torn/start", None, 409);
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("process.json is damaged: "), "{detail}");
    assert!(detail.contains("remove it"), "{detail}");
}

#[test]
fn a_job_with_an_invalid_profile_does_not_start() {
    let home = Home::new();
    home.profile("");
    let make = ["job", "new", "./job", "--profile", "p.toml"];
    home.run(&[&make[..], &["--seed", "http://localhost/"]].concat())
        .code(0);
    let own = home.job().join("profile.toml");
    let text = fs::read_to_string(&own).unwrap();
    fs::write(&own, format!("workers = 0\n{text}")).unwrap();
    let refused = home.run(&["job", "start", "job"]).code(2);
    assert!(refused.err.contains("must be at least 1"), "{refused:?}");
    assert!(refused.err.contains("job did not start"), "{refused:?}");
    fs::write(&own, text).unwrap();
    let status = home.run(&["job", "status", "job"]).code(0);
    assert!(status.out.contains("must be at least 1"), "{status:?}");
}

/// The daemon that paused the job has ended, and an operator has started the crawl without a daemon.
#[tokio::test(flavor = "multi_thread")]
async fn a_running_job_is_not_listed_as_waiting_for_its_window() {
    let (home, gate) = (Home::new(), Gate::serve(&[("/", "")]));
    let mut running = waiting(&home, &gate, "").await;
    let orders = r#"{"crawl":true,"since":"2026-01-01T00:00:00Z","by":"ada","window_closed":true}"#;
    fs::write(home.job().join("orders.json"), orders).unwrap();
    let listed = home.run(&["job", "list", "."]).code(0);
    assert!(listed.out.contains("running"), "{listed:?}");
    assert!(!listed.out.contains("window"), "{listed:?}");
    gate.open();
    assert_eq!(running.wait(), 0);
}

//! `opilio serve`: a daemon that controls jobs, each a process of its own, with requests as clients send them.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use opilio_stories::{captures, html, site, until};
use opilio_test_web::Reply;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use serde_json::{Value, json};

use crate::command::{Home, WWW, tree};
use crate::job::Gate;

/// A daemon and the address that it listens on.
pub(crate) struct Daemon {
    /// `None` if the daemon runs in this process.
    child: Option<Child>,
    pub(crate) address: SocketAddr,
    pub(crate) token: Option<String>,
    /// The only certificate that is trusted. `None`: plain HTTP.
    pub(crate) trusted: Option<CertificateDer<'static>>,
}

/// The answer of the daemon.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Daemon {
    pub(crate) fn start(home: &Home, more: &[&str]) -> Daemon {
        let mut arguments = vec!["serve", "--listen", "127.0.0.1:0", "--jobs", "jobs"];
        arguments.extend(more);
        let mut child = home
            .opilio(&arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let url = line.trim();
        let address = url
            .strip_prefix("https://")
            .or_else(|| url.strip_prefix("http://"))
            .and_then(|rest| rest.strip_suffix('/'))
            .unwrap_or_else(|| panic!("{line:?}"));
        let mut daemon = Daemon::at(address.parse().unwrap());
        daemon.child = Some(child);
        daemon
    }

    /// A daemon that the caller started and ends.
    pub(crate) fn at(address: SocketAddr) -> Daemon {
        Daemon {
            child: None,
            address,
            token: None,
            trusted: None,
        }
    }

    /// Sends a request and reads the answer until the daemon closes the connection.
    pub(crate) fn exchange(&self, request: &str) -> io::Result<String> {
        let mut socket = TcpStream::connect(self.address)?;
        let mut text = String::new();
        let Some(trusted) = &self.trusted else {
            // A daemon that refuses a body answers before it has received all of it, and closes the connection.
            let written = socket.write_all(request.as_bytes());
            let read = socket.read_to_string(&mut text);
            return match text.is_empty() {
                true => written.and(read).map(|_| text),
                false => Ok(text),
            };
        };
        let mut roots = RootCertStore::empty();
        roots.add(trusted.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::IpAddress(self.address.ip().into());
        let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = rustls::Stream::new(&mut connection, &mut socket);
        stream.write_all(request.as_bytes())?;
        stream.read_to_string(&mut text)?;
        Ok(text)
    }

    pub(crate) fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        headers: &str,
    ) -> Answer {
        let kind = match body {
            None => String::new(),
            Some(_) => "Content-Type: application/json\r\n".to_owned(),
        };
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        self.send(method, path, &body, &format!("{kind}{headers}"))
    }

    /// Sends an unchanged body. The headers have its content type.
    pub(crate) fn send(&self, method: &str, path: &str, body: &str, headers: &str) -> Answer {
        let token = self.token.as_ref().map_or(String::new(), |token| {
            format!("Authorization: Bearer {token}\r\n")
        });
        let host = match headers.contains("Host:") {
            true => String::new(),
            false => format!("Host: {}\r\n", self.address),
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{host}Connection: close\r\n{token}{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let text = self.exchange(&request).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        Answer {
            status: head[9..12].parse().unwrap(),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Value {
        let answer = self.call("GET", &format!("/api/v1{path}"), None, "");
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        serde_json::from_str(&answer.body).unwrap()
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: Option<Value>, status: u16) -> Value {
        let answer = self.call("POST", &format!("/api/v1{path}"), body, "");
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        serde_json::from_str(&answer.body).unwrap()
    }

    pub(crate) fn state(&self, job: &str) -> String {
        let jobs = self.get("/jobs");
        let jobs = jobs["jobs"].as_array().unwrap();
        let found = jobs.iter().find(|known| known["name"] == job);
        found.map_or(String::new(), |job| {
            job["state"].as_str().unwrap().to_owned()
        })
    }

    /// Ends the daemon gracefully and waits for its end.
    pub(crate) fn end(&mut self) {
        let child = self.child.as_mut().unwrap();
        send("-TERM", &child.id().to_string());
        assert!(child.wait().unwrap().success());
    }

    pub(crate) fn kill(&mut self) {
        let child = self.child.as_mut().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // The process may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Creates a job for a web with the command line.
#[track_caller]
pub(crate) fn make(home: &Home, job: &str, seed: &str) {
    let profile = home.profile("");
    let profile = profile.to_str().unwrap();
    home.run(&["job", "new", job, "--profile", profile, "--seed", seed])
        .code(0);
}

pub(crate) fn process(home: &Home, job: &str) -> String {
    fs::read_to_string(home.path().join(job).join("lock"))
        .unwrap_or_default()
        .trim()
        .to_owned()
}

pub(crate) fn kill(process: &str) {
    send("-KILL", process);
}

fn send(signal: &str, process: &str) {
    let done = Command::new("kill").args([signal, process]).status();
    assert!(done.unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_created_started_finished_copied_and_deleted() {
    let web = tree(6, 10).await;
    let home = Home::new();
    let daemon = Daemon::start(&home, &["--no-auth"]);
    make(&home, "jobs/one", &web.url(WWW, "/"));
    until("job one is new", || daemon.state("one") == "new").await;
    let copy = daemon.post("/jobs/one/clone", Some(json!({"name": "two"})), 201);
    assert_eq!(copy["name"], "two");
    daemon.post("/jobs/one/start", None, 202);
    home.run(&["job", "start", "jobs/two"]).code(0);
    for job in ["one", "two"] {
        until("the job is finished", || daemon.state(job) == "finished").await;
        let status = daemon.get(&format!("/jobs/{job}/status"));
        assert_eq!(status["statistics"]["tally"]["succeeded"], 5, "{status}");
    }
    let summary = daemon.get("/jobs/one/reports/frontier-summary?format=json");
    let facts = &summary["facts"];
    assert_eq!(facts["queues_exhausted"], 1, "{summary}");
    let mut names = facts.as_object().unwrap().keys();
    assert!(names.all(|name| !name.contains('-')), "{summary}");
    let seed = web.url(WWW, "/");
    let why = daemon.get(&format!("/jobs/one/why?uri={seed}"));
    assert_eq!(why["known"], "known");
    let mentions = daemon.get(&format!("/jobs/one/mentions?uri={seed}"));
    assert_eq!(mentions["visits"][0]["status"], 200, "{mentions}");
    assert_eq!(mentions["is_whole"], true, "{mentions}");
    let bad = daemon.call("GET", "/api/v1/jobs/one/mentions?uri=http://[", None, "");
    assert_eq!(bad.status, 422, "{bad:?}");
    let capture = format!("/api/v1/jobs/one/capture?uri={seed}");
    let capture = daemon.call("GET", &capture, None, "");
    assert!(capture.body.contains("2.html"), "{capture:?}");
    assert!(capture.head.contains("content-security-policy: sandbox;"));

    let gone = daemon.call("DELETE", "/api/v1/jobs/one", None, "");
    assert_eq!(gone.status, 204, "{gone:?}");
    until("job one is gone", || daemon.state("one").is_empty()).await;
    assert!(home.path().join("jobs/one/warcs").exists());
    let gone = daemon.call("DELETE", "/api/v1/jobs/two?archive=true", None, "");
    assert_eq!(gone.status, 204, "{gone:?}");
    assert!(!home.path().join("jobs/two").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn captures_are_shown_by_date_and_lists_have_pages() {
    let version = Arc::new(AtomicUsize::new(0));
    let now = version.clone();
    let web = site(WWW)
        .page("/robots.txt", Reply::status(404))
        .answer("/", move |_| {
            html(["the first", "the second", "the second"][now.load(Ordering::SeqCst)])
        })
        .serve()
        .await;
    let home = Home::new();
    home.profile("name = 'versions'");
    let seed = web.url(WWW, "/");
    home.run(&["crawl", "p.toml", "--job", "jobs/one", "--seed", &seed])
        .code(0);
    for _ in 1..3 {
        version.fetch_add(1, Ordering::SeqCst);
        home.run(&["frontier", "force", "jobs/one", &seed]).code(0);
        home.run(&["crawl", "p.toml", "--job", "jobs/one"]).code(0);
    }
    // With milliseconds, which indexes do not have.
    let mut dates: Vec<String> = captures(&home.path().join("jobs/one"))
        .iter()
        .filter(|capture| capture.uri == seed && ["response", "revisit"].contains(&&*capture.kind))
        .map(|capture| capture.header("WARC-Date").unwrap().to_owned())
        .collect();
    dates.sort();
    let daemon = Daemon::start(&home, &["--no-auth"]);
    let listed = |more: &str| daemon.get(&format!("/jobs/one/captures?uri={seed}{more}"));
    let all = listed("");
    let revisits: Vec<&Value> = all["captures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|capture| &capture["is_revisit"])
        .collect();
    assert_eq!(revisits, [true, false, false], "{all}");
    assert_eq!(all["unlisted"], json!([]), "{all}");
    let first = listed("&limit=2");
    let after = first["after"].as_str().unwrap();
    let second = listed(&format!("&limit=2&after={after}"));
    assert_eq!(second["captures"][0], all["captures"][2], "{second}");
    assert_eq!(second["after"], Value::Null);

    let shown = |query: &str| {
        let path = format!("/api/v1/jobs/one/capture?uri={seed}{query}");
        daemon.call("GET", &path, None, "")
    };
    for (date, expected) in dates.iter().zip(["the first", "the second", "the second"]) {
        let shown = shown(&format!("&at={date}"));
        assert!(shown.body.contains(expected), "{date}: {shown:?}");
        assert!(shown.head.contains("memento-datetime: "), "{shown:?}");
    }
    assert!(shown("").body.contains("the second"));
    let before = shown("&at=2001-01-01T00:00:00Z");
    assert_eq!(before.status, 404);
    assert!(
        before.body.contains("the first capture is of "),
        "{before:?}"
    );
    assert_eq!(shown("&at=yesterday").status, 400);
    let none = daemon.get("/jobs/one/captures?uri=http://nowhere.example/");
    assert_eq!(none["captures"], json!([]));

    let uris = |more: &str| daemon.get(&format!("/jobs/one/uris?{more}"));
    let all = uris("");
    let (mut paged, mut after) = (Vec::new(), String::new());
    loop {
        let page = uris(&format!("limit=1{after}"));
        paged.extend(page["uris"].as_array().unwrap().iter().cloned());
        let Some(next) = page["after"].as_str() else {
            break;
        };
        after = format!("&after={next}");
    }
    assert!(paged.len() > 1, "{paged:?}");
    assert_eq!(Value::from(paged), all["uris"]);
    let bad = daemon.call("GET", "/api/v1/jobs/one/uris?after=x", None, "");
    assert_eq!(bad.status, 404, "{bad:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_several_conflicting_actions_is_done_or_refused() {
    let gate = Gate::serve(&[("/", "")]);
    let home = Home::new();
    home.profile("name = 'gate'");
    make(&home, "jobs/x", &gate.url("/"));
    let daemon = Daemon::start(&home, &["--no-auth"]);
    daemon.post("/jobs/x/start", None, 202);
    until("the seed is requested", || gate.requests_for("/") == 1).await;
    let actions = [
        "pause",
        "resume",
        "stop",
        "start",
        "checkpoint",
        "pause",
        "stop",
        "resume",
    ];
    std::thread::scope(|scope| {
        for action in actions {
            let daemon = &daemon;
            scope.spawn(move || {
                let path = format!("/api/v1/jobs/x/{action}");
                let answer = daemon.call("POST", &path, None, "");
                let is_problem = answer.head.contains("application/problem+json");
                assert!(
                    answer.status < 300 || (answer.status == 409 && is_problem),
                    "{action}: {answer:?}"
                );
            });
        }
    });
    gate.open();
    daemon.call("POST", "/api/v1/jobs/x/stop", None, "");
    until("it does not run", || {
        ["stopped", "finished"].contains(&daemon.state("x").as_str())
    })
    .await;
    home.run(&["frontier", "check", "jobs/x"]).code(0);
}

#[test]
fn settings_that_run_a_program_or_open_a_file_are_refused_in_every_notation() {
    let home = Home::new();
    make(&home, "jobs/x", "http://nowhere.localhost/");
    let daemon = Daemon::start(&home, &["--no-auth"]);
    for set in [
        json!(["archive.on-close = [\"id\"]"]),
        // A value that is not TOML becomes a string, and the rest is parsed as usual.
        json!(["archive.prefix = it's", "archive.on-close = [\"id\"]"]),
        json!(["politeness.min-delay=2s", "alerts.command = [\"id\"]"]),
        json!(["seeds-file=/etc/passwd"]),
        json!(["archive.prefix = 'x'\n[archive]\non-close = ['id']"]),
        json!(["archive = { on-close = ['id'] }"]),
        json!(["\"archive\".\"on-close\" = ['id']"]),
    ] {
        for only_check in [true, false] {
            let body = json!({"set": set, "only_check": only_check});
            let answer = daemon.call("PATCH", "/api/v1/jobs/x/settings", Some(body), "");
            assert!([403, 422].contains(&answer.status), "{set}: {answer:?}");
        }
    }
    // Appended to the conditions, it would be a table of the override that they begin.
    let proxy = json!({
        "set": ["[override.fetch]", "proxy = 'http://127.0.0.1:9/'"],
        "matching": {"host": ["nowhere.localhost"]},
    });
    let answer = daemon.call("PATCH", "/api/v1/jobs/x/settings", Some(proxy), "");
    assert_eq!(answer.status, 403, "{answer:?}");
    let bypassed = json!({"set": ["politeness.min-delay=2s", "alerts.command = [\"id\"]"]});
    let answer = daemon.call("PATCH", "/api/v1/jobs/x/settings", Some(bypassed), "");
    assert_eq!(answer.status, 403, "{answer:?}");
    assert!(!home.path().join("jobs/x/changes").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_that_the_system_ends_continues_after_the_machine_has_restarted() {
    let gate = Gate::serve(&[("/", "<a href='/a'>a</a>"), ("/a", "a")]);
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-auth"]);
    // The gate delays the page, so that a graceful end would wait for it.
    let fetch = "fetch = { allow-addresses = [\"loopback\"], response-timeout = \"10m\", stop-grace = \"1ms\" }\n";
    let profile = home.file("p.toml", fetch);
    let (profile, seed) = (profile.to_str().unwrap(), gate.url("/"));
    home.run(&[
        "job",
        "new",
        "jobs/job",
        "--profile",
        profile,
        "--seed",
        &seed,
    ])
    .code(0);
    daemon.post("/jobs/job/start", None, 202);
    until("the crawl waits for its first page", || {
        gate.requests_for("/") == 1
    })
    .await;
    let first = process(&home, "jobs/job");
    daemon.kill();
    send("-TERM", &first);
    let log = home.path().join("jobs/job/logs/job.log");
    until("the crawl has ended", || {
        fs::read_to_string(&log)
            .is_ok_and(|log| log.contains("crawl end => terminated by the system"))
    })
    .await;

    let daemon = Daemon::start(&home, &["--no-auth"]);
    // The end of the first process may take some time.
    until("another process crawls", || {
        daemon.state("job") == "running" && process(&home, "jobs/job") != first
    })
    .await;
    gate.open();
    until("the job is finished", || daemon.state("job") == "finished").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_must_end_its_crawls_waits_for_them_and_the_next_daemon_continues_them() {
    let gate = Gate::serve(&[("/", "<a href='/a'>a</a>"), ("/a", "a")]);
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-auth", "--end-crawls"]);
    // The gate delays the page, so that a graceful end would wait for it.
    let fetch = "fetch = { allow-addresses = [\"loopback\"], response-timeout = \"10m\", stop-grace = \"1ms\" }\n";
    let profile = home.file("p.toml", fetch);
    let (profile, seed) = (profile.to_str().unwrap(), gate.url("/"));
    let new = ["job", "new", "jobs/job", "--profile", profile];
    home.run(&[&new[..], &["--seed", &seed]].concat()).code(0);
    daemon.post("/jobs/job/start", None, 202);
    until("the seed is requested", || gate.requests_for("/") == 1).await;
    daemon.end();
    let job = home.path().join("jobs/job");
    let log = fs::read_to_string(job.join("logs/job.log")).unwrap();
    assert!(
        log.contains("crawl end => terminated by the system"),
        "{log}"
    );
    let archive = fs::read_dir(job.join("warcs")).unwrap();
    let files: Vec<_> = archive.map(|entry| entry.unwrap().file_name()).collect();
    let is_open = |file: &std::ffi::OsString| file.to_string_lossy().ends_with(".open");
    assert!(!files.iter().any(is_open), "{files:?}");

    let daemon = Daemon::start(&home, &["--no-auth"]);
    gate.open();
    until("it is finished", || daemon.state("job") == "finished").await;
    assert_eq!(gate.requests_for("/a"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_crawl_stays_paused_after_deaths_until_an_operator_resumes_it() {
    let gate = Gate::serve(&[("/", "<a href='/a'>a</a>"), ("/a", "a")]);
    let home = Home::new();
    home.file("opilio.toml", "[restart]\npause = \"100ms\"\n");
    let mut daemon = Daemon::start(&home, &["--no-auth"]);
    make(&home, "jobs/job", &gate.url("/"));
    daemon.post("/jobs/job/start", None, 202);
    until("the seed is requested", || gate.requests_for("/") == 1).await;
    daemon.post("/jobs/job/pause", None, 200);
    gate.open();
    until("it is paused", || daemon.state("job") == "paused").await;

    let first = process(&home, "jobs/job");
    kill(&first);
    until("another process is paused", || {
        process(&home, "jobs/job") != first && daemon.state("job") == "paused"
    })
    .await;
    // As when the machine crashes: daemon and crawl are killed.
    let second = process(&home, "jobs/job");
    daemon.kill();
    kill(&second);
    let daemon = Daemon::start(&home, &["--no-auth"]);
    until("another process is paused", || {
        process(&home, "jobs/job") != second && daemon.state("job") == "paused"
    })
    .await;
    assert_eq!(gate.requests_for("/a"), 0);

    let third = process(&home, "jobs/job");
    home.run(&["job", "resume", "jobs/job"]).code(0);
    until("it is finished", || daemon.state("job") == "finished").await;
    assert_eq!(gate.requests_for("/a"), 1);
    assert_eq!(process(&home, "jobs/job"), third);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_without_its_folder_is_not_ready_and_rejects_no_token() {
    let home = Home::new();
    let made = home
        .run(&["token", "new", "ada", "--role", "admin"])
        .code(0);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.token = Some(made.out.trim().to_owned());
    let ready = || daemon.call("GET", "/readyz", None, "");
    until("it is ready", || ready().status == 200).await;
    let (jobs, away) = (home.path().join("jobs"), home.path().join("jobs.away"));
    fs::rename(&jobs, &away).unwrap();
    let is_reported = |answer: Answer| answer.status == 503 && answer.body.contains("cannot use");
    until("it is not ready, and says why", || is_reported(ready())).await;
    let refused = daemon.call("GET", "/metrics", None, "");
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.body.contains("file of tokens"), "{refused:?}");
    fs::rename(&away, &jobs).unwrap();
    until("it is ready again", || ready().status == 200).await;
    assert_eq!(daemon.get("/jobs")["total"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_crawl_continues_by_itself_and_a_crawl_outlives_the_daemon() {
    let gate = Gate::serve(&[("/", "<a href='/a'>a</a>"), ("/a", "a")]);
    let home = Home::new();
    home.file("opilio.toml", "[restart]\npause = \"100ms\"\n");
    let mut daemon = Daemon::start(&home, &["--no-auth"]);
    make(&home, "jobs/job", &gate.url("/"));
    until("the job is new", || daemon.state("job") == "new").await;
    daemon.post("/jobs/job/start", None, 202);
    until("the job is running", || daemon.state("job") == "running").await;

    let first = process(&home, "jobs/job");
    kill(&first);
    until(
        "daemon.state('job') == 'running' && process(&home, 'jobs/job') != first",
        || daemon.state("job") == "running" && process(&home, "jobs/job") != first,
    )
    .await;
    let log = fs::read_to_string(home.path().join("jobs/job/logs/job.log")).unwrap();
    assert!(
        log.contains("daemon process died => killed; restart at"),
        "{log}"
    );

    let second = process(&home, "jobs/job");
    daemon.kill();
    let daemon = Daemon::start(&home, &["--no-auth"]);
    until("the job is running", || daemon.state("job") == "running").await;
    assert_eq!(process(&home, "jobs/job"), second);

    // Daemon and crawl die together: a job that was crawling crawls again under the next daemon.
    let mut daemon = daemon;
    daemon.kill();
    kill(&second);
    let daemon = Daemon::start(&home, &["--no-auth"]);
    until("another process crawls", || {
        daemon.state("job") == "running" && process(&home, "jobs/job") != second
    })
    .await;

    daemon.post("/jobs/job/stop", None, 200);
    daemon.post("/jobs/job/pause", None, 409);
    gate.open();
    until("the job is stopped", || daemon.state("job") == "stopped").await;
    daemon.post("/jobs/job/stop", None, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_no_longer_restarted_has_an_alert_until_it_is_started_again() {
    let gate = Gate::serve(&[("/", "x")]);
    let home = Home::new();
    home.file("opilio.toml", "[restart]\nattempts = 0\n");
    let daemon = Daemon::start(&home, &["--no-auth"]);
    let command = "cat > alert.tmp && mv alert.tmp alert.json";
    let profile = home.profile(&format!("alerts.command = ['sh', '-c', '{command}']"));
    let (profile, seed) = (profile.to_str().unwrap(), gate.url("/"));
    let new = ["job", "new", "jobs/job", "--profile", profile];
    home.run(&[&new[..], &["--seed", &seed]].concat()).code(0);
    until("the daemon lists it", || daemon.state("job") == "new").await;
    daemon.post("/jobs/job/start", None, 202);
    until("it runs", || daemon.state("job") == "running").await;
    kill(&process(&home, "jobs/job"));
    let alert = home.path().join("jobs/job/alert.json");
    until("the alert command has run", || alert.exists()).await;
    let alert: Value = serde_json::from_slice(&fs::read(alert).unwrap()).unwrap();
    assert_eq!(alert["alert"]["kind"], "halted", "{alert}");
    assert_eq!(alert["name"], "job", "{alert}");
    let message = alert["alert"]["message"].as_str().unwrap();
    assert!(
        message.contains("the process died once, killed"),
        "{message}"
    );
    let is_open = || {
        let alerts = daemon.get("/jobs/job/alerts");
        let alerts = alerts["alerts"].as_array().unwrap().clone();
        alerts.iter().any(|alert| alert["until"].is_null())
    };
    assert!(is_open());
    let open = || daemon.get("/jobs")["jobs"][0]["alerts"].clone();
    until("it counts as open", || open() == 1).await;
    let deaths = || daemon.get("/jobs")["jobs"][0]["deaths"].clone();
    until("its last death counts", || deaths() == 1).await;
    let known = json!({ "kind": "halted" });
    daemon.post("/jobs/job/alerts/acknowledge", Some(known), 200);
    until("it is acknowledged and no longer open", || open() == 0).await;
    // A command that read the job may look like its process to the daemon until it checks again.
    until("it does not run", || daemon.state("job") == "failed").await;
    gate.open();
    daemon.post("/jobs/job/start", None, 202);
    until("it is finished", || daemon.state("job") == "finished").await;
    assert!(!is_open());
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_wait_for_a_slot() {
    let gate = Gate::serve(&[("/", "x")]);
    let home = Home::new();
    home.file("opilio.toml", "[limits]\njobs = 1\n");
    let daemon = Daemon::start(&home, &["--no-auth"]);
    for job in ["jobs/a", "jobs/b"] {
        make(&home, job, &gate.url("/"));
    }
    daemon.post("/jobs/a/start", None, 202);
    until("job a is running", || daemon.state("a") == "running").await;
    daemon.post("/jobs/b/start", None, 202);
    daemon.post("/jobs/b/start", None, 409);
    until("job b is waiting", || daemon.state("b") == "waiting").await;
    gate.open();
    until(
        "daemon.state('a') == 'finished' && daemon.state('b') == 'finished'",
        || daemon.state("a") == "finished" && daemon.state("b") == "finished",
    )
    .await;
}

#[test]
fn tokens_have_the_rights_of_their_roles() {
    let home = Home::new();
    let refused = home.run(&["serve", "--listen", "127.0.0.1:0", "--jobs", "jobs"]);
    assert!(refused.code(2).err.contains("opilio token new"));
    let token = |name: &str, role: &str| {
        let made = home.run(&["token", "new", name, "--role", role]).code(0);
        made.out.trim().to_owned()
    };
    let (viewer, operator) = (token("vera", "viewer"), token("otto", "operator"));
    let mut daemon = Daemon::start(&home, &[]);
    let call = |daemon: &Daemon, method: &str, path: &str| {
        daemon
            .call(method, &format!("/api/v1{path}"), None, "")
            .status
    };
    assert_eq!(call(&daemon, "GET", "/jobs"), 401);
    daemon.token = Some("opilio_x_y".to_owned());
    assert_eq!(call(&daemon, "GET", "/jobs"), 401);
    daemon.token = Some(viewer);
    assert_eq!(call(&daemon, "GET", "/jobs"), 200);
    assert_eq!(call(&daemon, "POST", "/jobs/x/start"), 403);
    daemon.token = Some(operator.clone());
    assert_eq!(call(&daemon, "POST", "/jobs/x/start"), 404);
    assert_eq!(call(&daemon, "DELETE", "/jobs/x"), 403);
    assert_eq!(call(&daemon, "GET", "/audit"), 403);
    daemon.token = Some(token("ada", "admin"));
    let audit = daemon.get("/audit");
    assert_eq!(audit["entries"][0]["user"], "otto", "{audit}");
    assert_eq!(audit["entries"][0]["status"], 403, "{audit}");

    // A browser exchanges the token for a cookie.
    daemon.token = None;
    let signed = daemon.call(
        "POST",
        "/api/v1/session",
        Some(json!({"token": operator})),
        "",
    );
    assert_eq!(signed.status, 200, "{signed:?}");
    let cookie = signed.head.split("set-cookie: ").nth(1).unwrap();
    assert!(cookie.contains("httponly; samesite=strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let large = json!({"token": "x".repeat(5_000)});
    let refused = daemon.call("POST", "/api/v1/session", Some(large), "");
    assert_eq!(refused.status, 413, "{refused:?}");
    let with = |more: &str| {
        let headers = format!("Cookie: {cookie}\r\n{more}");
        daemon
            .call("POST", "/api/v1/jobs/x/start", None, &headers)
            .status
    };
    assert_eq!(with(""), 404);
    assert_eq!(with("Origin: https://evil.example\r\n"), 403);
    assert_eq!(with("Host: evil.example\r\n"), 421);
    let audit = home.path().join("jobs/.opilio/audit.jsonl");
    let audit = fs::read_to_string(audit).unwrap();
    let signed_in = audit.lines().find(|line| line.contains("session")).unwrap();
    assert!(signed_in.contains("\"user\":\"otto\""), "{signed_in}");
    assert!(!audit.contains(&operator), "{audit}");

    // A revoked token is not accepted, and neither is its cookie.
    let listed = home.run(&["token", "list"]).code(0).out;
    let line = listed.lines().find(|line| line.contains("otto")).unwrap();
    assert!(line.contains("operator"), "{line}");
    let id = line.split(' ').next().unwrap();
    assert!(
        operator.contains(id) && !listed.contains(&operator),
        "{listed}"
    );
    let revoked = home.run(&["token", "revoke", id, "--json"]).code(0).out;
    assert!(revoked.contains("\"answer\":\"revoked\""), "{revoked}");
    let again = home.run(&["token", "revoke", id]).code(1);
    assert!(again.err.contains("opilio token list"), "{again:?}");
    assert_eq!(with(""), 401);
    daemon.token = Some(operator);
    assert_eq!(call(&daemon, "GET", "/jobs"), 401);
    let listed = home.run(&["token", "list", "--json"]).code(0).out;
    let users = listed.lines().map(|line| {
        let token: Value = serde_json::from_str(line).unwrap();
        token["user"].as_str().unwrap().to_owned()
    });
    let mut users: Vec<_> = users.collect();
    users.sort();
    assert_eq!(users, ["ada", "vera"]);
}

#[test]
fn bad_requests_are_answered_with_problems_and_change_nothing() {
    let home = Home::new();
    let daemon = Daemon::start(&home, &["--no-auth"]);
    let check = |method: &str, path: &str, body: Option<Value>, status: u16| {
        let answer = daemon.call(method, path, body, "");
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        assert!(
            answer.head.contains("application/problem+json"),
            "{answer:?}"
        );
        let problem: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(problem["status"], status, "{problem}");
    };
    check("GET", "/api/v1/nothing", None, 404);
    check("PUT", "/api/v1/jobs", None, 405);
    check("POST", "/api/v1/jobs", None, 415);
    check("POST", "/api/v1/jobs", Some(json!({"nme": "a"})), 422);
    check("GET", "/api/v1/jobs?limit=0", None, 422);
    check("GET", "/api/v1/jobs?limit=many", None, 400);
    check("GET", "/api/v1/jobs/..%2F..%2Fetc", None, 404);
    check("POST", "/api/v1/jobs/x/pause", None, 404);
    let large = json!({"name": "a", "profile": "x".repeat(17 << 20)});
    let answer = daemon.call("POST", "/api/v1/jobs", Some(large), "");
    assert_eq!(answer.status, 413);
    let faulty =
        json!({"name": "a", "profile_toml": "\nnme = 1\n", "seeds": ["http://a.localhost/"]});
    let problem = daemon.post("/jobs", Some(faulty), 422);
    let faults = problem["faults"].as_array().unwrap();
    let unknown = faults.iter().find(|fault| fault["setting"] == "/nme");
    assert_eq!(unknown.unwrap()["line"], 2, "{problem}");
    let command = json!({"name": "a", "profile_toml": "archive.on-close = [\"id\"]"});
    daemon.post("/jobs", Some(command), 403);
    assert_eq!(daemon.get("/jobs")["total"], 0);

    let second = home.run(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--jobs",
        "jobs",
        "--no-auth",
    ]);
    assert!(second.code(1).err.contains("another daemon"));
}

#[test]
fn the_api_description_agrees_with_the_code() {
    let home = Home::new();
    let now = home.run(&["serve", "--openapi"]).code(0).out;
    let kept = fs::read_to_string("../../docs/openapi.json").unwrap();
    assert!(
        now == kept,
        "docs/openapi.json is old: opilio serve --openapi > docs/openapi.json"
    );
}

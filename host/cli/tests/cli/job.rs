//! `opilio job`: a running crawl is paused, stopped, copied and inspected.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use opilio_stories::{asked, captures, counter, html, lines, site, sound, until};
use serde_json::Value;

use crate::command::{Home, Running, WWW, held_tree};

/// The host of [`Gate`].
const HOST: &str = "gate.localhost";

/// A server that holds all responses except those for robots.txt until it is opened.
pub(crate) struct Gate {
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    is_open: Mutex<bool>,
    opened: Condvar,
    asked: Mutex<Vec<String>>,
}

impl Gate {
    /// Serves pages, each with a target and a body.
    pub(crate) fn serve(pages: &[(&str, &str)]) -> Gate {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let pages: Vec<(String, String)> = pages
            .iter()
            .map(|(target, body)| ((*target).to_owned(), (*body).to_owned()))
            .collect();
        let served = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (state, pages) = (served.clone(), pages.clone());
                std::thread::spawn(move || answer(stream.unwrap(), &state, &pages));
            }
        });
        Gate { port, state }
    }

    pub(crate) fn url(&self, target: &str) -> String {
        format!("http://{HOST}:{}{target}", self.port)
    }

    /// Returns the SURT of a target.
    pub(crate) fn surt(&self, target: &str) -> String {
        opilio_uri::Uri::parse(&self.url(target)).unwrap().surt()
    }

    pub(crate) fn open(&self) {
        *self.state.is_open.lock().unwrap() = true;
        self.state.opened.notify_all();
    }

    /// Returns the targets of the requests so far, without robots.txt.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.asked.lock().unwrap().clone()
    }

    /// Returns the number of requests for a target so far.
    pub(crate) fn requests_for(&self, target: &str) -> usize {
        let requests = self.requests();
        requests.iter().filter(|one| *one == target).count()
    }
}

fn answer(mut stream: TcpStream, state: &State, pages: &[(String, String)]) {
    let mut head = String::new();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let target = head.split(' ').nth(1).unwrap_or_default();
    let page = pages.iter().find(|(of, _)| of == target);
    if target != "/robots.txt" {
        state.asked.lock().unwrap().push(target.to_owned());
        let mut is_open = state.is_open.lock().unwrap();
        while !*is_open {
            is_open = state.opened.wait(is_open).unwrap();
        }
    }
    let (status, body) = page.map_or(("404 Not Found", ""), |(_, body)| ("200 OK", body));
    // The client may have closed the connection.
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
}

/// Returns the state that `opilio job status` prints; `None` if the command fails.
pub(crate) fn state(home: &Home) -> Option<String> {
    let output = home
        .opilio(&["job", "status", "job", "--json"])
        .output()
        .unwrap();
    let status: Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(status["state"].as_str()?.to_owned())
}

/// Starts a crawl of the gate's `/` with these further settings, and waits until the request for it is held.
pub(crate) async fn waiting(home: &Home, gate: &Gate, profile: &str) -> Running {
    home.profile(&format!("name = 'gate'\n{profile}"));
    let seed = gate.url("/");
    let running = home.start(&["crawl", "p.toml", "--seed", &seed, "--job", "job"]);
    until("the seed is requested", || gate.requests_for("/") == 1).await;
    running
}

/// Starts a crawl of the gate's `/`, pauses it while that fetch is in flight, opens the gate, and waits until the crawl is paused.
pub(crate) async fn paused(home: &Home, gate: &Gate) -> Running {
    let running = waiting(home, gate, "").await;
    home.run(&["job", "pause", "job"]).code(0);
    assert_eq!(state(home).as_deref(), Some("pausing"));
    gate.open();
    until("the crawl is paused", || {
        state(home).as_deref() == Some("paused")
    })
    .await;
    running
}

pub(crate) fn job_log(home: &Home) -> String {
    home.run(&["job", "log", "job"]).code(0).out
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_crawl_fetches_nothing_until_it_is_resumed() {
    const PAGES: usize = 300;
    let gate = opilio_test_web::Gate::closed();
    let (home, web) = (Home::new(), held_tree(PAGES, 0, &[(30, &gate)]).await);
    home.profile("name = 'tree'\nworkers = 2");
    let seed = web.url(WWW, "/");
    let mut running = home.start(&["crawl", "p.toml", "--seed", &seed, "--job", "job"]);
    until("twenty pages are requested", || asked(&web).len() >= 20).await;
    let output = home.run(&["job", "pause", "job"]).code(0).out;
    assert!(output.contains("no new fetches start"), "{output}");
    gate.open();
    until("the crawl is paused", || {
        state(&home).as_deref() == Some("paused")
    })
    .await;

    let before = asked(&web).len();
    assert!(before < PAGES - 1, "paused too late for this test");
    for _ in 0..3 {
        home.run(&["frontier", "queues", "job"]).code(0);
    }
    assert_eq!(state(&home).as_deref(), Some("paused"));
    assert_eq!(asked(&web).len(), before);

    home.run(&["job", "resume", "job"]).code(0);
    assert_eq!(running.wait(), 0);
    assert_eq!(asked(&web).len(), PAGES - 1);
    sound(&home.job());
    assert!(!home.job().join("control").exists());

    let log = job_log(&home);
    let mut found = log.lines();
    for wanted in [
        "crawl begin => new job",
        "pause => pausing",
        "crawl pause => paused; no fetches in flight",
        "resume => resumed",
        "crawl resume => resumed",
        "crawl end => finished",
    ] {
        assert!(
            found.any(|line| line.contains(wanted)),
            "{wanted:?} in its order in\n{log}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_crawl_stops_at_an_interrupt_and_is_resumed_later() {
    let (home, gate) = (
        Home::new(),
        Gate::serve(&[("/", "<a href='/a'>a</a>"), ("/a", "")]),
    );
    let mut running = paused(&home, &gate).await;
    running.signal("INT");
    assert_eq!(running.wait(), 0);
    assert_eq!(gate.requests(), ["/"]);
    home.run(&["crawl", "p.toml", "--job", "job"]).code(0);
    assert_eq!(gate.requests(), ["/", "/a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_terminal_stops_a_crawl_unless_it_was_started_with_nohup() {
    let (home, gate) = (
        Home::new(),
        Gate::serve(&[("/", "<a href='/a'>a</a>"), ("/a", "")]),
    );
    home.profile("name = 'gate'");
    gate.open();
    let hang_up = |process: u32| {
        let mut kill = Command::new("kill");
        let hung_up = kill.args(["-HUP", &process.to_string()]).status();
        assert!(hung_up.unwrap().success());
    };
    let seed = gate.url("/");
    let begun = [
        "crawl", "p.toml", "--seed", &seed, "--job", "job", "--paused", "--quiet",
    ];
    // The tests themselves may run with nohup, and ignored signals are inherited.
    let with_signal = r#"exec env --default-signal=HUP "$0" "$@""#;
    let mut running = home.opilio_after(with_signal, &begun).spawn().unwrap();
    until("the crawl is paused", || {
        state(&home).as_deref() == Some("paused")
    })
    .await;
    hang_up(running.id());
    assert!(running.wait().unwrap().success());
    let log = job_log(&home);
    assert!(
        log.contains("crawl end => terminated by the system"),
        "{log}"
    );

    // As with nohup.
    let crawl = ["crawl", "p.toml", "--job", "job", "--paused", "--quiet"];
    let mut command = home.opilio_after("trap '' HUP", &crawl);
    let mut outlives = command.stdout(Stdio::null()).spawn().unwrap();
    until("the crawl is paused", || {
        state(&home).as_deref() == Some("paused")
    })
    .await;
    let why = home.run(&["frontier", "why", "job", &seed]).code(0).out;
    assert!(
        why.contains("; the job is paused, so nothing is fetched"),
        "{why}"
    );
    hang_up(outlives.id());
    home.run(&["job", "resume", "job"]).code(0);
    assert!(outlives.wait().unwrap().success());
    assert_eq!(gate.requests(), ["/", "/a"]);
    let log = job_log(&home);
    assert!(log.trim_end().ends_with("no URIs left"), "{log}");

    // Standard output is closed when the summary is printed.
    let mut command = home.opilio(&["crawl", "p.toml", "--job", "job"]);
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    drop(process.stdout.take());
    assert!(process.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_ends_politely() {
    let gate = opilio_test_web::Gate::closed();
    let (home, web) = (Home::new(), held_tree(300, 0, &[(30, &gate)]).await);
    home.profile("name = 'tree'\nworkers = 2");
    let seed = web.url(WWW, "/");
    let mut running = home.start(&["crawl", "p.toml", "--seed", &seed, "--job", "job"]);
    until("twenty pages are requested", || asked(&web).len() >= 20).await;
    home.run(&["job", "stop", "job"]).code(0);
    gate.open();
    assert_eq!(running.wait(), 0);
    assert!(asked(&web).len() < 299, "stopped too late for this test");
    sound(&home.job());
    assert_eq!(state(&home).as_deref(), Some("stopped"));
    let log = job_log(&home);
    assert!(
        log.contains(" stop => stopping; current fetches finish"),
        "{log}"
    );
    assert!(log.contains(" crawl end => stopped"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_made_from_a_checkpoint_of_a_running_crawl() {
    let (home, gate) = (
        Home::new(),
        Gate::serve(&[
            ("/", "<a href='/a'>a</a><a href='/b'>b</a>"),
            ("/a", ""),
            ("/b", ""),
        ]),
    );
    let mut running = paused(&home, &gate).await;
    let made = home
        .run(&["job", "checkpoint", "job", "--to", "kept"])
        .code(0);
    assert!(made.out.contains("opilio job restore"), "{made:?}");
    let again = home
        .run(&["job", "checkpoint", "job", "--to", "kept"])
        .code(2);
    assert!(again.err.contains("already exists"), "{again:?}");
    home.run(&["job", "checkpoint", "job"]).code(0);
    let own = std::fs::read_dir(home.job().join("checkpoints")).unwrap();
    assert_eq!(own.count(), 1);

    home.run(&["job", "resume", "job"]).code(0);
    assert_eq!(running.wait(), 0);
    assert_eq!(gate.requests().len(), 3);

    home.run(&["job", "restore", "kept", "job"]).code(2);
    home.run(&["job", "restore", "p.toml", "other"]).code(2);
    home.run(&["job", "restore", "kept", "./new"]).code(0);
    home.run(&["frontier", "check", "new"]).code(0);
    let read = home
        .run(&["frontier", "why", "new", &gate.url("/")])
        .code(0);
    assert!(read.out.contains("  extracted by  http 0."), "{read:?}");
    home.run(&["crawl", "p.toml", "--job", "new"]).code(0);
    let new = home.path().join("new");
    sound(&new);
    let mut archived: Vec<String> = captures(&new)
        .into_iter()
        .filter(|capture| capture.kind == "response")
        .map(|capture| capture.uri)
        .collect();
    archived.sort();
    assert_eq!(archived, [gate.url("/a"), gate.url("/b")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_has_one_process_and_commands_that_need_it_have_clear_errors() {
    let (home, gate) = (Home::new(), Gate::serve(&[("/", "")]));
    let mut running = paused(&home, &gate).await;
    let second = home.run(&["crawl", "p.toml", "--job", "job"]).code(3);
    let pid = running.child.id();
    assert!(
        second.err.contains(&format!("in use by process {pid}")),
        "{second:?}"
    );
    let check = home.run(&["frontier", "check", "job"]).code(1);
    assert!(check.err.contains("stop the crawl first"), "{check:?}");
    running.signal("KILL");
    assert_eq!(running.wait(), -1);

    // The socket of the dead process is still there.
    assert!(home.job().join("control").exists());
    assert_eq!(state(&home).as_deref(), Some("crashed"));
    for (command, reason) in [
        (
            vec!["job", "pause", "job"],
            "only a running job can be paused",
        ),
        (
            vec!["job", "resume", "job"],
            "resume it with `opilio crawl JOB`",
        ),
        (
            vec!["job", "stop", "job"],
            "only a running job can be stopped",
        ),
        (
            vec!["frontier", "cancel", "job", "http://a.org/"],
            "no fetch to cancel",
        ),
        (
            vec!["frontier", "floor", "job", "3"],
            "frontier.precedence-floor",
        ),
    ] {
        let ended = home.run(&command).code(1);
        assert!(ended.err.contains(reason), "{ended:?}");
    }
    let none = home.run(&["job", "observe", "job"]).code(0);
    assert!(none.out.contains("the job has no observers"), "{none:?}");
    // The user is known without the variables of the environment.
    let mut checkpoint = home.opilio(&["job", "checkpoint", "job"]);
    let nameless = checkpoint
        .env_remove("USER")
        .env_remove("LOGNAME")
        .env_remove("USERNAME");
    assert!(nameless.output().unwrap().status.success());
    let log = job_log(&home);
    let mut lines = log.lines().filter(|line| line.contains(" checkpoint => "));
    assert!(lines.all(|line| !line.contains(" unknown:")), "{log}");
    assert!(log.contains(" checkpoint => "), "{log}");
    let none = home.run(&["job", "status", "nowhere"]).code(2);
    assert!(
        none.err.contains("job nowhere not found; opilio job list"),
        "{none:?}"
    );
    let no_job = home.run(&["job", "status", "."]).code(2);
    assert!(
        no_job.err.contains("is not a job: it has no job.json"),
        "{no_job:?}"
    );
    for command in [
        &["job", "replay", "nowhere"][..],
        &["job", "compare", "job", "nowhere"],
    ] {
        let none = home.run(command).code(2);
        assert!(
            none.err.contains("opilio job list lists the jobs"),
            "{none:?}"
        );
    }
    let none = home.run(&["frontier", "queues", "nowhere"]).code(2);
    assert_eq!(none.out, "", "a missing job is not an empty list");
    home.run(&["crawl", "p.toml", "--job", "job"]).code(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn plugin_statistics_and_observer_reports_are_available_after_the_crawl() {
    let web = site(WWW).page("/", html("a page")).serve().await;
    let home = Home::new();
    home.file("counter.wasm", counter());
    home.profile(
        "stacks = { observe = ['counter'] }\n[plugins.counter]\ncomponent = 'counter.wasm'\n\
         [dns]\nhosts = { '*.localhost' = '127.0.0.1' }",
    );
    let seed = web.url(WWW, "/");
    home.run(&["crawl", "p.toml", "--job", "job", "--seed", &seed])
        .code(0);
    // The DNS look-up, robots.txt and the page.
    let report = home.run(&["job", "observe", "job"]).code(0);
    assert_eq!(report.out, "== counter count.txt\n03\n");
    let none = home.run(&["job", "observe", "job", "html"]).code(2);
    assert!(none.err.contains("observers: counter"), "{none:?}");

    let table = home.run(&["job", "plugins", "job"]).code(0);
    let lines: Vec<&str> = table.out.lines().collect();
    assert!(lines[0].starts_with("plugin "), "{table:?}");
    assert!(
        lines.iter().any(|line| line.starts_with("html ")),
        "{table:?}"
    );
    let json = home.run(&["job", "plugins", "job", "--json"]).code(0);
    let plugins = json.out.lines();
    let mut plugins = plugins.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let html = plugins.find(|plugin| plugin["name"] == "html").unwrap();
    assert_eq!(html["faults"], serde_json::json!({}));
    assert!(html["times"]["median_s"].as_f64() > Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_requests_on_the_socket_are_refused_without_harm() {
    let (home, gate) = (
        Home::new(),
        Gate::serve(&[("/", "<a href='/a'>a</a>"), ("/a", "")]),
    );
    let mut running = paused(&home, &gate).await;
    let socket = home.job().join("control");
    let send = |bytes: &[u8]| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        // The crawl may close the connection before everything is sent.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    };
    for garbage in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"\xff\xfe\x00\n",
        b"{}\n",
        b"{\"command\":{\"do\":\"delete\",\"which\":{}}}\n",
        b"{\"command\":{\"do\":\"why\",\"uri\":\"no uri\\u0000\"}}\n",
        b"{\"command\":",
    ] {
        let answer = send(garbage);
        assert!(answer.contains(r#""answer":"refused""#), "{answer:?}");
        assert!(answer.contains(r#""kind":"request""#), "{answer:?}");
    }
    send(&vec![b'['; 4 << 20]);
    // Silent connections do not delay others.
    let silent: Vec<UnixStream> = (0..5)
        .map(|_| UnixStream::connect(&socket).unwrap())
        .collect();
    let two = send(b"{\"command\":{\"do\":\"statistics\"}}\n{\"command\":{\"do\":\"status\"}}\n");
    assert_eq!(two.lines().count(), 4, "{two}");
    home.run(&["job", "resume", "job"]).code(0);
    assert_eq!(running.wait(), 0);
    drop(silent);
    assert_eq!(gate.requests(), ["/", "/a"]);
    assert!(lines(&home.job()).iter().all(|line| line.status > 0));
}

//! Shares of bandwidth and connections of jobs that crawl at the same time under one daemon.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use opilio_stories::until;
use serde_json::Value;

use crate::command::Home;
use crate::serve::Daemon;

/// Hosts of each job: more than there are connections.
const HOSTS: usize = 5;

/// Maximum bytes that all jobs receive per second.
const BANDWIDTH: u64 = 128 * 1024;

/// Size of a page in bytes.
const PAGE_BYTES: usize = 100_000;

/// Time whose unused bandwidth can be used later, in seconds. See the throttle of the fetcher.
const SAVED_UP: f64 = 0.25;

/// Bytes beyond the share that one read can receive.
const READ_BYTES: f64 = 64.0 * 1024.0;

/// A server that answers requests for pages only after it is opened, and counts the waiting requests.
#[derive(Default)]
struct DelayedServer {
    is_open: Mutex<bool>,
    opened: Condvar,
    /// Number of requests that wait for an answer: now, and the highest so far.
    held: Mutex<(usize, usize)>,
}

impl DelayedServer {
    fn serve() -> (Arc<DelayedServer>, u16) {
        let server = Arc::new(DelayedServer::default());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let served = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let server = served.clone();
                std::thread::spawn(move || server.answer(stream.unwrap()));
            }
        });
        (server, port)
    }

    fn answer(&self, mut stream: TcpStream) {
        let mut head = String::new();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        if head.starts_with("GET /robots.txt") {
            let none = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(none.as_bytes());
            return;
        }
        {
            let mut held = self.held.lock().unwrap();
            held.0 += 1;
            held.1 = held.1.max(held.0);
        }
        let mut is_open = self.is_open.lock().unwrap();
        while !*is_open {
            is_open = self.opened.wait(is_open).unwrap();
        }
        drop(is_open);
        // Counted before the answer, since the next request can arrive as soon as the answer is sent.
        self.held.lock().unwrap().0 -= 1;
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {PAGE_BYTES}\r\nConnection: close\r\n\r\n"
        );
        // The client may have closed the connection.
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(&[b'x'; PAGE_BYTES]);
    }

    fn most_held(&self) -> usize {
        self.held.lock().unwrap().1
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

/// Returns the shares of the running jobs, bytes per second and connections. `None` if a running job has no share yet.
fn shares(daemon: &Daemon) -> Option<Vec<(u64, u64)>> {
    let jobs = daemon.get("/jobs");
    let crawls = |job: &&Value| job["state"] == "running";
    let crawling = jobs["jobs"].as_array().unwrap().iter().filter(crawls);
    let shares = crawling.map(|job| {
        let share = &job["share"];
        Some((
            share["bytes_per_second"].as_u64()?,
            share["connections"].as_u64()?,
        ))
    });
    shares.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn running_jobs_together_keep_to_the_limits_of_the_daemon() {
    let (server, port) = DelayedServer::serve();
    let home = Home::new();
    home.file(
        "opilio.toml",
        format!("[limits]\njobs = 2\nbandwidth = \"{BANDWIDTH}B\"\nconnections = 3\n"),
    );
    let daemon = Daemon::start(&home, &["--no-auth"]);
    let profile = home.profile("");
    for job in ["a", "b"] {
        let mut arguments = vec!["job".to_owned(), "new".to_owned(), format!("jobs/{job}")];
        arguments.extend(["--profile".to_owned(), profile.display().to_string()]);
        for host in 0..HOSTS {
            arguments.push("--seed".to_owned());
            arguments.push(format!("http://{job}{host}.localhost:{port}/"));
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        home.run(&arguments).code(0);
    }
    until("the daemon lists both jobs", || {
        daemon.get("/jobs")["total"] == 2
    })
    .await;

    // Without the limit, five pages would be requested at the same time.
    let status = |job: &str| daemon.get(&format!("/jobs/{job}/status"));
    daemon.post("/jobs/a/start", None, 202);
    until("three pages are requested", || server.most_held() == 3).await;
    until("job a waits for a connection", || {
        status("a")["taken"]["waited_for_connections"].as_u64() > Some(0)
    })
    .await;
    assert_eq!(shares(&daemon), Some(vec![(BANDWIDTH, 3)]));
    let metrics = daemon.call("GET", "/metrics", None, "").body;
    for figure in [
        "opilio_limit_connections 3".to_owned(),
        format!("opilio_limit_bytes_per_second {BANDWIDTH}"),
        "opilio_share_connections{job_name=\"a\"} 3".to_owned(),
        format!("opilio_share_bytes_per_second{{job_name=\"a\"}} {BANDWIDTH}"),
    ] {
        assert!(
            metrics.lines().any(|line| line == figure),
            "{figure}: {metrics}"
        );
    }

    // The second job starts when the first job, whose share is now smaller, has released a connection.
    daemon.post("/jobs/b/start", None, 202);
    until("the share of the first job is smaller", || {
        shares(&daemon).is_some_and(|shares| shares[0].1 == 1)
    })
    .await;
    assert_eq!(daemon.state("b"), "waiting");

    // Received bytes are compared with the time that passes in this test: a slow machine receives fewer.
    let began = Instant::now();
    server.open();
    let most =
        || BANDWIDTH as f64 * (began.elapsed().as_secs_f64() + 2.0 * SAVED_UP) + 2.0 * READ_BYTES;
    let mut waited = [false; 2];
    until("both jobs are finished", || {
        if let Some(shares) = shares(&daemon) {
            let bytes: u64 = shares.iter().map(|(bytes, _)| bytes).sum();
            let connections: u64 = shares.iter().map(|(_, connections)| connections).sum();
            assert!(bytes <= BANDWIDTH && connections <= 3, "{shares:?}");
        }
        for (place, job) in ["a", "b"].into_iter().enumerate() {
            waited[place] |= status(job)["taken"]["waited_for_bytes"].as_u64() > Some(0);
        }
        ["a", "b"].iter().all(|job| daemon.state(job) == "finished")
    })
    .await;
    let received = (2 * HOSTS * PAGE_BYTES) as f64;
    assert!(received <= most(), "received within {:?}", began.elapsed());
    assert_eq!(waited, [true; 2], "a job did not have to wait for bytes");
    assert_eq!(server.most_held(), 3);
    for job in ["a", "b"] {
        let tally = &status(job)["statistics"]["tally"];
        assert_eq!(tally["succeeded"], HOSTS, "{tally}");
    }
}

//! Results of crawls: search of the crawl log, hosts, first captures, comparison of jobs and checkpoints, replay by pywb.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use opilio_stories::{html, site};
use opilio_test_web::{Reply, Web};
use serde_json::Value;

use crate::command::{Home, WWW};
use crate::serve::Daemon;

/// Serves a site of three pages with a dead link. With `is_later`, one page has other content, and there is one more page.
async fn changing(is_later: Arc<AtomicBool>) -> Web {
    let later = is_later.clone();
    site(WWW)
        .answer("/", move |_| {
            let more = match later.load(Ordering::Relaxed) {
                true => "<a href='/new.html'>new</a>",
                false => "",
            };
            // This changes the content of the front page, too.
            html(&format!(
                "<a href='/a.html'>a</a><a href='/b.html'>b</a><a href='/gone.html'>gone</a>{more}"
            ))
        })
        .answer("/a.html", move |_| match is_later.load(Ordering::Relaxed) {
            true => html("later"),
            false => html("before"),
        })
        .page("/b.html", html("the same"))
        .page("/new.html", html("new"))
        .serve()
        .await
}

/// Crawls the site twice, as `jobs/one` and `jobs/two`.
async fn crawled(home: &Home) -> Web {
    let is_later = Arc::new(AtomicBool::new(false));
    let web = changing(is_later.clone()).await;
    home.profile("workers = 2");
    let seed = web.url(WWW, "/");
    for job in ["jobs/one", "jobs/two"] {
        home.run(&["crawl", "p.toml", "--seed", &seed, "--job", job, "--quiet"])
            .code(0);
        is_later.store(true, Ordering::Relaxed);
    }
    web
}

fn objects(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn crawl_log_lines_are_searched_by_column() {
    let home = Home::new();
    let web = crawled(&home).await;
    let found = |more: &[&str]| -> BTreeSet<String> {
        let base = ["job", "logs", "one", "crawl", "--tail", "100"];
        let out = home.run(&[&base[..], more].concat()).code(0).out;
        let uris = out.lines().map(|line| line.split_whitespace().nth(3));
        uris.map(|uri| uri.unwrap().to_owned()).collect()
    };
    let pages = |targets: &[&str]| -> BTreeSet<String> {
        targets.iter().map(|it| web.url(WWW, it)).collect()
    };
    let gone = pages(&["/gone.html", "/robots.txt"]);
    assert_eq!(found(&["--status", "4xx"]), gone);
    let html = ["--type", "text/html", "--status", "200"];
    assert_eq!(found(&html), pages(&["/", "/a.html", "/b.html"]));
    assert_eq!(found(&["--host", "story.localhost"]), BTreeSet::new());
    assert_eq!(
        found(&["--host", WWW, "--grep", "/b\\.html"]),
        pages(&["/b.html"])
    );
    assert_eq!(found(&["--until", "1h"]), BTreeSet::new());
    let wrong = home
        .run(&["job", "logs", "one", "job", "--status", "404"])
        .code(2);
    assert!(wrong.err.contains("has no such columns"), "{wrong:?}");
    let wrong = home
        .run(&["job", "logs", "one", "crawl", "--status", "4x"])
        .code(2);
    assert!(wrong.err.contains("such as 404, 5xx"), "{wrong:?}");

    let daemon = Daemon::start(&home, &["--no-auth"]);
    let mut visits = Vec::new();
    let mut after = String::new();
    loop {
        let page = daemon.get(&format!("/jobs/one/crawl-log?limit=2{after}"));
        visits.extend(page["visits"].as_array().unwrap().clone());
        match page["after"].as_str() {
            Some(next) => after = format!("&after={}", next.replace('+', "%2B")),
            None => break,
        }
    }
    let log = fs::read_to_string(home.path().join("jobs/one/logs/crawl.log")).unwrap();
    let lines: Vec<&str> = log.lines().rev().collect();
    let read: Vec<&str> = visits
        .iter()
        .map(|it| it["line"].as_str().unwrap())
        .collect();
    assert_eq!(read, lines);
    let of_page = daemon.get("/jobs/one/crawl-log?status=404&grep=gone");
    assert_eq!(of_page["visits"][0]["status"], 404, "{of_page}");
    assert_eq!(of_page["visits"][0]["uri"], web.url(WWW, "/gone.html"));
    for bad in ["status=4x", "grep=(", "host=http://a.org/"] {
        let answer = daemon.call(
            "GET",
            &format!("/api/v1/jobs/one/crawl-log?{bad}"),
            None,
            "",
        );
        assert_eq!(answer.status, 422, "{bad}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_and_seeds_have_their_counts_and_captures() {
    let home = Home::new();
    let web = crawled(&home).await;
    let out = home.run(&["job", "hosts", "one", "--json"]).code(0).out;
    let hosts = objects(&out);
    let host = hosts.iter().find(|it| it["host"] == WWW).unwrap();
    assert_eq!(host["documents"], 3, "{host}");
    assert_eq!(host["errors"], 1, "{host}");
    assert_eq!(host["prerequisites"], 1, "{host}");
    let table = home.run(&["job", "hosts", "one", "--errors"]).code(0).out;
    assert!(table.contains("1 host: 3 documents"), "{table}");
    let none = home.run(&["job", "hosts", "one", "--search", "nowhere"]);
    assert!(none.code(0).out.starts_with("none"));

    let daemon = Daemon::start(&home, &["--no-auth"]);
    let all = daemon.get("/jobs/two/hosts?sort=name");
    let first = daemon.get("/jobs/two/hosts?sort=name&limit=1");
    assert_eq!(all["hosts"].as_array().unwrap().len(), 2, "{all}");
    let after = first["after"].as_str().unwrap().replace('/', "%2F");
    let second = daemon.get(&format!("/jobs/two/hosts?sort=name&limit=1&after={after}"));
    assert_eq!(
        (&first["hosts"][0], &second["hosts"][0]),
        (&all["hosts"][0], &all["hosts"][1])
    );
    assert_eq!(second["after"], Value::Null);
    assert_eq!(all["totals"]["documents"], 4, "{all}");

    let seeds = daemon.get("/jobs/one/seeds");
    let seed = &seeds["seeds"][0];
    assert_eq!(seed["uri"], web.url(WWW, "/"));
    assert_eq!(seed["first_captured"], seed["fetched"], "{seed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirected_seed_has_the_capture_of_its_target_or_a_reason() {
    let home = Home::new();
    let web = site(WWW)
        .page("/old.html", Reply::redirect(301, "/new.html"))
        .page("/new.html", html("new"))
        .page("/lost.html", Reply::redirect(302, "/gone.html"))
        .serve()
        .await;
    home.profile("workers = 1");
    let [old, new, lost, gone] =
        ["/old.html", "/new.html", "/lost.html", "/gone.html"].map(|path| web.url(WWW, path));
    let crawl = ["crawl", "p.toml", "--seed", &old, "--seed", &lost];
    home.run(&[&crawl[..], &["--job", "jobs/one", "--quiet"]].concat())
        .code(0);

    let daemon = Daemon::start(&home, &["--no-auth"]);
    let seeds = daemon.get("/jobs/one/seeds");
    let moved = &seeds["seeds"][0];
    assert_eq!(moved["uri"], old, "{seeds}");
    assert_eq!(moved["status"], 301, "{moved}");
    assert_eq!(moved["redirect"], new, "{moved}");
    assert_eq!(moved["redirect_status"], 200, "{moved}");
    // The target was fetched after the seed.
    let time = |name: &str| -> Timestamp { moved[name].as_str().unwrap().parse().unwrap() };
    assert!(
        time("redirect_first_captured") >= time("first_captured"),
        "{moved}"
    );
    assert_eq!(moved["why"], Value::Null, "{moved}");
    let lost_one = &seeds["seeds"][1];
    assert_eq!(lost_one["redirect_status"], 404, "{lost_one}");
    let why = format!("redirects to {gone}: status 404; correct or remove the seed");
    assert_eq!(lost_one["why"], why, "{lost_one}");
    let table = home.run(&["job", "seeds", "one"]).code(0).out;
    assert!(table.contains(&why), "{table}");
    // The text of the report is that of Heritrix.
    let report = ["job", "report", "one", "seeds"];
    let rows = home.run(&[&report[..], &["--json"]].concat()).code(0).out;
    let rows = objects(&rows);
    let row = rows.iter().find(|row| row["uri"] == lost).unwrap();
    assert_eq!(row["why"], why, "{row}");
    let text = home.run(&report).code(0).out;
    let lines: BTreeSet<&str> = text.lines().collect();
    let expected = [
        "[code] [status] [seed] [redirect]".to_owned(),
        format!("301 CRAWLED {old} {new}"),
        format!("302 CRAWLED {lost} {gone}"),
    ];
    let expected: BTreeSet<&str> = expected.iter().map(String::as_str).collect();
    assert_eq!(lines, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_jobs_and_a_checkpoint_are_compared() {
    let home = Home::new();
    let web = crawled(&home).await;
    let list = |a: &str, b: &str, kind: &str| -> Vec<String> {
        let arguments = ["job", "compare", a, b, "--list", kind, "--json"];
        let uris = objects(&home.run(&arguments).code(0).out);
        uris.iter()
            .map(|uri| {
                uri["uri"]
                    .as_str()
                    .unwrap()
                    .replace(&web.url(WWW, "/"), "/")
            })
            .collect()
    };
    let check = |one: &str| {
        assert_eq!(list(one, "two", "changed"), ["/", "/a.html"]);
        assert_eq!(list(one, "two", "only-b"), ["/new.html"]);
        assert_eq!(list("two", one, "only-a"), ["/new.html"]);
        assert_eq!(list(one, "two", "status"), [""; 0]);
    };
    check("one");
    home.run(&["job", "checkpoint", "one", "--to", "kept"])
        .code(0);
    check("kept");
    assert_eq!(
        home.names()
            .iter()
            .filter(|it| it.starts_with(".compared"))
            .count(),
        0
    );
    let same = home
        .run(&["job", "compare", "kept", "one", "--json"])
        .code(0);
    let same: Value = serde_json::from_str(&same.out).unwrap();
    assert_eq!(same["a"]["checkpoint"], "kept", "{same}");
    assert_eq!((&same["changed"], &same["only_a"]), (&0.into(), &0.into()));
    let text = home.run(&["job", "compare", "one", "two"]).code(0).out;
    assert!(text.contains("with other content"), "{text}");
    let twice = home.run(&["job", "compare", "one", "jobs/one"]).code(2);
    assert!(twice.err.contains("is given twice"), "{twice:?}");
    let nothing = home.run(&["job", "compare", "one", "nothing"]).code(2);
    assert!(
        nothing.err.contains("job or checkpoint nothing not found"),
        "{nothing:?}"
    );

    let daemon = Daemon::start(&home, &["--no-auth"]);
    let compared = daemon.get("/jobs/one/compare?with=two&limit=1");
    assert_eq!(
        (&compared["changed"], &compared["only_b"]),
        (&2.into(), &1.into())
    );
    assert_eq!(compared["uris"][0]["uri"], web.url(WWW, "/"));
    let after = compared["after"].as_str().unwrap().replace('/', "%2F");
    let rest = daemon.get(&format!("/jobs/one/compare?with=two&after={after}"));
    assert_eq!(rest["uris"][0]["uri"], web.url(WWW, "/a.html"), "{rest}");
    assert_eq!(rest["uris"].as_array().unwrap().len(), 1);
    let unknown = daemon.call("GET", "/api/v1/jobs/one/compare?with=nobody", None, "");
    assert_eq!(unknown.status, 404, "{unknown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn replay_writes_a_collection_and_starts_pywb() {
    let home = Home::new();
    let web = crawled(&home).await;
    let missing = home
        .run(&["job", "replay", "one", "--wayback", "nowhere"])
        .code(2);
    assert!(missing.err.contains("replayweb.page"), "{missing:?}");
    // A script in place of `wayback` prints its folder, arguments and configuration.
    let wayback = home.file("wayback", "#!/bin/sh\necho \"$PWD $*\"\ncat config.yaml\n");
    fs::set_permissions(&wayback, fs::Permissions::from_mode(0o755)).unwrap();
    let port = {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().port().to_string()
    };
    let replay = [
        "job",
        "replay",
        "one",
        "--wayback",
        "wayback",
        "--port",
        &port,
    ];
    let started = home.run(&replay).code(0);
    let folder = fs::canonicalize(home.path().join("jobs/one/replay")).unwrap();
    let called = format!("{} -b 127.0.0.1 -p {port}", folder.display());
    assert!(started.out.contains(&called), "{started:?}");
    assert!(started.out.contains("\"one\":"), "{started:?}");
    let index = fs::read_to_string(folder.join("index.cdxj")).unwrap();
    assert!(index.contains(&web.url(WWW, "/a.html")), "{index}");
    let files = fs::read_to_string(folder.join("archives.txt")).unwrap();
    let path = files.lines().next().unwrap().split('\t').nth(1).unwrap();
    assert!(fs::exists(path).unwrap(), "{files}");
    // The script has ended, so nothing listens on the port.
    let daemon = Daemon::start(&home, &["--no-auth"]);
    let pywb = daemon.get("/jobs/one/pywb");
    assert_eq!(pywb["url"], Value::Null, "{pywb}");
    assert!(
        pywb["command"]
            .as_str()
            .unwrap()
            .starts_with("opilio job replay /")
    );
    // This script keeps running, and the test listens on the port in its place. The port is free once the script has started.
    home.file("wayback", "#!/bin/sh\necho replaying >&2\nexec sleep 600\n");
    let mut replaying = home.start(&replay);
    replaying.wait_for_line("replaying");
    let listening = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    let pywb = daemon.get("/jobs/one/pywb");
    let url = format!("http://127.0.0.1:{port}/one/");
    assert_eq!(pywb["url"], url, "{pywb}");
    drop(listening);
    let pywb = daemon.get("/jobs/one/pywb");
    assert_eq!(pywb["url"], Value::Null, "nothing listens: {pywb}");
}

/// Files of a job of Heritrix 3.13: 26 lines of its log, and a journal of fewer than 10,000 lines, which has no times.
const LOG: &[u8] = include_bytes!("../heritrix-job/crawl.log");
const JOURNAL: &[u8] = include_bytes!("../heritrix-job/frontier.recover.gz");

#[test]
fn log_and_journal_of_heritrix_can_be_imported_in_any_order() {
    let home = Home::new();
    home.profile("");
    home.file("crawl.log", LOG);
    home.file("frontier.recover.gz", JOURNAL);
    let imported = |job: &str, runs: &[&[&str]]| -> Vec<Value> {
        let seed = "http://127.0.0.1:8765/";
        home.run(&["job", "new", job, "--profile", "p.toml", "--seed", seed])
            .code(0);
        for files in runs {
            home.run(&[&["frontier", "import", job][..], files].concat())
                .code(0);
        }
        let list = home.run(&["frontier", "export", job]).code(0).out;
        let mut uris = objects(&list);
        for uri in &mut uris {
            // These are times of the import.
            if uri["state"] == "queued" {
                uri["discovered"] = Value::Null;
                uri["due"] = Value::Null;
            }
        }
        uris
    };
    let (log, journal) = ("crawl.log", "frontier.recover.gz");
    let together = imported("jobs/a", &[&[journal, log]]);
    assert_eq!(together, imported("jobs/b", &[&[log, journal]]));
    assert_eq!(together, imported("jobs/c", &[&[log], &[journal]]));
    let journal_first = imported("jobs/d", &[&[journal], &[log]]);
    let of = |uris: &[Value], field: &str| -> Vec<Value> {
        uris.iter().map(|uri| uri[field].clone()).collect()
    };
    for field in [
        "uri",
        "state",
        "status",
        "payload_digest",
        "media_type",
        "history",
        "discovered",
    ] {
        assert_eq!(of(&together, field), of(&journal_first, field), "{field}");
    }
    let page = together
        .iter()
        .find(|it| it["uri"] == "http://127.0.0.1:8765/page4.html");
    let page = page.unwrap();
    assert_eq!(page["status"], 200, "{page}");
    assert_eq!(
        page["payload_digest"],
        "sha1:O3RPEY2274WOLJZJKEBWZJIA5BXEW6YY"
    );
    assert_eq!(
        page["history"][0]["at"], "2026-11-26T15:44:18.786Z",
        "{page}"
    );
    let left = together.iter().filter(|it| it["state"] == "queued");
    let left: Vec<&str> = left.map(|it| it["uri"].as_str().unwrap()).collect();
    let expected = [10, 11, 7, 8, 9].map(|n| format!("http://127.0.0.1:8765/docs/{n}.html"));
    assert_eq!(left, expected);
}

//! Hand-over of a job's files to a store: during the crawl, after an outage, after a kill; and deletion from the job.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use opilio_stories::{asked, captures, html, site, until};
use opilio_test_web::{Gate, Web};
use serde_json::{Value, json};

use crate::command::{Home, WWW, tree};
use crate::serve::Daemon;

const PAGES: usize = 60;

/// Writes a profile with small archive files and a store in the folder `store`.
fn profile(home: &Home, store: &str) {
    let url = format!("file://{}", home.path().join("store").display());
    home.profile(&format!(
        "name = 'tree'\nworkers = 2\n[archive]\ncompression = \"none\"\nsize-max = \"64KiB\"\n\
         [archive.store]\nurl = {url:?}\nretry-min = \"100ms\"\n{store}\n"
    ));
}

/// Returns the names in a folder with this ending.
fn names(folder: &Path, ending: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(ending)).collect()
}

fn crawl(web: &Web, job: &'static str) -> [String; 6] {
    let seed = web.url(WWW, "/");
    ["crawl", "p.toml", "--seed", &seed, "--job", job].map(str::to_owned)
}

fn run(home: &Home, command: &[String]) -> crate::command::Ended {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    home.run(&words)
}

#[tokio::test(flavor = "multi_thread")]
async fn files_deleted_after_handover_are_reported_with_their_place_in_the_store() {
    let (home, web) = (Home::new(), tree(PAGES, 8000).await);
    let (store, job) = (
        home.path().join("store/tree"),
        home.path().join("jobs/tree"),
    );
    fs::create_dir(home.path().join("store")).unwrap();
    profile(&home, "delete-local = true");
    let ended = run(&home, &crawl(&web, "jobs/tree")).code(0);
    assert!(ended.out.contains("none left"), "{ended:?}");
    let stored = names(&store.join("warcs"), ".warc");
    assert!(stored.len() > 3, "{stored:?}");
    assert_eq!(names(&job.join("warcs"), ".warc"), BTreeSet::new());
    let indexes = names(&store.join("warcs"), ".cdxj");
    assert_eq!(indexes.len(), stored.len());
    assert_eq!(names(&job.join("warcs"), ".cdxj"), indexes);
    for file in ["logs/crawl.log", "logs/job.log", "reports/crawl-report.txt"] {
        let (copy, log) = (fs::read(store.join(file)), fs::read(job.join(file)));
        assert_eq!(copy.unwrap(), log.unwrap(), "{file}");
    }
    home.run(&["warc", "check", "store/tree/warcs"]).code(0);
    home.run(&["job", "verify", "tree"]).code(0);
    let list = home.run(&["job", "handover", "tree", "--list", "--json"]);
    let list = list.code(0).out;
    let files: Vec<Value> = list
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    let moved = files.iter().filter(|file| file["state"] == "moved");
    assert_eq!(moved.count(), stored.len(), "{list}");

    let read = home.run(&["warc", "index", "store/tree/warcs"]).code(0).out;
    let merged = home.run(&["warc", "index", "--merge", "jobs/tree"]).code(0);
    assert_eq!((&*merged.out, &*merged.err), (&*read, ""));
    let listed = home.run(&["warc", "ls", "jobs/tree"]).code(1);
    assert!(
        listed.err.contains("only in the store, such as file:///"),
        "{listed:?}"
    );
    assert!(listed.err.contains("no archive file is left"), "{listed:?}");
    let refused = home.run(&["package", "jobs/tree", "-o", "a.wacz"]).code(1);
    assert!(refused.err.contains("copy them back"), "{refused:?}");

    let daemon = Daemon::start(&home, &["--no-auth"]);
    let list = daemon.get("/jobs/tree/files?kind=archive");
    assert_eq!(list["total"], stored.len(), "{list}");
    let file = &list["files"][0];
    let name = file["name"].as_str().unwrap();
    let url = format!("file://{}", store.join("warcs").join(name).display());
    assert_eq!(file["is_local"], false, "{file}");
    assert_eq!(file["stored_at"], url, "{file}");
    let path = format!("/api/v1/jobs/tree/files/archive/{name}");
    let download = daemon.call("GET", &path, None, "");
    assert_eq!(download.status, 404);
    assert!(download.body.contains(&url), "{download:?}");
    let index = daemon.call("GET", "/api/v1/jobs/tree/cdxj", None, "");
    assert_eq!(index.status, 200, "{index:?}");
    let page = web.url(WWW, "/7.html");
    let found = daemon.get(&format!("/jobs/tree/captures?uri={page}"));
    let file = found["captures"][0]["file"].as_str().unwrap();
    let path = format!("/api/v1/jobs/tree/capture?uri={page}");
    let missing = daemon.call("GET", &path, None, "");
    assert_eq!(missing.status, 404);
    assert!(missing.body.contains("after it was stored"), "{missing:?}");
    // A file that was copied back is used again.
    fs::copy(store.join("warcs").join(file), job.join("warcs").join(file)).unwrap();
    let shown = daemon.call("GET", &path, None, "");
    assert_eq!(shown.status, 200, "{shown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_left_at_the_end_are_handed_over_later() {
    let (home, web) = (Home::new(), tree(PAGES, 8000).await);
    profile(&home, "");
    let ended = run(&home, &crawl(&web, "job")).code(6);
    assert!(ended.out.contains("opilio job handover"), "{ended:?}");
    let log = fs::read_to_string(home.job().join("logs/job.log")).unwrap();
    assert!(log.contains("alert handover file:///"), "{log}");
    let alert = || -> Value {
        let alerts = home.run(&["job", "alerts", "job", "--json"]).code(0).out;
        serde_json::from_str(alerts.lines().next().unwrap()).unwrap()
    };
    let left = alert();
    assert_eq!(
        (&left["kind"], &left["until"]),
        (&json!("handover"), &Value::Null)
    );
    let message = left["message"].as_str().unwrap();
    assert!(
        message.contains(" files were not handed over to file:///"),
        "{message}"
    );
    assert!(message.contains("mount it"), "{message}");
    assert!(message.contains("opilio job handover JOB"), "{message}");
    let listed = || home.run(&["job", "list", "job"]).code(0).out;
    assert!(listed().contains("  1 alert "), "{}", listed());
    home.run(&["job", "handover", "job", "--list"]).code(1);
    let refused = home.run(&["job", "handover", "job"]).code(1);
    assert!(refused.out.contains("mount it"), "{refused:?}");

    fs::create_dir(home.path().join("store")).unwrap();
    let done = home.run(&["job", "handover", "job", "--json"]).code(0);
    let last: Value = serde_json::from_str(done.out.lines().last().unwrap()).unwrap();
    assert_eq!(last["left"], 0, "{done:?}");
    home.run(&["job", "handover", "job", "--list"]).code(0);
    assert!(alert()["until"].is_string(), "{}", alert());
    assert!(!listed().contains("alert"), "{}", listed());
    // No file is left, so nothing is sent and the log does not change.
    let log = fs::read(home.job().join("logs/job.log")).unwrap();
    let again = home.run(&["job", "handover", "job", "--json"]).code(0);
    assert_eq!(again.out.lines().count(), 1, "{again:?}");
    assert_eq!(fs::read(home.job().join("logs/job.log")).unwrap(), log);
    let warcs = home.job().join("warcs");
    let stored = home.path().join("store/job/warcs");
    for name in names(&warcs, "") {
        if !name.starts_with('.') {
            let copies = [&warcs, &stored].map(|folder| fs::read(folder.join(&name)).unwrap());
            assert!(copies[0] == copies[1], "{name}");
        }
    }
    // A redacted file must be handed over again, and replaces its copy.
    let page = web.url(WWW, "/7.html");
    let redact = [
        "warc", "redact", "job", "--uri", &page, "--reason", "asked", "--write",
    ];
    let redacted = home.run(&redact).code(0);
    assert!(redacted.err.contains("handover job"), "{redacted:?}");
    home.run(&["job", "handover", "job", "--list"]).code(1);
    home.run(&["job", "handover", "job"]).code(0);
    let left = home.run(&["warc", "ls", "store/job/warcs", "--uri", &page]);
    assert!(
        left.code(0).out.contains(" 451 "),
        "the copy is redacted, too"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_packs_a_job_and_hands_it_over() {
    let (home, web) = (Home::new(), tree(5, 8000).await);
    let store = home.path().join("store");
    profile(&home, "");
    run(&home, &crawl(&web, "jobs/tree")).code(6);
    home.profile("");
    run(&home, &crawl(&web, "jobs/bare")).code(0);
    let daemon = Daemon::start(&home, &["--no-auth"]);
    let begin = |what: &str, body: Option<Value>, status: u16| -> Value {
        let answer = daemon.call("POST", &format!("/api/v1/jobs/{what}"), body, "");
        assert_eq!(answer.status, status, "{what}: {answer:?}");
        serde_json::from_str(&answer.body).unwrap()
    };
    let ended = async || {
        let task = || daemon.get("/jobs/tree/file-task")["task"].clone();
        until("the task ends", || task()["ended"].is_string()).await;
        task()
    };
    let refused = begin("bare/handover", None, 409);
    assert!(
        refused["detail"]
            .as_str()
            .unwrap()
            .contains("archive.store"),
        "{refused}"
    );
    assert_eq!(daemon.get("/jobs/bare/handover")["receivers"], json!([]));
    assert_eq!(daemon.get("/jobs/tree/file-task")["task"], Value::Null);

    // The store is not mounted.
    begin("tree/handover", None, 202);
    let task = ended().await;
    assert_eq!(
        (&task["kind"], &task["files"]),
        (&json!("handover"), &json!(0)),
        "{task}"
    );
    let first = task["messages"][0].as_str().unwrap();
    assert!(first.contains("mount it"), "{task}");
    let waiting = daemon.get("/jobs/tree/handover")["waiting"].clone();
    assert!(waiting.as_u64() > Some(3), "{waiting}");
    fs::create_dir(&store).unwrap();

    let package = json!({"title": "--five pages", "logs": true});
    let begun = begin("tree/package", Some(package), 202);
    let name = begun["name"].as_str().unwrap();
    let task = ended().await;
    assert_eq!(
        (&task["problem"], &task["package"]),
        (&Value::Null, &begun["name"]),
        "{task}"
    );
    let packages = daemon.get("/jobs/tree/files?kind=wacz");
    assert_eq!(packages["files"][0]["name"], name, "{packages}");

    begin("tree/handover", None, 202);
    let task = ended().await;
    assert_eq!(
        (&task["failed"], &task["by"]),
        (&json!(0), &json!("anybody")),
        "{task}"
    );
    let state = daemon.get("/jobs/tree/handover");
    assert_eq!(
        (&state["waiting"], &state["done"]),
        (&json!(0), &task["files"]),
        "{state}"
    );
    let copy = fs::read(store.join("tree").join(name)).unwrap();
    assert!(copy.starts_with(b"PK"), "not a package");
    let packages = daemon.get("/jobs/tree/files?kind=wacz");
    let url = format!("file://{}", store.join("tree").join(name).display());
    assert_eq!(packages["files"][0]["stored_at"], url, "{packages}");
    // The lock of the job is free again.
    begin("tree/start", None, 202);
    assert_eq!(
        begin("tree/package", Some(json!({"title": "two\nlines"})), 422)["status"],
        422
    );
}

/// Serves pages that take 30 ms each, so that files are stored during the crawl. Some pages are held until their gates are open.
async fn slow(pages: usize, held: &[(usize, Gate)]) -> Web {
    let links: String = (0..pages)
        .map(|page| format!("<a href='/{page}.html'>{page}</a>"))
        .collect();
    let page = html(&format!("<!-- {} -->", "text ".repeat(1200)));
    let site = held.iter().fold(site(WWW), |site, (number, gate)| {
        site.page(&format!("/{number}.html"), page.clone().behind(gate))
    });
    site.page("/", html(&links))
        .rest(move |_| page.clone().taking(Duration::from_millis(30)))
        .serve()
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn after_kills_every_page_is_in_the_store() {
    const PAGES: usize = 150;
    // Held pages keep each crawl from ending before files are stored.
    let gates = [PAGES / 2, PAGES - 1].map(|page| (page, Gate::closed()));
    let (home, web) = (Home::new(), slow(PAGES, &gates).await);
    fs::create_dir(home.path().join("store")).unwrap();
    profile(&home, "delete-local = true");
    let command = crawl(&web, "job");
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let stored = home.path().join("store/job");
    for (death, (_, gate)) in (1..).zip(&gates) {
        let enough = names(&stored.join("warcs"), ".warc").len() + 2;
        let pages = asked(&web).len() + 20;
        let mut running = home.start(&words);
        until("two more files are stored", || {
            asked(&web).len() >= pages && names(&stored.join("warcs"), ".warc").len() >= enough
        })
        .await;
        running.signal("KILL");
        assert_eq!(running.wait(), -1, "{death}");
        gate.open();
    }
    run(&home, &command).code(0);
    home.run(&["job", "verify", "job"]).code(0);
    home.run(&["warc", "check", "store/job/warcs"]).code(0);
    assert_eq!(names(&home.job().join("warcs"), ".warc"), BTreeSet::new());
    let archived: BTreeSet<String> = captures(&stored)
        .into_iter()
        .filter(|capture| capture.kind == "response")
        .map(|capture| capture.uri)
        .collect();
    let pages = (0..PAGES).map(|page| web.url(WWW, &format!("/{page}.html")));
    let missing: Vec<_> = pages.filter(|uri| !archived.contains(uri)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

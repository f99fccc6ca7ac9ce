//! Checkpoints of a job: listing and restoring them, by commands and over the API.

use std::fs;
use std::path::{Path, PathBuf};

use opilio_stories::{sound, until};
use serde_json::{Value, json};

use crate::command::Home;
use crate::job::{Gate, job_log, paused};
use crate::serve::{Daemon, make};

/// Serves a site whose front page links to two more pages.
fn gate() -> Gate {
    Gate::serve(&[
        ("/", "<a href='/a'>a</a><a href='/b'>b</a>"),
        ("/a", "the one"),
        ("/b", "the other"),
    ])
}

/// Returns paths and contents of all files in a folder of the job, without logs and the lock.
fn all(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true if path.ends_with("logs") => {}
            true => found.extend(all(&path)),
            // The file contains the id of the process that has the lock.
            false if path.ends_with("lock") => {}
            false => found.push((path.clone(), fs::read(path).unwrap())),
        }
    }
    found.sort();
    found
}

/// Returns the name of the only checkpoint in the job's folder.
fn sole(job: &Path) -> String {
    let entries: Vec<_> = fs::read_dir(job.join("checkpoints")).unwrap().collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    let entry = entries.into_iter().next().unwrap().unwrap();
    entry.file_name().into_string().unwrap()
}

/// Returns the duration of the job in the crawl report, in seconds.
fn duration(home: &Home) -> f64 {
    let report = home.run(&["job", "report", "job", "crawl", "--json"]);
    let facts: Value = serde_json::from_str(&report.code(0).out).unwrap();
    facts["run_time_s"].as_f64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_restored_to_its_own_checkpoint_and_resumes_from_there() {
    let (home, gate) = (Home::new(), gate());
    let none = home.run(&["job", "checkpoints", "job"]).code(2);
    assert!(none.err.contains("job job not found"), "{none:?}");
    let mut running = paused(&home, &gate).await;
    let none = home.run(&["job", "checkpoints", "job"]).code(0);
    assert!(none.out.contains("has no checkpoints"), "{none:?}");
    home.run(&["job", "set", "job", "retry.max-retries=7"])
        .code(0);
    // These files are not WARC files and must not be counted, like the index of the file that is being written.
    for other in ["older.cdxj", ".half.warc.gz"] {
        fs::write(home.job().join("warcs").join(other), "").unwrap();
    }
    let made = home.run(&["job", "checkpoint", "job"]).code(0);
    assert!(made.out.contains(" 1 WARC file"), "{made:?}");
    let name = sole(&home.job());
    let from = format!("job/checkpoints/{name}");
    let back = ["job", "restore", &from, "job", "--in-place", "--yes"];
    let refused = home.run(&back).code(1);
    assert!(refused.err.contains("stop it first"), "{refused:?}");

    home.run(&["job", "set", "job", "retry.max-retries=9"])
        .code(0);
    let added = gate.url("/c");
    home.run(&["job", "seeds", "job", "--add", &added]).code(0);
    home.run(&["job", "resume", "job"]).code(0);
    assert_eq!(running.wait(), 0);
    assert_eq!(gate.requests_for("/a"), 1);
    let archived = fs::read_dir(home.job().join("warcs")).unwrap().count();

    let listed = home.run(&["job", "checkpoints", "job"]).code(0);
    assert!(listed.out.contains(&name), "{listed:?}");
    assert!(listed.out.contains("5 URIs"), "{listed:?}");
    let json = home.run(&["job", "checkpoints", "job", "--json"]).code(0);
    let kept: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(kept["name"], name, "{kept}");
    assert_eq!(kept["is_whole"], true, "{kept}");
    assert_eq!((&kept["uris"], &kept["warcs"]), (&json!(5), &json!(1)));

    // Without a terminal, the command cannot ask for confirmation.
    let unconfirmed = home.run(&back[..5]).code(2);
    assert!(unconfirmed.err.contains("--yes"), "{unconfirmed:?}");
    let worked = duration(&home);
    let gone = home.run(&back).code(0);
    assert!(gone.out.contains("5 URIs"), "{gone:?}");
    // The duration stays that of the visits in the logs.
    assert_eq!(duration(&home), worked);
    let glance = home.run(&["job", "list", "."]).code(0);
    assert!(
        glance.out.contains("stopped") && glance.out.contains(&name),
        "{glance:?}"
    );
    let set = home
        .run(&["job", "settings", "job", "retry.max-retries"])
        .code(0);
    assert!(set.out.contains('7'), "{set:?}");
    let history = home.run(&["job", "history", "job"]).code(0);
    let has = |what: &str| history.out.contains(what);
    assert!(
        has("retry.max-retries = 9") && has("/c") && has("restored to checkpoint"),
        "{history:?}"
    );
    let log = job_log(&home);
    assert!(log.contains("--in-place => refused: "), "{log}");
    assert!(log.contains("--in-place => restored to "), "{log}");
    let seeds = home.run(&["job", "seeds", "job"]).code(0);
    assert!(!seeds.out.contains(&added), "{seeds:?}");
    home.run(&["frontier", "check", "job"]).code(0);

    home.run(&["crawl", "p.toml", "--job", "job"]).code(0);
    assert!(duration(&home) > worked);
    let requests = ["/", "/a", "/b", "/c"].map(|target| gate.requests_for(target));
    assert_eq!(requests, [1, 2, 2, 1]);
    sound(&home.job());
    // Archive files are kept.
    let now = fs::read_dir(home.job().join("warcs")).unwrap().count();
    assert!(now > archived, "{now} files, {archived} before");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unusable_checkpoint_changes_nothing() {
    let (home, gate) = (Home::new(), gate());
    let mut running = paused(&home, &gate).await;
    home.run(&["job", "checkpoint", "job"]).code(0);
    home.run(&["job", "resume", "job"]).code(0);
    assert_eq!(running.wait(), 0);
    make(&home, "./other", &gate.url("/"));
    home.run(&["job", "checkpoint", "other"]).code(0);

    let name = sole(&home.job());
    let kept = home.job().join("checkpoints").join(&name);
    let of_other = sole(&home.path().join("other"));
    let back = |from: &str, code| {
        let before = all(&home.job());
        let refused = ["job", "restore", from, "job", "--in-place", "--yes"];
        let refused = home.run(&refused).code(code);
        assert_eq!(all(&home.job()), before, "{from}");
        refused.err
    };
    let err = back(&format!("other/checkpoints/{of_other}"), 2);
    assert!(err.contains("a checkpoint of another job"), "{err}");
    let err = back("other", 2);
    assert!(err.contains("is not a complete checkpoint"), "{err}");

    let assert_listed_as_unusable = |problem: &str| {
        let json = home.run(&["job", "checkpoints", "job", "--json"]).code(0);
        let kept: Value = serde_json::from_str(&json.out).unwrap();
        let message = kept["problem"].as_str().unwrap_or_default();
        assert!(message.contains(problem), "{kept}");
        let place = kept["directory"].as_str().unwrap();
        assert!(!message.contains(place), "{kept}");
        assert_eq!(kept["is_whole"], false, "{kept}");
    };
    let from = format!("job/checkpoints/{name}");
    // A checkpoint without this file is unfinished, and is not listed.
    fs::rename(kept.join("checkpoint.json"), kept.join("kept")).unwrap();
    let listed = home.run(&["job", "checkpoints", "job"]).code(0);
    assert!(listed.out.contains("has no checkpoints"), "{listed:?}");
    let err = back(&from, 2);
    assert!(err.contains("is not a complete checkpoint"), "{err}");
    fs::rename(kept.join("kept"), kept.join("checkpoint.json")).unwrap();
    fs::rename(kept.join("seeds.txt"), kept.join("kept")).unwrap();
    assert_listed_as_unusable("its seeds.txt is missing");
    back(&from, 2);
    fs::rename(kept.join("kept"), kept.join("seeds.txt")).unwrap();
    // Damage that is found only when the store is opened.
    let state = all(&kept.join("state")).into_iter();
    let tables = state.filter(|(path, bytes)| {
        let path = path.to_string_lossy();
        // The first keyspace is internal to the store.
        path.contains("/tables/") && !path.contains("keyspaces/0/") && !bytes.is_empty()
    });
    let tables: Vec<_> = tables.collect();
    assert!(tables.len() > 5, "{tables:?}");
    for (file, bytes) in tables {
        let mut torn = bytes.clone();
        torn[bytes.len() / 3] ^= 0x40;
        fs::write(&file, torn).unwrap();
        let err = back(&from, 1);
        assert!(err.contains("damaged"), "{err}");
        fs::write(file, bytes).unwrap();
    }
    // The state is on another disk and cannot be replaced in one step: nothing is replaced.
    let (state, elsewhere) = (home.job().join("state"), home.path().join("elsewhere"));
    fs::rename(&state, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &state).unwrap();
    let err = back(&from, 1);
    assert!(err.contains("opilio job restore"), "{err}");
    fs::remove_file(&state).unwrap();
    // The current state, which may be damaged or missing, is not needed for restoring.
    let again = ["job", "restore", &from, "job", "--in-place", "--yes"];
    home.run(&again).code(0);
    home.run(&["frontier", "check", "job"]).code(0);
}

#[test]
fn incomplete_checkpoints_are_removed_at_the_next_start() {
    let home = Home::new();
    home.profile("");
    let command = [
        "crawl",
        "p.toml",
        "--seed",
        "http://www.story.localhost:9/",
        "--job",
        "job",
    ];
    home.run(&command).code(5);
    home.run(&["job", "checkpoint", "job"]).code(0);
    let whole = sole(&home.job());
    let checkpoints = home.job().join("checkpoints");
    // All incomplete states that a kill may leave, and a folder of another kind.
    for (name, parts) in [
        ("20260101000000001", &[][..]),
        ("20260101000000002", &["state.new/store/0.jnl"]),
        (
            "20260101000000003",
            &["state/format", "profile.toml", "seeds.txt"],
        ),
        (
            "20260101000000004",
            &["state/format", "job.json.copy", "checkpoint.draft"],
        ),
        ("mine", &["notes.txt"]),
    ] {
        fs::create_dir_all(checkpoints.join(name)).unwrap();
        for part in parts {
            let part = checkpoints.join(name).join(part);
            fs::create_dir_all(part.parent().unwrap()).unwrap();
            fs::write(part, "half").unwrap();
        }
    }
    let listed = home.run(&["job", "checkpoints", "job"]).code(0);
    assert_eq!(listed.out.lines().count(), 1, "{listed:?}");
    home.run(&command).code(5);
    let mut left: Vec<_> = fs::read_dir(checkpoints)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, [whole, "mine".to_owned()]);
    let log = job_log(&home);
    assert!(
        log.contains("removed 20260101000000003, which was incomplete"),
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_lists_checkpoints_and_restores_jobs() {
    let (home, gate) = (Home::new(), gate());
    gate.open();
    home.profile("name = 'gate'");
    make(&home, "jobs/x", &gate.url("/"));
    let daemon = Daemon::start(&home, &["--no-auth"]);
    assert_eq!(daemon.get("/jobs/x/checkpoints")["checkpoints"], json!([]));
    let names: Vec<Value> = (0..3)
        .map(|_| {
            let made = daemon.post("/jobs/x/checkpoint", None, 200);
            let directory = Path::new(made["directory"].as_str().unwrap());
            json!(directory.file_name().unwrap().to_str())
        })
        .collect();
    // The list is paged, newest first.
    let first = daemon.get("/jobs/x/checkpoints?limit=2");
    let listed = |page: &Value| -> Vec<Value> {
        let checkpoints = page["checkpoints"].as_array().unwrap();
        checkpoints
            .iter()
            .map(|kept| kept["name"].clone())
            .collect()
    };
    assert_eq!(listed(&first), [names[2].clone(), names[1].clone()]);
    let after = first["after"].as_str().unwrap();
    let rest = daemon.get(&format!("/jobs/x/checkpoints?after={after}"));
    assert_eq!(
        (listed(&rest), &rest["after"]),
        (vec![names[0].clone()], &Value::Null)
    );

    let back = |name: &Value, status| {
        daemon.post("/jobs/x/restore", Some(json!({"checkpoint": name})), status)
    };
    let none = back(&json!("nope"), 404);
    assert!(
        none["detail"]
            .as_str()
            .unwrap()
            .contains("no checkpoint \"nope\""),
        "{none}"
    );
    back(&json!("../checkpoints"), 404);
    daemon.post("/jobs/y/restore", Some(json!({"checkpoint": "nope"})), 404);
    daemon.post("/jobs/x/start", None, 202);
    until("the crawl has ended", || daemon.state("x") == "finished").await;
    assert_eq!(gate.requests(), ["/", "/a", "/b"]);
    let job = daemon.get("/jobs/x");
    // DNS look-ups and robots.txt are URIs, too.
    assert_eq!(job["overview"]["uris"], 5, "{job}");

    let gone = back(&names[1], 200);
    assert!(
        gone["result"].as_str().unwrap().contains("with 0 URIs"),
        "{gone}"
    );
    // The new state is visible at once.
    assert_eq!(daemon.state("x"), "stopped");
    let job = daemon.get("/jobs/x");
    assert_eq!(job["overview"]["uris"], 0, "{job}");
    let why = job["overview"]["ended_why"].as_str().unwrap();
    assert!(why.contains(names[1].as_str().unwrap()), "{job}");
    let history = daemon.get("/jobs/x/history");
    let last = history["changes"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["change"], &last["checkpoint"]),
        (&json!("restore"), &names[1])
    );

    daemon.post("/jobs/x/start", None, 202);
    until("the crawl has ended again", || {
        daemon.state("x") == "finished"
    })
    .await;
    assert_eq!(gate.requests_for("/a"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_or_waiting_job_is_not_restored() {
    let (home, gate) = (Home::new(), gate());
    home.file("opilio.toml", "[limits]\njobs = 1\n");
    make(&home, "jobs/x", &gate.url("/"));
    make(&home, "jobs/y", &gate.url("/"));
    let daemon = Daemon::start(&home, &["--no-auth"]);
    let refused = |job: &str| {
        let made = daemon.post(&format!("/jobs/{job}/checkpoint"), None, 200);
        let directory = Path::new(made["directory"].as_str().unwrap());
        let name = directory.file_name().unwrap().to_str();
        let body = Some(json!({"checkpoint": name}));
        let refused = daemon.post(&format!("/jobs/{job}/restore"), body, 409);
        let detail = refused["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("stop it first"), "{detail}");
    };
    daemon.post("/jobs/x/start", None, 202);
    until("the seed is requested", || gate.requests_for("/") == 1).await;
    refused("x");
    daemon.post("/jobs/y/start", None, 202);
    refused("y");
    gate.open();
}

//! Attacks by clients that can only send requests to the daemon, or only write into a job's folder.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use opilio_stories::until;
use opilio_test_registry::Registry;
use serde_json::{Value, json};

use crate::command::Home;
use crate::job::Gate;
use crate::serve::{Daemon, make};

/// Depth of nesting, which must be refused.
const LEVELS: usize = 10_000;

/// Returns TOML texts with very deep nesting, each with a name.
fn deeply_nested_texts() -> [(&'static str, String); 5] {
    // Each of the two numbers is small, but their product is large.
    let both = |parts: usize, values: usize| {
        let key = vec!["a"; parts].join(".");
        format!(
            "{}1{}",
            format!("{{{key} = ").repeat(values),
            "}".repeat(values)
        )
    };
    [
        (
            "lists",
            format!("a = {}1{}", "[".repeat(LEVELS), "]".repeat(LEVELS)),
        ),
        (
            "tables",
            format!("a = {}1{}", "{a = ".repeat(LEVELS), "}".repeat(LEVELS)),
        ),
        ("a key", format!("{} = 1", vec!["a"; LEVELS].join("."))),
        (
            "a heading",
            format!("[{}]\nb = 1", vec!["a"; LEVELS].join(".")),
        ),
        ("keys in tables", format!("a = {}", both(79, 79))),
    ]
}

#[test]
fn very_deep_nesting_is_refused_and_the_daemon_continues() {
    let home = Home::new();
    make(&home, "jobs/x", "http://nowhere.localhost/");
    let daemon = Daemon::start(&home, &["--no-auth"]);
    for (what, text) in deeply_nested_texts() {
        home.file("deep.toml", &text);
        let ended = home.run(&["profile", "check", "deep.toml"]).code(2);
        assert!(ended.out.contains("deep.toml:"), "{what}: {ended:?}");

        let checked = daemon.post("/profiles/check", Some(json!({ "toml": text })), 200);
        let faults = checked["faults"].as_array().unwrap();
        assert!(!faults.is_empty(), "{what}");
        let new =
            json!({ "name": "deep", "profile_toml": text, "seeds": ["http://nowhere.localhost/"] });
        let answer = daemon.call("POST", "/api/v1/jobs", Some(new), "");
        assert_eq!(answer.status, 422, "{what}: {answer:?}");
        let set = json!({ "set": [text] });
        let answer = daemon.call("PATCH", "/api/v1/jobs/x/settings", Some(set), "");
        assert_eq!(answer.status, 422, "{what}: {answer:?}");
    }
    let deep = "[".repeat(LEVELS) + &"]".repeat(LEVELS);
    let answer = daemon.send(
        "POST",
        "/api/v1/profiles/check",
        &deep,
        "Content-Type: application/json\r\n",
    );
    assert!([400, 422].contains(&answer.status), "{answer:?}");
    let jobs = daemon.get("/jobs");
    assert_eq!(jobs["total"], 1, "{jobs}");
}

#[test]
fn the_role_operator_cannot_make_the_daemon_query_a_registry() {
    let registry = Registry::open();
    let home = Home::new();
    make(&home, "jobs/x", "http://nowhere.localhost/");
    let token = |name: &str, role: &str| {
        let made = home.run(&["token", "new", name, "--role", role]).code(0);
        made.out.trim().to_owned()
    };
    let (operator, admin) = (token("otto", "operator"), token("ada", "admin"));
    let mut daemon = Daemon::start(&home, &[]);
    let image = registry.image("a/b:1");
    let toml = format!("[plugins.x]\ncomponent = \"{image}\"");
    let set = format!("plugins.x.component = \"{image}\"");
    let requests = [
        ("POST", "/profiles/check", json!({ "toml": toml })),
        (
            "POST",
            "/jobs",
            json!({ "name": "y", "profile_toml": toml }),
        ),
        (
            "PATCH",
            "/jobs/x/settings",
            json!({ "set": [set], "only_check": true }),
        ),
    ];
    daemon.token = Some(operator);
    let checked = daemon.post("/profiles/check", Some(requests[0].2.clone()), 200);
    let fault = &checked["faults"][0];
    assert_eq!((&fault["line"], &fault["column"]), (&json!(2), &json!(1)));
    assert!(
        fault["problem"].as_str().unwrap().contains("role admin"),
        "{fault}"
    );
    for (method, path, body) in &requests[1..] {
        let path = format!("/api/v1{path}");
        let answer = daemon.call(method, &path, Some(body.clone()), "");
        assert_eq!(answer.status, 403, "{path}: {answer:?}");
        assert!(answer.body.contains("role admin"), "{path}: {answer:?}");
    }
    assert_eq!(registry.requests(), Vec::<String>::new());
    daemon.token = Some(admin);
    let (_, path, body) = &requests[0];
    daemon.post(path, Some(body.clone()), 200);
    assert_eq!(registry.requests(), ["GET /v2/a/b/manifests/1"]);
}

/// Content of a file that the API must not reveal.
const SECRET: &str = "root:x:0:0:the secret";

#[test]
fn symbolic_links_in_a_job_reveal_no_other_files() {
    let home = Home::new();
    let elsewhere = home.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let secret = home.file("elsewhere/passwd", SECRET);
    fs::write(elsewhere.join("crawl.log"), SECRET).unwrap();
    let list = home.file("elsewhere/list.json", json!([SECRET]).to_string());
    fs::write(elsewhere.join("a.warc.gz.open"), "a capture").unwrap();
    let password = home.file("password", "lily\n");
    fs::set_permissions(password, fs::Permissions::from_mode(0o600)).unwrap();
    home.file(
        "opilio.toml",
        "[heritrix]\nuser = \"nas\"\npassword-file = \"password\"\n",
    );
    // Each link is in a separate job, and replaces the file or folder of that name.
    let links = [
        ("logs", &elsewhere),
        ("logs/crawl.log", &secret),
        ("reports", &elsewhere),
        ("reports/plugins.json", &list),
        // The archive folder may be a link, but only archive files in it are shown.
        ("warcs", &elsewhere),
        ("action", &elsewhere),
        ("profile.toml", &secret),
        ("seeds.txt", &secret),
        ("changes/000001.toml", &secret),
        ("process.log", &secret),
    ];
    for (at, (link, to)) in links.iter().enumerate() {
        let job = format!("jobs/j{at}");
        make(&home, &job, "http://nowhere.localhost/");
        let place = home.path().join(job).join(link);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        if place.is_dir() {
            fs::remove_dir_all(&place).unwrap();
        } else if place.exists() {
            fs::remove_file(&place).unwrap();
        }
        symlink(to, place).unwrap();
    }
    let daemon = Daemon::start(&home, &["--no-auth"]);
    let capture = "capture?uri=http://nowhere.localhost/";
    let captures = "captures?uri=http://nowhere.localhost/";
    for (at, (link, _)) in links.iter().enumerate() {
        let mut refused = Vec::new();
        for path in [
            "logs",
            "logs/crawl.log",
            "logs/passwd",
            "profile",
            "seeds",
            "settings",
            "status",
            "alerts",
            "plugins",
            "observers",
            "history",
            "reports/processors",
            "reports/seeds",
            "reports/crawl",
            capture,
            captures,
            "/engine/job/JOB",
            "/engine/job/JOB/jobdir",
            "/engine/job/JOB/jobdir/profile.toml",
            "/engine/job/JOB/jobdir/logs/passwd",
            "/engine/job/JOB/jobdir/reports/passwd",
            "/engine/job/JOB/jobdir/warcs/passwd",
        ] {
            let whole = match path.starts_with('/') {
                true => path.replace("JOB", &format!("j{at}")),
                false => format!("/api/v1/jobs/j{at}/{path}"),
            };
            let answer = daemon.call("GET", &whole, None, "");
            assert!(
                !answer.body.contains("passwd\n"),
                "{link}, {path}: {answer:?}"
            );
            assert!(
                !answer.body.contains("the secret"),
                "{link}, {path}: {answer:?}"
            );
            assert!(
                !answer.body.contains("root:x"),
                "{link}, {path}: {answer:?}"
            );
            let problem: Value = serde_json::from_str(&answer.body).unwrap_or_default();
            let detail = problem["detail"].as_str().unwrap_or_default();
            if answer.status == 409 && detail.contains("which is not followed") {
                refused.push(path);
            }
        }
        // Requests for the linked file or folder are refused with the reason.
        let is_own = |link: &str| link.contains(".t");
        let expected: &[&str] = match *link {
            "logs" => &["logs", "logs/crawl.log"],
            "reports/plugins.json" => &["plugins", "reports/processors"],
            link if is_own(link) => &["logs", "profile", "seeds", "settings", captures],
            _ => &[],
        };
        for path in expected {
            assert!(
                refused.contains(path),
                "{link}: {path} is not in {refused:?}"
            );
        }
        // A copy of the job would contain the content as an ordinary file.
        let copies = [
            (
                "/api/v1/jobs/JOB/clone",
                json!({ "name": format!("c{at}") }).to_string(),
                "application/json",
                201,
            ),
            (
                "/engine/job/JOB",
                format!("copyTo=d{at}"),
                "application/x-www-form-urlencoded",
                303,
            ),
        ];
        for (path, body, kind, done) in copies {
            let path = path.replace("JOB", &format!("j{at}"));
            let answer = daemon.send("POST", &path, &body, &format!("Content-Type: {kind}\r\n"));
            let expected = if is_own(link) { 409 } else { done };
            assert_eq!(answer.status, expected, "{link}, {path}: {answer:?}");
            assert!(!answer.body.contains("root:x"), "{link}: {answer:?}");
        }
        if *link == "warcs" {
            let at = format!("/engine/job/j{at}/jobdir");
            let names = daemon.call("GET", &at, None, "").body;
            assert!(names.contains("warcs/a.warc.gz.open\n"), "{names}");
            let file = format!("{at}/warcs/a.warc.gz.open");
            let file = daemon.call("GET", &file, None, "");
            assert_eq!((file.status, &*file.body), (200, "a capture"), "{file:?}");
        }
    }
}

#[test]
fn profile_texts_of_clients_make_the_daemon_read_no_file() {
    let home = Home::new();
    let secret = home.file("secret", SECRET);
    let daemon = Daemon::start(&home, &["--no-auth"]);
    let secret = secret.display();
    for text in [
        format!("seeds-file = \"{secret}\"\n"),
        // The check continues after an error.
        format!("seeds-file = \"{secret}\"\nworkers =\n"),
        format!("extends = \"{secret}\"\nworkers =\n"),
        format!("[[override]]\nuri.precedence-file = \"{secret}\"\n[[\n"),
    ] {
        let check = json!({ "toml": text });
        let make = json!({ "name": "x", "profile_toml": text });
        for (path, body) in [
            ("/profiles/check", check.clone()),
            ("/profiles/form", check),
            ("/jobs", make),
            ("/profiles", json!({ "name": "x", "toml": text })),
        ] {
            let answer = daemon.call("POST", &format!("/api/v1{path}"), Some(body), "");
            assert!(!answer.body.contains("root:x"), "{path}: {answer:?}");
        }
    }
}

#[test]
fn symbolic_links_among_profiles_reveal_no_other_files() {
    let home = Home::new();
    let secret = home.file("secret", SECRET);
    let profiles = home.path().join("profiles");
    fs::create_dir(&profiles).unwrap();
    home.file("profiles/there.toml", "name = 'there'\n");
    home.file("opilio.toml", "profiles = \"profiles\"\n");
    symlink(secret, profiles.join("out.toml")).unwrap();
    // Kubernetes mounts files as such links.
    symlink("there.toml", profiles.join("within.toml")).unwrap();
    let daemon = Daemon::start(&home, &["--no-auth"]);
    assert_eq!(daemon.get("/profiles/within")["toml"], "name = 'there'\n");
    let make = json!({ "name": "x", "profile": "out", "seeds": ["http://nowhere.localhost/"] });
    for answer in [
        daemon.call("GET", "/api/v1/profiles/out", None, ""),
        daemon.call("POST", "/api/v1/jobs", Some(make), ""),
    ] {
        assert_eq!(answer.status, 409, "{answer:?}");
        assert!(answer.body.contains("which is not followed"), "{answer:?}");
        assert!(!answer.body.contains("root:x"), "{answer:?}");
    }
}

#[test]
fn checkpoints_do_not_copy_the_targets_of_links() {
    let home = Home::new();
    let secret = home.file("secret", SECRET);
    make(&home, "jobs/x", "http://nowhere.localhost/");
    let job = home.path().join("jobs/x");
    fs::create_dir_all(job.join("components")).unwrap();
    symlink(&secret, job.join("components/x.wasm")).unwrap();
    let refused = home
        .run(&["job", "checkpoint", "jobs/x", "--to", "copy"])
        .code(1);
    assert!(refused.err.contains("which is not followed"), "{refused:?}");
    assert!(!home.path().join("copy").exists());
    fs::remove_file(job.join("components/x.wasm")).unwrap();
    home.run(&["job", "checkpoint", "jobs/x", "--to", "copy"])
        .code(0);

    // A job that is made from a checkpoint does not copy them either.
    let components = home.path().join("copy/components");
    fs::create_dir_all(&components).unwrap();
    symlink(&secret, components.join("x.wasm")).unwrap();
    let refused = home.run(&["job", "restore", "copy", "jobs/y"]).code(1);
    assert!(refused.err.contains("which is not followed"), "{refused:?}");
    assert!(!home.path().join("jobs/y").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_with_links_to_other_files_can_be_stopped_and_deleted() {
    let gate = Gate::serve(&[("/", "")]);
    let home = Home::new();
    home.profile("name = 'gate'");
    let secret = home.file("secret", SECRET);
    make(&home, "jobs/x", &gate.url("/"));
    let daemon = Daemon::start(&home, &["--no-auth"]);
    daemon.post("/jobs/x/start", None, 202);
    until("the seed is requested", || gate.requests_for("/") == 1).await;
    let job = home.path().join("jobs/x");
    // A link that the daemon does not read has no effect.
    symlink(&secret, job.join("README")).unwrap();
    daemon.get("/jobs/x/seeds");
    symlink(&secret, job.join("added-seeds.txt")).unwrap();
    let seeds = daemon.call("GET", "/api/v1/jobs/x/seeds", None, "");
    assert_eq!(seeds.status, 409, "{seeds:?}");
    daemon.get("/jobs/x/status");
    for action in ["pause", "resume", "stop"] {
        daemon.post(&format!("/jobs/x/{action}"), None, 200);
    }
    gate.open();
    until("the job has stopped", || daemon.state("x") == "stopped").await;
    let gone = daemon.call("DELETE", "/api/v1/jobs/x", None, "");
    assert_eq!(gone.status, 204, "{gone:?}");
    assert_eq!(fs::read_to_string(secret).unwrap(), SECRET);
}

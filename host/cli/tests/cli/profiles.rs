//! The store of named profiles and their versions, which the command line and the daemon share.

use std::fs;

use opilio_stories::until;
use serde_json::{Value, json};

use crate::command::Home;
use crate::serve::{Answer, Daemon};

const TEXT: &str =
    "# Ours\nextends = \"snapshot\"\n\n[politeness]\nmin-delay = \"2s\" # as they asked\n";

/// A profile that only the administrator of the machine may write.
const REACHING: &str = "[fetch]\nallow-addresses = [\"loopback\"]\n";

fn token(home: &Home, name: &str, role: &str) -> Option<String> {
    let made = home.run(&["token", "new", name, "--role", role]).code(0);
    Some(made.out.trim().to_owned())
}

fn save_profile(home: &Home, name: &str, text: &str) {
    home.file(&format!("{name}.toml"), text);
    home.run(&["profile", "save", &format!("{name}.toml")])
        .code(0);
    fs::remove_file(home.path().join(format!("{name}.toml"))).unwrap();
}

#[track_caller]
fn put(daemon: &Daemon, name: &str, tag: Option<&str>, body: Value) -> Answer {
    let tag = tag.map_or(String::new(), |tag| format!("If-Match: \"{tag}\"\r\n"));
    daemon.call("PUT", &format!("/api/v1/profiles/{name}"), Some(body), &tag)
}

fn audit_log(home: &Home) -> String {
    fs::read_to_string(home.path().join("jobs/.opilio/audit.jsonl")).unwrap_or_default()
}

#[test]
fn profiles_are_saved_compared_copied_and_deleted_on_the_command_line() {
    let home = Home::new();
    home.file("site.toml", "workers = 2\n");
    let save = ["profile", "save", "site.toml", "--reason", "first"];
    assert_eq!(
        home.run(&save).code(0).out,
        "saved version 1 of profile site\n"
    );
    let again = home.run(&save).code(0).out;
    assert_eq!(again, "profile site has not changed; its version is 1\n");
    home.file("site.toml", "workers = 3\n");
    home.run(&["profile", "save", "site.toml"]).code(0);
    home.file("site.toml", "workers = 0\n");
    let refused = home.run(&["profile", "save", "site.toml"]).code(2);
    assert!(
        refused.err.contains(":1:11: must be at least 1"),
        "{refused:?}"
    );

    let diff = home.run(&["profile", "compare", "site@1"]).code(1).out;
    assert_eq!(
        diff,
        "--- site@1\n+++ site@2\n@@ -1 +1 @@\n-workers = 2\n+workers = 3\n"
    );
    home.run(&["profile", "compare", "site", "site@2"]).code(0);
    let object = |arguments: &[&str], code: i32| -> Value {
        let ended = home.run(&[&["profile"][..], arguments, &["--json"]].concat());
        serde_json::from_str(&ended.code(code).out).unwrap()
    };
    let compared = object(&["compare", "site@1"], 1);
    assert_eq!(
        compared,
        json!({"from": "site@1", "to": "site@2", "diff": diff})
    );
    let same = object(&["compare", "site", "site@2"], 0);
    assert_eq!(same["diff"], "", "{same}");
    let shown = object(&["show", "site"], 0);
    assert_eq!(
        shown,
        json!({"name": "site", "version": 2, "toml": "workers = 3\n"})
    );
    assert_eq!(object(&["show", "news"], 0)["version"], Value::Null);
    // Exit code 1 would mean a difference.
    let missing = home.run(&["profile", "compare", "site@9"]).code(2).err;
    assert!(
        missing.contains("site@9") || missing.contains("version 9"),
        "{missing}"
    );
    // A comparison needs two texts, and shipped profiles have no versions.
    let alone = home.run(&["profile", "compare", "site"]).code(2).err;
    assert!(alone.contains("site@1"), "{alone}");
    for command in [
        &["history", "news"][..],
        &["delete", "news", "--yes"],
        &["show", "news@1"],
    ] {
        let shipped = home.run(&[&["profile"], command].concat()).code(2).err;
        assert!(shipped.contains("opilio profile copy news"), "{shipped}");
    }
    // Errors have their place in the file of the operator. A note does not prevent saving.
    assert!(refused.err.contains("site.toml:1:11: must"), "{refused:?}");
    home.file("site.toml", "workers = 3\nrevisit.fixed-wait = \"2d\"\n");
    let noted = home.run(&["profile", "save", "site.toml", "--name", "noted"]);
    assert!(noted.code(0).err.contains("site.toml:2:9: note:"));
    home.run(&["profile", "copy", "site@1", "other"]).code(0);
    let shown = home.run(&["profile", "show", "other"]).code(0).out;
    assert_eq!(shown, "workers = 2\n");
    assert!(
        !home
            .run(&["profile", "copy", "site", "other"])
            .err
            .is_empty()
    );

    let history = home
        .run(&["profile", "history", "site", "--json"])
        .code(0)
        .out;
    let first: Value = serde_json::from_str(history.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["number"], &first["reason"]),
        (&json!(1), &json!("first"))
    );
    // A file that was edited in place and is invalid is listed with its errors.
    home.file(
        "jobs/.opilio/profiles/other.toml",
        "description = \"ours\"\nworkers = 0\n",
    );
    let listed = home.run(&["profile", "list", "--json"]).code(0).out;
    let listed: Vec<Value> = listed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |name: &str| listed.iter().find(|it| it["name"] == name).unwrap();
    let (site, other) = (of("site"), of("other"));
    assert_eq!(
        (&site["version"], &site["ships"]),
        (&json!(2), &json!(false))
    );
    assert!(
        site["changed"].is_string() && site["changed_by"].is_string(),
        "{site}"
    );
    assert_eq!(other["description"], "ours");
    assert_eq!(other["faults"][0]["line"], 2, "{other}");
    assert_eq!(of("news")["ships"], true);
    assert!(of("news")["description"].is_string());
    let shown = home.run(&["profile", "list"]).code(0).out;
    assert!(shown.contains("1 error"), "{shown}");
    let unconfirmed = home.run(&["profile", "delete", "site"]).code(2);
    assert!(unconfirmed.err.contains("pass --yes"), "{unconfirmed:?}");
    let delete = ["profile", "delete", "site", "--yes", "--json"];
    let deleted = home.run(&delete).code(0).out;
    assert_eq!(deleted, "{\"answer\":\"deleted\",\"name\":\"site\"}\n");
    let deleted = home.run(&["profile", "show", "site"]).code(2).err;
    assert!(deleted.contains("opilio profile history site"), "{deleted}");
    let listed = home.run(&["profile", "list"]).code(0).out;
    assert!(
        listed.contains("other") && !listed.contains("site "),
        "{listed}"
    );
    assert!(listed.contains("snapshot"), "{listed}");
    let history = home.run(&["profile", "history", "site"]).code(0).out;
    assert!(
        history.contains("version 3") && history.contains("deleted"),
        "{history}"
    );
}

#[test]
fn a_job_keeps_the_version_of_its_profile() {
    let home = Home::new();
    save_profile(
        &home,
        "site",
        "workers = 2\nseeds = [\"http://a.localhost/\"]\n",
    );
    home.run(&["job", "new", "one", "--profile", "site"])
        .code(0);
    home.run(&["profile", "compare", "--job", "one"]).code(0);
    save_profile(
        &home,
        "site",
        "workers = 3\nseeds = [\"http://a.localhost/\"]\n",
    );
    let diff = home
        .run(&["profile", "compare", "--job", "one"])
        .code(1)
        .out;
    assert!(diff.contains("-workers = 2\n+workers = 3\n"), "{diff}");

    let daemon = Daemon::start(&home, &["--no-auth"]);
    let origin = |job: &str| daemon.get(&format!("/jobs/{job}/profile-origin"));
    let one = origin("one");
    assert_eq!(
        (&one["profile"], &one["version"], &one["newest"]),
        (&json!("site"), &json!(1), &json!(2))
    );
    assert!(
        one["diff"].as_str().unwrap().contains("+workers = 3"),
        "{one}"
    );
    // A clone has the same version.
    daemon.post("/jobs/one/clone", Some(json!({"name": "two"})), 201);
    assert_eq!(origin("two")["version"], 1);
    // A job of a file that was edited in place has a version, too, whose text stays available.
    let file = home.path().join("jobs/.opilio/profiles/site.toml");
    fs::write(&file, "workers = 4\nseeds = [\"http://a.localhost/\"]\n").unwrap();
    let new = json!({"name": "three", "profile": "site"});
    daemon.post("/jobs", Some(new), 201);
    fs::write(&file, "workers = 5\n").unwrap();
    let three = origin("three");
    assert_eq!(
        (&three["version"], &three["newest"]),
        (&json!(3), &json!(4))
    );
    let kept = daemon.get("/profiles/site/versions/3");
    assert!(
        kept["toml"].as_str().unwrap().starts_with("workers = 4"),
        "{kept}"
    );
    // Shipped profiles have no versions, and texts have no name.
    let new = json!({"name": "four", "profile": "snapshot", "seeds": ["http://a.localhost/"]});
    daemon.post("/jobs", Some(new), 201);
    let four = origin("four");
    assert_eq!(
        (&four["profile"], &four["version"], &four["diff"]),
        (&json!("snapshot"), &Value::Null, &json!(""))
    );
    let new = json!({"name": "five", "profile_toml": "seeds = [\"http://a.localhost/\"]"});
    daemon.post("/jobs", Some(new), 201);
    assert_eq!(origin("five")["profile"], Value::Null);
    // A text that was changed for one job.
    let text = "workers = 6\nseeds = [\"http://a.localhost/\"]\n";
    let new = json!({"name": "six", "profile": "site", "profile_toml": text});
    daemon.post("/jobs", Some(new), 201);
    let six = origin("six");
    assert_eq!(
        (&six["profile"], &six["version"]),
        (&json!("site"), &json!(4))
    );
    assert!(
        six["diff"].as_str().unwrap().contains("-workers = 6"),
        "{six}"
    );
}

#[test]
fn concurrent_changes_are_refused_and_every_change_has_an_author() {
    let home = Home::new();
    let operator = token(&home, "otto", "operator");
    let admin = token(&home, "ada", "admin");
    let mut daemon = Daemon::start(&home, &[]);
    daemon.token.clone_from(&operator);
    let new = json!({"name": "site", "toml": TEXT, "reason": "ours"});
    let made = daemon.call("POST", "/api/v1/profiles", Some(new.clone()), "");
    assert_eq!(made.status, 201, "{made:?}");
    assert!(
        made.head.contains("location: /api/v1/profiles/site"),
        "{made:?}"
    );
    let body: Value = serde_json::from_str(&made.body).unwrap();
    let first = body["tag"].as_str().unwrap();
    assert!(
        made.head.contains(&format!("etag: \"{first}\"")),
        "{made:?}"
    );
    assert_eq!(daemon.get("/profiles/site")["tag"], first);
    let again = daemon.call("POST", "/api/v1/profiles", Some(new), "");
    assert_eq!(again.status, 409, "{again:?}");

    let slower = json!({"toml": TEXT.replace("2s", "4s"), "reason": "slower"});
    assert_eq!(put(&daemon, "site", None, slower.clone()).status, 428);
    assert_eq!(
        put(&daemon, "site", Some(first), slower.clone()).status,
        200
    );
    let late = put(&daemon, "site", Some(first), slower.clone());
    assert_eq!(late.status, 412, "{late:?}");
    assert!(late.body.contains("version 2, by otto"), "{late:?}");
    let shipped = put(&daemon, "snapshot", Some(first), slower);
    assert_eq!(shipped.status, 409, "{shipped:?}");
    let faulty = put(&daemon, "site", Some("x"), json!({"toml": "workers = 0"}));
    assert_eq!(faulty.status, 412, "{faulty:?}");
    let tag = daemon.get("/profiles/site")["tag"]
        .as_str()
        .unwrap()
        .to_owned();
    let faulty = put(&daemon, "site", Some(&tag), json!({"toml": "workers = 0"}));
    assert_eq!(faulty.status, 422, "{faulty:?}");
    assert!(
        faulty.body.contains("\"line\":1,\"column\":11"),
        "{faulty:?}"
    );

    let versions = daemon.get("/profiles/site/versions");
    let authors: Vec<_> = versions["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["by"], &it["reason"]))
        .collect();
    assert_eq!(
        authors,
        [
            (&json!("otto"), &json!("slower")),
            (&json!("otto"), &json!("ours"))
        ]
    );
    let compared = daemon.get("/profiles/site/compare?version=1");
    assert_eq!(
        (&compared["from"], &compared["to"]),
        (&json!("site@1"), &json!("site@2"))
    );
    assert!(
        compared["diff"]
            .as_str()
            .unwrap()
            .contains("+min-delay = \"4s\""),
        "{compared}"
    );
    let copied = daemon.post(
        "/profiles/site/copy",
        Some(json!({"name": "copy", "version": 1})),
        201,
    );
    assert_eq!(copied["version"], 1);
    assert_eq!(daemon.get("/profiles/copy")["toml"], TEXT);
    let with = daemon.get("/profiles/site/compare?with=copy");
    assert!(
        with["diff"]
            .as_str()
            .unwrap()
            .contains("-min-delay = \"4s\""),
        "{with}"
    );

    let delete = |daemon: &Daemon, tag: &str| {
        daemon
            .call("DELETE", "/api/v1/profiles/site?reason=over", None, tag)
            .status
    };
    let read = format!("If-Match: \"{tag}\"\r\n");
    assert_eq!(delete(&daemon, &read), 403);
    daemon.token = admin;
    assert_eq!(delete(&daemon, ""), 428);
    let outdated = format!("If-Match: \"{first}\"\r\n");
    assert_eq!(delete(&daemon, &outdated), 412);
    assert_eq!(delete(&daemon, &read), 204);
    assert_eq!(
        daemon.call("GET", "/api/v1/profiles/site", None, "").status,
        404
    );
    let versions = daemon.get("/profiles/site/versions");
    assert_eq!(versions["versions"][0]["change"], "delete", "{versions}");
    assert_eq!(versions["versions"][0]["by"], "ada", "{versions}");
    let audit_log = audit_log(&home);
    for line in [
        "\"user\":\"otto\"",
        "\"PUT\",\"path\":\"/api/v1/profiles/site\",\"status\":412",
        "\"DELETE\"",
    ] {
        assert!(audit_log.contains(line), "{line}: {audit_log}");
    }
}

#[test]
fn an_operator_may_edit_an_administrators_profile_without_widening_its_reach() {
    let home = Home::new();
    let operator = token(&home, "otto", "operator");
    save_profile(&home, "inner", REACHING);
    let mut daemon = Daemon::start(&home, &[]);
    daemon.token = operator;
    let read = daemon.get("/profiles/inner");
    assert_eq!(read["toml"], REACHING);
    let tag = read["tag"].as_str().unwrap();
    let check = |toml: &str, profile: Option<&str>| {
        let body = json!({"toml": toml, "profile": profile});
        let checked = daemon.post("/profiles/check", Some(body), 200);
        checked["faults"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["problem"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let has_error = |problems: &[String]| {
        problems
            .iter()
            .any(|it| it.contains("fetch.allow-addresses names"))
    };
    assert!(!has_error(&check(REACHING, Some("inner"))));
    assert!(has_error(&check(REACHING, None)));
    let wider = REACHING.replace("loopback", "metadata");
    assert!(has_error(&check(&wider, Some("inner"))));
    // Checks of a text are not in the audit log.
    assert!(!audit_log(&home).contains("check"), "{}", audit_log(&home));

    let refused = put(&daemon, "inner", Some(tag), json!({"toml": wider}));
    assert_eq!(refused.status, 403, "{refused:?}");
    let new = json!({"name": "own", "toml": REACHING});
    assert_eq!(
        daemon
            .call("POST", "/api/v1/profiles", Some(new), "")
            .status,
        403
    );
    let more = format!("workers = 3\n{REACHING}");
    assert_eq!(
        put(&daemon, "inner", Some(tag), json!({"toml": more})).status,
        200
    );
    daemon.post("/profiles/inner/copy", Some(json!({"name": "own"})), 201);
    let job = |text: &str| json!({"name": "one", "profile": "own", "profile_toml": text, "seeds": ["http://a.localhost/"]});
    let refused = daemon.call("POST", "/api/v1/jobs", Some(job(&wider)), "");
    assert_eq!(refused.status, 403, "{refused:?}");
    daemon.post("/jobs", Some(job(REACHING)), 201);
    // An operator cannot copy an earlier version with a setting that the administrator has removed.
    save_profile(&home, "inner", "workers = 3\n");
    let back = json!({"name": "back", "version": 1});
    let back = daemon.call("POST", "/api/v1/profiles/inner/copy", Some(back), "");
    assert_eq!(back.status, 403, "{back:?}");
}

#[test]
fn form_changes_keep_the_comments_of_the_text() {
    let home = Home::new();
    let daemon = Daemon::start(&home, &["--no-auth"]);
    let changes = json!([
        {"path": ["politeness", "min-delay"], "value": "5s"},
        {"path": ["plugins", "hops", "settings", "max"], "value": 3},
        {"path": ["limits", "time"], "value": null},
    ]);
    let form = daemon.post(
        "/profiles/form",
        Some(json!({"toml": TEXT, "changes": changes})),
        200,
    );
    let expected = "# Ours\nextends = \"snapshot\"\n\n[politeness]\nmin-delay = \"5s\" # as they asked\n\n[plugins.hops.settings]\nmax = 3\n";
    assert_eq!(form["toml"], expected);
    assert_eq!(form["written"]["plugins"]["hops"]["settings"]["max"], 3);
    // The values of the extended profile and the defaults.
    assert_eq!(form["inherited"]["workers"], 50);
    assert_eq!(
        form["inherited"]["politeness"]["delay-factor"], 5.0,
        "{form}"
    );
    assert_eq!(
        form["effective"]["plugins"]["hops"]["component"],
        "builtin:hops"
    );
    // With an error elsewhere, the stacks are still returned, with their edits.
    let faulty = "workers = \"many\"\nstacks.extract = { after = [\"regex-list\"] }\n";
    let faulty = daemon.post("/profiles/form", Some(json!({"toml": faulty})), 200);
    assert_eq!(faulty["effective"], Value::Null, "{faulty}");
    let extract = faulty["stacks"]["extract"].as_array().unwrap();
    assert_eq!(extract.first().unwrap(), "http", "{faulty}");
    assert_eq!(extract.last().unwrap(), "regex-list", "{faulty}");
    // With a setting that is not allowed over the API, the values of a shipped profile are still returned. No file is read.
    let reaching = |base: &str| {
        let text = format!("extends = \"{base}\"\n{REACHING}");
        daemon.post("/profiles/form", Some(json!({"toml": text})), 200)
    };
    let shipped = reaching("snapshot");
    assert_eq!(shipped["effective"], Value::Null, "{shipped}");
    assert_eq!(shipped["inherited"]["workers"], 50, "{shipped}");
    assert_eq!(shipped["stacks"]["wait"][0], "adaptive", "{shipped}");
    save_profile(&home, "base", "workers = 7\n");
    let named = reaching("base.toml");
    assert_ne!(named["inherited"]["workers"], 7, "{named}");
    assert_eq!(named["stacks"], json!({}), "{named}");
    let bad = json!({"toml": "workers =", "changes": [{"path": ["workers"], "value": 3}]});
    let bad = daemon.post("/profiles/form", Some(bad), 422);
    assert_eq!(bad["faults"][0]["line"], 1, "{bad}");
    let plugins = daemon.get("/plugin-catalogue");
    let plugins = plugins["plugins"].as_array().unwrap();
    let hops = plugins.iter().find(|it| it["name"] == "hops").unwrap();
    assert!(
        hops["stages"].as_array().unwrap().contains(&json!("scope")),
        "{hops}"
    );
    assert!(hops["schema"]["properties"]["max"].is_object(), "{hops}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_starts_at_its_time_or_by_a_start_command() {
    let home = Home::new();
    let daemon = Daemon::start(&home, &["--no-auth"]);
    let new = json!({
        "name": "one", "profile": "snapshot", "seeds": ["http://a.localhost/"],
        "start_at": "2999-01-01T00:00:00Z",
    });
    daemon.post("/jobs", Some(new), 201);
    until("the job waits", || daemon.state("one") == "waiting").await;
    let one = daemon.get("/jobs/one");
    assert_eq!(
        one["overview"]["ended_why"],
        "the job starts at 2999-01-01T00:00:00Z"
    );
    daemon.post("/jobs/one/start", None, 202);
    until("the job does not wait any more", || {
        daemon.state("one") != "waiting"
    })
    .await;
    until("the crawl has ended", || {
        ["finished", "failed", "stopped"].contains(&&*daemon.state("one"))
    })
    .await;
}

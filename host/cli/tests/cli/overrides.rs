//! Overrides of a running job: `opilio job set`, `unset` and `overrides`, and the same over the API.

use serde_json::{Value, json};

use crate::command::Home;
use crate::job::{Gate, job_log, waiting};
use crate::serve::{Daemon, make};

fn json_lines(out: &str) -> Vec<Value> {
    out.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Asserts that these are the overrides of the job, in order: number, conditions and settings.
#[track_caller]
fn check(home: &Home, expected: &[(Option<u64>, &str, &str)]) {
    let listed = home.run(&["job", "overrides", "job", "--json"]).code(0);
    let listed = json_lines(&listed.out);
    let found: Vec<(Option<u64>, String, String)> = listed
        .iter()
        .map(|one| {
            let settings = one["settings"].as_array().unwrap().iter();
            let settings = settings.map(|one| {
                let text = |name: &str| one[name].as_str().unwrap();
                format!("{} = {}", text("key"), text("toml"))
            });
            let settings: Vec<String> = settings.collect();
            (
                one["id"].as_u64(),
                one["matching"].to_string(),
                settings.join("; "),
            )
        })
        .collect();
    let expected = expected
        .iter()
        .map(|(id, matching, settings)| (*id, (*matching).to_owned(), (*settings).to_owned()));
    assert_eq!(found, expected.collect::<Vec<_>>());
}

/// Returns the value of `retry.delay` for a URI.
#[track_caller]
fn delay(home: &Home, uri: &str) -> String {
    let explained = home.run(&["job", "explain", "job", uri, "--json"]).code(0);
    let explained = &json_lines(&explained.out)[0];
    let settings = explained["settings"].as_array().unwrap();
    let found = settings.iter().find(|one| one["key"] == "retry.delay");
    found.unwrap()["value"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn overrides_of_a_running_crawl_are_listed_changed_moved_and_removed() {
    let gate = Gate::serve(&[("/", "")]);
    let home = Home::new();
    let profile = "[[override]]\nmatch.domain = ['elsewhere.org']\nretry.delay = '25ms'\n";
    let mut running = waiting(&home, &gate, profile).await;
    let seed = gate.url("/");
    let host = r#"{"host":["gate.localhost"]}"#;
    let fixed = (
        None,
        r#"{"domain":["elsewhere.org"]}"#,
        r#"retry.delay = "25ms""#,
    );
    let set = |more: &[&str]| {
        let set = ["job", "set", "job", "--host", "gate.localhost"];
        home.run(&[&set[..], more].concat())
    };
    check(&home, &[fixed]);

    // A dry run shows the URI and its values, and changes nothing.
    let wanted = ["retry.delay=1s", "retry.delay-max=9s"];
    let previewed = set(&[&wanted[..], &["--dry-run"]].concat()).code(0).out;
    for expected in [
        seed.as_str(),
        "retry.delay: \"20ms\" → \"1s\"",
        "queued",
        "nothing was changed",
    ] {
        assert!(previewed.contains(expected), "{expected}: {previewed}");
    }
    check(&home, &[fixed]);

    let reason = ["--reason", "asked by mail"];
    let made = set(&[&wanted[..], &reason].concat()).code(0).out;
    assert!(made.contains("override 1, change 1 of the job"), "{made}");
    // The real change prints the same as the dry run.
    for expected in ["queued; settings change for ", seed.as_str()] {
        assert!(made.contains(expected), "{expected}: {made}");
    }
    set(&["retry.delay=2s", "retry.delay-max=9s"]).code(0);
    assert_eq!(delay(&home, &seed), "2s");

    // Later overrides win: a change of settings that a later override sets, too, has no effect.
    let shift = ["job", "overrides", "job", "--move", "1", "--last"];
    let previewed = home.run(&[&shift[..], &["--check"]].concat()).code(0).out;
    assert!(previewed.contains("\"2s\" → \"1s\""), "{previewed}");
    home.run(&shift).code(0);
    assert_eq!(delay(&home, &seed), "1s");
    let hidden = [
        "job",
        "set",
        "job",
        "--override",
        "2",
        "retry.delay=3s",
        "--check",
        "--json",
    ];
    let hidden = &json_lines(&home.run(&hidden).code(0).out)[0];
    let touched = &hidden["touched"];
    assert_ne!(touched["matched"], 0, "{hidden}");
    assert_eq!(touched["changed"], 0, "{hidden}");

    // One change may replace conditions and settings. The override keeps its number and its place.
    home.run(&[
        "job",
        "set",
        "job",
        "--override",
        "2",
        "--domain",
        "localhost",
        "robots.policy=ignore",
        "--reason",
        "wider",
    ])
    .code(0);
    home.run(&["job", "unset", "job", "--override", "2", "retry"])
        .code(0);
    let first = (
        Some(1),
        host,
        "retry.delay = \"1s\"; retry.delay-max = \"9s\"",
    );
    let second = (
        Some(2),
        r#"{"domain":["localhost"]}"#,
        "robots.policy = \"ignore\"",
    );
    check(&home, &[fixed, second, first]);
    // An override has the reason of its last change, if that change had one. A move does not count.
    let listed = home.run(&["job", "overrides", "job", "--json"]).code(0);
    let listed = json_lines(&listed.out);
    let reasons: Vec<&Value> = listed.iter().map(|one| &one["reason"]).collect();
    assert_eq!(
        reasons,
        [&Value::Null, &Value::Null, &json!("asked by mail")]
    );

    // Invalid changes are refused with the place and a remedy.
    for (refused, code, expected) in [
        (
            &["set", "job", "--override", "7", "retry.delay=1s"][..],
            1,
            "live overrides: 2, 1",
        ),
        (
            &["set", "job", "--override", "1", "retry.delay=soon"],
            2,
            "retry.delay=soon: not a duration",
        ),
        (
            &["set", "job", "--override", "1", "retry.dely=1s"],
            2,
            "did you mean",
        ),
        (&["set", "job", "--override", "1", "a b=1s"], 2, "a b=1s: "),
        (
            &["set", "job", "--override", "1", "workers=3"],
            2,
            "set it for the whole job",
        ),
        (
            &["unset", "job", "--override", "1", "fetch"],
            2,
            "it sets retry.delay, retry.delay-max",
        ),
        (
            &["unset", "job", "--override", "2", "robots"],
            2,
            "`opilio job unset JOB --override NUMBER`",
        ),
        (
            &["overrides", "job", "--move", "2", "--before", "1"],
            1,
            "already in this place",
        ),
        (&["overrides", "job", "--move", "2"], 2, "--before"),
    ] {
        let refused = home.run(&[&["job"], refused].concat()).code(code);
        assert!(refused.err.contains(expected), "{expected}: {refused:?}");
    }
    let mixed = "[[override]]\nmatch.host = ['a.org']\nretry.delay = '1s'\n";
    let mixed = home.run(&["job", "set", "job", "workers=3", mixed]).code(2);
    assert!(mixed.err.contains("either one override or"), "{mixed:?}");
    check(&home, &[fixed, second, first]);

    // Overrides survive a restart, can be changed in a stopped job, and are restored from a checkpoint.
    home.run(&["job", "checkpoint", "job", "--to", "point"])
        .code(0);
    gate.open();
    assert_eq!(running.wait(), 0);
    check(&home, &[fixed, second, first]);
    home.run(&[
        "job",
        "unset",
        "job",
        "--override",
        "1",
        "--reason",
        "fast again",
    ])
    .code(0);
    assert_eq!(delay(&home, &seed), "20ms");
    home.run(&["crawl", "p.toml", "--job", "job", "--quiet"])
        .code(0);
    check(&home, &[fixed, second]);

    let history = home.run(&["job", "history", "job", "--json"]).code(0);
    let history = json_lines(&history.out);
    let seen: Vec<_> = history
        .iter()
        .map(|one| {
            (
                one["id"].as_u64(),
                one["action"].as_str().unwrap(),
                one["reason"].as_str(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (Some(1), "add", Some("asked by mail")),
            (Some(2), "add", None),
            (Some(1), "move", None),
            (Some(2), "change", Some("wider")),
            (Some(2), "change", None),
            (Some(1), "remove", Some("fast again")),
        ]
    );
    let log = job_log(&home);
    for expected in [
        "overrides --move 1 --last",
        "unset --override 1 --reason \"fast again\"",
    ] {
        assert!(log.contains(expected), "{expected}: {log}");
    }
    home.run(&["job", "restore", "point", "job", "--in-place", "--yes"])
        .code(0);
    check(&home, &[fixed, second, first]);
    // Numbers are never reused.
    let next = set(&["robots.policy=obey"]).code(0).out;
    assert!(next.contains("override 8, change 8"), "{next}");
}

#[test]
fn the_api_changes_overrides_for_the_allowed_roles() {
    let home = Home::new();
    let token = home.run(&["token", "new", "lena", "--role", "operator"]);
    let viewer = home.run(&["token", "new", "otto", "--role", "viewer"]);
    let mut daemon = Daemon::start(&home, &[]);
    make(&home, "jobs/x", "http://a.localhost/");
    let base = "/api/v1/jobs/x/overrides";
    let secret = token.code(0).out.trim().to_owned();
    daemon.token = Some(viewer.code(0).out.trim().to_owned());
    let add = |set: &str| json!({"set": [set], "matching": {"host": ["a.localhost"]}});
    let refused = daemon.call("POST", base, Some(add("retry.delay = '2s'")), "");
    assert_eq!(refused.status, 403, "{refused:?}");
    daemon.token = Some(secret);
    let call = |method: &str, at: &str, body: Option<Value>, status: u16| -> Value {
        let answer = daemon.call(method, &format!("{base}{at}"), body, "");
        assert_eq!(answer.status, status, "{method} {at}: {answer:?}");
        serde_json::from_str(&answer.body).unwrap()
    };
    let ids = || {
        let listed = call("GET", "", None, 200);
        let listed = listed["overrides"].as_array().unwrap().clone();
        listed
            .iter()
            .map(|one| one["id"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    let mut previewed = add("retry.delay = '2s'");
    previewed["only_check"] = true.into();
    let previewed = call("POST", "", Some(previewed), 200);
    assert_eq!(previewed["number"], Value::Null, "{previewed}");
    assert!(previewed["touched"]["examined"].is_u64(), "{previewed}");
    assert_eq!(ids(), [0; 0]);
    assert_eq!(
        call("POST", "", Some(add("retry.delay = '2s'")), 200)["override_id"],
        1
    );
    call("POST", "", Some(add("robots.policy = 'ignore'")), 200);
    // No role may set a proxy in a private network or on this machine.
    call(
        "POST",
        "",
        Some(add("fetch.proxy = 'http://127.0.0.1:9/'")),
        403,
    );
    call(
        "PATCH",
        "/1",
        Some(json!({"set": ["fetch.proxy = 'http://127.0.0.1:9/'"]})),
        403,
    );
    call(
        "POST",
        "",
        Some(json!({"set": ["retry.delay = '2s'"], "matching": {}})),
        422,
    );
    call(
        "POST",
        "/2/move",
        Some(json!({"before": 1, "reason": "first"})),
        200,
    );
    assert_eq!(ids(), [2, 1]);
    call("POST", "/2/move", Some(json!({"before": 9})), 404);
    let edited = json!({"set": ["retry.delay = '3s'", "retry.delay-max = '9s'"], "matching": {"time": "22:00-06:00"}});
    let edited = call("PATCH", "/1", Some(edited), 200);
    assert_eq!(edited["changed"][0]["before"], "\"2s\"", "{edited}");
    let listed = call("GET", "", None, 200);
    assert_eq!(
        listed["overrides"][1]["matching"],
        json!({"time": "22:00-06:00"}),
        "{listed}"
    );
    let previewed = call("DELETE", "/1?only_check=true", None, 200);
    assert_eq!(previewed["changed"][0]["after"], Value::Null, "{previewed}");
    call("DELETE", "/1?reason=it%20works", None, 200);
    call("DELETE", "/1", None, 404);
    assert_eq!(ids(), [2]);
    let history = daemon.get("/jobs/x/history");
    let last = history["changes"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["action"], &last["reason"]),
        (&json!("remove"), &json!("it works"))
    );
    assert!(last["by"].as_str().unwrap().starts_with("lena"), "{last}");

    // The address that an administrator allowed stays, and only for the host of the override.
    let loopback = "fetch.allow-addresses=['loopback']";
    home.run(&["job", "set", "jobs/x", "--host", "a.localhost", loopback])
        .code(0);
    let at = format!("/{}", ids().last().unwrap());
    let elsewhere = json!({"matching": {"host": ["b.localhost"]}});
    let refused = call("PATCH", &at, Some(elsewhere), 403);
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("fetch.allow-addresses"), "{detail}");
    call(
        "PATCH",
        &at,
        Some(json!({"set": ["retry.delay = '4s'"]})),
        200,
    );
    call(
        "PATCH",
        &at,
        Some(json!({"unset": ["fetch.allow-addresses"], "matching": {"host": ["b.localhost"]}})),
        200,
    );
}

//! Changes of settings and seeds of an existing job with the command line.

use opilio_stories::{captures, lines};
use serde_json::Value;

use crate::command::Home;
use crate::job::{Gate, job_log, waiting};
use crate::serve::make;

fn json(out: &str) -> Vec<Value> {
    out.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_a_running_crawl_survive_a_restart() {
    let gate = Gate::serve(&[
        ("/", "<a href='/a/b/c/d'>deep</a><a href='/near'>near</a>"),
        ("/near", ""),
        ("/a/b/c/d", ""),
        ("/added", "<a href='/a/b/c/d'>deep</a>"),
    ]);
    let home = Home::new();
    let mut running = waiting(&home, &gate, "").await;
    let seed = gate.url("/");

    // All errors are reported together, and nothing is changed.
    let refused = home
        .run(&[
            "job",
            "set",
            "job",
            "politeness.min-delay=soon",
            "politenes.max-delay=2s",
            "frontier.queue-key=host",
            "plugins.path-depth.component=builtin:path-depth",
            "plugins.path-depth.settings.max=deep",
        ])
        .code(2);
    for message in [
        "politeness.min-delay=soon: not a duration: \"soon\" (write a number and a unit: \"500ms\"",
        "politenes.max-delay=2s: ",
        "did you mean \"politeness\"",
        "frontier.queue-key was frozen when the job was created",
    ] {
        assert!(refused.err.contains(message), "{message}: {refused:?}");
    }
    let kind = home
        .run(&[
            "job",
            "set",
            "job",
            "plugins.path-depth.component=builtin:path-depth",
            "plugins.path-depth.settings.max=deep",
        ])
        .code(2);
    let argument = "plugins.path-depth.settings.max=deep: ";
    assert!(kind.err.contains(argument), "{kind:?}");
    // The error has no position: the parsed text is generated, not written by the operator.
    assert!(!kind.err.contains("set:"), "{kind:?}");
    assert_eq!(home.run(&["job", "history", "job"]).code(0).out, "");
    assert!(!home.job().join("changes").exists());

    // With --check, nothing is changed.
    let checked = home.run(&["job", "set", "job", "--check", "workers=3"]);
    assert!(checked.code(0).out.contains("nothing was changed"));
    assert!(!home.job().join("changes").exists());

    let set = home
        .run(&[
            "job",
            "set",
            "job",
            "plugins.path-depth.component=builtin:path-depth",
            "plugins.path-depth.settings.max=2",
            "retry.delay=30ms",
            "workers=3",
        ])
        .code(0);
    assert!(
        set.out
            .contains("retry.delay = \"30ms\" (was \"20ms\"), at once"),
        "{set:?}"
    );
    assert!(set.out.contains("workers = 3 (was 25), at once"), "{set:?}");
    let later = home.run(&["job", "set", "job", "--check", "archive.prefix=LATER"]);
    let later = later.code(0).out;
    assert!(later.contains("when the job resumes"), "{later}");
    // An override with a domain applies only to URIs that match it.
    home.run(&[
        "job",
        "set",
        "job",
        "--domain",
        "elsewhere.org",
        "retry.delay=7s",
        "retry.delay-max=8s",
    ])
    .code(0);
    let added = gate.url("/added");
    let seeds = home
        .run(&["job", "seeds", "job", "--add", &added, "--add", &seed])
        .code(0);
    assert!(
        seeds
            .out
            .starts_with("seeds: 1 added, 1 known before; SURT prefixes added to the scope: 0"),
        "{seeds:?}"
    );
    home.run(&["job", "seeds", "job", "--add", "no scheme ://"])
        .code(2);
    let foreign = ["job", "seeds", "job", "--add", "http://foreign.invalid/"];
    let refused = home.run(&foreign).code(2);
    let missing = "contact-url is missing, and \"http://foreign.invalid/\" is not on this machine";
    assert!(refused.err.contains(missing), "{refused:?}");
    gate.open();
    assert_eq!(running.wait(), 0);

    // The page four levels down was found twice, and rejected by the setting that was added during the crawl.
    assert_eq!(gate.requests_for("/a/b/c/d"), 0);
    assert_eq!(gate.requests_for("/near"), 1);
    assert_eq!(gate.requests_for("/added"), 1);
    let seeds_file = std::fs::read_to_string(home.job().join("seeds.txt")).unwrap();
    assert_eq!(seeds_file, format!("{seed}\n"));
    assert!(lines(&home.job()).len() > 2);
    assert!(captures(&home.job()).iter().any(|one| one.uri == added));

    let history = json(&home.run(&["job", "history", "job", "--json"]).code(0).out);
    let kinds: Vec<(&Value, &Value)> = history
        .iter()
        .map(|one| (&one["number"], &one["change"]))
        .collect();
    assert_eq!(
        kinds,
        [
            (&1.into(), &"set".into()),
            (&2.into(), &"override".into()),
            (&3.into(), &"add-seeds".into())
        ],
        "{history:?}"
    );
    assert!(history.iter().all(|one| one["by"] != "" && one["at"] != ""));
    assert!(job_log(&home).contains("set \"plugins.path-depth"));

    // The changes also apply to the stopped job, and a later change is appended to them.
    let seeds = json(&home.run(&["job", "seeds", "job", "--json"]).code(0).out);
    let seen: Vec<(&Value, &Value, &Value)> = seeds
        .iter()
        .map(|one| (&one["uri"], &one["origin"], &one["status"]))
        .collect();
    assert_eq!(
        seen,
        [
            (&seed.as_str().into(), &"job".into(), &200.into()),
            (&added.as_str().into(), &"added".into(), &200.into())
        ]
    );
    assert_eq!(seeds[0]["pages"], 2, "{seeds:?}");
    home.run(&["job", "set", "job", "retry.delay=40ms"]).code(0);
    let settings = home.run(&["job", "settings", "job", "retry", "--json"]);
    let settings = json(&settings.code(0).out);
    let mut settings = settings.iter();
    let delay = settings.find(|one| one["key"] == "retry.delay").unwrap();
    assert_eq!(delay["value"], "40ms");
    assert_eq!(delay["effect"], "at-once");
    let file = delay["file"].as_str().unwrap();
    assert!(file.ends_with("changes/000004.toml"), "{file}");

    let explained = home.run(&[
        "job",
        "explain",
        "job",
        &gate.url("/a/b/c/d"),
        "--via",
        &seed,
        "--hops",
        "L",
        "--json",
    ]);
    let explained = &json(&explained.code(0).out)[0];
    assert_eq!(explained["in_scope"], false, "{explained}");
    let answers = explained["scope"].as_array().unwrap();
    let of = |name: &str| answers.iter().find(|one| one["filter"] == name).unwrap();
    assert_eq!(of("path-depth")["answer"], "reject");
    assert_eq!(of("path-depth")["decides"], true);
    assert_eq!(of("surt-scope")["answer"], "accept");
    assert_eq!(of("surt-scope")["decides"], false);

    // Without --via and --hops, those of the discovery apply.
    let near = gate.url("/near");
    let explained = home.run(&["job", "explain", "job", &near, "--json"]);
    let explained = &json(&explained.code(0).out)[0];
    assert_eq!(explained["hops"], "L", "{explained}");
    assert_eq!(explained["via"], *seed, "{explained}");

    // Expert settings are not shown unless they were changed.
    home.run(&["job", "set", "job", "fetch.first-byte-timeout=77s"])
        .code(0);
    home.run(&[
        "job",
        "set",
        "job",
        "--time",
        "02:00-03:00 UTC",
        "politeness.min-delay=9s",
        "politeness.max-delay=9s",
    ])
    .code(0);
    let settings = |more: &[&str]| {
        let explain = ["job", "explain", "job", &near];
        let explained = home.run(&[&explain, more].concat());
        explained.code(0).out
    };
    let (usual, all) = (settings(&[]), settings(&["--expert"]));
    for (key, is_usual) in [
        ("politeness.min-delay", true),
        ("fetch.first-byte-timeout", true),
        ("fetch.keep-alive", false),
    ] {
        assert_eq!(usual.contains(key), is_usual, "{key}: {usual}");
        assert!(all.contains(key), "{key}: {all}");
    }
    let at = |time: &str| settings(&["--at", time]).contains("\"9s\"");
    assert!(at("2026-07-01T02:30:00Z") && !at("2026-07-01T03:30:00Z"));
}

#[test]
fn a_contact_url_given_at_the_creation_of_a_job_is_stored_in_the_job() {
    let home = Home::new();
    let seed = "http://nowhere.example/";
    let url = "https://archive.nowhere.net/bot";
    let make = ["job", "new", "job", "--profile", "snapshot", "--seed", seed];
    // A crawl that leaves the machine needs a contact URL.
    let refused = home.run(&make).code(2);
    assert!(refused.err.contains("contact-url"), "{refused:?}");
    home.run(&[&make[..], &["--contact-url", url]].concat())
        .code(0);
    // Every later command has it: here a change is checked, as a daemon does before it starts the job.
    home.run(&["job", "set", "job", "politeness.min-delay=4s"])
        .code(0);
    let settings = home.run(&["job", "settings", "job", "operator", "--json"]);
    let settings = json(&settings.code(0).out);
    let mut settings = settings.iter();
    let contact = settings.find(|one| one["key"] == "operator.contact-url");
    let contact = contact.unwrap();
    assert_eq!(contact["value"], url, "{contact}");
    let history = home.run(&["job", "history", "job"]).code(0).out;
    assert!(history.contains("who created the job"), "{history}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contact_url_given_when_a_job_is_resumed_is_stored_once() {
    let gate = Gate::serve(&[("/", "")]);
    gate.open();
    let home = Home::new();
    home.profile("");
    let seed = gate.url("/");
    let crawl = [
        "crawl", "p.toml", "--quiet", "--job", "job", "--seed", &seed,
    ];
    home.run(&crawl).code(0);
    let url = "https://archive.nowhere.net/bot";
    for _ in 0..2 {
        home.run(&[&crawl[..], &["--contact-url", url]].concat())
            .code(0);
    }
    let settings = home.run(&["job", "settings", "job", "operator"]).code(0);
    assert!(settings.out.contains(url), "{settings:?}");
    let history = home.run(&["job", "history", "job"]).code(0).out;
    assert_eq!(history.matches("who resumed").count(), 1, "{history}");
}

#[test]
fn a_seed_on_another_machine_is_accepted_only_with_a_contact_url() {
    let home = Home::new();
    home.profile("");
    let own = "http://localhost/";
    let make = ["job", "new", "job", "--profile", "p.toml", "--seed", own];
    home.run(&make).code(0);
    let add = ["job", "seeds", "job", "--add", "http://nowhere.example/"];
    let refused = home.run(&add).code(2);
    assert!(
        refused.err.contains("contact-url is missing"),
        "{refused:?}"
    );
    assert!(!home.job().join("added-seeds.txt").exists());

    let contact = "operator.contact-url=https://archive.nowhere.net/bot";
    home.run(&["job", "set", "job", contact]).code(0);
    let added = home.run(&add).code(0);
    assert!(
        added.out.contains("min-delay is 0s: many webmasters"),
        "{added:?}"
    );
    assert!(added.out.contains("seeds: 1 added"), "{added:?}");
}

#[test]
fn unknown_setting_names_are_refused_with_similar_names() {
    let home = Home::new();
    make(&home, "job", "http://a.localhost/");
    for (name, close) in [
        ("min-delay", "politeness.min-delay"),
        ("polteness", "similar names: politeness"),
        ("politeness.mindelay", "politeness.min-delay"),
        ("retry.min-delay-server", "unknown setting"),
        ("zebra", "--expert lists all settings"),
    ] {
        for more in [&[][..], &["--json"]] {
            let command = [&["job", "settings", "job", name], more].concat();
            let refused = home.run(&command).code(2);
            assert!(refused.err.contains(close), "{name}: {refused:?}");
            assert_eq!(refused.out, "", "{name}");
        }
    }
}

#[test]
fn a_change_that_changes_nothing_is_refused() {
    let home = Home::new();
    make(&home, "job", "http://a.localhost/");
    for more in [&[][..], &["workers=3"]] {
        let set = [&["job", "set", "job", "override=[]"], more].concat();
        let none = home.run(&set).code(2);
        assert!(none.err.contains("this adds none"), "{none:?}");
        assert!(none.err.contains("--host"), "{none:?}");
    }
    let none = home.run(&["job", "set", "job", "# nothing"]).code(2);
    assert!(none.err.contains("no settings given"), "{none:?}");
    assert!(!home.path().join("job/changes").exists());
    let one = "override=[{match={host=['a.localhost']},retry={delay='1s'}}]";
    home.run(&["job", "set", "job", one]).code(0);
}

#[test]
fn a_note_is_printed_for_the_change_that_causes_it_and_for_no_later_change() {
    let home = Home::new();
    make(&home, "job", "http://a.localhost/");
    let seed = ["job", "seeds", "job", "--add", "http://elsewhere.example/"];
    home.run(&[
        "job",
        "set",
        "job",
        "operator.contact-url=https://archive.kb.nl/crawl",
    ])
    .code(0);
    home.run(&seed).code(0);
    let note = "many webmasters";
    let noted = home.run(&[
        "job",
        "set",
        "job",
        "politeness.min-delay=1ms",
        "politeness.max-delay=1s",
    ]);
    assert!(noted.code(0).out.contains(note));
    let refused = home.run(&["job", "set", "job", "workers=none"]).code(2);
    assert!(!refused.err.contains(note), "{refused:?}");
    let own = [
        "job",
        "set",
        "job",
        "workers=none",
        "politeness.min-delay=2ms",
    ];
    let refused = home.run(&own).code(2);
    assert!(refused.err.contains("workers"), "{refused:?}");
}

//! `opilio simulate`: complete runs on small webs, reproducible results, comparisons, and refused input.

use serde_json::{Value, json};

use crate::command::{Ended, Home};

/// Ten pages that never change and ten that change every other day, all known at the start.
const WEB: &str = r#"
days = "30d"
warm-up = "10d"
budget = { visits = 2.0 }

[[site]]
name = "still"
pages = 10
known = true
[[site.page]]
change = { process = "never" }

[[site]]
name = "moving"
pages = 10
known = true
[[site.page]]
change = { process = "periodic", per-day = 0.5 }
clock = 1.0
last-modified = { honest = 1.0 }
"#;

/// Returns a profile that visits every page after a number of hours.
fn fixed(hours: u32) -> String {
    format!("strategy = \"fixed\"\nrevisit.fixed-wait = \"{hours}h\"\n")
}

fn simulated(home: &Home, arguments: &[&str]) -> Ended {
    home.run(&[&["simulate"], arguments].concat())
}

#[track_caller]
fn json(ended: Ended) -> Value {
    serde_json::from_str(&ended.code(0).out).unwrap()
}

/// A page that changes every other day and is visited daily is stale from the change to the visit, once in two days; half of the
/// pages never change. So freshness is 1 − delay/4 for all phases, and no version is missed.
#[test]
fn freshness_follows_from_the_delay_of_captures() {
    let home = Home::new();
    home.file("web.toml", WEB);
    home.file("daily.toml", fixed(24));
    let arguments = ["web.toml", "--profile", "daily.toml", "--json"];
    let ended = simulated(&home, &arguments).code(0);
    let again = simulated(&home, &arguments).code(0);
    assert_eq!(ended.out, again.out);
    let other = simulated(&home, &[&arguments[..], &["--seed", "2"]].concat()).code(0);
    assert_ne!(ended.out, other.out);
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    let number = |name: &str| report[name].as_f64().unwrap();
    let expected = 1.0 - number("delay") / 4.0;
    assert!((number("freshness") - expected).abs() < 0.01, "{report}");
    assert!(number("captures") > 0.9, "{report}");
    assert!((number("versions") - 100.0).abs() <= 10.0, "{report}");
    let visits = &report["visits"];
    assert_eq!(visits["too_soon"], 0, "{report}");
    assert_eq!(visits["faults"], 0, "{report}");
    assert!(visits["not_modified"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["starved"], 0, "{report}");
}

#[test]
fn profiles_are_compared_on_the_same_webs_and_drawn() {
    let home = Home::new();
    home.file("web.toml", WEB);
    home.file("daily.toml", fixed(24));
    home.file("weekly.toml", fixed(168));
    let arguments = [
        "compare",
        "daily.toml",
        "weekly.toml",
        "--scenario",
        "web.toml",
    ];
    let more = ["--seeds", "2", "--plots", "plots", "--json"];
    let comparison = json(simulated(&home, &[&arguments[..], &more].concat()));
    let best = |name: &str| {
        let measures = comparison["measures"].as_array().unwrap();
        let found = measures.iter().find(|row| row["measure"] == name);
        found.unwrap()["best"].clone()
    };
    assert_eq!(best("freshness"), "daily.toml", "{comparison:#}");
    assert_eq!(best("requests"), "weekly.toml", "{comparison:#}");
    for name in ["freshness.svg", "waits.svg"] {
        let drawing = std::fs::read_to_string(home.path().join("plots").join(name)).unwrap();
        assert!(drawing.starts_with("<svg"), "{drawing}");
        assert!(drawing.contains(">weekly<"), "{drawing}");
    }
}

/// Most of these pages exist for a tenth of the time: a plan with visits in all of the time would be far worse than one that
/// takes the lifetime of pages into account.
#[test]
fn the_oracle_takes_the_lifetime_of_pages_into_account() {
    let home = Home::new();
    home.file(
        "web.toml",
        r#"
days = "60d"
warm-up = "10d"
budget = { visits = 2.0 }

[[site]]
name = "news"
pages = 10
growth = 2
life = "5d"
[[site.page]]
change = { process = "poisson", per-day = 0.5 }
"#,
    );
    home.file("often.toml", fixed(8));
    let report = json(simulated(
        &home,
        &["web.toml", "--profile", "often.toml", "--json"],
    ));
    let oracle = |name: &str| report["oracle"][name].as_f64().unwrap();
    for goal in ["freshness", "captures"] {
        let of_best = report[format!("{goal}_of_best")].as_f64().unwrap();
        assert!((0.2..1.0).contains(&of_best), "{goal}: {report:#}");
        let (formula, tried) = (oracle(goal), oracle(&format!("{goal}_tried")));
        assert!((formula - tried).abs() < 0.04, "{goal}: {report:#}");
    }
}

#[test]
fn invalid_input_is_refused_before_a_simulation_runs() {
    let home = Home::new();
    home.file("web.toml", WEB);
    home.file("bad.toml", WEB.replace("known = true", "knwon = true"));
    home.file("latin.toml", b"name = \"Caf\xe9\"");
    let beside = [
        "compare",
        "continuous",
        "none.toml",
        "--scenario",
        "web.toml",
    ];
    for (arguments, expected) in [
        (&beside[..], "none.toml"),
        (
            &["web.toml", "--budget", "-1"],
            "--budget: -1 visits per page and day",
        ),
        (
            &["web.toml", "--days", "5"],
            "--days: nothing is left to be measured: 5 days",
        ),
        (
            &["web.toml", "--budget", "0"],
            "--budget: 0 visits per page and day",
        ),
        (&["bad.toml"], "did you mean \"known\""),
        (&["none"], "none: cannot be read"),
        (&["none"], "shipped one: blogs, bursts"),
        (&["."], ".: cannot be read"),
        (&["latin.toml"], "latin.toml: not UTF-8"),
        (&["web.toml", "--profile", "none.toml"], "none.toml"),
        (
            &["compare", "continuous", "--scenario", "web.toml"],
            "PROFILE",
        ),
    ] {
        let ended = simulated(&home, arguments).code(2);
        assert!(ended.err.contains(expected), "{}", ended.err);
        assert!(!ended.err.contains("web 1 of"), "{}", ended.err);
    }
    for arguments in [
        &["web.toml"][..],
        &[
            "compare",
            "continuous",
            "continuous",
            "--scenario",
            "web.toml",
        ],
    ] {
        let plots = ["--plots", "web.toml/drawings"];
        let ended = simulated(&home, &[arguments, &plots].concat()).code(1);
        let expected = "pass a writable folder with --plots";
        assert!(ended.err.contains(expected), "{}", ended.err);
        assert!(!ended.err.contains("web 1 of"), "{}", ended.err);
    }
}

/// A measure without data has no value and no best profile.
#[test]
fn a_measure_without_data_has_no_value() {
    let home = Home::new();
    home.file("web.toml", WEB);
    home.file("daily.toml", fixed(24));
    home.file(
        "idle.toml",
        "strategy = \"fixed\"\nrevisit.fixed-wait = \"5200w\"\nrevisit.max-wait = \"5200w\"\n",
    );
    let arguments = [
        "compare",
        "daily.toml",
        "idle.toml",
        "--scenario",
        "web.toml",
    ];
    let comparison = json(simulated(
        &home,
        &[&arguments[..], &["--seeds", "2", "--json"]].concat(),
    ));
    for name in ["delay", "overdue", "wasted"] {
        let measures = comparison["measures"].as_array().unwrap();
        let row = measures.iter().find(|row| row["measure"] == name).unwrap();
        assert_eq!(row["best"], Value::Null, "{comparison:#}");
        let idle = &row["profiles"][1]["value"]["mean"];
        assert_eq!(idle, &Value::Null, "{comparison:#}");
    }

    let web = WEB.replace(
        "process = \"periodic\", per-day = 0.5",
        "process = \"never\"",
    );
    home.file("still.toml", web);
    let arguments = ["still.toml", "--profile", "daily.toml"];
    let report = json(simulated(&home, &[&arguments[..], &["--json"]].concat()));
    assert_eq!(report["captures_of_best"], Value::Null, "{report:#}");
    assert_eq!(report["delay"], Value::Null, "{report:#}");
    let text = simulated(&home, &arguments).code(0).out;
    assert!(text.contains("nothing changed"), "{text}");
}

/// Waits that the limits correct are counted from the first visit on.
#[test]
fn corrected_waits_are_counted_in_the_warm_up_too() {
    let home = Home::new();
    home.file("web.toml", WEB);
    let evaluator = |wait: &str| {
        format!(
            "extends = \"continuous\"\nrevisit.min-wait = \"12h\"\nrevisit.max-wait = \"52w\"\nstacks.wait = [\"fixed\"]\nplugins.fixed = {{ component = \"builtin:fixed\", settings = {{ wait = \"{wait}\" }} }}\n"
        )
    };
    home.file("long.toml", evaluator("500w"));
    home.file("short.toml", evaluator("1h"));
    let visits = |profile: &str| {
        let arguments = ["web.toml", "--profile", profile, "--json"];
        json(simulated(&home, &arguments))["visits"].clone()
    };
    let long = visits("long.toml");
    assert_eq!(
        (&long["waits"], &long["too_long"]),
        (&20.into(), &20.into())
    );
    let short = visits("short.toml");
    assert_eq!(short["waits"], short["too_short"], "{short:#}");
    assert!(short["waits"].as_u64().unwrap() > 20 * 50, "{short:#}");
}

/// Five of the ten pages of a site are not fetched and use no budget; the other pages and the other site are not affected. The
/// filter is not called for prerequisites of a visit: without its robots.txt, no page of the site would be visited.
#[test]
fn uris_that_a_pre_fetch_filter_rejects_are_not_requested() {
    let home = Home::new();
    home.file("web.toml", WEB);
    let refusing = "[stacks]\npre-fetch = [\"closed\"]\n[plugins.closed]\ncomponent = \"builtin:regex-list\"\n\
        settings = { patterns = ['moving.*/(p-?[0-4]|robots\\.txt)$'], then = \"reject\" }\n";
    home.file("all.toml", fixed(24));
    home.file("some.toml", format!("{}{refusing}", fixed(24)));
    let report = |profile: &str| {
        let arguments = ["web.toml", "--profile", profile, "--json"];
        json(simulated(&home, &arguments))
    };
    let (all, some) = (report("all.toml"), report("some.toml"));
    assert_eq!((&all["starved"], &some["starved"]), (&json!(0), &json!(5)));
    let visits = |report: &Value| report["visits"]["pages"].as_f64().unwrap();
    assert!((visits(&some) / visits(&all) - 0.75).abs() < 0.01, "{some}");
    assert_eq!(some["visits"]["failed"], 0, "{some}");
    assert_eq!(some["visits"]["faults"], 0, "{some}");
}

/// URIs have the name of their kind of page, so a profile can give a kind its importance.
#[test]
fn precedence_gives_pages_their_importance() {
    let home = Home::new();
    let web = r#"
days = "60d"
warm-up = "20d"
budget = { visits = 0.5 }
[[site]]
name = "news"
pages = 100
known = true
[[site.page]]
name = "lead"
importance = 10
change = { process = "poisson", per-day = 0.5 }
[[site.page]]
name = "rest"
change = { process = "poisson", per-day = 0.5 }
"#;
    home.file("web.toml", web);
    let plain = "extends = \"continuous\"\nstacks.wait = [\"budgeted\"]\nplugins.budgeted = { component = \"builtin:budgeted\", settings = { theta = 0.0 } }\n";
    home.file("plain.toml", plain);
    let rank = "uri = { precedence = 20, precedence-policy = \"base\" }\n[[override]]\nmatch.regex = '/lead-'\nuri.precedence = 0\n";
    home.file("ranked.toml", format!("{plain}{rank}"));
    let captures = |profile: &str| {
        let arguments = ["web.toml", "--profile", profile, "--json"];
        json(simulated(&home, &arguments))["captures"]
            .as_f64()
            .unwrap()
    };
    let (plain, ranked) = (captures("plain.toml"), captures("ranked.toml"));
    assert!(ranked > 1.1 * plain, "{ranked} {plain}");
}

/// Pages that change fifty times a day and are visited once a day: each is fresh for one 50th of a day after a visit.
#[test]
fn the_best_freshness_with_a_budget_is_never_zero() {
    let home = Home::new();
    let web = WEB.replace("visits = 2.0", "visits = 1.0");
    let web = web.replace("process = \"never\"", "process = \"poisson\", per-day = 50");
    let web = web.replace(
        "process = \"periodic\", per-day = 0.5",
        "process = \"poisson\", per-day = 50",
    );
    home.file("web.toml", web);
    home.file("daily.toml", fixed(24));
    let arguments = ["web.toml", "--profile", "daily.toml"];
    let report = json(simulated(&home, &[&arguments[..], &["--json"]].concat()));
    let best = report["oracle"]["freshness"].as_f64().unwrap();
    assert!((best - 0.02).abs() < 1e-6, "{report:#}");
    let of_best = report["freshness_of_best"].as_f64().unwrap();
    assert!((of_best - 1.0).abs() < 0.3, "{report:#}");
    let text = simulated(&home, &arguments).code(0).out;
    assert!(!text.contains("inf") && !text.contains("NaN"), "{text}");
}

/// All requests to a server fail. Those for its robots.txt do not count against the budget.
#[test]
fn requests_for_robots_txt_do_not_use_the_budget_even_if_they_fail() {
    let home = Home::new();
    home.file(
        "web.toml",
        WEB.replace("pages = 10", "pages = 10\nfailures = 1.0"),
    );
    home.file("daily.toml", fixed(24));
    let arguments = ["web.toml", "--profile", "daily.toml", "--json"];
    let report = json(simulated(&home, &arguments));
    let visits = &report["visits"];
    assert!(visits["robots"].as_u64().unwrap() > 0, "{report:#}");
    let made = visits["requests"].as_f64().unwrap() - visits["robots"].as_f64().unwrap();
    let allowed = visits["budget"].as_f64().unwrap() * visits["days"].as_f64().unwrap();
    assert_eq!(report["budget_used"], made / allowed, "{report:#}");
    assert_eq!(visits["failed"].as_f64(), Some(made), "{report:#}");
}

#[test]
fn a_scenario_can_start_at_the_first_and_the_last_allowed_date() {
    let home = Home::new();
    home.file("daily.toml", fixed(24));
    for start in ["1970-01-01T00:00:00Z", "8999-12-31T00:00:00Z"] {
        let lists = "known = true\nfeed = \"honest\"\nsitemap = \"honest\"";
        let web = WEB.replace("known = true", lists);
        home.file("web.toml", format!("start = \"{start}\"\n{web}"));
        let arguments = ["web.toml", "--profile", "daily.toml", "--json"];
        let report = json(simulated(&home, &arguments));
        let visits = &report["visits"];
        assert!(visits["pages"].as_u64().unwrap() > 300, "{report:#}");
        // Feeds and sitemaps are visited although no page links to them.
        assert!(visits["lists"].as_u64().unwrap() > 0, "{report:#}");
    }
}

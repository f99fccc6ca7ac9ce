//! `opilio simulate`: whole runs on small webs, the same twice, side by side, and what is refused.

use serde_json::Value;

use crate::command::{Ended, Home};

/// Ten pages that never change, ten that change every other day, all known.
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

/// Visits every page after so many hours.
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
/// pages never change. So freshness is 1 − delay/4, whatever the phases are, and no version is missed.
#[test]
fn freshness_is_what_the_delay_of_captures_makes_it() {
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
    assert_eq!(visits["too-soon"], 0, "{report}");
    assert_eq!(visits["faults"], 0, "{report}");
    assert!(visits["not-modified"].as_u64().unwrap() > 0, "{report}");
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
        assert!(drawing.contains("weekly.toml"), "{drawing}");
    }
}

/// Most of these pages live for a tenth of the time: who planned visits for all of it would do far worse than who finds them.
#[test]
fn nobody_does_better_than_who_knows_when_pages_come_and_go() {
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
        let of_best = report[format!("{goal}-of-best")].as_f64().unwrap();
        assert!((0.2..1.0).contains(&of_best), "{goal}: {report:#}");
        let (formula, tried) = (oracle(goal), oracle(&format!("{goal}-tried")));
        assert!((formula - tried).abs() < 0.04, "{goal}: {report:#}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_runs() {
    let home = Home::new();
    home.file("web.toml", WEB);
    home.file("bad.toml", WEB.replace("known = true", "knwon = true"));
    for (arguments, expected) in [
        (
            &["web.toml", "--days", "5"][..],
            "--days: nothing is left to be measured: 5 days",
        ),
        (
            &["web.toml", "--budget", "0"],
            "--budget: 0 visits per page and day",
        ),
        (&["bad.toml"], "did you mean \"known\""),
        (&["web.toml", "--profile", "none.toml"], "none.toml"),
        (
            &["compare", "continuous", "--scenario", "web.toml"],
            "PROFILE",
        ),
    ] {
        let ended = simulated(&home, arguments).code(2);
        assert!(ended.err.contains(expected), "{}", ended.err);
    }
}

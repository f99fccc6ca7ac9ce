//! Results of wait evaluators on small simulated webs. docs/REVISITING.md has the full measurements. Webs are the same in every
//! run, so results do not vary; the margins leave room for changes of the evaluators.

use std::path::PathBuf;

use serde_json::Value;

use crate::command::Home;

/// Returns the path of a profile that docs/REVISITING.md compares.
fn evaluator(name: &str) -> PathBuf {
    let folder = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../simulate/evaluators"
    ));
    folder.join(name).with_extension("toml")
}

/// Returns a home with this scenario.
fn web(toml: &str) -> Home {
    let home = Home::new();
    home.file("web.toml", toml);
    home
}

/// Runs a simulation and returns its report.
#[track_caller]
fn simulated(home: &Home, profile: PathBuf) -> Value {
    let profile = profile.to_str().unwrap();
    let arguments = ["simulate", "web.toml", "--profile", profile, "--json"];
    let report: Value = serde_json::from_str(&home.run(&arguments).code(0).out).unwrap();
    assert_eq!(report["visits"]["faults"], 0, "{report:#}");
    assert_eq!(report["visits"]["too_soon"], 0, "{report:#}");
    report
}

fn number(report: &Value, name: &str) -> f64 {
    let value = name.split('/').fold(report, |value, name| &value[name]);
    value.as_f64().unwrap()
}

/// The budget is half a visit per page and day: not enough for all changes, but not tiny.
#[test]
fn the_budgeted_evaluator_beats_adaptive_and_is_close_to_the_best_plan() {
    let web = web(r#"
days = "75d"
warm-up = "30d"
budget = { visits = 0.5 }

[[site]]
name = "random"
count = 4
pages = 50
known = true
[[site.page]]
change = { process = "poisson", per-day = 0.1, rates = "lognormal", spread = 1.5 }
"#);
    let [fresh, many, adaptive] =
        ["budgeted-1", "budgeted-0", "adaptive"].map(|name| simulated(&web, evaluator(name)));
    for report in [&fresh, &many, &adaptive] {
        let used = number(report, "budget_used");
        assert!(used < 1.01, "{used}: {report:#}");
    }
    let of = |name| [&fresh, &many, &adaptive].map(|report| number(report, name));
    let [best, _, other] = of("freshness_of_best");
    assert!(best > 0.94 && best > other + 0.03, "{best} {other}");
    let [_, best, other] = of("captures_of_best");
    assert!(best > 0.88 && best > other + 0.08, "{best} {other}");
}

/// Changes with a rhythm of day and night, in bursts, and announced by honest feeds, which the best plan does not read. Compares
/// freshness with one goal, and captured versions with the other, to the best plan.
#[test]
fn the_budgeted_evaluator_is_close_to_the_best_plan_and_better_with_feeds() {
    let rhythm =
        "process = \"rhythm\", per-day = 0.2, rates = \"lognormal\", spread = 1.5, quiet = 0.05";
    let bursts = "process = \"bursts\", per-day = 0.05, rates = \"lognormal\", spread = 1.0, bursts-per-year = 12, \
                  burst-length = \"5d\", burst-factor = 30";
    let announced = "process = \"poisson\", per-day = 0.05, rates = \"lognormal\", spread = 1.5";
    for (change, site, days, freshness, captures) in [
        (rhythm, "known = true", 60, 0.96, 0.96),
        (bursts, "known = true", 90, 0.96, 0.90),
        (announced, "feed = \"honest\"", 60, 1.02, 0.97),
    ] {
        let web = web(&format!(
            r#"
days = "{days}d"
warm-up = "30d"
budget = {{ visits = 1.0 }}

[[site]]
name = "site"
count = 2
pages = 50
{site}
[[site.page]]
change = {{ {change} }}
"#
        ));
        let fresh = simulated(&web, evaluator("budgeted-1"));
        let of_best = number(&fresh, "freshness_of_best");
        assert!(of_best > freshness, "{change}: {fresh:#}");
        let many = simulated(&web, evaluator("budgeted-0"));
        let of_best = number(&many, "captures_of_best");
        assert!(of_best > captures, "{change}: {many:#}");
    }
}

/// A front page and its sections change with each of six new pages a day. Keeping them fresh would cost too much, but new pages are
/// found only by visiting them.
#[test]
fn pages_that_lead_to_new_pages_are_still_visited() {
    let web = web(r#"
days = "40d"
warm-up = "20d"
budget = { visits = 1.0 }

[[site]]
name = "news"
pages = 60
growth = 6
life = "10d"
[[site.page]]
change = { process = "poisson", per-day = 0.2 }
"#);
    let report = simulated(&web, evaluator("budgeted-1"));
    let (found, born) = (number(&report, "found"), number(&report, "born"));
    assert!(found > 0.65 * born, "{found} of {born}: {report:#}");
    let of_best = number(&report, "freshness_of_best");
    assert!((0.7..1.0).contains(&of_best), "{report:#}");
}

/// A site that answers in 20 seconds, with a delay of five, allows about 3,500 visits a day. The budget is five times as large, and
/// every page changes twice an hour.
#[test]
fn a_large_budget_does_not_exceed_politeness() {
    let web = web(r#"
days = "1d"
warm-up = "6h"
budget = { visits = 60 }

[[site]]
name = "slow"
pages = 300
known = true
response = "20s"
[[site.page]]
change = { process = "poisson", per-day = 50 }
"#);
    for name in ["budgeted-0", "budgeted-1", "adaptive"] {
        let report = simulated(&web, evaluator(name));
        let used = number(&report, "budget_used");
        assert!(used < 0.5, "{name}: {used}: {report:#}");
        let gap = number(&report, "visits/smallest_gap");
        assert!(gap >= 5.0, "{name}: {gap}");
    }
}

/// Every response has different bytes, and a page changes once in five days.
#[test]
fn a_stripped_clock_does_not_count_as_a_change() {
    let web = web(r#"
days = "50d"
warm-up = "10d"
budget = { visits = 1 }

[[site]]
name = "clock"
count = 2
pages = 25
known = true
[[site.page]]
change = { process = "poisson", per-day = 0.2 }
clock = 1.0
"#);
    let bare = "extends = \"continuous\"\n[stacks]\ndigest = []\n";
    let bare = simulated(&web, web.file("bare.toml", bare));
    let stripped = simulated(
        &web,
        web.file("stripped.toml", "extends = \"continuous\"\n"),
    );
    assert_eq!(number(&bare, "visits/unchanged"), 0.0, "{bare:#}");
    // All pages that were found changed had really changed.
    let changed = number(&stripped, "visits/changed");
    assert_eq!(changed, number(&stripped, "captured"), "{stripped:#}");
    assert!(
        number(&stripped, "visits/unchanged") > changed,
        "{stripped:#}"
    );
    let stored = |report| number(report, "visits/stored");
    assert!(
        stored(&bare) > 3.0 * stored(&stripped),
        "{bare:#} {stripped:#}"
    );
}

//! Results of wait evaluators on small webs: docs/REVISITING.md has the whole measurement. Webs are simulated, the same at every
//! run, so figures here are not subject to chance; margins are for evaluators that are made better at something else.

use std::path::PathBuf;

use serde_json::Value;

use crate::command::Home;

/// A profile of those that the documented table compares.
fn evaluator(name: &str) -> PathBuf {
    let folder = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../simulate/evaluators"
    ));
    folder.join(name).with_extension("toml")
}

/// A home for simulations of this web.
fn web(toml: &str) -> Home {
    let home = Home::new();
    home.file("web.toml", toml);
    home
}

/// The report of one simulation.
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

/// Half a visit per page and day: neither enough for everything nor next to nothing.
#[test]
fn who_shares_out_a_budget_beats_who_multiplies_waits_and_comes_near_to_the_best() {
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

/// By day and night, in bursts, and told by honest feeds, of which the best plan reads none: freshness with one goal and versions
/// with the other, each of the best's.
#[test]
fn it_comes_near_to_the_best_by_day_and_in_bursts_and_beyond_it_with_feeds() {
    let rhythm =
        "process = \"rhythm\", per-day = 0.2, rates = \"lognormal\", spread = 1.5, quiet = 0.05";
    let bursts = "process = \"bursts\", per-day = 0.05, rates = \"lognormal\", spread = 1.0, bursts-per-year = 12, \
                  burst-length = \"5d\", burst-factor = 30";
    let told = "process = \"poisson\", per-day = 0.05, rates = \"lognormal\", spread = 1.5";
    for (change, site, days, freshness, captures) in [
        (rhythm, "known = true", 60, 0.96, 0.96),
        (bursts, "known = true", 90, 0.96, 0.90),
        (told, "feed = \"honest\"", 60, 1.02, 0.97),
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

/// A front page and its sections change with each of six new pages a day: too often to be kept fresh at that price, and nothing
/// new is found but by visiting them.
#[test]
fn what_leads_to_new_pages_is_not_given_up_for_the_freshness_of_the_others() {
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

/// A site that answers in 20 seconds and rests for five has at most some 3,500 visits a day. Five times as many are paid
/// for, and every page changes twice an hour.
#[test]
fn no_budget_buys_visits_that_politeness_forbids() {
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

/// Every answer has other bytes than the one before, and a page changes once in five days.
#[test]
fn a_clock_is_no_news_where_it_is_stripped() {
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
    // Each page found changed is one that has changed.
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

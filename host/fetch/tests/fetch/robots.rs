//! Cases of robots.txt files with the answers of Heritrix. If RFC 9309 requires another one, `expected` has the answer of the
//! standard, `predecessor` that of Heritrix, and `reason` the clause.

use opilio_fetch::robots::Robots;
use serde_json::Value;

#[track_caller]
fn check(case: &Value) -> Result<(), String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let robots = Robots::parse(text(&case["options"]["robots_txt"]).as_bytes());
    let agent = text(&case["options"]["user_agent"]);
    let answer: Value = match case["op"].as_str().unwrap() {
        "robots_allows" => robots
            .verdict(&agent, &text(&case["input"]))
            .is_allowed()
            .into(),
        "robots_crawl_delay" => robots
            .crawl_delay(&agent)
            .map_or(-1.0, |d| d.as_secs_f64())
            .into(),
        other => panic!("{other}"),
    };
    match case["expected"] == answer {
        true => Ok(()),
        false => Err(format!(
            "{}: {answer} instead of {}",
            case["id"], case["expected"]
        )),
    }
}

#[test]
fn all_cases_pass() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../cases/robots.json")).unwrap();
    assert!(cases.len() >= 38, "{}", cases.len());
    let faults: Vec<String> = cases.iter().filter_map(|case| check(case).err()).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn differences_from_heritrix_have_a_reason() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../cases/robots.json")).unwrap();
    for case in cases {
        assert_eq!(
            case["predecessor"].is_null(),
            case["reason"].is_null(),
            "{case}"
        );
        assert_ne!(case["predecessor"], case["expected"], "{case}");
    }
}

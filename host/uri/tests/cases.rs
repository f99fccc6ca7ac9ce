//! Runs every input/expected pair of `tests/cases/*.json`.
//!
//! A case passes if our answer is the expected one; if both are URIs, their normalised forms are compared. If our answer differs
//! and is better, the case has that answer (`ours`) and the reason for it (`reason`). Such a case fails once the two answers are
//! equal. Operations that Opilio does not need have no cases here: guesses at strings of scripts, look-up sequences, Safe
//! Browsing's form.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::borrow::Cow;

use opilio_uri::{Rule, SurtPrefixSet, Uri, cdx_key, implied_surt_prefix, surt_of};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Case {
    id: String,
    op: String,
    base: Option<String>,
    input: String,
    #[serde(default)]
    options: Value,
    #[serde(default)]
    expected: Value,
    r#match: String,
    ours: Option<Value>,
    reason: Option<String>,
}

#[test]
fn uri_cases() {
    run(include_str!("cases/uri.json"));
}

#[test]
fn canonicalisation_cases() {
    run(include_str!("cases/canon.json"));
}

#[test]
fn surt_cases() {
    run(include_str!("cases/surt.json"));
}

#[track_caller]
fn run(file: &str) {
    let cases: Vec<Case> = serde_json::from_str(file).unwrap();
    let failures: Vec<String> = cases.iter().filter_map(failure).collect();
    assert!(
        failures.is_empty(),
        "{} of {}:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

fn failure(case: &Case) -> Option<String> {
    let answer = answer(case);
    let expected = match case.r#match.as_str() {
        "rejected" => Value::Null,
        "equals" if is_uri_op(&case.op) => normalised(&case.expected),
        "equals" => case.expected.clone(),
        other => return Some(format!("{}: no such match: {other}", case.id)),
    };
    let passes = match (&case.ours, &case.reason) {
        (None, None) => answer == expected,
        (Some(ours), Some(reason)) => answer == *ours && answer != expected && !reason.is_empty(),
        _ => false,
    };
    (!passes).then(|| {
        format!(
            "{} {} {:?}: {answer}, expected {expected}",
            case.id, case.op, case.input
        )
    })
}

fn is_uri_op(op: &str) -> bool {
    matches!(op, "normalize" | "resolve")
}

fn normalised(expected: &Value) -> Value {
    expected
        .as_str()
        .and_then(|text| Uri::parse(text).ok())
        .map_or(Value::Null, |uri| json!(uri))
}

/// Computes our answer to a case. Null means that the input is refused.
fn answer(case: &Case) -> Value {
    let input = case.input.as_str();
    match case.op.as_str() {
        "normalize" if case.options["charset"] == "ISO-8859-1" => {
            let base = Uri::parse("http://base.example/").unwrap();
            json!(base.join_encoded(input, &latin1).ok())
        }
        "normalize" => json!(Uri::parse(input).ok()),
        "resolve" => json!(
            Uri::parse(case.base.as_deref().unwrap())
                .unwrap()
                .join(input)
                .ok()
        ),
        "implied" => match rule(&case.options).apply(input) {
            Cow::Owned(implied) => json!(implied),
            Cow::Borrowed(_) => Value::Null,
        },
        "cdx_key" => json!(cdx_key(input)),
        "from_uri" => json!(surt_of(input)),
        "seed_to_prefix" => json!(implied_surt_prefix(input).ok()),
        "prefix_set_contains_prefix_of" => {
            let set = SurtPrefixSet::parse(case.options["list"].as_str().unwrap()).unwrap();
            json!(set.covers(input))
        }
        op if op.starts_with("rule:") => json!(rule(&case.options).apply(input)),
        other => json!(format!("no such operation: {other}")),
    }
}

fn rule(options: &Value) -> Rule {
    let text = |name: &str| options[name].as_str();
    match text("rule").unwrap_or("RegexRule") {
        "LowercaseRule" => Rule::Lowercase,
        "StripUserinfoRule" => Rule::StripUserinfo,
        "StripWWWRule" => Rule::StripWww,
        "StripWWWNRule" => Rule::StripWwwN,
        "StripSessionIDs" => Rule::StripSessionIds,
        "StripSessionCFIDs" => Rule::StripSessionCfids,
        "FixupQueryString" => Rule::FixupQuery,
        "StripExtraSlashes" => Rule::StripExtraSlashes,
        "RegexRule" => Rule::regex(
            text("regex").unwrap_or("(.*)"),
            text("format").unwrap_or("$1"),
        )
        .unwrap(),
        other => panic!("no such rule: {other}"),
    }
}

/// Encodes text in ISO-8859-1. Other characters become question marks.
fn latin1(text: &str) -> Cow<'_, [u8]> {
    Cow::Owned(
        text.chars()
            .map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?'))
            .collect(),
    )
}

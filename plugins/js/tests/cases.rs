//! Cases of Heritrix. A `reason` marks a case whose expected answer is better than that of Heritrix. Strings resolve against
//! the page that runs the script (`via`), imports and source maps against the script itself.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use opilio_js::script;
use opilio_plugin::testing::document;
use proptest::prelude::*;
use serde::Deserialize;
use url::Url;

#[derive(Deserialize)]
struct Case {
    id: String,
    input: String,
    base: String,
    via: String,
    content_type: String,
    expected: Vec<String>,
}

#[test]
fn golden_cases_pass() {
    opilio_plugin::testing::check_cases(&opilio_js::plugins(), "cases");
}

#[test]
fn every_heritrix_case_passes() {
    let cases: Vec<Case> =
        serde_json::from_str(include_str!("../cases/predecessor/cases.json")).unwrap();
    assert!(cases.len() >= 17);
    let plugin = opilio_js::plugins().configure("js", "{}").unwrap();
    let mut failed = Vec::new();
    for case in cases {
        let document = document(&case.base)
            .base(&case.via)
            .media_type(&case.content_type)
            .text(&case.input);
        let base = Url::parse(&document.base()).unwrap();
        let found: BTreeSet<String> = plugin.extract(&[document])[0]
            .links
            .iter()
            .map(|link| {
                let own_base = link.base.as_deref().map(|own| Url::parse(own).unwrap());
                let mut uri = own_base.as_ref().unwrap_or(&base).join(&link.uri).unwrap();
                uri.set_fragment(None);
                uri.to_string()
            })
            .collect();
        let expected: BTreeSet<String> = case
            .expected
            .iter()
            .map(|uri| {
                Url::parse(uri.trim_start_matches("X "))
                    .unwrap()
                    .to_string()
            })
            .collect();
        if found != expected {
            failed.push(format!(
                "{}: expected {expected:?}, found {found:?}",
                case.id
            ));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn settings_exclude_relative_references_and_source_maps() {
    let plugin = opilio_js::plugins()
        .configure("js", r#"{"relative":false,"source-maps":false}"#)
        .unwrap();
    let document = document("http://example.org/a.js")
        .text("['b.png','/c.png','http://example.org/d']\n//# sourceMappingURL=a.map");
    let links = plugin.extract(&[document]).remove(0).links;
    assert_eq!(
        links
            .iter()
            .map(|link| link.uri.as_str())
            .collect::<Vec<_>>(),
        ["/c.png", "http://example.org/d"]
    );
}

proptest! {
    #[test]
    fn any_text_is_read(text in "[a-z/'\"`$\\\\{}()<>=+ \n.é]{0,80}", other in "\\PC{0,40}") {
        let text = text + &other;
        for found in script::read(&text) {
            prop_assert!(!found.uri.is_empty());
        }
    }
}

#[test]
fn hostile_input_takes_linear_time() {
    /// Size of an input. One takes about a second; in quadratic time it would take hours. Debug builds use less.
    const BYTES: usize = if cfg!(debug_assertions) {
        1024 * 1024
    } else {
        10 * 1024 * 1024
    };
    const TIME_MAX: Duration = Duration::from_secs(30);
    for piece in [
        "'",
        "\"'",
        "`",
        "`${",
        "`${`",
        "/[",
        "=/",
        "=/[/",
        "/*",
        "//",
        "\\'",
        "\\\\'",
        "'\\'",
        "\"\\\\'\"",
        "'<a href='+",
        "'<a =",
        "(",
        "{",
        "a+'b'+",
        "'x'+",
        "'\\x2f'",
        "\"'/a.b\"",
        "<!--",
        "'/a.html',",
        "\\",
        "$",
        "`<a href=\"/x\">`",
        "import'./a'",
        "\"{\\\"a\\\":\\\"/b/c\\\"}\"",
    ] {
        let text = piece.repeat(BYTES / piece.len());
        let start = Instant::now();
        assert!(script::read(&text).len() <= text.len());
        assert!(start.elapsed() < TIME_MAX, "{piece}: {:?}", start.elapsed());
    }
    // Longer strings are not searched.
    let nested = format!("x = \"{}\"", "\\\"/a.b\\\"".repeat(1_000_000 / 8));
    let start = Instant::now();
    assert!(!script::read(&nested).is_empty());
    assert!(start.elapsed() < TIME_MAX, "nested: {:?}", start.elapsed());
}

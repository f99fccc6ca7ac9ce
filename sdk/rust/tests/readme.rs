//! Tests of the README's plugin. The README contains `plugin/lazy_images.rs` word for word, and `docs/PLUGINS.md` contains its
//! case.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(
    unreachable_pub,
    reason = "a plugin is the root of its crate, but a module here"
)]

use opilio_plugin::testing::{counted, document, logged};
use opilio_plugin::{Kind, Level, count, info};

#[path = "plugin/lazy_images.rs"]
mod lazy_images;

#[test]
fn readme_contains_the_plugin_and_docs_contain_its_case() {
    let readme = include_str!("../README.md");
    assert!(
        readme.contains(include_str!("plugin/lazy_images.rs")),
        "README.md and tests/plugin/lazy_images.rs differ"
    );
    assert!(
        include_str!("../../../docs/PLUGINS.md").contains(include_str!("cases/lazy-images.json")),
        "docs/PLUGINS.md and tests/cases/lazy-images.json differ"
    );
}

#[test]
fn cases_pass() {
    opilio_plugin::testing::check_cases(&lazy_images::plugins(), "tests/cases");
}

#[test]
fn description_has_name_version_kinds_and_schema() {
    let description = lazy_images::plugins().describe().remove(0);
    assert_eq!(description.name, "lazy-images");
    assert_eq!(description.version, env!("CARGO_PKG_VERSION"));
    assert_eq!(description.kinds, [Kind::Extractor]);
    let schema: serde_json::Value = serde_json::from_str(&description.settings_schema).unwrap();
    assert_eq!(schema["additionalProperties"], false);
    let attributes = &schema["properties"]["attributes"];
    assert_eq!(attributes["default"][0], "data-src");
    assert_eq!(
        attributes["description"],
        "Attributes that hold an image's URI."
    );
    assert_eq!(attributes["x-opilio-overridable"], true);
}

#[test]
fn unknown_plugins_and_invalid_settings_are_rejected() {
    let plugins = lazy_images::plugins();
    assert!(plugins.configure("lazy-videos", "{}").is_err());
    assert!(
        plugins
            .configure("lazy-images", r#"{"attribute": []}"#)
            .is_err()
    );
    let faults = plugins
        .configure("lazy-images", r#"{"attributes": ["a", ""]}"#)
        .err()
        .unwrap();
    assert_eq!(faults[0].pointer, "/attributes/1");
}

#[test]
fn test_documents_behave_like_those_of_the_host() {
    let document = document("http://example.com/a")
        .header("ETag", "x")
        .header("etag", "y")
        .bytes(b"abc\xffdef");
    assert_eq!(document.base(), "http://example.com/a");
    assert_eq!(document.header("ETAG"), ["x", "y"]);
    assert_eq!(document.length(), 7);
    assert_eq!(document.read(5, 100), b"ef");
    assert_eq!(document.read(2, 3), b"c\xffd");
    assert_eq!(document.read(7, 1), b"");
    assert_eq!(document.read(u64::MAX, 1), b"");
    assert_eq!(document.content(), b"abc\xffdef");
    assert_eq!(document.text(), "abc\u{fffd}def");
    document.set_note("a", "1");
    document.set_note("a", "2");
    assert_eq!(document.note("a").as_deref(), Some("2"));
}

#[test]
fn lines_and_counters_are_captured() {
    info("a line");
    count("images", 2);
    count("images", 1);
    assert_eq!(logged(), [(Level::Info, "a line".to_owned())]);
    assert_eq!(counted()["images"], 3);
    assert!(logged().is_empty() && counted().is_empty());
}

//! Compiled components on disk.

use std::path::{Path, PathBuf};

use opilio_sandbox::{Engine, EngineConfig, Plugin, Stage, Start};
use serde_json::{Value, json};

use crate::configure::remembering;
use crate::support::{self, candidates, limits};

fn start(cache: &Path, settings: Value) -> Plugin {
    let config = EngineConfig {
        cache_dir: Some(cache.to_owned()),
        instances_max: 2,
        ..EngineConfig::default()
    };
    let component = Engine::new(config)
        .unwrap()
        .load(&remembering().build(), "guest")
        .unwrap();
    component
        .configure(support::config(settings, limits()))
        .unwrap()
}

#[track_caller]
fn check(plugin: &Plugin, cached: bool, settings: &str) {
    assert_eq!(plugin.start(), &Start::Snapshot { cached });
    let rulings = plugin
        .judge_candidates(Stage::Scope, &candidates(1))
        .unwrap();
    assert_eq!(rulings[0].reason, settings);
}

fn entries(cache: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = std::fs::read_dir(cache)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    entries
}

#[test]
fn a_second_start_compiles_no_component() {
    let cache = tempfile::tempdir().unwrap();
    check(&start(cache.path(), json!({"a": 1})), false, r#"{"a":1}"#);
    let written: Vec<_> = entries(cache.path())
        .iter()
        .map(|path| path.metadata().unwrap().modified().unwrap())
        .collect();
    check(&start(cache.path(), json!({"a": 1})), true, r#"{"a":1}"#);
    check(&start(cache.path(), json!({"a": 2})), false, r#"{"a":2}"#);
    check(&start(cache.path(), json!({"a": 2})), true, r#"{"a":2}"#);
    // One component, its functions, one entry for each of the two settings, and no unfinished files.
    assert_eq!((written.len(), entries(cache.path()).len()), (3, 4));
}

#[test]
fn a_damaged_entry_is_compiled_anew() {
    let cache = tempfile::tempdir().unwrap();
    check(&start(cache.path(), json!({})), false, "{}");
    for damage in [
        |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() / 2),
        |bytes: &mut Vec<u8>| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0xff;
        },
        Vec::clear,
    ] {
        for entry in entries(cache.path()) {
            let mut bytes = std::fs::read(&entry).unwrap();
            damage(&mut bytes);
            std::fs::write(&entry, bytes).unwrap();
        }
        check(&start(cache.path(), json!({})), false, "{}");
        check(&start(cache.path(), json!({})), true, "{}");
    }
}

#[test]
fn a_sandbox_without_cache_directory_works() {
    let config = EngineConfig {
        instances_max: 2,
        ..EngineConfig::default()
    };
    let engine = Engine::new(config).unwrap();
    for _ in 0..2 {
        let component = engine.load(&remembering().build(), "guest").unwrap();
        check(
            &component
                .configure(support::config(json!({}), limits()))
                .unwrap(),
            false,
            "{}",
        );
    }
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error_with_its_path() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let config = EngineConfig {
        cache_dir: Some(file.path().join("x")),
        ..EngineConfig::default()
    };
    let error = Engine::new(config).map(drop).unwrap_err().to_string();
    assert!(
        error.contains(&file.path().join("x").display().to_string()),
        "{error}"
    );
}

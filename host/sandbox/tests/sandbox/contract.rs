//! Components made for earlier versions of the contract, as they shipped then (`tests/contract`), asked the golden cases
//! of their time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use opilio_sandbox::{CaseFile, Examiner, Limits, spawn_lane};
use serde_json::json;

use crate::support::{config_of, engine};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/contract/0.1.0")
}

/// Asks a component every case beside it, and says which it did not answer as it did then.
fn faults_of(name: &str) -> Vec<String> {
    let bytes = std::fs::read(folder().join(name).with_extension("wasm")).unwrap();
    let component = engine().load(&bytes, name).unwrap();
    let mut examiner = Examiner::new(&component);
    let mut asked = BTreeSet::new();
    let mut faults = Vec::new();
    for file in CaseFile::read_all(&folder().join(name)).unwrap() {
        for case in file.cases {
            if let Err(problem) = examiner.check(&case) {
                faults.push(format!("{name}, case {}: {problem}", case.id));
            }
            asked.insert(case.plugin);
        }
    }
    for description in component.plugins() {
        if !asked.contains(&description.name) {
            faults.push(format!("{name}: no case asks {}", description.name));
        }
    }
    faults
}

#[test]
fn components_of_contract_0_1_0_answer_as_they_did() {
    let lanes = ["adaptive", "http-links", "scope"]
        .map(|name| spawn_lane(name, move || faults_of(name)).unwrap());
    let faults: Vec<String> = lanes
        .into_iter()
        .flat_map(|lane| lane.join().unwrap())
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_plugin_says_which_contract_it_was_made_for() {
    let bytes = std::fs::read(folder().join("adaptive.wasm")).unwrap();
    let component = engine().load(&bytes, "adaptive").unwrap();
    let settings = json!({});
    let plugin = component
        .configure(config_of("adaptive", settings, Limits::default()))
        .unwrap();
    assert_eq!(plugin.contract(), "0.1.0");
    assert!(plugin.snapshotted(), "{:?}", plugin.start());
}

//! Runs components that were built for earlier versions of the contract (`tests/contract`) against the golden cases of their time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use opilio_sandbox::{CaseFile, Examiner, Limits, spawn_lane};
use serde_json::json;

use crate::support::{config_of, engine};

fn folder(contract: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/contract")
        .join(contract)
}

/// Runs every case in a component's folder and returns those with other answers than expected.
fn wrong_answers_of(contract: &str, name: &str) -> Vec<String> {
    let folder = folder(contract);
    let bytes = std::fs::read(folder.join(name).with_extension("wasm")).unwrap();
    let component = engine().load(&bytes, name).unwrap();
    let mut examiner = Examiner::new(&component);
    let mut asked = BTreeSet::new();
    let mut faults = Vec::new();
    for file in CaseFile::read_all(&folder.join(name)).unwrap() {
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

#[track_caller]
fn check(contract: &'static str, names: &'static [&'static str]) {
    let lanes: Vec<_> = names
        .iter()
        .map(|name| spawn_lane(name, move || wrong_answers_of(contract, name)).unwrap())
        .collect();
    let faults: Vec<String> = lanes
        .into_iter()
        .flat_map(|lane| lane.join().unwrap())
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn components_of_contract_0_1_0_give_their_old_answers() {
    check("0.1.0", &["adaptive", "http-links", "scope"]);
}

#[test]
fn components_of_contract_0_2_0_give_their_old_answers() {
    check("0.2.0", &["http-links", "revisit", "scope"]);
}

#[test]
fn a_plugin_reports_its_contract_version() {
    for (contract, name) in [("0.1.0", "adaptive"), ("0.2.0", "revisit")] {
        let path = folder(contract).join(name).with_extension("wasm");
        let component = engine().load(&std::fs::read(path).unwrap(), name).unwrap();
        let settings = json!({});
        let plugin = component
            .configure(config_of("adaptive", settings, Limits::default()))
            .unwrap();
        assert_eq!(plugin.contract(), contract);
        assert!(plugin.snapshotted(), "{:?}", plugin.start());
    }
}

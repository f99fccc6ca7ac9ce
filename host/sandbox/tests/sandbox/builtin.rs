//! The components that ship: those that are committed, or those that `OPILIO_COMPONENTS` names (see
//! `plugins/builtin/build.rs`). That the sandbox takes them as it should; what they answer is in `cases`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use opilio_sandbox::{Component, ConfigureError, Engine, EngineConfig, Limits};
use serde_json::json;

use crate::support::{component_cache, config_of};

/// Every component that ships, loaded, under the name of the folder in `plugins/` that it was made from.
#[track_caller]
pub(crate) fn components() -> &'static BTreeMap<&'static str, Component> {
    static COMPONENTS: OnceLock<BTreeMap<&'static str, Component>> = OnceLock::new();
    let components = COMPONENTS.get_or_init(|| {
        let engine = Engine::new(EngineConfig {
            cache_dir: Some(component_cache()),
            instances_max: 8,
            ..EngineConfig::default()
        })
        .unwrap();
        let mut components = BTreeMap::new();
        for builtin in opilio_builtin::all() {
            components.entry(builtin.name).or_insert_with(|| {
                match engine.load(builtin.component, builtin.name) {
                    Ok(component) => component,
                    Err(problem) => panic!("component {}: {problem:?}", builtin.name),
                }
            });
        }
        components
    });
    assert!(!components.is_empty(), "no component has been built");
    components
}

#[test]
fn every_component_that_ships_is_snapshotted() {
    for (name, component) in components() {
        for description in component.plugins() {
            match component.configure(config_of(&description.name, json!({}), Limits::default())) {
                Ok(plugin) => assert!(plugin.snapshotted(), "{name}: {:?}", plugin.start()),
                // Some settings have no default.
                Err(error) => assert!(matches!(error, ConfigureError::Settings { .. }), "{error}"),
            }
        }
    }
}

#[test]
fn components_hold_the_plugins_that_their_manifest_names() {
    for (name, component) in components() {
        let held: Vec<&str> = component
            .plugins()
            .iter()
            .map(|description| description.name.as_str())
            .collect();
        let named: Vec<&str> = opilio_builtin::all()
            .filter(|builtin| builtin.name == *name)
            .map(|builtin| builtin.plugin)
            .collect();
        assert_eq!(held, named, "component {name}");
    }
}

//! The built-in components load, and export the plugins that their manifests name. They are the committed components, or those in
//! `OPILIO_COMPONENTS` (see `plugins/builtin/build.rs`). Their answers are tested in `cases`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use opilio_sandbox::{Component, ConfigureError, Engine, EngineConfig, Limits};
use serde_json::json;

use crate::support::{component_cache, config_of};

/// Every built-in component, loaded, by the name of its source folder in `plugins/`.
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
fn every_builtin_component_is_snapshotted() {
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
fn builtin_components_export_the_plugins_of_their_manifest() {
    for (name, component) in components() {
        let exported: Vec<&str> = component
            .plugins()
            .iter()
            .map(|description| description.name.as_str())
            .collect();
        let listed: Vec<&str> = opilio_builtin::all()
            .filter(|builtin| builtin.name == *name)
            .map(|builtin| builtin.plugin)
            .collect();
        assert_eq!(exported, listed, "component {name}");
    }
}

//! The components that ship, as they are committed. What they answer is for their own tests; here, that the sandbox
//! takes them as it should.

use std::path::Path;

use opilio_sandbox::{ConfigureError, Limits};
use serde_json::json;

use crate::support::engine;

#[test]
fn every_component_that_ships_loads_and_is_snapshotted() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/builtin/components");
    let mut plugins = 0;
    for file in std::fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "wasm") {
            continue;
        }
        let component = engine()
            .load(&std::fs::read(&path).unwrap(), &path.display().to_string())
            .unwrap();
        for description in component.plugins() {
            match component.configure(Some(&description.name), json!({}), Limits::default()) {
                Ok(plugin) => assert!(
                    plugin.snapshotted(),
                    "{}: {:?}",
                    path.display(),
                    plugin.start()
                ),
                // Some settings have no default.
                Err(error) => assert!(matches!(error, ConfigureError::Settings { .. }), "{error}"),
            }
            plugins += 1;
        }
    }
    assert!(plugins > 0, "no component has been built");
}

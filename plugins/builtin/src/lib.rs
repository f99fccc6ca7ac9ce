//! The built-in components, embedded as bytes. The sandbox loads, checks and limits them like any other component.
//! `cargo xtask plugins` builds them and lists them in the manifest.

include!(concat!(env!("OUT_DIR"), "/components.rs"));

/// A built-in plugin and its component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Builtin {
    /// The component's name: the folder of its sources in `plugins/`.
    pub name: &'static str,
    /// The component's bytes.
    pub component: &'static [u8],
    /// SHA-256 of the component's bytes, in lower-case hexadecimal.
    pub sha256: &'static str,
    /// The plugin's name, as returned by the component's `describe`.
    pub plugin: &'static str,
}

/// An embedded component with one or more plugins.
struct Component {
    name: &'static str,
    bytes: &'static [u8],
    sha256: &'static str,
    plugins: &'static [&'static str],
}

/// Finds the plugin with a name, such as `repeating-path`.
#[must_use]
pub fn find(plugin_name: &str) -> Option<Builtin> {
    all().find(|builtin| builtin.plugin == plugin_name)
}

/// All built-in plugins. Those of one component share its bytes.
pub fn all() -> impl Iterator<Item = Builtin> {
    COMPONENTS.iter().flat_map(|component| {
        component.plugins.iter().map(|plugin| Builtin {
            name: component.name,
            component: component.bytes,
            sha256: component.sha256,
            plugin,
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn components_match_their_hashes_in_the_manifest() {
        for builtin in all() {
            let sha256: String = Sha256::digest(builtin.component)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert_eq!(sha256, builtin.sha256, "component {}", builtin.name);
        }
    }

    #[test]
    fn every_plugin_has_a_unique_name_by_which_it_is_found() {
        let mut names = HashSet::new();
        for builtin in all() {
            assert!(
                names.insert(builtin.plugin),
                "two plugins are called {}",
                builtin.plugin
            );
            assert_eq!(find(builtin.plugin), Some(builtin));
        }
        assert_eq!(find("no-such-plugin"), None);
    }

    #[test]
    fn components_stay_small() {
        let sizes: usize = COMPONENTS
            .iter()
            .map(|component| component.bytes.len())
            .sum();
        assert!(
            sizes < 5 * 1024 * 1024,
            "{sizes} bytes of components; they live in git for ever"
        );
    }
}

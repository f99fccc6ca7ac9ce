//! The manifest beside the components: the name, plugins, sources and toolchain of each.
//! `plugins/builtin/build.rs` reads it too.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::sources::hex;

/// The folder of the components, beside the manifest.
pub(super) const COMPONENTS: &str = "components";

const FILE: &str = "manifest.json";

/// The components in a folder.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    /// Sorted by name.
    pub(super) components: Vec<Entry>,
}

/// One component.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Entry {
    /// The plugin's folder in `plugins/`.
    pub(super) name: String,
    /// Path relative to the manifest's folder.
    pub(super) file: String,
    /// SHA-256 of the component.
    pub(super) sha256: String,
    /// Hash of the sources, as `sources` computes it.
    pub(super) sources_sha256: String,
    /// Toolchain that built it; for information.
    pub(super) toolchain: String,
    /// The plugins that it exports.
    pub(super) plugins: Vec<String>,
}

impl Manifest {
    /// Reads the manifest of a folder. The result is empty if the folder has no manifest yet.
    pub(super) fn read(component_folder: &Path) -> Result<Self> {
        let path = component_folder.join(FILE);
        match fs::read(&path) {
            Ok(json) => {
                serde_json::from_slice(&json).with_context(|| format!("reading {}", path.display()))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
        }
    }

    /// Writes the manifest into the folder.
    pub(super) fn write(&self, component_folder: &Path) -> Result<()> {
        let mut json = serde_json::to_string_pretty(self)?;
        json.push('\n');
        fs::write(component_folder.join(FILE), json)?;
        Ok(())
    }

    /// The component called `name`.
    pub(super) fn find(&self, name: &str) -> Option<&Entry> {
        self.components.iter().find(|entry| entry.name == name)
    }

    /// Adds a component, or replaces the one with the same name.
    pub(super) fn put(&mut self, entry: Entry) {
        self.components.retain(|other| other.name != entry.name);
        self.components.push(entry);
        self.components
            .sort_by(|one, other| one.name.cmp(&other.name));
    }
}

impl Entry {
    /// Writes a component into the folder, and adds its entry.
    pub(super) fn write(
        component_folder: &Path,
        name: &str,
        component: &[u8],
        plugins: Vec<String>,
        sources_sha256: String,
        toolchain: String,
    ) -> Result<Self> {
        let file = format!("{COMPONENTS}/{name}.wasm");
        fs::write(component_folder.join(&file), component)
            .with_context(|| format!("writing {file}"))?;
        Ok(Self {
            name: name.to_owned(),
            file,
            sha256: hex(component),
            sources_sha256,
            toolchain,
            plugins,
        })
    }

    /// Returns the error of the component's file, if it has one.
    pub(super) fn fault(&self, component_folder: &Path) -> Option<String> {
        match fs::read(component_folder.join(&self.file)) {
            Ok(component) if hex(&component) == self.sha256 => None,
            Ok(_) => Some(format!(
                "is not what the manifest says: {} has another hash",
                self.file
            )),
            Err(error) => Some(format!("cannot be read: {}: {error}", self.file)),
        }
    }
}

//! Files that the layers of a profile name. Another machine gets copies of them together with the profile.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::document::Document;
use crate::layer_paths::named_files;
use crate::profile::Profile;

/// A file that a layer of a profile names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LayerFile {
    /// Number of the layer: 0 for the profile itself, then those of [`Profile::extended`] from 1.
    pub layer: usize,
    /// The text of the setting.
    pub written: String,
    /// The file, an absolute path. For a component it may be a folder.
    pub path: PathBuf,
    /// `true` for a component of a plugin.
    pub is_component: bool,
}

impl Profile {
    /// Returns the files that the profile uses, by layer: components, seed files, tables, lists of precedences, and the dictionary.
    /// Each setting of each layer that names one is in the list. `base` is the folder of the profile's own relative paths.
    pub fn layer_files(&self, base: &Path) -> Vec<LayerFile> {
        let in_force: BTreeSet<PathBuf> = named_files(&self.document().value, base)
            .into_iter()
            .map(|(_, path, _)| path)
            .collect();
        let below = self.extended().iter();
        let below = below.map(|layer| (layer.text.as_str(), layer.base.as_path()));
        let layers = std::iter::once((self.source_text(), base)).chain(below);
        let mut files = BTreeSet::new();
        for (layer, (text, base)) in layers.enumerate() {
            let (document, _) = Document::parse("", text);
            for (written, path, is_component) in named_files(&document.value, base) {
                // A later layer may have named another file.
                if in_force.contains(&path) {
                    files.insert(LayerFile {
                        layer,
                        written,
                        path,
                        is_component,
                    });
                }
            }
        }
        files.into_iter().collect()
    }
}

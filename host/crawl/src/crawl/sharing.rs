//! The files of a crawl's plan that other nodes of a shared crawl need.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use opilio_profile::{ComponentReference, Instance, LayerFile};

use super::Plan;
use crate::error::{CrawlError, io_error};
use crate::job_part::JobPart;
use crate::shared_files::{SharedFiles, SharedLayer, SharedProfile};

impl Plan {
    /// Reads the files that other nodes of a shared crawl need. If the profile was fetched from the cluster, nothing is read: only the
    /// digests of components and the names of parts are compared.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn shared_files(&self, part: &JobPart) -> Result<SharedFiles, CrawlError> {
        let profile = &self.profile;
        let is_fetched = self.fetched.is_some();
        let extended = profile.extended().iter().map(|layer| SharedLayer {
            file: file_name(&layer.file),
            text: layer.text.clone(),
            files: BTreeMap::new(),
        });
        let mut description = SharedProfile {
            name: profile.name.clone(),
            contact_url: self.contact_url.clone(),
            files: BTreeMap::new(),
            extended: extended.collect(),
            plugins: self.component_digests(),
        };
        let mut contents = BTreeMap::new();
        let named = match is_fetched {
            true => Vec::new(),
            false => profile.layer_files(&self.base),
        };
        for file in named {
            let content = match file.is_component {
                true => self.component_bytes(&file, &description.plugins)?,
                false => read(&file.path)?,
            };
            // The name for error messages.
            let name = match file.layer {
                0 => format!("file {}", file.written),
                number => format!("file {} of extended profile {number}", file.written),
            };
            let files = match file.layer.checked_sub(1) {
                None => &mut description.files,
                Some(below) => &mut description.extended[below].files,
            };
            files.insert(file.written, name.clone());
            contents.insert(name, content);
        }
        Ok(SharedFiles {
            profile: (!is_fetched).then(|| profile.source_text().to_owned()),
            seeds: self.seed_lines().join("\n"),
            parts: part.parts.join("\n"),
            description,
            contents,
        })
    }

    /// Returns the SHA-256 of the component of each plugin that is not built in.
    fn component_digests(&self) -> BTreeMap<String, String> {
        let is_builtin = |name: &str| {
            let instance = self.profile.plugins.get(name);
            instance.is_none_or(|it| matches!(it.component, ComponentReference::Builtin(_)))
        };
        let all = self.plugins.stacks.pool().components();
        all.filter(|(name, _)| !is_builtin(name))
            .map(|(name, sha256)| (name.to_owned(), sha256.to_owned()))
            .collect()
    }

    /// Returns the component that a setting names, as it was loaded. If the setting names a folder, the component is in one of its
    /// files.
    fn component_bytes(
        &self,
        file: &LayerFile,
        digests: &BTreeMap<String, String>,
    ) -> Result<Vec<u8>, CrawlError> {
        let plugin = file.written.trim().rsplit_once('#');
        let plugin = plugin.map(|(_, plugin)| plugin);
        let is_it = |instance: &&Instance| match &instance.component {
            ComponentReference::File { path, .. } => {
                std::path::absolute(path).is_ok_and(|path| path == file.path)
                    && instance.component.plugin() == plugin
            }
            _ => false,
        };
        let instance = self.profile.plugins.values().find(is_it);
        let digest = instance.and_then(|instance| digests.get(&instance.name));
        let mut loaded = self.plugins.components.iter();
        let loaded = loaded.find(|(sha256, _)| digest == Some(&sha256.to_string()));
        match loaded {
            Some((_, bytes)) => Ok(bytes.to_vec()),
            // The job does not keep watched components.
            None => read(&file.path),
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CrawlError> {
    fs::read(path).map_err(|source| io_error(path, source))
}

/// Returns the name of a layer's file, without its folder.
fn file_name(file: &str) -> String {
    let name = Path::new(file).file_name();
    name.map_or_else(
        || file.to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

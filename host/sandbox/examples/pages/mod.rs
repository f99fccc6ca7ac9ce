//! Pages to measure with: from files and folders, and as plugins see them.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use opilio_sandbox::{
    Document, DocumentParts, Engine, Notes, Plugin, PluginConfig, SharedKeptValues,
};

/// Media type of all pages.
pub(crate) const MEDIA_TYPE: &str = "text/html";
/// Base URI of all pages.
pub(crate) const URI: &str = "http://example.org/folder/page.html";

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The pages in a file or folder, those in folders within it too.
pub(crate) fn read(path: &Path, pages: &mut Vec<String>) -> Result<(), Failure> {
    if path.is_dir() {
        let mut within: Vec<_> = std::fs::read_dir(path)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        within.sort();
        for path in within {
            if path.is_dir() || path.extension().is_some_and(|ending| ending == "html") {
                read(&path, pages)?;
            }
        }
        return Ok(());
    }
    pages.push(String::from_utf8_lossy(&std::fs::read(path)?).into_owned());
    Ok(())
}

/// Loads a plugin that ships, with its default settings.
pub(crate) fn shipped(engine: &Engine, name: &str) -> Result<Plugin, Failure> {
    let shipped = opilio_builtin::find(name).ok_or_else(|| format!("{name} does not ship"))?;
    let component = engine.load(shipped.component, shipped.name)?;
    Ok(component.configure(PluginConfig {
        plugin: Some(name.to_owned()),
        ..PluginConfig::default()
    })?)
}

/// A page as plugins see it.
pub(crate) fn document(page: &str) -> Document {
    Document::new(DocumentParts {
        uri: URI.to_owned(),
        base: URI.to_owned(),
        status: 200,
        headers: Arc::new([]),
        media_type: MEDIA_TYPE.to_owned(),
        charset: Some(encoding_rs::UTF_8),
        fragment: None,
        content: Bytes::copy_from_slice(page.as_bytes()),
        notes: Notes::new(),
        kept: SharedKeptValues::default(),
    })
}

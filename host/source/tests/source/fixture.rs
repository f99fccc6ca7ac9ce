//! Parts shared by the tests: sources over a store of their own, components, and a clock that goes where it is told.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use opilio_profile::{ComponentReference, Image};
use opilio_source::{
    ComponentConditions, ResolvedComponent, Sha256, SourceError, Sources, SourcesConfig,
};
use tempfile::TempDir;

/// Seconds since 1970 of the clock of this process. Tests that care about time move it forward only.
static NOW: AtomicI64 = AtomicI64::new(1_800_000_000);

/// Sources over a store that goes away with this.
pub(crate) struct Fixture {
    pub(crate) folder: TempDir,
    pub(crate) sources: Sources,
}

impl Fixture {
    /// An empty store, and nobody's credentials.
    pub(crate) fn new() -> Self {
        Self::build(None)
    }

    /// With this file of credentials.
    pub(crate) fn with_credentials(text: &str) -> Self {
        Self::build(Some(text))
    }

    fn build(credentials: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let credentials = credentials.map(|text| {
            let path = folder.path().join("config.json");
            std::fs::write(&path, text).unwrap();
            path
        });
        let sources = Sources::new(SourcesConfig {
            store: folder.path().join("store"),
            credentials,
            now,
        });
        Self { folder, sources }
    }

    /// Reference without conditions.
    pub(crate) fn resolve(&self, written: &str) -> Result<ResolvedComponent, SourceError> {
        self.resolve_on(written, &ComponentConditions::default())
    }

    /// Pinned reference.
    pub(crate) fn resolve_pinned(
        &self,
        written: &str,
        sha256: Sha256,
    ) -> Result<ResolvedComponent, SourceError> {
        let terms = ComponentConditions {
            sha256: Some(sha256),
            ..ComponentConditions::default()
        };
        self.resolve_on(written, &terms)
    }

    fn resolve_on(
        &self,
        written: &str,
        terms: &ComponentConditions,
    ) -> Result<ResolvedComponent, SourceError> {
        let component = ComponentReference::parse(written, self.folder.path()).unwrap();
        self.sources.resolve(&component, terms, &mut plugins_of)
    }

    /// Error message of a failed download.
    #[track_caller]
    pub(crate) fn refused(&self, written: &str, says: &[&str]) {
        sentence(&self.resolve(written).unwrap_err(), says);
    }

    /// Writes a component there and pushes it.
    #[track_caller]
    pub(crate) fn push(&self, component: &[u8], image: &Image) -> opilio_source::PushResult {
        let path = self.file("pushed.wasm", component);
        self.sources.push(&path, image, false).unwrap()
    }

    /// A file in the folder.
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// An error on one line must say this.
#[track_caller]
pub(crate) fn sentence(error: &dyn std::error::Error, says: &[&str]) {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    for part in says {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    assert!(!text.contains('\n'), "not one line: {text}");
    assert!(text.len() < 600, "not a sentence: {text}");
}

/// The smallest component, told from others by a word.
pub(crate) fn component(word: &str) -> Vec<u8> {
    let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
    let section = [&[7], b"version".as_slice(), word.as_bytes()].concat();
    bytes.extend([0, u8::try_from(section.len()).unwrap()]);
    bytes.extend(section);
    bytes
}

/// Double of the sandbox: the words after the version in [`component`] are the names of its plugins.
fn plugins_of(found: &ResolvedComponent) -> Result<Vec<String>, String> {
    let about = opilio_source::ComponentMetadata::read(&found.bytes)
        .map_err(|problem| problem.to_string())?;
    let words = about.version.unwrap_or_default();
    Ok(words.split_whitespace().map(str::to_owned).collect())
}

pub(crate) fn image(written: &str) -> Image {
    Image::parse(written).unwrap()
}

/// The image of this name in a registry.
pub(crate) fn image_of(registry: &opilio_test_registry::Registry, name: &str) -> Image {
    image(&registry.image(name))
}

pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(NOW.load(Ordering::Relaxed)).unwrap()
}

/// All files below a folder, for those who must find it untouched.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

//! Shared parts of the tests: sources with a store of their own, components, and a clock that tests set.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use opilio_profile::{ComponentReference, Image};
use opilio_source::{
    ComponentConditions, ResolvedComponent, Sha256, SourceError, Sources, SourcesConfig,
};
use tempfile::TempDir;

/// Time of the clock of this process, in seconds since 1970. Tests only move it forward.
static NOW: AtomicI64 = AtomicI64::new(1_800_000_000);

/// Sources with a store in a temporary directory, which is removed with the fixture.
pub(crate) struct Fixture {
    pub(crate) folder: TempDir,
    pub(crate) sources: Sources,
}

impl Fixture {
    /// A fixture with an empty store and without credentials.
    pub(crate) fn new() -> Self {
        Self::build(None)
    }

    /// A fixture with this text as the file of credentials.
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

    /// Resolves a reference without conditions.
    pub(crate) fn resolve(&self, written: &str) -> Result<ResolvedComponent, SourceError> {
        self.resolve_on(written, &ComponentConditions::default())
    }

    /// Resolves a pinned reference.
    pub(crate) fn resolve_pinned(
        &self,
        written: &str,
        sha256: Sha256,
    ) -> Result<ResolvedComponent, SourceError> {
        let conditions = ComponentConditions {
            sha256: Some(sha256),
            ..ComponentConditions::default()
        };
        self.resolve_on(written, &conditions)
    }

    fn resolve_on(
        &self,
        written: &str,
        conditions: &ComponentConditions,
    ) -> Result<ResolvedComponent, SourceError> {
        let component = ComponentReference::parse(written, self.folder.path()).unwrap();
        self.sources
            .resolve(&component, conditions, &mut plugins_of)
    }

    /// Checks that the reference is refused with an error that contains these texts.
    #[track_caller]
    pub(crate) fn check_refused(&self, written: &str, expected: &[&str]) {
        check_message(&self.resolve(written).unwrap_err(), expected);
    }

    /// Writes a component to a file and pushes it.
    #[track_caller]
    pub(crate) fn push(&self, component: &[u8], image: &Image) -> opilio_source::PushResult {
        let path = self.file("pushed.wasm", component);
        self.sources.push(&path, image, false).unwrap()
    }

    /// Writes a file to the fixture's folder and returns its path.
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// Checks that an error is one short line that contains these texts.
#[track_caller]
pub(crate) fn check_message(error: &dyn std::error::Error, expected: &[&str]) {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    for part in expected {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    assert!(!text.contains('\n'), "not one line: {text}");
    assert!(text.len() < 600, "not a sentence: {text}");
}

/// The smallest component. Its version is `version`, so that tests can make different components.
pub(crate) fn component(version: &str) -> Vec<u8> {
    let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
    let section = [&[7], b"version".as_slice(), version.as_bytes()].concat();
    bytes.extend([0, u8::try_from(section.len()).unwrap()]);
    bytes.extend(section);
    bytes
}

/// Stands in for the sandbox: the words of the version in [`component`] are the names of its plugins.
fn plugins_of(found: &ResolvedComponent) -> Result<Vec<String>, String> {
    let about = opilio_source::ComponentMetadata::read(&found.bytes)
        .map_err(|problem| problem.to_string())?;
    let names = about.version.unwrap_or_default();
    Ok(names.split_whitespace().map(str::to_owned).collect())
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

/// All files below a folder, sorted, to check that it is unchanged.
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

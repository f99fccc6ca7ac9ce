//! [`Sources`]: from a reference in a profile or on a command line to the bytes of a component.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use jiff::Timestamp;
use opilio_profile::{ComponentReference, Image, Instance};
use serde::{Deserialize, Serialize};

use crate::blobs::read_bounded;
use crate::folder::{self, FolderError};
use crate::registry::{self, Access, PushResult, RegistryError};
use crate::sha256::Sha256;
use crate::store::{Store, StoreError};

/// Finds components on this machine, in the store and in registries. Clones share the same sources.
#[derive(Debug, Clone)]
pub struct Sources {
    store: Store,
    credentials: Option<PathBuf>,
    now: fn() -> Timestamp,
}

/// The configuration of [`Sources`].
#[derive(Debug, Clone)]
pub struct SourcesConfig {
    /// The folder of the store; created by the first pull.
    pub store: PathBuf,
    /// The file with credentials for registries, as `docker login` and `podman login` write it. It need not exist. Without one,
    /// requests are anonymous.
    pub credentials: Option<PathBuf>,
    /// The clock.
    pub now: fn() -> Timestamp,
}

/// Conditions for a component.
#[derive(Debug, Clone, Copy, Default)]
pub struct ComponentConditions {
    /// The required SHA-256.
    pub sha256: Option<Sha256>,
    /// `true` if its registry may be used over plain HTTP. On this machine that is always allowed.
    pub insecure: bool,
}

/// A component: its bytes and the facts about them.
#[derive(Debug, Clone)]
pub struct ResolvedComponent {
    /// The component.
    pub bytes: Bytes,
    /// The computed digest of the bytes.
    pub sha256: Sha256,
    /// Its origin, for messages: `builtin:html`, a path, an image.
    pub origin: String,
    /// The image it was pulled as, bound to its manifest.
    pub image: Option<Image>,
    /// The name of the plugin in it, if the reference has one.
    pub plugin: Option<String>,
    /// A note for the operator, for example that a registry could not be reached.
    pub note: Option<String>,
}

/// The resolved form of a reference, stored with a job when it is created. A tag that moves or a file that changes later does not
/// change the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedComponent {
    /// The reference as written, with relative paths resolved.
    pub component: String,
    /// The component's SHA-256.
    pub sha256: Sha256,
    /// The image bound to its manifest, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
}

/// The reason why a component is not available. Each text is one sentence that begins with the reference.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// There is no built-in plugin of this name.
    #[error("no built-in plugin \"{0}\"; `opilio plugin list` lists the shipped plugins")]
    Builtin(String),
    /// A file cannot be read.
    #[error("cannot read component {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        problem: io::Error,
    },
    /// The component does not have the pinned digest.
    #[error(
        "{origin} has sha256 {found}, not the pinned {pinned}; restore the pinned file, or check this one and pin it"
    )]
    Pin {
        /// The component.
        origin: String,
        /// The pinned digest.
        pinned: Sha256,
        /// The digest of the component.
        found: Sha256,
    },
    /// An error with a folder of components.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// An error with a registry.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// An error with the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A component of an existing job is no longer available.
    #[error(
        "{component} with sha256 {sha256}, with which the job was created, is neither in the job nor in the store {}; restore it there",
        store.display()
    )]
    Gone {
        /// The reference as written.
        component: String,
        /// Its digest.
        sha256: Sha256,
        /// The store that was searched.
        store: PathBuf,
    },
}

impl SourcesConfig {
    /// The standard configuration: the user's store, the credentials of `docker login`, the system's clock.
    ///
    /// # Errors
    /// There is no home directory.
    pub fn standard() -> Result<Self, StoreError> {
        Ok(Self::at(Store::default_folder()?))
    }

    /// The standard configuration with another store.
    #[must_use]
    pub fn at(store: impl Into<PathBuf>) -> Self {
        let home = etcetera::home_dir().ok();
        Self {
            store: store.into(),
            credentials: home.map(|home| home.join(".docker").join("config.json")),
            now: Timestamp::now,
        }
    }
}

impl ComponentConditions {
    /// The conditions of a plugin in a profile.
    #[must_use]
    pub fn of(instance: &Instance) -> Self {
        Self {
            sha256: instance.sha256.map(Sha256),
            insecure: instance.insecure,
        }
    }
}

impl ResolvedComponent {
    /// The form to store with a new job that uses this component, so that the job continues with it.
    #[must_use]
    pub fn frozen(&self, component: &ComponentReference) -> PinnedComponent {
        PinnedComponent {
            component: component.to_string(),
            sha256: self.sha256,
            image: self.image.clone(),
        }
    }

    fn new(bytes: impl Into<Bytes>, origin: String, component: &ComponentReference) -> Self {
        let bytes = bytes.into();
        Self {
            sha256: Sha256::of(&bytes),
            bytes,
            origin,
            image: None,
            plugin: component.plugin().map(str::to_owned),
            note: None,
        }
    }

    fn pinned(self, terms: &ComponentConditions) -> Result<Self, SourceError> {
        match terms.sha256 {
            Some(pinned) if pinned != self.sha256 => Err(SourceError::Pin {
                origin: self.origin,
                pinned,
                found: self.sha256,
            }),
            _ => Ok(self),
        }
    }
}

impl Sources {
    /// Creates sources. It does not open or create any files yet.
    #[must_use]
    pub fn new(config: SourcesConfig) -> Self {
        Self {
            store: Store::at(config.store),
            credentials: config.credentials,
            now: config.now,
        }
    }

    /// The store of pulled components.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the component that a reference names, under these conditions. Blocks while a registry answers.
    ///
    /// `plugins_of` is called only for a folder of several components, and returns the plugins in one. Its error for an invalid
    /// file is part of the resulting error if no other file has the plugin.
    ///
    /// # Errors
    /// The reason why it is not available.
    pub fn resolve(
        &self,
        component: &ComponentReference,
        terms: &ComponentConditions,
        plugins_of: &mut dyn FnMut(&ResolvedComponent) -> Result<Vec<String>, String>,
    ) -> Result<ResolvedComponent, SourceError> {
        match component {
            ComponentReference::Builtin(name) => {
                let builtin =
                    opilio_builtin::find(name).ok_or_else(|| SourceError::Builtin(name.clone()))?;
                let bytes = Bytes::from_static(builtin.component);
                let origin = component.to_string();
                ResolvedComponent::new(bytes, origin, component).pinned(terms)
            }
            ComponentReference::File { path, .. } if path.is_dir() => {
                self.in_folder(path, component, terms, plugins_of)
            }
            ComponentReference::File { path, .. } => read(path, component)?.pinned(terms),
            ComponentReference::Image { image, .. } => self.image(image, component, terms),
        }
    }

    /// Returns all components that a reference names: one, or all of a folder.
    ///
    /// # Errors
    /// The reason why one is not available.
    pub fn resolve_all(
        &self,
        component: &ComponentReference,
        terms: &ComponentConditions,
    ) -> Result<Vec<ResolvedComponent>, SourceError> {
        match component {
            ComponentReference::File { path, plugin: None } if path.is_dir() => {
                folder::files(path)?
                    .iter()
                    .map(|file| read(file, component))
                    .collect()
            }
            _ => {
                // A reference with a plugin name means one component. Only `resolve` searches a folder for the plugin.
                let mut no_plugins = |_: &ResolvedComponent| Ok(Vec::new());
                self.resolve(component, terms, &mut no_plugins)
                    .map(|found| vec![found])
            }
        }
    }

    /// Returns a component of an existing job. It reads the store first, then the registry by digest. Files are not read, since
    /// a job has its own copies. Blocks.
    ///
    /// # Errors
    /// The reason why it is not available.
    pub fn thaw(
        &self,
        frozen: &PinnedComponent,
        insecure: bool,
    ) -> Result<ResolvedComponent, SourceError> {
        let found = |bytes: Bytes| ResolvedComponent {
            bytes,
            sha256: frozen.sha256,
            origin: frozen.component.clone(),
            image: frozen.image.clone(),
            plugin: frozen
                .component
                .rsplit_once('#')
                .map(|(_, plugin)| plugin.to_owned()),
            note: None,
        };
        let sha256 = frozen.sha256;
        let mut shipped = opilio_builtin::all();
        if let Some(builtin) = shipped.find(|builtin| builtin.sha256 == sha256.to_string()) {
            return Ok(found(Bytes::from_static(builtin.component)));
        }
        if let Some(bytes) = self.stored(sha256)? {
            return Ok(found(bytes));
        }
        let Some(image) = &frozen.image else {
            return Err(SourceError::Gone {
                component: frozen.component.clone(),
                sha256,
                store: self.store.folder().to_owned(),
            });
        };
        let (bytes, _) = self.fetch(image, Some(sha256), insecure)?;
        Ok(found(bytes))
    }

    /// Asks the registry for the current meaning of an image, and stores the component. Also returns whether it was stored
    /// already.
    ///
    /// # Errors
    /// The reason why it is not available.
    pub fn pull(
        &self,
        image: &Image,
        terms: &ComponentConditions,
    ) -> Result<(ResolvedComponent, bool), SourceError> {
        let (bytes, bound) = self.fetch(image, terms.sha256, terms.insecure)?;
        let component = ComponentReference::Image {
            image: image.clone(),
            plugin: None,
        };
        let found = ResolvedComponent::new(bytes, image.to_string(), &component);
        let was_there = bound.was_there;
        let image = Some(bound.image);
        Ok((ResolvedComponent { image, ..found }, was_there))
    }

    /// Pushes a component's file under an image's tag.
    ///
    /// # Errors
    /// The file is not a component, or the registry refuses it.
    pub fn push(
        &self,
        path: &Path,
        image: &Image,
        insecure: bool,
    ) -> Result<PushResult, SourceError> {
        let bytes = read_file(path)?;
        let access = self.access(insecure);
        Ok(registry::push(path, &bytes, image, &access, (self.now)())?)
    }

    /// Records in the store that a job uses these components, so that they are not pruned while the job exists.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn begun<'a>(
        &self,
        job: &Path,
        components: impl IntoIterator<Item = &'a PinnedComponent>,
    ) -> Result<(), SourceError> {
        for frozen in components
            .into_iter()
            .filter(|frozen| frozen.image.is_some())
        {
            self.store.used(frozen.sha256, Some(job), (self.now)())?;
        }
        Ok(())
    }

    fn in_folder(
        &self,
        path: &Path,
        component: &ComponentReference,
        terms: &ComponentConditions,
        plugins_of: &mut dyn FnMut(&ResolvedComponent) -> Result<Vec<String>, String>,
    ) -> Result<ResolvedComponent, SourceError> {
        let folder = path.to_owned();
        let files = folder::files(path)?;
        if let Some(pinned) = terms.sha256 {
            for file in &files {
                let found = read(file, component)?;
                if found.sha256 == pinned {
                    return Ok(found);
                }
            }
            let path = folder;
            return Err(FolderError::NoPin { path, pinned }.into());
        }
        if let [file] = files.as_slice() {
            return read(file, component);
        }
        let Some(plugin) = component.plugin() else {
            let (path, count) = (folder, files.len());
            return Err(FolderError::Unnamed { path, count }.into());
        };
        let plugin = plugin.to_owned();
        let mut matching = Vec::new();
        let mut found_plugins = Vec::new();
        for file in &files {
            let found = read(file, component)?;
            let name = file_name(file);
            match plugins_of(&found) {
                Ok(plugins) if plugins.contains(&plugin) => matching.push((name, found)),
                Ok(plugins) => found_plugins.push(format!("{name} holds {}", plugins.join(", "))),
                Err(problem) => found_plugins.push(format!("{name} is unusable ({problem})")),
            }
        }
        match matching.len() {
            0 => Err(FolderError::NoPlugin {
                path: folder,
                plugin,
                held: found_plugins.join("; "),
            }
            .into()),
            1 => Ok(matching.remove(0).1),
            _ => Err(FolderError::Several {
                path: folder,
                plugin,
                files: matching.into_iter().map(|(name, _)| name).collect(),
            }
            .into()),
        }
    }

    fn image(
        &self,
        image: &Image,
        component: &ComponentReference,
        terms: &ComponentConditions,
    ) -> Result<ResolvedComponent, SourceError> {
        let origin = image.to_string();
        let known = self.store.image(image)?;
        // A reference pinned by either digest needs no answer of the registry.
        let bound = known.as_ref().filter(|_| image.digest().is_some());
        let sha256 = terms.sha256.or(bound.map(|entry| entry.sha256));
        if let Some(sha256) = sha256
            && let Some(bytes) = self.stored(sha256)?
        {
            let manifest = known.filter(|entry| entry.sha256 == sha256);
            let found = ResolvedComponent::new(bytes, origin, component);
            let image = manifest.map(|entry| image.at(&entry.manifest.to_string()));
            return ResolvedComponent { image, ..found }.pinned(terms);
        }
        match self.fetch(image, terms.sha256, terms.insecure) {
            Ok((bytes, bound)) => {
                let found = ResolvedComponent::new(bytes, origin, component);
                let image = Some(bound.image);
                Ok(ResolvedComponent { image, ..found })
            }
            Err(SourceError::Registry(problem)) if problem.is_passing() => {
                let stored = match &known {
                    Some(entry) => self.stored(entry.sha256)?.map(|bytes| (entry, bytes)),
                    None => None,
                };
                let Some((entry, bytes)) = stored else {
                    return Err(problem.into());
                };
                let found = ResolvedComponent {
                    image: Some(image.at(&entry.manifest.to_string())),
                    note: Some(format!(
                        "{problem}; used the version of {} from the store",
                        entry.asked.strftime("%Y-%m-%d %H:%M")
                    )),
                    ..ResolvedComponent::new(bytes, origin, component)
                };
                found.pinned(terms)
            }
            Err(problem) => Err(problem),
        }
    }

    /// Asks the registry for the current meaning of an image. The component comes from the store if it is there; otherwise it is
    /// pulled and stored. A component with another digest than the pinned one is neither pulled nor stored.
    fn fetch(
        &self,
        image: &Image,
        pinned: Option<Sha256>,
        insecure: bool,
    ) -> Result<(Bytes, BoundImage), SourceError> {
        let access = self.access(insecure);
        let resolved = registry::look_up(image, &access)?;
        let sha256 = resolved.layer.sha256;
        if let Some(pinned) = pinned.filter(|pinned| *pinned != sha256) {
            return Err(SourceError::Pin {
                origin: image.to_string(),
                pinned,
                found: sha256,
            });
        }
        let stored = self.stored(sha256)?;
        let was_there = stored.is_some();
        let bytes = match stored {
            Some(bytes) => bytes,
            None => registry::pull(image, &resolved, &access)?.into(),
        };
        self.store
            .keep(image, resolved.manifest, &bytes, (self.now)())?;
        let image = image.at(&resolved.manifest.to_string());
        Ok((bytes, BoundImage { image, was_there }))
    }

    /// A component of the store. A damaged one counts as missing: it is pulled again and replaced.
    fn stored(&self, sha256: Sha256) -> Result<Option<Bytes>, SourceError> {
        let bytes = match self.store.get(sha256) {
            Err(StoreError::Blob(problem @ crate::BlobError::Damaged { .. })) => {
                tracing::warn!("{problem}");
                None
            }
            other => other?,
        };
        if bytes.is_some()
            && let Err(problem) = self.store.used(sha256, None, (self.now)())
        {
            // A store of another user may be read-only. Then the use is not recorded.
            tracing::debug!(%problem, "cannot record the use of a component in the store");
        }
        Ok(bytes.map(Bytes::from))
    }

    fn access(&self, insecure: bool) -> Access {
        Access {
            credentials: self.credentials.clone(),
            insecure,
        }
    }
}

/// The resolved meaning of an image.
struct BoundImage {
    image: Image,
    was_there: bool,
}

fn read(path: &Path, component: &ComponentReference) -> Result<ResolvedComponent, SourceError> {
    let bytes = read_file(path)?;
    Ok(ResolvedComponent::new(
        bytes,
        path.display().to_string(),
        component,
    ))
}

fn read_file(path: &Path) -> Result<Vec<u8>, SourceError> {
    let is_file = fs::metadata(path).map(|metadata| metadata.is_file());
    let bytes = match is_file {
        Ok(true) => read_bounded(path),
        Ok(false) => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file")),
        Err(problem) => Err(problem),
    };
    bytes.map_err(|problem| SourceError::File {
        path: path.to_owned(),
        problem,
    })
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

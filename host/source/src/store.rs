//! The store: components pulled from registries. It avoids repeated requests, and lets a job continue when a registry cannot
//! be reached. Components are stored by SHA-256. An index has the component of each image, its times and the jobs that use it.
//!
//! Any number of processes may use it at once. Changes hold a lock. Reads need none, since every file is written under another
//! name and then renamed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use opilio_profile::Image;
use serde::{Deserialize, Serialize};

use crate::blobs::{BlobError, Blobs, write_whole};
use crate::sha256::Sha256;

/// The version of the index that is written and read.
const FORMAT: u32 = 1;

/// A store of components.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
    blobs: Blobs,
}

/// A component of a store, with the facts about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredComponent {
    /// Its digest.
    pub sha256: Sha256,
    /// Its size.
    pub bytes: u64,
    /// The images that currently refer to it. Empty if no image refers to it by digest and tags refer to newer components.
    pub images: Vec<Image>,
    /// Time of the first pull.
    pub added: Timestamp,
    /// Time of the last use.
    pub used: Timestamp,
    /// Folders of existing jobs that were created with it.
    pub jobs: Vec<PathBuf>,
}

/// Options for pruning.
#[derive(Debug, Clone, Copy, Default)]
pub struct Prune {
    /// Also remove the images of components that have not been used for this long.
    pub unused_for: Option<SignedDuration>,
    /// Only report the components that would be removed.
    pub dry_run: bool,
}

/// The components and files that were, or would be, removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneResult {
    /// Components.
    pub components: Vec<StoredComponent>,
    /// Files whose writing was not finished.
    pub partial: Vec<PathBuf>,
}

/// The reason why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system reports an error.
    #[error("cannot {what} {path}")]
    Io {
        /// The operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        problem: io::Error,
    },
    /// A component cannot be read or written.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The index is damaged.
    #[error("cannot read {path} ({problem}); move the file away, and pull its components again")]
    Index {
        /// The index.
        path: PathBuf,
        /// The error in it.
        problem: String,
    },
    /// The index has a format version that is not supported.
    #[error(
        "{path} has format {found}, this version of Opilio reads {FORMAT}; use a newer one, or another --store"
    )]
    Format {
        /// The index.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// There is no home directory, and no folder was given.
    #[error("no home directory for the store of components; pass a folder with --store")]
    NoHome,
}

/// The index file of the store.
#[derive(Debug, Serialize, Deserialize)]
struct Index {
    format: u32,
    /// Entries by image as requested.
    images: BTreeMap<Image, ImageEntry>,
    components: BTreeMap<Sha256, ComponentEntry>,
}

/// The component to which an image last referred.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ImageEntry {
    /// Its component.
    pub(crate) sha256: Sha256,
    /// Its manifest.
    pub(crate) manifest: Sha256,
    /// Time of the registry's last answer.
    pub(crate) asked: Timestamp,
}

/// The facts about a component.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ComponentEntry {
    bytes: u64,
    added: Timestamp,
    used: Timestamp,
    /// Folders of jobs that use it.
    #[serde(default)]
    jobs: BTreeSet<PathBuf>,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            format: FORMAT,
            images: BTreeMap::new(),
            components: BTreeMap::new(),
        }
    }
}

impl Store {
    /// The store in this folder, which need not exist yet.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        let blobs = Blobs::at(folder.join("components"));
        Self { folder, blobs }
    }

    /// The default folder of the store: among the user's data, on Linux `~/.local/share/opilio/plugins`.
    ///
    /// # Errors
    /// There is no home directory.
    pub fn default_folder() -> Result<PathBuf, StoreError> {
        use etcetera::BaseStrategy;
        let strategy = etcetera::choose_base_strategy().map_err(|_| StoreError::NoHome)?;
        Ok(strategy.data_dir().join("opilio").join("plugins"))
    }

    /// The folder of the store.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the component with this digest, if it exists and is intact.
    ///
    /// # Errors
    /// The file cannot be read, or has another digest than its name.
    pub fn get(&self, sha256: Sha256) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.blobs.get(sha256)?)
    }

    /// All components, by digest.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn list(&self) -> Result<Vec<StoredComponent>, StoreError> {
        let index = self.read()?;
        let mut all = Vec::new();
        for (sha256, bytes) in self.blobs.all()? {
            all.push(kept(&index, sha256, bytes));
        }
        Ok(all)
    }

    /// The component to which an image last referred, by its name or its manifest.
    pub(crate) fn image(&self, image: &Image) -> Result<Option<ImageEntry>, StoreError> {
        let index = self.read()?;
        let same = |(known, entry): &(&Image, &ImageEntry)| {
            known.registry() == image.registry()
                && known.repository() == image.repository()
                && image.digest() == Some(&format!("sha256:{}", entry.manifest))
        };
        let exact = index.images.get(image);
        let found = exact.or_else(|| index.images.iter().find(same).map(|(_, entry)| entry));
        Ok(found.cloned())
    }

    /// Stores a component as the current one of an image.
    pub(crate) fn keep(
        &self,
        image: &Image,
        manifest: Sha256,
        component: &[u8],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.change(|index| {
            let sha256 = self.blobs.put(component)?;
            index.wanted(sha256, component.len() as u64, now);
            let entry = ImageEntry {
                sha256,
                manifest,
                asked: now,
            };
            index.images.insert(image.clone(), entry);
            Ok(())
        })
    }

    /// Records the use of a component, and the job that uses it, so that it is not pruned.
    pub(crate) fn used(
        &self,
        sha256: Sha256,
        job: Option<&Path>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.change(|index| {
            if let Some(entry) = index.components.get_mut(&sha256) {
                entry.used = entry.used.max(now);
                entry.jobs.extend(job.map(Path::to_owned));
            }
            Ok(())
        })
    }

    /// Removes components that have no image and were not used to create an existing job. On request it also removes
    /// components that have not been used for long.
    ///
    /// # Errors
    /// The store cannot be read or written. Components removed before the error stay removed.
    pub fn prune(&self, prune: Prune, now: Timestamp) -> Result<PruneResult, StoreError> {
        self.change(|index| {
            let since = prune.unused_for.map(|time| now - time);
            let is_old = |sha256: &Sha256, components: &BTreeMap<Sha256, ComponentEntry>| {
                let used = components.get(sha256).map(|entry| entry.used);
                since.is_some_and(|since| used.is_none_or(|used| used < since))
            };
            // The lock is held, so no other process writes here.
            let mut pruned = PruneResult {
                partial: [Blobs::at(&self.folder).partial()?, self.blobs.partial()?].concat(),
                ..PruneResult::default()
            };
            for (sha256, bytes) in self.blobs.all()? {
                let kept = kept(index, sha256, bytes);
                let named = !kept.images.is_empty() && !is_old(&sha256, &index.components);
                if !named && kept.jobs.is_empty() {
                    pruned.components.push(kept);
                }
            }
            if prune.dry_run {
                return Ok(pruned);
            }
            for gone in &pruned.components {
                self.blobs.remove(gone.sha256)?;
                index.components.remove(&gone.sha256);
                index.images.retain(|_, entry| entry.sha256 != gone.sha256);
            }
            for path in &pruned.partial {
                fs::remove_file(path).map_err(refused("remove", path))?;
            }
            for entry in index.components.values_mut() {
                entry.jobs.retain(|job| job.is_dir());
            }
            Ok(pruned)
        })
    }

    fn read(&self) -> Result<Index, StoreError> {
        let path = self.folder.join("index.json");
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => {
                return Ok(Index::default());
            }
            Err(problem) => return Err(refused("read", &path)(problem)),
        };
        let damaged = |problem: serde_json::Error| StoreError::Index {
            path: path.clone(),
            problem: problem.to_string(),
        };
        let value: serde_json::Value = serde_json::from_slice(&text).map_err(damaged)?;
        let format = value.get("format").and_then(serde_json::Value::as_u64);
        match format.map(u32::try_from) {
            Some(Ok(found)) if found != FORMAT => Err(StoreError::Format {
                path: path.clone(),
                found,
            }),
            _ => serde_json::from_value(value).map_err(damaged),
        }
    }

    /// Reads, changes and writes the index, under the lock.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Index) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        fs::create_dir_all(&self.folder).map_err(refused("create", &self.folder))?;
        let path = self.folder.join("lock");
        let lock = File::create(&path).map_err(refused("open", &path))?;
        lock.lock().map_err(refused("lock", &path))?;
        let mut index = self.read()?;
        let before = serde_json::to_vec(&index).ok();
        let answer = change(&mut index);
        let path = self.folder.join("index.json");
        let text = serde_json::to_vec_pretty(&index).map_err(|problem| StoreError::Index {
            path: path.clone(),
            problem: problem.to_string(),
        })?;
        if serde_json::to_vec(&index).ok() != before {
            write_whole(&path, &text)?;
        }
        // The lock is released with the file.
        drop(lock);
        answer
    }
}

impl Index {
    fn wanted(&mut self, sha256: Sha256, bytes: u64, now: Timestamp) {
        let entry = self
            .components
            .entry(sha256)
            .or_insert_with(|| ComponentEntry {
                bytes,
                added: now,
                used: now,
                jobs: BTreeSet::new(),
            });
        entry.used = entry.used.max(now);
    }
}

/// The facts that the index has about a stored component.
fn kept(index: &Index, sha256: Sha256, bytes: u64) -> StoredComponent {
    let entry = index.components.get(&sha256);
    let images = index.images.iter();
    let images = images.filter(|(_, entry)| entry.sha256 == sha256);
    let jobs = entry.map(|entry| entry.jobs.iter().filter(|job| job.is_dir()).cloned());
    StoredComponent {
        sha256,
        bytes,
        images: images.map(|(image, _)| image.clone()).collect(),
        added: entry.map_or(Timestamp::UNIX_EPOCH, |entry| entry.added),
        used: entry.map_or(Timestamp::UNIX_EPOCH, |entry| entry.used),
        jobs: jobs.into_iter().flatten().collect(),
    }
}

fn refused(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |problem| StoreError::Io {
        what,
        path,
        problem,
    }
}

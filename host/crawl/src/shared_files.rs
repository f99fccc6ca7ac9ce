//! The files of a shared crawl in the cluster: profile, seeds, components of plugins, and other files that the profile names. The
//! node that creates the crawl stores them under their digests. A node without the profile fetches them into the job's directory.
//!
//! Files with secrets are not stored. On a node that has fetched the profile, their relative paths are resolved against another
//! folder.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use opilio_cluster::{
    Cluster, ClusterConfig, ClusterConnection, ClusterError, ClusterJob, JobInputs, JobStorage,
    MemberScope, StoredFile, check_name,
};
use opilio_job::directory::{JobError, is_job};
use opilio_job::fetched_files::{FETCHED_FOLDER, FetchedFiles};
use opilio_job::text_file::write_text;
use opilio_profile::{Diagnostics, Layer, Profile, ProfileContext};
use serde::{Deserialize, Serialize};

use crate::error::{CrawlError, io_error};

/// Name of the list of parts among the files of a job in the cluster. Without further parts it is the list of nodes.
const PARTS_FILE: &str = "list of nodes";

const PROFILE_FILE: &str = "profile";
const SEEDS_FILE: &str = "list of seeds";
const DESCRIPTION_FILE: &str = "description";

/// Longest extension that the copy of a file keeps, in bytes.
const EXTENSION_MAX: usize = 8;

/// The files of a shared crawl as this node has them.
pub struct SharedFiles {
    /// The profile; `None` if it comes from the cluster.
    pub(crate) profile: Option<String>,
    /// All seeds, one a line.
    pub(crate) seeds: String,
    /// Names of all parts, one a line.
    pub(crate) parts: String,
    pub(crate) description: SharedProfile,
    /// Contents of files that the profile names, by their names in the description.
    pub(crate) contents: BTreeMap<String, Vec<u8>>,
}

/// Information about the profile of a shared crawl that is not in its text. It contains no folders, because these differ by
/// machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SharedProfile {
    /// Name of the crawl.
    pub(crate) name: String,
    /// Contact URL that was given in addition to the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) contact_url: Option<String>,
    /// Names of files of the job, by the texts of the profile's settings.
    pub(crate) files: BTreeMap<String, String>,
    /// The profiles that the profile extends, in the order in which they apply.
    pub(crate) extended: Vec<SharedLayer>,
    /// SHA-256 of the component of each plugin that is not built in.
    pub(crate) plugins: BTreeMap<String, String>,
}

/// A profile that the profile of a shared crawl extends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SharedLayer {
    /// Name of the profile's file.
    pub(crate) file: String,
    pub(crate) text: String,
    /// Names of files of the job, by the texts of the profile's settings.
    pub(crate) files: BTreeMap<String, String>,
}

impl SharedFiles {
    /// Creates a job of the cluster with these files, or opens the job and compares the files. A node that has fetched the profile
    /// creates no job.
    ///
    /// # Errors
    /// The job has other files, there is no such job to fetch from, or NATS fails.
    pub(crate) async fn open(
        &self,
        cluster: &Cluster,
        name: &str,
    ) -> Result<ClusterJob, ClusterError> {
        let job = match self.profile {
            None => ClusterJob::open(cluster, name).await?,
            Some(_) => {
                let description = serde_json::to_vec(&self.description).unwrap_or_default();
                let contents = self.contents.iter();
                let contents = contents.map(|(file, content)| (file.as_str(), content.as_slice()));
                let mut more: Vec<(&str, &[u8])> = contents.collect();
                more.push((DESCRIPTION_FILE, &description));
                let inputs = JobInputs {
                    same: &self.same(),
                    more: &more,
                };
                ClusterJob::create_or_open(cluster, name, inputs, JobStorage::default()).await?
            }
        };
        self.check(&job).await?;
        Ok(job)
    }

    /// Checks that a job has the same files and components.
    ///
    /// # Errors
    /// The first difference, or NATS fails.
    pub(crate) async fn check(&self, job: &ClusterJob) -> Result<(), ClusterError> {
        job.check_files(&self.same())?;
        let theirs = SharedProfile::of(job).await?;
        self.description.check(&theirs, job.name())
    }

    fn same(&self) -> Vec<(&'static str, &[u8])> {
        let mut same = vec![(PARTS_FILE, self.parts.as_bytes())];
        // The seeds of a fetched profile are those of the cluster anyway.
        if let Some(profile) = &self.profile {
            same.push((PROFILE_FILE, profile.as_bytes()));
            same.push((SEEDS_FILE, self.seeds.as_bytes()));
        }
        same
    }
}

impl SharedProfile {
    /// The description of a job.
    async fn of(job: &ClusterJob) -> Result<SharedProfile, ClusterError> {
        let json = job.read_file(DESCRIPTION_FILE).await?;
        serde_json::from_slice(&json).map_err(|problem| {
            ClusterError::Config(format!(
                "cannot read the description of job {:?} of the cluster ({problem}): run the same version of Opilio on all nodes",
                job.name()
            ))
        })
    }

    fn check(&self, theirs: &SharedProfile, job: &str) -> Result<(), ClusterError> {
        let texts = |profile: &SharedProfile| {
            let layers = profile.extended.iter();
            layers.map(|layer| layer.text.clone()).collect::<Vec<_>>()
        };
        let (own, others) = (texts(self), texts(theirs));
        if own != others {
            let differs = |layer: &&SharedLayer| others.iter().all(|text| *text != layer.text);
            let layer = self.extended.iter().find(differs);
            let layer = layer.or(theirs.extended.first());
            return Err(ClusterError::OtherFile {
                job: job.to_owned(),
                file: format!(
                    "profile {:?} that the profile extends",
                    layer.map_or("", |layer| &*layer.file)
                ),
            });
        }
        for (plugin, sha256) in &theirs.plugins {
            if self.plugins.get(plugin) != Some(sha256) {
                return Err(ClusterError::OtherComponent {
                    job: job.to_owned(),
                    plugin: plugin.clone(),
                    sha256: sha256.clone(),
                });
            }
        }
        Ok(())
    }
}

/// The profile of a job of the cluster, with its files in the folder of fetched files of a job's directory. If the directory is not
/// a job when this is dropped, the files are removed again.
#[derive(Debug)]
pub struct FetchedProfile {
    name: String,
    contact_url: Option<String>,
    own: Layer,
    below: Vec<Layer>,
    seeds: String,
    parts: Vec<String>,
    files: FetchedFiles,
    // Removes the files when it is dropped.
    _folder: FetchedFolder,
}

impl FetchedProfile {
    /// Fetches the profile and the files of a job into the directory of a job that is to be made. The digest of each file is
    /// checked. `base` is the folder against which relative paths of files with secrets are resolved on this machine.
    ///
    /// # Errors
    /// There is no such job, a file is missing or damaged, NATS fails, a file cannot be written, or another process fetches into
    /// the directory. After an error, no files are left.
    pub async fn fetch(
        config: &ClusterConfig,
        job: &str,
        base: &Path,
        directory: &Path,
    ) -> Result<FetchedProfile, CrawlError> {
        let connection = ClusterConnection::open(config.clone()).await?;
        let scope = MemberScope::Job(job.to_owned());
        // Opening the members' bucket would create it.
        let cluster = Cluster::find(connection, &scope).await?;
        let cluster = cluster.ok_or_else(|| ClusterError::UnknownJob {
            job: job.to_owned(),
        })?;
        let job = ClusterJob::open(&cluster, job).await?;
        let description = SharedProfile::of(&job).await?;
        let profile = text_of(&job, PROFILE_FILE).await?;
        let seeds = text_of(&job, SEEDS_FILE).await?;
        let parts = parts_of_job(&job).await?;
        let folder = FetchedFolder::hold(directory)?;
        let extended = description.extended.iter().map(|layer| &layer.files);
        let layers: Vec<_> = std::iter::once(&description.files)
            .chain(extended)
            .collect();
        let mut names = Vec::new();
        for files in layers {
            let mut of_layer = BTreeMap::new();
            for (written, file) in files {
                of_layer.insert(written.clone(), folder.fetch(&job, file).await?);
            }
            names.push(of_layer);
        }
        let layer = |file: String, text: String| Layer {
            file,
            text,
            base: base.to_owned(),
            files: BTreeMap::new(),
        };
        let mut own = layer(format!("profile of job {}", job.name()), profile);
        let below = description.extended.into_iter();
        let mut below: Vec<Layer> = below.map(|it| layer(it.file, it.text)).collect();
        let files = FetchedFiles::new(names);
        let applied = files.apply(directory, &mut own, &mut below);
        applied.map_err(|source| io_error(directory, source))?;
        Ok(FetchedProfile {
            name: description.name,
            contact_url: description.contact_url,
            own,
            below,
            seeds,
            parts,
            files,
            _folder: folder,
        })
    }

    /// Names of all parts of the job.
    #[must_use]
    pub fn parts(&self) -> &[String] {
        &self.parts
    }

    pub(crate) fn contact_url(&self) -> Option<&String> {
        self.contact_url.as_ref()
    }

    pub(crate) fn files(&self) -> &FetchedFiles {
        &self.files
    }

    pub(crate) fn base(&self) -> &Path {
        &self.own.base
    }

    /// Checks the profile, with the job's seeds.
    ///
    /// # Errors
    /// All its errors, if one is of [`Level::Error`](opilio_profile::Level::Error).
    pub fn load(&self, given: &ProfileContext) -> Result<Profile, Diagnostics> {
        let seeds = std::iter::once(&self.seeds).chain(&given.seeds);
        let given = ProfileContext {
            seeds: seeds.cloned().collect(),
            seeds_elsewhere: true,
            name: Some(self.name.clone()),
            base: Some(self.own.base.clone()),
            ..given.clone()
        };
        Profile::layered(self.below.clone(), self.own.clone(), Vec::new(), &given)
    }
}

/// Reads the names of all parts of a job, in their order.
///
/// # Errors
/// A name is invalid, the file is missing or damaged, or NATS fails.
pub async fn parts_of_job(job: &ClusterJob) -> Result<Vec<String>, ClusterError> {
    part_list(&job.read_file(PARTS_FILE).await?)
}

/// The names of parts are used as names of directories, so a name must not be a path.
fn part_list(content: &[u8]) -> Result<Vec<String>, ClusterError> {
    let names = String::from_utf8_lossy(content);
    let names: Vec<String> = names.lines().map(str::to_owned).collect();
    for name in &names {
        check_name("name of a part", name)?;
    }
    Ok(names)
}

async fn text_of(job: &ClusterJob, file: &str) -> Result<String, ClusterError> {
    let content = job.read_file(file).await?;
    Ok(String::from_utf8_lossy(&content).into_owned())
}

/// The folder of fetched files of a job's directory.
#[derive(Debug)]
struct FetchedFolder {
    job: PathBuf,
    // A lock on the directory itself. The job's own lock is for the process that makes the job. Without this lock, a failing
    // process would remove the files of another process that is about to make the job.
    _lock: Option<File>,
}

impl FetchedFolder {
    /// Creates the directory of the job if necessary, and locks it, so that no other process fetches into it. On file systems
    /// without locks on directories, other processes are not prevented from that.
    fn hold(job: &Path) -> Result<FetchedFolder, CrawlError> {
        fs::create_dir_all(job).map_err(|source| io_error(job, source))?;
        let lock = File::open(job).ok();
        match lock.as_ref().map(File::try_lock) {
            Some(Err(TryLockError::WouldBlock)) => Err(JobError::InUse {
                directory: job.display().to_string(),
                process: "unknown".to_owned(),
            }
            .into()),
            _ => Ok(FetchedFolder {
                job: job.to_owned(),
                _lock: lock,
            }),
        }
    }

    /// Fetches a file, and returns the name of its copy.
    async fn fetch(&self, job: &ClusterJob, file: &str) -> Result<String, CrawlError> {
        let content = job.read_file(file).await?;
        let stored = job.manifest().files.get(file);
        let name = stored.map_or_else(String::new, |stored| copy_name(file, stored));
        let folder = self.job.join(FETCHED_FOLDER);
        let copy = folder.join(&name);
        let to = copy.clone();
        let written = tokio::task::spawn_blocking(move || {
            fs::create_dir_all(&folder)?;
            // The file is written completely or not at all, so that a restart of the machine cannot leave half a list of seeds.
            write_text(&to, &content)
        });
        let written = written.await;
        let written = written.unwrap_or_else(|panic| Err(io::Error::other(panic)));
        written.map_err(|source| io_error(&copy, source))?;
        Ok(name)
    }
}

impl Drop for FetchedFolder {
    fn drop(&mut self) {
        if is_job(&self.job) {
            return;
        }
        let folder = self.job.join(FETCHED_FOLDER);
        match fs::remove_dir_all(&folder) {
            Err(problem) if problem.kind() != io::ErrorKind::NotFound => {
                tracing::warn!("cannot remove {}: {problem}", folder.display());
            }
            // Other files in the directory were not fetched by this process and stay.
            _ => drop(fs::remove_dir(&self.job)),
        }
    }
}

/// Returns the name of the copy of a file: its digest, with the extension of the original file.
fn copy_name(file: &str, stored: &StoredFile) -> String {
    let extension = Path::new(file)
        .extension()
        .and_then(|extension| extension.to_str())
        .and_then(|extension| extension.split('#').next());
    let is_plain = |text: &&str| {
        (1..=EXTENSION_MAX).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric())
    };
    match extension.filter(is_plain) {
        Some(extension) => format!("{}.{extension}", stored.sha256),
        None => stored.sha256.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(extended: &str, component: &str) -> SharedProfile {
        SharedProfile {
            name: "news".to_owned(),
            extended: vec![SharedLayer {
                file: "house.toml".to_owned(),
                text: extended.to_owned(),
                files: BTreeMap::new(),
            }],
            plugins: BTreeMap::from([("own".to_owned(), component.to_owned())]),
            ..SharedProfile::default()
        }
    }

    #[test]
    fn the_error_names_the_first_difference() {
        let ours = profile("workers = 2", "aa");
        let check =
            |theirs: SharedProfile| ours.check(&theirs, "news").map_err(|it| it.to_string());
        assert_eq!(check(profile("workers = 2", "aa")), Ok(()));
        let problem = check(profile("workers = 3", "bb")).unwrap_err();
        assert!(
            problem.contains("another profile \"house.toml\""),
            "{problem}"
        );
        let problem = check(profile("workers = 2", "bb")).unwrap_err();
        assert!(
            problem.starts_with("plugin \"own\" has another component"),
            "{problem}"
        );
        assert!(problem.contains("SHA-256 bb there"), "{problem}");
    }

    #[test]
    fn part_names_that_are_paths_are_refused() {
        assert_eq!(part_list(b"a\npart-1").unwrap(), ["a", "part-1"]);
        for content in ["a\npart-/../../elsewhere", "a\n\nb", "a b", "\u{fc}"] {
            let problem = part_list(content.as_bytes()).unwrap_err().to_string();
            assert!(problem.contains("invalid name of a part"), "{problem}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_second_process_that_fetches_into_a_directory_is_refused_and_removes_no_files() {
        let home = tempfile::tempdir().unwrap();
        let job = home.path().join("job");
        let first = FetchedFolder::hold(&job).unwrap();
        let copy = job.join(FETCHED_FOLDER).join("00ff.txt");
        fs::create_dir(job.join(FETCHED_FOLDER)).unwrap();
        fs::write(&copy, "rows").unwrap();
        let refused = FetchedFolder::hold(&job).unwrap_err().to_string();
        assert!(refused.contains("is in use by process"), "{refused}");
        assert!(copy.exists());
        // The directory has not become a job.
        drop(first);
        assert!(!job.exists());
        // The directory becomes a job.
        let again = FetchedFolder::hold(&job).unwrap();
        fs::create_dir(job.join(FETCHED_FOLDER)).unwrap();
        fs::write(&copy, "rows").unwrap();
        fs::write(job.join("job.json"), "{}").unwrap();
        drop(again);
        assert!(copy.exists());
    }

    #[test]
    fn copies_have_names_without_folders() {
        let stored = StoredFile {
            sha256: "00ff".to_owned(),
            bytes: 1,
        };
        let name = |file| copy_name(file, &stored);
        assert_eq!(name("file plugins/own.wasm#stories"), "00ff.wasm");
        assert_eq!(name("file ../lists/rows.txt"), "00ff.txt");
        assert_eq!(name("file rows"), "00ff");
        assert_eq!(name("file rows.a/b"), "00ff");
        assert_eq!(name("file rows. txt"), "00ff");
    }
}

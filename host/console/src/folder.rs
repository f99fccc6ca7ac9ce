//! The folder of jobs: each job is a directory in it and has the directory's name. This includes jobs made there by
//! `opilio crawl`. The daemon's own files are in `.opilio/`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use opilio_control::{Author, Checkpoint, ControlError};
use opilio_crawl::{
    CrawlError, Diagnostics, JobError, Order, ProcessEndKind, ProcessRecord, ProfileSource,
    files_stay_inside, is_job, is_made_halfway, lock_job, plan,
};

use crate::orders::Orders;
use crate::process;

/// Longest name of a job.
pub(crate) const NAME_BYTES_MAX: usize = 100;

/// A folder of jobs.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
    component_cache: Option<PathBuf>,
}

/// A job to create.
#[derive(Debug, Clone)]
pub struct NewJob {
    /// Name of the job.
    pub name: String,
    /// Profile of the job.
    pub profile: ProfileSource,
    /// Seeds in addition to those of the profile.
    pub seeds: Vec<String>,
    /// The operator's contact page, in place of the profile's.
    pub contact_url: Option<String>,
}

/// The reason why an operation on a job failed. The job is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum JobsFolderError {
    /// The name is not valid for a job.
    #[error(
        "invalid job name {0:?}: use at most {NAME_BYTES_MAX} letters, digits, '.', '-' and '_', and begin with a letter or digit"
    )]
    Name(String),
    /// The job does not exist.
    #[error("job {0:?} not found")]
    Unknown(String),
    /// The name is in use.
    #[error("{0:?} already exists; choose another name")]
    Taken(String),
    /// A process runs the job.
    #[error("job {0:?} is running; stop it first")]
    Running(String),
    /// The job waits for a process.
    #[error("job {0:?} waits to be started; stop it first")]
    Waiting(String),
    /// The profile has errors, or the job cannot be created.
    #[error(transparent)]
    Crawl(#[from] CrawlError),
    /// The job does not answer.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The file system reports an error.
    #[error("cannot use {}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl From<JobError> for JobsFolderError {
    fn from(problem: JobError) -> JobsFolderError {
        JobsFolderError::Crawl(problem.into())
    }
}

impl Folder {
    /// Opens a folder, and creates it if it does not exist.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn open(path: &Path, component_cache: Option<PathBuf>) -> Result<Folder, JobsFolderError> {
        let path = std::path::absolute(path).map_err(|source| failed(path, source))?;
        fs::create_dir_all(&path).map_err(|source| failed(&path, source))?;
        Ok(Folder {
            path,
            component_cache,
        })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The cache of compiled components.
    pub(crate) fn component_cache(&self) -> Option<PathBuf> {
        self.component_cache.clone()
    }

    /// The names of all jobs, sorted.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn names(&self) -> Result<Vec<String>, JobsFolderError> {
        let entries = fs::read_dir(&self.path).map_err(|source| failed(&self.path, source))?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|source| failed(&self.path, source))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_name(&name) && is_job(&entry.path()) {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// The directory of a job.
    ///
    /// # Errors
    /// There is no such job.
    pub fn job(&self, name: &str) -> Result<PathBuf, JobsFolderError> {
        let directory = self.path.join(name);
        // A name that leads elsewhere is not the name of a job.
        match is_name(name) && is_job(&directory) {
            true => Ok(directory),
            false => Err(JobsFolderError::Unknown(name.to_owned())),
        }
    }

    /// Checks a profile and makes a job with it. Returns notes about the profile. The job does not begin to crawl. Blocks, as
    /// components may have to be compiled.
    ///
    /// # Errors
    /// The profile has errors, or the name is in use. Then no job was made.
    pub fn make(&self, new: NewJob) -> Result<Diagnostics, JobsFolderError> {
        let directory = self.free(&new.name)?;
        let plan = plan(&Order {
            profile: new.profile,
            seeds: new.seeds,
            contact_url: new.contact_url,
            job: Some(directory.clone()),
            component_cache: self.component_cache.clone(),
        })?;
        let notes = plan.profile().notices.clone();
        let made = plan.make();
        let made = made.inspect_err(|_| remove_incomplete(&directory));
        made.map(|_| notes).map_err(JobsFolderError::from)
    }

    /// Makes a job with the profile, seeds and plugins of another one, and without its results. Blocks, as components may have
    /// to be compiled.
    ///
    /// # Errors
    /// The job does not exist, its profile is no longer valid, or the new name is in use. Then no job was made.
    pub fn copy(&self, name: &str, copy: &str) -> Result<PathBuf, JobsFolderError> {
        let from = self.job(name)?;
        let directory = self.free(copy)?;
        // Checked before the profile is read: errors quote its content.
        files_stay_inside(&from).map_err(JobError::Link)?;
        // For an existing job, `plan` uses the job's own profile instead of the named one.
        plan(&Order {
            profile: ProfileSource::File(from.join("profile.toml")),
            seeds: Vec::new(),
            contact_url: None,
            job: Some(from.clone()),
            component_cache: self.component_cache.clone(),
        })?;
        let made = opilio_crawl::copy_job(&from, &directory);
        let made = made.inspect_err(|_| remove_incomplete(&directory));
        made.map(|_| directory).map_err(JobsFolderError::from)
    }

    /// Removes the state of a job. Its archive, logs, reports, profile and seeds stay, unless `with_archive` is set. An archive
    /// at another place, named by the profile, always stays.
    ///
    /// # Errors
    /// The job does not exist, or is running. Then nothing was removed.
    pub fn delete(&self, name: &str, with_archive: bool) -> Result<(), JobsFolderError> {
        let directory = self.job(name)?;
        let io = |source| failed(&directory, source);
        // While the lock is held, no process can start or open the job.
        let _held = lock_job(&directory).map_err(|problem| match problem {
            JobError::InUse { .. } => JobsFolderError::Running(name.to_owned()),
            other => other.into(),
        })?;
        // Another process may have removed the job before it was locked.
        self.job(name)?;
        // Without this file, the directory is not a job, even if a later step fails.
        fs::remove_file(directory.join("job.json")).map_err(io)?;
        if with_archive {
            // The directory is moved first, because a process that has just opened the job may still write into it.
            let own = self.path.join(".opilio");
            let gone = own.join(format!("deleted-{name}"));
            fs::create_dir_all(&own).map_err(io)?;
            match fs::remove_dir_all(&gone) {
                Err(problem) if problem.kind() != io::ErrorKind::NotFound => {
                    return Err(io(problem));
                }
                _ => {}
            }
            fs::rename(&directory, &gone).map_err(io)?;
            return fs::remove_dir_all(&gone).map_err(io);
        }
        for known in [
            "state",
            "scratch",
            "components",
            "cluster-files",
            "checkpoints",
            "restoring",
            "restoring.new",
        ] {
            match fs::remove_dir_all(directory.join(known)) {
                Err(problem) if problem.kind() != io::ErrorKind::NotFound => {
                    return Err(io(problem));
                }
                _ => {}
            }
        }
        let files = [
            "plugins.json",
            "stacks.jsonl",
            "process.json",
            "orders.json",
            "cluster.json",
            "cluster-commands.json",
            "cluster-files.json",
            "lock",
        ];
        for known in files {
            match fs::remove_file(directory.join(known)) {
                Err(problem) if problem.kind() != io::ErrorKind::NotFound => {
                    return Err(io(problem));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Restores a job's checkpoint: its state is as it was then. Its archive, logs and history stay. Blocks, as frontiers may be
    /// large.
    ///
    /// # Errors
    /// The job does not exist, it is running or ordered to crawl, or the checkpoint is invalid or of another job. Nothing was
    /// changed.
    pub fn reset_to_checkpoint(
        &self,
        name: &str,
        checkpoint: &Path,
        by: &Author,
    ) -> Result<Checkpoint, JobsFolderError> {
        let directory = self.job(name)?;
        let io = |source| failed(&directory.join("orders.json"), source);
        let orders = || Orders::read(&directory).map_err(io);
        // If the job is crawling, its own process refuses. The daemon may not know yet that a job has ended.
        let is_reachable = opilio_control::is_reachable(&directory);
        let process_record = ProcessRecord::read(&directory).ok().flatten();
        let is_wanted = |orders: Orders| {
            let ended = process::end_of_begun(&orders, process_record.as_ref());
            // A job whose process was ended by the system will be restarted.
            orders.crawl && ended.is_none_or(|ended| ended.how == ProcessEndKind::Terminated)
        };
        if !is_reachable && orders()?.is_some_and(is_wanted) {
            return Err(JobsFolderError::Waiting(name.to_owned()));
        }
        let made = opilio_control::reset_to_checkpoint(&directory, checkpoint, by)?;
        // This clears the reason for which the job is not restarted, and avoids that the ended process counts as dead.
        if orders()?.is_some_and(|orders| orders.crawl || orders.gave_up.is_some()) {
            Orders::new(false, &by.user).write(&directory).map_err(io)?;
        }
        Ok(made)
    }

    /// The directory for a new job of this name.
    fn free(&self, name: &str) -> Result<PathBuf, JobsFolderError> {
        let directory = self.directory(name)?;
        match directory.symlink_metadata() {
            // A process that was killed while it created a job of this name has left an incomplete directory.
            Ok(found) if found.is_dir() && is_made_halfway(&directory) => Ok(directory),
            Ok(_) => Err(JobsFolderError::Taken(name.to_owned())),
            Err(_) => Ok(directory),
        }
    }

    fn directory(&self, name: &str) -> Result<PathBuf, JobsFolderError> {
        match is_name(name) {
            true => Ok(self.path.join(name)),
            false => Err(JobsFolderError::Name(name.to_owned())),
        }
    }
}

/// Removes an incomplete job, for example after the disk was full, so that its name is free. A job that another process creates at
/// the same time stays.
fn remove_incomplete(directory: &Path) {
    let is_ours = !is_job(directory) && matches!(opilio_crawl::is_held(directory), Ok(false));
    if is_ours
        && let Err(problem) = fs::remove_dir_all(directory)
        && problem.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(
            "cannot remove the incomplete {}: {problem}",
            directory.display()
        );
    }
}

pub(crate) fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    name.len() <= NAME_BYTES_MAX
        && name.bytes().all(is_plain)
        && name
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric())
}

fn failed(path: &Path, source: io::Error) -> JobsFolderError {
    JobsFolderError::Io {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_paths_are_not_jobs() {
        for name in ["a", "dk-2026-07-01", "A_b.c", "9"] {
            assert!(is_name(name), "{name}");
        }
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        for name in [
            "", ".", "..", "../a", "a/b", "a\\b", ".opilio", "-a", "a b", "ä", "a\0", "a\n", &long,
        ] {
            assert!(!is_name(name), "{name:?}");
        }
    }
}

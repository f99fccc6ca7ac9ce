//! The folder of jobs: each is a directory in it, and its name is the directory's. Jobs that `opilio crawl` makes there are
//! jobs like any other. The daemon's own files are in `.opilio/`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use opilio_crawl::control::{self, By, Checkpoint, ControlError};
use opilio_crawl::{
    Course, CrawlError, EndWord, JobError, Order, ProfileSource, files_stay_inside, hold, is_job,
    is_made_halfway, plan,
};

use crate::orders::Orders;
use crate::process;

/// Longest name.
const NAME_BYTES_MAX: usize = 100;

/// Jobs side by side.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
    component_cache: Option<PathBuf>,
}

/// What a new job is made of.
#[derive(Debug, Clone)]
pub struct NewJob {
    /// Its name.
    pub name: String,
    /// Its profile.
    pub profile: ProfileSource,
    /// Seeds beside those of the profile.
    pub seeds: Vec<String>,
    /// A page that says who crawls and why, in place of the profile's.
    pub contact_url: Option<String>,
}

/// Why nothing was done with a job.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// No job can be called so.
    #[error(
        "{0:?} is no name of a job: letters, digits, '.', '-' and '_' make one, the first a letter or digit, {NAME_BYTES_MAX} at most"
    )]
    Name(String),
    /// There is no such job.
    #[error("there is no job {0:?}")]
    Unknown(String),
    /// There is something of that name.
    #[error("there is {0:?} already; choose another name")]
    Taken(String),
    /// A process runs it.
    #[error("job {0:?} is running; stop it first")]
    Running(String),
    /// It has no process, and is to get one.
    #[error("job {0:?} is to crawl; stop it first")]
    Wanted(String),
    /// Its profile has faults, or it cannot be made.
    #[error(transparent)]
    Crawl(#[from] CrawlError),
    /// It cannot be asked.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The file system refused.
    #[error("cannot use {}", path.display())]
    Io {
        /// What.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl From<JobError> for FolderError {
    fn from(problem: JobError) -> FolderError {
        FolderError::Crawl(problem.into())
    }
}

impl Folder {
    /// Opens a folder; one that is not there yet is made.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn open(path: &Path, component_cache: Option<PathBuf>) -> Result<Folder, FolderError> {
        let path = std::path::absolute(path).map_err(|source| failed(path, source))?;
        fs::create_dir_all(&path).map_err(|source| failed(&path, source))?;
        Ok(Folder {
            path,
            component_cache,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where compiled components are kept.
    pub(crate) fn component_cache(&self) -> Option<PathBuf> {
        self.component_cache.clone()
    }

    /// The names of all jobs, sorted.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn names(&self) -> Result<Vec<String>, FolderError> {
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
    pub fn job(&self, name: &str) -> Result<PathBuf, FolderError> {
        let directory = self.path.join(name);
        // No job is called what leads elsewhere.
        match is_name(name) && is_job(&directory) {
            true => Ok(directory),
            false => Err(FolderError::Unknown(name.to_owned())),
        }
    }

    /// Checks a profile and makes a job of it. It does not begin to crawl. Blocks, as components may have to be compiled.
    ///
    /// # Errors
    /// The profile has faults, or the name is taken. Then nothing was made.
    pub fn make(&self, new: NewJob) -> Result<PathBuf, FolderError> {
        let directory = self.free(&new.name)?;
        let plan = plan(&Order {
            profile: new.profile,
            seeds: new.seeds,
            contact_url: new.contact_url,
            job: Some(directory.clone()),
            component_cache: self.component_cache.clone(),
        })?;
        let made = plan.make();
        let made = made.inspect_err(|_| forget_halfway(&directory));
        made.map(|_| directory).map_err(FolderError::from)
    }

    /// Makes a job with the profile, the seeds and the plugins that another one was made with, and nothing of what it found. Blocks,
    /// as components may have to be compiled.
    ///
    /// # Errors
    /// There is no such job, its profile has faults by now, or the new name is taken. Then nothing was made.
    pub fn copy(&self, name: &str, copy: &str) -> Result<PathBuf, FolderError> {
        let from = self.job(name)?;
        let directory = self.free(copy)?;
        // Before it is read: what has faults is quoted.
        files_stay_inside(&from).map_err(JobError::Link)?;
        // Of a job that is there its own profile counts, whatever is named.
        plan(&Order {
            profile: ProfileSource::File(from.join("profile.toml")),
            seeds: Vec::new(),
            contact_url: None,
            job: Some(from.clone()),
            component_cache: self.component_cache.clone(),
        })?;
        let made = opilio_crawl::copy_job(&from, &directory);
        let made = made.inspect_err(|_| forget_halfway(&directory));
        made.map(|_| directory).map_err(FolderError::from)
    }

    /// Removes what a job knows. Its archive, logs, reports, profile and seeds stay, unless these are to go, too. An archive
    /// that the profile has elsewhere always stays.
    ///
    /// # Errors
    /// There is no such job, or it is running. Then nothing was removed.
    pub fn delete(&self, name: &str, with_archive: bool) -> Result<(), FolderError> {
        let directory = self.job(name)?;
        let io = |source| failed(&directory, source);
        // Nobody begins or opens it from here on.
        let _held = hold(&directory).map_err(|problem| match problem {
            JobError::InUse { .. } => FolderError::Running(name.to_owned()),
            other => other.into(),
        })?;
        // Somebody else may have been quicker.
        self.job(name)?;
        // From here on it is no job, whatever happens in between.
        fs::remove_file(directory.join("job.json")).map_err(io)?;
        if with_archive {
            // Out of the way first: whoever has just looked at the job may write what it has seen.
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
            "course.json",
            "orders.json",
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

    /// Takes a job back to a checkpoint of its own: what it knows is as it was then. Its archive, logs and history stay. Blocks, as
    /// frontiers may be large.
    ///
    /// # Errors
    /// There is no such job, it crawls or is to, or the checkpoint is none or another job's. Then nothing was changed.
    pub fn go_back(
        &self,
        name: &str,
        checkpoint: &Path,
        by: &By,
    ) -> Result<Checkpoint, FolderError> {
        let directory = self.job(name)?;
        let io = |source| failed(&directory.join("orders.json"), source);
        let orders = || Orders::read(&directory).map_err(io);
        // One that crawls is told so by the process that has it; of one that has ended the daemon may not know yet.
        let is_reachable = control::is_reachable(&directory);
        let course = Course::read(&directory).ok().flatten();
        let is_wanted = |orders: Orders| {
            let ended = process::end_of_begun(&orders, course.as_ref());
            // What the system ended is begun again.
            orders.crawl && ended.is_none_or(|ended| ended.how == EndWord::Terminated)
        };
        if !is_reachable && orders()?.is_some_and(is_wanted) {
            return Err(FolderError::Wanted(name.to_owned()));
        }
        let made = control::go_back(&directory, checkpoint, by)?;
        // Why nobody begins it again is over, and what had ended is not taken for one that died.
        if orders()?.is_some_and(|orders| orders.crawl || orders.gave_up.is_some()) {
            Orders::new(false, &by.user).write(&directory).map_err(io)?;
        }
        Ok(made)
    }

    /// The directory that a new job of this name would have.
    fn free(&self, name: &str) -> Result<PathBuf, FolderError> {
        let directory = self.place(name)?;
        match directory.symlink_metadata() {
            // Left by a process that was killed while it made a job of this name.
            Ok(found) if found.is_dir() && is_made_halfway(&directory) => Ok(directory),
            Ok(_) => Err(FolderError::Taken(name.to_owned())),
            Err(_) => Ok(directory),
        }
    }

    fn place(&self, name: &str) -> Result<PathBuf, FolderError> {
        match is_name(name) {
            true => Ok(self.path.join(name)),
            false => Err(FolderError::Name(name.to_owned())),
        }
    }
}

/// What could not be made to its end goes again, as on a full disk, so that its name is free. What somebody else makes at the
/// same time stays.
fn forget_halfway(directory: &Path) {
    let is_ours = !is_job(directory) && matches!(opilio_crawl::is_held(directory), Ok(false));
    if is_ours
        && let Err(problem) = fs::remove_dir_all(directory)
        && problem.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!("{} stays, half made: {problem}", directory.display());
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

fn failed(path: &Path, source: io::Error) -> FolderError {
    FolderError::Io {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_folder() {
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

//! Configurations of jobs that have not been built: folders with a `crawler-beans.cxml`. Configurations sent over the API are
//! stored with the daemon's own files. Others are put into the folder of jobs by hand. These are moved away when their job is
//! built, because a job is created in an empty folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::folder::is_name;
use crate::problem::Problem;

/// File name of a job's configuration.
pub(super) const CONFIG: &str = "crawler-beans.cxml";

/// File name of a configuration that is only for copying.
const PROFILE: &str = "profile-crawler-beans.cxml";

/// File that marks a job as torn down.
const TORN_DOWN: &str = "torn-down";

/// Largest file of a configuration.
pub(super) const BYTES_MAX: u64 = 16 << 20;

/// All configurations.
pub(super) struct Drafts {
    drafts_folder: PathBuf,
    jobs: PathBuf,
}

/// A configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Draft {
    pub folder: PathBuf,
    /// `true` if the configuration is only for copying and cannot be built.
    pub is_profile: bool,
}

impl Draft {
    /// Path of its `crawler-beans.cxml`.
    pub(super) fn config(&self) -> PathBuf {
        self.folder.join(match self.is_profile {
            true => PROFILE,
            false => CONFIG,
        })
    }
}

impl Drafts {
    pub(super) fn new(own: &Path, jobs: &Path) -> Drafts {
        Drafts {
            drafts_folder: own.join("heritrix"),
            jobs: jobs.to_owned(),
        }
    }

    /// Finds the configuration of this name. One in the folder of jobs takes precedence, because it is newer.
    pub(super) fn find(&self, name: &str) -> Option<Draft> {
        if !is_name(name) {
            return None;
        }
        let in_jobs = self.jobs.join(name);
        let is_free = !opilio_crawl::is_job(&in_jobs);
        let folders = [in_jobs, self.drafts_folder.join(name)];
        let mut folders = folders.into_iter().skip(usize::from(!is_free));
        folders.find_map(|folder| {
            let has = |file: &str| folder.join(file).is_file();
            let is_profile = !has(CONFIG) && has(PROFILE);
            (is_profile || has(CONFIG)).then_some(Draft { folder, is_profile })
        })
    }

    /// All names, sorted.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for folder in [&self.drafts_folder, &self.jobs] {
            let entries = match fs::read_dir(folder) {
                Err(problem) if problem.kind() == io::ErrorKind::NotFound => continue,
                entries => entries?,
            };
            for entry in entries {
                if let Ok(name) = entry?.file_name().into_string()
                    && self.find(&name).is_some()
                {
                    names.push(name);
                }
            }
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Creates a configuration with these files.
    pub(super) fn make(
        &self,
        name: &str,
        is_profile: bool,
        files: &[(String, Vec<u8>)],
    ) -> Result<(), Problem> {
        if !is_name(name) {
            return Err(Problem::unusable(format!("invalid job name {name:?}")));
        }
        if self.find(name).is_some() || self.jobs.join(name).symlink_metadata().is_ok() {
            return Err(Problem::conflict(format!(
                "{name:?} already exists; choose another name"
            )));
        }
        let draft = Draft {
            folder: self.drafts_folder.join(name),
            is_profile,
        };
        fs::create_dir_all(&draft.folder).map_err(|problem| failed(&draft.folder, &problem))?;
        for (file, text) in files {
            let to = match file.as_str() {
                CONFIG | PROFILE => draft.config(),
                file => draft.folder.join(file),
            };
            crate::own_file::write(&to, text).map_err(|problem| failed(&to, &problem))?;
        }
        Ok(())
    }

    /// The files of a configuration, for a copy.
    pub(super) fn files(&self, draft: &Draft) -> Result<Vec<(String, Vec<u8>)>, Problem> {
        let failed = |problem: io::Error| failed(&draft.folder, &problem);
        let mut files = Vec::new();
        for entry in fs::read_dir(&draft.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let metadata = entry.metadata().map_err(failed)?;
            if is_editable(&name) && metadata.is_file() && metadata.len() <= BYTES_MAX {
                files.push((name, fs::read(entry.path()).map_err(failed)?));
            }
        }
        Ok(files)
    }

    /// Moves a configuration out of the folder of jobs, so that its job can be made there. Returns its former path.
    pub(super) fn clear(&self, name: &str) -> Result<Option<PathBuf>, Problem> {
        let Some(draft) = self
            .find(name)
            .filter(|draft| draft.folder.starts_with(&self.jobs))
        else {
            return Ok(None);
        };
        let to = self.drafts_folder.join(name);
        if draft.folder == to {
            return Ok(None);
        }
        let done = fs::create_dir_all(&self.drafts_folder).and_then(|()| {
            match fs::remove_dir_all(&to) {
                Err(problem) if problem.kind() != io::ErrorKind::NotFound => return Err(problem),
                _ => {}
            }
            fs::rename(&draft.folder, &to)
        });
        done.map_err(|problem| failed(&draft.folder, &problem))?;
        Ok(Some(draft.folder))
    }

    /// Moves a configuration back to its former path.
    pub(super) fn put_back(&self, name: &str, folder: &Path) -> Result<(), Problem> {
        fs::rename(self.drafts_folder.join(name), folder)
            .map_err(|problem| failed(folder, &problem))
    }

    pub(super) fn is_torn_down(&self, name: &str) -> bool {
        is_name(name) && self.drafts_folder.join(name).join(TORN_DOWN).exists()
    }

    /// Sets whether a job counts as torn down.
    pub(super) fn tear_down(&self, name: &str, is_torn_down: bool) -> Result<(), Problem> {
        let folder = self.drafts_folder.join(name);
        let file = folder.join(TORN_DOWN);
        let done = match is_torn_down {
            true => fs::create_dir_all(&folder).and_then(|()| fs::write(&file, "")),
            false => match fs::remove_file(&file) {
                Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(()),
                done => done,
            },
        };
        done.map_err(|problem| failed(&file, &problem))
    }
}

/// Returns `true` if a file may be written into a configuration: a text file that is not in a subfolder.
pub(super) fn is_editable(name: &str) -> bool {
    let is_text = [".cxml", ".xml", ".txt"]
        .iter()
        .any(|end| name.ends_with(end));
    is_text && is_name(name)
}

fn failed(path: &Path, problem: &io::Error) -> Problem {
    Problem::failure(format!("cannot use {}: {problem}", path.display()))
}

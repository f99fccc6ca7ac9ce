//! Tasks on the files of jobs that continue after their request: the hand-over of a job that is not running, and packages. Each
//! job has one task at a time, and its last task is kept until the daemon ends.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::Problem;

/// Maximum messages that are kept of a task.
const MESSAGES_MAX: usize = 100;

/// Kind of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FileTaskKind {
    /// Files are handed over to the store and the command of the profile. Meanwhile the job cannot be opened, and a crawl that is
    /// ordered starts afterwards.
    Handover,
    /// A package (WACZ) of the archive is written. The job can crawl meanwhile.
    Package,
}

/// Task on the files of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct FileTask {
    /// Kind of the task.
    pub kind: FileTaskKind,
    /// Time at which the task began.
    pub began: Timestamp,
    /// User who requested it.
    pub by: String,
    /// Time at which it ended; not set while it is in progress.
    pub ended: Option<Timestamp>,
    /// Name of the package that the task writes; not set for a hand-over.
    pub package: Option<String>,
    /// Number of files that are done.
    pub files: u64,
    /// Number of files that failed.
    pub failed: u64,
    /// Messages about files that failed, the first 100.
    pub messages: Vec<String>,
    /// Reason why the task ended early; not set if it carried out its work.
    pub problem: Option<String>,
}

/// The tasks of all jobs, by name of the job.
#[derive(Default)]
pub(crate) struct FileTasks(Mutex<BTreeMap<String, FileTask>>);

impl FileTasks {
    /// Returns the last task of a job.
    pub(crate) fn last(&self, job: &str) -> Option<FileTask> {
        self.lock().get(job).cloned()
    }

    /// Returns the unfinished task of a job.
    pub(crate) fn current(&self, job: &str) -> Option<FileTask> {
        self.last(job).filter(|task| task.ended.is_none())
    }

    /// Returns the hand-over that has locked a job at present, so that no process can open it.
    pub(crate) fn holding(&self, job: &str) -> Option<FileTask> {
        let task = self.current(job);
        task.filter(|task| task.kind == FileTaskKind::Handover)
    }

    /// Begins a task. Refused while another one is unfinished.
    pub(crate) fn begin(
        &self,
        job: &str,
        kind: FileTaskKind,
        package: Option<String>,
        by: &str,
    ) -> Result<(), Problem> {
        let mut tasks = self.lock();
        if let Some(task) = tasks.get(job).filter(|task| task.ended.is_none()) {
            return Err(task.conflict());
        }
        let task = FileTask {
            kind,
            began: Timestamp::now(),
            by: by.to_owned(),
            ended: None,
            package,
            files: 0,
            failed: 0,
            messages: Vec::new(),
            problem: None,
        };
        tasks.insert(job.to_owned(), task);
        Ok(())
    }

    /// Counts a file that is done, or one that failed with this message.
    pub(crate) fn count(&self, job: &str, file: Result<(), String>) {
        if let Some(task) = self.lock().get_mut(job) {
            match file {
                Ok(()) => task.files += 1,
                Err(message) => {
                    task.failed += 1;
                    if task.messages.len() < MESSAGES_MAX {
                        task.messages.push(message);
                    }
                }
            }
        }
    }

    /// Ends a task, with the reason if it did not carry out its work.
    pub(crate) fn end(&self, job: &str, problem: Option<String>) {
        if let Some(task) = self.lock().get_mut(job) {
            task.ended = Some(Timestamp::now());
            task.problem = problem;
        }
    }

    /// Forgets the task of a job that was deleted.
    pub(crate) fn forget(&self, job: &str) {
        self.lock().remove(job);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, FileTask>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileTask {
    /// The answer to requests that have to wait for the task.
    pub(crate) fn conflict(&self) -> Problem {
        let what = match self.kind {
            FileTaskKind::Handover => "handing over the files of this job",
            FileTaskKind::Package => "packing the archive of this job",
        };
        let by = &self.by;
        Problem::conflict(format!(
            "the daemon is {what} for {by}; try again when this has ended"
        ))
    }
}

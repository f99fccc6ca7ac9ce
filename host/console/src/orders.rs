//! `orders.json` in a job's directory: what is wanted of the job, which outlives whoever sees to it. The command line writes
//! it, too, so that a daemon begins what somebody wants to have begun.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

const FILE: &str = "orders.json";

/// What is wanted of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Orders {
    /// It is to crawl.
    pub crawl: bool,
    /// Since when that is so.
    pub since: Timestamp,
    /// Who wants it.
    pub by: String,
    /// Times in a row that it died.
    #[serde(default)]
    pub deaths: u32,
    /// Not begun again before.
    #[serde(default)]
    pub not_before: Option<Timestamp>,
    /// The process that was last begun, to know whether it has told of itself.
    #[serde(default)]
    pub begun: Option<Timestamp>,
    /// It is paused because its window is closed, not because somebody wants that.
    #[serde(default)]
    pub window_closed: bool,
    /// Somebody wants it paused: each of its processes begins so, until somebody resumes it.
    #[serde(default)]
    pub paused: bool,
    /// Why it is not seen to any more.
    #[serde(default)]
    pub gave_up: Option<String>,
}

impl Orders {
    /// That it is to crawl, or not.
    pub fn new(crawl: bool, by: &str) -> Orders {
        Orders {
            crawl,
            since: Timestamp::now(),
            by: by.to_owned(),
            deaths: 0,
            not_before: None,
            begun: None,
            window_closed: false,
            paused: false,
            gave_up: None,
        }
    }

    /// Those for the job in this directory; none where nothing was ever wanted of it.
    ///
    /// # Errors
    /// They cannot be read, or are none.
    pub fn read(job: &Path) -> io::Result<Option<Orders>> {
        match fs::read(job.join(FILE)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(problem) => Err(problem),
        }
    }

    /// Holds them, so that no other process changes them before what is returned is dropped; none where the system lets nobody
    /// lock a folder.
    pub fn hold(job: &Path) -> Option<File> {
        let folder = File::open(job).ok()?;
        folder.lock().ok()?;
        Some(folder)
    }

    /// Writes them. For whoever holds them since they were read.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write(&self, job: &Path) -> io::Result<()> {
        crate::written::write(&job.join(FILE), &serde_json::to_vec_pretty(self)?)
    }
}

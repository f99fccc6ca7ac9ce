//! `orders.json` in a job's directory: the orders of operators for the job. They outlive the daemon. The command line writes
//! them too, so that a daemon begins the jobs that an operator ordered.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

const FILE: &str = "orders.json";

/// The orders for a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Orders {
    /// `true` if it is to crawl.
    pub crawl: bool,
    /// `true` if it was stopped while its process was starting. The daemon stops the process as soon as it accepts commands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop_pending: bool,
    /// Time of that order.
    pub since: Timestamp,
    /// The user who gave it.
    pub by: String,
    /// Consecutive deaths of its process.
    #[serde(default)]
    pub deaths: u32,
    /// Earliest time of a restart.
    #[serde(default)]
    pub not_before: Option<Timestamp>,
    /// Time before which it is not started. Until then it takes no place among the concurrent crawls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Timestamp>,
    /// Time at which its last process was begun, to know whether that has reported.
    #[serde(default)]
    pub begun: Option<Timestamp>,
    /// `true` if it is paused by its closed window, not by an operator.
    #[serde(default)]
    pub window_closed: bool,
    /// `true` if an operator has paused it. Each of its processes begins paused, until an operator resumes it.
    #[serde(default)]
    pub paused: bool,
    /// The reason why it is not restarted any more.
    #[serde(default)]
    pub gave_up: Option<String>,
}

impl Orders {
    /// Orders to crawl, or not to.
    pub fn new(crawl: bool, by: &str) -> Orders {
        Orders {
            crawl,
            stop_pending: false,
            since: Timestamp::now(),
            by: by.to_owned(),
            deaths: 0,
            not_before: None,
            start_at: None,
            begun: None,
            window_closed: false,
            paused: false,
            gave_up: None,
        }
    }

    /// Takes the order to crawl away. Returns the orders as they are then, for [`Orders::give_back`]; `None` if the job was not
    /// ordered to crawl, for instance because somebody has just stopped it.
    pub(crate) fn withdraw(&mut self) -> Option<Orders> {
        std::mem::take(&mut self.crawl).then(|| self.clone())
    }

    /// Gives the order to crawl back that a stop took away, because that stop was refused. Orders that somebody has changed
    /// meanwhile stay, and so do those that the stop had not changed.
    pub(crate) fn give_back(&mut self, withdrawn: Option<&Orders>) {
        let Some(withdrawn) = withdrawn else {
            return;
        };
        // The supervisor notes these while the process runs.
        let unchanged = Orders {
            deaths: self.deaths,
            window_closed: self.window_closed,
            ..withdrawn.clone()
        };
        if *self == unchanged {
            self.crawl = true;
        }
    }

    /// Reads the orders for the job in this directory; `None` if there were never any.
    ///
    /// # Errors
    /// They cannot be read, or are invalid.
    pub fn read(job: &Path) -> io::Result<Option<Orders>> {
        match fs::read(job.join(FILE)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(problem) => Err(problem),
        }
    }

    /// Locks the orders against changes by other processes, until the returned file is dropped. `None` if the system cannot lock
    /// a folder.
    pub fn hold(job: &Path) -> Option<File> {
        let folder = File::open(job).ok()?;
        folder.lock().ok()?;
        Some(folder)
    }

    /// Writes the orders. The caller must have locked them before reading.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write(&self, job: &Path) -> io::Result<()> {
        crate::own_file::write(&job.join(FILE), &serde_json::to_vec_pretty(self)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_comes_back_only_if_nobody_has_changed_it_since() {
        let ordered = Orders::new(true, "lena");
        let comes_back = |change: fn(&mut Orders)| {
            let mut orders = ordered.clone();
            let withdrawn = orders.withdraw();
            assert!(!orders.crawl);
            change(&mut orders);
            orders.give_back(withdrawn.as_ref());
            orders.crawl
        };
        assert!(comes_back(|_| {}));
        // The supervisor noted something about the process.
        assert!(comes_back(|orders| orders.deaths = 1));
        assert!(comes_back(|orders| orders.window_closed = true));
        // Another operator stopped the job, or the daemon gave it up.
        assert!(!comes_back(|orders| *orders = Orders::new(false, "omar")));
        assert!(!comes_back(|orders| orders.stop_pending = true));
        assert!(!comes_back(
            |orders| orders.gave_up = Some("it died".to_owned())
        ));
        // Somebody else had stopped it before.
        let mut stopped = Orders::new(false, "omar");
        let withdrawn = stopped.withdraw();
        stopped.give_back(withdrawn.as_ref());
        assert!(!stopped.crawl);
    }
}

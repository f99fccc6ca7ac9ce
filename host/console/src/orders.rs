//! `orders.json` in a job's directory: the orders of operators for the job. They outlive the daemon. The command line also writes
//! them, so that a daemon starts the jobs that an operator has ordered to crawl.

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
    /// `true` if the job is ordered to crawl.
    pub crawl: bool,
    /// `true` if the job was stopped while its process was starting. The daemon stops the process as soon as it accepts commands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop_pending: bool,
    /// Time of the order.
    pub since: Timestamp,
    /// User who gave the order.
    pub by: String,
    /// Consecutive deaths of its process.
    #[serde(default)]
    pub deaths: u32,
    /// Earliest time of a restart.
    #[serde(default)]
    pub not_before: Option<Timestamp>,
    /// Time before which the job is not started. Until then it does not count among the concurrent crawls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Timestamp>,
    /// Time at which its last process was started. A process record with an earlier time is of another process.
    #[serde(default)]
    pub begun: Option<Timestamp>,
    /// `true` if the job is paused because its crawl window is closed, not by an operator.
    #[serde(default)]
    pub window_closed: bool,
    /// `true` if an operator has paused the job. Each of its processes begins paused, until an operator resumes the job.
    #[serde(default)]
    pub paused: bool,
    /// Reason for which the job is no longer restarted.
    #[serde(default)]
    pub gave_up: Option<String>,
}

impl Orders {
    /// Creates an order to crawl, or not to crawl.
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

    /// Withdraws the order to crawl. Returns the changed orders, for [`Orders::give_back`]; `None` if the job was not ordered to
    /// crawl, for instance because another operator has just stopped it.
    pub(crate) fn withdraw(&mut self) -> Option<Orders> {
        std::mem::take(&mut self.crawl).then(|| self.clone())
    }

    /// Restores the order to crawl that a stop has withdrawn, because the job refused the stop. Orders stay as they are if they
    /// were changed meanwhile, or if the stop had withdrawn nothing.
    pub(crate) fn give_back(&mut self, withdrawn: Option<&Orders>) {
        let Some(withdrawn) = withdrawn else {
            return;
        };
        // The supervisor changes these while the process runs.
        let unchanged = Orders {
            deaths: self.deaths,
            window_closed: self.window_closed,
            ..withdrawn.clone()
        };
        if *self == unchanged {
            self.crawl = true;
        }
    }

    /// Reads the orders for the job in this directory; `None` if no order was ever given.
    ///
    /// # Errors
    /// The orders cannot be read, or are invalid.
    pub fn read(job: &Path) -> io::Result<Option<Orders>> {
        match fs::read(job.join(FILE)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(problem) => Err(problem),
        }
    }

    /// Locks the orders against changes by other processes, until the returned file is dropped. `None` if the system cannot lock
    /// a folder.
    pub fn lock(job: &Path) -> Option<File> {
        let folder = File::open(job).ok()?;
        folder.lock().ok()?;
        Some(folder)
    }

    /// Writes the orders. The caller must have locked them before reading.
    ///
    /// # Errors
    /// The orders cannot be written.
    pub fn write(&self, job: &Path) -> io::Result<()> {
        crate::own_file::write(&job.join(FILE), &serde_json::to_vec_pretty(self)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_restored_only_if_it_was_not_changed_since() {
        let ordered = Orders::new(true, "lena");
        let is_restored = |change: fn(&mut Orders)| {
            let mut orders = ordered.clone();
            let withdrawn = orders.withdraw();
            assert!(!orders.crawl);
            change(&mut orders);
            orders.give_back(withdrawn.as_ref());
            orders.crawl
        };
        assert!(is_restored(|_| {}));
        // The supervisor has recorded something about the process.
        assert!(is_restored(|orders| orders.deaths = 1));
        assert!(is_restored(|orders| orders.window_closed = true));
        // Another operator stopped the job, or the daemon gave it up.
        assert!(!is_restored(|orders| *orders = Orders::new(false, "omar")));
        assert!(!is_restored(|orders| orders.stop_pending = true));
        assert!(!is_restored(
            |orders| orders.gave_up = Some("it died".to_owned())
        ));
        // Another operator had stopped the job before.
        let mut stopped = Orders::new(false, "omar");
        let withdrawn = stopped.withdraw();
        stopped.give_back(withdrawn.as_ref());
        assert!(!stopped.crawl);
    }
}

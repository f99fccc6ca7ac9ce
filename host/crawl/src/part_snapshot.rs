//! The archive's side of a snapshot of a part: everything that the frontier knows as captured must be in closed files, and the
//! store must have these, before the snapshot counts.

use crate::context::CrawlContext;
use crate::error::CrawlError;

impl CrawlContext {
    /// Finishes archive files that could not be finished before. Captures that they have lost are scheduled again. Call it before a
    /// snapshot of the frontier is taken.
    ///
    /// # Errors
    /// A file still cannot be finished, or the frontier fails.
    pub fn finish_left_files(&self) -> Result<(), CrawlError> {
        let (finished, left) = self.outputs.writers.finish_left();
        self.schedule_lost(&finished)?;
        left.map_or(Ok(()), |problem| Err(problem.into()))
    }

    /// Closes all open archive files, and queues them for the store. Later captures go to new files. Call it after a snapshot of the
    /// frontier was taken: then closed files have all captures of the snapshot.
    ///
    /// # Errors
    /// A file cannot be finished.
    pub fn close_archive_files(&self) -> Result<(), CrawlError> {
        self.outputs.writers.finish()?;
        let finished = self.outputs.writers.take_finished();
        for handover in &self.outputs.handovers {
            handover.add(finished.clone());
        }
        Ok(())
    }

    /// Number of closed archive files that the store does not have.
    ///
    /// # Errors
    /// The job has no store, or files of the job cannot be read.
    pub fn files_not_stored(&self) -> Result<usize, CrawlError> {
        for handover in &self.outputs.handovers {
            if let Some(files) = handover.not_stored(&self.profile)? {
                return Ok(files);
            }
        }
        Err(CrawlError::NoStore)
    }
}

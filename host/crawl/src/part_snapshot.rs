//! The archive files of a snapshot of a part. All captures in the frontier's snapshot must be in closed files, and the store must
//! have these files, before the snapshot is published.

use crate::context::CrawlContext;
use crate::error::CrawlError;

impl CrawlContext {
    /// Finishes archive files that could not be finished before. Lost captures are scheduled again. Call it before a snapshot of
    /// the frontier is taken.
    ///
    /// # Errors
    /// A file still cannot be finished, or the frontier fails.
    pub fn finish_left_files(&self) -> Result<(), CrawlError> {
        let (finished, left) = self.outputs.writers.finish_left();
        self.schedule_lost(&finished)?;
        left.map_or(Ok(()), |problem| Err(problem.into()))
    }

    /// Closes all open archive files, and queues them for the store. Later captures are written to new files. Call it after a
    /// snapshot of the frontier was taken, so that the closed files contain all captures of the snapshot.
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

    /// Returns the number of closed archive files that the store does not have.
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

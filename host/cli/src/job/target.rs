//! The job of a command line.

use std::path::PathBuf;

use clap::Args;

use crate::job_directory::existing_job;

/// A job, and how it answers.
#[derive(Debug, Args)]
pub(crate) struct JobTarget {
    /// Directory of the job, or its name in the folder `jobs`.
    #[arg(value_name = "JOB", value_parser = existing_job())]
    pub job: PathBuf,
    /// Print JSON, one object per line.
    #[arg(long)]
    pub json: bool,
}

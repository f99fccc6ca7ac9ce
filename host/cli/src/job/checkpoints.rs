//! `opilio job checkpoints|restore`: the checkpoints of a job, and the two ways to restore one.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use indicatif::{HumanBytes, HumanCount};
use opilio_console::{JobsFolderError, is_supervised};
use opilio_control::{Author, Checkpoint, KeptCheckpoint};

use super::lifecycle::existing;
use super::send::{refused, user};
use super::target::JobTarget;
use crate::job_directory::new_job;
use crate::{exit, terminal};

/// Progress of a restoration, which copies the state of a job.
const COPYING: &str = "copying the checkpoint";

/// The command line of `restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// Directory of a checkpoint; `opilio job checkpoints` lists the checkpoints of a job.
    #[arg(value_name = "CHECKPOINT")]
    checkpoint: PathBuf,
    /// Directory of the new job, or its name in the folder `jobs`; with --in-place, the job to return to the checkpoint.
    #[arg(value_name = "JOB", value_parser = new_job())]
    job: PathBuf,
    /// Return the job itself to the checkpoint. It forgets what it has crawled since and crawls it again. Archive files and
    /// logs are kept.
    #[arg(long)]
    in_place: bool,
    /// Restore without confirmation.
    #[arg(long, requires = "in_place")]
    yes: bool,
    /// Print JSON, one object per line.
    #[arg(long)]
    json: bool,
}

/// Lists the checkpoints in a job's folder.
pub(crate) fn list(target: &JobTarget) -> Result<u8> {
    let kept = match opilio_control::checkpoints(&target.job) {
        Ok(kept) => kept,
        Err(problem) => return Ok(refused(&problem)),
    };
    for one in &kept {
        match target.json {
            true => terminal::outln!("{}", serde_json::to_string(one)?),
            false => terminal::outln!("{}", terminal::line(&line(one))),
        }
    }
    if kept.is_empty() && !target.json {
        terminal::outln!(
            "the job has no checkpoints; opilio job checkpoint {} creates one",
            target.job.display()
        );
    }
    Ok(exit::OK)
}

fn line(kept: &KeptCheckpoint) -> String {
    let directory = kept.directory.display();
    match (kept.made, &kept.problem) {
        (Some(made), None) => {
            let components = match &*kept.components {
                [] => String::new(),
                some => format!("  components of {}", some.join(", ")),
            };
            let periodic = match kept.is_periodic {
                true => "  periodic",
                false => "",
            };
            format!(
                "{directory}  {}  {:>10} URIs  {:>10}  {:>6} WARC files{periodic}{components}",
                made.strftime("%Y-%m-%d %H:%M:%S UTC"),
                HumanCount(kept.uris.unwrap_or_default()),
                HumanBytes(kept.bytes.unwrap_or_default()).to_string(),
                HumanCount(kept.warcs.unwrap_or_default()),
            )
        }
        (_, problem) => format!(
            "{directory}  unusable: {}",
            problem.as_deref().unwrap_or_default()
        ),
    }
}

/// Makes a job from a checkpoint, or restores the job to it.
pub(crate) fn restore(args: &RestoreArgs) -> Result<u8> {
    let restored = match args.in_place {
        true => {
            if !args.yes && !is_sure(&args.job)? {
                return Ok(exit::FAILED);
            }
            terminal::spinning(COPYING, || restore_in_place(&args.job, &args.checkpoint))?
        }
        false => terminal::spinning(COPYING, || {
            opilio_control::restore(&args.checkpoint, &args.job)
        }),
    };
    let made = match restored {
        Ok(made) => made,
        Err(problem) => return Ok(refused(&problem)),
    };
    if args.json {
        terminal::outln!("{}", serde_json::to_string(&made)?);
        return Ok(exit::OK);
    }
    let job = args.job.display();
    let folder = std::path::absolute(&args.job)?;
    let is_supervised = folder.parent().is_some_and(is_supervised);
    let at = made.made.strftime("%Y-%m-%d %H:%M:%S UTC");
    match args.in_place {
        true => terminal::outln!(
            "job {job} is restored to {at}: {} URIs; its archive files and logs are kept\n\
             resume with: opilio job start {job}",
            made.uris,
        ),
        false => {
            let resume = match is_supervised {
                true => format!("opilio job start {job}"),
                false => format!("opilio crawl {job}"),
            };
            terminal::outln!(
                "job {job} is created from the checkpoint of {at}: {} URIs; their WARC files stay in {}\n\
                 resume with: {resume}",
                made.uris,
                made.job.display(),
            );
        }
    }
    Ok(exit::OK)
}

fn is_sure(job: &Path) -> Result<bool> {
    terminal::confirm(&format!(
        "Job {} forgets URIs found and settings and seeds changed since the checkpoint. Its archive files and logs are kept. Restore it?",
        job.display()
    ))
}

fn restore_in_place(
    job: &Path,
    checkpoint: &Path,
) -> Result<Result<Checkpoint, opilio_control::ControlError>> {
    let (folder, name) = existing(job)?;
    let by = Author {
        user: user(),
        pid: std::process::id(),
    };
    let checkpoint = std::path::absolute(checkpoint)?;
    match folder.reset_to_checkpoint(&name, &checkpoint, &by) {
        Ok(made) => Ok(Ok(made)),
        Err(JobsFolderError::Control(problem)) => Ok(Err(problem)),
        Err(other) => bail!(other),
    }
}

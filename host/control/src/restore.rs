//! Use of checkpoints: the list of a job's checkpoints, a new job from one, and a job's return to one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use opilio_crawl::JobPart;
use opilio_frontier::Frontier;
use serde::Serialize;

use super::checkpoint::{
    COPIES, DESCRIPTION, JOB_COPY, VERSION, copy, copy_components, copy_folder, copy_some, parent,
};
use super::delivery::{hold_at_rest, must_be_job, note};
use super::{Author, Change, Changed, Checkpoint, ControlError, ErrorKind};
use opilio_job::directory;
use opilio_job::history;
use opilio_job::process_record::ProcessRecord;
use opilio_job::profile::frozen_profile;
use opilio_job::symlinks::{copies_stay_inside, stays_inside};
use opilio_stacks::components::JobPlugins;
use opilio_visit::policy;

/// Checkpoint in a job's folder `checkpoints`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct KeptCheckpoint {
    /// Name of the folder.
    pub name: String,
    /// Path of the folder.
    #[schema(value_type = String)]
    pub directory: PathBuf,
    /// Time of the saved state; not set, like all further fields, if the checkpoint does not record it.
    pub made: Option<Timestamp>,
    /// `true` if the crawl made the checkpoint by itself. It removes such checkpoints when newer ones exist.
    pub is_periodic: bool,
    /// Number of known URIs.
    pub uris: Option<u64>,
    /// Bytes of the frontier before compression.
    pub bytes: Option<u64>,
    /// Number of WARC files at that time.
    pub warcs: Option<u64>,
    /// Total size of these files in bytes.
    pub warc_bytes: Option<u64>,
    /// Plugins whose components the checkpoint contains, by name in the profile. Shipped components are part of the program.
    pub components: Vec<String>,
    /// `true` if the job can return to this checkpoint.
    pub is_whole: bool,
    /// Reason why it cannot; not set if it can.
    pub problem: Option<String>,
}

/// Returns the checkpoints that the job in this directory keeps, the latest name first. By default a name is a time. Checkpoints
/// in other directories are not known.
///
/// # Errors
/// The directory is not a job, or its checkpoints cannot be read.
pub fn checkpoints(job: &Path) -> Result<Vec<KeptCheckpoint>, ControlError> {
    must_be_job(job)?;
    let parent = parent(job);
    let failed = |problem: io::Error| ControlError::file(&parent, &problem);
    stays_inside(job, &parent).map_err(failed)?;
    let entries = match fs::read_dir(&parent) {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut kept = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        // Links are not followed, because their targets do not belong to the job. A folder without a description is not a complete
        // checkpoint.
        let is_finished = entry.path().join(DESCRIPTION).symlink_metadata().is_ok();
        if entry.file_type().map_err(failed)?.is_dir() && is_finished {
            kept.push(describe_kept_checkpoint(job, entry.path()));
        }
    }
    kept.sort_by(|one, other| other.name.cmp(&one.name));
    Ok(kept)
}

/// Returns the checkpoint of this name in the job's folder `checkpoints`.
///
/// # Errors
/// No checkpoint has this name.
pub fn checkpoint_named(job: &Path, name: &str) -> Result<PathBuf, ControlError> {
    let kept = checkpoints(job)?;
    let found = kept.into_iter().find(|kept| kept.name == name);
    found.map(|kept| kept.directory).ok_or_else(|| {
        ControlError::new(
            ErrorKind::Unknown,
            format!(
                "job {} has no checkpoint {name:?}; `opilio job checkpoints JOB` lists them",
                directory::name_of(job)
            ),
        )
    })
}

fn describe_kept_checkpoint(job: &Path, directory: PathBuf) -> KeptCheckpoint {
    let described = described(&directory);
    let sound = described.and_then(|made| {
        must_be_of(job, &directory)?;
        let components = JobPlugins::read(&directory)
            .map_err(|problem| ControlError::failure(&problem))?
            .with_components();
        Ok((made, components))
    });
    let (made, components, problem) = match sound {
        Ok((made, components)) => (Some(made), components, None),
        Err(problem) => {
            // The directory is shown next to the problem, so the text does not repeat it.
            let place = directory.display().to_string();
            let message = problem.message.replace(&format!("{place}/"), "its ");
            (None, Vec::new(), Some(message.replace(&place, "it")))
        }
    };
    let warcs = || made.as_ref().map(|made| &made.warcs);
    KeptCheckpoint {
        name: directory::name_of(&directory),
        made: made.as_ref().map(|made| made.made),
        is_periodic: made.as_ref().is_some_and(|made| made.is_periodic),
        uris: made.as_ref().map(|made| made.uris),
        bytes: made.as_ref().map(|made| made.bytes),
        warcs: warcs().map(|warcs| warcs.len() as u64),
        warc_bytes: warcs().map(|warcs| warcs.iter().map(|warc| warc.bytes).sum()),
        components,
        is_whole: problem.is_none(),
        problem,
        directory,
    }
}

/// Makes a new job from a checkpoint. `opilio crawl` resumes it. The WARC files stay with the old job.
///
/// # Errors
/// [`ControlError`]. If `job` exists already or `checkpoint` is not a checkpoint, nothing has been made.
pub fn restore(checkpoint: &Path, job: &Path) -> Result<Checkpoint, ControlError> {
    let made = described(checkpoint)?;
    directory::make_restored(job, |growing| put_together(checkpoint, growing))?;
    Ok(made)
}

/// Restores a job to one of its checkpoints: frontier, settings, seeds and plugins. Archive, logs and history stay. Everything
/// that was crawled after the checkpoint is crawled again as if for the first time.
///
/// # Errors
/// [`ControlError`]: a process has locked the job, or the checkpoint is invalid, damaged, or of another job. Nothing was changed.
pub fn reset_to_checkpoint(
    job: &Path,
    checkpoint: &Path,
    by: &Author,
) -> Result<Checkpoint, ControlError> {
    must_be_job(job)?;
    let gone = held_and_back(job, checkpoint, by);
    let words = match &gone {
        Ok(made) => format!("restored to {:.0}, with {} URIs", made.made, made.uris),
        Err(problem) => format!("refused: {problem}"),
    };
    let what = format!("restore {:?} --in-place", directory::name_of(checkpoint));
    let noted = note(job, &by.to_string(), &what, &words);
    match (gone, noted) {
        (Ok(_), Err(problem)) => Err(ControlError::new(
            ErrorKind::Failure,
            format!("done ({words}), but cannot write job.log: {problem}"),
        )),
        (gone, _) => gone,
    }
}

fn held_and_back(job: &Path, checkpoint: &Path, by: &Author) -> Result<Checkpoint, ControlError> {
    let _held = hold_at_rest(job, "go back")?;
    copies_stay_inside(job).map_err(|problem| ControlError::file(job, &problem))?;
    must_not_move(job)?;
    let made = described(checkpoint)?;
    must_be_of(job, checkpoint)?;
    must_have_folders(job)?;
    let growing =
        directory::begin_restoring(job).map_err(|problem| ControlError::file(job, &problem))?;
    let prepared = prepare(job, checkpoint, &growing, &made, by);
    if prepared.is_err()
        && let Err(problem) = directory::discard_restoring(job)
    {
        tracing::warn!(
            "cannot remove the incomplete {}: {problem}",
            growing.display()
        );
    }
    prepared?;
    directory::put_in_place(job)?;
    Ok(made)
}

/// Assembles the restored job and opens it as the next process will. A damaged checkpoint replaces nothing.
fn prepare(
    job: &Path,
    checkpoint: &Path,
    growing: &Path,
    made: &Checkpoint,
    by: &Author,
) -> Result<(), ControlError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |problem: io::Error| ControlError::file(&path, &problem)
    };
    put_together(checkpoint, growing)?;
    for folder in directory::RESTORED_FOLDERS {
        let folder = growing.join(folder);
        fs::create_dir_all(&folder).map_err(at(&folder))?;
    }
    let config = policy::frontier_config(&frozen_profile(growing)?.into(), Timestamp::now);
    let state = growing.join("state");
    // The check finds damage in parts that opening does not read.
    let statistics = Frontier::open(&state, config.clone())?.statistics();
    Frontier::check(&state, &config, &mut |finding| {
        tracing::warn!("{}: {finding}", checkpoint.display());
    })?;
    let name = directory::name_of(checkpoint);
    let why = format!("restored to checkpoint {name} of {:.0}", made.made);
    ProcessRecord::record_reset(job, growing, statistics, why).map_err(at(job))?;
    // The history keeps the changes since then, and also records the return.
    let history = growing.join(history::FILE);
    match fs::copy(job.join(history::FILE), &history) {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => {}
        copied => copied.map(drop).map_err(at(&history))?,
    }
    let change = Change {
        number: history::next_number(job).map_err(at(job))?,
        at: Timestamp::now(),
        by: by.name(),
        reason: None,
        what: Changed::Restore {
            checkpoint: name,
            made: made.made,
        },
    };
    history::add(growing, &change).map_err(at(&history))
}

/// Copies a checkpoint's files into a job. `job.json` is written last, so that an incomplete job does not count as a job.
pub(super) fn put_together(checkpoint: &Path, job: &Path) -> Result<(), ControlError> {
    let failed = |(path, problem): (PathBuf, io::Error)| ControlError::file(&path, &problem);
    copy_folder(&checkpoint.join("state"), &job.join("state")).map_err(failed)?;
    copy_some(checkpoint, job, &COPIES).map_err(failed)?;
    copy_components(checkpoint, job).map_err(failed)?;
    copy(&checkpoint.join(JOB_COPY), &job.join("job.json")).map_err(failed)
}

/// Reads and checks the description of a checkpoint. No part of a valid checkpoint is a link to another place.
pub(super) fn described(checkpoint: &Path) -> Result<Checkpoint, ControlError> {
    if checkpoint.is_file() {
        return Err(ControlError::new(
            ErrorKind::Request,
            format!(
                "{} is not the directory of a checkpoint; `opilio job checkpoints JOB` lists checkpoints",
                checkpoint.display()
            ),
        ));
    }
    let leads_out = |problem: io::Error| ControlError::file(checkpoint, &problem);
    for part in [DESCRIPTION, JOB_COPY, "state"] {
        stays_inside(checkpoint, &checkpoint.join(part)).map_err(leads_out)?;
    }
    copies_stay_inside(checkpoint).map_err(leads_out)?;
    let description = checkpoint.join(DESCRIPTION);
    let text = fs::read_to_string(&description).map_err(|problem| match problem.kind() {
        io::ErrorKind::NotFound => ControlError::new(
            ErrorKind::Request,
            format!(
                "{} is not a complete checkpoint: it has no {DESCRIPTION}",
                checkpoint.display()
            ),
        ),
        _ => ControlError::file(&description, &problem),
    })?;
    let made: Checkpoint = serde_json::from_str(&text).map_err(|problem| {
        ControlError::new(
            ErrorKind::Request,
            format!("cannot read {}: {problem}", description.display()),
        )
    })?;
    if made.version != VERSION {
        return Err(ControlError::new(
            ErrorKind::Request,
            format!(
                "{} has layout version {}, this build reads {VERSION}; use the version that made it",
                checkpoint.display(),
                made.version
            ),
        ));
    }
    for part in [JOB_COPY, "state/format", "profile.toml", "seeds.txt"] {
        if !checkpoint.join(part).exists() {
            return Err(ControlError::new(
                ErrorKind::Request,
                format!(
                    "{} is not a complete checkpoint: its {part} is missing",
                    checkpoint.display()
                ),
            ));
        }
    }
    Ok(made)
}

/// Checks that the checkpoint was made of this job. A job cannot go back to another job's state.
fn must_be_of(job: &Path, checkpoint: &Path) -> Result<(), ControlError> {
    let text = |path: PathBuf| {
        fs::read_to_string(&path).map_err(|problem| ControlError::file(&path, &problem))
    };
    directory::origin_of_job(job)?;
    // `job.json` is written once, when a job is made.
    if text(job.join("job.json"))? == text(checkpoint.join(JOB_COPY))? {
        return Ok(());
    }
    Err(ControlError::new(
        ErrorKind::Request,
        format!(
            "{} is a checkpoint of another job; `opilio job restore CHECKPOINT JOB` makes a new job of it",
            checkpoint.display()
        ),
    ))
}

/// Refuses a job whose part other nodes can take over: links that it received after the checkpoint may no longer be in its inbox.
fn must_not_move(job: &Path) -> Result<(), ControlError> {
    let part = JobPart::read(job).map_err(|problem| ControlError::file(job, &problem))?;
    match part.filter(JobPart::can_move) {
        None => Ok(()),
        Some(JobPart { part, .. }) => Err(ControlError::new(
            ErrorKind::State,
            format!(
                "the job has part {part:?} of a shared crawl, and links that came later would be missing; take the part over into a new job with --take-over {part}, which loads its newest snapshot"
            ),
        )),
    }
}

/// Checks that no restored folder is a link or on a separate disk. Such a folder cannot be exchanged in one step.
fn must_have_folders(job: &Path) -> Result<(), ControlError> {
    for folder in directory::RESTORED_FOLDERS.map(|folder| job.join(folder)) {
        let Ok(found) = folder.symlink_metadata() else {
            continue;
        };
        let own = job
            .metadata()
            .map_err(|problem| ControlError::file(job, &problem))?;
        if !found.is_dir() || !is_on_one_disk(&found, &own) {
            return Err(ControlError::new(
                ErrorKind::State,
                format!(
                    "{} is a link or on another disk, so it cannot be replaced at once; create a new job from the checkpoint with `opilio job restore CHECKPOINT JOB`",
                    folder.display()
                ),
            ));
        }
    }
    Ok(())
}

#[cfg(unix)]
fn is_on_one_disk(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    one.dev() == other.dev()
}

#[cfg(not(unix))]
fn is_on_one_disk(_one: &fs::Metadata, _other: &fs::Metadata) -> bool {
    true
}

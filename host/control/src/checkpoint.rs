//! Checkpoints of a job: its frontier at one moment, its copies of profile and seeds, and a list of its WARC files with their
//! sizes. The job continues meanwhile. `restore.rs` uses checkpoints.
//!
//! ```text
//! CHECKPOINT/checkpoint.json   written last: a checkpoint without it is invalid
//! CHECKPOINT/job.json.copy, profile.toml, seeds.txt, redirected-seeds.txt, removed-seeds.txt, …
//! CHECKPOINT/state/            the frontier
//! ```

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use opilio_archive::is_archive;
use opilio_frontier::FrontierCheckpoint;

use super::answer::{Respond, WarcFile};
use super::job_commands::CommandState;
use super::{Checkpoint, CommandResponse, ControlError, ErrorKind, JobAdmin};
use opilio_job::changes;
use opilio_job::directory;
use opilio_job::fetched_files::{FETCHED_FILES, FETCHED_FOLDER};
use opilio_job::history;
use opilio_job::symlinks::{copies_stay_inside, stays_inside};
use opilio_stacks::components;
use opilio_stacks::known_stacks;

/// Version of the layout above.
pub(super) const VERSION: u32 = 1;

/// File that marks a checkpoint as complete.
pub(super) const DESCRIPTION: &str = "checkpoint.json";

/// Copy of the job's `job.json`, under another name so that the checkpoint is not mistaken for a job.
pub(super) const JOB_COPY: &str = "job.json.copy";

/// Other copies of the job's files. A missing file is not copied.
pub(super) const COPIES: [&str; 10] = [
    "profile.toml",
    "seeds.txt",
    directory::REDIRECTED_SEEDS,
    directory::REMOVED_SEEDS,
    directory::ADDED_SEEDS,
    changes::LAYERS,
    FETCHED_FILES,
    history::FILE,
    known_stacks::FILE,
    changes::SHARED_COMMANDS,
];

/// The part of a job's state that changes while it is crawled, copied at one moment.
pub(super) struct CopiedState {
    pub(super) frontier: FrontierCheckpoint,
    /// Place in the log of commands, for a job that several nodes share.
    commands: Option<CommandState>,
}

impl JobAdmin<'_> {
    pub(super) fn checkpoint(
        &self,
        to: Option<&Path>,
        respond: Respond<'_>,
    ) -> Result<String, ControlError> {
        let checkpoint = self.make_checkpoint(to, false)?;
        let directory = checkpoint.directory.display();
        let result = format!("{directory} with {} URIs", checkpoint.uris);
        respond(CommandResponse::Checkpoint(checkpoint));
        Ok(result)
    }

    /// Makes a checkpoint in the directory `to`, or in the job's folder of checkpoints. On failure nothing of it remains.
    pub(super) fn make_checkpoint(
        &self,
        to: Option<&Path>,
        is_periodic: bool,
    ) -> Result<Checkpoint, ControlError> {
        let made = Timestamp::now();
        // A copied link would become an ordinary file.
        copies_stay_inside(self.job).map_err(|problem| ControlError::file(self.job, &problem))?;
        let job = std::path::absolute(self.job)
            .map_err(|problem| ControlError::file(self.job, &problem))?;
        let directory = match to {
            Some(to) => to.to_owned(),
            None => {
                let parent = parent(&job);
                fs::create_dir_all(&parent)
                    .map_err(|problem| ControlError::file(&parent, &problem))?;
                parent.join(made.strftime("%Y%m%d%H%M%S%3f").to_string())
            }
        };
        fs::create_dir(&directory).map_err(|problem| match problem.kind() {
            io::ErrorKind::AlreadyExists => ControlError::new(
                ErrorKind::Request,
                format!(
                    "{} already exists; name another directory",
                    directory.display()
                ),
            ),
            _ => ControlError::file(&directory, &problem),
        })?;
        let written = self
            .copied_state()
            .and_then(|state| self.write_checkpoint(&directory, job, made, is_periodic, state));
        if written.is_err() {
            // Errors are ignored: nothing depends on the files, and without a description they are not a checkpoint.
            let _ = fs::remove_dir_all(&directory);
        }
        let checkpoint = written?;
        if let Some(running) = self.running
            && self.profile.logs.rotate_at_checkpoint
        {
            let logs = self.job.join(&self.profile.logs.directory);
            let rotated = running.context.outputs.logs.rotate();
            rotated.map_err(|problem| ControlError::file(&logs, &problem))?;
        }
        Ok(checkpoint)
    }

    /// Copies the frontier, at once and without writing anything.
    pub(super) fn copied_state(&self) -> Result<CopiedState, ControlError> {
        // Read before the frontier is copied, so that a command whose effect is not in the copy is carried out again after a
        // restore.
        let commands = CommandState::for_copy(self.job)?;
        if let Some(running) = self.running {
            // The counts so far are part of the checkpoint.
            running.context.figures.ledger.store(self.store())?;
        }
        Ok(CopiedState {
            frontier: self.frontier().checkpoint(),
            commands,
        })
    }

    /// Writes a checkpoint with this copy of the state into a directory, while the crawl continues.
    pub(super) fn write_checkpoint(
        &self,
        directory: &Path,
        job: PathBuf,
        made: Timestamp,
        is_periodic: bool,
        state: CopiedState,
    ) -> Result<Checkpoint, ControlError> {
        let summary = state.frontier.write(&directory.join("state"))?;
        let failed = |(path, problem): (PathBuf, io::Error)| ControlError::file(&path, &problem);
        // Files are listed after the frontier was copied, so that they contain all captures that the copy knows.
        let warcs = warcs(&self.job.join(&self.profile.archive.directory)).map_err(failed)?;
        copy_some(self.job, directory, &COPIES).map_err(failed)?;
        // The place in the log belongs to the copied frontier. No process runs a copy.
        CommandState::write_copy(state.commands.as_ref(), directory)?;
        copy_components(self.job, directory).map_err(failed)?;
        copy(&self.job.join("job.json"), &directory.join(JOB_COPY)).map_err(failed)?;
        let checkpoint = Checkpoint {
            version: VERSION,
            directory: directory.to_owned(),
            job,
            made,
            is_periodic,
            uris: summary.uris,
            bytes: summary.bytes,
            warcs,
        };
        let description = directory.join(DESCRIPTION);
        let text = serde_json::to_string_pretty(&checkpoint)
            .map_err(|problem| ControlError::failure(&problem))?;
        opilio_job::text_file::write_text(&description, format!("{text}\n"))
            .map_err(|problem| ControlError::file(&description, &problem))?;
        Ok(checkpoint)
    }
}

/// Returns the default folder of a job's checkpoints.
pub(super) fn parent(job: &Path) -> PathBuf {
    job.join("checkpoints")
}

/// Removes unfinished checkpoints from the job's folder, and returns their names. The caller has locked the job, and has not made a
/// checkpoint yet.
pub(crate) fn remove_unfinished(job: &Path) -> io::Result<Vec<String>> {
    let mut removed = Vec::new();
    let entries = match fs::read_dir(parent(job)) {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(removed),
        entries => entries?,
    };
    for entry in entries {
        let (entry, path) = entry.map(|entry| (entry.file_type(), entry.path()))?;
        if entry?.is_dir() && is_unfinished(&path)? {
            fs::remove_dir_all(&path)?;
            removed.push(directory::name_of(&path));
        }
    }
    removed.sort();
    Ok(removed)
}

/// Returns `true` if a folder has only parts of a checkpoint, without the file that is written last.
fn is_unfinished(directory: &Path) -> io::Result<bool> {
    let folders = [
        "state",
        "state.new",
        changes::CHANGES,
        components::COMPONENTS,
        FETCHED_FOLDER,
    ];
    let files = [
        components::LIST,
        JOB_COPY,
        "checkpoint.draft",
        "cluster-commands.draft",
    ];
    let parts = || folders.iter().chain(&files).chain(&COPIES);
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        if !parts().any(|part| *part == name) {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) type FileError = (PathBuf, io::Error);

fn warcs(folder: &Path) -> Result<Vec<WarcFile>, FileError> {
    let at = |problem| (folder.to_owned(), problem);
    let mut warcs = Vec::new();
    for entry in fs::read_dir(folder).map_err(at)? {
        let entry = entry.map_err(at)?;
        let mut file = entry.file_name().to_string_lossy().into_owned();
        // The folder also has indexes, and drafts whose names begin with a dot.
        let finished = file.strip_suffix(".open").unwrap_or(&file);
        if file.starts_with('.') || !is_archive(finished) {
            continue;
        }
        let mut found = entry.metadata();
        if let (Err(_), Some(finished)) = (&found, file.strip_suffix(".open")) {
            // The file was finished and renamed after the folder was read.
            file = finished.to_owned();
            found = fs::metadata(folder.join(&file));
        }
        let found = found.map_err(at)?;
        if found.is_file() {
            warcs.push(WarcFile {
                file,
                bytes: found.len(),
            });
        }
    }
    warcs.sort_by(|a, b| a.file.cmp(&b.file));
    warcs.dedup_by(|a, b| a.file == b.file);
    Ok(warcs)
}

pub(super) fn copy_some(from: &Path, to: &Path, names: &[&str]) -> Result<(), FileError> {
    for name in names {
        if from.join(name).exists() {
            copy(&from.join(name), &to.join(name))?;
        }
    }
    Ok(())
}

/// Copies the job's changes, its copies of files of the cluster, and its plugin files. Components come first, so that the list
/// never names a missing one.
pub(super) fn copy_components(from: &Path, to: &Path) -> Result<(), FileError> {
    for folder in [changes::CHANGES, FETCHED_FOLDER, components::COMPONENTS] {
        if from.join(folder).exists() {
            copy_folder(&from.join(folder), &to.join(folder))?;
        }
    }
    copy_some(from, to, &[components::LIST])
}

/// Copies a folder except its lock file. Fails at a link that leads out of the folder.
pub(super) fn copy_folder(from: &Path, to: &Path) -> Result<(), FileError> {
    fs::create_dir_all(to).map_err(|problem| (to.to_owned(), problem))?;
    let at = |problem| (from.to_owned(), problem);
    for entry in fs::read_dir(from).map_err(at)? {
        let entry = entry.map_err(at)?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        stays_inside(from, &path).map_err(|problem| (path.clone(), problem))?;
        if entry.file_type().map_err(at)?.is_dir() {
            copy_folder(&path, &target)?;
        } else if entry.file_name() != "lock" {
            copy(&path, &target)?;
        }
    }
    Ok(())
}

pub(super) fn copy(from: &Path, to: &Path) -> Result<(), FileError> {
    fs::copy(from, to).map_err(|problem| (from.to_owned(), problem))?;
    File::open(to)
        .and_then(|file| file.sync_all())
        .map_err(|problem| (to.to_owned(), problem))
}

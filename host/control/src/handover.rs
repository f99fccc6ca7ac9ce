//! Hand-over of the files of a job that is not running, and the list of all files with their state.

use std::path::{Path, PathBuf};

use opilio_crawl::{HandoverFile, HandoverStep, HandoverTotals, hand_over_job, handover_files};
use opilio_job::alerts;
use opilio_job::directory::JobLock;
use opilio_job::handover::HandedOver;
use opilio_job::profile::frozen_profile;
use opilio_profile::Profile;

use super::delivery::{hold_at_rest, must_be_job, note};
use super::{Author, ControlError, ErrorKind};

/// Hand-over of a job that no process runs. It locks the job, because a running crawl hands its files over by itself.
pub struct HandoverAtRest {
    job: PathBuf,
    profile: Profile,
    by: String,
    _held: JobLock,
}

/// Receivers and files of a hand-over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandoverList {
    /// The URL of the store, and `on-close` for the command.
    pub receivers: Vec<String>,
    /// The files, by name.
    pub files: Vec<HandoverFile>,
}

impl HandoverAtRest {
    /// Locks the job in the directory `job`.
    ///
    /// # Errors
    /// The directory is not a job, its profile names neither a store nor a command, or another process has locked the job.
    pub fn begin(job: &Path, by: &Author) -> Result<HandoverAtRest, ControlError> {
        must_be_job(job)?;
        let held = hold_at_rest(job, "hand its files over")?;
        let profile = frozen_profile(job)?;
        if receivers(&profile).is_empty() {
            return Err(ControlError::new(
                ErrorKind::State,
                "the profile of the job names neither archive.store nor archive.on-close; set one, as with `opilio job set JOB archive.store.url=s3://BUCKET/PREFIX`"
                    .to_owned(),
            ));
        }
        Ok(HandoverAtRest {
            job: job.to_owned(),
            profile,
            by: by.to_string(),
            _held: held,
        })
    }

    /// Hands over all files that were not handed over yet, with one attempt each. `respond` receives each file, or the reason for
    /// which it was not handed over. Clears the alerts about such files, or renews them. Returns the totals of the store and of
    /// the command.
    ///
    /// # Errors
    /// A key of the store is missing, or files of the job cannot be read.
    pub async fn run(
        self,
        respond: &mut dyn FnMut(Result<HandedOver, String>),
    ) -> Result<Vec<HandoverTotals>, ControlError> {
        let (job, profile) = (&self.job, &self.profile);
        // Logs are stored last, because a log that is written to afterwards would have to be stored again.
        let mut steps = |step| match step {
            HandoverStep::Begun => {
                if let Err(problem) = note(job, &self.by, "handover", "begun") {
                    tracing::warn!("{}", problem.message);
                }
            }
            HandoverStep::ArchiveDone => alerts::clear_handovers(job, profile),
            HandoverStep::File(result) => respond(result),
        };
        let totals = hand_over_job(profile, job, &mut steps).await;
        let totals = totals.map_err(|problem| ControlError::failure(&problem))?;
        for left in &totals {
            if let Some(words) = left.leftover() {
                alerts::raise_handover(job, profile, &left.to, &words);
            }
        }
        Ok(totals)
    }
}

/// Lists the files of a job that are handed over, with their state, also while the job runs.
///
/// # Errors
/// The directory is not a job, or its files cannot be read.
pub fn handover_list(job: &Path) -> Result<HandoverList, ControlError> {
    must_be_job(job)?;
    let profile = frozen_profile(job)?;
    let files = handover_files(&profile, job).map_err(|problem| ControlError::failure(&problem))?;
    Ok(HandoverList {
        receivers: receivers(&profile),
        files,
    })
}

fn receivers(profile: &Profile) -> Vec<String> {
    let archive = &profile.archive;
    let store = archive.store.iter().map(|store| store.place.url());
    let command = (!archive.on_close.is_empty()).then(|| "on-close".to_owned());
    store.chain(command).collect()
}

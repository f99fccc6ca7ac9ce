//! Profile of a job: its own copy, above the profiles that it extends and below later changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use opilio_profile::{Diagnostics, Layer, Profile, ProfileContext, Seed, Seeds};
use opilio_stacks::builtin_plugins;

use crate::changes;
use crate::directory::{self, FrozenProfile, JobError};
use crate::fetched_files::FetchedFiles;
use crate::overrides;

/// Change of a job's settings that is checked before it is stored.
#[derive(Clone, Copy, Debug)]
pub enum TrialChange<'t> {
    /// Settings that apply to the whole job.
    Settings {
        /// Name of the text in errors.
        name: &'t str,
        /// The settings, in TOML.
        text: &'t str,
    },
    /// Overrides that replace the live overrides of the job: for each, the name in errors and the text.
    Overrides(&'t [(String, String)]),
}

/// Error of a job's profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The profile has errors.
    #[error("{0}")]
    Faults(Diagnostics),
    /// The job directory cannot be used.
    #[error(transparent)]
    Job(#[from] JobError),
}

/// Returns the profile that the job in `directory` uses.
///
/// # Errors
/// See [`ProfileError`].
pub fn frozen_profile(directory: &Path) -> Result<Profile, ProfileError> {
    changed_profile(directory, None)
}

/// Returns the profile of a job with one more change.
///
/// # Errors
/// See [`ProfileError`].
pub fn changed_profile(
    directory: &Path,
    change: Option<TrialChange<'_>>,
) -> Result<Profile, ProfileError> {
    let given = ProfileContext {
        builtins: builtin_plugins(),
        ..ProfileContext::default()
    };
    frozen_with(directory, given, change).map(|(profile, _)| profile)
}

/// Returns the profile as the job froze it, with the job's own seeds; and the folder against which its relative paths are
/// resolved.
///
/// # Errors
/// See [`ProfileError`].
pub fn frozen(directory: &Path, given: ProfileContext) -> Result<(Profile, PathBuf), ProfileError> {
    frozen_with(directory, given, None)
}

/// Returns the profile and its folder as [`frozen`] does, with one more change.
fn frozen_with(
    directory: &Path,
    given: ProfileContext,
    change: Option<TrialChange<'_>>,
) -> Result<(Profile, PathBuf), ProfileError> {
    let copy = FrozenProfile::read(directory)?;
    let (again, _) = Seeds::parse("seeds", &given.seeds.join("\n"));
    let mut seeds = vec![copy.seeds.clone()];
    seeds.extend(given.seeds);
    let given = ProfileContext {
        seeds,
        seeds_elsewhere: true,
        name: Some(copy.name.clone()),
        base: Some(copy.base.clone()),
        ..given
    };
    let mut profile = layered(directory, &copy, change, &given)?;
    // Seeds that the operator has removed may be in the profile, which stays as it was frozen.
    let removed = directory::removed_seeds(directory);
    let is_given = |seed: &Seed| again.list.iter().any(|given| given.uri == seed.uri);
    profile
        .seeds
        .list
        .retain(|seed| !removed.contains(seed.uri.as_str()) || is_given(seed));
    Ok((profile, copy.base))
}

/// Returns the job's copy of its profile, above the profiles that it extends and below later changes.
fn layered(
    directory: &Path,
    copy: &FrozenProfile,
    change: Option<TrialChange<'_>>,
    given: &ProfileContext,
) -> Result<Profile, ProfileError> {
    let unreadable = |source| JobError::io(directory, source);
    let mut own = Layer {
        file: copy.profile.display().to_string(),
        text: std::fs::read_to_string(&copy.profile)
            .map_err(|source| JobError::io(&copy.profile, source))?,
        base: copy.base.clone(),
        files: BTreeMap::new(),
    };
    let mut below = changes::layers(directory).map_err(unreadable)?;
    FetchedFiles::read(directory)
        .and_then(|files| files.apply(directory, &mut own, &mut below))
        .map_err(unreadable)?;
    let mut above = changes::changes(directory, &copy.base).map_err(unreadable)?;
    let layer = |file: &str, text: &str| Layer {
        file: file.to_owned(),
        text: text.to_owned(),
        base: copy.base.clone(),
        files: BTreeMap::new(),
    };
    if let Some(TrialChange::Settings { name, text }) = change {
        above.push(layer(name, text));
    }
    match change {
        Some(TrialChange::Overrides(live)) => {
            above.extend(live.iter().map(|(name, text)| layer(name, text)));
        }
        _ => {
            let live = overrides::read(directory).map_err(unreadable)?;
            above.extend(live.iter().map(|one| one.layer(&copy.base)));
        }
    }
    Profile::layered(below, own, above, given).map_err(ProfileError::Faults)
}

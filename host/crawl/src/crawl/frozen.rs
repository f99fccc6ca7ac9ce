//! Profile of a job: its own copy, above the profiles that it extends and below later changes.

use std::path::{Path, PathBuf};

use opilio_job::changes;
use opilio_profile::{Given, Layer, Profile, Seed, Seeds};

use super::error::io_error;
use super::{CrawlError, builtin_plugins};
use opilio_job::directory;

/// Returns the profile that the job in `directory` uses.
pub(crate) fn frozen_profile(directory: &Path) -> Result<Profile, CrawlError> {
    changed_profile(directory, None)
}

/// Returns the profile of a job with one more change: the change's name and its text.
pub(crate) fn changed_profile(
    directory: &Path,
    change: Option<(&str, &str)>,
) -> Result<Profile, CrawlError> {
    let given = Given {
        builtins: builtin_plugins(),
        ..Given::default()
    };
    frozen_with(directory, given, change).map(|(profile, _)| profile)
}

/// Returns the profile as the job froze it, with the job's own seeds.
pub(super) fn frozen(directory: &Path, given: Given) -> Result<(Profile, PathBuf), CrawlError> {
    frozen_with(directory, given, None)
}

/// Returns the same with one more change: its name in errors, and its text.
fn frozen_with(
    directory: &Path,
    given: Given,
    change: Option<(&str, &str)>,
) -> Result<(Profile, PathBuf), CrawlError> {
    let copy = directory::FrozenProfile::read(directory)?;
    let (again, _) = Seeds::parse("--seed", &given.seeds.join("\n"));
    let mut seeds = vec![copy.seeds.clone()];
    seeds.extend(given.seeds);
    let given = Given {
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
    copy: &directory::FrozenProfile,
    change: Option<(&str, &str)>,
    given: &Given,
) -> Result<Profile, CrawlError> {
    let unreadable = |source| io_error(directory, source);
    let own = Layer {
        file: copy.profile.display().to_string(),
        text: std::fs::read_to_string(&copy.profile)
            .map_err(|source| io_error(&copy.profile, source))?,
        base: copy.base.clone(),
    };
    let below = changes::layers(directory).map_err(unreadable)?;
    let mut above = changes::changes(directory, &copy.base).map_err(unreadable)?;
    above.extend(change.map(|(file, text)| Layer {
        file: file.to_owned(),
        text: text.to_owned(),
        base: copy.base.clone(),
    }));
    Profile::layered(below, own, above, given).map_err(CrawlError::Profile)
}

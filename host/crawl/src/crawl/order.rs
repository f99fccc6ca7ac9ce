//! Request for a crawl, and the profile that it names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use opilio_profile::{Diagnostics, Profile, ProfileContext};

use crate::error::CrawlError;
use crate::shared_files::FetchedProfile;
use opilio_job::directory::{self, ProfileOrigin};

/// Request for a crawl on the command line.
#[derive(Clone, Debug)]
pub struct Order {
    /// The profile. A job that is resumed uses its own copy.
    pub profile: ProfileSource,
    /// More seeds.
    pub seeds: Vec<String>,
    /// Contact URL, in place of the profile's.
    pub contact_url: Option<String>,
    /// The job's directory; by default `jobs/` and the profile's name.
    pub job: Option<PathBuf>,
    /// Folder for compiled components. Without it they are compiled at every start.
    pub component_cache: Option<PathBuf>,
}

/// Source of a crawl's profile.
#[derive(Clone, Debug)]
pub enum ProfileSource {
    /// A file.
    File(PathBuf),
    /// A built-in profile, by name.
    Builtin(String),
    /// A text in memory.
    Text {
        /// Name of the text in errors.
        file: String,
        /// TOML.
        text: String,
    },
    /// A named profile.
    Named(NamedProfile),
    /// The profile of a job of the cluster.
    Fetched(Arc<FetchedProfile>),
    /// No profile of the given name was found; the text is the error.
    Unknown(Diagnostics),
}

/// A version of a named profile, with or without changes.
#[derive(Clone, Debug)]
pub struct NamedProfile {
    /// Path of its file, for errors. Relative paths are resolved against the file's folder.
    pub file: PathBuf,
    /// TOML.
    pub text: String,
    /// Name and version.
    pub origin: ProfileOrigin,
}

impl ProfileSource {
    /// The named profile, for a job that is made from one.
    pub(super) fn origin(&self) -> Option<ProfileOrigin> {
        match self {
            ProfileSource::Named(named) => Some(named.origin.clone()),
            ProfileSource::Builtin(name) => Some(ProfileOrigin {
                name: name.clone(),
                version: None,
            }),
            ProfileSource::File(_)
            | ProfileSource::Text { .. }
            | ProfileSource::Fetched(_)
            | ProfileSource::Unknown(_) => None,
        }
    }

    /// The profile, if it was fetched from the cluster.
    pub(super) fn fetched(&self) -> Option<&FetchedProfile> {
        match self {
            ProfileSource::Fetched(fetched) => Some(fetched),
            _ => None,
        }
    }
}

impl NamedProfile {
    /// Reads and checks the profile.
    ///
    /// # Errors
    /// All its errors, if one is of [`Level::Error`](opilio_profile::Level::Error).
    pub fn load(&self, given: &ProfileContext) -> Result<Profile, Diagnostics> {
        let given = ProfileContext {
            base: Some(self.file.parent().unwrap_or(Path::new("")).to_owned()),
            ..given.clone()
        };
        Profile::parse(&self.file.display().to_string(), &self.text, &given)
    }
}

/// Loads the profile that the command line names. Returns it with the folder from which its relative paths start.
pub(super) fn load_named_profile(
    source: &ProfileSource,
    given: &ProfileContext,
) -> Result<(Profile, PathBuf), CrawlError> {
    let here = std::env::current_dir().unwrap_or_default();
    let profile = match source {
        ProfileSource::File(path) => {
            let folder = here.join(path.parent().unwrap_or(Path::new("")));
            return Ok((
                Profile::load(path, given).map_err(CrawlError::Profile)?,
                folder,
            ));
        }
        ProfileSource::Builtin(name) => Profile::builtin(name, given),
        ProfileSource::Text { file, text } => Profile::parse(file, text, given),
        ProfileSource::Unknown(faults) => Err(faults.clone()),
        ProfileSource::Named(named) => {
            let folder = here.join(named.file.parent().unwrap_or(Path::new("")));
            return Ok((named.load(given).map_err(CrawlError::Profile)?, folder));
        }
        ProfileSource::Fetched(fetched) => {
            let profile = fetched.load(given).map_err(CrawlError::Profile)?;
            return Ok((profile, fetched.base().to_owned()));
        }
    };
    Ok((profile.map_err(CrawlError::Profile)?, here))
}

/// Returns a note if the command line names a profile whose text differs from the job's own copy. The job uses its own copy.
pub(super) fn other_profile(
    source: &ProfileSource,
    profile: &Profile,
    directory: &Path,
) -> Vec<String> {
    let (named, text) = match source {
        ProfileSource::File(path) => (
            path.display().to_string(),
            std::fs::read_to_string(path).ok(),
        ),
        ProfileSource::Builtin(name) => (
            format!("the shipped profile {name}"),
            Profile::builtin_text(name).map(str::to_owned),
        ),
        ProfileSource::Text { file, text } => (file.clone(), Some(text.clone())),
        ProfileSource::Named(named) => (
            format!("profile {}", named.origin.name),
            Some(named.text.clone()),
        ),
        ProfileSource::Fetched(_) | ProfileSource::Unknown(_) => return Vec::new(),
    };
    if !directory::is_job(directory) || text.is_none_or(|text| text == profile.source_text()) {
        return Vec::new();
    }
    let job = directory.display();
    vec![format!(
        "{named} differs from the profile that job {job} was created with; the job uses its own copy, \
         {job}/profile.toml: change that, or name another directory with --job"
    )]
}

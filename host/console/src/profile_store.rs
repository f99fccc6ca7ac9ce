//! The store of named profiles: TOML files in a folder, with their versions beside them.
//!
//! ```text
//! NAME.toml                      the newest version; any editor may change it
//! .versions/NAME/versions.jsonl  a line for each version: its number, time, author and reason
//! .versions/NAME/N.toml          the text of version N
//! .versions/.lock                held while a profile changes
//! ```
//! The daemon and `opilio profile` use the same store. A file that was changed by other means counts as the next version, which
//! is written down with the next change or the next job. Numbers are never used twice, also not after a profile was deleted.

mod error;
mod files;
mod summary;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use opilio_crawl::{NamedProfile, ProfileOrigin, stays_inside};
use opilio_profile::Profile;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

pub use error::ProfileStoreError;
pub use summary::ProfileSummary;

use self::error::Result;
use self::files::{PROFILE_BYTES_MAX, failed, read_text, write};
use crate::folder::is_name;

/// Folder of the versions.
const VERSIONS: &str = ".versions";

/// List of a profile's versions.
const LIST: &str = "versions.jsonl";

/// Longest reason of a change, in characters.
const REASON_CHARS_MAX: usize = 1_000;

/// Maximum time of the search for the shortest difference. After it, a longer difference is returned.
const COMPARE_TIME_MAX: Duration = Duration::from_secs(2);

/// Unchanged lines around a difference.
const CONTEXT_LINES: usize = 3;

/// A folder of named profiles.
#[derive(Debug, Clone)]
pub struct ProfileStore {
    folder: PathBuf,
}

/// Version of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProfileVersion {
    /// Number of the version, from 1.
    pub number: u64,
    /// Time of the change.
    pub at: Timestamp,
    /// User; not set if the file was changed by other means than Opilio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Reason that the user gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Kind of the change.
    pub change: ProfileChange,
    /// Profile and version that were copied, such as `news@3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied_from: Option<String>,
}

/// Kind of a change of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileChange {
    /// The text was saved.
    Save,
    /// The profile was made as a copy of another one.
    Copy,
    /// The file was changed by other means than Opilio.
    File,
    /// The profile was deleted. Its earlier versions stay.
    Delete,
}

/// The newest version of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredProfile {
    /// Its name.
    pub name: String,
    /// Its number.
    pub version: u64,
    /// Its text.
    pub text: String,
    /// The profile's file.
    pub file: PathBuf,
}

/// Author of a change, and the reason for it.
#[derive(Debug, Clone, Copy)]
pub struct ChangeNote<'n> {
    /// User.
    pub by: &'n str,
    /// Reason; an empty or blank text counts as a missing one.
    pub reason: Option<&'n str>,
}

/// The state that a profile must have for a change. It protects the changes of others.
#[derive(Debug, Clone, Copy)]
pub enum ExpectedProfile<'e> {
    /// The profile does not exist.
    Missing,
    /// The profile exists, and its newest version has this tag: see [`StoredProfile::tag`].
    Tag(&'e str),
    /// Any state.
    Any,
}

impl StoredProfile {
    /// Returns a tag that differs for each version and text. Clients send it with a change, so that they do not overwrite a version
    /// that they have not read.
    pub fn tag(&self) -> String {
        let hash = Sha256::digest(self.text.as_bytes());
        format!("{}-{}", self.version, HEXLOWER.encode(&hash[..8]))
    }

    /// The profile in the form from which jobs are made.
    pub fn named(self) -> NamedProfile {
        NamedProfile {
            file: self.file,
            text: self.text,
            origin: ProfileOrigin {
                name: self.name,
                version: Some(self.version),
            },
        }
    }
}

impl ProfileStore {
    /// The store in this folder, which may be missing until the first profile is saved.
    pub fn new(folder: PathBuf) -> ProfileStore {
        ProfileStore { folder }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The names of all profiles, sorted.
    pub fn names(&self) -> Vec<String> {
        let Ok(entries) = self.folder.read_dir() else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let name = entry.file_name().into_string().ok()?;
                let name = name.strip_suffix(".toml").map(str::to_owned);
                name.filter(|_| !entry.path().is_dir())
            })
            .collect();
        names.sort();
        names
    }

    /// The newest version of a profile; `None` if the profile does not exist.
    ///
    /// # Errors
    /// Its file cannot be read, is not a text, or is a link out of the folder.
    pub fn find(&self, name: &str) -> Result<Option<StoredProfile>> {
        // The name is looked up in the list, so it cannot lead to another folder.
        if !self.names().iter().any(|known| known == name) {
            return Ok(None);
        }
        let file = self.folder.join(format!("{name}.toml"));
        if stays_inside(&self.folder, &file).is_err() {
            return Err(ProfileStoreError::Link {
                file,
                folder: self.folder.clone(),
            });
        }
        let text = read_text(&file)?;
        let recorded = self.recorded(name)?;
        let version = match recorded.last() {
            Some(last) if self.is_text_of(name, last, &text) => last.number,
            Some(last) => last.number + 1,
            None => 1,
        };
        Ok(Some(StoredProfile {
            name: name.to_owned(),
            version,
            text,
            file,
        }))
    }

    /// The newest version of a profile.
    ///
    /// # Errors
    /// The profile does not exist, or cannot be read.
    pub fn get(&self, name: &str) -> Result<StoredProfile> {
        self.find(name)?.ok_or_else(|| self.unknown(name))
    }

    /// Returns the newest version of a profile for a job. The version is recorded, so that its text stays available.
    ///
    /// # Errors
    /// The profile does not exist, or cannot be read. It is not an error if the store cannot be written.
    pub fn get_for_job(&self, name: &str) -> Result<StoredProfile> {
        let found = self.get(name)?;
        if is_name(name)
            && let Err(problem) = self.hold().and_then(|_held| self.record_file(&found))
        {
            tracing::warn!(
                "version {} of profile {name:?} is not kept: {problem}",
                found.version
            );
        }
        Ok(found)
    }

    /// All versions of a profile, the oldest first. A deleted profile still has them.
    ///
    /// # Errors
    /// There never was such a profile, or its files cannot be read.
    pub fn versions(&self, name: &str) -> Result<Vec<ProfileVersion>> {
        let mut versions = self.recorded(name)?;
        let found = self.find(name)?;
        if let Some(found) = &found
            && versions
                .last()
                .is_none_or(|last| last.number < found.version)
        {
            versions.push(of_file(found));
        }
        match versions.is_empty() {
            true => Err(self.unknown(name)),
            false => Ok(versions),
        }
    }

    /// The text of a version.
    ///
    /// # Errors
    /// The profile has no such version, or it cannot be read.
    pub fn text(&self, name: &str, version: u64) -> Result<String> {
        if let Some(found) = self.find(name)?.filter(|found| found.version == version) {
            return Ok(found.text);
        }
        let versions = self.versions(name)?;
        let has_text = |it: &&ProfileVersion| it.change != ProfileChange::Delete;
        let known = versions.iter().find(|it| it.number == version);
        match known.filter(has_text) {
            Some(_) => read_text(&self.text_file(name, version)),
            None => Err(ProfileStoreError::Version {
                name: name.to_owned(),
                version,
            }),
        }
    }

    /// Saves a text as the newest version of a profile, and makes the profile if it does not exist. A text that does not differ
    /// from the newest version makes no version. Returns the newest version.
    ///
    /// # Errors
    /// The profile is not as expected, its name is not valid, or the store cannot be written.
    pub fn save(
        &self,
        name: &str,
        text: &str,
        expected: ExpectedProfile<'_>,
        note: ChangeNote<'_>,
    ) -> Result<StoredProfile> {
        self.put(name, text, expected, note, None)
    }

    /// Makes a profile with the text of another one. `of` is the copied profile and version.
    ///
    /// # Errors
    /// As for [`ProfileStore::save`].
    pub fn copy(
        &self,
        name: &str,
        text: &str,
        of: String,
        note: ChangeNote<'_>,
    ) -> Result<StoredProfile> {
        self.put(name, text, ExpectedProfile::Missing, note, Some(of))
    }

    /// Deletes a profile. Its versions stay, and a later profile of the name continues their numbers.
    ///
    /// # Errors
    /// The profile does not exist or is not as expected, or the store cannot be written.
    pub fn delete(
        &self,
        name: &str,
        expected: ExpectedProfile<'_>,
        note: ChangeNote<'_>,
    ) -> Result<()> {
        let reason = reason(note)?;
        must_be_name(name)?;
        let _held = self.hold()?;
        let found = self.get(name)?;
        self.must_be(Some(&found), name, expected)?;
        self.record_file(&found)?;
        fs::remove_file(&found.file).map_err(failed(&found.file))?;
        self.record(
            name,
            &ProfileVersion {
                number: found.version + 1,
                at: Timestamp::now(),
                by: Some(note.by.to_owned()),
                reason,
                change: ProfileChange::Delete,
                copied_from: None,
            },
        )
    }

    fn put(
        &self,
        name: &str,
        text: &str,
        expected: ExpectedProfile<'_>,
        note: ChangeNote<'_>,
        copied_from: Option<String>,
    ) -> Result<StoredProfile> {
        let reason = reason(note)?;
        must_be_name(name)?;
        if text.len() as u64 > PROFILE_BYTES_MAX {
            return Err(ProfileStoreError::TooLong(format!(
                "the profile has {} bytes, more than 16MiB; put seeds into a file",
                text.len()
            )));
        }
        let _held = self.hold()?;
        let found = self.find(name)?;
        self.must_be(found.as_ref(), name, expected)?;
        if found.is_none() && Profile::builtin_names().any(|ships| ships == name) {
            return Err(ProfileStoreError::Shipped(name.to_owned()));
        }
        let version = match &found {
            Some(found) if found.text == text => {
                self.record_file(found)?;
                return Ok(found.clone());
            }
            Some(found) => {
                self.record_file(found)?;
                found.version + 1
            }
            None => self.recorded(name)?.last().map_or(1, |it| it.number + 1),
        };
        let file = self.folder.join(format!("{name}.toml"));
        // The list is written last. After a crash before that, the text counts as changed by other means.
        self.keep_text(name, version, text)?;
        write(&file, text)?;
        self.record(
            name,
            &ProfileVersion {
                number: version,
                at: Timestamp::now(),
                by: Some(note.by.to_owned()),
                reason,
                change: match copied_from {
                    Some(_) => ProfileChange::Copy,
                    None => ProfileChange::Save,
                },
                copied_from,
            },
        )?;
        Ok(StoredProfile {
            name: name.to_owned(),
            version,
            text: text.to_owned(),
            file,
        })
    }

    /// Checks that a profile is as expected.
    pub(crate) fn must_be(
        &self,
        found: Option<&StoredProfile>,
        name: &str,
        expected: ExpectedProfile<'_>,
    ) -> Result<()> {
        match (expected, found) {
            (ExpectedProfile::Any, _) | (ExpectedProfile::Missing, None) => Ok(()),
            (ExpectedProfile::Missing, Some(_)) => Err(ProfileStoreError::Taken(name.to_owned())),
            (ExpectedProfile::Tag(_), None) => Err(self.unknown(name)),
            (ExpectedProfile::Tag(tag), Some(found)) if tag == found.tag() => Ok(()),
            (ExpectedProfile::Tag(_), Some(found)) => Err(ProfileStoreError::Changed {
                name: name.to_owned(),
                version: found.version,
                by: self.versions(name)?.pop().and_then(|last| last.by),
            }),
        }
    }

    /// Returns the recorded versions.
    fn recorded(&self, name: &str) -> Result<Vec<ProfileVersion>> {
        if !is_name(name) {
            return Ok(Vec::new());
        }
        let file = self.of(name).join(LIST);
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(problem) => return Err(ProfileStoreError::Unreadable { file, problem }),
        };
        // An incomplete last line, left by a killed process, is skipped.
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        Ok(lines.collect())
    }

    /// Records the version of a file that was changed by other means.
    fn record_file(&self, found: &StoredProfile) -> Result<()> {
        let recorded = self.recorded(&found.name)?;
        if recorded
            .last()
            .is_some_and(|last| last.number >= found.version)
        {
            return Ok(());
        }
        self.keep_text(&found.name, found.version, &found.text)?;
        self.record(&found.name, &of_file(found))
    }

    fn record(&self, name: &str, version: &ProfileVersion) -> Result<()> {
        let file = self.of(name).join(LIST);
        let write = || {
            let mut line = serde_json::to_vec(version)?;
            // The new line must not be appended to an incomplete one.
            let is_torn = fs::read(&file).is_ok_and(|it| it.last().is_some_and(|it| *it != b'\n'));
            if is_torn {
                line.insert(0, b'\n');
            }
            line.push(b'\n');
            let mut list = OpenOptions::new().create(true).append(true).open(&file)?;
            list.write_all(&line)?;
            list.sync_all()
        };
        write().map_err(failed(&file))
    }

    fn keep_text(&self, name: &str, version: u64, text: &str) -> Result<()> {
        let folder = self.of(name);
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
        write(&self.text_file(name, version), text)
    }

    fn is_text_of(&self, name: &str, version: &ProfileVersion, text: &str) -> bool {
        version.change != ProfileChange::Delete
            && fs::read(self.text_file(name, version.number)).is_ok_and(|it| it == text.as_bytes())
    }

    /// Locks the store against changes by other processes.
    fn hold(&self) -> Result<File> {
        let folder = self.folder.join(VERSIONS);
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
        let path = folder.join(".lock");
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(false).write(true);
        let lock = options.open(&path).map_err(failed(&path))?;
        lock.lock().map_err(failed(&path))?;
        Ok(lock)
    }

    /// The folder of a profile's versions.
    fn of(&self, name: &str) -> PathBuf {
        self.folder.join(VERSIONS).join(name)
    }

    fn text_file(&self, name: &str, version: u64) -> PathBuf {
        self.of(name).join(format!("{version}.toml"))
    }

    fn unknown(&self, name: &str) -> ProfileStoreError {
        ProfileStoreError::Unknown {
            name: name.to_owned(),
            folder: self.folder.clone(),
        }
    }
}

/// The difference of two texts as a unified diff; empty if they are equal.
pub fn profile_difference(from: (&str, &str), to: (&str, &str)) -> String {
    let ((old, before), (new, after)) = (from, to);
    let mut config = similar::TextDiff::configure();
    let diff = config.timeout(COMPARE_TIME_MAX).diff_lines(before, after);
    let mut unified = diff.unified_diff();
    let unified = unified.context_radius(CONTEXT_LINES).header(old, new);
    unified.to_string()
}

/// The version of a file that was changed by other means.
fn of_file(found: &StoredProfile) -> ProfileVersion {
    let written = fs::metadata(&found.file).and_then(|it| it.modified()).ok();
    let at = written.and_then(|it| Timestamp::try_from(it).ok());
    ProfileVersion {
        number: found.version,
        at: at.unwrap_or_else(Timestamp::now),
        by: None,
        reason: None,
        change: ProfileChange::File,
        copied_from: None,
    }
}

fn must_be_name(name: &str) -> Result<()> {
    match is_name(name) {
        true => Ok(()),
        false => Err(ProfileStoreError::Name(name.to_owned())),
    }
}

fn reason(note: ChangeNote<'_>) -> Result<Option<String>> {
    let reason = note.reason.map(str::trim).filter(|it| !it.is_empty());
    let length = reason.map_or(0, |it| it.chars().count());
    match length > REASON_CHARS_MAX {
        true => Err(ProfileStoreError::TooLong(format!(
            "the reason has {length} characters; at most {REASON_CHARS_MAX} are allowed"
        ))),
        false => Ok(reason.map(str::to_owned)),
    }
}

#[cfg(test)]
mod tests;

//! The plugins behind the stack hashes in records of URIs: the stacks that extracted and stripped their documents.
//!
//! ```text
//! JOB/stacks.jsonl   a line for each stack that has extracted or stripped a page, in this process or an earlier one
//! ```
//! A record holds eight bytes for a stack, because there are many millions of records. This file describes each stack once. The
//! description stays when the plugins have been replaced.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use opilio_profile::Stage;
use opilio_sandbox::{Handles, handles};
use serde::{Deserialize, Serialize};

use super::Staged;

/// The file, in the job's directory.
pub const FILE: &str = "stacks.jsonl";

/// Most stacks that are kept. A crawl has a few, and one more for each override that selects others and for each replacement.
/// Beyond this number, only the hash of a stack is known.
const STACKS_MAX: usize = 10_000;

/// Plugin in a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StackedPlugin {
    /// Name in the profile.
    pub name: String,
    /// The plugin's own name.
    pub plugin: String,
    /// The plugin's own version.
    pub version: String,
    /// SHA-256 of its component, in hexadecimal.
    pub sha256: String,
    /// SHA-256 of its settings, in hexadecimal.
    pub settings_sha256: String,
    /// Names of its own filters in the profile, which decide what it sees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<String>,
    /// Media types of the documents for which it is called, as patterns; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media_types: Vec<String>,
    /// URIs of the documents for which it is called, as regular expressions; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uris: Vec<String>,
}

/// Stack that records refer to by its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct KnownStack {
    /// Hash of the stack, as in records.
    pub hash: String,
    /// Stage of the stack, as in `[stacks]` of the profile.
    pub stage: String,
    /// Time at which the job first used the stack.
    pub since: Timestamp,
    /// `true` if the next visit of the URI would use it; not set if no process runs the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_in_force: Option<bool>,
    /// Plugins, in order.
    pub plugins: Vec<StackedPlugin>,
}

impl KnownStack {
    /// Removes the plugins that are not called for documents of this media type and URI.
    #[must_use]
    pub fn of_document(mut self, media_type: &str, uri: &str) -> KnownStack {
        self.plugins.retain_mut(|plugin| {
            let patterns = Handles {
                media_types: std::mem::take(&mut plugin.media_types),
                uris: std::mem::take(&mut plugin.uris),
            };
            let is_called = handles(&patterns, media_type, uri);
            (plugin.media_types, plugin.uris) = (patterns.media_types, patterns.uris);
            is_called
        });
        self
    }
}

/// The stacks that a crawl has used.
pub struct KnownStacks {
    path: PathBuf,
    written: Mutex<HashSet<(Stage, u64)>>,
}

impl From<&Staged> for StackedPlugin {
    fn from(staged: &Staged) -> StackedPlugin {
        let handles = staged.plugin.description().handles.clone();
        StackedPlugin {
            name: staged.name.to_string(),
            plugin: staged.plugin.name().to_owned(),
            version: staged.plugin.version().to_owned(),
            sha256: staged.plugin.component_sha256().to_owned(),
            settings_sha256: staged.plugin.settings_sha256().to_owned(),
            filters: staged
                .guards
                .iter()
                .map(|guard| guard.name.to_string())
                .collect(),
            media_types: handles.media_types,
            uris: handles.uris,
        }
    }
}

/// Formats a hash as in records that are shown.
fn hash_text(hash: u64) -> String {
    format!("{hash:016x}")
}

impl KnownStacks {
    /// Reads the stacks that the job in this directory has used before.
    pub fn open(job: &Path) -> io::Result<KnownStacks> {
        let path = Self::file(job);
        let text = read(&path)?;
        if !text.is_empty() && !text.ends_with('\n') {
            // The unfinished line of a killed process is ended here.
            append(&path, "\n")?;
        }
        let written = lines(&text).filter_map(|line| {
            let stage = Stage::ALL
                .into_iter()
                .find(|stage| stage.key() == line.stage);
            Some((stage?, u64::from_str_radix(&line.hash, 16).ok()?))
        });
        Ok(KnownStacks {
            written: Mutex::new(written.collect()),
            path,
        })
    }

    /// Keeps a stack, before any record names it.
    pub fn note(&self, stage: Stage, hash: u64, stack: &[Staged]) -> io::Result<()> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.contains(&(stage, hash)) || written.len() >= STACKS_MAX {
            return Ok(());
        }
        let line = KnownStack {
            hash: hash_text(hash),
            stage: stage.key().to_owned(),
            since: Timestamp::now(),
            is_in_force: None,
            plugins: stack.iter().map(StackedPlugin::from).collect(),
        };
        append(&self.path, &format!("{}\n", serde_json::to_string(&line)?))?;
        written.insert((stage, hash));
        Ok(())
    }

    /// The file of the job in this directory.
    pub fn file(job: &Path) -> PathBuf {
        job.join(FILE)
    }

    /// Returns the stack of this hash that the job in this directory has used at a stage; `None` if it was not kept.
    pub fn find(job: &Path, stage: Stage, hash: u64) -> io::Result<Option<KnownStack>> {
        let text = read(&Self::file(job))?;
        let hash = hash_text(hash);
        Ok(lines(&text).find(|line| line.stage == stage.key() && line.hash == hash))
    }
}

fn read(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        text => text,
    }
}

/// Parses the lines. A half-written line of a killed process is skipped.
fn lines(text: &str) -> impl Iterator<Item = KnownStack> {
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
}

fn append(path: &Path, text: &str) -> io::Result<()> {
    let mut file: File = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_of_a_document_has_the_plugins_that_are_called_for_it() {
        let plugin = |name: &str, media_types: &[&str]| StackedPlugin {
            name: name.to_owned(),
            plugin: name.to_owned(),
            version: String::new(),
            sha256: String::new(),
            settings_sha256: String::new(),
            filters: Vec::new(),
            media_types: media_types.iter().map(|it| (*it).to_owned()).collect(),
            uris: Vec::new(),
        };
        let stack = KnownStack {
            hash: String::new(),
            stage: Stage::Extract.key().to_owned(),
            since: Timestamp::UNIX_EPOCH,
            is_in_force: None,
            plugins: vec![
                plugin("all", &[]),
                plugin("html", &["text/html"]),
                plugin("css", &["text/css"]),
            ],
        };
        let of_html = stack.of_document("text/html", "http://a.example/");
        let names: Vec<&str> = of_html.plugins.iter().map(|one| &*one.name).collect();
        assert_eq!(names, ["all", "html"]);
        assert_eq!(of_html.plugins[1].media_types, ["text/html"]);
    }

    #[test]
    fn a_half_written_line_affects_no_later_line_and_no_stack_is_written_twice() {
        let job = tempfile::tempdir().unwrap();
        let find = |hash| KnownStacks::find(job.path(), Stage::Extract, hash).unwrap();
        assert_eq!(find(1), None);
        let known = KnownStacks::open(job.path()).unwrap();
        known.note(Stage::Extract, 1, &[]).unwrap();
        append(&job.path().join(FILE), "{\"hash\":\"0000").unwrap();
        let known = KnownStacks::open(job.path()).unwrap();
        known.note(Stage::Extract, 1, &[]).unwrap();
        known.note(Stage::Digest, 1, &[]).unwrap();
        known.note(Stage::Extract, 2, &[]).unwrap();
        assert_eq!(find(1).unwrap().hash, "0000000000000001");
        assert_eq!(find(2).unwrap().stage, "extract");
        assert_eq!(find(3), None);
        let text = fs::read_to_string(job.path().join(FILE)).unwrap();
        assert_eq!(lines(&text).count(), 3, "{text}");
    }
}

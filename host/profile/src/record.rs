//! `[record]`: settings of recordings, the plugin calls that are kept as files to inspect and repeat them.

use regex::RegexSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Part, nearest, quote};
use crate::matching::regex;

/// Plugin calls that are kept in `recordings/` of the job, one file each, with input and answer, so that `opilio plugin replay`
/// can repeat them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RecordFile {
    /// Failed calls that are recorded: the first ones of each plugin and kind of error, up to this number. Default `5`: enough
    /// to find the cause.
    #[schemars(range(max = 10_000))]
    pub faults: u32,

    /// Share of all calls that is recorded, from 0 to 1. Default `0.0`: recordings contain whole documents and take much space.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub sample: f64,

    /// Regular expressions: calls about URIs with a match are recorded as well. Default `[]`: calls are not recorded by URI.
    pub uris: Vec<String>,

    /// Plugins whose calls are recorded; of other plugins only failed calls are. Default `[]`: calls of all plugins are
    /// recorded.
    pub plugins: Vec<String>,

    /// Most files; after that nothing more is recorded. Default `1000`: recordings cannot fill a disk by accident.
    #[schemars(range(max = 1_000_000))]
    pub files: u32,
}

/// Plugin calls that are recorded.
#[derive(Debug, Clone)]
pub struct RecordingSettings {
    /// Failed calls of each plugin and kind of error.
    pub faults: u32,
    /// The share of all calls; 0 to 1.
    pub sample: f64,
    /// The patterns, as written.
    pub uris: RegexSet,
    /// Plugins whose calls are recorded; empty for all.
    pub plugins: Vec<String>,
    /// The most files.
    pub files: u32,
}

impl RecordingSettings {
    /// Returns `true` if any call other than failed ones may be recorded.
    pub fn is_on(&self) -> bool {
        self.files > 0 && (self.sample > 0.0 || !self.uris.is_empty())
    }
}

impl Default for RecordFile {
    fn default() -> Self {
        Self {
            faults: 5,
            sample: 0.0,
            uris: Vec::new(),
            plugins: Vec::new(),
            files: 1000,
        }
    }
}

impl RecordFile {
    /// Checks the settings. `known` are the instances of the profile.
    pub(crate) fn check<'k>(
        &self,
        mut part: Part<'_, '_>,
        known: impl Iterator<Item = &'k str> + Clone,
    ) -> RecordingSettings {
        let mut sound = Vec::new();
        let mut uris = part.part("uris");
        for (index, pattern) in self.uris.iter().enumerate() {
            match regex(pattern) {
                Ok(_) => sound.push(pattern),
                Err(problem) => uris.refuse(&index.to_string(), problem, "see docs.rs/regex"),
            }
        }
        let mut plugins = part.part("plugins");
        for (index, name) in self.plugins.iter().enumerate() {
            if !known.clone().any(|known| known == name) {
                let suggestion = match nearest(name, known.clone()) {
                    Some(near) => format!("did you mean {}?", quote(near)),
                    None => "name one of a stack".to_owned(),
                };
                let problem = format!("no plugin {}", quote(name));
                plugins.refuse(&index.to_string(), problem, &suggestion);
            }
        }
        RecordingSettings {
            faults: self.faults,
            sample: self.sample,
            // Each was compiled above; together they may still be too large.
            uris: RegexSet::new(sound).unwrap_or_else(|problem| {
                let problem = format!("the patterns are too large together: {problem}");
                part.refuse("uris", problem, "write fewer");
                RegexSet::empty()
            }),
            plugins: self.plugins.clone(),
            files: self.files,
        }
    }
}

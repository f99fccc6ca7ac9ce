//! `[record]`: which calls of plugins are kept as files, to be looked at and made again.

use regex::RegexSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Part, nearest, quote};
use crate::matching::regex;

/// Which calls of plugins are kept in `recordings/` of the job, one file each: what the plugin was given and what it
/// answered, so that `opilio plugin replay` can make the call again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RecordFile {
    /// Calls that fail: so many of each plugin and kind of fault, the first ones. Default `5`: enough to mend it.
    #[schemars(range(max = 10_000))]
    pub faults: u32,

    /// The share of all calls that is kept, from 0 to 1. Default `0.0`: recordings hold whole documents.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub sample: f64,

    /// Regular expressions: calls about URIs in which one of them is found are kept as well. Default `[]`: no URI is special.
    pub uris: Vec<String>,

    /// Plugins whose calls are kept; of others only those that fail. Default `[]`: those of all plugins.
    pub plugins: Vec<String>,

    /// The most files; with it nothing more is kept. Default `1000`: a disk is not filled by accident.
    #[schemars(range(max = 1_000_000))]
    pub files: u32,
}

/// Which calls of plugins are kept.
#[derive(Debug, Clone)]
pub struct Record {
    /// Calls that fail, of each plugin and kind of fault.
    pub faults: u32,
    /// The share of all calls; 0 to 1.
    pub sample: f64,
    /// The patterns, as written.
    pub uris: RegexSet,
    /// Plugins whose calls are kept; empty for all.
    pub plugins: Vec<String>,
    /// The most files.
    pub files: u32,
}

impl Record {
    /// Whether any call but those that fail may be kept.
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
    /// `known`: the instances of the profile.
    pub(crate) fn check<'k>(
        &self,
        mut part: Part<'_, '_>,
        known: impl Iterator<Item = &'k str> + Clone,
    ) -> Record {
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
                    None => "name one that stands in a stack".to_owned(),
                };
                let problem = format!("no plugin {}", quote(name));
                plugins.refuse(&index.to_string(), problem, &suggestion);
            }
        }
        Record {
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

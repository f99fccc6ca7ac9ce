//! `[[override]]`: tables of settings for matching URIs, queues or times. They apply in the order written and the last that
//! matches wins, key by key. Lists are replaced whole, stacks may also be edited.

pub(crate) mod checking;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use opilio_model::QueueSettings;
use opilio_uri::Canonicaliser;
use serde::Deserialize;
use serde_json::Value;

use crate::check::Check;
use crate::diagnostic::Diagnostics;
use crate::document::Document;
use crate::effective::{EffectiveSettings, Overridable, reconciled_queue};
use crate::match_index::MatchIndex;
use crate::matching::{Conditions, Subject};
use crate::merge::merge_profile;
use crate::plugin_settings::PluginSettings;
use crate::precedence_file::Files;

/// Combinations of overrides that are kept resolved. A site matches few, so there are about as many as overrides. If there are
/// more, all are resolved again.
const RESOLVED_MAX: usize = 20_000;

/// The overrides of a profile, ready for matching.
#[derive(Debug)]
pub(crate) struct Overrides {
    list: Vec<Override>,
    /// Index of the overrides with settings of queues.
    of_queues: MatchIndex,
    /// Index of the overrides with settings of URIs or responses.
    of_uris: MatchIndex,
    /// Index of the overrides that name a queue.
    of_names: MatchIndex,
    /// Index of the overrides with canonicalisation rules.
    of_forms: MatchIndex,
    forced: HashSet<String>,
    /// Names of plugins in their stacks, with the pointers.
    named: Vec<(String, String)>,
    /// Overrides with settings of a plugin, and the plugin's name.
    of_plugins: Vec<(u32, String)>,
    /// The settings without overrides.
    base: Value,
    folder: PathBuf,
    files: Files,
    resolved: Mutex<Resolved>,
}

/// Settings by the overrides from which they are made: those that match the URI, and those that match its queue.
type Resolved = HashMap<(Vec<u32>, Vec<u32>), (Arc<EffectiveSettings>, Arc<QueueSettings>)>;

#[derive(Debug)]
struct Override {
    conditions: Conditions,
    /// The part that is needed for a URI or its response.
    of_uris: Value,
    /// The part that is needed for a queue.
    of_queues: Value,
    queue_name: Option<String>,
    canonicaliser: Option<Canonicaliser>,
}

impl Overrides {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The queue name that overrides force on a URI.
    pub(crate) fn queue_name(&self, subject: &Subject<'_>) -> Option<&str> {
        let found = self.find(&self.of_names, subject);
        self.list
            .get(*found.last()? as usize)?
            .queue_name
            .as_deref()
    }

    /// The canonicaliser that overrides give to a URI, if any.
    pub(crate) fn canonicaliser(&self, subject: &Subject<'_>) -> Option<&Canonicaliser> {
        let found = self.find(&self.of_forms, subject);
        self.list
            .get(*found.last()? as usize)?
            .canonicaliser
            .as_ref()
    }

    /// The names that overrides force.
    pub(crate) fn forced(&self) -> impl Iterator<Item = &str> {
        self.forced.iter().map(String::as_str)
    }

    /// Returns `true` if an override forces this name.
    pub(crate) fn forces(&self, name: &str) -> bool {
        self.forced.contains(name)
    }

    /// The pointer at which a stack of an override names a plugin.
    pub(crate) fn pointer_to(&self, plugin: &str) -> Option<&str> {
        let mut named = self.named.iter();
        let (_, pointer) = named.find(|(name, _)| name == plugin)?;
        Some(pointer)
    }

    /// All plugins that stacks of overrides name, with the pointers.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&str, &str)> {
        self.named
            .iter()
            .map(|(name, pointer)| (name.as_str(), pointer.as_str()))
    }

    /// Overrides with settings of a plugin, and the plugin's name.
    pub(crate) fn of_plugins(&self) -> impl Iterator<Item = (u32, &str)> {
        self.of_plugins
            .iter()
            .map(|(number, name)| (*number, name.as_str()))
    }

    /// The settings of plugins in one override.
    pub(crate) fn plugin_settings(&self, number: u32) -> PluginSettings {
        let found = self.list.get(number as usize);
        PluginSettings::of(found.and_then(|found| found.of_uris.get("plugins")))
    }

    /// The numbers of the overrides with settings that apply to a queue.
    pub(crate) fn for_queue(&self, queue: &Subject<'_>) -> Vec<u32> {
        self.find(&self.of_queues, queue)
    }

    /// The numbers of the overrides with settings that apply to a URI or its response.
    pub(crate) fn for_uri(&self, uri: &Subject<'_>) -> Vec<u32> {
        self.find(&self.of_uris, uri)
    }

    fn find(&self, index: &MatchIndex, subject: &Subject<'_>) -> Vec<u32> {
        index.matching(subject, |number| {
            self.list
                .get(number as usize)
                .map(|found| &found.conditions)
        })
    }

    /// Returns `true` if the override with this number matches.
    pub(crate) fn matches(&self, number: usize, subject: &Subject<'_>) -> bool {
        let found = self.list.get(number);
        found.is_some_and(|found| found.conditions.matches(subject))
    }

    /// Returns `true` if the override with this number applies at this time of day.
    pub(crate) fn is_time_of(&self, number: usize, now: Timestamp) -> bool {
        let found = self.list.get(number);
        found.is_some_and(|found| found.conditions.includes_time(now))
    }

    /// The settings of the profile with these overrides applied.
    pub(crate) fn resolve(
        &self,
        document: &Document,
        of_uris: Vec<u32>,
        of_queues: Vec<u32>,
    ) -> Option<(Arc<EffectiveSettings>, Arc<QueueSettings>)> {
        let key = (of_uris, of_queues);
        {
            let resolved = self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(found) = resolved.get(&key) {
                return Some(found.clone());
            }
        }
        let value = self.apply(&self.base, &key.0, &key.1);
        let plugins = PluginSettings::of(value.get("plugins"));
        // Each override is valid, so they are valid together.
        let written = Overridable::deserialize(value).ok()?;
        let mut check = Check::new(document, Diagnostics::default());
        let stacks = written.stacks.stacks();
        let (settings, queue) =
            written.check(&mut check, stacks, &self.folder, &mut self.files.clone());
        let settings = EffectiveSettings {
            plugins,
            ..settings.reconciled()
        };
        let made = (Arc::new(settings), Arc::new(reconciled_queue(queue)));
        let mut resolved = self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        if resolved.len() >= RESOLVED_MAX {
            resolved.clear();
        }
        resolved.insert(key, made.clone());
        Some(made)
    }

    /// A number that changes with the content of the precedence files.
    pub(crate) fn files_hash(&self) -> u64 {
        self.files.hash()
    }

    /// The numbers of the overrides for a part of the day that includes `now`.
    pub(crate) fn for_time(&self, now: Timestamp) -> impl Iterator<Item = u32> {
        (0..)
            .zip(&self.list)
            .filter(move |(_, one)| one.conditions.is_its_time(now))
            .map(|(number, _)| number)
    }

    /// The written settings with these overrides applied.
    pub(crate) fn apply(&self, written: &Value, of_uris: &[u32], of_queues: &[u32]) -> Value {
        let mut value = written.clone();
        for number in of_uris {
            if let Some(found) = self.list.get(*number as usize) {
                merge_profile(&mut value, &found.of_uris);
            }
        }
        for number in of_queues {
            if let Some(found) = self.list.get(*number as usize) {
                merge_profile(&mut value, &found.of_queues);
            }
        }
        value
    }
}

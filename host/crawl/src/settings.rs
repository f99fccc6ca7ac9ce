//! Settings of a job that change after it was made: which change takes effect when, and where changes are kept.
//!
//! ```text
//! JOB/layers.json          what the profile extends, as it was when the job was made
//! JOB/profile.toml         the profile as it was then
//! JOB/changes/000001.toml  what was changed since, one file for each change, applied in their order
//! ```
//! All of them together are the job's profile.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use jiff::Timestamp;
use opilio_profile::{Layer, Profile};
use serde::{Deserialize, Serialize};

use crate::archive;
use crate::context::Context;
use crate::crawl::CrawlError;
use crate::job::write_text;
use opilio_stacks::{self, Loaded, Loading};
use opilio_visit::policy;

/// Queues resolved at once.
const QUEUES_RESOLVED: usize = 500;

/// What the profile extends.
pub(crate) const LAYERS: &str = "layers.json";
/// The folder of changes.
pub(crate) const CHANGES: &str = "changes";

/// When a change of a setting takes effect.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// For whatever begins from then on.
    AtOnce,
    /// When the job goes on the next time.
    NextStart,
    /// Never: it was settled when the job was made.
    Never,
}

/// What is known of each setting, or table of settings; the longest name holds. What is not named is read when the job goes
/// on.
const EFFECTS: &[(&str, Effect)] = &[
    ("/strategy", Effect::AtOnce),
    ("/workers", Effect::AtOnce),
    ("/user-agent", Effect::AtOnce),
    ("/operator", Effect::AtOnce),
    ("/dns", Effect::AtOnce),
    ("/alerts", Effect::AtOnce),
    ("/checkpoint", Effect::AtOnce),
    ("/stacks", Effect::AtOnce),
    ("/stacks/observe", Effect::NextStart),
    ("/plugins", Effect::AtOnce),
    ("/politeness", Effect::AtOnce),
    ("/robots", Effect::AtOnce),
    ("/fetch", Effect::AtOnce),
    // Of all exchanges together.
    ("/fetch/spool-memory-total", Effect::NextStart),
    ("/fetch/scratch-max", Effect::NextStart),
    ("/fetch/stop-grace", Effect::NextStart),
    ("/cookies/accept", Effect::AtOnce),
    ("/retry", Effect::AtOnce),
    ("/revisit", Effect::AtOnce),
    ("/queue", Effect::AtOnce),
    ("/group", Effect::AtOnce),
    ("/uri", Effect::AtOnce),
    ("/quotas", Effect::AtOnce),
    ("/frontier", Effect::AtOnce),
    ("/frontier/cache", Effect::NextStart),
    ("/limits", Effect::AtOnce),
    // Names of URIs and queues, which a job keeps.
    ("/frontier/queue-key", Effect::Never),
    ("/frontier/parallel-queues", Effect::Never),
    ("/canonicalization", Effect::Never),
    ("/queue/name", Effect::Never),
    // Copied when the job was made.
    ("/extends", Effect::Never),
    ("/name", Effect::Never),
    ("/seeds", Effect::Never),
    ("/seeds-file", Effect::Never),
    ("/archive/directory", Effect::Never),
    ("/logs/directory", Effect::Never),
];

impl Effect {
    /// Of the setting at this JSON Pointer; within an override that of the setting itself.
    pub(crate) fn of(pointer: &str) -> Effect {
        EFFECTS
            .iter()
            .filter(|(table, _)| {
                let rest = pointer.strip_prefix(table);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
            .max_by_key(|(table, _)| table.len())
            .map_or(Effect::NextStart, |(_, effect)| *effect)
    }
}

/// Why a setting cannot be changed in a job, and what to do.
pub(crate) fn why_never(pointer: &str) -> &'static str {
    match pointer {
        "/seeds" | "/seeds-file" => "opilio job seeds --add adds seeds to a job",
        "/extends" | "/name" => "make a new job of another profile",
        "/archive/directory" | "/logs/directory" => {
            "what is there already would not be found again"
        }
        _ => "it names URIs and queues, which the job has stored under these names",
    }
}

/// What the profile of the job in this directory extends.
pub(crate) fn layers(job: &Path) -> io::Result<Vec<Layer>> {
    match fs::read(job.join(LAYERS)) {
        Ok(text) => serde_json::from_slice(&text).map_err(io::Error::other),
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(problem) => Err(problem),
    }
}

/// Keeps what the profile of a new job extends.
pub(crate) fn keep_layers(job: &Path, layers: &[Layer]) -> io::Result<()> {
    if layers.is_empty() {
        return Ok(());
    }
    let text = serde_json::to_string_pretty(layers)?;
    write_text(&job.join(LAYERS), format!("{text}\n"))
}

/// The changes of the job in this directory, in the order applied. `base` is the folder that their paths start from.
pub(crate) fn changes(job: &Path, base: &Path) -> io::Result<Vec<Layer>> {
    let mut files = Vec::new();
    match fs::read_dir(job.join(CHANGES)) {
        Ok(entries) => {
            for entry in entries {
                let path = entry?.path();
                if path
                    .extension()
                    .is_some_and(|extension| extension == "toml")
                {
                    files.push(path);
                }
            }
        }
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => {}
        Err(problem) => return Err(problem),
    }
    // Their numbers have leading zeros.
    files.sort();
    let layer = |path: PathBuf| {
        let text = fs::read_to_string(&path)?;
        Ok(Layer {
            file: path.display().to_string(),
            text,
            base: base.to_owned(),
        })
    };
    files.into_iter().map(layer).collect()
}

/// Keeps a change of settings. It counts from then on, whatever becomes of the process.
pub(crate) fn keep_change(job: &Path, number: u64, text: &str) -> io::Result<()> {
    let folder = job.join(CHANGES);
    fs::create_dir_all(&folder)?;
    write_text(&folder.join(format!("{number:06}.toml")), text)
}

impl Context {
    /// The profile with all that was changed while this process has been running. What takes effect at once is asked of it,
    /// everything else of [`Context::profile`].
    pub(crate) fn current(&self) -> Arc<Profile> {
        let current = self.current.read();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_current(&self, profile: Arc<Profile>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = profile;
    }

    /// Has archive files say of the crawl what holds now.
    pub(crate) fn describe_archive(&self) {
        let plugins = self.stacks().in_force();
        self.writers
            .describe(&archive::description(&self.current(), plugins));
    }

    /// The plugins of a changed profile, with the components that the job has. Blocks; for a thread with a large stack.
    pub(crate) fn plugins_of(&self, profile: &Profile) -> Result<Loaded, CrawlError> {
        let prefixes: Vec<String> = {
            let seeds = self.seeds.blocking_lock();
            seeds.set.iter().map(str::to_owned).collect()
        };
        let kept = {
            let kept = self.workshop.kept.lock();
            kept.unwrap_or_else(PoisonError::into_inner).clone()
        };
        let loading = Loading {
            engine: &self.workshop.engine,
            profile,
            seed_prefixes: &prefixes,
            tables: self.tables.tables(),
            sources: &self.workshop.sources,
            job: Some(&kept),
            only: None,
        };
        opilio_stacks::load(loading).map_err(CrawlError::Profile)
    }

    /// Has a changed profile hold for whatever begins from now on. Blocks.
    pub(crate) fn put_in_force(
        &self,
        profile: Arc<Profile>,
        loaded: Option<Loaded>,
    ) -> Result<(), CrawlError> {
        // Held until all is in force, so that of two changes neither undoes the other.
        let _seeds = self.seeds.blocking_lock();
        let mut config = policy::frontier_config(&profile);
        if profile.frontier.precedence_floor == self.current().frontier.precedence_floor {
            // An operator may have said otherwise for this process.
            config.precedence_floor = self.frontier().precedence_floor();
        }
        // Before the profile: a look-up takes its settings first, and its answer is never taken for one with later settings.
        let fetchers = self.fetchers.changed(&profile)?;
        self.fetchers.put_in_force(fetchers);
        self.set_current(profile);
        let before = self.stacks();
        let pool = match &loaded {
            Some(loaded) => loaded.stacks.pool().after(before.pool()),
            None => before.pool().fresh(),
        };
        self.set_plugins(pool);
        if let Some(loaded) = loaded {
            let written = loaded.job.write(&self.workshop.job, &loaded.components);
            written.map_err(|problem| CrawlError::Kept(opilio_stacks::chain(&problem)))?;
            let mut kept = self.workshop.kept.lock();
            let kept = kept.as_deref_mut();
            if let Ok(kept) = kept {
                *kept = loaded.job;
            }
        }
        self.describe_archive();
        self.frontier().reconfigure(config);
        let mut after = None;
        loop {
            let now = Timestamp::now();
            let part = self
                .frontier()
                .resolve_queues(after.as_deref(), QUEUES_RESOLVED, now)?;
            match part {
                Some(last) => after = Some(last),
                None => return Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn the_longest_name_says_when_a_change_takes_effect() {
        for (pointer, effect) in [
            ("/politeness/min-delay", Effect::AtOnce),
            ("/frontier/ageing", Effect::AtOnce),
            ("/frontier/queue-key", Effect::Never),
            ("/plugins/hops/settings/max", Effect::AtOnce),
            ("/queue/name", Effect::Never),
            ("/limits/time", Effect::AtOnce),
            ("/fetch/scratch-max", Effect::NextStart),
            ("/archive/prefix", Effect::NextStart),
            ("/name", Effect::Never),
        ] {
            assert_eq!(Effect::of(pointer), effect, "{pointer}");
        }
    }

    #[test]
    fn changes_come_back_in_their_order() {
        let job = tempfile::tempdir().unwrap();
        assert!(changes(job.path(), Path::new("")).unwrap().is_empty());
        for number in [2, 10, 9] {
            keep_change(job.path(), number, &format!("workers = {number}\n")).unwrap();
        }
        let layers = changes(job.path(), Path::new("/base")).unwrap();
        let texts: Vec<&str> = layers.iter().map(|layer| layer.text.trim()).collect();
        assert_eq!(texts, ["workers = 2", "workers = 9", "workers = 10"]);
        assert_eq!(layers[0].base, Path::new("/base"));
    }
}

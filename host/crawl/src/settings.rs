//! Changes of settings in a job: the time at which each change takes effect, and the code that puts it into effect.
//! `opilio_job::changes` stores them.

use std::sync::{Arc, PoisonError};

use jiff::Timestamp;
use opilio_frontier::FrontierConfig;
use opilio_profile::Profile;
use serde::{Deserialize, Serialize};

use crate::archive;
use crate::context::CrawlContext;
use crate::error::CrawlError;
use crate::job_part::JobPart;
use opilio_stacks::{self, Loaded, Loading};
use opilio_visit::policy;

/// Queues resolved at once.
const QUEUES_RESOLVED: usize = 500;

/// Time at which a change of a setting takes effect.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// At once, for new visits.
    AtOnce,
    /// At the next start of the job.
    NextStart,
    /// Never: the setting is frozen when the job is created.
    Never,
}

/// Effect of settings and tables of settings. The longest matching name decides. Changes of other settings take effect when the job
/// is resumed.
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
    // Limits for all exchanges together.
    ("/fetch/spool-memory-total", Effect::NextStart),
    ("/fetch/scratch-max", Effect::NextStart),
    ("/fetch/stop-grace", Effect::NextStart),
    ("/cookies/accept", Effect::AtOnce),
    ("/browser", Effect::AtOnce),
    // Limits for all browsers together.
    ("/browser/executable", Effect::NextStart),
    ("/browser/sandbox", Effect::NextStart),
    ("/browser/processes", Effect::NextStart),
    ("/browser/pages-per-process", Effect::NextStart),
    ("/retry", Effect::AtOnce),
    ("/revisit", Effect::AtOnce),
    ("/queue", Effect::AtOnce),
    ("/group", Effect::AtOnce),
    ("/uri", Effect::AtOnce),
    ("/quotas", Effect::AtOnce),
    ("/frontier", Effect::AtOnce),
    ("/frontier/cache", Effect::NextStart),
    ("/limits", Effect::AtOnce),
    // Limits for all document lanes together.
    ("/limits/memory", Effect::NextStart),
    // Settings that determine the names of URIs and queues. They never change in a job.
    ("/frontier/queue-key", Effect::Never),
    ("/frontier/parallel-queues", Effect::Never),
    ("/canonicalization", Effect::Never),
    ("/queue/name", Effect::Never),
    // Copied when the job is made.
    ("/extends", Effect::Never),
    ("/name", Effect::Never),
    ("/seeds", Effect::Never),
    ("/seeds-file", Effect::Never),
    ("/archive/directory", Effect::Never),
    ("/logs/directory", Effect::Never),
];

impl Effect {
    /// Returns the effect of the setting at this JSON Pointer. A setting within an override has the same effect as the setting
    /// itself.
    pub fn of(pointer: &str) -> Effect {
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

/// Returns the reason why a setting cannot be changed in a job, and the remedy.
pub fn why_unchangeable(pointer: &str) -> &'static str {
    match pointer {
        "/seeds" | "/seeds-file" => "`opilio job seeds JOB --add URL` adds seeds to a job",
        "/extends" | "/name" => "create a new job with another profile",
        "/archive/directory" | "/logs/directory" => "existing files would not be found again",
        _ => "stored URIs and queues have names that depend on it",
    }
}

impl CrawlContext {
    /// Returns the profile with all changes since this process began. Settings that take effect at once are read from it, all
    /// others from [`CrawlContext::profile`].
    pub fn current(&self) -> Arc<Profile> {
        let current = self.current.read();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the profile with changes. Plugins and queues are not changed.
    pub fn set_current(&self, profile: Arc<Profile>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = profile;
    }

    /// Updates the description of the crawl in archive files to the settings in effect.
    pub(crate) fn describe_archive(&self) {
        let plugins = self.stacks().in_force();
        self.outputs
            .writers
            .describe(&archive::description(&self.current(), plugins));
    }

    /// Loads the plugins of a changed profile, with the components that the job has. Blocks; call it on a thread with a large
    /// stack.
    pub fn plugins_of(&self, profile: &Profile) -> Result<Loaded, CrawlError> {
        let prefixes: Vec<String> = {
            let seeds = self.plugins.seeds.blocking_lock();
            seeds.set.iter().map(str::to_owned).collect()
        };
        let kept = {
            let kept = self.plugins.factory.kept.lock();
            kept.unwrap_or_else(PoisonError::into_inner).clone()
        };
        let loading = Loading {
            engine: &self.plugins.factory.engine,
            profile,
            seed_prefixes: &prefixes,
            tables: self.plugins.tables.tables(),
            sources: &self.plugins.factory.sources,
            job: Some(&kept),
            only: None,
        };
        opilio_stacks::load(loading).map_err(CrawlError::Profile)
    }

    /// Puts a changed profile into effect for all work that begins from now on. Blocks.
    pub fn put_in_force(
        &self,
        profile: Arc<Profile>,
        loaded: Option<Loaded>,
    ) -> Result<(), CrawlError> {
        // Locked until all changes are in effect, so that two concurrent changes do not undo each other.
        let _seeds = self.plugins.seeds.blocking_lock();
        let part = self.membership.as_ref().map(|it| it.part());
        let mut config = frontier_config(&profile, part);
        if profile.frontier.precedence_floor == self.current().frontier.precedence_floor {
            // An operator may have set another floor for this process.
            config.precedence_floor = self.frontier().precedence_floor();
        }
        // This is done before the profile is replaced. A look-up reads its settings first, so its answer never counts as an answer
        // with later settings.
        let fetchers = self.network.fetchers.changed(&profile)?;
        self.network.fetchers.put_in_force(fetchers);
        self.set_current(profile);
        let before = self.stacks();
        let pool = match &loaded {
            Some(loaded) => loaded.stacks.pool().after(before.pool()),
            None => before.pool().fresh(),
        };
        self.set_plugins(pool);
        if let Some(loaded) = loaded {
            let written = loaded
                .job
                .write(&self.plugins.factory.job, &loaded.components);
            written.map_err(|problem| CrawlError::Kept(opilio_stacks::chain(&problem)))?;
            let mut kept = self.plugins.factory.kept.lock();
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

/// Returns the configuration of the frontier. A part of a shared crawl has an even share of the bandwidth.
pub(crate) fn frontier_config(profile: &Arc<Profile>, part: Option<&JobPart>) -> FrontierConfig {
    let config = policy::frontier_config(profile, Timestamp::now);
    FrontierConfig {
        bandwidth: match (config.bandwidth, part) {
            (Some(rate), Some(part)) => Some(part.even_share(rate).max(1)),
            (rate, _) => rate,
        },
        ..config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_matching_name_decides_when_a_change_takes_effect() {
        for (pointer, effect) in [
            ("/politeness/min-delay", Effect::AtOnce),
            ("/frontier/ageing", Effect::AtOnce),
            ("/frontier/queue-key", Effect::Never),
            ("/plugins/hops/settings/max", Effect::AtOnce),
            ("/queue/name", Effect::Never),
            ("/limits/time", Effect::AtOnce),
            ("/limits/plugin-variants", Effect::AtOnce),
            ("/limits/memory", Effect::NextStart),
            ("/fetch/scratch-max", Effect::NextStart),
            ("/browser/page-time", Effect::AtOnce),
            ("/browser/processes", Effect::NextStart),
            ("/archive/prefix", Effect::NextStart),
            ("/name", Effect::Never),
        ] {
            assert_eq!(Effect::of(pointer), effect, "{pointer}");
        }
    }
}

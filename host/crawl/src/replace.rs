//! Replacement of plugins while the crawl runs.
//!
//! ```text
//! component ─► obtained, checked, configured ─► kept in the job ─► in effect for work that begins from then on
//! ```
//! A failed check changes nothing. A resumed job uses the component that it keeps. Visits in process finish with the plugins that
//! they began with. The new plugin has another hash. So pages are extracted again, versions are compared anew, and the scope is
//! asked again.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use opilio_profile::{Component as ComponentOrigin, Instance, Profile};
use opilio_sandbox::{Component, Engine};
use opilio_source::{Found, Sha256, Sources, Terms};
use serde_json::Value;
use tokio::sync::watch;

use crate::context::Context;
use opilio_stacks::components::{JobPlugins, Replaced};
use opilio_stacks::on_plugin_thread;
use opilio_stacks::{Pool, Replacement, chain};

/// Interval at which the crawl looks at the files of watched plugins.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

/// Engine, sources and copies with which plugins are made while a crawl runs.
pub(crate) struct Workshop {
    pub engine: Engine,
    pub sources: Sources,
    /// The job's directory.
    pub job: PathBuf,
    /// Plugins that the job keeps.
    pub kept: Mutex<JobPlugins>,
}

/// Request to replace a plugin.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// The instance's name in the profile.
    pub instance: String,
    /// Source of the new component.
    pub component: ComponentOrigin,
    /// Digest that the component must have.
    pub sha256: Option<Sha256>,
    /// Settings in place of those in effect, as given.
    pub settings: Option<Value>,
}

/// A component that has been obtained and checked.
pub(crate) struct Candidate {
    found: Found,
    component: Component,
}

impl Workshop {
    /// Obtains and loads the requested component. Blocks for as long as a registry takes.
    pub(crate) fn get(&self, wish: &Wish) -> Result<Candidate, String> {
        let load = |found: &Found| {
            let loaded = self.engine.load(&found.bytes, &found.origin);
            loaded.map_err(|problem| chain(&problem))
        };
        let mut plugins_of = |found: &Found| {
            let component = load(found)?;
            let plugins = component.plugins().iter();
            Ok(plugins.map(|plugin| plugin.name.clone()).collect())
        };
        let terms = Terms {
            sha256: wish.sha256,
            insecure: false,
        };
        let found = self
            .sources
            .resolve(&wish.component, &terms, &mut plugins_of);
        let found = found.map_err(|problem| chain(&problem))?;
        let component = load(&found)?;
        Ok(Candidate { found, component })
    }

    /// Returns the plugins with one replaced, and the result in words. The job keeps the replacement, unless it comes from the
    /// file that the profile has watched. Blocks.
    pub(crate) fn replaced(
        &self,
        profile: &Profile,
        current: &Pool,
        wish: &Wish,
        candidate: &Candidate,
        by: &str,
    ) -> Result<(Pool, String), String> {
        let name = &wish.instance;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = current.replaced(
            profile,
            Replacement {
                name: name.clone(),
                component: candidate.component.clone(),
                plugin: wish.component.plugin().map(str::to_owned),
                settings: wish.settings.clone(),
            },
        )?;
        let (Some(instance), Some(before), Some(after)) = (
            profile.plugins.get(name),
            current.plugin(name),
            pool.plugin(name),
        ) else {
            return Err(format!("the job has no plugin {name:?}"));
        };
        let mut words = format!(
            "{name} was {} {} (sha256 {}), is {} {} (sha256 {})",
            before.name(),
            before.version(),
            before.component_sha256(),
            after.name(),
            after.version(),
            after.component_sha256(),
        );
        if let Some(settings) = pool.written(name)
            && *settings != instance.settings
        {
            words.push_str(&format!(
                "; its settings are {settings}, which are not the profile's"
            ));
        }
        let is_from_watched_file =
            instance.watch && wish.component == instance.component && wish.settings.is_none();
        if !is_from_watched_file {
            let earlier = kept
                .kept(instance)
                .and_then(|kept| kept.replacement.as_ref()?.settings.clone());
            let replaced = Replaced {
                component: candidate.found.origin.clone(),
                sha256: candidate.found.sha256,
                plugin: Some(after.name().to_owned()),
                settings: wish.settings.clone().or(earlier),
                at: Timestamp::now(),
                by: by.to_owned(),
            };
            kept.replace(&self.job, instance, replaced, &candidate.found.bytes)
                .map_err(|problem| chain(&problem))?;
        }
        Ok((pool, words))
    }
}

impl Context {
    /// Replaces a plugin for all work that begins from now on. Returns the result in words. Blocks.
    ///
    /// # Errors
    /// The reason; nothing has changed then.
    pub(crate) fn replace_plugin(&self, wish: &Wish, by: &str) -> Result<String, String> {
        self.workshop.known(&self.current(), &wish.instance)?;
        on_plugin_thread("plugin-replacement", || self.replace_known(wish, by))?
    }

    fn replace_known(&self, wish: &Wish, by: &str) -> Result<String, String> {
        let candidate = self.workshop.get(wish)?;
        // Held until the new plugins are in effect, so that two concurrent changes do not undo each other.
        let _seeds = self.seeds.blocking_lock();
        let current = self.stacks();
        let (pool, words) =
            self.workshop
                .replaced(&self.current(), current.pool(), wish, &candidate, by)?;
        self.set_plugins(pool);
        self.describe_archive();
        Ok(words)
    }
}

impl Workshop {
    /// Checks that the job has a plugin of this name.
    pub(crate) fn known(&self, profile: &Profile, name: &str) -> Result<(), String> {
        if profile.plugins.contains_key(name) {
            return Ok(());
        }
        let names: Vec<&str> = profile.plugins.keys().map(String::as_str).collect();
        Err(format!(
            "the job has no plugin {name:?}; it has: {}",
            names.join(", ")
        ))
    }
}

/// Looks at the files of watched plugins, and replaces plugins whose file has changed.
pub(crate) async fn watch(context: Arc<Context>, mut ended: watch::Receiver<()>) {
    let mut watched: Vec<Watched> = context
        .profile
        .plugins
        .values()
        .filter_map(Watched::of)
        .collect();
    if watched.is_empty() {
        return;
    }
    // Ends as soon as the crawl has ended, before the interval is over.
    while tokio::time::timeout(WATCH_INTERVAL, ended.changed())
        .await
        .is_err()
    {
        for one in &mut watched {
            if !one.has_changed() {
                continue;
            }
            let (context, wish) = (context.clone(), one.wish.clone());
            let replaced = tokio::task::spawn_blocking(move || {
                let (result, what) = match context.replace_plugin(&wish, "watch") {
                    Ok(words) => (words, "replace plugin"),
                    Err(problem) => (format!("not replaced: {problem}"), "alert plugin"),
                };
                tracing::info!("{}: {result}", wish.instance);
                context
                    .job_log
                    .crawl(&format!("{what} {}", wish.instance), &result);
            });
            if let Err(panic) = replaced.await {
                tracing::error!("a watched plugin: {panic}");
            }
        }
    }
}

/// A plugin whose file is watched.
struct Watched {
    wish: Wish,
    path: PathBuf,
    seen: Option<(SystemTime, u64)>,
    /// State of a file that differed at the last look. It may still be being written.
    unsettled: Option<(SystemTime, u64)>,
}

impl Watched {
    fn of(instance: &Instance) -> Option<Watched> {
        let ComponentOrigin::File { path, .. } = &instance.component else {
            return None;
        };
        if !instance.watch {
            return None;
        }
        let mut watched = Watched {
            wish: Wish {
                instance: instance.name.clone(),
                component: instance.component.clone(),
                sha256: None,
                settings: None,
            },
            path: path.clone(),
            seen: None,
            unsettled: None,
        };
        watched.seen = watched.look();
        Some(watched)
    }

    fn look(&self) -> Option<(SystemTime, u64)> {
        let file = std::fs::metadata(&self.path).ok()?;
        Some((file.modified().ok()?, file.len()))
    }

    /// Whether the file has changed, and has been the same at two looks in a row.
    fn has_changed(&mut self) -> bool {
        let now = self.look();
        if now.is_none() || now == self.seen {
            self.unsettled = None;
            return false;
        }
        if self.unsettled != now {
            self.unsettled = now;
            return false;
        }
        self.seen = now;
        self.unsettled = None;
        true
    }
}

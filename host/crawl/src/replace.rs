//! Plugins that take the place of others while the crawl runs.
//!
//! ```text
//! component ─► got, checked, configured ─► kept in the job ─► in force for whatever begins from then on
//! ```
//! A check that fails changes nothing. What is kept in the job counts when it is taken up again. Visits that are under way
//! go on with the plugins that they began with; what the new one decides otherwise shows in its hash, so that pages are
//! extracted again, versions compared anew and the scope asked once more.

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

/// How often the files of plugins are looked at that are being written.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

/// What plugins are made with while a crawl runs.
pub(crate) struct Workshop {
    pub engine: Engine,
    pub sources: Sources,
    /// The job's directory.
    pub job: PathBuf,
    /// What it keeps of its plugins.
    pub kept: Mutex<JobPlugins>,
}

/// What is to take a plugin's place.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// The instance's name in the profile.
    pub instance: String,
    /// Where the new component comes from.
    pub component: ComponentOrigin,
    /// What its digest must be.
    pub sha256: Option<Sha256>,
    /// Settings in place of those in force, as given.
    pub settings: Option<Value>,
}

/// A component that has been got and checked.
pub(crate) struct Candidate {
    found: Found,
    component: Component,
}

impl Workshop {
    /// The component that is wished for. Blocks, for as long as a registry takes.
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

    /// The plugins with one replaced, and what came of it in words. Kept in the job, unless the profile has the instance
    /// watched: then its file says what it is. Blocks.
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
    /// Puts a plugin in the place of another, for whatever begins from now on. What came of it in words. Blocks.
    ///
    /// # Errors
    /// Why it cannot; nothing has changed.
    pub(crate) fn replace_plugin(&self, wish: &Wish, by: &str) -> Result<String, String> {
        self.workshop.known(&self.current(), &wish.instance)?;
        on_plugin_thread("plugin-replacement", || self.replace_known(wish, by))?
    }

    fn replace_known(&self, wish: &Wish, by: &str) -> Result<String, String> {
        let candidate = self.workshop.get(wish)?;
        // Held until the new plugins are in force, so that of two changes neither undoes the other.
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
    /// Whether the job has such a plugin.
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

/// Looks at the files of plugins that are being written, and replaces those that have changed.
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
    // Until it has ended, which comes before the interval is over.
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
                    Err(problem) => (format!("stays as it was: {problem}"), "alert plugin"),
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
    /// It looked different the last time, and may still be being written.
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

    /// Whether the file is another, and has been the same twice in a row.
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

//! Replacement of plugins while the crawl runs.
//!
//! ```text
//! component ─► obtained, checked, configured ─► kept in the job ─► in effect for work that begins from then on
//! ```
//! If a check fails, the plugins are not changed. A resumed job uses its copy of the component. Visits in process finish with the
//! plugins that they began with. The new plugin has another hash, so pages are extracted again, versions are compared anew, and the
//! scope decides again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use opilio_profile::{ComponentReference, Instance};
use tokio::sync::watch;

use crate::context::CrawlContext;
use crate::plugin_factory::{ObtainedComponent, ReplacementError, ReplacementRequest};
use opilio_stacks::on_plugin_thread;

/// Interval at which the crawl checks the files of watched plugins.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

impl CrawlContext {
    /// Replaces a plugin for all work that begins from now on. Returns a message about the result. Blocks.
    ///
    /// # Errors
    /// See [`ReplacementError`].
    pub fn replace_plugin(
        &self,
        request: &ReplacementRequest,
        by: &str,
    ) -> Result<String, ReplacementError> {
        self.plugins
            .factory
            .known(&self.current(), &request.instance)?;
        on_plugin_thread("plugin-replacement", || self.replace_known(request, by))?
    }

    /// Obtains the component of a replacement, and checks that the job has the plugin. Blocks.
    ///
    /// # Errors
    /// See [`ReplacementError`].
    pub fn obtain_component(
        &self,
        request: &ReplacementRequest,
    ) -> Result<ObtainedComponent, ReplacementError> {
        let factory = &self.plugins.factory;
        factory.known(&self.current(), &request.instance)?;
        on_plugin_thread("plugin-replacement", || factory.get(request))?
    }

    fn replace_known(
        &self,
        request: &ReplacementRequest,
        by: &str,
    ) -> Result<String, ReplacementError> {
        let candidate = self.plugins.factory.get(request)?;
        // Locked until the new plugins are in effect, so that two concurrent changes do not undo each other.
        let _seeds = self.plugins.seeds.blocking_lock();
        let current = self.stacks();
        let (pool, message) = self.plugins.factory.replaced(
            &self.current(),
            current.pool(),
            request,
            &candidate,
            by,
        )?;
        self.set_plugins(pool);
        self.describe_archive();
        Ok(message)
    }
}

/// Checks the files of watched plugins, and replaces plugins whose file has changed.
pub(crate) async fn watch(context: Arc<CrawlContext>, mut ended: watch::Receiver<()>) {
    let mut watched: Vec<WatchedPlugin> = context
        .profile
        .plugins
        .values()
        .filter_map(WatchedPlugin::of)
        .collect();
    if watched.is_empty() {
        return;
    }
    // Returns as soon as the crawl has ended, even during an interval.
    while tokio::time::timeout(WATCH_INTERVAL, ended.changed())
        .await
        .is_err()
    {
        for one in &mut watched {
            if !one.has_changed() {
                continue;
            }
            let (context, request) = (context.clone(), one.request.clone());
            let replaced = tokio::task::spawn_blocking(move || {
                let (result, what) = match context.replace_plugin(&request, "watch") {
                    Ok(message) => (message, "replace plugin"),
                    Err(problem) => (format!("not replaced: {problem}"), "alert plugin"),
                };
                tracing::info!("{}: {result}", request.instance);
                context
                    .job_log
                    .crawl(&format!("{what} {}", request.instance), &result);
            });
            if let Err(panic) = replaced.await {
                tracing::error!("a watched plugin: {panic}");
            }
        }
    }
}

/// A plugin whose file is watched.
struct WatchedPlugin {
    request: ReplacementRequest,
    path: PathBuf,
    seen: Option<(SystemTime, u64)>,
    /// State of a file that differed at the last check. Another program may still be writing it.
    unsettled: Option<(SystemTime, u64)>,
}

impl WatchedPlugin {
    fn of(instance: &Instance) -> Option<WatchedPlugin> {
        let ComponentReference::File { path, .. } = &instance.component else {
            return None;
        };
        if !instance.watch {
            return None;
        }
        let mut watched = WatchedPlugin {
            request: ReplacementRequest {
                instance: instance.name.clone(),
                component: instance.component.clone(),
                sha256: None,
                settings: None,
                bytes: None,
            },
            path: path.clone(),
            seen: None,
            unsettled: None,
        };
        watched.seen = watched.read_state();
        Some(watched)
    }

    fn read_state(&self) -> Option<(SystemTime, u64)> {
        let file = std::fs::metadata(&self.path).ok()?;
        Some((file.modified().ok()?, file.len()))
    }

    /// Returns `true` if the file has changed, and was the same at two checks in a row.
    fn has_changed(&mut self) -> bool {
        let now = self.read_state();
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

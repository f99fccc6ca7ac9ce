//! Makes plugins of a component. Their calls start from a snapshot, or run `configure`, either always or until a snapshot is
//! compiled.

use std::sync::Arc;
use std::time::Duration;

use super::{LaterSnapshot, Plugin, Start};
use crate::cache::Key;
use crate::component::{Component, Loaded, Program, cached};
use crate::configure::{ConfigureError, PluginConfig, configuration, snapshot_of, try_configure};
use crate::preparation::{Preparation, report_preparation};

/// A plugin whose `configure` takes less than this can run it in its first calls instead of starting from a snapshot.
const CONFIGURE_TIME_SHORT: Duration = Duration::from_millis(5);

impl Component {
    /// Makes a plugin of the component. `configure` is called once, and its memory after that call is compiled and cached: now, or
    /// when the plugin has been called often ([`EngineConfig::snapshots_later`](crate::EngineConfig::snapshots_later)).
    ///
    /// A component that cannot be snapshotted works as well: `configure` then runs in every fresh instance.
    pub fn configure(&self, config: PluginConfig) -> Result<Plugin, ConfigureError> {
        snapshotted(&self.0, config, self.0.shared.snapshots.is_some())
    }

    /// Makes a plugin, as [`configure`](Self::configure) does, but always compiles its snapshot now.
    pub fn configure_with_snapshot(&self, config: PluginConfig) -> Result<Plugin, ConfigureError> {
        snapshotted(&self.0, config, false)
    }

    /// Makes a plugin that runs `configure` in every instance before the call. Nothing is compiled or kept, so that many variants
    /// of settings start at once. `configure` is still tried once here, to find errors.
    pub fn configure_each_call(&self, config: PluginConfig) -> Result<Plugin, ConfigureError> {
        plugin_without_snapshot(&self.0, config, "by choice".to_owned())
    }
}

/// Makes a plugin whose calls start from a snapshot: from now on, or later.
fn snapshotted(
    component: &Arc<Loaded>,
    config: PluginConfig,
    is_later: bool,
) -> Result<Plugin, ConfigureError> {
    if let Some(refusal) = &component.refusal {
        return plugin_without_snapshot(component, config, refusal.clone());
    }
    let configuration = configuration(component, config)?;
    let name = configuration.description.name.clone();
    let shared = &component.shared;
    let key = Key::of(&[
        "configured",
        &shared.compatibility,
        &component.sha256,
        &name,
        &configuration.settings,
    ]);
    let engine_problem = |error: wasmtime::Error| ConfigureError::Engine {
        plugin: name.clone(),
        problem: format!("{error:#}"),
    };
    let kept = shared
        .cache
        .as_ref()
        .and_then(|cache| cached(shared, cache, &key));
    let (compiled, was_cached) = match kept {
        Some((compiled, _)) => (compiled, true),
        None => {
            let each_call = |why, later| {
                let program = component.program.clone();
                let start = Start::EachCall { why };
                Plugin::new(component, configuration.clone(), program, start, later)
            };
            if is_later {
                let took = try_configure(component, &configuration, |_, took, _| took)?;
                if took < CONFIGURE_TIME_SHORT {
                    let why = "it has not been called often yet".to_owned();
                    let component = component.clone();
                    return Ok(each_call(why, Some(LaterSnapshot::new(component, key))));
                }
            }
            // The caller waits for this second compilation of the component, too.
            report_preparation(Preparation::Compiling(&component.origin));
            let snapshot = snapshot_of(component, &configuration, &key);
            report_preparation(Preparation::Compiled);
            match snapshot? {
                Ok(compiled) => (compiled, false),
                Err(why) => return Ok(each_call(why, None)),
            }
        }
    };
    let contract = component.program.exports.contract();
    let program = Program::new(shared, contract, &compiled).map_err(engine_problem)?;
    Ok(Plugin::new(
        component,
        configuration,
        program,
        Start::Snapshot { cached: was_cached },
        None,
    ))
}

/// Makes a plugin whose calls run `configure`, for this reason.
fn plugin_without_snapshot(
    component: &Arc<Loaded>,
    config: PluginConfig,
    why: String,
) -> Result<Plugin, ConfigureError> {
    let configuration = configuration(component, config)?;
    try_configure(component, &configuration, |_, _, _| ())?;
    Ok(Plugin::new(
        component,
        configuration,
        component.program.clone(),
        Start::EachCall { why },
        None,
    ))
}

//! Configuration of a component with settings: calls `configure` in a fresh instance, and compiles a snapshot of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::cache::Key;
use crate::call::call;
use crate::call_state::CallState;
use crate::callee::{CONFIGURE, CallTarget, Callee};
use crate::compiler::{Refusal, Task};
use crate::component::{Loaded, compile};
use crate::fault::{Fault, Problem};
use crate::limits::Limits;
use crate::notes::one_line;
use crate::settings::canonical;
use crate::table::Tables;
use crate::{Description, SettingsFault, snapshot};

/// Most bytes that a guest may return while its state is read: one whole memory.
const SNAPSHOT_BYTES_MAX: usize = 4 << 30;
/// Most ticks for reading the state of a guest, which should take none.
const SNAPSHOT_TICKS_MAX: u64 = 6_000;

/// Settings by which a component becomes a plugin.
#[derive(Clone, Debug)]
pub struct PluginConfig {
    /// The plugin's name within the component. It may be `None` if the component has only one.
    pub plugin: Option<String>,
    /// Its name in plugin errors, log lines and kept values, since a plugin may be used several times with different settings.
    /// `None`: its own name.
    pub instance: Option<String>,
    /// A JSON object that has been checked against the plugin's schema and completed with its defaults.
    pub settings: Value,
    /// Limits of `configure` and of every call.
    pub limits: Limits,
    /// Tables for look-ups. They are available only after `configure`, because the snapshot would otherwise contain look-up results
    /// that are never updated.
    pub tables: Tables,
}

impl Default for PluginConfig {
    fn default() -> Self {
        Self {
            plugin: None,
            instance: None,
            settings: Value::Object(serde_json::Map::new()),
            limits: Limits::default(),
            tables: Tables::default(),
        }
    }
}

/// Errors in one plugin's settings that are reported.
const FAULTS_MAX: usize = 100;

/// Reason for which a component cannot be configured with these settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigureError {
    /// The component has several plugins and no name was given.
    #[error("{origin} holds several plugins; name one of {}", names.join(", "))]
    WhichPlugin {
        /// The component.
        origin: String,
        /// Its plugins.
        names: Vec<String>,
    },
    /// The component has no plugin of this name.
    #[error("{origin} has no plugin `{name}`; it has: {}", names.join(", "))]
    NoSuchPlugin {
        /// The component.
        origin: String,
        /// The requested name.
        name: String,
        /// Its plugins.
        names: Vec<String>,
    },
    /// The settings are not a JSON object.
    #[error("settings of plugin `{plugin}` are not a JSON object")]
    NoObject {
        /// The plugin.
        plugin: String,
    },
    /// Errors that `configure` found in the settings, each with a JSON Pointer to the setting.
    #[error("{plugin} {version} refuses its settings: {}", listed(faults))]
    Settings {
        /// The plugin.
        plugin: String,
        /// Its version.
        version: String,
        /// The errors, at least one.
        faults: Vec<SettingsFault>,
    },
    /// `configure` trapped, took too long or used too much.
    #[error("{} cannot be configured: {}: {}", .0.described.as_ref().unwrap_or(&.0.plugin), .0.kind, .0.message)]
    Fault(Box<Fault>),
    /// The engine does not accept its own output.
    #[error("plugin `{plugin}` cannot be prepared: {problem}")]
    Engine {
        /// The plugin.
        plugin: String,
        /// The engine's message.
        problem: String,
    },
}

fn listed(faults: &[SettingsFault]) -> String {
    let fault = |fault: &SettingsFault| match fault.pointer.as_str() {
        "" => fault.problem.clone(),
        pointer => format!("{pointer}: {}", fault.problem),
    };
    faults.iter().map(fault).collect::<Vec<_>>().join("; ")
}

/// Turns each text of a guest's error into one line.
fn as_lines(fault: &SettingsFault) -> SettingsFault {
    SettingsFault {
        pointer: one_line(&fault.pointer),
        problem: one_line(&fault.problem),
    }
}

/// The parts of a plugin, before it is known how its calls start.
#[derive(Clone)]
pub(crate) struct Configuration {
    pub(crate) description: Description,
    pub(crate) callee: Arc<Callee>,
    pub(crate) settings: String,
    pub(crate) settings_sha256: String,
}

/// Configures an instance and compiles its snapshot. The inner error is the reason for which there is no snapshot.
pub(crate) fn snapshot_of(
    component: &Loaded,
    configuration: &Configuration,
    key: &Key,
) -> Result<Result<wasmtime::component::Component, String>, ConfigureError> {
    let snapshot = try_configure(component, configuration, |store, _, instance| {
        if store.data().wasi.holds_handles() {
            return Err("it keeps a stream that it got while it was configured".to_owned());
        }
        store.set_epoch_deadline(SNAPSHOT_TICKS_MAX);
        store.set_hostcall_fuel(SNAPSHOT_BYTES_MAX);
        let (context, _) = snapshot::instrument(&component.bytes)?;
        snapshot::take(&context, store, instance)
    })?;
    Ok(snapshot.and_then(|snapshot| {
        compile(&component.shared, key, Task::Compile, &snapshot)
            .map(|(component, _)| component)
            .map_err(Refusal::problem)
    }))
}

/// Makes the configuration of the plugin that is chosen.
pub(crate) fn configuration(
    component: &Loaded,
    config: PluginConfig,
) -> Result<Configuration, ConfigureError> {
    let PluginConfig {
        plugin,
        instance,
        settings,
        limits,
        tables,
    } = config;
    let description = choose(component, plugin.as_deref())?.clone();
    if !settings.is_object() {
        return Err(ConfigureError::NoObject {
            plugin: description.name,
        });
    }
    let settings = canonical(&settings);
    let settings_sha256 = HEXLOWER.encode(&Sha256::digest(&settings));
    let name = instance.as_deref().unwrap_or(&description.name);
    let callee = Arc::new(Callee {
        name: name.into(),
        described: Some(format!("{} {}", description.name, description.version).into()),
        limits,
        keeps: description.keeps.clone(),
        tables,
    });
    Ok(Configuration {
        description,
        callee,
        settings,
        settings_sha256,
    })
}

fn choose<'a>(
    component: &'a Loaded,
    plugin: Option<&str>,
) -> Result<&'a Description, ConfigureError> {
    let origin = || component.origin.clone();
    let names = || {
        component
            .plugins
            .iter()
            .map(|plugin| plugin.name.clone())
            .collect()
    };
    match (plugin, component.plugins.as_slice()) {
        (None, [sole]) => Ok(sole),
        (None, _) => Err(ConfigureError::WhichPlugin {
            origin: origin(),
            names: names(),
        }),
        (Some(name), plugins) => plugins
            .iter()
            .find(|plugin| plugin.name == name)
            .ok_or_else(|| ConfigureError::NoSuchPlugin {
                origin: origin(),
                name: name.to_owned(),
                names: names(),
            }),
    }
}

/// Calls `configure` in a fresh instance, and `then` while the instance is alive, with the time that `configure` took.
pub(crate) fn try_configure<R>(
    component: &Loaded,
    configuration: &Configuration,
    then: impl FnOnce(&mut wasmtime::Store<CallState>, Duration, wasmtime::component::Instance) -> R,
) -> Result<R, ConfigureError> {
    let Description { name, version, .. } = &configuration.description;
    let callee = &configuration.callee;
    let target = CallTarget {
        callee: Callee::not_configured(
            &callee.name,
            callee.described.clone(),
            callee.limits.clone(),
        ),
        uri: CONFIGURE.into(),
    };
    let program = &component.program;
    let (answer, _) = call(
        &component.shared,
        &program.instance,
        &target,
        |store, instance| {
            let settings = &configuration.settings;
            let began = Instant::now();
            let configured = program
                .exports
                .configure(store, &instance, name, settings)?;
            let took = began.elapsed();
            Ok::<_, Problem>(configured.map(|()| then(store, took, instance)))
        },
    );
    match answer {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(faults)) => Err(ConfigureError::Settings {
            plugin: name.clone(),
            version: version.clone(),
            faults: match faults.is_empty() {
                true => vec![SettingsFault {
                    pointer: String::new(),
                    problem: "no reason given".to_owned(),
                }],
                false => faults.iter().take(FAULTS_MAX).map(as_lines).collect(),
            },
        }),
        Err(fault) => Err(ConfigureError::Fault(Box::new(fault))),
    }
}

//! The pool of every plugin instance that a profile names, configured, whether in a stack or only in an override.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use opilio_profile::{
    BreakerSettings, Diagnostics, OnFault, PluginSettings, Profile, Stage, complete_settings,
};
use opilio_sandbox::{Component, ConfigureError, Description, Kind, Plugin, PluginStatistics};
use serde_json::Value;

use crate::breaker::{Breaker, BreakerState, FaultPolicy};
use crate::chain;
use crate::instance_inputs::{InstanceInputs, wants_seeds};
use crate::recorder::Recorder;
use crate::staged::{Staged, misplaced};
use crate::variants::{Use, Variants};

/// Time after which a replaced plugin is no longer called: every call is shorter.
const IN_FLIGHT_MAX: Duration = Duration::from_secs(120);

/// Every instance, by its name in the profile. A pool never changes. Replacing an instance makes another pool.
#[derive(Default)]
pub struct Pool {
    pub(super) instances: BTreeMap<String, Arc<InForce>>,
    /// Count of the changes that affect the plugins of a selection.
    pub(super) generation: Arc<AtomicU64>,
    pub(super) recorder: Option<Arc<Recorder>>,
}

/// An instance with the component and settings that are in force.
pub(super) struct InForce {
    name: Arc<str>,
    inputs: Arc<InstanceInputs>,
    /// Settings as written, without defaults: overrides add to them.
    written: Value,
    /// Settings with defaults, without the seeds' prefixes.
    settings: Value,
    plugin: Plugin,
    variants: Arc<Variants>,
    instance_settings: InstanceSettings,
    breaker: Arc<Breaker>,
    earlier: Mutex<Earlier>,
}

/// The profile's settings for an instance, apart from those of its plugin.
#[derive(Clone)]
pub(super) struct InstanceSettings {
    pub(super) filters: Vec<String>,
    pub(super) on_fault: Option<OnFault>,
    pub(super) rule: BreakerSettings,
    pub(super) variants_max: usize,
}

/// Statistics of the earlier plugins of an instance.
#[derive(Default)]
struct Earlier {
    /// Statistics of plugins that are no longer called.
    past: PluginStatistics,
    /// Plugins that may still be called, with the time of their replacement.
    recent: Vec<(Plugin, Instant)>,
}

/// Statistics of an instance, or of a variant of it.
pub struct PluginSeen {
    /// Its name in the profile.
    pub name: Arc<str>,
    /// The beginning of the settings' hash, for settings of an override; `None` for the instance's own settings.
    pub variant: Option<String>,
    /// The plugin in force.
    pub plugin: Plugin,
    /// Statistics of this process, including earlier plugins of the instance.
    pub statistics: PluginStatistics,
    /// The state of the instance's breaker.
    pub breaker: BreakerState,
}

/// A component that is to take the place of another.
pub struct Replacement {
    /// The instance's name in the profile.
    pub name: String,
    /// The new component.
    pub component: Component,
    /// The plugin's name in the component. `None`: the plugin of the same name, or the only one.
    pub plugin: Option<String>,
    /// Other settings. `None`: the settings in force.
    pub settings: Option<Value>,
}

impl InForce {
    pub(super) fn new(
        inputs: InstanceInputs,
        (written, settings): (Value, Value),
        plugin: Plugin,
        variants: Vec<(Value, Plugin)>,
        instance_settings: InstanceSettings,
        generation: &Arc<AtomicU64>,
    ) -> InForce {
        let inputs = Arc::new(inputs);
        let generation = generation.clone();
        InForce {
            name: inputs.name.clone(),
            variants: Variants::new(
                inputs.clone(),
                instance_settings.variants_max,
                generation,
                variants,
            ),
            inputs,
            written,
            settings,
            plugin,
            breaker: Arc::new(Breaker::new(instance_settings.rule)),
            instance_settings,
            earlier: Mutex::default(),
        }
    }

    /// Takes over the statistics of the instance that it replaces.
    fn after(self, before: &InForce) -> InForce {
        self.inherit(before);
        self
    }

    fn inherit(&self, before: &InForce) {
        let mut earlier = Earlier::default();
        {
            let mut then = before
                .earlier
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            then.drop_unused();
            earlier.past = then.past.clone();
            earlier.recent = then.recent.clone();
        }
        earlier.recent.push((before.plugin.clone(), Instant::now()));
        for (_, statistics) in before.variants.seen() {
            earlier.past.add(&statistics);
        }
        earlier.past.add(&before.variants.dropped());
        *self.earlier.lock().unwrap_or_else(PoisonError::into_inner) = earlier;
    }

    fn seen(&self) -> Vec<PluginSeen> {
        let one = |variant, plugin, statistics| PluginSeen {
            name: self.name.clone(),
            variant,
            plugin,
            statistics,
            breaker: self.breaker.state(),
        };
        let mut own = self.plugin.statistics();
        {
            let mut earlier = self.earlier.lock().unwrap_or_else(PoisonError::into_inner);
            earlier.drop_unused();
            own.add(&earlier.past);
            for (plugin, _) in &earlier.recent {
                own.add(&plugin.statistics());
            }
        }
        own.add(&self.variants.dropped());
        let mut seen = vec![one(None, self.plugin.clone(), own)];
        for (plugin, statistics) in self.variants.seen() {
            let variant = plugin.settings_sha256().chars().take(8).collect();
            seen.push(one(Some(variant), plugin, statistics));
        }
        seen
    }
}

impl Earlier {
    /// Drops the plugins that are no longer called: each holds a compiled component.
    fn drop_unused(&mut self) {
        let past = &mut self.past;
        self.recent.retain(|(plugin, since)| {
            let may_be_called = since.elapsed() < IN_FLIGHT_MAX;
            if !may_be_called {
                past.add(&plugin.statistics());
            }
            may_be_called
        });
    }
}

impl Pool {
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns the settings schema of each instance.
    pub fn schemas(&self) -> Vec<(String, Value)> {
        let all = self.instances.iter();
        all.map(|(name, one)| (name.clone(), one.inputs.schema.clone()))
            .collect()
    }

    /// Returns the SHA-256 of the component of each instance, as hexadecimal digits.
    pub fn components(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.instances.iter();
        all.map(|(name, one)| (name.as_str(), one.inputs.component.sha256()))
    }

    /// The names of all instances.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.instances.keys().map(String::as_str)
    }

    /// The settings of an instance, as the profile or a replacement has them.
    pub fn written(&self, name: &str) -> Option<&Value> {
        self.instances.get(name).map(|one| &one.written)
    }

    /// Returns the plugin of an instance, with the profile's own settings.
    pub fn plugin(&self, name: &str) -> Option<&Plugin> {
        self.instances.get(name).map(|one| &one.plugin)
    }

    /// Returns the statistics of each instance, in the order of their names, with variants after their instances.
    pub fn seen(&self) -> Vec<PluginSeen> {
        self.instances.values().flat_map(|one| one.seen()).collect()
    }

    /// Returns an instance at a stage. `chosen` are the instances with other settings at this stage.
    pub(super) fn staged(
        &self,
        name: &str,
        stage: Stage,
        chosen: &BTreeMap<String, Plugin>,
    ) -> Option<Staged> {
        let one = self.instances.get(name)?;
        let instance_settings = &one.instance_settings;
        let guards = instance_settings.filters.iter().filter_map(|filter| {
            let guard = self.instances.get(filter)?;
            let rule = &guard.instance_settings.rule;
            Some(Staged {
                policy: FaultPolicy::of_guard(stage, guard.instance_settings.on_fault, rule),
                recorder: self.recorder.clone(),
                ..guard.place(chosen)
            })
        });
        Some(Staged {
            guards: guards.collect(),
            policy: FaultPolicy::at(stage, instance_settings.on_fault, &instance_settings.rule),
            recorder: self.recorder.clone(),
            ..one.place(chosen)
        })
    }

    /// Returns an instance with the settings of overrides. If it does not accept them, an error is logged, the result is `None`,
    /// and the instance's own settings are used.
    pub(super) fn variant(&self, name: &str, overrides: &PluginSettings) -> Option<(Plugin, Use)> {
        let one = self.instances.get(name)?;
        let settings = overrides.applied_to(name, &one.written)?;
        let made = complete_settings(&one.inputs.schema, settings)
            .map_err(|problems| problems.join("; "))
            .and_then(|settings| one.variants.get(settings));
        match made {
            Ok(made) => Some(made),
            Err(problem) => {
                tracing::error!(
                    "plugin {name} rejects its settings as combined from several overrides, and keeps its own: {problem}"
                );
                None
            }
        }
    }

    /// Returns the same plugins. Those that receive the seeds' prefixes are configured with these prefixes. Blocks.
    ///
    /// # Errors
    /// Returns the message of a plugin that rejects them.
    pub fn with_seed_prefixes(&self, prefixes: &[String]) -> Result<Pool, String> {
        let prefixes: Arc<[String]> = prefixes.into();
        let mut pool = self.fresh();
        for (name, one) in &self.instances {
            if !wants_seeds(&one.inputs.schema, &one.settings) {
                continue;
            }
            let inputs = InstanceInputs {
                component: one.inputs.component.clone(),
                name: one.name.clone(),
                plugin: one.inputs.plugin.clone(),
                schema: one.inputs.schema.clone(),
                limits: one.inputs.limits.clone(),
                tables: one.inputs.tables.clone(),
                seed_prefixes: prefixes.clone(),
            };
            let plugin = inputs.snapshot(one.settings.clone())?;
            let settings = (one.written.clone(), one.settings.clone());
            let instance_settings = one.instance_settings.clone();
            let variants = Vec::new();
            let made = InForce::new(
                inputs,
                settings,
                plugin,
                variants,
                instance_settings,
                &pool.generation,
            );
            let made = InForce {
                breaker: one.breaker.clone(),
                ..made.after(one)
            };
            pool.instances.insert(name.clone(), Arc::new(made));
        }
        Ok(pool)
    }

    /// Returns the same plugins with one replaced. It is checked like one that a profile names, with every override's settings.
    /// Blocks.
    ///
    /// # Errors
    /// Returns the reason that it cannot replace the other. Nothing has changed then.
    pub fn replaced(&self, profile: &Profile, replacement: Replacement) -> Result<Pool, String> {
        let Replacement {
            name,
            component,
            plugin,
            settings,
        } = replacement;
        let Some(one) = self.instances.get(&name) else {
            let names: Vec<&str> = self.names().collect();
            return Err(format!(
                "the job has no plugin {name:?}; it has: {}",
                names.join(", ")
            ));
        };
        let same = component
            .plugins()
            .iter()
            .find(|found| found.name == one.inputs.plugin)
            .map(|found| found.name.as_str());
        let plugin_description = find_plugin(&component, plugin.as_deref().or(same))?;
        let schema: Value = serde_json::from_str(&plugin_description.settings_schema)
            .map_err(|problem| format!("its settings schema is not JSON: {problem}"))?;
        let inputs = InstanceInputs {
            name: one.name.clone(),
            plugin: plugin_description.name.clone(),
            component: component.clone(),
            schema,
            limits: one.inputs.limits.clone(),
            tables: one.inputs.tables.clone(),
            seed_prefixes: one.inputs.seed_prefixes.clone(),
        };
        let written = settings.unwrap_or_else(|| one.written.clone());
        let complete = complete_settings(&inputs.schema, written.clone())
            .map_err(|problems| format!("its settings do not fit: {}", problems.join("; ")))?;
        let plugin = inputs.snapshot(complete.clone())?;
        for stage in stages_of(profile, &name) {
            if let Some(problem) = misplaced(&name, &plugin, stage) {
                return Err(format!("{problem}, and is in the stack {stage}"));
            }
        }
        if guards(profile, &name) && !plugin.is(&Kind::Filter) {
            return Err(format!(
                "plugin \"{name}\" is not a filter, and guards another"
            ));
        }
        let variants = overridden(profile, &inputs, &written);
        let variants = variants.map_err(|faults| faults.to_string())?;
        let mut pool = self.fresh();
        let made = InForce::new(
            inputs,
            (written, complete),
            plugin,
            variants,
            one.instance_settings.clone(),
            &pool.generation,
        );
        pool.instances.insert(name, Arc::new(made.after(one)));
        Ok(pool)
    }

    /// Returns the same plugins, with the statistics of the plugins that they replace and with their recorder.
    pub fn after(&self, before: &Pool) -> Pool {
        for (name, one) in &self.instances {
            if let Some(earlier) = before.instances.get(name) {
                one.inherit(earlier);
            }
        }
        Pool {
            recorder: before.recorder.clone(),
            ..self.fresh()
        }
    }

    /// Another pool of the same instances and recorder.
    pub fn fresh(&self) -> Pool {
        Pool {
            instances: self.instances.clone(),
            generation: self.generation.clone(),
            recorder: self.recorder.clone(),
        }
    }

    /// Returns the same plugins, with this recorder for their calls.
    pub fn recorded(&self, recorder: Recorder) -> Pool {
        Pool {
            recorder: Some(Arc::new(recorder)),
            ..self.fresh()
        }
    }
}

impl InForce {
    fn place(&self, chosen: &BTreeMap<String, Plugin>) -> Staged {
        Staged {
            name: self.name.clone(),
            plugin: chosen.get(&*self.name).unwrap_or(&self.plugin).clone(),
            last_resort: false,
            guards: Vec::new(),
            policy: FaultPolicy::at(
                Stage::PreExtract,
                self.instance_settings.on_fault,
                &self.instance_settings.rule,
            ),
            breaker: self.breaker.clone(),
            recorder: None,
        }
    }
}

/// Returns the plugin with this name in the component or, without a name, the only one.
pub(super) fn find_plugin<'a>(
    component: &'a Component,
    name: Option<&str>,
) -> Result<&'a Description, String> {
    let plugins = component.plugins();
    let names = || {
        let names: Vec<&str> = plugins.iter().map(|plugin| plugin.name.as_str()).collect();
        names.join(", ")
    };
    match (name, plugins) {
        (None, [sole]) => Ok(sole),
        (None, _) => Err(format!(
            "the component holds several plugins; add #NAME, one of: {}",
            names()
        )),
        (Some(name), _) => plugins
            .iter()
            .find(|plugin| plugin.name == name)
            .ok_or_else(|| {
                format!(
                    "the component has no plugin \"{name}\"; it has: {}",
                    names()
                )
            }),
    }
}

/// Configures the plugin with the settings of each override alone, checked against the schema.
///
/// # Errors
/// Returns every error, at its place in the override.
pub(super) fn overridden(
    profile: &Profile,
    inputs: &InstanceInputs,
    written: &Value,
) -> Result<Vec<(Value, Plugin)>, Diagnostics> {
    let mut faults = Diagnostics::default();
    let mut variants = Vec::new();
    for (number, name) in profile.overridden_settings() {
        if name != &*inputs.name {
            continue;
        }
        let place = (number, name);
        match profile.check_overridden_settings(place, written, &inputs.schema) {
            Err(more) => faults.append(more),
            Ok(settings) => match inputs.configured_each_call(settings.clone()) {
                Ok(plugin) => variants.push((settings, plugin)),
                Err(ConfigureError::Settings { faults: found, .. }) => {
                    for fault in found {
                        faults.push(profile.fault_in_override(
                            place,
                            &fault.pointer,
                            fault.problem,
                        ));
                    }
                }
                Err(other) => faults.push(profile.fault_in_override(place, "", chain(&other))),
            },
        }
    }
    match faults.is_empty() {
        true => Ok(variants),
        false => Err(inputs.with_plugin_name(faults)),
    }
}

/// Returns `true` if an instance is a filter of others.
fn guards(profile: &Profile, name: &str) -> bool {
    let mut all = profile.plugins.values();
    all.any(|one| one.filters.iter().any(|filter| filter == name))
}

/// Returns the stages of an instance, including those of overrides.
fn stages_of(profile: &Profile, name: &str) -> Vec<Stage> {
    let stacks = &profile.settings().stacks;
    let stands = |stage: &Stage| {
        let mut added = profile.named_by_overrides();
        stacks.stage(*stage).iter().any(|one| one == name)
            || added.any(|(at, added, _)| at == *stage && added == name)
    };
    Stage::ALL.into_iter().filter(stands).collect()
}

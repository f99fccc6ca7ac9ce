//! Every instance of a plugin that a profile names, configured, whether a stack has it or an override's alone.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use opilio_profile::{
    Breaker as Rule, Fault, Faults, OnFault, PluginSettings, Profile, Stage, complete_settings,
};
use opilio_sandbox::{
    Component, ConfigureError, Description, Kind, Limits, Plugin, PluginConfig, Statistics, Tables,
};
use serde_json::Value;

use super::variants::{Use, Variants};
use super::{Staged, chain, misplaced};
use crate::breaker::{Breaker, BreakerState, FaultPolicy};
use crate::recorder::Recorder;

/// The setting that a plugin declares to be given the SURT prefixes that the seeds imply.
const SEED_PREFIXES: &str = "seed-prefixes";
/// The setting by which a profile declines them.
const FROM_SEEDS: &str = "from-seeds";

/// After this nobody calls a plugin any more that has been replaced: no call takes as long.
const IN_FLIGHT_MAX: Duration = Duration::from_secs(120);

/// Every instance, by its name in the profile. Never changed: whoever replaces one makes another pool.
#[derive(Default)]
pub struct Pool {
    pub(super) instances: BTreeMap<String, Arc<InForce>>,
    /// Counts what changes which plugin a selection has.
    pub(super) generation: Arc<AtomicU64>,
    pub(super) recorder: Option<Arc<Recorder>>,
}

/// An instance as it is in force.
pub(super) struct InForce {
    name: Arc<str>,
    maker: Arc<Maker>,
    /// Settings as written, without defaults: overrides add to them.
    written: Value,
    /// Settings with defaults, without the seeds' prefixes.
    settings: Value,
    plugin: Plugin,
    variants: Arc<Variants>,
    terms: Terms,
    breaker: Arc<Breaker>,
    earlier: Mutex<Earlier>,
}

/// What the profile says of an instance beside component and settings.
#[derive(Clone)]
pub(super) struct Terms {
    pub(super) filters: Vec<String>,
    pub(super) on_fault: Option<OnFault>,
    pub(super) rule: Rule,
    pub(super) variants_max: usize,
}

/// How an instance is configured.
pub(super) struct Maker {
    pub(super) name: Arc<str>,
    pub(super) component: Component,
    /// Its plugin's name within the component.
    pub(super) plugin: String,
    pub(super) schema: Value,
    pub(super) limits: Limits,
    pub(super) tables: Tables,
    pub(super) seed_prefixes: Arc<[String]>,
}

/// What was seen of plugins that an instance was before.
#[derive(Default)]
struct Earlier {
    /// Of those that nobody calls any more.
    past: Statistics,
    /// Those that may still be called, and since when they are not in force.
    recent: Vec<(Plugin, Instant)>,
}

/// What was seen of an instance, or of a variant of it.
pub struct PluginSeen {
    /// Its name in the profile.
    pub name: Arc<str>,
    /// For settings that an override gives it: the beginning of their hash. None for its own.
    pub variant: Option<String>,
    /// As it is in force.
    pub plugin: Plugin,
    /// In this process, those included that it was before.
    pub statistics: Statistics,
    /// Of the instance.
    pub breaker: BreakerState,
}

/// A component that is to take the place of another.
pub struct Replacement {
    /// The instance's name in the profile.
    pub name: String,
    /// What it is to be.
    pub component: Component,
    /// Which of its plugins; none: the one of the same name, or the only one.
    pub plugin: Option<String>,
    /// Other settings; none: those that are in force.
    pub settings: Option<Value>,
}

impl Maker {
    fn config(&self, mut settings: Value) -> PluginConfig {
        if wants_seeds(&self.schema, &settings) {
            put_seeds(&mut settings, &self.seed_prefixes);
        }
        PluginConfig {
            plugin: Some(self.plugin.clone()),
            instance: Some(self.name.to_string()),
            settings,
            limits: self.limits.clone(),
            tables: self.tables.clone(),
        }
    }

    /// Configured once, with settings that are complete.
    pub(super) fn configured(&self, settings: Value) -> Result<Plugin, ConfigureError> {
        self.component.configure(self.config(settings))
    }

    /// Configured anew for every call, and once here.
    pub(super) fn configured_each_call(&self, settings: Value) -> Result<Plugin, ConfigureError> {
        self.component.configure_each_call(self.config(settings))
    }

    pub(super) fn each_call(&self, settings: Value) -> Result<Plugin, String> {
        let made = self.configured_each_call(settings);
        made.map_err(|problem| chain(&problem))
    }

    pub(super) fn snapshot(&self, settings: Value) -> Result<Plugin, String> {
        let made = self.configured(settings);
        made.map_err(|problem| chain(&problem))
    }

    /// Faults of its settings, with the plugin's own name and version: the profile may call it otherwise, and the line that
    /// is shown need not name it at all.
    pub(super) fn signed(&self, faults: Faults) -> Faults {
        let mut plugins = self.component.plugins().iter();
        let version = plugins
            .find(|plugin| plugin.name == self.plugin)
            .map_or("", |plugin| plugin.version.as_str());
        let signed = |fault: Fault| Fault {
            problem: format!("{} {version}: {}", self.plugin, fault.problem),
            ..fault
        };
        faults.into_iter().map(signed).collect()
    }
}

impl InForce {
    pub(super) fn new(
        maker: Maker,
        (written, settings): (Value, Value),
        plugin: Plugin,
        variants: Vec<(Value, Plugin)>,
        terms: Terms,
        generation: &Arc<AtomicU64>,
    ) -> InForce {
        let maker = Arc::new(maker);
        let generation = generation.clone();
        InForce {
            name: maker.name.clone(),
            variants: Variants::new(maker.clone(), terms.variants_max, generation, variants),
            maker,
            written,
            settings,
            plugin,
            breaker: Arc::new(Breaker::new(terms.rule)),
            terms,
            earlier: Mutex::default(),
        }
    }

    /// Takes over what was seen of the one that it replaces.
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
            then.settle();
            earlier.past = then.past.clone();
            earlier.recent = then.recent.clone();
        }
        earlier.recent.push((before.plugin.clone(), Instant::now()));
        for (_, statistics) in before.variants.seen() {
            earlier.past.add(&statistics);
        }
        earlier.past.add(&before.variants.gone());
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
            earlier.settle();
            own.add(&earlier.past);
            for (plugin, _) in &earlier.recent {
                own.add(&plugin.statistics());
            }
        }
        own.add(&self.variants.gone());
        let mut seen = vec![one(None, self.plugin.clone(), own)];
        for (plugin, statistics) in self.variants.seen() {
            let variant = plugin.settings_sha256().chars().take(8).collect();
            seen.push(one(Some(variant), plugin, statistics));
        }
        seen
    }
}

impl Earlier {
    /// Lets go of those that nobody calls any more: each holds a compiled component.
    fn settle(&mut self) {
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

    /// The schema of the settings of each.
    pub fn schemas(&self) -> Vec<(String, Value)> {
        let all = self.instances.iter();
        all.map(|(name, one)| (name.clone(), one.maker.schema.clone()))
            .collect()
    }

    /// The names of all instances.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.instances.keys().map(String::as_str)
    }

    /// The settings of an instance, as the profile or a replacement has them.
    pub fn written(&self, name: &str) -> Option<&Value> {
        self.instances.get(name).map(|one| &one.written)
    }

    /// The plugin that an instance is, with the profile's own settings.
    pub fn plugin(&self, name: &str) -> Option<&Plugin> {
        self.instances.get(name).map(|one| &one.plugin)
    }

    /// What was seen of each, in the order of their names, variants behind their instances.
    pub fn seen(&self) -> Vec<PluginSeen> {
        self.instances.values().flat_map(|one| one.seen()).collect()
    }

    /// An instance at a stage; `chosen` are those that stand there with other settings.
    pub(super) fn staged(
        &self,
        name: &str,
        stage: Stage,
        chosen: &BTreeMap<String, Plugin>,
    ) -> Option<Staged> {
        let one = self.instances.get(name)?;
        let terms = &one.terms;
        let guards = terms.filters.iter().filter_map(|filter| {
            let guard = self.instances.get(filter)?;
            let rule = &guard.terms.rule;
            Some(Staged {
                policy: FaultPolicy::of_guard(stage, guard.terms.on_fault, rule),
                recorder: self.recorder.clone(),
                ..guard.place(chosen)
            })
        });
        Some(Staged {
            guards: guards.collect(),
            policy: FaultPolicy::at(stage, terms.on_fault, &terms.rule),
            recorder: self.recorder.clone(),
            ..one.place(chosen)
        })
    }

    /// An instance with what overrides say of its settings; none where it does not take them, which is said, and its own
    /// settings are used.
    pub(super) fn variant(&self, name: &str, said: &PluginSettings) -> Option<(Plugin, Use)> {
        let one = self.instances.get(name)?;
        let settings = said.over(name, &one.written)?;
        let made = complete_settings(&one.maker.schema, settings)
            .map_err(|problems| problems.join("; "))
            .and_then(|settings| one.variants.get(settings));
        match made {
            Ok(made) => Some(made),
            Err(problem) => {
                tracing::error!(
                    "plugin {name} does not take what several overrides make of its settings, and keeps its own: {problem}"
                );
                None
            }
        }
    }

    /// The same plugins, those that are given the prefixes of the seeds configured with these. Blocks.
    ///
    /// # Errors
    /// What such a plugin says of them.
    pub fn with_seed_prefixes(&self, prefixes: &[String]) -> Result<Pool, String> {
        let prefixes: Arc<[String]> = prefixes.into();
        let mut pool = self.fresh();
        for (name, one) in &self.instances {
            if !wants_seeds(&one.maker.schema, &one.settings) {
                continue;
            }
            let maker = Maker {
                component: one.maker.component.clone(),
                name: one.name.clone(),
                plugin: one.maker.plugin.clone(),
                schema: one.maker.schema.clone(),
                limits: one.maker.limits.clone(),
                tables: one.maker.tables.clone(),
                seed_prefixes: prefixes.clone(),
            };
            let plugin = maker.snapshot(one.settings.clone())?;
            let settings = (one.written.clone(), one.settings.clone());
            let terms = one.terms.clone();
            let variants = Vec::new();
            let made = InForce::new(maker, settings, plugin, variants, terms, &pool.generation);
            let made = InForce {
                breaker: one.breaker.clone(),
                ..made.after(one)
            };
            pool.instances.insert(name.clone(), Arc::new(made));
        }
        Ok(pool)
    }

    /// The same plugins, but for one that is replaced: checked as one that a profile names, with every override's settings.
    /// Blocks.
    ///
    /// # Errors
    /// Why it cannot take the other's place; nothing has changed.
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
            .find(|found| found.name == one.maker.plugin)
            .map(|found| found.name.as_str());
        let described = described(&component, plugin.as_deref().or(same))?;
        let schema: Value = serde_json::from_str(&described.settings_schema)
            .map_err(|problem| format!("its settings schema is no JSON: {problem}"))?;
        let maker = Maker {
            name: one.name.clone(),
            plugin: described.name.clone(),
            component: component.clone(),
            schema,
            limits: one.maker.limits.clone(),
            tables: one.maker.tables.clone(),
            seed_prefixes: one.maker.seed_prefixes.clone(),
        };
        let written = settings.unwrap_or_else(|| one.written.clone());
        let complete = complete_settings(&maker.schema, written.clone())
            .map_err(|problems| format!("its settings do not fit: {}", problems.join("; ")))?;
        let plugin = maker.snapshot(complete.clone())?;
        for stage in stages_of(profile, &name) {
            if let Some(problem) = misplaced(&name, &plugin, stage) {
                return Err(format!("{problem}, and stands in {stage}"));
            }
        }
        if guards(profile, &name) && !plugin.is(&Kind::Filter) {
            return Err(format!(
                "plugin \"{name}\" is no filter, and guards another"
            ));
        }
        let variants = overridden(profile, &maker, &written);
        let variants = variants.map_err(|faults| faults.to_string())?;
        let mut pool = self.fresh();
        let made = InForce::new(
            maker,
            (written, complete),
            plugin,
            variants,
            one.terms.clone(),
            &pool.generation,
        );
        pool.instances.insert(name, Arc::new(made.after(one)));
        Ok(pool)
    }

    /// The same plugins; what was seen of those that they replace stays seen, and whoever keeps calls goes on.
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

    /// The same plugins, their calls kept by this recorder.
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
            policy: FaultPolicy::at(Stage::PreExtract, self.terms.on_fault, &self.terms.rule),
            breaker: self.breaker.clone(),
            recorder: None,
        }
    }
}

/// The plugin that is meant: the one named, or the only one.
pub(super) fn described<'a>(
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
                    "the component holds no plugin \"{name}\"; it holds: {}",
                    names()
                )
            }),
    }
}

/// What each override alone makes of the settings: held against the schema, and configured.
///
/// # Errors
/// Every fault, at its place in the override.
pub(super) fn overridden(
    profile: &Profile,
    maker: &Maker,
    written: &Value,
) -> Result<Vec<(Value, Plugin)>, Faults> {
    let mut faults = Faults::default();
    let mut variants = Vec::new();
    for (number, name) in profile.overridden_settings() {
        if name != &*maker.name {
            continue;
        }
        let place = (number, name);
        match profile.check_overridden_settings(place, written, &maker.schema) {
            Err(more) => faults.append(more),
            Ok(settings) => match maker.configured_each_call(settings.clone()) {
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
        false => Err(maker.signed(faults)),
    }
}

/// Whether an instance is a filter of others.
fn guards(profile: &Profile, name: &str) -> bool {
    let mut all = profile.plugins.values();
    all.any(|one| one.filters.iter().any(|filter| filter == name))
}

/// The stages at which an instance stands, those of overrides included.
fn stages_of(profile: &Profile, name: &str) -> Vec<Stage> {
    let stacks = &profile.settings().stacks;
    let stands = |stage: &Stage| {
        let mut added = profile.named_by_overrides();
        stacks.stage(*stage).iter().any(|one| one == name)
            || added.any(|(at, added, _)| at == *stage && added == name)
    };
    Stage::ALL.into_iter().filter(stands).collect()
}

/// A plugin that declares `seed-prefixes` among its settings is given the prefixes of the seeds, unless the profile
/// sets `from-seeds = false` or names prefixes itself. Any plugin may declare it.
fn wants_seeds(schema: &Value, settings: &Value) -> bool {
    let declared = schema
        .get("properties")
        .is_some_and(|properties| properties.get(SEED_PREFIXES).is_some());
    let declined = settings.get(FROM_SEEDS) == Some(&Value::Bool(false));
    let given = settings
        .get(SEED_PREFIXES)
        .and_then(Value::as_array)
        .is_some_and(|list| !list.is_empty());
    declared && !declined && !given
}

fn put_seeds(settings: &mut Value, seed_prefixes: &[String]) {
    if let Some(settings) = settings.as_object_mut() {
        let prefixes = seed_prefixes.iter().cloned().map(Value::String).collect();
        settings.insert(SEED_PREFIXES.to_owned(), Value::Array(prefixes));
    }
}

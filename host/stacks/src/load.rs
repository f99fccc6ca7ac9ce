//! Loading of a profile's plugins: each component is fetched, checked and configured, with the settings of every override.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZero;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use bytes::Bytes;
use opilio_profile::{
    ComponentReference, Diagnostic, Diagnostics, Instance, Level, PluginSettings, Profile,
};
use opilio_sandbox::{
    Component, ConfigureError, Engine, Kind, LANE_STACK_BYTES, Limits, Preparation, Tables,
    report_preparation,
};
use opilio_source::{ComponentConditions, ResolvedComponent, Sha256, Sources};
use serde_json::Value;

use crate::components::{JobPlugin, JobPlugins};
use crate::instance_inputs::InstanceInputs;
use crate::pool::{InForce, InstanceSettings, Pool, find_plugin, overridden};
use crate::staged::misplaced;
use crate::{Stacks, chain};

/// Maximum links that one extractor may return for a document, as a multiple of the links that are used: many are repeats.
const RAW_LINKS_FACTOR: usize = 4;

/// Components that are loaded at the same time at most. Each is compiled in a process of its own.
const LOADERS_MAX: usize = 4;

/// The inputs of [`load`].
pub struct Loading<'l> {
    /// Compiles and runs the components.
    pub engine: &'l Engine,
    /// The profile that names the plugins.
    pub profile: &'l Profile,
    /// The SURT prefixes that the seeds imply.
    pub seed_prefixes: &'l [String],
    /// The tables that plugins look values up in.
    pub tables: &'l Tables,
    /// The sources of components.
    pub sources: &'l Sources,
    /// The components that the job keeps; `None` without a job.
    pub job: Option<&'l JobPlugins>,
    /// The only instance to load; `None` loads all.
    pub only: Option<&'l str>,
}

/// The plugins of a profile.
pub struct Loaded {
    /// The plugins, stacked by stage.
    pub stacks: Arc<Stacks>,
    /// The list of components for the job to keep.
    pub job: JobPlugins,
    /// Components that the job is to keep.
    pub components: Vec<(Sha256, Bytes)>,
    /// Notes for the operator, a sentence each.
    pub notes: Vec<String>,
}

/// The state of loading.
struct Progress<'l> {
    loading: Loading<'l>,
    /// Components by digest: one may hold several plugins.
    components: HashMap<Sha256, Component>,
    loaded: BTreeMap<Sha256, Bytes>,
    job: JobPlugins,
    notes: Vec<String>,
    generation: Arc<AtomicU64>,
}

/// Loads every component that the profile names and configures every instance. Blocks while registries are contacted.
///
/// # Errors
/// Returns all errors at once, each at its place in the profile.
pub fn load(loading: Loading<'_>) -> Result<Loaded, Diagnostics> {
    let profile = loading.profile;
    let mut faults = Diagnostics::default();
    // The new list belongs to the same job, so that it finds the components there.
    let job = loading.job.map(JobPlugins::emptied).unwrap_or_default();
    let only = loading.only;
    let is_wanted = |instance: &&Instance| only.is_none_or(|only| only == instance.name);
    let wanted: Vec<&Instance> = profile.plugins.values().filter(is_wanted).collect();
    let mut progress = Progress {
        components: builtin_components(&loading, &wanted),
        loading,
        loaded: BTreeMap::new(),
        job,
        notes: Vec::new(),
        generation: Arc::default(),
    };
    let mut pool = Pool {
        generation: progress.generation.clone(),
        ..Pool::default()
    };
    for (index, instance) in wanted.iter().enumerate() {
        report_preparation(Preparation::Plugin {
            name: &instance.name,
            number: index + 1,
            of: wanted.len(),
        });
        match progress.instance(instance) {
            Ok(one) => {
                pool.instances.insert(instance.name.clone(), Arc::new(one));
            }
            Err(more) => faults.append(more),
        }
    }
    report_preparation(Preparation::Done);
    let pool = Arc::new(pool);
    let none = PluginSettings::default();
    let mut refuse = |stage, index, problem| {
        faults.push(profile.fault_at(&format!("/stacks/{stage}/{index}"), problem));
    };
    let stacks = Stacks::of(&pool, &profile.settings().stacks, &none, &mut refuse).stacks;
    for (stage, name, pointer) in profile.named_by_overrides() {
        let plugin = pool.plugin(name);
        if let Some(problem) = plugin.and_then(|plugin| misplaced(name, plugin, stage)) {
            faults.push(profile.fault_at(pointer, problem));
        }
    }
    for instance in profile.plugins.values() {
        for (index, filter) in instance.filters.iter().enumerate() {
            if pool
                .plugin(filter)
                .is_some_and(|plugin| !plugin.is(&Kind::Filter))
            {
                let pointer = format!("/plugins/{}/filters/{index}", instance.name);
                let problem = format!("plugin \"{filter}\" is not a filter");
                faults.push(profile.fault_at(&pointer, problem));
            }
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    Ok(Loaded {
        stacks,
        job: progress.job,
        components: progress.loaded.into_iter().collect(),
        notes: progress.notes,
    })
}

/// Loads the built-in components of these instances, several at a time: compiling them is most of the first start on a machine.
/// A component that cannot be loaded is left out. It is reported when its plugin is loaded.
fn builtin_components(loading: &Loading<'_>, wanted: &[&Instance]) -> HashMap<Sha256, Component> {
    let mut digests = HashSet::new();
    let mut found = Vec::new();
    for (index, instance) in wanted.iter().enumerate() {
        let is_replaced = loading
            .job
            .and_then(|job| job.kept(instance))
            .is_some_and(|kept| kept.replacement.is_some());
        let ComponentReference::Builtin(name) = &instance.component else {
            continue;
        };
        if let Some(builtin) = opilio_builtin::find(name)
            && !is_replaced
            && digests.insert(builtin.sha256)
        {
            found.push((index, *instance, builtin.component));
        }
    }
    let loaders = thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(LOADERS_MAX)
        .min(found.len());
    let found = Mutex::new(found.into_iter());
    let loaded = Mutex::new(HashMap::new());
    let next = || found.lock().unwrap_or_else(PoisonError::into_inner).next();
    let load_all = || {
        while let Some((index, instance, bytes)) = next() {
            report_preparation(Preparation::Plugin {
                name: &instance.name,
                number: index + 1,
                of: wanted.len(),
            });
            let component = loading.engine.load(bytes, &instance.component.to_string());
            if let Ok(component) = component {
                let mut loaded = loaded.lock().unwrap_or_else(PoisonError::into_inner);
                loaded.insert(Sha256::of(bytes), component);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..loaders {
            let loader = thread::Builder::new()
                .name("plugin-loader".to_owned())
                .stack_size(LANE_STACK_BYTES);
            if loader.spawn_scoped(scope, load_all).is_err() {
                // This thread loads them alone.
                break;
            }
        }
        load_all();
    });
    loaded.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl Progress<'_> {
    fn instance(&mut self, instance: &Instance) -> Result<InForce, Diagnostics> {
        let profile = self.loading.profile;
        let at_component =
            |problem: String| Diagnostics::from(component_fault(profile, instance, problem));
        let found = self.found(instance).map_err(at_component)?;
        let component = self.component(&found).map_err(at_component)?;
        let replacement = self
            .job
            .get(&instance.name)
            .and_then(|kept| kept.replacement.clone());
        let named = match &replacement {
            Some(replacement) => replacement.plugin.clone(),
            None => match &instance.component {
                ComponentReference::Builtin(name) => {
                    opilio_builtin::find(name).map(|builtin| builtin.plugin.to_owned())
                }
                other => other.plugin().map(str::to_owned),
            },
        };
        let description = find_plugin(&component, named.as_deref()).map_err(at_component)?;
        let schema: Value =
            serde_json::from_str(&description.settings_schema).map_err(|problem| {
                at_component(format!("its settings schema is not JSON: {problem}"))
            })?;
        let inputs = InstanceInputs {
            name: instance.name.as_str().into(),
            plugin: description.name.clone(),
            component: component.clone(),
            schema,
            limits: limits(instance, profile),
            tables: self.loading.tables.clone(),
            seed_prefixes: self.loading.seed_prefixes.into(),
        };
        let (written, settings) = match replacement.and_then(|replacement| replacement.settings) {
            Some(settings) => {
                let complete = opilio_profile::complete_settings(&inputs.schema, settings.clone())
                    .map_err(|problems| {
                        inputs.with_plugin_name(at_component(problems.join("; ")))
                    })?;
                (settings, complete)
            }
            None => {
                let settings = profile
                    .check_settings(&instance.name, &inputs.schema)
                    .map_err(|faults| inputs.with_plugin_name(faults))?;
                let lesser = profile.lesser_faults(&instance.name, &inputs.schema);
                let lesser = inputs
                    .with_plugin_name(lesser.map_err(|faults| inputs.with_plugin_name(faults))?);
                if self.loading.job.is_some() && lesser.worst() == Some(Level::Warning) {
                    return Err(lesser);
                }
                let words = |fault: &Diagnostic| format!("{}: {}", fault.pointer, fault.problem);
                self.notes.extend(lesser.iter().map(words));
                (instance.settings.clone(), settings)
            }
        };
        let plugin = inputs.configured(settings.clone()).map_err(|problem| {
            inputs.with_plugin_name(configure_faults(profile, instance, &problem))
        })?;
        let variants = overridden(profile, &inputs, &written)?;
        let instance_settings = InstanceSettings {
            filters: instance.filters.clone(),
            on_fault: instance.on_fault,
            rule: instance.breaker,
            variants_max: profile.limits.plugin_variants,
        };
        Ok(InForce::new(
            inputs,
            (written, settings),
            plugin,
            variants,
            instance_settings,
            &self.generation,
        ))
    }

    /// Returns the component of an instance: the job's copy, or the one that the profile names now.
    fn found(&mut self, instance: &Instance) -> Result<ResolvedComponent, String> {
        let Loading {
            engine,
            sources,
            job,
            ..
        } = &self.loading;
        if let Some(job) = job
            && let Some(kept) = job.kept(instance)
        {
            let found = job.thaw(kept, sources, instance.insecure)?;
            self.notes.extend(changed_since(instance, kept));
            self.job.insert(&instance.name, kept.clone());
            return Ok(found);
        }
        let mut plugins_of = |found: &ResolvedComponent| {
            let component = engine
                .load(&found.bytes, &found.origin)
                .map_err(|problem| chain(&problem))?;
            let plugins = component.plugins().iter();
            Ok(plugins.map(|plugin| plugin.name.clone()).collect())
        };
        let found = sources
            .resolve(
                &instance.component,
                &ComponentConditions::of(instance),
                &mut plugins_of,
            )
            .map_err(|problem| chain(&problem))?;
        self.notes.extend(found.note.clone());
        // Built-in components come with the binary. A watched component must match its file.
        if !matches!(instance.component, ComponentReference::Builtin(_)) && !instance.watch {
            let kept = JobPlugin::begun(instance, &found);
            self.job.insert(&instance.name, kept);
            self.loaded.insert(found.sha256, found.bytes.clone());
        }
        Ok(found)
    }

    fn component(&mut self, found: &ResolvedComponent) -> Result<Component, String> {
        if let Some(component) = self.components.get(&found.sha256) {
            return Ok(component.clone());
        }
        let component = self
            .loading
            .engine
            .load(&found.bytes, &found.origin)
            .map_err(|problem| chain(&problem))?;
        self.components.insert(found.sha256, component.clone());
        Ok(component)
    }
}

/// Returns a note if the file has changed since the job copied the component. The job keeps using its copy.
fn changed_since(instance: &Instance, kept: &JobPlugin) -> Option<String> {
    let ComponentReference::File { path, .. } = &instance.component else {
        return None;
    };
    let begun = kept
        .replacement
        .is_none()
        .then_some(kept.frozen.as_ref()?)?;
    let bytes = std::fs::read(path).ok()?;
    let is_changed = Sha256::of(&bytes) != begun.sha256;
    is_changed.then(|| {
        format!(
            "{} has changed since the job began; the job keeps its own copy: opilio plugin replace JOB {} {} takes the new one",
            path.display(),
            instance.name,
            path.display(),
        )
    })
}

fn limits(instance: &Instance, profile: &Profile) -> Limits {
    let given = &instance.limits;
    let bytes =
        |size: opilio_profile::ByteSize| usize::try_from(size.bytes()).unwrap_or(usize::MAX);
    let follows = profile.limits.outlinks.saturating_mul(RAW_LINKS_FACTOR);
    Limits {
        memory: given.memory.bytes(),
        time: given.time,
        output_bytes: bytes(given.output),
        log_bytes: bytes(given.log),
        // The limit applies before repeats are removed.
        links: given.links.map_or(follows, |links| links as usize),
        fragments: given.fragments as usize,
        notes: given.notes as usize,
        note_bytes: bytes(given.note_size),
        annotations: given.annotations as usize,
        counters: given.counters as usize,
        kept_values: given.kept_values as usize,
        kept_uri_bytes: bytes(given.uri_value),
        kept_site_bytes: bytes(given.site_value),
        fingerprint_bytes: bytes(given.fingerprint),
        observer_memory_bytes: bytes(given.observer_memory),
        instances: given.instances.map_or(usize::MAX, |most| {
            usize::try_from(most).unwrap_or(usize::MAX)
        }),
        ..Limits::default()
    }
}

/// Returns an error at the line that names the component. If only a stack names a built-in component, it is that line.
fn component_fault(profile: &Profile, instance: &Instance, problem: String) -> Diagnostic {
    profile.fault_at(&format!("/plugins/{}/component", instance.name), &problem)
}

fn configure_faults(
    profile: &Profile,
    instance: &Instance,
    problem: &ConfigureError,
) -> Diagnostics {
    match problem {
        ConfigureError::Settings { faults: list, .. } => {
            let mut faults = Diagnostics::default();
            for fault in list {
                let pointer = format!("/plugins/{}/settings{}", instance.name, fault.pointer);
                faults.push(profile.fault_at(&pointer, &fault.problem));
            }
            faults
        }
        ConfigureError::Fault(fault) => {
            let problem = format!("cannot be configured: {}: {}", fault.kind, fault.message);
            Diagnostics::from(component_fault(profile, instance, problem))
        }
        other => Diagnostics::from(component_fault(profile, instance, chain(other))),
    }
}

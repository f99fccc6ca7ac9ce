//! The plugins of a crawl: loaded, checked, configured, and stacked by stage.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use opilio_archive::{Digest, PluginInForce};
use opilio_profile::{Component as ComponentOrigin, Fault, Faults, Instance, Profile, Stage};
use opilio_sandbox::{
    Component, ConfigureError, Description, Engine, Kind, Limits, Plugin, PluginConfig, Tables,
};
use serde_json::Value;
use sha2::Digest as _;

/// The setting that a plugin declares to be given the SURT prefixes that the seeds imply.
const SEED_PREFIXES: &str = "seed-prefixes";
/// The setting by which a profile declines them.
const FROM_SEEDS: &str = "from-seeds";

/// Largest component file. Python components are 18 MB; beyond this it is no plugin.
const COMPONENT_FILE_BYTES_MAX: u64 = 64 << 20;

/// Links that one extractor may return, in units of the links that are used of a document: many are repeats.
const RAW_LINKS_FACTOR: usize = 4;

/// A plugin at its place in a stack.
#[derive(Clone)]
pub(crate) struct Staged {
    /// Its name in the profile.
    pub name: Arc<str>,
    /// The configured plugin.
    pub plugin: Plugin,
    /// Extractors alone: stays out once another has understood the document.
    pub last_resort: bool,
}

impl Staged {
    /// A fault under the name that the profile gives the plugin: one component may stand in it several times.
    pub(crate) fn named(&self, fault: opilio_sandbox::Fault) -> opilio_sandbox::Fault {
        opilio_sandbox::Fault {
            plugin: self.name.clone(),
            ..fault
        }
    }
}

/// Every stage's plugins, in order.
#[derive(Clone, Default)]
pub(crate) struct Stacks {
    pub scope: Vec<Staged>,
    pub pre_fetch: Vec<Staged>,
    pub mid_fetch: Vec<Staged>,
    pub post_fetch: Vec<Staged>,
    pub digest: Vec<Staged>,
    pub pre_extract: Vec<Staged>,
    pub extract: Vec<Staged>,
    pub archive: Vec<Staged>,
    pub wait: Vec<Staged>,
    /// [`hash_of`] the extractors.
    pub extract_hash: u64,
    /// Hash of the filters at stage scope, the seeds' prefixes included.
    pub scope_hash: u64,
    /// [`hash_of`] the strippers.
    pub digest_hash: u64,
    /// Plugins that are given the prefixes of the seeds.
    seeded: Vec<Seeded>,
    /// Every plugin that the profile names, those that stand in stacks of overrides alone among them.
    plugins: BTreeMap<String, Plugin>,
    /// Stacks of overrides, as far as they have been asked for.
    variants: Variants,
}

/// Stacks by what a profile writes of them. A clone begins empty: it may hold other plugins.
#[derive(Default)]
struct Variants(Mutex<Vec<(opilio_profile::Stacks, Arc<Stacks>)>>);

impl Clone for Variants {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// A plugin that is given the prefixes of the seeds, and how to configure it with others: from the component that was
/// loaded, whatever has become of its file since.
#[derive(Clone)]
struct Seeded {
    /// Its name in the profile.
    name: String,
    component: Component,
    plugin: Option<String>,
    settings: Value,
    limits: Limits,
}

/// Loads every component that the profile names and configures every instance.
///
/// # Errors
/// All faults at once, each at its place in the profile.
pub(crate) fn load(
    engine: &Engine,
    profile: &Profile,
    seed_prefixes: &[String],
) -> Result<Stacks, Faults> {
    let mut faults = Faults::default();
    let mut components: BTreeMap<ComponentKey, Component> = BTreeMap::new();
    let mut plugins: BTreeMap<String, Plugin> = BTreeMap::new();
    let mut seeded = Vec::new();
    for instance in profile.plugins.values() {
        match load_instance(engine, profile, instance, seed_prefixes, &mut components) {
            Ok((plugin, given)) => {
                plugins.insert(instance.name.clone(), plugin);
                seeded.extend(given);
            }
            Err(more) => faults.append(more),
        }
    }
    let default = &profile.settings().stacks;
    let stacks = Stacks {
        seeded,
        ..stack(default, &plugins, &mut |stage, index, problem| {
            faults.push(profile.fault_at(&format!("/stacks/{stage}/{index}"), problem));
        })
    };
    for (stage, name, pointer) in profile.named_by_overrides() {
        if let Some(problem) = plugins
            .get(name)
            .and_then(|plugin| misplaced(name, plugin, stage))
        {
            faults.push(profile.fault_at(pointer, problem));
        }
    }
    let stacks = Stacks { plugins, ..stacks };
    if faults.is_empty() {
        Ok(stacks)
    } else {
        Err(faults)
    }
}

/// What decides the answers of these plugins: component and settings of each, in order.
pub(crate) fn hash_of(stack: &[Staged]) -> u64 {
    let mut hash = sha2::Sha256::new();
    for staged in stack {
        hash.update(staged.plugin.component_sha256().as_bytes());
        hash.update(staged.plugin.name().as_bytes());
        hash.update(staged.plugin.settings_sha256().as_bytes());
        hash.update([u8::from(staged.last_resort)]);
    }
    let bytes: [u8; 32] = hash.finalize().into();
    u64::from_be_bytes([
        bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
    ])
}

impl Stacks {
    /// The same plugins, those that are given the prefixes of the seeds configured with these. Blocks.
    ///
    /// # Errors
    /// What such a plugin says of them.
    pub(crate) fn with_seed_prefixes(&self, seed_prefixes: &[String]) -> Result<Stacks, String> {
        let mut stacks = self.clone();
        for seeded in &self.seeded {
            let mut settings = seeded.settings.clone();
            put_seeds(&mut settings, seed_prefixes);
            let configured = seeded.component.configure(PluginConfig {
                plugin: seeded.plugin.clone(),
                instance: Some(seeded.name.clone()),
                settings,
                limits: seeded.limits.clone(),
                tables: Tables::default(),
            });
            let plugin = configured.map_err(|problem| chain(&problem))?;
            for staged in stacks.stages_mut().into_iter().flatten() {
                if *staged.name == *seeded.name {
                    staged.plugin = plugin.clone();
                }
            }
            stacks.plugins.insert(seeded.name.clone(), plugin);
        }
        stacks.extract_hash = hash_of(&stacks.extract);
        stacks.scope_hash = hash_of(&stacks.scope);
        stacks.digest_hash = hash_of(&stacks.digest);
        Ok(stacks)
    }

    /// The stacks that a URI's settings name, of these plugins.
    pub(crate) fn selected(
        self: &Arc<Self>,
        settings: &opilio_profile::Settings,
        default: &opilio_profile::Settings,
    ) -> Arc<Stacks> {
        if std::ptr::eq(settings, default) || settings.stacks == default.stacks {
            return self.clone();
        }
        let Variants(variants) = &self.variants;
        let mut variants = variants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, stacks)) = variants
            .iter()
            .find(|(written, _)| *written == settings.stacks)
        {
            return stacks.clone();
        }
        let stacks = stack(&settings.stacks, &self.plugins, &mut |stage, _, problem| {
            tracing::error!(%stage, "{problem}; it is left out");
        });
        let stacks = Arc::new(stacks);
        variants.push((settings.stacks.clone(), stacks.clone()));
        stacks
    }

    /// Every plugin once, in the order of a URI's way.
    pub(crate) fn all(&self) -> Vec<&Staged> {
        let stages = [
            &self.scope,
            &self.pre_fetch,
            &self.mid_fetch,
            &self.post_fetch,
            &self.digest,
            &self.pre_extract,
            &self.extract,
            &self.archive,
            &self.wait,
        ];
        let mut seen = std::collections::HashSet::new();
        stages
            .into_iter()
            .flatten()
            .filter(|staged| seen.insert(staged.name.clone()))
            .collect()
    }

    fn stages_mut(&mut self) -> [&mut Vec<Staged>; 9] {
        [
            &mut self.scope,
            &mut self.pre_fetch,
            &mut self.mid_fetch,
            &mut self.post_fetch,
            &mut self.digest,
            &mut self.pre_extract,
            &mut self.extract,
            &mut self.archive,
            &mut self.wait,
        ]
    }

    /// For the `warcinfo` record.
    pub(crate) fn in_force(&self) -> Vec<PluginInForce> {
        self.all()
            .into_iter()
            .map(|staged| PluginInForce {
                name: staged.name.to_string(),
                version: staged.plugin.version().to_owned(),
                hash: format!("sha256:{}", staged.plugin.component_sha256()),
                settings: format!("sha256:{}", staged.plugin.settings_sha256())
                    .parse::<Digest>()
                    .ok(),
            })
            .collect()
    }
}

/// Where a component comes from, as far as loading it once goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ComponentKey {
    Builtin(String),
    File(String),
}

fn load_instance(
    engine: &Engine,
    profile: &Profile,
    instance: &Instance,
    seed_prefixes: &[String],
    components: &mut BTreeMap<ComponentKey, Component>,
) -> Result<(Plugin, Option<Seeded>), Faults> {
    let at_component = |problem: String| Faults::from(component_fault(profile, instance, problem));
    let (key, plugin_name) = match &instance.component {
        ComponentOrigin::Builtin(name) => {
            let builtin = opilio_builtin::find(name)
                .ok_or_else(|| at_component(format!("no built-in plugin \"{name}\"")))?;
            (
                ComponentKey::Builtin(builtin.sha256.to_owned()),
                Some(builtin.plugin.to_owned()),
            )
        }
        ComponentOrigin::File { path, plugin } => (
            ComponentKey::File(path.display().to_string()),
            plugin.clone(),
        ),
        ComponentOrigin::Image { image, plugin } => {
            (ComponentKey::File(image.to_string()), plugin.clone())
        }
    };
    let component = match components.get(&key) {
        Some(component) => component.clone(),
        None => {
            let component = load_component(engine, instance).map_err(at_component)?;
            components.insert(key, component.clone());
            component
        }
    };
    if let Some(pinned) = instance.sha256 {
        let pinned = pinned
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>();
        if pinned != component.sha256() {
            let found = component.sha256();
            return Err(at_component(format!(
                "the component's sha256 is {found}, not the pinned {pinned}"
            )));
        }
    }
    let description = described(&component, plugin_name.as_deref()).map_err(at_component)?;
    let schema: Value = serde_json::from_str(&description.settings_schema)
        .map_err(|problem| at_component(format!("its settings schema is no JSON: {problem}")))?;
    let mut settings = profile.check_settings(&instance.name, &schema)?;
    let limits = limits(instance, profile);
    let seeded = wants_seeds(&schema, &settings).then(|| Seeded {
        name: instance.name.clone(),
        component: component.clone(),
        plugin: plugin_name.clone(),
        settings: settings.clone(),
        limits: limits.clone(),
    });
    if seeded.is_some() {
        put_seeds(&mut settings, seed_prefixes);
    }
    let plugin = component
        .configure(PluginConfig {
            plugin: plugin_name,
            instance: Some(instance.name.clone()),
            settings,
            limits,
            tables: Tables::default(),
        })
        .map_err(|problem| configure_faults(profile, instance, &problem))?;
    Ok((plugin, seeded))
}

/// The plugin that is meant: the one named, or the only one.
fn described<'a>(component: &'a Component, name: Option<&str>) -> Result<&'a Description, String> {
    let plugins = component.plugins();
    let names = || {
        plugins
            .iter()
            .map(|plugin| plugin.name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
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

fn load_component(engine: &Engine, instance: &Instance) -> Result<Component, String> {
    match &instance.component {
        ComponentOrigin::Builtin(name) => {
            let builtin = opilio_builtin::find(name)
                .ok_or_else(|| format!("no built-in plugin \"{name}\""))?;
            engine
                .load(builtin.component, &format!("builtin:{name}"))
                .map_err(|problem| chain(&problem))
        }
        ComponentOrigin::File { path, .. } => {
            let bytes = read_component(path)?;
            engine
                .load(&bytes, &path.display().to_string())
                .map_err(|problem| chain(&problem))
        }
        ComponentOrigin::Image { image, .. } => Err(format!("{image} cannot be pulled yet")),
    }
}

fn read_component(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable =
        |problem: std::io::Error| format!("cannot read component {}: {problem}", path.display());
    let length = std::fs::metadata(path).map_err(unreadable)?.len();
    if length > COMPONENT_FILE_BYTES_MAX {
        return Err(format!(
            "component {} has {length} bytes, more than {COMPONENT_FILE_BYTES_MAX}",
            path.display()
        ));
    }
    std::fs::read(path).map_err(unreadable)
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

fn limits(instance: &Instance, profile: &Profile) -> Limits {
    let given = &instance.limits;
    let outlinks = profile.limits.outlinks;
    Limits {
        memory: given.memory.bytes(),
        time: given.time,
        output_bytes: usize::try_from(given.output.bytes()).unwrap_or(usize::MAX),
        log_bytes: usize::try_from(given.log.bytes()).unwrap_or(usize::MAX),
        // Before repeats are removed.
        links: outlinks.saturating_mul(RAW_LINKS_FACTOR),
        ..Limits::default()
    }
}

/// The plugins that stacks name; `refuse` is told of those that cannot stand at their stage.
fn stack(
    written: &opilio_profile::Stacks,
    plugins: &BTreeMap<String, Plugin>,
    refuse: &mut dyn FnMut(Stage, usize, String),
) -> Stacks {
    let mut take = |stage: Stage| -> Vec<Staged> {
        let mut staged = Vec::new();
        for (index, name) in written.stage(stage).iter().enumerate() {
            // One that is missing has its fault already.
            let Some(plugin) = plugins.get(name) else {
                continue;
            };
            match misplaced(name, plugin, stage) {
                Some(problem) => refuse(stage, index, problem),
                None => staged.push(Staged {
                    name: name.as_str().into(),
                    plugin: plugin.clone(),
                    last_resort: written.last_resort.contains(name),
                }),
            }
        }
        staged
    };
    let mut stacks = Stacks {
        scope: take(Stage::Scope),
        pre_fetch: take(Stage::PreFetch),
        mid_fetch: take(Stage::MidFetch),
        post_fetch: take(Stage::PostFetch),
        digest: take(Stage::Digest),
        pre_extract: take(Stage::PreExtract),
        extract: take(Stage::Extract),
        archive: take(Stage::Archive),
        wait: take(Stage::Wait),
        ..Stacks::default()
    };
    stacks.scope_hash = hash_of(&stacks.scope);
    stacks.extract_hash = hash_of(&stacks.extract);
    stacks.digest_hash = hash_of(&stacks.digest);
    stacks
}

/// Why a plugin cannot stand at a stage; none where it can.
fn misplaced(name: &str, plugin: &Plugin, stage: Stage) -> Option<String> {
    let (kind, what) = match stage {
        Stage::Digest => (Kind::DigestStripper, "digest stripper"),
        Stage::Extract => (Kind::Extractor, "extractor"),
        Stage::Wait => (Kind::WaitEvaluator, "wait evaluator"),
        Stage::Change => (Kind::ChangeEvaluator, "change evaluator"),
        Stage::Precedence => (Kind::Precedence, "precedence plugin"),
        Stage::Observe => (Kind::Observer, "observer"),
        Stage::Scope
        | Stage::PreFetch
        | Stage::MidFetch
        | Stage::PostFetch
        | Stage::PreExtract
        | Stage::Archive => (Kind::Filter, "filter"),
    };
    let kinds = &plugin.description().kinds;
    let is_one = kinds.iter().any(|found| same_kind(found, &kind));
    (!is_one).then(|| format!("plugin \"{name}\" is no {what}"))
}

fn same_kind(a: &Kind, b: &Kind) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

/// A fault at the line that names the component; for a built-in that only a stack names, at that.
fn component_fault(profile: &Profile, instance: &Instance, problem: String) -> Fault {
    profile.fault_at(&format!("/plugins/{}/component", instance.name), &problem)
}

fn configure_faults(profile: &Profile, instance: &Instance, problem: &ConfigureError) -> Faults {
    match problem {
        ConfigureError::Settings { faults: list, .. } => {
            let mut faults = Faults::default();
            for fault in list {
                let pointer = format!("/plugins/{}/settings{}", instance.name, fault.pointer);
                faults.push(profile.fault_at(&pointer, &fault.problem));
            }
            faults
        }
        other => Faults::from(component_fault(profile, instance, chain(other))),
    }
}

/// An error and its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

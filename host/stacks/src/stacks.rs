//! The stacks of a crawl: its plugins by stage, and the stacks that settings of a URI select.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use opilio_archive::PluginInForce;
use opilio_profile::{PluginSettings, Stage};
use sha2::Digest as _;

use crate::pool::Pool;
use crate::staged::{Staged, misplaced};
use crate::variants::Use;

/// Most selections that are kept. A site selects one or two, so there are about as many as overrides. Beyond this number all are
/// made anew.
const SELECTED_MAX: usize = 20_000;

/// The plugins of every stage, in order.
#[derive(Default)]
pub struct Stacks {
    /// Filters of links: the scope.
    pub scope: Vec<Staged>,
    /// Precedence plugins.
    pub precedence: Vec<Staged>,
    /// Filters before a fetch.
    pub pre_fetch: Vec<Staged>,
    /// Filters at the headers of a response.
    pub mid_fetch: Vec<Staged>,
    /// Filters after a fetch.
    pub post_fetch: Vec<Staged>,
    /// Filters that decide whether a page is rendered.
    pub render: Vec<Staged>,
    /// Digest strippers.
    pub digest: Vec<Staged>,
    /// Change evaluators.
    pub change: Vec<Staged>,
    /// Filters before extraction.
    pub pre_extract: Vec<Staged>,
    /// Extractors.
    pub extract: Vec<Staged>,
    /// Filters that decide whether a document is archived.
    pub archive: Vec<Staged>,
    /// Page behaviours.
    pub behave: Vec<Staged>,
    /// Wait evaluators.
    pub wait: Vec<Staged>,
    /// Observers.
    pub observe: Vec<Staged>,
    /// [`hash_of`] the extractors.
    pub extract_hash: u64,
    /// Hash of the filters at stage scope, the seeds' prefixes included.
    pub scope_hash: u64,
    /// Like [`Self::scope_hash`], with the names that the profile gives the filters and their guards: all that a
    /// decision consists of.
    pub scope_identity: u64,
    /// [`hash_of`] the strippers.
    pub digest_hash: u64,
    pool: Arc<Pool>,
    /// Stacks that overrides select, as far as they have been used.
    selected: Mutex<HashMap<(opilio_profile::StackSettings, PluginSettings), Selected>>,
}

/// Stacks that overrides select.
pub(crate) struct Selected {
    pub(crate) stacks: Arc<Stacks>,
    /// Variants of plugins in these stacks.
    variants: Vec<Use>,
    /// Number of variants that had been prepared when these stacks were made.
    generation: u64,
}

/// Returns a hash of everything that decides the answers of these plugins: component and settings of each and of its guards, in
/// order.
pub fn hash_of(stack: &[Staged]) -> u64 {
    let mut hash = sha2::Sha256::new();
    for staged in stack {
        add_to(&mut hash, staged);
    }
    let bytes: [u8; 32] = hash.finalize().into();
    u64::from_be_bytes([
        bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
    ])
}

/// Returns a hash of these plugins, their names in the profile and their guards, for use within a process.
fn identity_of(stack: &[Staged]) -> u64 {
    let mut hasher = DefaultHasher::new();
    add_names(&mut hasher, stack);
    hash_of(stack).hash(&mut hasher);
    hasher.finish()
}

fn add_names(hasher: &mut DefaultHasher, stack: &[Staged]) {
    stack.len().hash(hasher);
    for staged in stack {
        staged.name.hash(hasher);
        add_names(hasher, &staged.guards);
    }
}

fn add_to(hash: &mut sha2::Sha256, staged: &Staged) {
    hash.update(staged.plugin.component_sha256().as_bytes());
    hash.update(staged.plugin.name().as_bytes());
    hash.update(staged.plugin.settings_sha256().as_bytes());
    hash.update([u8::from(staged.last_resort)]);
    for guard in &staged.guards {
        add_to(hash, guard);
    }
}

impl Stacks {
    /// Selects the plugins that the profile names. `refuse` is called for each that does not fit its stage.
    pub(crate) fn of(
        pool: &Arc<Pool>,
        written: &opilio_profile::StackSettings,
        overrides: &PluginSettings,
        refuse: &mut dyn FnMut(Stage, usize, String),
    ) -> Selected {
        let generation = pool.generation();
        let mut uses = Vec::new();
        let mut chosen = BTreeMap::new();
        for name in overrides.names() {
            if let Some((plugin, used)) = pool.variant(name, overrides) {
                chosen.insert(name.to_owned(), plugin);
                uses.push(used);
            }
        }
        let mut take = |stage: Stage| -> Vec<Staged> {
            let mut staged = Vec::new();
            for (index, name) in written.stage(stage).iter().enumerate() {
                // The error of a missing plugin has been reported already.
                let Some(one) = pool.staged(name, stage, &chosen) else {
                    continue;
                };
                match misplaced(name, &one.plugin, stage) {
                    Some(problem) => refuse(stage, index, problem),
                    None => staged.push(Staged {
                        last_resort: written.last_resort.contains(name),
                        ..one
                    }),
                }
            }
            staged
        };
        let mut stacks = Stacks {
            scope: take(Stage::Scope),
            precedence: take(Stage::Precedence),
            pre_fetch: take(Stage::PreFetch),
            mid_fetch: take(Stage::MidFetch),
            post_fetch: take(Stage::PostFetch),
            render: take(Stage::Render),
            digest: take(Stage::Digest),
            change: take(Stage::Change),
            pre_extract: take(Stage::PreExtract),
            extract: take(Stage::Extract),
            archive: take(Stage::Archive),
            behave: take(Stage::Behave),
            wait: take(Stage::Wait),
            observe: take(Stage::Observe),
            pool: pool.clone(),
            ..Stacks::default()
        };
        stacks.scope_hash = hash_of(&stacks.scope);
        stacks.scope_identity = identity_of(&stacks.scope);
        stacks.extract_hash = hash_of(&stacks.extract);
        stacks.digest_hash = hash_of(&stacks.digest);
        Selected {
            stacks: Arc::new(stacks),
            variants: uses,
            generation,
        }
    }

    /// Returns the stacks of the profile itself, with the plugins of another pool.
    pub fn with(default: &opilio_profile::EffectiveSettings, pool: Pool) -> Arc<Stacks> {
        let none = PluginSettings::default();
        Stacks::of(&Arc::new(pool), &default.stacks, &none, &mut left_out).stacks
    }

    /// All instances.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Returns the stacks that a URI's settings name, with these plugins.
    pub fn selected(
        self: &Arc<Self>,
        settings: &opilio_profile::EffectiveSettings,
        default: &opilio_profile::EffectiveSettings,
    ) -> Arc<Stacks> {
        if std::ptr::eq(settings, default)
            || settings.stacks == default.stacks && settings.plugins.is_empty()
        {
            return self.clone();
        }
        let key = (settings.stacks.clone(), settings.plugins.clone());
        let mut selected = self.selected.lock().unwrap_or_else(PoisonError::into_inner);
        let known = selected.get(&key).filter(|known| {
            known.generation == self.pool.generation() || known.variants.is_empty()
        });
        if let Some(known) = known {
            for used in &known.variants {
                used.count();
            }
            return known.stacks.clone();
        }
        if selected.len() >= SELECTED_MAX {
            selected.clear();
        }
        let made = Stacks::of(&self.pool, &key.0, &key.1, &mut left_out);
        let stacks = made.stacks.clone();
        selected.insert(key, made);
        stacks
    }

    /// The plugins of a stage, in order.
    pub fn stage(&self, stage: Stage) -> &[Staged] {
        match stage {
            Stage::Scope => &self.scope,
            Stage::Precedence => &self.precedence,
            Stage::PreFetch => &self.pre_fetch,
            Stage::MidFetch => &self.mid_fetch,
            Stage::PostFetch => &self.post_fetch,
            Stage::Render => &self.render,
            Stage::Digest => &self.digest,
            Stage::Change => &self.change,
            Stage::PreExtract => &self.pre_extract,
            Stage::Extract => &self.extract,
            Stage::Archive => &self.archive,
            Stage::Behave => &self.behave,
            Stage::Wait => &self.wait,
            Stage::Observe => &self.observe,
        }
    }

    /// Returns every plugin once, in the order of a URI's stages.
    pub fn all(&self) -> Vec<&Staged> {
        let mut seen = std::collections::HashSet::new();
        let staged = Stage::ALL.into_iter().flat_map(|stage| self.stage(stage));
        staged
            .flat_map(|staged| staged.guards.iter().chain([staged]))
            .filter(|staged| seen.insert(staged.name.clone()))
            .collect()
    }

    /// Returns the plugins for the `warcinfo` record.
    pub fn in_force(&self) -> Vec<PluginInForce> {
        self.all().into_iter().map(PluginInForce::from).collect()
    }
}

/// Logs a plugin that does not fit its stage. Stacks of overrides were checked when the plugins were loaded. A plugin that was
/// replaced since can be of another kind only if its replacement was not checked.
fn left_out(stage: Stage, _: usize, problem: String) {
    tracing::error!(%stage, "{problem}; it is left out");
}

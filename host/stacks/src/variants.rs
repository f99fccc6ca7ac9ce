//! Variants: one plugin with other settings, from overrides.
//!
//! A variant is available at once: it is configured anew for every call. A variant that is used often gets a snapshot of its own,
//! made in the background. If the maximum of snapshots is reached, it takes the place of a variant that has not been used for
//! long.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use opilio_sandbox::{Plugin, PluginStatistics, spawn_lane};
use serde_json::Value;

use crate::instance_inputs::InstanceInputs;
use crate::thread::on_plugin_thread;

/// Selections of a variant after which it is worth a snapshot, which takes some tenths of a second of one core.
const USES_WORTH_A_SNAPSHOT: u64 = 16;

/// Selections of other variants after which an unused variant may lose its snapshot.
const OTHER_USES_MIN: u64 = 1024;

/// Most variants of one plugin that are kept. Beyond it all start afresh. Each takes a few kilobytes.
const VARIANTS_MAX: usize = 20_000;

/// The variants of one plugin.
pub(super) struct Variants {
    inputs: Arc<InstanceInputs>,
    /// Most snapshots at the same time.
    snapshots_max: usize,
    /// Variants by the settings that overrides lead to, with defaults filled in.
    known: Mutex<HashMap<Value, Arc<Variant>>>,
    /// Selections so far.
    clock: AtomicU64,
    /// Whether a snapshot is being made. Only one is made at a time.
    preparing: Mutex<bool>,
    /// Statistics of variants that are no longer kept.
    dropped: Mutex<PluginStatistics>,
    generation: Arc<AtomicU64>,
}

/// One plugin with other settings.
pub(super) struct Variant {
    settings: Value,
    /// The plugin that is configured anew for every call.
    each_call: Plugin,
    /// The plugin from a snapshot, while there is one.
    snapshot: RwLock<Option<Plugin>>,
    /// Statistics of earlier snapshots.
    earlier: Mutex<PluginStatistics>,
    uses: AtomicU64,
    last_use: AtomicU64,
    /// Whether a snapshot was tried.
    tried: Mutex<bool>,
}

/// A variant in selected stacks.
pub(super) struct Use {
    variants: Arc<Variants>,
    variant: Arc<Variant>,
}

impl Variants {
    /// Creates the variants. `ready` are variants that have been configured already, anew for every call.
    pub(super) fn new(
        inputs: Arc<InstanceInputs>,
        snapshots_max: usize,
        generation: Arc<AtomicU64>,
        ready: Vec<(Value, Plugin)>,
    ) -> Arc<Self> {
        let ready = ready.into_iter();
        let known = ready.map(|(settings, plugin)| {
            let variant = Variant::new(settings.clone(), plugin);
            (settings, Arc::new(variant))
        });
        Arc::new(Self {
            inputs,
            snapshots_max,
            known: Mutex::new(known.take(VARIANTS_MAX).collect()),
            clock: AtomicU64::new(0),
            preparing: Mutex::new(false),
            dropped: Mutex::default(),
            generation,
        })
    }

    /// Returns the variant with these settings, and the handle that counts its uses.
    ///
    /// # Errors
    /// Returns the reason that the plugin does not accept the settings.
    pub(super) fn get(self: &Arc<Self>, settings: Value) -> Result<(Plugin, Use), String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let variant = match known.get(&settings) {
            Some(variant) => variant.clone(),
            None => {
                let inputs = &self.inputs;
                let configured = || inputs.each_call(settings.clone());
                let plugin = on_plugin_thread("plugin-variant", configured)??;
                if known.len() >= VARIANTS_MAX {
                    let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
                    for (_, variant) in known.drain() {
                        dropped.add(&variant.statistics());
                    }
                }
                let variant = Arc::new(Variant::new(settings.clone(), plugin));
                known.insert(settings, variant.clone());
                variant
            }
        };
        drop(known);
        let used = Use {
            variants: self.clone(),
            variant: variant.clone(),
        };
        used.count();
        Ok((variant.plugin(), used))
    }

    /// Returns the statistics of each variant that has been selected.
    pub(super) fn seen(&self) -> Vec<(Plugin, PluginStatistics)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen: Vec<_> = known
            .values()
            .filter(|variant| variant.uses.load(Ordering::Relaxed) > 0 || variant.has_calls())
            .map(|variant| (variant.plugin(), variant.statistics()))
            .collect();
        seen.sort_by(|(a, _), (b, _)| a.settings_sha256().cmp(b.settings_sha256()));
        seen
    }

    /// Returns the statistics of variants that are no longer kept.
    pub(super) fn dropped(&self) -> PluginStatistics {
        let dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        dropped.clone()
    }

    /// Makes a snapshot in the background, unless one is being made.
    fn prepare(self: &Arc<Self>, variant: &Arc<Variant>) {
        {
            let mut preparing = self
                .preparing
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if *preparing || !self.has_room() {
                return;
            }
            *preparing = true;
        }
        let (variants, variant) = (self.clone(), variant.clone());
        let made = spawn_lane("plugin-variant", move || {
            let plugin = variants.inputs.snapshot(variant.settings.clone());
            *variant.tried.lock().unwrap_or_else(PoisonError::into_inner) = true;
            match plugin {
                Ok(plugin) if plugin.snapshotted() => {
                    variant.set_snapshot(Some(plugin));
                    variants.generation.fetch_add(1, Ordering::Release);
                }
                // The variant remains configured anew for every call.
                Ok(_) => {}
                Err(problem) => {
                    tracing::warn!("cannot make a snapshot of a plugin variant: {problem}")
                }
            }
            variants.is_preparing(false);
        });
        if let Err(problem) = made {
            tracing::warn!("cannot start a thread for a plugin snapshot: {problem}");
            self.is_preparing(false);
        }
    }

    fn is_preparing(&self, preparing: bool) {
        *self
            .preparing
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = preparing;
    }

    /// Returns `true` if there is room for one more snapshot. Removes the snapshot of a variant that has not been used for long, if
    /// needed.
    fn has_room(&self) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let with_snapshot = known.values().filter(|variant| variant.has_snapshot());
        let with_snapshot: Vec<_> = with_snapshot.collect();
        if with_snapshot.len() < self.snapshots_max {
            return true;
        }
        let oldest = with_snapshot
            .into_iter()
            .min_by_key(|variant| variant.last_use.load(Ordering::Relaxed));
        let Some(oldest) = oldest else { return false };
        let since = self
            .clock
            .load(Ordering::Relaxed)
            .saturating_sub(oldest.last_use.load(Ordering::Relaxed));
        if since < OTHER_USES_MIN {
            return false;
        }
        oldest.set_snapshot(None);
        *oldest.tried.lock().unwrap_or_else(PoisonError::into_inner) = false;
        oldest.uses.store(0, Ordering::Relaxed);
        self.generation.fetch_add(1, Ordering::Release);
        true
    }
}

impl Variant {
    fn new(settings: Value, each_call: Plugin) -> Variant {
        Variant {
            settings,
            each_call,
            snapshot: RwLock::default(),
            earlier: Mutex::default(),
            uses: AtomicU64::new(0),
            last_use: AtomicU64::new(0),
            tried: Mutex::new(false),
        }
    }

    fn plugin(&self) -> Plugin {
        let snapshot = self.snapshot.read().unwrap_or_else(PoisonError::into_inner);
        snapshot.as_ref().unwrap_or(&self.each_call).clone()
    }

    fn has_snapshot(&self) -> bool {
        let snapshot = self.snapshot.read().unwrap_or_else(PoisonError::into_inner);
        snapshot.is_some()
    }

    fn set_snapshot(&self, plugin: Option<Plugin>) {
        let mut snapshot = self
            .snapshot
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = std::mem::replace(&mut *snapshot, plugin) {
            let mut earlier = self.earlier.lock().unwrap_or_else(PoisonError::into_inner);
            earlier.add(&before.statistics());
        }
    }

    fn has_calls(&self) -> bool {
        self.statistics().calls > 0
    }

    fn statistics(&self) -> PluginStatistics {
        let mut all = self.each_call.statistics();
        let snapshot = self.snapshot.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(snapshot) = &*snapshot {
            all.add(&snapshot.statistics());
        }
        all.add(&self.earlier.lock().unwrap_or_else(PoisonError::into_inner));
        all
    }
}

impl Use {
    /// Counts a selection.
    pub(super) fn count(&self) {
        let now = self.variants.clock.fetch_add(1, Ordering::Relaxed);
        self.variant.last_use.store(now, Ordering::Relaxed);
        let uses = self.variant.uses.fetch_add(1, Ordering::Relaxed) + 1;
        // Repeated only now and then: there may be no room.
        if uses.is_multiple_of(USES_WORTH_A_SNAPSHOT) {
            let tried = self
                .variant
                .tried
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let wanted = !*tried;
            drop(tried);
            if wanted && !self.variant.has_snapshot() {
                self.variants.prepare(&self.variant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use opilio_sandbox::{Engine, EngineConfig, Limits, Tables};
    use serde_json::json;

    use super::*;

    /// Variants of the filter `path-depth`.
    fn variants(snapshots_max: usize) -> Arc<Variants> {
        let builtin = opilio_builtin::find("path-depth").unwrap();
        let engine = Engine::new(EngineConfig::default()).unwrap();
        let component = engine.load(builtin.component, "builtin").unwrap();
        let described = component.plugins().iter();
        let mut described = described.filter(|plugin| plugin.name == "path-depth");
        let schema = serde_json::from_str(&described.next().unwrap().settings_schema).unwrap();
        let inputs = InstanceInputs {
            name: "path-depth".into(),
            component,
            plugin: "path-depth".to_owned(),
            schema,
            limits: Limits::default(),
            tables: Tables::default(),
            seed_prefixes: Arc::new([]),
        };
        Variants::new(Arc::new(inputs), snapshots_max, Arc::default(), Vec::new())
    }

    fn get(variants: &Arc<Variants>, max: u32) -> (Plugin, Use) {
        variants.get(json!({ "max": max })).unwrap()
    }

    /// Waits until background work has made the condition true.
    #[track_caller]
    fn until(mut holds: impl FnMut() -> bool) {
        let began = Instant::now();
        while !holds() {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "the condition did not become true"
            );
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_variant_starts_at_once_and_gets_a_snapshot_when_it_is_used_often() {
        let variants = variants(1);
        let (first, one) = get(&variants, 1);
        assert!(!first.snapshotted());
        let generation = variants.generation.load(Ordering::Acquire);
        (0..USES_WORTH_A_SNAPSHOT).for_each(|_| one.count());
        until(|| get(&variants, 1).0.snapshotted());
        assert!(variants.generation.load(Ordering::Acquire) > generation);

        // There is room for one snapshot only, and that one is in use.
        let (_, two) = get(&variants, 2);
        (0..2 * USES_WORTH_A_SNAPSHOT).for_each(|_| two.count());
        assert!(!get(&variants, 2).0.snapshotted() && get(&variants, 1).0.snapshotted());
        // The first variant loses its snapshot after it has been unused for long enough.
        (0..OTHER_USES_MIN + USES_WORTH_A_SNAPSHOT).for_each(|_| two.count());
        until(|| get(&variants, 2).0.snapshotted());
        assert!(!get(&variants, 1).0.snapshotted());
        assert_eq!(variants.seen().len(), 2);
    }

    #[test]
    fn invalid_settings_are_refused_with_the_reason_of_the_plugin() {
        let refused = variants(1).get(json!({ "max": "many" })).map(drop);
        assert!(refused.unwrap_err().contains("path-depth"));
    }
}

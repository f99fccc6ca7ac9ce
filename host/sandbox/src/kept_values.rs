//! Values that plugins keep with a URI or a site from visit to visit. The host loads them before a visit and writes the changes at
//! its end. During the visit they are here, so that a failed visit keeps nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{KeptChange, KeptValue, KeptValues};

/// Values that plugins keep with the URI of a visit and with its site. Clones are the same values. The visit and all its
/// documents and fragments share them.
#[derive(Clone, Debug, Default)]
pub struct SharedKeptValues(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    uri: OwnedValues,
    site: OwnedValues,
}

/// The values of a URI, or of a site.
#[derive(Debug, Default)]
struct OwnedValues {
    before: KeptValues,
    changes: Vec<KeptChange>,
}

/// Changes of kept values during a visit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptChanges {
    /// Values of the URI; the last one under each name.
    pub uri: Vec<KeptChange>,
    /// Values of the site, likewise.
    pub site: Vec<KeptChange>,
}

/// A kept value belongs to the URI of a visit or to its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptFor {
    Uri,
    Site,
}

/// Error for a value that could not be kept and was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dropped;

impl SharedKeptValues {
    /// Makes the values of a visit from those kept with the URI and with its site.
    pub fn new(uri: KeptValues, site: KeptValues) -> Self {
        let owned = |before| OwnedValues {
            before,
            changes: Vec::new(),
        };
        Self(Arc::new(Mutex::new(State {
            uri: owned(uri),
            site: owned(site),
        })))
    }

    /// Changes by plugins during the visit so far.
    pub fn changes(&self) -> KeptChanges {
        let state = self.state();
        KeptChanges {
            uri: state.uri.changes.clone(),
            site: state.site.changes.clone(),
        }
    }

    /// Returns `true` if there are neither values nor changes.
    pub(crate) fn is_empty(&self) -> bool {
        let state = self.state();
        [&state.uri, &state.site]
            .iter()
            .all(|values| values.before.is_empty() && values.changes.is_empty())
    }

    /// The values that a plugin would find now, of the URI and of the site.
    pub(crate) fn visible_to(
        &self,
        plugin: &str,
    ) -> (BTreeMap<String, KeptValue>, BTreeMap<String, KeptValue>) {
        let state = self.state();
        (state.uri.visible_to(plugin), state.site.visible_to(plugin))
    }

    /// The value of a plugin under this name.
    pub(crate) fn get(&self, plugin: &str, place: KeptFor, name: &str) -> Option<KeptValue> {
        let mut state = self.state();
        let values = state.values_of(place);
        match values.changed(plugin, name) {
            Some(change) => change.value.clone(),
            None => values.before.get(plugin, name).cloned(),
        }
    }

    /// Sets a value of a plugin, unless it has `values_max` others there. `None` removes the value.
    pub(crate) fn set(
        &self,
        plugin: &str,
        place: KeptFor,
        name: String,
        value: Option<KeptValue>,
        values_max: usize,
    ) -> Result<(), Dropped> {
        let mut state = self.state();
        let values = state.values_of(place);
        if value.is_some() && values.count_others(plugin, &name) >= values_max {
            return Err(Dropped);
        }
        match values.changed(plugin, &name) {
            Some(change) => change.value = value,
            None => values.changes.push(KeptChange {
                plugin: plugin.to_owned(),
                name,
                value,
            }),
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn values_of(&mut self, place: KeptFor) -> &mut OwnedValues {
        match place {
            KeptFor::Uri => &mut self.uri,
            KeptFor::Site => &mut self.site,
        }
    }
}

impl OwnedValues {
    fn visible_to(&self, plugin: &str) -> BTreeMap<String, KeptValue> {
        let mut seen = self.before.plugin(plugin).cloned().unwrap_or_default();
        for change in self.changes.iter().filter(|change| change.plugin == plugin) {
            match &change.value {
                Some(value) => seen.insert(change.name.clone(), value.clone()),
                None => seen.remove(&change.name),
            };
        }
        seen
    }

    fn changed(&mut self, plugin: &str, name: &str) -> Option<&mut KeptChange> {
        self.changes
            .iter_mut()
            .find(|change| change.plugin == plugin && change.name == name)
    }

    /// Number of values that the plugin has under other names.
    fn count_others(&self, plugin: &str, name: &str) -> usize {
        let changes = || self.changes.iter().filter(|change| change.plugin == plugin);
        let before = self.before.plugin(plugin).into_iter().flatten();
        let untouched = before
            .filter(|(known, _)| *known != name && changes().all(|change| change.name != **known));
        let set = changes().filter(|change| change.name != name && change.value.is_some());
        untouched.count() + set.count()
    }
}

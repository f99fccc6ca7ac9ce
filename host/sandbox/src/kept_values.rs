//! Values that plugins keep with a URI or a site from visit to visit. The host loads them before a visit and writes the changes
//! at its end. In between they are here, so that a visit that fails keeps nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use crate::bindings::exports::opilio::plugin::setup::{Keep, Keeper};
use crate::{KeptChange, KeptValue, KeptValues, Limits};

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

impl KeptFor {
    fn is(self, keeper: &Keeper) -> bool {
        match self {
            Self::Uri => matches!(keeper, Keeper::Uri),
            Self::Site => matches!(keeper, Keeper::Site),
        }
    }
}

/// Error for a value that could not be kept and was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dropped;

/// The owner of kept values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'a> {
    pub(crate) plugin: &'a str,
    pub(crate) keeps: &'a [Keep],
    pub(crate) limits: &'a Limits,
}

impl Owner<'_> {
    fn declared(&self, place: KeptFor, name: &str) -> Option<&Keep> {
        self.keeps
            .iter()
            .find(|keep| keep.name == name && place.is(&keep.keeper))
    }
}

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
    pub(crate) fn seen_by(
        &self,
        plugin: &str,
    ) -> (BTreeMap<String, KeptValue>, BTreeMap<String, KeptValue>) {
        let state = self.state();
        (state.uri.seen_by(plugin), state.site.seen_by(plugin))
    }

    pub(crate) fn get(&self, owner: Owner<'_>, place: KeptFor, name: &str) -> Option<KeptValue> {
        owner.declared(place, name)?;
        let mut state = self.state();
        let values = state.values_of(place);
        match values.changed(owner.plugin, name) {
            Some(change) => change.value.clone(),
            None => values.before.get(owner.plugin, name).cloned(),
        }
    }

    /// Sets a value. An empty value removes it.
    pub(crate) fn set(
        &self,
        owner: Owner<'_>,
        place: KeptFor,
        name: String,
        value: String,
    ) -> Result<(), Dropped> {
        let keep = owner.declared(place, &name).ok_or(Dropped)?;
        let bytes_max = match place {
            KeptFor::Uri => owner.limits.kept_uri_bytes,
            KeptFor::Site => owner.limits.kept_site_bytes,
        };
        if value.len() > bytes_max {
            return Err(Dropped);
        }
        let value = (!value.is_empty()).then_some(KeptValue {
            version: keep.version,
            value,
        });
        let mut state = self.state();
        let values = state.values_of(place);
        if value.is_some() && values.others(owner.plugin, &name) >= owner.limits.kept_values {
            return Err(Dropped);
        }
        match values.changed(owner.plugin, &name) {
            Some(change) => change.value = value,
            None => values.changes.push(KeptChange {
                plugin: owner.plugin.to_owned(),
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
    fn seen_by(&self, plugin: &str) -> BTreeMap<String, KeptValue> {
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
    fn others(&self, plugin: &str, name: &str) -> usize {
        let changes = || self.changes.iter().filter(|change| change.plugin == plugin);
        let before = self.before.plugin(plugin).into_iter().flatten();
        let untouched = before
            .filter(|(known, _)| *known != name && changes().all(|change| change.name != **known));
        let set = changes().filter(|change| change.name != name && change.value.is_some());
        untouched.count() + set.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(name: &str, keeper: Keeper, version: u32) -> Keep {
        Keep {
            name: name.to_owned(),
            keeper,
            version,
        }
    }

    fn value(version: u32, value: &str) -> KeptValue {
        KeptValue {
            version,
            value: value.to_owned(),
        }
    }

    fn values(plugin: &str, name: &str, kept: KeptValue) -> KeptValues {
        KeptValues::of_plugin(plugin, BTreeMap::from([(name.to_owned(), kept)]))
    }

    #[test]
    fn plugins_read_what_they_kept_and_what_they_set_and_nobody_elses() {
        let limits = Limits::default();
        let keeps = [keep("rate", Keeper::Uri, 2), keep("rate", Keeper::Site, 7)];
        let owner = |plugin| Owner {
            plugin,
            keeps: &keeps,
            limits: &limits,
        };
        let kept = SharedKeptValues::new(
            values("one", "rate", value(1, "old")),
            values("other", "rate", value(1, "site")),
        );
        assert_eq!(
            kept.get(owner("one"), KeptFor::Uri, "rate"),
            Some(value(1, "old"))
        );
        assert_eq!(kept.get(owner("one"), KeptFor::Site, "rate"), None);
        assert_eq!(kept.get(owner("other"), KeptFor::Uri, "rate"), None);
        assert_eq!(kept.changes(), KeptChanges::default());

        kept.set(owner("one"), KeptFor::Uri, "rate".into(), "new".into())
            .unwrap();
        kept.set(owner("other"), KeptFor::Site, "rate".into(), String::new())
            .unwrap();
        assert_eq!(
            kept.get(owner("one"), KeptFor::Uri, "rate"),
            Some(value(2, "new"))
        );
        assert_eq!(kept.get(owner("other"), KeptFor::Site, "rate"), None);
        let change = |plugin: &str, value| KeptChange {
            plugin: plugin.to_owned(),
            name: "rate".to_owned(),
            value,
        };
        assert_eq!(
            kept.changes(),
            KeptChanges {
                uri: vec![change("one", Some(value(2, "new")))],
                site: vec![change("other", None)],
            }
        );
    }

    #[test]
    fn only_declared_names_of_bounded_values_are_kept() {
        let limits = Limits {
            kept_uri_bytes: 4,
            kept_values: 2,
            ..Limits::default()
        };
        let keeps: Vec<Keep> = ["a", "b", "c"]
            .map(|name| keep(name, Keeper::Uri, 1))
            .into();
        let owner = Owner {
            plugin: "p",
            keeps: &keeps,
            limits: &limits,
        };
        let kept = SharedKeptValues::new(values("p", "a", value(1, "x")), KeptValues::default());
        let set = |name: &str, value: &str| {
            kept.set(owner, KeptFor::Uri, name.to_owned(), value.to_owned())
        };
        assert_eq!(set("undeclared", "x"), Err(Dropped));
        assert_eq!(
            kept.set(owner, KeptFor::Site, "a".into(), "x".into()),
            Err(Dropped)
        );
        assert_eq!(set("a", "12345"), Err(Dropped));
        assert_eq!(set("b", "1234"), Ok(()));
        assert_eq!(set("c", "1"), Err(Dropped), "a third value");
        assert_eq!(set("a", ""), Ok(()));
        assert_eq!(set("c", "1"), Ok(()), "in place of the one removed");
        assert_eq!(set("a", "1"), Err(Dropped));
    }
}

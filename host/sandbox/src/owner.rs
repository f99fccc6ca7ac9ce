//! The owner of kept values: a plugin, which reads and sets those that it has declared, within its limits.

pub use crate::bindings::exports::opilio::plugin::setup::{Keep, Keeper};
use crate::kept_values::{Dropped, KeptFor, SharedKeptValues};
use crate::{KeptValue, Limits};

/// The owner of kept values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'a> {
    pub(crate) plugin: &'a str,
    pub(crate) keeps: &'a [Keep],
    pub(crate) limits: &'a Limits,
}

impl Owner<'_> {
    /// The value under a name that the plugin has declared.
    pub(crate) fn get(
        self,
        kept: &SharedKeptValues,
        place: KeptFor,
        name: &str,
    ) -> Option<KeptValue> {
        self.declared(place, name)?;
        kept.get(self.plugin, place, name)
    }

    /// Sets a value. An empty value removes it.
    pub(crate) fn set(
        self,
        kept: &SharedKeptValues,
        place: KeptFor,
        name: String,
        value: String,
    ) -> Result<(), Dropped> {
        let keep = self.declared(place, &name).ok_or(Dropped)?;
        let bytes_max = match place {
            KeptFor::Uri => self.limits.kept_uri_bytes,
            KeptFor::Site => self.limits.kept_site_bytes,
        };
        if value.len() > bytes_max {
            return Err(Dropped);
        }
        let value = (!value.is_empty()).then_some(KeptValue {
            version: keep.version,
            value,
        });
        kept.set(self.plugin, place, name, value, self.limits.kept_values)
    }

    fn declared(&self, place: KeptFor, name: &str) -> Option<&Keep> {
        let is_same_keeper = |keeper: &Keeper| match place {
            KeptFor::Uri => matches!(keeper, Keeper::Uri),
            KeptFor::Site => matches!(keeper, Keeper::Site),
        };
        self.keeps
            .iter()
            .find(|keep| keep.name == name && is_same_keeper(&keep.keeper))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{KeptChange, KeptChanges, KeptValues};

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
    fn a_plugin_reads_only_its_own_kept_values() {
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
            owner("one").get(&kept, KeptFor::Uri, "rate"),
            Some(value(1, "old"))
        );
        assert_eq!(owner("one").get(&kept, KeptFor::Site, "rate"), None);
        assert_eq!(owner("other").get(&kept, KeptFor::Uri, "rate"), None);
        assert_eq!(kept.changes(), KeptChanges::default());

        owner("one")
            .set(&kept, KeptFor::Uri, "rate".into(), "new".into())
            .unwrap();
        owner("other")
            .set(&kept, KeptFor::Site, "rate".into(), String::new())
            .unwrap();
        assert_eq!(
            owner("one").get(&kept, KeptFor::Uri, "rate"),
            Some(value(2, "new"))
        );
        assert_eq!(owner("other").get(&kept, KeptFor::Site, "rate"), None);
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
            owner.set(&kept, KeptFor::Uri, name.to_owned(), value.to_owned())
        };
        assert_eq!(set("undeclared", "x"), Err(Dropped));
        assert_eq!(
            owner.set(&kept, KeptFor::Site, "a".into(), "x".into()),
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

//! Check of the index of canonical forms, tallies, server groups, state of sites and remembered refusals.

use super::{Check, InconsistencyKind, records::CanonicalSet};
use crate::{
    FrontierError, GroupFigures, KeptValue, Rejection, Tally,
    instant::Millis,
    keys,
    store::{Entry, decode},
};

impl Check<'_> {
    /// Reports canonical forms without a record.
    pub(super) fn canonicals(&mut self, known: &CanonicalSet) -> Result<(), FrontierError> {
        for guard in self.store.canonical_forms.iter() {
            let key = guard.key()?;
            if !known.may_hold(&key) {
                self.report(InconsistencyKind::StrayCanonical, &key);
                self.put_repair("canonical_forms", &key, None)?;
            }
        }
        self.write()
    }

    /// Checks that values without relations to others can be read, and counts refusals.
    pub(super) fn tallies(&mut self) -> Result<(), FrontierError> {
        self.readable("tallies", |(key, value)| {
            decode::<Tally>("a tally", key, value).is_ok()
        })?;
        self.readable("server_groups", |(key, value)| {
            decode::<Vec<Millis>>("a server group", key, value).is_ok()
        })?;
        self.counted.refused = self.readable("refused_uris", |(key, value)| {
            decode::<Rejection>("a refusal", key, value).is_ok()
        })?;
        self.sites()?;
        self.write()
    }

    /// Reports values and figures of sites without a known URI.
    fn sites(&mut self) -> Result<(), FrontierError> {
        self.site_entries("site_values", |key, value| {
            keys::from_site_value(key).is_some()
                && decode::<KeptValue>("a value kept for a site", key, value).is_ok()
        })?;
        self.site_entries("site_figures", |key, value| {
            keys::from_site_figures(key).is_some()
                && decode::<GroupFigures>("figures on a site", key, value).is_ok()
        })
    }

    fn site_entries(
        &mut self,
        name: &'static str,
        is_readable: impl Fn(&[u8], &[u8]) -> bool,
    ) -> Result<(), FrontierError> {
        let keyspace = match name {
            "site_values" => &self.store.site_values,
            _ => &self.store.site_figures,
        };
        let mut last: Option<(String, bool)> = None;
        for guard in keyspace.clone().iter() {
            let (key, value) = guard.into_inner()?;
            if !is_readable(&key, &value) {
                self.report(InconsistencyKind::Malformed(name), &key);
                self.put_repair(name, &key, None)?;
                continue;
            }
            let text = String::from_utf8_lossy(&key);
            let site = text.split(')').next().unwrap_or_default();
            let is_known = match &last {
                Some((other, is_known)) if other == site => *is_known,
                _ => {
                    let (start, end) = keys::site_range(site);
                    self.store.uris.range(start..end).next().is_some()
                }
            };
            last = Some((site.to_owned(), is_known));
            if !is_known {
                self.report(InconsistencyKind::StraySite, &key);
                self.put_repair(name, &key, None)?;
            }
        }
        Ok(())
    }

    /// Counts the readable entries of a keyspace.
    fn readable(
        &mut self,
        name: &'static str,
        is_readable: impl Fn(&Entry) -> bool,
    ) -> Result<u64, FrontierError> {
        let keyspace = match name {
            "tallies" => &self.store.tallies,
            "server_groups" => &self.store.server_groups,
            _ => &self.store.refused_uris,
        };
        let mut readable = 0;
        for guard in keyspace.iter() {
            let (key, value) = guard.into_inner()?;
            let entry = (key.to_vec(), value.to_vec());
            if is_readable(&entry) {
                readable += 1;
            } else {
                self.report(InconsistencyKind::Malformed(name), &entry.0);
                self.put_repair(name, &entry.0, None)?;
            }
        }
        Ok(readable)
    }
}

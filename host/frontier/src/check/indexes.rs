//! Check of the index of canonical forms, tallies, server groups, site values and remembered refusals.

use super::{Check, Fault, records::CanonicalSet};
use crate::{
    Error, KeptValue, Rejection, Tally,
    instant::Millis,
    keys,
    store::{Entry, decode},
};

impl Check<'_> {
    /// Reports canonical forms without a record.
    pub(super) fn canonicals(&mut self, known: &CanonicalSet) -> Result<(), Error> {
        for guard in self.store.canon.iter() {
            let key = guard.key()?;
            if !known.may_hold(&key) {
                self.found(Fault::StrayCanonical, &key);
                self.mend("canon", &key, None)?;
            }
        }
        self.write()
    }

    /// Checks that values without relations to others can be read, and counts refusals.
    pub(super) fn tallies(&mut self) -> Result<(), Error> {
        self.readable("tallies", |(key, value)| {
            decode::<Tally>("a tally", key, value).is_ok()
        })?;
        self.readable("groups", |(key, value)| {
            decode::<Vec<Millis>>("a server group", key, value).is_ok()
        })?;
        self.counted.refused = self.readable("refused", |(key, value)| {
            decode::<Rejection>("a refusal", key, value).is_ok()
        })?;
        self.sites()?;
        self.write()
    }

    /// Reports values of sites without a known URI.
    fn sites(&mut self) -> Result<(), Error> {
        let mut last: Option<(String, bool)> = None;
        for guard in self.store.sites.iter() {
            let (key, value) = guard.into_inner()?;
            let is_readable = keys::from_site_value(&key).is_some()
                && decode::<KeptValue>("a value kept for a site", &key, &value).is_ok();
            if !is_readable {
                self.found(Fault::Malformed("sites"), &key);
                self.mend("sites", &key, None)?;
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
                self.found(Fault::StraySite, &key);
                self.mend("sites", &key, None)?;
            }
        }
        Ok(())
    }

    /// Counts the readable entries of a keyspace.
    fn readable(
        &mut self,
        name: &'static str,
        is_readable: impl Fn(&Entry) -> bool,
    ) -> Result<u64, Error> {
        let keyspace = match name {
            "tallies" => &self.store.tallies,
            "groups" => &self.store.groups,
            _ => &self.store.refused,
        };
        let mut readable = 0;
        for guard in keyspace.iter() {
            let (key, value) = guard.into_inner()?;
            let entry = (key.to_vec(), value.to_vec());
            if is_readable(&entry) {
                readable += 1;
            } else {
                self.found(Fault::Malformed(name), &entry.0);
                self.mend(name, &entry.0, None)?;
            }
        }
        Ok(readable)
    }
}

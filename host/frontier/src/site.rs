//! State kept for a site, which is a host with its port: values of plugins, and figures on its documents. Each value has an entry
//! of its own. It is written with the visit that sets it, and removed with the last known URI of the site.

use std::collections::BTreeMap;

use opilio_uri::Uri;
use quick_cache::sync::Cache;
use serde::{Deserialize, Serialize};

use crate::{
    FrontierError, KeptChange, KeptValues, RECORD_KEY_BYTES_MAX, keys,
    store::{Entries, Store, damaged, decode, read},
};

/// Sites whose state is held in memory. Most take less than a kilobyte.
const SITES_HELD_MAX: usize = 16 * 1024;

/// State kept for a site.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SiteRecord {
    /// Values that plugins keep with the site.
    pub kept: KeptValues,
    /// Figures on groups of the site's documents. The caller names the groups.
    pub figures: BTreeMap<String, GroupFigures>,
}

/// Sums over the visits of a group of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GroupFigures {
    /// Documents that have been visited.
    pub documents: u64,
    /// Visits that could be compared with a previous one.
    pub visits: u64,
    /// Of these, visits that found a change.
    pub changes: u64,
    /// Time between each of these visits and the one before it, in milliseconds.
    pub observed_ms: u64,
}

impl SiteRecord {
    /// Takes over an entry of `site_values`, or the removal of one.
    fn set_value(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), FrontierError> {
        let (plugin, name) =
            keys::from_site_value(key).ok_or_else(|| damaged("a malformed name", key))?;
        let value = value.map(|value| decode("a value kept for a site", key, value));
        self.kept.apply(KeptChange {
            plugin: plugin.to_owned(),
            name: name.to_owned(),
            value: value.transpose()?,
        });
        Ok(())
    }

    /// Takes over an entry of `site_figures`, or the removal of one.
    fn set_figures(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), FrontierError> {
        let group =
            keys::from_site_figures(key).ok_or_else(|| damaged("a malformed group", key))?;
        match value {
            Some(value) => {
                let figures = decode("figures on a site", key, value)?;
                self.figures.insert(group.to_owned(), figures);
            }
            None => drop(self.figures.remove(group)),
        }
        Ok(())
    }
}

/// The state of sites that were read last, by the start of their range, as it is in the store. Reading a site from the store takes
/// the longer the more visits have changed it. The scan of its keys passes all versions of each value that have not been written
/// out.
pub(crate) struct SiteCache(Cache<Vec<u8>, SiteRecord>);

impl SiteCache {
    pub(crate) fn new() -> Self {
        Self(Cache::new(SITES_HELD_MAX))
    }

    /// The state kept for the site of a URI.
    pub(crate) fn site(&self, store: &Store, uri: &Uri) -> Result<SiteRecord, FrontierError> {
        let key = uri.key();
        let mut site = SiteRecord::default();
        if key.len() > RECORD_KEY_BYTES_MAX {
            return Ok(site);
        }
        let (start, end) = keys::site_range(&key);
        if let Some(held) = self.0.get(&start) {
            return Ok(held);
        }
        let (values, _) = read(&store.site_values, &start, &end, usize::MAX)?;
        for (key, value) in values {
            site.set_value(&key, Some(&value))?;
        }
        let (figures, _) = read(&store.site_figures, &start, &end, usize::MAX)?;
        for (key, value) in figures {
            site.set_figures(&key, Some(&value))?;
        }
        self.0.insert(start, site.clone());
        Ok(site)
    }

    /// Updates what is held after entries of the two keyspaces have been written.
    pub(crate) fn update(&self, values: &Entries, figures: &Entries) {
        for (key, value) in values {
            self.change(key, |site| site.set_value(key, value.as_deref()));
        }
        for (key, value) in figures {
            self.change(key, |site| site.set_figures(key, value.as_deref()));
        }
    }

    fn change(&self, key: &[u8], set: impl FnOnce(&mut SiteRecord) -> Result<(), FrontierError>) {
        let length = key.iter().position(|&byte| byte == b')');
        let site = &key[..length.map_or(key.len(), |at| at + 1)];
        if let Some(mut held) = self.0.get(site) {
            match set(&mut held) {
                Ok(()) => self.0.insert(site.to_vec(), held),
                // The next read reports the error.
                Err(_) => drop(self.0.remove(site)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use opilio_uri::HopPath;

    use super::*;
    use crate::{Candidate, Frontier, FrontierConfig, KeptValue, Next, Outcome, Strategy, Success};

    fn uri(text: &str) -> Uri {
        Uri::parse(text).unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn figures(visits: u64) -> GroupFigures {
        GroupFigures {
            documents: 1,
            visits,
            changes: 0,
            observed_ms: 1_000 * visits,
        }
    }

    /// Visits a URI that is not known yet.
    fn visit(
        frontier: &mut Frontier,
        text: &str,
        group: &str,
        visits: u64,
    ) -> Result<(), FrontierError> {
        let hops = HopPath::parse("L").unwrap();
        let page = Candidate::new(uri(text), hops, Strategy::Snapshot);
        frontier.schedule(vec![page], at(0)).unwrap();
        let mut seconds = 0..1_000;
        let issued = seconds.find_map(|second| match frontier.next(at(second)).unwrap() {
            Next::Issue(issue) => Some((issue.ticket, at(second))),
            _ => None,
        });
        let (ticket, now) = issued.unwrap();
        let success = Success {
            kept_for_site: vec![KeptChange {
                plugin: "plugin".to_owned(),
                name: "name".to_owned(),
                value: Some(KeptValue {
                    version: 1,
                    value: "value".to_owned(),
                }),
            }],
            site_figures: BTreeMap::from([(group.to_owned(), figures(visits))]),
            ..Success::default()
        };
        let outcome = Outcome::Succeeded(Box::new(success));
        frontier.finished(ticket, outcome, now).map(drop)
    }

    #[test]
    fn values_and_figures_are_kept_until_the_last_uri_of_the_site_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Frontier::open(dir.path(), FrontierConfig::default()).unwrap();
        let mut frontier = open();
        visit(&mut frontier, "http://a.org/1", "host", 1).unwrap();
        let read = |frontier: &Frontier| frontier.site(&uri("http://a.org/")).unwrap();
        assert_eq!(read(&frontier).figures["host"], figures(1));
        visit(&mut frontier, "http://a.org/2", "host", 2).unwrap();
        let held = read(&frontier);
        drop(frontier);
        let mut frontier = open();
        assert_eq!(read(&frontier), held);
        let site = frontier.site(&uri("http://a.org/")).unwrap();
        let expected = BTreeMap::from([("host".to_owned(), figures(2))]);
        assert_eq!((site.figures, site.kept.iter().count()), (expected, 1));
        let other = frontier.site(&uri("http://a.org:8080/")).unwrap();
        assert_eq!(other, SiteRecord::default());
        for (text, groups) in [("http://a.org/1", 1), ("http://a.org/2", 0)] {
            assert!(frontier.forget(&uri(text), at(2_000)).unwrap());
            let site = frontier.site(&uri("http://a.org/")).unwrap();
            let values = site.kept.iter().count();
            assert_eq!((site.figures.len(), values), (groups, groups), "{text}");
        }
    }

    #[test]
    fn groups_without_a_name_change_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut frontier = Frontier::open(dir.path(), FrontierConfig::default()).unwrap();
        let refused = visit(&mut frontier, "http://a.org/", "", 1);
        assert!(
            matches!(refused, Err(FrontierError::Name { bytes: 0 })),
            "{refused:?}"
        );
        let site = frontier.site(&uri("http://a.org/")).unwrap();
        assert_eq!(site, SiteRecord::default());
    }
}

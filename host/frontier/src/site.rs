//! State kept for a site, which is a host with its port: values of plugins, and figures on its documents. Each value has an entry
//! of its own. It is written with the visit that sets it, and removed with the last known URI of the site.

use std::collections::BTreeMap;

use opilio_uri::Uri;
use serde::{Deserialize, Serialize};

use crate::{
    Error, Frontier, KeptChange, KeptValues, RECORD_KEY_BYTES_MAX,
    change::Change,
    keys,
    store::{damaged, decode, encode, read},
};

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

impl Frontier {
    /// The state kept for the site of a URI: its host, with the port if that is not the scheme's default.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn site(&self, uri: &Uri) -> Result<SiteRecord, Error> {
        let key = uri.key();
        let mut site = SiteRecord::default();
        if key.len() > RECORD_KEY_BYTES_MAX {
            return Ok(site);
        }
        let (start, end) = keys::site_range(&key);
        let (values, _) = read(&self.store.site_values, &start, &end, usize::MAX)?;
        for (key, value) in values {
            let (plugin, name) =
                keys::from_site_value(&key).ok_or_else(|| damaged("a malformed name", &key))?;
            site.kept.apply(KeptChange {
                plugin: plugin.to_owned(),
                name: name.to_owned(),
                value: Some(decode("a value kept for a site", &key, &value)?),
            });
        }
        let (figures, _) = read(&self.store.site_figures, &start, &end, usize::MAX)?;
        for (key, value) in figures {
            let group =
                keys::from_site_figures(&key).ok_or_else(|| damaged("a malformed group", &key))?;
            let figures = decode("figures on a site", &key, &value)?;
            site.figures.insert(group.to_owned(), figures);
        }
        Ok(site)
    }
}

impl Change<'_> {
    /// Keeps values and figures for the site of a record.
    pub(crate) fn keep_for_site(
        &mut self,
        record_key: &str,
        changes: Vec<KeptChange>,
        figures: &BTreeMap<String, GroupFigures>,
    ) -> Result<(), Error> {
        for change in changes {
            let key = keys::site_value(record_key, &change.plugin, &change.name);
            let value = change.value.as_ref().map(encode).transpose()?;
            self.site_values.insert(key, value);
        }
        for (group, figures) in figures {
            let key = keys::site_figures(record_key, group);
            self.site_figures.insert(key, Some(encode(figures)?));
        }
        Ok(())
    }
}

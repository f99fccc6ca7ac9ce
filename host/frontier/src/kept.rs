//! Storage of the values that plugins keep from visit to visit: with a URI, in its record, or with a site, in separate entries.
//! The caller decides on their meaning and their limits.

use opilio_uri::Uri;
use serde::{Deserialize, Serialize};

use crate::{
    Error, Frontier, KeptChange, KeptValues, RECORD_KEY_BYTES_MAX,
    change::Change,
    keys,
    store::{damaged, decode, encode, read},
};

/// Longest name of a plugin or of a value, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// A change evaluator's fingerprint of the last archived version, to compare the next one with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The bytes that the evaluator gave.
    pub bytes: Vec<u8>,
    /// Hash of the evaluator and its settings. An evaluator cannot use the fingerprint of another.
    pub evaluator: u64,
}

impl Frontier {
    /// The values that plugins keep for the site of a URI: its host, with the port if that is not the scheme's default.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn site_values(&self, uri: &Uri) -> Result<KeptValues, Error> {
        let key = uri.key();
        let mut kept = KeptValues::default();
        if key.len() > RECORD_KEY_BYTES_MAX {
            return Ok(kept);
        }
        let (start, end) = keys::site_range(&key);
        let (entries, _) = read(&self.store.sites, &start, &end, usize::MAX)?;
        for (key, value) in entries {
            let (plugin, name) =
                keys::from_site_value(&key).ok_or_else(|| damaged("a malformed name", &key))?;
            kept.apply(KeptChange {
                plugin: plugin.to_owned(),
                name: name.to_owned(),
                value: Some(decode("a value kept for a site", &key, &value)?),
            });
        }
        Ok(kept)
    }
}

impl Change<'_> {
    /// Applies these changes to the values kept for the site of a record.
    pub(crate) fn keep_for_site(
        &mut self,
        record_key: &str,
        changes: Vec<KeptChange>,
    ) -> Result<(), Error> {
        for change in changes {
            let key = keys::site_value(record_key, &change.plugin, &change.name);
            let value = change.value.as_ref().map(encode).transpose()?;
            self.sites.insert(key, value);
        }
        Ok(())
    }
}

/// Checks that keys can be made of these names.
pub(crate) fn check_names(changes: &[KeptChange]) -> Result<(), Error> {
    for name in changes.iter().flat_map(|one| [&one.plugin, &one.name]) {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains('\0') {
            return Err(Error::Name { bytes: name.len() });
        }
    }
    Ok(())
}

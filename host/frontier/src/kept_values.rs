//! Checks of the values that plugins keep from visit to visit: with a URI, in its record, or with a site (`site.rs`). The caller
//! decides on their meaning and their limits.

use serde::{Deserialize, Serialize};

use crate::{FrontierError, Success};

/// Longest name of a plugin, of a value or of a group of documents, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// A change evaluator's fingerprint of the last archived version, to compare the next one with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The bytes that the evaluator gave.
    pub bytes: Vec<u8>,
    /// Hash of the evaluator and its settings. An evaluator cannot use the fingerprint of another.
    pub evaluator: u64,
}

/// Checks that keys can be made of the names under which a visit keeps values.
pub(crate) fn check_names(success: &Success) -> Result<(), FrontierError> {
    let changes = success.visit.kept.iter().chain(&success.kept_for_site);
    let names = changes.flat_map(|change| [&change.plugin, &change.name]);
    for name in names.chain(success.site_figures.keys()) {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains('\0') {
            return Err(FrontierError::Name { bytes: name.len() });
        }
    }
    Ok(())
}

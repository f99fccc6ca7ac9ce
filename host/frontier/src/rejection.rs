//! Refusals: URIs that the scope refused, with the reason. They are kept for a bounded number of URIs, so that an operator can
//! ask for them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{FrontierError, OutOfScopeLink, change::WriteBatch, instant, keys, store::encode};

/// Longest reason that is kept, in bytes.
const REASON_BYTES_MAX: usize = 200;

/// Reason for which a URI was refused when it was last found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// The filter that decided, and its reason.
    pub reason: String,
    /// The page that linked to it.
    pub via: String,
    /// Time of the refusal.
    #[serde(with = "instant::serialised")]
    pub at: Timestamp,
}

/// Records the refused links of a page.
pub(crate) fn remember(
    change: &mut WriteBatch<'_>,
    page: &str,
    refused: Vec<OutOfScopeLink>,
) -> Result<(), FrontierError> {
    change.counters.statistics.refused += refused.len() as u64;
    for OutOfScopeLink { uri, reason } in refused {
        let key = keys::canonical(uri.as_str()).to_vec();
        let is_known =
            change.refused.contains_key(&key) || change.store.refused_uris.contains_key(&key)?;
        if !is_known {
            if change.counters.refusals >= change.config.refusals_max {
                continue;
            }
            change.counters.refusals += 1;
        }
        let rejection = Rejection {
            reason: cut(&reason).to_owned(),
            via: page.to_owned(),
            at: change.now,
        };
        change.refused.insert(key, Some(encode(&rejection)?));
    }
    Ok(())
}

/// Cuts a reason to at most [`REASON_BYTES_MAX`] bytes, at a whole character.
pub(crate) fn cut(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(REASON_BYTES_MAX)]
}

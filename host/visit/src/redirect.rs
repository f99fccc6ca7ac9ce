//! Final targets of seeds. The record of each seed, and of each URI that a seed redirected to, has the target of its last
//! redirect.

use opilio_frontier::{Frontier, FrontierError, UriRecord};
use opilio_uri::{Hop, Uri};

/// Most redirects of a seed that are followed. Longer chains are loops.
const STEPS_MAX: usize = 20;

/// Returns the redirect target for the record after an answer with this status. `target` is the answer's `Location`.
pub(crate) fn target_after(record: &UriRecord, status: i32, target: Option<Uri>) -> Option<String> {
    let is_seeds_way = record.seed || record.hop_path.hops().all(|hop| hop == Hop::Redirect);
    // A 304 does not replace the last answer.
    if !is_seeds_way || status == 304 {
        return record.redirect_target.clone();
    }
    target.map(|target| target.as_str().to_owned())
}

/// Returns the final target of a seed at its last visit: the last URI of its redirects, with its record if it was fetched.
///
/// # Errors
/// Returned if the store fails.
pub fn end_of(
    frontier: &Frontier,
    seed: &UriRecord,
) -> Result<Option<(Uri, Option<UriRecord>)>, FrontierError> {
    let (mut end, mut target) = (None, target_of(seed));
    for _ in 0..STEPS_MAX {
        let Some(uri) = target.take() else {
            break;
        };
        let record = frontier.record(&uri)?;
        target = record.as_ref().and_then(target_of);
        end = Some((uri, record));
    }
    Ok(end)
}

fn target_of(record: &UriRecord) -> Option<Uri> {
    Uri::parse(record.redirect_target.as_deref()?).ok()
}

//! Final targets of seeds. Each seed, and each URI that a seed redirected to, keeps the target of its last redirect. The target
//! is among the plugins' kept values of the URI, under a name that no plugin can have, so it is removed with the URI.

use opilio_fetch::Exchange;
use opilio_frontier::{Error, Frontier, KeptChange, KeptValue, UriRecord};
use opilio_uri::{Hop, Uri};

/// Owner of the value. No plugin has this name: plugin names are words joined by hyphens.
const OWNER: &str = ":redirect";

/// Name of the only value.
const NAME: &str = "target";

/// Version of the value's format.
const VERSION: u32 = 1;

/// Most redirects of a seed that are followed. Longer chains are loops.
const STEPS_MAX: usize = 20;

/// Returns the redirect target (`Location`) to keep, for a seed or a URI that a seed redirected to.
pub fn remember(
    record: &UriRecord,
    exchange: &Exchange,
    target: Option<Uri>,
) -> Option<KeptChange> {
    let is_seeds_way = record.seed || record.hop_path.hops().all(|hop| hop == Hop::Redirect);
    // A 304 does not replace the last answer.
    if !is_seeds_way
        || exchange.status() == 304
        || (target.is_none() && target_of(record).is_none())
    {
        return None;
    }
    Some(KeptChange {
        plugin: OWNER.to_owned(),
        name: NAME.to_owned(),
        value: target.map(|target| KeptValue {
            version: VERSION,
            value: target.as_str().to_owned(),
        }),
    })
}

/// Returns the final target of a seed at its last visit: the last URI of its redirects, with its record if it was fetched.
///
/// # Errors
/// Returned if the store fails.
pub fn end_of(
    frontier: &Frontier,
    seed: &UriRecord,
) -> Result<Option<(Uri, Option<UriRecord>)>, Error> {
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
    let kept = record.kept.get(OWNER, NAME)?;
    let known = kept.version == VERSION;
    known.then(|| Uri::parse(&kept.value).ok()).flatten()
}

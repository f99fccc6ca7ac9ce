//! Where a seed ends: each seed, and each URI that a seed has redirected to, remembers where its last answer redirected to.
//! It stands among what plugins keep with a URI, under a name that none can have, so it goes with the URI.

use opilio_fetch::Exchange;
use opilio_frontier::{Error, Frontier, KeptChange, KeptValue, UriRecord};
use opilio_uri::{Hop, Uri};

/// No plugin is called so: their names are words joined by hyphens.
const OWNER: &str = ":redirect";

/// The one value.
const NAME: &str = "target";

/// Of the value's form.
const VERSION: u32 = 1;

/// A seed that redirects more often has gone round in circles.
const STEPS_MAX: usize = 20;

/// Where a URI's answer redirects to (`Location`), of one that is asked for because it is a seed.
pub fn remember(
    record: &UriRecord,
    exchange: &Exchange,
    target: Option<Uri>,
) -> Option<KeptChange> {
    let is_seeds_way = record.seed || record.hop_path.hops().all(|hop| hop == Hop::Redirect);
    // Not modified is no answer of its own.
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

/// Where a seed ended when it was last asked for: the last URI of its redirects, with its record where it has been fetched.
///
/// # Errors
/// Where the store fails.
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

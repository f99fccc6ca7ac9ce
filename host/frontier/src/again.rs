//! URIs that wait evaluators want to be asked about again before their wait is over, since what a visit costs may have
//! changed by then. Such a URI waits until then only; when it comes out, it is issued to be considered and not to be visited,
//! unless somebody has moved it meanwhile. What it is that stands in its queue is kept among what plugins keep with the
//! URI, under a name that none can have: gone with the URI, and no new format of the store.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    KeptChange, KeptValue, UriRecord,
    instant::{self, Millis},
    keys::Rank,
};

/// No plugin is called so: their names are words joined by hyphens.
const OWNER: &str = ":again";

/// The one value: when to ask and when to visit, in milliseconds.
const NAME: &str = "again";

/// Of the value's form.
const VERSION: u32 = 1;

/// When a URI is due that waits so long from now on and is asked about before: when it is asked about. Left in the record.
pub(crate) fn schedule(
    record: &mut UriRecord,
    now: Timestamp,
    wait: Duration,
    ask_again: Option<Duration>,
) -> Millis {
    let visit = instant::after(now, wait);
    let ask = ask_again.map(|ask_again| instant::after(now, ask_again));
    let ask = ask.filter(|ask| *ask < visit);
    record.kept.apply(KeptChange {
        plugin: OWNER.to_owned(),
        name: NAME.to_owned(),
        value: ask.map(|ask| KeptValue {
            version: VERSION,
            value: format!("{ask} {visit}"),
        }),
    });
    ask.unwrap_or(visit)
}

/// When a URI that comes out at this rank is to be visited, where it has come out to be asked about; none where it has been
/// moved.
pub(crate) fn visit_after(record: &UriRecord, rank: Rank) -> Option<Millis> {
    let kept = record.kept.get(OWNER, NAME)?;
    let (ask, visit) = kept.value.split_once(' ')?;
    let is_this = kept.version == VERSION && ask.parse() == Ok(rank.due);
    visit.parse().ok().filter(|_| is_this)
}

//! URIs that wait evaluators want to be asked about again before their wait is over, since what a visit costs may have
//! changed by then. Such a URI waits until then only; when it comes out, it is issued to be considered and not to be visited,
//! unless somebody has moved it meanwhile. News of it are a change of circumstances: they have it considered at once.
//!
//! What it is that stands in its queue is kept among what plugins keep with the URI, under a name that none can have: gone
//! with the URI, and no new format of the store.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    Directive, KeptChange, KeptValue, UriRecord,
    instant::{self, Millis},
    keys::Rank,
};

/// No plugin is called so: their names are words joined by hyphens.
const OWNER: &str = ":again";

/// The one value: when to ask and when to visit, in milliseconds.
const NAME: &str = "again";

/// Of the value's form.
const VERSION: u32 = 1;

/// When a URI is due that waits so long from now on and is asked about before, or where there is news: when it is asked about.
/// Left in the record.
pub(crate) fn schedule(
    record: &mut UriRecord,
    now: Timestamp,
    wait: Duration,
    ask_again: Option<Duration>,
) -> Millis {
    let visit = instant::after(now, wait);
    let ask = ask_again.map(|ask_again| instant::after(now, ask_again));
    // Nobody asks when it is time for the visit, but there may be news before.
    let ask = ask.map(|ask| ask.min(visit));
    keep(record, ask.map(|ask| (ask, visit)));
    ask.unwrap_or(visit)
}

/// There is news: a URI that waits to be asked about is asked about then, and will be visited when it would have been.
pub(crate) fn hasten(record: &mut UriRecord, ask: Millis, visit: Millis) {
    keep(record, Some((ask, visit)));
}

/// What is said to have changed is asked about before what is merely due, and visited before it where that is believed: a crawl
/// that is behind would come to it as much later. Who is not asked cannot believe: some lists name everything, every day.
pub(crate) const TOLD: Directive = Directive::Medium;

/// That of a URI which has been asked about: it keeps what it was told to go before only if it is visited for that.
pub(crate) fn directive(before: Directive, is_told: bool) -> Directive {
    match before {
        TOLD if !is_told => Directive::Normal,
        Directive::Normal if is_told => TOLD,
        other => other,
    }
}

fn keep(record: &mut UriRecord, times: Option<(Millis, Millis)>) {
    record.kept.apply(KeptChange {
        plugin: OWNER.to_owned(),
        name: NAME.to_owned(),
        value: times.map(|(ask, visit)| KeptValue {
            version: VERSION,
            value: format!("{ask} {visit}"),
        }),
    });
}

/// When a URI that comes out at this rank is to be visited, where it has come out to be asked about; none where it has been
/// moved.
pub(crate) fn visit_after(record: &UriRecord, rank: Rank) -> Option<Millis> {
    let kept = record.kept.get(OWNER, NAME)?;
    let (ask, visit) = kept.value.split_once(' ')?;
    let is_this = kept.version == VERSION && ask.parse() == Ok(rank.due);
    visit.parse().ok().filter(|_| is_this)
}

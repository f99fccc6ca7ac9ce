//! Reconsideration: a call of a wait evaluator before the wait of a URI is over. Wait evaluators ask for it, because the cost of
//! a visit may have changed by then. Such a URI is due at the time of the call. When it is issued, it is considered and not
//! visited, unless a candidate or an operator has moved it meanwhile. News of the URI changes the circumstances: it is then
//! considered at once.
//!
//! The two times are stored among the values that plugins keep with the URI, under a name that no plugin can have. They disappear
//! with the URI, and need no new format of the store.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    Directive, KeptChange, KeptValue, UriRecord,
    instant::{self, Millis},
    keys::Rank,
};

/// Owner of the kept value. No plugin has this name: plugin names are words joined by hyphens.
const OWNER: &str = ":again";

/// Name of the only value: time of the call and time of the visit, in milliseconds.
const NAME: &str = "again";

/// Version of the value's form.
const VERSION: u32 = 1;

/// Records the wait of a URI, and returns its due time. That is the next reconsideration, or the visit if there is no
/// reconsideration before it.
pub(crate) fn schedule(
    record: &mut UriRecord,
    now: Timestamp,
    wait: Duration,
    ask_again: Option<Duration>,
) -> Millis {
    let visit = instant::after(now, wait);
    let ask = ask_again.map(|ask_again| instant::after(now, ask_again));
    // At the time of the visit nobody is asked, but there may be news before.
    let ask = ask.map(|ask| ask.min(visit));
    keep(record, ask.map(|ask| (ask, visit)));
    ask.unwrap_or(visit)
}

/// Records that there is news: the URI is reconsidered at `ask`. The time of its visit stays.
pub(crate) fn hasten(record: &mut UriRecord, ask: Millis, visit: Millis) {
    keep(record, Some((ask, visit)));
}

/// Directive of a URI with news. It is reconsidered before URIs that are merely due, and visited before them if the evaluator
/// believes the news. Without this directive, a crawl that is behind would come to it as much later. A URI that is not
/// reconsidered does not get the directive, because nobody checks the news: some lists name every URI, every day.
pub(crate) const TOLD: Directive = Directive::Medium;

/// Directive of a URI after its reconsideration: [`TOLD`] only if it is to be visited because of the news. Higher ones stay.
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

/// Time of the visit of a URI that was issued at this rank to be reconsidered. `None` if it was issued for a visit, because it
/// has been moved.
pub(crate) fn visit_after(record: &UriRecord, rank: Rank) -> Option<Millis> {
    let kept = record.kept.get(OWNER, NAME)?;
    let (ask, visit) = kept.value.split_once(' ')?;
    let is_this = kept.version == VERSION && ask.parse() == Ok(rank.due);
    visit.parse().ok().filter(|_| is_this)
}

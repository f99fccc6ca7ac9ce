//! Reconsideration: a call of a wait evaluator before the wait of a URI is over. Wait evaluators ask for it, because the cost of
//! a visit may have changed by then. Such a URI is due at the time of the call. When it is issued, it is considered and not
//! visited, unless a candidate or an operator has moved it meanwhile. News of the URI changes the circumstances: it is then
//! considered at once.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    Directive, PlannedReconsideration, UriRecord,
    instant::{self, Millis},
    keys::Rank,
};

/// Records the wait of a URI, and returns its due time. That is the next reconsideration, or the visit if there is no
/// reconsideration before it.
pub(crate) fn schedule(
    record: &mut UriRecord,
    now: Timestamp,
    wait: Duration,
    ask_again: Option<Duration>,
) -> Millis {
    let visit = instant::after(now, wait);
    // At the time of the visit no evaluator is called, but there may be news before.
    let at = ask_again.map(|ask_again| instant::after(now, ask_again).min(visit));
    record.reconsideration = at.map(|at| planned(at, visit));
    at.unwrap_or(visit)
}

/// Records that there is news: the URI is reconsidered at `at`. The time of its visit stays.
pub(crate) fn hasten(record: &mut UriRecord, at: Millis, visit: Millis) {
    record.reconsideration = Some(planned(at, visit));
}

fn planned(at: Millis, visit: Millis) -> PlannedReconsideration {
    PlannedReconsideration {
        at: instant::timestamp(at),
        visit: instant::timestamp(visit),
    }
}

/// Directive of a URI with news. It is reconsidered before URIs that are merely due. It is also visited before them, if the
/// evaluator shortens the wait because of the news. Without this directive, a crawl that is behind its schedule would reach the
/// URI late. A URI that is not reconsidered does not get the directive, because no evaluator checks the news: some lists name
/// every URI, every day.
pub(crate) const NEWS_DIRECTIVE: Directive = Directive::Medium;

/// Directive of a URI after its reconsideration: [`NEWS_DIRECTIVE`] only if it is to be visited because of the news. A higher
/// directive stays.
pub(crate) fn directive(before: Directive, has_news: bool) -> Directive {
    match before {
        NEWS_DIRECTIVE if !has_news => Directive::Normal,
        Directive::Normal if has_news => NEWS_DIRECTIVE,
        other => other,
    }
}

/// Time of the visit of a URI that was issued at this rank to be reconsidered. `None` if it was issued for a visit, because it
/// has been moved.
pub(crate) fn visit_after(record: &UriRecord, rank: Rank) -> Option<Millis> {
    let planned = record.reconsideration?;
    (instant::floor(planned.at) == rank.due).then(|| instant::floor(planned.visit))
}

//! Latest time of the next visit of a document that has not been compared with an earlier version yet. The promise holds even
//! if prices rise. Otherwise the visit could be postponed again and again, and the document's change rate would stay unknown.

use opilio_plugin::prelude::*;

/// Name of the promise that is kept with the URI, in milliseconds since 1970.
pub(crate) const PROMISE: &str = "promise";

/// Version of the value's format.
pub(crate) const PROMISE_VERSION: u32 = 1;

/// Latest due time, in milliseconds since 1970. A visit stores `due` as the promise and returns it. A reconsideration returns
/// the stored promise, if there is one.
pub(crate) fn latest_due(visit: &Visit, due: u64) -> u64 {
    let kept = visit
        .attribute(PROMISE)
        .filter(|kept| kept.version == PROMISE_VERSION && visit.status() == 0);
    let promised = kept.and_then(|kept| kept.value.parse().ok());
    promised.unwrap_or_else(|| {
        visit.set_attribute(PROMISE, &due.to_string());
        due
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use opilio_plugin::KeptValue;
    use opilio_plugin::testing::{KeptFacts, VisitFacts, visit};

    /// `cases/budgeted.json` tests that a reconsideration returns the promise.
    #[test]
    fn a_visit_replaces_the_promise() {
        let earlier = KeptValue {
            version: PROMISE_VERSION,
            value: "30".to_owned(),
        };
        let visited = visit(VisitFacts {
            status: 200,
            kept: KeptFacts {
                uri: [(PROMISE.to_owned(), earlier)].into(),
                ..KeptFacts::default()
            },
            ..VisitFacts::default()
        });
        assert_eq!(latest_due(&visited, 70), 70);
        assert_eq!(visited.attribute(PROMISE).unwrap().value, "70");
    }
}

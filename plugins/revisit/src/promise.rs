//! Latest time of the next visit of a document that has never been compared with itself. The promise holds even if prices rise.
//! Otherwise such a document could be postponed again and again, and never show how it changes.

use opilio_plugin::prelude::*;

/// Name under which a promise is kept with the URI, in milliseconds since 1970.
pub(crate) const PROMISE: &str = "promise";

/// Version of its form.
pub(crate) const PROMISE_VERSION: u32 = 1;

/// The time promised at the last visit. A visit promises `due` and keeps it; a reconsideration keeps nothing.
pub(crate) fn latest(visit: &Visit, due: u64) -> u64 {
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

    /// `cases/budgeted.json` tests that the promise holds until then.
    #[test]
    fn a_visit_promises_anew() {
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
        assert_eq!(latest(&visited, 70), 70);
        assert_eq!(visited.attribute(PROMISE).unwrap().value, "70");
    }
}

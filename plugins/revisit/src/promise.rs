//! What a document was promised that has never been compared with itself: when it is visited next at the latest. However
//! dear visits become it keeps that time, for put off again and again it would never show what it is.

use opilio_plugin::prelude::*;

/// Under this name a promise is kept with the URI: milliseconds since 1970.
pub(crate) const PROMISE: &str = "promise";

/// Of its form.
pub(crate) const PROMISE_VERSION: u32 = 1;

/// The time promised at the last visit; at a visit this one is promised. What would be promised without a visit is not kept.
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

    /// That it holds until then is in `cases/budgeted.json`.
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

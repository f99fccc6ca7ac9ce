//! What a document was promised that has never been compared with itself: when it is visited next at the latest. However
//! dear visits become it keeps that time, for put off again and again it would never show what it is.

use opilio_plugin::prelude::*;

/// Under this name a promise is kept with the URI: milliseconds since 1970.
pub(crate) const PROMISE: &str = "promise";

/// Of its form.
pub(crate) const PROMISE_VERSION: u32 = 1;

/// The time promised at the last visit; at a visit, or where none was, this one is promised.
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
    use opilio_plugin::testing::{VisitFacts, visit};

    /// That it holds until then is in `cases/budgeted.json`.
    #[test]
    fn a_visit_promises_anew() {
        let visited = visit(VisitFacts {
            status: 200,
            ..VisitFacts::default()
        });
        for due in [70, 90] {
            assert_eq!(latest(&visited, due), due);
            assert_eq!(visited.attribute(PROMISE).unwrap().value, due.to_string());
        }
    }
}

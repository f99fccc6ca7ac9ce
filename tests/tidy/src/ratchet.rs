//! A count of errors that may decrease but not increase. The limit is a constant in the module of the check.
//!
//! If the count has decreased by more than [`SLACK`], the check also fails until the limit is lowered. Otherwise new errors could
//! replace those that were fixed.

use crate::recency;

/// Errors that a failure lists, the newest first.
const LISTED_MAX: usize = 12;

/// Allowed difference between a count and its limit, so that small changes need no new limit.
const SLACK: usize = 25;

/// The limit of one count.
pub(crate) struct Ratchet {
    /// Name of the constant with the limit, and its file.
    pub(crate) constant: &'static str,
    /// The limit: the present count.
    pub(crate) max: usize,
    /// The counted error, in the plural.
    pub(crate) faults: &'static str,
    /// The fix for one error.
    pub(crate) fix: &'static str,
}

/// A line with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offender {
    pub(crate) path: String,
    /// Line number, from 1.
    pub(crate) line: usize,
    /// The line without surrounding blanks.
    pub(crate) text: String,
}

impl Ratchet {
    /// Fails if there are more than `max` offenders, or far fewer.
    pub(crate) fn hold(&self, offenders: Vec<Offender>) -> Result<(), String> {
        let Ratchet {
            constant,
            max,
            faults,
            fix,
        } = self;
        let found = offenders.len();
        if found + SLACK < *max {
            return Err(format!(
                "{found} {faults}: {} fewer than before.\nfix: set {constant} to {found}",
                max - found
            ));
        }
        if found <= *max {
            return Ok(());
        }
        let more = found - max;
        let listed: String = recency::newest_first(offenders)
            .iter()
            .take(more.clamp(3, LISTED_MAX))
            .map(|it| format!("  {}:{}: {}\n", it.path, it.line, it.text))
            .collect();
        Err(format!(
            "{found} {faults}: {more} more than {constant} allows. The newest:\n{listed}fix: {fix}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATCHET: Ratchet = Ratchet {
        constant: "SAMPLE_MAX (here)",
        max: SLACK + 2,
        faults: "samples",
        fix: "remove it",
    };

    fn offenders(count: usize) -> Vec<Offender> {
        let offender = |line| Offender {
            path: "no/such/file.rs".to_owned(),
            line,
            text: "text".to_owned(),
        };
        (1..=count).map(offender).collect()
    }

    #[test]
    fn the_present_count_passes() {
        assert_eq!(RATCHET.hold(offenders(SLACK + 2)), Ok(()));
        assert_eq!(RATCHET.hold(offenders(2)), Ok(()));
    }

    #[test]
    fn one_more_fails_with_its_place_and_the_fix() {
        let message = RATCHET.hold(offenders(SLACK + 3)).expect_err("one more");
        assert!(
            message.contains("no/such/file.rs:1: text") && message.contains("fix: remove it"),
            "{message}"
        );
    }

    #[test]
    fn far_fewer_fail_until_the_limit_is_lowered() {
        let message = RATCHET.hold(offenders(1)).expect_err("far fewer");
        assert!(message.contains("set SAMPLE_MAX (here) to 1"), "{message}");
    }
}

//! Shares of a rate, such as bytes a second, among nodes. The leader divides by demand. A share grows only after those that shrink
//! for it have been confirmed, so that all together never exceed the rate. No I/O and no clock.

use std::collections::BTreeMap;

/// The shares of a rate.
#[derive(Debug, Clone)]
pub struct RateShares {
    total: u64,
    /// The most that each node may use at present: its last confirmed share, or a larger one that it may have read.
    used: BTreeMap<String, u64>,
}

impl RateShares {
    /// Shares of a rate. `used` has what nodes may use already, such as the shares that an earlier leader gave.
    #[must_use]
    pub fn new(total: u64, used: BTreeMap<String, u64>) -> Self {
        Self { total, used }
    }

    /// Changes the rate, from the next division on.
    pub fn set_total(&mut self, total: u64) {
        self.total = total;
    }

    /// Divides the rate among nodes by what they want, evenly where that is too much. `None` wants as much as possible. Returns
    /// the shares to hand out now. Call it again after confirmations: shares may still grow.
    pub fn divide(&mut self, wants: &BTreeMap<String, Option<u64>>) -> BTreeMap<String, u64> {
        let goals = even_parts(self.total, wants);
        let mut shares = BTreeMap::new();
        // Shrink first: what a node may still use counts until it confirms.
        let mut free = self.total.saturating_sub(self.used.values().sum());
        for (node, goal) in goals {
            let used = self.used.get(&node).copied().unwrap_or_default();
            let growth = goal.saturating_sub(used).min(free);
            free -= growth;
            let share = goal.min(used + growth);
            // The node may read a larger share at any time from now on.
            self.used.insert(node.clone(), used.max(share));
            shares.insert(node, share);
        }
        shares
    }

    /// Notes that a node uses no more than this share from now on.
    pub fn confirm(&mut self, node: &str, share: u64) {
        if let Some(used) = self.used.get_mut(node) {
            *used = share.min(*used);
        }
    }

    /// Notes that a node is gone, after its session has ended.
    pub fn remove(&mut self, node: &str) {
        self.used.remove(node);
    }

    /// The most that all nodes may use together at present.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used.values().sum()
    }
}

/// Divides a total by wants: those who want less than an even part get what they want, the others share the rest.
fn even_parts(total: u64, wants: &BTreeMap<String, Option<u64>>) -> BTreeMap<String, u64> {
    let mut by_want: Vec<(&String, u64)> = wants
        .iter()
        .map(|(node, want)| (node, want.unwrap_or(u64::MAX)))
        .collect();
    by_want.sort_by_key(|(_, want)| *want);
    let mut rest = total;
    let mut parts = BTreeMap::new();
    let mut waiting = by_want.len() as u64;
    for (node, want) in by_want {
        let part = want.min(rest / waiting);
        parts.insert(node.clone(), part);
        rest -= part;
        waiting -= 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wants(list: &[(&str, Option<u64>)]) -> BTreeMap<String, Option<u64>> {
        list.iter()
            .map(|(node, want)| ((*node).to_owned(), *want))
            .collect()
    }

    fn shares(list: &[(&str, u64)]) -> BTreeMap<String, u64> {
        list.iter()
            .map(|(node, share)| ((*node).to_owned(), *share))
            .collect()
    }

    #[test]
    fn a_share_grows_after_another_has_shrunk() {
        let mut rate = RateShares::new(90, BTreeMap::new());
        assert_eq!(rate.divide(&wants(&[("a", None)])), shares(&[("a", 90)]));
        let both = wants(&[("a", None), ("b", Some(30)), ("c", None)]);
        assert_eq!(rate.divide(&both), shares(&[("a", 30), ("b", 0), ("c", 0)]));
        rate.confirm("a", 30);
        assert_eq!(
            rate.divide(&both),
            shares(&[("a", 30), ("b", 30), ("c", 30)])
        );
        rate.remove("c");
        assert_eq!(
            rate.divide(&wants(&[("a", None), ("b", Some(10))])),
            shares(&[("a", 60), ("b", 10)])
        );
    }

    proptest! {
        #[test]
        fn all_together_never_exceed_the_rate_and_reach_it(
            total in 1u64..100_000, steps in prop::collection::vec((0usize..4, prop::option::of(0u64..50_000), prop::bool::ANY), 1..60),
        ) {
            let names = ["a", "b", "c", "d"];
            let mut rate = RateShares::new(total, BTreeMap::new());
            let mut wanted: BTreeMap<String, Option<u64>> = wants(&[("a", None)]);
            // What each node really uses: an old share until it has read the new one.
            let mut using: BTreeMap<String, u64> = BTreeMap::new();
            for (node, want, reads) in steps {
                wanted.insert(names[node].to_owned(), want);
                let given = rate.divide(&wanted);
                if reads {
                    for (node, share) in given {
                        using.insert(node.clone(), share);
                        rate.confirm(&node, share);
                    }
                }
                prop_assert!(using.values().sum::<u64>() <= total);
                prop_assert!(rate.used() <= total);
            }
            wanted.insert("a".to_owned(), None);
            for _ in 0..2 {
                for (node, share) in rate.divide(&wanted) {
                    rate.confirm(&node, share);
                }
            }
            prop_assert_eq!(rate.used(), total);
        }
    }
}

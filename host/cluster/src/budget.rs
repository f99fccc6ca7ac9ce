//! Budgets of a whole crawl, such as documents or bytes. Nodes take parts of the remaining budget and spend them, so that single
//! documents need no messages. No I/O and no clock; `budgets.rs` stores the account in the job's bucket.
//!
//! The sum that all nodes spend never exceeds the total, and reaches it if there is enough to do. Meanwhile the reported sum may be
//! less than the true sum, at most by the open parts of the nodes: at most half of the budget that was left when they took them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The account of a budget. Holders report totals since they began, so every report can be repeated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetAccount {
    total: u64,
    /// Spent by holders that were closed.
    closed: u64,
    holders: BTreeMap<String, HolderAccount>,
}

/// Totals that a holder has taken and spent since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct HolderAccount {
    taken: u64,
    spent: u64,
}

/// The reason why an account was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// A holder reports more than it has taken.
    #[error(
        "{holder} reports {spent} as spent, but has taken {taken}: take a part before spending it"
    )]
    Overspent {
        /// The holder.
        holder: String,
        /// The total that the holder reports as spent.
        spent: u64,
        /// The total that the holder has taken.
        taken: u64,
    },
    /// The new budget is smaller than the sum of spent and taken amounts.
    #[error(
        "the budget cannot become {total}: {committed} were spent or handed out; write {committed} or more"
    )]
    BelowCommitted {
        /// The new total.
        total: u64,
        /// Sum of the spent and the open amounts.
        committed: u64,
    },
}

impl BudgetAccount {
    /// Creates an account of which nothing is spent.
    #[must_use]
    pub fn new(total: u64) -> Self {
        Self {
            total,
            ..Self::default()
        }
    }

    /// The budget.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the reported sum of spent amounts. The true sum is between this and this plus [`Self::open`].
    #[must_use]
    pub fn spent(&self) -> u64 {
        self.closed
            + self
                .holders
                .values()
                .map(|holder| holder.spent)
                .sum::<u64>()
    }

    /// Returns the amount that holders have taken and not reported as spent.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.holders
            .values()
            .map(|holder| holder.taken - holder.spent)
            .sum()
    }

    /// Returns the amount that is neither spent nor taken.
    #[must_use]
    pub fn left(&self) -> u64 {
        let committed = self.spent().saturating_add(self.open());
        self.total.saturating_sub(committed)
    }

    /// Returns the total that a holder has taken since it began.
    #[must_use]
    pub fn taken(&self, holder: &str) -> u64 {
        self.holders.get(holder).map_or(0, |holder| holder.taken)
    }

    /// Records that a holder has spent the total `spent` since it began, and keeps parts up to the total `taken`. The remainder of
    /// its parts is released for others. If the holder has spent more than `taken`, for instance because of a large document, then
    /// `spent` counts as taken.
    ///
    /// This is for holders that are one process and know exactly what they have taken. So a lost answer loses nothing of the
    /// budget.
    pub fn report(&mut self, holder: &str, spent: u64, taken: u64) {
        let account = self.holders.entry(holder.to_owned()).or_default();
        account.spent = account.spent.max(spent);
        account.taken = taken.max(account.spent);
    }

    /// Changes the budget to this total, or to the sum of spent and taken amounts if that is greater.
    pub fn approach_total(&mut self, total: u64) {
        self.total = total.max(self.spent().saturating_add(self.open()));
    }

    /// Takes a part for a holder, such as a session, and returns the total that the holder has taken since it began. `known` is
    /// this total according to the holder. If the account has a greater total, the answer to an earlier request was lost, and
    /// nothing is taken.
    ///
    /// A part is at most `wanted`, and at most an even share among `nodes` of half of the remaining budget, but at least 1 if
    /// anything is left. So parts become smaller towards the end, and no node keeps a large remainder.
    pub fn take(&mut self, holder: &str, known: u64, wanted: u64, nodes: u64) -> u64 {
        let left = self.left();
        let fair = (left / (2 * nodes.max(1))).max(1);
        let part = wanted.min(fair).min(left);
        let taken = self.taken(holder);
        if taken > known || part == 0 {
            return taken;
        }
        let account = self.holders.entry(holder.to_owned()).or_default();
        account.taken += part;
        account.taken
    }

    /// Records the total that a holder has spent since it began.
    ///
    /// # Errors
    /// The holder has not taken so much.
    pub fn spend(&mut self, holder: &str, spent: u64) -> Result<(), BudgetError> {
        let taken = self.taken(holder);
        if spent > taken {
            let holder = holder.to_owned();
            return Err(BudgetError::Overspent {
                holder,
                spent,
                taken,
            });
        }
        if let Some(account) = self.holders.get_mut(holder) {
            account.spent = account.spent.max(spent);
        }
        Ok(())
    }

    /// Closes a holder that has spent this total since it began, and releases the remainder of its parts. Closing it again has no
    /// effect.
    ///
    /// # Errors
    /// The holder has not taken so much.
    pub fn close(&mut self, holder: &str, spent: u64) -> Result<(), BudgetError> {
        if !self.holders.contains_key(holder) {
            return Ok(());
        }
        self.spend(holder, spent)?;
        if let Some(account) = self.holders.remove(holder) {
            self.closed += account.spent;
        }
        Ok(())
    }

    /// Changes the budget.
    ///
    /// # Errors
    /// More was spent or taken already.
    pub fn set_total(&mut self, total: u64) -> Result<(), BudgetError> {
        let committed = self.spent() + self.open();
        if total < committed {
            return Err(BudgetError::BelowCommitted { total, committed });
        }
        self.total = total;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_documents_go_to_the_node_that_has_work() {
        let mut account = BudgetAccount::new(100);
        let mut taken = 0;
        loop {
            let sum = account.take("busy", taken, 1_000, 4);
            if sum == taken {
                break;
            }
            taken = sum;
            account.spend("busy", taken).unwrap();
        }
        assert_eq!((taken, account.spent(), account.left()), (100, 100, 0));
    }

    #[test]
    fn the_unspent_part_of_a_dead_node_is_released() {
        let mut account = BudgetAccount::new(100);
        assert_eq!(account.take("dies", 0, 50, 1), 50);
        account.spend("dies", 10).unwrap();
        assert_eq!(
            (account.spent(), account.open(), account.left()),
            (10, 40, 50)
        );
        for _ in 0..2 {
            account.close("dies", 15).unwrap();
            assert_eq!(
                (account.spent(), account.open(), account.left()),
                (15, 0, 85)
            );
        }
    }

    #[test]
    fn a_request_whose_answer_was_lost_is_carried_out_once() {
        let mut account = BudgetAccount::new(1_000);
        assert_eq!(account.take("a", 0, 20, 1), 20);
        assert_eq!(account.take("a", 0, 20, 1), 20);
        assert_eq!(account.take("a", 20, 20, 1), 40);
        account.spend("a", 30).unwrap();
        account.spend("a", 30).unwrap();
        assert_eq!((account.spent(), account.open()), (30, 10));
    }

    #[test]
    fn a_process_reports_what_it_keeps_and_the_remainder_is_released() {
        let mut account = BudgetAccount::new(100);
        assert_eq!(account.take("a", 0, 1_000, 1), 50);
        account.report("a", 20, 50);
        assert_eq!((account.spent(), account.left()), (20, 50));
        // The process has nothing left to do.
        account.report("a", 20, 20);
        assert_eq!((account.open(), account.left()), (0, 80));
        // A document exceeds the part.
        account.report("a", 130, 20);
        assert_eq!(
            (account.spent(), account.open(), account.left()),
            (130, 0, 0)
        );
        // Another process continues the part from an earlier state.
        account.report("a", 90, 0);
        assert_eq!((account.spent(), account.taken("a")), (130, 130));
    }

    #[test]
    fn a_budget_shrinks_when_parts_are_released() {
        let mut account = BudgetAccount::new(100);
        account.take("a", 0, 1_000, 1);
        account.report("a", 10, 50);
        account.approach_total(30);
        assert_eq!((account.total(), account.left()), (50, 0));
        account.report("a", 10, 10);
        account.approach_total(30);
        assert_eq!((account.total(), account.left()), (30, 20));
    }

    #[test]
    fn an_impossible_report_is_refused_and_changes_nothing() {
        let mut account = BudgetAccount::new(10);
        account.take("a", 0, 2, 1);
        let before = account.clone();
        let error = account.spend("a", 3).unwrap_err().to_string();
        assert!(
            error.starts_with("a reports 3 as spent, but has taken 2"),
            "{error}"
        );
        assert!(account.close("a", 3).is_err());
        assert!(account.set_total(1).is_err());
        assert_eq!(account, before);
    }

    proptest! {
        /// In every history, the true sum never exceeds the total, and exceeds the reported sum at most by the open parts.
        #[test]
        fn the_true_sum_is_between_the_reported_sum_and_that_plus_open_parts(
            total in 0u64..10_000, steps in prop::collection::vec((0u8..4, 0usize..5, 0u64..500), 0..200),
        ) {
            let mut account = BudgetAccount::new(total);
            let (mut taken, mut used, mut life) = ([0_u64; 5], [0_u64; 5], [0; 5]);
            let mut truly_spent = 0;
            for (step, node, amount) in steps {
                let holder = format!("n{node}-{}", life[node]);
                match step {
                    0 => {
                        let left = account.left();
                        let sum = account.take(&holder, taken[node], amount, 5);
                        prop_assert!(sum - taken[node] <= (left / 10).max(1));
                        taken[node] = sum;
                    }
                    1 => {
                        let amount = amount.min(taken[node] - used[node]);
                        used[node] += amount;
                        truly_spent += amount;
                    }
                    2 => account.spend(&holder, used[node]).unwrap(),
                    _ => {
                        account.close(&holder, used[node]).unwrap();
                        (taken[node], used[node]) = (0, 0);
                        life[node] += 1;
                    }
                }
                prop_assert!(truly_spent <= total);
                prop_assert!(account.spent() <= truly_spent);
                prop_assert!(truly_spent <= account.spent() + account.open());
            }
        }
    }
}

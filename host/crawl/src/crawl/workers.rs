//! The workers of a crawl by their numbers: which are idle, and how many there may be, which may change while it runs.

use std::collections::BTreeSet;

/// Workers 1 to `count`. Those at work beyond a count that became smaller finish what they are at and are not idle again.
pub(super) struct Workers {
    count: usize,
    idle: BTreeSet<usize>,
    at_work: BTreeSet<usize>,
}

impl Workers {
    /// So many, all idle.
    pub(super) fn new(count: usize) -> Workers {
        Workers {
            count,
            idle: (1..=count).collect(),
            at_work: BTreeSet::new(),
        }
    }

    /// Has so many from now on.
    pub(super) fn set_count(&mut self, count: usize) {
        if self.count == count {
            return;
        }
        self.count = count;
        self.idle = (1..=count)
            .filter(|number| !self.at_work.contains(number))
            .collect();
    }

    /// Whether none is idle.
    pub(super) fn are_busy(&self) -> bool {
        self.idle.is_empty()
    }

    /// The idle worker of the lowest number goes to work; none where none is idle.
    pub(super) fn take(&mut self) -> Option<usize> {
        let number = self.idle.pop_first()?;
        self.at_work.insert(number);
        Some(number)
    }

    /// A worker is done with its work.
    pub(super) fn give_back(&mut self, number: usize) {
        self.at_work.remove(&number);
        if number <= self.count {
            self.idle.insert(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_come_and_go_while_others_are_at_work() {
        let mut workers = Workers::new(3);
        let taken: Vec<_> = std::iter::from_fn(|| workers.take()).collect();
        assert_eq!(taken, [1, 2, 3]);
        assert!(workers.are_busy());

        // Fewer: those at work finish, and two of them do not begin again.
        workers.set_count(1);
        workers.give_back(3);
        workers.give_back(1);
        assert_eq!(workers.take(), Some(1));
        assert_eq!(workers.take(), None);

        // More: nobody has the number of one that is still at work.
        workers.set_count(4);
        assert_eq!(workers.take(), Some(3));
        assert_eq!(workers.take(), Some(4));
        assert_eq!(workers.take(), None);
        workers.give_back(2);
        assert_eq!(workers.take(), Some(2));
    }
}

//! Workers of a crawl by number: the idle workers, and the maximum of workers. The maximum may change while the crawl runs.

use std::collections::BTreeSet;

/// Workers 1 to `count`. If the count becomes smaller, workers with greater numbers finish their work and do not become idle again.
pub(super) struct Workers {
    count: usize,
    idle: BTreeSet<usize>,
    at_work: BTreeSet<usize>,
}

impl Workers {
    /// Creates this number of workers, all idle.
    pub(super) fn new(count: usize) -> Workers {
        Workers {
            count,
            idle: (1..=count).collect(),
            at_work: BTreeSet::new(),
        }
    }

    /// Changes the number of workers.
    pub(super) fn set_count(&mut self, count: usize) {
        if self.count == count {
            return;
        }
        self.count = count;
        self.idle = (1..=count)
            .filter(|number| !self.at_work.contains(number))
            .collect();
    }

    /// Returns `true` if no worker is idle.
    pub(super) fn are_busy(&self) -> bool {
        self.idle.is_empty()
    }

    /// Takes the idle worker with the lowest number; `None` if no worker is idle.
    pub(super) fn take(&mut self) -> Option<usize> {
        let number = self.idle.pop_first()?;
        self.at_work.insert(number);
        Some(number)
    }

    /// Records that a worker has finished its work.
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
    fn the_number_of_workers_changes_while_workers_are_busy() {
        let mut workers = Workers::new(3);
        let taken: Vec<_> = std::iter::from_fn(|| workers.take()).collect();
        assert_eq!(taken, [1, 2, 3]);
        assert!(workers.are_busy());

        // Fewer workers: busy workers finish, and two of them take no further URI.
        workers.set_count(1);
        workers.give_back(3);
        workers.give_back(1);
        assert_eq!(workers.take(), Some(1));
        assert_eq!(workers.take(), None);

        // More workers: no new worker gets the number of a worker that is still busy.
        workers.set_count(4);
        assert_eq!(workers.take(), Some(3));
        assert_eq!(workers.take(), Some(4));
        assert_eq!(workers.take(), None);
        workers.give_back(2);
        assert_eq!(workers.take(), Some(2));
    }
}

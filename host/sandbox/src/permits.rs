//! Permits for instances. The pool has room for a fixed number of instances. If it is full, a call waits here instead of failing in
//! the pool.

use std::sync::{Condvar, Mutex, PoisonError};

/// A counting semaphore.
#[derive(Debug)]
pub(crate) struct Permits {
    free: Mutex<usize>,
    returned: Condvar,
}

/// A permit for one instance, until dropped.
#[derive(Debug)]
pub(crate) struct InstancePermit<'a>(&'a Permits);

impl Permits {
    pub(crate) fn new(all: usize) -> Self {
        Self {
            free: Mutex::new(all),
            returned: Condvar::new(),
        }
    }

    /// Waits for a permit.
    pub(crate) fn acquire(&self) -> InstancePermit<'_> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            free = self
                .returned
                .wait(free)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        InstancePermit(self)
    }
}

impl Drop for InstancePermit<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.returned.notify_one();
    }
}

//! The memory of one instance, and its limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wasmtime::ResourceLimiter;

/// Elements of all tables of an instance; components hold their functions in them.
const TABLE_ELEMENTS_MAX: usize = 100_000;

/// Memory of one instance, all its linear memories together.
#[derive(Debug)]
pub(crate) struct Memory {
    max: usize,
    bytes: usize,
    /// The largest size so far, in bytes.
    pub(crate) most: usize,
    /// Memory of all instances of the engine.
    all: Arc<AtomicUsize>,
}

impl Memory {
    /// Makes the memory of a new instance, which may grow to `max` bytes. `all` is the sum of all instances.
    pub(crate) fn new(max: usize, all: Arc<AtomicUsize>) -> Self {
        Self {
            max,
            bytes: 0,
            most: 0,
            all,
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Error for a guest that requests more memory than allowed. It traps instead of returning -1, because hardly any guest handles a
/// failed allocation. This error shows the size of the request; a later panic of the guest would not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("asked for {wanted} bytes of memory, {max} are allowed")]
pub(crate) struct MemoryExceeded {
    wanted: usize,
    max: usize,
}

impl ResourceLimiter for Memory {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let wanted = self.bytes.saturating_sub(current).saturating_add(desired);
        if wanted > self.max {
            return Err(MemoryExceeded {
                wanted,
                max: self.max,
            }
            .into());
        }
        // Memories never shrink.
        self.all
            .fetch_add(wanted.saturating_sub(self.bytes), Ordering::Relaxed);
        self.bytes = wanted;
        self.most = self.most.max(wanted);
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_memories_of_an_instance_count() {
        let mut memory = Memory::new(100, Arc::default());
        assert!(memory.memory_growing(0, 60, None).is_ok_and(|may| may));
        assert!(memory.memory_growing(0, 30, None).is_ok_and(|may| may));
        assert!(memory.memory_growing(60, 70, None).is_ok_and(|may| may));
        let refused = memory.memory_growing(30, 31, None).err();
        let exceeded = refused
            .as_ref()
            .and_then(|error| error.downcast_ref::<MemoryExceeded>());
        assert_eq!(
            exceeded,
            Some(&MemoryExceeded {
                wanted: 101,
                max: 100
            })
        );
        assert_eq!(memory.most, 100);
        let all = memory.all.clone();
        assert_eq!(all.load(Ordering::Relaxed), 100);
        drop(memory);
        assert_eq!(all.load(Ordering::Relaxed), 0);
    }
}

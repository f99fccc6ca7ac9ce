//! Space that the recordings of all exchanges share: memory for the small ones, scratch space for the rest.
//!
//! When memory is used up, recordings go to disk early. When scratch space is used up, exchanges wait until documents that are
//! being read or archived release theirs. If all exchanges with scratch space waited for more, the crawl would stop. Therefore the
//! last one to ask is cut. The part that has come is archived, and its space is released for the others.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Unit in which scratch space is claimed, so that claims are rare.
const PORTION: u64 = 256 * 1024;

/// The shared space of all exchanges.
#[derive(Debug)]
pub(crate) struct Scratch {
    directory: PathBuf,
    /// `None`: the space on the disk.
    bytes_max: Option<u64>,
    memory_max: u64,
    usage: Mutex<ScratchUsage>,
}

/// The space that all claims hold, and the claims that wait for space.
#[derive(Debug, Default)]
struct ScratchUsage {
    /// Scratch space claimed and not yet released.
    bytes: u64,
    memory: u64,
    /// Claims that hold scratch space.
    holders: usize,
    /// Claims that wait for scratch space, by their number. The flag says whether they already hold some.
    waiting: HashMap<u64, (Waker, bool)>,
    claims: u64,
}

/// The share of one exchange. It is released when the last recording of the exchange is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    scratch: Arc<Scratch>,
    number: u64,
    own: Mutex<Own>,
}

#[derive(Debug, Default)]
struct Own {
    /// Scratch space claimed.
    bytes: u64,
    /// The part of it that has been written to.
    used: u64,
    memory: u64,
}

/// No space now, and no exchange at work that could release some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

impl Scratch {
    pub(crate) fn new(directory: PathBuf, bytes_max: Option<u64>, memory_max: usize) -> Self {
        Scratch {
            directory,
            bytes_max,
            memory_max: memory_max as u64,
            usage: Mutex::default(),
        }
    }

    /// Creates a claim for the recordings of one exchange.
    pub(crate) fn claim(self: &Arc<Self>) -> Arc<Claim> {
        let mut usage = self.usage();
        usage.claims += 1;
        Arc::new(Claim {
            scratch: self.clone(),
            number: usage.claims,
            own: Mutex::default(),
        })
    }

    fn usage(&self) -> MutexGuard<'_, ScratchUsage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claim {
    pub(crate) fn directory(&self) -> &Path {
        &self.scratch.directory
    }

    /// Ready when at least `bytes` more may be written to disk.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>, bytes: u64) -> Poll<Result<(), NoRoom>> {
        let mut own = self.own();
        let free = own.bytes.saturating_sub(own.used);
        if free >= bytes {
            return Poll::Ready(Ok(()));
        }
        let wanted = (bytes - free).max(PORTION);
        let mut usage = self.scratch.usage();
        usage.waiting.remove(&self.number);
        let max = self.scratch.bytes_max.unwrap_or(u64::MAX);
        if usage.bytes.saturating_add(wanted) <= max {
            usage.take(&mut own, wanted);
            return Poll::Ready(Ok(()));
        }
        let holds = own.bytes > 0;
        let others = usage.holders - usize::from(holds);
        let waiting = usage.waiting.values().filter(|(_, holds)| *holds).count();
        if others <= waiting {
            return Poll::Ready(Err(NoRoom));
        }
        usage
            .waiting
            .insert(self.number, (cx.waker().clone(), holds));
        Poll::Pending
    }

    /// Withdraws the claim from the waiting ones, whether it got room or not.
    pub(crate) fn stop_waiting(&self) {
        self.scratch.usage().waiting.remove(&self.number);
    }

    /// Takes memory for this many bytes. Returns `false` if they do not fit.
    pub(crate) fn take_memory(&self, bytes: usize) -> bool {
        let (mut own, mut usage) = (self.own(), self.scratch.usage());
        let fits = usage.memory + bytes as u64 <= self.scratch.memory_max;
        if fits {
            usage.memory += bytes as u64;
            own.memory += bytes as u64;
        }
        fits
    }

    /// Returns `true` if this many bytes would fit into memory now.
    pub(crate) fn has_memory(&self, bytes: usize) -> bool {
        self.scratch.usage().memory + bytes as u64 <= self.scratch.memory_max
    }

    /// Releases memory whose content has gone to disk.
    pub(crate) fn give_memory_back(&self, bytes: usize) {
        let (mut own, mut usage) = (self.own(), self.scratch.usage());
        usage.memory = usage.memory.saturating_sub(bytes as u64);
        own.memory = own.memory.saturating_sub(bytes as u64);
    }

    /// Counts bytes written to disk. They are within the claimed space, or a little beyond it if many came at once.
    pub(crate) fn written(&self, bytes: usize) {
        let mut own = self.own();
        own.used += bytes as u64;
        let beyond = own.used.saturating_sub(own.bytes);
        if beyond > 0 {
            self.scratch.usage().take(&mut own, beyond);
        }
    }

    fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScratchUsage {
    fn take(&mut self, own: &mut Own, bytes: u64) {
        self.holders += usize::from(own.bytes == 0);
        own.bytes += bytes;
        self.bytes += bytes;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let own = self.own.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut usage = self.scratch.usage();
        usage.waiting.remove(&self.number);
        usage.memory = usage.memory.saturating_sub(own.memory);
        if own.bytes > 0 {
            usage.bytes = usage.bytes.saturating_sub(own.bytes);
            usage.holders -= 1;
            for (waker, _) in usage.waiting.values() {
                waker.wake_by_ref();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Calls(AtomicUsize);

    impl Wake for Calls {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn scratch() -> Arc<Scratch> {
        Arc::new(Scratch::new(PathBuf::new(), Some(4 * PORTION), 100))
    }

    fn poll_claim(claim: &Claim, bytes: u64) -> Poll<Result<(), NoRoom>> {
        claim.poll_room(&mut Context::from_waker(Waker::noop()), bytes)
    }

    #[test]
    fn a_waiting_claim_continues_when_another_is_released() {
        let scratch = scratch();
        let (read, waiting) = (scratch.claim(), scratch.claim());
        assert_eq!(poll_claim(&read, 3 * PORTION), Poll::Ready(Ok(())));
        let calls = Arc::new(Calls::default());
        let waker = Waker::from(calls.clone());
        let mut cx = Context::from_waker(&waker);
        assert_eq!(waiting.poll_room(&mut cx, 2 * PORTION), Poll::Pending);
        assert_eq!(calls.0.load(Ordering::SeqCst), 0);
        drop(read);
        assert_eq!(calls.0.load(Ordering::SeqCst), 1);
        assert_eq!(poll_claim(&waiting, 2 * PORTION), Poll::Ready(Ok(())));
    }

    #[test]
    fn the_last_claim_is_cut_if_all_wait() {
        let scratch = scratch();
        let (one, other, third) = (scratch.claim(), scratch.claim(), scratch.claim());
        assert_eq!(poll_claim(&one, 2 * PORTION), Poll::Ready(Ok(())));
        assert_eq!(poll_claim(&other, 2 * PORTION), Poll::Ready(Ok(())));
        one.written(2 * PORTION as usize);
        other.written(2 * PORTION as usize);
        // The waiting claim holds nothing, so it blocks no other.
        assert_eq!(poll_claim(&third, 1), Poll::Pending);
        assert_eq!(poll_claim(&one, 1), Poll::Pending);
        assert_eq!(poll_claim(&other, 1), Poll::Ready(Err(NoRoom)));
        drop(other);
        assert_eq!(poll_claim(&one, 1), Poll::Ready(Ok(())));
    }

    #[test]
    fn a_claim_that_stopped_waiting_counts_as_at_work() {
        let scratch = scratch();
        let (one, other) = (scratch.claim(), scratch.claim());
        assert_eq!(poll_claim(&one, 4 * PORTION), Poll::Ready(Ok(())));
        one.written(4 * PORTION as usize);
        assert_eq!(poll_claim(&other, 1), Poll::Pending);
        assert_eq!(poll_claim(&one, 1), Poll::Ready(Err(NoRoom)));
        other.stop_waiting();
        assert!(scratch.usage().waiting.is_empty());
        assert_eq!(poll_claim(&other, 1), Poll::Pending);
    }

    #[test]
    fn memory_is_shared() {
        let scratch = scratch();
        let (one, other) = (scratch.claim(), scratch.claim());
        assert!(one.take_memory(80) && !other.take_memory(30) && other.take_memory(20));
        one.give_memory_back(10);
        assert!(other.take_memory(10) && !other.take_memory(1));
        drop(one);
        assert!(other.take_memory(70));
    }
}

//! The state of inert WASI in one instance: clock, randomness, handles, and printed text.

use wasmtime::bail;
use wasmtime::component::Resource;

/// Step by which each reading advances the monotonic clock, so that a loop that waits for it ends.
pub(crate) const READING_NANOSECONDS: u64 = 1_000;
/// The monotonic clock at the start of a call. `configure` began at zero, and time never runs backwards.
const CALL_BEGINS_NANOSECONDS: u64 = 24 * 3600 * 1_000_000_000;
/// Seed of the randomness in every call.
const SEED: u64 = 0x6f70_696c_696f;
/// Most random bytes of one import call.
const RANDOM_BYTES_MAX: u64 = 1 << 20;
/// Streams, pollables and networks that an instance may hold at once. More is a trap, because each costs the host memory.
const HANDLES_MAX: u32 = 1_024;

/// The state of WASI in one instance.
#[derive(Debug)]
pub(crate) struct Wasi {
    /// The monotonic clock.
    pub(crate) nanoseconds: u64,
    /// State of the random generator.
    random: u64,
    /// Handles that the guest holds.
    pub(crate) handles: u32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Default for Wasi {
    fn default() -> Self {
        Self {
            nanoseconds: 0,
            random: SEED,
            handles: 0,
            stdout: Vec::new(),
            stderr: Vec::new(),
        }
    }
}

impl Wasi {
    /// Resets clock and randomness to the state in which every call starts, whether or not `configure` ran in the same instance.
    pub(crate) fn begin_call(&mut self) {
        self.nanoseconds = self.nanoseconds.max(CALL_BEGINS_NANOSECONDS);
        self.random = SEED;
    }

    /// Returns `true` if the guest holds a stream or a similar handle. A snapshot would keep the handle without its object.
    pub(crate) fn holds_handles(&self) -> bool {
        self.handles > 0
    }

    pub(crate) fn now(&mut self) -> u64 {
        self.nanoseconds = self.nanoseconds.saturating_add(READING_NANOSECONDS);
        self.nanoseconds
    }

    /// Advances the clock at once to the time that the guest waits for.
    pub(crate) fn wait_until(&mut self, nanoseconds: u64) {
        self.nanoseconds = self.nanoseconds.max(nanoseconds);
    }

    /// Next number of SplitMix64 (Steele, Lea and Flood, 2014): one addition, two multiplications, every state once.
    pub(crate) fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn random_bytes(&mut self, n: u64) -> wasmtime::Result<Vec<u8>> {
        if n > RANDOM_BYTES_MAX {
            bail!("asked for {n} random bytes, {RANDOM_BYTES_MAX} are allowed at once");
        }
        // At most 1 MiB: it fits.
        let n = n as usize;
        let mut bytes = Vec::with_capacity(n + 8);
        while bytes.len() < n {
            bytes.extend(self.random().to_le_bytes());
        }
        bytes.truncate(n);
        Ok(bytes)
    }

    pub(crate) fn add_handle<T: 'static>(&mut self, which: u32) -> wasmtime::Result<Resource<T>> {
        if self.handles == HANDLES_MAX {
            bail!("exceeds the limit of {HANDLES_MAX} streams and other handles");
        }
        self.handles += 1;
        Ok(Resource::new_own(which))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_advances_only_when_it_is_read() {
        let mut wasi = Wasi::default();
        assert_eq!([wasi.now(), wasi.now()], [1_000, 2_000]);
        wasi.wait_until(5_000);
        wasi.wait_until(4_000);
        assert_eq!(wasi.now(), 6_000);
        wasi.begin_call();
        assert_eq!(wasi.now(), CALL_BEGINS_NANOSECONDS + 1_000);
    }

    #[test]
    fn randomness_is_the_same_in_every_call() {
        let mut wasi = Wasi::default();
        let first = [wasi.random(), wasi.random(), wasi.random()];
        wasi.begin_call();
        let bytes = wasi.random_bytes(20).unwrap();
        let expected: Vec<u8> = first
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .take(20)
            .collect();
        assert_eq!(bytes, expected);
        assert!(first[0] != first[1] && first[1] != first[2]);
        assert!(wasi.random_bytes(RANDOM_BYTES_MAX + 1).is_err());
    }

    #[test]
    fn handles_are_counted_and_bounded() {
        let mut wasi = Wasi::default();
        assert!(!wasi.holds_handles());
        for _ in 0..HANDLES_MAX {
            wasi.add_handle::<()>(0).unwrap();
        }
        assert!(wasi.holds_handles());
        assert!(wasi.add_handle::<()>(0).is_err());
    }
}

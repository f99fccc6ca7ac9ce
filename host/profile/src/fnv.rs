//! The hash of values that jobs keep: names of queues, settings and files.

/// FNV-1a of 64 bits, continued from another hash. It is the same in every process and every build.
pub(crate) fn fnv(from: u64, bytes: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(OFFSET ^ from, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(PRIME)
    })
}

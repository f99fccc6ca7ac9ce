//! A memory cache of compiled functions. A component with many plugins is compiled once for each of them, and once more before it
//! is configured. These compilations differ only in the initial memory, so functions that were compiled already are taken from
//! here. Complete components are cached on disk ([`crate::cache`]).

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use wasmtime::CacheStore;

/// Bytes of all functions together. A function beyond this makes all others go. The built-in components need 32 MiB together.
const FUNCTION_BYTES_MAX: usize = 64 << 20;

/// Compiled functions by the digest of their source.
#[derive(Debug, Default)]
pub(crate) struct Functions(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    functions: HashMap<Box<[u8]>, Box<[u8]>>,
    bytes: usize,
}

impl CacheStore for Functions {
    fn get(&self, key: &[u8]) -> Option<Cow<'_, [u8]>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let function = kept.functions.get(key)?;
        Some(Cow::Owned(function.to_vec()))
    }

    fn insert(&self, key: &[u8], value: Vec<u8>) -> bool {
        let bytes = key.len() + value.len();
        if bytes > FUNCTION_BYTES_MAX {
            return false;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.bytes + bytes > FUNCTION_BYTES_MAX {
            *kept = Kept::default();
        }
        kept.bytes += bytes;
        if let Some(before) = kept.functions.insert(key.into(), value.into()) {
            kept.bytes -= key.len() + before.len();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_go_beyond_makes_all_others_go() {
        let functions = Functions::default();
        let half = FUNCTION_BYTES_MAX / 2;
        assert!(functions.insert(b"a", vec![1; half]));
        assert_eq!(functions.get(b"a").map(|found| found.len()), Some(half));
        assert!(functions.insert(b"b", vec![2; half]));
        assert_eq!(functions.get(b"a"), None);
        assert_eq!(functions.get(b"b").map(|found| found[0]), Some(2));
        assert!(!functions.insert(b"c", vec![3; FUNCTION_BYTES_MAX]));
        assert!(functions.get(b"b").is_some());
    }

    #[test]
    fn a_function_compiled_again_takes_no_more_room() {
        let functions = Functions::default();
        for _ in 0..3 {
            assert!(functions.insert(b"a", vec![1; FUNCTION_BYTES_MAX / 2]));
        }
        assert!(functions.get(b"a").is_some());
        let kept = functions.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(kept.bytes <= FUNCTION_BYTES_MAX / 2 + 1);
    }
}

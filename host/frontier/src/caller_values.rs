//! Small values that the caller keeps under names of its own: robots.txt, addresses, cookies, prices, counts. The frontier does
//! not read them.

use crate::{Frontier, FrontierError, RECORD_KEY_BYTES_MAX};

impl Frontier {
    /// The value that the caller keeps under this name.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn caller_value(&self, name: &str) -> Result<Option<Vec<u8>>, FrontierError> {
        if !is_name(name) {
            return Ok(None);
        }
        Ok(self
            .store
            .caller_values
            .get(name)?
            .map(|value| value.to_vec()))
    }

    /// All values under names with this prefix, in the order of their names.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn caller_values(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, FrontierError> {
        self.caller_values_after(prefix, None, usize::MAX)
    }

    /// Up to `max` values under names with this prefix, in the order of their names, from the first after `after` on.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn caller_values_after(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<(String, Vec<u8>)>, FrontierError> {
        let from = after.map_or_else(|| prefix.to_owned(), |after| format!("{after}\0"));
        let begins_so = |name: &[u8]| name.starts_with(prefix.as_bytes());
        let mut found = Vec::new();
        for guard in self.store.caller_values.range(from..).take(max) {
            let (name, value) = guard.into_inner()?;
            if !begins_so(&name) {
                break;
            }
            found.push((String::from_utf8_lossy(&name).into_owned(), value.to_vec()));
        }
        Ok(found)
    }

    /// Keeps several values under their names. After a sudden death of the process, either all or none of them are kept.
    ///
    /// # Errors
    /// [`FrontierError::Name`] if a name is empty or longer than [`RECORD_KEY_BYTES_MAX`]; then nothing is kept. Fails if the
    /// store fails.
    pub fn put_caller_values(&mut self, values: &[(String, Vec<u8>)]) -> Result<(), FrontierError> {
        if let Some((name, _)) = values.iter().find(|(name, _)| !is_name(name)) {
            return Err(FrontierError::Name { bytes: name.len() });
        }
        self.attempt(|frontier| {
            let store = &frontier.store;
            let mut batch = store.database.batch();
            for (name, value) in values {
                batch.insert(&store.caller_values, name.as_str(), value.as_slice());
            }
            Ok(batch.commit()?)
        })
    }

    /// Keeps a value under its name.
    ///
    /// # Errors
    /// The errors of [`Frontier::put_caller_values`].
    pub fn put_caller_value(&mut self, name: &str, value: &[u8]) -> Result<(), FrontierError> {
        self.put_caller_values(&[(name.to_owned(), value.to_owned())])
    }
}

/// Returns `true` if a value can be kept under this name.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= RECORD_KEY_BYTES_MAX
}

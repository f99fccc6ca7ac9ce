//! Small values of servers, such as robots.txt and addresses, under names that the caller chooses.

use crate::{Error, Frontier, RECORD_KEY_BYTES_MAX};

impl Frontier {
    /// The value kept under a server's name.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn server(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        if name.is_empty() || name.len() > RECORD_KEY_BYTES_MAX {
            return Ok(None);
        }
        Ok(self.store.servers.get(name)?.map(|value| value.to_vec()))
    }

    /// All values kept under names with this prefix, in the order of their names.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn servers(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let found = self.store.servers.prefix(prefix).map(|guard| {
            let (name, value) = guard.into_inner()?;
            Ok((String::from_utf8_lossy(&name).into_owned(), value.to_vec()))
        });
        found.collect()
    }

    /// Up to `max` values kept under names with this prefix, in the order of their names, from the first after `after` on.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub fn servers_after(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let from = after.map_or_else(|| prefix.to_owned(), |after| format!("{after}\0"));
        let begins_so = |name: &[u8]| name.starts_with(prefix.as_bytes());
        let mut found = Vec::new();
        for guard in self.store.servers.range(from..).take(max) {
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
    /// [`Error::Name`] as for [`Frontier::put_server`]; then nothing is kept. Fails if the store fails.
    pub fn put_servers(&mut self, values: &[(String, Vec<u8>)]) -> Result<(), Error> {
        for (name, _) in values {
            if name.is_empty() || name.len() > RECORD_KEY_BYTES_MAX {
                return Err(Error::Name { bytes: name.len() });
            }
        }
        self.attempt(|frontier| {
            let store = &frontier.store;
            let mut batch = store.database.batch();
            for (name, value) in values {
                batch.insert(&store.servers, name.as_str(), value.as_slice());
            }
            Ok(batch.commit()?)
        })
    }

    /// Keeps a small value under a server's name: its robots.txt, its addresses.
    ///
    /// # Errors
    /// [`Error::Name`] if the name is empty or longer than [`RECORD_KEY_BYTES_MAX`]. Fails if the store fails.
    pub fn put_server(&mut self, name: &str, value: &[u8]) -> Result<(), Error> {
        if name.is_empty() || name.len() > RECORD_KEY_BYTES_MAX {
            return Err(Error::Name { bytes: name.len() });
        }
        self.attempt(|frontier| Ok(frontier.store.servers.insert(name, value)?))
    }
}

//! Tables: those of the host in a component, those of [`testing`](crate::testing) in native tests.

#[cfg(target_arch = "wasm32")]
use crate::bindings::common::opilio::plugin::tables as host;
#[cfg(not(target_arch = "wasm32"))]
use crate::native::double::tables as host;
use crate::{Candidate, CandidatesHandle};

pub use crate::bindings::common::opilio::plugin::tables::{Kind as TableKind, Row};

/// A table of the host. The host keeps it current during the crawl; within one call it does not change.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    name: &'a str,
}

/// The table with this name. A plugin learns the names of its tables from its settings. A table that the profile does not name
/// is empty. During configuration all tables are empty.
#[must_use]
pub fn table(name: &str) -> Table<'_> {
    Table { name }
}

impl Table<'_> {
    /// The kind of table; `None` if the profile does not name the table.
    #[must_use]
    pub fn kind(&self) -> Option<TableKind> {
        host::kind_of(self.name)
    }

    /// Returns the row for a key: that of its longest SURT prefix, of the first matching regular expression, or of the same key.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<Row> {
        host::find(self.name, key)
    }

    pub(crate) fn find_candidates(&self, candidates: &CandidatesHandle) -> Vec<bool> {
        host::find_candidates(self.name, candidates)
    }

    /// Looks up a candidate, as [`find_candidates`](Self::find_candidates) does.
    pub(crate) fn find_candidate(&self, candidate: &Candidate) -> Option<Row> {
        match self.kind()? {
            TableKind::SurtPrefixes => self.find(&candidate.surt),
            TableKind::Regexes | TableKind::KeyValues | TableKind::Other(_) => {
                self.find(&candidate.uri)
            }
        }
    }
}

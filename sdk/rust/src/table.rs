//! Lists that the host holds: the host's in a component, those of [`testing`](crate::testing) natively.

#[cfg(target_arch = "wasm32")]
use crate::bindings::common::opilio::plugin::tables as host;
#[cfg(not(target_arch = "wasm32"))]
use crate::native::double::tables as host;
use crate::{Candidate, CandidatesHandle};

pub use crate::bindings::common::opilio::plugin::tables::{Kind as TableKind, Row};

/// A table of the host's, which it keeps current while the crawl runs; within one call it does not change.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    name: &'a str,
}

/// The table of this name. A plugin is told in its settings which tables it may use; one that the profile does not name
/// is empty. There are none while the plugin is being configured.
#[must_use]
pub fn table(name: &str) -> Table<'_> {
    Table { name }
}

impl Table<'_> {
    /// What sort of table it is; none where the profile names no such table.
    #[must_use]
    pub fn kind(&self) -> Option<TableKind> {
        host::kind_of(self.name)
    }

    /// The row for a key.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<Row> {
        host::find(self.name, key)
    }

    pub(crate) fn find_candidates(&self, candidates: &CandidatesHandle) -> Vec<bool> {
        host::find_candidates(self.name, candidates)
    }

    /// As [`find_candidates`](Self::find_candidates) looks a candidate up.
    pub(crate) fn find_candidate(&self, candidate: &Candidate) -> Option<Row> {
        match self.kind()? {
            TableKind::SurtPrefixes => self.find(&candidate.surt),
            TableKind::Regexes | TableKind::KeyValues | TableKind::Other(_) => {
                self.find(&candidate.uri)
            }
        }
    }
}

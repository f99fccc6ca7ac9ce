//! Servers that speak HTTP/2 and nothing else. They are not asked for HTTP/1.1 each time.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::stream::Server;

/// Maximum servers that are remembered. Beyond it all are forgotten and detected anew.
const SERVERS_MAX: usize = 10_000;

/// Servers that were found to speak only HTTP/2.
#[derive(Debug, Default)]
pub(crate) struct Http2Servers(Mutex<HashSet<Server>>);

impl Http2Servers {
    pub(crate) fn has(&self, server: &Server) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.contains(server)
    }

    pub(crate) fn add(&self, server: &Server) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= SERVERS_MAX {
            known.clear();
        }
        known.insert(server.clone());
    }
}

//! Idle connections, kept for the next exchange with the same server, address and connection settings.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::config::{FetcherConfig, Trust};
use crate::proxy::Proxy;
use crate::stream::{Connection, Server};

/// Maximum idle connections in all; beyond it the oldest is closed. The limit bounds file descriptors, not speed: an active
/// queue needs its connection again within seconds.
const IDLE_CONNECTIONS_MAX: usize = 256;

/// Maximum idle connections to one server: a queue has one exchange at a time.
const IDLE_CONNECTIONS_PER_SERVER_MAX: usize = 2;

/// Longest time that an idle connection is kept. Many servers close theirs after 5 to 60 s, and ours must not outlive a
/// politeness delay by much.
const IDLE_TIME_MAX: Duration = Duration::from_secs(30);

/// The pool of idle connections, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    idle: Mutex<VecDeque<Idle>>,
}

/// The settings of a connection. Only connections with equal settings are shared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConnectionKey {
    pub server: Server,
    pub trust: Trust,
    pub bind: Vec<IpAddr>,
    /// The proxy for this server.
    pub proxy: Option<Arc<Proxy>>,
}

#[derive(Debug)]
struct Idle {
    key: ConnectionKey,
    connection: Connection,
    since: Instant,
}

impl ConnectionKey {
    pub(crate) fn new(config: &FetcherConfig, server: &Server) -> Self {
        let proxy = config.proxy.as_ref();
        ConnectionKey {
            server: server.clone(),
            trust: config.trust.clone(),
            bind: config.bind.clone(),
            proxy: proxy.filter(|proxy| proxy.serves(&server.host)).cloned(),
        }
    }
}

impl Pool {
    /// Takes the newest quiet connection to one of these addresses. Dead ones are dropped on the way. A connection whose address
    /// only a proxy knows fits any address.
    pub(crate) fn take(&self, key: &ConnectionKey, addresses: &[IpAddr]) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        drop_old(&mut idle);
        loop {
            let at = idle.iter().rposition(|entry| {
                let peer = entry.connection.peer;
                entry.key == *key && peer.is_none_or(|peer| addresses.contains(&peer))
            })?;
            let mut connection = idle.remove(at)?.connection;
            if connection.stream.is_quiet() {
                connection.reused = true;
                return Some(connection);
            }
        }
    }

    /// Closes the connection that has been idle longest. Returns `false` if the pool is empty.
    pub(crate) fn close_oldest(&self) -> bool {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.pop_front().is_some()
    }

    pub(crate) fn put(&self, key: ConnectionKey, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        drop_old(&mut idle);
        let same = |entry: &Idle| entry.key.server == key.server;
        if idle.iter().filter(|entry| same(entry)).count() >= IDLE_CONNECTIONS_PER_SERVER_MAX
            && let Some(oldest) = idle.iter().position(same)
        {
            idle.remove(oldest);
        }
        if idle.len() >= IDLE_CONNECTIONS_MAX {
            idle.pop_front();
        }
        idle.push_back(Idle {
            key,
            connection,
            since: Instant::now(),
        });
    }
}

fn drop_old(idle: &mut VecDeque<Idle>) {
    while idle
        .front()
        .is_some_and(|entry| entry.since.elapsed() > IDLE_TIME_MAX)
    {
        idle.pop_front();
    }
}

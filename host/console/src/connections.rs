//! The daemon's open connections: their maximum, and the choice of one to close for a new one.
//!
//! If the maximum is reached, a new connection replaces one that waits for a request: of the address with the most connections, the
//! one that has waited longest. So a client that opens connections without requests does not lock out others, not even at its own
//! address. A connection with an authenticated request in progress is not closed.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};

use crate::timeouts::Requests;

/// All open connections.
pub(crate) struct Connections {
    most: usize,
    open: Mutex<OpenConnections>,
    /// Notified when a connection was closed, or waits for a request again.
    freed: Arc<Notify>,
}

#[derive(Default)]
struct OpenConnections {
    next: u64,
    by_number: HashMap<u64, OpenConnection>,
}

struct OpenConnection {
    address: IpAddr,
    requests: Requests,
    close: oneshot::Sender<()>,
}

/// Permit of an open connection. The connection counts as open until this is dropped.
pub(crate) struct ConnectionPermit {
    number: u64,
    connections: Arc<Connections>,
    pub(crate) requests: Requests,
}

impl Connections {
    pub(crate) fn new(most: usize) -> Arc<Connections> {
        Arc::new(Connections {
            most,
            open: Mutex::default(),
            freed: Arc::default(),
        })
    }

    /// Admits a connection from this address. Returns its permit, and a channel that signals when to close it. Waits only if the
    /// maximum is reached and every connection has an authenticated request in progress.
    pub(crate) async fn admit(
        self: &Arc<Connections>,
        address: IpAddr,
    ) -> (ConnectionPermit, oneshot::Receiver<()>) {
        loop {
            if let Some(admitted) = self.try_admit(client(address)) {
                return admitted;
            }
            self.freed.notified().await;
        }
    }

    fn try_admit(
        self: &Arc<Connections>,
        address: IpAddr,
    ) -> Option<(ConnectionPermit, oneshot::Receiver<()>)> {
        let mut open = self.open();
        if open.by_number.len() >= self.most {
            let closed = open.closable()?;
            let closed = open.by_number.remove(&closed)?;
            // A connection that has ended already needs no signal.
            let _ = closed.close.send(());
        }
        let number = open.next;
        open.next += 1;
        let requests = Requests::new(self.freed.clone());
        let (close, closed) = oneshot::channel();
        let connection = OpenConnection {
            address,
            requests: requests.clone(),
            close,
        };
        open.by_number.insert(number, connection);
        let permit = ConnectionPermit {
            number,
            connections: self.clone(),
            requests,
        };
        Some((permit, closed))
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    /// Returns the connection to close for a new one.
    fn closable(&self) -> Option<u64> {
        let mut of_address: HashMap<IpAddr, usize> = HashMap::new();
        for connection in self.by_number.values() {
            *of_address.entry(connection.address).or_default() += 1;
        }
        let waiting = self.by_number.iter().filter_map(|(number, connection)| {
            let since = connection.requests.closable_since()?;
            Some((of_address[&connection.address], Reverse(since), *number))
        });
        waiting.max().map(|(.., number)| number)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.connections.open().by_number.remove(&self.number);
        self.connections.freed.notify_one();
    }
}

/// Returns the address that identifies a client. All of loopback is one client, and so is each IPv6 network of 64 bits.
fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        address if address.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) => {
            let network = u128::from(address) & (u128::MAX << 64);
            Ipv6Addr::from(network).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_new_connection_replaces_one_of_the_address_with_the_most() {
        let connections = Connections::new(3);
        let admit = |from| connections.try_admit(client(address(from)));
        let (_other, mut other) = admit("192.0.2.1").unwrap();
        let (_first, mut first) = admit("192.0.2.2").unwrap();
        let (_second, mut second) = admit("192.0.2.2").unwrap();
        let (_third, mut third) = admit("192.0.2.2").unwrap();
        assert_eq!(first.try_recv(), Ok(()));
        let (_fourth, _) = admit("192.0.2.1").unwrap();
        assert_eq!(second.try_recv(), Ok(()));
        for kept in [&mut other, &mut third] {
            assert_eq!(kept.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        }
    }

    #[tokio::test]
    async fn connections_with_authenticated_requests_are_not_closed() {
        let connections = Connections::new(2);
        let here = address("192.0.2.1");
        let (known, mut of_known) = connections.admit(here).await;
        known.requests.mark_known();
        let under_way = known.requests.begin();
        let (unknown, mut of_unknown) = connections.admit(here).await;
        let _under_way = unknown.requests.begin();
        let (newcomer, _closed) = connections.admit(here).await;
        assert_eq!(of_unknown.try_recv(), Ok(()));
        newcomer.requests.mark_known();
        let _asks = newcomer.requests.begin();
        assert!(connections.try_admit(here).is_none());
        // Both are busy: the next connection waits until one of them is not.
        let next = tokio::spawn({
            let connections = connections.clone();
            async move { connections.admit(here).await }
        });
        assert!(of_known.try_recv().is_err());
        drop(under_way);
        let _next = next.await.unwrap();
        assert_eq!(of_known.try_recv(), Ok(()));
    }

    #[test]
    fn clients_are_identified_by_address_or_network() {
        for (one, other, are_same) in [
            ("127.0.0.1", "127.9.9.9", true),
            ("127.0.0.1", "::1", true),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("2001:db8::1", "2001:db8::ffff", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
        ] {
            let same = client(address(one)) == client(address(other));
            assert_eq!(same, are_same, "{one} {other}");
        }
    }
}

//! The user at the other end of a connection on loopback, according to `/proc/net/tcp`.
//!
//! Every user of the machine can connect to a port on loopback. Through the recording proxy, other users could send requests with
//! the crawl's cookies, and put responses into its archive.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;

use tokio::net::TcpStream;

/// Returns `true` if the other end belongs to the user of this process. A connection that is not listed has ended.
pub(super) fn is_own_user(peer: SocketAddr, stream: &TcpStream) -> bool {
    let (Ok(SocketAddr::V4(local)), SocketAddr::V4(peer)) = (stream.local_addr(), peer) else {
        return false;
    };
    let own = fs::metadata("/proc/self").map(|it| it.uid());
    let table = fs::read_to_string("/proc/net/tcp");
    let (Ok(own), Ok(table)) = (own, table) else {
        return false;
    };
    let of = |address: Ipv4Addr, port: u16| {
        // Addresses are printed as numbers in the byte order of the machine.
        format!("{:08X}:{port:04X}", u32::from_ne_bytes(address.octets()))
    };
    let from = of(*peer.ip(), peer.port());
    let to = of(*local.ip(), local.port());
    find_user(&table, &from, &to) == Some(own)
}

/// Returns the user of the socket with these two ends.
fn find_user(table: &str, local: &str, remote: &str) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let is_it = fields.next() == Some(local) && fields.next() == Some(remote);
        is_it.then(|| fields.nth(4)?.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
         0: 0100007F:8B3A 0100007F:0050 01 00000000:00000000 00:00000000 00000000  1001        0 5301 1 0 20 4 30 10 -1\n   \
         1: 0100007F:0050 0100007F:8B3A 01 00000000:00000000 00:00000000 00000000     0        0 5302 1 0 20 4 30 10 -1\n";

    #[test]
    fn the_user_of_the_other_end_is_found() {
        let user = |local, remote| find_user(TABLE, local, remote);
        assert_eq!(user("0100007F:8B3A", "0100007F:0050"), Some(1001));
        assert_eq!(user("0100007F:0050", "0100007F:8B3A"), Some(0));
        assert_eq!(user("0100007F:8B3B", "0100007F:0050"), None);
    }

    #[tokio::test]
    async fn a_connection_of_this_process_is_of_its_own_user() {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let _client = client.expect("it listens");
        let (stream, peer) = accepted.expect("a connection");
        assert!(is_own_user(peer, &stream));
    }
}

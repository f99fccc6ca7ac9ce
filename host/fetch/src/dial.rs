//! New connections: the choice among the addresses of a name, and the proxy in front of it.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tracing::Instrument as _;

use crate::config::in_order;
use crate::failure::{FetchFailure, Phase};
use crate::fetcher::Parts;
use crate::proxy;
use crate::stream::{Connection, Server, Speaks, allowed, tcp};
use crate::wire::Clock;

/// Maximum addresses of one name that are tried in one exchange.
pub const CONNECT_ADDRESSES_MAX: usize = 4;

/// Delay before the next address is tried in parallel (RFC 8305 §5 recommends this value).
const HEAD_START: Duration = Duration::from_millis(250);

/// The addresses that may be connected to, in the order in which they are tried.
///
/// # Errors
/// No address is of the family that the profile wants, or the policy refuses all.
pub(crate) fn candidates(
    parts: &Parts,
    server: &Server,
    addresses: &[IpAddr],
) -> Result<Vec<IpAddr>, FetchFailure> {
    let config = &parts.config;
    let proxy = config.proxy.as_ref();
    let remote = proxy.is_some_and(|proxy| proxy.remote_names && proxy.serves(&server.host));
    if remote && addresses.is_empty() {
        // The proxy looks names up. An address in the URI can be checked here.
        let bare = server.host.trim_start_matches('[').trim_end_matches(']');
        return match bare.parse() {
            Ok(address) => allowed(config, address).map(|()| vec![address]),
            Err(_) => Ok(Vec::new()),
        };
    }
    let ordered = in_order(config.family, addresses);
    let mut refusal = FetchFailure::NoAddress {
        host: server.host.clone(),
        reason: match addresses.is_empty() {
            true => "no address was given".to_owned(),
            false => "it has no address of the family that the profile wants".to_owned(),
        },
        ttl: None,
    };
    let mut open = Vec::with_capacity(ordered.len());
    for address in ordered {
        match allowed(config, address) {
            Ok(()) => open.push(address),
            Err(refused) => refusal = refused,
        }
    }
    open.truncate(CONNECT_ADDRESSES_MAX);
    if open.is_empty() {
        Err(refusal)
    } else {
        Ok(open)
    }
}

/// Opens a connection to a server at one of `addresses`, which are in the order of preference. It leads through the proxy
/// if there is one for this host.
pub(crate) async fn dial(
    parts: &Parts,
    server: &Server,
    addresses: &[IpAddr],
    speaks: Speaks,
    clock: &Clock,
) -> Result<Connection, FetchFailure> {
    let config = &parts.config;
    let seat = parts.throttle.seat();
    while parts.throttle.is_crowded() && parts.pool.close_oldest() {}
    let dialing = async {
        match config
            .proxy
            .as_ref()
            .filter(|proxy| proxy.serves(&server.host))
        {
            Some(proxy) => {
                let (tcp, peer) = proxy::through(parts, proxy, server, addresses, speaks).await?;
                Connection::over(
                    parts,
                    server,
                    speaks,
                    (tcp, seat),
                    peer,
                    Some(proxy.clone()),
                )
                .await
            }
            None => {
                let (tcp, peer) = race(parts, addresses, server.port).await?;
                // The address that counts is that of the connection.
                allowed(config, peer)?;
                Connection::over(parts, server, speaks, (tcp, seat), Some(peer), None).await
            }
        }
    };
    let dialing = dialing.instrument(tracing::info_span!(
        "connect",
        server.address = server.host.as_str(),
        server.port = server.port,
    ));
    let dialing = tokio::time::timeout_at(clock.deadline, dialing);
    let opened = parts.cut.unless_made(dialing).await;
    opened
        .ok_or(FetchFailure::Stopped)?
        .unwrap_or_else(|_| Err(clock.total_failure(Phase::Connecting)))
}

/// Connects to the first of these addresses that accepts a connection. Each address has a head start on the next one. A
/// failure starts the next one at once.
///
/// # Errors
/// No address accepted: the error of the last one that failed.
pub(crate) async fn race(
    parts: &Parts,
    addresses: &[IpAddr],
    port: u16,
) -> Result<(TcpStream, IpAddr), FetchFailure> {
    let mut waiting = addresses.iter();
    let mut trying = JoinSet::new();
    let mut last = FetchFailure::NoAddress {
        host: String::new(),
        reason: "no address was given".to_owned(),
        ttl: None,
    };
    loop {
        if let Some(address) = waiting.next() {
            let (bind, limit) = (parts.config.bind.clone(), parts.config.connect_timeout);
            let to = SocketAddr::new(*address, port);
            trying.spawn(async move { tcp(&bind, limit, to).await.map(|tcp| (tcp, to.ip())) });
        }
        let ended = match waiting.len() {
            0 => trying.join_next().await,
            _ => tokio::select! {
                ended = trying.join_next() => ended,
                () = sleep(HEAD_START) => continue,
            },
        };
        match ended {
            Some(Ok(Ok(connected))) => return Ok(connected),
            Some(Ok(Err(failure))) => last = failure,
            // The task panicked: treated as a refused connection.
            Some(Err(_)) => {}
            None => return Err(last),
        }
    }
}

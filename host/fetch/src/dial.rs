//! New connections: the choice among the addresses of a name, and the proxy in front of it.

use std::net::IpAddr;

use tracing::Instrument as _;

use crate::config::in_order;
use crate::failure::{FetchFailure, Phase};
use crate::parts::Parts;
use crate::proxy_tunnel;
use crate::stream::{Connection, ConnectionProtocol, Server, allowed, race};
use crate::wire::Clock;

/// Maximum addresses of one name that are tried in one exchange.
pub const CONNECT_ADDRESSES_MAX: usize = 4;

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
    protocol: ConnectionProtocol,
    clock: &Clock,
) -> Result<Connection, FetchFailure> {
    let config = &parts.config;
    let guard = parts.throttle.count_connection();
    while parts.throttle.is_crowded() && parts.pool.close_oldest() {}
    let dialing = async {
        match config
            .proxy
            .as_ref()
            .filter(|proxy| proxy.serves(&server.host))
        {
            Some(proxy) => {
                let (tcp, peer) =
                    proxy_tunnel::through(parts, proxy, server, addresses, protocol).await?;
                Connection::over(
                    (&parts.tls, config.connect_timeout),
                    server,
                    protocol,
                    (tcp, guard),
                    peer,
                    Some(proxy.clone()),
                )
                .await
            }
            None => {
                let (tcp, peer) = race(config, addresses, server.port).await?;
                // The address that counts is that of the connection.
                allowed(config, peer)?;
                Connection::over(
                    (&parts.tls, config.connect_timeout),
                    server,
                    protocol,
                    (tcp, guard),
                    Some(peer),
                    None,
                )
                .await
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

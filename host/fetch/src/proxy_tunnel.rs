//! Connections through a proxy.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_socks::TargetAddr;
use tokio_socks::tcp::Socks5Stream;

use crate::config::in_order;
use crate::failure::{FetchFailure, Phase};
use crate::head;
use crate::parts::Parts;
use crate::proxy::{Proxy, ProxyKind};
use crate::stream::{ConnectionProtocol, Server, race};

/// Longest answer of a proxy to CONNECT.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// Opens a TCP connection to the server through a tunnel, or to a proxy that forwards. Also returns the server's address if
/// we chose it. `addresses` are those of the server, allowed and in order; empty if the proxy looks the name up.
pub(crate) async fn through(
    parts: &Parts,
    proxy: &Arc<Proxy>,
    server: &Server,
    addresses: &[IpAddr],
    protocol: ConnectionProtocol,
) -> Result<(TcpStream, Option<IpAddr>), FetchFailure> {
    // The operator has chosen the proxy. It may have an internal address, so the address policy does not apply.
    let found = parts.names.resolve(&proxy.host, Timestamp::now()).await;
    let found = found.map_err(|failure| proxy.failed(failure.to_string()))?;
    let tcp = race(
        &parts.config,
        &in_order(parts.config.family, &found.addresses),
        proxy.port,
    )
    .await;
    let (tcp, _) = tcp.map_err(|failure| proxy.failed(with_cause(&failure)))?;
    let limit = parts.config.connect_timeout;
    let late = |_| FetchFailure::Timeout {
        phase: Phase::Connecting,
        after: limit,
    };
    match proxy.kind {
        ProxyKind::Http if !server.tls && protocol == ConnectionProtocol::Http1 => Ok((tcp, None)),
        ProxyKind::Http => {
            let tunnel = tunnel(proxy, server, tcp);
            let tcp = timeout(limit, tunnel).await.map_err(late)??;
            Ok((tcp, None))
        }
        ProxyKind::Socks5 => {
            let address = addresses.first().copied().filter(|_| !proxy.remote_names);
            let socks = socks(proxy, server, address, tcp);
            let tcp = timeout(limit, socks).await.map_err(late)??;
            Ok((tcp, address))
        }
    }
}

/// Asks for a tunnel with CONNECT (RFC 9110 §9.3.6).
async fn tunnel(
    proxy: &Proxy,
    server: &Server,
    mut tcp: TcpStream,
) -> Result<TcpStream, FetchFailure> {
    let (host, port) = (&server.host, server.port);
    let credentials = proxy.authorization();
    let request =
        format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{credentials}\r\n");
    let failed = |error: std::io::Error| proxy.failed(error.to_string());
    tcp.write_all(request.as_bytes()).await.map_err(failed)?;
    let mut answer = Vec::new();
    // Byte by byte: bytes after the head are the server's. In TLS the client speaks first, so this costs little.
    while !(answer.ends_with(b"\r\n\r\n") || answer.ends_with(b"\n\n")) {
        if answer.len() == ANSWER_BYTES_MAX {
            return Err(proxy.failed("its answer to CONNECT is too long"));
        }
        match tcp.read_u8().await {
            Ok(byte) => answer.push(byte),
            Err(error) if answer.is_empty() => return Err(failed(error)),
            Err(_) => {
                return Err(proxy.failed("it closed the connection during its answer to CONNECT"));
            }
        }
    }
    match head::find(&answer).head {
        Some(head) if (200..300).contains(&head.status) => Ok(tcp),
        Some(head) if head.status == 407 => Err(credentials_needed(proxy)),
        Some(head) => Err(proxy.failed(format!(
            "it refused to connect to {host}:{port}: {} {}",
            head.status, head.reason
        ))),
        None => Err(proxy.failed("its answer to CONNECT is not HTTP")),
    }
}

/// The failure for a 407, which comes from the proxy itself, whether it tunnels or forwards.
pub(crate) fn credentials_needed(proxy: &Proxy) -> FetchFailure {
    proxy.failed(match proxy.credentials {
        None => "it requires credentials: set proxy-user and proxy-password",
        Some(_) => "it rejected the credentials: check proxy-user and proxy-password",
    })
}

async fn socks(
    proxy: &Proxy,
    server: &Server,
    address: Option<IpAddr>,
    tcp: TcpStream,
) -> Result<TcpStream, FetchFailure> {
    let literal = server.host.trim_start_matches('[').trim_end_matches(']');
    let target = match address.or_else(|| literal.parse().ok()) {
        Some(address) => TargetAddr::Ip((address, server.port).into()),
        None => TargetAddr::Domain(server.host.as_str().into(), server.port),
    };
    let connected = match &proxy.credentials {
        None => Socks5Stream::connect_with_socket(tcp, target).await,
        Some((user, password)) => {
            Socks5Stream::connect_with_password_and_socket(tcp, target, user, password).await
        }
    };
    match connected {
        Ok(stream) => Ok(stream.into_inner()),
        Err(error) => Err(proxy.failed(error.to_string())),
    }
}

/// Formats the failure with its cause, for a failure without a source of its own.
fn with_cause(failure: &FetchFailure) -> String {
    match std::error::Error::source(failure) {
        Some(cause) => format!("{failure}: {cause}"),
        None => failure.to_string(),
    }
}

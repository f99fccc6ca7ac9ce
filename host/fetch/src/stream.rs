//! Connections: TCP, and TLS over it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::config::FetcherConfig;
use crate::failure::{FetchFailure, Phase};
use crate::proxy::{Proxy, ProxyKind};
use crate::throttle::ConnectionGuard;
use crate::tls::{Tls, TlsInfo, is_too_old, refuses_protocol};

/// A connection that has been set up.
#[derive(Debug)]
pub(crate) struct Connection {
    pub stream: Stream,
    /// The server's address; `None` if only a proxy knows it.
    pub peer: Option<IpAddr>,
    pub tls: Option<TlsInfo>,
    /// The proxy in between.
    pub via: Option<Arc<Proxy>>,
    /// `true` if it has served an exchange before.
    pub reused: bool,
}

/// The socket of a connection, and its place among all connections.
#[derive(Debug)]
pub(crate) struct Stream {
    pub socket: Socket,
    pub guard: ConnectionGuard,
}

#[derive(Debug)]
pub(crate) enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The destination of a connection. Exchanges with the same server can share a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    pub tls: bool,
    /// The host as in the URI.
    pub host: String,
    pub port: u16,
}

/// The protocol on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionProtocol {
    Http1,
    Http2,
    /// A protocol that a proxy can tunnel and not forward.
    Other,
}

impl Connection {
    /// Sets up a connection over a TCP connection to the server, with TLS if the URI requires it. `tls` has the longest time of a
    /// handshake.
    pub(crate) async fn over(
        tls: (&Tls, Duration),
        server: &Server,
        protocol: ConnectionProtocol,
        (tcp, guard): (TcpStream, ConnectionGuard),
        peer: Option<IpAddr>,
        via: Option<Arc<Proxy>>,
    ) -> Result<Self, FetchFailure> {
        let (socket, info) = match server.tls {
            false => (Socket::Plain(tcp), None),
            true => {
                let (session, info) = handshake(tls, server, protocol, tcp).await?;
                (Socket::Tls(Box::new(session)), Some(info))
            }
        };
        Ok(Connection {
            stream: Stream { socket, guard },
            peer,
            tls: info,
            via,
            reused: false,
        })
    }

    /// The proxy, if it forwards and so needs whole URIs in requests.
    pub(crate) fn forwards(&self) -> Option<&Arc<Proxy>> {
        let via = self.via.as_ref()?;
        (self.tls.is_none() && via.kind == ProxyKind::Http).then_some(via)
    }
}

/// Checks whether the address policy allows this address.
pub(crate) fn allowed(config: &FetcherConfig, address: IpAddr) -> Result<(), FetchFailure> {
    let refusal = config.addresses.check(address);
    refusal.map_err(|class| FetchFailure::AddressRefused { address, class })
}

/// Delay before the next address is tried in parallel (RFC 8305 §5 recommends this value).
const HEAD_START: Duration = Duration::from_millis(250);

/// Connects to the first of these addresses that accepts a connection. Each address has a head start on the next one. A
/// failure starts the next one at once.
///
/// # Errors
/// No address accepted: the error of the last one that failed.
pub(crate) async fn race(
    config: &FetcherConfig,
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
            let (bind, limit) = (config.bind.clone(), config.connect_timeout);
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

/// Opens a TCP connection, from the local address of the same family if there is one.
async fn tcp(bind: &[IpAddr], limit: Duration, to: SocketAddr) -> Result<TcpStream, FetchFailure> {
    let failed = |error: io::Error| match error.kind() {
        // A refused connection has a kind of its own. This one was accepted, and lost at once.
        io::ErrorKind::ConnectionReset => FetchFailure::Lost {
            phase: Phase::Connecting,
            reason: error.to_string(),
        },
        _ => FetchFailure::Connect {
            address: to.ip(),
            port: to.port(),
            source: Arc::new(error),
        },
    };
    match timeout(limit, connect(bind, to)).await {
        Ok(connected) => connected.map_err(failed),
        Err(_) => Err(failed(io::ErrorKind::TimedOut.into())),
    }
}

async fn connect(bind: &[IpAddr], to: SocketAddr) -> io::Result<TcpStream> {
    let socket = match to {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    let same_family = |local: &&IpAddr| local.is_ipv4() == to.is_ipv4();
    if let Some(local) = bind.iter().find(same_family) {
        socket.bind(SocketAddr::new(*local, 0))?;
    }
    let stream = socket.connect(to).await?;
    // A request is one write: waiting for more data gains nothing.
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn handshake(
    (tls, limit): (&Tls, Duration),
    server: &Server,
    protocol: ConnectionProtocol,
    tcp: TcpStream,
) -> Result<(TlsStream<TcpStream>, TlsInfo), FetchFailure> {
    let failed = |reason: String| FetchFailure::Tls {
        host: server.host.clone(),
        reason,
    };
    let bare = server.host.trim_start_matches('[').trim_end_matches(']');
    // Names with a trailing dot are sent without it (RFC 6066 §3).
    let bare = bare.strip_suffix('.').unwrap_or(bare).to_owned();
    let name = ServerName::try_from(bare).map_err(|error| failed(error.to_string()))?;
    let config = match protocol {
        ConnectionProtocol::Http1 | ConnectionProtocol::Other => &tls.config,
        ConnectionProtocol::Http2 => &tls.http2,
    };
    let connector = TlsConnector::from(config.clone());
    match timeout(limit, connector.connect(name.clone(), tcp)).await {
        Ok(Ok(session)) => {
            let agreed = session.get_ref().1.alpn_protocol();
            if protocol == ConnectionProtocol::Http2 && agreed != Some(b"h2") {
                return Err(failed("the server does not speak HTTP/2".to_owned()));
            }
            let info = tls.info(session.get_ref().1, &name);
            Ok((session, info))
        }
        Ok(Err(error)) if protocol == ConnectionProtocol::Http1 && refuses_protocol(&error) => {
            Err(FetchFailure::NoHttp1 {
                host: server.host.clone(),
            })
        }
        Ok(Err(error)) if is_too_old(&error) => Err(failed(
            "the server speaks neither TLS 1.2 nor 1.3".to_owned(),
        )),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(_) => Err(FetchFailure::Timeout {
            phase: Phase::Connecting,
            after: limit,
        }),
    }
}

impl Stream {
    /// Returns `true` if an idle connection has neither ended nor received unrequested bytes.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        let mut cx = Context::from_waker(std::task::Waker::noop());
        Pin::new(self).poll_read(&mut cx, &mut buffer).is_pending()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().socket {
            Socket::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Socket::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().socket {
            Socket::Plain(stream) => Pin::new(stream).poll_write(cx, buffer),
            Socket::Tls(stream) => Pin::new(stream).poll_write(cx, buffer),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().socket {
            Socket::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Socket::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().socket {
            Socket::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

//! Connections: TCP, and TLS over it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::failure::{FetchFailure, Phase};
use crate::fetcher::Parts;
use crate::tls::TlsInfo;

/// A connection that has been set up.
#[derive(Debug)]
pub(crate) struct Connection {
    pub stream: Stream,
    pub peer: IpAddr,
    pub tls: Option<TlsInfo>,
    /// Whether it has served an exchange before.
    pub reused: bool,
}

#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Where a connection leads; two exchanges with the same server share one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    pub tls: bool,
    /// As the URI has it.
    pub host: String,
    pub port: u16,
}

impl Connection {
    /// Connects to one address, if policy allows.
    pub(crate) async fn open(
        parts: &Parts,
        server: &Server,
        address: IpAddr,
    ) -> Result<Self, FetchFailure> {
        let config = &parts.config;
        let refused = |address: IpAddr| {
            let refusal = config.addresses.check(address);
            refusal.map_err(|class| FetchFailure::AddressRefused { address, class })
        };
        refused(address)?;
        let to = SocketAddr::new(address, server.port);
        let failed = |error| FetchFailure::Connect {
            address,
            port: server.port,
            source: Arc::new(error),
        };
        let tcp = match timeout(config.connect_timeout, connect(config.bind, to)).await {
            Ok(connected) => connected.map_err(failed)?,
            Err(_) => return Err(failed(io::ErrorKind::TimedOut.into())),
        };
        // The address that counts is the one we are connected to.
        let peer = tcp.peer_addr().map_err(failed)?.ip();
        refused(peer)?;
        let (stream, tls) = match server.tls {
            false => (Stream::Plain(tcp), None),
            true => {
                let (session, info) = handshake(parts, server, tcp).await?;
                (Stream::Tls(Box::new(session)), Some(info))
            }
        };
        Ok(Connection {
            stream,
            peer,
            tls,
            reused: false,
        })
    }
}

async fn connect(bind: Option<IpAddr>, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = match to {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if let Some(local) = bind.filter(|local| local.is_ipv4() == to.is_ipv4()) {
        socket.bind(SocketAddr::new(local, 0))?;
    }
    let stream = socket.connect(to).await?;
    // One request, one write: nothing to gain from waiting for more.
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn handshake(
    parts: &Parts,
    server: &Server,
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
    let connector = TlsConnector::from(parts.tls.config.clone());
    let limit = parts.config.connect_timeout;
    match timeout(limit, connector.connect(name.clone(), tcp)).await {
        Ok(Ok(session)) => {
            let info = parts.tls.info(session.get_ref().1, &name);
            Ok((session, info))
        }
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(_) => Err(FetchFailure::Timeout {
            phase: Phase::Connecting,
            after: limit,
        }),
    }
}

impl Stream {
    /// Whether nothing has happened on an idle connection: neither an end nor bytes that nobody asked for.
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
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, buffer),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

//! Sockets, and TLS over them. Certificate and key are read again when their files change, so renewing them needs no restart.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::config::TlsFiles;
use crate::connections::{ConnectionPermit, Connections};
use crate::timeouts::{Peer, TimedStream};

/// Maximum open connections.
const CONNECTIONS_MAX: usize = 1_000;

/// Longest time for a handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Interval of checks for changed files.
const LOOK: Duration = Duration::from_secs(1);

/// The source of incoming connections.
pub(crate) struct TlsListener {
    address: SocketAddr,
    connections: mpsc::Receiver<(Connection, SocketAddr)>,
}

impl Connected<IncomingStream<'_, TlsListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, TlsListener>) -> Peer {
        Peer {
            address: *stream.remote_addr(),
            requests: stream.io().permit.requests.clone(),
        }
    }
}

/// A connection. Its permit ends when it is dropped.
pub(crate) struct Connection {
    stream: Stream,
    permit: ConnectionPermit,
}

enum Stream {
    Plain(TimedStream<TcpStream>),
    Tls(Box<TlsStream<TimedStream<TcpStream>>>),
}

impl TlsListener {
    pub(crate) fn open(listener: TcpListener, tls: Option<&TlsFiles>) -> io::Result<TlsListener> {
        TlsListener::of_at_most(CONNECTIONS_MAX, listener, tls)
    }

    fn of_at_most(
        connections_max: usize,
        listener: TcpListener,
        tls: Option<&TlsFiles>,
    ) -> io::Result<TlsListener> {
        let open = Connections::new(connections_max);
        let address = listener.local_addr()?;
        let keys = tls.map(Keys::read).transpose()?;
        let (sender, connections) = mpsc::channel(16);
        tokio::spawn(accept(listener, keys, open, sender));
        Ok(TlsListener {
            address,
            connections,
        })
    }
}

impl Listener for TlsListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        match self.connections.recv().await {
            Some(connection) => connection,
            // The task that accepts connections ends only together with this one.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

async fn accept(
    listener: TcpListener,
    mut keys: Option<Keys>,
    open: Arc<Connections>,
    sender: mpsc::Sender<(Connection, SocketAddr)>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = sender.closed() => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(problem) => {
                // The usual cause is too many open files, which may be temporary.
                tracing::warn!("cannot accept connections: {problem}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (permit, close) = tokio::select! {
            admitted = open.admit(peer.ip()) => admitted,
            () = sender.closed() => return,
        };
        let stream = TimedStream::new(stream, permit.requests.clone(), close);
        let acceptor = keys.as_mut().map(Keys::acceptor);
        let sender = sender.clone();
        // A handshake waits for the client, so it must not delay other connections.
        tokio::spawn(async move {
            let stream = match acceptor {
                None => Stream::Plain(stream),
                Some(acceptor) => {
                    let shaken = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await;
                    match shaken {
                        Ok(Ok(stream)) => Stream::Tls(Box::new(stream)),
                        _ => return,
                    }
                }
            };
            let connection = Connection { stream, permit };
            let _ = sender.send((connection, peer)).await;
        });
    }
}

/// Certificate and key, with the times of their files.
struct Keys {
    files: TlsFiles,
    stamps: [Option<SystemTime>; 2],
    looked: std::time::Instant,
    config: Arc<ServerConfig>,
}

impl Keys {
    fn read(files: &TlsFiles) -> io::Result<Keys> {
        Ok(Keys {
            files: files.clone(),
            stamps: stamps(files),
            looked: std::time::Instant::now(),
            config: Arc::new(config(files)?),
        })
    }

    fn acceptor(&mut self) -> TlsAcceptor {
        if self.looked.elapsed() >= LOOK {
            self.looked = std::time::Instant::now();
            let stamps = stamps(&self.files);
            if stamps != self.stamps {
                match config(&self.files) {
                    Ok(config) => {
                        self.config = Arc::new(config);
                        self.stamps = stamps;
                        tracing::info!("certificate and key were reloaded");
                    }
                    // The other file may be about to be replaced.
                    Err(problem) => tracing::warn!(
                        "cannot reload certificate and key, so the previous ones stay in use: {problem}"
                    ),
                }
            }
        }
        TlsAcceptor::from(self.config.clone())
    }
}

fn stamps(files: &TlsFiles) -> [Option<SystemTime>; 2] {
    let stamp = |file: &Path| std::fs::metadata(file).and_then(|it| it.modified()).ok();
    [stamp(&files.certificate), stamp(&files.key)]
}

impl TlsFiles {
    /// Reads certificate and key as the daemon does.
    ///
    /// # Errors
    /// A file cannot be read, or the key does not fit the certificate.
    pub fn check(&self) -> io::Result<()> {
        config(self).map(drop)
    }
}

fn config(files: &TlsFiles) -> io::Result<ServerConfig> {
    let bad = |file: &Path, problem: &dyn std::fmt::Display| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{}: {problem}", file.display()),
        )
    };
    let chain = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|problem| bad(&files.certificate, &problem))?;
    let key =
        PrivateKeyDer::from_pem_file(&files.key).map_err(|problem| bad(&files.key, &problem))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|problem| bad(&files.certificate, &problem))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn idle_connections_do_not_lock_out_other_clients() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut doors = TlsListener::of_at_most(2, listener, None).unwrap();
        let mut idle = Vec::new();
        for _ in 0..2 {
            let client = TcpStream::connect(doors.address).await.unwrap();
            idle.push((client, doors.accept().await.0));
        }
        let mut client = TcpStream::connect(doors.address).await.unwrap();
        let (mut connection, _) = doors.accept().await;
        client.write_all(b"x").await.unwrap();
        assert_eq!(connection.read_u8().await.unwrap(), b'x');
        let closed = idle[0].1.read_u8().await.unwrap_err();
        assert_eq!(closed.kind(), io::ErrorKind::ConnectionAborted);
    }
}

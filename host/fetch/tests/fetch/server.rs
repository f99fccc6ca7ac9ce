//! A server that runs a script for each connection, and records the bytes that it received and sent.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A running server; stops when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    captures: Arc<Mutex<Vec<Capture>>>,
    task: JoinHandle<()>,
}

/// The recorded bytes of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Capture {
    pub(crate) received: Vec<u8>,
    pub(crate) sent: Vec<u8>,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// The server's side of one connection.
pub(crate) struct Connection {
    stream: Box<dyn Stream>,
    /// Number of the connection, from 0.
    pub(crate) number: usize,
    captures: Arc<Mutex<Vec<Capture>>>,
}

impl Server {
    /// Runs `script` once for each connection.
    pub(crate) async fn plain<F>(script: impl Fn(Connection) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::start(None, script).await
    }

    /// The same, over TLS.
    pub(crate) async fn tls<F>(
        acceptor: TlsAcceptor,
        script: impl Fn(Connection) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::start(Some(acceptor), script).await
    }

    async fn start<F>(
        acceptor: Option<TlsAcceptor>,
        script: impl Fn(Connection) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let captures = Arc::new(Mutex::new(Vec::new()));
        let kept = captures.clone();
        let task = tokio::spawn(async move {
            for number in 0.. {
                let (tcp, _) = listener.accept().await.unwrap();
                kept.lock().unwrap().push(Capture::default());
                let stream: Box<dyn Stream> = match &acceptor {
                    None => Box::new(tcp),
                    Some(acceptor) => match acceptor.accept(tcp).await {
                        Ok(session) => Box::new(session),
                        Err(_) => continue,
                    },
                };
                let connection = Connection {
                    stream,
                    number,
                    captures: kept.clone(),
                };
                tokio::spawn(script(connection));
            }
        });
        Server {
            address,
            captures,
            task,
        }
    }

    pub(crate) fn captures(&self) -> Vec<Capture> {
        self.captures.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    /// Reads up to and including a line feed.
    pub(crate) async fn line(&mut self, line: &mut Vec<u8>) {
        let mut byte = [0];
        while !line.ends_with(b"\n") && self.stream.read(&mut byte).await.is_ok_and(|n| n == 1) {
            line.push(byte[0]);
        }
    }

    /// Reads one request head. Returns `false` if the client has disconnected.
    pub(crate) async fn request(&mut self) -> bool {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            match self.stream.read(&mut byte).await {
                Ok(1) => head.push(byte[0]),
                _ => return false,
            }
        }
        let mut captures = self.captures.lock().unwrap();
        captures[self.number].received.extend_from_slice(&head);
        true
    }

    /// Sends all bytes. Returns `false` if the client has disconnected.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> bool {
        let sent = self.stream.write_all(bytes).await.is_ok() && self.stream.flush().await.is_ok();
        if sent {
            let mut captures = self.captures.lock().unwrap();
            captures[self.number].sent.extend_from_slice(bytes);
        }
        sent
    }

    /// Waits until the client disconnects.
    pub(crate) async fn hang(mut self) {
        let mut rest = Vec::new();
        let _ = self.stream.read_to_end(&mut rest).await;
    }

    /// Closes the connection with FIN, after close_notify over TLS.
    pub(crate) async fn close(mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Drops the socket: FIN without close_notify.
    pub(crate) fn drop_silently(self) {}
}

/// Accepts one connection, sends `response`, and resets it.
pub(crate) async fn resetting(
    after_request: bool,
    response: &'static [u8],
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let (mut tcp, _) = listener.accept().await.unwrap();
        if after_request {
            let mut buffer = [0; 4096];
            let _ = tcp.read(&mut buffer).await;
        }
        let _ = tcp.write_all(response).await;
        tcp.set_zero_linger().unwrap();
    });
    (address, task)
}

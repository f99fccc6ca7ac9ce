//! A TCP proxy between a node and NATS that can delay or block all traffic.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// State of the proxy's network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NatsNetwork {
    /// All data passes after this delay.
    Open(Duration),
    /// No data passes, and connections remain open.
    Cut,
}

/// A proxy in front of a server.
#[derive(Debug)]
pub struct NatsProxy {
    /// Its port on 127.0.0.1.
    pub port: u16,
    state: watch::Sender<NatsNetwork>,
}

impl NatsProxy {
    /// Starts a proxy for the server on this port.
    pub async fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (state, receiver) = watch::channel(NatsNetwork::Open(Duration::ZERO));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // If the server cannot be reached, the client is disconnected.
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else {
                    continue;
                };
                let ((a, b), (c, d)) = (client.into_split(), server.into_split());
                tokio::spawn(carry(a, d, receiver.clone()));
                tokio::spawn(carry(c, b, receiver.clone()));
            }
        });
        Self { port, state }
    }

    /// Changes the network, also for existing connections.
    pub fn set(&self, network: NatsNetwork) {
        self.state.send_replace(network);
    }
}

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut state: watch::Receiver<NatsNetwork>,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let open = state.wait_for(|network| *network != NatsNetwork::Cut).await;
        let delay = match open.map(|network| *network) {
            Ok(NatsNetwork::Open(delay)) => delay,
            _ => return,
        };
        tokio::time::sleep(delay).await;
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

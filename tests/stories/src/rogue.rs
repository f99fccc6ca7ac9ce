//! Misbehaving servers: each has its own socket and answers requests with the steps of a script.
//!
//! The servers run on their own threads, so that they do not share a runtime with the tested crawl. Dropping [`Rogues`] ends them
//! and closes their sockets.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opilio_test_web::Gate;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Most connections that one server accepts. A correct client needs fewer.
const CONNECTIONS_MAX: usize = 64;

/// One step of a server's script.
#[derive(Clone, Debug)]
pub enum RogueStep {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends these bytes repeatedly until the client disconnects.
    Flood(Vec<u8>),
    /// Sends these bytes repeatedly, one at a time with a pause before each, until the client disconnects.
    Drip(Vec<u8>, Duration),
    /// Waits at a gate.
    Pass(Gate),
    /// Waits for a byte from the client.
    Listen,
    /// Sends nothing more until the client disconnects.
    Hang,
    /// Closes the connection; with TLS after a close_notify alert.
    Close,
    /// Closes the connection; with TLS without a close_notify alert.
    Drop,
    /// Resets the connection.
    Reset,
}

/// Treatment of connections after the first, before anything is read from them.
#[derive(Clone, Debug)]
enum Later {
    /// The same as of the first.
    Same,
    /// These steps, on the plain socket.
    Steps(Vec<RogueStep>),
    /// The server does not listen any more.
    Gone,
}

/// Error of a certificate, besides being self-signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// No further error.
    Good,
    /// The certificate has expired.
    Expired,
    /// The certificate is for another name.
    OfAnother,
}

/// A server to be started. Without a script, robots.txt is answered with 404, and other targets with a page that contains the name
/// of the server.
#[derive(Clone, Debug)]
pub struct Rogue {
    name: String,
    scripts: Vec<(&'static str, Vec<RogueStep>)>,
    certificate: Option<Certificate>,
    later: Later,
}

/// A request that a server received.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// Name of the server.
    pub name: String,
    /// Path and query.
    pub target: String,
    /// The head of the request as received.
    pub head: String,
}

/// Running servers.
pub struct Rogues {
    addresses: Vec<(String, &'static str, SocketAddr)>,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    runtime: Option<Runtime>,
}

impl Rogue {
    /// Returns a server called `NAME.localhost`.
    pub fn new(name: &str) -> Rogue {
        Rogue {
            name: name.to_owned(),
            scripts: Vec::new(),
            certificate: None,
            later: Later::Same,
        }
    }

    /// Returns its name, without `.localhost`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets the steps for requests of a target. If the last step leaves the connection open, the next request is read.
    pub fn answers(mut self, target: &'static str, steps: impl Into<Vec<RogueStep>>) -> Rogue {
        self.scripts.push((target, steps.into()));
        self
    }

    /// Serves TLS with this certificate.
    pub fn with_tls(mut self, certificate: Certificate) -> Rogue {
        self.certificate = Some(certificate);
        self
    }

    /// Serves one exchange. Every later connection gets these steps instead, on the plain socket.
    pub fn and_then(mut self, steps: impl Into<Vec<RogueStep>>) -> Rogue {
        self.later = Later::Steps(steps.into());
        self
    }

    /// Serves one exchange, then stops listening.
    pub fn once(mut self) -> Rogue {
        self.later = Later::Gone;
        self
    }

    fn script(&self, target: &str) -> Vec<RogueStep> {
        let own = self.scripts.iter().find(|(asked, _)| *asked == target);
        if let Some((_, steps)) = own {
            return steps.clone();
        }
        let close = match self.later {
            Later::Same => "",
            Later::Steps(_) | Later::Gone => "Connection: close\r\n",
        };
        let (status, body) = match target {
            "/robots.txt" => ("404 Not Found", String::new()),
            _ => ("200 OK", format!("a page of {}", self.name)),
        };
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n{close}\r\n{body}"
        );
        vec![RogueStep::Send(answer.into_bytes())]
    }

    fn acceptor(&self) -> Option<TlsAcceptor> {
        let certificate = self.certificate?;
        let name = match certificate {
            Certificate::OfAnother => "another.localhost".to_owned(),
            _ => format!("{}.localhost", self.name),
        };
        let mut params = CertificateParams::new(vec![name]).unwrap();
        if certificate == Certificate::Expired {
            params.not_before = date_time_ymd(2000, 1, 1);
            params.not_after = date_time_ymd(2001, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let signed = params.self_signed(&key).unwrap().der().clone();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![signed], key)
            .unwrap();
        Some(TlsAcceptor::from(Arc::new(config)))
    }
}

impl Rogues {
    /// Starts servers, each on a port of its own.
    pub fn serve(rogues: impl IntoIterator<Item = Rogue>) -> Rogues {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let asked = Arc::<Mutex<Vec<ReceivedRequest>>>::default();
        let mut addresses = Vec::new();
        for rogue in rogues {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            let scheme = match rogue.certificate {
                Some(_) => "https",
                None => "http",
            };
            addresses.push((rogue.name.clone(), scheme, listener.local_addr().unwrap()));
            runtime.spawn(listen(rogue, listener, asked.clone()));
        }
        Rogues {
            addresses,
            asked,
            runtime: Some(runtime),
        }
    }

    /// Returns a URL of the server with this name.
    pub fn url(&self, name: &str, target: &str) -> String {
        let found = self.addresses.iter().find(|(known, ..)| known == name);
        let (_, scheme, address) = found.unwrap();
        format!("{scheme}://{name}.localhost:{}{target}", address.port())
    }

    /// Returns all requests so far.
    pub fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Rogues {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else {
            return;
        };
        // A runtime must not be shut down on a thread of another runtime.
        let gone = std::thread::spawn(move || runtime.shutdown_timeout(Duration::from_secs(10)));
        let _ = gone.join();
    }
}

async fn listen(
    rogue: Rogue,
    listener: std::net::TcpListener,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
) {
    let acceptor = rogue.acceptor();
    let rogue = Arc::new(rogue);
    let listener = TcpListener::from_std(listener).unwrap();
    for number in 0..CONNECTIONS_MAX {
        let (tcp, _) = listener.accept().await.unwrap();
        // Each write is sent as its own packet.
        tcp.set_nodelay(true).unwrap();
        let (rogue, acceptor, asked) = (rogue.clone(), acceptor.clone(), asked.clone());
        let gone = matches!(rogue.later, Later::Gone);
        let served = tokio::spawn(async move {
            match (&rogue.later, number) {
                (Later::Steps(steps), 1..) => {
                    perform(&mut Stream::Plain(tcp), steps).await;
                }
                _ => converse(&rogue, tcp, acceptor, &asked).await,
            }
        });
        if gone {
            drop(listener);
            let _ = served.await;
            return;
        }
    }
}

/// Answers one request after another, until a side closes the connection.
async fn converse(
    rogue: &Rogue,
    tcp: TcpStream,
    acceptor: Option<TlsAcceptor>,
    asked: &Mutex<Vec<ReceivedRequest>>,
) {
    let mut stream = match acceptor {
        None => Stream::Plain(tcp),
        Some(acceptor) => match acceptor.accept(tcp).await {
            Ok(session) => Stream::Tls(Box::new(session)),
            Err(_) => return,
        },
    };
    while let Some(head) = stream.request().await {
        let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let steps = rogue.script(&target);
        asked.lock().unwrap().push(ReceivedRequest {
            name: rogue.name.clone(),
            target,
            head,
        });
        if !perform(&mut stream, &steps).await {
            return;
        }
    }
}

/// Performs the steps. Returns `true` if the connection can still be used.
async fn perform(stream: &mut Stream, steps: &[RogueStep]) -> bool {
    for step in steps {
        let is_open = match step {
            RogueStep::Send(bytes) => stream.send(bytes).await,
            RogueStep::Flood(bytes) => loop {
                if !stream.send(bytes).await {
                    break false;
                }
            },
            RogueStep::Drip(bytes, pause) => {
                for byte in bytes.iter().cycle() {
                    tokio::time::sleep(*pause).await;
                    if !stream.send(&[*byte]).await {
                        break;
                    }
                }
                false
            }
            RogueStep::Pass(gate) => {
                gate.pass().await;
                true
            }
            RogueStep::Listen => stream.byte().await.is_some(),
            RogueStep::Hang => {
                while stream.byte().await.is_some() {}
                false
            }
            RogueStep::Close => {
                stream.close().await;
                // Closing a socket with unread bytes would reset the connection.
                while stream.byte().await.is_some() {}
                false
            }
            RogueStep::Drop => false,
            RogueStep::Reset => {
                stream.tcp().set_zero_linger().unwrap();
                false
            }
        };
        if !is_open {
            return false;
        }
    }
    true
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    fn tcp(&self) -> &TcpStream {
        match self {
            Stream::Plain(tcp) => tcp,
            Stream::Tls(session) => session.get_ref().0,
        }
    }

    async fn byte(&mut self) -> Option<u8> {
        let byte = match self {
            Stream::Plain(tcp) => tcp.read_u8().await,
            Stream::Tls(session) => session.read_u8().await,
        };
        byte.ok()
    }

    /// Reads the head of the next request; `None` if the client has disconnected.
    async fn request(&mut self) -> Option<String> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.byte().await?);
        }
        Some(String::from_utf8_lossy(&head).into_owned())
    }

    /// Returns false if the client has disconnected.
    async fn send(&mut self, bytes: &[u8]) -> bool {
        match self {
            Stream::Plain(tcp) => tcp.write_all(bytes).await.is_ok(),
            Stream::Tls(session) => {
                session.write_all(bytes).await.is_ok() && session.flush().await.is_ok()
            }
        }
    }

    async fn close(&mut self) {
        let _ = match self {
            Stream::Plain(tcp) => tcp.shutdown().await,
            Stream::Tls(session) => session.shutdown().await,
        };
    }
}

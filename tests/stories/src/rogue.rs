//! Servers that do what no server should: each answers with the steps of a script, on sockets of its own.
//!
//! They run on threads of their own, so that whoever is tested does not share a turn with them, and are gone, sockets and
//! all, when they are dropped.

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

/// Connections of one server; more are taken for a client that runs mad.
const CONNECTIONS_MAX: usize = 64;

/// One thing that a server does.
#[derive(Clone, Debug)]
pub enum RogueStep {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends these bytes again and again, until the client goes.
    Flood(Vec<u8>),
    /// Sends these bytes one by one with a pause before each, again and again, until the client goes.
    Drip(Vec<u8>, Duration),
    /// Waits at a gate.
    Pass(Gate),
    /// Waits for the client to say something.
    Listen,
    /// Says nothing more until the client goes.
    Hang,
    /// Ends the connection, below TLS by its rules.
    Close,
    /// Ends the connection; below TLS without saying so.
    Drop,
    /// Resets the connection.
    Reset,
}

/// Treatment of connections after the first, before anything is read from them.
#[derive(Clone, Debug)]
enum Later {
    /// The same as to the first.
    Same,
    /// These steps, on the bare socket.
    Steps(Vec<RogueStep>),
    /// Nobody listens any more.
    Gone,
}

/// Fault of a certificate, besides that it is self-signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// Nothing.
    Good,
    /// It ended long ago.
    Expired,
    /// It is for another name.
    OfAnother,
}

/// A server to be started. Whatever no script answers is said to be missing where it is robots.txt, and is a page that
/// names its host elsewhere.
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
    /// The head of the request as it came.
    pub head: String,
}

/// Running servers.
pub struct Rogues {
    addresses: Vec<(String, &'static str, SocketAddr)>,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    runtime: Option<Runtime>,
}

impl Rogue {
    /// A server called `NAME.localhost`.
    pub fn new(name: &str) -> Rogue {
        Rogue {
            name: name.to_owned(),
            scripts: Vec::new(),
            certificate: None,
            later: Later::Same,
        }
    }

    /// Its name, without `.localhost`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets the steps for requests of a target. If the last step leaves the connection open, the next request is read.
    pub fn answers(mut self, target: &'static str, steps: impl Into<Vec<RogueStep>>) -> Rogue {
        self.scripts.push((target, steps.into()));
        self
    }

    /// Speaks TLS.
    pub fn with_tls(mut self, certificate: Certificate) -> Rogue {
        self.certificate = Some(certificate);
        self
    }

    /// Serves one exchange; to each connection after it this happens instead, on the bare socket.
    pub fn and_then(mut self, steps: impl Into<Vec<RogueStep>>) -> Rogue {
        self.later = Later::Steps(steps.into());
        self
    }

    /// Serves one exchange and is gone.
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

    /// A URL of the server of this name.
    pub fn url(&self, name: &str, target: &str) -> String {
        let found = self.addresses.iter().find(|(known, ..)| known == name);
        let (_, scheme, address) = found.unwrap();
        format!("{scheme}://{name}.localhost:{}{target}", address.port())
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Rogues {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else {
            return;
        };
        // A runtime may not be waited for on a thread of another.
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
        // Each write is a packet of its own: what belongs apart comes apart.
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

/// One request after the other, until one side has had enough.
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

/// Returns `true` if the connection is still good for anything.
async fn perform(stream: &mut Stream, steps: &[RogueStep]) -> bool {
    for step in steps {
        let goes_on = match step {
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
                // What is left unread when a socket goes resets its connection.
                while stream.byte().await.is_some() {}
                false
            }
            RogueStep::Drop => false,
            RogueStep::Reset => {
                stream.tcp().set_zero_linger().unwrap();
                false
            }
        };
        if !goes_on {
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

    /// The head of the next request; none where the client has gone.
    async fn request(&mut self) -> Option<String> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.byte().await?);
        }
        Some(String::from_utf8_lossy(&head).into_owned())
    }

    /// False where the client has gone.
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

//! A web on loopback: several hosts behind one listener, distinguished by the `Host` header.
//!
//! The demo, the self test, the end-to-end tests and the benchmarks crawl it. It is not a general web server: it serves what the
//! tests need, and records all requests.

pub mod demo;
pub mod directory;
mod gate;
pub mod schemes;

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Collected, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use gate::Gate;

/// A running web. Dropping it stops the listener.
pub struct Web {
    address: SocketAddr,
    requests: Arc<Mutex<Requests>>,
    listener: JoinHandle<()>,
}

/// Hosts, before the web is served.
#[derive(Default)]
pub struct WebBuilder {
    sites: HashMap<String, Site>,
}

/// One host: its paths and their replies.
#[derive(Default)]
pub struct Site {
    pages: HashMap<String, Answer>,
    rest: Option<Answer>,
}

type Answer = Arc<dyn Fn(&SeenRequest) -> Reply + Send + Sync>;

/// A request that the web received.
#[derive(Clone, Debug)]
pub struct SeenRequest {
    /// Host without port, lower-case.
    pub host: String,
    /// Path and query, as sent.
    pub target: String,
    /// Number of the request for this host and target, from 1.
    pub visit: usize,
    /// Header fields as sent.
    pub headers: HeaderMap,
    /// Method as sent.
    pub method: Method,
    /// The request's body; usually empty.
    pub body: Bytes,
    /// Status of the response.
    pub status: u16,
    /// Arrival time.
    pub came: Instant,
    /// Time at which its response was sent or the client disconnected; `None` while the response is delayed.
    pub left: Option<Instant>,
}

/// All requests so far, and the number of requests for each target.
#[derive(Default)]
struct Requests {
    seen: Vec<SeenRequest>,
    counts: HashMap<String, usize>,
}

/// A response.
#[derive(Clone, Debug)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Header fields other than Content-Length and Date.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Bytes,
    /// Send the body in chunks of this many bytes, without a Content-Length.
    pub chunks: Option<usize>,
    /// Delay it until this gate opens.
    pub gate: Option<Gate>,
    /// Delay it for this long, like a slow server.
    pub takes: Duration,
}

impl Reply {
    /// 200 with a media type.
    pub fn ok(media_type: &str, body: impl Into<Bytes>) -> Reply {
        Reply {
            status: 200,
            headers: vec![("content-type", media_type.to_owned())],
            body: body.into(),
            chunks: None,
            gate: None,
            takes: Duration::ZERO,
        }
    }

    /// An HTML page in UTF-8.
    pub fn html(body: impl Into<String>) -> Reply {
        Reply::ok("text/html; charset=utf-8", body.into())
    }

    /// A redirect to `location`, written as given.
    pub fn redirect(status: u16, location: &str) -> Reply {
        Reply {
            status,
            headers: vec![("location", location.to_owned())],
            ..Reply::ok("", Bytes::new())
        }
    }

    /// A status with a one-line body.
    pub fn status(status: u16) -> Reply {
        let body = format!("<!doctype html><title>{status}</title><p>Status {status}.</p>");
        Reply {
            status,
            ..Reply::html(body)
        }
    }

    /// Adds a header field.
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Reply {
        self.headers.push((name, value.into()));
        self
    }

    /// Sends the body in chunks of `size` bytes.
    pub fn chunked(mut self, size: usize) -> Reply {
        self.chunks = Some(size);
        self
    }

    /// Delays it until the gate opens.
    pub fn behind(mut self, gate: &Gate) -> Reply {
        self.gate = Some(gate.clone());
        self
    }

    /// Delays it for this long.
    pub fn taking(mut self, time: Duration) -> Reply {
        self.takes = time;
        self
    }
}

impl Site {
    /// Always answers `target` (path and query) with the same reply.
    pub fn page(&mut self, target: &str, reply: Reply) -> &mut Site {
        self.answer(target, move |_| reply.clone())
    }

    /// Answers `target` with the function's reply to the request.
    pub fn answer(
        &mut self,
        target: &str,
        answer: impl Fn(&SeenRequest) -> Reply + Send + Sync + 'static,
    ) -> &mut Site {
        self.pages.insert(target.to_owned(), Arc::new(answer));
        self
    }

    /// Answers all other targets of the site. The default is 404.
    pub fn rest(
        &mut self,
        answer: impl Fn(&SeenRequest) -> Reply + Send + Sync + 'static,
    ) -> &mut Site {
        self.rest = Some(Arc::new(answer));
        self
    }

    fn reply(&self, seen: &SeenRequest) -> Reply {
        match self.pages.get(&seen.target).or(self.rest.as_ref()) {
            Some(answer) => answer(seen),
            None => Reply::status(404),
        }
    }
}

impl WebBuilder {
    /// The site of a host (lower-case, without port). Creates it if it is missing.
    pub fn site(&mut self, host: &str) -> &mut Site {
        self.sites.entry(host.to_owned()).or_default()
    }

    /// Serves on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// No port can be bound.
    pub async fn serve(self) -> std::io::Result<Web> {
        self.serve_on(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0))
            .await
    }

    /// Serves on an address.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn serve_on(self, address: SocketAddr) -> std::io::Result<Web> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let sites = Arc::new(self.sites);
        let requests = Arc::new(Mutex::new(Requests::default()));
        let record = requests.clone();
        let listener = tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    continue;
                };
                let _ = stream.set_nodelay(true);
                let (sites, record) = (sites.clone(), record.clone());
                tokio::spawn(async move {
                    let service = service_fn(move |request: Request<Incoming>| {
                        let (sites, record) = (sites.clone(), record.clone());
                        async move {
                            let (parts, body) = request.into_parts();
                            // A broken request body is not an error of the web.
                            let body = body.collect().await.map(Collected::to_bytes);
                            let request = Request::from_parts(parts, body.unwrap_or_default());
                            let (reply, leaving) = answer(&sites, &record, &request);
                            let response = held(reply).await;
                            drop(leaving);
                            Ok::<_, Infallible>(response)
                        }
                    });
                    // A client that disconnects is not an error of the web.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Ok(Web {
            address,
            requests,
            listener,
        })
    }
}

impl Web {
    /// Starts a web without hosts.
    pub fn builder() -> WebBuilder {
        WebBuilder::default()
    }

    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://HOST:PORT` and the target.
    pub fn url(&self, host: &str, target: &str) -> String {
        format!("http://{host}:{}{target}", self.address.port())
    }

    /// Stops the listener, and returns its address when another web can listen on it.
    pub async fn stopped(mut self) -> SocketAddr {
        self.listener.abort();
        // The aborted task returns an error, which is expected.
        let _ = (&mut self.listener).await;
        self.address
    }

    /// All requests so far, in order of arrival.
    pub fn requests(&self) -> Vec<SeenRequest> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .seen
            .clone()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

/// Records when a request ends: its response was sent, or the client disconnected.
struct RequestEnd {
    record: Arc<Mutex<Requests>>,
    place: usize,
}

impl Drop for RequestEnd {
    fn drop(&mut self) {
        let mut requests = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = requests.seen.get_mut(self.place) {
            seen.left = Some(Instant::now());
        }
    }
}

fn answer(
    sites: &HashMap<String, Site>,
    record: &Arc<Mutex<Requests>>,
    request: &Request<Bytes>,
) -> (Reply, RequestEnd) {
    let came = Instant::now();
    let host = request
        .headers()
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    let host = host
        .rsplit_once(':')
        .map_or(host, |(name, _)| name)
        .to_ascii_lowercase();
    let target = request
        .uri()
        .path_and_query()
        .map_or("/", |target| target.as_str())
        .to_owned();
    let mut requests = record.lock().unwrap_or_else(PoisonError::into_inner);
    let count = requests
        .counts
        .entry(format!("{host}{target}"))
        .or_default();
    *count += 1;
    let visit = *count;
    let headers = request.headers().clone();
    let mut seen = SeenRequest {
        host,
        target,
        visit,
        headers,
        method: request.method().clone(),
        body: request.body().clone(),
        status: 0,
        came,
        left: None,
    };
    let reply = match sites.get(&seen.host) {
        Some(site) => site.reply(&seen),
        None => Reply::status(421),
    };
    seen.status = reply.status;
    requests.seen.push(seen);
    let leaving = RequestEnd {
        record: record.clone(),
        place: requests.seen.len() - 1,
    };
    (reply, leaving)
}

async fn held(reply: Reply) -> Response<BoxBody<Bytes, Infallible>> {
    if let Some(gate) = &reply.gate {
        gate.pass().await;
    }
    if !reply.takes.is_zero() {
        tokio::time::sleep(reply.takes).await;
    }
    respond(reply)
}

fn respond(reply: Reply) -> Response<BoxBody<Bytes, Infallible>> {
    let body = match reply.chunks {
        None => Full::new(reply.body).boxed(),
        Some(size) => {
            let chunks: Vec<_> = reply
                .body
                .chunks(size)
                .map(|chunk| Ok(Frame::data(Bytes::copy_from_slice(chunk))))
                .collect();
            StreamBody::new(Chunks(chunks.into_iter())).boxed()
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in reply.headers {
        if let Ok(value) = value.parse() {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// Chunks that are already in memory.
struct Chunks(std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>);

impl futures_core::Stream for Chunks {
    type Item = Result<Frame<Bytes>, Infallible>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.next())
    }
}

//! A web of test pages: a server on loopback, and a fetcher that sends requests for all hosts to it.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use data_encoding::BASE64;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opilio_browser::{
    FetchFuture, FetchRejection, OpenedWebSocket, PageBody, PageFetcher, full_body,
};
use sha1::{Digest as _, Sha1};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};

/// Requests for hosts with this suffix are refused.
const REFUSED: &str = "refused.test";

/// A request that the fetcher has received.
#[derive(Clone, Debug)]
pub(crate) struct Fetched {
    pub(crate) method: String,
    pub(crate) uri: String,
    pub(crate) body: String,
    pub(crate) range: Option<String>,
}

/// Fetches URIs of all hosts from the server on loopback, and records every request.
pub(crate) struct Site {
    address: SocketAddr,
    fetched: Mutex<Vec<Fetched>>,
}

type SiteResponse = Response<Full<Bytes>>;

impl Site {
    /// Starts a server for the pages that the function returns for a URI and a body.
    pub(crate) async fn serve(
        pages: impl Fn(&Fetched) -> SiteResponse + Send + Sync + 'static,
    ) -> Arc<Site> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let pages = Arc::new(pages);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let pages = pages.clone();
                let service = service_fn(move |request| respond(pages.clone(), request));
                let connection = hyper::server::conn::http1::Builder::new();
                tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
            }
        });
        Arc::new(Site {
            address,
            fetched: Mutex::default(),
        })
    }

    /// Returns all requests so far.
    pub(crate) fn fetched(&self) -> Vec<Fetched> {
        let fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        fetched.clone()
    }

    /// Returns the URIs of all requests so far.
    pub(crate) fn uris(&self) -> Vec<String> {
        self.fetched().into_iter().map(|it| it.uri).collect()
    }

    fn note(&self, fetched: Fetched) {
        let mut all = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(fetched);
    }
}

async fn respond(
    pages: Arc<impl Fn(&Fetched) -> SiteResponse>,
    request: Request<Incoming>,
) -> Result<SiteResponse, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    Ok(pages(&fetched(&head, &body)))
}

fn fetched(head: &http::request::Parts, body: &[u8]) -> Fetched {
    let text = |name: &str| Some(head.headers.get(name)?.to_str().ok()?.to_owned());
    Fetched {
        method: head.method.to_string(),
        uri: text("x-test-uri").unwrap_or_else(|| head.uri.to_string()),
        body: String::from_utf8_lossy(body).into_owned(),
        range: text("range"),
    }
}

impl PageFetcher for Site {
    fn fetch(&self, request: Request<PageBody>) -> FetchFuture<'_, Response<PageBody>> {
        Box::pin(async move {
            let (mut head, body) = request.into_parts();
            let body = body.collect().await;
            let body = body.map_err(|it| FetchRejection::failed(it.to_string()))?;
            let body = body.to_bytes();
            self.note(fetched(&head, &body));
            let uri = head.uri.to_string();
            if head.uri.host().is_some_and(|host| host.ends_with(REFUSED)) {
                return Err(FetchRejection::refused("a policy"));
            }
            head.headers
                .insert("x-test-uri", uri.parse().expect("a URI is ASCII"));
            let path = head.uri.path_and_query().map_or("/", |it| it.as_str());
            head.uri = path.parse().expect("a path is a URI");
            let request = Request::from_parts(head, Full::new(body));
            let stream = TcpStream::connect(self.address).await.expect("it listens");
            let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream));
            let (mut sender, connection) = handshake.await.expect("a new connection");
            tokio::spawn(connection);
            let response = sender.send_request(request).await;
            let response = response.map_err(|it| FetchRejection::failed(it.to_string()))?;
            Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
        })
    }

    /// Accepts the WebSocket, and sends the text "hello".
    fn open_web_socket(&self, request: Request<()>) -> FetchFuture<'_, OpenedWebSocket> {
        Box::pin(async move {
            let (head, ()) = request.into_parts();
            self.note(fetched(&head, &[]));
            let key = head.headers["sec-websocket-key"].as_bytes();
            let mut digest = Sha1::new();
            digest.update(key);
            digest.update("258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
            let accept = BASE64.encode(&digest.finalize());
            let response = Response::builder()
                .status(StatusCode::SWITCHING_PROTOCOLS)
                .header("connection", "Upgrade")
                .header("upgrade", "websocket")
                .header("sec-websocket-accept", accept);
            let (mut server, stream) = tokio::io::duplex(1024);
            tokio::spawn(async move {
                let written = server.write_all(b"\x81\x05hello").await;
                written.expect("the page reads");
                // The stream stays open until the page closes it.
                let _ = tokio::io::copy(&mut server, &mut tokio::io::sink()).await;
            });
            Ok(OpenedWebSocket {
                response: response.body(()).expect("a valid response"),
                stream: Box::new(stream),
            })
        })
    }
}

/// Returns an HTML page.
pub(crate) fn html(body: &str) -> SiteResponse {
    typed(
        "text/html; charset=utf-8",
        format!("<!doctype html><title>Test</title>{body}"),
    )
}

/// Returns a response with this media type.
pub(crate) fn typed(media_type: &str, body: impl Into<Bytes>) -> SiteResponse {
    let response = Response::builder().header("content-type", media_type);
    response
        .body(Full::new(body.into()))
        .expect("a valid response")
}

/// Returns a response with status 404.
pub(crate) fn missing() -> SiteResponse {
    let mut response = typed("text/plain", "missing");
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

/// Serves this page. `/events` is an event stream with one event, `/endless` is another response; both do not end.
pub(crate) struct Endless(pub(crate) &'static str);

/// A body with one part that stays open.
struct OnePart(Option<Bytes>);

impl Body for OnePart {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.0.take() {
            Some(part) => Poll::Ready(Some(Ok(Frame::data(part)))),
            None => Poll::Pending,
        }
    }
}

impl PageFetcher for Endless {
    fn fetch(&self, request: Request<PageBody>) -> FetchFuture<'_, Response<PageBody>> {
        Box::pin(async move {
            let event = || OnePart(Some(Bytes::from_static(b"data: first\n\n"))).boxed_unsync();
            let (media_type, body) = match request.uri().path() {
                "/events" => ("text/event-stream", event()),
                "/endless" => ("text/plain", event()),
                _ => ("text/html", full_body(self.0)),
            };
            let response = Response::builder().header("content-type", media_type);
            Ok(response.body(body).expect("a valid response"))
        })
    }
}

/// A fetcher for pages that request nothing.
pub(crate) struct NoNetwork;

impl PageFetcher for NoNetwork {
    fn fetch(&self, _: Request<PageBody>) -> FetchFuture<'_, Response<PageBody>> {
        Box::pin(async {
            Ok(Response::new(full_body(
                "<!doctype html><title>Empty</title>",
            )))
        })
    }
}

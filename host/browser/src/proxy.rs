//! The recording proxy: HTTP/1.1 on a loopback port of one page. It terminates TLS with certificates of the job's authority, and
//! passes every request to the page's [`PageFetcher`]. It opens no connection itself.
//!
//! The port belongs to one page, so every request is attributed to this page, including those of frames, workers and service
//! workers. Proxy credentials would serve the same purpose, but Chromium sends them only on request, with an event for every
//! request. Connections of other users of the machine are refused.

mod body;
mod peer;
mod refusing;

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::authority::JobAuthority;
use crate::error::BrowserError;
use crate::page_fetcher::{OpenedWebSocket, PageBody, PageFetcher, full_body};
use crate::traffic::PageTraffic;

use body::CountedBody;
pub(crate) use refusing::RefusingProxy;

/// First byte of a TLS handshake record (RFC 8446 §5.1).
const TLS_HANDSHAKE: u8 = 22;

/// Headers for one connection only (RFC 9110 §7.6.1), and headers of proxies.
const CONNECTION_HEADERS: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// The proxy of one page. Dropping it ends all its connections.
pub(crate) struct PageProxy {
    address: SocketAddr,
    /// Connections end when this is dropped.
    _open: watch::Sender<()>,
}

/// The parts that all connections of a page share.
struct Shared {
    fetcher: Arc<dyn PageFetcher>,
    authority: Arc<JobAuthority>,
    traffic: PageTraffic,
    open: watch::Receiver<()>,
}

/// The server of a tunnel; `None` for other connections.
#[derive(Clone)]
struct Tunnel {
    scheme: Scheme,
    authority: Authority,
}

/// Reason for which a connection is closed without a response. In the page, this is a network error.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NoResponse(String);

impl PageProxy {
    /// Opens the port of a page.
    pub(crate) async fn open(
        fetcher: Arc<dyn PageFetcher>,
        authority: Arc<JobAuthority>,
        traffic: PageTraffic,
    ) -> Result<PageProxy, BrowserError> {
        let (listener, address) = listen().await?;
        let (open, closed) = watch::channel(());
        let shared = Arc::new(Shared {
            fetcher,
            authority,
            traffic,
            open: closed.clone(),
        });
        tokio::spawn(until_closed(closed, accept(listener, shared)));
        Ok(PageProxy {
            address,
            _open: open,
        })
    }

    /// Returns the address of the port on loopback.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Opens a free port on loopback.
async fn listen() -> Result<(TcpListener, SocketAddr), BrowserError> {
    listen_on(0).await
}

/// Opens this port on loopback; 0 for any that is free.
async fn listen_on(port: u16) -> Result<(TcpListener, SocketAddr), BrowserError> {
    let open = async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    open.await
        .map_err(|source| BrowserError::ProxyPort { source })
}

/// Runs until the page's proxy is dropped.
async fn until_closed(mut open: watch::Receiver<()>, work: impl Future<Output = ()>) {
    tokio::select! {
        () = work => {}
        // Nothing is ever sent. The wait ends when the sender is dropped.
        _ = open.changed() => {}
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) if peer::is_own_user(peer, &stream) => {
                let connection = serve_connection(shared.clone(), TokioIo::new(stream), None);
                tokio::spawn(until_closed(shared.open.clone(), connection));
            }
            Ok((_, peer)) => {
                tracing::warn!(%peer, "refused a connection of another user to the recording proxy");
            }
            Err(problem) => {
                // For instance a lack of file descriptors, which is temporary.
                tracing::warn!(%problem, "the recording proxy accepts no connection");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

/// Serves one connection: from the browser to the proxy, or inside a tunnel.
async fn serve_connection<I>(shared: Arc<Shared>, io: TokioIo<I>, tunnel: Option<Tunnel>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        answer(shared.clone(), request, tunnel.clone())
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .preserve_header_case(true)
        .serve_connection(io, service)
        .with_upgrades();
    // The connection ends with an error after a request without a response, and if the browser closes it.
    if let Err(problem) = connection.await {
        tracing::trace!(%problem, "connection of a page");
    }
}

async fn answer(
    shared: Arc<Shared>,
    mut request: Request<Incoming>,
    tunnel: Option<Tunnel>,
) -> Result<Response<PageBody>, NoResponse> {
    if request.method() == Method::CONNECT {
        return match (tunnel, request.uri().authority().cloned()) {
            (None, Some(authority)) => {
                let upgrade = hyper::upgrade::on(&mut request);
                let open = shared.open.clone();
                tokio::spawn(until_closed(open, end_tunnel(shared, upgrade, authority)));
                Ok(Response::new(full_body("")))
            }
            _ => Err(NoResponse("CONNECT inside a tunnel".to_owned())),
        };
    }
    if is_of_the_browser(request.headers()) {
        tracing::debug!(uri = %request.uri(), "refused a request of the browser's own");
        let mut response = Response::new(full_body(""));
        *response.status_mut() = StatusCode::FORBIDDEN;
        return Ok(response);
    }
    let is_web_socket = request
        .headers()
        .get(header::UPGRADE)
        .is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"websocket"));
    *request.uri_mut() = absolute_uri(request.uri(), tunnel.as_ref(), is_web_socket)?;
    match is_web_socket {
        true => open_web_socket(&shared, request).await,
        false => fetch(&shared, request).await,
    }
}

async fn fetch(
    shared: &Shared,
    request: Request<Incoming>,
) -> Result<Response<PageBody>, NoResponse> {
    let mut in_flight = shared.traffic.begin(&request).map_err(NoResponse)?;
    let mut request = request.map(|body| body.map_err(Into::into).boxed_unsync());
    remove_connection_headers(request.headers_mut());
    let is_head = request.method() == Method::HEAD;
    let has_no_body = |status: StatusCode| is_head || matches!(status.as_u16(), 204 | 205 | 304);
    match shared.fetcher.fetch(request).await {
        Err(rejection) => {
            in_flight.reject(rejection.to_string());
            Err(NoResponse(rejection.to_string()))
        }
        Ok(mut response) => {
            in_flight.head(&response);
            remove_connection_headers(response.headers_mut());
            if has_no_body(response.status()) {
                in_flight.complete();
            }
            Ok(response.map(|body| CountedBody::new(body, in_flight).boxed_unsync()))
        }
    }
}

async fn open_web_socket(
    shared: &Arc<Shared>,
    mut request: Request<Incoming>,
) -> Result<Response<PageBody>, NoResponse> {
    let in_flight = shared.traffic.begin(&request).map_err(NoResponse)?;
    let upgrade = hyper::upgrade::on(&mut request);
    match shared.fetcher.open_web_socket(request.map(drop)).await {
        Err(rejection) => {
            in_flight.reject(rejection.to_string());
            Err(NoResponse(rejection.to_string()))
        }
        Ok(OpenedWebSocket { response, stream }) => {
            let mut in_flight = in_flight;
            in_flight.head(&response);
            in_flight.become_web_socket();
            let pass_on = async move {
                let mut stream = stream;
                if let Ok(upgraded) = upgrade.await {
                    let mut upgraded = TokioIo::new(upgraded);
                    // Either end may close the connection at any time.
                    let _ = tokio::io::copy_bidirectional(&mut upgraded, &mut stream).await;
                }
            };
            tokio::spawn(until_closed(shared.open.clone(), pass_on));
            Ok(response.map(|()| full_body("")))
        }
    }
}

/// Serves the connection in a CONNECT tunnel: TLS, or plain HTTP for `ws:`.
fn end_tunnel(
    shared: Arc<Shared>,
    upgrade: OnUpgrade,
    authority: Authority,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    // The future is boxed, because serving a tunnel is recursive.
    Box::pin(serve_tunnel(shared, upgrade, authority))
}

async fn serve_tunnel(shared: Arc<Shared>, upgrade: OnUpgrade, authority: Authority) {
    let Ok(upgraded) = upgrade.await else { return };
    let (mut reader, writer) = tokio::io::split(TokioIo::new(upgraded));
    let Ok(first) = reader.read_u8().await else {
        return;
    };
    let reader = std::io::Cursor::new([first]).chain(reader);
    let stream = tokio::io::join(reader, writer);
    if first != TLS_HANDSHAKE {
        let tunnel = Tunnel {
            scheme: Scheme::HTTP,
            authority,
        };
        return serve_connection(shared, TokioIo::new(stream), Some(tunnel)).await;
    }
    let host = authority.host().trim_matches(['[', ']']);
    let server = match shared.authority.server(host) {
        Ok(server) => server,
        Err(problem) => {
            tracing::warn!(host, problem, "no certificate for the recording proxy");
            return;
        }
    };
    match TlsAcceptor::from(server).accept(stream).await {
        Ok(stream) => {
            let tunnel = Tunnel {
                scheme: Scheme::HTTPS,
                authority,
            };
            serve_connection(shared, TokioIo::new(stream), Some(tunnel)).await;
        }
        Err(problem) => tracing::debug!(host, %problem, "TLS of a page"),
    }
}

/// Returns the absolute URI of a request. In a tunnel, the server is the one of the tunnel. Default ports are left out.
fn absolute_uri(
    uri: &Uri,
    tunnel: Option<&Tunnel>,
    is_web_socket: bool,
) -> Result<Uri, NoResponse> {
    let (scheme, authority) = match tunnel {
        Some(tunnel) => (tunnel.scheme.clone(), tunnel.authority.clone()),
        None => match (uri.scheme(), uri.authority()) {
            (Some(scheme), Some(authority)) => (scheme.clone(), authority.clone()),
            _ => return Err(NoResponse(format!("{uri} is not absolute"))),
        },
    };
    let default_port = if scheme == Scheme::HTTPS { 443 } else { 80 };
    let authority = match authority.port_u16() == Some(default_port) {
        true => authority.host().to_owned(),
        false => authority.to_string(),
    };
    let scheme = match (is_web_socket, scheme == Scheme::HTTPS) {
        (true, true) => "wss",
        (true, false) => "ws",
        (false, _) => scheme.as_str(),
    };
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let built = Uri::builder()
        .scheme(scheme)
        .authority(authority)
        .path_and_query(path);
    built
        .build()
        .map_err(|problem| NoResponse(problem.to_string()))
}

/// Returns `true` if the browser itself made the request, not a page. Chromium's services use the proxy of the page in whose
/// context they run. Their requests have no initiator (`Sec-Fetch-Site: none`) and are not navigations. Requests of a page have an
/// initiator or are navigations (Fetch Metadata, https://www.w3.org/TR/fetch-metadata/).
fn is_of_the_browser(headers: &HeaderMap) -> bool {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|it| it == value);
    is("sec-fetch-site", "none") && is("sec-fetch-mode", "no-cors") && is("sec-fetch-dest", "empty")
}

/// Removes headers for one connection only: those of the standard, and those that `Connection` lists.
fn remove_connection_headers(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in CONNECTION_HEADERS {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[track_caller]
    fn check(uri: &str, tunnel: Option<(Scheme, &str)>, is_web_socket: bool, expected: &str) {
        let tunnel = tunnel.map(|(scheme, authority)| Tunnel {
            scheme,
            authority: authority.parse().expect("a valid authority"),
        });
        let uri = uri.parse().expect("a valid URI");
        let absolute = absolute_uri(&uri, tunnel.as_ref(), is_web_socket);
        assert_eq!(absolute.expect("a valid URI").to_string(), expected);
    }

    #[test]
    fn requests_have_absolute_uris_without_default_ports() {
        check("http://a.test/x?y", None, false, "http://a.test/x?y");
        check("http://a.test:80/", None, false, "http://a.test/");
        let tunnel = Some((Scheme::HTTPS, "a.test:443"));
        check("/x?y", tunnel.clone(), false, "https://a.test/x?y");
        check("/socket", tunnel, true, "wss://a.test/socket");
        let tunnel = Some((Scheme::HTTPS, "[::1]:8443"));
        check("/", tunnel, false, "https://[::1]:8443/");
        let tunnel = Some((Scheme::HTTP, "a.test:80"));
        check("/socket", tunnel, true, "ws://a.test/socket");
    }

    #[tokio::test]
    async fn a_used_port_is_an_error_with_cause_and_remedy() {
        let (_taken, address) = listen().await.expect("a free port");
        let error = listen_on(address.port()).await.map(drop);
        let error = error.expect_err("the port is taken");
        assert!(
            matches!(&error, BrowserError::ProxyPort { source } if source.kind() == std::io::ErrorKind::AddrInUse),
            "{error:?}"
        );
        assert!(error.to_string().contains("ulimit -n"), "{error}");
    }

    #[test]
    fn requests_of_services_are_distinguished_from_requests_of_pages() {
        let is_own = |site: &'static str, mode: &'static str, destination: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("sec-fetch-site", HeaderValue::from_static(site));
            headers.insert("sec-fetch-mode", HeaderValue::from_static(mode));
            headers.insert("sec-fetch-dest", HeaderValue::from_static(destination));
            is_of_the_browser(&headers)
        };
        // A request of Chromium 150 to its search engine.
        assert!(is_own("none", "no-cors", "empty"));
        assert!(!is_own("none", "navigate", "document"));
        assert!(!is_own("none", "no-cors", "image"), "an icon of the page");
        assert!(!is_own("same-origin", "no-cors", "empty"), "a beacon");
        assert!(
            !is_of_the_browser(&HeaderMap::new()),
            "http has no such headers"
        );
    }

    #[test]
    fn headers_of_the_connection_are_not_passed_on() {
        let mut headers = HeaderMap::new();
        let all = [
            ("connection", "keep-alive, X-Hop"),
            ("x-hop", "1"),
            ("proxy-connection", "keep-alive"),
            ("accept", "*/*"),
        ];
        for (name, value) in all {
            headers.insert(name, value.parse().expect("a valid value"));
        }
        remove_connection_headers(&mut headers);
        let left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["accept"]);
    }
}

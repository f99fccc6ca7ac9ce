//! Checks every request before it is handled: its host name, its sender, and the sender's role. It also sets the security
//! headers of responses.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;

use crate::access::{Caller, PeerAddress, Refusal, Role, SignedIn, cookie};
use crate::audit::AuditEntry;
use crate::config::DaemonConfig;
use crate::daemon::Daemon;
use crate::heritrix_account::{self, NoAnswer};
use crate::problem::{Problem, ProblemDetail};
use crate::timeouts::Peer;

/// Content security policy of the console: nothing from other servers, nothing inline, no frames by others. So hostile text of a
/// job is never executed.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Largest body of an unauthenticated request: a token, with some room around it.
const OPEN_BYTES_MAX: usize = 4_096;

/// Longest time for the body of an unauthenticated request.
const UNKNOWN_TIME_MAX: Duration = Duration::from_secs(5);

/// Maximum bytes of a refused request's body that are read, within [`UNKNOWN_TIME_MAX`]. A connection with
/// more left is closed, even while the client sends its answer to the challenge on it.
const REFUSED_BYTES_MAX: usize = 1 << 20;

/// Returns `true` if a request needs no token: the console's own files, which are public, the sign-in, and health checks.
fn is_open(method: &Method, path: &str) -> bool {
    match path {
        "/healthz" | "/readyz" | "/api/v1/session" => true,
        _ => {
            let is_asset = path == "/" || path.starts_with("/assets/");
            is_asset && (method == Method::GET || method == Method::HEAD)
        }
    }
}

/// Returns `true` if a request only asks about the text in its body. Such requests are not in the audit log, because they change
/// nothing.
fn is_question(method: &Method, path: &str) -> bool {
    method == Method::POST && matches!(path, "/api/v1/profiles/check" | "/api/v1/profiles/form")
}

/// The middleware.
pub(crate) async fn guard(
    State(daemon): State<Arc<Daemon>>,
    mut request: Request,
    next: Next,
) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let peer = request.extensions().get::<ConnectInfo<Peer>>();
    let peer = peer.map(|ConnectInfo(peer)| peer.clone());
    let from = peer
        .as_ref()
        .map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.address.ip());
    let looks = method == Method::GET || method == Method::HEAD;
    let admitted = admit(&daemon, &request, from, looks);
    let user = admitted.as_ref().ok().and_then(Clone::clone);
    if let Some(peer) = peer
        && user.is_some()
    {
        peer.requests.mark_known();
    }
    let needs_no_role = is_open(&method, &path) || is_question(&method, &path);
    let admitted = admitted.and_then(|caller| match caller {
        Some(caller) if !looks && !needs_no_role => {
            caller.needs(Role::Operator)?;
            Ok(Some(caller))
        }
        caller => Ok(caller),
    });
    request.extensions_mut().insert(PeerAddress(from));
    let mut response = match admitted {
        Ok(Some(caller)) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Ok(None) if looks => next.run(request).await,
        Ok(None) => match with_body(request, UNKNOWN_TIME_MAX).await {
            Ok(request) => next.run(request).await,
            Err(problem) => problem.into_response(),
        },
        Err(problem) => {
            take_body(request).await;
            problem.into_response()
        }
    };
    let asks = looks || is_question(&method, &path) && user.is_some();
    if !asks {
        let value = response.extensions().get::<ProblemDetail>();
        let signed_in = response.extensions().get::<SignedIn>();
        daemon.audit.write(AuditEntry {
            at: Timestamp::now(),
            user: user
                .map(|caller| caller.user)
                .or_else(|| signed_in.map(|it| it.0.clone())),
            from: from.to_string(),
            method: method.to_string(),
            path: path.clone(),
            status: response.status().as_u16(),
            problem: value.map(|value| value.0.clone()),
            left_out: 0,
        });
    }
    careful(response.headers_mut(), &path, daemon.config.uses_https());
    response
}

/// Reads the whole body of an unauthenticated request, within a time limit.
async fn with_body(request: Request, within: Duration) -> Result<Request, Problem> {
    let (parts, body) = request.into_parts();
    let body = tokio::time::timeout(within, to_bytes(body, OPEN_BYTES_MAX));
    match body.await {
        Ok(Ok(body)) => Ok(Request::from_parts(parts, body.into())),
        Ok(Err(problem)) => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            format!("incomplete body: {problem}"),
        )),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            format!(
                "the body was not received within {} seconds, the limit for clients that are not signed in",
                within.as_secs()
            ),
        )),
    }
}

/// Reads the body of a refused request, so that the connection stays usable.
async fn take_body(request: Request) {
    // The body is not read if the client first asks whether to send it (`Expect: 100-continue`).
    if !request.headers().contains_key(header::EXPECT) {
        let body = to_bytes(request.into_body(), REFUSED_BYTES_MAX);
        let _ = tokio::time::timeout(UNKNOWN_TIME_MAX, body).await;
    }
}

/// Authenticates a request, if this is required.
fn admit(
    daemon: &Daemon,
    request: &Request,
    from: IpAddr,
    looks: bool,
) -> Result<Option<Caller>, Problem> {
    let (headers, path) = (request.headers(), request.uri().path());
    let host = host(request)?;
    if !is_ours(&daemon.config, &host) {
        return Err(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            format!(
                "unknown host {:?}; add it to hosts in opilio.toml if it is a name of this daemon",
                host.as_str()
            ),
        ));
    }
    if !looks && !is_same_origin(headers, &host) {
        return Err(Problem::forbidden(
            "the request comes from a page of another site",
        ));
    }
    if !daemon.config.authentication {
        return Ok(Some(Caller {
            user: "anybody".to_owned(),
            role: Role::Admin,
        }));
    }
    if let Some(answered) = by_digest(daemon, request, from) {
        return answered.map(Some);
    }
    let caller = match (bearer(headers), cookie(headers)) {
        (Some(token), _) => match daemon.access.by_token(token, from) {
            Ok(caller) => Some(caller),
            Err(_) if is_open(request.method(), path) => None,
            Err(refusal) => return Err(refusal.into()),
        },
        (None, Some(cookie)) => daemon.access.by_session(cookie),
        (None, None) => None,
    };
    if is_open(request.method(), path) {
        if caller.is_none() && !looks && !is_small(headers) {
            return Err(Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!(
                    "clients that are not signed in may send at most {OPEN_BYTES_MAX} bytes, with Content-Length"
                ),
            ));
        }
        return Ok(caller);
    }
    let Some(caller) = caller else {
        if daemon.access.is_unreadable() {
            return Err(Refusal::Unreadable.into());
        }
        return Err(Problem::new(
            StatusCode::UNAUTHORIZED,
            "sign in, or send a token: Authorization: Bearer TOKEN; `opilio token new` creates one",
        ));
    };
    Ok(Some(caller))
}

/// Returns `true` if a body is small enough for an unauthenticated request. Its stated length is sufficient, because a wrong length
/// makes the request invalid.
fn is_small(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH);
    match length.map(|length| length.to_str().map(str::parse::<usize>)) {
        Some(Ok(Ok(length))) => length <= OPEN_BYTES_MAX,
        Some(_) => false,
        None => !headers.contains_key(header::TRANSFER_ENCODING),
    }
}

/// Authenticates a client of Heritrix: checks its answer to a challenge, or sends a challenge.
fn by_digest(daemon: &Daemon, request: &Request, from: IpAddr) -> Option<Result<Caller, Problem>> {
    let is_engine = request.uri().path().starts_with(heritrix_account::BASE);
    let account = daemon.heritrix.as_ref().filter(|_| is_engine)?;
    let headers = request.headers();
    if bearer(headers).is_some() || cookie(headers).is_some() {
        return None;
    }
    let challenged = |is_stale| {
        Problem::new(
            StatusCode::UNAUTHORIZED,
            "send user and password of [heritrix] in opilio.toml, by digest authentication",
        )
        .challenge(account.challenge(is_stale))
    };
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return Some(Err(challenged(false)));
    };
    let uri = request.uri().path_and_query();
    let uri = uri.map_or("/", |uri| uri.as_str());
    let value = value.to_str().unwrap_or_default();
    let admitted = account.admit(value, request.method().as_str(), uri, from, &daemon.access);
    Some(admitted.map_err(|no| match no {
        NoAnswer::Stale => challenged(true),
        NoAnswer::Refused(Refusal::Wrong) => challenged(false),
        NoAnswer::Refused(refusal) => refusal.into(),
    }))
}

/// The host name in the request.
fn host(request: &Request) -> Result<Authority, Problem> {
    let bad = || Problem::new(StatusCode::BAD_REQUEST, "missing or invalid Host header");
    let mut named = request.headers().get_all(header::HOST).iter();
    let authority = match (request.uri().authority(), named.next(), named.next()) {
        (Some(authority), _, None) => authority.clone(),
        (None, Some(host), None) => Authority::try_from(host.as_bytes()).map_err(|_| bad())?,
        _ => return Err(bad()),
    };
    match authority.host().is_empty() || authority.as_str().contains('@') {
        true => Err(bad()),
        false => Ok(authority),
    }
}

/// Returns `true` if a host name is one of the daemon's. Other names are refused: a foreign page may point its own name at this
/// machine, and would then have the same origin as the daemon.
fn is_ours(config: &DaemonConfig, host: &Authority) -> bool {
    let name = host.host();
    if name.eq_ignore_ascii_case("localhost") {
        return config.listen.ip().is_loopback();
    }
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        // An IP address is safe: the client used the address itself, so no foreign name was resolved.
        return config.listen.ip().is_unspecified()
            || address == config.listen.ip()
            || (address.is_loopback() && config.listen.ip().is_loopback());
    }
    let named =
        |ours: &String| name.eq_ignore_ascii_case(ours) || host.as_str().eq_ignore_ascii_case(ours);
    config.hosts.iter().any(named)
}

/// Returns `true` if a change comes from the daemon's own page. Browsers send the origin; other clients send none.
fn is_same_origin(headers: &HeaderMap, host: &Authority) -> bool {
    if let Some(site) = headers.get("sec-fetch-site")
        && !matches!(site.as_bytes(), b"same-origin" | b"none")
    {
        return false;
    }
    let Some(origin) = headers.get(header::ORIGIN) else {
        return true;
    };
    let origin = origin.to_str().unwrap_or_default();
    let authority = origin
        .strip_prefix("https://")
        .or_else(|| origin.strip_prefix("http://"));
    authority.is_some_and(|origin| origin.eq_ignore_ascii_case(host.as_str()))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(token.trim())
}

fn lacks(role: Role) -> Problem {
    let role = match role {
        Role::Viewer => "viewer",
        Role::Operator => "operator",
        Role::Admin => "admin",
    };
    Problem::forbidden(format!("this requires the role {role}"))
}

fn careful(headers: &mut HeaderMap, path: &str, tls: bool) {
    let mut set = |name: HeaderName, value: &'static str| {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    };
    set(header::CONTENT_SECURITY_POLICY, POLICY);
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::X_FRAME_OPTIONS, "SAMEORIGIN");
    set(header::REFERRER_POLICY, "no-referrer");
    set(
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    );
    set(
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    );
    if tls {
        set(header::STRICT_TRANSPORT_SECURITY, "max-age=31536000");
    }
    if path.starts_with("/api/") {
        set(header::CACHE_CONTROL, "no-store");
    }
}

impl Caller {
    /// Refuses callers with a lower role.
    pub(crate) fn needs(&self, role: Role) -> Result<(), Problem> {
        match self.role >= role {
            true => Ok(()),
            false => Err(lacks(role)),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Caller, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        caller.ok_or_else(|| Problem::new(StatusCode::UNAUTHORIZED, "sign in first"))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use axum::body::{Body, Bytes};
    use futures_core::Stream;

    use super::*;

    /// A body that never arrives.
    struct Never;

    impl Stream for Never {
        type Item = Result<Bytes, Infallible>;

        fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            Poll::Pending
        }
    }

    #[tokio::test]
    async fn the_body_of_an_unauthenticated_request_has_a_time_limit() {
        let request = Request::new(Body::from_stream(Never));
        let problem = with_body(request, Duration::from_millis(10)).await;
        let response = problem.unwrap_err().into_response();
        assert_eq!(response.status(), StatusCode::REQUEST_TIMEOUT);
        let request = Request::new(Body::from("{}"));
        let request = with_body(request, UNKNOWN_TIME_MAX).await.unwrap();
        assert_eq!(to_bytes(request.into_body(), 2).await.unwrap(), "{}");
    }

    #[test]
    fn only_host_names_of_the_daemon_are_accepted() {
        let config = |listen: &str| DaemonConfig {
            listen: listen.parse().unwrap(),
            hosts: vec!["crawler.example.org".to_owned()],
            ..DaemonConfig::default()
        };
        for (listen, host, expected) in [
            ("127.0.0.1:8470", "127.0.0.1:8470", true),
            ("127.0.0.1:8470", "localhost:8470", true),
            ("127.0.0.1:8470", "[::1]:8470", true),
            ("127.0.0.1:8470", "evil.example:8470", false),
            ("127.0.0.1:8470", "192.0.2.1", false),
            ("127.0.0.1:8470", "Crawler.Example.org", true),
            ("192.0.2.1:443", "localhost", false),
            ("192.0.2.1:443", "192.0.2.1", true),
            ("0.0.0.0:443", "192.0.2.1", true),
            ("0.0.0.0:443", "evil.example", false),
        ] {
            let host = host.parse().unwrap();
            assert_eq!(is_ours(&config(listen), &host), expected, "{listen} {host}");
        }
    }

    #[test]
    fn changes_from_pages_of_other_sites_are_refused() {
        let host: Authority = "localhost:8470".parse().unwrap();
        for (name, value, expected) in [
            ("origin", "http://localhost:8470", true),
            ("origin", "https://localhost:8470", true),
            ("origin", "http://localhost:8471", false),
            ("origin", "https://evil.example", false),
            ("origin", "null", false),
            ("sec-fetch-site", "same-origin", true),
            ("sec-fetch-site", "cross-site", false),
            ("sec-fetch-site", "same-site", false),
            ("accept", "*/*", true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(is_same_origin(&headers, &host), expected, "{name}: {value}");
        }
    }
}

//! The HTTP server: combines the parts of the daemon, and opens its sockets.
//!
//! ```text
//! socket ─► TLS ─► guard ─► /api/v1 (api.rs) | / (assets.rs) | /healthz, /readyz, /metrics
//! ```
//! Routes of other interfaces are merged in [`routes`], behind the same guard.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{Extensions, HeaderMap, StatusCode, Version, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, NotForContentType, Predicate as _};

use crate::access::Refusal;
use crate::api;
use crate::assets;
use crate::daemon::Daemon;
use crate::guard::guard;
use crate::heritrix;
use crate::problem::Problem;
use crate::request_spans::traced;
use crate::timeouts::{self, Peer};
use crate::tls::TlsListener;

/// Largest body of a request: a profile with all its seeds.
const BODY_BYTES_MAX: usize = 16 << 20;

/// Time limit for answers in progress when the daemon ends.
const GRACE: Duration = Duration::from_secs(10);

/// All routes, behind the guard.
pub(crate) fn routes(daemon: &Arc<Daemon>) -> axum::Router {
    let (api, document) = api::router();
    let document = document.to_json().unwrap_or_default();
    let engine = match daemon.heritrix {
        Some(_) => heritrix::router(),
        None => axum::Router::new(),
    };
    let small = DefaultPredicate::new().and(NotForContentType::const_new("text/event-stream"));
    let small = small.and(has_no_ranges);
    api.route(
        &format!("{}/openapi.json", api::BASE),
        get(move || async move { ([(header::CONTENT_TYPE, "application/json")], document) }),
    )
    .merge(engine)
    .route("/metrics", get(api::statistics::all_metrics))
    .route("/healthz", get(async || "ok\n"))
    .route("/readyz", get(ready))
    .route("/", get(page))
    .route("/assets/{*path}", get(asset))
    .fallback(unknown)
    .method_not_allowed_fallback(wrong_method)
    .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
    .layer(CatchPanicLayer::custom(panicked))
    .layer(middleware::from_fn_with_state(daemon.clone(), guard))
    .layer(middleware::from_fn(traced))
    .layer(CompressionLayer::new().compress_when(small))
    .layer(middleware::from_fn(timeouts::count))
    .with_state(daemon.clone())
}

/// Returns `true` if an answer has no byte ranges. Only files on the disk have them, and these are not compressed.
fn has_no_ranges(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    !headers.contains_key(header::ACCEPT_RANGES)
}

/// Serves until the daemon ends.
pub(crate) async fn serve(daemon: &Arc<Daemon>, listener: TcpListener) -> std::io::Result<()> {
    let routes = routes(daemon).into_make_service_with_connect_info::<Peer>();
    let mut closing = daemon.closing.subscribe();
    let connections = TlsListener::open(listener, daemon.config.tls.as_ref())?;
    let served = axum::serve(connections, routes).with_graceful_shutdown(async move {
        let _ = closing.wait_for(|closing| *closing).await;
    });
    let served = served.into_future();
    let mut closing = daemon.closing.subscribe();
    let too_late = async move {
        let _ = closing.wait_for(|closing| *closing).await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        served = served => served,
        () = too_late => Ok(()),
    }
}

/// Readiness: all jobs were examined recently, and tokens can be checked.
async fn ready(State(daemon): State<Arc<Daemon>>) -> Response {
    let no = |why: &str| Problem::new(StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    if *daemon.closing.borrow() {
        return no("the daemon is ending");
    }
    if let Some(problem) = daemon.jobs_problem.borrow().as_deref() {
        return no(problem);
    }
    if daemon.config.authentication && daemon.access.is_unreadable() {
        return Problem::from(Refusal::Unreadable).into_response();
    }
    "ready\n".into_response()
}

async fn page(headers: HeaderMap) -> Response {
    file("", &headers)
}

async fn asset(Path(path): Path<String>, headers: HeaderMap) -> Response {
    file(&format!("assets/{path}"), &headers)
}

fn file(path: &str, headers: &HeaderMap) -> Response {
    match assets::get(path) {
        Some(asset) => asset.respond(headers),
        None => Problem::not_found("file not found").into_response(),
    }
}

async fn unknown() -> Problem {
    Problem::not_found("path not found; GET /api/v1/openapi.json lists all paths")
}

async fn wrong_method() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method not allowed for this path",
    )
}

fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let what = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic");
    tracing::error!("a request panicked: {what}");
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal error of the daemon; see its log",
    )
    .into_response()
}

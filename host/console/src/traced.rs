//! Each request as a span of a trace, which is a part of the caller's own where that is said (W3C Trace Context). Where nobody
//! collects traces nothing is made.

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use opentelemetry::global;
use opentelemetry_http::HeaderExtractor;
use tracing::field::Empty;
use tracing::{Instrument as _, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// The middleware.
pub(crate) async fn traced(request: Request, next: Next) -> Response {
    // Names of jobs are in the path, and a span's name is to be one of few.
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("", MatchedPath::as_str);
    let span = info_span!(
        "request",
        otel.name = format!("{} {route}", request.method()),
        otel.kind = "server",
        http.request.method = request.method().as_str(),
        http.route = route,
        url.path = request.uri().path(),
        http.response.status_code = Empty,
    );
    if !span.is_disabled() {
        let headers = HeaderExtractor(request.headers());
        let caller = global::get_text_map_propagator(|known| known.extract(&headers));
        // It fails where traces are made by somebody else, who then has no parent.
        let _ = span.set_parent(caller);
    }
    let response = next.run(request).instrument(span.clone()).await;
    span.record("http.response.status_code", response.status().as_u16());
    response
}

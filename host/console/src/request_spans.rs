//! Creates a trace span for each request. The span belongs to the caller's trace if the request names one (W3C Trace Context).
//! Without a collector no spans are created.

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
    // Span names use the route instead of the path, which contains names of jobs, because span names must be few.
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
        // This fails if another library creates the traces. Then the span has no parent.
        let _ = span.set_parent(caller);
    }
    let response = next.run(request).instrument(span.clone()).await;
    span.record("http.response.status_code", response.status().as_u16());
    response
}

//! `/engine`: the REST interface of Heritrix 3, so that Heritrix's clients can control Opilio. It is off unless `opilio.toml`
//! has `[heritrix]`.
//!
//! In Heritrix a job is a folder with a configuration that is built, launched (paused) and torn down. Here building imports the
//! configuration and makes a job of it, which is fixed from then on. All further operations are those of the native API, and
//! jobs made in other ways can be controlled too. Heritrix's scripts are refused: they would let every holder of the password
//! run any program.

mod drafts;
mod engine;
mod files;
mod job;
mod model;

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use serde_json::Value;

use self::drafts::Drafts;
use self::model::xml;
use crate::daemon::Daemon;
use crate::heritrix_account::BASE;
use crate::problem::Problem;

/// All routes.
pub(crate) fn router() -> Router<Arc<Daemon>> {
    Router::new()
        .route("/engine", get(engine::show).post(engine::act))
        .route("/engine/", get(engine::show).post(engine::act))
        .route("/engine/anypath/{*path}", get(files::any_path))
        .route("/engine/job/{job}", get(job::show).post(job::act))
        .route("/engine/job/{job}/", get(job::show).post(job::act))
        .route("/engine/job/{job}/jobdir", get(files::list))
        .route("/engine/job/{job}/jobdir/", get(files::list))
        .route(
            "/engine/job/{job}/jobdir/{*path}",
            get(files::show).put(files::put),
        )
        .route("/engine/job/{job}/report/{report}", get(job::report))
        .route("/engine/job/{job}/script", post(scripts).get(scripts))
        .route("/engine/job/{job}/beans", any(beans))
        .route("/engine/job/{job}/beans/{*path}", any(beans))
}

async fn scripts() -> Problem {
    Problem::forbidden(
        "scripts are not run, because they could do everything that the daemon can do on this machine; change settings, seeds and queues of a running job with `opilio job` or the API under /api/v1",
    )
}

async fn beans() -> Problem {
    Problem::not_found(
        "Opilio has no beans; read and change the settings of a job at /api/v1/jobs/JOB/settings",
    )
}

impl Daemon {
    fn drafts(&self) -> Drafts {
        let jobs = self.folder.path();
        Drafts::new(&jobs.join(".opilio"), jobs)
    }

    /// The URL of `/engine` as the client used it.
    fn engine_url(&self, headers: &HeaderMap) -> String {
        let scheme = match self.config.uses_https() {
            true => "https",
            false => "http",
        };
        // The guard has checked it already.
        let host = headers
            .get(header::HOST)
            .and_then(|host| host.to_str().ok());
        format!("{scheme}://{}{BASE}", host.unwrap_or("localhost"))
    }
}

/// Formats an answer in XML, or in JSON if the client accepts that.
fn answer(headers: &HeaderMap, root: &str, value: &Value) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|it| it.to_str().ok());
    if accept.is_some_and(|accept| accept.contains("application/json")) {
        return axum::Json(value).into_response();
    }
    let kind = [(header::CONTENT_TYPE, "application/xml; charset=utf-8")];
    (kind, xml(root, value)).into_response()
}

/// Answers a completed action; the client continues at the URL.
fn see_other(url: String) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, url)]).into_response()
}

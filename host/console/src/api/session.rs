//! Browser sessions: a token is exchanged for a cookie that scripts cannot read.

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Shared;
use crate::access::{COOKIE, Caller, PeerAddress, Role, SignedIn, cookie};
use crate::input::Body;
use crate::problem::Problem;

/// Session of the client.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Session {
    /// `true` if the client is signed in.
    authenticated: bool,
    /// `true` if a token is required.
    required: bool,
    /// User of the token.
    user: Option<String>,
    /// Role of the token.
    role: Option<Role>,
}

/// Token to sign in with.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignIn {
    /// The token, as printed by `opilio token new`.
    token: String,
}

/// Shows the user and the role of the client.
#[utoipa::path(get, path = "/session", operation_id = "show_session", tag = "daemon", security(()), responses((status = 200, body = Session)))]
pub(crate) async fn show(
    State(daemon): Shared,
    caller: Option<Extension<Caller>>,
) -> Json<Session> {
    let caller = caller.map(|Extension(caller)| caller);
    Json(Session {
        authenticated: caller.is_some(),
        required: daemon.config.authentication,
        role: caller.as_ref().map(|caller| caller.role),
        user: caller.map(|caller| caller.user),
    })
}

/// Signs in: the response sets a cookie.
#[utoipa::path(post, path = "/session", operation_id = "sign_in", tag = "daemon", security(()), request_body = SignIn, responses((status = 200, body = Session)))]
pub(crate) async fn sign_in(
    State(daemon): Shared,
    Extension(from): Extension<PeerAddress>,
    Body(SignIn { token }): Body<SignIn>,
) -> Result<impl IntoResponse, Problem> {
    if !daemon.config.authentication {
        return Err(Problem::conflict("this daemon requires no sign-in"));
    }
    let (cookie, caller) = daemon
        .access
        .sign_in(&token, from.0)
        .map_err(Problem::from)?;
    let session = Session {
        authenticated: true,
        required: true,
        user: Some(caller.user.clone()),
        role: Some(caller.role),
    };
    let secure = match daemon.config.uses_https() {
        true => "; Secure",
        false => "",
    };
    let set = format!("{COOKIE}={cookie}; HttpOnly; SameSite=Strict; Path=/{secure}");
    // The audit log uses the caller, because the request itself was not authenticated.
    let signed_in = Extension(SignedIn(caller.user));
    Ok((signed_in, [(header::SET_COOKIE, set)], Json(session)))
}

/// Signs out.
#[utoipa::path(delete, path = "/session", operation_id = "sign_out", tag = "daemon", security(()), responses((status = 204, description = "The client is signed out")))]
pub(crate) async fn sign_out(State(daemon): Shared, headers: HeaderMap) -> impl IntoResponse {
    if let Some(cookie) = cookie(&headers) {
        daemon.access.sign_out(cookie);
    }
    let set = format!("{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, set)])
}

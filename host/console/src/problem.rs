//! Problem documents (RFC 9457): the only form of this daemon's error responses.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use opilio_control::{ControlError, ErrorKind, FaultFound, chain};
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::Refusal;
use crate::profile_store::ProfileStoreError;

/// Problem document (RFC 9457). Unless its detail says otherwise, nothing was changed.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// Always `about:blank`: the status gives the type of the problem.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Name of the status.
    title: &'static str,
    /// Status of the response.
    status: u16,
    /// Description of the problem, and its remedy.
    detail: String,
    /// Errors in a submitted text, with their places.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<FaultFound>,
    /// Seconds after which the request may be repeated.
    #[serde(skip)]
    retry_after: Option<u64>,
    /// Authentication scheme for the header `WWW-Authenticate`, if it is not a token.
    #[serde(skip)]
    challenge: Option<Box<str>>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        Problem {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Problem"),
            status: status.as_u16(),
            detail: detail.into(),
            faults: Vec::new(),
            retry_after: None,
            challenge: None,
        }
    }

    pub(crate) fn challenge(self, challenge: String) -> Problem {
        Problem {
            challenge: Some(challenge.into()),
            ..self
        }
    }

    pub(crate) fn with_faults(self, faults: Vec<FaultFound>) -> Problem {
        Problem { faults, ..self }
    }

    pub(crate) fn retry_after(self, seconds: u64) -> Problem {
        Problem {
            retry_after: Some(seconds),
            ..self
        }
    }

    /// The request is invalid and can never succeed.
    pub(crate) fn unusable(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// Returns `true` if the request is invalid and can never succeed.
    pub(crate) fn is_unusable(&self) -> bool {
        self.status == StatusCode::UNPROCESSABLE_ENTITY.as_u16()
    }

    /// Returns `true` if the request names something that does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        self.status == StatusCode::NOT_FOUND.as_u16()
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, detail)
    }

    /// The request conflicts with the current state.
    pub(crate) fn conflict(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::CONFLICT, detail)
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::FORBIDDEN, detail)
    }

    /// An error of the daemon or the machine, which is also logged.
    pub(crate) fn failure(detail: impl Into<String>) -> Problem {
        let detail = detail.into();
        tracing::error!("{detail}");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }
}

impl From<ControlError> for Problem {
    fn from(ControlError { kind, message }: ControlError) -> Problem {
        match kind {
            ErrorKind::Request => Problem::unusable(message),
            ErrorKind::Unknown => Problem::not_found(message),
            ErrorKind::State => Problem::conflict(message),
            ErrorKind::Failure => Problem::failure(message),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        match refusal {
            Refusal::Wrong => Problem::new(
                StatusCode::UNAUTHORIZED,
                "the token is unknown, expired or revoked",
            ),
            Refusal::Unreadable => Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the daemon cannot read its file of tokens, so nobody can sign in; its log has the file and the reason",
            ),
            Refusal::TooMany(seconds) => Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too many invalid tokens; wait before you try again",
            )
            .retry_after(seconds),
        }
    }
}

impl From<ProfileStoreError> for Problem {
    fn from(problem: ProfileStoreError) -> Problem {
        use ProfileStoreError::{
            Changed, Io, Link, Name, NotText, Shipped, Taken, TooLong, Unknown, Unreadable, Version,
        };
        let message = chain(&problem);
        match problem {
            Name(_) | Shipped(_) | NotText { .. } | TooLong(_) => Problem::unusable(message),
            Unknown { .. } | Version { .. } => Problem::not_found(message),
            Taken(_) | Link { .. } | Unreadable { .. } => Problem::conflict(message),
            Changed { .. } => Problem::new(StatusCode::PRECONDITION_FAILED, message),
            Io { .. } => Problem::failure(message),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let (retry_after, challenge) = (self.retry_after, self.challenge.clone());
        let kind = HeaderValue::from_static("application/problem+json");
        // The audit log reads the detail from the response.
        let message = ProblemDetail(self.detail.clone());
        let mut response = (status, Json(self)).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        if let Some(seconds) = retry_after {
            let seconds = HeaderValue::from(seconds);
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        if status == StatusCode::UNAUTHORIZED {
            let how = challenge.and_then(|how| HeaderValue::from_str(&how).ok());
            let how = how.unwrap_or(HeaderValue::from_static("Bearer"));
            response.headers_mut().insert(header::WWW_AUTHENTICATE, how);
        }
        response.extensions_mut().insert(message);
        response
    }
}

/// The detail of a problem, beside its response.
#[derive(Clone, Debug)]
pub(crate) struct ProblemDetail(pub(crate) String);

//! Requests of `object_store` over the client that alerts use: one TLS library, the machine's root certificates, no redirects.

use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use http_body_util::BodyExt as _;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};

use crate::alerts::http_client;

/// Longest time for one request: a part of 8 MiB at 250 kbit/s.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Maker of clients for one address.
#[derive(Debug)]
pub(super) struct Connector {
    /// Address of the storage.
    pub(super) address: String,
}

#[derive(Debug)]
struct Client(reqwest::Client);

impl HttpConnector for Connector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = http_client(&self.address, REQUEST_TIMEOUT);
        let client = client.map_err(|problem| object_store::Error::Generic {
            store: "S3",
            source: problem.into(),
        })?;
        Ok(HttpClient::new(Client(client)))
    }
}

impl HttpService for Client {
    fn call<'c, 'f>(
        &'c self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        'c: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let address = parts.uri.to_string();
            let url = reqwest::Url::parse(&address)
                .map_err(|problem| HttpError::new(HttpErrorKind::Unknown, problem))?;
            let mut request = reqwest::Request::new(parts.method, url);
            *request.headers_mut() = parts.headers;
            *request.body_mut() = Some(match body.as_bytes() {
                Some(bytes) => bytes.clone().into(),
                None => reqwest::Body::wrap(body),
            });
            let response = self.0.execute(request).await.map_err(failure)?;
            let response: http::Response<reqwest::Body> = response.into();
            let (parts, body) = response.into_parts();
            let body = HttpResponseBody::new(body.map_err(failure));
            Ok(HttpResponse::from_parts(parts, body))
        })
    }
}

/// Classifies an error: its kind decides whether the request is repeated.
fn failure(problem: reqwest::Error) -> HttpError {
    let kind = if problem.is_timeout() {
        HttpErrorKind::Timeout
    } else if problem.is_connect() {
        HttpErrorKind::Connect
    } else if problem.is_decode() {
        HttpErrorKind::Decode
    } else if is_broken(&problem) {
        HttpErrorKind::Interrupted
    } else {
        HttpErrorKind::Unknown
    };
    HttpError::new(kind, problem.without_url())
}

/// Returns `true` if the connection broke.
fn is_broken(problem: &reqwest::Error) -> bool {
    let mut cause = problem.source();
    while let Some(problem) = cause {
        if let Some(problem) = problem.downcast_ref::<io::Error>() {
            return matches!(
                problem.kind(),
                io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::UnexpectedEof
            );
        }
        cause = problem.source();
    }
    false
}

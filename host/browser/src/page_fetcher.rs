//! The network of a page: every request of its browser is passed to a [`PageFetcher`].

use std::error::Error;
use std::pin::Pin;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use tokio::io::{AsyncRead, AsyncWrite};

/// The body of a request or response, as a stream.
pub type PageBody = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// A future of a [`PageFetcher`].
pub type FetchFuture<'f, T> = Pin<Box<dyn Future<Output = Result<T, FetchRejection>> + Send + 'f>>;

/// Fetches for one page. The recording proxy has no network of its own, and calls this for each request of the page, its frames and
/// its workers.
///
/// Future and body are dropped when the browser cancels the request.
pub trait PageFetcher: Send + Sync + 'static {
    /// Fetches one URI, without following redirects. The request has an absolute URI (`http` or `https`), and headers
    /// without those that concern the connection.
    fn fetch(&self, request: Request<PageBody>) -> FetchFuture<'_, Response<PageBody>>;

    /// Opens a WebSocket. The URI of the request begins with `ws` or `wss`. Refused unless implemented.
    fn open_web_socket(&self, request: Request<()>) -> FetchFuture<'_, OpenedWebSocket> {
        drop(request);
        Box::pin(async { Err(FetchRejection::refused("WebSocket")) })
    }
}

/// A WebSocket whose server has agreed.
pub struct OpenedWebSocket {
    /// The server's response, status 101.
    pub response: Response<()>,
    /// The connection after the response. Its bytes are passed on unread.
    pub stream: Box<dyn WebSocketStream>,
}

/// A connection of bytes in both directions.
pub trait WebSocketStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> WebSocketStream for S {}

/// Reason for which a request has no response. In the page, the request fails like on a network error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchRejection {
    /// A policy forbids the request, such as robots.txt, scope or the check of addresses.
    #[error("refused: {reason}")]
    Refused {
        /// The policy.
        reason: String,
    },
    /// The server could not be reached, or its response could not be read.
    #[error("failed: {reason}")]
    Failed {
        /// The cause.
        reason: String,
    },
}

impl FetchRejection {
    /// Creates the error for a refusal by a policy.
    pub fn refused(reason: impl Into<String>) -> Self {
        FetchRejection::Refused {
            reason: reason.into(),
        }
    }

    /// Creates the error for a failure of the network.
    pub fn failed(reason: impl Into<String>) -> Self {
        FetchRejection::Failed {
            reason: reason.into(),
        }
    }
}

/// Creates a body of these bytes.
pub fn full_body(bytes: impl Into<Bytes>) -> PageBody {
    http_body_util::Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

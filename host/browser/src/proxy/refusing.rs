//! The proxy of a browser for requests that are not of a page. It refuses all of them, such as updates and field trials.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::{Infallible, listen, until_closed};
use crate::error::BrowserError;
use crate::page_fetcher::{PageBody, full_body};

/// Maximum requests that are kept.
const REQUESTS_MAX: usize = 100;

/// Refuses every request. Dropping it closes the port.
pub(crate) struct RefusingProxy {
    address: SocketAddr,
    refused: Arc<Mutex<Vec<String>>>,
    _open: watch::Sender<()>,
}

impl RefusingProxy {
    /// Opens the port.
    pub(crate) async fn open() -> Result<RefusingProxy, BrowserError> {
        let (listener, address) = listen().await?;
        let (open, closed) = watch::channel(());
        let refused = Arc::default();
        let accept = accept(listener, Arc::clone(&refused), closed.clone());
        tokio::spawn(until_closed(closed, accept));
        Ok(RefusingProxy {
            address,
            refused,
            _open: open,
        })
    }

    /// Returns the address of the port on loopback.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the first refused requests: method and target.
    pub(crate) fn refused(&self) -> Vec<String> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.clone()
    }
}

async fn accept(
    listener: TcpListener,
    refused: Arc<Mutex<Vec<String>>>,
    open: watch::Receiver<()>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let refused = refused.clone();
        let service = service_fn(move |request| refuse(refused.clone(), request));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        tokio::spawn(until_closed(open.clone(), async {
            // The browser may close the connection at any time.
            let _ = connection.await;
        }));
    }
}

async fn refuse(
    refused: Arc<Mutex<Vec<String>>>,
    request: Request<Incoming>,
) -> Result<Response<PageBody>, Infallible> {
    let text = format!("{} {}", request.method(), request.uri());
    tracing::debug!(request = text, "refused a request of the browser's own");
    let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
    if refused.len() < REQUESTS_MAX {
        refused.push(text);
    }
    let mut response = Response::new(full_body(""));
    *response.status_mut() = StatusCode::FORBIDDEN;
    Ok(response)
}

//! How long a connection may take its time. Places are few, and whoever sends nothing, or a request byte by byte, would keep one
//! from everybody else.
//!
//! A request must have come in whole within a span of the answer before it, or of the beginning. While one is answered there is
//! no hurry here: whoever reads its body looks at the clock, and streams of events are written to.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::{ConnectInfo, Request};
use axum::middleware::Next;
use axum::response::Response;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::tls::Peer;

/// For the next request to come in, its body left out.
const REQUEST: Duration = Duration::from_secs(30);

/// Requests of a connection that are being answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnderWay(Arc<AtomicUsize>);

/// One of them, until this is dropped.
struct Answering(UnderWay);

impl UnderWay {
    fn begin(&self) -> Answering {
        self.0.fetch_add(1, Ordering::Relaxed);
        Answering(self.clone())
    }

    fn is_any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts a request of its connection as under way for as long as it is answered.
pub(crate) async fn count(request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<ConnectInfo<Peer>>();
    let _answering = peer.map(|ConnectInfo(peer)| peer.under_way.begin());
    next.run(request).await
}

/// A stream that ends where no request comes in time.
pub(crate) struct Paced<S> {
    stream: S,
    under_way: UnderWay,
    span: Duration,
    deadline: Pin<Box<Sleep>>,
}

impl<S> Paced<S> {
    pub(crate) fn new(stream: S) -> Paced<S> {
        Paced::within(REQUEST, stream)
    }

    fn within(span: Duration, stream: S) -> Paced<S> {
        Paced {
            stream,
            under_way: UnderWay::default(),
            span,
            deadline: Box::pin(sleep(span)),
        }
    }

    pub(crate) fn under_way(&self) -> UnderWay {
        self.under_way.clone()
    }

    fn begin_anew(&mut self) {
        let next = Instant::now() + self.span;
        self.deadline.as_mut().reset(next);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.deadline.as_mut().poll(context).is_ready() {
            if !self.under_way.is_any() {
                let problem = "no request came in time";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, problem)));
            }
            self.begin_anew();
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(_)) = written {
            self.begin_anew();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    const SPAN: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn a_request_that_comes_byte_by_byte_is_not_waited_for() {
        let (mut client, server) = duplex(64);
        let mut server = Paced::within(SPAN, server);
        let client = tokio::spawn(async move {
            while client.write_all(b"x").await.is_ok() {
                sleep(SPAN / 5).await;
            }
        });
        let ended = server.read_to_end(&mut Vec::new()).await.unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
        drop(server);
        client.await.unwrap();
    }

    #[tokio::test]
    async fn an_answer_takes_what_it_takes_and_then_a_request_has_to_come() {
        let (mut client, server) = duplex(64);
        let mut server = Paced::within(SPAN, server);
        let answering = server.under_way().begin();
        let slow = tokio::spawn(async move {
            sleep(4 * SPAN).await;
            client.write_all(b"y").await.unwrap();
            client
        });
        assert_eq!(server.read_u8().await.unwrap(), b'y');
        let _client = slow.await.unwrap();
        drop(answering);
        let ended = server.read_u8().await.unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
    }
}

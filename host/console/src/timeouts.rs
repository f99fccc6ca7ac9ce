//! Time limits of connections. Without them, a client that sends nothing, or a request byte by byte, would keep its connection open
//! forever.
//!
//! The head of a request must arrive within [`SPAN`] after the previous answer, or after the connection was opened. There is no
//! limit while a request is answered; reading its body has its own limit. An answer is aborted if the client reads nothing of it
//! for [`SPAN`].

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{ConnectInfo, Request};
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, Sleep, sleep};

/// Time for the next request to arrive, without its body, and for the client to read a part of an answer.
const SPAN: Duration = Duration::from_secs(30);

/// The client of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    /// Its requests.
    pub(crate) requests: Requests,
}

/// Requests of a connection, shared by the parts that handle it.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    state: Arc<Mutex<RequestState>>,
    /// Notified when no request is in progress any more.
    settled: Arc<Notify>,
}

#[derive(Debug)]
struct RequestState {
    in_progress: usize,
    /// Time at which the last request began or ended, or the connection began.
    since: Instant,
    is_known: bool,
}

/// A request in progress, until this is dropped.
pub(crate) struct Answering(Requests);

impl Requests {
    pub(crate) fn new(settled: Arc<Notify>) -> Requests {
        let state = RequestState {
            in_progress: 0,
            since: Instant::now(),
            is_known: false,
        };
        Requests {
            state: Arc::new(Mutex::new(state)),
            settled,
        }
    }

    /// Counts a request as in progress.
    pub(crate) fn begin(&self) -> Answering {
        let mut state = self.state();
        state.in_progress += 1;
        state.since = Instant::now();
        drop(state);
        Answering(self.clone())
    }

    /// Records that a request was authenticated by a session or a token.
    pub(crate) fn mark_known(&self) {
        self.state().is_known = true;
    }

    fn has_request(&self) -> bool {
        self.state().in_progress > 0
    }

    /// Returns the time since which the connection may be closed in favour of another one. `None` while an authenticated request is
    /// in progress.
    pub(crate) fn closable_since(&self) -> Option<Instant> {
        let state = self.state();
        (state.in_progress == 0 || !state.is_known).then_some(state.since)
    }

    fn state(&self) -> MutexGuard<'_, RequestState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.in_progress -= 1;
        state.since = Instant::now();
        if state.in_progress == 0 {
            self.0.settled.notify_one();
        }
    }
}

/// Counts a request of its connection as in progress until its answer is sent completely.
pub(crate) async fn count(request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<ConnectInfo<Peer>>();
    let answering = peer.map(|ConnectInfo(peer)| peer.requests.begin());
    let response = next.run(request).await;
    response.map(|body| {
        Body::new(Answer {
            body,
            _answering: answering,
        })
    })
}

/// The body of an answer. The request is in progress as long as it exists.
struct Answer {
    body: Body,
    _answering: Option<Answering>,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream that ends if no request arrives in time, if no answer is read, or on a signal.
pub(crate) struct TimedStream<S> {
    stream: S,
    requests: Requests,
    close: oneshot::Receiver<()>,
    is_closed: bool,
    span: Duration,
    deadline: Pin<Box<Sleep>>,
    /// `true` if the deadline is that of an answer that is not read.
    is_stalled: bool,
}

impl<S> TimedStream<S> {
    pub(crate) fn new(
        stream: S,
        requests: Requests,
        close: oneshot::Receiver<()>,
    ) -> TimedStream<S> {
        TimedStream::within(SPAN, stream, requests, close)
    }

    fn within(
        span: Duration,
        stream: S,
        requests: Requests,
        close: oneshot::Receiver<()>,
    ) -> TimedStream<S> {
        TimedStream {
            stream,
            requests,
            close,
            is_closed: false,
            span,
            deadline: Box::pin(sleep(span)),
            is_stalled: false,
        }
    }

    fn begin_anew(&mut self) {
        let next = Instant::now() + self.span;
        self.deadline.as_mut().reset(next);
    }

    /// Fails after the signal to close the connection.
    fn stays(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        self.is_closed = self.is_closed || Pin::new(&mut self.close).poll(context).is_ready();
        match self.is_closed {
            true => Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "closed for another connection",
            )),
            false => Ok(()),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stays(context)?;
        while !self.is_stalled && self.deadline.as_mut().poll(context).is_ready() {
            if !self.requests.has_request() {
                let problem = "no request was received in time";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, problem)));
            }
            self.begin_anew();
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stays(context)?;
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if written.is_ready() || !self.is_stalled {
            self.is_stalled = written.is_pending();
            self.begin_anew();
        }
        if self.is_stalled && self.deadline.as_mut().poll(context).is_ready() {
            let problem = "the client does not read the response";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, problem)));
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
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    const SPAN: Duration = Duration::from_millis(50);

    /// A client, a server, and the signal that makes the server close.
    fn connection() -> (DuplexStream, TimedStream<DuplexStream>, oneshot::Sender<()>) {
        let (client, server) = duplex(64);
        let (close, closed) = oneshot::channel();
        let requests = Requests::new(Arc::default());
        let server = TimedStream::within(SPAN, server, requests, closed);
        (client, server, close)
    }

    #[tokio::test]
    async fn a_request_that_arrives_byte_by_byte_times_out() {
        let (mut client, mut server, _close) = connection();
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
    async fn answers_have_no_time_limit_and_the_next_request_has_one() {
        let (mut client, mut server, _close) = connection();
        let answering = server.requests.begin();
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

    #[tokio::test]
    async fn an_answer_that_the_client_does_not_read_is_aborted() {
        let (_client, mut server, _close) = connection();
        let _answering = server.requests.begin();
        let ended = server.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_connection_closes_at_the_signal() {
        let (_client, mut server, close) = connection();
        close.send(()).unwrap();
        let ended = server.read_u8().await.unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::ConnectionAborted);
        let ended = server.write_all(b"x").await.unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::ConnectionAborted);
    }
}

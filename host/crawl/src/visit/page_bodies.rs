//! Bodies of responses to a rendered page: a body that is recorded already, and a body that is being received.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame};
use opilio_browser::PageBody;
use opilio_fetch::Spool;
use tokio::sync::{mpsc, oneshot};

/// Size in bytes of a read from a recorded body.
const READ_BYTES: usize = 256 * 1024;

type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// A recorded body.
struct Recorded {
    spool: Spool,
    position: u64,
}

/// A body that is being received.
struct Received {
    payload: mpsc::Receiver<Bytes>,
    /// Receives `true` after the last byte if the body is complete.
    end: oneshot::Receiver<bool>,
}

/// Returns a body that is recorded already.
pub(super) fn recorded(spool: Spool) -> PageBody {
    Recorded { spool, position: 0 }.boxed_unsync()
}

/// Returns a body that is being received. It ends with an error unless `end` receives `true`.
pub(super) fn received(payload: mpsc::Receiver<Bytes>, end: oneshot::Receiver<bool>) -> PageBody {
    Received { payload, end }.boxed_unsync()
}

impl Body for Recorded {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Poll::Ready(match self.spool.read_at(self.position, READ_BYTES) {
            Ok(bytes) if bytes.is_empty() => None,
            Ok(bytes) => {
                self.position += bytes.len() as u64;
                Some(Ok(Frame::data(bytes)))
            }
            Err(problem) => Some(Err(problem.into())),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.position >= self.spool.length()
    }
}

impl Body for Received {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(bytes) = std::task::ready!(self.payload.poll_recv(cx)) {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        let is_complete = std::task::ready!(Pin::new(&mut self.end).poll(cx));
        Poll::Ready(match is_complete {
            Ok(true) => None,
            Ok(false) | Err(_) => Some(Err("the response broke off".into())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn text(body: PageBody) -> Result<String, BodyError> {
        let bytes = body.collect().await?.to_bytes();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    #[tokio::test]
    async fn a_recorded_body_is_passed_on_whole() {
        let long = "x".repeat(READ_BYTES + 10);
        let spool = Spool::from(Bytes::from(long.clone()));
        assert_eq!(text(recorded(spool)).await.unwrap(), long);
        assert_eq!(text(recorded(Spool::default())).await.unwrap(), "");
    }

    #[tokio::test]
    async fn a_truncated_body_ends_with_an_error() {
        for is_complete in [true, false] {
            let (sender, payload) = mpsc::channel(1);
            let (ended, end) = oneshot::channel();
            sender.send(Bytes::from("a")).await.unwrap();
            drop(sender);
            ended.send(is_complete).unwrap();
            let text = text(received(payload, end)).await;
            assert_eq!(text.is_ok(), is_complete, "{text:?}");
        }
    }
}

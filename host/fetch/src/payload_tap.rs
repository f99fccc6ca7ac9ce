//! Passes a payload on while it is received, so that its receiver need not wait for its end.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::sync::mpsc;

/// The receiver of a payload, with content coding, while it is received. The server waits while its channel is full. Once its
/// channel is closed, the exchange ends as [`TruncationCause::Unwanted`](crate::TruncationCause::Unwanted).
#[derive(Clone, Debug)]
pub struct PayloadTap {
    sender: mpsc::Sender<Bytes>,
}

/// The end of a tap at an exchange.
pub(crate) struct TapEnd {
    pub(crate) sender: mpsc::Sender<Bytes>,
    closed: Pin<Box<dyn Future<Output = ()> + Send + Sync>>,
}

impl PayloadTap {
    /// Passes the payload to this channel.
    pub fn new(sender: mpsc::Sender<Bytes>) -> PayloadTap {
        PayloadTap { sender }
    }

    pub(crate) fn end(&self) -> TapEnd {
        let (sender, closed) = (self.sender.clone(), self.sender.clone());
        TapEnd {
            sender,
            closed: Box::pin(async move { closed.closed().await }),
        }
    }
}

/// Ready once the receiver is dropped.
pub(crate) fn poll_unwanted(tap: &mut Option<TapEnd>, cx: &mut Context<'_>) -> Poll<()> {
    match tap {
        Some(tap) => tap.closed.as_mut().poll(cx),
        None => Poll::Pending,
    }
}

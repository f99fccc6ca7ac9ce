//! The body of a response to the page, with a count of its bytes.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use crate::page_fetcher::PageBody;
use crate::traffic::InFlight;

/// Passes a body on, and records its bytes in the page's traffic.
pub(super) struct CountedBody {
    body: PageBody,
    in_flight: InFlight,
}

impl CountedBody {
    pub(super) fn new(body: PageBody, mut in_flight: InFlight) -> CountedBody {
        if body.is_end_stream() {
            in_flight.complete();
        }
        CountedBody { body, in_flight }
    }
}

impl Body for CountedBody {
    type Data = Bytes;
    type Error = <PageBody as Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.in_flight.received(bytes);
                // hyper does not poll again after the last byte according to Content-Length.
                if self.body.is_end_stream() {
                    self.in_flight.complete();
                }
            }
            Poll::Ready(None) => self.in_flight.complete(),
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

//! Drives hyper's connection while we wait for something of it, and watches the time.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, Sleep};

use crate::config::Config;
use crate::failure::{FetchFailure, Phase};
use crate::stream::Stream;
use crate::tape::{RecordingStream, Tape};

pub(crate) type HyperConnection = http1::Connection<TokioIo<RecordingStream>, Full<Bytes>>;
pub(crate) type Sender = http1::SendRequest<Full<Bytes>>;

/// hyper's state for one exchange.
pub(crate) struct Wire {
    hyper: HyperConnection,
    /// hyper is through with the connection.
    ended: bool,
    tape: Tape,
    clock: Clock,
    alarm: Pin<Box<Sleep>>,
}

/// The time of one exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
    pub deadline: Instant,
    total_max: Duration,
    silence_max: Duration,
}

/// Which limit was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutOfTime {
    /// No byte for this long.
    Silence(Duration),
    /// The exchange took this long.
    Total(Duration),
}

impl Clock {
    pub(crate) fn start(config: &Config) -> Self {
        let started = Instant::now();
        Clock {
            started,
            deadline: started + config.total_timeout,
            total_max: config.total_timeout,
            silence_max: config.response_timeout,
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The failure for an exchange whose total time is up.
    pub(crate) fn total_failure(&self, phase: Phase) -> FetchFailure {
        OutOfTime::Total(self.total_max).failure(phase)
    }
}

impl OutOfTime {
    pub(crate) fn failure(self, phase: Phase) -> FetchFailure {
        let (OutOfTime::Silence(after) | OutOfTime::Total(after)) = self;
        FetchFailure::Timeout { phase, after }
    }
}

impl Wire {
    pub(crate) fn new(hyper: HyperConnection, tape: Tape, clock: Clock) -> Self {
        let first = clock.deadline.min(Instant::now() + clock.silence_max);
        Wire {
            hyper,
            ended: false,
            tape,
            clock,
            alarm: Box::pin(tokio::time::sleep_until(first)),
        }
    }

    /// Waits for `ready`, which hyper makes so. What is ready is taken before hyper goes on, so that hyper has never
    /// read further than one frame ahead of us.
    pub(crate) async fn until<T>(
        &mut self,
        mut ready: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T, OutOfTime> {
        poll_fn(|cx| {
            if let Poll::Ready(value) = ready(cx) {
                return Poll::Ready(Ok(value));
            }
            if !self.ended {
                self.ended = self.hyper.poll_without_shutdown(cx).is_ready();
                if let Poll::Ready(value) = ready(cx) {
                    return Poll::Ready(Ok(value));
                }
            }
            self.poll_time(cx).map(Err)
        })
        .await
    }

    /// Ready when a limit is hit. The alarm is set for the earliest time at which that can be.
    fn poll_time(&mut self, cx: &mut Context<'_>) -> Poll<OutOfTime> {
        while self.alarm.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            let silent_at = self.tape.lock().last_activity + self.clock.silence_max;
            if now >= self.clock.deadline {
                return Poll::Ready(OutOfTime::Total(self.clock.total_max));
            }
            if now >= silent_at {
                return Poll::Ready(OutOfTime::Silence(self.clock.silence_max));
            }
            let next = silent_at.min(self.clock.deadline);
            self.alarm.as_mut().reset(next);
        }
        Poll::Pending
    }

    /// After a complete message: whether the connection may serve another.
    pub(crate) async fn settle(&mut self, sender: &Sender) -> bool {
        poll_fn(|cx| {
            // hyper may need a second look to go from "message read" to "idle".
            for _ in 0..2 {
                if !self.ended {
                    self.ended = self.hyper.poll_without_shutdown(cx).is_ready();
                }
            }
            Poll::Ready(!self.ended && sender.is_ready())
        })
        .await
    }

    /// The stream, and how many bytes hyper has read past what it has given.
    pub(crate) fn into_parts(self) -> (Stream, u64) {
        let parts = self.hyper.into_parts();
        (
            parts.io.into_inner().into_stream(),
            parts.read_buf.len() as u64,
        )
    }
}

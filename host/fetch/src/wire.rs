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
use crate::cut::Cut;
use crate::failure::{FetchFailure, Phase};
use crate::scratch::{Claim, NoRoom};
use crate::stream::Stream;
use crate::tape::{RecordingStream, Tape};

pub(crate) type HyperConnection = http1::Connection<TokioIo<RecordingStream>, Full<Bytes>>;
pub(crate) type Sender = http1::SendRequest<Full<Bytes>>;

/// hyper's state for one exchange.
pub(crate) struct Wire {
    hyper: HyperConnection,
    /// hyper is through with the connection.
    ended: bool,
    watch: Watch,
}

/// Watches the time of one exchange, and whether the crawl goes on.
pub(crate) struct Watch {
    tape: Tape,
    clock: Clock,
    alarm: Pin<Box<Sleep>>,
    cut: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// When the rate was looked at last; none before the body.
    window: Option<Window>,
}

/// From where on the rate is looked at.
#[derive(Clone, Copy)]
struct Window {
    since: Instant,
    /// Received by then.
    received: u64,
    /// How long we had let the server wait by then.
    held_up: Duration,
}

/// The time of one exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
    pub deadline: Instant,
    total_max: Duration,
    silence_max: Duration,
    first_byte_max: Duration,
    rate_min: Option<u64>,
    rate_window: Duration,
}

/// Why nothing more is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutOfTime {
    /// No byte for this long.
    Silence(Duration),
    /// The exchange took this long.
    Total(Duration),
    /// The body came too slowly.
    Rate,
    /// The crawl was stopped.
    Cut,
}

impl Clock {
    pub(crate) fn start(config: &Config) -> Self {
        let started = Instant::now();
        Clock {
            started,
            deadline: started + config.total_timeout,
            total_max: config.total_timeout,
            silence_max: config.response_timeout,
            first_byte_max: config.first_byte_timeout.unwrap_or(config.response_timeout),
            rate_min: config.rate_min,
            rate_window: config.rate_window,
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
        match self {
            OutOfTime::Silence(after) | OutOfTime::Total(after) => {
                FetchFailure::Timeout { phase, after }
            }
            // Rates are looked at in bodies alone, which stand as truncated.
            OutOfTime::Rate | OutOfTime::Cut => FetchFailure::Stopped,
        }
    }
}

impl Watch {
    pub(crate) fn new(tape: Tape, clock: Clock, cut: &Cut) -> Self {
        let first = clock.silence_max.min(clock.first_byte_max);
        let first = clock.deadline.min(Instant::now() + first);
        Watch {
            tape,
            clock,
            alarm: Box::pin(tokio::time::sleep_until(first)),
            cut: Box::pin(cut.happens()),
            window: None,
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// The server has been waiting for us, not we for it: silence and rate are counted from now.
    pub(crate) fn goes_on(&mut self) {
        let now = Instant::now();
        let mut tape = self.tape.lock();
        tape.last_activity = now;
        if self.clock.rate_min.is_some() {
            self.window = Some(Window {
                since: now,
                received: tape.received,
                held_up: tape.held_up_for(now),
            });
            drop(tape);
            self.alarm.as_mut().reset(now);
        }
    }

    /// Waits until this exchange may write so much more to disk.
    pub(crate) async fn room(
        &mut self,
        claim: &Claim,
        bytes: u64,
    ) -> Result<Result<(), NoRoom>, OutOfTime> {
        let mut waited = false;
        let room = poll_fn(|cx| {
            if let Poll::Ready(room) = claim.poll_room(cx, bytes) {
                return Poll::Ready(Ok(room));
            }
            if !waited {
                waited = true;
                self.alarm.as_mut().reset(self.clock.deadline);
            }
            if self.cut.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(OutOfTime::Cut));
            }
            let late = self.alarm.as_mut().poll(cx);
            late.map(|()| Err(OutOfTime::Total(self.clock.total_max)))
        })
        .await;
        claim.stop_waiting();
        if waited {
            self.goes_on();
            self.alarm.as_mut().reset(Instant::now());
        }
        room
    }

    /// Ready when a limit is hit. The alarm is set for the earliest time at which that can be.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<OutOfTime> {
        if self.cut.as_mut().poll(cx).is_ready() {
            return Poll::Ready(OutOfTime::Cut);
        }
        while self.alarm.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            let (active, received, held_up) = {
                let tape = self.tape.lock();
                (tape.silent_since(now), tape.received, tape.held_up_for(now))
            };
            let silence_max = match received {
                0 => self.clock.first_byte_max,
                _ => self.clock.silence_max,
            };
            let silent_at = active + silence_max;
            if now >= self.clock.deadline {
                return Poll::Ready(OutOfTime::Total(self.clock.total_max));
            }
            if now >= silent_at {
                return Poll::Ready(OutOfTime::Silence(silence_max));
            }
            let next = silent_at.min(self.clock.deadline);
            let next = match self.next_look_at_rate(now, received, held_up) {
                Ok(look) => next.min(look.unwrap_or(next)),
                Err(limit) => return Poll::Ready(limit),
            };
            self.alarm.as_mut().reset(next);
        }
        Poll::Pending
    }

    fn next_look_at_rate(
        &mut self,
        now: Instant,
        received: u64,
        held_up: Duration,
    ) -> Result<Option<Instant>, OutOfTime> {
        let (Some(least), Some(window)) = (self.clock.rate_min, self.window) else {
            return Ok(None);
        };
        // What we let the server wait is not its time.
        let end = window.since + self.clock.rate_window + (held_up - window.held_up);
        if now < end {
            return Ok(Some(end));
        }
        let came = (received - window.received) as f64;
        let time = (now - window.since).saturating_sub(held_up - window.held_up);
        if came < least as f64 * time.as_secs_f64() {
            return Err(OutOfTime::Rate);
        }
        self.window = Some(Window {
            since: now,
            received,
            held_up,
        });
        Ok(Some(now + self.clock.rate_window))
    }
}

impl Wire {
    pub(crate) fn new(hyper: HyperConnection, watch: Watch) -> Self {
        Wire {
            hyper,
            ended: false,
            watch,
        }
    }

    pub(crate) fn watch(&mut self) -> &mut Watch {
        &mut self.watch
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
            self.watch.poll(cx).map(Err)
        })
        .await
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

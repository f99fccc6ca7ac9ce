//! Drives hyper's connection while an exchange waits for it, and enforces the time limits.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, Sleep};

use crate::abort::Abort;
use crate::config::FetcherConfig;
use crate::failure::{FetchFailure, Phase};
use crate::recording_stream::{RecordingStream, Tape};
use crate::scratch::{Claim, NoRoom};
use crate::stream::Stream;

pub(crate) type HyperConnection = http1::Connection<TokioIo<RecordingStream>, Full<Bytes>>;
pub(crate) type Sender = http1::SendRequest<Full<Bytes>>;

/// hyper's state for one exchange.
pub(crate) struct Wire {
    hyper: HyperConnection,
    /// `true` if hyper has finished with the connection.
    ended: bool,
    watch: Watch,
}

/// Enforces the time limits of one exchange and the stop of the crawl.
pub(crate) struct Watch {
    tape: Tape,
    clock: Clock,
    cut: Abort,
    /// Wakes the task at the earliest time at which a limit can be reached.
    alarm: Pin<Box<Sleep>>,
    /// Wakes the task when the exchange is cut.
    aborted: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The current window of the rate limit; `None` before the body.
    window: Option<Window>,
}

/// The beginning of a window of the rate limit.
#[derive(Clone, Copy)]
struct Window {
    since: Instant,
    /// Bytes received before it.
    received: u64,
    /// Time before it for which the crawl had held the server up.
    held_up: Duration,
}

/// The time limits of one exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
    pub deadline: Instant,
    total_max: Duration,
    silence_max: Duration,
    first_byte_max: Duration,
    pub head_max: Duration,
    rate_min: Option<u64>,
    rate_window: Duration,
}

/// The reason to stop waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitHit {
    /// No byte was read or written for this long.
    Silence(Duration),
    /// The exchange took this long.
    Total(Duration),
    /// The head was incomplete this long after its first byte.
    Head(Duration),
    /// This many bytes came over HTTP/2 without a part of the response.
    Overhead(usize),
    /// The body came too slowly.
    Rate,
    /// The crawl was stopped.
    Cut,
}

impl Clock {
    pub(crate) fn start(config: &FetcherConfig) -> Self {
        let started = Instant::now();
        Clock {
            started,
            deadline: started + config.total_timeout,
            total_max: config.total_timeout,
            silence_max: config.response_timeout,
            first_byte_max: config.first_byte_timeout.unwrap_or(config.response_timeout),
            head_max: config.header_timeout,
            rate_min: config.rate_min,
            rate_window: config.rate_window,
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The failure for an exchange that has reached its total time.
    pub(crate) fn total_failure(&self, phase: Phase) -> FetchFailure {
        LimitHit::Total(self.total_max).failure(phase)
    }
}

impl LimitHit {
    pub(crate) fn failure(self, phase: Phase) -> FetchFailure {
        match self {
            LimitHit::Silence(after) | LimitHit::Total(after) | LimitHit::Head(after) => {
                FetchFailure::Timeout { phase, after }
            }
            LimitHit::Overhead(bytes) => FetchFailure::NotHttp {
                phase,
                reason: format!(
                    "HTTP/2: {bytes} bytes of control frames and interim responses in a row"
                ),
            },
            // The rate is checked only in bodies, which are kept as truncated.
            LimitHit::Rate | LimitHit::Cut => FetchFailure::Stopped,
        }
    }
}

impl Watch {
    pub(crate) fn new(tape: Tape, clock: Clock, cut: &Abort) -> Self {
        let first = clock.silence_max.min(clock.first_byte_max);
        let first = clock.deadline.min(Instant::now() + first);
        Watch {
            tape,
            clock,
            cut: cut.clone(),
            alarm: Box::pin(tokio::time::sleep_until(first)),
            aborted: Box::pin(cut.happens()),
            window: None,
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Restarts the measurement of silence and rate, after the crawl has held the server up.
    pub(crate) fn restart_measurement(&mut self) {
        let now = Instant::now();
        let mut tape = self.tape.lock();
        tape.last_activity = now;
        if self.clock.rate_min.is_some() {
            self.window = Some(Window {
                since: now,
                received: tape.received,
                held_up: tape.held_up_for(now),
            });
        }
    }

    /// Waits until this exchange may write this many more bytes to disk.
    pub(crate) async fn room(
        &mut self,
        claim: &Claim,
        bytes: u64,
    ) -> Result<Result<(), NoRoom>, LimitHit> {
        let room = self.hold(|cx| claim.poll_room(cx, bytes)).await;
        claim.stop_waiting();
        room
    }

    /// Waits for a condition of the crawl while the server is held up. Only the exchange's total time and the cut end the wait.
    pub(crate) async fn hold<T>(
        &mut self,
        mut ready: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T, LimitHit> {
        let mut waited = false;
        let held = poll_fn(|cx| {
            if let Poll::Ready(value) = ready(cx) {
                return Poll::Ready(Ok(value));
            }
            waited = true;
            if self.is_cut(cx) {
                return Poll::Ready(Err(LimitHit::Cut));
            }
            let (now, deadline) = (Instant::now(), self.clock.deadline);
            match now >= deadline || self.has_alarm_fired(cx, now, deadline) {
                true => Poll::Ready(Err(LimitHit::Total(self.clock.total_max))),
                false => Poll::Pending,
            }
        })
        .await;
        if waited {
            self.restart_measurement();
        }
        held
    }

    /// Ready when a limit is reached. It checks the clock and the cut itself. tokio's timers and channels only wake the task, and
    /// report "not yet" once its budget is spent. A server that sends without a pause spends it each time.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<LimitHit> {
        if self.is_cut(cx) {
            return Poll::Ready(LimitHit::Cut);
        }
        loop {
            let now = Instant::now();
            let next = match self.next_check(now) {
                Ok(next) => next,
                Err(limit) => return Poll::Ready(limit),
            };
            if !self.has_alarm_fired(cx, now, next) {
                return Poll::Pending;
            }
        }
    }

    /// Returns `true` if the exchange is cut. If not, the task is woken when it is.
    fn is_cut(&mut self, cx: &mut Context<'_>) -> bool {
        self.cut.is_made() || self.aborted.as_mut().poll(cx).is_ready()
    }

    /// Returns `true` if the alarm has gone off. If not, the task is woken at `next`, or earlier to check again.
    fn has_alarm_fired(&mut self, cx: &mut Context<'_>, now: Instant, next: Instant) -> bool {
        let set = self.alarm.deadline();
        if set > next || set <= now {
            self.alarm.as_mut().reset(next);
        }
        self.alarm.as_mut().poll(cx).is_ready()
    }

    /// The next time at which a limit can be reached; `Err` if one is reached now.
    fn next_check(&mut self, now: Instant) -> Result<Instant, LimitHit> {
        let clock = self.clock;
        let (active, received, head_since, held_up) = {
            let tape = self.tape.lock();
            let active = tape.silent_since(now);
            (
                active,
                tape.received,
                tape.head_since(),
                tape.held_up_for(now),
            )
        };
        if now >= clock.deadline {
            return Err(LimitHit::Total(clock.total_max));
        }
        let silence_max = match received {
            0 => clock.first_byte_max,
            _ => clock.silence_max,
        };
        let silent_at = active + silence_max;
        if now >= silent_at {
            return Err(LimitHit::Silence(silence_max));
        }
        let head_at = head_since.map(|since| since + clock.head_max + held_up);
        if head_at.is_some_and(|at| now >= at) {
            return Err(LimitHit::Head(clock.head_max));
        }
        let rate_at = self.next_rate_check(now, received, held_up)?;
        let next = silent_at.min(clock.deadline);
        let others = head_at.into_iter().chain(rate_at);
        Ok(others.fold(next, Instant::min))
    }

    fn next_rate_check(
        &mut self,
        now: Instant,
        received: u64,
        held_up: Duration,
    ) -> Result<Option<Instant>, LimitHit> {
        let (Some(least), Some(window)) = (self.clock.rate_min, self.window) else {
            return Ok(None);
        };
        // Time for which the crawl held the server up does not count.
        let held_up_since = held_up.saturating_sub(window.held_up);
        let end = window.since + self.clock.rate_window + held_up_since;
        if now < end {
            return Ok(Some(end));
        }
        let bytes = (received - window.received) as f64;
        let time = (now - window.since).saturating_sub(held_up_since);
        if bytes < least as f64 * time.as_secs_f64() {
            return Err(LimitHit::Rate);
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

    /// Drives hyper until `ready` returns a value. Values are taken before hyper continues, so that hyper never reads further
    /// than one frame ahead of us.
    pub(crate) async fn until<T>(
        &mut self,
        mut ready: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T, LimitHit> {
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

    /// After a complete message: returns whether the connection may serve another.
    pub(crate) async fn can_be_reused(&mut self, sender: &Sender) -> bool {
        poll_fn(|cx| {
            // hyper may need a second poll to go from "message read" to "idle".
            for _ in 0..2 {
                if !self.ended {
                    self.ended = self.hyper.poll_without_shutdown(cx).is_ready();
                }
            }
            Poll::Ready(!self.ended && sender.is_ready())
        })
        .await
    }

    /// The stream, and the number of bytes that hyper has read past its output.
    pub(crate) fn into_parts(self) -> (Stream, u64) {
        let parts = self.hyper.into_parts();
        (
            parts.io.into_inner().into_stream(),
            parts.read_buf.len() as u64,
        )
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::coop::{cooperative, has_budget_remaining};

    use super::*;
    use crate::recording_stream::ExchangeProgress;
    use crate::spool::SpoolWriter;

    fn watch(change: impl FnOnce(&mut FetcherConfig), cut: &Abort) -> Watch {
        let mut config = FetcherConfig::new("test", "");
        change(&mut config);
        let wire = SpoolWriter::new(0, std::path::Path::new(""));
        let tape = Tape::new(wire, 1024, ExchangeProgress::default());
        Watch::new(tape, Clock::start(&config), cut)
    }

    /// Polls a watch in a task with a spent budget, such as one that reads from a server that never pauses.
    async fn poll_with_spent_budget(mut watch: Watch) -> Poll<LimitHit> {
        poll_fn(|cx| {
            while has_budget_remaining() {
                let spent = std::pin::pin!(cooperative(std::future::ready(()))).poll(cx);
                assert!(spent.is_ready());
            }
            Poll::Ready(watch.poll(cx))
        })
        .await
    }

    #[tokio::test]
    async fn limits_apply_although_the_budget_of_the_task_is_spent() {
        let cut = Abort::new();
        let none = Duration::ZERO;
        let late = watch(|config| config.total_timeout = none, &cut);
        assert_eq!(
            poll_with_spent_budget(late).await,
            Poll::Ready(LimitHit::Total(none))
        );
        let silent = watch(|config| config.response_timeout = none, &cut);
        assert_eq!(
            poll_with_spent_budget(silent).await,
            Poll::Ready(LimitHit::Silence(none))
        );
        let well = watch(|_| {}, &cut);
        assert_eq!(poll_with_spent_budget(well).await, Poll::Pending);
        let stopped = watch(|_| {}, &cut);
        cut.now();
        assert_eq!(
            poll_with_spent_budget(stopped).await,
            Poll::Ready(LimitHit::Cut)
        );
    }
}
